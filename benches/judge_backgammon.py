#!/usr/bin/env python3
"""GNU Backgammon as a judge of games (Debian: `apt-get install gnubg`): errors in millipoints a decision, cubeless money play.

    vecaz eval runs/backgammon --against 'exec:python3 tests/opponents/gnubg.py' --opening-plies 0 --games 100 --record games.mat
    python3 benches/judge_backgammon.py games.mat [--plies 2] [--games 100]

For every player: the unforced decisions, what they lost in points by gnubg's estimate against the best move that it knows, and the mean loss of a
decision in thousandths of a point, with its 95 % interval over games.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

# Runs inside gnubg, which embeds Python.
INSIDE = r"""
import gnubg, json
for line in ("set automatic game off", "set confirm new off", "set confirm save off", "set jacoby off", "set cube use off",
             "set analysis cube off", "set analysis luck off",
             "set analysis chequerplay evaluation plies %(plies)d", "set analysis chequerplay evaluation cubeful off"):
    gnubg.command(line)
with open(%(out)r, "w") as out:
    for path in %(files)r:
        gnubg.command("import mat " + path)
        gnubg.command("analyse session")
        found = gnubg.match(analysis=0, boards=0, statistics=1, verbose=0)
        row = {}
        for side in "XO":
            moves = found["games"][0]["stats"][side]["moves"]
            row[found["match-info"][side]["name"]] = (moves["unforced-moves"], moves["error-skill"])
        out.write(json.dumps(row) + "\n")
        out.flush()
"""


def games_of(text):
    """The games of a match text, each as a file of its own."""
    head, *games = re.split(r"^ Game \d+\n", text, flags=re.MULTILINE)
    return [f"{head} Game 1\n{game}" for game in games]


def judged(games, plies):
    """For every game: name -> (decisions, points lost)."""
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / f"{number}.mat") for number in range(len(games))]
        for path, game in zip(files, games):
            Path(path).write_text(game)
        script, out = Path(folder) / "inside.py", str(Path(folder) / "out.jsonl")
        script.write_text(INSIDE % {"plies": plies, "out": out, "files": files})
        # The folder of games on Debian.
        path = os.environ.get("PATH", "") + os.pathsep + "/usr/games"
        command = ["gnubg", "-t", "-q", "-p", str(script)]
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env={**os.environ, "PATH": path})
        rows = [json.loads(line) for line in Path(out).read_text().splitlines()] if Path(out).exists() else []
        if len(rows) != len(games):
            sys.exit(f"gnubg judged {len(rows)} of {len(games)} games; its last words: {ended.stderr.strip()[-300:]}")
        return rows


def summary(rows, name):
    """Decisions, points lost, millipoints a decision, and half the 95 % interval of these (a ratio of sums over games)."""
    pairs = [row[name] for row in rows if name in row]
    decisions, lost = (sum(pair[i] for pair in pairs) for i in (0, 1))
    rate, n = lost / decisions, len(pairs)
    spread = sum((error - rate * count) ** 2 for count, error in pairs) / max(n - 1, 1)
    return decisions, lost, 1000 * rate, 1000 * 1.96 * math.sqrt(n * spread) / decisions


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="a match text (.mat), as eval --record and GNU Backgammon write it")
    parser.add_argument("--plies", type=int, default=2, help="look-ahead of the judge (2)")
    parser.add_argument("--games", type=int, help="the first so many games (all)")
    args = parser.parse_args()
    games = games_of(args.file.read_text())[: args.games]
    if not games:
        sys.exit(f"{args.file}: no game of a match text")
    rows = judged(games, args.plies)
    print("| player | games | decisions | points lost | millipoints a decision |\n|---|---|---|---|---|")
    for name in dict.fromkeys(name for row in rows for name in row):
        decisions, lost, rate, half = summary(rows, name)
        played = sum(name in row for row in rows)
        print(f"| {name} | {played} | {decisions} | {lost:.1f} | {rate:.2f} ({rate - half:.2f} to {rate + half:.2f}) |")


if __name__ == "__main__":
    main()
