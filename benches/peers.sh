#!/usr/bin/env bash
# vecaz beside its peers on the same work and machine: the forward and the training step beside PyTorch, the search beside
# mctx + pgx (JAX). Processes of each are alternated ROUNDS times; the table has medians and ranges. Wants a quiet machine; about
# three minutes a round.
#
#   PYTHON=.venv/bin/python ROUNDS=5 OUT=runs/peers benches/peers.sh
#
# PYTHON must have torch, jax, mctx, pgx and dm-haiku; a peer that is missing is told on stderr and in the table.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
torch_python=${TORCH_PYTHON:-$python}
rounds=${ROUNDS:-5}
out=${OUT:-runs/peers}
mkdir -p "$out"
cargo build --release --locked
cargo bench --no-run --locked --bench forward --bench train
vecaz=target/release/vecaz

# scaling NAME ARGUMENT...: one row of self-play search into OUT/NAME-ROUND.json. Networks see what those of pgx do.
scaling() {
    local name=$1
    shift
    "$vecaz" bench-scaling --games 128 --sims 800 --threads 2 --seconds 3 --json "$out/$name-$round.json" "$@" \
        --set search.puct_visits=1000000 --set game.network_sees=stones > /dev/null
}

# mctx NAME NET [GAME]: one row of the peer's search into OUT/mctx-NAME-ROUND.json.
mctx() {
    local to=$out/mctx-$1-$round.json
    "$python" benches/peers/mctx_search.py "$2" 128 800 10 float32 "${3:-connect_four}" > "$to" 2> "$out/mctx.log" ||
        { echo "peers.sh: mctx did not run: $(tail -n 1 "$out/mctx.log")" >&2; rm -f "$to"; }
}

torch() {
    MALLOC_MMAP_THRESHOLD_=4294967296 MALLOC_TRIM_THRESHOLD_=8589934592 \
        "$torch_python" benches/peers/torch_resnet.py 6x64 > "$out/torch-$round.json" 2> "$out/torch.log" ||
        { echo "peers.sh: torch did not run: $(tail -n 1 "$out/torch.log")" >&2; rm -f "$out/torch-$round.json"; }
}

for round in $(seq "$rounds"); do
    echo "peers.sh: round $round of $rounds" >&2
    cargo bench -q --locked --bench forward -- 6x64 > "$out/forward-$round.txt"
    torch
    cargo bench -q --locked --bench train > "$out/train-$round.txt"
    scaling gumbel-uniform --net uniform
    scaling puct-uniform --net uniform --set search.algorithm=puct
    mctx uniform uniform
    scaling gumbel-hex --game hex --set game.size=11 --net uniform
    scaling puct-hex --game hex --set game.size=11 --net uniform --set search.algorithm=puct
    mctx hex uniform hex
    scaling f32-2x32 --net 2x32 --set net.precision=f32
    scaling bf16-2x32 --net 2x32 --set net.precision=bf16
    mctx 2x32 2x32
    scaling bf16-6x64 --net 6x64 --set net.precision=bf16
    scaling int8-6x64 --net 6x64 --set net.precision=int8
    mctx 6x64 6x64
done

"$python" - "$out" <<'PYTHON'
import json
import pathlib
import re
import statistics
import sys

out = pathlib.Path(sys.argv[1])


def numbers(pattern, value):
    return [value(path.read_text()) for path in sorted(out.glob(pattern))]


def scaling(name, key="simulations_per_second"):
    return numbers(f"{name}-[0-9]*.json", lambda text: json.loads(text)[0][key])


def peer(pattern, key):
    return numbers(pattern, lambda text: json.loads(text.splitlines()[-1])[key])


def line(pattern, name):
    def value(text):
        return float(re.search(name, text).group(1))

    return numbers(pattern, value)


def number(x):
    return f"{x:,.0f}" if x >= 1000 else f"{x:.4g}"


def show(values):
    if not values:
        return "did not run"
    return f"{number(statistics.median(values))} ({number(min(values))} to {number(max(values))})"


def row(work, unit, ours, theirs, faster=lambda a, b: a / b):
    ratio = f"{faster(statistics.median(ours), statistics.median(theirs)):.2f}" if ours and theirs else ""
    print(f"| {work} | {unit} | {show(ours)} | {show(theirs)} | {ratio} |")


def forward(precision):
    return line("forward-*.txt", rf"6x64 {precision} \S+ M +64 threads 2:.*?([0-9]+) positions/s")


def share(precision, threads):
    return line("forward-*.txt", rf"6x64 {precision} \S+ M +64 threads {threads}: +([0-9.]+) % of peak")


print("| work | unit | vecaz | peer | ratio |")
print("|---|---|---|---|---|")
KEYS = ("forward_f32_per_second", "forward_bf16_per_second", "train_step_ms", "train_step_bf16_ms")
torch = {key: peer("torch-*.json", key) for key in KEYS}
row("forward 6x64, batch 128, f32 beside torch f32", "positions/s", forward("f32"), torch["forward_f32_per_second"])
row("forward 6x64, batch 128, bf16 beside torch bf16", "positions/s", forward("bf16"), torch["forward_bf16_per_second"])
row("forward 6x64, batch 128, int8 beside torch bf16", "positions/s", forward("int8"), torch["forward_bf16_per_second"])
for precision, key in (("f32", "train_step_ms"), ("bf16", "train_step_bf16_ms")):
    step = line("train-*.txt", rf"6x64 6x7 +{precision} +batch +256 +([0-9.]+) ms least")
    row(f"training step 6x64, batch 256, {precision}", "ms", step, torch[key], lambda a, b: b / a)
for name, net in (("gumbel-uniform", "uniform"), ("puct-uniform", "uniform"), ("gumbel-hex", "hex"), ("puct-hex", "hex"), ("f32-2x32", "2x32"), ("bf16-2x32", "2x32"),
                  ("bf16-6x64", "6x64"), ("int8-6x64", "6x64")):
    row(f"search {name}, N 128, S 800", "simulations/s", scaling(name), peer(f"mctx-{net}-*.json", "median"))
print()
for precision in ("f32", "bf16", "int8"):
    print(f"- forward 6x64 {precision}: {show(share(precision, 1))} % of peak on 1 thread, {show(share(precision, 2))} % on 2")
for name in ("gumbel-uniform", "puct-uniform", "gumbel-hex", "puct-hex", "f32-2x32", "bf16-2x32", "bf16-6x64", "int8-6x64"):
    depth = scaling(name, "mean_depth")
    outside = scaling(name, "share")
    rest = [1 - s["forward"] for s in outside]
    print(f"- {name}: mean depth {show(depth)}; time outside the forward {show([100 * r for r in rest])} %")
for net in ("uniform", "hex", "2x32", "6x64"):
    print(f"- mctx {net}: mean depth {show(peer(f'mctx-{net}-*.json', 'mean_depth'))}")
PYTHON
