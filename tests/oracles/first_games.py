#!/usr/bin/env python3
"""Random games of tic-tac-toe and Connect Four played by OpenSpiel and pgx, one JSON line each, for tests/playthroughs.rs.

    python first_games.py fixtures ../fixtures/playthroughs    # the committed files, seed 1
    python first_games.py --seed 7 long 1000 > games.jsonl     # 1000 games of every setting

`--seed 7 long 1000` with OpenSpiel 2.0.2 and pgx 2.6.0: 9,000 games, 157,563 plies, vecaz agrees on every legal list, mover
and result.
"""

import argparse
import json
import pathlib
import random
import sys
from importlib.metadata import version

# (rows, columns, connect)
CONNECT_FOUR_SIZES = [(6, 7, 4), (5, 6, 3), (4, 5, 4), (7, 8, 5), (6, 9, 4), (3, 10, 3)]


def settings():
    """(game, vecaz options, OpenSpiel name) of every setting that OpenSpiel can play."""
    yield "tic_tac_toe", {}, "tic_tac_toe"
    for rows, columns, connect in CONNECT_FOUR_SIZES:
        options = {"rows": rows, "columns": columns, "connect": connect}
        yield "connect_four", options, f"connect_four(rows={rows},columns={columns},x_in_row={connect})"


def spiel_game(name, options, spiel_name, rng):
    import pyspiel

    state, actions, plies = pyspiel.load_game(spiel_name).new_initial_state(), [], []
    while not state.is_terminal():
        legal = state.legal_actions()
        plies.append({"kind": "player", "to_play": state.current_player(), "legal": legal})
        actions.append(rng.choice(legal))
        state.apply_action(actions[-1])
    return line(name, options, "open_spiel", actions, plies, state.returns())


def pgx_games(name, count, rng):
    """Games in lockstep. pgx seats the players at random; player 0 of a line is the one who begins."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import pgx

    env = pgx.make(name)
    step = jax.jit(jax.vmap(env.step))
    state = jax.vmap(env.init)(jax.random.split(jax.random.PRNGKey(rng.getrandbits(30)), count))
    first = np.asarray(state.current_player)
    games = [([], []) for _ in range(count)]
    while not np.asarray(state.terminated).all():
        masks, movers, over = (np.asarray(x) for x in (state.legal_action_mask, state.current_player, state.terminated))
        chosen = np.zeros(count, dtype=np.int32)
        for lane in np.flatnonzero(~over):
            legal = np.flatnonzero(masks[lane]).tolist()
            chosen[lane] = rng.choice(legal)
            actions, plies = games[lane]
            plies.append({"kind": "player", "to_play": int(movers[lane] != first[lane]), "legal": legal})
            actions.append(int(chosen[lane]))
        stepped = step(state, jnp.array(chosen))
        rewards, ended = np.asarray(stepped.rewards), np.asarray(stepped.terminated)
        for lane in np.flatnonzero(~over & ended):
            actions, plies = games[lane]
            returns = [rewards[lane][first[lane]], rewards[lane][1 - first[lane]]]
            yield line(name, {}, "pgx", actions, plies, returns)
        state = stepped


def line(name, options, source, actions, plies, returns):
    return {
        "game": name,
        "options": options,
        "source": f"{source} {version(source)}",
        "actions": actions,
        "plies": plies,
        "returns": [float(x) for x in returns],
    }


def dump(games, out):
    for game in games:
        out.write(json.dumps(game, separators=(",", ":")) + "\n")


def fixtures(folder, rng):
    """The committed files, each below 100 KB."""
    counts = {"tic_tac_toe": 20, "connect_four": 4}
    for name, count in counts.items():
        with open(folder / f"{name}_open_spiel.jsonl", "w") as out:
            for _, options, spiel_name in (s for s in settings() if s[0] == name):
                dump((spiel_game(name, options, spiel_name, rng) for _ in range(count)), out)
        with open(folder / f"{name}_pgx.jsonl", "w") as out:
            dump(pgx_games(name, 20, rng), out)


def long(count, rng, out):
    for name, options, spiel_name in settings():
        dump((spiel_game(name, options, spiel_name, rng) for _ in range(count)), out)
    for name in ("tic_tac_toe", "connect_four"):
        dump(pgx_games(name, count, rng), out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("fixtures").add_argument("folder", type=pathlib.Path)
    commands.add_parser("long").add_argument("count", type=int)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    if args.command == "fixtures":
        fixtures(args.folder, rng)
    else:
        long(args.count, rng, sys.stdout)


if __name__ == "__main__":
    main()
