#!/usr/bin/env python3
"""Kills small runs at random moments, resumes them, and compares their files with those of uninterrupted runs.

    tests/campaigns/kills.py PROGRAM [--kills N] [--seed S] [--jobs J] [--keep FOLDER]

The kills (SIGKILL) are shared by runs of different settings, of games with findings, hidden information and dice among them. Each run
has no limit of epochs; a process is killed after a random time of up to some epochs, and the next one resumes the run, with another
number of threads. After every CHECKED_EVERY kills `verify` must find nothing that differs. At the end the run is brought to a whole
number of epochs, the same is done without a stop, and all files must be equal but for the times that benches/same_bytes.py leaves
out. No temporary file may be left. The exit code is 1 where there is a finding. Python 3.11, no packages.
"""

import argparse
import concurrent.futures
import glob
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from program import accept_interrupts, environment, start
from sources import assignments

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../benches"))
import same_bytes  # noqa: E402  (the comparison of two runs)

# More epochs than any of these runs finishes.
UNBOUNDED = 1_000_000
# Kills between two calls of `verify`, which may read the run while its folder is ahead of its manifest.
CHECKED_EVERY = 10
# Settings of benches/same_bytes.py that share the kills, made smaller, so that many epochs end between kills.
SETTINGS = (
    "tic_tac_toe gumbel root-cache", "clique ramsey", "connect_four overlapped", "blob hand", "backgammon puct", "go gumbel",
    "hex swap puct",
)
SMALLER = "selfplay.games=6 selfplay.samples_per_epoch=60 search.simulations=4 train.min_samples=40 replay.capacity=300 eval.positions=2 eval.match_games=2"
# Maximum number of printed differences of a run.
SHOWN = 20
# Most of an epoch's changes of the folder are in its last part; a process takes longest to start.
MAX_LIFE = 4.0  # in times that a start with one epoch takes


class Run:
    """A run that is killed and resumed."""

    def __init__(self, program, setting, folder):
        self.program, self.folder = program, folder
        self.run = os.path.join(folder, "run")
        # The limits are flags, which `--set` would override.
        words = f"{same_bytes.BASE} {same_bytes.SETTINGS[setting]} {SMALLER}".split()
        self.settings = assignments(" ".join(word for word in words if not word.startswith(("run.epochs=", "run.threads="))))

    def command(self, epochs, threads):
        limits = ["--epochs", str(epochs), "--threads", str(threads)]
        if os.path.exists(os.path.join(self.run, "config.toml")):
            return [self.program, "run", "--resume", self.run, *limits]
        return [self.program, "run", "--out", self.run, *self.settings, *limits]

    def finish(self, epochs):
        return start(self.command(epochs, 1))

    def kill_after(self, seconds, threads):
        """Starts a process and kills it; returns its output if it ended before."""
        process = subprocess.Popen(self.command(UNBOUNDED, threads), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment())
        try:
            _, stderr = process.communicate(timeout=seconds)
            return stderr.decode(errors="replace").strip() or f"exit code {process.returncode}"
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            return None

    def epochs(self):
        """Finished epochs, by the checkpoints."""
        names = [os.path.basename(path) for path in glob.glob(os.path.join(self.run, "checkpoints/epoch-*"))]
        return max((int(name.removeprefix("epoch-")) for name in names), default=0)

    def has_checkpoint(self):
        return os.path.exists(os.path.join(self.run, "manifest.jsonl")) and self.epochs() > 0

    def leftovers(self):
        found = []
        for at, folders, names in os.walk(self.run):
            found += [os.path.relpath(os.path.join(at, name), self.run) for name in [*folders, *names] if name.startswith(".") and name != ".lock"]
        return found


def campaign(program, setting, kills, seed, folder):
    """(kills, epochs, findings) of a run."""
    rng = random.Random(f"{seed}/{setting}")
    os.makedirs(folder)
    trial = Run(program, setting, os.path.join(folder, "trial"))
    began = time.monotonic()
    done = trial.finish(2)
    if done.code:
        return 0, 0, [f"cannot be made: {done.stderr.decode()}"]
    life = MAX_LIFE * (time.monotonic() - began)
    run = Run(program, setting, os.path.join(folder, "killed"))
    for kill in range(kills):
        ended = run.kill_after(rng.uniform(0, life), rng.randrange(1, 4))
        if ended is not None:
            return kill, run.epochs(), [f"kill {kill}: the resumed run ended by itself: {ended}"]
        if kill % CHECKED_EVERY == 0 and run.has_checkpoint():
            checked = start([program, "verify", run.run])
            if checked.code:
                return kill, run.epochs(), [f"kill {kill}: verify: {checked.stderr.decode().strip()}"]
    epochs = run.epochs() + 1
    whole = Run(program, setting, os.path.join(folder, "whole"))
    for name, each in (("killed", run), ("whole", whole)):
        ended = subprocess.run(each.command(epochs, 1), capture_output=True, text=True, env=environment())
        if ended.returncode:
            return kills, epochs, [f"the {name} run to its end: {ended.stderr.strip()}"]
    found = same_bytes.compare(*(same_bytes.content(each.run) for each in (whole, run)))
    found = [line.replace("the old program", "the whole run").replace("the new program", "the killed run") for line in found]
    found += [f"left {name}" for name in run.leftovers()]
    checked = start([program, "verify", run.run])
    return kills, epochs, found + ([checked.stderr.decode().strip()] if checked.code else [])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="runs at a time")
    parser.add_argument("--keep", help="keep the runs in this new folder")
    args = parser.parse_args()
    program = os.path.abspath(args.program)
    accept_interrupts()
    if args.keep:
        os.makedirs(args.keep)
    scratch = args.keep or tempfile.mkdtemp(prefix="kills-")
    shares = [args.kills // len(SETTINGS) + (i < args.kills % len(SETTINGS)) for i in range(len(SETTINGS))]
    total = differences = 0
    try:
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            folders = [os.path.join(scratch, setting.replace(" ", "_")) for setting in SETTINGS]
            made = pool.map(lambda setting, kills, folder: campaign(program, setting, kills, args.seed, folder), SETTINGS, shares, folders)
            for setting, (kills, epochs, found) in zip(SETTINGS, made):
                total, differences = total + kills, differences + len(found)
                print(f"{setting:32} {kills:5} kills {epochs:6} epochs  {'same' if not found else 'FINDING'}", flush=True)
                for line in found[:SHOWN]:
                    print(f"    {line}")
    finally:
        if not args.keep:
            shutil.rmtree(scratch, ignore_errors=True)
    print(f"{total} kills, {differences} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
