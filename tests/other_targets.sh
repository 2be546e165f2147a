#!/usr/bin/env bash
# Checks that program, games, tests and benchmarks compile for other systems, with and without the default features (on macOS with
# candle-metal too), and without warnings.
# Nothing is linked or run. A target needs its std library and a C compiler; for one that lacks either, the script says loudly that it was
# NOT checked, and passes, or fails if the target was named.
#
#   tests/other_targets.sh [TARGET...]        default: all of the list below
#
#   std library   rustup target add TARGET
#   C compiler    CC_<target with _ for ->, or one on PATH: mingw or aarch64-linux-gnu-gcc of a distribution, clang-cl, or zig for all but msvc
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

known=(aarch64-unknown-linux-gnu aarch64-apple-darwin x86_64-apple-darwin x86_64-pc-windows-gnu x86_64-pc-windows-msvc)
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
host=$(rustc -vV | sed -n 's/^host: //p')
sysroot=$(rustc --print sysroot)

# zig_cc TARGET: makes a C compiler of zig for a target of Rust's, and prints its path.
zig_cc() {
    local name
    case $1 in
        *-apple-darwin) name=${1%-apple-darwin}-macos ;;
        *-unknown-linux-gnu) name=${1%-unknown-linux-gnu}-linux-gnu ;;
        *-pc-windows-gnu) name=${1%-pc-windows-gnu}-windows-gnu ;;
        *) return 1 ;;
    esac
    printf '#!/bin/sh\n# cc gives its own --target, which zig does not know.\nfor a; do shift; case $a in --target=*) ;; *) set -- "$@" "$a" ;; esac; done\nexec zig cc -target %s "$@"\n' "$name" > "$tools/cc-$1"
    chmod +x "$tools/cc-$1"
    echo "$tools/cc-$1"
}

# compiler TARGET: prints a C compiler for the target.
compiler() {
    local variable=CC_${1//-/_} program
    [ -z "${!variable:-}" ] || { echo "${!variable}"; return; }
    case $1:$host in
        *-apple-darwin:*-apple-darwin) program=cc ;;
        *-pc-windows-msvc:*-pc-windows-msvc) return ;; # cc finds it by itself
        *-pc-windows-msvc:*) program=clang-cl ;;
        *-pc-windows-gnu:*) program=${1%%-*}-w64-mingw32-gcc ;;
        *-linux-gnu:*) program=${1%%-*}-linux-gnu-gcc ;;
        *) program= ;;
    esac
    if [ -n "$program" ] && command -v "$program" > /dev/null; then
        echo "$program"
    elif command -v zig > /dev/null; then
        zig_cc "$1"
    else
        return 1
    fi
}

not_checked() {
    echo "##### NOT CHECKED: $1: $2 #####" >&2
    left=$((left + 1))
}

# check TARGET COMPILER: all sets of features.
check() {
    local cc=CC_${1//-/_} features sets=("" --no-default-features)
    [ -z "$2" ] || export "$cc=$2"
    if [[ $1 == *-apple-darwin && $host != *-apple-darwin ]]; then
        export SDKROOT=${SDKROOT:-$tools} # cc asks for one, and zig has the headers itself
    fi
    [[ $1 != *-apple-darwin ]] || sets+=("--features candle-metal")
    for features in "${sets[@]}"; do
        echo "----- $1 $features -----" >&2
        if [ -z "$features" ]; then
            cargo clippy --release --locked --target "$1" -p vecaz -p vecaz_games --all-targets -- -D warnings || return
        else
            # shellcheck disable=SC2086
            cargo clippy --release --locked --target "$1" --all-targets $features -- -D warnings || return
        fi
    done
}

named=$#
[ "$named" -gt 0 ] || set -- "${known[@]}"
left=0 failed=() passed=()
for target in "$@"; do
    if ! ls "$sysroot/lib/rustlib/$target/lib/"libstd-*.rlib > /dev/null 2>&1; then
        not_checked "$target" "its std library is not installed (rustup target add $target)"
    elif ! cc=$(compiler "$target"); then
        not_checked "$target" "there is no C compiler for it (CC_${target//-/_}, or zig on PATH)"
    elif (check "$target" "$cc"); then
        passed+=("$target")
    else
        failed+=("$target")
    fi
done
echo "checked: ${passed[*]:-none}; failed: ${failed[*]:-none}; not checked: $left" >&2
[ ${#failed[@]} -eq 0 ] && { [ "$named" -eq 0 ] || [ "$left" -eq 0 ]; }
