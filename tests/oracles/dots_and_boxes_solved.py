#!/usr/bin/env python3
"""Solves Dots and Boxes on 3x3 boxes and writes positions with the exact score of each action, for `vecaz eval` and runs.

    pip install open_spiel numpy
    python dots_and_boxes_solved.py > ../../games/positions/dots_and_boxes.jsonl    # 300 positions, seed 1

The future of a position depends on its set of lines alone: the margin of the player to move is the best, over all lines, of the boxes
that the line closes plus the margin of the same player after it, or minus that of the other if it closes none. All 2^24 sets are solved
backwards, by the number of lines; the value of the empty board is printed to stderr (Barker and Korf 2012 solve larger boards).
Positions come from games of OpenSpiel by a player who takes boxes and gives none away where that is possible, but for one line in ten; in
nine of ten positions some actions are wrong. A score is positive if the player to move wins after the action, 0 if it draws,
negative if it loses: all games are equally long.
"""

import argparse
import json
import random
import sys

import numpy as np
import pyspiel

ROWS = COLUMNS = 3
HORIZONTAL = (ROWS + 1) * COLUMNS
LINES = HORIZONTAL + ROWS * (COLUMNS + 1)
FULL = (1 << LINES) - 1


def boxes():
    """The four lines of each box, as bits."""
    for row in range(ROWS):
        for column in range(COLUMNS):
            above = row * COLUMNS + column
            left = HORIZONTAL + row * (COLUMNS + 1) + column
            yield 1 << above | 1 << above + COLUMNS | 1 << left | 1 << left + 1


BOXES = list(boxes())


def solve():
    """The margin of the player to move for every set of lines. [2^LINES]"""
    sets = np.arange(1 << LINES, dtype=np.uint32)
    counts = np.zeros(1 << LINES, dtype=np.uint8)
    for line in range(LINES):
        counts += (sets >> line & 1).astype(np.uint8)
    by_count = np.split(np.argsort(counts, kind="stable").astype(np.uint32), np.cumsum(np.bincount(counts))[:-1])
    margins = np.zeros(1 << LINES, dtype=np.int8)
    for positions in reversed(by_count[:-1]):
        best = np.full(len(positions), -128, dtype=np.int8)
        for line in range(LINES):
            free = np.flatnonzero(positions >> line & 1 == 0)
            after = positions[free] | np.uint32(1 << line)
            closed = np.zeros(len(free), dtype=np.int8)
            for box in (box for box in BOXES if box >> line & 1):
                closed += (after & box) == box
            value = np.where(closed > 0, closed + margins[after], -margins[after])
            best[free] = np.maximum(best[free], value)
        margins[positions] = best
    return margins


def closes(lines, line):
    return sum(box >> line & 1 and (lines | 1 << line) & box == box for box in BOXES)


def scored(margins, actions):
    """The score of each action after `actions`."""
    lines, lead, to_play = 0, [0, 0], 0
    for line in actions:
        closed = closes(lines, line)
        lines |= 1 << line
        lead[to_play] += closed
        to_play = to_play if closed else 1 - to_play
    scores = []
    for line in range(LINES):
        if lines >> line & 1:
            scores.append(None)
            continue
        closed, after = closes(lines, line), int(margins[lines | 1 << line])
        margin = lead[to_play] - lead[1 - to_play] + (closed + after if closed else -after)
        # As in the other solved sets: half the plies that are left.
        scores.append(((margin > 0) - (margin < 0)) * ((LINES - len(actions) + 1) // 2))
    return scores


def position(rng):
    """A random position, as the actions that lead there."""
    state = pyspiel.load_game("dots_and_boxes(num_rows=3,num_cols=3)").new_initial_state()
    plies = rng.randrange(4, LINES - 4)
    lines, actions = 0, []
    for _ in range(plies):
        legal = state.legal_actions()
        closing = [a for a in legal if closes(lines, a)]
        safe = [a for a in legal if all(bin((lines | 1 << a) & b).count("1") != 3 for b in BOXES if b >> a & 1)]
        greedy = closing or safe or legal
        actions.append(rng.choice(greedy if rng.random() < 0.9 else legal))
        lines |= 1 << actions[-1]
        state.apply_action(actions[-1])
    return actions


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--positions", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    margins = solve()
    print(f"the empty board: {margins[0]} for the first player", file=sys.stderr)
    rng, seen, written = random.Random(args.seed), set(), [0, 0]
    while sum(written) < args.positions:
        actions = position(rng)
        scores = scored(margins, actions)
        is_choice = len({score for score in scores if score is not None}) > 1
        if tuple(sorted(actions)) in seen or written[is_choice] >= args.positions * (9 if is_choice else 1) // 10:
            continue
        seen.add(tuple(sorted(actions)))
        written[is_choice] += 1
        print(json.dumps({"actions": actions, "scores": scores}, separators=(",", ":")))


if __name__ == "__main__":
    main()
