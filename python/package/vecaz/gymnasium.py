"""Games as a Gymnasium `VectorEnv`: one agent against nobody, or against an opponent that is part of the environment.

Needs `pip install vecaz[gymnasium]`. The interface of Gymnasium has one agent. A game for one player, such as 2048, fits as it is. In a game for
two or more the agent has seat `seat`, and a function plays all other seats inside `step`: what the agent learns is to beat that opponent.
For self-play use `vecaz.make`, whose arrays name the player to move.
"""

from __future__ import annotations

from typing import Any, Callable, Optional, Union

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from ._vecaz import Envs
from .search import search

# Games that may end before the agent is to move, one after the other.
MAX_RESTARTS = 1000

Opponent = Callable[[Envs], npt.ArrayLike]
"""Environments -> an action for each, integers `[N]`. Those of environments where it is not to move are not read."""


def random_opponent(envs: Envs) -> npt.NDArray[np.int64]:
    """Uniformly random legal actions."""
    return envs.sample_actions()


def search_opponent(simulations: int, evaluate: Any = None, **settings: Any) -> Opponent:
    """The best action of a search, as by `vecaz.search`; without `evaluate` the search has uniform priors and values of 0."""
    return lambda envs: search(envs, evaluate, simulations=simulations, **settings).action


class VecazVectorEnv(VectorEnv):
    """N environments with one agent each, in Gymnasium's next-step mode.

    Observations are dicts, batched: `"observation"` float32 `[N, channels, height, width]` and `"action_mask"` int8 `[N, A]`. The reward is the
    agent's result in [-1, 1] in the step that ends the game, otherwise 0. Nothing is truncated: the rules bound every game.

    Args:
        game: a name of `vecaz.games()`.
        num_envs: N.
        opponent: plays all seats but the agent's. Refused in games for one player, where there is no other.
        seat: the agent's player, or `"alternate"`: player (environment + games begun) mod P.
        options: those of the game.
    """

    metadata: dict[str, Any] = {"autoreset_mode": AutoresetMode.NEXT_STEP, "render_modes": ["ansi"]}

    def __init__(
        self,
        game: str,
        num_envs: int = 1,
        *,
        opponent: Optional[Opponent] = None,
        seat: Union[int, str] = 0,
        threads: int = 0,
        render_mode: Optional[str] = None,
        **options: Union[bool, int, float, str],
    ) -> None:
        self.envs = Envs(game, num_envs, options, 0, threads, "off")
        players = self.envs.num_players
        if players == 1 and opponent is not None:
            raise ValueError(f"opponent: found one, expected None: {game} is for one player")
        if seat != "alternate" and not (isinstance(seat, int) and 0 <= seat < players):
            raise ValueError(f"seat: found {seat!r}, expected 0 to {players - 1}, or 'alternate'")
        self.num_envs, self.render_mode = num_envs, render_mode
        self._opponent = random_opponent if opponent is None else opponent
        self._seat = seat
        self._games = np.zeros(num_envs, np.int64)
        self._over = np.zeros(num_envs, bool)
        self._rows = np.arange(num_envs)
        self.single_observation_space = spaces.Dict(
            {
                "observation": spaces.Box(-np.inf, np.inf, self.envs.observation_shape, np.float32),
                "action_mask": spaces.MultiBinary(self.envs.num_actions),
            }
        )
        self.single_action_space = spaces.Discrete(self.envs.num_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: Optional[int] = None, options: Optional[dict[str, Any]] = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Starts the games of `seed`; without it, those of the seed after the last one."""
        super().reset(seed=seed)
        self.envs.reset(seed)
        self._games[:] = 0
        self._over[:] = False
        self._begin(np.ones(self.num_envs, bool))
        return self._observation(), {}

    def step(
        self, actions: npt.ArrayLike
    ) -> tuple[dict[str, Any], npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]:
        """Plays the agent's actions `[N]`, then the opponent until the agent is to move or the game is over. An environment whose game was over
        starts the next one and does not read its action.

        Raises:
            ValueError: for an action that is not legal, with its environment; `"action_mask"` has the legal ones.
        """
        fresh = self._over.copy()
        rewards = self.envs.step(actions)[0].copy()
        if fresh.any():
            self._restart(fresh)
        self._let_opponent_play(rewards)
        self._begin(fresh)
        own = np.where(fresh, 0.0, rewards[self._rows, self.seats()]).astype(np.float64)
        self._over = self.envs.players < 0
        return self._observation(), own, self._over.copy(), np.zeros(self.num_envs, bool), {}

    def seats(self) -> npt.NDArray[np.int64]:
        """The agent's player in each environment. `[N]`"""
        if self._seat == "alternate":
            return (self._rows + self._games) % self.envs.num_players
        return np.full(self.num_envs, int(self._seat), np.int64)

    def _restart(self, chosen: npt.NDArray[np.bool_]) -> None:
        self.envs.restart(chosen)
        self._games += chosen

    def _begin(self, fresh: npt.NDArray[np.bool_]) -> None:
        """Lets the opponent play until the agent is to move in the new games `fresh [N]`. A game that ends before that is replaced.

        Raises:
            ValueError: if that is so in every one of `MAX_RESTARTS` games.
        """
        for _ in range(MAX_RESTARTS):
            self._let_opponent_play(np.zeros((self.num_envs, self.envs.num_players), np.float32))
            ended = fresh & (self.envs.players < 0)
            if not ended.any():
                return
            self._restart(ended)
        raise ValueError(f"seat: got {self._seat!r}, a player who was not to move in any of {MAX_RESTARTS} games")

    def _let_opponent_play(self, rewards: npt.NDArray[np.float32]) -> None:
        """Plays the other seats until the agent is to move in each environment or its game is over; adds the results to `rewards [N, P]`."""
        seats = self.seats()
        while True:
            players = self.envs.players
            waiting = (players >= 0) & (players != seats)
            if not waiting.any():
                return
            rewards += self.envs.step(self._opponent(self.envs), waiting)[0]

    def _observation(self) -> dict[str, Any]:
        """Copies, since Gymnasium's wrappers keep what they get."""
        obs, mask = self.envs.observe().copy(), self.envs.legal_actions().astype(np.int8)
        # Where a game is over nobody is to move, and the seat's own view is asked for.
        over, seats = self.envs.players < 0, self.seats()
        for seat in np.unique(seats[over]):
            rows = over & (seats == seat)
            obs[rows] = self.envs.observe(int(seat))[rows]
        return {"observation": obs, "action_mask": mask}

    def render(self) -> Optional[tuple[str, ...]]:
        """The positions as text, in the render mode `"ansi"`."""
        if self.render_mode != "ansi":
            return None
        return tuple(self.envs.text(env, int(seat)) for env, seat in enumerate(self.seats()))

    def close_extras(self, **kwargs: Any) -> None:
        """Frees the games."""
        self.envs.close()
