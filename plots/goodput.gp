# ---- goodput. Data: interval goodput goodput-at-half-the-MTBF goodput-at-twice-the-MTBF
array tint[4] = [red, green, pink, orange]
entry_name = "goodput"; entry_color = blue; eval legend_entry
entry_name = "half to twice the MTBF"; entry_color = 0xC6E2F5; eval legend_entry
do for [k=1:num_marks] {
    entry_name = value(sprintf("mark_%d", k))
    entry_color = tint[k]
    eval legend_entry
    at = value(sprintf("at_%d", k))
    set arrow k from first at, graph 0 to first at, graph 1 nohead back lc rgb tint[k] lw 1.5 dt k
}
set tmargin at screen 1 - py(top)
set bmargin at screen py(bottom)
set logscale x
set xrange [low:high]
floor_y = least > 90 ? 90 : 10 * floor(least / 10)
ceiling_y = most > 50 ? 100 : most * 1.3
set yrange [floor_y:ceiling_y]
set ytics scale 0.4
set xtics scale 0.4
set format "%g"
set grid x y ls 1 back
set xlabel sprintf("useful work between checkpoints (%s)", unit) tc rgb "#333333"
set ylabel "goodput (% of the time)" tc rgb "#333333"
set label 1 sprintf("{/:Bold %.1f %%}", goodput_1) at first at_1, first goodput_1 left offset 0.9, (goodput_1 - floor_y < 0.2 * (ceiling_y - floor_y) ? 1.2 : -1.4) front font font(11) tc rgb dark
set label 2 "" at first at_1, first goodput_1 point pt 7 ps 1.1 lc rgb red front
plot data using 1:3:4 with filledcurves fc rgb 0xC6E2F5 notitle, \
    data using 1:2 with lines lc rgb blue lw 2 notitle
