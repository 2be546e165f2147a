"""A player and analyst of one position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable, Optional, Union

from . import _vecaz

Action = Union[int, str]
"""An action by its number or its name."""


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


class Engine(_vecaz.Engine):
    """Plays and analyses one position. The tree is kept from move to move.

    Args:
        source: the path of a run, a checkpoint or a network; or the name of a game, then without a network: uniform priors and values
            of 0, unless there is `evaluate`. None for the network of Connect Four that vecaz brings along.
        evaluate: a function in place of the network: observations `[M, F]` float32 -> `(logits [M, A], values [M, P])`, or values `[M]` of
            the player to move in games for one or for two opponents. It is called in a thread of the search, which then has no other.
        settings: configuration keys, such as `{"eval.algorithm": "puct"}`; with `"search.leaves"` a pass has at most so many leaves.
        threads: 0 for all cores.
        memory_mib: the limit of memory for trees, which is at most half of the free memory.
        seed: of all random numbers.
        options: those of the game, if `source` is one.

    Raises:
        ValueError: for an unknown source, setting or option, and a network that does not fit.
        OSError: for a file that cannot be read.
    """

    def analyse(
        self,
        position: Optional[Iterable[Action]] = None,
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
        found = self._analyse(simulations, seconds)
        moves = tuple(Move(**move) for move in found.pop("moves"))
        return Analysis(**found, moves=moves)
