# ---- style, equal in all plots. Set format ("png", "svg", "pdf"), scale (2: twice as many pixels) or output to change them.
if (!exists("scale")) scale = 1.0
folder = ARG0
while (strlen(folder) > 0 && folder[strlen(folder):strlen(folder)] ne "/") { folder = folder[1:strlen(folder) - 1] }
if (!exists("output")) output = folder . name . "." . format
data = folder . name . ".dat"
set encoding utf8
set decimalsign "."
# titles are drawn smaller where the picture has no room for them, and below that it is widened
title_points = 14.0
subtitle_points = 10.0
if (!exists("title_left")) title_left = left
room = width - title_left - 12
if (11.8 * strlen(title) > room) title_points = 14.0 * room / (11.8 * strlen(title))
if (6.8 * strlen(subtitle) > room) subtitle_points = 10.0 * room / (6.8 * strlen(subtitle))
if (title_points < 10) title_points = 10
if (subtitle_points < 8) subtitle_points = 8
if (11.8 / 14 * title_points * strlen(title) > room + 1) width = title_left + 12 + 11.8 / 14 * title_points * strlen(title)
if (0.68 * subtitle_points * strlen(subtitle) > width - title_left - 11) width = title_left + 12 + 0.68 * subtitle_points * strlen(subtitle)
# font sizes are given in points of a PNG picture and scaled for the other formats
size_factor = format eq "svg" ? 4 / 3.0 : format eq "pdf" ? 0.96 : 1
font(points) = sprintf(",%.4g", points * size_factor)
if (format eq "png") set terminal pngcairo size width * scale, height * scale font "DejaVu Sans" . font(10) \
    fontscale scale linewidth scale enhanced background rgb "white"
if (format eq "svg") set terminal svg size width, height font "DejaVu Sans\\,Verdana\\,sans-serif" . font(10) \
    enhanced background rgb "white"
if (format eq "pdf") set terminal pdfcairo size width / 100.0 in, height / 100.0 in font "DejaVu Sans" . font(10) \
    enhanced background rgb "white"
if (strlen(output) > 0) set output output

px(x) = 1.0 * x / width       # pixels as a share of the picture
py(y) = 1.0 * y / height
set border 3 lc rgb "#444444" lw 1
set tics nomirror out scale 0.6 textcolor rgb "#333333"
set style line 1 lc rgb "#e3e3e3" lw 1 dt 1
# palette of Okabe and Ito (2008), distinguishable with any colour vision
blue = 0x0072B2; sky = 0x56B4E9; green = 0x009E73; orange = 0xE69F00; pink = 0xCC79A7; red = 0xD55E00
yellow = 0xF0E442; grey = 0xBBBBBB; light = 0xEEEEEE; dark = 0x222222; muted = 0x666666
set label 90 "{/:Bold " . title . "}" at screen px(title_left), 1 - py(26) left font font(title_points) tc rgb dark
set label 91 subtitle at screen px(title_left), 1 - py(49) left font font(subtitle_points) tc rgb muted
set lmargin at screen px(left)
set rmargin at screen 1 - px(right)

# legend_entry draws one entry of a legend (entry_name, entry_color) in one row, from the left end of the plot
unset key
tag = 200
legend_x = left
legend_y = height - top + 18
legend_entry = '\
    set object tag rectangle from screen px(legend_x), py(legend_y - 5) to screen px(legend_x + 13), py(legend_y + 5) fc rgb entry_color fs solid noborder front; \
    set label tag entry_name at screen px(legend_x + 19), py(legend_y) left font font(10) tc rgb "#333333"; \
    legend_x = legend_x + 19 + 7.1 * strlen(entry_name) + 22; \
    tag = tag + 1'

# colours and names of the memory categories; part_names lists the names separated by |
array part_color[9] = [blue, sky, green, orange, yellow, pink, 0x8C564B, 0x999999, 0xCCCCCC]
array part_name[9]
if (!exists("part_names")) part_names = ""
rest = part_names
do for [k=1:9] {
    cut = strstrt(rest, "|")
    part_name[k] = cut > 1 ? rest[1:cut - 1] : cut == 1 ? "" : rest
    rest = cut > 0 ? rest[cut + 1:*] : ""
}
