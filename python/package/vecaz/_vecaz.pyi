"""The compiled half of the package. Shapes: N environments, A actions, P players, F numbers of one observation, M observations."""

import os
from typing import Any, Callable, Iterable, Mapping, Optional, TypeVar, Union

import numpy as np
import numpy.typing as npt

Self = TypeVar("Self")
Path = Union[str, os.PathLike[str]]
Action = Union[int, str]
"""An action by its number or its name."""
Evaluate = Callable[[npt.NDArray[np.float32]], tuple[Any, Any]]
"""Observations `[M, F]` -> logits `[M, A]` and values `[M, P]`, or `[M]` of the player to move in games for one or for two opponents."""

class Envs:
    """N environments of one game, stepped together. Made by `vecaz.make`.

    Arrays that methods return belong to the environments and are overwritten by the next call: copy what must stay. NumPy's `__dlpack__`
    passes them to PyTorch and JAX without a copy.
    """

    def __init__(
        self, name: str, num_envs: int, options: dict[str, Any], seed: int, threads: int, auto_reset: str
    ) -> None: ...
    @property
    def game(self) -> str: ...
    @property
    def num_envs(self) -> int:
        """N."""
    @property
    def num_players(self) -> int:
        """P."""
    @property
    def num_actions(self) -> int:
        """A."""
    @property
    def observation_shape(self) -> tuple[int, int, int]:
        """(channels, height, width)."""
    @property
    def hidden_information(self) -> bool: ...
    @property
    def players(self) -> npt.NDArray[np.int8]:
        """The player to move, -1 where the game is over. `[N]`"""
    @property
    def rewards(self) -> npt.NDArray[np.float32]:
        """`[N, P]`"""
    @property
    def terminated(self) -> npt.NDArray[np.bool_]:
        """`[N]`"""
    def reset(self, seed: Optional[int] = None) -> None:
        """Starts the games of `seed`; without it, those of the seed after the last one."""
    def restart(self, chosen: npt.ArrayLike) -> None:
        """Starts the next game where `chosen`, bool `[N]`, is True."""
    def step(
        self, actions: npt.ArrayLike, chosen: Optional[npt.ArrayLike] = None
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.bool_]]:
        """Plays actions, integers `[N]`, where `chosen`, bool `[N]`, is True -> rewards `[N, P]`, terminated `[N]`."""
    def sample_actions(self) -> npt.NDArray[np.int64]:
        """Uniformly random legal actions, -1 where the game is over. `[N]`"""
    def legal_actions(self) -> npt.NDArray[np.bool_]:
        """`[N, A]`"""
    def observe(self, player: Optional[int] = None) -> npt.NDArray[np.float32]:
        """Observations of the players to move, or of `player`. `[N, channels, height, width]`"""
    def legal_list(self, env: int) -> list[int]: ...
    def action_name(self, env: int, action: int) -> str: ...
    def text(self, env: int, player: Optional[int] = None) -> str: ...
    def game_number(self, env: int) -> tuple[int, int]:
        """Games that the environment began before the present one, and the plies of that one."""
    def search(
        self,
        evaluate: Any,
        settings: dict[str, Any],
        noise: bool,
        determinisations: int,
        seed: int,
        pad: bool,
    ) -> tuple[
        npt.NDArray[np.int64],
        npt.NDArray[np.int32],
        npt.NDArray[np.float32],
        npt.NDArray[np.float32],
        npt.NDArray[np.float32],
        npt.NDArray[np.bool_],
    ]: ...
    def close(self) -> None: ...
    def __len__(self) -> int: ...
    def __enter__(self) -> Envs: ...
    def __exit__(self, *exception: object) -> None: ...

class Network:
    """The network of a run, a checkpoint or a file, as a function of observations."""

    def __new__(
        cls: type[Self], path: Optional[Path] = None, *, settings: Optional[Mapping[str, Any]] = None
    ) -> Self: ...
    @property
    def game(self) -> str: ...
    def __call__(self, obs: npt.ArrayLike) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Observations `[M, F]` or `[M, channels, height, width]` -> logits `[M, A]`, values `[M, P]` in seats relative to the observer."""

class Engine:
    """A player and analyst of one position, without the objects of `vecaz.Engine`."""

    def __new__(
        cls: type[Self],
        source: Optional[Path] = None,
        *,
        evaluate: Optional[Evaluate] = None,
        settings: Optional[Mapping[str, Any]] = None,
        threads: int = 0,
        memory_mib: int = 512,
        seed: int = 1,
        **options: Union[bool, int, float, str],
    ) -> Self: ...
    @property
    def game(self) -> str: ...
    @property
    def label(self) -> str: ...
    @property
    def num_actions(self) -> int: ...
    @property
    def num_players(self) -> int: ...
    @property
    def actions(self) -> list[int]: ...
    @property
    def player(self) -> Optional[int]: ...
    @property
    def is_chance(self) -> bool: ...
    @property
    def is_over(self) -> bool: ...
    @property
    def returns(self) -> Optional[list[float]]: ...
    def legal_actions(self) -> dict[int, str]: ...
    def chance_probabilities(self) -> dict[int, float]: ...
    def text(self, player: Optional[int] = None) -> str: ...
    def play(self, action: Action) -> None: ...
    def set_position(self, actions: Iterable[Action]) -> None: ...
    def reset(self) -> None: ...
    def _analyse(self, simulations: Optional[int], seconds: Optional[float]) -> dict[str, Any]: ...
    def close(self) -> None: ...
    def __enter__(self: Self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...

def games() -> list[dict[str, Any]]: ...
def train(
    config: Optional[Path],
    keys: Optional[Mapping[str, Any]],
    settings: Optional[Mapping[str, Any]],
    out: Optional[Path],
    resume: Optional[Path],
    verbose: bool,
    on_epoch: Optional[Callable[[dict[str, Any]], Any]],
) -> tuple[str, int, bool]: ...
