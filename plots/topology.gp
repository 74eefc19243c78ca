# ---- topology. Data in pixels from the top left: index 0 boxes, 1 links, 2 texts, 3 levels (y name domains bandwidth details axes)
set lmargin at screen 0
set rmargin at screen 1
set tmargin at screen 1
set bmargin at screen 0
set xrange [0:width]
set yrange [height:0]
unset border
unset tics
set style fill solid 1.0 noborder
set macros
# optional elements are left out by macros: gnuplot 5.4 warns of data without points
links = num_lines > 0 ? ", data index 1 using 1:2:(0):($3 - $2):4 with vectors nohead lw 1 lc rgb variable notitle" : " "
plot data index 0 using 1:3:1:2:3:4:5 with boxxyerror lc rgb variable notitle @links, \
    data index 2 using 1:2:3:4 with labels center font font(8) tc rgb variable noenhanced notitle, \
    data index 3 using (left + 22):1:(sprintf("{/:Bold %s}", strcol(2))) with labels left font font(10) tc rgb dark notitle, \
    data index 3 using (left + 120):1:3 with labels left font font(10) tc rgb "#333333" noenhanced notitle, \
    data index 3 using (left + 290):1:4 with labels left font font(10) tc rgb "#333333" noenhanced notitle, \
    data index 3 using (left + 390):1:5 with labels left font font(10) tc rgb muted noenhanced notitle, \
    data index 3 using (left + 700):1:6 with labels left font font(10) tc rgb dark noenhanced notitle
