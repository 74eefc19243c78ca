#!/bin/bash
# Calls that belong to one place: the heap to the arena and to documents, the environment to five
# files, ending the program to main, the handler of an interrupt, the arena and a forked child, the locale to nobody.
set -uo pipefail
status=0

# forbid WHAT PATTERN ALLOWED FILES...: fails on lines that match outside the allowed files
forbid()
{
    local what=$1 pattern=$2 allowed=$3
    shift 3
    local hits
    hits=$(grep -nHP "$pattern" "$@" /dev/null | grep -vP "^($allowed):" || true)
    if [ -n "$hits" ]; then
        echo "$what:"
        echo "$hits"
        status=1
    fi
}
sources=()
for file in "$@"; do
    case "$file" in tests/*) ;; *) sources+=("$file") ;; esac
done
[ ${#sources[@]} -gt 0 ] || exit 0
call='(?<![\w.>"])'
forbid "heap outside base/arena.c, base/json.c, the contexts of api/, backends and the memory stream of exec/launch/launch.c" "$call(malloc|calloc|realloc|free|strdup|strndup|aligned_alloc|posix_memalign)\s*\(" \
    'base/arena\.c|base/json\.c|api/(context|data_folder)\.c|base/static/cjson\.c|exec/launch/launch\.c|exec/(cpu|cuda|backends)/(\w*pool|\w*backend\w*|vendor_\w+|mpi|loop|null|parcel|crew\w*)\.(c|cu)' "${sources[@]}"
forbid "getenv outside api/data_folder.c, base/log.c, base/paths.c, cli/options/output.c, exec/launch/environment.c and exec/launch/launch.c" "$call(secure_)?getenv\s*\(" 'api/data_folder\.c|base/log\.c|base/paths\.c|cli/options/output\.c|exec/launch/(environment|launch)\.c' "${sources[@]}"
forbid "exit outside cli/cmd/main.c, cli/options/interrupt.c, base/arena.c and the children of exec/launch/launch.c" "$call(_?exit|_Exit|quick_exit)\s*\(" 'cli/cmd/main\.c|cli/options/interrupt\.c|base/arena\.c|exec/launch/launch\.c' "${sources[@]}"
forbid "text by fprintf, which lets control characters of names through: ms_print of base/print.h" "${call}v?fprintf\s*\((?!\s*stderr)" \
    'base/(table|json_write)\.c|plots/script\.c|cli/report/mesh_svg\.c|costmodel/schedule/schedule_csv\.c|exec/launch/launch_output\.c' "${sources[@]}"
forbid "setlocale" "${call}setlocale\s*\(" '-' "${sources[@]}"
forbid "feature switch outside exec/ and topo/site_xml.c" '#\s*if.*MS_WITH_' 'exec/[^:]+|topo/site_xml\.c' "${sources[@]}"
forbid "unfinished work" '\b(TODO|FIXME|XXX|HACK)\b' '-' "$@"
exit $status
