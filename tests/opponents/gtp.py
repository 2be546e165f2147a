#!/usr/bin/env python3
"""Any engine that implements GTP as an opponent of `vecaz eval`: Go, and by the usual extensions Hex, Othello and Gomoku.

    vecaz eval runs/go --against 'exec:python3 tests/opponents/gtp.py gnugo --mode gtp --chinese-rules \
        --positional-superko --never-resign --level 10'
    python3 tests/opponents/gtp.py ENGINE [ARGUMENT]...

The engine plays black as player 0 and white as player 1. It receives `boardsize`, for Go also `komi`, and every move
of the game by `play`. If a question continues the last one, only the new moves are sent; otherwise `clear_board` comes first.
In Othello a player who must pass passes without a question. Points are written as in vecaz: in Go letters without I
and rows from below, in the other games letters with I and rows from above; Hex's swap is `swap-pieces`. If the engine
resigns or plays an illegal move, the first legal action is played instead, and the number of such moves is written to
stderr at the end.

Protocol: G. Farnebäck, GTP version 2, <https://www.lysator.liu.se/~gunnar/gtp/>.
"""

import os
import subprocess
import sys

from protocol import serve

SWAP = "swap-pieces"


class Engine:
    """A GTP process and the game on its board."""

    def __init__(self, command):
        # The folder of games on Debian.
        path = os.environ.get("PATH", "") + os.pathsep + "/usr/games"
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PATH": path},
        )
        self.rules, self.moves, self.substituted = None, None, 0

    def ask(self, command):
        """The text of the answer; None if the engine refuses the command."""
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        lines = []
        while True:
            line = self.process.stdout.readline()
            if not line:
                sys.exit(f"the engine has ended at {command!r}")
            line = line.rstrip()
            if not line and lines:
                break
            if line:
                lines.append(line)
        return lines[0][1:].strip() if lines[0].startswith("=") else None

    def order(self, command):
        """A command that the engine must accept."""
        if self.ask(command) is None:
            sys.exit(f"the engine refuses {command!r}")

    def begin(self, game, options):
        """Sets up an empty board, and sends the sizes if they have changed."""
        if self.rules != (game, options):
            self.order(f"boardsize {options['size']}")
            if game == "go":
                self.order(f"komi {options['komi']}")
            self.rules = (game, options)
        self.order("clear_board")
        self.moves = []

    def follow(self, question):
        """Plays the moves to the question's position on the engine's board."""
        game, options, names = question["game"], question["options"], question["names"]
        known = self.moves
        if known is None or self.rules != (game, options) or names[: len(known)] != known:
            self.begin(game, options)
        for ply in range(len(self.moves), len(names)):
            self.play(game, "bw"[ply % 2], names[ply])
        self.moves = list(names)

    def play(self, game, colour, name):
        """Plays a move on the engine's board."""
        if game == "othello" and name == "pass":
            # Some engines know by themselves who must pass, and refuse it.
            self.ask(f"play {colour} pass")
        else:
            self.order(f"play {colour} {SWAP if name == 'swap' else name}")

    def choose(self, question):
        self.follow(question)
        if question["game"] == "othello" and question["legal_names"] == ["pass"]:
            return question["legal"][0]
        answer = (self.ask(f"genmove {'bw'[question['player']]}") or "").lower()
        answer = "swap" if answer == SWAP else answer
        for action, name in zip(question["legal"], question["legal_names"], strict=True):
            if name.lower() == answer:
                self.moves.append(name)
                return action
        self.substituted += 1
        self.moves = None
        return question["legal"][0]


def main():
    if len(sys.argv) < 2:
        sys.exit("give the engine's command")
    engine = Engine(sys.argv[1:])
    serve(engine.choose)
    engine.process.stdin.close()
    engine.process.wait()
    if engine.substituted:
        print(f"{engine.substituted} moves were played for the engine", file=sys.stderr)


if __name__ == "__main__":
    main()
