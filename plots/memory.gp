# ---- memory. Data: index 0 the bars (x half plan rank peak worst parts..., pixels and GiB), index 1 the plans (from x, to x, capacity, label)
set tmargin at screen 1 - py(top)
set bmargin at screen py(bottom)
set xrange [0:width - left - right]
if (!exists("outside")) outside = 0
set yrange [0:highest * 1.1]
set grid y ls 1 back
set border 3
unset xtics
set ytics scale 0.4
set ylabel "GiB per GPU" tc rgb "#333333"
if (capacity > 0) {
    set label 1 sprintf("%.1f GiB\n%s", capacity, outside > 0 ? "available" : "capacity") at graph 1, first capacity left offset 0.6, 0.4 font font(10) tc rgb red
}
# of the ranks below their bars
set label 2 "rank" at graph 0, first 0 right offset -0.8, -0.9 font font(9) tc rgb muted
set style fill solid 1.0 border rgb "white"
set style textbox opaque noborder fillcolor rgb "white" margins 0.5, 0.3
total(worst, peak) = sprintf(worst == 1 ? "{/:Bold %.1f}" : "%.1f", peak)
do for [k=1:9] {
    if (int(parts / 2 ** (k - 1)) % 2 == 1) {
        entry_name = part_name[k]
        entry_color = part_color[k]
        eval legend_entry
    }
}
set macros
# optional elements are left out by macros: gnuplot 5.4 crashes on labels of which none is drawn
plan_labels = num_plans > 1 ? ", data index 1 using (($1 + $2) / 2):(0):4 with labels center offset 0, -2.3 font font(9) tc rgb '#333333' noenhanced notitle" : " "
stats data index 0 using 2 name "half" nooutput
rank_labels = half_max >= 6.5 ? ", data index 0 using 1:($2 >= 6.5 ? 0 : NaN):4 with labels center offset 0, -0.9 font font(9) tc rgb muted notitle" : " "
capacities = capacity > 0 ? ", capacity with lines lc rgb red lw 1.5 dt 2 notitle" : \
    ", data index 1 using 1:3:($2 - $1):(0) with vectors nohead lc rgb red lw 1.5 dt 2 notitle" . \
    ", data index 1 using 1:3:(sprintf('%.1f GiB', $3)) with labels left offset 0.5, 0.7 font font(10) tc rgb red notitle"
below(k) = k == 1 ? 0 : (sum [c=7:5 + k] column(c))
above(k) = (sum [c=7:6 + k] column(c))
plot for [k=1:9] data index 0 using 1:(0):($1 - $2):($1 + $2):(below(k)):(above(k)) \
    with boxxyerror lc rgb part_color[k] lw half_min > 3 ? 0.6 : 0.15 notitle @capacities, \
    data index 0 using 1:($6 == 1 || $2 >= 14.5 ? $5 : NaN):(total($6, $5)) with labels boxed center offset 0, 0.75 font font(10) tc rgb dark notitle \
    @rank_labels @plan_labels
