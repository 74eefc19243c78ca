A=${B:-${C:-$((1+(2*3)))}}
for i in a b; do X+="$i "; done
cat <<E
x
E
run.py --seq-length $A --moe-layer-freq "([0]*3+[1]*5)" --num-layers 8 `x` $(y) ${#z}