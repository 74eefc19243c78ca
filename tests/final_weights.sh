#!/bin/sh
# Weights saved after a step are those that the next step uses: a run of two steps over the same tokens has the
# losses of one step before and of one step from the saved weights, whatever the meshes. The output is that of a cmocka
# program, for tests/run_tests.sh.
set -eu
MESHSIM=${MESHSIM:-build/opt/meshsim}
name=saved_weights_are_those_of_the_next_step
echo "[ RUN      ] $name"
model=tests/data/run/features/deepseek-v3.json
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
awk 'BEGIN { for (i = 0; i < 64; i++) print (i * 37 + i * i) % 64 }' > "$scratch/tokens.txt"

losses() { # arguments of run; prints the losses
    "$MESHSIM" run --model "$model" --seq 16 --global-batch 4 --backend loop --dtype fp64 --lr 0.01 \
        --tokens "$scratch/tokens.txt" --warm-up 0 --json "$@" 2> "$scratch/errors" |
        tr -d ' \n' | sed 's/.*"losses":\[\([^]]*\)\].*/\1/' | tr ',' ' '
}

both=$(losses --steps 2)
first=$(losses --steps 1 --tp 2 --dp-shard 2 --ep 2 --zero 3 --save-final-weights "$scratch/after.safetensors")
second=$(losses --steps 1 --pp 2 --microbatch 2 --load-weights "$scratch/after.safetensors")
echo "$both / $first $second" | awk '
    function far(a, b) { return a - b > 1e-12 * b || b - a > 1e-12 * b }
    NF != 5 || far($1, $4) || far($2, $5) || !far($1, $2) { print "losses differ: " $0; exit 1 }'
echo "[       OK ] $name"
