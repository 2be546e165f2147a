#!/usr/bin/env bash
# Builds vecaz for 64-bit ARM Linux and runs its tests in emulation:
#
#   tests/arm.sh [ARGUMENTS OF cargo test]      default: all tests, then the kernels on older and newer processors
#
# Needs a cross compiler and qemu-user (Debian: gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user), and rustup
# for the standard library. Not a part of .ci/run, since emulation takes an hour.
set -euo pipefail
cd "$(dirname "$0")/.."

target=aarch64-unknown-linux-gnu
for command in aarch64-linux-gnu-gcc aarch64-linux-gnu-g++ qemu-aarch64; do
    if ! command -v "$command" > /dev/null; then
        echo "tests/arm.sh: $command is missing (Debian: apt-get install gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)" >&2
        exit 1
    fi
done
if ! [ -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
    rustup target add "$target"
fi

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc CXX_aarch64_unknown_linux_gnu=aarch64-linux-gnu-g++
# For the time limits of tests of many processes.
export VECAZ_TIMES_SLOWER=4
# The compilers that tests call, of the kernels' twins and of a driver's stand-in; those of build scripts stay this machine's.
export CC=aarch64-linux-gnu-gcc CXX=aarch64-linux-gnu-g++ HOST_CC=cc HOST_CXX=c++
# For programs that tests start by themselves, where the system starts programs of another architecture in an emulator.
export QEMU_LD_PREFIX=/usr/aarch64-linux-gnu

# All instructions that the emulator knows: BF16, I8MM and DotProd among them.
if [ $# -gt 0 ]; then
    QEMU_CPU=max exec cargo test --release --target "$target" "$@"
fi
# What the emulator cannot do: it does not start under the limits of the address space that two tests set, it does not report that there is
# no program of a name, and /proc shows the signals that it handles itself, from which two tests learn which ones vecaz handles or ignores.
skipped=(of_the_address_space "that is not there" faults_of_a_program_are_one_sentence
    a_signal_ends_a_command_that_waits_for_a_file a_signal_that_was_ignored_at_the_start)
targets=(--lib --bins)
for file in tests/*.rs tests/*/main.rs; do
    name=${file#tests/} name=${name%/main.rs} name=${name%.rs}
    case $name in kernels | foreign_game) ;; *) targets+=(--test "$name") ;; esac
done
failed=0
QEMU_CPU=max cargo test --release --target "$target" --no-fail-fast "${targets[@]}" -- "${skipped[@]/#/--skip=}" || failed=1
# Each in a process of its own: in one process qemu 7.2 ends with a segmentation fault, though each test alone passes.
for name in $(QEMU_CPU=max cargo test --release --target "$target" --test kernels -- --list | sed -n 's/: test$//p'); do
    QEMU_CPU=max cargo test --release --quiet --target "$target" --test kernels -- --exact "$name" || failed=1
done
# The kernels of machines without them: Neoverse N1 has DotProd alone, as Apple's M1 has, and Cortex-A72 none.
for cpu in neoverse-n1 cortex-a72; do
    QEMU_CPU=$cpu cargo test --release --target "$target" --lib -- net::cpu net::number simd:: math:: || failed=1
done
exit $failed
