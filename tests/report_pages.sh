#!/bin/bash
# Pages of `meshsim report`: well-formed, self-contained, at most 2 MB, their figures those of predict's and search's JSON;
# bad input and unwritable pages are answered. The output is that of a cmocka program, for tests/run_tests.sh.
set -uo pipefail
MESHSIM=${MESHSIM:-build/opt/meshsim}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export LC_ALL=C
num_failed=0

# Arguments: what must hold, the command that tells
expect()
{
    local what=$1
    shift
    "$@" || { echo "$what"; failed=1; }
}

# Every element that is opened is closed, in order. Argument: the page
is_balanced()
{
    awk '
    BEGIN { RS = "<" }
    NR == 1 || /^!DOCTYPE/ { next }
    {
        tag = $0; sub(/>.*/, "", tag)
        name = tag; sub(/^\//, "", name); sub(/[ \/\n].*/, "", name)
        if (tag ~ /^\//) {
            if (depth == 0 || open[depth] != name) { print "unexpected </" name ">"; bad = 1; exit }
            depth--
        } else if (tag !~ /\/$/) open[++depth] = name
    }
    END { if (!bad && depth > 0) { print "<" open[depth] "> is open"; bad = 1 }; exit bad }' "$1"
}

# Whether nothing but anchors of the page is referred to, and nothing runs. Argument: the page
is_self_contained()
{
    ! grep -Eio '<script|<link|<iframe|<img|@import|url\(|(src|srcset|action)=|href="[^#]| on[a-z]+="' "$1" | head -3 | grep .
}

# Arguments: page, JSON, keys. The first member of a key in the JSON is that of the reported plan.
expect_figures()
{
    local page=$1 json=$2 key want got
    shift 2
    for key in "$@"; do
        want=$(grep -m1 "\"$key\": " "$json" | sed 's/.*": //; s/,$//')
        got=$(grep -o "data-key=\"$key\" data-value=\"[^\"]*\"" "$page" | head -1 | sed 's/.*value="//; s/"$//')
        expect "$key is $got on the page, $want in the JSON" [ -n "$want" -a "${got:-null}" = "$want" ]
    done
}
figures="step_s step_s_low step_s_high tokens_per_s tokens_per_s_per_gpu mfu_frac peak_bytes peak_bytes_low peak_bytes_high
    capacity_bytes fits_probability"
campaign="elapsed_s elapsed_s_low elapsed_s_high goodput_frac gpu_hours cost energy_kwh co2_kg"

# Writes a page; arguments: of report. What all pages must be.
page()
{
    "$MESHSIM" report "$@" -o "$scratch/page.html" --quiet >"$scratch/out" 2>"$scratch/err"
    local status=$?
    expect "report $*: exit status $status: $(cat "$scratch/err")" [ $status -eq "${want:-0}" ]
    expect "report $*: not balanced" is_balanced "$scratch/page.html"
    expect "report $*: the style sheet is escaped" eval "! sed '/<.style>/q' '$scratch/page.html' | grep -qF '\\x'"
    expect "report $*: not self-contained" is_self_contained "$scratch/page.html"
    expect "report $*: more than 2 MB" [ "$(wc -c <"$scratch/page.html")" -le 2000000 ]
    if command -v xmllint >/dev/null; then
        expect "report $*: no well-formed XML" xmllint --noout --nonet "$scratch/page.html"
    fi
}

flags=(--model 8b --gpus 16 --tp 4 --pp 2 --global-batch 32)
page_of_flags()
{
    "$MESHSIM" predict "${flags[@]}" --json >"$scratch/predicted.json"
    page "${flags[@]}"
    expect_figures "$scratch/page.html" "$scratch/predicted.json" $figures
    expect "no default is listed" grep -q -- '--zero 1' "$scratch/page.html"
    cp "$scratch/page.html" "$scratch/first.html"
    page "${flags[@]}"
    expect "equal calls give different pages" cmp -s "$scratch/first.html" "$scratch/page.html"
}

page_of_prediction()
{
    "$MESHSIM" predict "${flags[@]}" --tokens 1T --price 2.5 --co2 0.3 --json >"$scratch/predicted.json"
    page "$scratch/predicted.json"
    expect_figures "$scratch/page.html" "$scratch/predicted.json" $figures $campaign
    "$MESHSIM" predict "${flags[@]}" --engine event --json >"$scratch/events.json"
    page "$scratch/events.json"
    expect_figures "$scratch/page.html" "$scratch/events.json" $figures
    expect "a page that agrees with its file warns" [ "$(grep -c 'Differs from the file' "$scratch/page.html")" -eq 0 ]
    sed 's/"step_s": [0-9.]*/"step_s": 1.25/' "$scratch/predicted.json" >"$scratch/other.json"
    page "$scratch/other.json"
    expect "no warning of a file with another step time" grep -q 'Differs from the file' "$scratch/page.html"
}

page_of_search()
{
    "$MESHSIM" search --model 8b --gpus 16 --global-batch 32 --headroom 4GiB --json -o "$scratch/search.json"
    page "$scratch/search.json"
    expect_figures "$scratch/page.html" "$scratch/search.json" $figures
    local plans
    plans=$(grep -c '"schema": "meshsim.plan/1"' "$scratch/search.json")
    expect "not all $plans plans are listed" grep -q "The $plans plans that the search lists" "$scratch/page.html"
    page "$scratch/search.json" --tokens 1T --price 2.5 --deadline 1d
    expect_figures "$scratch/page.html" "$scratch/search.json" $figures
    expect "the answer does not begin with the deadline" \
        grep -q '<p class="verdict"><strong>Deadline of 24.0 h: exceeded by [0-9.]* days' "$scratch/page.html"
    expect "the search is repeated with a training that it did not have" \
        eval "! command_of search '$scratch/page.html' | grep -q -- --tokens"
    "$MESHSIM" search --model 8b --gpus 16 --global-batch 32 --stack megatron,torchtitan --json -o "$scratch/stacks.json"
    page "$scratch/stacks.json"
    expect_figures "$scratch/page.html" <(grep '^ \{10\}"step_s": ' "$scratch/stacks.json" | sort -t : -k 2 -g | head -1) step_s
    expect "no search of two stacks" grep -q -- '--stack megatron,torchtitan' "$scratch/page.html"
}

# The command of a page that repeats it. Arguments: search or predict, page
command_of()
{
    sed 's/<[^>]*>//g; s/&quot;/"/g' "$2" | grep -m1 "^ *meshsim $1 "
}

# Runs the command that the page gives; its JSON has a figure of the page. Arguments: search or predict, key
repeats()
{
    command_of "$1" "$scratch/page.html" | sed "s|^ *meshsim|$MESHSIM|" >"$scratch/command"
    echo "$(cat "$scratch/command") --json" | bash >"$scratch/again.json" 2>"$scratch/err"
    expect_figures "$scratch/page.html" "$scratch/again.json" "$2"
}

page_of_objective()
{
    "$MESHSIM" search --model 8b --gpus 8..32 --global-batch 32 --objective cost --tokens 1T --price 2 --json -o "$scratch/least.json"
    page "$scratch/least.json"
    expect_figures "$scratch/page.html" "$scratch/least.json" $figures
    expect "no objective" grep -q 'numbers of GPUs by least cost, with proof' "$scratch/page.html"
    repeats search elapsed_s_low
    repeats predict elapsed_s_low
    repeats predict cost
    refused 2 "another training than" "$scratch/least.json" --tokens 2T -o "$scratch/no.html"
    refused 2 "another training than" "$scratch/least.json" --price 3 -o "$scratch/no.html"
    refused 2 "another training than" "$scratch/least.json" --deadline 3d -o "$scratch/no.html"
    page "$scratch/least.json" --tokens 1T --price 2
    "$MESHSIM" predict "${flags[@]}" --tokens 1T --co2 0.3 --json >"$scratch/predicted.json"
    page "$scratch/predicted.json" --price 2.5
    expect "the file's grid is lost" grep -q '0.3 kg/kWh' "$scratch/page.html"
    page "$scratch/least.json"
    expect "not all sizes" [ "$(sed -n '/id="t-sweep-0"/,/<.table>/p' "$scratch/page.html" | grep -c '<tr>')" -eq 4 ]
    refused 2 "--point is for sweeps" "$scratch/least.json" --point 1 -o "$scratch/no.html"
}

page_of_sweep()
{
    local sweep="$scratch/swept.json"
    "$MESHSIM" sweep --models 8b,1b --clusters hgx-h100,hgx-h200 --gpus 8,16 --global-batch 32 --headroom 4GiB \
        --tokens 1T --prices hgx-h100=2,hgx-h200=9 --deadline 400d --json -o "$sweep" 2>"$scratch/err"
    expect "sweep: $(cat "$scratch/err")" [ -s "$sweep" ]
    page "$sweep"
    expect "no point is reported" [ "$(grep -c 'reported here' "$scratch/page.html")" -gt 0 ]
    expect "not all tables are there" [ "$(grep -c 'id="t-sweep-' "$scratch/page.html")" -eq 2 ]
    local cheapest
    cheapest=$(grep -m1 '"cheapest": ' "$sweep" | grep -o '[0-9]*')
    points "$sweep" "$cheapest" >"$scratch/points.json"
    expect_figures "$scratch/page.html" "$scratch/points.json" step_s step_s_low step_s_high tokens_per_s mfu_frac \
        peak_bytes fits_probability $campaign
    page "$sweep" --point 5
    points "$sweep" 5 >"$scratch/points.json"
    expect_figures "$scratch/page.html" "$scratch/points.json" step_s tokens_per_s peak_bytes $campaign
    refused 2 "the sweep has points 0 to 7, not 8" "$sweep" --point 8 -o "$scratch/no.html"
    sed 's/"fastest": [0-9]*/"fastest": 99/' "$sweep" >"$scratch/other.json"
    refused 2 "other.json:" "$scratch/other.json" -o "$scratch/no.html"
}

# Lines of a sweep's JSON from one of its points on. Arguments: file, index
points()
{
    awk -v wanted="$2" '/^      "cluster": / { n++ } n > wanted' "$1"
}

page_of_a_large_plan()
{
    page --model 405b --gpus 16384 --tp 8 --pp 16 --cp 4 --virtual-stages 4 --schedule interleaved
    expect "the mesh is not cut" grep -q 'Ranks 0 to 255 of 16384' "$scratch/page.html"
    expect "the timeline is not sampled" grep -q 'equally spaced' "$scratch/page.html"
}

page_of_a_plan_that_does_not_fit()
{
    want=3 page --model 70b --gpus 8 --tp 8
    expect "the page says that it fits" grep -q 'It does not fit' "$scratch/page.html"
}

names_are_no_markup()
{
    local model="$scratch/<script>alert(1)<&'\"x>.json"
    cp configs/models/llama-3.1-8b.json "$model"
    page --model "$model" --gpus 8 --tp 8
    expect "the name is not on the page" grep -q "&lt;script&gt;alert(1)&lt;&amp;'&quot;x&gt;" "$scratch/page.html"
}

# Arguments: exit status, text of the error, arguments of report
refused()
{
    local want=$1 text=$2 status
    shift 2
    "$MESHSIM" report "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
    status=$?
    expect "report $*: exit status $status, expected $want" [ $status -eq "$want" ]
    expect "report $*: no \"$text\" in $(cat "$scratch/err")" grep -qF -- "$text" "$scratch/err"
}

bad_calls_are_answered()
{
    echo '{"schema": "meshsim.run/1"}' >"$scratch/run.json"
    echo '{"schema": "meshsim.sweep/1"}' >"$scratch/sweep.json"
    echo '{"schema": "meshsim.search/1", "plans": []}' >"$scratch/none.json"
    echo '[1, 2' >"$scratch/broken.json"
    "$MESHSIM" predict "${flags[@]}" --json >"$scratch/predicted.json"
    refused 2 "no plan, prediction, search or sweep" "$scratch/run.json" -o "$scratch/no.html"
    refused 2 "the sweep lacks \"points\" or \"choices\"" "$scratch/sweep.json" -o "$scratch/no.html"
    refused 2 "the search found no plan" "$scratch/none.json" -o "$scratch/no.html"
    refused 2 "broken.json:" "$scratch/broken.json" -o "$scratch/no.html"
    refused 2 "no model is given" -o "$scratch/no.html"
    refused 2 "--tp would change the plan" "$scratch/predicted.json" --tp 2 -o "$scratch/no.html"
    refused 2 "--price is about a whole training" "$scratch/predicted.json" --price 2 -o "$scratch/no.html"
    refused 2 "--point is for sweeps" "$scratch/predicted.json" --point 1 -o "$scratch/no.html"
    refused 2 "--point is for files of sweeps" "${flags[@]}" --point 1 -o "$scratch/no.html"
    refused 2 "standard output" "${flags[@]}" --json -o -
    refused 2 "predicted.json" "$scratch/predicted.json" -o "$scratch/predicted.json"
    refused 1 "absent.json" "$scratch/absent.json" -o "$scratch/no.html"
    refused 1 "absent/no.html" "${flags[@]}" -o "$scratch/absent/no.html"
    expect "a refused page was written" [ ! -e "$scratch/no.html" ]
}

for case in page_of_flags page_of_prediction page_of_search page_of_objective page_of_sweep page_of_a_large_plan page_of_a_plan_that_does_not_fit names_are_no_markup bad_calls_are_answered; do
    failed=0
    echo "[ RUN      ] $case"
    $case
    if [ $failed -eq 0 ]; then
        echo "[       OK ] $case"
    else
        echo "[  FAILED  ] $case"
        num_failed=$((num_failed + 1))
    fi
done
exit $((num_failed > 0))
