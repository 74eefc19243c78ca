#!/bin/bash
# Prints a row for each kernel and GPU from what ptxas -v said: kernel, GPU, registers of a thread, bytes of shared memory that a
# block has without asking (static), bytes spilled to memory (stores + loads). Arguments: files with what ptxas printed.
set -uo pipefail
filter=$(command -v c++filt || echo cat)
awk '
    FNR == 1 { file = FILENAME; sub(/.*\/(cuda_)?/, "", file); sub(/\.cu\.ptxas$/, "", file) }
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
    }' "$@" | "$filter" | tests/cuda_kernel_names.sed | sort -t "$(printf '\t')" -k1,1 -k2,2V
