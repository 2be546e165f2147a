#!/usr/bin/env bash
# Connect Four from zero, the whole claim: seeds 1, 2 and 3 (or those given), 30 minutes each (or MINUTES), then the errors
# on the 600 solved positions of tests/fixtures. Curves over time are in OUT/seed-N/metrics.jsonl.
#
#   benches/learning.sh [SEED]...        MINUTES=30 OUT=runs/learning benches/learning.sh 1
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${MINUTES:-30}
out=${OUT:-runs/learning}
cargo build --release --locked
mkdir -p "$out"
for seed in ${*:-1 2 3}; do
    target/release/vecaz run --minutes "$minutes" --seed "$seed" --out "$out/seed-$seed" \
        --set eval.simulations=800 --set eval.positions=300 --set eval.every=10
    target/release/vecaz eval "$out/seed-$seed" --sims 800 \
        --positions tests/fixtures/connect_four_solved.jsonl | tee "$out/seed-$seed.txt"
done
