# shellcheck shell=bash disable=SC2154
# Whole steps on one GPU for gpu_report.sh: a grid of models, sequences, micro-batches and recomputation, measured and predicted before and after
# calibration. Sourced, not run.

# Most valuable first: id, model, its layers (0: all), sequence, micro-batch, batch in sequences, recomputation, type; options of the run that
# predictions do not have
grid="1b|llama-3.2-1b|0|4096|2|8|none|bf16
3b|llama-3.2-3b|0|4096|2|8|none|bf16
3b-cudnn|llama-3.2-3b|0|4096|2|8|none|bf16|--attention cudnn
3b-timed|llama-3.2-3b|0|4096|2|8|none|bf16|--gemm-algorithms gemms.json
1b-8k|llama-3.2-1b|0|8192|1|2|none|bf16
3b-2k|llama-3.2-3b|0|2048|1|4|none|bf16
8b-slice|llama-3.1-8b|8|4096|1|2|none|bf16
moe-slice|qwen3-30b-a3b|4|4096|1|2|none|bf16
1b-fp8|llama-3.2-1b|0|4096|2|8|none|fp8
1b-32k-full|llama-3.2-1b|0|32768|1|1|full|bf16
3b-8k-selective|llama-3.2-3b|0|8192|1|2|selective|bf16
1b-2k-mb4|llama-3.2-1b|0|2048|4|8|none|bf16
3b-8k-mb4-full|llama-3.2-3b|0|8192|4|4|full|bf16
1b-32k|llama-3.2-1b|0|32768|1|1|none|bf16
3b-32k-full|llama-3.2-3b|0|32768|1|1|full|bf16
1b-2k|llama-3.2-1b|0|2048|1|4|none|bf16
3b-2k-mb4-selective|llama-3.2-3b|0|2048|4|8|selective|bf16
1b-8k-mb4-selective|llama-3.2-1b|0|8192|4|4|selective|bf16
3b-8k|llama-3.2-3b|0|8192|1|2|none|bf16
1b-8k-mb4-full|llama-3.2-1b|0|8192|4|4|full|bf16
8b-slice-8k-full|llama-3.1-8b|8|8192|2|2|full|bf16
moe-slice-2k-mb4|qwen3-30b-a3b|4|2048|4|8|none|bf16
3b-2k-mb4-full|llama-3.2-3b|0|2048|4|8|full|bf16
1b-32k-mb4-full|llama-3.2-1b|0|32768|4|4|full|bf16
1b-32k-selective|llama-3.2-1b|0|32768|1|1|selective|bf16
1b-8k-fp8|llama-3.2-1b|0|8192|1|2|none|fp8
3b-32k|llama-3.2-3b|0|32768|1|1|none|bf16"
# with more steps, since PyTorch takes them, too
compared="1b 3b"
cluster=hgx-h200 # or that of the GPU, as `meshsim info` has it; "": none is known, so that nothing can be said about its peak
dtype=bf16       # of the calibration and of replays
if [ $backend != cuda ]; then
    cluster=cpu dtype=fp32
fi
least_mfu_3b=0.5
# Limits in percent of predicted against measured: of times after calibration, of memory always
most_median_percent=5 most_worst_percent=12 most_above_percent=3 most_below_percent=1

# id, what, a line each
grid_names()
{
    local id model layers sequence microbatch batch recompute type more
    while IFS='|' read -r id model layers sequence microbatch batch recompute type more; do
        [ "$layers" -eq 0 ] || model="$model, $layers layers"
        more=${more/--gemm-algorithms*/timed GEMMs} more=${more/--attention cudnn/cuDNN}
        echo "$id|$model, $sequence x $microbatch of $batch, recompute $recompute, $type${more:+, ${more#--}}"
    done <<<"$grid"
}

# read_row ID: model, layers, sequence, microbatch, batch, recompute, type and more (options) of a step. Rehearsals have small models and sequences.
read_row()
{
    local line
    while read -r line; do
        [[ "$line" != "$1|"* ]] || IFS='|' read -r _ model layers sequence microbatch batch recompute type more <<<"$line"
    done <<<"$grid"
    if [ $backend != cuda ]; then
        [[ "$model" = qwen3* ]] && model=tests/data/gpu/moe.json || model=tests/data/gpu/llama.json
        sequence=$((sequence / 32))
        [ "$type" = fp8 ] || type=$dtype
    elif [ "$layers" -gt 0 ]; then
        slice "$model" "$layers"
        model=$work/$model-$layers-layers.json
    fi
    plan=(--model "$model" --seq "$sequence" --global-batch "$batch" --microbatch "$microbatch" --recompute "$recompute" --cluster "${cluster:-cpu}"
        --gpus 1 --stack meshsim)
}

# slice MODEL LAYERS: a model of fewer layers at its real width
slice()
{
    local to=$work/$1-$2-layers.json
    [ -s "$to" ] || sed -E "s/(\"layers\": )[0-9]+/\1$2/; s/(\"name\": \"[^\"]*)/\1-$2-layers/" "configs/models/$1.json" >"$to"
}

# predict_step ID NAME [OPTIONS...]: NAME.ID.json
predict_step()
{
    local json=$runs/$2.$1.json
    read_row "$1"
    shift 2
    limited 20 "$logs/predict.log" "$program" predict "${plan[@]}" --precision "$type" "$@" --json -o "$json"
}

# ---- measured

# all_of ID STATUS DETAIL: every row of a step
all_of()
{
    local id
    while IFS='|' read -r id _; do
        case "$id" in steps."$1".* | predictions."$1".* | calibrate."$1".*) result "$id" "$2" "" "" "" "$3" ;; esac
    done <"$work/expected"
}

# mfu ID TOKENS_PER_S: model FLOP with all attention pairs over the cluster's dense peak, as `meshsim predict` counts it
mfu()
{
    local fraction rate
    [ -n "$cluster" ] || return
    [ -s "$runs/predict.$1.json" ] || predict_step "$1" predict
    IFS='|' read -r fraction rate < <(fields "$runs/predict.$1.json" mfu_frac tokens_per_s)
    is_number "$fraction" && is_number "$rate" && calculate "$fraction * $2 / $rate"
}

step()
{
    local id=$1 json=$runs/run.$1.json log=$logs/steps.$1.log rc=0 most_s=45 options more_options fits="" device="" capacity="" seconds="" fraction="" rate=""
    [ -z "$cluster" ] || predict_step "$id" predict
    [ ! -s "$runs/predict.$id.json" ] || IFS='|' read -r fits device capacity seconds fraction rate < <(fields "$runs/predict.$id.json" \
        memory.fits memory.device_bytes memory.capacity_bytes step_s mfu_frac tokens_per_s)
    if [ "$fits" = false ]; then
        all_of "$id" "does not fit" "predicted $(calculate "$device / 2^30") of $(calculate "$capacity / 2^30") GiB"
        return
    fi
    options=(--steps 5 --warm-up 2)
    [ $backend = cuda ] && [[ "$seconds" = 0* ]] || options=(--steps 3 --warm-up 1) # long ones have their clocks after one
    [[ " $compared " != *" $id "* ]] || { options=(--steps 8 --warm-up 3) && most_s=75; }
    # rounding to bf16 may change which experts are chosen; a prediction is for balanced ones
    [[ "$id" != moe-* ]] || options+=(--balanced-routing)
    read_row "$id"
    if [ -n "$more" ] && [ $backend != cuda ]; then
        all_of "$id" "not measured" "$more needs a GPU"
        return
    fi
    read -r -a more_options <<<"${more/ gemms.json/ $work/gemms.json}"
    limited $most_s "$log" "$program" run --backend $backend --dtype "$type" "${plan[@]}" "${options[@]}" "${more_options[@]}" --json -o "$json" || rc=$?
    if [ $rc -eq 0 ] && measured_step "$id" "$json" "$fraction" "$rate"; then
        return
    fi
    rm -f "$json"
    if grep -qE "fp8 needs a GPU|does not compute in fp8" "$log"; then
        all_of "$id" "not measured" "$(why "$log" $rc)"
    else
        result "steps.$id.seconds" failed "" "" "" "$(why "$log" $rc)"
    fi
}

# measured_step ID JSON MFU TOKENS_PER_S: its rows, with the model FLOP rate of a prediction; fails where it has no step
measured_step()
{
    local suffix value unit limit="" status detail found=1
    [ $backend != cuda ] || [ "$1" != 3b ] || limit=$least_mfu_3b
    while IFS='|' read -r suffix status value unit detail; do
        found=0
        result "steps.$1.$suffix" "$status" "$value" "$unit" "$([ "$suffix" != mfu ] || echo "$limit")" "$detail"
    done < <(fields "$2" measured.step_s measured.least_step_s measured.wall_step_s measured.tokens_per_s measured.peak_bytes device.used_bytes \
        device.arena_bytes device.arena_used_bytes | awk -F'|' -v fraction="$3" -v rate="$4" -v limit="$limit" '
        function row(suffix, value, unit, detail, status) {
            if (value != "" && value != "null") printf "%s|%s|%.6g|%s|%s\n", suffix, status == "" ? "measured" : status, value, unit, detail
        }
        function gib(bytes) { return bytes == "" ? "" : bytes / 1073741824 }
        $1 == "" || $4 == "" || $1 == "null" { exit }
        {
            row("seconds", 1e3 * $1, "ms", sprintf("median; least %.6g ms", 1e3 * $2))
            row("wall", $3 == "" || $3 == "null" ? "" : 1e3 * $3, "ms")
            row("tokens", $4, "tokens/s")
            row("ledger", gib($5), "GiB")
            row("arena", gib($8), "GiB", sprintf("holds %.6g GiB", gib($7)))
            row("memory", gib($6 == "" ? $5 : $6), "GiB")
            if (rate + 0 == 0) exit
            used = fraction * $4 / rate
            row("mfu", used, "of the peak", "", limit == "" ? "measured" : used >= limit ? "passed" : "failed")
        }')
    return $found
}

part_steps()
{
    local id
    while IFS='|' read -r -u 3 id _; do
        step "$id"
        [ $SECONDS -eq $saved_s ] || save false
    done 3<<<"$grid"
}

# ---- predicted

# compare ID ROWS FILE: rows ROWS.ID.step and ROWS.ID.memory by what FILE.ID.json predicts
compare()
{
    local suffix value detail
    while IFS='|' read -r suffix value detail; do
        result "$2.$1.$suffix" measured "$value" "of it" "" "predicted $detail"
    done < <({
        fields "$runs/$3.$1.json" step_s memory.device_bytes memory.peak_bytes
        fields "$runs/run.$1.json" measured.step_s device.used_bytes measured.peak_bytes
    } | awk -F'|' '
        NR == 1 { seconds = $1; device = $2; peak = $3; next }
        seconds + 0 > 0 && $1 + 0 > 0 { printf "step|%.6g|%.6g ms\n", seconds / $1, 1e3 * seconds }
        # where no device says what is in use, tensors are all
        $2 + 0 == 0 { device = peak; $2 = $3 }
        device + 0 > 0 && $2 + 0 > 0 { printf "memory|%.6g|%.6g GiB\n", device / $2, device / 1073741824 }')
}

# summarise ROWS: how far its predictions are off, each limit with its row
summarise()
{
    local name value detail limit status
    while IFS='|' read -r name value detail; do
        limit="" status=measured
        case "$1.$name" in
        calibrate.step.median) limit=$most_median_percent ;;
        calibrate.step.worst) limit=$most_worst_percent ;;
        *.memory.above) limit=$most_above_percent ;;
        *.memory.below) limit=$most_below_percent ;;
        esac
        [ $backend = cuda ] || limit=""
        [ -z "$limit" ] || { status=failed && holds "$value <= $limit" && status=passed; }
        result "$1.$name" $status "$value" % "$limit" "$detail"
    done < <(awk -F'\t' -v rows="$1" '
        function show(name, value, detail) { printf "%s|%.4g|%s\n", name, 100 * value, detail }
        $1 ~ "^" rows "\\.[^.]*\\.(step|memory)$" && $3 != "" { last[$1] = $3 }
        END {
            for (id in last) {
                split(id, part, ".")
                d = last[id] - 1
                if (part[3] == "step") {
                    off = d < 0 ? -d : d
                    for (i = n++; i > 0 && x[i - 1] > off; i--) x[i] = x[i - 1]
                    x[i] = off
                    if (off >= worst) { worst = off; worst_id = part[2] (d < 0 ? ", predicted less" : ", predicted more") }
                } else {
                    memories++
                    if (d > above) { above = d; above_id = part[2] }
                    if (-d > below) { below = -d; below_id = part[2] }
                }
            }
            if (n) show("step.median", (x[int((n - 1) / 2)] + x[int(n / 2)]) / 2, "of " n " steps")
            if (n) show("step.worst", worst, worst_id)
            if (memories) show("memory.above", above, above_id)
            if (memories) show("memory.below", below, below_id)
        }' "$runs/rows")
}

part_predictions()
{
    local id
    [ -n "$cluster" ] || return
    while IFS='|' read -r -u 3 id _; do
        [ ! -s "$runs/run.$id.json" ] || compare "$id" predictions predict
    done 3<<<"$grid"
    summarise predictions
}

# Predictions of all steps that were measured, by the calibrated profile
predict_calibrated()
{
    local id
    while IFS='|' read -r -u 3 id _; do
        [ -s "$runs/run.$id.json" ] || continue
        predict_step "$id" calibrated --profile "$out/gpu_report_profile.json" && compare "$id" calibrate calibrated
    done 3<<<"$grid"
    summarise calibrate
}

part_calibrate()
{
    local profile=$out/gpu_report_profile.json log=$logs/calibrate.log rc=0 quick=() start=$SECONDS id part
    [ -n "$cluster" ] || { result calibrate "not measured" "" "" "" "no cluster of this GPU is known" && return; }
    # the whole grid of shapes takes up to 300 s; what follows needs some, too
    local needed=310
    for part in models meshes replays torch sanitizer; do
        case " $parts " in *" $part "*) needed=$((needed + seconds_of[$part])) ;; esac
    done
    [ "$(left)" -ge $needed ] || quick=(--quick)
    [ $backend = cuda ] || quick=(--quick --ranks 1)
    limited 310 "$log" "$program" calibrate --backend $backend --dtype $dtype --cluster "$cluster" "${quick[@]}" -o "$profile" || rc=$?
    if [ $rc -ne 0 ]; then
        result calibrate failed "" "" "" "$(why "$log" $rc)"
        rm -f "$profile"
        return
    fi
    result calibrate measured $((SECONDS - start)) s 300 "${quick[*]:-all shapes}"
    for id in $compared; do
        [ -s "$runs/run.$id.json" ] || step "$id" # measured by another call
    done
    predict_calibrated
}

# Of results that --from names; needs no GPU
part_accuracy()
{
    part_predictions
    [ ! -s "$out/gpu_report_profile.json" ] || predict_calibrated
}

# ---- tables

print_grid()
{
    awk -F'\t' '
        !final { at = index($0, "|"); ids[++num] = substr($0, 1, at - 1); whats[num] = substr($0, at + 1); next }
        { split($1, id, "."); value[$1] = $4 == "" ? "-" : $4; if (id[1] == "steps" && id[3] == "seconds") { status[id[2]] = $3; why[id[2]] = $7 } }
        function row(as, id, what) {
            printf as, substr(what, 1, 62), value["steps." id ".seconds"], value["steps." id ".wall"], value["steps." id ".mfu"], value["predictions." id ".step"],
                value["calibrate." id ".step"], value["steps." id ".memory"], value["steps." id ".ledger"], value["steps." id ".arena"],
                value["predictions." id ".memory"], value["calibrate." id ".memory"], status[id] (status[id] == "measured" || why[id] == "" ? "" : ": " substr(why[id], 1, 60))
        }
        END {
            printf "\none step on one GPU: time and device memory, and what was predicted of them before and after calibration\n"
            printf "%-62s %9s %9s %7s %7s %7s %9s %9s %9s %7s %7s  %s\n", "model, sequence x micro-batch of batch", "ms", "wall ms", "MFU", "before", "after",
                "GiB", "tensors", "arena", "before", "after", "status"
            for (i = 1; i <= num; i++)
                row("%-62s %9.6s %9.6s %7.5s %7.5s %7.5s %9.6s %9.6s %9.6s %7.5s %7.5s  %s\n", ids[i], whats[i])
        }' "$work/names" final=1 "$work/final"
    local id
    for id in $compared; do
        [ -s "$runs/run.$id.json" ] || continue
        printf '\n%s, time by kind of node over a step (ms)\n' "$id"
        nodes_of "$runs/run.$id.json" | head -12
    done
}

# kind, measured ms
nodes_of()
{
    awk -F'": ' '
        /"kind": / { kind = $2; gsub(/^"|",?$/, "", kind) }
        /"measured_s": / && kind != "" { sub(/,$/, "", $2); printf "%-40s %10.3f\n", kind, 1e3 * $2; kind = "" }' "$1"
}
