"""vecaz: games as vector environments, search, a player, and training.

Letters in shapes: N environments, A actions, P players, F numbers of one observation (channels x height x width), M observations of a batch.
Arrays are row-major with the batch first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping, Union

from . import _vecaz
from ._vecaz import Envs, Network
from .engine import Analysis, Engine, Move
from .search import SearchResult, search
from .training import TrainingResult, load_metrics, train

__all__ = [
    "Analysis",
    "Engine",
    "Envs",
    "Game",
    "Move",
    "Network",
    "SearchResult",
    "TrainingResult",
    "games",
    "load_metrics",
    "make",
    "search",
    "train",
]
__version__ = "0.1.0"


@dataclass(frozen=True)
class Game:
    """A game that can be played, with its default options."""

    name: str
    num_players: int
    num_actions: int
    """A."""
    observation_shape: tuple[int, int, int]
    """(channels, height, width); a plain vector is (F, 1, 1)."""
    max_plies: int
    """A bound on the plies of a game, those of chance included."""
    has_chance: bool
    hidden_information: bool
    zero_sum: bool
    options: Mapping[str, str]
    """Each option of the game with its meaning, its values and its default."""


def games() -> list[Game]:
    """The games, with their sizes and options."""
    return [Game(**entry) for entry in _vecaz.games()]


def make(
    game: str,
    num_envs: int = 1,
    *,
    seed: int = 0,
    threads: int = 0,
    autoreset: str = "same_step",
    **options: Union[bool, int, float, str],
) -> Envs:
    """Makes `num_envs` environments of `game`, all stepped by one call.

    Chance is dealt by random numbers that depend on `seed`, the environment, its game's number and the ply alone: the same seed gives the
    same games with any number of threads.

    Args:
        game: a name of `vecaz.games()`.
        num_envs: N, 1 to 1,048,576.
        seed: of all random numbers.
        threads: 0 for all cores. Up to 256 environments are stepped by one thread.
        autoreset: `"same_step"`: the step that ends a game starts the next one; `"next_step"`: the next step does, and does not read the
            action; `"off"`: nothing happens until `Envs.restart` or `Envs.reset`.
        options: those of the game, such as `size=11`; `vecaz.games()` has them.

    Raises:
        ValueError: for an unknown game, option or value.
    """
    return Envs(game, num_envs, options, seed, threads, autoreset)
