"""Builds all that benches/gpu_machine.sh carries to a machine with a GPU, and tries it out: python3 pack.py FOLDER [CAPABILITY
[MULTIPROCESSORS]]

FOLDER then has gpu_machine.sh and pack.tar.xz. Needs cargo, a C++ compiler with binutils, and pip with access to PyPI."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

import candle
import parts

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# What may be carried, tree and pack together, and the newest version of glibc's symbols that may be needed.
CARRIED_BYTES, GLIBC = 55 << 20, (2, 39)
PROGRAMS = ("vecaz", "cuda_parity", "device_games", "device_forward", "device_train")
NVRTC = "nvidia-cuda-nvrtc==13.0.88"
# Packages of the peers beside JAX and PyTorch, each by the module that it is; the runner takes those that the machine lacks.
PACKAGES = {
    "pgx": "pgx==2.6.0", "mctx": "mctx==0.0.71", "haiku": "dm-haiku==0.0.17", "chex": "chex==0.1.92", "jmp": "jmp==0.0.4",
    "tabulate": "tabulate==0.10.0", "toolz": "toolz==1.2.0", "absl": "absl-py==2.5.1", "svgwrite": "svgwrite==1.4.3",
}  # fmt: skip
PEERS = ("benches/pgx_random_play.py", "benches/peers/mctx_search.py", "benches/peers/torch_resnet.py")


def output(*command, **options):
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def build():
    """Name -> executable of every program."""
    cargo = lambda *words: output("cargo", *words, "--locked", "--message-format=json")
    messages = cargo("build", "--release", "--bin", "vecaz", "--example", "kernel_store")
    messages += cargo("test", "--release", "--no-run", "--test", "cuda_parity")
    messages += cargo("bench", "--no-run", *(word for name in PROGRAMS[2:] for word in ("--bench", name)))
    built = (json.loads(line) for line in messages.splitlines() if line.startswith("{"))
    return {message["target"]["name"]: message["executable"] for message in built if message.get("executable")}


def check_glibc(program):
    """Refuses a program that a machine with that glibc would not start."""
    symbols = re.findall(r"GLIBC_(\d+)\.(\d+)", output("objdump", "-T", program))
    newest = max((int(major), int(minor)) for major, minor in symbols)
    if newest > GLIBC:
        sys.exit(f"{program} needs glibc {newest[0]}.{newest[1]}, at most {GLIBC[0]}.{GLIBC[1]} may be needed: build on an older system")
    return newest


def fill(folder, gpu, libraries):
    """Puts everything into `folder`, and what stands in for CUDA's libraries into `libraries`."""
    built = build() | {candle.NAME: candle.build(gpu[0], libraries)}
    for name in (*PROGRAMS, candle.NAME):
        target = os.path.join(folder, name)
        output("strip", "-o", target, built[name])
        print(f"{name}: {os.path.getsize(target) >> 10} KiB, glibc {'.'.join(map(str, check_glibc(target)))}", flush=True)
    output("kernels/wheels.sh", NVRTC)
    began = time.monotonic()
    with open(os.path.join(ROOT, "benches/gpu_machine/programs.txt")) as programs:
        output(built["kernel_store"], *gpu, os.path.join(folder, "cache"), stdin=programs)
    stored = len(os.listdir(os.path.join(folder, "cache/programs")))
    print(f"{stored} programs compiled in {time.monotonic() - began:.0f} s", flush=True)
    for path in PEERS:
        shutil.copy(os.path.join(ROOT, path), folder)
    shutil.copytree(
        os.path.join(ROOT, "benches/gpu_machine"), os.path.join(folder, "gpu_machine"), ignore=shutil.ignore_patterns("__pycache__")
    )
    for module, package in PACKAGES.items():
        with tempfile.TemporaryDirectory() as wheels:
            pip = ("-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:")
            output(sys.executable, *pip, "--dest", wheels, package)
            for wheel in os.listdir(wheels):
                shutil.unpack_archive(os.path.join(wheels, wheel), os.path.join(folder, "python", module), "zip")
    with open(os.path.join(folder, "commit"), "w") as file:
        file.write(output("git", "rev-parse", "HEAD"))
    with open(os.path.join(folder, "tests"), "w") as file:
        file.write("".join(f"{test}\n" for test in tests_of(folder)))


def tests_of(folder):
    listed = output(os.path.join(folder, "cuda_parity"), "--list", "--format", "terse")
    return [line.removesuffix(": test") for line in listed.splitlines() if line.endswith(": test")]


def check_size(folder):
    """Refuses a pack that cannot be carried with the tree."""
    tree = output("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    paths = [os.path.join(ROOT, name) for name in tree if name]
    here = [os.path.join(folder, name) for name in os.listdir(folder)]
    # A pack inside the tree that git does not ignore counts once.
    sizes = {path: os.path.getsize(path) for path in map(os.path.realpath, [*paths, *here]) if os.path.isfile(path)}
    pack, total = sum(os.path.getsize(path) for path in here), sum(sizes.values())
    print(f"pack {pack / 2**20:.1f} MiB, with the tree {total / 2**20:.1f} of at most {CARRIED_BYTES >> 20} MiB", flush=True)
    if total > CARRIED_BYTES:
        sys.exit("the pack and the tree are too large to be carried")


def try_out(folder, libraries):
    """Unpacks into an empty folder as the other machine does, lists the tests, and without a GPU tries every part's command."""
    with tempfile.TemporaryDirectory() as empty:
        began = time.monotonic()
        output(sys.executable, "-m", "tarfile", "--extract", os.path.join(folder, "pack.tar.xz"), empty)
        print(f"unpacked in {time.monotonic() - began:.1f} s; the tests are", flush=True)
        print("".join(f"  {test}\n" for test in tests_of(empty)), end="", flush=True)
        if os.path.exists("/dev/nvidiactl"):
            print("##### no dry run, since this machine has a GPU #####", flush=True)
            return
        for verb in parts.VERBS:
            dry_run(verb, empty, libraries)


def dry_run(verb, unpacked, libraries):
    """Runs a verb where no part can pass. Exit code 2 of a program of ours is a command that it does not understand, and from 126 on
    it has not started or was killed."""
    with tempfile.TemporaryDirectory() as out:
        began = time.monotonic()
        run = [sys.executable, os.path.join(unpacked, "gpu_machine/run.py"), verb, out, "--past-gate"]
        environment = {**os.environ, "LD_LIBRARY_PATH": libraries}
        subprocess.run(run, stdout=subprocess.DEVNULL, check=False, env=environment)
        with open(os.path.join(out, "results.json")) as file:
            results = json.load(file)["parts"]
        ours = [part for part in results if part["group"] == "ours" and part["command"].split()[0] not in ("ncu", "compute-sanitizer")]
        wrong = [part for part in ours if part["exit"] not in (0, 1, 101)]
        print(f"dry run of {verb}: {len(results)} parts in {time.monotonic() - began:.1f} s", flush=True)
        for part in wrong:
            sys.exit(f"{part['name']}: {part['reason']}: {part['command']}")


def main():
    if not 2 <= len(sys.argv) <= 4:
        sys.exit("expected FOLDER and, if it is not 90 132, compute capability and multiprocessors of the GPU")
    folder, gpu = os.path.abspath(sys.argv[1]), (sys.argv[2:] + ["90", "132"][len(sys.argv) - 2 :])[:2]
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as libraries:
        with tempfile.TemporaryDirectory() as files:
            fill(files, gpu, libraries)
            with tarfile.open(os.path.join(folder, "pack.tar.xz"), "w:xz") as tar:
                tar.add(files, ".")
        shutil.copy(os.path.join(ROOT, "benches/gpu_machine.sh"), folder)
        check_size(folder)
        try_out(folder, libraries)


if __name__ == "__main__":
    main()
