#!/usr/bin/env bash
# Fetches NAME==VERSION wheels of NVIDIA's tools from PyPI, once, and prints the folder they are unpacked in.
# Needs python3 with pip. The folder is $VECAZ_CACHE/cuda-wheels, else ~/.cache/vecaz/cuda-wheels.
set -euo pipefail

root=${VECAZ_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vecaz}/cuda-wheels
mkdir -p "$root/done"
for wheel in "$@"; do
    if [ -e "$root/done/$wheel" ]; then
        continue
    fi
    echo "fetching $wheel" >&2
    fetched=$(mktemp -d "$root/fetch.XXXXXX")
    trap 'rm -rf "$fetched"' EXIT
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
        --dest "$fetched" "$wheel" >&2
    python3 -m zipfile --extract "$fetched"/*.whl "$root"
    find "$root" -path '*/bin/*' -type f -exec chmod +x {} + # zipfile keeps no modes
    rm -rf "$fetched"
    touch "$root/done/$wheel"
done
echo "$root/nvidia/cu13"
