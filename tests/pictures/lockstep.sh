#!/bin/sh
# SPDX-License-Identifier: MIT
# lockstep.sh DEMO: in lockstep the same seed gives the same state and, bit for bit, the same pictures, with any number of
# workers and at any frame rate; another seed gives others.
set -u
if [ $# -ne 1 ]; then
    echo "usage: lockstep.sh DEMO" >&2
    exit 2
fi
demo=$1
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/pictures/support.sh
. "$(dirname -- "$0")/support.sh"
needs_vulkan

# fly OPTION...: leaves the hashes of the state and of all pictures in $found.
fly() {
    lockstep --quality 0 --size 96x54 --pictures "$work/pictures" "$@"
    found=$(sed -n 's/^state hash  /state /p; s/^pictures  *\([0-9]*\) in .* hash /\1 pictures /p' "$work/out")
}

# As far as the ground: flames and dust, and animals near the camera, are what differs most easily.
fly --seconds 12.5 --workers 0 --render-hz 30
expected=$found
echo "$expected"
echo "$expected" | grep -Eq '^([2-9]|[1-9][0-9]) pictures [0-9a-f]{16}$' || fail "too few pictures to compare"
for options in '--workers 1 --render-hz 60' '--workers 3 --render-hz 30'; do
    # shellcheck disable=SC2086
    fly --seconds 12.5 $options
    [ "$found" = "$expected" ] || fail "with $options: $found"
done

fly --seconds 3.1 --render-hz 6
one=$(echo "$found" | grep pictures)
fly --seconds 3.1 --render-hz 6 --seed 2
[ "$(echo "$found" | grep pictures)" != "$one" ] || fail "another seed gave the same pictures: $one"
[ $failures -eq 0 ] && echo "ok"
[ $failures -eq 0 ]
