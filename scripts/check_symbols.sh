#!/bin/sh
# SPDX-License-Identifier: MIT
# check_symbols.sh ROOT STATIC_LIBRARY SHARED_LIBRARY [MODULE_LIBRARY...]: the shared library exports nb_ names only, the static one defines nb_ and
# nbi_ names only, no object has mutable static state, and no object uses a symbol of a higher layer. Modules keep to the same
# names and have no state either, and use what is public of the core.
set -eu
. "$(dirname "$0")/files.sh"
root=$1 static=$2 shared=$3
shift 3
libraries=$((2 + $#))
nm=${NM:-nm}
status=0

fail() {
    echo "check_symbols: $1" >&2
    echo "$2" | sed 's/^/    /' >&2
    status=1
}

foreign=$("$nm" -D --defined-only "$shared" | awk '$NF !~ /^nb_/ { print $NF }')
[ -z "$foreign" ] || fail "exported by $shared:" "$foreign"
exported=$("$nm" -D --defined-only "$shared" | wc -l)
[ "$exported" -gt 0 ] || fail "$shared exports nothing" ""

for library in "$static" "$@"; do
    foreign=$("$nm" -g --defined-only "$library" | awk 'NF == 3 && $3 !~ /^nbi?_/ { print $3 }')
    [ -z "$foreign" ] || fail "defined by $library:" "$foreign"
done

# Constant tables of pointers are in .data.rel.ro and fine; anything in .data or .bss is a global. One is needed: fault_watches
# of platform_linux.c, because a signal handler gets no argument.
for library in "$static" "$@"; do
    mutable=$("$nm" --format=sysv --defined-only "$library" |
        awk -F'|' '$1 ~ /^fault_watches *$/ { next } NF >= 7 { gsub(/ /, "", $7); if ($4 ~ /OBJECT/ && $7 ~ /^(\.data|\.bss|\*COM\*)/ && $7 !~ /^\.data\.rel\.ro/) print $1, $7 }')
    [ -z "$mutable" ] || fail "mutable static state in $library:" "$mutable"
done

# What a module takes from the core is exported, so that it also works with the shared library; what it defines is not there
# already.
for library in "$@"; do
    private=$({ "$nm" -g --defined-only "$library" | awk 'NF == 3 { print "own", $3 }'
        "$nm" -D --defined-only "$shared" | awk '{ print "core", $NF }'
        "$nm" -g "$library" | awk '$1 == "U" { print "uses", $2 }'; } | awk '
        $1 == "core" { core[$2] = 1 }
        $1 == "own" { own[$2] = 1 }
        $1 == "uses" && $2 ~ /^nbi?_/ { uses[$2] = 1 }
        END {
            for (name in uses) if (!(name in own) && !(name in core)) print "uses " name ", which the core keeps to itself"
            for (name in own) if (name in core) print "defines " name " of the core"
        }')
    [ -z "$private" ] || fail "$library:" "$private"
done

layers=$(cd "$root" && sources_below src | sed 's|^src/||')
[ -n "$layers" ] || fail "no sources below $root/src" ""
upward=$("$nm" -A -g "$static" | awk -v layers="$layers" '
BEGIN {
    split("platform base tasks frame", names, " ")
    for (i in names) rank[names[i]] = i
    count = split(layers, files, "\n")
    for (i = 1; i <= count; ++i) {
        depth = split(files[i], part, "/"); stem = part[depth]; sub(/\.c$/, "", stem)
        if (stem in layer_of && layer_of[stem] != part[1]) print stem ".c exists in two layers"
        layer_of[stem] = part[1]
    }
}
{
    split($1, place, ":"); member = place[2]; sub(/\.(c\.)?o(bj)?$/, "", member)
    symbol = $NF; kind = $(NF - 1)
    sub(/.*:/, "", kind)
    if (symbol !~ /^nbi?_/) next
    if (kind == "U") { ++uses; user[uses] = member; used[uses] = symbol } else definer[symbol] = member
}
END {
    for (i = 1; i <= uses; ++i) {
        if (!(used[i] in definer)) { print user[i] ".c uses " used[i] ", which is not in the library"; continue }
        to = layer_of[definer[used[i]]]; from = layer_of[user[i]]
        if (rank[to] > rank[from]) print from "/" user[i] ".c uses " used[i] " of the higher layer " to
    }
}')
[ -z "$upward" ] || fail "calls that do not point down:" "$upward"

[ $status -eq 0 ] && report_files check_symbols $libraries "$exported exported"
