#!/usr/bin/env bash
# Random play of every game beside pgx (JAX) and OpenSpiel's C++ core, on the same machine: processes of each are alternated ROUNDS
# times, the table has medians of plies/s and the ratios. Wants a quiet machine; about two minutes a round.
#
#   PYTHON=.venv/bin/python ROUNDS=3 THREADS=2 OUT=runs/games_peers benches/games_peers.sh
#
# PYTHON must have jax, pgx and open_spiel (see tests/oracles/README.md). A ply of backgammon is one die in pgx and here, both dice in
# OpenSpiel: its rows count two of ours as one.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
rounds=${ROUNDS:-3}
threads=${THREADS:-2}
out=${OUT:-runs/games_peers}
mkdir -p "$out"
cargo bench --no-run --locked --bench games
for round in $(seq "$rounds"); do
    echo "games_peers.sh: round $round of $rounds" >&2
    cargo bench -q --locked --bench games > "$out/vecaz-$round.txt"
    "$python" benches/peers/random_play.py --threads "$threads" > "$out/peers-$round.jsonl" 2> "$out/peers.log" ||
        { echo "games_peers.sh: the peers did not run: $(tail -n 1 "$out/peers.log")" >&2; exit 1; }
done
"$python" - "$out" "$threads" <<'PYTHON'
import collections
import json
import pathlib
import statistics
import sys

out, threads = pathlib.Path(sys.argv[1]), sys.argv[2]
rates = collections.defaultdict(list)
for path in out.glob("vecaz-*.txt"):
    for line in path.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and cells[1] == "its own" and cells[3] == threads:
            rates["vecaz", cells[0], int(cells[2])].append(float(cells[4]))
for path in out.glob("peers-*.jsonl"):
    for row in map(json.loads, path.read_text().splitlines()):
        rates[row["peer"], row["game"], row["slots"]].append(row["plies_per_second"])
median = {key: statistics.median(values) for key, values in rates.items()}
print(f"{threads} threads, medians of {max(map(len, rates.values()))} processes\n")
print("| game | N | vecaz, plies/s | pgx | ratio | OpenSpiel C++ | ratio |\n|---|---|---|---|---|---|---|")
for (who, game, slots), rate in sorted(median.items()):
    if who != "vecaz":
        continue
    plies = 2 if game == "backgammon" else 1  # of ours in one of OpenSpiel's
    peers = [(median.get(("pgx", game, slots)), 1), (median.get(("open_spiel", game, int(threads))), plies)]
    cells = [f"{peer:.3g} | {rate / peer / plies:.1f}" if peer else " | " for peer, plies in peers]
    print(f"| {game} | {slots} | {rate:.3g} | {' | '.join(cells)} |")
PYTHON
