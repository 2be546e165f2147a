#!/usr/bin/env bash
# Strength per minute with and without the root cache: equal minutes from zero, every game from the empty board (random
# openings leave the cached root), the same seeds.
#
#   benches/root_cache.sh [SEED]...      MINUTES=2 OUT=runs/root_cache benches/root_cache.sh 1 2 3
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${MINUTES:-2}
out=${OUT:-runs/root_cache}
cargo build --release --locked
mkdir -p "$out"
for seed in ${*:-1 2 3}; do
    for cache in 0 1000 5000; do
        run="$out/seed-$seed-cache-$cache"
        target/release/vecaz --quiet run --minutes "$minutes" --seed "$seed" --out "$run" \
            --set search.root_cache="$cache" --set search.nodes=1024 \
            --set selfplay.opening_plies=0 --set selfplay.temperature_plies=12
        printf 'seed %s, root cache %s: %s epochs\n' "$seed" "$cache" "$(wc -l < "$run/metrics.jsonl")"
        target/release/vecaz eval "$run" --sims 200 --positions assets/positions/connect_four.jsonl | sed -n 3,4p
    done
done
