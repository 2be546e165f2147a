#!/usr/bin/env python3
"""GNU Backgammon as an opponent of `vecaz eval` (Debian: `apt-get install gnubg`).

    vecaz eval runs/backgammon --against 'exec:python3 tests/opponents/gnubg.py' --opening-plies 0 --games 200
    python3 tests/opponents/gnubg.py [PLIES]     # PLIES: search depth of gnubg, 0 to 3 (0)

gnubg is asked once a turn, for cubeless money play (gammons and backgammons count, no Jacoby rule), and ranks the moves of
the whole turn. vecaz plays one die at a time, so the answer is the first die of the best ranked turn that begins with the
dice already played in this turn. The rules of single dice are those of `tests/oracles/backgammon.py`.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "oracles"))

from backgammon import OFF, ROLLS, faces, gnubg_board, gnubg_end, number, play, sequences, turned  # noqa: E402
from protocol import serve  # noqa: E402

START = (0, 0, 2, 0, 0, 0, 0, -5, 0, -3, 0, 0, 0, 5, -5, 0, 0, 0, 3, 0, 5, 0, 0, 0, 0, -2, 0, 0)
SHORT_START = (0, 0, 0, -1, -3, 0, 2, -3, 0, -3, -2, 0, 0, -1, 1, 0, 0, 2, 3, 0, 3, -2, 0, 3, 1, 0, 0, 0)

# Runs inside gnubg, which embeds Python. The output of gnubg is discarded; questions and answers have separate pipes.
INSIDE = r"""
import gnubg, json, os
for line in ("set automatic game off", "set automatic roll off", "set automatic move off", "set automatic bearoff off",
             "set player 0 human", "set player 1 human", "set jacoby off", "set cube use off",
             "set evaluation chequerplay evaluation plies %(plies)d", "set evaluation chequerplay evaluation cubeful off",
             "set confirm new off", "new session", "set turn 1"):
    gnubg.command(line)
questions, answers = os.fdopen(%(read)d, "r"), os.fdopen(%(write)d, "w")
while True:
    line = questions.readline()
    if not line:
        break
    board, roll = json.loads(line)
    gnubg.command("set turn 1")
    gnubg.command("set board " + gnubg.positionid((tuple(board[0]), tuple(board[1]))))
    gnubg.command("set dice %%d %%d" %% tuple(roll))
    try:
        moves = [hint["move"] for hint in gnubg.hint(5000)["hint"]]
    except Exception as error:
        moves = []
    answers.write(json.dumps(moves) + "\n")
    answers.flush()
"""


class Gnubg:
    """A gnubg process that ranks the moves of a position and a roll."""

    def __init__(self, plies):
        inner_read, outer_write = os.pipe()
        outer_read, inner_write = os.pipe()
        self.folder = tempfile.TemporaryDirectory()
        script = Path(self.folder.name) / "inside.py"
        script.write_text(INSIDE % {"plies": plies, "read": inner_read, "write": inner_write})
        # The folder of games on Debian.
        path = os.environ.get("PATH", "") + os.pathsep + "/usr/games"
        self.process = subprocess.Popen(
            ["gnubg", "-t", "-q", "-p", str(script)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(inner_read, inner_write),
            env={**os.environ, "PATH": path},
        )
        os.close(inner_read)
        os.close(inner_write)
        self.questions, self.answers = os.fdopen(outer_write, "w"), os.fdopen(outer_read, "r")
        self.ranked = {}

    def ends(self, board, roll):
        """The boards at the end of the turn, best first."""
        key = (board, roll)
        if key not in self.ranked:
            self.questions.write(json.dumps([gnubg_board(board), list(roll)]) + "\n")
            self.questions.flush()
            line = self.answers.readline()
            if not line:
                sys.exit("gnubg has ended")
            self.ranked = {key: [gnubg_end(board, move) for move in json.loads(line)]}
        return self.ranked[key]


def replay(question):
    """The board and the roll at the start of the present turn, and the (place, die) played since."""
    board = SHORT_START if question["options"]["short_game"] else START
    starter, *rest = question["actions"]
    roll, left, path, start = None, [], (), board
    for action in rest:
        if not left:
            roll = ROLLS[action]
            left, path, start = faces(roll), (), board
            continue
        if action >= 6:
            place, die = action // 6, action % 6 + 1
            board = play(board, place, die)
            left.remove(die)
            path += ((place, die),)
        if action < 6 or not left:
            board, left = turned(board), []
    return start, roll, path


def main():
    gnubg = Gnubg(int(sys.argv[1]) if len(sys.argv) > 1 else 0)

    def choose(question):
        board, roll, path = replay(question)
        plays = sequences(board, faces(roll))
        for best in gnubg.ends(board, roll):
            for whole, end in plays:
                if end == best and whole[: len(path)] == path and len(whole) > len(path):
                    return number(*whole[len(path)])
        sys.exit(f"gnubg knows no move for {board} {roll} {path}")

    serve(choose)


if __name__ == "__main__":
    main()
