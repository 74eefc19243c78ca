#!/bin/sh
# Fails when a file includes a header from a layer it may not see, a header without its folder, or
# a vendor's header outside exec/backend_*. Tests may include everything.
set -eu
awk '
BEGIN {
    # layer: what it may include besides itself
    ok["base"] = ""
    ok["topo"] = "base"
    ok["costmodel"] = "base topo"
    ok["sim"] = "base topo costmodel"
    ok["exec"] = "base topo costmodel sim"
    ok["plots"] = "base topo costmodel sim"
    ok["cli"] = "base topo costmodel sim exec plots"
    ok["tests"] = "base topo costmodel sim exec plots cli"
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
    split(FILENAME, f, "/"); from = f[1]
    split($0, q, "\""); n = split(q[2], h, "/"); to = h[1]
    if (n < 2) { printf "%s:%d: include \"%s\" must name its folder\n", FILENAME, FNR, q[2]; bad = 1; next }
    if (to != from && index(" " ok[from] " ", " " to " ") == 0) {
        printf "%s:%d: %s/ may not include %s/\n", FILENAME, FNR, from, to; bad = 1
    }
}
/^[ \t]*#[ \t]*include[ \t]*<(cuda|nccl|mpi|cublas|cblas|openblas)/ && FILENAME !~ /^(exec\/backend_|tests\/exec\/)/ {
    printf "%s:%d: vendor header outside exec/backend_*\n", FILENAME, FNR; bad = 1
}
/^[ \t]*#[ \t]*include[ \t]*<cjson\// && FILENAME !~ /^(base\/json\.c$|base\/static\/|tests\/)/ {
    printf "%s:%d: cJSON outside base/json.c\n", FILENAME, FNR; bad = 1
}
/^[ \t]*#[ \t]*include[ \t]*<gsl\// && FILENAME !~ /^(costmodel|tests)\// {
    printf "%s:%d: GSL outside costmodel/\n", FILENAME, FNR; bad = 1
}
END { exit bad }' "$@"
