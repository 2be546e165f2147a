"""Games as a PettingZoo environment: `AECEnv`, agents in the order in which they move.

Needs `pip install vecaz[pettingzoo]`. One game at a time, with an object for every agent and step: for training use `vecaz.make`.
"""

from __future__ import annotations

from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from pettingzoo import AECEnv  # type: ignore[import-untyped, unused-ignore]

from ._vecaz import Envs

Observation = dict[str, npt.NDArray[Any]]


class VecazAECEnv(AECEnv[str, Observation, Optional[int]]):  # type: ignore[misc, unused-ignore]
    """One game, an agent for each player: `"player_0"`, `"player_1"`, ...

    Observations are dicts: `"observation"` float32 `[channels, height, width]`, which has nothing that the agent does not know, and `"action_mask"`
    int8 `[A]`, zeros for an agent that is not to move. Chance is dealt by random numbers of the seed. Rewards are the results in
    [-1, 1], at the end. An action that is not legal is a `ValueError`; PettingZoo's `TerminateIllegalWrapper` ends the game instead.

    Args:
        game: a name of `vecaz.games()`.
        options: those of the game.
    """

    def __init__(
        self, game: str, *, render_mode: Optional[str] = None, **options: Union[bool, int, float, str]
    ) -> None:
        super().__init__()
        self._envs = Envs(game, 1, options, 0, 1, "off")
        self.metadata = {"name": f"vecaz_{game}_v0", "render_modes": ["ansi"], "is_parallelizable": False}
        self.render_mode = render_mode
        self.possible_agents = [f"player_{player}" for player in range(self._envs.num_players)]
        self.agents: list[str] = []
        size = self._envs.num_actions
        self._observation_space = spaces.Dict(
            {
                "observation": spaces.Box(-np.inf, np.inf, self._envs.observation_shape, np.float32),
                "action_mask": spaces.Box(0, 1, (size,), np.int8),
            }
        )
        self._spaces = {agent: self._observation_space for agent in self.possible_agents}
        self._action_spaces = {agent: spaces.Discrete(size) for agent in self.possible_agents}

    def observation_space(self, agent: str) -> spaces.Space[Any]:
        """The space of an agent's observations, always the same object."""
        return self._spaces[agent]

    def action_space(self, agent: str) -> spaces.Space[Any]:
        """The space of an agent's actions, always the same object."""
        return self._action_spaces[agent]

    def reset(self, seed: Optional[int] = None, options: Optional[dict[str, Any]] = None) -> None:
        """Starts the game of `seed`; without it, that of the seed after the last one."""
        self._envs.reset(seed)
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos: dict[str, dict[str, Any]] = {agent: {} for agent in self.agents}
        self.agent_selection = self.possible_agents[max(int(self._envs.players[0]), 0)]

    def observe(self, agent: str) -> Observation:
        """What an agent knows of the position."""
        player = self.possible_agents.index(agent)
        if player == self._envs.players[0]:
            mask = self._envs.legal_actions()[0].astype(np.int8)
        else:
            mask = np.zeros(self._envs.num_actions, np.int8)
        return {"observation": self._envs.observe(player)[0].copy(), "action_mask": mask}

    def step(self, action: Optional[int]) -> None:
        """Plays an action of the selected agent, or removes one whose game is over, with the action None.

        Raises:
            ValueError: if the action is not legal.
        """
        agent = self.agent_selection
        if self.terminations[agent] or self.truncations[agent]:
            self._was_dead_step(action)
            return
        rewards, terminated = self._envs.step([-1 if action is None else action])
        self._cumulative_rewards[agent] = 0.0
        self.rewards = {agent: float(rewards[0, player]) for player, agent in enumerate(self.possible_agents)}
        if terminated[0]:
            self.terminations = dict.fromkeys(self.agents, True)
            self.agent_selection = self.agents[(self.agents.index(agent) + 1) % len(self.agents)]
        else:
            self.agent_selection = self.possible_agents[int(self._envs.players[0])]
        self._accumulate_rewards()

    def render(self) -> Optional[str]:
        """The position as text, as the selected agent sees it, in the render mode `"ansi"`."""
        if self.render_mode != "ansi":
            return None
        return self._envs.text(0, self.possible_agents.index(self.agent_selection))

    def close(self) -> None:
        """Frees the game."""
        self._envs.close()


def env(game: str, **arguments: Any) -> VecazAECEnv:
    """`VecazAECEnv`, by the name that PettingZoo's environments have."""
    return VecazAECEnv(game, **arguments)
