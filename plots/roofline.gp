# ---- roofline. Data: intensity rate share group kernel, longest kernel first
array tint[4] = [blue, orange, pink, green]
do for [k=1:4] {
    if (int(groups / 2 ** (k - 1)) % 2 == 1) {
        entry_name = value(sprintf("title_%d", k))
        entry_color = tint[k]
        eval legend_entry
    }
}
set label tag "area: share of the layer's time · pointwise: 1 FLOP an element" at screen px(legend_x), py(legend_y) left font font(10) tc rgb muted
# list of the longest kernels, at the right
list_x = width - right + 24
do for [k=1:num_named] {
    list_y = height - top - 8 - 24 * (k - 1)
    set label 300 + k sprintf("{/:Bold %.1f %%}", value(sprintf("share_%d", k))) at screen px(list_x + 52), py(list_y) right \
        font font(10) tc rgb tint[int(value(sprintf("group_%d", k)))]
    set label 400 + k value(sprintf("kernel_%d", k)) at screen px(list_x + 62), py(list_y) left font font(10) tc rgb "#333333"
}
if (num_others > 0) {
    list_y = height - top - 8 - 24 * num_named
    set label 500 sprintf("%.1f %% in %d others", share_others, num_others) at screen px(list_x + 62), py(list_y) left font font(10) tc rgb muted
}
set tmargin at screen 1 - py(top)
set bmargin at screen py(bottom)
set logscale xy
set xrange [low:high]
set yrange [least:most]
set grid x y ls 1 back
set xtics scale 0.4
set ytics scale 0.4
set format "%g"
set xlabel "arithmetic intensity (FLOP per byte of HBM traffic)" tc rgb "#333333"
set ylabel "TFLOP/s of one GPU" tc rgb "#333333"
set samples 400
set clip two
set style fill transparent solid 0.55 border
set label 1 sprintf("peak %.4g TFLOP/s", peak) at graph 0.99, first peak right offset 0, 0.7 font font(10) tc rgb red
ridge = peak / hbm
at = sqrt(low * ridge)
set label 2 sprintf("HBM %.3g TB/s", hbm) at graph 0.02, first peak left offset 0, 0.7 font font(10) tc rgb red
set arrow 3 from first ridge, graph 0 to first ridge, first peak nohead back lc rgb grey lw 1 dt 2
set label 3 sprintf("%.0f FLOP/B", ridge) at first ridge, graph 0 left offset 0.5, 0.7 font font(9) tc rgb muted
roof(x) = x * hbm < peak ? x * hbm : peak
plot roof(x) with lines lc rgb red lw 2 notitle, \
    data using 1:2:(0.7 + 7 * sqrt($3)):(tint[int($4)] + 0x30000000) with points pt 7 ps variable lc rgb variable notitle, \
    data using 1:2:(0.7 + 7 * sqrt($3)) with points pt 6 ps variable lc rgb "white" lw 0.7 notitle
