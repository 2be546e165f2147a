#!/usr/bin/env python3
"""Runs short settings with two programs and compares every file they write, byte for byte.

    benches/same_bytes.py OLD_PROGRAM NEW_PROGRAM [--only TEXT] [--isas OLD,NEW] [--jobs N] [--keep FOLDER] [--list]

OLD_PROGRAM and NEW_PROGRAM are `vecaz` executables of two commits. Each setting below is one run of a second or two: between them they
cover every game, algorithm, architecture, number format and instruction set that the machine has. Compared are games, replay, weights,
trainer and progress of every checkpoint, findings, the configuration and the metrics; then what `eval`, `verify`, `export-weights` and
`inspect` write. Left out are times: event files, the report, every metric that is a duration or a rate, and the seconds in `progress.bin`
with the checksum after them, and the manifest, which has the checksums of these files. With `--isas` each program takes the instruction set
given for it, so that the same program, or one of another architecture (a script that starts it in an emulator), shows that all give the
same bits.

The exit code is 1 where a file differs or one program refuses a setting that the other runs. Python 3.11, no packages.
"""

import argparse
import concurrent.futures
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import tomllib
import zlib

# Metrics that hold a time. The evaluation cache is shared by threads, so its rate, and what the network evaluates, depend on their timing.
TIMED = ("seconds", "per_second", "games_per_day", "cache_hit_rate", "evaluations")

BASE = """run.seed=7 run.threads=2 run.epochs=2 selfplay.games=24 selfplay.samples_per_epoch=200 selfplay.passes_per_poll=8
    search.simulations=8 search.cache_entries=4096 search.root_cache=0 replay.capacity=1000 train.batch=32 train.min_samples=150 train.warmup_updates=4
    train.replay_ratio=2.0 train.precision=f32 eval.share=0.0 eval.every=1 eval.simulations=6 eval.positions=6 eval.match_games=4 eval.opponent=random"""
RESNET = "net.arch=resnet net.blocks=1 net.channels=16 net.value_hidden=16"
MLP = "net.arch=mlp net.blocks=1 net.channels=32 net.value_hidden=16"
EDGE = "net.arch=edge net.blocks=1 net.channels=16 net.value_hidden=16"
PUCT = "search.algorithm=puct search.dirichlet_epsilon=0.25"
CONNECT_FOUR = f"game.name=connect_four {RESNET}"

# Name: keys laid over BASE. Later keys win.
SETTINGS = {
    "tic_tac_toe gumbel root-cache": f"game.name=tic_tac_toe {MLP} net.precision=f32 search.root_cache=64 search.leaves=3",
    "tic_tac_toe puct small-trees": f"game.name=tic_tac_toe {MLP} {PUCT} search.nodes=17 search.leaves=2",
    "connect_four gumbel f32": f"{CONNECT_FOUR} net.precision=f32 search.max_num_considered_actions=5",
    "connect_four gumbel bf16": f"{CONNECT_FOUR} net.precision=bf16 search.leaves=4 selfplay.games=200",
    "connect_four deep gumbel": f"{CONNECT_FOUR} net.precision=bf16 search.simulations=80",
    "connect_four gumbel int8": f"{CONNECT_FOUR} net.precision=int8",
    "connect_four puct many leaves": f"{CONNECT_FOUR} {PUCT} search.simulations=40 search.leaves=16 search.root_cache=128",
    "connect_four puct no caches": f"{CONNECT_FOUR} {PUCT} search.cache_entries=0 search.reuse=false search.solver=false",
    "connect_four puct no reduction": f"{CONNECT_FOUR} {PUCT} search.fpu_reduction=0.0 search.dirichlet_alpha=0.3",
    "connect_four overlapped": f"{CONNECT_FOUR} train.mode=overlapped run.epochs=3",
    "connect_four constant rate": f"{CONNECT_FOUR} train.lr=0.01 train.lr_final=1.0",
    "connect_four cosine": f"{CONNECT_FOUR} train.clip_norm=0.1 train.lr_updates=10 train.symmetries=false selfplay.opening_plies=6",
    "connect_four one thread": f"{CONNECT_FOUR} run.threads=1 search.inherit_cap=0.5 search.min_simulations=2",
    "connect_four mlp bf16": f"game.name=connect_four {MLP} net.precision=bf16",
    "connect_four mlp int8": f"game.name=connect_four {MLP} net.precision=int8",
    "connect_four wide": f"{CONNECT_FOUR} net.channels=64 net.blocks=2 net.precision=bf16 selfplay.samples_per_epoch=120",
    "connect_four wide int8": f"{CONNECT_FOUR} net.channels=64 net.precision=int8 net.policy_channels=3 net.value_channels=5",
    "connect_four rollouts": f"{CONNECT_FOUR} game.rows=5 game.columns=6 eval.opponent=rollouts:20 eval.algorithm=gumbel",
    "othello": f"game.name=othello {RESNET} net.precision=bf16 selfplay.samples_per_epoch=400",
    "othello 6 two passes": f"game.name=othello game.size=6 game.end=two_passes {MLP} {PUCT} eval.opponent=rollouts:10",
    "hex gumbel": f"game.name=hex game.size=5 {RESNET} net.precision=bf16",
    "hex swap puct": f"game.name=hex game.size=7 game.swap=true {RESNET} {PUCT} search.leaves=4 net.precision=int8",
    "gomoku": f"game.name=gomoku game.size=7 {RESNET} net.precision=f32 search.leaves=2",
    "go gumbel": f"game.name=go game.size=5 {RESNET} net.precision=bf16 selfplay.samples_per_epoch=400",
    "go 9 puct": f"game.name=go game.size=9 {RESNET} {PUCT} net.precision=int8 selfplay.samples_per_epoch=100 run.epochs=1",
    "chess gumbel": f"game.name=chess {RESNET} net.precision=bf16 selfplay.samples_per_epoch=100 run.epochs=1 search.simulations=4",
    "chess puct": f"game.name=chess {RESNET} {PUCT} selfplay.games=4 selfplay.samples_per_epoch=60 search.leaves=2 eval.match_games=2",
    "clique edge f32": f"game.name=clique {EDGE} net.precision=f32",
    "clique edge bf16": f"game.name=clique {EDGE} net.precision=bf16 game.mode=asymmetric search.leaves=2",
    "clique edge puct": f"game.name=clique {EDGE} net.precision=bf16 {PUCT} game.n=7",
    "clique avoid_clique mlp": f"game.name=clique {MLP} game.mode=avoid_clique game.n=6 game.k=4 eval.every=0",
    "clique ramsey": f"game.name=clique {EDGE} game.mode=ramsey game.n=8 game.k=4 search.c_scale=5.0 train.mode=overlapped",
    "backgammon stratified": f"game.name=backgammon {MLP} search.algorithm=gumbel net.precision=bf16 search.simulations=16 selfplay.samples_per_epoch=600",
    "backgammon puct": f"game.name=backgammon {MLP} {PUCT} search.leaves=3 game.short_game=true",
    "backgammon whole turns": f"game.name=backgammon {MLP} search.algorithm=afterstate train.td_lambda=0.9 eval.match_games=2",
    "backgammon short": f"game.name=backgammon {MLP} search.algorithm=gumbel game.short_game=true eval.match_games=2",
    "blob deal": f"game.name=blob {MLP} {PUCT} net.precision=bf16 search.determinisations=3 search.reuse=false search.solver=false",
    "blob hand": f"game.name=blob game.network_sees=hand game.players=3 {MLP} search.determinisations=2 search.reuse=false search.solver=false",
    "blob full no solver": f"game.name=blob game.full=true game.players=3 game.cards=3 {MLP} search.solver=false"
    " search.reuse=false search.determinisations=2 selfplay.games=4 eval.match_games=2",
    "blob puct one hand": f"game.name=blob game.players=5 game.cards=3 {MLP} {PUCT} search.reuse=false search.solver=false search.leaves=2",
}
INSTRUCTIONS = {
    "f32": ("avx512", "avx2", "neon", "portable"),
    "bf16": ("amx", "avx512", "avx2", "bfmmla", "neon", "portable"),
    "int8": ("amx", "avx512", "avx2", "neon", "portable"),
}
for precision, names in INSTRUCTIONS.items():
    for isa in names:
        SETTINGS[f"isa {precision} {isa}"] = f"{CONNECT_FOUR} net.precision={precision} net.isa={isa} run.epochs=1"
        if precision != "int8":
            edge = f"game.name=clique {EDGE} net.precision={precision} net.isa={isa} run.epochs=1"
            SETTINGS[f"isa {precision} {isa} edge"] = edge
    if precision == "bf16":
        SETTINGS.update({f"{name} training": f"{keys} train.precision=bf16" for name, keys in SETTINGS.items() if name.startswith("isa bf16")})
# Commands on the run that a setting left, and what is compared of each: its standard output or the file at {out}.
COMMANDS = {
    "connect_four gumbel bf16": [
        "eval {run} --positions {positions} --sims 12 --json -",
        "eval {run} --against rollouts:10 --games 4 --sims 6 --json -",
        "verify {run} --json -",
        "export-weights {run} --out {out}",
    ],
    "clique edge bf16": ["eval {run} --against random --games 4 --sims 6 --set game.n=7 --json -"],
    "backgammon stratified": ["inspect --game backgammon --actions 0,3 --json -"],
}
POSITIONS = "assets/positions/connect_four.jsonl"


class Program:
    """An executable and the keys of its configuration."""

    def __init__(self, path, folder, isa):
        self.path = os.path.abspath(path)
        self.isa = isa
        probe = self.run(["run", "--game", "tic_tac_toe", "--epochs", "1", "--games", "2", "--sims", "2", "--out", folder]
                         + [part for key in ("selfplay.samples_per_epoch=1", "eval.every=0") for part in ("--set", key)])
        if probe.returncode:
            sys.exit(f"{path}: {probe.stderr.strip()}")
        config = load_toml(os.path.join(folder, "config.toml"))
        self.keys = {f"{section}.{key}" for section, table in config.items() for key in table}

    def run(self, arguments):
        env = {key: value for key, value in os.environ.items() if key != "VECAZ_LOG"}
        return subprocess.run([self.path, *arguments], capture_output=True, text=True, env=env)


def load_toml(path):
    with open(path, "rb") as file:
        return tomllib.load(file)


def flat(config):
    """Dotted keys with their values."""
    return {f"{section}.{key}": value for section, table in config.items() for key, value in table.items()}


def json_lines(text, drop):
    def kept(value):
        if isinstance(value, dict):
            return {key: kept(item) for key, item in value.items() if not key.endswith(drop)}
        return [kept(item) for item in value] if isinstance(value, list) else value

    return "\n".join(json.dumps(kept(json.loads(line))) for line in text.splitlines())


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return value, at


def timeless_progress(data):
    """`progress.bin` with the seconds worked set to 0 and without the checksum, which must be right."""
    body, (found,) = data[:-4], struct.unpack("<I", data[-4:])
    if zlib.crc32(body) != found:
        raise ValueError("progress.bin: its checksum differs")
    at = varint(body, 0)[1]
    length, at = varint(body, at)
    at = varint(body, at + length)[1]
    return body[:at] + bytes(8) + body[at + 8:]


def content(run):
    """File below `run` -> what is compared of it."""
    found = {}
    for folder, _, names in os.walk(run):
        for name in names:
            path = os.path.join(folder, name)
            if name == "manifest.jsonl":
                continue
            with open(path, "rb") as file:
                data = file.read()
            if name.startswith("events.out") or name == "report.html":
                data = b""
                name = "events.out" if name.startswith("events.out") else name
            elif name == "config.toml":
                continue
            elif name == "progress.bin":
                data = timeless_progress(data)
            elif name.endswith(".jsonl"):
                data = json_lines(data.decode(), TIMED if name == "metrics.jsonl" else ("\0",)).encode()
            found[os.path.relpath(os.path.join(folder, name), run)] = data
    return found


def first_difference(old, new):
    at = next((i for i, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))
    excerpt = lambda data: data[max(0, at - 40):at + 40]
    return f"byte {at} of {len(old)} and {len(new)}: {excerpt(old)!r} and {excerpt(new)!r}"


def compare(old, new):
    """The differences of two sets of files, one sentence each."""
    out = [f"{name}: only the old program writes it" for name in sorted(old.keys() - new.keys())]
    out += [f"{name}: only the new program writes it" for name in sorted(new.keys() - old.keys())]
    common = sorted(old.keys() & new.keys())
    return out + [f"{name}: {first_difference(old[name], new[name])}" for name in common if old[name] != new[name]]


def compare_configs(old, new):
    old, new = (flat(load_toml(os.path.join(run, "config.toml"))) for run in (old, new))
    common = (old.keys() & new.keys()) - {"net.isa"}
    return [f"config.toml: {key}: {old[key]} and {new[key]}" for key in common if old[key] != new[key]]


def last_words(result):
    return (result.stderr.strip() or result.stdout.strip() or f"exit code {result.returncode}").splitlines()[-1]


def resumed(programs, runs, folder):
    """The old run cut back to its first epoch and resumed by the new program, against the old run as it is."""
    run = os.path.join(folder, "resumed")
    shutil.copytree(runs[0], run)
    last = max(os.listdir(os.path.join(run, "checkpoints")))
    shutil.rmtree(os.path.join(run, "checkpoints", last))
    isa = ["--set", f"net.isa={programs[1].isa}"] if programs[1].isa else []
    for arguments in (["verify", run, "--accept"], ["run", "--resume", run, *isa]):
        done = programs[1].run(arguments)
        if done.returncode:
            return [f"resuming the old checkpoint: {last_words(done)}"]
    return [f"resumed: {line}" for line in compare(content(runs[0]), content(run))]


def check(name, programs, folder, root):
    """(verdict, differences) of a setting."""
    keys = dict(assignment.split("=", 1) for assignment in f"{BASE} {SETTINGS[name]}".split())
    runs, results = [], []
    for number, program in enumerate(programs):
        run = os.path.join(folder, ("old", "new")[number])
        arguments = ["run", "--out", run]
        for key, value in keys.items():
            arguments += ["--set", f"{key}={value}"]
        if program.isa:
            arguments += ["--set", f"net.isa={program.isa}"]
        results.append(program.run(arguments))
        runs.append(run)
    failed = [result for result in results if result.returncode]
    if len(failed) == 2 and "isa" in name and "net.isa" in last_words(failed[0]):
        return "skipped", [last_words(failed[0])]
    if failed:
        words = ("ran" if not result.returncode else last_words(result) for result in results)
        return "DIFFERS" if len(failed) == 1 else "FAILED", [f"old and new: {' | '.join(words)}"]
    old, new = (content(run) for run in runs)
    differences = compare(old, new) + compare_configs(*runs)
    if name == "connect_four gumbel f32":
        differences += resumed(programs, runs, folder)
    for command in COMMANDS.get(name, []):
        outputs = []
        for number, program in enumerate(programs):
            out = os.path.join(folder, f"out{number}")
            words = command.format(run=runs[number], out=out, positions=os.path.join(root, POSITIONS)).split()
            done = program.run(words)
            if done.returncode:
                differences.append(f"{command}: {('old', 'new')[number]}: {last_words(done)}")
                continue
            if os.path.exists(out):
                with open(out, "rb") as file:
                    outputs.append({command: file.read()})
            else:
                outputs.append({command: json_lines(done.stdout, ("seconds", "run", "network")).encode()})
        differences += compare(*outputs) if len(outputs) == 2 else []
    return ("same" if not differences else "DIFFERS"), differences or [f"{len(old)} files"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--only", default="", help="settings whose name contains this")
    parser.add_argument("--isas", default=",", help="net.isa of the old and the new program in all settings, e.g. avx512,neon")
    parser.add_argument("--jobs", type=int, default=1, help="settings at a time")
    parser.add_argument("--keep", help="keep the runs in this folder")
    parser.add_argument("--list", action="store_true", help="print the names of the settings and end")
    args = parser.parse_args()
    isas = args.isas.split(",")
    if len(isas) != 2:
        parser.error(f"--isas {args.isas}: expected two names with a comma between them")
    names = [name for name in SETTINGS if args.only in name and not (any(isas) and name.startswith("isa "))]
    if args.list:
        return print("\n".join(names))
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    scratch = args.keep or tempfile.mkdtemp(prefix="same-bytes-")
    try:
        paths = enumerate(zip((args.old, args.new), isas))
        programs = [Program(path, os.path.join(scratch, f"probe-{i}"), isa) for i, (path, isa) in paths]
        old, new = (program.keys for program in programs)
        for key in sorted(old ^ new):
            print(f"key {key}: only the {'old' if key in old else 'new'} program has it")
        counts = {}
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            folders = [os.path.join(scratch, name.replace(" ", "_")) for name in names]
            for folder in folders:
                os.makedirs(folder)
            for name, (verdict, lines) in zip(names, pool.map(lambda n, f: check(n, programs, f, root), names, folders)):
                counts[verdict] = counts.get(verdict, 0) + 1
                print(f"{verdict:8} {name}: " + "\n         ".join(lines), flush=True)
        print(f"{len(names)} settings: " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items())))
        return 0 if counts.keys() <= {"same", "skipped"} and "same" in counts else 1
    finally:
        if not args.keep:
            shutil.rmtree(scratch)


if __name__ == "__main__":
    sys.exit(main())
