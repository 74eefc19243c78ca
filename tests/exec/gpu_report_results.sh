# shellcheck shell=bash disable=SC2154
# Results of gpu_report.sh: rows, their table and JSON, and files that are whole at any moment. Sourced, not run.

# At most five files, names of letters, digits, "." and "_", none above 16 MiB: gpu_report.json, gpu_report.txt,
# gpu_report_profile.json, gpu_report_logs.tar.gz, gpu_report_runs.tar.gz. The last holds what --from reads.
most_log_bytes=$((1 << 20))

# ---- rows

# result ID STATUS [VALUE UNIT LIMIT DETAIL]; STATUS: passed, failed, measured, "does not fit", "not measured". The last one of an ID counts.
result()
{
    local detail=${6:-}
    detail=${detail//[$'\t\n|']/ }
    gpu_now
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "${3:-}" "${4:-}" "${5:-}" "${detail:0:300}" "$now" >>"$runs/rows"
    echo "$((budget_s - SECONDS)) s left: $1: $2${3:+ $3 ${4:-}}${6:+ ($detail)}" >&2
}

# Sets now: the GPU's state when a result is recorded: SM and memory clocks (MHz), power (W), temperature (C), reasons for slower clocks
gpu_now()
{
    now=
    [ ! -s "$logs/clocks.csv" ] || now=$(tail -n 1 "$logs/clocks.csv")
    now=${now//[$'\t|']/ }
}

watch_gpu()
{
    nvidia-smi --query-gpu=clocks.sm,clocks.mem,power.draw,temperature.gpu,clocks_throttle_reasons.active --format=csv,noheader -lms 500 \
        >"$logs/clocks.csv" 2>"$logs/clocks.log" </dev/null &
    watcher=$!
}

# What is expected: id, what; a line that nothing was measured for stays as it is
expected_rows()
{
    local id what
    echo "kernels|kernels against fp64 references, test programs"
    while IFS='|' read -r id what; do
        printf '%s|%s\n' "steps.$id.seconds" "$what: step" "steps.$id.wall" "$what: step by the host's clock" "steps.$id.tokens" "$what: tokens/s" \
            "steps.$id.mfu" "$what: MFU" "steps.$id.memory" "$what: memory in use on the device" "steps.$id.ledger" "$what: memory of tensors" \
            "steps.$id.arena" "$what: memory in use in the arena" "predictions.$id.step" "$what: predicted/measured step, shipped profile" \
            "predictions.$id.memory" "$what: predicted/measured memory, shipped profile" "calibrate.$id.step" "$what: predicted/measured step, calibrated profile" \
            "calibrate.$id.memory" "$what: predicted/measured memory, calibrated profile"
    done < <(grid_names)
    cat <<'END'
predictions.step.median|steps before calibration: median difference of the prediction
predictions.step.worst|steps before calibration: largest difference
predictions.memory.above|memory before calibration: most above the measured
predictions.memory.below|memory before calibration: most below the measured
calibrate|calibration on microbenchmarks alone
calibrate.step.median|steps after calibration: median difference of the prediction
calibrate.step.worst|steps after calibration: largest difference
calibrate.memory.above|memory after calibration: most above the measured
calibrate.memory.below|memory after calibration: most below the measured
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
torch.3b.memory|3B in PyTorch with compile: peak memory
END
}

# The last result of each expected line: id, what, status, value, unit, limit, detail, the GPU's state
final_rows()
{
    awk -F'\t' -v OFS='\t' '
        !expected { last[$1] = $2 OFS $3 OFS $4 OFS $5 OFS $6 OFS $7; next }
        { split($0, e, "|"); print e[1], e[2], (e[1] in last) ? last[e[1]] : "not measured" OFS OFS OFS OFS OFS }' \
        "$runs/rows" expected=1 "$work/expected"
}

# ---- numbers of JSON as meshsim writes it: a member a line, indented by two

# fields FILE a.b.c...: their texts with "|" between them, nothing where there is none; of an array of numbers the largest
fields()
{
    local file=$1
    shift
    awk -v wanted="$*" '
        BEGIN { num = split(wanted, names, " "); for (i = 1; i <= num; i++) is_wanted[names[i]] = 1 }
        function put(name, value) { if (!(name in found)) found[name] = value }
        { match($0, /^ */); depth = RLENGTH / 2; line = substr($0, RLENGTH + 1); sub(/,$/, "", line) }
        in_array && line == "]" { put(in_array, most); in_array = ""; next }
        in_array { if (most == "" || line + 0 > most + 0) most = line; next }
        match(line, /^"[^"]*": /) {
            path[depth] = substr(line, 2, RLENGTH - 4)
            name = path[1]
            for (i = 2; i <= depth; i++) name = name "." path[i]
            if (!(name in is_wanted)) next
            value = substr(line, RLENGTH + 1)
            if (value == "[") { in_array = name; most = ""; next }
            gsub(/^"|"$/, "", value)
            put(name, value)
        }
        END { for (i = 1; i <= num; i++) printf "%s%s", found[names[i]], i < num ? "|" : "\n" }' "$file" 2>/dev/null
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

# ---- the table

print_table()
{
    local as="of $backend"
    [ $dry -eq 0 ] || as="dry"
    [ $backend = cuda ] || as="rehearsal on CPU cores, no measurement of a GPU"
    echo
    echo "${gpu_text:-no GPU}: $as, $SECONDS s"
    awk -F'\t' '
        BEGIN { printf "%-62s %14s %-12s %10s  %s\n", "what", "value", "", "limit", "status" }
        { n[$3]++ }
        $1 ~ /^(steps|predictions|calibrate)\./ && $1 !~ /^[a-z]*\.(step|memory)\./ { next } # of the grid
        { printf "%-62s %14s %-12s %10s  %s%s\n", substr($2, 1, 62), $4, $5, $6, $3, $7 == "" ? "" : ": " substr($7, 1, 60) }
        END { print ""; for (s in n) { printf "%s%d %s", separator, n[s], s; separator = ", " } print "" }' "$work/final"
    print_grid
}

# ---- JSON

write_json()
{
    awk -F'\t' -v date="$(date -u +%Y-%m-%dT%H:%M:%SZ)" -v backend="$backend" -v gpu="${gpu_text:-}" -v complete="$1" -v elapsed_s=$SECONDS -v parts="$parts" '
        function text(s) { gsub(/[[:cntrl:]]/, "", s); gsub(/["\\]/, "\\\\&", s); return "\"" s "\"" }
        function number(s) { return s ~ /^-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?$/ ? s : "null" }
        BEGIN {
            printf "{\n  \"schema\": \"meshsim.gpu-report/1\",\n  \"date\": %s,\n  \"backend\": %s,\n  \"gpu\": %s,\n", text(date), text(backend), text(gpu)
            printf "  \"complete\": %s,\n  \"elapsed_s\": %d,\n  \"parts\": %s,\n  \"rows\": [\n", complete, elapsed_s, text(parts)
        }
        {
            printf "%s    {\"id\": %s, \"what\": %s, \"status\": %s, \"value\": %s, \"unit\": %s, ", separator, text($1), text($2), text($3), number($4), text($5)
            printf "\"limit\": %s, \"detail\": %s, \"gpu_state\": %s}", number($6), text($7), text($8)
            separator = ",\n"
        }
        END { printf "\n  ],\n" }' "$work/final"
    awk -F'\t' '
        BEGIN { printf "  \"tests\": [\n" }
        { printf "%s    {\"name\": \"%s\", \"passed\": %d, \"failed\": %d, \"skipped\": %d, \"seconds\": %d}", separator, $1, $2, $3, $4, $5; separator = ",\n" }
        END { printf "\n  ]" }' "$runs/tests"
    local kind file separator
    for kind in run torch replay; do
        printf ',\n  "%s": {' $kind
        separator=
        for file in "$runs/$kind".*.json; do
            [ -s "$file" ] || continue
            file=${file%.json}
            printf '%s\n  "%s": ' "$separator" "${file##*/"$kind".}"
            cat "$file.json"
            separator=,
        done
        printf '}'
    done
    printf '\n}\n'
}

# ---- files

# put NAME COMMAND...: what it prints as a file of the results, which appears when it is whole
put()
{
    local name=$1
    shift
    "$@" >"$out/$name.new" && mv "$out/$name.new" "$out/$name"
}

saved_s=0
# save COMPLETE: what is known so far
save()
{
    final_rows >"$work/final"
    put gpu_report.json write_json "$1"
    put gpu_report.txt print_table
    put gpu_report_runs.tar.gz tar cz -C "$work" runs
    saved_s=$SECONDS
}

# The logs of the parts so far; of a long one both ends
save_logs()
{
    local log
    find "$logs" -type f -size +"$most_log_bytes"c ! -name clocks.csv | while read -r log; do
        { head -c $((most_log_bytes / 2)) "$log" && echo && echo ... && tail -c $((most_log_bytes / 2)) "$log"; } >"$log.short" && mv "$log.short" "$log"
    done
    cp -r "$logs" "$work/saved" && put gpu_report_logs.tar.gz tar cz -C "$work/saved" . # of clocks.csv more is written at any time
    rm -rf "$work/saved"
}

# take FOLDER: results of an earlier call, which later ones replace
take()
{
    mkdir "$work/taken" && tar xz -C "$work/taken" -f "$1/gpu_report_runs.tar.gz" || return 1
    cat "$work/taken/runs/rows" >>"$runs/rows"
    cat "$work/taken/runs/tests" >>"$runs/tests"
    gpu_text=$(<"$work/taken/runs/gpu")
    cp "$work"/taken/runs/*.json "$runs" 2>/dev/null
    [ ! -s "$1/gpu_report_profile.json" ] || put gpu_report_profile.json cat "$1/gpu_report_profile.json"
    rm -rf "$work/taken"
}
