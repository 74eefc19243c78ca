# ---- scaling. Data: GPUs tokens/s linear MFU label found low high; nan where no plan was found
stats_pad = num_sizes > 1 ? (most_gpus * 1.0 / least_gpus) ** (0.5 / (num_sizes - 1)) : 1.5
lowest = least_gpus / stats_pad
set logscale x 2
set xrange [lowest:most_gpus * stats_pad]
set grid y ls 1 back
unset xtics
entry_name = "tokens/s of the fastest plan"; entry_color = blue; eval legend_entry
entry_name = "90 % interval"; entry_color = 0xC5DCEB; eval legend_entry
entry_name = "linear from the smallest (dashed)"; entry_color = dark; eval legend_entry
entry_name = "MFU"; entry_color = green; eval legend_entry
entry_name = "nothing fits"; entry_color = light
if (num_none > 0) { eval legend_entry }
set style fill solid 1.0 noborder

set style textbox opaque noborder fillcolor rgb "white" margins 0.3, 0.2
set multiplot
set tmargin at screen 1 - py(top)
set bmargin at screen 1 - py(top + upper)
set logscale y
set yrange [least_tokens / 1.5:most_tokens * 1.6]
set ytics () scale 0.4
decades = log10(most_tokens * 1.0 / least_tokens)
do for [d=0:15] { do for [digit in decades < 2.3 ? "1 2 5" : "1"] {
    set ytics add (gprintf("%.0s%c", digit * 10 ** d) digit * 10 ** d)
} }
set ylabel "tokens/s" tc rgb "#333333"
floor_tokens = least_tokens / 1.5
bands = num_none > 0 ? "data using ($6 == 0 ? $1 : NaN):(floor_tokens):($1 / stats_pad):($1 * stats_pad):(floor_tokens):(most_tokens * 1.6) with boxxyerror lc rgb light notitle, " : ""
set macros
plot @bands data using 1:7:8 with filledcurves lc rgb (0xC8000000 + blue) notitle, \
    data using 1:7:(0):($8 - $7) with vectors nohead lc rgb (0xA0000000 + blue) lw 2 notitle, \
    data using 1:2 with linespoints lc rgb blue lw 2 pt 7 ps 0.9 notitle, \
    data using 1:3 with lines lc rgb dark lw 1 dt 2 notitle, \
    data using 1:2:(sprintf("%.0f %%", 100 * $2 / $3)) with labels boxed left offset 0.9, -0.8 font font(9) tc rgb muted notitle

unset label 90; unset label 91
do for [i=200:tag] { unset label i; unset object i }
set tmargin at screen 1 - py(top + upper + between)
set bmargin at screen py(bottom)
unset logscale y
set format y "%g"
set yrange [0:most_mfu * 1.25]
set ytics autofreq most_mfu > 40 ? 20 : most_mfu > 8 ? 10 : 2 scale 0.4
set ylabel "MFU (%)" tc rgb "#333333"
bands = num_none > 0 ? "data using ($6 == 0 ? $1 : NaN):(0):($1 / stats_pad):($1 * stats_pad):(0):(most_mfu * 1.25) with boxxyerror lc rgb light notitle, " : ""
set label 3 "GPUs" at graph 0, first 0 right offset -0.8, -0.9 font font(10) tc rgb "#333333"
plot @bands data using 1:4 with linespoints lc rgb green lw 2 pt 7 ps 0.9 notitle, \
    data using 1:4:(sprintf("%.1f", $4)) with labels center offset 0, 0.9 font font(9) tc rgb dark notitle, \
    data using 1:(0):(sprintf("{/:Bold %d}", $1)) with labels center offset 0, -0.9 font font(10) tc rgb dark notitle, \
    data using 1:(0):5 with labels center offset 0, -2.3 font font(9) tc rgb muted noenhanced notitle
unset multiplot
