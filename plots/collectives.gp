# ---- collectives. Data: one index a curve, then one a curve of measured points; bytes, time, bus bandwidth
array tint[4] = [blue, red, green, pink]
legend_y = height - top + 42
do for [k=1:num_curves] {
    entry_name = value(sprintf("curve_%d", k))
    entry_color = tint[k]
    eval legend_entry
}
set tmargin at screen 1 - py(top)
set bmargin at screen py(bottom)
set logscale x 2
set xrange [low:high]
set grid x y ls 1 back
set clip two
set xtics () scale 0.4
array prefix[3] = ["KiB", "MiB", "GiB"]
do for [p=1:3] { do for [n=0:(p < 3 ? 1 : 0)] {
    bytes = 2.0 ** (10 * p + 5 * n)
    set xtics add (sprintf("%d %s", 2 ** (5 * n), prefix[p]) bytes)
} }
set ytics scale 0.4
set xlabel "message size" tc rgb "#333333"
set format y "%g"
set macros
points(column) = num_measured > 0 ? sprintf(", for [k=1:num_curves] data index (num_curves + k - 1) using 1:%d with points pt 6 ps 0.8 lw 1.2 lc rgb tint[k] notitle", column) : " "
measured = points(2)

set multiplot
set rmargin at screen px(left + panel)
set logscale y
set yrange [least_time:most_time]
set label 92 "time (us)" at screen px(left), 1 - py(top - 16) left font font(10) tc rgb dark
plot for [k=1:num_curves] data index (k - 1) using 1:2 with lines lc rgb tint[k] lw 2 notitle @measured

unset label 90; unset label 91
do for [i=200:tag] { unset label i; unset object i }
set lmargin at screen px(left + panel + between)
set rmargin at screen px(left + 2 * panel + between)
unset logscale y
set yrange [0:most_bandwidth]
set label 92 "bus bandwidth (GB/s)" at screen px(left + panel + between), 1 - py(top - 16) left font font(10) tc rgb dark
measured = points(3)
plot for [k=1:num_curves] data index (k - 1) using 1:3 with lines lc rgb tint[k] lw 2 notitle @measured
unset multiplot
