"""Environments: shapes, seeds, chance, hidden information, resets, and arrays without copies."""

import numpy as np
import pytest

import vecaz

N = 37


def random_play(envs, steps):
    """Steps with sampled actions; returns what there is to see, copied."""
    seen = []
    for _ in range(steps):
        actions = envs.sample_actions().copy()
        rewards, terminated = envs.step(actions)
        seen.append((actions, rewards.copy(), terminated.copy(), envs.players.copy(), envs.observe().copy()))
    return seen


def same(one, other):
    return all(np.array_equal(a, b) for step, again in zip(one, other) for a, b in zip(step, again))


@pytest.mark.parametrize("game", vecaz.games(), ids=lambda game: game.name)
def test_every_game_has_the_shapes_that_it_says(game):
    envs = vecaz.make(game.name, num_envs=N)
    assert (len(envs), envs.num_envs, envs.game) == (N, N, game.name)
    assert (envs.num_players, envs.num_actions) == (game.num_players, game.num_actions)
    obs, mask = envs.observe(), envs.legal_actions()
    assert obs.shape == (N, *game.observation_shape) and obs.dtype == np.float32
    assert mask.shape == (N, game.num_actions) and mask.dtype == np.bool_ and mask.any(axis=1).all()
    rewards, terminated = envs.step(envs.sample_actions())
    assert rewards.shape == (N, game.num_players) and rewards.dtype == np.float32
    assert terminated.shape == (N,) and terminated.dtype == np.bool_
    assert envs.players.shape == (N,) and envs.players.dtype == np.int8
    finished = 0
    for _ in range(120):
        actions = envs.sample_actions()
        assert envs.legal_actions()[np.arange(N), actions].all()
        rewards, terminated = envs.step(actions)
        assert not rewards[~terminated].any() and np.abs(rewards).max() <= 1.0
        assert ((envs.players >= 0) & (envs.players < game.num_players)).all()
        finished += terminated.sum()
        if game.zero_sum:
            assert np.abs(rewards.sum(axis=1)).max() < 1e-5
    assert finished > 0 or game.max_plies > 120


@pytest.mark.parametrize("game", ["hex", "backgammon", "blob", "2048", "dots_and_boxes"])
def test_a_seed_gives_the_same_games_with_any_number_of_threads(game):
    envs = vecaz.make(game, num_envs=600, seed=3, threads=1)
    one = random_play(envs, 30)
    assert same(one, random_play(vecaz.make(game, num_envs=600, seed=3, threads=2), 30))
    envs.reset(3)
    assert same(one, random_play(envs, 30)), "after a reset"
    envs.reset()
    next_seed = random_play(envs, 30)
    assert not same(one, next_seed)
    assert same(next_seed, random_play(vecaz.make(game, num_envs=600, seed=4), 30))


def test_arrays_are_views_that_the_next_call_overwrites():
    envs = vecaz.make("tic_tac_toe", num_envs=2)
    obs, mask, players = envs.observe(), envs.legal_actions(), envs.players
    assert mask.all() and list(players) == [0, 0]
    rewards, terminated = envs.step([4, 0])
    assert list(players) == [1, 1]
    again = envs.observe()
    assert np.shares_memory(obs, again) and np.shares_memory(mask, envs.legal_actions())
    assert [list(np.flatnonzero(~row)) for row in mask] == [[4], [0]]
    assert np.shares_memory(rewards, envs.rewards) and np.shares_memory(terminated, envs.terminated)
    # What Python does with its view cannot harm the environments.
    with pytest.raises(ValueError):
        obs.resize(3, refcheck=False)
    obs.shape = (-1,)
    obs.flags.writeable = False
    assert envs.observe().shape == again.shape
    # Nor can what it does with the array below it.
    below = again.base
    with pytest.raises(ValueError):
        below.resize(3, refcheck=False)
    below.dtype = np.int8
    assert envs.observe().dtype == np.float32
    envs.close()
    assert obs[0] == again.flat[0], "the memory lives as long as a view"


def test_dlpack_shares_the_memory():
    envs = vecaz.make("hex", num_envs=4, size=5)
    shared = np.from_dlpack(envs.observe())
    assert np.shares_memory(shared, envs.observe()) and shared.shape == (4, *envs.observation_shape)


def test_chance_is_dealt_by_its_probabilities():
    envs = vecaz.make("2048", num_envs=20_000, seed=1)
    # Two tiles; each is a 4 once in ten times.
    obs = envs.observe()
    fours = obs[:, 2].sum(axis=(1, 2)) if obs[:, 0].sum() > 2 * len(envs) else obs[:, 1].sum(axis=(1, 2))
    assert abs(fours.mean() - 0.2) < 0.02


def test_nobody_observes_what_it_does_not_know():
    # Between two games with the same own cards, the others' cards differ; what is observed must not.
    envs = vecaz.make("blob", num_envs=4000, seed=2, players=3, cards=1, dealer=2)
    seen = {}
    texts = [(envs.text(env, 0), envs.observe(0)[env].tobytes(), envs.text(env)) for env in range(len(envs))]
    different = 0
    for own, obs, whole in texts:
        first = seen.setdefault(own, (obs, whole))
        assert first[0] == obs
        different += first[1] != whole
    assert different > 1000


def test_the_next_game_starts_when_it_is_asked_for():
    def won(autoreset):
        envs = vecaz.make("tic_tac_toe", num_envs=3, autoreset=autoreset)
        for action in [1, 0, 4, 2]:
            envs.step([action] * 3)
        rewards, terminated = envs.step([7] * 3)
        assert rewards.tolist() == [[1, -1]] * 3 and terminated.all()
        return envs

    envs = won("same_step")
    assert envs.legal_actions().all() and envs.game_number(0) == (1, 0) and list(envs.players) == [0] * 3
    envs = won("next_step")
    assert list(envs.players) == [-1] * 3 and list(envs.sample_actions()) == [-1] * 3 and envs.legal_list(1) == []
    rewards, terminated = envs.step([99] * 3)
    assert not rewards.any() and not terminated.any() and envs.game_number(0) == (1, 0)
    envs = won("off")
    rewards, terminated = envs.step([99] * 3)
    assert not rewards.any() and terminated.all()
    envs.restart(np.array([False, True, False]))
    assert list(envs.players) == [-1, 0, -1] and envs.terminated.all(), "what the last step returned stays"
    # True of another byte than 1, as a view of other numbers has.
    envs.step([99, 5, 99], np.array([0, 2, 0], np.uint8).view(bool))
    assert list(envs.players) == [-1, 1, -1] and envs.action_name(1, 0) != ""


def test_any_integers_are_actions():
    for dtype in [np.int8, np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64]:
        envs = vecaz.make("hex", num_envs=3, size=5)
        envs.step(np.array([1, 2, 3], dtype))
        envs.step(np.array([[2, 0], [3, 0], [4, 0]], dtype)[:, 0])
        assert [envs.legal_list(env)[:4] for env in range(3)] == [[0, 3, 4, 5], [0, 1, 4, 5], [0, 1, 2, 5]]


def test_arrays_need_no_alignment():
    bytes_of = bytearray(1) + np.array([1, 2, 3]).tobytes()
    misaligned = np.frombuffer(bytes_of, np.int64, offset=1)
    assert not misaligned.flags.aligned
    envs = vecaz.make("hex", num_envs=3, size=5)
    envs.step(misaligned)
    assert [envs.legal_list(env)[:3] for env in range(3)] == [[0, 2, 3], [0, 1, 3], [0, 1, 2]]


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([0, 1], r"actions: found shape \(2,\), expected \(3,\)"),
        (np.zeros((3, 1), int), r"actions: found shape \(3, 1\), expected \(3,\)"),
        ([0.0, 1.0, 2.0], r"actions: found dtype float64, expected integers of shape \(3,\)"),
        ([True, False, True], r"actions: found dtype bool, expected integers"),
        (["a", "b", "c"], r"actions: found dtype <U1, expected integers"),
        (5, r"actions: found shape \(\), expected \(3,\)"),
        ([0, 25, 0], r"action of environment 1: found 25, expected a legal action: 0, 1, .* and 13 others"),
        ([0, 0, -1], r"action of environment 2: found -1, expected a legal action"),
        ([2**62, 0, 0], r"action of environment 0: found 4611686018427387904"),
    ],
)
def test_wrong_actions_are_named_and_nothing_is_stepped(actions, message):
    envs = vecaz.make("hex", num_envs=3, size=5)
    with pytest.raises(ValueError, match=message):
        envs.step(actions)
    assert list(envs.players) == [0, 0, 0] and all(len(envs.legal_list(env)) == 25 for env in range(3))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: vecaz.make("shogi"), "unknown game shogi; the games are tic_tac_toe"),
        (lambda: vecaz.make("hex", sise=5), "sise"),
        (lambda: vecaz.make("hex", size=99), "game.size.*got 99"),
        (lambda: vecaz.make("hex", size=None), "size: found NoneType, expected a bool, a number, a text or a list of them"),
        (lambda: vecaz.make("hex", size=2**70), "size: found 1180591620717411303424, expected a whole number of 64 bits"),
        (lambda: vecaz.make("hex", num_envs=0), "num_envs: found 0, expected 1 to 1048576"),
        (lambda: vecaz.make("hex", num_envs=2**30), "num_envs: found 1073741824"),
        (lambda: vecaz.make("hex", threads=10**6), "threads: found 1000000, expected 0 for all cores"),
        (lambda: vecaz.make("hex", autoreset="soon"), "autoreset: found soon, expected same_step, next_step or off"),
        (lambda: vecaz.make("hex").observe(2), "player: found 2, expected 0 to 1"),
        (lambda: vecaz.make("hex").text(1), "environment: found 1, expected 0 to 0"),
        (lambda: vecaz.make("hex").restart([True, True]), r"environments to restart: found shape \(2,\)"),
        (lambda: vecaz.make("hex").restart([1]), "environments to restart: found dtype int64, expected bool"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_numpy_numbers_are_options():
    assert vecaz.make("hex", num_envs=np.int64(2), size=np.int32(5)).num_actions == 25
