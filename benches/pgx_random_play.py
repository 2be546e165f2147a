"""Random play in pgx on JAX's first device, plies per second, to stand beside benches/device_games.rs.

    python benches/pgx_random_play.py --json pgx.json

Needs jax and pgx (2.6.0). All games step together, 64 plies a call; finished games start again."""

import argparse
import json
import time

import jax
import jax.numpy as jnp
import pgx
from pgx.experimental.wrappers import auto_reset

# pgx's name and the name and settings here.
GAMES = {
    "tic_tac_toe": ("tic_tac_toe", ""),
    "connect_four": ("connect_four", ""),
    "othello": ("othello", ""),
    "hex": ("hex", ""),
    "go_9x9": ("go", ""),
    "go_19x19": ("go", "size = 19"),
    "chess": ("chess", ""),
    "backgammon": ("backgammon", ""),
}
PLIES = 64


def compiled(env, slots):
    """(64 plies of every game, compiled; its first states)"""
    step = jax.vmap(auto_reset(env.step, env.init))

    def ply(carry, _):
        state, key = carry
        key, choose, chance = jax.random.split(key, 3)
        logits = jnp.where(state.legal_action_mask, 0.0, -1e9)
        action = jax.random.categorical(choose, logits, axis=-1)
        return (step(state, action, jax.random.split(chance, slots)), key), None

    def play(state, key):
        return jax.lax.scan(ply, (state, key), None, length=PLIES)[0][0]

    first = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.PRNGKey(0), slots))
    return jax.jit(play).lower(first, jax.random.PRNGKey(1)).compile(), first


def measure(name, slots, seconds):
    play, state = compiled(pgx.make(name), slots)
    state = jax.block_until_ready(play(state, jax.random.PRNGKey(2)))
    start, calls = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        state = jax.block_until_ready(play(state, jax.random.PRNGKey(calls)))
        calls += 1
    return calls * PLIES * slots / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--games", nargs="*", default=list(GAMES), choices=list(GAMES))
    parser.add_argument("--slots", nargs="*", type=int, default=[4096, 65536])
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.games:
        for slots in arguments.slots:
            rate = measure(name, slots, arguments.seconds)
            game, settings = GAMES[name]
            device = str(jax.devices()[0])
            rows.append(
                {"game": game, "settings": settings, "slots": slots, "plies_per_second": rate, "device": device}
            )
            print(f"{name:>13} N = {slots:>6}: {rate:.4e} plies/s", flush=True)
            if arguments.json:  # after each, so that what is done is kept when time runs out
                with open(arguments.json, "w") as file:
                    json.dump(rows, file, indent=1)


main()
