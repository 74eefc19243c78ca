#!/bin/bash
# Compares the built kernels with tests/data/cuda_kernels.tsv, for compute capability 9.0: no kernel may spill more, need so many
# more registers or so much more static shared memory that 10 % fewer warps or blocks fit on a multiprocessor, or have fewer
# tensor-core instructions or more loads from shared memory; the latter two are those of kernels in $CUBINS. Dynamic shared memory,
# which launches ask for, is not in a kernel's code. Skipped where nvcc is missing or another one than the record's.
#   UPDATE=1  rewrites the record
#   NVCC      the compiler that made the kernels
#   PTXAS     files with what ptxas -v printed
#   CUBINS    kernels whose instructions are counted, as machine code
set -uo pipefail
export LC_ALL=C
RECORD=${RECORD:-tests/data/cuda_kernels.tsv}
arch=sm_90
name=kernels_are_as_good_as_recorded
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tab=$(printf '\t')

echo "[ RUN      ] $name"
skip() { printf '%s\n[  SKIPPED ] %s\n' "$1" "$name"; exit 0; }

# Arguments: a cubin; prints its kernels with the tensor-core instructions and shared-memory loads of each. An instruction has 16
# bytes, its operation in the lowest 12 bits.
instructions_of()
{
    local section offset size
    readelf -SW "$1" 2>/dev/null | sed 's/^ *\[ *[0-9]*\] *//' | while read -r section _ _ offset size _; do
        [[ $section == .text.* ]] || continue
        od -An -v -tx8 -w16 -j $((16#$offset)) -N $((16#$size)) "$1" | awk -v kernel="${section#.text.}" -v file="$(basename "$1" ".$arch.cubin")" '
            { operation = substr($1, 14, 3) }
            operation == "23c" { tensor++ }                     # HMMA
            operation == "984" || operation == "83b" { loads++ } # LDS, LDSM
            END { sub(/^cuda_/, "", file); printf "%s %s\t%d\t%d\n", file, kernel, tensor, loads }'
    done | c++filt | tests/cuda_kernel_names.sed
}

# The record's rows of what was built; "-": not counted
rows()
{
    # shellcheck disable=SC2086 # lists of files
    for cubin in $CUBINS; do instructions_of "$cubin"; done | sort -t "$tab" -k1,1 >"$scratch/counts"
    # shellcheck disable=SC2086
    tests/cuda_kernels.sh $PTXAS | awk -F'\t' -v OFS='\t' -v arch=$arch '$2 == arch { print $1, $3, $4, $5 }' |
        join -t "$tab" -a 1 -e - -o 0,1.2,1.3,1.4,2.2,2.3 - "$scratch/counts"
}

[ -n "${PTXAS:-}" ] || skip "built without CUDA"
[[ ${B:-build/opt} == */opt ]] || skip "only for build/opt"
command -v c++filt readelf >/dev/null || skip "needs readelf and c++filt"
# shellcheck disable=SC2086
grep -q "for '$arch'" $PTXAS || skip "not built for $arch"
compiler="nvcc $("$NVCC" --version | sed -n 's/.*, V\([0-9.]*\)$/\1/p'), $arch"
recorded=$(head -1 "$RECORD" | sed 's/^# //')
[ "${UPDATE:-}" = 1 ] || [ "$compiler" = "$recorded" ] || skip "made by $compiler; the record is of $recorded"
{
    echo "# $compiler"
    printf 'kernel\tregisters\tshared_bytes\tspilled_bytes\ttensor_instructions\tshared_loads\n'
    rows
} >"$scratch/new"
if [ "${UPDATE:-}" = 1 ]; then cp "$scratch/new" "$RECORD"; fi
# Of compute capability 9.0: 65536 registers, given to warps by 256, 64 warps; 228 KiB, 1 KiB of them for each block, 32 blocks
# (CUDA C++ Programming Guide 13.0, "Compute Capabilities").
awk -F'\t' '
    function at_most(a, b) { return a < b ? a : b }
    function warps(registers) { return at_most(64, int(65536 / (256 * int((32 * registers + 255) / 256)))) }
    function blocks(shared) { return at_most(32, int(233472 / (shared + 1024))) }
    function fault(text) { print $1 ": " text; num++ }
    FNR <= 2 { next }
    NR == FNR { was[$1] = $0; next }
    !($1 in was) { fault("is not in the record"); next }
    {
        split(was[$1], old, "\t"); delete was[$1]
        if ($4 > old[4]) fault($4 " bytes spilled, " old[4] " on record")
        if (warps($2) < 0.9 * warps(old[2])) fault($2 " registers, " old[2] " on record: fewer warps on a multiprocessor")
        if (blocks($3) < 0.9 * blocks(old[3])) fault($3 " bytes of shared memory, " old[3] " on record: fewer blocks on a multiprocessor")
        if ($5 != old[5] && ($5 == "-" || old[5] == "-")) fault("instructions counted now or on record, but not both")
        else if ($5 < old[5]) fault($5 " tensor-core instructions, " old[5] " on record")
        else if ($6 > old[6]) fault($6 " loads from shared memory, " old[6] " on record")
    }
    END {
        for (kernel in was) { print kernel ": is on record, but was not built"; num++ }
        if (num > 0) print "if that is meant: make check T=cuda_record UPDATE=1"
        exit num > 0
    }' "$RECORD" "$scratch/new" || exit 1
echo "[       OK ] $name"
