#!/bin/sh
# Fails when the index of docs/formulas.md names a function that no source defines or calls, a test
# file that does not exist, or a test that its file does not have. Rows: | formula | `function`, ... |
# `tests/file.c` `test`, ...; ... | or "none yet" for the tests.
set -eu
doc=${1:-docs/formulas.md}
[ -f "$doc" ] || { echo "$doc is missing"; exit 1; }
names=$(mktemp)
trap 'rm -f "$names"' EXIT
# lines of: row-number kind name [file]
awk -F'|' '
    /^## Index$/ { on = 1 }
    on && /^\|/ && $2 !~ /^ *formula *$/ && $2 !~ /^-+$/ {
        rows++
        if (NF != 5) { print FNR, "bad", "columns"; next }
        n = split($3, part, "`")
        if (n < 3) print FNR, "bad", "function"
        for (i = 2; i <= n; i += 2) print FNR, "function", part[i]
        n = split($4, part, "`"); file = ""
        if (n < 3 && $4 !~ /^ *none yet *$/) print FNR, "bad", "test"
        for (i = 2; i <= n; i += 2) {
            if (part[i] ~ /\//) { file = part[i]; print FNR, "file", file }
            else print FNR, "test", part[i], file
        }
    }
    END { if (rows == 0) print 0, "bad", "index" }' "$doc" >"$names"
status=0
wrong()
{
    echo "$doc:$1: $2"
    status=1
}
while read -r line kind name file; do
    case $kind in
    function)
        grep -qE "(^|[^A-Za-z0-9_])$name\\(" base/*.c topo/*.c costmodel/*.c sim/*.c exec/*.c cli/*.c ||
            wrong "$line" "no function $name"
        ;;
    file) [ -f "$name" ] || wrong "$line" "no file $name" ;;
    test)
        grep -qs "static void $name(" "$file" ||
            wrong "$line" "no test $name in ${file:-any file}"
        ;;
    *) wrong "$line" "the index lacks its $name" ;;
    esac
done <"$names"
exit $status
