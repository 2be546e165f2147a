"""Random play in pgx (JAX, both CPU devices) and in OpenSpiel's C++ core (one process a thread), plies per second as JSON lines.

    python benches/peers/random_play.py --threads 2 --slots 128 1024 > peers.jsonl

Needs jax and pgx (2.6.0), open_spiel (2.0.2). OpenSpiel's plies are made in C++ by the rollouts of its MCTS bot, one simulation of
20 rollouts from a first position a call: rollouts a second x the mean length of its random games, which is taken apart. A ply of backgammon is
one die in pgx, both dice in OpenSpiel; chance outcomes are no plies."""

import argparse
import json
import multiprocessing
import os
import random
import time

# The name here, in pgx and in OpenSpiel.
GAMES = {
    "tic_tac_toe": ("tic_tac_toe", "tic_tac_toe"),
    "connect_four": ("connect_four", "connect_four"),
    "othello": ("othello", "othello"),
    "hex": ("hex", "hex(board_size=11)"),
    "go": ("go_9x9", "go(board_size=9)"),
    "chess": ("chess", "chess"),
    "backgammon": ("backgammon", "backgammon"),
}
PLIES = 50
ROLLOUTS = 20


def pgx_rate(name, slots, threads, seconds):
    import jax
    import jax.numpy as jnp
    import pgx
    from jax.sharding import Mesh, NamedSharding, PartitionSpec
    from pgx.experimental.wrappers import auto_reset

    env = pgx.make(name)
    step = jax.vmap(auto_reset(env.step, env.init))
    mesh, split = Mesh(jax.devices()[:threads], ("device",)), PartitionSpec("device")

    def plies(state, keys):
        def ply(carry, _):
            state, key = carry
            key, choose, chance = jax.random.split(key, 3)
            action = jax.random.categorical(choose, jnp.where(state.legal_action_mask, 0.0, -1e9), axis=-1)
            return (step(state, action, jax.random.split(chance, action.shape[0])), key), None

        return jax.lax.scan(ply, (state, keys[0]), None, length=PLIES)[0][0]

    play = jax.jit(jax.shard_map(plies, mesh=mesh, in_specs=(split, split), out_specs=split, check_vma=False))
    state = jax.jit(jax.vmap(env.init))(jax.random.split(jax.random.PRNGKey(0), slots))
    state = jax.device_put(state, NamedSharding(mesh, split))
    play = play.lower(state, jax.random.split(jax.random.PRNGKey(1), threads)).compile()
    start, calls = time.perf_counter(), 0
    while calls < 2 or time.perf_counter() - start < seconds:
        if calls == 1:
            start = time.perf_counter()  # the first call warms up
        state = jax.block_until_ready(play(state, jax.random.split(jax.random.PRNGKey(calls), threads)))
        calls += 1
    return (calls - 1) * PLIES * slots / (time.perf_counter() - start)


def first_position(game):
    state = game.new_initial_state()
    while state.is_chance_node():
        state.apply_action(state.chance_outcomes()[0][0])
    return state


def mean_plies(game, games=100):
    rng, plies = random.Random(0), 0
    for _ in range(games):
        state = game.new_initial_state()
        while not state.is_terminal():
            if state.is_chance_node():
                outcomes, probs = zip(*state.chance_outcomes())
                state.apply_action(rng.choices(outcomes, probs)[0])
            else:
                state.apply_action(rng.choice(state.legal_actions()))
                plies += 1
    return plies / games


def rollouts(name, seconds, start, counts):
    import pyspiel

    game = pyspiel.load_game(name)
    bot = pyspiel.MCTSBot(game, pyspiel.RandomRolloutEvaluator(ROLLOUTS, 7), 1.4, 1, 100, False, 3, False)
    state = first_position(game)
    start.wait()
    begun, calls = time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        bot.mcts_search(state)
        calls += 1
    counts.put(calls * ROLLOUTS / (time.perf_counter() - begun))


def open_spiel_rate(name, threads, seconds):
    import pyspiel

    context = multiprocessing.get_context("spawn")
    start, counts = context.Barrier(threads), context.Queue()
    workers = [context.Process(target=rollouts, args=(name, seconds, start, counts)) for _ in range(threads)]
    for worker in workers:
        worker.start()
    rate = sum(counts.get() for _ in workers)
    for worker in workers:
        worker.join()
    return rate * mean_plies(pyspiel.load_game(name))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", nargs="*", default=list(GAMES), choices=list(GAMES))
    parser.add_argument("--slots", nargs="*", type=int, default=[128, 1024])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=1.0)
    arguments = parser.parse_args()
    flags = f" --xla_force_host_platform_device_count={arguments.threads}"
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + flags
    threads, seconds = arguments.threads, arguments.seconds
    for game in arguments.games:
        pgx_name, open_spiel_name = GAMES[game]
        for slots in arguments.slots:
            rate = pgx_rate(pgx_name, slots, threads, seconds)
            print(json.dumps({"peer": "pgx", "game": game, "slots": slots, "plies_per_second": rate}), flush=True)
        rate = open_spiel_rate(open_spiel_name, threads, seconds)
        print(json.dumps({"peer": "open_spiel", "game": game, "slots": threads, "plies_per_second": rate}), flush=True)


if __name__ == "__main__":
    main()
