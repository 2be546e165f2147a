#!/usr/bin/env python3
"""Whole games of the clique game, judged by networkx: after every ply all cliques of the mover's graph are searched.

    pip install networkx
    python clique.py SEED NUM > ../fixtures/playthroughs/clique.jsonl

Games are random; where cliques are to be avoided a player avoids losing edges where possible, so that full boards
come about. `finding` is what the game should say is worth saving, null where there is nothing.

A longer run made once, `clique.py 1234 5600` with networkx 3.6.1: 5,600 games, no difference found.
"""

import itertools
import json
import random
import sys

import networkx as nx

# The modes in which a clique is to be avoided.
AVOIDED = ("avoid_clique", "ramsey")


def has_clique(graph, k):
    return any(len(clique) >= k for clique in nx.find_cliques(graph))


def graph6(graph):
    return nx.to_graph6_bytes(graph, header=False).decode().strip()


def outcome(mode, mover, made, lasted):
    """The returns, None while the game goes on. `lasted`: the share of the edges that is claimed."""
    if made and mode == "ramsey":
        return [lasted - 1, lasted - 1]
    if made and mode == "avoid_clique":
        return [1, -1] if mover == 1 else [-1, 1]
    if made and mode == "symmetric":
        return [1, -1] if mover == 0 else [-1, 1]
    if made and mode == "asymmetric" and mover == 0:
        return [1, -1]
    if lasted == 1:
        return {"asymmetric": [-1, 1], "ramsey": [1, 1]}.get(mode, [0, 0])
    return None


def made_by(graph, edge, k):
    graph.add_edge(*edge)
    made = has_clique(graph, k)
    graph.remove_edge(*edge)
    return made


def game(rng, n, k, mode):
    edges = list(itertools.combinations(range(n), 2))
    graphs = [nx.empty_graph(n), nx.empty_graph(n)]
    free, actions, plies, result = list(range(len(edges))), [], [], None
    while result is None:
        mover = len(actions) % 2
        plies.append({"kind": "player", "to_play": mover, "legal": list(free)})
        choice = list(free)
        rng.shuffle(choice)
        action = choice[0]
        if mode in AVOIDED:
            action = next((a for a in choice if not made_by(graphs[mover], edges[a], k)), action)
        free.remove(action)
        actions.append(action)
        graphs[mover].add_edge(*edges[action])
        result = outcome(mode, mover, has_clique(graphs[mover], k), len(actions) / len(edges))
    finding = None
    if mode in AVOIDED and result in ([0, 0], [1, 1]):
        finding = {
            "n": n,
            "k": k,
            "graph6": [graph6(g) for g in graphs],
            "edges": [sorted([list(sorted(e)) for e in g.edges]) for g in graphs],
        }
    return {
        "game": "clique",
        "options": {"n": n, "k": k, "mode": mode},
        "source": f"networkx {nx.__version__}",
        "actions": actions,
        "plies": plies,
        "returns": result,
        "finding": finding,
    }


def main(seed, num):
    rng = random.Random(seed)
    sizes = [(3, 3), (4, 3), (5, 3), (6, 3), (7, 4), (8, 5), (9, 4), (11, 4), (13, 5), (17, 4)]
    modes = ("symmetric", "asymmetric", *AVOIDED)
    cases = [(n, k, mode) for n, k in sizes for mode in modes if n < 17 or mode in AVOIDED]
    for i in range(num):
        print(json.dumps(game(rng, *cases[i % len(cases)]), separators=(",", ":")))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
