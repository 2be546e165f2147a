#!/usr/bin/env bash
# The long version of tests/resume.rs: Connect Four with a residual network, killed at random moments over some minutes,
# compared byte for byte with a run that was never stopped.
#
#     tests/long_resume.sh [KILLS, default 40] [SEED, default 1]
set -euo pipefail
cd "$(dirname "$0")/.."
kills=${1:-40}
RANDOM=${2:-1}

cargo build --release --locked
vecaz=$PWD/target/release/vecaz
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
settings=(--config quick --games 32 --set selfplay.samples_per_epoch=1500 --set train.min_samples=1500
    --set replay.capacity=5000 --set search.root_cache=500 --set eval.positions=20 --set run.minutes=0.0)

done_epochs() {
    if [[ -f $folder/killed/metrics.jsonl ]]; then wc -l <"$folder/killed/metrics.jsonl"; else echo 0; fi
}

start() { # EPOCHS THREADS: from the start, or from where it was stopped
    if [[ -f $folder/killed/config.toml ]]; then
        exec "$vecaz" --quiet run --resume "$folder/killed" --epochs "$1" --threads "$2"
    fi
    exec "$vecaz" --quiet run --out "$folder/killed" "${settings[@]}" --epochs "$1" --threads "$2"
}

for ((kill = 1; kill <= kills; kill++)); do
    (start 1000000 $((1 + kill % 3))) &
    child=$!
    sleep "$((RANDOM % 6)).$((RANDOM % 10))"
    kill -KILL "$child"
    code=0
    wait "$child" 2>/dev/null || code=$?
    if ((code != 137)); then
        echo "long_resume: start $kill ended by itself with exit code $code" >&2
        exit 1
    fi
    if [[ -f $folder/killed/metrics.jsonl ]]; then "$vecaz" verify "$folder/killed"; fi
    echo "kill $kill: $(done_epochs) epochs done"
done
epochs=$(($(done_epochs) + 1))
(start "$epochs" 2)
"$vecaz" --quiet run --out "$folder/whole" "${settings[@]}" --epochs "$epochs" --threads 1

for part in games best.safetensors; do
    diff -r "$folder/whole/$part" "$folder/killed/$part"
done
for checkpoint in "$folder"/whole/checkpoints/*; do
    for file in weights trainer replay; do
        cmp "$checkpoint/$file.safetensors" "$folder/killed/checkpoints/$(basename "$checkpoint")/$file.safetensors"
    done
done
timeless='progress.bin|config.toml|metrics.jsonl'
diff <(sed '$d' "$folder/whole/manifest.jsonl" | grep -vE "$timeless") <(sed '$d' "$folder/killed/manifest.jsonl" | grep -vE "$timeless")
"$vecaz" verify "$folder/killed"
echo "long_resume: $epochs epochs, $kills kills, the same bytes"
