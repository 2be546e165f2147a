#!/usr/bin/env bash
# What takes longer than a default test, in Chromium: tests/browser/long.sh VECAZ [RUN...]
#
#   MINUTES=0.5  time in which eight browsers analyse (60 analyses a minute, memory flat), after the first paint and a review of Hex 13 x 13
#   SHOTS=dir    instead: pictures of every page at 1280, 768 and 390 px, dark and light
#
# Needs what run.sh needs. A run of Hex 13 x 13 among RUN is what the review is made with.
set -euo pipefail
cd "$(dirname "$0")/../.."
vecaz=$1
shift
chromium=${CHROMIUM:-$(command -v chromium || command -v chromium-browser)}
folder=$(mktemp -d)
server=
finish() {
    [ -z "$server" ] || kill "$server" 2> /dev/null || true
    rm -rf "$folder"
}
trap finish EXIT
npm install --silent --no-audit --no-fund --prefix "$folder" playwright-core@1.65.1 > /dev/null
"$vecaz" serve "$@" > "$folder/serve.log" 2>&1 &
server=$!
for _ in $(seq 100); do
    address=$(grep -o 'http://127\.0\.0\.1:[0-9]*' "$folder/serve.log" | head -n 1 || true)
    [ -z "$address" ] || break
    sleep 0.1
done
script=load.mjs
[ -z "${SHOTS:-}" ] || script=shots.mjs
MODULES="$folder/node_modules" ADDRESS="$address" CHROMIUM="$chromium" SERVER_PID="$server" node "tests/browser/$script"
kill -0 "$server" || { echo "vecaz serve has ended" >&2; cat "$folder/serve.log" >&2; exit 1; }
