#!/bin/bash
# Fails if docs/json.md does not name, in backquotes, a key that a golden case with --json prints. Keys of plan and model
# files, which results contain, may stand in their sections of docs/configuration.md instead. Traces in formats of other
# programs (--trace-format) are not looked at.
set -uo pipefail
echo "[ RUN      ] json_docs"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export LC_ALL=C
{
    cat "${JSON_DOC:-docs/json.md}"
    sed -n '/^## Plan: /,/^## Tokens/p; /^## Model: /,/^## Cluster/p' docs/configuration.md
} | grep -o '`[^`]*`' | grep -oE '[A-Za-z0-9_-]+' | sort -u >"$scratch/named"

cases=$(grep -rE '^args:.* --json' tests/golden | grep -v -- --trace-format | cut -d: -f1 | sort -u)
faults=0
for file in $cases; do
    # names of rules are keys of the counts in "broken_rules": {...}
    sed -n '/^--- stdout$/,/^--- stderr$/p' "$file" | sed '/"broken_rules": {/,/}/d' | grep -oE '^ +"[A-Za-z0-9_-]+":' | tr -d ' ":' | sort -u >"$scratch/keys"
    for key in $(comm -23 "$scratch/keys" "$scratch/named"); do
        echo "$file: docs/json.md does not name the key \"$key\""
        faults=$((faults + 1))
    done
done
if [ "$faults" -eq 0 ] && [ -n "$cases" ]; then
    echo "[       OK ] json_docs"
else
    echo "$faults keys are not in docs/json.md"
    exit 1
fi
