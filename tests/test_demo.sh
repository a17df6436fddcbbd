#!/bin/sh
# SPDX-License-Identifier: MIT
# test_demo.sh DEMO GOLDEN: the demo on its virtual clock prints exactly the golden text, with any number of workers; short
# real runs end well, with every frame's work right and with work cancelled; bad words end with one line on stderr and
# exit code 2.
set -u
if [ $# -ne 2 ]; then
    echo "usage: test_demo.sh DEMO GOLDEN" >&2
    exit 2
fi
demo=$1 golden=$2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failures=0
fail() {
    echo "FAILED: $1"
    failures=$((failures + 1))
}

{
    "$demo" --virtual --seconds 2 --ticks &&
        "$demo" --virtual --seconds 3 --hz 60000/1001 --render-hz 144 --workers 3 &&
        "$demo" --virtual --seconds 1 --teleport-every 0.4
} >"$work/out" 2>"$work/err" || fail "a virtual run ended with $?"
# The version changes with each release; everything else is the same everywhere.
sed 's/^nebula [0-9.]*:/nebula VERSION:/' "$work/out" >"$work/actual"
diff "$golden" "$work/actual" || fail "the output differs from $golden"
[ ! -s "$work/err" ] || fail "a virtual run wrote to stderr"

# real OPTION...: a run on the real clock. On a machine that is busy the loop says so (items 200 to 205): that is no failure.
real() {
    "$demo" "$@" >"$work/out" 2>"$work/err" || fail "'$*' ended with $?"
    if grep -Ev '^nebula: warning 20[0-5] loop_' "$work/err" >&2; then fail "'$*' wrote to stderr"; fi
    grep -Eq '^[0-9]+ frames, [0-9]+ ticks,.* [1-9][0-9]* frames checked, 0 wrong$' "$work/out" ||
        fail "'$*' did not sum up, or had wrong frames"
    if grep -q "$(printf '\033')" "$work/out"; then fail "escape codes in a file"; fi
}
real --seconds 0.3 --hz 100
real --seconds 0.3 --workers 0
real --seconds 0.5 --teleport-every 0.1
grep -Eq '^Cancelled [1-9][0-9]* stale tasks$' "$work/out" || fail "a teleport cancelled nothing"

real --seconds 2 --frames 7 --hz 1000 --seed 0xfeed --trace "$work/trace.json"
grep -q '^7 frames,' "$work/out" || fail "--frames 7 did not end after 7 frames"
[ "$(grep -c '"ph":"i"' "$work/trace.json")" -eq 7 ] || fail "--trace did not write 7 frames"

"$demo" --help >"$work/out" 2>"$work/err" || fail "--help ended with $?"
for option in --frames --seed --render-hz --workers --teleport-every --trace; do
    grep -q -e "$option" "$work/out" || fail "--help does not name $option"
done

refuse() {
    "$demo" "$@" >"$work/out" 2>"$work/err"
    code=$?
    [ $code -eq 2 ] || fail "'$*' ended with $code"
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "'$*' did not print one line on stderr"
    [ ! -s "$work/out" ] || fail "'$*' wrote to stdout"
}
refuse --frobnicate
refuse word
refuse ''
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
refuse --virtual --teleport-every 1 --workers 2
refuse --frames 0
refuse --frames 1.5
refuse --seed -1
refuse --seed 0x
refuse --trace
refuse --trace ''
[ $failures -eq 0 ] && echo "ok"
[ $failures -eq 0 ]
