"""Search: trees of vecaz under functions of Python."""

import numpy as np
import pytest

import vecaz

# X to move wins with 6; O to move must block at 8.
X_WINS = [0, 1, 3, 4]
O_BLOCKS = [0, 1, 4]


def uniform(actions, players=2):
    return lambda obs: (np.zeros((len(obs), actions), np.float32), np.zeros((len(obs), players), np.float32))


def played(actions, game="tic_tac_toe", **options):
    envs = vecaz.make(game, num_envs=1, **options)
    for action in actions:
        envs.step([action])
    return envs


@pytest.mark.parametrize("algorithm", ["gumbel", "puct"])
def test_a_win_is_found_and_a_loss_is_blocked(algorithm):
    for actions, best, value in [(X_WINS, 6, 1.0), (O_BLOCKS, 8, None)]:
        found = vecaz.search(played(actions), uniform(9), simulations=200, algorithm=algorithm)
        assert found.action.tolist() == [best]
        assert found.visits.shape == (1, 9) and found.visits.dtype == np.int32
        assert found.policy.shape == (1, 9) and abs(found.policy.sum() - 1) < 1e-5
        assert found.value.shape == (1, 2) and abs(found.value.sum()) < 1e-5
        if value is not None:
            assert found.proven.tolist() == [True] and found.value[0, 0] == value
        illegal = [action for action in range(9) if action in actions]
        assert not found.visits[0, illegal].any() and np.isnan(found.q[0, illegal]).all()


@pytest.mark.parametrize("game", ["connect_four", "backgammon", "blob", "2048", "ultimate_tic_tac_toe"])
@pytest.mark.parametrize("algorithm", ["gumbel", "puct"])
@pytest.mark.parametrize("leaves", [1, 4])
def test_a_function_that_knows_nothing_gives_the_search_without_one(game, algorithm, leaves):
    envs = vecaz.make(game, num_envs=5, seed=1)
    for _ in range(3):
        envs.step(envs.sample_actions())
    arguments = dict(simulations=24, algorithm=algorithm, leaves=leaves, noise=True, determinisations=3, seed=9)
    one = vecaz.search(envs, None, **arguments)
    other = vecaz.search(envs, uniform(envs.num_actions, envs.num_players), **arguments)
    for name in ["action", "visits", "policy", "q", "value", "proven"]:
        assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=name == "q"), name
    assert (one.visits.sum(axis=1) >= 24).all() or one.proven.any()


def test_a_network_gives_the_same_trees_from_python():
    network = vecaz.Network()
    envs = vecaz.make("connect_four", num_envs=6)
    envs.step([0, 1, 2, 3, 4, 5])
    native = vecaz.search(envs, network, simulations=60)
    batches = []

    def call(obs):
        batches.append(obs.shape)
        return network(obs)

    by_python = vecaz.search(envs, call, simulations=60)
    assert np.array_equal(native.visits, by_python.visits) and np.array_equal(native.value, by_python.value)
    assert all(shape[1] == np.prod(envs.observation_shape) for shape in batches)
    assert max(shape[0] for shape in batches) == 6 and len(batches) <= 61, "one batch a pass"
    again = vecaz.search(envs, network, simulations=60)
    assert np.array_equal(native.visits, again.visits)


def test_threads_do_not_change_the_trees():
    found = []
    for threads in [1, 2, 3]:
        envs = vecaz.make("connect_four", num_envs=200, seed=1, threads=threads)
        envs.step(np.arange(200) % 7)
        batches = []

        def call(obs):
            batches.append(len(obs))
            score = obs.reshape(len(obs), -1) @ np.linspace(-1, 1, obs[0].size, dtype=np.float32)
            return np.outer(score, np.arange(7)).astype(np.float32) / 50, np.tanh(score / 20)

        found.append(vecaz.search(envs, call, simulations=16, noise=True, seed=4))
        assert max(batches) == 200, "the leaves of all threads are one batch"
        kept = vecaz.search(envs, call, simulations=16, noise=True, seed=4)
        assert np.array_equal(kept.visits, found[-1].visits), "with the arrays of the search before"
    for other in found[1:]:
        assert np.array_equal(found[0].visits, other.visits) and np.array_equal(found[0].value, other.value)


def test_values_steer_the_search_from_the_viewpoint_of_the_mover():
    # The network likes every position after action 3 for player 0, whoever is to move there.
    envs = vecaz.make("tic_tac_toe", num_envs=1)

    def likes_3(obs):
        own, other = obs.reshape(-1, 2, 9)[:, 0], obs.reshape(-1, 2, 9)[:, 1]
        taken_by_other = other[:, 3] - own[:, 3]
        return np.zeros((len(obs), 9)), -0.9 * taken_by_other

    found = vecaz.search(envs, likes_3, simulations=100, algorithm="puct")
    assert found.action[0] == 3 and found.value[0, 0] > 0.5


def test_padding_gives_the_same_trees_by_batches_of_one_shape():
    envs = vecaz.make("hex", num_envs=7, size=5, seed=2)
    shapes = set()

    def call(obs):
        shapes.add(obs.shape)
        return uniform(25)(obs)

    one = vecaz.search(envs, call, simulations=20, leaves=3, pad=True)
    assert shapes == {(21, np.prod(envs.observation_shape))}
    assert np.array_equal(one.visits, vecaz.search(envs, uniform(25), simulations=20, leaves=3).visits)


def test_games_that_are_over_have_no_search():
    envs = vecaz.make("tic_tac_toe", num_envs=2, autoreset="off")
    for first in [0, 3, 1, 4, 2]:
        envs.step([first, 8 if first == 2 else first])
    assert list(envs.players) == [-1, 1]
    found = vecaz.search(envs, uniform(9), simulations=20)
    assert found.action.tolist() == [-1, 5] and not found.visits[0].any() and not found.value[0].any()
    envs.reset(0)
    assert (vecaz.search(envs, uniform(9), simulations=20).action >= 0).all()


def test_a_masked_logit_is_never_chosen():
    def only_7(obs):
        logits = np.full((len(obs), 9), -np.inf, np.float32)
        logits[:, 7] = 0
        return logits, np.zeros(len(obs))

    envs = vecaz.make("tic_tac_toe", num_envs=1)
    assert vecaz.search(envs, only_7, simulations=4, algorithm="puct").visits[0].argmax() == 7


def test_an_exception_of_the_function_comes_out_and_the_environments_stay_usable():
    class Mine(Exception):
        pass

    envs = vecaz.make("hex", num_envs=3, size=5)
    calls = []

    def fails(obs):
        calls.append(1)
        if len(calls) == 4:
            raise Mine("here")
        return uniform(25)(obs)

    with pytest.raises(Mine, match="here"):
        vecaz.search(envs, fails, simulations=20)
    assert len(calls) == 4
    expected = vecaz.search(vecaz.make("hex", num_envs=3, size=5), None, simulations=20)
    assert np.array_equal(vecaz.search(envs, None, simulations=20).visits, expected.visits)

    def reenters(obs):
        envs.step([0, 0, 0])

    with pytest.raises(RuntimeError, match="in use by another thread"):
        vecaz.search(envs, reenters, simulations=20)
    assert (envs.players == 0).all()


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda m: None, "evaluate: found NoneType, expected a pair"),
        (lambda m: (np.zeros((m, 25)),), "expected a pair"),
        (lambda m: (np.zeros((m, 24)), np.zeros((m, 2))), r"logits: found shape \(3, 24\), expected \(3, 25\)"),
        (lambda m: (np.zeros((m, 25)), np.zeros((m, 3))), r"values: found shape \(3, 3\), expected \(3, 2\) or \(3,\)"),
        (lambda m: (np.zeros((m, 25), int), np.zeros((m, 2))), "logits: found dtype int64, expected float32"),
        (lambda m: (np.full((m, 25), np.nan), np.zeros((m, 2))), "logit of row 0, action 0: found NaN, expected a finite"),
        (lambda m: (np.full((m, 25), np.inf), np.zeros((m, 2))), "found inf"),
        (lambda m: (np.zeros((m, 25)), np.full(m, 1.5)), "value of row 0, seat 0: found 1.5, expected a number from -1 to 1"),
        (lambda m: (np.zeros((m, 25)), np.full((m, 2), np.nan)), "value of row 0, seat 0: found NaN"),
    ],
)
def test_wrong_outputs_are_named(returned, message):
    envs = vecaz.make("hex", num_envs=3, size=5)
    with pytest.raises(ValueError, match=message):
        vecaz.search(envs, lambda obs: returned(len(obs)), simulations=8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(simulations=0), "search.simulations: got 0"),
        (dict(algorithm="alphabeta"), "search.algorithm"),
        (dict(algorithm="afterstate"), "algorithm: found afterstate, expected gumbel or puct"),
        (dict(c_inti=1.0), "c_inti"),
        (dict(determinisations=0), "determinisations: found 0, expected 1 to 1024"),
    ],
)
def test_wrong_settings_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        vecaz.search(vecaz.make("hex", num_envs=2, size=5), None, **arguments)


def test_wrong_evaluators_are_named():
    envs = vecaz.make("hex", num_envs=2, size=5)
    with pytest.raises(ValueError, match="evaluate: found int, expected a function, a vecaz.Network or None"):
        vecaz.search(envs, 5)
    with pytest.raises(ValueError, match="the network's game"):
        vecaz.search(envs, vecaz.Network())
    with pytest.raises(ValueError, match="the network's game"):
        vecaz.search(vecaz.make("connect_four", num_envs=2, connect=5), vecaz.Network())
    ramsey = vecaz.make("clique", num_envs=2, mode="ramsey")
    with pytest.raises(ValueError, match="values: "):
        vecaz.search(ramsey, lambda obs: (np.zeros((len(obs), 15)), np.zeros(len(obs))), simulations=8)
    vecaz.search(ramsey, lambda obs: (np.zeros((len(obs), 15)), np.zeros((len(obs), 2))), simulations=8)
