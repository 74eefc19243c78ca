# ---- scaling of clusters. Data: one index a cluster; GPUs tokens/s linear low high MFU
array tint[7] = [blue, green, orange, pink, sky, red, muted]
do for [k=1:num_clusters] {
    entry_name = value(sprintf("cluster_%d", k)); entry_color = tint[k]; eval legend_entry
}
set label tag "dashed: linear from the smallest" at screen px(legend_x), py(legend_y) left font font(10) tc rgb muted
pad = num_sizes > 1 ? (most_gpus * 1.0 / least_gpus) ** (0.3 / (num_sizes - 1)) : 1.5
set logscale x 2
set xrange [least_gpus / pad:most_gpus * pad]
set grid x y ls 1 back
set xtics scale 0.4
set format x ""
set multiplot
set tmargin at screen 1 - py(top)
set bmargin at screen 1 - py(top + upper)
set logscale y
set yrange [least_tokens / 1.3:most_tokens * 1.3]
set ytics () scale 0.4
decades = log10(most_tokens * 1.0 / least_tokens)
do for [d=0:15] { do for [digit in decades < 2.3 ? "1 2 5" : "1"] {
    set ytics add (gprintf("%.0s%c", digit * 10 ** d) digit * 10 ** d)
} }
set ylabel "tokens/s" tc rgb "#333333"
plot for [k=1:num_clusters] data index (k - 1) using 1:4:5 with filledcurves lc rgb (0xC8000000 + tint[k]) notitle, \
    for [k=1:num_clusters] data index (k - 1) using 1:4:(0):($5 - $4) with vectors nohead lc rgb (0xA0000000 + tint[k]) lw 2 notitle, \
    for [k=1:num_clusters] data index (k - 1) using 1:2 with linespoints lc rgb tint[k] lw 2 pt 7 ps 0.9 notitle, \
    for [k=1:num_clusters] data index (k - 1) using 1:3 with lines lc rgb dark lw 1 dt 2 notitle

unset label 90; unset label 91
do for [i=200:tag] { unset label i; unset object i }
set tmargin at screen 1 - py(top + upper + between)
set bmargin at screen py(bottom)
unset logscale y
set format x "%g"
set format y "%g"
set yrange [0:most_mfu * 1.15]
set ytics autofreq most_mfu > 40 ? 20 : most_mfu > 8 ? 10 : 2 scale 0.4
set xlabel "GPUs" tc rgb "#333333"
set ylabel "MFU (%)" tc rgb "#333333"
plot for [k=1:num_clusters] data index (k - 1) using 1:6 with linespoints lc rgb tint[k] lw 2 pt 7 ps 0.9 notitle
unset multiplot
