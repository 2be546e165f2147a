#!/usr/bin/env bash
# Everything that needs a GPU, on a machine that has one but neither cargo nor a network, in ten minutes at most for each command.
#
#   benches/gpu_machine.sh pack FOLDER [GPU]          where cargo is: builds, and packs all that is carried; GPU is its compute
#                                                     capability and multiprocessors, `90 132` for an H100 or H200
#   FOLDER/gpu_machine.sh measure OUT                 where the GPU is: results.json, page.md and every part's log in OUT
#   FOLDER/gpu_machine.sh network OUT                 the same for networks; OUT may be that of `measure`
#   FOLDER/gpu_machine.sh learn OUT                   the same for learning Connect Four from zero, in five minutes
#
# `measure`: every test against the CPU, compute-sanitizer on small runs, pure search, random play with pgx beside it, and PyTorch's
# forward. `network`: forward, training and search with a network, PyTorch and mctx + pgx beside them. Each
# part has its own time limit; one that fails or runs out of time does not keep the others from running. The GPU machine's python3
# must have JAX and PyTorch for CUDA; pgx and mctx are carried.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# What the parts below start, to be compiled for that GPU beforehand: game | options | network or training.
programs() {
    cat << 'EOF'
tic_tac_toe
connect_four
connect_four | rows = 7; columns = 8; connect = 5
othello
hex
hex | size = 5; swap = true
hex | size = 13
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
connect_four | | resnet 2x32 bf16 1,16,128,1024,4096,16384,32768
connect_four | | resnet 6x64 bf16 1,16,128,1024,4096,16384,32768
connect_four | | resnet 6x128 bf16 1,16,128,512,1024,2048,4096,16384,32768
connect_four | | resnet 20x256 bf16 1,16,128,1024,4096,16384,32768
clique | n = 14 | edge 3x64 bf16 1,16,128,1024,4096,16384,32768
connect_four | | resnet 6x64 bf16 1024,4096,16384,32768 wgmma
connect_four | | resnet 6x128 bf16 1024,4096,16384,32768 wgmma
connect_four | | resnet 20x256 bf16 1024,4096,16384,32768 wgmma
hex | size = 13 | resnet 6x64 bf16 4096
connect_four | | training bf16
connect_four | | training f32
connect_four | | training f16
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
    local folder=$1 gpu=${2:-90 132}
    cd "$here/.."
    messages=$(mktemp)
    local build=(--release --locked --message-format=json)
    cargo build "${build[@]}" --bin vecaz --example kernel_store > "$messages"
    cargo test "${build[@]}" --no-run --test cuda_parity >> "$messages"
    cargo bench --locked --message-format=json --no-run --bench device_games \
        --bench device_forward --bench device_train >> "$messages"
    mkdir -p "$folder/files"
    kernels/wheels.sh nvidia-cuda-nvrtc==13.0.88 > /dev/null
    # shellcheck disable=SC2086 # two words
    programs | "$(executable kernel_store)" $gpu "$folder/files/cache"
    for name in vecaz cuda_parity device_games device_forward device_train; do
        strip -o "$folder/files/$name" "$(executable $name)"
    done
    git rev-parse HEAD > "$folder/files/commit"
    cp benches/gpu_page.py benches/pgx_random_play.py benches/peers/*.py "$folder/files"
    pack_python "$folder/files/python"
    tar -C "$folder/files" -cJf "$folder/files.tar.xz" .
    rm -r "$folder/files" "$messages"
    cp benches/gpu_machine.sh "$folder"
    ls -l "$folder"
}

# Unpacks what the peers in Python need beside JAX into folder $1.
pack_python() {
    local wheels=("$(mktemp -d)")
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: --dest "${wheels[0]}" \
        pgx==2.6.0 mctx==0.0.71 dm-haiku==0.0.17 chex==0.1.92 jmp==0.0.4 tabulate==0.10.0 toolz==1.2.0 absl-py==2.5.1 svgwrite==1.4.3
    for wheel in "${wheels[0]}"/*.whl; do
        python3 -m zipfile --extract "$wheel" "$1"
    done
    rm -r "${wheels[0]}"
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

# Unpacks what was carried, to run with results in folder $1.
unpack() {
    mkdir -p "$1"
    out=$(cd "$1" && pwd)
    bin=$(mktemp -d)
    tar -C "$bin" -xJf "$here/files.tar.xz"
    export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:-}:$(python_libraries):/usr/local/cuda/lib64 VECAZ_CACHE=$bin/cache
    export PYTHONPATH=${PYTHONPATH:+$PYTHONPATH:}$bin/python VECAZ_REQUIRE_CUDA=1
    touch "$out/parts.tsv"
    cp "$bin/commit" "$out/commit"
    export VECAZ_LOG=vecaz=info # tells what was not compiled beforehand
    part machine 10 nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm --format=csv
}

# Writes the page of all parts so far; fails where one has failed.
finish() {
    python3 "$bin/gpu_page.py" "$out"
    rm -r "$bin"
    ! cut -f 4 "$out/parts.tsv" | grep -qv '^0$'
}

# watched NAME SECONDS COMMAND...: a part during which the share of time that the GPU is busy is written down.
watched() {
    nvidia-smi --query-gpu=utilization.gpu --format=csv,noheader,nounits -lms 250 > "$out/$1.busy" 2> /dev/null &
    local watch=$!
    part "$@"
    kill "$watch" 2> /dev/null || true
}

measure() {
    unpack "$1"
    # Each test in a process of its own: what one breaks does not keep the others from running. Most of their time is compiling.
    local test
    for test in $("$bin/cuda_parity" --list --format terse | sed -n 's/: test$//p'); do
        part "parity-$test" 200 "$bin/cuda_parity" --exact "$test" &
    done
    wait
    # Races are looked for in shared memory only, which networks use; searches have barriers of warps.
    local few=("$bin/vecaz" bench-scaling --device cuda --seconds 0.01)
    for tool in memcheck synccheck; do
        part "$tool-connect_four" 20 compute-sanitizer --tool $tool --error-exitcode 9 \
            "${few[@]}" --net uniform --sims 24 --games 5 --game connect_four
        part "$tool-blob" 20 compute-sanitizer --tool $tool --error-exitcode 9 \
            "${few[@]}" --net uniform --sims 24 --games 5 --game blob
    done
    for tool in memcheck racecheck; do
        part "$tool-network" 40 compute-sanitizer --tool $tool --error-exitcode 9 \
            "${few[@]}" --net 2x32 --set net.precision=bf16 --sims 8 --games 16 --game connect_four
    done
    local scaling=("$bin/vecaz" bench-scaling --device cuda --net uniform --seconds 2)
    part search-connect_four 60 "${scaling[@]}" --game connect_four --sims 800 \
        --games 1,16,256,1024,4096,16384,65536 --json "$out/search-connect_four.json"
    part search-hex 60 "${scaling[@]}" --game hex --sims 800 --games 256,4096,16384 --json "$out/search-hex.json"
    part random_play 60 "$bin/device_games" --json "$out/random_play.json"
    part pgx 90 python3 "$bin/pgx_random_play.py" --lanes 65536 --json "$out/pgx.json"
    part forward-torch 30 python3 "$bin/torch_resnet.py" 2x32,6x64,6x128,20x256 cuda-forward 1024,4096,32768
    finish
}

network() {
    unpack "$1"
    part forward 40 "$bin/device_forward" --seconds 0.3
    # wgmma is Hopper's alone.
    if nvidia-smi --query-gpu=compute_cap --format=csv,noheader | grep -q '^9\.0$'; then
        part forward-wgmma 40 "$bin/device_forward" 6x64 6x128 20x256 --tensor-cores mma,wgmma \
            --slots 1024,4096,16384,32768 --seconds 0.3
    fi
    local scaling=("$bin/vecaz" bench-scaling --set net.precision=bf16 --seconds 1 --sims 200)
    part search-network 90 "${scaling[@]}" --device cuda --game connect_four --net 2x32,6x64,6x128 \
        --games 1,128,1024,4096,32768 --json "$out/search-network.json"
    # A pass of the largest takes a fifth of a second.
    part search-large 50 "${scaling[@]}" --device cuda --game connect_four --net 20x256 --set selfplay.passes_per_poll=8 \
        --games 1,128,1024,4096,32768 --json "$out/search-large.json"
    part search-hex13 15 "${scaling[@]}" --device cuda --game hex --set game.size=13 --net 6x64 --games 4096 \
        --json "$out/search-hex13.json"
    # Games and trees on the CPU, asked in two halves.
    part search-hybrid 20 "${scaling[@]}" --device cpu --set net.device=cuda --game connect_four --net 6x128 --games 1024,4096 \
        --json "$out/search-hybrid.json"
    : > "$out/mctx.jsonl"
    for net in 2x32 6x64 6x128; do
        part "mctx-$net" 35 bash -o pipefail -c 'python3 "$0"/mctx_search.py "$1" 4096 200 5 bfloat16 | tee -a "$2"' "$bin" "$net" "$out/mctx.jsonl"
    done
    part train 60 "$bin/device_train" --batches 512,2048,8192 --seconds 0.5
    part train-torch 60 python3 "$bin/torch_resnet.py" 2x32,6x64,6x128 cuda 512,2048,8192
    finish
}

learn() {
    unpack "$1"
    watched learn 190 "$bin/vecaz" run --config connect_four_gpu --minutes 2.9 --out "$out/learn"
    watched learn-overlapped 60 "$bin/vecaz" run --config connect_four_gpu --minutes 0.8 \
        --set train.mode=overlapped --out "$out/learn-overlapped"
    finish
}

case ${1:-} in
pack | measure | network | learn) if [ $# -ge 2 ]; then "$@"; exit; fi ;;
esac
sed -n '2,14s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2
exit 2
