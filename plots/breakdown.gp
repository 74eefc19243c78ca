# ---- breakdown. Data: index 0 parts (plan from to part share), index 1 plans (plan step low high end total place name)
array tint[11] = [blue, orange, yellow, pink, red, 0x8C564B, 0xF4A582, 0x555555, grey, green, sky]
legend_x = 24
do for [k=1:num_parts] {
    if (int(parts / 2 ** (k - 1)) % 2 == 1) {
        entry_name = value(sprintf("title_%d", k))
        entry_color = tint[k]
        eval legend_entry
    }
}
set tmargin at screen 1 - py(top)
set bmargin at screen py(bottom)
set xrange [0:longest]
set yrange [num_plans - 0.5:-0.5]
set border 1
unset ytics
set grid x ls 1 back
set xtics scale 0.4
set xlabel sprintf("time of one step (%s)", unit) tc rgb "#333333"
set style fill solid 1.0 border rgb "white"
half = 0.27
set macros
# optional elements are left out by macros: gnuplot 5.4 crashes on labels of which none is drawn
intervals = num_intervals > 0 ? ", data index 1 using 3:($1 + half + 0.1):($4 - $3):(0) with vectors heads size screen 0.003, 90 lc rgb dark lw 1.5 notitle" : " "
plot data index 0 using 2:1:2:3:($1 - half):($1 + half):(tint[int($4)]) with boxxyerror lc rgb variable lw 0.6 notitle, \
    data index 0 using (($2 + $3) / 2):1:5:($4 == 2 || $4 == 3 || $4 == 4 || $4 == 7 || $4 == 9 || $4 == 11 ? dark : 0xFFFFFF) \
    with labels center font font(10) tc rgb variable notitle, \
    data index 1 using 2:1:(sprintf("{/:Bold %s}", strcol(6))) with labels left offset 0.8, 0 font font(10) tc rgb dark notitle, \
    data index 1 using (0):7:8 with labels right offset -1.2, 0 font font(9) tc rgb "#333333" noenhanced notitle @intervals
