"""Ten thousand wrong calls: each is an exception of Python that says something, and the interpreter lives."""

import random
import threading

import numpy as np
import pytest

import vecaz

CALLS = 10_000
ALLOWED = (ValueError, TypeError, OverflowError, RuntimeError, OSError, MemoryError, AttributeError)


class Odd:
    """What converts to nothing."""

    def __array__(self, *arguments, **keywords):
        raise TypeError("no array")

    def __index__(self):
        raise ValueError("no number")

    def __str__(self):
        return "odd"


def things(rng):
    """Values of many kinds, few of which fit anywhere."""
    return rng.choice([
        None, True, -1, 0, 3, 10**6, 2**31, 2**63, 2**64, -(2**63), 2**200, 0.0, -1.5, float("nan"), float("inf"), "", "hex", "none",
        "\0", "a" * 1000, "\ud800", b"", b"hex", (), [], {}, set(), [[]], [[1], [1, 2]], [None], ["x"], [1.5], [2**70], {"a": {}},
        {"search.leaves": []}, object, object(), Odd(), [Odd()], print, lambda: 1, lambda *a: 1, lambda obs: (obs, obs), Exception(),
        np.zeros(0), np.zeros(3, int), np.zeros((3, 3)), np.array(5), np.array("x"), np.zeros(3, complex), np.zeros(3, object),
        np.zeros(3, "M8[s]"), np.zeros((2, 2), np.float16), np.int64(-5), np.float32(0.5), np.ma.masked_array([1, 2, 3], [0, 1, 0]),
        np.broadcast_to(np.int64(1), (3,)), np.zeros(6, int)[::2], np.zeros((3,), [("a", int)]), memoryview(b"abc"), range(3), iter([]),
    ])


def targets():
    """What the calls are made on: open and closed objects, some of them at the end of their game."""
    envs = [vecaz.make("tic_tac_toe", 3), vecaz.make("hex", 3, size=5, autoreset="off"), vecaz.make("blob", 3), vecaz.make("2048", 3)]
    engines = [vecaz.Engine("tic_tac_toe"), vecaz.Engine("2048"), vecaz.Engine("blob")]
    closed = [vecaz.make("hex"), vecaz.Engine("hex")]
    for one in closed:
        one.close()
    return envs, engines, closed


def call(rng, envs, engines, closed):
    """One call with random arguments."""
    arguments = [things(rng) for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 3]))]
    keywords = {rng.choice(["seed", "size", "simulations", "seconds", "player", "x", "leaves", "settings", "num_envs", "threads"]): things(rng)
                for _ in range(rng.choice([0, 0, 0, 1, 2]))}
    of_envs = ["reset", "restart", "step", "sample_actions", "legal_actions", "observe", "legal_list", "action_name", "text",
               "game_number", "search", "__len__", "__repr__", "players", "rewards"]
    of_engine = ["play", "set_position", "analyse", "text", "legal_actions", "chance_probabilities", "returns", "actions", "reset"]
    kind = rng.random()
    if kind < 0.45:
        target, name = rng.choice(envs + closed[:1]), rng.choice(of_envs)
    elif kind < 0.75:
        target, name = rng.choice(engines + closed[1:]), rng.choice(of_engine)
        if name == "analyse":
            # Whatever else is passed, it ends soon.
            keywords = {key: value for key, value in keywords.items() if key not in ("simulations", "seconds")}
            keywords[rng.choice(["simulations", "seconds"])] = rng.choice([-1, 0, 1, 0.001, "x", None, float("nan"), 2**70, Odd(), True, 5])
            if all(keywords.get(key) is None for key in ("simulations", "seconds")):
                keywords["simulations"] = 2
    elif kind < 0.8:
        return vecaz.make(*arguments, **keywords)
    elif kind < 0.85:
        return vecaz.Engine(*arguments, **keywords)
    elif kind < 0.95:
        target = rng.choice(envs + closed[:1])
        keywords.pop("simulations", None)
        return vecaz.search(target, *arguments[:1] or [None], simulations=rng.choice([1, 2, 0, -1, "x", None, 2**70, Odd()]), **keywords)
    elif kind < 0.97:
        return vecaz.load_metrics(*arguments)
    else:
        # Never a run that starts: the configuration is always wrong.
        return vecaz.train({"run.epochs": things(rng), "game.name": "none"}, *arguments[:1])
    member = getattr(target, name)
    return member(*arguments, **keywords) if callable(member) else member


@pytest.mark.filterwarnings("ignore")
def test_ten_thousand_wrong_calls_are_exceptions():
    refused, kinds = [0], {}

    def run(seed, calls, shared):
        rng = random.Random(seed)
        for number in range(calls):
            try:
                call(rng, *shared)
            except ALLOWED as error:
                assert str(error) or isinstance(error, (MemoryError, TypeError)), (seed, number)
                kinds[type(error).__name__] = kinds.get(type(error).__name__, 0) + 1
                refused[0] += 1
            except BaseException as error:
                failures.append((seed, number, repr(error)))
                raise

    failures = []
    run(1, CALLS * 3 // 4, targets())
    # The rest from several threads at once, on the same objects.
    shared = targets()
    threads = [threading.Thread(target=run, args=(seed, CALLS // 16, shared)) for seed in range(2, 6)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not failures
    assert refused[0] > CALLS / 3, "most are wrong"
    assert {"ValueError", "TypeError"} <= set(kinds), kinds
    # All is well after that.
    envs = vecaz.make("tic_tac_toe", 3)
    envs.step([0, 1, 2])
    assert vecaz.search(envs, None, simulations=4).visits.sum() == 12
