#!/bin/bash
# Every check and measurement of the CUDA backend that needs a GPU, in jobs of at most nine minutes: a table, and JSON.
#
#   tests/exec/gpu_report.sh [--dry] [--rehearse] [--job 1|2|3] [--only PART,...] [--out FOLDER] [--seconds N]
#
# Leaves gpu_report.json, gpu_report.txt (the table), the folder gpu_report_logs and the profile that was calibrated in FOLDER ($OUT, else
# build/gpu-report). All are written after each part: a kill at any moment loses no more than the part at work. A part that fails or takes too
# long is recorded, and the next one begins; what was not reached is "not measured".
#
#   --dry        nothing is run: every line says "not measured"
#   --rehearse   on CPU cores, by the backend loop and with small models: tries this script where there is no GPU
#   --job        1: kernels steps predictions; 2: calibrate models meshes; 3: replays torch sanitizer; together they are all parts
#   --only       of these parts; one alone has all the time, and calibrate then measures its whole grid
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
while [ $# -gt 0 ]; do
    case "$1" in
    --dry) dry=1 ;;
    --rehearse) backend=loop ;;
    --job | --only | --out | --seconds)
        [ $# -gt 1 ] || { echo "$1 needs a value" >&2 && exit 2; }
        case "$1" in
        --job) parts=${parts_of[$2]:-} && [ -n "$parts" ] || { echo "there is no job \"$2\": 1, 2 or 3" >&2 && exit 2; } ;;
        --only) parts=${2//,/ } ;;
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
    case " $all_parts " in *" $part "*) ;; *) echo "there is no part \"$part\": $all_parts" >&2 && exit 2 ;; esac
done
# a program that was copied looks for them where it was built
export MESHSIM_CONFIGS=${MESHSIM_CONFIGS:-$repository/configs}
PATH=$PATH:/usr/local/nvidia/bin:/usr/local/cuda/bin
[[ "$budget_s" =~ ^[1-9][0-9]*$ ]] || { echo "--seconds is \"$budget_s\", must be a whole number above 0" >&2 && exit 2; }
# before minutes of measuring
mkdir -p "$out" && out=$(cd "$out" && pwd) && [ -w "$out" ] || { echo "no results can be written to $out" >&2 && exit 1; }
cd "$repository" || exit 1
work=$(mktemp -d)
logs=$out/gpu_report_logs
mkdir -p "$logs" || exit 1
: >"$work/rows"
tab=$'\t'

# ---- what is expected: id, what; a line that nothing was measured for stays as it is

expected="kernels|kernels against fp64 references, test programs
models.llama.fp32|small Llama, loss and gradients against CPU, fp32
models.llama.bf16|small Llama, loss and gradients against CPU, bf16
models.moe.fp32|small MoE, fp32
models.moe.bf16|small MoE, bf16, balanced routing
models.gpt.fp32|small GPT-2, fp32
models.gpt.bf16|small GPT-2, bf16
models.llama.fp8|small Llama, loss alone, fp8
models.gpt.fp8|small GPT-2, loss alone, fp8
meshes.tp2|tp 2 through the host against serial
meshes.pp2|pp 2
meshes.cp2-ring|cp 2, ring
meshes.cp2-gather|cp 2, all-gather
meshes.cp2-ulysses|cp 2, Ulysses
meshes.ep2|dp 2 x ep 2
meshes.ep4|dp 2 x tp 2 with ep 4
meshes.zero0|dp 2, ZeRO 0
meshes.zero1|dp 2, ZeRO 1
meshes.zero2|dp 2, ZeRO 2
meshes.zero3|dp 2, ZeRO 3
meshes.pp2tp2|pp 2 x tp 2
meshes.dp2tp2|dp 2 x tp 2, ZeRO 3, GPT-2
meshes.cp2dp2|cp 2 x dp 2, ZeRO 3
steps.1b.seconds|Llama 3.2 1B, sequence 4096, bf16: step
steps.1b.tokens|Llama 3.2 1B: tokens/s
steps.1b.mfu|Llama 3.2 1B: MFU
steps.1b.memory|Llama 3.2 1B: peak memory
steps.3b.seconds|Llama 3.2 3B, sequence 4096, bf16: step
steps.3b.tokens|Llama 3.2 3B: tokens/s
steps.3b.mfu|Llama 3.2 3B: MFU
steps.3b.memory|Llama 3.2 3B: peak memory
predictions.1b.step|1B: predicted/measured step, shipped profile
predictions.1b.memory|1B: predicted/measured memory
predictions.3b.step|3B: predicted/measured step, shipped profile
predictions.3b.memory|3B: predicted/measured memory
calibrate|calibration on microbenchmarks alone
calibrate.1b.step|1B: predicted/measured step, calibrated profile
calibrate.3b.step|3B: predicted/measured step, calibrated profile
replays.70b.step|Llama 70B on 512 GPUs, one standing in: recomposed step
replays.70b.actions|70B: predicted/measured stage actions, median
replays.70b.memory|70B: measured/predicted peak, the worst rank
replays.405b.step|Llama 405B on 16,384 GPUs: recomposed step
replays.405b.actions|405B: predicted/measured stage actions, median
replays.405b.memory|405B: measured/predicted peak, the worst rank
sanitizer.memcheck.llama|compute-sanitizer memcheck, small Llama
sanitizer.memcheck.moe|compute-sanitizer memcheck, small MoE
sanitizer.racecheck.llama|compute-sanitizer racecheck, small Llama
sanitizer.racecheck.moe|compute-sanitizer racecheck, small MoE
torch.1b.tokens|1B in PyTorch with compile: tokens/s
torch.1b.mfu|1B in PyTorch with compile: MFU
torch.1b.memory|1B in PyTorch with compile: peak memory
torch.3b.tokens|3B in PyTorch with compile: tokens/s
torch.3b.mfu|3B in PyTorch with compile: MFU
torch.3b.memory|3B in PyTorch with compile: peak memory"

# result ID STATUS [VALUE UNIT LIMIT DETAIL]; STATUS: passed, failed, measured, "not measured". The last one of an ID counts.
result()
{
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "${3:-}" "${4:-}" "${5:-}" "$(tr '\t\n|' '   ' <<<"${6:-}" | cut -c 1-300)" "$(gpu_now)" >>"$work/rows"
    echo "$(left) s left: $1: $2${3:+ $3 ${4:-}}${6:+ ($6)}" >&2
}

# The GPU's state when a result is recorded: SM and memory clocks (MHz), power (W), temperature (C), reasons for slower clocks
gpu_now()
{
    tail -n 1 "$logs/clocks.csv" 2>/dev/null | tr '\t|' '  '
}

watch_gpu()
{
    nvidia-smi --query-gpu=clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_throttle_reasons.active --format=csv,noheader -lms 500 \
        >"$logs/clocks.csv" 2>"$logs/clocks.log" </dev/null &
    watcher=$!
}
watcher=

# ---- time

# At most, where others are to come: a part that hangs leaves them their time.
declare -A seconds_of=([kernels]=180 [steps]=250 [predictions]=20 [calibrate]=330 [models]=70 [meshes]=110 [replays]=240 [torch]=170 [sanitizer]=120)
end_of_part_s=$budget_s

left()
{
    echo $((budget_s - SECONDS > 0 ? budget_s - SECONDS : 0))
}

left_of_part()
{
    local end_s=$((end_of_part_s < budget_s ? end_of_part_s : budget_s))
    echo $((end_s - SECONDS > 0 ? end_s - SECONDS : 0))
}

# limited SECONDS LOG COMMAND...: its exit status; 124 when it takes longer than that, or than what is left of the part or in all
limited()
{
    local seconds=$1 log=$2 most rc=0
    shift 2
    most=$(left_of_part)
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

# ---- numbers of JSON as meshsim writes it: a member a line, indented by two

# field FILE a.b.c: its text; of an array of numbers the largest
field()
{
    awk -v want="$2" '
        { match($0, /^ */); depth = RLENGTH / 2; line = substr($0, RLENGTH + 1); sub(/,$/, "", line) }
        in_array && line == "]" { print most; exit }
        in_array { if (most == "" || line + 0 > most + 0) most = line; next }
        match(line, /^"[^"]*": /) {
            path[depth] = substr(line, 2, RLENGTH - 4)
            name = path[1]
            for (i = 2; i <= depth; i++) name = name "." path[i]
            if (name != want) next
            value = substr(line, RLENGTH + 1)
            if (value == "[") { in_array = 1; next }
            gsub(/^"|"$/, "", value)
            print value
            exit
        }' "$1" 2>/dev/null
}

calculate()
{
    awk "BEGIN { printf \"%.6g\", $1 }" 2>/dev/null
}

holds()
{
    awk "BEGIN { exit !($1) }" 2>/dev/null
}

is_number()
{
    [[ "$1" =~ ^-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?$ ]]
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

# ---- kernels

part_kernels()
{
    local passed=0 failed=0 skipped=0 bad="" found=0
    : >"$work/tests"
    for test in "${tests:-none}"/test_cuda_*; do
        [ -x "$test" ] && [ ! -d "$test" ] || continue
        case "$test" in *.*) continue ;; esac
        found=1
        local name log start rc=0
        name=$(basename "$test")
        log=$logs/kernels.$name.log
        start=$SECONDS
        limited 60 "$log" "$test" || rc=$?
        local p s f
        # a test that began and neither passed nor was skipped has failed, crashes included
        read -r p f s < <(awk '
            /^\[ RUN      \] /  { run[substr($0, 14)] = 1 }
            /^\[       OK \] /  { ok[substr($0, 14)] = 1 }
            /^\[  SKIPPED \] /  { skip[substr($0, 14)] = 1 }
            END { for (t in run) if (t in ok) p++; else if (t in skip) s++; else f++; print p + 0, f + 0, s + 0 }' "$log")
        [ $rc -eq 0 ] || [ "$f" -gt 0 ] || f=1
        passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
        [ "$f" -eq 0 ] || bad="$bad $name"
        echo "$name$tab$p$tab$f$tab$s$tab$((SECONDS - start))" >>"$work/tests"
    done
    if [ $found -eq 0 ]; then
        result kernels "not measured" "" "" "" "no test programs"
    elif [ $((passed + failed)) -eq 0 ]; then
        result kernels "not measured" "" "" "" "skipped: $(tail -n 1 "$log")"
    elif [ $failed -gt 0 ]; then
        result kernels failed $passed tests "" "$failed failed in$bad; $skipped skipped"
    else
        result kernels passed $passed tests "" "$skipped skipped"
    fi
}

# ---- small models and meshes: a run, and the same on one CPU rank

# check ID DTYPE LIMIT OPTIONS...: passes when losses and gradients, in fp8 losses, differ by no more than LIMIT
check()
{
    local id=$1 dtype=$2 limit=$3 rc=0
    shift 3
    local json=$work/$id.json log=$logs/$id.log
    limited 40 "$log" "$program" run --backend $backend --dtype "$dtype" --seq 192 --global-batch 4 --steps 2 --check --json -o "$json" "$@" || rc=$?
    if grep -q "fp8 needs a GPU" "$log"; then
        result "$id" "not measured" "" "" "$limit" "$(why "$log" $rc)"
        return
    fi
    local note=""
    ! grep -q "cuBLASLt has no FP8" "$log" || note=", some products in bf16"
    local most=0 value key keys="check.loss.relative check.gradients.relative"
    [ "$dtype" != fp8 ] || keys=check.loss.relative
    for key in $keys; do
        value=$(field "$json" $key)
        if ! is_number "$value"; then
            result "$id" failed "" "" "$limit" "$(why "$log" $rc)"
            return
        fi
        ! holds "$value > $most" || most=$value
    done
    most=$(awk "BEGIN { printf \"%.2g\", $most }")
    # 4: meshsim's own tolerance, which may be another one
    if [ $rc -ne 0 ] && [ $rc -ne 4 ]; then
        result "$id" failed "$most" relative "$limit" "$(why "$log" $rc)"
    elif holds "$most <= $limit"; then
        result "$id" passed "$most" relative "$limit" "worst of $(field "$json" check.gradients.name)$note"
    else
        result "$id" failed "$most" relative "$limit" "worst of $(field "$json" check.gradients.name)$note"
    fi
}

fp32_limit=1e-4
bf16_limit=2e-2
fp8_limit=5e-2

part_models()
{
    local model options
    for model in llama moe gpt; do
        check models.$model.fp32 fp32 $fp32_limit --model tests/data/gpu/$model.json
    done
    [ $backend = cuda ] || return
    for model in llama moe gpt; do
        options=()
        # rounding to bf16 changes which experts nearly equal logits choose
        [ $model != moe ] || options=(--balanced-routing)
        check models.$model.bf16 bf16 $bf16_limit --model tests/data/gpu/$model.json "${options[@]}"
    done
    for model in llama gpt; do
        check models.$model.fp8 fp8 $fp8_limit --model tests/data/gpu/$model.json
    done
}

mesh()
{
    local id=meshes.$1 model=$2 transport=()
    shift 2
    [ $backend != cuda ] || transport=(--transport host)
    check "$id" fp32 $fp32_limit --model "tests/data/gpu/$model.json" "${transport[@]}" "$@"
}

part_meshes()
{
    mesh tp2 llama --tp 2
    mesh pp2 llama --pp 2
    mesh cp2-ring llama --cp 2 --cp-method ring
    mesh cp2-gather llama --cp 2 --cp-method all-gather
    mesh cp2-ulysses llama --cp 2 --cp-method ulysses
    mesh ep2 moe --dp-shard 2 --ep 2 --zero 1
    mesh zero3 llama --dp-shard 2 --zero 3
    mesh pp2tp2 llama --pp 2 --tp 2
    mesh zero1 llama --dp-shard 2 --zero 1
    mesh zero2 llama --dp-shard 2 --zero 2
    mesh zero0 llama --dp-shard 2 --zero 0
    mesh ep4 moe --dp-shard 2 --tp 2 --ep 4 --zero 1
    mesh dp2tp2 gpt --dp-shard 2 --tp 2 --zero 3
    mesh cp2dp2 llama --cp 2 --dp-shard 2 --zero 3
}

# ---- full steps

cluster=hgx-h200 # or that of the GPU, as `meshsim info` has it; "": none is known, so that nothing can be said about its peak
sequence=4096
batch=8
microbatch=2
dtype=bf16
declare -A model_of=([1b]=llama-3.2-1b [3b]=llama-3.2-3b)
least_mfu_3b=0.45
if [ $backend != cuda ]; then
    cluster=cpu sequence=64 dtype=fp32
    model_of=([1b]=llama-15m [3b]=llama-15m)
fi
plan_of()
{
    echo "--model ${model_of[$1]} --seq $sequence --global-batch $batch --microbatch $microbatch --cluster ${cluster:-cpu} --gpus 1 --stack meshsim"
}

# mfu SIZE TOKENS_PER_S: model FLOP with all attention pairs over the cluster's dense peak, as `meshsim predict` counts it
mfu()
{
    local json=$work/mfu.$1.json
    [ -n "$cluster" ] || return
    # shellcheck disable=SC2046
    [ -s "$json" ] || limited 20 "$logs/predict.log" "$program" predict $(plan_of "$1") --precision $dtype --json -o "$json"
    local fraction rate
    fraction=$(field "$json" mfu_frac)
    rate=$(field "$json" tokens_per_s)
    is_number "$fraction" && is_number "$rate" && calculate "$fraction * $2 / $rate"
}

step()
{
    local size=$1 rc=0 json=$work/run.$1.json log=$logs/steps.$1.log
    # shellcheck disable=SC2046
    limited 75 "$log" "$program" run --backend $backend --dtype $dtype $(plan_of "$size") --steps 8 --warm-up 3 --json -o "$json" || rc=$?
    local seconds tokens bytes used
    seconds=$(field "$json" measured.step_s)
    tokens=$(field "$json" measured.tokens_per_s)
    bytes=$(field "$json" measured.peak_bytes)
    if [ $rc -ne 0 ] || ! is_number "$seconds" || ! is_number "$tokens"; then
        result "steps.$size.seconds" failed "" "" "" "$(why "$log" $rc)"
        rm -f "$json"
        return
    fi
    result "steps.$size.seconds" measured "$(calculate "1e3 * $seconds")" ms "" \
        "median of 5; least $(calculate "1e3 * $(field "$json" measured.least_step_s)") ms; $batch sequences, micro-batch $microbatch"
    result "steps.$size.tokens" measured "$(calculate "$tokens")" tokens/s
    used=$(mfu "$size" "$tokens")
    if [ "$size" = 3b ] && [ $backend = cuda ] && is_number "$used"; then
        local status=failed
        ! holds "$used >= $least_mfu_3b" || status=passed
        result "steps.$size.mfu" $status "$used" "of the peak" "$least_mfu_3b"
    elif is_number "$used"; then
        result "steps.$size.mfu" measured "$used" "of the peak"
    fi
    ! is_number "$bytes" || result "steps.$size.memory" measured "$(calculate "$bytes / 2^30")" GiB
}

part_steps()
{
    step 1b
    step 3b
}

part_predictions()
{
    local size json
    for size in 1b 3b; do
        json=$work/run.$size.json
        [ -s "$json" ] && [ -n "$cluster" ] || continue
        result predictions.$size.step measured \
            "$(calculate "$(field "$json" predicted.step_s) / $(field "$json" measured.step_s)")" "of it" "" \
            "predicted $(calculate "1e3 * $(field "$json" predicted.step_s)") ms"
        result predictions.$size.memory measured \
            "$(calculate "$(field "$json" predicted.peak_bytes) / $(field "$json" measured.peak_bytes)")" "of it" "" \
            "predicted $(calculate "$(field "$json" predicted.peak_bytes) / 2^30") GiB"
    done
}

# ---- calibration

part_calibrate()
{
    local profile=$out/gpu_report_profile.json log=$logs/calibrate.log rc=0 quick=() start=$SECONDS size
    [ $backend = cuda ] || return
    [ -n "$cluster" ] || { result calibrate "not measured" "" "" "" "no cluster of this GPU is known" && return; }
    # the whole grid takes up to 300 s; what follows needs some, too
    local needed=310 part
    for part in models meshes replays torch sanitizer; do
        case " $parts " in *" $part "*) needed=$((needed + seconds_of[$part])) ;; esac
    done
    [ "$(left)" -ge $needed ] || quick=(--quick)
    limited 310 "$log" "$program" calibrate --backend $backend --dtype $dtype --cluster $cluster "${quick[@]}" -o "$profile" || rc=$?
    if [ $rc -ne 0 ]; then
        result calibrate failed "" "" "" "$(why "$log" $rc)"
        return
    fi
    result calibrate measured $((SECONDS - start)) s 300 "${quick[*]:-the whole grid}"
    for size in 1b 3b; do
        local json=$work/calibrated.$size.json measured predicted
        [ -s "$work/run.$size.json" ] || step $size # an earlier job measured it elsewhere
        measured=$(field "$work/run.$size.json" measured.step_s)
        is_number "$measured" || continue
        # shellcheck disable=SC2046
        limited 20 "$log" "$program" predict $(plan_of $size) --precision $dtype --profile "$profile" --json -o "$json"
        predicted=$(field "$json" step_s)
        if is_number "$predicted"; then
            result calibrate.$size.step measured "$(calculate "$predicted / $measured")" "of it" "" "predicted $(calculate "1e3 * $predicted") ms"
        else
            result calibrate.$size.step failed "" "" "" "$(tail -n 1 "$log")"
        fi
    done
}

# ---- one GPU standing in for many

declare -A replayed=(
    [70b]="--model 70b --gpus 512 --pp 8 --tp 8 --seq 8192 --global-batch 64 --cluster ${cluster:-cpu}"
    [405b]="--model 405b --gpus 16384 --pp 16 --tp 8 --seq 8192 --global-batch 2048 --cluster ${cluster:-cpu}")
if [ $backend != cuda ]; then
    replayed=(
        [70b]="--model llama-15m --gpus 8 --pp 2 --tp 2 --seq 64 --global-batch 8 --cluster cpu"
        [405b]="--model llama-15m --gpus 16 --pp 4 --tp 2 --seq 64 --global-batch 8 --cluster cpu")
fi

# ratios FILE: median of predicted/measured of actions, largest difference from 1 in percent, largest measured/predicted peak
ratios()
{
    awk -F'": ' '
        { value = $2 + 0 }
        $1 ~ / "peak_bytes$/ { peak = value }
        $1 ~ /"predicted_peak_bytes$/ { r = peak / value; if (r > most) most = r }
        $1 ~ /"action$/ { inside = 1 }
        $1 ~ /"measured_s$/ && inside { measured = value }
        $1 ~ /"predicted_s$/ && inside { x[n++] = value / measured; inside = 0 }
        END {
            for (i = 1; i < n; i++) for (j = i; j > 0 && x[j - 1] > x[j]; j--) { t = x[j]; x[j] = x[j - 1]; x[j - 1] = t }
            for (i = 0; i < n; i++) { d = x[i] > 1 ? x[i] - 1 : 1 - x[i]; if (d > worst) worst = d }
            if (n) printf "%.6g %.3g %.6g\n", (x[int((n - 1) / 2)] + x[int(n / 2)]) / 2, 100 * worst, most
        }' "$1" 2>/dev/null
}

replay()
{
    local size=$1 rc=0 json=$work/replay.$1.json log=$logs/replays.$1.log middle worst most seconds
    # shellcheck disable=SC2086
    limited 115 "$log" "$program" run --backend $backend --dtype $dtype --stack meshsim ${replayed[$size]} --replay stages --steps 3 --json -o "$json" || rc=$?
    read -r middle worst most < <(ratios "$json")
    seconds=$(field "$json" step_s)
    if [ $rc -ne 0 ] || ! is_number "$seconds" || ! is_number "$middle"; then
        result "replays.$size.step" failed "" "" "" "$(why "$log" $rc)"
        return
    fi
    result "replays.$size.step" measured "$(calculate "1e3 * $seconds")" ms "" "predicted $(calculate "1e3 * $(field "$json" predicted_step_s)") ms"
    result "replays.$size.actions" measured "$middle" "of it" "" "worst $worst % off"
    result "replays.$size.memory" measured "$most" "of it"
}

part_replays()
{
    replay 70b
    replay 405b
}

# ---- compute-sanitizer

sanitize()
{
    local tool=$1 model=$2 rc=0 sanitizer options=()
    local id=sanitizer.$1.$2 log=$logs/sanitizer.$1.$2.log
    sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null) || {
        result "$id" "not measured" "" "" "" "there is no compute-sanitizer"
        return
    }
    # an event that has not happened yet is no error, though its query says so
    [ "$tool" != memcheck ] || options=(--report-api-errors no)
    limited 60 "$log" "$sanitizer" --tool "$tool" "${options[@]}" --error-exitcode 99 "$program" run --backend $backend --dtype bf16 \
        --model "tests/data/gpu/$model.json" --seq 192 --global-batch 1 --steps 1 || rc=$?
    local summary
    summary=$(grep -E 'ERROR SUMMARY|RACECHECK SUMMARY' "$log" | tail -n 1)
    if grep -q 'Device not supported' "$log"; then
        result "$id" "not measured" "" "" "" "compute-sanitizer: device not supported"
    elif [ $rc -eq 0 ] && [ -n "$summary" ]; then
        result "$id" passed "" "" "" "${summary#*=== }"
    else
        result "$id" failed "" "" "" "${summary:-$(why "$log" $rc)}"
    fi
}

part_sanitizer()
{
    local tool model
    [ $backend = cuda ] || return
    for tool in memcheck racecheck; do
        for model in llama moe; do
            sanitize $tool $model
        done
    done
}

# ---- PyTorch

# member LINE NAME: a number of JSON in one line, as Python writes it
member()
{
    sed -nE "s/.*\"$2\": (-?[0-9.e+-]+).*/\1/p" <<<"$1"
}

torch_step()
{
    local size=$1 python=$2 rc=0 log=$logs/torch.$1.log line value used
    limited 110 "$log" "$python" tests/exec/gpu_report_torch.py --model "configs/models/${model_of[$size]}.json" --seq $sequence \
        --microbatch $microbatch --microbatches $((batch / microbatch)) || rc=$?
    line=$(grep '^{"schema": "meshsim.gpu-report-torch/1"' "$log" | tail -n 1)
    if [ $rc -ne 0 ] || [ -z "$line" ]; then
        result "torch.$size.tokens" failed "" "" "" "$(why "$log" $rc)"
        return
    fi
    echo "$line" >"$work/torch.$size.json"
    value=$(member "$line" tokens_per_s)
    result "torch.$size.tokens" measured "$(calculate "$value")" tokens/s "" "step $(calculate "1e3 * $(member "$line" step_s)") ms"
    used=$(mfu "$size" "$value")
    ! is_number "$used" || result "torch.$size.mfu" measured "$used" "of the peak"
    value=$(member "$line" peak_bytes)
    ! is_number "$value" || result "torch.$size.memory" measured "$(calculate "$value / 2^30")" GiB
}

part_torch()
{
    local python found=
    [ $backend = cuda ] || return
    for python in ${PYTHON:-} python3 /usr/bin/python3; do
        ! "$python" -c 'import torch' 2>/dev/null || { found=$python && break; }
    done
    if [ -z "$found" ]; then
        result torch.1b.tokens "not measured" "" "" "" "no python3 with torch"
        return
    fi
    torch_step 1b "$found"
    torch_step 3b "$found"
}

# ---- results

# The last result of each expected line: id, what, status, value, unit, limit, detail
final_rows()
{
    awk -F'\t' -v OFS='\t' '
        FILENAME != "-" { last[$1] = $2 OFS $3 OFS $4 OFS $5 OFS $6 OFS $7; next }
        { split($0, e, "|"); print e[1], e[2], (e[1] in last) ? last[e[1]] : "not measured" OFS OFS OFS OFS OFS }' \
        "$work/rows" - <<<"$expected"
}

print_table()
{
    echo
    echo "${gpu_text:-no GPU}: $1, $SECONDS s"
    printf '%-58s %14s %-12s %10s  %s\n' "what" "value" "" "limit" "status"
    local id what status value unit limit detail clocks
    while IFS='|' read -r id what status value unit limit detail clocks; do
        printf '%-58s %14s %-12s %10s  %s\n' "${what:0:58}" "$value" "$unit" "$limit" "$status${detail:+: ${detail:0:60}}"
    done < <(final_rows | tr '\t' '|')
    for id in 1b 3b; do
        [ -s "$work/run.$id.json" ] || continue
        echo
        echo "${model_of[$id]}, time by kind of node over a step (ms)"
        nodes_of "$work/run.$id.json" | head -12
    done
}

# kind, measured ms
nodes_of()
{
    awk -F'": ' '
        /"kind": / { kind = $2; gsub(/^"|",?$/, "", kind) }
        /"measured_s": / && kind != "" { sub(/,$/, "", $2); printf "%-40s %10.3f\n", kind, 1e3 * $2; kind = "" }' "$1"
}

text()
{
    printf '"%s"' "$(tr -d '\000-\037' <<<"$1" | sed 's/\\/\\\\/g; s/"/\\"/g')"
}

number()
{
    if is_number "$1"; then printf '%s' "$1"; else printf null; fi
}

# embed NAME FILE: a file of JSON as a member, if there is one
embed()
{
    [ ! -s "$2" ] || printf '  "%s": %s,\n' "$1" "$(cat "$2")"
}

write_json()
{
    local separator= id what status value unit limit detail clocks name passed failed skipped seconds
    echo '{'
    echo '  "schema": "meshsim.gpu-report/1",'
    printf '  "date": %s,\n  "backend": %s,\n  "gpu": %s,\n  "complete": %s,\n  "elapsed_s": %d,\n' \
        "$(text "$(date -u +%Y-%m-%dT%H:%M:%SZ)")" "$(text $backend)" "$(text "${gpu_text:-}")" "$1" $SECONDS
    printf '  "parts": %s,\n' "$(text "$parts")"
    for id in 1b 3b; do
        embed "run_$id" "$work/run.$id.json"
        embed "torch_$id" "$work/torch.$id.json"
    done
    for id in 70b 405b; do
        embed "replay_$id" "$work/replay.$id.json"
    done
    echo '  "tests": ['
    [ ! -s "$work/tests" ] || while IFS=$tab read -r name passed failed skipped seconds; do
        printf '%s    {"name": %s, "passed": %d, "failed": %d, "skipped": %d, "seconds": %d}' "$separator" "$(text "$name")" "$passed" "$failed" "$skipped" "$seconds"
        separator=$',\n'
    done <"$work/tests"
    printf '\n  ],\n  "rows": [\n'
    separator=
    while IFS='|' read -r id what status value unit limit detail clocks; do
        printf '%s    {"id": %s, "what": %s, "status": %s, "value": %s, "unit": %s, "limit": %s, "detail": %s, "gpu_state": %s}' "$separator" \
            "$(text "$id")" "$(text "$what")" "$(text "$status")" "$(number "$value")" "$(text "$unit")" "$(number "$limit")" "$(text "$detail")" "$(text "$clocks")"
        separator=$',\n'
    done < <(final_rows | tr '\t' '|')
    printf '\n  ]\n}\n'
}

# save COMPLETE: what is known so far; a file appears when it is whole
save()
{
    local as="of $backend"
    [ $dry -eq 0 ] || as="dry"
    [ $backend = cuda ] || as="rehearsal on CPU cores, no measurement of a GPU"
    write_json "$1" >"$work/json" && cp "$work/json" "$out/.gpu_report.json" && mv "$out/.gpu_report.json" "$out/gpu_report.json"
    {
        print_table "$as"
        final_rows | cut -f 3 | sort | uniq -c | awk '{ n = $1; $1 = ""; printf "%s%d%s", s, n, $0; s = ", " } END { print "" }'
    } >"$work/table" && cp "$work/table" "$out/.gpu_report.txt" && mv "$out/.gpu_report.txt" "$out/gpu_report.txt"
}

# Also when it is ended before its time.
finish()
{
    trap - EXIT
    [ -z "$watcher" ] || kill "$watcher" 2>/dev/null
    save "${1:-false}"
    cat "$out/gpu_report.txt"
    local bad
    bad=$(final_rows | cut -f 3 | grep -cvE '^(passed|measured)$')
    rm -rf "$work"
    [ $dry -eq 1 ] || [ "$bad" -eq 0 ] || exit 1
    exit 0
}
trap finish EXIT
trap 'exit 1' INT TERM

if [ $dry -eq 1 ]; then
    finish true
fi
if ! find_gpu && [ $backend = cuda ]; then
    echo "no GPU: nvidia-smi finds none. Nothing is measured" >&2
    finish true
fi
[ $backend = cuda ] || gpu_text=
[ $backend != cuda ] || find_libraries
if ! build_programs; then
    echo "there is no program to run: neither build/bundle (make bundle) nor a build here" >&2
    tail -n 20 "$logs/build.log" >&2
    finish
fi
limited 20 "$logs/info.log" "$program" info
limited 20 "$logs/info.log" "$program" info --json -o "$work/info.json"
if [ $backend = cuda ] && grep -q '"cluster": ' "$work/info.json" 2>/dev/null; then
    cluster=$(sed -nE 's/^ *"cluster": "(.*)".*/\1/p;/"cluster": null/q' "$work/info.json" | head -n 1)
fi
[ $backend != cuda ] || watch_gpu
for part in $parts; do
    # one that is asked for alone has all
    [ "$parts" = "$part" ] || end_of_part_s=$((SECONDS + seconds_of[$part]))
    "part_$part"
    save false
done
finish true
