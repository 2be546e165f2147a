"""Threads, forks, closed objects and Ctrl-C."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import vecaz


def test_a_closed_object_refuses_every_call():
    envs = vecaz.make("hex", num_envs=2, size=5)
    with envs:
        envs.step([0, 0])
    envs.close()
    for call in [
        envs.reset,
        envs.observe,
        envs.legal_actions,
        envs.sample_actions,
        lambda: envs.step([0, 0]),
        lambda: envs.players,
        lambda: envs.text(0),
        lambda: vecaz.search(envs, None),
    ]:
        with pytest.raises(ValueError, match="the environments: found one that is closed, expected an open one"):
            call()
    assert envs.num_envs == 2 and "2 of hex" in repr(envs)


def test_other_threads_run_while_vecaz_works():
    engine = vecaz.Engine("hex", size=9, threads=1)
    counts, done = [], threading.Event()

    def count():
        number = 0
        while not done.is_set():
            number += 1
            time.sleep(0.001)
        counts.append(number)

    counter = threading.Thread(target=count)
    counter.start()
    engine.analyse(seconds=0.5)
    done.set()
    counter.join()
    assert counts[0] > 50


def test_an_object_is_used_by_one_thread_at_a_time():
    engine = vecaz.Engine("hex", size=9)
    started, errors = threading.Event(), []

    def analyse():
        started.set()
        engine.analyse(seconds=0.5)

    thread = threading.Thread(target=analyse)
    thread.start()
    started.wait()
    time.sleep(0.1)
    with pytest.raises(RuntimeError, match="the engine: in use by another thread"):
        engine.play(0)
    thread.join()
    engine.play(0)

    envs = vecaz.make("hex", num_envs=2000)

    def steps():
        for _ in range(100):
            try:
                envs.step(envs.sample_actions().copy())
            except (RuntimeError, ValueError) as error:
                errors.append(str(error))

    threads = [threading.Thread(target=steps) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    expected = ("the environments: in use by another thread", "action of environment")
    assert all(error.startswith(expected) for error in errors), errors[:3]
    envs.step(envs.sample_actions())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_refuses_old_objects_and_makes_new_ones():
    envs = vecaz.make("hex", num_envs=2000)
    engine, network = vecaz.Engine(), vecaz.Network()
    engine.analyse(simulations=50)
    vecaz.search(envs, None, simulations=4)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            refused = 0
            for call in [envs.reset, lambda: engine.analyse(), lambda: network(np.zeros((1, 84), np.float32))]:
                try:
                    call()
                except RuntimeError as error:
                    refused += "after a fork, make another one there" in str(error)
            new = vecaz.make("hex", num_envs=2000)
            new.step(new.sample_actions())
            vecaz.search(new, None, simulations=4)
            vecaz.Engine().analyse(simulations=50)
            del envs, engine, network
            gc.collect()
            code = 0 if refused == 3 else 2
        finally:
            os._exit(code)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            assert os.waitstatus_to_exitcode(status) == 0
            break
        time.sleep(0.05)
    else:
        os.kill(child, signal.SIGKILL)
        pytest.fail("the child hangs")
    envs.reset()


INTERRUPTED = """
import os, signal, threading, time, numpy as np, vecaz
# A process that was started in the background ignores Ctrl-C, and Python then has no handler.
signal.signal(signal.SIGINT, signal.default_int_handler)
def interrupt():
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGINT)
for work in [
    lambda: vecaz.Engine("hex").analyse(seconds=1000),
    lambda: vecaz.search(vecaz.make("hex", num_envs=300, size=9), None, simulations=2000),
    lambda: vecaz.search(vecaz.make("hex", num_envs=2, size=5), lambda obs: (np.zeros((len(obs), 25)), np.zeros(len(obs))), simulations=200_000),
]:
    threading.Thread(target=interrupt).start()
    start = time.monotonic()
    try:
        work()
    except KeyboardInterrupt:
        print("interrupted", time.monotonic() - start < 5)
    else:
        print("not interrupted", time.monotonic() - start)
engine = vecaz.Engine("hex")
print(engine.analyse(simulations=10).visits >= 10)
"""


def test_ctrl_c_ends_searches(tmp_path):
    command = [sys.executable, "-c", INTERRUPTED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:4] == ["interrupted True"] * 3 + ["True"], done.stdout


ENDED = """
import atexit, random, sys, threading, time, numpy as np
# The handler that was registered first is called last.
atexit.register(lambda: print("later", vecaz.Engine().analyse(simulations=10).visits >= 10))
import vecaz
network = vecaz.Network()
def evaluate(obs):
    return network(np.zeros((len(obs), 84), np.float32))
def plain(obs):
    return np.zeros((len(obs), 7)), np.zeros(len(obs))
def engine(evaluate):
    return vecaz.Engine("connect_four", evaluate=evaluate, threads=2)
def envs():
    return vecaz.make("connect_four", num_envs=3)
many = vecaz.make("hex", num_envs=5000, size=9)
# Short calls, nearly always about to take the lock again; long ones, which the end stops.
calls = {
    "short": [lambda e=vecaz.Engine("hex"): e.analyse(seconds=0.002) for _ in range(4)]
    + [lambda e=envs(): vecaz.search(e, plain, simulations=20) for _ in range(3)]
    + [lambda e=engine(plain): e.analyse(seconds=0.005) for _ in range(3)],
    "long": [
        lambda e=vecaz.Engine("hex"): e.analyse(seconds=1000),
        lambda e=engine(evaluate): e.analyse(seconds=1000),
        lambda e=envs(): vecaz.search(e, evaluate, simulations=1_000_000),
        lambda: many.step(many.sample_actions().copy()),
    ],
}
def repeat(call):
    while True:
        call()
for call in calls[sys.argv[1]]:
    threading.Thread(target=repeat, args=[call], daemon=True).start()
time.sleep(0.2 + 0.2 * random.random())
"""


@pytest.mark.parametrize("length, times", [("short", 8), ("long", 2)])
def test_the_interpreter_ends_with_daemon_threads_in_calls(tmp_path, length, times):
    for _ in range(times):
        command = [sys.executable, "-c", ENDED, length]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, "later True\n", "")
