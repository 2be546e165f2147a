"""The compiled half of the package. Shapes: N environments, A actions, P players, F numbers of one observation, M observations."""

from typing import Any, Callable, Mapping, Optional, Sequence

import numpy as np
import numpy.typing as npt

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
    """A network of vecaz as a function of observations."""

    def __init__(self, path: Optional[str], settings: Sequence[str]) -> None: ...
    @property
    def game(self) -> str: ...
    def __call__(self, obs: npt.ArrayLike) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Observations `[M, F]` -> logits `[M, A]`, values `[M, P]` in seats relative to the observer."""

class Engine:
    def __init__(
        self,
        source: Optional[str],
        options: Mapping[str, Any],
        evaluate: Optional[Callable[..., Any]],
        settings: Sequence[str],
        threads: int,
        memory_mib: int,
        seed: int,
    ) -> None: ...
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
    def legal(self) -> list[tuple[int, str]]: ...
    def chance_probs(self) -> list[float]: ...
    def text(self, player: Optional[int] = None) -> str: ...
    def play(self, action: int | str) -> None: ...
    def set_position(self, actions: list[int | str]) -> None: ...
    def analyse(self, simulations: Optional[int], seconds: Optional[float]) -> dict[str, Any]: ...
    def close(self) -> None: ...

def games() -> list[dict[str, Any]]: ...
def train(
    config: Optional[str],
    game: Optional[str],
    set: Sequence[str],
    out: Optional[str],
    resume: Optional[str],
    verbose: bool,
    on_epoch: Optional[Callable[[dict[str, Any]], Any]],
) -> tuple[str, int, bool]: ...
