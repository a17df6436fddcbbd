#!/bin/sh
# SPDX-License-Identifier: MIT
# refuses.sh DETERMINISM GOLDEN: the program names the first tick that differs from a file, and refuses files that end too
# early and words it does not know. A comparison that cannot fail is worse than none.
set -u
. "$(dirname "$0")/../support/work.sh"

expect() { # exit-code text argument...
    code=$1 text=$2
    shift 2
    "$program" "$@" >"$work/out" 2>&1
    actual=$?
    if [ $actual -ne "$code" ] || ! grep -q -e "$text" "$work/out"; then
        echo "FAILED: '$*': exit $actual, wanted $code and '$text'; it said: $(head -n 2 "$work/out")"
        failures=$((failures + 1))
    fi
}

# One hash with its digits moved on, in a line of its own and in one for many ticks.
sed 's/^123 \(.*\)\(.\)$/123 \2\1/' "$golden" >"$work/damaged"
expect 1 '^tick 123: [0-9a-f]*, and [0-9a-f]* in the file$' --ticks 1000 --workers 1 --compare "$work/damaged"
expect 0 '^123 ticks as in the file' --ticks 123 --workers 1 --compare "$work/damaged"
sed 's/^2999 run \(.*\)\(.\)$/2999 run \2\1/' "$golden" >"$work/damaged"
expect 1 '^tick 2999: .*; the first to differ is after 1999$' --ticks 3000 --workers 0 --compare "$work/damaged"
head -n 500 "$golden" >"$work/short"
expect 1 '^the file ends after tick 49[0-9]$' --ticks 1000 --workers 1 --compare "$work/short"
: >"$work/empty"
expect 1 '^the file ends' --ticks 1 --compare "$work/empty"

# What it prints is a file to compare with, tick by tick.
"$program" --ticks 300 --workers 1 >"$work/own" || failures=$((failures + 1))
expect 0 '^300 ticks as in the file' --ticks 300 --workers 0 --in-time --compare "$work/own"
sed 's/^250 \(.*\)\(.\)$/250 \2\1/' "$work/own" >"$work/damaged"
expect 1 '^tick 250: ' --ticks 300 --workers 0 --compare "$work/damaged"

expect 2 cannot --compare "$work/none"
for words in --frobnicate word '--ticks' '--ticks 0' '--ticks -1' '--ticks 1x' '--ticks 99999999999999999999' '--workers 61' \
    '--frame-rate 7' '--frame-rate 10001' '--compare' '--golden --compare x'; do
    # shellcheck disable=SC2086
    expect 2 '^usage: ' $words
done
[ $failures -eq 0 ] && echo "ok"
[ $failures -eq 0 ]
