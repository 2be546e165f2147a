#!/usr/bin/env python3
"""GNU Backgammon as an opponent of `vecaz eval` (Debian: `apt-get install gnubg`).

    vecaz eval runs/backgammon --against 'exec:python3 tests/opponents/gnubg.py' --opening-plies 0 --games 200
    python3 tests/opponents/gnubg.py [PLIES]     # PLIES: search depth of gnubg, 0 to 3 (0)

gnubg is asked once a turn, for money play (gammons and backgammons count, no Jacoby rule) or for the match of the game's settings, and answers
with the move of the whole turn, or with what it does with the cube. Without `game.cube` it evaluates as if there was none. vecaz plays one die at a
time, so the answer is the first die of the best turn that begins with the dice already played in this turn. The rules of single dice are those of
`tests/oracles/backgammon.py`.
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
             "set player 0 human", "set player 1 human", "set jacoby off",
             "set evaluation chequerplay evaluation plies %(plies)d", "set evaluation chequerplay evaluation cubeful off",
             "set confirm new off", "new session", "set turn 1"):
    gnubg.command(line)
evaluation = {"cubeful": 1, "plies": %(plies)d, "deterministic": 1, "prune": 1, "noise": 0.0}

def cubeless_moves(board, roll):
    gnubg.command("set turn 1")
    gnubg.command("set board " + gnubg.positionid(board))
    gnubg.command("set dice %%d %%d" %% roll)
    try:
        return [hint["move"] for hint in gnubg.hint(5000)["hint"]]
    except Exception:
        return []

def answer(board, roll, cube):
    board = tuple(tuple(side) for side in board)
    if cube is None:
        return cubeless_moves(board, tuple(roll))
    info = gnubg.cubeinfo(cube["stake"], cube["owner"], 1, cube["match_points"], tuple(cube["score"]), cube["crawford"])
    info["jacoby"] = info["beavers"] = 0
    if roll is None:
        return gnubg.cfevaluate(board, info, evaluation)[1:4]
    move = gnubg.findbestmove(board, info, dict(evaluation, cubeful=cube["cubeful"]), tuple(roll))
    return [gnubg.movetupletostring(move, board)] if move else []

questions, answers = os.fdopen(%(read)d, "r"), os.fdopen(%(write)d, "w")
while True:
    line = questions.readline()
    if not line:
        break
    answers.write(json.dumps(answer(**json.loads(line))) + "\n")
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
        self.last = (None, None)

    def ask(self, table, roll):
        """The moves of `roll`, best first; without a roll what the player on roll has without a double, and after a double that is taken, or passed."""
        question = {"board": gnubg_board(table.turn_board), "roll": roll, "cube": table.cube_info()}
        if self.last[0] != question:
            self.questions.write(json.dumps(question) + "\n")
            self.questions.flush()
            line = self.answers.readline()
            if not line:
                sys.exit("gnubg has ended")
            self.last = (question, json.loads(line))
        return self.last[1]


class Table:
    """A game, or a match, as far as it was played."""

    def __init__(self, options):
        self.start = SHORT_START if options["short_game"] else START
        self.has_cube, self.match_points = options["cube"], options["match_points"]
        self.score, self.max_score = [0, 0], 0
        self.new_game(self.match_points == 1)

    def new_game(self, is_crawford):
        self.board = self.turn_board = self.start  # seen by the player on roll
        self.phase, self.crawford, self.stake, self.owner = "starter", int(is_crawford), 1, None

    def cube_info(self):
        """The cube as gnubg has it, the player on roll being its player 1; None for play without cube and score."""
        if not self.has_cube and self.match_points == 0:
            return None
        mover = self.mover
        owner = -1 if self.owner is None else int(self.owner == mover)
        score = [self.score[1 - mover], self.score[mover]]
        return {"cubeful": int(self.has_cube), "stake": self.stake, "owner": owner, "match_points": self.match_points, "score": score,
                "crawford": self.crawford}

    def may_double(self):
        wins = self.match_points and self.score[self.mover] + self.stake >= self.match_points
        return self.has_cube and self.owner in (None, self.mover) and not self.crawford and self.stake < 64 and not wins

    def end_game(self, points):
        self.score[self.mover] += points * self.stake
        before, self.max_score = self.max_score, max(self.score)
        self.new_game(before < self.match_points - 1 == self.max_score)

    def end_turn(self):
        self.board, self.mover = turned(self.board), 1 - self.mover
        self.turn_board = self.board
        self.phase = "double" if self.may_double() else "roll"

    def step(self, action):
        if self.phase == "starter":
            self.mover, self.phase = action, "roll"
        elif self.phase == "roll":
            self.roll, self.phase, self.path = ROLLS[action], "move", ()
            self.left = faces(self.roll)
        elif self.phase == "double":
            self.phase = "take" if action == 1 else "roll"
        elif self.phase == "take" and action == 1:
            self.end_game(1)
        elif self.phase == "take":
            self.stake, self.owner, self.phase = 2 * self.stake, 1 - self.mover, "roll"
        elif action < 6:
            self.end_turn()
        else:
            place, die = action // 6, action % 6 + 1
            self.board = play(self.board, place, die)
            self.left.remove(die)
            self.path += ((place, die),)
            if self.board[OFF] == 15:
                has_borne_off, is_back = self.board[0] < 0, any(n < 0 for n in self.board[20:27])
                self.end_game(1 if has_borne_off else 3 if is_back else 2)
            elif not self.left:
                self.end_turn()


def main():
    gnubg = Gnubg(int(sys.argv[1]) if len(sys.argv) > 1 else 0)

    def choose(question):
        table = Table(question["options"])
        for action in question["actions"]:
            table.step(action)
        if table.phase in ("double", "take"):
            no_double, take, drop = gnubg.ask(table, None)
            return int(min(take, drop) > no_double) if table.phase == "double" else int(take > drop)
        plays = sequences(table.turn_board, faces(table.roll))
        ends = [gnubg_end(table.turn_board, move) for move in gnubg.ask(table, table.roll)]
        for best in ends:
            for whole, end in plays:
                if end == best and whole[: len(table.path)] == table.path and len(whole) > len(table.path):
                    return number(*whole[len(table.path)])
        sys.exit(f"gnubg knows no move for {table.turn_board} {table.roll} {table.path}")

    serve(choose)


if __name__ == "__main__":
    main()
