#!/bin/bash
# Every check and measurement of the CUDA backend that needs a GPU, in jobs of at most nine minutes: a table, and JSON.
#
#   tests/exec/gpu_report.sh [--dry] [--rehearse] [--job 1|2|3] [--only PART,...] [--from FOLDER]... [--out FOLDER] [--seconds N]
#
# Leaves gpu_report.json, gpu_report.txt (the table), gpu_report_logs.tar.gz, gpu_report_runs.tar.gz (results of the programs) and the calibrated
# gpu_report_profile.json in FOLDER ($OUT, else build/gpu-report). All are written after each part, and whole: a kill at any moment loses no more
# than the part at work. A part that fails or takes too long is recorded, and the next one begins; what was not reached is "not measured".
#
#   --dry        nothing is run: every line says "not measured"
#   --rehearse   on CPU cores, by the backend loop and with small models: tries this script where there is no GPU
#   --job        1: kernels steps predictions; 2: calibrate models meshes; 3: replays torch sanitizer; together they are all parts
#   --only       of these parts; one alone has all the time, and calibrate then measures its whole grid. accuracy, which needs no GPU, predicts
#                what --from has measured
#   --from       begins with the results of an earlier call: joins jobs that were run apart
#   --seconds    that all may take, 540
#
# Needs build/bundle (`make bundle`, made anywhere), or nvcc and what the build needs: then it builds. MESHSIM names another program, TESTS another
# folder of test programs, PYTHON another python3. cuBLASLt and NCCL of pip's packages are found where the loader has none. Exit status: 0 when all
# was measured and within its limits (or --dry), 2 for wrong usage, 1 otherwise.
set -uo pipefail
repository=$(cd "$(dirname "$0")/../.." && pwd)
out=${OUT:-$repository/build/gpu-report}
budget_s=540
dry=0
backend=cuda
declare -A parts_of=([1]="kernels steps predictions" [2]="calibrate models meshes" [3]="replays torch sanitizer")
all_parts="${parts_of[1]} ${parts_of[2]} ${parts_of[3]}" # in the order of their value
parts=$all_parts
from=()
while [ $# -gt 0 ]; do
    case "$1" in
    --dry) dry=1 ;;
    --rehearse) backend=loop ;;
    --job | --only | --from | --out | --seconds)
        [ $# -gt 1 ] || { echo "$1 needs a value" >&2 && exit 2; }
        case "$1" in
        --job) parts=${parts_of[$2]:-} && [ -n "$parts" ] || { echo "there is no job \"$2\": 1, 2 or 3" >&2 && exit 2; } ;;
        --only) parts=${2//,/ } ;;
        --from) from+=("$2") ;;
        --out) out=$2 ;;
        --seconds) budget_s=$2 ;;
        esac
        shift
        ;;
    *) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" >&2 && exit 2 ;;
    esac
    shift
done
for part in $parts; do
    case " $all_parts accuracy " in *" $part "*) ;; *) echo "there is no part \"$part\": $all_parts accuracy" >&2 && exit 2 ;; esac
done
# a program that was copied looks for them where it was built
export MESHSIM_CONFIGS=${MESHSIM_CONFIGS:-$repository/configs}
PATH=$PATH:/usr/local/nvidia/bin:/usr/local/cuda/bin
[[ "$budget_s" =~ ^[1-9][0-9]*$ ]] || { echo "--seconds is \"$budget_s\", must be a whole number above 0" >&2 && exit 2; }
# before minutes of measuring
for folder in "${from[@]}"; do
    [ -s "$folder/gpu_report_runs.tar.gz" ] || { echo "--from: there is no $folder/gpu_report_runs.tar.gz" >&2 && exit 2; }
done
mkdir -p "$out" && out=$(cd "$out" && pwd) && [ -w "$out" ] || { echo "no results can be written to $out" >&2 && exit 1; }
cd "$repository" || exit 1
work=$(mktemp -d)
logs=$work/logs
runs=$work/runs # rows, and the JSON behind them
mkdir -p "$logs" "$runs" && touch "$runs/rows" "$runs/tests" "$runs/gpu" || exit 1
gpu_text=
watcher=
for file in results grid parts; do
    # shellcheck source=/dev/null
    . "tests/exec/gpu_report_$file.sh" || exit 1
done
grid_names >"$work/names"
expected_rows >"$work/expected"

# ---- time

# At most, where others are to come: a part that hangs leaves them their time.
declare -A seconds_of=([kernels]=170 [steps]=290 [predictions]=20 [calibrate]=330 [models]=70 [meshes]=110 [replays]=240 [torch]=170 [sanitizer]=120 [accuracy]=60)
end_of_part_s=$budget_s

left()
{
    echo $((budget_s - SECONDS > 0 ? budget_s - SECONDS : 0))
}

# limited SECONDS LOG COMMAND...: its exit status; 124 when it takes longer than that, or than what is left of the part or in all
limited()
{
    local seconds=$1 log=$2 most rc=0
    shift 2
    most=$(((end_of_part_s < budget_s ? end_of_part_s : budget_s) - SECONDS))
    [ "$most" -gt 0 ] || { echo "no time was left" >>"$log" && return 124; }
    [ "$seconds" -lt "$most" ] || seconds=$most
    echo "\$ $*" >>"$log"
    timeout -k 5 "$seconds" "$@" >>"$log" 2>&1 </dev/null || rc=$?
    return $rc
}

# why LOG STATUS: one line
why()
{
    case "$2" in
    124 | 137) echo "ended after its time" ;;
    *) grep -m 1 -iE '^(meshsim: )?error|[^ ] error|no time was left|not found|Traceback' "$1" || tail -n 1 "$1" ;;
    esac
}

# ---- the machine and the programs

find_gpu()
{
    gpu_text=$(nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.mem,power.limit --format=csv,noheader 2>/dev/null | head -1)
    [ -n "$gpu_text" ]
}

# library NAME: whether the loader finds it, or meshsim in CUDA's folders
library()
{
    local folder
    while read -r folder; do
        ! compgen -G "${folder:-/usr/local/cuda/lib64}/$1.so.*" >/dev/null || return 0
    done < <(printf '/usr/local/cuda/lib64\n/usr/local/cuda/targets/x86_64-linux/lib\n' && tr ':' '\n' <<<"${LD_LIBRARY_PATH:-}")
    ldconfig -p 2>/dev/null | grep "$1\.so\." >/dev/null
}

# Folders of pip's packages go to the loader where it lacks a library.
find_libraries()
{
    local python folders name
    for python in ${PYTHON:-} python3 /usr/bin/python3; do
        folders=$("$python" -c 'import glob, nvidia; print("\n".join(f for p in nvidia.__path__ for f in glob.glob(p + "/*/lib")))' 2>/dev/null) && break
    done
    for name in libcublasLt libnccl; do
        library $name && continue
        while read -r folder; do
            ! compgen -G "$folder/$name.so.*" >/dev/null || export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder
        done <<<"$folders"
    done
}

build_programs()
{
    program=${MESHSIM:-}
    tests=${TESTS:-}
    if [ -z "$program" ] && [ "$backend" = cuda ] && build/bundle/meshsim version >"$logs/build.log" 2>&1; then
        program=$repository/build/bundle/meshsim
        tests=${tests:-$repository/build/bundle}
    fi
    if [ -z "$program" ]; then
        limited 240 "$logs/build.log" make -j "$(nproc)" all || return 1
        program=$repository/build/meshsim
    fi
    if [ -z "$tests" ] && [ "$backend" = cuda ] && limited 240 "$logs/build.log" make -j "$(nproc)" gpu-tests; then
        tests=$repository/build/opt/gpu
    fi
    "$program" version >>"$logs/build.log" 2>&1
}

# ---- the call

# Also when it is ended before its time.
finish()
{
    trap - EXIT
    [ -z "$watcher" ] || kill "$watcher" 2>/dev/null
    save "${1:-false}"
    save_logs
    cat "$out/gpu_report.txt"
    local bad
    bad=$(cut -f 3 "$work/final" | grep -cvE '^(passed|measured|does not fit)$')
    rm -rf "$work"
    [ $dry -eq 1 ] || [ "$bad" -eq 0 ] || exit 1
    exit 0
}
trap finish EXIT
trap 'exit 1' INT TERM

if [ $dry -eq 1 ]; then
    finish true
fi
for folder in "${from[@]}"; do
    take "$folder" || exit 1
done
# measures: whether anything is executed, and not only predicted
measures()
{
    [ "$parts" != accuracy ]
}
if [ $backend = cuda ] && measures && ! find_gpu; then
    echo "no GPU: nvidia-smi finds none. Nothing is measured" >&2
    finish true
fi
echo "$gpu_text" >"$runs/gpu"
[ $backend != cuda ] || find_libraries
if ! build_programs; then
    echo "there is no program to run: neither build/bundle (make bundle) nor a build here" >&2
    tail -n 20 "$logs/build.log" >&2
    finish
fi
if measures; then
    limited 20 "$logs/info.log" "$program" info
    limited 20 "$logs/info.log" "$program" info --json -o "$runs/info.json"
fi
if [ $backend = cuda ] && grep -q '"cluster": ' "$runs/info.json" 2>/dev/null; then
    cluster=$(sed -nE 's/^ *"cluster": "(.*)".*/\1/p;/"cluster": null/q' "$runs/info.json" | head -n 1)
fi
[ $backend != cuda ] || ! measures || watch_gpu
for part in $parts; do
    # one that is asked for alone has all
    [ "$parts" = "$part" ] || end_of_part_s=$((SECONDS + seconds_of[$part]))
    echo "part $part" >&2
    "part_$part"
    save false
    save_logs
done
finish true
