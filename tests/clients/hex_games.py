#!/usr/bin/env python3
"""GTP games of `vecaz engine` against MoHex or Wolve (Benzene, github.com/cgao3/benzene-vanilla-cmake), refereed here as Benzene's own match script does.

    python3 tests/clients/hex_games.py target/release/vecaz runs/hex --rival build/src/mohex/mohex --setup 'param_mohex max_games 500'

The run's game is Hex without swap, of `--size`. Both programs are told every move, so each refuses what it holds to be illegal, and moves are checked here. A
game ends by a chain on this script's board: both programs must then name the winner, and resign for the loser. An earlier resignation ends it too, and is told
to the other program, which must accept it.
"""

import argparse
import random
import shlex
import subprocess


class Engine:
    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def ask(self, command):
        """The text of the answer, which must be a success."""
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        lines = []
        while (line := self.process.stdout.readline()).strip() or not lines:
            assert line, f"the program ended at {command}"
            lines.append(line.strip())
        assert lines[0].startswith("="), f"{command}: {lines}"
        return lines[0][1:].strip()


def joins(stones, black, size):
    """Whether a chain joins the borders of a colour: black's are top and bottom."""
    axis = 1 if black else 0
    linked = new = {cell for cell in stones if cell[axis] == 0}
    while new:
        steps = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, -1), (-1, 1))
        new = {(x + right, y + down) for x, y in new for right, down in steps} & stones - linked
        linked = linked | new
    return any(cell[axis] == size - 1 for cell in linked)


def game(engines, size, opening):
    """Plays one game; engines[0] has black. Returns the winner, the way it won and the number of moves."""
    for engine in engines:
        engine.ask(f"boardsize {size} {size}")
        engine.ask("clear_board")
    stones, plies = [set(), set()], 0
    while True:
        side = plies % 2
        colour = "bw"[side]
        move = opening if plies == 0 and opening else engines[side].ask(f"genmove {colour}").lower()
        for engine in engines if plies == 0 and opening else [engines[1 - side]]:
            engine.ask(f"play {colour} {move}")
        if move == "resign":
            return 1 - side, "resignation", plies
        cell = (ord(move[0]) - ord("a"), int(move[1:]) - 1)
        assert 0 <= min(cell) and max(cell) < size and cell not in stones[0] | stones[1], f"illegal move {move} of {colour}"
        stones[side].add(cell)
        plies += 1
        if joins(stones[side], side == 0, size):
            for engine in engines:
                assert engine.ask(f"genmove {'bw'[1 - side]}").lower() == "resign", "the loser does not resign"
                score = engine.ask("final_score")
                assert score == "BW"[side] + "+", f"{score} after a chain of {colour}"
            return side, "chain", plies


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vecaz")
    parser.add_argument("run")
    parser.add_argument("--rival", required=True, help="the command of MoHex or Wolve")
    parser.add_argument("--setup", action="append", default=[], help="a command that the rival gets first, e.g. its strength")
    parser.add_argument("--games", type=int, default=20)
    parser.add_argument("--size", type=int, default=11)
    parser.add_argument("--sims", type=int, default=50)
    args = parser.parse_args()
    vecaz = Engine([args.vecaz, "engine", args.run, "--threads", "1", "--sims", str(args.sims)])
    rival = Engine(shlex.split(args.rival))
    for command in args.setup:
        rival.ask(command)
    rng, won = random.Random(1), 0
    for number in range(args.games):
        own = number % 2
        opening = f"{'abcdefghijklmnopqrs'[rng.randrange(args.size)]}{rng.randrange(args.size) + 1}"
        winner, how, plies = game([vecaz, rival] if own == 0 else [rival, vecaz], args.size, opening)
        won += winner == own
        print(f"game {number + 1}: vecaz {['black', 'white'][own]}, {plies} moves, {'BW'[winner]}+ by {how}", flush=True)
    for engine in (vecaz, rival):
        engine.ask("quit")
        assert engine.process.wait(timeout=20) == 0
    print(f"{args.games} games without a protocol error, vecaz won {won}")


if __name__ == "__main__":
    main()
