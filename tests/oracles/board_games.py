#!/usr/bin/env python3
"""Random games of Othello, Hex and Gomoku played by OpenSpiel and pgx, one JSON line each, for tests/playthroughs.rs.

    pip install open_spiel pgx jax
    python board_games.py fixtures ../fixtures/playthroughs          # the committed files, seed 1
    python board_games.py long 2000 --seed 7 > games.jsonl           # 2000 games of every setting

Every ply lists the legal actions as the oracle gives them; the vecaz options of a line are those that mean its rules:
pgx's Othello ends a stuck game by two passes, pgx's Hex always has the swap.

`long 2000 --seed 7` with OpenSpiel 2.0.2 and pgx 2.6.0: 56,000 games, 3,400,707 plies, vecaz agrees on every legal list,
mover and result (Othello 4,000 games; Hex of every size from 3 to 19, with and without swap; Gomoku 5 to 19).
"""

import argparse
import json
import pathlib
import random
from importlib.metadata import version

SPIEL = f"open_spiel {version('open_spiel')}"
PGX = f"pgx {version('pgx')}"


def spiel_name(game, options):
    if game == "hex":
        return f"hex(board_size={options['size']},swap={options['swap']})"
    if game == "gomoku":
        return f"gomoku(size={options['size']})"
    return "othello()"


def spiel_games(game, options, num_games, rng):
    """Games by OpenSpiel, whose action numbers and player numbers are ours."""
    import pyspiel

    oracle = pyspiel.load_game(spiel_name(game, options))
    for _ in range(num_games):
        state, actions, plies = oracle.new_initial_state(), [], []
        while not state.is_terminal():
            legal = state.legal_actions()
            plies.append({"kind": "player", "to_play": state.current_player(), "legal": legal})
            actions.append(choose(game, options, legal, rng))
            state.apply_action(actions[-1])
        yield line(game, options, SPIEL, actions, plies, state.returns())


def pgx_games(game, options, num_games, rng):
    """Games by pgx in lockstep. Its players are shuffled at the start; colours alternate ply by ply."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import pgx

    env = pgx.make(game)
    step = jax.jit(jax.vmap(env.step))
    state = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.PRNGKey(rng.getrandbits(30)), num_games))
    first = np.asarray(state.current_player)
    actions, plies = [[] for _ in range(num_games)], [[] for _ in range(num_games)]
    results = [None] * num_games
    while None in results:
        masks, chosen = np.asarray(state.legal_action_mask), [0] * num_games
        for i in (i for i in range(num_games) if results[i] is None):
            legal = np.flatnonzero(masks[i]).tolist()
            plies[i].append({"kind": "player", "to_play": len(actions[i]) % 2, "legal": legal})
            chosen[i] = choose(game, options, legal, rng)
            actions[i].append(chosen[i])
        state = step(state, jnp.array(chosen, dtype=jnp.int32))
        rewards, over = np.asarray(state.rewards), np.asarray(state.terminated)
        for i in range(num_games):
            if results[i] is None and over[i]:
                results[i] = [float(rewards[i][first[i]]), float(rewards[i][1 - first[i]])]
    for i in range(num_games):
        yield line(game, options, PGX, actions[i], plies[i], results[i])


def choose(game, options, legal, rng):
    """A uniformly random action, but every second swap of Hex is taken."""
    swap = options["size"] ** 2
    if game == "hex" and swap in legal and rng.random() < 0.5:
        return swap
    return rng.choice(legal)


def line(game, options, source, actions, plies, returns):
    returns = [float(x) for x in returns]
    return {"game": game, "options": options, "source": source, "actions": actions, "plies": plies, "returns": returns}


def is_rare(game):
    """Othello that ends with free cells, or with a pass in its last six plies."""
    return len(game["actions"]) < 60 or 64 in game["actions"][-6:]


OTHELLO = {"size": 8, "end": "no_move"}
OTHELLO_PGX = {"size": 8, "end": "two_passes"}


def hex_options(size, swap):
    return {"size": size, "swap": swap}


def gomoku_options(size):
    return {"size": size, "rule": "freestyle", "opening": "none"}


def fixtures(folder, rng):
    """The committed files, each below 100 KB."""
    spiel_othello = list(spiel_games("othello", OTHELLO, 300, rng))
    pgx_othello = list(pgx_games("othello", OTHELLO_PGX, 600, rng))
    stuck = [g for g in pgx_othello if g["actions"][-2:] == [64, 64]]
    small_hex = [(3, False, 6), (3, True, 6), (4, True, 4), (5, False, 3), (7, True, 2), (8, False, 1), (9, True, 1)]
    files = {
        "othello_open_spiel": spiel_othello[:4] + [g for g in spiel_othello if is_rare(g)][:8],
        "othello_pgx": pgx_othello[:4] + stuck[:3] + [g for g in pgx_othello if is_rare(g)][:5],
        "hex_open_spiel": [
            g for size, swap, n in small_hex for g in spiel_games("hex", hex_options(size, swap), n, rng)
        ],
        "hex_open_spiel_13": list(spiel_games("hex", hex_options(13, False), 1, rng)),
        "hex_pgx": list(pgx_games("hex", hex_options(11, True), 2, rng)),
        "gomoku_open_spiel": [
            g for size, n in [(5, 6), (6, 6), (7, 4), (9, 2)] for g in spiel_games("gomoku", gomoku_options(size), n, rng)
        ],
        "gomoku_open_spiel_15": list(spiel_games("gomoku", gomoku_options(15), 1, rng)),
    }
    for name, games in files.items():
        with open(folder / f"{name}.jsonl", "w", encoding="utf-8") as out:
            out.writelines(json.dumps(game, separators=(",", ":")) + "\n" for game in games)


def long_games(num_games, rng):
    """`num_games` of every setting; of the largest boards a tenth."""
    yield from spiel_games("othello", OTHELLO, num_games, rng)
    yield from pgx_games("othello", OTHELLO_PGX, num_games, rng)
    yield from pgx_games("hex", hex_options(11, True), num_games, rng)
    for size in range(3, 20):
        for swap in (False, True):
            yield from spiel_games("hex", hex_options(size, swap), num_games if size <= 11 else num_games // 10, rng)
    for size in (5, 6, 7, 8, 9, 11, 13, 15, 19):
        yield from spiel_games("gomoku", gomoku_options(size), num_games if size <= 9 else num_games // 10, rng)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("fixtures").add_argument("folder", type=pathlib.Path)
    long = commands.add_parser("long")
    long.add_argument("games", type=int)
    long.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.command == "fixtures":
        fixtures(args.folder, random.Random(1))
    else:
        for game in long_games(args.games, random.Random(args.seed)):
            print(json.dumps(game, separators=(",", ":")))


if __name__ == "__main__":
    main()
