#!/usr/bin/env python3
"""Log-likelihood ratios of the pentanomial sequential test (GSPRT), one JSON line each, for src/eval/sprt.

    pip install scipy==1.17.1
    python sprt.py > ../fixtures/sprt.jsonl

A line has both Elo differences, the number of pairs of each score, the ratio, and its source. Lines of `fishtest` are results that
Stockfish's fishtest has published in pull requests, whose ratios have two decimals and whose hypotheses are logistic Elo differences
(written {elo0,elo1} there). Those of `scipy` are computed here as Owen's empirical likelihood ratio: of the distributions with the
expected score s, the most likely one has the log-likelihood -max_theta sum n_i log(1 + theta (a_i - s)) relative to the observed one. The
maximum is found by Brent's method and compared with the maximum of the likelihood itself under its constraints, found by SLSQP. Values
that were not seen count 0.001 pairs, as in fishtest and fastchess.
"""

import json
from importlib.metadata import version

import numpy as np
from scipy.optimize import minimize, minimize_scalar

SCORES = np.array([0.0, 0.25, 0.5, 0.75, 1.0])

# Stockfish's pull request, elo0, elo1, ratio, pairs.
PUBLISHED = [
    (3098, -0.25, 1.25, 2.96, [491, 7345, 29693, 7670, 465]),
    (3098, 0.25, 1.25, 2.97, [53, 2220, 21459, 2445, 47]),
    (3209, -0.25, 1.25, 2.94, [253, 4282, 17604, 4431, 286]),
    (3209, 0.25, 1.25, 2.97, [58, 3302, 33130, 3518, 84]),
    (2971, -0.5, 1.5, 2.96, [17, 253, 1042, 337, 39]),
    (2971, 0.25, 1.75, 2.93, [11, 407, 3238, 513, 11]),
    (2951, -0.5, 1.5, 2.95, [59, 754, 2467, 865, 75]),
    (2951, 0.25, 1.75, 2.95, [33, 1185, 8378, 1302, 50]),
    (2950, -0.5, 1.5, 2.94, [133, 1751, 5094, 1849, 165]),
    (3331, -0.25, 1.25, 2.94, [115, 2196, 11328, 2317, 136]),
    (3232, 0.25, 1.25, 2.95, [56, 2977, 37849, 3255, 51]),
]

COMPUTED = [
    (0, 20, [0, 0, 0, 0, 1]),
    (0, 20, [1, 0, 0, 0, 0]),
    (0, 20, [0, 0, 60, 0, 0]),
    (0, 20, [0, 0, 0, 0, 60]),
    (0, 20, [60, 0, 0, 0, 0]),
    (0, 20, [10, 20, 60, 30, 15]),
    (0, 20, [30, 0, 90, 0, 42]),
    (-10, 0, [7, 31, 80, 22, 5]),
    (0, 5, [1, 2, 3, 4, 5]),
    (-100, 300, [4, 9, 30, 12, 6]),
    (50, 1000, [0, 1, 0, 3, 40]),
]


def score(elo):
    return 1 / (1 + 10 ** (-elo / 400))


def loss(counts, expected):
    """The log-likelihood that the expected score costs, by the dual."""
    d = SCORES - expected
    edge = 1e-12
    found = minimize_scalar(
        lambda theta: -np.sum(counts * np.log1p(theta * d)),
        bounds=(-1 / d[-1] * (1 - edge), -1 / d[0] * (1 - edge)),
        method="bounded",
        options={"xatol": 1e-14, "maxiter": 10000},
    )
    return -found.fun


def loss_by_constraints(counts, expected):
    shares = counts / counts.sum()
    found = minimize(
        lambda p: -np.sum(shares * np.log(p / shares)),
        np.full(5, 0.2),
        method="SLSQP",
        bounds=[(1e-12, 1)] * 5,
        constraints=[
            {"type": "eq", "fun": lambda p: p.sum() - 1},
            {"type": "eq", "fun": lambda p: p @ SCORES - expected},
        ],
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    return counts.sum() * found.fun


def llr(elo0, elo1, pairs, of=loss):
    counts = np.array([n if n else 1e-3 for n in pairs])
    return of(counts, score(elo0)) - of(counts, score(elo1))


def main():
    for pull, elo0, elo1, ratio, pairs in PUBLISHED:
        assert abs(llr(elo0, elo1, pairs) - ratio) < 0.006, (pull, ratio, llr(elo0, elo1, pairs))
        line = {"elo0": elo0, "elo1": elo1, "pairs": pairs, "llr": ratio}
        print(json.dumps(line | {"source": f"fishtest, Stockfish #{pull}"}))
    for elo0, elo1, pairs in COMPUTED:
        ratio = llr(elo0, elo1, pairs)
        other = llr(elo0, elo1, pairs, loss_by_constraints)
        assert abs(ratio - other) < 1e-3 * max(1, abs(ratio)), (pairs, ratio, other)
        line = {"elo0": elo0, "elo1": elo1, "pairs": pairs, "llr": round(ratio, 9)}
        print(json.dumps(line | {"source": f"scipy {version('scipy')}"}))


if __name__ == "__main__":
    main()
