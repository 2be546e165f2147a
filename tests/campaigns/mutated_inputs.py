#!/usr/bin/env python3
"""Gives vecaz mutated inputs of every kind that it reads, and checks how it ends.

    tests/campaigns/mutated_inputs.py PROGRAM [--count N] [--seed S] [--jobs J] [--kind TEXT] [--input I] [--keep FOLDER]

An input is a copy of a tiny run with one mutated file (in most of the inputs with right checksums, so that the checks after
the checksums run), or mutated arguments, configuration values, typed lines or replies of an `exec:` opponent; one or two commands
read it. Each must end by itself within 10 s, or after a SIGINT where the input may ask for long work; not by a signal or a panic;
with one sentence on stderr where it fails; and without a change of any file that it does not own. `verify` must notice a file
that is not as the manifest lists it. The inputs depend on the seed and the number alone, but for the times in a run's files;
`--keep` stores the folder of each finding with the commands. The exit code is 1 where there is a finding. Python 3.11, no packages.
"""

import argparse
import collections
import concurrent.futures
import hashlib
import os
import resource
import shlex
import shutil
import stat
import sys
import tempfile

import kinds
import sources
from program import Allowed, accept_interrupts, faults, message, start

# Address space of each command: the input must not determine the memory taken.
MEMORY = 4 << 30
# The largest file that a command may write.
FILE = 256 << 20
# Files that a started run may replace before it fails.
BEGUN = ("run/config.toml", "run/manifest.jsonl", "run/.lock", "run/events.out", "run/report.html", "run/findings.jsonl")
# Remains of a killed process, which the next process removes.
REMOVED = ("run/checkpoints/.removing-", "run/checkpoints/.writing-", "run/checkpoints/epoch-000003", "run/checkpoints/epoch-18446744073709551615")
SHOWN = 3


def files(folder):
    """Path -> hash of a regular file, or the kind of another entry."""
    found = {}
    for at, folders, names in os.walk(folder):
        for name in [*folders, *names]:
            path = os.path.join(at, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISREG(mode):
                with open(path, "rb") as file:
                    content = hashlib.blake2b(file.read(), digest_size=8).hexdigest()
            else:
                content = os.readlink(path) if stat.S_ISLNK(mode) else stat.filemode(mode)[0]
            found[os.path.relpath(path, folder)] = content
    return found


def changed(before, after):
    """Files that are missing or differ."""
    return sorted(path for path in before if after.get(path) != before[path])


def wrong_changes(command, outcome, damaged, before, after):
    """The forbidden changes that a command has made in the folder."""
    gone = [path for path in changed(before, after) if not path.endswith(".lock")]
    new = [path for path in after.keys() - before.keys() if not path.endswith(".lock")]
    if not command.allowed & Allowed.CHANGES:
        own = {"exported", "result.jsonl", "out.jsonl"}
        return [f"changed {path}" for path in gone] + [f"left {path}" for path in new if outcome.code or path not in own]
    if any(".vecaz-" in path or "/.writing-" in path for path in new):
        return ["left a temporary file"]
    outside = [f"changed {path}" for path in gone if not path.startswith("run/")]
    if outcome.code == 0:
        return outside + [f"changed {path}" for path in gone if path.startswith("run/games/epoch-00000") and path < "run/games/epoch-000003"]
    return outside + [f"changed {path} and failed" for path in gone if not path.startswith(() if damaged else BEGUN + REMOVED)]


def left_processes(token):
    """Processes whose arguments contain `token`."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if token.encode() in file.read():
                    found.append(pid)
        except OSError:
            pass
    return found


def check(program, seed, number, made, folder):
    """(kind, [exit code of each command], [(command, fault, message)]) of an input."""
    kind, given = kinds.build(seed, number, made, folder)
    codes, found = [], []
    for command in given.commands:
        before = files(folder)
        done = start([program, *command.arguments], command.stdin, folder, command.env)
        wrong = faults(done, command.allowed) + wrong_changes(command, done, given.damaged, before, files(folder))
        if command.arguments == kinds.VERIFY.arguments and given.damaged and done.code == 0:
            wrong.append("verify takes a file that differs from the manifest")
        if kind == "exec: opponent" and left_processes(given.note.split()[-1]):
            wrong.append("left a process of the opponent")
        codes.append("after SIGINT" if done.interrupted else str(done.code))
        found += [(shlex.join(command.arguments), what, f"{given.note}: {message(done)[:600]}") for what in wrong]
    return kind, codes, found


def one(task):
    program, seed, number, made, scratch, keep = task
    folder = os.path.join(scratch, f"input-{number}")
    try:
        kind, codes, found = check(program, seed, number, made, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if found and keep:
        kept = os.path.join(keep, str(number))
        kinds.build(seed, number, made, kept)
        with open(kept + ".txt", "w", errors="backslashreplace") as file:
            file.write("".join(f"vecaz {command}\n{what}\n{text}\n\n" for command, what, text in found))
    return number, kind, codes, found


def limit():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE, FILE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def numbers(args, made, scratch):
    """The inputs to make: all, or those of the named kinds."""
    if args.input is not None:
        return [args.input]
    if not args.kind:
        return range(args.count)
    chosen = []
    for number in range(args.count):
        folder = os.path.join(scratch, "probe")
        kind, _ = kinds.build(args.seed, number, made, folder)
        shutil.rmtree(folder)
        chosen += [number] if args.kind in kind else []
    return chosen


def table(counts):
    codes = sorted({code for row in counts.values() for code in row}, key=lambda code: (len(code), code))
    print(f"\n{'commands by exit code':24}" + "".join(f"{code:>14}" for code in codes))
    for kind in kinds.KINDS:
        if kind in counts:
            print(f"{kind:24}" + "".join(f"{counts[kind][code]:14}" for code in codes))
    print(f"{'all':24}" + "".join(f"{sum(row[code] for row in counts.values()):14}" for code in codes))


def report(findings):
    """Groups similar findings, with the first inputs of each."""
    for (kind, command, what), shown in sorted(findings.items()):
        print(f"\nFINDING {kind}: vecaz {command}: {what} ({len(shown)} inputs)")
        for number, text in shown[:SHOWN]:
            print(f"  --input {number}: {text[:400]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--kind", default="", help="only kinds of input whose name contains this")
    parser.add_argument("--input", type=int, help="only this input")
    parser.add_argument("--keep", help="store the inputs of findings in this folder")
    args = parser.parse_args()
    program = os.path.abspath(args.program)
    accept_interrupts()
    if args.keep:
        os.makedirs(args.keep)  # a new folder: nothing is overwritten
    limit()
    scratch = tempfile.mkdtemp(prefix="mutated-inputs-")
    counts, findings, done = collections.defaultdict(collections.Counter), collections.defaultdict(list), 0
    try:
        made = sources.make(program, os.path.join(scratch, "sources"))
        before = files(os.path.join(scratch, "sources"))
        tasks = [(program, args.seed, number, made, scratch, args.keep) for number in numbers(args, made, scratch)]
        with concurrent.futures.ProcessPoolExecutor(args.jobs) as pool:
            for number, kind, codes, found in pool.map(one, tasks, chunksize=4):
                done += 1
                counts[kind].update(codes)
                for command, what, text in found:
                    name = " ".join(word for word in command.split()[:2] if word.startswith("-") or word == command.split()[0])
                    findings[kind, name, what].append((number, f"vecaz {command}: {text}"))
                if done % 1000 == 0:
                    print(f"{done} inputs, {sum(map(len, findings.values()))} findings", flush=True)
        if files(os.path.join(scratch, "sources")) != before:
            findings["all", "", "changed a file outside of its folder"].append((0, "the runs that the inputs were copied from"))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    report(findings)
    table(counts)
    print(f"{done} inputs, {sum(sum(row.values()) for row in counts.values())} commands, {len(findings)} kinds of findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
