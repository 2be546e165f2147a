#!/usr/bin/env python3
"""Backgammon fixtures out of OpenSpiel, with pgx and gnubg as further witnesses.

    pip install open_spiel pgx jax
    python backgammon.py games  SEED NUM  > ../fixtures/playthroughs/backgammon.jsonl
    python backgammon.py turns  SEED NUM  > ../fixtures/backgammon_turns.jsonl
    python backgammon.py pgx    SEED NUM          # legal masks against pgx, prints counts
    python backgammon.py gnubg  FILE OUT          # turns of FILE again, answered by gnubg (must be installed)

`games` are whole games, ply by ply. OpenSpiel plays two dice at once, so the one-die plies of a turn are found by trying
all orders of single dice here; that search is believed only where its end positions are OpenSpiel's, at every turn.

`turns` are positions met in random games, a roll, and the positions at the end of the turn, as a count and a CRC-32 of
the sorted lines. A position is 28 characters in the mover's direction of travel (other's off, own bar, 24-point .. 1-point,
other's bar, own off): `.` for none, a, b, .. for 1, 2, .. own checkers, A, B, .. for the other's.

Longer runs made once, no difference found: 6,000 turns (`turns 11 6000`) with gnubg 1.07 and OpenSpiel 2.0.2 alike, and
vecaz like both; 396 whole games (`games 77 396`), 125,196 plies
with legal lists and returns; 21,799 one-die
plies against pgx 2.6.0 (`pgx 9 100`), equal but for 79 where pgx does not see that both dice could be played.
"""

import json
import random
import subprocess
import sys
import tempfile
import zlib

ROLLS = [(a, b) for a in range(1, 7) for b in range(a, 7)]
BAR, OTHER_BAR, OFF, OTHER_OFF = 1, 26, 27, 0


def spiel_board(state, mover):
    """OpenSpiel's board in our 28 indices."""
    board = [0] * 28
    for player, sign in ((mover, 1), (1 - mover, -1)):
        for pos in range(24):
            n = state.board(player, pos)
            if n:
                board[pos + 2 if mover == 0 else 25 - pos] = sign * n
        bar = state.board(player, 100)
        off = 15 - bar - sum(state.board(player, pos) for pos in range(24))
        board[BAR if sign == 1 else OTHER_BAR] = sign * bar
        board[OFF if sign == 1 else OTHER_OFF] = sign * off
    return tuple(board)


def spiel_dice(state):
    line = next(line for line in str(state).splitlines() if line.startswith("Dice:"))
    return tuple(sorted(int(c) for c in line.split(":")[1].strip()))


def spiel_ends(state, mover):
    """{end board: one list of OpenSpiel actions that leads there}."""
    ends = {}
    for action in state.legal_actions():
        after = state.child(action)
        if not after.is_terminal() and not after.is_chance_node() and after.current_player() == mover:
            for board, more in spiel_ends(after, mover).items():
                ends.setdefault(board, [action] + more)
        else:
            ends.setdefault(spiel_board(after, mover), [action])
    return ends


def single(board, die):
    """Indices from which one die alone can be played."""
    def open_(place):
        return board[place] >= -1
    if board[BAR] > 0:
        return [BAR] if open_(BAR + die) else []
    home = all(n <= 0 for n in board[1:20])
    out = []
    for place in range(2, 26):
        if board[place] <= 0:
            continue
        if place + die <= 25:
            if open_(place + die):
                out.append(place)
        elif home and (place + die == 26 or all(n <= 0 for n in board[20:place])):
            out.append(place)
    return out


def play(board, place, die):
    board = list(board)
    board[place] -= 1
    target = place + die
    if target > 25:
        board[OFF] += 1
    elif board[target] == -1:
        board[target] = 1
        board[OTHER_BAR] -= 1
    else:
        board[target] += 1
    return tuple(board)


def sequences(board, dice):
    """All maximal plays of single dice as (((place, die), ..), end board), by trying everything."""
    out = []

    def walk(board, dice, path):
        moved = False
        for die in sorted(set(dice)):
            for place in single(board, die):
                moved = True
                left = list(dice)
                left.remove(die)
                walk(play(board, place, die), left, path + ((place, die),))
        if not moved:
            out.append((path, board))

    walk(board, dice, ())
    most = max(len(path) for path, _ in out)
    best = [(path, end) for path, end in out if len(path) == most]
    if most == 1 and len(dice) == 2:
        high = max(path[0][1] for path, _ in best)
        best = [(path, end) for path, end in best if path[0][1] == high]
    return best


def faces(roll):
    return [roll[0]] * 4 if roll[0] == roll[1] else list(roll)


def turned(board):
    return tuple(-n for n in reversed(board))


def text(board):
    return "".join("." if n == 0 else chr(96 + n) if n > 0 else chr(64 - n) for n in board)


def number(place, die):
    return place * 6 + die - 1


def new_game():
    import pyspiel
    return pyspiel.load_game("backgammon(scoring_type=full_scoring)").new_initial_state()


def one_game(rng, on_turn):
    """A random OpenSpiel game; on_turn(state, mover, board, roll, ends) chooses the end board."""
    state = new_game()
    while not state.is_terminal():
        if state.is_chance_node():
            outcomes, probs = zip(*state.chance_outcomes())
            state.apply_action(rng.choices(outcomes, probs)[0])
            continue
        mover = state.current_player()
        ends = spiel_ends(state, mover)
        end = on_turn(state, mover, spiel_board(state, mover), spiel_dice(state), ends)
        for action in ends[end]:
            state.apply_action(action)
    return state


def games(seed, num):
    rng = random.Random(seed)
    for _ in range(num):
        actions, plies = [], []

        def ply(kind, to_play, legal, action):
            plies.append({"kind": kind, "to_play": to_play, "legal": legal})
            actions.append(action)

        def turn(state, mover, board, roll, ends):
            doubles = [i for i, (a, b) in enumerate(ROLLS) if a == b]
            if not actions:
                ply("chance", None, [0, 1], mover)
                ply("chance", None, [i for i in range(21) if i not in doubles], ROLLS.index(roll))
            else:
                ply("chance", None, list(range(21)), ROLLS.index(roll))
            all_plays = sequences(board, faces(roll))
            assert {end for _, end in all_plays} == set(ends), (board, roll)
            end = rng.choice(sorted(ends))
            path = rng.choice([path for path, e in all_plays if e == end])
            now, left = [p for p, _ in all_plays], faces(roll)
            for i, (place, die) in enumerate(path):
                ply("player", mover, sorted({number(*p[i]) for p in now}), number(place, die))
                now = [p for p in now if p[i] == (place, die)]
                left.remove(die)
            if left and end[OFF] < 15:
                ply("player", mover, [0], 0)
            return end

        state = one_game(rng, turn)
        line = {
            "game": "backgammon",
            "options": {},
            "source": "open_spiel 2.0.2",
            "actions": actions,
            "plies": plies,
            "returns": [r / 3 for r in state.returns()],
        }
        print(json.dumps(line, separators=(",", ":")))


def turn_line(board, roll, ends):
    lines = sorted(text(end) for end in ends)
    return {
        "board": text(board),
        "roll": f"{roll[1]}{roll[0]}",
        "ends": len(lines),
        "crc32": zlib.crc32("\n".join(lines).encode()),
    }


def turns(seed, num):
    """Half of the turns as they come, half of those with a rule at work: bar, bearing off, a die that cannot be used."""
    rng = random.Random(seed)
    left = {"plain": num - num // 2, "special": num // 2}

    def turn(state, mover, board, roll, ends):
        home = all(n <= 0 for n in board[1:20])
        plays = sequences(board, faces(roll))
        used = len(plays[0][0])
        firsts = {path[0] for path, _ in plays if path}
        dropped = used > 0 and len(firsts) < sum(len(single(board, die)) for die in set(roll))
        special = dropped or (board[BAR] > 0 and 0 < used < 4) or home or 0 < used < len(faces(roll))
        kind = "special" if special else "plain"
        chosen = rng.random() < (1.0 if dropped else 0.15)
        if left[kind] > 0 and chosen:
            left[kind] -= 1
            print(json.dumps(turn_line(board, roll, ends), separators=(",", ":")))
        return rng.choice(sorted(ends))

    while any(left.values()):
        one_game(rng, turn)


def against_pgx(seed, num):
    """At every one-die ply of random games: is our list inside pgx's mask, and where is it smaller?"""
    import jax
    import jax.numpy as jnp
    from pgx.backgammon import _legal_action_mask

    mask_of = jax.jit(_legal_action_mask)
    rng = random.Random(seed)
    counts = {"plies": 0, "equal": 0, "pgx lists more (rule of both dice)": 0, "wrong": 0}

    def turn(state, mover, board, roll, ends):
        plays = sequences(board, faces(roll))
        path = rng.choice(plays)[0]
        now, left, at = [p for p, _ in plays], faces(roll), board
        for i in range(len(path) + 1):
            if i == len(path) and (not left or at[OFF] == 15):
                break
            mine = {number(*p[i]) for p in now} if i < len(path) else set(range(6))
            pgx_board = list(at[2:26]) + [at[BAR], at[OTHER_BAR], at[OFF], at[OTHER_OFF]]
            dice = [d - 1 for d in left] + [-1] * (4 - len(left))
            mask = mask_of(jnp.array(pgx_board, jnp.int32), jnp.array(dice, jnp.int32))
            theirs = {int(a) for a in mask.nonzero()[0]}
            counts["plies"] += 1
            if mine == theirs:
                counts["equal"] += 1
            elif mine < theirs and i == 0 and roll[0] != roll[1]:
                counts["pgx lists more (rule of both dice)"] += 1
            else:
                counts["wrong"] += 1
                print("differs", text(at), left, sorted(mine), sorted(theirs))
            if i < len(path):
                now = [p for p in now if p[i] == path[i]]
                at = play(at, *path[i])
                left.remove(path[i][1])
        return rng.choice(sorted(ends))

    for _ in range(num):
        one_game(rng, turn)
    print(json.dumps(counts))


def untext(line):
    return tuple(0 if c == "." else ord(c) - 96 if c >= "a" else 64 - ord(c) for c in line)


GNUBG = r"""
import gnubg, json
for line in ("set automatic game off", "set automatic roll off", "set automatic move off", "set automatic bearoff off",
             "set player 0 human", "set player 1 human", "set evaluation chequerplay evaluation plies 0",
             "set confirm new off", "new session", "set turn 1"):
    gnubg.command(line)
out = open(%(out)r, "w")
for line in open(%(inp)r):
    board, roll = json.loads(line)
    gnubg.command("set turn 1")
    gnubg.command("set board " + gnubg.positionid((tuple(board[0]), tuple(board[1]))))
    gnubg.command("set dice %%d %%d" %% tuple(roll))
    try:
        moves = [h["move"] for h in gnubg.hint(5000)["hint"]]
    except Exception as error:
        moves = []
    out.write(json.dumps(moves) + "\n")
out.close()
"""


def gnubg_board(board):
    """gnubg's two lists of 25 (1-point .. 24-point, bar), the player on roll second."""
    own = [max(board[25 - i], 0) for i in range(24)] + [board[BAR]]
    other = [max(-board[2 + i], 0) for i in range(24)] + [-board[OTHER_BAR]]
    return [other, own]


def gnubg_end(board, move):
    """Plays gnubg's words, such as `bar/21*/15 6/4(2)`."""
    for part in move.split():
        times = 1
        if "(" in part:
            part, count = part.split("(")
            times = int(count.rstrip(")"))
        stops = [s.rstrip("*") for s in part.split("/")]
        indices = [BAR if s == "bar" else OFF if s == "off" else 26 - int(s) for s in stops]
        for _ in range(times):
            for source, target in zip(indices, indices[1:]):
                board = play(board, source, min(target, 26) - source if target != OFF else 26 - source)
    return board


def against_gnubg(path, out):
    cases = [json.loads(line) for line in open(path)]
    with tempfile.TemporaryDirectory() as folder:
        inp, answers = f"{folder}/in", f"{folder}/out"
        with open(inp, "w") as f:
            for case in cases:
                roll = [int(c) for c in case["roll"]]
                f.write(json.dumps([gnubg_board(untext(case["board"])), roll]) + "\n")
        script = f"{folder}/ask.py"
        with open(script, "w") as f:
            f.write(GNUBG % {"inp": inp, "out": answers})
        with open(f"{folder}/log", "w") as log:
            subprocess.run(["gnubg", "-t", "-q", "-p", script], stdin=subprocess.DEVNULL, stdout=log, check=True)
        moves = [json.loads(line) for line in open(answers)]
    different = 0
    with open(out, "w") as f:
        for case, lines in zip(cases, moves, strict=True):
            board = untext(case["board"])
            ends = {gnubg_end(board, move) for move in lines} or {board}
            roll = sorted(int(c) for c in case["roll"])
            answer = turn_line(board, roll, ends)
            f.write(json.dumps(answer, separators=(",", ":")) + "\n")
            if answer != case:
                different += 1
                print("differs", case, answer["ends"], lines[:5])
    print(json.dumps({"turns": len(cases), "different": different}))


if __name__ == "__main__":
    what, first, second = sys.argv[1:4]
    if what == "gnubg":
        against_gnubg(first, second)
    else:
        {"games": games, "turns": turns, "pgx": against_pgx}[what](int(first), int(second))
