#!/bin/sh
# P(fit) of each model that has unfinished runs, by errors of all other models: refits memory and its spread of errors
# without the model's rows, and validates these. Prints the table of finished against unfinished runs of each model.
# A model's name must be unquoted in the tables, and stand between commas there only as a model.
# Usage: docs/fits_held_out.sh PROGRAM RUNS.csv UNFINISHED.csv
set -eu
program=$1
runs=$2
unfinished=$3
configs=${MESHSIM_CONFIGS:-$(dirname "$0")/../configs}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -R "$configs" "$work/configs"

# rows_of MODEL FILE: the header and the rows of a model
rows_of() {
    head -n 1 "$2"
    grep -F ",$1," "$2"
}

column=$(head -n 1 "$unfinished" | tr ',' '\n' | grep -n '^model$' | cut -d: -f1)
tail -n +2 "$unfinished" | cut -d, -f"$column" | sort -u > "$work/models"
while read -r model; do
    grep -vF ",$model," "$runs" > "$work/others.csv"
    "$program" calibrate --from "$work/others.csv" --constants memory --spread "$work/spread.json" --quiet > "$work/log"
    mv "$work/spread.json" "$work/configs/spreads/memory.json"
    rows_of "$model" "$runs" > "$work/runs.csv"
    rows_of "$model" "$unfinished" > "$work/unfinished.csv"
    echo
    echo "$model by the errors of other models"
    MESHSIM_CONFIGS="$work/configs" "$program" validate "$work/runs.csv" "$work/unfinished.csv" --quiet |
        sed -n '/^finished against/,/^Finished runs/p' | sed '$d'
done < "$work/models"
