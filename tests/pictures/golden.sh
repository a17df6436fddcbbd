#!/bin/sh
# SPDX-License-Identifier: MIT
# golden.sh [--write] DEMO COMPARE GOLDEN NEW: pictures of the scripted flight, drawn by lavapipe in lockstep into the folder
# NEW, are those of the folder GOLDEN; see compare_pictures.c for how near. --write makes GOLDEN anew instead.
set -u
is_writing=0
if [ "${1-}" = --write ]; then
    is_writing=1
    shift
fi
if [ $# -ne 4 ]; then
    echo "usage: golden.sh [--write] DEMO COMPARE GOLDEN NEW" >&2
    exit 2
fi
demo=$1 compare=$2 golden=$3 new=$4
# The lowest quality that has everything a picture can have, shadows too; few frames, as those between pictures draw
# nothing.
options='--quality 5 --size 240x135 --render-hz 6'
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/pictures/support.sh
. "$(dirname -- "$0")/support.sh"

needs_vulkan
if ! grep -q '^device .*llvmpipe' "$work/probe"; then
    echo "skipped: the golden pictures are lavapipe's, and this is another driver: $(grep '^device' "$work/probe")"
    exit 77
fi
rm -rf "$new"
# shellcheck disable=SC2086
lockstep $options --pictures "$new"
count=$(find "$new" -name '*.png' 2>/dev/null | wc -l)
[ "$count" -ge 5 ] || fail "$count pictures"
if [ $is_writing -eq 1 ]; then
    [ $failures -eq 0 ] || exit 1
    mkdir -p "$golden"
    rm -f "$golden"/*.png
    cp "$new"/*.png "$golden" && ls -l "$golden"
    exit
fi

[ "$(ls "$golden")" = "$(ls "$new")" ] || fail "other pictures: $(ls "$new")"
for file in "$new"/*.png; do
    name=$(basename -- "$file")
    [ -f "$golden/$name" ] || continue
    result=$("$compare" "$golden/$name" "$file") || fail "$name is another picture; both are in $golden and $new"
    echo "$name: $result"
done

# The comparison can fail, and does not where it should not.
# differs GOLDEN NEW: exit 1, and nothing else.
differs() {
    "$compare" "$1" "$2" >"$work/result"
    [ $? -eq 1 ]
}
set -- "$golden"/*.png
differs "$1" "$2" || fail "two pictures are the same: $1 $2"
for way in painted shifted darker rounded; do
    found=0
    for file in "$golden"/*.png; do
        "$compare" --make $way "$file" "$work/$way.png" || fail "$file was not made $way"
        if differs "$file" "$work/$way.png"; then found=$((found + 1)); fi
    done
    # Light and camera are the same in all pictures: one that shows a mistake is enough.
    case $way in
    painted) [ $found -eq $# ] || fail "a rectangle painted over was found in $found pictures of $#" ;;
    rounded) [ $found -eq 0 ] || fail "pixels rounded another way were found in $found pictures" ;;
    *) [ $found -gt 0 ] || fail "$way pictures were not found" ;;
    esac
done
"$compare" "$1" "$0" 2>"$work/result"
[ $? -eq 2 ] || fail "a script was taken for a picture"
[ $failures -eq 0 ] && echo "ok"
[ $failures -eq 0 ]
