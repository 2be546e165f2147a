#!/usr/bin/env python3
"""Games of `vecaz engine` by NBoard's protocol against GRhino's engine, gtp-rhino, which speaks GTP.

    python3 tests/clients/othello_games.py target/release/vecaz runs/othello --games 20

This script is the client of both: it speaks as NBoard does (`set game`, `move`, `go`, `ping`), and tells each program the other's moves. gtp-rhino refuses
what it holds to be illegal, and at the end its board is compared with the discs of the game as vecaz was told it.
"""

import argparse
import os
import re
import subprocess

START = "(;GM[Othello]PC[vecaz]PB[a]PW[b]RE[?]TY[8]BO[8 ---------------------------O*------*O--------------------------- *]%s;)"


class Process:
    def __init__(self, command):
        path = os.environ.get("PATH", "") + os.pathsep + "/usr/games"
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PATH": path}
        )

    def send(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def line(self):
        line = self.process.stdout.readline()
        assert line, "the program has ended"
        return line.rstrip("\n")


class Rhino(Process):
    def ask(self, command):
        self.send(command)
        lines = []
        while True:
            line = self.line()
            if not line and lines:
                break
            if line:
                lines.append(line)
        assert lines[0].startswith("="), f"gtp-rhino to {command}: {lines}"
        return lines

    def move(self, colour):
        return self.ask(f"genmove {'bw'[colour]}")[0][1:].strip().upper()

    def discs(self):
        board = [line[4:] for line in self.ask("showboard") if re.match(r"\s+\d ", line)]
        return [sum(line.count(mark) for line in board) for mark in "XO"]


class NBoard(Process):
    pings = 0

    def ping(self):
        """All that was sent before is answered: the client waits for the pong."""
        self.pings += 1
        self.send(f"ping {self.pings}")
        while True:
            line = self.line()
            if line == f"pong {self.pings}":
                return
            assert line.startswith(("status", "set myname", "search", "nodestats")), line

    def move(self):
        self.send("go")
        while True:
            line = self.line()
            if line.startswith("=== "):
                return line[4:].split("/")[0]
            assert line.startswith(("status", "search", "nodestats")), line


def game(vecaz, own, plies=130):
    """One game; `own` is the colour of vecaz, 0 black."""
    rhino = Rhino(["gtp-rhino"])
    rhino.ask("boardsize 8")
    rhino.ask("clear_board")
    vecaz.send("set game " + START % "")
    vecaz.ping()
    passes, moves, mover = 0, [], 0
    while passes < 2 and len(moves) < plies and sum(rhino.discs()) < 64:
        if mover == own:
            name = vecaz.move()
            # gtp-rhino knows by itself who must pass, and has no such move.
            if name != "PA":
                rhino.ask(f"play {'bw'[mover]} {name.lower()}")
        else:
            name = rhino.move(mover)
            name = "PA" if name == "PASS" else name
        moves.append(name)
        passes = passes + 1 if name == "PA" else 0
        mover = 1 - mover
        # The client tells every move, its own engine's too. Once neither can move the game is over, and vecaz answers that no move is legal.
        vecaz.send(f"move {name}")
        vecaz.pings += 1
        vecaz.send(f"ping {vecaz.pings}")
        over = False
        while (line := vecaz.line()) != f"pong {vecaz.pings}":
            over = over or "not legal" in line
        if over:
            assert name == "PA", f"{name} of {'vecaz' if mover != own else 'gtp-rhino'} after {moves}: {line}"
            break
    discs = rhino.discs()
    rhino.ask("quit")
    return discs, len(moves)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vecaz")
    parser.add_argument("run")
    parser.add_argument("--games", type=int, default=20)
    parser.add_argument("--depth", type=int, default=6)
    args = parser.parse_args()
    vecaz = NBoard([args.vecaz, "engine", args.run, "--threads", "1"])
    vecaz.send("nboard 2")
    vecaz.send(f"set depth {args.depth}")
    vecaz.ping()
    won = 0
    for number in range(args.games):
        discs, plies = game(vecaz, number % 2)
        won += discs[number % 2] > discs[1 - number % 2]
        print(f"game {number + 1}: vecaz {'black' if number % 2 == 0 else 'white'}, {plies} moves, discs {discs[0]} : {discs[1]}", flush=True)
    print(f"{args.games} games without a protocol error, vecaz won {won}")


if __name__ == "__main__":
    main()
