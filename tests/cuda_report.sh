#!/bin/bash
# Prints a table of the rows of tests/cuda_kernels.sh, whose arguments it takes. Fails when a kernel spills; those in fp64 may, since
# runs in fp64 are for checks.
set -uo pipefail
[ $# -gt 0 ] || { echo "cuda-report: no kernels" >&2; exit 2; }
tests/cuda_kernels.sh "$@" |
awk -F'\t' '
    !($1 in seen) { seen[$1] = 1; kernel[num++] = $1; if (length($1) > width) width = length($1) }
    !($2 in known) { known[$2] = 1; archs[num_archs++] = $2 }
    {
        row[$1, $2] = sprintf("%4d %6d %5d", $3, $4, $5)
        if ($5 > 0 && $1 !~ /double/) bad[num_bad++] = $1 " for " $2 ": " $5 " bytes"
    }
    END {
        printf "%-*s", width, "kernel"
        for (a = 0; a < num_archs; a++) printf "  %-17s", archs[a]
        printf "\n%-*s", width, ""
        for (a = 0; a < num_archs; a++) printf "  %4s %6s %5s", "regs", "shared", "spill"
        printf "\n"
        for (k = 0; k < num; k++) {
            printf "%-*s", width, kernel[k]
            for (a = 0; a < num_archs; a++) printf "  %17s", row[kernel[k], archs[a]]
            printf "\n"
        }
        for (i = 0; i < num_bad; i++) print "spills: " bad[i]
        printf "%d kernels, %d spill\n", num, num_bad
        exit num == 0 || num_bad > 0
    }'
