#!/bin/bash
# All lint steps over the files given; every step runs, each counts as one passed or failed. The
# count is left in build/lint/lint.summary.
set -uo pipefail
passed=0
failed=0
step()
{
    local name=$1
    shift
    local log=build/lint/$name.log
    if "$@" >"$log" 2>&1; then
        passed=$((passed + 1))
        echo "lint $name: ok$(grep '^functions ' "$log" | sed 's/^/, /')"
    else
        failed=$((failed + 1))
        echo "lint $name: FAILED" >&2
        head -80 "$log" >&2
    fi
}
mkdir -p build/lint
rm -f build/lint/lint.summary
code=()
for file in "$@"; do
    case "$file" in *.c) code+=("$file") ;; esac
done
step rooms tests/lint/check_rooms.sh "$@"
step comments tests/lint/check_comments.sh "$@"
step planted tests/lint/planted.sh
step lengths tests/lint/fnlen.sh "${code[@]}"
step forbidden tests/lint/forbidden.sh "$@"
step formulas tests/lint/check_formulas.sh
step names docs/names.sh --check
step format clang-format --dry-run -Werror "$@"
step tidy ${MAKE:-make} --no-print-directory -k -j"${LINT_JOBS:-2}" tidy
echo "$passed passed, $failed failed, 0 skipped" >build/lint/lint.summary
[ $failed -eq 0 ]
