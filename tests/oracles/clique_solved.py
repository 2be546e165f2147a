#!/usr/bin/env python3
"""Solves the clique game on K_6 with triangles and compares the scores of ../../assets/positions/clique.jsonl.

    python clique_solved.py

The first player with a triangle wins; a full board without one is a draw. Positions are numbers in base 3, one digit an edge, and every
one that can be reached is solved once. A score is (17 - plies at the end) / 2, rounded down, positive if the player to move wins after the
action, negative if he loses, 0 for a draw. Prints how many positions can be reached, up to permutations of the vertices, and how many of them are in the
file; exits with an error at the first score that differs.
"""

import itertools
import json
import sys
from functools import lru_cache
from pathlib import Path

EDGES = list(itertools.combinations(range(6), 2))
NUMBER = {edge: number for number, edge in enumerate(EDGES)}
TRIANGLES_OF = [
    [frozenset(NUMBER[pair] for pair in itertools.combinations(corners, 2)) - {number}
     for corners in itertools.combinations(range(6), 3) if set(edge) <= set(corners)]
    for number, edge in enumerate(EDGES)
]
IMAGES = [
    [NUMBER[tuple(sorted((vertices[a], vertices[b])))] for a, b in EDGES]
    for vertices in itertools.permutations(range(6))
]


def wins(board, edge):
    """Whether taking `edge` completes a triangle of the player to move. `board`: 0 free, 1 and 2 the players'. [15]"""
    mover = 1 + sum(1 for owner in board if owner) % 2
    return any(all(board[other] == mover for other in triangle) for triangle in TRIANGLES_OF[edge])


def after(board, edge):
    mover = 1 + sum(1 for owner in board if owner) % 2
    return board[:edge] + (mover,) + board[edge + 1:]


def score(board, edge):
    """The score of `edge` for the player to move."""
    plies = 1 + sum(1 for owner in board if owner)
    if wins(board, edge):
        return (17 - plies) // 2
    return -best(after(board, edge))


@lru_cache(maxsize=None)
def best(board):
    """The best score of the player to move; 0 for a full board."""
    return max((score(board, edge) for edge, owner in enumerate(board) if not owner), default=0)


def least_image(board):
    return min(tuple(board[number] for number in image) for image in IMAGES)


def classes():
    """The positions in which a player is to move, one of each set of images under permutations of the vertices."""
    layer, found = {least_image((0,) * 15)}, set()
    while layer:
        found |= layer
        layer = {
            least_image(after(board, edge))
            for board in layer
            for edge, owner in enumerate(board)
            if not owner and not wins(board, edge) and 0 in after(board, edge)
        }
    return found


def main():
    path = Path(__file__).resolve().parents[2] / "assets/positions/clique.jsonl"
    reached, listed = classes(), set()
    for line in path.read_text().splitlines():
        position = json.loads(line)
        board = (0,) * 15
        for action in position["actions"]:
            board = after(board, action)
        scores = [None if owner else score(board, edge) for edge, owner in enumerate(board)]
        if scores != position["scores"]:
            sys.exit(f"after {position['actions']}: {position['scores']} in the file, found {scores}")
        listed.add(least_image(board))
    print(f"{len(reached)} positions, {len(listed & reached)} of them in the file; the empty board: {best((0,) * 15):+d}")


if __name__ == "__main__":
    main()
