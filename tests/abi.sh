#!/bin/bash
# Holds api/meshsim.h against the record of what programs that were linked with libmeshsim.so.0 rely on: every recorded
# declaration and constant is still there, word for word, and every new one is recorded. UPDATE=1 records new ones;
# a declaration leaves the record only with a new SONAME. The output is that of a cmocka program, for tests/run_tests.sh.
set -euo pipefail
cd "$(dirname "$0")/.."
record=tests/data/abi/libmeshsim.so.0.txt
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Prints the declarations of a header, one a line without comments: the constants of an enum each on a line of their own.
declarations()
{
    "${CC:-cc}" -E -P "$1" | tr -s ' \n\t' ' ' | sed 's/#pragma [^#]*push(default)//; s/#pragma [^#]*pop//' |
        sed -E 's/typedef enum ([a-z_]+) \{([^}]*)\} [a-z_]+;/\2, typedef enum \1;/g' |
        sed -E 's/(MESHSIM_[A-Z]+ = [0-9]+),?/constant \1;/g; s/;,/;/g' |
        tr ';' '\n' | sed 's/^[ ,]*//; s/[ ,]*$//' | grep . | LC_ALL=C sort
}

# Prints what `header` breaks of the record, and what it has besides; fails if there is any.
compare()
{
    local gone new
    declarations "$1" >"$scratch/now"
    gone=$(LC_ALL=C comm -23 "$record" "$scratch/now")
    new=$(LC_ALL=C comm -13 "$record" "$scratch/now")
    [ -z "$gone" ] || { echo "abi: gone or changed, which needs a new SONAME:"; echo "$gone"; }
    [ -z "$new" ] || { echo "abi: not recorded (UPDATE=1 records them):"; echo "$new"; }
    [ -z "$gone$new" ]
}

if [ -n "${UPDATE:-}" ]; then
    declarations api/meshsim.h | LC_ALL=C sort -u - "$record" -o "$record"
fi

echo "[ RUN      ] the header declares what programs were linked against"
compare api/meshsim.h
echo "[       OK ] the header declares what programs were linked against"

# Headers that break programs: a parameter more, another value of a constant, a function less, and one that is new.
echo "[ RUN      ] a header that breaks programs is noticed"
for change in 's/(meshsim_context \*context, int num_threads)/(meshsim_context *context, long num_threads)/' \
    's/MESHSIM_ENOFIT = 3/MESHSIM_ENOFIT = 6/' 's/^void meshsim_plan_close(.*//' \
    's/^void meshsim_free/void meshsim_new(void);\n&/'; do
    sed "$change" api/meshsim.h >"$scratch/changed.h"
    ! cmp -s api/meshsim.h "$scratch/changed.h" || { echo "abi: $change changes nothing"; exit 1; }
    ! compare "$scratch/changed.h" >/dev/null || { echo "abi: $change is not noticed"; exit 1; }
done
echo "[       OK ] a header that breaks programs is noticed"
