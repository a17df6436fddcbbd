#!/bin/sh
# SPDX-License-Identifier: MIT
# nebula_replay.sh PROGRAM GOLDEN BUILT HAS_PLANET: what the tool says of a recording from version 1 of the format, of one
# that is cut, of one that differs, and of what is none; how it verifies recordings with the games in the folder BUILT; and
# with which status it ends. HAS_PLANET is yes where the demo's game is built in.
set -eu
program=$1 golden=$2 built=$3 has_planet=$4
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

# What is in it.
expect 0 '^Exit status' --help
expect 0 '^ticks     6 from 100$' --info "$golden"
expect 0 '^seed      99$' --info "$golden"
expect 0 '^keys      2$' --info "$golden"
expect 0 '^end       whole: it is whole$' --info "$golden"
expect 0 '^tick 100 events 4 commands 1 hash a061c0b3bd10a044$' --list "$golden"
expect 0 '^tick 105 ' --list "$golden"
expect 3 '^end       cut: it is cut inside a block$' --info "$work/cut"
expect 3 '^end       cut: it has no end$' --info "$work/open"
expect 3 '^end       damaged: ' --info "$work/damaged"
expect 3 '^tick 103 ' --list "$work/damaged"
expect 2 'cut short in its head' "$work/head"
expect 2 'no recording' --info "$work/empty"
expect 2 'cannot be read' --list "$work/none"

# Two of them.
expect 0 ': no difference in 6 ticks$' --diff "$golden" "$golden"
expect 1 '^recordings ".*" and ".*damaged": tick 104: the second ends before it$' --diff "$golden" "$work/damaged"
expect 1 '^recordings ".*damaged" and ".*": tick 104: the first ends before it$' --diff "$work/damaged" "$golden"
expect 2 'cannot be read' --diff "$golden" "$work/none"

# The command line.
expect 2 'tick 999 is not in it; it has 6 ticks from tick 100' --seek 999 "$golden"
expect 2 '--seek takes a tick, a number, not x' --seek x "$golden"
expect 2 'unknown option --frobnicate' --frobnicate
expect 2 'an operand is missing for --diff' --diff "$golden"
expect 2 'an operand is missing for nebula-replay FILE'
expect 2 'too many operands' "$golden" "$golden"
expect 2 'too many operands' --diff "$golden" "$golden" "$golden"
expect 2 'a value must follow --game' "$golden" --game
expect 2 '--workers takes a number from 0 to 60, not many' --workers many "$golden"
expect 2 '--workers takes a number from 0 to 60, not 61' --workers 61 "$golden"

# Games.
"$built/tiny_recorder" "$work/tiny" 150
"$built/tiny_recorder" "$work/plain" 150 plain
"$built/tiny_recorder_wrong" "$work/wrong" 150
"$built/tiny_recorder_wrong" "$work/wrong_plain" 150 plain
head -c $(($(wc -c <"$work/tiny") - 100)) "$work/tiny" >"$work/tiny_cut"
# One byte of the last block of ticks.
size=$(wc -c <"$work/tiny")
{ head -c $((size - 150)) "$work/tiny" && printf 'X' && tail -c 149 "$work/tiny"; } >"$work/tiny_damaged"
right=$built/tiny_game.so wrong=$built/tiny_game_wrong.so

expect 0 '^verdict   every tick is as recorded$' --game "$right" "$work/tiny"
expect 0 '^ticks     150 from 0, 150 compared$' "$work/tiny" --game "$right" --workers 0
expect 0 '^100 %$' --game "$right" --workers 3 "$work/tiny"
# Not whole: the status says so, also where all that is there is as recorded.
expect 3 '^note      not whole: it is cut inside a block; ticks behind that were not compared$' --game "$right" "$work/tiny_cut"
expect 3 '^verdict   every tick is as recorded$' --game "$right" "$work/tiny_damaged"
expect 3 '^note      not whole: the content of a block is damaged; ticks behind that were not compared$' --game "$right" "$work/tiny_damaged"
expect 3 '^note      not whole: ' --seek 10 "$work/tiny_damaged" --game "$right"
expect 3 ': no difference in 120 ticks$' --diff "$work/tiny_damaged" "$work/tiny_damaged"
expect 0 '^ticks     11 from 120, 11 compared$' --seek 130 "$work/tiny" --game "$right"
expect 0 '^key       120 of ' --seek 130 "$work/tiny" --game "$right"
"$program" --seek 130 "$work/tiny" --game "$right" >"$work/seek" 2>/dev/null
if [ "$(sed -n 's/^recorded *//p' "$work/seek")" != "$(sed -n 's/^hash *//p' "$work/seek")" ]; then
    echo "--seek: the hash is not the recorded one"
    status=1
fi
for line in '^file      .*/tiny$' '^verdict   diverged: ' '^tick      100$' '^phase     FixedSim$' '^state     world$' '^column    things.x$' \
    '^row       before tick 120: .*row 3'; do
    expect 1 "$line" --game "$wrong" "$work/tiny"
done
expect 1 '^row       before tick 120: .*row 3' --game "$wrong" "$work/plain"
expect 2 '^verdict   recorded with other states' --game "$built/tiny_game_other.so" "$work/tiny"
expect 2 '^verdict   recorded by another game, and not simulated' --game "$right" "$golden"
expect 2 'no nebula_replay_game in' --game "$built/tiny_game_none.so" "$work/tiny"
expect 2 'the game cannot be loaded' --game "$work/none" "$work/tiny"
expect 0 ': no difference in 150 ticks$' --diff "$work/tiny" "$work/plain" --game "$right"
expect 1 '^recordings ".*/tiny" and ".*/wrong": tick 100: the same input, another hash: world/things.x; before tick 120: .*row 3' --diff "$work/tiny" "$work/wrong" --game "$right"
expect 1 ': tick 100: the same input, another hash; before tick 120: .*row 3' --diff "$work/plain" "$work/wrong_plain" --game "$right"
expect 1 ': tick 100: the same input, another hash; compare them with the game to name the state$' --diff "$work/tiny" "$work/wrong"
if [ "$has_planet" = yes ]; then
    expect 2 '^verdict   recorded by another game, and not simulated' "$work/tiny"
else
    expect 2 'no game is built in' "$work/tiny"
fi
[ $status -eq 0 ] && echo "nebula_replay: ok"
exit $status
