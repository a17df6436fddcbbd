#!/bin/sh
# SPDX-License-Identifier: MIT
# check_readme.sh ROOT STATIC_LIBRARY: the README is at most 150 lines, its first program at most 25, and that program
# compiles without warnings, runs and ends with 0. Files that it, CONTRIBUTING.md and the pages below docs name exist.
set -eu
. "$(dirname "$0")/files.sh"
root=$1 library=$2
readme=$root/README.md
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

fail() {
    echo "check_readme: $1" >&2
    exit 1
}

lines=$(wc -l <"$readme")
[ "$lines" -le 150 ] || fail "$lines lines, 150 at most"
awk '/^```c$/ { inside = 1; next } /^```/ { if (inside) exit } inside' "$readme" >"$work/first.c"
lines=$(wc -l <"$work/first.c")
[ "$lines" -gt 0 ] || fail "no first program (a block that starts with \`\`\`c)"
[ "$lines" -le 25 ] || fail "the first program has $lines lines, 25 at most"
"${CC:-gcc}" -std=c17 -Wall -Wextra -Wpedantic -Werror -I"$root/include" "$work/first.c" "$library" -pthread -o "$work/first" ||
    fail "the first program does not compile"
timeout 30 "$work/first" >/dev/null || fail "the first program ended with $?"

# Files and folders the text names must exist.
pages=$readme
[ ! -f "$root/CONTRIBUTING.md" ] || pages="$pages $root/CONTRIBUTING.md"
[ ! -d "$root/docs" ] || pages="$pages $(find "$root/docs" -type f -name '*.md' | sort)"
for page in $pages; do
    for path in $(grep -h -o '`[a-z][A-Za-z0-9_./]*/[A-Za-z0-9_./]*`' "$page" | tr -d '`' | sort -u); do
        [ -e "$root/$path" ] || fail "${page#"$root/"} names $path, which does not exist"
    done
done
report_files check_readme "$(echo "$pages" | wc -w)"
