#!/bin/sh
# SPDX-License-Identifier: MIT
# Part of selftest.sh: corpus.sh makes the same archive of the same inputs, loses none, and leaves out those that have a name.
# Sourced.
# shellcheck disable=SC2154
found=$work/found
fuzz=$work/fuzzed/tests/fuzz/corpus
corpus() { NEBULA_ROOT=$work/fuzzed sh "$scripts/corpus.sh" "$@" >"$work/out" 2>&1; }
holds() { # text, then a command that must succeed
    text=$1
    shift
    cases=$((cases + 1))
    "$@" || { echo "selftest: corpus: $text:" && cat "$work/out" && status=1; }
}
contents() { find "$1" -type f -exec cat {} + | sort | tr -d '\n'; }

mkdir -p "$found/deep" "$fuzz/target"
echo b >"$found/deep/one"
echo c >"$found/two"
echo a >"$found/three"
echo c >"$fuzz/target/named"
holds 'it adds inputs' corpus target "$found"
cp "$fuzz/target.tar.gz" "$work/first.tar.gz"
rm -r "$fuzz/target.tar.gz" "$found/deep"
echo b >"$found/four"
chmod 600 "$found/four"
touch -t 200001010000 "$found/three"
holds 'it makes an archive' corpus target "$found"
holds 'the same inputs make another archive' cmp "$work/first.tar.gz" "$fuzz/target.tar.gz"
holds 'an input with a name is in the archive too' [ "$(tar -tzf "$fuzz/target.tar.gz" | wc -l)" -eq 2 ]
rm "$found"/*
echo d >"$found/five"
holds 'it adds to an archive' corpus target "$found"
holds 'it unpacks' corpus --unpack target "$work/unpacked"
holds 'inputs are lost' [ "$(contents "$work/unpacked")" = abcd ]
rm "$found/five"
for words in "target $found" '--unpack gone gone' 'target'; do
    code=0
    # shellcheck disable=SC2086
    corpus $words || code=$?
    holds "it does not refuse '$words'" [ $code -ne 0 ]
done
