"""The kinds of input: the mutated file or text, and the commands that read it."""

import glob
import json
import os
import random
import shutil
import struct
import sys
import tomllib

import formats
from mutations import bytes_of, hostile_text, json_lines_of, json_text, value_of
from program import Allowed
from sources import GAMES, SOLVED, copy

HERE = os.path.dirname(os.path.abspath(__file__))
SMALL = ["--threads", "1"]
MATCH = ["--games", "2", "--sims", "2", *SMALL]
CHANGES, LONG_WORK = Allowed.CHANGES, Allowed.LONG_WORK
PLIES = b"0\n1\n2\n3\n4\n5\n6\n7\n8\n" * 2


class Command:
    """A command on an input, with the exceptions that it is allowed."""

    def __init__(self, *arguments, stdin=b"", env=None, allowed=Allowed.NOTHING):
        self.arguments, self.stdin, self.env, self.allowed = list(arguments), stdin, env, allowed


class Input:
    """A folder with a mutated input. `damaged`: a file that differs from its entry in the manifest."""

    def __init__(self, commands, note, damaged=None):
        self.commands, self.note, self.damaged = commands, note, damaged


RESUME = Command("run", "--resume", "run", "--epochs", "3", "--minutes", "0.03", *SMALL, allowed=CHANGES | LONG_WORK)
VERIFY = Command("verify", "run")
ACCEPT = Command("verify", "run", "--accept", allowed=CHANGES)
EVAL = Command("eval", "run", "--against", "random", *MATCH)
EVAL_AGAINST = Command("eval", "net.safetensors", "--against", "run", *MATCH)
EXPORT = Command("export-weights", "run", "--out", "exported")
PLAY = Command("play", "run", "--sims", "2", *SMALL, stdin=PLIES)
BENCH = Command("bench-scaling", "--run", "run", "--games", "2", "--sims", "2", "--seconds", "0.01", *SMALL)
INSPECT = Command("inspect", "--config", "run/config.toml", allowed=LONG_WORK)  # waits for a pipe, for --config <(...)

STATE = (VERIFY, RESUME, RESUME, ACCEPT)  # readers of logs, games and checkpoints
NETWORK = (VERIFY, EVAL, EVAL_AGAINST, EXPORT, PLAY, RESUME, ACCEPT)
CONFIG = (VERIFY, RESUME, RESUME, EVAL, PLAY, INSPECT, EXPORT, ACCEPT)
ALL = (VERIFY, ACCEPT, RESUME, EVAL, EVAL_AGAINST, EXPORT, PLAY, INSPECT)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, data):
    with open(path, "wb") as file:
        file.write(data)


def pick(rng, commands):
    """Two different commands, those that write last; rarely also a measurement, which takes a second."""
    chosen = rng.sample(commands, 2)
    chosen = [BENCH] + chosen[1:] if rng.random() < 0.01 else chosen
    return sorted(set(chosen), key=lambda command: (bool(command.allowed & CHANGES), commands.index(command) if command in commands else 0))


def game_of(rng, source=None):
    return source or rng.choice(list(GAMES))


def edit(rng, folder, name, mutate, commands):
    """A run with one mutated file, in half of the inputs with right checksums."""
    path = os.path.join(folder, "run", name)
    before = read(path)
    after = mutate(rng, before)
    while after == before:
        after = mutate(rng, before)
    write(path, after)
    right = rng.random() < 0.7
    if right:
        formats.seal(os.path.join(folder, "run"), [name])
    # The two logs may be longer than the manifest lists.
    damaged = not right and not (name in ("metrics.jsonl", "findings.jsonl") and after.startswith(before))
    note = f"run/{name} ({len(before)} -> {len(after)} bytes), {'right' if right else 'old'} checksums"
    return Input(pick(rng, commands), note, damaged=name if damaged else None)


def listed(rng, folder, pattern):
    """A file of the run, relative to it."""
    run = os.path.join(folder, "run")
    return os.path.relpath(rng.choice(sorted(glob.glob(os.path.join(run, pattern)))), run)


def mostly(special, share=0.6):
    return lambda rng, data: special(rng, data) if rng.random() < share else bytes_of(rng, data)


def toml_of(rng, data):
    tables = tomllib.loads(data.decode())
    return formats.toml_text(hostile_tables(rng, tables)).encode("utf-8", "surrogateescape")


def hostile_tables(rng, tables):
    """The configuration with one to three other values, keys or tables."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        section = rng.choice(list(tables))
        table = tables[section] if isinstance(tables[section], dict) else {}
        if rng.random() < 0.9 and table:
            key = rng.choice(list(table))
            table = table | {key: value_of(rng, table[key], rng.choice(("kept", "kept", "any")))}
        else:
            table = value_of(rng, table)
        tables = tables | {section: table if isinstance(table, dict) else {}}
    return tables


def progress_of(rng, data):
    value = formats.parse_progress(data)
    for _ in range(rng.choice((1, 1, 1, 2))):
        part = rng.choice(("slots", "slots", "slots", "counters", "all"))
        if part == "all":
            value = value_of(rng, value, "kept")
        else:
            value = value | {part: value_of(rng, value[part], "kept")}
    if value["counters"]["best"] is None and rng.random() < 0.1:
        value["counters"] = value["counters"] | {"best": {"epoch": rng.randrange(5), "rank": 0.5}}
    return formats.progress_bytes(value)


def progress_bytes_of(rng, data):
    """Bytes of the body, with a right checksum at the end."""
    return formats.with_crc32(bytes_of(rng, data[:-4]))


def tensors_of(rng, data):
    """A safetensors file with other numbers, or another header."""
    header, body = formats.parse_tensors(data)
    kind = rng.random()
    if kind < 0.5:
        return formats.tensors_bytes(header, numbers_of(rng, header, body))
    meta = header.get("__metadata__", {})
    if kind < 0.75 and "vecaz" in meta:
        try:
            inner = json_text(value_of(rng, json.loads(meta["vecaz"])))
        except ValueError:
            inner = rng.choice(("", "{}", "network", "[]"))
        header = header | {"__metadata__": {"vecaz": inner}}
        return formats.tensors_bytes(header, body)
    return formats.tensors_bytes(value_of(rng, header), body)


def numbers_of(rng, header, body):
    """One to four numbers of a tensor, by its type; or all of them."""
    names = [name for name in header if name != "__metadata__" and header[name]["data_offsets"][0] < header[name]["data_offsets"][1]]
    if not names:
        return body + b"\0"
    name = rng.choice(names)
    (first, end), dtype = header[name]["data_offsets"], header[name]["dtype"]
    size = {"F32": 4, "U64": 8, "U16": 2, "U8": 1}[dtype]
    count = (end - first) // size
    out = bytearray(body)
    for at in [*range(count)] if rng.random() < 0.1 and count < 5000 else [rng.randrange(count) for _ in range(rng.choice((1, 1, 2, 4)))]:
        where = slice(first + at * size, first + at * size + size)
        if dtype == "F32":
            out[where] = struct.pack("<f", rng.choice((float("nan"), float("inf"), -3e38, 3e38, 1e-45, -1.0, 0.0, 2.0, 1e10, rng.gauss(0, 1))))
        else:
            out[where] = (rng.choice((0, 1, 2, 3, 255, 65535, 2**63, rng.getrandbits(64))) & 256**size - 1).to_bytes(size, "little")
    return bytes(out)


def manifest_of(rng, data):
    """Other entries, with the checksum at the end."""
    lines = data.decode().splitlines()[:-1]
    at = rng.randrange(len(lines))
    kind = rng.randrange(5)
    if kind == 0:
        lines[at] = json_text(value_of(rng, json.loads(lines[at])))
    elif kind == 1:
        del lines[at]
    elif kind == 2:
        entry = json.loads(lines[-1])
        paths = ("../net.safetensors", "/dev/zero", "games", "checkpoints/epoch-18446744073709551615/progress.bin", "checkpoints/epoch-000009/progress.bin",
                 "checkpoints/epoch-99999999999999999999999/x", "games/../config.toml", "", ".", "games/epoch-000001.jsonl/x", "\0", "checkpoints/epoch-/x")
        lines.append(json_text(entry | {"path": rng.choice(paths)}))
    elif kind == 3:
        lines.append(json_text(json.loads(lines[max(1, at)]) | {"pending": True, "size": rng.choice((0, 1, 2**64 - 1))}))
    else:
        mutated = bytes_of(rng, "\n".join(lines).encode())
        lines = mutated.decode("utf-8", "surrogateescape").split("\n")
    return formats.manifest_bytes(lines)


# --- the kinds ---

FILES = {
    "config.toml": ("config.toml", mostly(toml_of, 0.8), CONFIG),
    "metrics.jsonl": ("metrics.jsonl", mostly(json_lines_of), STATE),
    "games": ("games/*.jsonl", mostly(json_lines_of), STATE),
    "findings.jsonl": ("findings.jsonl", mostly(json_lines_of), STATE),
    "progress.bin fields": ("checkpoints/epoch-000002/progress.bin", progress_of, STATE),
    "progress.bin bytes": ("checkpoints/*/progress.bin", mostly(progress_bytes_of), STATE),
    "replay": ("checkpoints/epoch-000002/replay-*.safetensors", mostly(tensors_of, 0.8), STATE),
    "trainer": ("checkpoints/epoch-000002/trainer.safetensors", mostly(tensors_of, 0.8), STATE),
    "weights": ("checkpoints/*/weights.safetensors", mostly(tensors_of, 0.8), NETWORK),
    "best": ("best.safetensors", mostly(tensors_of, 0.8), NETWORK),
}


def file_kind(name):
    pattern, mutate, commands = FILES[name]

    def build(rng, sources, folder):
        copy(sources["clique" if name == "findings.jsonl" else game_of(rng)], folder)
        return edit(rng, folder, listed(rng, folder, pattern), mutate, commands)

    return build


def manifest(rng, sources, folder):
    copy(sources[game_of(rng)], folder)
    path = os.path.join(folder, "run", formats.MANIFEST)
    before = read(path)
    right = rng.random() < 0.7
    write(path, manifest_of(rng, before) if right else bytes_of(rng, before))
    return Input(pick(rng, ALL), f"run/manifest.jsonl, {'right' if right else 'old'} checksum")


def folder_shape(rng, sources, folder):
    """Files that are missing, of another kind, or from another run."""
    game = game_of(rng)
    copy(sources[game], folder)
    run = os.path.join(folder, "run")
    names = sorted(os.path.relpath(os.path.join(at, name), run) for at, _, files in os.walk(run) for name in files)
    name = rng.choice(names)
    path = os.path.join(run, name)
    acts = ("missing", "folder", "fifo", "link to /dev/zero", "link to itself", "link to nothing", "link to /dev/null", "another file", "another game's file",
            "empty", "moved folder", "extra folders")
    act = rng.choice(acts)
    other = rng.choice(names)
    data = {"another file": read(os.path.join(run, other)), "another game's file": b"", "empty": b""}.get(act)
    if act == "another game's file":
        other = os.path.join(sources[rng.choice(list(GAMES))]["run"], name)
        data = read(other) if os.path.isfile(other) else b""
    if act == "moved folder":
        at = rng.choice(("checkpoints", "games", "checkpoints/epoch-000002", "checkpoints/epoch-000001"))
        os.rename(os.path.join(run, at), os.path.join(run, rng.choice(("moved", at + "x", os.path.join(os.path.dirname(at), "epoch-000007")))))
    elif act == "extra folders":
        for extra in ("checkpoints/epoch-000003", "checkpoints/epoch-18446744073709551615", "checkpoints/epoch-x", "checkpoints/.removing-epoch-000001",
                      "checkpoints/.writing-epoch-000003", "games/epoch-000003.jsonl"):
            if rng.random() < 0.5:
                os.makedirs(os.path.join(run, extra))
    elif data is not None:
        write(path, data)
    else:
        os.remove(path)
        if act == "folder":
            os.mkdir(path)
        elif act == "fifo":
            os.mkfifo(path)
        elif act.startswith("link"):
            target = {"link to itself": os.path.basename(path), "link to nothing": "nothing"}.get(act, act.removeprefix("link to "))
            os.symlink(target, path)
    right = rng.random() < 0.6 and os.path.isfile(os.path.join(run, formats.MANIFEST)) and not os.path.islink(os.path.join(run, formats.MANIFEST))
    if right and os.path.isfile(path) and name != formats.MANIFEST and not name.startswith("."):
        try:
            formats.seal(run, [name])
        except (ValueError, AttributeError):
            pass  # the manifest itself is another file
    return Input(pick(rng, ALL), f"run/{name}: {act}, {'right' if right else 'old'} checksums")


def weights_file(rng, sources, folder):
    copy(sources[game_of(rng)], folder)
    path = os.path.join(folder, "net.safetensors")
    write(path, mostly(tensors_of, 0.8)(rng, read(path)))
    commands = [
        Command("eval", "net.safetensors", "--against", "random", *MATCH), Command("eval", "run", "--against", "net.safetensors", *MATCH),
        Command("export-weights", "net.safetensors", "--out", "exported"), Command("import-weights", "net.safetensors", "--out", "imported"),
        Command("export-weights", "net.safetensors", "--format", "onnx", "--precision", "f16", "--out", "exported"),
        Command("import-weights", "net.safetensors", "--like", "run", "--out", "imported"), Command("play", "net.safetensors", "--sims", "2", *SMALL, stdin=PLIES),
    ]
    return Input(rng.sample(commands, 2), "net.safetensors")


def positions(rng, sources, folder):
    copy(sources[SOLVED], folder)
    lines = [json_text({"actions": [4, 0, 8], "scores": [None, 0, 0, 0, None, 0, 0, 0, None]}), json_text({"actions": [], "scores": [0] * 9})]
    data = ("\n".join(lines) + "\n").encode()
    write(os.path.join(folder, "positions.jsonl"), rng.choice((json_lines_of, json_lines_of, bytes_of))(rng, data))
    json_out = rng.choice(([], ["--json", "-"], ["--json", "result.jsonl"]))
    return Input([Command("eval", "run", "--positions", "positions.jsonl", "--sims", "2", *SMALL, *json_out)], "positions.jsonl")


def played(rng, sources, game):
    """The actions of a stored game."""
    lines = read(os.path.join(sources[game]["run"], "games/epoch-000001.jsonl")).splitlines()
    return json.loads(rng.choice(lines))["actions"] if lines else []


def action_list(rng, sources, folder):
    game = game_of(rng)
    copy(sources[game], folder)
    data = rng.choice((", ", ",", " ", "\n")).join(map(str, played(rng, sources, game))).encode()
    data = bytes_of(rng, data) if rng.random() < 0.8 else b",".join(hostile_text(rng).encode("utf-8", "surrogateescape") for _ in range(3))
    write(os.path.join(folder, "actions.txt"), data)
    base = ["inspect", "--config", "run/config.toml", *rng.choice(([], ["--json", "-"], ["--json", "out.jsonl"]))]
    return Input([Command(*base, "--actions", "@actions.txt"), Command(*base, "--actions", "-", stdin=data)], "actions.txt")


def typed(rng, sources, folder):
    """Lines typed at `play`."""
    game = game_of(rng)
    copy(sources[game], folder)
    words = [str(action) for action in played(rng, sources, game)] + ["undo", "hint", "help", "?", "UNDO", "quit ", "", "a1", "e2e4", "pass", "bid 1"]
    data = "\n".join(rng.choices(words, k=rng.randrange(1, 30))).encode() + b"\n"
    data = bytes_of(rng, data) if rng.random() < 0.7 else data
    seat = str(rng.choice((0, 0, 1, 1, 2, 9)))
    return Input([Command("play", "run", "--sims", str(rng.choice((1, 2, 7))), "--seat", seat, *SMALL, stdin=data, allowed=LONG_WORK)], f"stdin {data[:200]!r}")


def config_file(rng, sources, folder):
    """A configuration of a new run, and of commands without a run."""
    game = game_of(rng)
    copy(sources[game], folder)
    before = read(os.path.join(folder, "run/config.toml"))
    write(os.path.join(folder, "tiny.toml"), mostly(toml_of, 0.85)(rng, before))
    run = Command("run", "--config", "tiny.toml", "--out", "new", "--epochs", "1", "--minutes", "0.02", *SMALL, allowed=CHANGES | LONG_WORK)
    bench = Command("bench-scaling", "--config", "tiny.toml", "--net", "uniform", "--games", "2", "--sims", "2", "--seconds", "0.01", *SMALL, allowed=LONG_WORK)
    return Input([rng.choice((Command("inspect", "--config", "tiny.toml"), bench)), run], "tiny.toml")


def set_values(rng, sources, folder):
    """Values of `--set`."""
    game = game_of(rng)
    copy(sources[game], folder)
    config = tomllib.loads(read(os.path.join(folder, "run/config.toml")).decode())
    given = []
    for _ in range(rng.choice((1, 1, 2))):
        section = rng.choice(list(config))
        key = rng.choice(list(config[section]))
        value = value_of(rng, config[section][key], rng.choice(("kept", "kept", "any")))
        text = formats.toml_value(value) if rng.random() < 0.7 else hostile_text(rng)
        given += ["--set", f"{section}.{key}={text}".replace("\0", "0")]
    base = ["--config", "run/config.toml"]
    commands = [
        Command("run", *base, *given, "--out", "new", "--minutes", "0.02", allowed=CHANGES | LONG_WORK),
        Command("run", *base, *given, "--out", "new", "--minutes", "0.02", allowed=CHANGES | LONG_WORK),
        Command("inspect", *base, *given), Command("eval", "run", "--against", "random", *MATCH, *given, allowed=LONG_WORK),
        Command("play", "run", "--sims", "2", *given, stdin=PLIES, allowed=LONG_WORK),
        Command("bench-scaling", *base, *given, "--net", "uniform", "--games", "2", "--sims", "2", "--seconds", "0.01", allowed=LONG_WORK),
    ]
    return Input([rng.choice(commands)], " ".join(given))


LINES = (
    ["run", "--config", "run/config.toml", "--out", "new", "--epochs", "1", "--minutes", "0.02", "--threads", "1", "--seed", "1", "--games", "2", "--sims", "2"],
    ["run", "--resume", "run", "--epochs", "3", "--minutes", "0.03", "--threads", "1", "--device", "cpu"],
    ["run", "--game", "tic_tac_toe", "--minutes", "0.02", "--out", "new", "--set", "run.memory_mib=2000"],
    ["eval", "run", "--against", "random", "--games", "2", "--sims", "2", "--opening-plies", "1", "--threads", "1", "--seed", "1", "--json", "out.json"],
    ["eval", "run", "--against", "exec:true", "--reply-timeout", "0.5", "--games", "1"],
    ["eval", "run", "--positions", "positions.jsonl", "--sims", "2", "--threads", "1", "--json", "-"],
    ["verify", "run", "--json", "out.json"],
    ["verify", "run", "--accept"],
    ["export-weights", "run", "--format", "onnx", "--precision", "bf16", "--out", "exported"],
    ["import-weights", "net.safetensors", "--like", "run", "--out", "imported"],
    ["play", "run", "--sims", "2", "--seat", "0", "--seed", "1", "--threads", "1", "--set", "search.leaves=1"],
    ["inspect", "--game", "hex", "--set", "game.size=5", "--actions", "0,1,2", "--json", "out.json"],
    ["inspect", "--config", "quick", "--actions", "3,3", "--json"],
    ["bench-scaling", "--game", "tic_tac_toe", "--net", "uniform", "--games", "2", "--sims", "2", "--leaves", "1", "--seconds", "0.01", "--threads", "1", "--root-cache", "0",
     "--json", "rows.json", "--device", "cpu"],
)


def arguments(rng, sources, folder):
    """Arguments of every command."""
    copy(sources[SOLVED], folder)
    write(os.path.join(folder, "positions.jsonl"), b'{"actions":[],"scores":[0,0,0,0,0,0,0,0,0]}\n')
    line = list(rng.choice(LINES))
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(1, len(line))
        act = rng.randrange(6)
        if act <= 2:
            values = [i for i in range(1, len(line)) if not line[i].startswith("--")]
            line[rng.choice(values or [at])] = hostile_text(rng)
        elif act == 3 and len(line) > 2:
            del line[at]
        elif act == 4:
            line.insert(at, rng.choice(("--quiet", "-v", "--help", "--version", "--", "-", "--accept", "--json", "--minutes", "--x", hostile_text(rng))))
        else:
            line[at] = bytes_of(rng, line[at].encode("utf-8", "surrogateescape")).replace(b"\0", b"0").decode("utf-8", "surrogateescape")
    env = {"VECAZ_LOG": rng.choice(("vecaz=debug", "trace", "", "=,=", "\u00e9", "x" * 1000))} if rng.random() < 0.1 else {}
    has_log = bool(env) or any(word.startswith("-v") or word == "--verbose" for word in line)
    allowed = CHANGES | LONG_WORK | (Allowed.LOG if has_log else Allowed.NOTHING)
    return Input([Command(*line, stdin=PLIES, env=env, allowed=allowed)], "arguments")


def opponent(rng, sources, folder):
    """The output of an external program."""
    copy(sources[game_of(rng)], folder)
    program = f"exec:{sys.executable} -B -S -E {os.path.join(HERE, 'opponent.py')} {rng.randrange(10**8, 10**9)}"
    threads = ["--threads", rng.choice(("1", "2"))]
    match = ["--against", program, "--reply-timeout", "0.4", "--games", "3", "--sims", "2", *threads]
    return Input([Command("eval", "run", *match, *rng.choice(([], ["--json", "-"])))], program)


# Kind -> (share of the inputs, its builder).
KINDS = {name: (share, file_kind(name)) for name, share in zip(FILES, (8, 5, 5, 3, 14, 6, 8, 6, 4, 4))}
KINDS |= {
    "manifest.jsonl": (6, manifest), "folder": (6, folder_shape), "weights file": (5, weights_file), "solved positions": (4, positions),
    "action list": (4, action_list), "typed at play": (3, typed), "configuration file": (6, config_file), "--set": (6, set_values),
    "arguments": (6, arguments), "exec: opponent": (4, opponent),
}


def build(seed, number, sources, folder):
    """(kind, Input) number `number` of the campaign `seed`, with its files in the new folder `folder`."""
    rng = random.Random(f"{seed}/{number}")
    kind = rng.choices(list(KINDS), [share for share, _ in KINDS.values()])[0]
    return kind, KINDS[kind][1](rng, sources, folder)
