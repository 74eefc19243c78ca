# ---- pareto. Data: one index a cluster; days GiB cost best label
array tint[7] = [blue, green, orange, pink, sky, red, muted]
do for [k=1:num_clusters] {
    entry_name = value(sprintf("cluster_%d", k)); entry_color = tint[k]; eval legend_entry
}
set label tag label_title at screen px(legend_x), py(legend_y) left font font(10) tc rgb muted
set tmargin at screen 1 - py(top)
set bmargin at screen py(bottom)
set logscale x
set xrange [x_low:x_high]
set yrange [0:y_high]
set grid x y ls 1 back
set xtics () scale 0.4
steps = log10(x_high / x_low) < 1 ? "1 1.2 1.5 2 2.5 3 4 5 6 8" : log10(x_high / x_low) < 2.5 ? "1 2 5" : "1"
do for [d=-3:9] { do for [digit in steps] { set xtics add (sprintf("%g", digit * 10.0 ** d) digit * 10.0 ** d) } }
set ytics scale 0.4
set xlabel "days of the whole training" tc rgb "#333333"
set ylabel "memory that a GPU needs (GiB)" tc rgb "#333333"
plot for [k=1:num_clusters] data index (k - 1) using 1:2 with points pt 7 ps 0.9 lc rgb (0xB8000000 + tint[k]) notitle, \
    for [k=1:num_clusters] data index (k - 1) using ($4 > 0 ? $1 : NaN):2 with points pt 7 ps 1.3 lc rgb tint[k] notitle, \
    data using 1:2:5 with labels left offset 0.9, 0 font font(9) tc rgb dark notitle
