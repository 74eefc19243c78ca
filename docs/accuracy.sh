#!/bin/sh
# Fills the blocks of pages that commands print:
#
#     <!-- generated: NAME -->           or <!-- generated: NAME; only: REGEX -->, which keeps the paragraphs whose
#         $ build/meshsim ...            first line matches
#     <!-- end -->
#
# RUNS=, UNFINISHED=, KERNELS= and COLLECTIVES=file.csv stand for RUNS.csv, UNFINISHED.csv and so on in the commands. A page that needs a
# file that is not given stays as it is. Pages with --holdout commands take minutes: HOLDOUT=1 fills them, and no others. The block
# "date" has no command: it says when the page was made. A page stays as it is when one of its commands fails.
# Usage: docs/accuracy.sh PROGRAM PAGE...
set -eu
program=$1
shift
made="Made on $(date -u +%Y-%m-%d), version $("$program" version | sed 's/^meshsim //')."
trap 'rm -f "$page.new" "$page.out"' EXIT

# can_fill PAGE: whether its commands are wanted now and their files are given
can_fill() {
    held_out=0
    if grep -q '^    \$ .* --holdout' "$1"; then held_out=1; fi
    [ "$held_out" = "${HOLDOUT:-0}" ] || return 1
    for file in "RUNS ${RUNS:-}" "UNFINISHED ${UNFINISHED:-}" "KERNELS ${KERNELS:-}" "COLLECTIVES ${COLLECTIVES:-}"; do
        if grep -q "^    \\\$ .* ${file%% *}\\.csv" "$1" && [ -z "${file#* }" ]; then return 1; fi
    done
}

fill() {
    awk -v program="$program" -v made="$made" -v runs="${RUNS:-}" -v kernels="${KERNELS:-}" -v collectives="${COLLECTIVES:-}" \
        -v unfinished="${UNFINISHED:-}" -v output="$1.out" '
        function quoted(path) {
            gsub(/\047/, "\047\\\047\047", path)
            gsub(/&/, "\\\\&", path)
            return "\047" path "\047"
        }
        function runnable(command) {
            sub(/build\/meshsim/, quoted(program), command)
            sub("UNFINISHED.csv", quoted(unfinished), command)
            sub("RUNS.csv", quoted(runs), command)
            sub("KERNELS.csv", quoted(kernels), command)
            sub("COLLECTIVES.csv", quoted(collectives), command)
            return command
        }
        # one empty line before each paragraph; with `only` those that match
        function show(command, only,    line, shown, first) {
            if (system(command " > " quoted(output)) != 0) {
                print "docs/accuracy.sh: this failed: " command > "/dev/stderr"
                inside = 0
                exit 1
            }
            first = 1
            shown = 0
            while ((getline line < output) > 0) {
                sub(/[ \t]+$/, "", line)
                if (line == "") { first = 1; continue }
                if (first) {
                    shown = only == "" || line ~ only
                    if (shown) print ""
                }
                first = 0
                if (shown) print "    " line
            }
            close(output)
        }
        inside && /^<!-- end -->$/ { inside = 0 }
        inside && /^    \$ (docs\/[a-z_]+\.sh )?build\/meshsim( |$)/ {
            print
            show(runnable(substr($0, 7)), only)
        }
        inside { next }
        { print }
        /^<!-- generated: / {
            inside = 1
            only = ""
            if (/; only: /) {
                only = $0
                sub(/^.*; only: /, "", only)
                sub(/ -->$/, "", only)
            }
        }
        /^<!-- generated: date -->$/ { print made }
        END {
            if (inside) {
                print "docs/accuracy.sh: a block has no end" > "/dev/stderr"
                exit 1
            }
        }' "$1" > "$1.new"
    mv "$1.new" "$1"
    rm -f "$1.out"
}

for page in "$@"; do
    if can_fill "$page"; then fill "$page"; fi
done
