#!/bin/bash
# Installs the packages of a folder into a bare Debian of its own, with what they depend on from Debian, and uses what is
# there alone: the program, its manual and completion, the C example with pkg-config, and Python. lintian finds no error.
set -euo pipefail
packages=$(realpath "$1")
fail() { echo "deb: $*" >&2; exit 1; }
for tool in lintian debootstrap; do
    command -v "$tool" >/dev/null || fail "$tool is needed (apt install $tool)"
done
[ "$(id -u)" -eq 0 ] || fail "only root may make a root folder of Debian"

errors=$(lintian --allow-root --fail-on none --tag-display-limit 0 "$packages"/*.changes | grep '^E:' || true)
[ -z "$errors" ] || fail "lintian finds"$'\n'"$errors"

scratch=$(mktemp -d)
root=$scratch/root
trap 'rm -rf --one-file-system "$scratch"' EXIT
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
debootstrap --variant=minbase "$suite" "$root" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} >"$scratch/log" 2>&1 ||
    fail "$(tail -3 "$scratch/log") (DEBIAN_MIRROR names another archive)"
cp -r /etc/apt/sources.list* /etc/apt/apt.conf.d "$root/etc/apt/"
cp /etc/resolv.conf /etc/hosts "$root/etc/"
install -D -t "$root/debs" "$packages"/*.deb
inside sh -c 'apt-get update && apt-get install -y --no-install-recommends man-db gcc libc6-dev pkg-config bash-completion' \
    >"$scratch/log" 2>&1 || fail "$(tail -3 "$scratch/log")"
inside sh -c 'dpkg -i /debs/*.deb; apt-get install -y --no-install-recommends -f && dpkg --configure -a' >"$scratch/log" 2>&1 ||
    fail "$(tail -5 "$scratch/log")"

inside meshsim search --gpus 512 --model 70b >"$scratch/found" || fail "the program fails"
grep -q 'tp' "$scratch/found" || fail "search prints $(cat "$scratch/found")"
inside sh -c 'rm -f /etc/dpkg/dpkg.cfg.d/docker; man -P cat meshsim-search' | grep -q 'meshsim search' || fail "no manual page"
words=$(inside bash -c '. /usr/share/bash-completion/completions/meshsim
    COMP_WORDS=(meshsim search --objective ""); COMP_CWORD=3; _meshsim; echo "${COMPREPLY[*]}"')
[[ $words == *goodput* ]] || fail "completion of --objective offers \"$words\""
inside sh -c 'cd /tmp && cc -Wall -Werror /usr/share/doc/libmeshsim-dev/examples/clusters.c \
    $(pkg-config --cflags --libs meshsim) -o clusters && ./clusters' >"$scratch/found" || fail "the C example fails"
grep -q '^hgx-h200: [0-9.]* s a step' "$scratch/found" || fail "the C example prints $(cat "$scratch/found")"
inside python3 -c 'import meshsim; print(meshsim.__name__)' >/dev/null || fail "no Python package"
echo "deb: the packages install in a bare Debian $suite, and program, manual, completion, library and Python work there"
