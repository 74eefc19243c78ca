#!/bin/bash
# Fills the tables of docs/names.md from configs/names/: what stands between
#
#     <!-- names: FILE LIST KEY [LABEL] -->
#     <!-- end -->
#
# becomes a table of the rows of LIST in configs/names/FILE.json, grouped by KEY; rows without it stand under LABEL, or nowhere. A list has a row
# a line. Usage: docs/names.sh [--check]: with --check the page stays as it is, and a difference fails.
set -euo pipefail
page=docs/names.md
new=$(mktemp)
trap 'rm -f "$new"' EXIT

table()
{
    echo "| $3 | names |"
    echo "|---|---|"
    awk -v list="$2" -v key="$3" -v none="${4:-}" '
        function value(name,    at) {
            if (!match($0, "\"" name "\": (\"[^\"]*\"|[0-9.]+|true)")) return ""
            at = substr($0, RSTART + length(name) + 4, RLENGTH - length(name) - 4)
            gsub(/"/, "", at)
            return at
        }
        function add(group, name) { rows[group] = rows[group] (group in rows && rows[group] != "" ? ", " : "") name }
        function conditions(    text, at) {
            if ((at = value("gib")) != "") text = text " with " at " GB"
            if ((at = value("word")) != "" || (at = value("work")) != "" || (at = value("with")) != "") text = text " and \"" at "\""
            if (value("several_nodes") != "") text = text " on several nodes"
            if ((at = value("before")) != "") text = text " before " substr(at, 1, 4) "-" substr(at, 5)
            if (value("gated") != "") text = text " with a gated MLP, or that does not say"
            return text
        }
        index($0, "  \"" list "\": ") == 1 { inside = 1; next }
        inside && /^  []}]/ { inside = 0; ended = 1 }
        inside && match($0, /^    "[^"]+": "/) { # an alias
            split($0, part, "\"")
            add(part[4], "`" part[2] "`")
            next
        }
        inside && !/^    \{.*\},?$/ { print FILENAME ":" FNR ": not a row a line" >"/dev/stderr"; exit 1 }
        inside {
            group = value(key)
            if (group == "") group = none
            if (group == "") next
            name = value("name") == "" ? "any other" : "`" value("name") "`"
            add(group, name conditions())
        }
        END {
            if (!ended) { print FILENAME ": no list \"" list "\"" >"/dev/stderr"; exit 1 }
            for (group in rows) print "| " group " | " rows[group] " |"
        }' "configs/names/$1.json" | LC_ALL=C sort
}

inside=no
while IFS= read -r line; do
    if [[ $line =~ ^\<!--\ names:\ (.*)\ --\>$ ]]; then
        echo "$line"
        read -r -a words <<<"${BASH_REMATCH[1]}"
        table "${words[0]}" "${words[1]}" "${words[2]}" "${words[*]:3}"
        inside=yes
    elif [ "$line" = "<!-- end -->" ]; then
        inside=no
    fi
    [ $inside = yes ] || printf '%s\n' "$line"
done <"$page" >"$new"
if [ "${1:-}" = --check ]; then
    diff -u "$page" "$new" || { echo "$page: make names" >&2; exit 1; }
else
    cat "$new" >"$page"
fi
