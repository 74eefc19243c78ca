#!/bin/sh
# Fails on comments that open with a word whose subject the reader must guess ("Of that alone", "What it keeps", "As above").
# A comment names its subject: a sentence, or a noun phrase that stands alone.
set -eu
awk '
function judge(text,   first, lower) {
    sub(/^[ \t]*[-*]*[ \t]*/, "", text)
    first = text; sub(/[^A-Za-z].*$/, "", first)
    lower = tolower(first)
    if (lower ~ /^(of|what|as|those|these|it|its|who|whose|by|to|from|with|without|until|also|else|or|and|but|then|than)$/ ||
        tolower(text) ~ /^the same([^a-z]|$)/)
        { printf "%s:%d: comment without a subject: %s\n", FILENAME, FNR, substr(text, 1, 60); bad = 1 }
}
{
    line = $0
    while (match(line, /\/\*|\/\/ /)) {
        if (substr(line, 1, RSTART - 1) ~ /"[^"]*$/) break # within a text
        rest = substr(line, RSTART + RLENGTH)
        if (rest ~ /^[ \t*]*$/) { open = 1; break }
        judge(rest)
        if (!match(rest, /\*\//)) break
        line = substr(rest, RSTART + 2)
    }
    if (open && $0 !~ /\/\*/) { if ($0 ~ /[A-Za-z]/) { judge($0); open = 0 } }
}
END { exit bad }' "$@"
