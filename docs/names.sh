#!/bin/sh
# Writes docs/names.md: the tables of names in sim/runs_devices.c and sim/runs_names.c, which `validate` reads.
# Usage: docs/names.sh > docs/names.md
set -eu
cd "$(dirname "$0")/.."
cat <<'TEXT'
# Names in published runs

Written by `make names` from the tables of the program. `validate` takes the first row that matches.

## Devices

A name counts where it stands alone, whatever its spaces and hyphens: behind a vendor, a count ("8xH100") or a mark, and
before a form or a size ("H100-SXM5-80GB"). The memory that a cell states must be that of the second column, where it names
one; a word of the third stands in the device's cell or the network's. A memory of another size replaces the cluster's.

| name | GB | word | cluster |
|---|---|---|---|
TEXT
awk -F'"' '
    /device_rules\[\] = \{/ { inside = 1; next }
    inside && /\{NULL,/ { exit }
    inside && /^    \{"/ {
        split($3, figures, /[ ,]+/)
        word = $3 ~ /NULL/ ? "" : $4
        cluster = $3 ~ /NULL, NULL/ || $0 ~ /NULL\}/ ? "unknown" : ($3 ~ /NULL/ ? $4 : $6)
        printf "| %s | %s | %s | %s |\n", $2, figures[2] == 0 ? "" : figures[2], word, cluster
    }' sim/runs_devices.c
cat <<'TEXT'

## Models

Parts of the name in lower case without spaces, hyphens and underscores; after `^` the begin of a word. What the row's columns
state replaces the configuration's; columns of another width or other heads make it a model of that kind only.

| part of the name | configuration |
|---|---|
TEXT
awk -F'"' '
    /known_models\[\] = \{/ { inside = 1; next }
    inside && /^    \{0\},/ { exit }
    inside && /SHAPES\("/ { printf "| %s | %s |\n", $2, $4 }
    inside && /\.unsupported/ { printf "| %s | cannot be predicted |\n", $2 }
    inside && /four_hidden/ { printf "| %s | kind of %s |\n", $2, $4 }' sim/runs_names.c
