"""Compiles programs for architectures: python check_nvrtc.py LIBNVRTC ARCH,ARCH,... GAMES FOLDER < programs.jsonl

Games at other than their default settings are compiled for the first architecture only, and so are all games but one where GAMES is
`one`, not `all`; networks for the one that they are shaped for, and those with instructions that it has alone (90a) where it is asked
for. Prints a line for each compilation, with the most registers of the kernels of networks and of training and what they spill, and
the compiler's log where there is one; exits with 1 where one fails. Products of warpgroups that the assembler puts one after the
other, or whose registers it spills, are a failure too. What has compiled without a word is noted in FOLDER and not compiled again."""

import ctypes
import glob
import hashlib
import json
import multiprocessing
import os
import re
import sys
import time


def strings(texts):
    return (ctypes.c_char_p * len(texts))(*[text.encode() for text in texts])


def call(function, *arguments):
    result = function(*arguments)
    if result != 0:
        raise RuntimeError(f"{function.__name__} gives {result}")


def log_of(nvrtc, unit):
    size = ctypes.c_size_t()
    call(nvrtc.nvrtcGetProgramLogSize, unit, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    call(nvrtc.nvrtcGetProgramLog, unit, text)
    return text.value.decode(errors="replace").strip()


def size_of_code(nvrtc, unit):
    size = ctypes.c_size_t()
    call(nvrtc.nvrtcGetCUBINSize, unit, ctypes.byref(size))
    return size.value


def registers(log):
    """The log without the lines of the assembler on registers, and a summary of them."""
    of_assembler = [line for line in log.splitlines() if line.startswith("ptxas ") and " error" not in line and "warning" not in line]
    rest = "\n".join(line for line in log.splitlines() if line not in of_assembler)
    used = [int(n) for line in of_assembler for n in re.findall(r"Used (\d+) registers", line)]
    spilled = sum(int(n) for line in of_assembler for n in re.findall(r"(\d+) bytes spill stores", line))
    return rest.strip(), f" ({max(used)} registers, {spilled} bytes spilled)" if used else "", spilled


def slowed(log):
    """What the assembler says of wgmma that it makes wait."""
    return "\n".join(line for line in log.splitlines() if "Potential Performance Loss" in line)


def key(task):
    return hashlib.sha256(json.dumps(task).encode()).hexdigest()


def compile_one(task):
    """(task, label, seconds, bytes of machine code, log) of one program for one architecture; no bytes where it fails."""
    library, program, arch = task
    for parts in glob.glob(os.path.join(os.path.dirname(library), "libnvrtc-builtins.so.*")):
        ctypes.CDLL(parts)  # where the compiler finds it, by its name
    nvrtc = ctypes.CDLL(library)
    unit = ctypes.c_void_p()
    names, texts = zip(*program["headers"])
    source, name = program["source"].encode(), b"program.cu"
    call(nvrtc.nvrtcCreateProgram, ctypes.byref(unit), source, name, len(names), strings(texts), strings(names))
    # The options of src/device/cuda/compile.rs.
    options = ["--std=c++17", "--fmad=false", "--generate-line-info", f"--gpu-architecture=sm_{arch}"]
    if "architecture" in program or program["unit"] == "train":
        options.append("--ptxas-options=-v")
    options += [f"--define-macro={key}={value}" for key, value in program["defines"]]
    start = time.process_time()
    failed = nvrtc.nvrtcCompileProgram(unit, len(options), strings(options)) != 0
    seconds = time.process_time() - start
    whole = log_of(nvrtc, unit)
    log, facts, spilled = registers(whole)
    if arch.endswith("a") and (slowed(whole) or spilled):
        failed, log = True, f"{log}\n{slowed(whole) or 'registers are spilled'}".strip()
    size = 0 if failed else size_of_code(nvrtc, unit)
    call(nvrtc.nvrtcDestroyProgram, ctypes.byref(unit))
    return task, f"{program['label']}: {program['unit']}.cu for sm_{arch}{facts}", seconds, size, log


def is_of_game(program):
    return not program.get("missing") and "architecture" not in program and program["unit"] != "train"


def architectures_of(program, architectures, game):
    """Those that a program is compiled for. With a `game`, all others are compiled for the first architecture only."""
    if "architecture" in program:
        own = program["architecture"]
        return [own] if own.removesuffix("a") in architectures else []
    first_only = program["variant"] or (is_of_game(program) and game not in (None, program["label"]))
    return architectures[:1] if first_only else architectures


def main():
    library, architectures, games, folder = sys.argv[1], sys.argv[2].split(","), sys.argv[3], sys.argv[4]
    os.makedirs(folder, exist_ok=True)
    programs = [json.loads(line) for line in sys.stdin]
    for program in programs:
        if program.get("missing"):
            print(f"##### {program['label']} has NO kernels #####")
    game = next(filter(is_of_game, programs))["label"] if games == "one" else None
    tasks = [
        (library, program, arch)
        for program in programs
        if not program.get("missing")
        for arch in architectures_of(program, architectures, game)
    ]
    new = [task for task in tasks if not os.path.exists(os.path.join(folder, key(task)))]
    failures = 0
    with multiprocessing.Pool() as pool:
        for task, label, seconds, size, log in pool.imap(compile_one, new):
            print(f"{label}: {f'{size} bytes' if size else 'FAILED'}, {seconds:.1f} s", flush=True)
            if log:
                print("    " + log.replace("\n", "\n    "))
            failures += size == 0
            if size and not log:
                open(os.path.join(folder, key(task)), "w").close()
    print(f"{len(tasks)} programs, {len(tasks) - len(new)} as compiled before, {failures} failed")
    sys.exit(1 if failures or not tasks else 0)


main()
