#!/bin/sh
# SPDX-License-Identifier: MIT
# check_hardening.sh BINARY...: each program or shared library has a stack protector, calls libc's checked functions, and is
# linked with full RELRO (relocations resolved at start, then read-only).
set -eu
. "$(dirname "$0")/files.sh"
readelf=${READELF:-readelf}
status=0

fail() { # binary problem
    echo "check_hardening: $1: $2" >&2
    status=1
}

[ $# -gt 0 ] || { echo "check_hardening: no binary given" >&2; exit 2; }
for binary in "$@"; do
    if ! headers=$("$readelf" -lWd "$binary" 2>&1); then
        fail "$binary" "not an ELF file"
        continue
    fi
    symbols=$("$readelf" --dyn-syms -W "$binary")
    echo "$headers" | grep -q 'GNU_RELRO' || fail "$binary" "no GNU_RELRO segment (-Wl,-z,relro)"
    echo "$headers" | grep -qE 'BIND_NOW|Flags:.*NOW' || fail "$binary" "binds lazily (-Wl,-z,now)"
    echo "$symbols" | grep -q 'UND __stack_chk_fail' || fail "$binary" "no stack protector (-fstack-protector-strong)"
    echo "$symbols" | grep -qE 'UND __[a-z]+_chk(@|$)' || fail "$binary" "no checked libc function (-D_FORTIFY_SOURCE=2)"
done
[ "$status" -eq 0 ] && report_files check_hardening $#
