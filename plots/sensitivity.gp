# ---- sensitivity. Data: row kept-less kept-more best-less best-more label; percent, nan where nothing is known or fits
legend_x = 24
entry_name = sprintf("number %g %% lower", change); entry_color = blue; eval legend_entry
entry_name = "higher"; entry_color = orange; eval legend_entry
notes = (has_best > 0 ? "circles: the best plan searched again" : "") . (has_best > 0 && has_none > 0 ? "; " : "") . \
    (has_none > 0 ? "none: the plan does not fit any more" : "")
set label tag notes at screen px(legend_x), py(legend_y) left font font(10) tc rgb muted
set tmargin at screen 1 - py(top)
set bmargin at screen py(bottom)
set xrange [-span:span]
set yrange [num_rows - 0.5:-0.5]
set border 1
unset ytics
set grid x ls 1 back
set xtics scale 0.4
set format x "%g"
set xlabel x_title tc rgb "#333333"
set arrow 1 from first 0, graph 0 to first 0, graph 1 nohead front lc rgb dark lw 1
set style fill solid 0.85 noborder
set macros
# optional elements are left out by macros: gnuplot 5.4 crashes on labels of which none is drawn
circles = has_best > 0 ? ", data using 4:($1 - 0.19) with points pt 6 ps 0.8 lw 1.6 lc rgb dark notitle, data using 5:($1 + 0.19) with points pt 6 ps 0.8 lw 1.6 lc rgb dark notitle" : " "
missing = has_none > 0 ? ", data using (0):($1 - 0.19):(valid(2) ? '' : 'none') with labels left offset 0.6, 0 font font(9) tc rgb blue notitle, data using (0):($1 + 0.19):(valid(3) ? '' : 'none') with labels left offset 0.6, 0 font font(9) tc rgb red notitle" : " "
plot data using (0):1:(0):(valid(2) ? $2 : 0):($1 - 0.36):($1 - 0.02) with boxxyerror lc rgb blue notitle, \
    data using (0):1:(0):(valid(3) ? $3 : 0):($1 + 0.02):($1 + 0.36) with boxxyerror lc rgb orange notitle, \
    data using (-span):1:6 with labels right offset -0.8, 0 font font(9) tc rgb dark noenhanced notitle @circles @missing
