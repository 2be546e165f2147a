#!/usr/bin/env python3
"""Runs every command of vecaz under limits of memory, file sizes, open files and disk space, and with outputs that cannot be written.

    tests/campaigns/limits.py PROGRAM [--only TEXT]

Each command must either end well, or be refused in one sentence on stderr: no signal, no panic, no kill for memory. A reader of stdout
that is gone ends it with 141. Where stderr cannot be written its text is not judged. After each command the run must be whole,
and a new run that was cut off must resume. Prints the exit code of every command under every limit. Memory cgroups (v1 and v2)
and a small tmpfs as a full disk need root; where the machine does not permit them the script says so. The exit code is 1 where there
is a finding. Linux, Python 3.11, no packages.
"""

import argparse
import contextlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile

import sources
from program import Allowed, accept_interrupts, faults, message, start

MIB = 1 << 20
GAME = "connect_four"
TINY = sources.assignments(f"{sources.BASE} {sources.GAMES[GAME]}")
# An epoch of a second, with the default's network, games, replay and caches.
SHORT = sources.assignments("selfplay.samples_per_epoch=200 train.min_samples=100 eval.positions=2")
TWO = ["--threads", "2"]
MATCH = ["--games", "2", "--sims", "2", *TWO]
MOVES = b"0\n1\n2\n3\n4\n" * 10
# An opponent that plays the first legal action.
REPLY = f"""exec:{sys.executable} -S -E -c "import json, sys; [print(json.dumps(dict(action=json.loads(line)['legal'][0])), flush=True) for line in sys.stdin]" """
POSITIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../fixtures/connect_four_solved.jsonl")

# Name -> arguments. The run `run` is a tiny one.
COMMANDS = {
    "run tiny": ["run", "--game", GAME, *TINY, "--out", "new"],
    "run default": ["run", "--out", "new", "--epochs", "1", *SHORT, *TWO],
    "run large": ["run", "--out", "new", "--minutes", "0.03", "--games", "8192", "--sims", "800", *TWO],
    "run --resume": ["run", "--resume", "run", "--epochs", "3", "--set", "run.epochs=3", *TWO],
    "eval match": ["eval", "run", "--against", "random", *MATCH],
    "eval run": ["eval", "run", "--against", "run", *MATCH],
    "eval json": ["eval", "run", "--against", "random", *MATCH, "--json", "result.json"],
    "eval exec": ["eval", "run", "--against", REPLY, "--reply-timeout", "2", *MATCH],
    "eval large": ["eval", "run", "--against", "random", "--games", "1", "--sims", "20000", *TWO],
    "eval default": ["eval", "embedded.safetensors", "--positions", "positions.jsonl", "--sims", "4", *TWO],
    "verify": ["verify", "run"],
    "verify --accept": ["verify", "run", "--accept"],
    "export": ["export-weights", "run", "--out", "exported"],
    "export onnx": ["export-weights", "run", "--format", "onnx", "--out", "exported"],
    "import": ["import-weights", "embedded.safetensors", "--out", "imported"],
    "export to /dev/full": ["export-weights", "run", "--out", "/dev/full"],
    "play": ["play", "run", "--sims", "4", *TWO],
    "play default": ["play", "--sims", "20", *TWO],
    "inspect": ["inspect", "--game", "chess"],
    "inspect json": ["inspect", "--game", "chess", "--json", "positions.json"],
    "bench": ["bench-scaling", "--game", GAME, "--net", "uniform,1x16", "--games", "2", "--sims", "4", "--seconds", "0.01", *TWO],
    "bench large": ["bench-scaling", "--net", "uniform", "--games", "100000", "--sims", "800", "--seconds", "0.01", *TWO],
    "--help": ["--help"],
}


class Limit:
    """A limit: `apply` is called in the new process; `space` is what a full disk has left, in bytes; `lost` names the outputs that
    cannot be written."""

    def __init__(self, name, apply=None, space=None, lost=()):
        self.name, self.apply, self.space, self.lost = name, apply, space, lost


def rlimit(name, kind, value):
    return Limit(name, lambda: resource.setrlimit(kind, (value, value)))


def closed(*fds):
    return lambda: [os.close(fd) for fd in fds]


def full(*fds):
    def apply():
        device = os.open("/dev/full", os.O_WRONLY)
        for fd in fds:
            os.dup2(device, fd)
        os.close(device)

    return apply


def reader_gone():
    read, write = os.pipe()
    os.dup2(write, 1)
    os.close(read)
    os.close(write)


def redirections():
    yield Limit("stdout closed", closed(1))
    yield Limit("stderr closed", closed(2), lost=["stderr"])
    yield Limit("stdin, stdout and stderr closed", closed(0, 1, 2), lost=["stderr"])
    yield Limit("stdout full", full(1))
    yield Limit("stderr full", full(2), lost=["stderr"])
    yield Limit("stdout and stderr full", full(1, 2), lost=["stderr"])
    yield Limit("reader of stdout gone", reader_gone)


def least_address_space(program):
    """The minimum `ulimit -v` in MiB under which the system can load the program."""
    for size in range(8, 1024, 8):
        probe = rlimit("", resource.RLIMIT_AS, size * MIB)
        try:
            if start([program, "--version"], limit=probe.apply).code == 0:
                return size
        except subprocess.SubprocessError:
            pass  # Python cannot start its child process
    return 1024


@contextlib.contextmanager
def memory_cgroup(mib):
    """Makes a memory cgroup; returns the function with which a new process enters it, or the reason of the failure."""
    version_1 = os.path.isdir("/sys/fs/cgroup/memory")
    group = f"/sys/fs/cgroup/{'memory/' if version_1 else ''}vecaz-limits-{os.getpid()}-{mib}"
    try:
        os.mkdir(group)
    except OSError as error:
        yield None, str(error)
        return
    try:
        files = ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"] if version_1 else ["memory.max", "memory.swap.max"]
        with open(os.path.join(group, files[0]), "w") as file:
            file.write(str(mib * MIB))
        if os.path.exists(os.path.join(group, files[1])):
            with open(os.path.join(group, files[1]), "w") as file:
                file.write(str(mib * MIB) if version_1 else "0")

        def enter():
            with open(os.path.join(group, "cgroup.procs"), "w") as file:
                file.write(str(os.getpid()))

        yield enter, None
    except OSError as error:
        yield None, str(error)
    finally:
        os.rmdir(group)


@contextlib.contextmanager
def folder_for(limit, scratch):
    """An empty folder, on a small disk if the limit is a full disk; None if that is not permitted."""
    folder = tempfile.mkdtemp(dir=scratch)
    if limit.space is None:
        yield folder
        shutil.rmtree(folder)
        return
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        yield None
        return
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def fill(folder, space):
    """Fills the disk up to `space` free bytes."""
    disk = os.statvfs(folder)
    with open(os.path.join(folder, "filler"), "wb") as file:
        file.write(bytes(max(0, disk.f_bavail * disk.f_frsize - space)))


def check(program, name, limit, made, scratch):
    """(exit code, findings) of a command under a limit; the code is None if the limit cannot be set."""
    with folder_for(limit, scratch) as folder:
        if folder is None:
            return None, []
        shutil.copytree(made["run"], os.path.join(folder, "run"))
        shutil.copy(os.path.join(made["root"], "assets/connect_four.safetensors"), os.path.join(folder, "embedded.safetensors"))
        shutil.copy(POSITIONS, os.path.join(folder, "positions.jsonl"))
        if limit.space is not None:
            fill(folder, limit.space)
        done = start([program, *COMMANDS[name]], MOVES, folder, limit=limit.apply)
        if "stderr" in limit.lost:
            done.stderr = b"error: it is lost\n" if done.code in (1, 2) else b""
        # A slow machine takes longer than the limit to give the memory of a large plan.
        found = faults(done, Allowed.LONG_WORK if "large" in name else Allowed.NOTHING)
        if limit.space is not None:
            os.remove(os.path.join(folder, "filler"))
        found += wholeness(program, name, folder)
        return done.code, [f"{what}: {message(done)[:300]}" for what in found]


def wholeness(program, name, folder):
    """The defects of the run afterwards, or of a new run that was interrupted."""
    checked = start([program, "verify", "run"], cwd=folder)
    found = [f"the run is damaged: {message(checked)}"] if checked.code else []
    if name == "run tiny" and os.path.exists(os.path.join(folder, "new/config.toml")):
        again = start([program, "run", "--resume", "new"], cwd=folder)
        found += [f"the new run does not resume: {message(again)}"] if again.code else []
    left = [name for at, _, names in os.walk(folder) for name in names if name.startswith(".vecaz-") and "new" not in at]
    return found + [f"left {name}" for name in left]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--only", default="", help="limits whose name contains this")
    args = parser.parse_args()
    program = os.path.abspath(args.program)
    accept_interrupts()
    scratch = tempfile.mkdtemp(prefix="limits-")
    findings, counts = [], {"ended well": 0, "refused": 0}
    try:
        made = {"run": os.path.join(scratch, "made"), "root": os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")}
        sources.must([program, "run", "--game", GAME, *TINY, "--out", made["run"]])
        with contextlib.ExitStack() as stack:
            limits = list(all_limits(program, stack))
            print("\n".join(f"{number:2} {name}" for number, name in enumerate(COMMANDS, 1)))
            print(f"\n{'exit codes':34}" + "".join(f"{number:5}" for number in range(1, len(COMMANDS) + 1)))
            for limit in (limit for limit in limits if args.only in limit.name):
                row = ""
                for name in COMMANDS:
                    code, found = check(program, name, limit, made, scratch)
                    row += f"{'-' if code is None else code:>4}{'!' if found else ' '}"
                    findings += [f"{limit.name}, {name}: {what}" for what in found]
                    if code is not None and not found:
                        counts["ended well" if code == 0 else "refused"] += 1
                print(f"{limit.name:34}{row}", flush=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print("\n" + "".join(f"FINDING {line}\n" for line in findings), end="")
    print(f"{sum(counts.values())} commands {', '.join(f'{count} {what}' for what, count in counts.items())}; {len(findings)} findings")
    return 1 if findings else 0


def all_limits(program, stack):
    yield Limit("none")
    least = least_address_space(program)
    print(f"the system cannot load the program under ulimit -v of less than about {least} MiB")
    for size in (0, 8, 32, 64, 128, 256, 512, 1024, 2048):
        yield rlimit(f"ulimit -v, {least + size} MiB", resource.RLIMIT_AS, (least + size) * MIB)
    for size in (40, 100, 400):
        yield rlimit(f"ulimit -d, {size} MiB", resource.RLIMIT_DATA, size * MIB)
    for mib in (100, 400):
        enter, why = stack.enter_context(memory_cgroup(mib))
        if enter is None:
            print(f"no memory cgroup of {mib} MB can be made here: {why}")
        else:
            yield Limit(f"memory cgroup of {mib} MB", enter)
    for size in (0, 1, 4096, 16_384, 65_536):
        yield rlimit(f"ulimit -f, {size} bytes", resource.RLIMIT_FSIZE, size)
    for count in (6, 10, 16):
        yield rlimit(f"ulimit -n, {count} files", resource.RLIMIT_NOFILE, count)
    for space in (0, 4096, 65_536, 262_144):
        yield Limit(f"full disk, {space} bytes left", space=space)
    yield from redirections()


if __name__ == "__main__":
    sys.exit(main())
