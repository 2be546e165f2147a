#!/usr/bin/env bash
# Does every game learn: `vecaz run` with its built-in configuration for MINUTES, then matches against random play and a
# 100-rollout search, in backgammon also against gnubg in points a game, in Go 9x9 also against GNU Go. One Markdown table goes
# to stdout, the figures of GAME to OUT/GAME.json. A row is only written by what has run: a missing opponent is told in the
# table and on stderr.
#
#   benches/smoke.sh [GAME]...        MINUTES=5 MATCH=100 OUT=runs/smoke benches/smoke.sh hex go
#
# GNU Go and gnubg are Debian's `gnugo` and `gnubg`; the scripts that speak to them need python3, and so does the table.
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${MINUTES:-5}
match=${MATCH:-100}
out=${OUT:-runs/smoke}
seed=${SEED:-1}
gnubg_plies=${GNUBG_PLIES:-0}
gnugo_level=${GNUGO_LEVEL:-1}
known="tic_tac_toe connect_four othello hex gomoku clique go chess backgammon blob"
for game in "$@"; do
    [[ " $known " == *" $game "* ]] || { echo "smoke.sh: $game is none of: $known" >&2; exit 2; }
done
PATH=$PATH:/usr/games # where Debian keeps them
cargo build --release --locked
vecaz=target/release/vecaz
mkdir -p "$out"

# eval_against GAME OPPONENT NAME ARGUMENT...: a match's row into OUT/GAME-NAME.json.
eval_against() {
    local game=$1 opponent=$2 name=$3 opening=2
    shift 3
    # Dice and deals open these games, and random moves of one player would decide points.
    [[ $game == backgammon || $game == blob ]] && opening=0
    echo "smoke.sh: $game against $name" >&2
    "$vecaz" eval "$out/$game" --against "$opponent" --games "$match" --opening-plies "$opening" --seed "$seed" \
        --json "$out/$game-$name.json" "$@" >&2
}

skip() {
    local text="SKIPPED: $2 is not installed (apt-get install $2)"
    echo "smoke.sh: $text" >&2
    printf '{"skipped": "%s"}\n' "$text" > "$out/$1-$2.json"
}

for game in ${*:-$known}; do
    [[ -e $out/$game ]] && { echo "smoke.sh: $out/$game is there already; choose another OUT" >&2; exit 1; }
    echo "smoke.sh: $game learns for $minutes minutes" >&2
    # No evaluation on the way: all the time goes into learning, and the last network is measured.
    "$vecaz" run --game "$game" --minutes "$minutes" --seed "$seed" --out "$out/$game" --set eval.every=0 >&2
    eval_against "$game" random random
    eval_against "$game" rollouts:100 rollouts
    if [[ $game == backgammon ]]; then
        if command -v gnubg > /dev/null; then
            eval_against "$game" "exec:python3 tests/opponents/gnubg.py $gnubg_plies" gnubg
        else
            skip "$game" gnubg
        fi
    fi
    if [[ $game == go ]]; then
        if command -v gnugo > /dev/null; then
            engine="gnugo --mode gtp --level $gnugo_level --chinese-rules --positional-superko --never-resign"
            eval_against "$game" "exec:python3 tests/opponents/gtp.py $engine" gnugo
        else
            skip "$game" gnugo
        fi
    fi
done

python3 - "$out" "$minutes" "$($vecaz --version)" ${*:-$known} <<'PYTHON'
import json
import pathlib
import sys

out, minutes, version, games = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]


def with_interval(value, interval):
    return f"{value:.3f} [{interval[0]:.3f} to {interval[1]:.3f}]"


print(f"{version}, {minutes} minutes each\n")
print("| game | epochs | games played | opponent | won, drawn, lost | win rate | score | points a game | opponents' | difference |")
print("|---|---|---|---|---|---|---|---|---|---|")
for game in games:
    lines = (out / game / "metrics.jsonl").read_text().splitlines() if (out / game / "metrics.jsonl").is_file() else []
    epochs = [json.loads(line) for line in lines]
    played = sum(epoch["games"] for epoch in epochs)
    matches = {}
    for name in ("random", "rollouts", "gnubg", "gnugo"):
        path = out / f"{game}-{name}.json"
        if not path.is_file():
            continue
        row = matches[name] = json.loads(path.read_text())
        start = f"| {game} | {len(epochs)} | {played:,} | {name} |"
        if "skipped" in row:
            print(f"{start} {row['skipped']} | | | | | |")
            continue
        points = row["points_per_game"]
        print(
            f"{start} {row['wins']}, {row['draws']}, {row['losses']} |"
            f" {with_interval(row['win_rate'], row['win_rate_interval'])} |"
            f" {with_interval(row['score'], row['score_interval'])} |"
            f" {'' if points is None else with_interval(points, row['points_interval'])} |"
            f" {'' if points is None else format(row['opponent_points_per_game'], '.3f')} |"
            f" {'' if points is None else with_interval(row['lead_per_game'], row['lead_interval'])} |"
        )
    record = {"game": game, "minutes": float(minutes), "version": version, "epochs": epochs, "matches": matches}
    (out / f"{game}.json").write_text(json.dumps(record, indent=1) + "\n")
PYTHON
