#!/bin/sh
# Makes the pictures of docs/ again. Usage: docs/pictures.sh PROGRAM
set -eu
"$1" plot timeline --model 70b --gpus 64 --tp 8 --pp 4 --virtual-stages 2 --zero 1 --global-batch 16 -o docs/timeline.png
"$1" plot memory configs/plans/llama-3.1-70b-512.json -o docs/memory.png
"$1" plot memory --over-time --model 8b --gpus 16 --pp 4 --zero 1 --global-batch 64 -o docs/memory_over_time.png
"$1" plot breakdown configs/plans/llama-3.1-70b-512.json -o docs/breakdown.png
"$1" plot topology configs/plans/llama-3.1-70b-512.json -o docs/topology.png
"$1" plot scaling --model 70b --gpus 64..4096 -o docs/scaling.png
"$1" plot heatmap --model 405b --x gpus=64..4096 --y tp=2..16 -o docs/heatmap.png
"$1" plot cost --models 70b --clusters hgx-h100,gb200-nvl72 --gpus 64..1024 --tokens 1T --prices hgx-h100=2,gb200-nvl72=5 \
    --deadline 60d -o docs/cost.png
"$1" plot sensitivity --model 70b --gpus 512 -o docs/sensitivity.png
"$1" plot pareto --models 70b --clusters hgx-h100,gb200-nvl72 --gpus 64..1024 --tokens 1T --prices hgx-h100=2,gb200-nvl72=5 \
    -o docs/pareto.png
