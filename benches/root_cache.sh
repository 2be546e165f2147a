#!/usr/bin/env bash
# Is the root cache worth it? From zero with it and without it, in three games of different shapes, for equal minutes of processor time on one
# thread each, both at the same moment, so that other work on the machine slows both alike. Then their strength: errors on solved positions, or
# a match between the two.
#
#   benches/root_cache.sh [SEED]...      MINUTES=10 OUT=runs/root_cache GAMES="connect_four hex backgammon_mcts" benches/root_cache.sh 1 2 3
#
# Prints a table in Markdown; runs that are there already are not made again. Linux only (/proc).
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${MINUTES:-10}
out=${OUT:-runs/root_cache}
games=${GAMES:-connect_four hex backgammon_mcts}
vecaz=${VECAZ:-target/release/vecaz}
[ -n "${VECAZ:-}" ] || cargo build --release --locked
mkdir -p "$out"

settings() {
    case $1 in
    hex) echo "--sims 200 --set search.algorithm=puct --set selfplay.playout_cap_prob=0" ;;
    esac
}

run() { # game seed simulations-of-a-tree
    local folder="$out/$1-seed-$2-cache-$3" process ticks=0
    [ -e "$folder/report.html" ] && return
    rm -rf "$folder"
    # shellcheck disable=SC2046
    "$vecaz" --quiet run --config "$1" $(settings "$1") --minutes 100000 --seed "$2" --threads 1 --out "$folder" --set eval.every=0 \
        --set search.root_cache="$3" > "$folder.log" 2>&1 &
    process=$!
    # The 14th and 15th fields are the time in user and in system mode; the name, the second field, has no space.
    while ticks=$(awk '{ print $14 + $15 }' "/proc/$process/stat") && [ "$ticks" -lt $((minutes * 60 * $(getconf CLK_TCK))) ]; do
        sleep 0.2
    done
    kill -TERM "$process"
    wait "$process" || true
    [ -e "$folder/report.html" ]
}

for game in $games; do
    for seed in ${*:-1 2 3}; do
        run "$game" "$seed" 0 &
        run "$game" "$seed" 1000 &
        wait
        on="$out/$game-seed-$seed-cache-1000" off="$out/$game-seed-$seed-cache-0"
        if [ "$game" = connect_four ]; then
            for folder in "$on" "$off"; do
                "$vecaz" --quiet eval "$folder" --positions assets/positions/connect_four.jsonl --json "$folder.json" > /dev/null
            done
        else
            "$vecaz" --quiet eval "$on" --against "$off" --games 400 --json "$on.json" > /dev/null
        fi
    done
done

python3 - "$out" "$games" "${*:-1 2 3}" <<'PY'
import json
import sys

out, games, seeds = sys.argv[1], sys.argv[2].split(), sys.argv[3].split()


def records(folder):
    with open(f"{folder}/metrics.jsonl") as lines:
        return [json.loads(line) for line in lines]


def strength(game, folder, cache):
    if game != "connect_four" and cache == 0:
        return ""
    with open(f"{folder}.json") as file:
        result = json.loads(file.readlines()[-1])
    if game == "connect_four":
        return f"{100 * result['search_outcome_error']:.1f} / {100 * result['policy_outcome_error']:.1f} % errors"
    low, high = result["score_interval"]
    return f"{100 * result['score']:.1f} % [{100 * low:.1f}, {100 * high:.1f}] of {result['games']} games"


print("| game, seed, root cache | strength | games/s | plies with inherited visits | simulations a sample | evaluations a sample | built | inherited |")
print("|---|---|---|---|---|---|---|---|")
for game in games:
    for seed in seeds:
        for cache in (0, 1000):
            folder = f"{out}/{game}-seed-{seed}-cache-{cache}"
            epochs = records(folder)
            total = lambda key: sum(epoch[key] for epoch in epochs)
            caches = [epoch["root_cache"] for epoch in epochs if "root_cache" in epoch]
            cached = lambda key: sum(use[key] for use in caches)
            # Subtrees are kept, so only the first plies of games begin without visits.
            share = 1 - (total("games") - cached("games")) / total("positions")
            print(
                f"| {game}, {seed}, {cache} | {strength(game, folder, cache)} | {total('games') / total('selfplay_seconds'):.1f} "
                f"| {100 * share:.1f} % | {total('simulations') / total('samples'):.1f} | {total('evaluations') / total('samples'):.1f} "
                f"| {cached('simulations'):,} | {cached('inherited_visits'):,} |"
            )
PY
