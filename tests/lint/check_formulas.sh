#!/bin/sh
# Fails when the index of docs/formulas names a function that no source defines or calls, a test file that
# does not exist, a test that its file does not have, or a section that no chapter has. Rows:
# | section formula | source | `function`, ... | `tests/file.c` `test`, ...; ... | or "none yet" for the tests.
set -eu
doc=${1:-docs/formulas/README.md}
[ -f "$doc" ] || { echo "$doc is missing"; exit 1; }
chapters=${doc%/*}
names=$(mktemp)
trap 'rm -f "$names"' EXIT
# lines of: row-number kind name [file]
awk -F'|' '
    /^## Index$/ { on = 1 }
    on && /^\|/ && $2 !~ /^ *formula *$/ && $2 !~ /^-+$/ {
        rows++
        if (NF != 6) { print FNR, "bad", "columns"; next }
        if ($3 ~ /^ *$/) print FNR, "bad", "source"
        if (match($2, /[0-9][0-9.]*/)) print FNR, "section", substr($2, RSTART, RLENGTH)
        n = split($4, part, "`")
        if (n < 3) print FNR, "bad", "function"
        for (i = 2; i <= n; i += 2) print FNR, "function", part[i]
        n = split($5, part, "`"); file = ""
        if (n < 3 && $5 !~ /^ *none yet *$/) print FNR, "bad", "test"
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
        grep -qrE --include='*.c' "(^|[^A-Za-z0-9_])$name\\(" base topo costmodel sim exec cli ||
            wrong "$line" "no function $name"
        ;;
    section)
        grep -qsE "^#+ ${name%.}[. ]" "$chapters"/[0-9]*.md || wrong "$line" "no section $name in $chapters"
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
