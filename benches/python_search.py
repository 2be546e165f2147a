#!/usr/bin/env python3
"""Search under a function of Python: vecaz.search against mctx, with the same network of JAX, new processes in turn.

    benches/python_search.py [--nets uniform 2x32] [--games 128] [--simulations 64] [--rounds 5]

Needs jax, mctx, pgx, dm-haiku and the package vecaz in one Python. Connect Four, Gumbel, f32, positions after eight random plies. `vecaz, Python`
calls the compiled network on padded batches; `vecaz, native` has no network of Python: uniform priors. Rates are simulations per second.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

PEERS = Path(__file__).parent / "peers" / "mctx_search.py"


def network(spec):
    """The network of mctx_search.py as a compiled function of vecaz's observations."""
    import importlib.util
    from types import SimpleNamespace

    import jax
    import jax.numpy as jnp

    if spec == "uniform":
        import numpy as np

        return lambda obs: (np.zeros((len(obs), 7), np.float32), np.zeros(len(obs), np.float32))
    source = PEERS.read_text().rsplit("\nmain()", 1)[0]
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("mctx_search", loader=None))
    exec(compile(source, str(PEERS), "exec"), module.__dict__)
    env = SimpleNamespace(num_actions=7, observation_shape=(6, 7, 2))
    apply, params = module.network(spec, jnp.float32, env)
    compiled = jax.jit(lambda obs: apply(params, obs.reshape(-1, 2, 6, 7).transpose(0, 2, 3, 1)))
    return compiled


def vecaz_rate(spec, games, simulations, seconds):
    """Simulations per second of vecaz."""
    import vecaz

    envs = vecaz.make("connect_four", games, seed=1)
    for _ in range(8):
        envs.step(envs.sample_actions())
    evaluate = None if spec == "native" else network(spec)
    arguments = dict(simulations=simulations, noise=True, pad=spec not in ("native", "uniform"), solver=False, puct_visits=1_000_000)
    vecaz.search(envs, evaluate, **arguments)
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or not times:
        start = time.perf_counter()
        vecaz.search(envs, evaluate, **arguments)
        times.append(time.perf_counter() - start)
    return games * simulations / statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", nargs="+", default=["uniform", "2x32"])
    parser.add_argument("--games", type=int, default=128)
    parser.add_argument("--simulations", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        print(json.dumps(vecaz_rate(args.one, args.games, args.simulations, args.seconds)))
        return
    sizes = ["--games", args.games, "--simulations", args.simulations, "--seconds", args.seconds]

    def run(*command):
        command = [str(part) for part in (sys.executable, *command)]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])

    print("| network | mctx | vecaz, Python | vecaz, native | Python / mctx (least, most) |\n|---|---|---|---|---|")
    for net in args.nets:
        rounds = []
        for _ in range(args.rounds):
            peer = run(PEERS, net, args.games, args.simulations, args.seconds, "float32", "connect_four")["median"]
            own = run(__file__, "--one", net, *sizes)
            rounds.append((peer, own, run(__file__, "--one", "native", *sizes) if net == "uniform" else None))
        peer, own = (statistics.median(one[i] for one in rounds) for i in (0, 1))
        native = f"{statistics.median(one[2] for one in rounds):.3e}" if net == "uniform" else ""
        ratios = sorted(one[1] / one[0] for one in rounds)
        spread = f"{statistics.median(ratios):.1f} ({ratios[0]:.1f}, {ratios[-1]:.1f})"
        print(f"| {net} | {peer:.3e} | {own:.3e} | {native} | {spread} |", flush=True)


if __name__ == "__main__":
    main()
