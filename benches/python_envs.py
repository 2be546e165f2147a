#!/usr/bin/env python3
"""Environments from Python against the same loop in Rust: alternated runs, medians and their ratio.

    cargo bench --bench envs --no-run        # names the Rust program
    benches/python_envs.py target/release/deps/envs-... --seconds 0.5 --rounds 7

Run it with a Python that has the package `vecaz` (python/test.sh makes one in target/python-venv). `step` samples actions and steps, `observe`
also writes masks and observations; rates are environment steps per second, with one thread per second of its processor time.
"""

import argparse
import json
import statistics
import subprocess
import time

import vecaz

CASES = [
    ("tic_tac_toe", {}),
    ("connect_four", {}),
    ("hex", {"size": 11}),
    ("othello", {}),
    ("backgammon", {}),
    ("go", {"size": 9}),
    ("chess", {}),
]
STEPS = 32


def rate(envs, threads, seconds, step):
    """Environment steps per second of `step`, which is called again and again."""
    for _ in range(STEPS):
        step()
    clock = time.thread_time if threads == 1 else time.perf_counter
    start, before, steps = time.perf_counter(), clock(), 0
    while time.perf_counter() - start < seconds:
        for _ in range(STEPS):
            step()
        steps += STEPS
    return steps * len(envs) / (clock() - before)


def python_rates(game, options, num_envs, threads, seconds):
    envs = vecaz.make(game, num_envs, threads=threads, **options)

    def step():
        envs.step(envs.sample_actions())

    def whole():
        envs.step(envs.sample_actions())
        envs.legal_actions()
        envs.observe()

    return {"step_rate": rate(envs, threads, seconds, step), "observe_rate": rate(envs, threads, seconds, whole)}


def rust_rates(program, game, options, num_envs, threads, seconds):
    toml = "\n".join(f"{key} = {value}" for key, value in options.items())
    command = [program, game, "--options", toml, "--envs", num_envs, "--threads", threads, "--seconds", seconds]
    return json.loads(subprocess.run([str(x) for x in command], check=True, capture_output=True, text=True).stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="the Rust program")
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--envs", type=int, nargs="+", default=[128, 1024, 4096])
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--games", nargs="+")
    args = parser.parse_args()
    print("| game | N | threads | loop | Rust | Python | ratio (least, most) |\n|---|---|---|---|---|---|---|")
    for game, options in CASES:
        if args.games and game not in args.games:
            continue
        for num_envs in args.envs:
            for threads in args.threads:
                rounds = []
                for _ in range(args.rounds):
                    case = (game, options, num_envs, threads, args.seconds)
                    rounds.append((rust_rates(args.program, *case), python_rates(*case)))
                for loop in ["step", "observe"]:
                    key = f"{loop}_rate"
                    rust, python = (statistics.median(one[i][key] for one in rounds) for i in (0, 1))
                    ratios = sorted(python[key] / rust[key] for rust, python in rounds)
                    spread = f"{statistics.median(ratios):.3f} ({ratios[0]:.3f}, {ratios[-1]:.3f})"
                    print(f"| {game} | {num_envs} | {threads} | {loop} | {rust:.3e} | {python:.3e} | {spread} |", flush=True)


if __name__ == "__main__":
    main()
