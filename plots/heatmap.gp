# ---- heatmap. Data: column row value colour colour-of-the-text value remark
entry_name = best_text; entry_color = best_color; eval legend_entry
if (best_text ne worst_text) {
    entry_name = "to"; entry_color = middle_color; eval legend_entry
    entry_name = worst_text; entry_color = worst_color; eval legend_entry
}
entry_name = "does not fit (GiB that it needs)"; entry_color = 0xDDDDDD
if (num_large > 0) { eval legend_entry }
if (num_none > 0) {
    set label tag "–  no legal plan" at screen px(legend_x), py(legend_y) left font font(10) tc rgb "#333333"
}
set label 3 "each cell: the fastest plan with both" at screen px(width - 28), py(16) right font font(10) tc rgb muted
set tmargin at screen 1 - py(top)
set bmargin at screen py(bottom)
set xrange [0.5:num_x + 0.5]
set yrange [0.5:num_y + 0.5]
unset border
set xtics () scale 0 offset 0, 0.3
set ytics () scale 0
do for [k=1:num_x] { set xtics add (value(sprintf("x_%d", k)) k) }
do for [k=1:num_y] { set ytics add (value(sprintf("y_%d", k)) k) }
set label 1 x_name at graph 0.5, screen py(16) center font font(11) tc rgb dark
set label 2 y_name at screen px(14), graph 0.5 center rotate by 90 font font(11) tc rgb dark
set style fill solid 1.0 border rgb "#FFFFFF"
inset = 2.0 / cell_width
if (best_y > 0) {
    set object 1 rectangle from best_x - 0.5 + inset, best_y - 0.46 to best_x + 0.5 - inset, best_y + 0.46 fs empty border rgb red lw 3 front
}
plot data using 1:2:($1 - 0.5):($1 + 0.5):($2 - 0.5):($2 + 0.5):4 with boxxyerror lc rgb variable notitle, \
    data using 1:($2 + 0.16):6:5 with labels center font font(10) tc rgb variable noenhanced notitle, \
    data using 1:($2 - 0.2):7:5 with labels center font font(8) tc rgb variable noenhanced notitle
