# ---- cost. Data: one index a cluster; x cost x-low cost-low x-high cost-high GPUs chosen
array tint[7] = [blue, green, orange, pink, sky, red, muted]
do for [k=1:num_clusters] {
    entry_name = value(sprintf("cluster_%d", k)); entry_color = tint[k]; eval legend_entry
}
set label tag "numbers beside the points: GPUs" at screen px(legend_x), py(legend_y) left font font(10) tc rgb muted
set tmargin at screen 1 - py(top)
set bmargin at screen py(bottom)
set logscale xy
set xrange [x_low:x_high]
set yrange [y_low:y_high]
set grid x y ls 1 back
set xtics () scale 0.4
set ytics () scale 0.4
steps(low, high) = log10(high / low) < 1 ? "1 1.2 1.5 2 2.5 3 4 5 6 8" : log10(high / low) < 2.5 ? "1 2 5" : "1"
do for [d=-3:15] { do for [digit in steps(x_low, x_high)] {
    set xtics add (digit * 10.0 ** d >= 1000 ? gprintf("%.3s%c", digit * 10.0 ** d) : sprintf("%g", digit * 10.0 ** d) digit * 10.0 ** d)
} }
do for [d=-3:15] { do for [digit in steps(y_low, y_high)] {
    set ytics add (digit * 10.0 ** d >= 1000 ? sprintf("%g%s", digit * 10.0 ** (d % 3), word("k M G T P", d / 3)) : sprintf("%g", digit * 10.0 ** d) digit * 10.0 ** d)
} }
set xlabel x_title tc rgb "#333333"
set ylabel y_title tc rgb "#333333"
if (deadline > 0) {
    set arrow 1 from first deadline, graph 0 to first deadline, graph 1 nohead back lc rgb red lw 1.5 dt 2
    set label 1 sprintf("deadline %g days", deadline) at first deadline, graph 1 right offset -0.6, -0.8 font font(9) tc rgb red
}
if (budget > 0) {
    set arrow 2 from graph 0, first budget to graph 1, first budget nohead back lc rgb red lw 1.5 dt 3
    set label 2 "budget" at graph 1, first budget right offset -0.6, 0.7 font font(9) tc rgb red
}
plot for [k=1:num_clusters] data index (k - 1) using 3:4:($5 - $3):($6 - $4) with vectors nohead lc rgb (0xA0000000 + tint[k]) lw 5 notitle, \
    for [k=1:num_clusters] data index (k - 1) using 1:2 with linespoints lc rgb tint[k] lw 1.5 pt 7 ps 0.8 notitle, \
    for [k=1:num_clusters] data index (k - 1) using ($8 > 0 ? $1 : NaN):2 with points pt 6 ps 2.2 lw 2.5 lc rgb red notitle, \
    data using 1:2:7 with labels left offset 0.8, 0.6 font font(9) tc rgb dark notitle
