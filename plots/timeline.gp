# ---- timeline. Data: rank start end kind micro-batch chunk half; seconds; half 0: whole lane, 1: upper, 2: lower half,
# 3: communication, in a thin lane below the actions, or behind them where lanes are low
set tmargin at screen 1 - py(top)
set bmargin at screen py(bottom)
num_lanes = int(num_lanes)
set xrange [0:step_s * unit]
set yrange [num_lanes - 0.45:-0.55]
set border 1
set xtics scale 0.6
set xlabel "time (" . unit_name . ")" tc rgb "#333333" offset 0, 0.3
set ylabel "pipeline rank" tc rgb "#333333"
set ytics 0, rank_step scale 0
gap = lane_px >= 10 ? 0.42 : 0.48
do for [i=0:num_lanes - 1] {
    set object (i + 1) rectangle from 0, i - gap to step_s * unit, i + gap fc rgb light fs solid noborder behind
}
# foot is the bottom of the actions; low and high are the lower and upper edge of a box
foot = communication_lane ? gap - 0.15 : gap
low(y, half) = half == 3 && communication_lane ? y + foot + 0.03 : half == 2 ? y + (foot - gap) / 2 : y - gap
high(y, half) = half == 3 ? y + gap : half == 1 ? y + (foot - gap) / 2 : y + foot

# later model chunks of a rank have lighter colours
mix(c, f) = int(c + (255 - c) * f)
lighter(rgb, f) = mix(rgb / 65536, f) * 65536 + mix(rgb / 256 % 256, f) * 256 + mix(rgb % 256, f)
array base[7] = [sky, green, blue, orange, yellow, pink, red]
shade(chunk) = num_chunks > 1 ? 0.5 * chunk / (num_chunks - 1) : 0
color(kind, chunk) = lighter(base[kind + 1], kind < 4 ? shade(chunk) : 0)
text_color(kind, chunk) = (kind == 2 && shade(chunk) < 0.3) || kind == 1 && shade(chunk) < 0.3 ? 0xffffff : dark

if (border_px > 0) { set style fill solid 1.0 border rgb "white" } else { set style fill solid 1.0 noborder }
label_px(m) = m < 10 ? 13 : m < 100 ? 17 : m < 1000 ? 24 : 32
seen(i) = int(kinds / 2 ** i) % 2 == 1
array kind_name[7] = ["forward", "backward", "backward: input", "backward: weight", "gathering parameters", "reducing gradients", "optimizer"]
do for [k=1:8] {
    if (k == 8 || seen(k - 1)) {
        entry_name = k == 8 ? "idle" : kind_name[k]
        entry_color = k == 8 ? light : base[k]
        eval legend_entry
    }
}

set macros
plot_labels = label_boxes ? ", data using (($2 + $3) / 2 * unit):((low($1, $7) + high($1, $7)) / 2):" . \
    "($5 >= 0 && ($3 - $2) * px_per_s >= label_px($5) ? sprintf('%d', $5) : ''):(text_color($4, $6)) " . \
    "with labels tc rgb variable font font(9)" : ""
plot data using ($2 * unit):1:($2 * unit):($3 * unit):(low($1, $7)):(high($1, $7)):(color($4, $6)) \
    with boxxyerror lc rgb variable lw border_px @plot_labels
