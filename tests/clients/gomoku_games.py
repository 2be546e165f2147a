#!/usr/bin/env python3
"""Games of `vecaz engine` by the protocol of Gomocup with PyGomo (`pip install pygomo-lib`), a client library of that protocol, on both sides.

    python3 tests/clients/gomoku_games.py target/release/vecaz runs/gomoku --games 20

The rules of each move, and the end of a game, are checked here.
"""

import argparse
import os
import shlex
import stat
import tempfile

from pygomo import EngineClient


def wins(stones, cell):
    for step in ((0, 1), (1, 0), (1, 1), (1, -1)):
        run = 1
        for sign in (1, -1):
            x, y = cell
            while (x := x + sign * step[0], y := y + sign * step[1]) in stones:
                run += 1
        if run >= 5:
            return True
    return False


def game(program, size, time_ms):
    """The winner (0, 1 or None for a full board), and the plies."""
    engines = [EngineClient(program), EngineClient(program)]
    try:
        for engine in engines:
            engine.connect()
            engine.start(board_size=size)
            engine.configure(timeout_turn=time_ms)
        stones, last = [set(), set()], None
        for ply in range(size * size):
            mover = ply % 2
            result = engines[mover].begin() if last is None else engines[mover].turn(last)
            cell = (result.move.col, result.move.row)
            assert 0 <= cell[0] < size and 0 <= cell[1] < size, f"ply {ply}: {result.move} is off the board"
            assert cell not in stones[0] | stones[1], f"ply {ply}: {result.move} is taken"
            stones[mover].add(cell)
            last = result.move
            if wins(stones[mover], cell):
                return mover, ply + 1
        return None, size * size
    finally:
        for engine in engines:
            engine.quit()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vecaz")
    parser.add_argument("run")
    parser.add_argument("--games", type=int, default=20)
    parser.add_argument("--size", type=int, default=15)
    parser.add_argument("--time", type=int, default=150, help="milliseconds of a move")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        # The library takes a program without arguments, as Piskvork does.
        program = os.path.join(folder, "vecaz.sh")
        command = shlex.join([os.path.abspath(args.vecaz), "engine", os.path.abspath(args.run), "--threads", "1"])
        with open(program, "w") as file:
            file.write(f"#!/bin/sh\nexec {command}\n")
        os.chmod(program, os.stat(program).st_mode | stat.S_IXUSR)
        results = []
        for number in range(args.games):
            winner, plies = game(program, args.size, args.time)
            results.append(winner)
            print(f"game {number + 1}: {plies} plies, {'a full board' if winner is None else ['black', 'white'][winner] + ' wins'}", flush=True)
    print(f"{args.games} games without a protocol error: {results.count(0)} won by black, {results.count(1)} by white")


if __name__ == "__main__":
    main()
