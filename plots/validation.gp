# ---- predicted against measured. Data: measured predicted source run; index 0 step time (s), index 1 peak memory (GiB)
array tint[8] = [sky, red, green, orange, pink, blue, yellow, dark]
array shape[5] = [7, 5, 9, 13, 11]
if (!exists("unit_time")) unit_time = "s"
if (!exists("predicted")) predicted = "predicted"
tint_of(k) = tint[int(k - 1) % 8 + 1]
shape_of(k) = shape[int(k - 1) % 5 + 1]
size_of(k) = 0.75
# transparency: the first source has the most points and is drawn most transparent
veil_of(k) = k == 1 ? 0x70000000 : 0x20000000

do for [k=1:int(num_sources)] {
    entry_y = height - top - 10 - 20 * (k - 1)
    set label tag value(sprintf("source_%d", k)) at screen px(legend), py(entry_y) left point pt shape_of(k) ps 1 lc rgb tint_of(k) \
        offset 1, 0 font font(10) tc rgb "#333333"
    tag = tag + 1
}

set style fill solid 1.0 noborder
set logscale xy
set grid x y ls 1 back
set format "%g"
set samples 200
# bands end at the frame: gnuplot clips polygons that cross it at two sides wrongly
inside(y) = y < low ? low : y > high ? high : y
set clip two # the ends of a line may be rounded to just outside the axes
panel_left = left
# tics at 1, 2 and 5 of each decade where the axes have few decades
set_tics = '\
    set xtics () scale 0.4; set ytics () scale 0.4; \
    few = log10(high / low) < 2.3; \
    do for [d=-9:9] { do for [digit in few ? "1 2 5" : "1"] { \
        set xtics add (sprintf("%g", digit * 10 ** d) digit * 10 ** d); \
        set ytics add (sprintf("%g", digit * 10 ** d) digit * 10 ** d) \
    } }'
set macros
draw = '\
    set lmargin at screen px(panel_left); \
    set rmargin at screen px(panel_left + panel); \
    set tmargin at screen 1 - py(top); \
    set bmargin at screen py(bottom); \
    set xrange [low:high]; \
    set yrange [low:high]; \
    eval set_tics; \
    set xlabel "measured (" . unit . ")" tc rgb "#333333" offset 0, 0.2; \
    set ylabel predicted . " (" . unit . ")" tc rgb "#333333" offset 1, 0; \
    set label 92 panel_title at screen px(panel_left), 1 - py(top - 14) left font font(10) tc rgb dark; \
    plot "+" using 1:(inside($1 * 0.75)):(inside($1 * 1.25)) with filledcurves lc rgb 0xEDEDED notitle, \
        "+" using 1:(inside($1 * 0.9)):(inside($1 * 1.1)) with filledcurves lc rgb 0xDADADA notitle, \
        "+" using 1:1 with lines lc rgb muted lw 1 notitle, \
        data index block using 1:2:(size_of($3)):(shape_of($3)):(tint_of($3) + veil_of($3)) with points pt variable ps variable lc rgb variable notitle; \
    unset label 90; unset label 91; unset label 92; \
    do for [i=200:tag] { unset label i }; \
    panel_left = panel_left + panel + between'

set multiplot
if (num_time > 0) {
    low = low_time; high = high_time; unit = unit_time; block = 0; panel_title = title_time
    eval draw
}
if (num_memory > 0) {
    low = low_memory; high = high_memory; unit = "GiB"; block = 1; panel_title = title_memory
    eval draw
}
unset multiplot
