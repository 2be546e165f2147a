"""Runs: the same as those of the program, with a call for every epoch."""

import json
import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import vecaz

SMALL = {
    "game.name": "tic_tac_toe",
    "run": {"epochs": 3, "seed": 7},
    "selfplay.games": 32,
    "selfplay.samples_per_epoch": 200,
    "search.simulations": 8,
    "train.min_samples": 100,
    "net.channels": 16,
    "net.blocks": 1,
    "eval.every": 0,
}


def test_a_run_calls_after_every_epoch_and_leaves_a_player(tmp_path):
    seen = []
    result = vecaz.train(SMALL, seen.append, out=tmp_path / "run")
    assert result == vecaz.TrainingResult(tmp_path / "run", 3, True)
    assert [metrics["epoch"] for metrics in seen] == [1, 2, 3] and all("losses" in m for m in seen[1:])
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == seen
    columns = vecaz.load_metrics(tmp_path / "run")
    assert columns["epoch"] == [1, 2, 3] and len(columns["losses.policy"]) == 3
    assert all(len(column) == 3 for column in columns.values())
    with vecaz.Engine(tmp_path / "run") as engine:
        assert engine.game == "tic_tac_toe" and engine.analyse(simulations=20).visits >= 20
    network = vecaz.Network(tmp_path / "run")
    found = vecaz.search(vecaz.make("tic_tac_toe", num_envs=2), network, simulations=20)
    assert found.visits.sum(axis=1).tolist() == [20, 20]


def test_a_network_of_any_size_searches_the_one_that_it_was_opened_for(tmp_path):
    """An edge network of the clique game serves other numbers of vertices than that of its run, but one object only one of them."""
    settings = {**SMALL, "game.name": "clique", "run": {"epochs": 1}}
    run = vecaz.train(settings, out=tmp_path / "run").path
    envs = vecaz.make("clique", num_envs=2, n=5)
    # The trees of this search are kept for the next one.
    vecaz.search(envs, None, simulations=8)
    with pytest.raises(ValueError, match="evaluate: found .* for another size of clique, expected one for the environments' size"):
        vecaz.search(envs, vecaz.Network(run), simulations=8)
    found = vecaz.search(envs, vecaz.Network(run, settings={"game.n": 5}), simulations=8)
    assert found.visits.sum(axis=1).tolist() == [8, 8]


def test_a_stopped_run_continues_and_ends_with_the_same_bytes(tmp_path):
    assert not vecaz.train(SMALL, lambda metrics: metrics["epoch"] < 1, out=tmp_path / "stopped").finished
    assert vecaz.load_metrics(tmp_path / "stopped")["epoch"] == [1]
    result = vecaz.train(resume=tmp_path / "stopped")
    assert (result.epochs, result.finished) == (3, True)
    vecaz.train(SMALL, out=tmp_path / "whole")
    [one, other] = [sorted(tmp_path.glob(f"{run}/checkpoints/*3/weights.safetensors")) or
                    sorted(tmp_path.glob(f"{run}/**/*3/*.safetensors")) for run in ("stopped", "whole")]
    assert one and [path.read_bytes() for path in one] == [path.read_bytes() for path in other]


@pytest.mark.parametrize(
    ("returned", "epochs"),
    [(False, 1), (np.False_, 1), (np.True_, 2), (None, 2), (0, 2), (np.zeros(2), 2)],
)
def test_a_false_of_python_or_numpy_ends_the_run(tmp_path, returned, epochs):
    settings = {**SMALL, "run": {"epochs": 2}}
    result = vecaz.train(settings, lambda metrics: returned, out=tmp_path / "run")
    assert (result.epochs, result.finished) == (epochs, epochs == 2)


def test_an_exception_of_the_call_ends_the_run_and_keeps_the_checkpoint(tmp_path):
    class Mine(Exception):
        pass

    def fails(metrics):
        if metrics["epoch"] == 2:
            raise Mine("here")

    with pytest.raises(Mine, match="here"):
        vecaz.train(SMALL, fails, out=tmp_path / "run")
    assert vecaz.load_metrics(tmp_path / "run")["epoch"] == [1, 2]


def test_ctrl_c_ends_a_run_and_keeps_the_checkpoint(tmp_path):
    # A process that was started in the background ignores Ctrl-C, and Python then has no handler.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    first = threading.Event()

    def interrupt():
        first.wait()
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        vecaz.train({**SMALL, "run": {"minutes": 1.0}}, lambda metrics: first.set(), out=tmp_path / "run")
    thread.join()
    signal.signal(signal.SIGINT, before)
    assert time.monotonic() - started < 30 and vecaz.load_metrics(tmp_path / "run")["epoch"][0] == 1
    assert vecaz.train(resume=tmp_path / "run", on_epoch=lambda metrics: False).finished is False


def test_files_and_names_are_configurations(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text('[game]\nname = "tic_tac_toe"\n[run]\nepochs = 1\n')
    keys = {key: value for key, value in SMALL.items() if key not in ("run", "game.name")}
    for config in ["mine.toml", "tic_tac_toe"]:
        result = vecaz.train(config, settings={**keys, "run.epochs": 1})
        assert result.epochs == 1 and result.path.parent == Path("runs")
    assert sorted(path.name for path in Path("runs").iterdir()) == ["tic_tac_toe-1", "tic_tac_toe-2"]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: vecaz.train({"game.name": "shogi"}), ValueError, "unknown game shogi"),
        (lambda: vecaz.train({"selfplay.gamez": 3}), ValueError, "selfplay.gamez"),
        (lambda: vecaz.train({"selfplay.games": 0}), ValueError, "selfplay.games.*got 0"),
        (lambda: vecaz.train({"selfplay.games": None}), ValueError, "selfplay.games: found NoneType, expected a bool"),
        (lambda: vecaz.train("none"), ValueError, "none.*the path of a TOML file, or one of"),
        (lambda: vecaz.train("none.toml"), FileNotFoundError, "none.toml"),
        (lambda: vecaz.train(SMALL, 5), ValueError, "on_epoch: found int, expected a function or None"),
        (lambda: vecaz.train(resume="none"), FileNotFoundError, "none"),
        (lambda: vecaz.train(resume="a", out="b"), ValueError, "out: found a folder, expected none with resume"),
        (lambda: vecaz.load_metrics("none"), FileNotFoundError, "none"),
    ],
)
def test_wrong_configurations_are_named(call, error, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=message):
        call()
    assert not Path("runs").exists() or not any(Path("runs").iterdir())


def test_a_damaged_line_of_metrics_is_named(tmp_path):
    (tmp_path / "metrics.jsonl").write_text('{"epoch": 1}\n{"epoch"\n')
    with pytest.raises(ValueError, match="metrics.jsonl, line 2: found"):
        vecaz.load_metrics(tmp_path)
    (tmp_path / "metrics.jsonl").write_text('{"epoch": 1}\n{"epoch": 2, "losses": {"heads": {"own": 3}}}\n')
    assert vecaz.load_metrics(tmp_path) == {"epoch": [1, 2], "losses.heads.own": [None, 3]}


@pytest.mark.parametrize("threads", [1, 2])
def test_a_call_may_search_and_train(tmp_path, threads):
    """The call is made in a thread of the run's own pool, which has no other one with one thread."""
    settings = {**SMALL, "run": {"epochs": 1, "threads": threads}}
    found = []

    def call(metrics):
        envs = vecaz.make("tic_tac_toe", num_envs=2, threads=threads)
        found.append(vecaz.search(envs, None, simulations=8).visits.sum())
        found.append(vecaz.train(settings, out=tmp_path / "inner").epochs)

    vecaz.train(settings, call, out=tmp_path / "outer")
    assert found[0] > 0 and found[1] == 1
