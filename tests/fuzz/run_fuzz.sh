#!/bin/bash
# Builds each fuzz target with clang's libFuzzer and runs it; new finds are left in build/fuzz.
# Arguments: fuzz sources, --, sources of the library.
set -euo pipefail
targets=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    targets+=("$1")
    shift
done
shift
command -v "$CLANG" >/dev/null || { echo "fuzz: $CLANG is not installed" >&2; exit 1; }
mkdir -p build/fuzz/obj
flags="-std=c17 -g -O1 -fsanitize=fuzzer-no-link,address,undefined,float-cast-overflow -fno-sanitize-recover=all"

# whether source $1 or what it includes is newer than object $2, or was compiled otherwise
is_stale() {
    [ -e "$2" ] && [ -e "$2.d" ] && [ ! "$0" -nt "$2" ] || return 0
    local needs
    needs=$(sed -e 's/^[^:]*://' -e 's/\\$//' "$2.d")
    [ -n "$(find $needs -newer "$2" 2>&1 | head -1)" ]
}

compile() {
    "$CLANG" $CPPFLAGS -DMS_SOURCE_DIR="\"$PWD\"" $flags -MMD -MF "$2.d" -c "$1" -o "$2"
}

objects=()
for source in "$@"; do
    object=build/fuzz/obj/${source//\//_}.o
    objects+=("$object")
    is_stale "$source" "$object" || continue
    compile "$source" "$object" &
    while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
done
while [ -n "$(jobs -p)" ]; do wait -n; done
# an archive: a target takes of tests/support only what it uses
library=build/fuzz/library.a
rm -f "$library"
ar rcs "$library" "${objects[@]}"
status=0
for target in "${targets[@]}"; do
    name=$(basename "$target" .c)
    "$CLANG" $CPPFLAGS -DMS_SOURCE_DIR="\"$PWD\"" ${flags/fuzzer-no-link/fuzzer} "$target" "$library" -o "build/fuzz/$name" $LIBS
    mkdir -p "build/fuzz/corpus_$name" "tests/fuzz/corpus/${name#fuzz_}"
    echo "== $name, $SECONDS_EACH s"
    "build/fuzz/$name" -max_total_time="$SECONDS_EACH" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="build/fuzz/$name-" "build/fuzz/corpus_$name" "tests/fuzz/corpus/${name#fuzz_}" \
        >"build/fuzz/$name.log" 2>&1 || { status=1; tail -60 "build/fuzz/$name.log"; }
    grep -E '^Done|number_of_executed_units' "build/fuzz/$name.log" || true
done
exit $status
