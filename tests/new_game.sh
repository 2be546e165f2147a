#!/usr/bin/env bash
# Adds a game to a copy of the repository by the steps of docs/games.md, and checks that this is enough: the game of
# tests/contract/nim.rs becomes src/game/nim.rs with a registry line and a configuration of one key. Then the contract tests, the list
# of games, a run, a match and a rating work with it, and a run on a GPU is refused in a sentence. Uses the target folder of the repository.
#
#   tests/new_game.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
export CARGO_INCREMENTAL=0 # the copy is never built again
copy=$(mktemp -d)
# The program of the copy goes too: it is slow, and nobody shall take it for that of the repository.
trap 'rm -rf "$copy" "$CARGO_TARGET_DIR/release/vecaz"' EXIT
git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$copy"
cd "$copy"

# Step 1: the file. The test at its end and what only the test imports stay away.
sed -E -e '/^\/\/\/ 17 stones/,$d' -e '/^use (crate::support|vecaz::(backend|config::SearchConfig|isa|net|registry|search|searcher))/d' \
    -e 's/^use vecaz::/use crate::/' tests/contract/nim.rs > src/game/nim.rs
# Step 2: the registry. By perl, since sed -i differs between systems.
perl -pi -e 's/^pub mod tic_tac_toe;/pub mod nim;\n$&/' src/game/mod.rs
perl -pi -e 's/^ *\$crate::game::tic_tac_toe::TicTacToe,/            \$crate::game::nim::Nim,\n$&/' src/game/built_in.rs
perl -pi -e 's/^    vecaz::game::tic_tac_toe::TicTacToe,/    vecaz::game::nim::Nim,\n$&/' tests/support/typed_games.rs
# Step 3: the configuration.
perl -pi -e 's/^    const NAME: .*/$&\n    const CONFIGS: &\x27static [super::NamedText] = super::configs!("nim");/' src/game/nim.rs
printf '[game]\nname = "nim"\n' > configs/nim.toml

# Not optimised and with what this needs, since it is built for this alone; `cuda` is for the refusal at the end.
cargo test --release --locked --config 'profile.release.package.vecaz.opt-level=0' --no-default-features --features cuda --test contract
vecaz() { "$CARGO_TARGET_DIR/release/vecaz" "$@"; }
vecaz games | grep nim > /dev/null
vecaz run --config nim --epochs 2 --games 16 --sims 16 --seed 1 --quiet --out run
vecaz eval run --against random --games 20
vecaz verify run
if message=$(vecaz run --config nim --device cuda --epochs 1 --out refused 2>&1); then
    echo "a run of a game without kernels on a GPU was not refused" >&2
    exit 1
fi
echo "on a GPU: $message"
