#!/bin/bash
# Looks at pages of `meshsim report` as readers do: an HTML validator, and headless Chromium at the width of a phone, on a desk,
# dark, and as PDF; console messages, blank pictures and a page wider than a phone fail. Pictures stay in $OUT
# (build/report-check) to be looked at. What is missing is named in one line, and the check is skipped with status 77.
#   CHROMIUM  the browser; VNU  the Nu validator's vnu.jar (npm install vnu-jar); otherwise vnu, html-validate or tidy is used
set -uo pipefail
MESHSIM=${1:-build/opt/meshsim}
OUT=${OUT:-build/report-check}
num_failed=0

first_of()
{
    local name
    for name in "$@"; do command -v "$name" 2>/dev/null && return; done
}
chromium=${CHROMIUM:-$(first_of chromium chromium-browser google-chrome)}
if [ -n "${VNU:-}" ]; then
    validator=nu
else
    validator=$(basename "$(first_of vnu html-validate tidy)")
fi
if [ -z "$chromium" ] || [ -z "$validator" ]; then
    missing=""
    [ -n "$chromium" ] || missing="Chromium (apt-get install chromium, or CHROMIUM=...)"
    [ -n "$validator" ] || missing="${missing:+$missing and }an HTML validator (VNU=vnu.jar, vnu, html-validate, or apt-get install tidy)"
    echo "report-check: skipped: $missing not found"
    exit 77
fi
mkdir -p "$OUT"
rm -f "$OUT"/*
OUT=$(realpath "$OUT")

fail()
{
    echo "FAILED: $*"
    num_failed=$((num_failed + 1))
}

# Argument: page. Informative messages are no errors.
validate()
{
    case $validator in
    nu) java -jar "$VNU" --errors-only "$1" ;;
    vnu) vnu --errors-only "$1" ;;
    html-validate) html-validate "$1" ;;
    tidy) tidy -quiet -errors --show-warnings yes --drop-empty-elements no "$1" ;;
    esac
}

# Arguments: file to be written, address, options of Chromium
browse()
{
    local file=$1 address=$2
    shift 2
    timeout 120 "$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --allow-file-access-from-files --enable-logging=stderr \
        "$@" "$address" >"$file.dom" 2>"$file.log" || fail "$file: Chromium ended with status $?"
    if grep CONSOLE "$file.log"; then fail "$file: console messages"; fi
}

# A page inside a frame as wide as a phone, which tells how wide it is; Chromium's own window is never so narrow.
look_on_phone()
{
    local name=$1 width=360 wide
    printf '<!DOCTYPE html><title>phone</title><body style="margin:0"><iframe id="f" src="%s.html" style="border:0;width:%dpx;height:5000px"></iframe>
        <script>f.onload = () => { document.body.dataset.wide = f.contentDocument.documentElement.scrollWidth }</script>' "$name" $width >"$OUT/$name.phone.html"
    browse "$OUT/$name.phone.png" "file://$OUT/$name.phone.html" --window-size=500,5000 --screenshot="$OUT/$name.phone.png"
    browse "$OUT/$name.wide" "file://$OUT/$name.phone.html" --virtual-time-budget=2000 --dump-dom
    wide=$(grep -o 'data-wide="[0-9]*"' "$OUT/$name.wide.dom" | grep -o '[0-9]*')
    [ "${wide:-9999}" -le $width ] || fail "$name: ${wide:-unknown} pixels wide on a phone of $width"
}

# Arguments: name, options of report
look()
{
    local name=$1 status=0 picture bytes
    shift
    "$MESHSIM" report "$@" -o "$OUT/$name.html" --quiet >/dev/null 2>"$OUT/$name.err" || status=$?
    [ $status -eq 0 ] || [ $status -eq 3 ] || { fail "report $*: $(cat "$OUT/$name.err")"; return; }
    validate "$OUT/$name.html" >"$OUT/$name.validator" 2>&1 || { cat "$OUT/$name.validator"; fail "$name: $validator"; }
    look_on_phone "$name"
    browse "$OUT/$name.desk.png" "file://$OUT/$name.html" --window-size=1400,5000 --screenshot="$OUT/$name.desk.png"
    browse "$OUT/$name.dark.png" "file://$OUT/$name.html" --window-size=1400,5000 --blink-settings=preferredColorScheme=0 --screenshot="$OUT/$name.dark.png"
    browse "$OUT/$name.pdf" "file://$OUT/$name.html" --print-to-pdf="$OUT/$name.pdf"
    for picture in phone.png desk.png dark.png pdf; do
        bytes=$(stat -c %s "$OUT/$name.$picture" 2>/dev/null || echo 0)
        [ "$bytes" -ge 20000 ] || fail "$name.$picture: $bytes bytes, blank"
    done
    cmp -s "$OUT/$name.desk.png" "$OUT/$name.dark.png" && fail "$name: light and dark look alike"
    echo "looked at $name: $(stat -c %s "$OUT/$name.html") bytes"
}

"$MESHSIM" search --model 70b --gpus 64 --quiet --json -o "$OUT/search.json" || fail search
look plan --model 70b --gpus 64 --tp 8 --pp 4
look search "$OUT/search.json"
look campaign "$OUT/search.json" --tokens 1T --price 2.5 --deadline 60d --repair 3d --co2 0.3
"$MESHSIM" sweep --models 8b,70b --clusters hgx-h100,gb200-nvl72 --gpus 64,128 --tokens 1T --prices hgx-h100=2,gb200-nvl72=5 \
    --deadline 60d --quiet --json -o "$OUT/sweep.json" || fail sweep
look sweep "$OUT/sweep.json" --point 5
look large --model 405b --gpus 16384 --tp 8 --pp 16 --cp 4 --schedule interleaved --virtual-stages 4
look unfit --model 70b --gpus 8 --tp 8
look single --model llama-15m --gpus 1 --global-batch 8
look experts --model mixtral-8x7b --gpus 32 --ep 8 --tp 4 --pp 2
rm -f "$OUT"/*.log "$OUT"/*.dom "$OUT"/*.phone.html "$OUT"/*.err
echo "report-check: $num_failed failed; $validator, $chromium; pictures in $OUT"
exit $((num_failed > 0))
