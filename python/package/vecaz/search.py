"""Search of all environments at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Optional, Union

import numpy as np
import numpy.typing as npt

from ._vecaz import Envs, Network


@dataclass(frozen=True)
class SearchResult:
    """The results of a search, each with an entry for every environment. Those whose game is over have no visits."""

    action: npt.NDArray[np.int64]
    """The best action; -1 where the game is over. `[N]`"""
    visits: npt.NDArray[np.int32]
    """Visits of each action. `[N, A]`"""
    policy: npt.NDArray[np.float32]
    """The policy target, which sums to 1: visits by PUCT, the improved policy by Gumbel. `[N, A]`"""
    q: npt.NDArray[np.float32]
    """The mean value of each legal action for the player to move; NaN for the others. `[N, A]`"""
    value: npt.NDArray[np.float32]
    """The mean value of the position for every player. `[N, P]`"""
    proven: npt.NDArray[np.bool_]
    """True where the value is proven. `[N]`"""


def search(
    envs: Envs,
    evaluate: Union[Network, Callable[[npt.NDArray[np.float32]], tuple[Any, Any]], None],
    *,
    simulations: int = 64,
    algorithm: str = "gumbel",
    noise: bool = False,
    determinisations: int = 16,
    seed: int = 0,
    pad: bool = False,
    **settings: Union[bool, int, float, str],
) -> SearchResult:
    """Searches the positions of all environments, each in a tree of its own, and leaves the environments as they are.

    Args:
        envs: N environments.
        evaluate: called once a pass with the observations of all leaves `[M, F]` (float32, of the player to move at each leaf); it returns
            `(logits [M, A], values [M, P])`, or values `[M]` of the player to move in games for one player or for two opponents. Values are in
            [-1, 1] and in seats relative to the observer: entry k is for player (observer + k) mod n, of n players. Logits of illegal
            actions change nothing, and -inf excludes an action; NaN is refused everywhere. It is called in the calling thread, and what it raises is raised
            here. A row's outputs must depend on that row alone. `vecaz.Network` is a network of vecaz, None stands for uniform priors and
            values of 0.
        simulations: S, new simulations of each position.
        algorithm: `"gumbel"` (sequential halving, Danihelka et al. 2022; nodes with `puct_visits` visits select by PUCT) or `"puct"` (AlphaZero).
        noise: True for the noise of self-play at the roots, False for play.
        determinisations: D, deals that are searched of a position with hidden information, each with S simulations.
        seed: of noise and deals; with equal outputs of `evaluate` equal seeds give equal results.
        pad: True for batches that always have N x D x L rows, the rest zeros: a compiled function then has one shape.
        settings: further keys of `[search]`, such as `leaves=4`, `c_init=1.25`, `max_num_considered_actions=16` (`vecaz config search`).

    Raises:
        ValueError: for outputs of other shapes, dtypes or numbers, and for unknown settings.
    """
    keys: dict[str, Any] = {"simulations": simulations, "algorithm": algorithm, **settings}
    return SearchResult(*envs.search(evaluate, keys, noise, determinisations, seed, pad))
