#!/bin/bash
# Runs one golden case: `args:` and `exit:` lines, then the expected text in the sections
# `--- stdout` and `--- stderr` (a missing section means: nothing is printed). Lines that begin with
# # before the first section are remarks. UPDATE=1 rewrites the expectations.
# `files: NAME...` runs the case in an empty folder, and what it leaves in these files follows its standard output, each
# after a line `==> NAME`. `env: NAME=VALUE...` changes its environment. `reader: COMMAND` reads its standard output, and
# what that prints is the standard output of the case; `reader: none` closes it instead.
set -uo pipefail
case_file=$1
MESHSIM=${MESHSIM:-build/opt/meshsim}
if [ ! -x "$MESHSIM" ]; then
    echo "$case_file: $MESHSIM has not been built"
    exit 1
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

args=$(sed -n '/^---/q; s/^args: *//p' "$case_file")
want_exit=$(sed -n '/^---/q; s/^exit: *//p' "$case_file")
files=$(sed -n '/^---/q; s/^files: *//p' "$case_file")
environment=$(sed -n '/^---/q; s/^env: *//p' "$case_file")
reader=$(sed -n '/^---/q; s/^reader: *//p' "$case_file")
awk '/^--- stdout$/ { on = 1; next } /^--- stderr$/ { on = 0 } on' "$case_file" >"$scratch/want.out"
awk '/^--- stderr$/ { on = 1; next } /^--- stdout$/ { on = 0 } on' "$case_file" >"$scratch/want.err"

eval "set -- $args"
got_exit=0
folder=.
[ -z "$files" ] || { folder=$scratch/work; mkdir "$folder"; }
program=$(realpath "$MESHSIM")
run_case() {
    cd "$folder" && exec timeout 300 env -u COLUMNS -u MESHSIM_DEBUG -u MESHSIM_CONFIGS NO_COLOR=1 LC_ALL=C $environment "$program" "$@" \
        2>"$scratch/got.err" </dev/null
}
if [ "$reader" = none ]; then
    (run_case "$@" >&-) || got_exit=$?
    : >"$scratch/got.out"
elif [ -n "$reader" ]; then
    (run_case "$@") | $reader >"$scratch/got.out"
    got_exit=${PIPESTATUS[0]}
else
    (run_case "$@") >"$scratch/got.out" || got_exit=$?
fi
for file in $files; do
    { echo "==> $file"; cat "$folder/$file"; } >>"$scratch/got.out"
done

if [ "${UPDATE:-}" = 1 ]; then
    {
        sed '/^---/,$d; /^exit:/d' "$case_file"
        echo "exit: $got_exit"
        echo "--- stdout"
        cat "$scratch/got.out"
        echo "--- stderr"
        cat "$scratch/got.err"
    } >"$scratch/new"
    cp "$scratch/new" "$case_file"
    exit 0
fi

status=0
if [ "$got_exit" != "$want_exit" ]; then
    echo "$case_file: exit status $got_exit, expected $want_exit"
    status=1
fi
diff -u --label "expected stdout" --label "stdout" "$scratch/want.out" "$scratch/got.out" || status=1
diff -u --label "expected stderr" --label "stderr" "$scratch/want.err" "$scratch/got.err" || status=1
exit $status
