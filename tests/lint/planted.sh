#!/bin/bash
# The lint steps of this folder find what they are for: each must fail on a file with a planted violation.
set -uo pipefail
here=$PWD/tests/lint
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cp -r --parents docs/architecture.md "$scratch"
cd "$scratch" || exit 1
mkdir -p sim/engine costmodel/attic
missed=0
# must_fail SCRIPT FILE LINE...: the script complains of a file with these lines
must_fail()
{
    local script=$1 file=$2
    shift 2
    printf '%s\n' "$@" >"$file"
    if "$here/$script" "$file" >/dev/null; then
        echo "$script accepts $file with: $*"
        missed=1
    fi
}
must_fail check_rooms.sh sim/engine/upward.c '#include "sim/search/space.h"'
must_fail check_rooms.sh sim/engine/vendor.c '#include <mpi.h>'
must_fail check_rooms.sh costmodel/attic/no_room.c '#include "base/arena.h"'
must_fail check_comments.sh sim/engine/riddle.c '/* Of that alone. */' 'int x;'
must_fail check_comments.sh sim/engine/field.h 'int x; /* of every message */'
must_fail forbidden.sh sim/engine/heap.c 'void *f(void) { return malloc(1); }'
must_fail fnlen.sh sim/engine/long.c 'int f(void)' '{' "$(yes '    ;' | head -90)" '}'
exit $missed
