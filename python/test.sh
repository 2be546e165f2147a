#!/usr/bin/env bash
# Builds the Python package and runs its tests, in a virtual environment of its own. The build shares the repository's target folder: after
# `cargo build --release` it compiles this crate, that of the games, and what binds them to Python. Without Python 3.10 or later with venv and
# pip, or without the packages of PyPI, it says that it was skipped.
#
#   python/test.sh [PYTEST ARGUMENTS]        # VECAZ_REQUIRE_PYTHON=1: fails instead of skipping
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

skip() {
    echo "SKIPPED: python/test.sh: $1" >&2
    [ -z "${VECAZ_REQUIRE_PYTHON:-}" ] || exit 1
    exit 0
}

python=${PYTHON:-python3}
target=${CARGO_TARGET_DIR:-$PWD/../target}
venv="$target/python-venv"
command -v "$python" > /dev/null || skip "there is no $python"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' || skip "$("$python" --version) is older than 3.10"
"$python" -m venv "$venv" 2> /dev/null || skip "$python -m venv failed"
wanted=("maturin>=1.9.4,<2" "numpy>=1.26" "gymnasium>=1.1" "pettingzoo>=1.24" "pytest>=8")
"$venv/bin/pip" install --quiet --disable-pip-version-check "${wanted[@]}" || skip "pip cannot install ${wanted[*]}"

# The program and this package share every build of what both stand on, which holds while no crate has other features here.
features() { cargo tree --locked -p "$1" -e normal,build,features --prefix none | sed 's/ (\*)$//' | grep ' feature ' | sort -u; }
of_program=$(features vecaz)
of_package=$(features vecaz_python)
twice=$(comm -13 <(echo "$of_program") <(echo "$of_package") |
    awk 'NR == FNR { crates[$1]; next } $1 in crates && $1 !~ /^vecaz/' <(echo "$of_program") -)
if [ -n "$twice" ]; then
    printf 'python/test.sh: built twice, since the program does not ask for these features:\n%s\n' "$twice" >&2
    exit 1
fi

wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
CARGO_TARGET_DIR="$target" "$venv/bin/maturin" build --release --locked --quiet --out "$wheels"
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --force-reinstall "$wheels"/vecaz-*.whl
"$venv/bin/pytest" "$@"
