#!/usr/bin/env bash
# Compares games that OpenSpiel plays now with the crate in games/: COUNT of each game (1000), from SEED (the seconds of the clock).
#
#   PYTHON=.venv/bin/python tests/oracles/fresh_games.sh [COUNT] [SEED]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
seed=${2:-$(date +%s)}
"${PYTHON:-python3}" tests/oracles/games_crate.py long "${1:-1000}" --seed "$seed" > "$folder/fresh.jsonl"
echo "seed $seed: $(wc -l < "$folder/fresh.jsonl") games"
VECAZ_PLAYTHROUGHS="$folder" cargo test --release --locked -p vecaz_games --test playthroughs -- --nocapture
