#!/bin/sh
# Runs every command that a page shows as `    $ build/meshsim ...` and replaces the indented block after it with what it
# prints now. Usage: docs/refresh.sh PAGE...
set -eu
for page in "$@"; do
    awk '
        function show(command,    line) {
            command = command " 2>&1"
            while ((command | getline line) > 0) {
                sub(/[ \t]+$/, "", line)
                print (line == "" ? "" : "    " line)
            }
            close(command)
        }
        skipping && !/^    \$ / && (/^    / || /^$/) { next }
        skipping { skipping = 0; print "" }
        { print }
        /^    \$ build\/meshsim / {
            command = substr($0, 7)
            show(command)
            skipping = 1
        }' "$page" > "$page.new"
    mv "$page.new" "$page"
done
