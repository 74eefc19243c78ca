#!/bin/sh
# Fills the blocks of a page that commands print:
#
#     <!-- generated: NAME -->           or <!-- generated: NAME; only: REGEX -->: of its output, the paragraphs whose first
#         $ build/meshsim ...            line matches
#     <!-- end -->
#
# RUNS=, KERNELS= and COLLECTIVES=file.csv stand for RUNS.csv, KERNELS.csv and COLLECTIVES.csv in the commands; blocks whose file is not
# given stay as they are. Commands with --holdout take minutes: HOLDOUT=1 runs them, and no others. The block "date" has no command: it
# says when the page was made. A command that fails leaves the page alone. Usage: docs/accuracy.sh PROGRAM PAGE
set -eu
program=$1
page=$2
made="Made on $(date -u +%Y-%m-%d), version $("$program" version | sed 's/^meshsim //')."
trap 'rm -f "$page.new" "$page.out"' EXIT
awk -v program="$program" -v made="$made" -v runs="${RUNS:-}" -v kernels="${KERNELS:-}" -v collectives="${COLLECTIVES:-}" \
    -v holdout="${HOLDOUT:-0}" -v output="$page.out" '
    function quoted(path) {
        gsub(/\047/, "\047\\\047\047", path)
        gsub(/&/, "\\\\&", path)
        return "\047" path "\047"
    }
    function with_file(command, word, path) {
        if (index(command, word) == 0) return command
        if (path == "") return ""
        sub(word, quoted(path), command)
        return command
    }
    # empty: not now
    function runnable(command) {
        if ((command ~ / --holdout/) != (holdout == "1")) return ""
        sub(/^build\/meshsim/, quoted(program), command)
        command = with_file(command, "RUNS.csv", runs)
        if (command != "") command = with_file(command, "KERNELS.csv", kernels)
        if (command != "") command = with_file(command, "COLLECTIVES.csv", collectives)
        return command
    }
    # one empty line before each paragraph; with `only` those that match
    function show(command, only,    line, shown, first) {
        if (system(command " > " quoted(output)) != 0) {
            print "docs/accuracy.sh: this failed: " command > "/dev/stderr"
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
    inside && /^<!-- end -->$/ { inside = 0; keep = 0 }
    inside && !keep && /^    \$ build\/meshsim / {
        print
        command = runnable(substr($0, 7))
        if (command == "") keep = 1
        else show(command, only)
        next
    }
    inside && !keep { next }
    { print }
    /^<!-- generated: date -->$/ { if (holdout != "1") { print made; inside = 1; keep = 0 } next }
    /^<!-- generated: / {
        inside = 1
        keep = 0
        only = ""
        if (/; only: /) {
            only = $0
            sub(/^.*; only: /, "", only)
            sub(/ -->$/, "", only)
        }
    }
    END {
        if (inside) {
            print "docs/accuracy.sh: a block has no end" > "/dev/stderr"
            exit 1
        }
    }' "$page" > "$page.new"
mv "$page.new" "$page"
