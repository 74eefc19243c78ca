#!/bin/bash
# Every name that published runs are read by (sim/runs_devices.c, runs_systems.c, runs_names.c) stands in docs/names.md.
set -euo pipefail
bad=0
while read -r name; do
    grep -qF -- "\`$name\`" docs/names.md || { echo "docs/names.md: \"$name\" is missing"; bad=1; }
done < <(sed -n -E 's/^    (\{|SHAPES\(|\{\.pattern = )"([^"]+)", (NULL|[0-9"]|\.).*/\2/p' sim/runs_devices.c sim/runs_systems.c sim/runs_names.c)
exit $bad
