#!/usr/bin/env python3
"""A run in strict order with workers of several programs ends with the bytes of a run on one machine.

    tests/campaigns/mixed_machines.py PROGRAM OTHER [OTHER ...] [--precision bf16] [--isa avx512]

PROGRAM plays a run alone, then is the learner of the same run, for which it plays nothing itself; each OTHER is one worker: another
build, or a script that starts one of another architecture in an emulator. Weights, trainer, replay buffer and games are compared, and
every worker must have played. Needs redis-server. Where a machine has AMX or bfmmla, bf16 needs `--isa avx512` (or neon). The exit code is 1
where a file differs. Python 3.11, no packages.
"""

import argparse
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

EPOCHS = 3
SETTINGS = """game.name=connect_four net.arch=resnet net.blocks=1 net.channels=16 net.value_hidden=16 search.simulations=12
    search.root_cache=64 selfplay.games=230 selfplay.samples_per_epoch=3000 selfplay.passes_per_poll=16 selfplay.opening_plies=2
    train.batch=64 train.min_samples=500 replay.capacity=20000
    eval.every=0 run.seed=7 run.threads=1"""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def files(run):
    """Path below `run` -> bytes, of what strict order promises."""
    last = os.path.join("checkpoints", f"epoch-{EPOCHS:06}")
    names = [os.path.join(last, f"{name}.safetensors") for name in ("weights", "trainer", "replay")]
    names += [os.path.join("games", f"epoch-{epoch:06}.jsonl") for epoch in range(1, EPOCHS + 1)]
    found = {}
    for name in names:
        with open(os.path.join(run, name), "rb") as file:
            found[name] = file.read()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("others", nargs="+", metavar="OTHER")
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--isa", default="native")
    args = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="mixed-machines-")
    port, processes = free_port(), []
    try:
        keys = [*SETTINGS.split(), f"net.precision={args.precision}", f"net.isa={args.isa}"]
        common = [word for key in keys for word in ("--set", key)] + ["--epochs", str(EPOCHS), "--quiet"]
        alone, together = (os.path.join(folder, name) for name in ("alone", "together"))
        subprocess.run([args.program, "run", *common, "--out", alone], check=True, stdout=subprocess.DEVNULL)
        server = ["redis-server", "--port", str(port), "--save", "", "--dir", folder, "--bind", "127.0.0.1"]
        processes.append(subprocess.Popen(server, stdout=subprocess.DEVNULL))
        url = f"redis://127.0.0.1:{port}/mixed"
        time.sleep(1)
        workers = []
        for number, other in enumerate(args.others):
            command = [other, "work", url, "--threads", "1", "--name", f"worker-{number}"]
            workers.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        # They wait for the learner, so that a slow one too is there from its start.
        time.sleep(5)
        learner = [args.program, "run", *common, "--set", "cluster.order=strict", "--out", together, "--cluster", url, "--play", "0"]
        processes.append(subprocess.Popen(learner, stdout=subprocess.DEVNULL))
        code = processes[-1].wait()
        words = [" ".join(worker.communicate()[0].split()) for worker in workers]
        for other, text in zip(args.others, words):
            print(f"{other}: ...{text[-100:]}" if text else f"{other}: said nothing")
        if code:
            sys.exit(f"the learner ended with exit code {code}")
        idle = [other for other, text in zip(args.others, words) if not re.search(r"in [1-9]\d* chunk", text)]
        old, new = files(alone), files(together)
        different = [name for name in old if old[name] != new[name]]
        print(f"{len(old)} files, {len(different)} different: {', '.join(different) or 'none'}")
        if idle:
            print(f"workers that sent nothing: {', '.join(idle)}")
        return 1 if different or idle else 0
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
