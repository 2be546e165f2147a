#!/usr/bin/env python3
"""The worth of backgammon positions with a doubling cube, by gnubg (Debian: `apt-get install gnubg`).

    python backgammon_cube.py SEED NUM > ../fixtures/backgammon_cube.jsonl

Positions of random games, the player on roll, with a random cube and score. A line has the board (the text of `backgammon.py`), how often
the cube was turned, its owner (1 the player on roll, -1 the other one, 0 neither), the points that both lack in a match (0 for money), whether it is
Crawford's game, and of gnubg's evaluation without a look ahead (0-ply) its five probabilities, and what the player on roll has without a double, and
with one that is taken: for money in points per stake, in a match as the probability of winning it, or null where nobody may double.

Positions with so few checkers that gnubg looks them up with the cube are left out.
"""

import json
import random
import subprocess
import sys
import tempfile

from backgammon import OFF, faces, gnubg_board, sequences, text, turned

START = (0, 0, 2, 0, 0, 0, 0, -5, 0, -3, 0, 0, 0, 5, -5, 0, 0, 0, 3, 0, 5, 0, 0, 0, 0, -2, 0, 0)
MAX_MONEY_DOUBLINGS = 3
# gnubg's classes of positions up to this one are looked up: two-sided bear-off databases.
TABLES = 5

# Runs inside gnubg, which embeds Python.
INSIDE = r"""
import gnubg, json
for line in ("set automatic game off", "set player 0 human", "set player 1 human", "set jacoby off", "set confirm new off", "new session",
             "set turn 1"):
    gnubg.command(line)
cubeful = {"cubeful": 1, "plies": 0, "deterministic": 1, "prune": 0, "noise": 0.0}
cubeless = dict(cubeful, cubeful=0)
out = open(%(out)r, "w")
for line in open(%(inp)r):
    case = json.loads(line)
    board = tuple(tuple(side) for side in case["board"])
    own, other = case["to_go"]
    length = max(own, other, 1)
    score = (length - other, length - own) if own else (0, 0)
    owner = {0: -1, 1: 1, -1: 0}[case["owner"]]
    cube = gnubg.cubeinfo(2 ** case["doublings"], owner, 1, length if own else 0, score, case["crawford"])
    cube["jacoby"] = cube["beavers"] = 0
    kind = gnubg.classifypos(board)
    p = gnubg.evaluate(board, cube, cubeless)[:5]
    _, no_double, take, *_ = gnubg.cfevaluate(board, cube, cubeful)
    if own:
        no_double, take = (gnubg.eq2mwc(x, cube) for x in (no_double, take))
    out.write(json.dumps([kind, p, no_double, take]) + "\n")
out.close()
"""


def positions(rng, num):
    """Boards of random games, of all stages alike."""
    found = []
    while len(found) < num:
        board, game = START, []
        while board[0] > -15:
            game.append(board)
            plays = sequences(board, faces((rng.randint(1, 6), rng.randint(1, 6))))
            board = turned(rng.choice(plays)[1])
        found += rng.sample(game, min(6, len(game)))
    return found[:num]


def case(rng, board):
    doublings, to_go, crawford = rng.randint(0, MAX_MONEY_DOUBLINGS), [0, 0], 0
    if rng.random() < 0.7:
        to_go = [rng.randint(1, 11), rng.randint(1, 11)]
        doublings = rng.randint(0, 3)
        if to_go[0] != to_go[1] and 1 in to_go and rng.random() < 0.3:
            crawford, doublings = 1, 0
    owner = 0 if doublings == 0 else rng.choice((-1, 1))
    return {"board": board, "doublings": doublings, "owner": owner, "to_go": to_go, "crawford": crawford}


def may_double(c):
    own = c["to_go"][0]
    return c["owner"] >= 0 and not c["crawford"] and (own == 0 or own > 2 ** c["doublings"])


def main(seed, num):
    rng = random.Random(seed)
    cases = [case(rng, board) for board in positions(rng, num)]
    with tempfile.TemporaryDirectory() as folder:
        inp, out, script = f"{folder}/in", f"{folder}/out", f"{folder}/ask.py"
        with open(inp, "w") as f:
            for c in cases:
                f.write(json.dumps({**c, "board": gnubg_board(c["board"])}) + "\n")
        with open(script, "w") as f:
            f.write(INSIDE % {"inp": inp, "out": out})
        with open(f"{folder}/log", "w") as log:
            subprocess.run(["gnubg", "-t", "-q", "-p", script], stdin=subprocess.DEVNULL, stdout=log, check=True)
        answers = [json.loads(line) for line in open(out)]
    for c, (kind, p, no_double, take) in zip(cases, answers, strict=True):
        if kind <= TABLES:
            continue
        line = {**c, "board": text(c["board"]), "p": [round(x, 6) for x in p], "no_double": round(no_double, 6),
                "take": round(take, 6) if may_double(c) else None}
        print(json.dumps(line, separators=(",", ":")))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
