#!/usr/bin/env bash
# Proves and measures vecaz on a machine that has a GPU but neither cargo nor a network. docs/gpu.md says what each verb does.
#
#   benches/gpu_machine.sh pack FOLDER [GPU]     where cargo is: builds all that is carried to the other machine into FOLDER; GPU is
#                                                its compute capability and multiprocessors, `90 132` for an H100 or H200
#   FOLDER/gpu_machine.sh first OUT              where the GPU is: is it right, and the first figures
#   FOLDER/gpu_machine.sh rates OUT              speed of search and training, beside mctx + pgx, PyTorch and candle's kernels
#   FOLDER/gpu_machine.sh deep OUT               profiles of the heaviest kernels, memory and race checks, learning from zero
#   FOLDER/gpu_machine.sh parts OUT PART...      the named parts of any of the three, in that order; PART may have wildcards
#
# The last four stand each alone, need bash and python3, end within 540 s (`--seconds N`: N), and leave page.md, results.json and
# logs.tar.gz in OUT, written anew after every part. VECAZ_KERNELS=DIR compiles the kernels from DIR. Without a GPU every part fails in
# seconds with its reason.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

measure() {
    local began unpacked
    began=$(date +%s)
    unpacked=$(mktemp -d)
    # shellcheck disable=SC2064 # the folder of now
    trap "rm -rf '$unpacked'" EXIT
    python3 -m tarfile --extract "$here/pack.tar.xz" "$unpacked"
    python3 "$unpacked/gpu_machine/run.py" "$@" --began "$began"
}

case ${1:-} in
pack) if [ $# -ge 2 ]; then python3 "$here/gpu_machine/pack.py" "${@:2}"; exit; fi ;;
first | rates | deep | parts) if [ $# -ge 2 ]; then measure "$@"; exit; fi ;;
esac
sed -n '2,14s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
exit 2
