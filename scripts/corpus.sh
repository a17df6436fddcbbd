#!/bin/sh
# SPDX-License-Identifier: MIT
# corpus.sh TARGET FOLDER: adds the inputs in FOLDER to the archive of a fuzz target, tests/fuzz/corpus/TARGET.tar.gz.
# corpus.sh --unpack TARGET FOLDER: puts all inputs of the target into FOLDER, those of the archive and the named ones.
# An input in an archive has the hash of its content for a name, as libFuzzer names it: the same inputs make the same archive.
# Inputs worth a name stay files, in tests/fuzz/corpus/TARGET.
set -eu
root=${NEBULA_ROOT:-$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)}
corpus=$root/tests/fuzz/corpus
is_unpacking=0
if [ "${1:-}" = --unpack ]; then
    is_unpacking=1
    shift
fi
[ $# -eq 2 ] || { echo "usage: corpus.sh [--unpack] TARGET FOLDER" >&2; exit 2; }
target=$1 folder=$2
archive=$corpus/$target.tar.gz

if [ $is_unpacking -eq 1 ]; then
    [ -f "$archive" ] || [ -d "$corpus/$target" ] || { echo "corpus: no inputs of $target" >&2; exit 1; }
    mkdir -p "$folder"
    [ ! -f "$archive" ] || tar -xzf "$archive" -C "$folder"
    [ ! -d "$corpus/$target" ] || cp "$corpus/$target"/* "$folder"
    exit 0
fi

[ -n "$(find "$folder" -type f 2>/dev/null | head -n 1)" ] || { echo "corpus: no inputs in $folder" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
mkdir "$work/inputs" "$work/named"
[ ! -f "$archive" ] || tar -xzf "$archive" -C "$work/inputs"
before=$(find "$work/inputs" -type f | wc -l)
if [ -d "$corpus/$target" ]; then
    find "$corpus/$target" -type f -exec sha1sum {} + | while read -r hash _; do : >"$work/named/$hash"; done
fi
find "$folder" -type f | while read -r input; do
    hash=$(sha1sum <"$input" | cut -d ' ' -f 1)
    [ -f "$work/named/$hash" ] || cp "$input" "$work/inputs/$hash"
done
# No order, time, owner or mode of this machine.
(cd "$work/inputs" && find . -type f | sed 's|^\./||' | LC_ALL=C sort |
    tar --format=ustar --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=0644 --no-recursion -cf - -T -) | gzip -9n >"$work/archive"
mkdir -p "$corpus"
cp "$work/archive" "$archive"
echo "corpus: $target.tar.gz: $(find "$work/inputs" -type f | wc -l) inputs, before $before"
