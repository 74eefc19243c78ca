#!/bin/bash
# Prints what ptxas -v said of each kernel: registers of a thread, bytes of shared memory that a block has without asking (static), bytes spilled to memory
# (stores + loads), for each GPU. Arguments: files with what ptxas printed. Fails when a kernel spills; those in fp64 may, since runs in fp64 are for checks.
set -uo pipefail
[ $# -gt 0 ] || { echo "cuda-report: no kernels" >&2; exit 2; }
filter=$(command -v c++filt || echo cat)
awk '
    FNR == 1 { file = FILENAME; sub(/.*\/(cuda_)?/, "", file); sub(/\.txt$/, "", file) }
    /Compiling entry function/ {
        split($0, q, "\047"); name = q[2]; arch = q[4]
    }
    /bytes stack frame/ {
        spill[name, arch] = 0
        for (i = 1; i <= NF; i++)
            if ($i == "spill") spill[name, arch] += $(i - 2)
    }
    /Used [0-9]+ registers/ {
        regs = shared = 0
        for (i = 1; i <= NF; i++) {
            if ($i ~ /^registers/) regs = $(i - 1)
            if ($i ~ /^smem/) shared = $(i - 2)
        }
        print file " " name "\t" arch "\t" regs "\t" shared "\t" spill[name, arch]
    }' "$@" | "$filter" | sed 's/(anonymous namespace):://g; s/_GLOBAL__N__[0-9a-f_]*[A-Za-z0-9_]*:://; s/ void / /; s/([^\t]*)\t/\t/' | sort -t "$(printf '\t')" -k1,1 -k2,2V |
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
