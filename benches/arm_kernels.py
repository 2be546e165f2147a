#!/usr/bin/env python3
"""What the inner loops of the kernels for 64-bit ARM are made of, and the share of a processor's peak that they can reach.

    benches/arm_kernels.py PROGRAM [--all] [--objdump llvm-objdump] [--mca llvm-mca]

PROGRAM is an executable for 64-bit ARM, e.g. target/aarch64-unknown-linux-gnu/release/vecaz. For each kernel the script takes the tile with
the most sums, which large batches use (all tiles with --all), looks for the innermost loop with the most multiply-adds, and counts:
vector multiply-adds, scalar ones (there must be none in any tile), loads, other vector instructions, and accesses to the stack (there
should be none: a spilled register). llvm-mca estimates the cycles of the
loop on each processor; the share is that of a loop of as many independent multiply-adds of the same kind. An estimate, not a
measurement: `vecaz bench-scaling` measures on a machine.

The exit code is 1 where a loop has a scalar multiply-add. Python 3.11, and LLVM 19 or later.
"""

import argparse
import re
import subprocess
import sys

PROCESSORS = ("neoverse-n1", "neoverse-v1", "neoverse-v2", "apple-m1")
# Functions, and what they are called in the table.
KERNELS = {
    "cpu::aarch64::NEON::rows": "f32",
    "cpu::aarch64_bf16::NEON::rows": "bf16 by fmla",
    "cpu::aarch64_bf16::WIDENING::rows": "bf16 by bfmlal",
    "cpu::aarch64_bf16::MATRIX::rows": "bf16 by bfmmla",
    "cpu::aarch64_int8::STEM::rows": "int8, stem",
    "cpu::aarch64_int8::SIGNED::rows": "int8 by sdot",
    "cpu::aarch64_int8::MATRIX::rows": "int8 by usmmla",
    "cpu_train::gemm::product": "training, product",
    "cpu_train::gemm::weight_gradient": "training, gradient",
}
VECTOR = ("fmla", "bfmlalb", "bfmlalt", "sdot", "udot", "bfmmla", "usmmla")
SCALAR = ("fmadd", "fnmadd", "fmsub", "madd.s", "fmul\ts", "fmul\td")


def disassembly(program, objdump):
    """(symbol, [(address, instruction)]) of each tile of the kernels."""
    listing = subprocess.run(
        [objdump, "-d", "--demangle", "--no-show-raw-insn", program], capture_output=True, text=True, check=True
    ).stdout
    for block in listing.split("\n\n"):
        head, _, body = block.partition("\n")
        found = re.match(r"[0-9a-f]+ <(.*)>:$", head.strip())
        kernel = found and next((name for name in KERNELS if f"vecaz::net::{name}" in found[1]), None)
        if kernel:
            lines = re.findall(r"^\s*([0-9a-f]+):\s+(.*)$", body, re.M)
            yield kernel, [(int(address, 16), text.strip()) for address, text in lines]


def mnemonic(text):
    return text.split()[0].split(".")[0]


def loops(code):
    """The innermost loops: from the target of a backward branch to the branch, without another one inside."""
    number = {address: i for i, (address, _) in enumerate(code)}
    spans = []
    for i, (_, text) in enumerate(code):
        found = re.match(r"(?:b\.\w+|cbn?z|tbn?z|b)\s.*?(?:0x)?([0-9a-f]+) <", text)
        target = found and number.get(int(found[1], 16))
        if target is not None and target <= i:
            spans.append((target, i))
    inner = [s for s in spans if not any(o != s and s[0] <= o[0] and o[1] <= s[1] for o in spans)]
    return [[text for _, text in code[first:last + 1]] for first, last in inner]


def is_vector_product(text):
    return mnemonic(text) in VECTOR


def sums(loop):
    return {re.split(r"[\s,]+", text)[1].split(".")[0] for text in loop if is_vector_product(text)}


def assembly(loop):
    """The loop for llvm-mca: without the names that the listing adds to addresses; the branch at its end goes to its start."""
    body = [re.sub(r"\s*<.*?>|\s*//.*", "", text) for text in loop[:-1]]
    body = [text for text in body if not re.match(r"(b|b\.\w+|cbn?z|tbn?z)\s", text)]
    return ".arch armv8.6-a+bf16+i8mm+dotprod\nstart:\n" + "\n".join(body) + "\nb.ne start\n"


def cycles(text, processor, mca):
    """Cycles of one pass through the code, in the long run."""
    iterations = 200
    done = subprocess.run(
        [mca, "-mtriple=aarch64-linux-gnu", f"-mcpu={processor}", "-mattr=+bf16,+i8mm,+dotprod", f"-iterations={iterations}",
         "--skip-unsupported-instructions=any"],
        input=text, capture_output=True, text=True,
    )
    found = re.search(r"Total Cycles:\s+(\d+)", done.stdout)
    return int(found[1]) / iterations if found else None


def peak(loop, processor, mca):
    """Cycles of as many multiply-adds as the loop has, of the same kinds, whose sums are all independent."""
    kinds = [re.sub(r"^(\S+)\s+v\d+\.4s", r"\1 v{}.4s", text) for text in loop if is_vector_product(text)]
    body = "\n".join(kind.format(i % 20 + 12) for i, kind in enumerate(kinds))
    body = re.sub(r"^(\S+ v\d+\.4s), v\d+\.(\w+), v\d+\.", r"\1, v0.\2, v1.", body, flags=re.M)
    return cycles(".arch armv8.6-a+bf16+i8mm+dotprod\n" + body + "\n", processor, mca)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--all", action="store_true", help="all tiles, not the largest alone")
    parser.add_argument("--objdump", default="llvm-objdump")
    parser.add_argument("--mca", default="llvm-mca")
    args = parser.parse_args()
    print("| kernel | sums | vector products | scalar products | loads | other vector | stack | " + " | ".join(PROCESSORS) + " |")
    print("|---|---|---|---|---|---|---|" + "---|" * len(PROCESSORS))
    rows, scalar_total = set(), 0
    for kernel, code in disassembly(args.program, args.objdump):
        candidates = [loop for loop in loops(code) if any(map(is_vector_product, loop))]
        scalar = sum(any(text.startswith(s) for s in SCALAR) for loop in loops(code) for text in loop)
        scalar_total += scalar
        if not candidates:
            continue
        loop = max(candidates, key=lambda loop: sum(map(is_vector_product, loop)))
        products = sum(map(is_vector_product, loop))
        loads = sum(mnemonic(text) in ("ldr", "ldp", "ldur", "ld1", "ld1r") and re.search(r"\s[qvd]\d", text) is not None for text in loop)
        stack = sum("[sp" in text for text in loop)
        other = sum(bool(re.search(r"\sv\d+\.", text)) and not is_vector_product(text) and mnemonic(text) not in ("ld1", "ld1r")
                    for text in loop)
        shares = []
        for processor in PROCESSORS:
            best, found = peak(loop, processor, args.mca), cycles(assembly(loop), processor, args.mca)
            shares.append(f"{best / found:.0%}" if best and found else "-")
        rows.add((kernel, len(sums(loop)), products, scalar, loads, other, stack, *shares))
    for kernel, *columns in sorted(rows, key=lambda row: (list(KERNELS).index(row[0]), row[1])):
        if args.all or columns[0] == max(row[1] for row in rows if row[0] == kernel):
            print(f"| {KERNELS[kernel]} | " + " | ".join(map(str, columns)) + " |")
    if not rows:
        sys.exit(f"{args.program}: no kernel found")
    return 1 if scalar_total else 0


if __name__ == "__main__":
    sys.exit(main())
