#!/usr/bin/env bash
# The figures of the five systems that vecaz is to serve, measured by `vecaz bench-scaling` beside what is to be reached. One
# Markdown table goes to stdout, all rows to OUT/users.json, the measurements themselves to OUT/NAME.json.
#
#   benches/users.sh [NAME]...        SECONDS_EACH=60 OUT=runs/users PRECISION=bf16 benches/users.sh hex gomoku
#
# NAMEs: backgammon clique6 clique14 hex blob gomoku (all where none is given). Weights are random: what a simulation costs does
# not depend on them, the length of a game does. Games a second are plies a second over the mean plies of a game. Where N is so
# large that few games would finish in the time, the length is measured with fewer games, whose slots play the same games.
# Hex is to have more than 1,000 positions in one thread's batch, so N is 2560 (HEX_GAMES) and the time long enough for whole games
# (HEX_SECONDS=900): a short one would see openings alone. Needs about 4 GB for Hex, and python3 for the table.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${SECONDS_EACH:-60}
out=${OUT:-runs/users}
precision=${PRECISION:-bf16}
threads=${THREADS:-0}
hex_games=${HEX_GAMES:-2560}
hex_seconds=${HEX_SECONDS:-900}
known="backgammon clique6 clique14 hex blob gomoku"
for name in "$@"; do
    [[ " $known " == *" $name "* ]] || { echo "users.sh: $name is none of: $known" >&2; exit 2; }
done
cargo build --release --locked
mkdir -p "$out"

# measure NAME ARGUMENT...: one row into OUT/NAME.json, or why there is none into OUT/NAME.error.
measure() {
    local name=$1
    shift
    rm -f "$out/$name.json" "$out/$name.error"
    echo "users.sh: $name" >&2
    target/release/vecaz bench-scaling --seconds "$seconds" --threads "$threads" --set net.precision="$precision" "$@" \
        --json "$out/$name.json" > /dev/null 2> "$out/$name.error" || cat "$out/$name.error" >&2
}

for name in ${*:-$known}; do
    case $name in
    backgammon) measure backgammon --game backgammon --set search.algorithm=gumbel --games 128 --net 2x64 ;;
    clique6) measure clique6 --game clique --set game.n=6 --set game.k=3 --games 100 --sims 50 --net 2x64 ;;
    clique14)
        measure clique14 --game clique --set game.n=14 --set game.k=4 --set net.arch=edge --games 256 --sims 50 --net 3x64
        ;;
    hex)
        hex=(--config hex13 --set search.cache_entries=1000000 --sims 200 --net 2x32)
        measure hex_length "${hex[@]}" --games 64
        seconds=$hex_seconds measure hex "${hex[@]}" --games "$hex_games"
        ;;
    blob)
        for preset in "light 2 20" "medium 3 30" "heavy 5 50"; do
            read -r name deals sims <<< "$preset"
            measure "blob_$name" --config blob --games 256 --net 2x256 --sims "$sims" --set search.determinisations="$deals"
        done
        ;;
    gomoku) measure gomoku --game gomoku --games 256 --sims 200 --net 2x32 ;;
    esac
done

python3 - "$out" ${*:-$known} <<'PYTHON'
import json
import pathlib
import sys

out, names = pathlib.Path(sys.argv[1]), sys.argv[2:]


def row(name):
    path, error = out / f"{name}.json", out / f"{name}.error"
    if path.is_file():
        return json.loads(path.read_text())[0], None
    return None, error.read_text().strip() if error.is_file() else "it was not run"


def per_minute(r):
    return None if r["games_per_second"] is None else 60 * r["games_per_second"]


def milliseconds(r):
    return None if r["games_per_second"] is None else 1000 / r["games_per_second"]


def hex_rate(r):
    length, _ = row("hex_length")
    return None if not length or not length["plies_per_game"] else r["moves_per_second"] / length["plies_per_game"]


# name: (system, file, [(figure, unit, theirs, to reach, whether more is better, from the row)])
FIGURES = {
    "backgammon": [
        ("backgammon, 128 games, MLP 2x64, chance nodes", "backgammon", "simulations/s", 178, 178_000, True,
         lambda r: r["simulations_per_second"]),
    ],
    "clique6": [("clique n=6 k=3, 100 games at once, S=50", "clique6", "ms/game", 14.2, 1, False, milliseconds)],
    "clique14": [("clique n=14 k=4, S=50, edge network 3x64", "clique14", "games/s", 0.08, 8, True,
                  lambda r: r["games_per_second"])],
    "hex": [
        ("Hex 13x13, 2x32, S=200, cache on", "hex", "games/s", 4.1, 4.1, True, hex_rate),
        ("Hex 13x13, 2x32, S=200, cache on", "hex", "boards/s", 5000, 5000, True, lambda r: r["positions_per_second"]),
        ("Hex 13x13, 2x32, S=200, cache on", "hex", "positions a batch", 1000, 1000, True,
         lambda r: r["positions_per_batch"]),
        ("Hex 13x13, 2x32, S=200, cache on", "hex", "GiB at most", 16, 16, False, lambda r: r["peak_memory_mib"] / 1024),
    ],
    "blob": [
        (f"Blob 4 x 5, {preset} {size}", f"blob_{preset}", "rounds/min", theirs, 10 * theirs, True, per_minute)
        for preset, size, theirs in (("light", "2x20", 1049), ("medium", "3x30", 741), ("heavy", "5x50", 310))
    ],
    "gomoku": [("Gomoku 15x15, 2x32, S=200", "gomoku", "games/min", 22.8, 22.8, True, per_minute)],
}

records, conditions = [], set()
for name in names:
    for system, file, figure, theirs, target, more, pick in FIGURES[name]:
        measured, why = row(file)
        value = pick(measured) if measured else None
        if measured:
            conditions.add((measured["commit"], measured["threads"], measured["path"], measured["device"]))
        if value is None and why is None:
            why = "no game finished in the time: raise SECONDS_EACH"
        reached = None if value is None else (value >= target if more else value <= target)
        records.append({
            "system": system, "figure": figure, "theirs": theirs, "to_reach": target, "measured": value,
            "reached": reached, "error": why, "games": measured and measured["games"], "row": measured,
        })

print("| system | figure | theirs | to reach | measured | N | |")
print("|---|---|---|---|---|---|---|")
for r in records:
    measured = f"not measured: {r['error']}" if r["measured"] is None else f"{r['measured']:,.4g}" \
        if r["measured"] < 1000 else f"{r['measured']:,.0f}"
    verdict = {True: "reached", False: "**missed**", None: ""}[r["reached"]]
    print(f"| {r['system']} | {r['figure']} | {r['theirs']:,} | {r['to_reach']:,} | {measured} | {r['games'] or ''} | {verdict} |")
print()
for commit, threads, path, device in sorted(conditions):
    print(f"commit {commit}, {threads} threads, {device}, {path}")
(out / "users.json").write_text(json.dumps(records, indent=1) + "\n")
sys.exit(any(r["measured"] is None for r in records))
PYTHON
