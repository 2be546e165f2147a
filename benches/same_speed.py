#!/usr/bin/env python3
"""Two builds of vecaz timed in turn: is any row slower? Takes about 8 minutes on a machine that does nothing else.

    benches/same_speed.py OLD/target/release/vecaz target/release/vecaz [ROUNDS]

Each round runs every row once with either program, the one that begins taking turns. Printed are the medians, their ratio (above 1:
the second is faster) and the least and the greatest ratio of a round. Search and forward are `bench-scaling`; a training row is the
training seconds of the first epoch of a run, which are the same updates in both programs.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

N128 = ["--games", "128", "--seconds", "1.5"]
TRAIN = ["--epochs", "1", "--games", "64", "--sims", "8", "--seed", "1", "--set", "eval.positions=1"]
ROWS = {
    "search connect_four, Gumbel": ["--game", "connect_four", "--net", "uniform", *N128],
    "search connect_four, PUCT": ["--game", "connect_four", "--net", "uniform", *N128, "--set", "search.algorithm=puct"],
    "search connect_four, L = 4": ["--game", "connect_four", "--net", "uniform", *N128, "--leaves", "4"],
    "search hex": ["--game", "hex", "--net", "uniform", *N128],
    "search gomoku": ["--game", "gomoku", "--net", "uniform", *N128],
    "search othello": ["--game", "othello", "--net", "uniform", *N128],
    "search go": ["--game", "go", "--net", "uniform", *N128],
    "search chess": ["--game", "chess", "--net", "uniform", *N128],
    "search clique": ["--game", "clique", "--net", "uniform", *N128],
    "search backgammon": ["--game", "backgammon", "--net", "uniform", *N128, "--set", "search.algorithm=gumbel"],
    "search blob": ["--game", "blob", "--net", "uniform", *N128],
    "forward 6x64, f32": ["--game", "connect_four", "--net", "6x64", *N128, "--set", "net.precision=f32"],
    "forward 6x64, bf16": ["--game", "connect_four", "--net", "6x64", *N128, "--set", "net.precision=bf16"],
    "forward 6x64, int8": ["--game", "connect_four", "--net", "6x64", *N128, "--set", "net.precision=int8"],
    "forward clique, bf16": ["--game", "clique", "--net", "2x32", *N128, "--set", "net.precision=bf16"],
    "train connect_four": ["--game", "connect_four", *TRAIN],
    "train clique": ["--game", "clique", *TRAIN],
}


def measure(program: str, row: str) -> float:
    """Simulations a second, or updates a second of training."""
    words = ROWS[row]
    with tempfile.TemporaryDirectory() as folder:
        if not row.startswith("train"):
            out = Path(folder) / "rows.json"
            subprocess.run([program, "bench-scaling", "--quiet", *words, "--json", str(out)], check=True, stdout=subprocess.DEVNULL)
            return json.loads(out.read_text())[0]["simulations_per_second"]
        run = Path(folder) / "run"
        subprocess.run([program, "run", "--quiet", *words, "--out", str(run)], check=True, stdout=subprocess.DEVNULL)
        epochs = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        return max(epoch["updates"] for epoch in epochs) / sum(epoch["train_seconds"] for epoch in epochs)


def main(programs: list[str], rounds: int) -> None:
    found = {row: ([], []) for row in ROWS}
    for number in range(rounds):
        for row, pair in found.items():
            for i in [0, 1] if number % 2 == 0 else [1, 0]:
                pair[i].append(measure(programs[i], row))
    print("| row | first, per second | second, per second | ratio | rounds |\n|---|---|---|---|---|")
    for row, (first, second) in found.items():
        ratios = [new / old for old, new in zip(first, second)]
        old, new = statistics.median(first), statistics.median(second)
        print(f"| {row} | {old:,.0f} | {new:,.0f} | {new / old:.3f} | {min(ratios):.3f} to {max(ratios):.3f} |")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    main(sys.argv[1:3], int(sys.argv[3]) if len(sys.argv) == 4 else 5)
