"""A player and analyst of one position, and networks as functions."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Callable, Mapping, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from . import _vecaz
from ._vecaz import Network as _Network

Action = Union[int, str]
"""An action by its number or its name."""
Path = Union[str, "os.PathLike[str]"]
Setting = Union[bool, int, float, str]
Evaluate = Callable[[npt.NDArray[np.float32]], tuple[Any, Any]]
"""Observations `[M, F]` -> logits `[M, A]` and values `[M, P]`, or `[M]` of the player to move in games for one or two."""


def assignments(settings: Optional[Mapping[str, Any]]) -> list[str]:
    """Settings as `section.key=value`, from `{"search.leaves": 4}` or `{"search": {"leaves": 4}}`."""
    out: list[str] = []

    def add(prefix: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, inner in value.items():
                add(f"{prefix}.{key}" if prefix else str(key), inner)
        else:
            out.append(f"{prefix}={toml_value(prefix, value)}")

    add("", settings or {})
    return out


def toml_value(key: str, value: Any) -> str:
    """`value` as TOML."""
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in escaped) + '"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml_value(key, inner) for inner in value) + "]"
    raise ValueError(f"{key}: found {type(value).__name__}, expected a bool, a number, a text or a list of them")


@dataclass(frozen=True)
class Move:
    """A legal move of an analysed position."""

    action: int
    name: str
    visits: int
    prior: float
    """The network's probability."""
    policy: float
    """The share of the search's policy."""
    value: Optional[float]
    """The expected result for the player to move, in [-1, 1]; None before the first visit."""
    line: tuple[int, ...]
    """The expected continuation, this move first."""
    line_names: tuple[str, ...]


@dataclass(frozen=True)
class Analysis:
    """What an analysis found."""

    player: int
    """The player to move."""
    value: tuple[float, ...]
    """The expected result of every player, in [-1, 1]. `[P]`"""
    outcome: Optional[tuple[float, float, float]]
    """Probabilities of win, draw and loss for the player to move, where the network's value head has them."""
    proven: bool
    """True if the value is proven."""
    visits: int
    """Visits of the position, those of earlier analyses and of the kept tree included."""
    simulations: int
    """Simulations that this analysis made."""
    evaluations: int
    """Positions that the network evaluated in this analysis."""
    seconds: float
    nodes: int
    """Nodes of all trees."""
    end: str
    """Why it ended: `"simulations"`, `"time"`, `"stopped"`, `"proven"` or `"memory"`."""
    moves: tuple[Move, ...]
    """The legal moves, the best first, then by visits."""

    @property
    def best(self) -> Move:
        """The best move."""
        return self.moves[0]


class Engine:
    """Plays and analyses one position. The tree is kept from move to move.

    Args:
        source: the path of a run, a checkpoint or a network; or the name of a game, then without a network: uniform priors and values
            of 0, unless there is `evaluate`. None for the network of Connect Four that vecaz brings along.
        evaluate: a function in place of the network: observations `[M, F]` float32 -> `(logits [M, A], values [M, P])`, or values `[M]` of
            the player to move in games for one or two. It is called in a thread of the search, which then has no other.
        settings: configuration keys, such as `{"search.algorithm": "puct"}`.
        threads: 0 for all cores.
        memory_mib: the limit of memory for trees.
        seed: of all random numbers.
        options: those of the game, if `source` is one.

    Raises:
        ValueError: for an unknown source, setting or option, and a network that does not fit.
        OSError: for a file that cannot be read.
    """

    def __init__(
        self,
        source: Optional[Path] = None,
        *,
        evaluate: Optional[Evaluate] = None,
        settings: Optional[Mapping[str, Any]] = None,
        threads: int = 0,
        memory_mib: int = 512,
        seed: int = 1,
        **options: Setting,
    ) -> None:
        path = None if source is None else os.fspath(source)
        self._engine = _vecaz.Engine(path, options, evaluate, assignments(settings), threads, memory_mib, seed)

    @property
    def game(self) -> str:
        """The name of the game."""
        return self._engine.game

    @property
    def num_actions(self) -> int:
        """A."""
        return self._engine.num_actions

    @property
    def num_players(self) -> int:
        """P."""
        return self._engine.num_players

    @property
    def actions(self) -> list[int]:
        """The actions and outcomes so far."""
        return self._engine.actions

    @property
    def player(self) -> Optional[int]:
        """The player to move; None where chance is, and once the game is over."""
        return self._engine.player

    @property
    def is_chance(self) -> bool:
        """True where an outcome of chance is next: `play` it."""
        return self._engine.is_chance

    @property
    def is_over(self) -> bool:
        """True once the game is over."""
        return self._engine.is_over

    @property
    def returns(self) -> Optional[list[float]]:
        """The result of every player in [-1, 1] once the game is over, before that None. `[P]`"""
        return self._engine.returns

    def legal_actions(self) -> dict[int, str]:
        """The legal actions, or outcomes of chance, with their names."""
        return dict(self._engine.legal())

    def chance_probabilities(self) -> dict[int, float]:
        """The outcomes of chance with their probabilities; empty where a player is to move."""
        probabilities = self._engine.chance_probs()
        return dict(zip(self.legal_actions(), probabilities)) if probabilities else {}

    def play(self, action: Action) -> None:
        """Plays an action, or deals an outcome, by its number or name.

        Raises:
            ValueError: if it is not legal, with the legal ones.
        """
        self._engine.play(action)

    def set_position(self, actions: Sequence[Action]) -> None:
        """Sets the position after `actions` from the start of the game. If it continues the present one, the tree is kept."""
        self._engine.set_position(list(actions))

    def reset(self) -> None:
        """Sets the start of the game."""
        self._engine.set_position([])

    def analyse(
        self,
        position: Optional[Sequence[Action]] = None,
        *,
        simulations: Optional[int] = None,
        seconds: Optional[float] = None,
    ) -> Analysis:
        """Searches the present position, or that after the actions `position`, up to a number of simulations or a time, whichever comes first.

        `simulations` counts the visits of the position, those of earlier analyses included; without any limit it is 800. Ctrl-C ends
        the search within some milliseconds. Other threads of Python go on meanwhile.

        Raises:
            ValueError: where chance is next or the game is over.
        """
        if position is not None:
            self.set_position(position)
        if simulations is None and seconds is None:
            simulations = 800
        found = self._engine.analyse(simulations, seconds)
        moves = tuple(
            Move(**{**move, "line": tuple(move["line"]), "line_names": tuple(move["line_names"])})
            for move in found.pop("moves")
        )
        outcome = found.pop("outcome")
        return Analysis(
            **{**found, "value": tuple(found["value"])},
            outcome=None if outcome is None else tuple(outcome),
            moves=moves,
        )

    def text(self, player: Optional[int] = None) -> str:
        """The position as text, as `player` sees it, or with all that is hidden."""
        return self._engine.text(player)

    def close(self) -> None:
        """Frees the trees; every later use is an error."""
        self._engine.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return repr(self._engine)


def Network(path: Optional[Path] = None, *, settings: Optional[Mapping[str, Any]] = None) -> _Network:
    """The network of a run, a checkpoint or a file, as a function of observations: `network(obs [M, F]) -> (logits [M, A], values [M, P])`.

    Values are in seats relative to the observer: entry k is for player (observer + k) mod P. `vecaz.search` calls it without Python.

    Args:
        path: None for the network of Connect Four that vecaz brings along.
        settings: configuration keys, such as `{"net.precision": "bf16"}`.
    """
    return _Network(None if path is None else os.fspath(path), assignments(settings))
