#!/usr/bin/env python3
"""GTP games of `vecaz engine` against GNU Go, refereed here as gogui-twogtp does.

    python3 tests/clients/go_games.py target/release/vecaz runs/go --games 20 --size 9

Both programs are told every move, so each refuses what it holds to be illegal; every command must be answered as GTP asks. At the end
the score of vecaz (area, all stones alive) is compared with that of GNU Go, which removes dead stones first with --capture-all-dead.
A move that GNU Go holds legal and positional superko forbids ends a game, and is counted.
"""

import argparse
import os
import subprocess
import sys


class Engine:
    def __init__(self, command):
        path = os.environ.get("PATH", "") + os.pathsep + "/usr/games"
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PATH": path})
        self.number = 0

    def ask(self, command):
        """The answer, and whether it was a success. The id must be repeated."""
        self.number += 1
        self.process.stdin.write(f"{self.number} {command}\n")
        self.process.stdin.flush()
        lines = []
        while True:
            line = self.process.stdout.readline()
            assert line, f"the program ended at {command}"
            line = line.rstrip("\n")
            if not line and lines:
                break
            lines.append(line)
        head = lines[0]
        assert head[0] in "=?" and head[1:].split(" ")[0] == str(self.number), (command, lines)
        return head[0] == "=", head[1 + len(str(self.number)):].strip(), lines[1:]

    def must(self, command):
        is_ok, text, _ = self.ask(command)
        assert is_ok, f"{command}: {text}"
        return text

    def quit(self):
        self.must("quit")
        assert self.process.wait(timeout=20) == 0


def game(black, white, size, komi):
    for engine in (black, white):
        engine.must(f"boardsize {size}")
        engine.must("clear_board")
        engine.must(f"komi {komi}")
        engine.must("time_settings 60 0 0")
    passes, moves, left = 0, 0, [60.0, 60.0]
    while passes < 2 and moves < 3 * size * size:
        side = moves % 2
        mover, other = (black, white) if side == 0 else (white, black)
        colour = "bw"[side]
        mover.must(f"time_left {colour} {int(left[side])} 0")
        vertex = mover.must(f"genmove {colour}")
        if vertex.lower() == "resign":
            return f"{'WB'[side]}+R", moves, None
        is_ok, text, _ = other.ask(f"play {colour} {vertex}")
        if not is_ok:
            return f"{vertex} of {colour} refused: {text}", moves, None
        passes = passes + 1 if vertex.lower() == "pass" else 0
        moves += 1
    return black.must("final_score"), moves, white.must("final_score")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vecaz")
    parser.add_argument("run")
    parser.add_argument("--games", type=int, default=20)
    parser.add_argument("--size", type=int, default=9)
    parser.add_argument("--komi", type=float, default=7.5)
    parser.add_argument("--sims", type=int, default=50)
    args = parser.parse_args()
    own = [args.vecaz, "engine", args.run, "--threads", "1", "--sims", str(args.sims)]
    gnugo = ["gnugo", "--mode", "gtp", "--level", "1", "--chinese-rules", "--capture-all-dead", "--positional-superko", "--never-resign"]
    refused = 0
    for number in range(args.games):
        engines = [Engine(own), Engine(gnugo)]
        sides = engines if number % 2 == 0 else engines[::-1]
        first, moves, second = game(*sides, args.size, args.komi)
        refused += "refused" in first
        print(f"game {number + 1}: vecaz {'black' if number % 2 == 0 else 'white'}, {moves} moves, {first}, {second}", flush=True)
        for engine in engines:
            engine.quit()
    print(f"{args.games} games without a protocol error, {refused} ended by a repetition that one side refuses")
    sys.exit(0)


if __name__ == "__main__":
    main()
