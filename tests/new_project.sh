#!/usr/bin/env bash
# Makes a project with `vecaz new` outside of the repository, tests it, trains it and lets it play, as its first user would. Uses the target
# folder of the repository.
#
#   tests/new_project.sh [KIND]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
lock=$PWD/Cargo.lock
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cargo build --release --locked
"$CARGO_TARGET_DIR/release/vecaz" new mine --kind "${1:-board}" --out "$folder/mine"
cd "$folder/mine"
# The versions of dependencies that vecaz is tested with.
cp "$lock" Cargo.lock
cargo test --release
mine() { "$CARGO_TARGET_DIR/release/mine" "$@"; }
mine run --minutes 0.2 --seed 1 --quiet --out run
mine eval run --against random --games 20
mine verify run
mine games | grep -w mine > /dev/null
