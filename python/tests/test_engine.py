"""The engine: analysis, moves, networks and functions."""

import gc
import weakref

import numpy as np
import pytest

import vecaz


def test_it_finds_a_win_and_plays_to_the_end():
    engine = vecaz.Engine("tic_tac_toe")
    found = engine.analyse([0, 1, 3, 4], simulations=300)
    assert isinstance(found, vecaz.Analysis) and isinstance(found.best, vecaz.Move)
    assert (found.best.action, found.player, found.proven, found.value) == (6, 0, True, (1.0, -1.0))
    assert found.end == "proven" and len(found.moves) == 5 and found.best.line[0] == 6
    engine.play(found.best.action)
    assert engine.is_over and engine.returns == [1.0, -1.0] and engine.player is None
    with pytest.raises(ValueError, match="game is over"):
        engine.analyse()
    engine.reset()
    assert engine.returns is None and engine.actions == [] and engine.player == 0


def test_the_embedded_network_plays_connect_four():
    with vecaz.Engine() as engine:
        assert engine.game == "connect_four" and "embedded" in repr(engine)
        found = engine.analyse(simulations=100)
        assert found.visits >= 100 and found.evaluations > 0 and found.best.action == 3
        assert sum(move.policy for move in found.moves) == pytest.approx(1, abs=1e-4)
        again = engine.analyse(simulations=150)
        assert again.visits >= 150 and again.simulations < 150, "the tree is kept"
        engine.play("3")
        assert engine.analyse(simulations=1).visits > 1, "the tree is kept from move to move"
    with pytest.raises(ValueError, match="the engine: found one that is closed"):
        engine.play(3)


def test_limits_in_time_are_kept():
    engine = vecaz.Engine("hex", size=9)
    found = engine.analyse(seconds=0.2)
    # It may end early, where larger trees would take longer to make than there is time.
    assert found.end == "time" and found.seconds < 2 and found.visits > 100
    assert vecaz.Engine("hex", size=9).analyse(simulations=50, seconds=100).end == "simulations"


def test_chance_is_dealt_by_the_caller():
    engine = vecaz.Engine("2048")
    assert engine.is_chance and engine.player is None
    probabilities = engine.chance_probabilities()
    assert sum(probabilities.values()) == pytest.approx(1) and list(probabilities) == list(engine.legal_actions())
    with pytest.raises(ValueError, match="chance"):
        engine.analyse()
    while engine.is_chance:
        engine.play(next(iter(engine.legal_actions())))
    assert engine.player == 0 and engine.analyse(simulations=30).best.action in engine.legal_actions()
    assert engine.chance_probabilities() == {}


def test_a_function_is_a_network():
    batches = []

    def evaluate(obs):
        batches.append(obs.shape)
        logits = np.zeros((len(obs), 9), np.float32)
        logits[:, 8] = 5
        return logits, np.zeros(len(obs), np.float32)

    engine = vecaz.Engine("tic_tac_toe", evaluate=evaluate, settings={"search.algorithm": "puct", "eval.algorithm": "puct"})
    found = engine.analyse(simulations=40)
    assert batches and all(shape[1] == 18 for shape in batches)
    assert max(found.moves, key=lambda move: move.prior).action == 8


@pytest.mark.parametrize("leaves", [1, 3])
def test_the_leaves_of_a_pass_are_those_that_are_set(leaves):
    batches = []

    def evaluate(obs):
        batches.append(len(obs))
        return np.zeros((len(obs), 25), np.float32), np.zeros(len(obs), np.float32)

    engine = vecaz.Engine("hex", evaluate=evaluate, size=5, settings={"search.leaves": leaves})
    engine.analyse(simulations=60)
    assert max(batches) == leaves


def test_an_exception_of_the_function_comes_out():
    class Mine(Exception):
        pass

    def fails(obs):
        raise Mine("here")

    engine = vecaz.Engine("tic_tac_toe", evaluate=fails)
    for _ in range(2):
        with pytest.raises(Mine, match="here"):
            engine.analyse(simulations=10)
    wrong = vecaz.Engine("tic_tac_toe", evaluate=lambda obs: (np.zeros((1, 2)), np.zeros(1)))
    with pytest.raises(ValueError, match=r"logits: found shape \(1, 2\), expected \(1, 9\)"):
        wrong.analyse(simulations=10)


def test_names_and_numbers_are_actions():
    engine = vecaz.Engine("chess")
    engine.set_position(["e2e4", "e7e5"])
    legal = engine.legal_actions()
    assert len(legal) == 29 and {"g1f3", "e1e2"} <= set(legal.values())
    engine.play(np.int64(next(action for action, name in legal.items() if name == "g1f3")))
    by_number = vecaz.Engine("chess")
    by_number.set_position(iter(engine.actions))
    assert len(engine.actions) == 3 and by_number.text() == engine.text() and "g1f3" not in by_number.legal_actions().values()


def test_it_can_be_a_base_class():
    class Loud(vecaz.Engine):
        def best(self):
            return self.analyse(simulations=20).best.name

    with Loud("tic_tac_toe", seed=3) as engine:
        engine.set_position([0, 1, 3, 4])
        assert engine.best() == engine.legal_actions()[6]


def test_an_engine_whose_function_holds_it_is_collected():
    class Player:
        def __init__(self):
            self.engine = vecaz.Engine("tic_tac_toe", evaluate=self.evaluate)

        def evaluate(self, obs):
            return np.zeros((len(obs), 9), np.float32), np.zeros(len(obs), np.float32)

    player = Player()
    player.engine.analyse(simulations=10)
    gone = weakref.ref(player)
    del player
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: vecaz.Engine("runs/none"), ValueError, "source: found runs/none, expected the path of a run or a network, or a game"),
        (lambda: vecaz.Engine("hex", size=1), ValueError, "game.size"),
        (lambda: vecaz.Engine(size=5), ValueError, "options: found size, expected none"),
        (lambda: vecaz.Engine("hex", memory_mib=0), ValueError, "memory_mib: found 0"),
        (lambda: vecaz.Engine("hex", settings={"search.c_inti": 1}), ValueError, "c_inti"),
        (lambda: vecaz.Engine("hex", settings={"game.size": 5}), ValueError, "keyword arguments"),
        (lambda: vecaz.Engine("hex", settings={"game": {"name": "go"}}), ValueError, "keyword arguments"),
        (lambda: vecaz.Engine("hex", settings={"search": {"leaves": "many"}}), ValueError, "search.leaves"),
        (lambda: vecaz.Engine("hex", evaluate=3), ValueError, "evaluate: found int, expected a function"),
        (lambda: vecaz.Engine("hex").analyse(simulations=0), ValueError, "simulations: found 0"),
        (lambda: vecaz.Engine("hex").analyse(seconds=-1.0), ValueError, "seconds: found -1, expected a positive number"),
        (lambda: vecaz.Engine("hex").analyse(seconds=float("nan")), ValueError, "seconds: found NaN"),
        (lambda: vecaz.Engine("tic_tac_toe").play(9), ValueError, "action 9 is not legal here; legal: 0"),
        (lambda: vecaz.Engine("tic_tac_toe").play(True), ValueError, "action: found bool, expected a whole number or a name"),
        (lambda: vecaz.Engine("tic_tac_toe").play(None), ValueError, "action: found NoneType"),
        (lambda: vecaz.Engine("tic_tac_toe").analyse([0, 0]), ValueError, "ply 1: action 0 is not legal here"),
        (lambda: vecaz.Engine("tic_tac_toe").text(2), ValueError, "player: found 2, expected 0 to 1"),
        (lambda: vecaz.Network()(np.zeros((2, 5), np.float32)), ValueError, r"observations: found shape \(2, 5\)"),
        (lambda: vecaz.Network()(np.zeros((2, 84), int)), ValueError, "observations: found dtype int64, expected float32"),
    ],
)
def test_wrong_calls_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
