#!/bin/sh
# Holds the includes of the files given against the table of rooms in docs/architecture.md. A room may include itself, the
# rooms above it in the same folder, and the folders of its third column; tests may include everything. A folder that is no
# room, a header without its folder, and a library's header outside its place are errors, too.
set -eu
awk '
# The room of a path: its folder, or the folder of that.
function room_of(path,   n, p, name) {
    n = split(path, p, "/")
    name = n > 2 ? p[1] "/" p[2] : p[1]
    return name in rank ? name : p[1]
}
function report(message) {
    printf "%s:%d: %s\n", FILENAME, FNR, message
    bad = 1
}
# ---- the table, which is the first file
FNR == NR {
    if (/<!-- rooms -->/) inside = 1
    if (/<!-- \/rooms -->/) inside = 0
    if (!inside || !/^\| `/) next
    split($0, cell, "|")
    name = cell[2]; gsub(/[ `\/]*$|^[ `]*/, "", name)
    rank[name] = ++num_rooms
    folders[name] = " " cell[4] " "
    next
}
num_rooms == 0 { print "docs/architecture.md: no table of rooms"; bad = 1; exit }
FNR == 1 {
    from = room_of(FILENAME); split(from, f, "/"); folder = f[1]
    is_test = folder == "tests"
    if (!is_test && !(from in rank)) report(from " is no room of docs/architecture.md")
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
    split($0, q, "\"")
    if (q[2] !~ /\//) { report("include \"" q[2] "\" must name its folder"); next }
    if (is_test) next
    to = room_of(q[2]); split(to, t, "/")
    if (t[1] == "tests" || !(to in rank)) report(to " is no room")
    else if (to == from) next
    else if (t[1] == folder) { if (rank[to] > rank[from]) report(from " may not include " to ", which stands below it") }
    else if (index(folders[from], " " t[1] " ") == 0) report(from " may not include " t[1])
}
/^[ \t]*#[ \t]*include[ \t]*<(cuda|nccl|mpi|cublas|cblas|openblas)/ && FILENAME !~ /^(exec\/(cpu|cuda|backends)|tests\/exec)\// {
    report("header of a vendor outside exec/cpu, exec/cuda and exec/backends")
}
/^[ \t]*#[ \t]*include[ \t]*<cjson\// && FILENAME !~ /^(base\/json\.c$|base\/static\/|tests\/)/ { report("cJSON outside base/json.c") }
/^[ \t]*#[ \t]*include[ \t]*<gsl\// && FILENAME !~ /^(costmodel|tests)\// { report("GSL outside costmodel/") }
END { exit bad }' docs/architecture.md "$@"
