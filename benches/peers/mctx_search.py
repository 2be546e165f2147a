"""mctx + pgx (JAX) at vecaz's work: Gumbel search of N positions with S simulations each.

    pip install jax mctx pgx dm-haiku
    python benches/peers/mctx_search.py [uniform|2x32|6x64] [N] [S] [SECONDS] [float32|bfloat16] [GAME]

Runs on all devices of JAX's default kind. On a CPU the games are split over two XLA host devices, one for each core: XLA keeps such
small convolutions on one core otherwise. The last arguments are the number format of the network and pgx's name of the game (connect_four). Positions come from random play.
Prints one JSON line: simulations/s of the fastest call and of the median one, the mean depth of the nodes a search adds and their
greatest depth."""
import json
import os
import sys
import time

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"

import haiku as hk
import jax
import jax.numpy as jnp
import mctx
import numpy as np
import pgx

DEVICES = jax.local_device_count()
PLIES = 8


def network(spec, numbers, env):
    if spec == "uniform":
        return lambda params, obs: (jnp.zeros((obs.shape[0], env.num_actions)), jnp.zeros(obs.shape[0])), None
    blocks, channels = map(int, spec.split("x"))

    def forward(obs):
        conv = lambda c, k: hk.Conv2D(c, k, with_bias=False)
        # BatchNorm with fixed statistics is a scale and a shift for each channel, as in self-play.
        norm = lambda x: x * hk.get_parameter(f"scale{x.shape[-1]}", [x.shape[-1]], x.dtype, jnp.ones)
        x = conv(channels, 3)(obs.astype(numbers))
        for _ in range(blocks):
            y = conv(channels, 3)(jax.nn.relu(norm(x)))
            x = x + conv(channels, 3)(jax.nn.relu(norm(y)))
        x = jax.nn.relu(norm(x))
        policy = hk.Linear(env.num_actions)(hk.Flatten()(jax.nn.relu(conv(8, 1)(x))))
        value = jax.nn.relu(hk.Linear(64)(hk.Flatten()(jax.nn.relu(conv(4, 1)(x)))))
        return policy.astype(jnp.float32), jnp.tanh(hk.Linear(1)(value))[:, 0].astype(jnp.float32)

    net = hk.without_apply_rng(hk.transform(forward))
    return net.apply, net.init(jax.random.PRNGKey(0), jnp.zeros((1, *env.observation_shape)))


def search(env, apply, simulations):
    step = jax.vmap(env.step)

    def recurrent(params, key, action, state):
        mover = state.current_player
        state = step(state, action)
        logits, value = apply(params, state.observation)
        logits = jnp.where(state.legal_action_mask, logits, -1e9)
        reward = state.rewards[jnp.arange(state.rewards.shape[0]), mover]
        value = jnp.where(state.terminated, 0.0, value)
        discount = jnp.where(state.terminated, 0.0, -1.0)
        return mctx.RecurrentFnOutput(reward=reward, discount=discount, prior_logits=logits, value=value), state

    def run(params, key, state):
        logits, value = apply(params, state.observation)
        root = mctx.RootFnOutput(prior_logits=logits, value=value, embedding=state)
        return mctx.gumbel_muzero_policy(
            params, key, root, recurrent, num_simulations=simulations, invalid_actions=~state.legal_action_mask)

    return jax.pmap(run, in_axes=(None, 0, 0)) if DEVICES > 1 else jax.jit(run)


def positions(env, games):
    init, step = jax.jit(jax.vmap(env.init)), jax.jit(jax.vmap(env.step))
    key = jax.random.PRNGKey(1)
    state = init(jax.random.split(key, games))
    for ply in range(PLIES):
        logits = jnp.where(state.legal_action_mask, 0.0, -1e9)
        state = step(state, jax.random.categorical(jax.random.fold_in(key, ply), logits))
    split = lambda x: x.reshape((DEVICES, games // DEVICES) + x.shape[1:])
    return jax.tree_util.tree_map(split, state) if DEVICES > 1 else state


def depths(parents):
    """Mean and greatest depth of the nodes that simulations added; `parents [.., nodes]`, -1 where there is none."""
    parents = np.asarray(parents).reshape(-1, parents.shape[-1])
    depth = np.zeros(parents.shape, int)
    rows = np.arange(parents.shape[0])
    for node in range(1, parents.shape[1]):
        depth[:, node] = depth[rows, np.maximum(parents[:, node], 0)] + 1
    made = parents[:, 1:] >= 0
    return float(depth[:, 1:][made].mean()), int(depth[:, 1:][made].max())


def main():
    arguments = sys.argv[1:] + ["uniform", "128", "800", "15", "float32", "connect_four"][len(sys.argv) - 1:]
    spec, games, simulations, seconds = arguments[0], int(arguments[1]), int(arguments[2]), float(arguments[3])
    numbers = jnp.dtype(arguments[4])
    env = pgx.make(arguments[5])
    apply, params = network(spec, numbers, env)
    run, state = search(env, apply, simulations), positions(env, games)
    key = jax.random.PRNGKey(2)
    keys = jax.random.split(key, DEVICES) if DEVICES > 1 else key
    mean, deepest = depths(jax.block_until_ready(run(params, keys, state)).search_tree.parents)
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or not times:
        start = time.perf_counter()
        jax.block_until_ready(run(params, keys, state))
        times.append(time.perf_counter() - start)
    work = games * simulations
    print(json.dumps({
        "peer": f"mctx {mctx.__version__} + pgx {pgx.__version__}, jax {jax.__version__}", "game": env.id, "net": spec, "games": games,
        "sims": simulations, "numbers": numbers.name, "device": jax.devices()[0].device_kind, "simulations_per_second": work / min(times), "median": work / float(np.median(times)),
        "mean_depth": mean, "greatest_depth": deepest}))


main()
