#!/bin/bash
# Installs into a folder, moves it, and uses what is there alone: the program finds its data, the exported names are those of
# the header, the C example compiles against the installed header with the shared and the static library, manual pages and
# completion are sound, and uninstalling leaves no file.
set -euo pipefail
echo "[ RUN      ] an installation works where it was moved"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "install: $*" >&2; exit 1; }
unset MESHSIM_CONFIGS MAKEFLAGS MAKELEVEL

make -s install DESTDIR="$scratch/staged" PREFIX=/usr >/dev/null
mv "$scratch/staged/usr" "$scratch/moved"
root=$scratch/moved
export PKG_CONFIG_PATH=$root/lib/pkgconfig LD_LIBRARY_PATH=$root/lib

found=$(cd / && "$root/bin/meshsim" info --json | grep -c "$root/.*share/meshsim" || true)
[ "$found" -gt 0 ] || fail "the moved program does not take its data from share/meshsim"
(cd / && "$root/bin/meshsim" predict --model 8b --gpus 64 --tp 4 --json >"$scratch/predicted.json") || fail "the moved program fails"

# names of the header, no others, all of one version
declared=$(sed -nE 's/^[a-z].*\b(meshsim_[a-z_]+)\(.*/\1/p' "$root/include/meshsim.h" | sort)
exported=$(nm -D --defined-only "$root/lib/libmeshsim.so.0" | awk '$2 != "A" { print $3 }' | sort)
[ "$exported" = "$(sed 's/$/@@MESHSIM_0/' <<<"$declared")" ] || fail "the library exports: $exported"
static=$(nm -g --defined-only "$root/lib/libmeshsim.a" | awk 'NF == 3 { print $3 }' | sort)
[ "$static" = "$declared" ] || fail "the static library defines: $static"
if readelf -d "$root/lib/libmeshsim.so.0" | grep NEEDED | grep -iE 'mpi|openblas|cuda|nccl'; then
    fail "the library needs what only runs need"
fi

cd "$scratch"
example=$root/share/doc/meshsim/examples/clusters.c
strict="-std=c99 -Wall -Wextra -Wpedantic -Werror"
cc $strict "$example" $(pkg-config --cflags --libs meshsim) -o shared || fail "the example does not compile"
cc $strict "$example" $(pkg-config --cflags meshsim) "$root/lib/libmeshsim.a" \
    $(pkg-config --libs $(pkg-config --print-requires-private meshsim)) -lpthread -ldl -lm -o static || fail "the example does not link statically"
./shared >shared.out 2>/dev/null || fail "the example fails"
./static >static.out 2>/dev/null || fail "the static example fails"
grep -q '^hgx-h200: [0-9.]* s a step' shared.out || fail "the example prints $(cat shared.out)"
cmp -s shared.out static.out || fail "shared and static libraries answer differently"
echo '#include <meshsim.h>' | g++ -x c++ -Wall -Wextra -Werror $(pkg-config --cflags meshsim) -fsyntax-only - ||
    fail "the header is no C++"

num=$(ls "$root"/share/man/man1/meshsim-*.1 | wc -l)
[ "$num" -eq "$("$root/bin/meshsim" help --json | grep -c '"example"')" ] || fail "$num manual pages of commands"
if command -v groff >/dev/null; then
    for page in "$root"/share/man/man1/*.1 "$root/share/man/man3/meshsim.3"; do
        warnings=$(groff -man -ww -Tutf8 "$page" 2>&1 >/dev/null)
        [ -z "$warnings" ] || fail "$page: $warnings"
    done
fi
bash -n "$root/share/bash-completion/completions/meshsim" || fail "bash completion"
words=$(PATH=$root/bin:$PATH bash -c '. "$1"; COMP_WORDS=(meshsim search --objective ""); COMP_CWORD=3; _meshsim; echo "${COMPREPLY[*]}"' \
    - "$root/share/bash-completion/completions/meshsim")
[[ $words == *goodput* ]] || fail "completion of --objective offers \"$words\""
if command -v zsh >/dev/null; then # the function runs, and what it hands to zsh's own parser of options has the words
    words=$(zsh -f -c '_arguments() { print -rl -- "$@" }; words=(meshsim search ""); CURRENT=3; . "$1"' - \
        "$root/share/zsh/site-functions/_meshsim" | grep '^--objective\[')
    [[ $words == *" goodput)" ]] || fail "zsh's completion of --objective has \"$words\""
fi
if command -v fish >/dev/null; then
    words=$(HOME=$scratch fish --no-config -c 'source $argv[1]; complete -C "meshsim search --objective "' \
        "$root/share/fish/vendor_completions.d/meshsim.fish")
    [[ $words == *goodput* ]] || fail "fish's completion of --objective offers \"$words\""
fi
[ -e "$root/share/meshsim/schemas/search-1.json" ] || fail "no schemas"

cd "$OLDPWD"
mkdir -p "$scratch/staged" && mv "$root" "$scratch/staged/usr"
make -s uninstall DESTDIR="$scratch/staged" PREFIX=/usr >/dev/null
left=$(find "$scratch/staged" -not -type d)
[ -z "$left" ] || fail "uninstalling leaves $left"
echo "[       OK ] an installation works where it was moved"
