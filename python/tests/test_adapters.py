"""Adapters: the conformance tests of PettingZoo, and Gymnasium's vector environments."""

import warnings

import numpy as np
import pytest

import vecaz

gymnasium = pytest.importorskip("gymnasium")
pettingzoo = pytest.importorskip("pettingzoo")

from pettingzoo.test import api_test, seed_test  # noqa: E402
from pettingzoo.utils.wrappers import OrderEnforcingWrapper, TerminateIllegalWrapper  # noqa: E402

from vecaz.gymnasium import VecazVectorEnv, random_opponent, search_opponent  # noqa: E402
from vecaz.pettingzoo import VecazAECEnv, env  # noqa: E402

GAMES = [
    ("tic_tac_toe", {}),
    ("connect_four", {}),
    ("hex", {"size": 5}),
    ("dots_and_boxes", {}),
    ("backgammon", {}),
    ("blob", {"players": 4, "cards": 3}),
    ("2048", {"max_tile": 64}),
]


@pytest.mark.parametrize(("game", "options"), GAMES, ids=[game for game, _ in GAMES])
def test_pettingzoo_api(game, options):
    with warnings.catch_warnings():
        # Gymnasium advises against observations without bounds.
        warnings.simplefilter("ignore")
        api_test(env(game, **options), num_cycles=300)


@pytest.mark.parametrize(("game", "options"), GAMES, ids=[game for game, _ in GAMES])
def test_pettingzoo_seeds(game, options):
    seed_test(lambda: VecazAECEnv(game, **options), num_cycles=100)


def test_pettingzoo_plays_the_rules():
    game = VecazAECEnv("tic_tac_toe", render_mode="ansi")
    game.reset(seed=1)
    for agent, action in zip(game.agent_iter(), [0, 3, 1, 4, 2, None, None]):
        obs, reward, terminated, truncated, _ = game.last()
        if action is not None:
            assert agent == f"player_{[0, 3, 1, 4, 2].index(action) % 2}" and obs["action_mask"][action] == 1
        else:
            assert terminated and not truncated and reward == (1.0 if agent == "player_0" else -1.0)
        game.step(action)
    assert game.agents == []


def test_pettingzoo_refuses_what_is_not_legal():
    game = VecazAECEnv("tic_tac_toe")
    game.reset(seed=1)
    game.step(4)
    with pytest.raises(ValueError, match="action of environment 0: found 4"):
        game.step(4)
    wrapped = OrderEnforcingWrapper(TerminateIllegalWrapper(VecazAECEnv("tic_tac_toe"), illegal_reward=-1))
    wrapped.reset(seed=1)
    wrapped.step(4)
    wrapped.step(4)
    assert wrapped.terminations == {"player_0": True, "player_1": True} and wrapped.rewards["player_1"] == -1


def test_pettingzoo_agents_see_only_what_they_know():
    game = VecazAECEnv("blob", players=3, cards=2)
    game.reset(seed=3)
    views = {agent: game.observe(agent) for agent in game.agents}
    assert not np.array_equal(views["player_0"]["observation"], views["player_1"]["observation"])
    movers = [agent for agent in game.agents if views[agent]["action_mask"].any()]
    assert movers == [game.agent_selection]


def random_actions(rng, mask):
    return np.where(mask.any(axis=1), (rng.random(mask.shape) * mask).argmax(axis=1), 0)


@pytest.mark.parametrize(("game", "options"), GAMES, ids=[game for game, _ in GAMES])
@pytest.mark.parametrize("seat", [0, "alternate"])
def test_gymnasium_steps_the_agent_alone(game, options, seat):
    envs = VecazVectorEnv(game, num_envs=6, seat=seat, **options)
    assert envs.metadata["autoreset_mode"] == gymnasium.vector.AutoresetMode.NEXT_STEP
    obs, _ = envs.reset(seed=5)
    rng, over, games, total = np.random.default_rng(1), np.zeros(6, bool), 0, 0.0
    for _ in range(400):
        assert obs in envs.observation_space
        moves = envs.envs.players >= 0
        assert np.array_equal(obs["action_mask"].any(axis=1), moves) and np.array_equal(~moves, over)
        assert (envs.envs.players[moves] == envs.seats()[moves]).all()
        obs, reward, terminated, truncated, _ = envs.step(random_actions(rng, obs["action_mask"]))
        assert reward.shape == (6,) and reward.dtype == np.float64 and not truncated.any()
        assert not reward[~terminated].any(), "rewards come at the end"
        assert not terminated[over].any() or game == "blob", "a new game has begun"
        over, games, total = terminated, games + terminated.sum(), total + reward.sum()
    assert games > 0
    envs.close()


def test_gymnasium_repeats_a_seed():
    def play(seed):
        envs = VecazVectorEnv("backgammon", num_envs=3)
        obs, _ = envs.reset(seed=seed)
        rng, seen = np.random.default_rng(0), [obs["observation"].copy()]
        for _ in range(50):
            obs, *_ = envs.step(random_actions(rng, obs["action_mask"]))
            seen.append(obs["observation"])
        return np.array(seen)

    assert np.array_equal(play(1), play(1)) and not np.array_equal(play(1), play(2))


def test_gymnasium_opponents_search():
    strong = search_opponent(100)
    envs = VecazVectorEnv("tic_tac_toe", num_envs=40, opponent=strong, seat="alternate")
    obs, _ = envs.reset(seed=1)
    rng, total, games = np.random.default_rng(2), 0.0, 0
    for _ in range(40):
        obs, reward, terminated, *_ = envs.step(random_actions(rng, obs["action_mask"]))
        total, games = total + reward.sum(), games + terminated.sum()
    assert games > 100 and total / games < -0.6, "random play loses to search"


def test_gymnasium_wrappers_take_it():
    envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(VecazVectorEnv("2048", num_envs=3, max_tile=32))
    obs, _ = envs.reset(seed=1)
    rng, lengths = np.random.default_rng(0), []
    for _ in range(300):
        obs, _, _, _, info = envs.step(random_actions(rng, obs["action_mask"]))
        if "episode" in info:
            lengths += list(info["episode"]["l"][info["_episode"]])
    assert lengths and min(lengths) > 5


def test_gymnasium_refuses_what_makes_no_sense():
    with pytest.raises(ValueError, match="opponent: found one, expected None: 2048 is for one player"):
        VecazVectorEnv("2048", opponent=random_opponent)
    with pytest.raises(ValueError, match="seat: found 2, expected 0 to 1, or 'alternate'"):
        VecazVectorEnv("hex", seat=2)
    envs = VecazVectorEnv("tic_tac_toe", num_envs=2)
    envs.reset(seed=0)
    with pytest.raises(ValueError, match="action of environment 1: found 9"):
        envs.step([0, 9])


@pytest.mark.parametrize("seat", [0, 1, "alternate"])
def test_a_game_that_is_over_is_seen_from_the_seat(seat):
    envs = VecazVectorEnv("tic_tac_toe", num_envs=8, seat=seat)
    seen, ends = envs.reset(seed=3)[0], 0
    rng = np.random.default_rng(1)
    for _ in range(60):
        actions = [rng.choice(np.flatnonzero(mask)) if mask.any() else 0 for mask in seen["action_mask"]]
        seen, _, over, _, _ = envs.step(np.array(actions))
        ends += over.sum()
        for row, player in enumerate(envs.seats()):
            assert (seen["observation"][row] == envs.envs.observe(int(player))[row]).all()
    assert ends > 20
