#!/usr/bin/env bash
# What `cargo build --features cuda` needs, as `export` lines. Use: eval "$(kernels/toolchain.sh)"
#
# With an nvcc on the PATH or in $CUDA_HOME/bin, that tool chain is used; else CUDA 13.0 is put together from wheels on PyPI
# (python3 with pip, 220 MB to fetch, 620 MB on disk). No GPU and no driver are needed. On x86-64 the program is linked with
# stand-ins that load CUDA's libraries when they are first called (lazy_link.c): it starts on every machine.
#
# CUDA_COMPUTE_CAP, the oldest GPU that the network runs on, is 80 (Ampere) unless set; 75 (Turing) has no bf16.
# Without this script, and with CUDA installed, `cargo build --features cuda` works too; the program then starts only where
# libcuda, libnvrtc, libcublas and libcurand are.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${VECAZ_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/vecaz}

fail() {
    echo "error: $*" >&2
    exit 1
}

# The folder with bin/nvcc of an installed tool chain, or nothing.
installed() {
    if [ -n "${CUDA_HOME:-}" ] && [ -x "$CUDA_HOME/bin/nvcc" ]; then
        echo "$CUDA_HOME"
    elif command -v nvcc > /dev/null; then
        dirname "$(dirname "$(readlink -f "$(command -v nvcc)")")"
    fi
}

# Names of the functions of cudarc's module $1, one NAME(function) a line.
names() {
    grep -rhoE 'pub (unsafe )?fn (cu[A-Z]|cublas|curand|nvrtc)[A-Za-z_0-9]*' "$cudarc/src/$1/sys" | awk '{ print "NAME(" $NF ")" }' | sort -u
}

# Makes lib$3.a, stand-ins for the functions of cudarc's module $1, which are in the library $2.
stand_ins() {
    names "$1" > "$home/$3.names"
    ${CC:-cc} -O1 -fPIC -w -c -DVZ_SONAME="\"$2\"" -DVZ_NAMES="\"$home/$3.names\"" -o "$home/$3.o" "$here/lazy_link.c"
    rm -f "$home/lib/lib$3.a"
    ar rcs "$home/lib/lib$3.a" "$home/$3.o"
}

[ "$(uname -sm)" = "Linux x86_64" ] || fail "$0 knows Linux on x86-64 only; set CUDA_HOME to an installed tool chain"
cudarc=$(cargo metadata --manifest-path "$here/../Cargo.toml" --locked --format-version 1 --features cuda |
    grep -oE '"manifest_path":"[^"]*/cudarc-[^"]*/Cargo.toml"' | head -1 | cut -d'"' -f4 | xargs dirname)
[ -d "$cudarc/src/driver/sys" ] || fail "the sources of the crate cudarc are not there"

root=$(installed)
if [ -z "$root" ]; then
    # nvvm has the compiler proper, crt the device headers, cccl <cuda/std>, cublas and curand nothing: their functions are
    # stand-ins, and curand's headers come with its wheel.
    root=$("$here/wheels.sh" nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 \
        nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85 nvidia-curand==10.4.0.35)
    chmod -R u+x "$root/bin" "$root/nvvm/bin"
fi
release=$("$root/bin/nvcc" --version | grep -oE 'release [0-9]+\.[0-9]+' | cut -d' ' -f2)
major=${release%.*}
[ "$major" -ge 12 ] || fail "CUDA $release in $root is too old: 12.0 or newer is needed"

# Only archives in lib: the linker takes them where it finds no shared library.
home=$cache/cuda-link-$release
mkdir -p "$home/lib"
stand_ins driver libcuda.so.1 cuda
stand_ins nvrtc "libnvrtc.so.$major" nvrtc
stand_ins curand libcurand.so.10 curand
stand_ins cublas "libcublas.so.$major" cublas
stand_ins cublaslt "libcublasLt.so.$major" cublasLt
static=$(find -L "$root" -path '*lib*' -name libcudart_static.a 2> /dev/null | head -1)
[ -n "$static" ] || fail "libcudart_static.a is not in $root"
ln -sf "$static" "$home/lib/libcudart.a"

cat << EOF
export NVCC='$root/bin/nvcc'
export PATH='$root/bin':"\$PATH"
export CUDA_HOME='$home'
export CUDARC_CUDA_VERSION=${major}0${release#*.}0
export CUDA_COMPUTE_CAP=${CUDA_COMPUTE_CAP:-80}
EOF
echo "CUDA $release in $root" >&2
