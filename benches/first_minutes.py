#!/usr/bin/env python3
"""What a new user sees in the first minutes: every built-in configuration, and `vecaz run --games 128 --sims 800`, for some minutes each.

    benches/first_minutes.py [NAME...]          MINUTES=2,5,10 THREADS=2 SEED=1 OUT=runs/first_minutes VECAZ=target/release/vecaz

Prints a Markdown table: seconds of wall clock to the first row and to the first strength, the share of time in measurements, the
largest gap between two of them, and the strength with its interval at each of MINUTES (the last one measured by then, and in the last
column the final one). Every row is written as soon as it is known. A run that ends with another code than 0 is a row with its error. An idle
machine is needed for the seconds to mean anything; the columns of strength are the same function of time on any.
"""
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VECAZ = os.environ.get("VECAZ", str(ROOT / "target/release/vecaz"))
MINUTES = [float(text) for text in os.environ.get("MINUTES", "2,5,10").split(",")]
THREADS = os.environ.get("THREADS", "2")
SEED = os.environ.get("SEED", "1")
OUT = Path(os.environ.get("OUT", "runs/first_minutes"))
FAMOUS = "games-128-sims-800"
NAMES = ["tic_tac_toe", "connect_four", "othello", "hex", "gomoku", "go", "chess", "clique", "backgammon", "blob", FAMOUS,
         "hex-7", "gomoku-9", "go-5", "hex13", "clique_14", "clique_ramsey", "quick"]
ARGUMENTS = {
    FAMOUS: ["--games", "128", "--sims", "800"],
    "hex-7": ["--config", "hex", "--set", "game.size=7"],
    "gomoku-9": ["--config", "gomoku", "--set", "game.size=9"],
    "go-5": ["--config", "go", "--set", "game.size=5"],
}


def strength(record: dict) -> str:
    """The strength of a record as the table of a run shows it."""
    found = record.get("strength")
    if not found:
        return "-"
    per_cent = lambda value, digits=0: f"{100 * value:.{digits}f}"
    opponent = f" {found['rung']['opponent']}" if "rung" in found else ""
    if "search_outcome_error" in found:
        low, high = found["search_outcome_interval"]
        return f"{per_cent(found['search_outcome_error'], 1)} % err ({per_cent(low, 1)}-{per_cent(high, 1)})"
    if "lead" in found:
        lead = found["lead"]
        return f"{lead['mean']:+.1f} ±{lead['interval'][1] - lead['mean']:.1f}{opponent}"
    low, high = found["match_interval"]
    return f"{per_cent(found['match_score'])} % ({per_cent(low)}-{per_cent(high)}){opponent}"


def records(run: Path) -> list[dict]:
    """The finished lines of `metrics.jsonl`."""
    try:
        text = (run / "metrics.jsonl").read_text()
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def measure(name: str) -> list[str]:
    """Runs NAME to the end of the last of MINUTES; returns the cells of its row."""
    run = OUT / name
    command = [VECAZ, "run", *ARGUMENTS.get(name, ["--config", name]), "--minutes", str(MINUTES[-1]), "--threads", THREADS,
               "--seed", SEED, "--out", str(run)]
    started = time.monotonic()
    with open(OUT / f"{name}.log", "w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.PIPE, text=True)
        first_row = first_strength = None
        while process.poll() is None:
            found = records(run)
            now = time.monotonic() - started
            first_row = first_row or (now if found else None)
            first_strength = first_strength or (now if any("strength" in record for record in found) else None)
            time.sleep(0.1)
    errors = process.stderr.read().strip().splitlines()
    if process.returncode != 0:
        return [name, f"code {process.returncode}: {errors[-1] if errors else ''}", *[""] * (3 + len(MINUTES))]
    found = records(run)
    measured = [record for record in found if "strength" in record]
    ends = [0.0, *(record["seconds"] for record in measured)]
    share = sum(record["eval_seconds"] for record in found) / found[-1]["seconds"]
    by = [next((strength(r) for r in reversed(measured) if r["seconds"] <= 60 * minutes), "-") for minutes in MINUTES[:-1]]
    seconds = lambda value: "-" if value is None else f"{value:.1f}"
    gap = max((late - early for early, late in zip(ends, ends[1:])), default=None)
    return [name, seconds(first_row), seconds(first_strength), f"{100 * share:.1f} %", seconds(gap), *by,
            strength(found[-1]) + ("" if "strength" in found[-1] else " (not measured at the end)")]


def main() -> None:
    names = sys.argv[1:] or NAMES
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        sys.exit(f"first_minutes.py: {unknown[0]} is none of: {' '.join(NAMES)}")
    OUT.mkdir(parents=True, exist_ok=True)
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip()
    print(f"{THREADS} threads, seed {SEED}, code {commit}\n")
    head = ["configuration", "first row, s", "first strength, s", "measuring", "largest gap, s",
            *(f"after {minutes:g} min" for minutes in MINUTES)]
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head), flush=True)
    for name in names:
        print("| " + " | ".join(measure(name)) + " |", flush=True)


if __name__ == "__main__":
    main()
