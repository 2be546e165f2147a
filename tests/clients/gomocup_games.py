#!/usr/bin/env python3
"""Games of `vecaz engine` under c-gomoku-cli (github.com/dhbloo/c-gomoku-cli), a manager of Gomocup's protocol.

    python3 tests/clients/gomocup_games.py target/release/vecaz runs/gomoku --manager c-gomoku-cli --games 20
    python3 tests/clients/gomocup_games.py target/release/vecaz runs/gomoku --manager c-gomoku-cli --rival /usr/local/bin/pbrain-rapfi

The manager keeps the clocks, with a tolerance of seconds, and checks moves and ends. Its log is read here: whatever vecaz says that is not `OK`, a point
or its ABOUT, a game that ended otherwise than by five in a row or a full board, and a move longer than its time and `--late` are faults. A rival's are not.
"""

import argparse
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile

# Options of both engines, and of the match: clocks with increment and without, rules, whole boards instead of moves, the opponent's time.
MANNERS = [
    ("10 s a game, 0.3 s a move", "tc=10/0.3", ["-rule", "0"], []),
    ("5 s + 0.05 s, exactly five, pondering", "tc=5/0.3+0.05", ["-rule", "1"], ["--ponder"]),
    ("0.2 s a move, whole boards", "tc=0/0.2", ["-rule", "0", "-sendbyboard"], []),
    ("4 s a game", "tc=4", ["-rule", "0"], []),
]


def openings(folder, count, size):
    """Random openings of two to five stones near the centre."""
    path = os.path.join(folder, "openings.txt")
    near = [(x, y) for x in range(-2, 3) for y in range(-2, 3)]
    rng = random.Random(size)
    lines = [rng.sample(near, 2 + number % 4) for number in range(count)]
    with open(path, "w") as file:
        file.write("".join(", ".join(f"{x},{y}" for x, y in line) + "\n" for line in lines))
    return path


def match(args, manner, games, folder):
    """The faults of some games, and their ends."""
    name, clock, options, own = manner
    vecaz = shlex.join([os.path.abspath(args.vecaz), "engine", os.path.abspath(args.run), "--threads", "1", *own])
    second = ["name=rival", f"cmd={args.rival}"] if args.rival else ["name=vecaz2", f"cmd={vecaz}"]
    command = [os.path.abspath(args.manager), "-each", clock, "-engine", "name=vecaz", f"cmd={vecaz}", "-engine", *second]
    command += [*options, "-boardsize", str(args.size), "-games", str(games), "-log"]
    if clock != "tc=4":  # games from the empty board too: the manager then sends BEGIN
        command += ["-openings", "file=" + openings(folder, games, args.size), "-repeat"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=3600)
    faults = [] if done.returncode == 0 else [f"exit code {done.returncode}: {done.stderr}"]
    ends = re.findall(r"Finished game .*\{(.*)\}", done.stdout)
    if len(ends) != games:
        faults.append(f"{len(ends)} games of {games}")
    reported = re.findall(r"engine (vecaz2?|rival) ((?:timeout|crashed|output illegal) .*)", done.stdout + done.stderr)
    faults += [" ".join(words) for words in reported if words[0] != "rival"]
    odd = [end for end in ends if not re.fullmatch(r"(Black|White) win by five connection|Draw by fullfilled board", end)]
    faults += odd if len(odd) > sum(words[0] == "rival" for words in reported) else []
    sent, left, moves, turn = {}, {}, 0, 1000 * float(re.search(r"tc=([\d.]+)(?:/([\d.]+))?", clock).groups()[-1] or 4)
    with open(os.path.join(folder, "c-gomoku-cli.1.log")) as file:
        for line in file:
            if not (said := re.match(r"(\d+): (vecaz2?) (<-|->) (.*)", line)):
                continue
            time, engine, way, text = int(said[1]), said[2], said[3], said[4]
            if way == "<-":
                sent[engine] = (time, text)
                if text.startswith("INFO time_left"):
                    left[engine] = int(text.split()[2])
            elif re.fullmatch(r"\d+,\d+", text):
                moves += 1
                if time - sent[engine][0] > min(turn, left[engine]) + args.late or not left[engine]:
                    faults.append(f"{time - sent[engine][0]} ms for {text}, {left[engine]} ms on the clock")
            elif text != "OK" and not text.startswith('name="vecaz"'):
                faults.append(f"{sent[engine][1]}: {text}")
    os.remove(os.path.join(folder, "c-gomoku-cli.1.log"))
    shown = ", ".join(f"{ends.count(end)} {end}" for end in sorted(set(ends)))
    print(f"{name}: {shown}; moves of vecaz {moves}; faults {faults or 'none'}", flush=True)
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vecaz")
    parser.add_argument("run")
    parser.add_argument("--manager", required=True, help="c-gomoku-cli")
    parser.add_argument("--rival", help="another engine of the protocol, with an absolute path; without it vecaz has both sides")
    parser.add_argument("--games", type=int, default=20)
    parser.add_argument("--size", type=int, default=15)
    parser.add_argument("--late", type=int, default=50, help="milliseconds that a move may be late; more on a busy machine")
    args = parser.parse_args()
    faults = []
    with tempfile.TemporaryDirectory() as folder:
        for number, manner in enumerate(MANNERS):
            games = args.games * (number + 1) // len(MANNERS) - args.games * number // len(MANNERS)
            faults += match(args, manner, games, folder)
    print(f"{args.games} games, {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
