#!/usr/bin/env bash
# Compiles the kernels of every game with NVRTC 13.0 for every GPU generation from Turing on, as the program does when it
# starts; games at other than their default settings for the first generation only; and networks of several sizes. Needs no
# GPU: the compiler is a wheel on PyPI (90 MB, kept in ~/.cache/vecaz with what has compiled). Without it, says so and passes.
#
#   kernels/check_nvrtc.sh [ARCHITECTURES]        e.g. 90 or 75,120; default: 75,80,86,89,90,100,120
#
# Of ARCHITECTURES, the first one compiles all games, the others one game: what depends on the generation is in the kernels of networks
# and training, and in conversions that every game calls.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! cuda=$(kernels/wheels.sh nvidia-cuda-nvrtc==13.0.88); then
    echo "##### SKIPPED: the kernels are NOT checked with NVRTC, since the wheel nvidia-cuda-nvrtc cannot be had #####"
    exit 0
fi
games=all
[ $# = 0 ] || games=one
cargo run --quiet --release --locked --example kernel_sources |
    python3 kernels/check_nvrtc.py "$cuda/lib/libnvrtc.so.13" "${1:-75,80,86,89,90,100,120}" "$games" "$cuda/checked"
