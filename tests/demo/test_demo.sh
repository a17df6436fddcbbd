#!/bin/sh
# SPDX-License-Identifier: MIT
# test_demo.sh DEMO GOLDEN: the demo on its virtual clock prints exactly the golden text; runs with any workers, frame rate
# and clock end in the same state; chunks are made and cancelled; bad words end with one line on stderr and exit code 2.
# NB_TEST_BRIEF=1, for builds with a sanitizer: each feature once, without the runs that repeat it with other numbers.
set -u
. "$(dirname "$0")/../support/work.sh"
demo=$program
is_brief=${NB_TEST_BRIEF:-0}
fail() {
    echo "FAILED: $1"
    failures=$((failures + 1))
}

# virtual OPTION...: a run on the virtual clock, its output added to the file.
virtual() {
    "$demo" --virtual "$@" >>"$work/out" 2>>"$work/err" || fail "a virtual run with '$*' ended with $?"
}
: >"$work/out"
: >"$work/err"
if [ "$is_brief" -eq 1 ]; then
    virtual --frames 60 --hz 60000/1001 --render-hz 144 --workers 3
else
    virtual --frames 20 --ticks --workers 0
    virtual --frames 60 --hz 60000/1001 --render-hz 144 --workers 3
    virtual --frames 60 --seed 0xBEEF --teleport-every 0.2
    # The version changes with each release; everything else is the same everywhere.
    sed 's/^nebula [0-9.]*:/nebula VERSION:/' "$work/out" >"$work/actual"
    diff "$golden" "$work/actual" || fail "the output differs from $golden"
fi
[ ! -s "$work/err" ] || fail "a virtual run wrote to stderr"

# real OPTION...: a run on the real clock. On a machine that is busy the loop says so (items 200 to 205), the fence names
# jobs that are late (751), and the budget tells what it does about it (971): that is no failure.
real() {
    "$demo" --gpu none "$@" >"$work/out" 2>"$work/err" || fail "'$*' ended with $?"
    if grep -Ev '^nebula: (warning 20[0-5] loop_|warning 751 fence_timeout|info 971 )' "$work/err" >&2; then fail "'$*' wrote to stderr"; fi
    grep -Eq '^run +[0-9.]+ s, [1-9][0-9]* ticks, [1-9][0-9]* frames' "$work/out" || fail "'$*' did not sum up"
    if grep -q "$(printf '\033')" "$work/out"; then fail "escape codes in a file"; fi
}
state() { sed -n 's/^state hash  //p' "$work/out"; }

# The same state at the end, whatever the workers, the frame rate, the clock and the trace.
real --virtual --frames 45 --workers 0
expected=$(state)
for options in '--workers 2 --render-hz 24' '--workers 1' '--workers 7 --render-hz 240' '--virtual --render-hz 144'; do
    # shellcheck disable=SC2086
    real --frames 45 $options
    [ "$(state)" = "$expected" ] || fail "the state differs with $options"
    [ "$is_brief" -eq 0 ] || break
done
# Pictures are written beside the frames, and what stands in their way is told in one line.
real --frames 400 --hz 1000 --gpu null --pictures "$work/a/b"
if grep -q '^picture  ' "$work/out"; then
    [ "$(head -c 4 "$work/a/b/1_orbit.png" | tail -c 3)" = PNG ] || fail "1_orbit.png is no picture"
else
    echo "skipped: pictures, in a build without them"
fi
# A device that draws nothing takes part in every frame, and changes nothing.
real --frames 45 --gpu null --summary "$work/summary.txt"
[ "$(state)" = "$expected" ] || fail "the state differs with a device"
grep -Eq '^device +[1-9][0-9]* pictures of [1-9][0-9]* frames' "$work/out" || fail "the device did not sum up"
grep -Eq '^picture +[1-9][0-9]* triangles' "$work/summary.txt" || fail "the summary tells nothing of the picture"
sed '$d' "$work/out" | tail -n "$(wc -l <"$work/summary.txt")" | cmp -s - "$work/summary.txt" || fail "the summary is another"
real --frames 45 --trace "$work/trace.json"
grep -q "^trace       $work/trace.json, to be opened in" "$work/out" || fail "nobody is told of the trace"
[ "$(state)" = "$expected" ] || fail "the state differs with a trace"
for name in FixedSim ParallelTasks animation questions streamer generate 'worker 0'; do
    grep -q "\"$name\"" "$work/trace.json" || fail "the trace does not name $name"
done
if [ "$is_brief" -eq 0 ]; then
    real --frames 45 --seed 2
    [ "$(state)" != "$expected" ] || fail "another seed gave the same state"
fi

# A flight from a file: as long as its last line says, the same state always, also when it is recorded and played again, and
# its pictures have the names that it gives them.
printf '# down\n0 walk\n0 teleport 10 -20\n0.1 turn 30\n+0.1 shot here\n' >"$work/flight.txt"
real --virtual --hz 75 --script "$work/flight.txt" --workers 0
flown=$(state)
grep -q '^run .* 90 ticks' "$work/out" || fail "a script does not say how long it is"
if [ "$is_brief" -eq 0 ]; then
    real --virtual --hz 75 --frames 90
    [ "$(state)" != "$flown" ] || fail "a script steers nothing"
fi
real --hz 75 --script "$work/flight.txt" --gpu null --pictures "$work/flown" --workers 2 --rewind-at 0.3
[ "$(state)" = "$flown" ] || fail "the state differs in a flight on the real clock"
if grep -q '^picture  ' "$work/out"; then
    [ "$(ls "$work/flown")" = here.png ] || fail "the pictures of a script are others"
fi
if [ "$is_brief" -eq 0 ] && "$demo" --virtual --hz 75 --script "$work/flight.txt" --record "$work/flight.nbr" >"$work/out" 2>"$work/err"; then
    real --virtual --replay "$work/flight.nbr"
    [ "$(state)" = "$flown" ] || fail "the state differs in a flight that is replayed"
fi

# Time that runs backwards comes back to where it was.
if [ "$is_brief" -eq 0 ]; then
    real --virtual --frames 45 --rewind-at 0.5
    [ "$(state)" = "$expected" ] || fail "the state differs after time ran backwards"
    grep -Eq '^rewound +30 ticks' "$work/out" || fail "time did not run backwards to its beginning"
fi
real --frames 45 --rewind-at 0.5 --workers 2
[ "$(state)" = "$expected" ] || fail "the state differs after time ran backwards on the real clock"
# In a terminal a key does it; `script` makes one. A frame reads 64 keys: so it is held for ten frames, however long they take.
if command -v script >/dev/null 2>&1 && script -qec true /dev/null >/dev/null 2>&1; then
    printf '%640s' '' | tr ' ' r | script -qec "$demo --gpu none --frames 45" /dev/null >"$work/out" 2>&1 || fail "a run in a terminal ended with $?"
    grep -Eq '^rewound +[1-9][0-9]* ticks' "$work/out" || fail "a key did not turn time"
    tr -d '\r' <"$work/out" | grep -q "^state hash  $expected" || fail "the state differs after a key turned time"
else
    echo "skipped: no 'script' here, or no terminals for it, so none whose key turns time"
fi

# Each tick is simulated again, and nothing is seen of it.
real --virtual --frames 45 --synctest 8
[ "$(state)" = "$expected" ] || fail "the state differs with --synctest"
grep -q '^synctest    332 ticks again, every one the same$' "$work/out" || fail "--synctest did not simulate its ticks again"

# Two players agree on every tick, however bad the way between them is, and end as they do over a perfect one.
if "$demo" --virtual --seconds 3 --lag 0 >"$work/out" 2>"$work/err"; then
    agreed=$(state)
    for options in '--lag 40 --jitter 300 --loss 10 --workers 3' '--lag 100 --loss 30'; do
        # shellcheck disable=SC2086
        "$demo" --virtual --seconds 3 $options >"$work/out" 2>"$work/err" || fail "players with $options ended with $?"
        [ "$(state)" = "$agreed" ] || fail "the players' state differs with $options"
        grep -Eq 'put right in [1-9][0-9]* rollbacks' "$work/out" || fail "nothing was put right with $options"
        grep -Eq '^drawn +[1-9][0-9]* corrections blended' "$work/out" || fail "no correction was blended with $options"
        [ "$is_brief" -eq 0 ] || break
    done
else
    grep -q 'without the module net' "$work/err" || fail "--lag failed"
    echo "skipped: players, in a build without the module net"
fi

# A recording is played again to the same state, also one of a run in which time ran backwards; it holds the planet that it
# is of. Without the module it is refused in one line.
if "$demo" --virtual --frames 45 --rewind-at 0.5 --record "$work/run.nbr" >"$work/out" 2>"$work/err"; then
    real --virtual --replay "$work/run.nbr"
    [ "$(state)" = "$expected" ] || fail "the state differs in a replay"
    grep -q '^replayed    45 ticks, every hash the same$' "$work/out" || fail "a replay did not compare its ticks"
    real --replay "$work/run.nbr" --seed 5 --workers 3 --record "$work/again.nbr"
    [ "$(state)" = "$expected" ] || fail "the state differs in a replay on the real clock"
    if [ "$is_brief" -eq 0 ]; then
        real --virtual --replay "$work/again.nbr"
        grep -q '^replayed    45 ticks, every hash the same$' "$work/out" || fail "a recorded replay is not replayed"
    fi
    head -c 100 "$work/run.nbr" >"$work/cut.nbr"
    for file in "$work/cut.nbr" "$golden" /no/such/file; do
        "$demo" --replay "$file" >"$work/out" 2>"$work/err" && fail "$file was replayed"
        [ "$(wc -l <"$work/err")" -eq 1 ] || fail "$file was not refused in one line"
    done
else
    grep -q 'built without recordings' "$work/err" || fail "--record failed"
    echo "skipped: recordings, in a build without them"
fi

# Chunks come, and teleports cancel what is under way: sooner on a fast machine, later on a slow one. Frames are short, so
# that a fast one has not done everything within one.
for seconds in 1 5 25; do
    real --seconds $seconds --teleport-every 0.1 --render-hz 1000
    grep -Eq '^chunks +[1-9][0-9]* made, .* [1-9][0-9]* cancelled' "$work/out" && break
done
grep -Eq '^Cancelled [1-9][0-9]* stale tasks$' "$work/out" || fail "no teleport told what it cancelled"
grep -Eq '^chunks +[1-9][0-9]* made, .* [1-9][0-9]* cancelled' "$work/out" || fail "no chunk was made, or none cancelled"

"$demo" --help >"$work/out" 2>"$work/err" || fail "--help ended with $?"
for option in --frames --seed --render-hz --workers --teleport-every --trace --record --replay --rewind-at --synctest --lag --loss --script; do
    grep -q -e "$option" "$work/out" || fail "--help does not name $option"
done

refuse() {
    "$demo" "$@" >"$work/out" 2>"$work/err"
    code=$?
    [ $code -eq 2 ] || fail "'$*' ended with $code"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "'$*' did not print one line on stderr"
    [ ! -s "$work/out" ] || fail "'$*' wrote to stdout"
}
refuse --gpu null --pictures "$golden/folder"
printf '0 walk\n1 dance\n' >"$work/bad.txt"
refuse --script "$work/bad.txt"
grep -q "bad.txt:2: there is no command 'dance'" "$work/err" || fail "a bad script is not told where"
refuse --script /no/such/file
refuse --script "$work/flight.txt" --replay x
refuse --script ''
refuse --summary /no/such/folder/file
refuse --frobnicate
refuse word
refuse ''
if [ "$is_brief" -eq 0 ]; then
    refuse --hz
    refuse --hz 0
    refuse --hz -60
    refuse --hz 60x
    refuse --hz 60/0
    refuse --hz 99999999999999999999
    refuse --hz 1/2
    refuse --render-hz 2000
    refuse --render-hz ' 60'
    refuse --seconds nan
    refuse --seconds inf
    refuse --seconds 0
    refuse --seconds 1e9
    refuse --seconds 3 --hz
    refuse --workers
    refuse --workers 61
    refuse --workers -1
    refuse --workers ''
    refuse --workers 2x
    refuse --workers 99999999999999999999
    refuse --teleport-every 0
    refuse --teleport-every -1
    refuse --teleport-every nan
    refuse --teleport-every 1s
    refuse --trace /no/such/folder/file
    refuse --frames 0
    refuse --rewind-at 0
    refuse --rewind-at x
    refuse --synctest 0
    refuse --synctest 65
    refuse --lag -1
    refuse --lag 501
    refuse --loss 91
    refuse --record ''
    refuse --replay
    refuse --frames 1.5
    refuse --seed -1
    refuse --seed 0x
    refuse --trace
    refuse --trace ''
fi
[ $failures -eq 0 ] && echo "ok"
[ $failures -eq 0 ]
