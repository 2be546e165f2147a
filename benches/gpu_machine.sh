#!/usr/bin/env bash
# Everything that needs a GPU, on a machine that has one but neither cargo nor a network, in under ten minutes.
#
#   benches/gpu_machine.sh pack FOLDER [CAPABILITY]   where cargo is: builds, and packs all that is carried; 90 is an H100 or H200
#   FOLDER/gpu_machine.sh measure OUT                 where the GPU is: results.json, page.md and every part's log in OUT
#
# Parts, each with its own time limit: every test against the CPU, compute-sanitizer on small runs, search with and without a
# network, and random play measured, pgx beside it. A part that fails or runs out of time does not keep the others from running.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# What the parts below start, to be compiled for that GPU beforehand: game | options.
programs() {
    cat << 'EOF'
tic_tac_toe
connect_four
connect_four | rows = 7; columns = 8; connect = 5
othello
hex
hex | size = 5; swap = true
gomoku
gomoku | size = 9; rule = 'exact'; opening = 'swap2'
go
go | size = 5; max_plies = 40
go | size = 19
chess
clique
clique | n = 17; k = 4; mode = 'avoid_clique'
backgammon
backgammon | ply_limit = 300
blob
blob | players = 8; cards = 6
EOF
}

# The executable of cargo target $1 among the messages of a build.
executable() {
    python3 -c '
import json, sys
for line in open(sys.argv[1]):
    message = json.loads(line)
    if message.get("executable") and message["target"]["name"] == sys.argv[2]:
        print(message["executable"])
' "$messages" "$1" | tail -1
}

pack() {
    local folder=$1 capability=${2:-90}
    cd "$here/.."
    eval "$(kernels/toolchain.sh)"
    messages=$(mktemp)
    local build=(--release --locked --features cuda --message-format=json)
    cargo build "${build[@]}" --bin vecaz --example kernel_store > "$messages"
    cargo test "${build[@]}" --no-run --test cuda_parity >> "$messages"
    cargo bench --locked --features cuda --message-format=json --no-run --bench device_games \
        --bench device_forward --bench device_train >> "$messages"
    mkdir -p "$folder/files"
    kernels/wheels.sh nvidia-cuda-nvrtc==13.0.88 > /dev/null
    programs | "$(executable kernel_store)" "$capability" "$folder/files/cache"
    for name in vecaz cuda_parity device_games device_forward device_train; do
        strip -o "$folder/files/$name" "$(executable $name)"
    done
    git rev-parse HEAD > "$folder/files/commit"
    cp benches/gpu_page.py benches/pgx_random_play.py benches/peers/torch_resnet.py "$folder/files"
    tar -C "$folder/files" -cJf "$folder/files.tar.xz" .
    rm -r "$folder/files" "$messages"
    cp benches/gpu_machine.sh "$folder"
    ls -l "$folder"
}

# Folders of CUDA's libraries in this machine's Python packages, with colons between.
python_libraries() {
    python3 -c '
import glob, sys
print(":".join(f for p in sys.path for f in sorted(glob.glob(p + "/nvidia/cu13/lib") + glob.glob(p + "/nvidia/*/lib"))))
' 2> /dev/null || true
}

# part NAME SECONDS COMMAND...: runs it, keeps its log, and notes how it went.
part() {
    local name=$1 limit=$2 start=$SECONDS code=0
    shift 2
    echo "== $name: $*" >&2
    timeout -k 5 "$limit" "$@" > "$out/$name.log" 2>&1 || code=$?
    printf '%s\t%s\t%s\t%s\t%s\n' "$name" "$limit" $((SECONDS - start)) "$code" "$*" >> "$out/parts.tsv"
    echo "   $((SECONDS - start)) s, exit $code" >&2
}

measure() {
    mkdir -p "$1"
    out=$(cd "$1" && pwd)
    local bin
    bin=$(mktemp -d)
    tar -C "$bin" -xJf "$here/files.tar.xz"
    export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}:$(python_libraries):/usr/local/cuda/lib64 VECAZ_CACHE=$bin/cache
    export VECAZ_REQUIRE_CUDA=1
    : > "$out/parts.tsv"
    cp "$bin/commit" "$out/commit"

    part machine 10 nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv
    part parity 120 "$bin/cuda_parity" --test-threads 1
    local small=("$bin/vecaz" bench-scaling --device cuda --net uniform --seconds 0.01 --sims 24 --games 5)
    for tool in memcheck racecheck; do
        part "$tool-connect_four" 20 compute-sanitizer --tool $tool --error-exitcode 9 "${small[@]}" --game connect_four
        part "$tool-blob" 20 compute-sanitizer --tool $tool --error-exitcode 9 "${small[@]}" --game blob
    done
    local scaling=("$bin/vecaz" bench-scaling --device cuda --net uniform --seconds 2)
    part search-connect_four 45 "${scaling[@]}" --game connect_four --sims 800 \
        --games 1,16,256,1024,4096,16384,65536 --json "$out/search-connect_four.json"
    part search-hex 40 "${scaling[@]}" --game hex --sims 800 --games 256,4096,16384 --json "$out/search-hex.json"
    part search-network 60 "$bin/vecaz" bench-scaling --device cuda --seconds 1 --game connect_four --sims 200 \
        --net 2x32,6x64,6x128 --games 1,128,4096,16384 --json "$out/search-network.json"
    # Games and trees on the CPU, asked in two halves.
    part search-hybrid 20 "$bin/vecaz" bench-scaling --device cpu --set net.device=cuda --set net.precision=bf16 --seconds 2 \
        --game connect_four --sims 200 --net 6x128 --games 1024,4096 --json "$out/search-hybrid.json"
    part random_play 40 "$bin/device_games" --json "$out/random_play.json"
    part train 40 "$bin/device_train" --batches 512,2048,8192
    part train-torch 40 python3 "$bin/torch_resnet.py" 2x32,6x64,6x128 cuda 512,2048,8192
    part forward 60 "$bin/device_forward"
    part pgx 45 python3 "$bin/pgx_random_play.py" --lanes 65536 --json "$out/pgx.json"
    python3 "$bin/gpu_page.py" "$out"
    rm -r "$bin"
    ! cut -f 4 "$out/parts.tsv" | grep -qv '^0$' # fails where a part has
}

case ${1:-} in
pack | measure) if [ $# -ge 2 ]; then "$@"; exit; fi ;;
esac
sed -n '2,9s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
exit 2
