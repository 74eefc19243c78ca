#!/bin/sh
# Prints the longest functions, the median and the p90; fails above 80 lines a function or 600 lines
# a file.
set -eu
limit=${LIMIT:-80}
file_limit=${FILE_LIMIT:-600}
status=0
for file in "$@"; do
    lines=$(wc -l <"$file")
    if [ "$lines" -gt "$file_limit" ]; then
        echo "$file: $lines lines (limit $file_limit)"
        status=1
    fi
done
command -v ctags >/dev/null || { echo "fnlen: ctags is not installed" >&2; exit 1; }
ctags --language-force=C --kinds-C=f --fields=+ne --sort=no -o - "$@" |
awk -F'\t' '{ l = e = 0
              for (i = 4; i <= NF; i++) { if ($i ~ /^line:/) l = substr($i, 6); if ($i ~ /^end:/) e = substr($i, 5) }
              if (e) print e - l + 1 "\t" $1 "\t" $2 ":" l }' | sort -n |
awk -F'\t' -v limit="$limit" '
    { len[NR] = $1; row[NR] = $0 }
    END { if (NR == 0) { print "fnlen: no function was found"; exit 1 }
          for (i = NR; i > 0 && (i > NR - 5 || len[i] > limit); i--) print row[i]
          printf "functions %d  median %d  p90 %d  max %d (limit %d)\n", NR, len[int((NR + 1) / 2)], len[int(NR * 0.9 + 0.999)], len[NR], limit
          exit len[NR] > limit }' || status=1
exit $status
