#!/bin/sh
# SPDX-License-Identifier: MIT
# coverage.sh: how many branches of the readers of foreign bytes their tests and fuzz corpora reach, with clang and llvm-cov.
# Less than 95 % of a file is a failure.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
work=${NEBULA_COVERAGE_WORK:-$root/build/coverage}
jobs=$(nproc 2>/dev/null || echo 2)
least=95
readers='record/replay.c record/format.c record/save_file.c net/message.c net/netplay_exchange.c'
tests='test_record test_replay test_save_file test_verify test_verify_bytes test_bad_input_record
    test_netplay test_netplay_message test_bad_input_net'
targets='recording save netplay'

tool() { # name: with the version that Debian puts behind it, or without
    for candidate in "$1" "$1-14"; do
        if command -v "$candidate" >/dev/null 2>&1; then echo "$candidate" && return 0; fi
    done
    echo "coverage: no $1" >&2
    return 1
}
cov=$(tool llvm-cov)
profdata=$(tool llvm-profdata)

cd "$root"
rm -rf "${work:?}"
mkdir -p "$work/core"
flags='-std=c17 -g -O0 -w -ffp-contract=off -Iinclude -Imodules/record/include -Imodules/net/include -Imodules -Isrc -Itests'
counted='-fprofile-instr-generate -fcoverage-mapping'
export flags work
printf '%s\n' src/*/*.c | xargs -P "$jobs" -n 1 sh -c 'clang $flags -c "$0" -o "$work/core/$(echo "$0" | tr / _).o"'
ar rc "$work/core.a" "$work"/core/*.o

objects=
for test in $tests; do
    # shellcheck disable=SC2086
    clang $flags $counted "tests/$test.c" modules/record/*.c modules/net/*.c "$work/core.a" -lcmocka -lzstd -pthread -o "$work/$test"
    (cd "$work" && LLVM_PROFILE_FILE=$test.profraw "./$test" >"$test.log" 2>&1) || { tail -n 20 "$work/$test.log" && exit 1; }
    objects="$objects -object $work/$test"
done
for target in $targets; do
    # shellcheck disable=SC2086
    clang $flags $counted -fsanitize=fuzzer "tests/fuzz/fuzz_$target.c" modules/record/*.c modules/net/*.c "$work/core.a" -lzstd -pthread -o "$work/fuzz_$target"
    (cd "$work" && LLVM_PROFILE_FILE=fuzz_$target.profraw "./fuzz_$target" -runs=0 "$root/tests/fuzz/corpus/$target" >"fuzz_$target.log" 2>&1) ||
        { tail -n 20 "$work/fuzz_$target.log" && exit 1; }
    objects="$objects -object $work/fuzz_$target"
done
"$profdata" merge -o "$work/all.profdata" "$work"/*.profraw

passed=0
failed=0
for reader in $readers; do
    # The last three numbers of a row are branches, missed branches and the part that was reached.
    # shellcheck disable=SC2086
    row=$("$cov" report ${objects# -object } -instr-profile="$work/all.profdata" "modules/$reader" 2>/dev/null | grep '^TOTAL')
    part=$(echo "$row" | awk '{ sub(/%/, "", $NF); print $NF }')
    echo "$row" | awk -v name="$reader" '{ print name ": " $(NF - 2) - $(NF - 1) " of " $(NF - 2) " branches, " $NF }'
    if awk -v part="$part" -v least=$least 'BEGIN { exit !(part >= least) }'; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
echo "coverage: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
