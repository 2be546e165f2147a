#!/usr/bin/env bash
# Drives the page of `vecaz serve` and those of `vecaz report` in Chromium: tests/browser/run.sh [VECAZ], or a program with more games,
# target/release/vecaz_games.
#
# Needs Node.js 18, npm and Debian's chromium (or CHROMIUM=/path); playwright-core comes from npm into a temporary folder. Where one of them
# cannot be had it says so and passes, or fails with VECAZ_REQUIRE_BROWSER=1.
set -euo pipefail
cd "$(dirname "$0")/../.."

vecaz=${1:-target/release/vecaz}
chromium=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}

skip() {
    echo "SKIPPED: the page of vecaz serve was not tried in a browser: $1" >&2
    [ "${VECAZ_REQUIRE_BROWSER:-0}" != 1 ]
    exit
}

[ -x "$vecaz" ] || { echo "$vecaz is not there: cargo build --release makes it" >&2; exit 1; }
command -v node > /dev/null || skip "Node.js is not installed"
command -v npm > /dev/null || skip "npm is not installed"
[ -n "$chromium" ] || skip "Chromium is not installed (apt-get install chromium)"

folder=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || kill "$server" 2> /dev/null || true
    rm -rf "$folder"
}
trap finish EXIT

npm install --silent --no-audit --no-fund --prefix "$folder" playwright-core@1.65.1 > "$folder/npm.log" 2>&1 \
    || skip "playwright-core cannot be installed: $(tail -n 1 "$folder/npm.log")"

# Two runs to watch.
for run in 1 2; do
    "$vecaz" run --game tic_tac_toe --epochs 3 --seed "$run" --out "$folder/runs/$run" --quiet
done

"$vecaz" serve "$folder/runs/1" "$folder/runs/2" > "$folder/serve.log" 2>&1 &
server=$!
for _ in $(seq 100); do
    address=$(grep -o 'http://127\.0\.0\.1:[0-9]*' "$folder/serve.log" | head -n 1 || true)
    [ -z "$address" ] || break
    kill -0 "$server" 2> /dev/null || { cat "$folder/serve.log" >&2; exit 1; }
    sleep 0.1
done
[ -n "$address" ] || { echo "vecaz serve printed no address in 10 s" >&2; exit 1; }

MODULES="$folder/node_modules" ADDRESS="$address" CHROMIUM="$chromium" node tests/browser/serve.mjs
"$vecaz" report "$folder/runs/1" --quiet > /dev/null
"$vecaz" report "$folder/runs/1" "$folder/runs/2" --out "$folder/both.html" --quiet > /dev/null
MODULES="$folder/node_modules" ADDRESS="$address" CHROMIUM="$chromium" REPORTS="$folder/runs/1/report.html:$folder/both.html" \
    node tests/browser/report.mjs
kill -0 "$server" || { echo "vecaz serve has ended" >&2; cat "$folder/serve.log" >&2; exit 1; }
