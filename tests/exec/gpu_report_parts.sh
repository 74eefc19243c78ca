# shellcheck shell=bash disable=SC2154
# Parts of gpu_report.sh besides whole steps: kernels, small models and meshes, ranks that stand in for large jobs, compute-sanitizer, PyTorch.
# Sourced, not run.

# ---- kernels

part_kernels()
{
    local passed=0 failed=0 skipped=0 bad="" found=0
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
        printf '%s\t%d\t%d\t%d\t%d\n' "$name" "$p" "$f" "$s" $((SECONDS - start)) >>"$runs/tests"
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
    local json=$runs/check.$id.json log=$logs/$id.log
    limited 40 "$log" "$program" run --backend $backend --dtype "$dtype" --seq 192 --global-batch 4 --steps 2 --check --json -o "$json" "$@" || rc=$?
    if grep -q "fp8 needs a GPU" "$log"; then
        result "$id" "not measured" "" "" "$limit" "$(why "$log" $rc)"
        return
    fi
    local note=""
    ! grep -q "cuBLASLt has no FP8" "$log" || note=", some products in bf16"
    local loss gradient worst most
    IFS='|' read -r loss gradient worst < <(fields "$json" check.loss.relative check.gradients.relative check.gradients.name)
    [ "$dtype" != fp8 ] || gradient=0
    if ! is_number "$loss" || ! is_number "$gradient"; then
        result "$id" failed "" "" "$limit" "$(why "$log" $rc)"
        return
    fi
    most=$(awk "BEGIN { printf \"%.2g\", ($loss > $gradient ? $loss : $gradient) }")
    # 4: meshsim's own tolerance, which may be another one
    if [ $rc -ne 0 ] && [ $rc -ne 4 ]; then
        result "$id" failed "$most" relative "$limit" "$(why "$log" $rc)"
    elif holds "$most <= $limit"; then
        result "$id" passed "$most" relative "$limit" "worst of $worst$note"
    else
        result "$id" failed "$most" relative "$limit" "worst of $worst$note"
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

# ---- one GPU standing in for many

declare -A replayed=(
    [70b]="--model 70b --gpus 512 --pp 8 --tp 8 --seq 8192 --global-batch 64"
    [405b]="--model 405b --gpus 16384 --pp 16 --tp 8 --seq 8192 --global-batch 2048")
if [ $backend != cuda ]; then
    replayed=(
        [70b]="--model llama-15m --gpus 8 --pp 2 --tp 2 --seq 64 --global-batch 8"
        [405b]="--model llama-15m --gpus 16 --pp 4 --tp 2 --seq 64 --global-batch 8")
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
    local size=$1 rc=0 json=$runs/replay.$1.json log=$logs/replays.$1.log middle worst most seconds predicted
    # shellcheck disable=SC2086
    limited 115 "$log" "$program" run --backend $backend --dtype $dtype --stack meshsim ${replayed[$size]} --cluster "${cluster:-cpu}" --replay stages --steps 3 --json -o "$json" || rc=$?
    read -r middle worst most < <(ratios "$json")
    IFS='|' read -r seconds predicted < <(fields "$json" step_s predicted_step_s)
    if [ $rc -ne 0 ] || ! is_number "$seconds" || ! is_number "$middle"; then
        result "replays.$size.step" failed "" "" "" "$(why "$log" $rc)"
        rm -f "$json"
        return
    fi
    result "replays.$size.step" measured "$(calculate "1e3 * $seconds")" ms "" "predicted $(calculate "1e3 * $predicted") ms"
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
    read_row "$size"
    limited 110 "$log" "$python" tests/exec/gpu_report_torch.py --model "configs/models/$model.json" --seq "$sequence" \
        --microbatch "$microbatch" --microbatches $((batch / microbatch)) || rc=$?
    line=$(grep '^{"schema": "meshsim.gpu-report-torch/1"' "$log" | tail -n 1)
    if [ $rc -ne 0 ] || [ -z "$line" ]; then
        result "torch.$size.tokens" failed "" "" "" "$(why "$log" $rc)"
        return
    fi
    echo "$line" >"$runs/torch.$size.json"
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
    local size
    for size in $compared; do
        torch_step "$size" "$found"
    done
}
