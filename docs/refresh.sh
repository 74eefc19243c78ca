#!/bin/sh
# Runs every command that a page shows as `    $ build/meshsim ...` and replaces the indented block after it with what it
# prints now. RUNS=file.csv stands for RUNS.csv; without it those blocks stay. Usage: docs/refresh.sh PAGE...
set -eu
for page in "$@"; do
    awk -v runs="${RUNS:-}" '
        function show(command,    line) {
            command = command " 2>&1"
            while ((command | getline line) > 0) {
                sub(/[ \t]+$/, "", line)
                print (line == "" ? "" : "    " line)
            }
            close(command)
        }
        skipping && (/^    / || /^$/) { next }
        skipping { skipping = 0; print "" }
        { print }
        /^    \$ build\/meshsim / {
            command = substr($0, 7)
            if (command ~ /RUNS\.csv/ && runs == "") next
            sub(/RUNS\.csv/, runs, command)
            show(command)
            skipping = 1
        }' "$page" > "$page.new"
    mv "$page.new" "$page"
done
