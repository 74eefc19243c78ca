# ---- memory of a rank over a step. Data: index 0 the memory from each time on (time, memory categories from the bottom; s and GiB), index 1 the actions of the rank
# (start end kind micro-batch half)
set tmargin at screen 1 - py(top)
set bmargin at screen py(bottom)
set xrange [0:step_s * unit]
if (!exists("outside")) outside = 0
capacity = capacity - outside # room for what is drawn
highest = (peak > capacity ? peak : capacity) * 1.1
# the actions of the rank are drawn in a thin lane below 0
lane_px = num_boxes > 0 ? 22 : 0
gib_px = highest / (height - top - bottom - lane_px)
set yrange [-lane_px * gib_px:highest]
set grid y ls 1 back
set border 3
set xtics scale 0.4
set ytics scale 0.4
set xlabel "time (" . unit_name . ")" tc rgb "#333333" offset 0, 0.3
set ylabel "GiB" tc rgb "#333333"
# colours of the memory categories in the order of the stack, equal to those of the bars in memory.gp
array order[9] = [1, 3, 6, 7, 8, 2, 4, 5, 9]
set label 92 peak_text at screen px(left), 1 - py(68) left font font(10) tc rgb dark
do for [k=1:9] {
    if (strlen(part_name[k]) > 0) {
        entry_name = part_name[k]
        entry_color = part_color[order[k]]
        eval legend_entry
    }
}
set label 93 "GiB at the peak" at screen px(legend_x), py(legend_y) left font font(10) tc rgb muted
set label 1 sprintf("%.1f GiB\n%s", capacity, outside > 0 ? "available" : "capacity") at graph 1, first capacity left offset 0.6, 0.4 font font(10) tc rgb red

lane_top = -5 * gib_px; lane_foot = -19 * gib_px; lane_middle = 0.5 * (lane_top + lane_foot)
array lane_color[7] = [0xC9D6DF, 0x7D8F9C, 0x9AAAB6, 0x60717E, 0, 0, 0x333333]
array lane_name[7] = ["forward", "backward", "backward: input", "backward: weight", "", "", "optimizer"]
legend_x = left
legend_y = 16
do for [k=1:7] {
    if (num_boxes > 0 && int(kinds / 2 ** (k - 1)) % 2 == 1 && strlen(lane_name[k]) > 0) {
        entry_name = lane_name[k]
        entry_color = lane_color[k]
        eval legend_entry
    }
}
if (num_boxes > 0) { set label 94 "actions of the rank" at screen px(legend_x), py(legend_y) left font font(10) tc rgb muted }
low(half) = half == 1 ? lane_middle : lane_foot
high(half) = half == 2 ? lane_middle : lane_top
mean_px = num_boxes > 0 ? (width - left - right) / num_boxes : 0
set style fill solid 1.0 border rgb "white"
set macros
# optional elements are left out by macros
lane = num_boxes > 0 ? ", data index 1 using ($5 == 3 ? NaN : $1 * unit):(lane_foot):($1 * unit):($2 * unit):(low($5)):(high($5)):(lane_color[int($3) + 1]) " . \
    "with boxxyerror lc rgb variable lw (mean_px >= 14 ? 1 : mean_px >= 3 ? 0.35 : 0) notitle" : " "
outline = num_samples <= 400 ? ", data index 0 using ($1 * unit):(above(9)) with steps lc rgb dark lw 0.8 notitle" : " "
above(k) = (sum [c=2:k + 1] column(c))
label_side = peak_s / step_s < 0.85 ? "left" : "right"
room_px = (capacity - peak) / gib_px
below_peak = room_px > 0 && room_px < 30
set label 3 sprintf("{/:Bold peak %.1f}", peak) at first peak_s * unit, first peak front point pt 7 ps 0.8 lc rgb dark \
    font font(10) tc rgb dark offset (label_side eq "left" ? 0.7 : -0.7), (below_peak ? -0.8 : 0.7)
if (label_side eq "left") { set label 3 left } else { set label 3 right }
plot for [j=1:9] data index 0 using ($1 * unit):(above(10 - j)) with fillsteps lc rgb part_color[order[10 - j]] notitle, \
    capacity with lines lc rgb "white" lw 3 notitle, capacity with lines lc rgb red lw 1.5 dt 2 notitle @outline @lane
