#!/bin/sh
# SPDX-License-Identifier: MIT
# nebula_replay.sh PROGRAM GOLDEN: what the tool says of a recording from version 1 of the format, of one that is cut, of
# one that differs, and of what is none; and with which status it ends.
set -eu
program=$1 golden=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
status=0

expect() { # status text argument...
    code=$1 text=$2
    shift 2
    found=0
    "$program" "$@" >"$work/out" 2>&1 || found=$?
    if [ "$found" -ne "$code" ] || ! grep -q -e "$text" "$work/out"; then
        echo "nebula-replay $*: exit $found, wanted $code and '$text'; it said:"
        cat "$work/out"
        status=1
    fi
}

size=$(wc -c <"$golden")
head -c $((size - 1)) "$golden" >"$work/cut"
head -c $((size - 64)) "$golden" >"$work/open"
head -c 70 "$golden" >"$work/head"
{ head -c $((size - 200)) "$golden" && printf 'X' && tail -c 199 "$golden"; } >"$work/damaged"
: >"$work/empty"

expect 0 '^Exit status' --help
expect 0 '^ticks     6 from 100$' --info "$golden"
expect 0 '^seed      99$' --info "$golden"
expect 0 '^keys      2$' --info "$golden"
expect 0 '^end       whole: it is whole$' --info "$golden"
expect 0 '^tick 100 events 4 commands 1 hash a061c0b3bd10a044$' "$golden"
expect 0 '^tick 105 ' "$golden"
expect 0 '^key 104 of 48 bytes$' --seek 105 "$golden"
expect 0 '^no difference$' --diff "$golden" "$golden"
expect 4 '^end       cut: it is cut inside a block$' --info "$work/cut"
expect 4 '^end       cut: it has no end$' --info "$work/open"
expect 4 '^end       damaged: ' --info "$work/damaged"
expect 1 '^the second ends before tick 104$' --diff "$golden" "$work/damaged"
expect 3 'cut short in its head' "$work/head"
expect 3 'no recording' "$work/empty"
expect 3 'cannot be read' "$work/none"
expect 3 'cannot be read' --diff "$golden" "$work/none"
expect 2 'tick 999 is not in the recording' --seek 999 "$golden"
expect 2 "not a tick 'x'" --seek x "$golden"
expect 2 'unknown option' --frobnicate
expect 2 'wrong operands' --diff "$golden"
expect 2 'no file'
expect 2 'more than one file' "$golden" "$golden"
[ $status -eq 0 ] && echo "nebula_replay: ok"
exit $status
