#!/bin/sh
# SPDX-License-Identifier: MIT
# coverage.sh: how many branches of the readers of foreign bytes their tests and fuzz corpora reach, with clang and llvm-cov.
# Less than 95 % of a file is a failure; of the core, whose files also write, it is the functions that read, by the corpora
# alone.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
work=${NEBULA_COVERAGE_WORK:-$root/build/coverage}
jobs=$(nproc 2>/dev/null || echo 2)
least=95
readers='record/replay.c record/format.c record/save_file.c net/message.c net/netplay_exchange.c'
tests='test_record test_replay test_save_file test_verify test_verify_bytes test_bad_input_record
    test_netplay test_netplay_message test_bad_input_net'
targets='recording save netplay'
core_readers='src/frame/state.c src/frame/world_save.c src/base/handle.c'
core_targets='world states correction'
core_functions='nbi_states_check nbi_saved_part_next state.c:load_first state.c:provider_load nb_states_load world_save.c:take
world_save.c:take_u32 nbi_saved_table_take world_save.c:fill_spare world_save.c:saved_entity world_save.c:slot_of
world_save.c:has_valid_entities world_save.c:has_valid_rows world_save.c:check_table world_save.c:check_body
world_save.c:check_header world_save.c:swap_pools nbi_table_slot_last world_save.c:mark_blocks world_save.c:take_columns
world_save.c:take_rows world_save.c:load_table nb_world_load handle.c:is_waiting_slot handle.c:has_valid_counts
handle.c:has_valid_chain nb_handle_pool_is_valid'

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

# The core's readers, with nothing but what the corpora bring.
core_objects=
for target in $core_targets; do
    # shellcheck disable=SC2086
    clang $flags $counted -fsanitize=fuzzer "tests/fuzz/fuzz_$target.c" $core_readers "$work/core.a" -lm -pthread -o "$work/fuzz_$target"
    (cd "$work" && LLVM_PROFILE_FILE=fuzz_$target.coreraw "./fuzz_$target" -runs=0 "$root/tests/fuzz/corpus/$target" >"fuzz_$target.log" 2>&1) ||
        { tail -n 20 "$work/fuzz_$target.log" && exit 1; }
    core_objects="$core_objects -object $work/fuzz_$target"
done
"$profdata" merge -o "$work/core.profdata" "$work"/*.coreraw
# shellcheck disable=SC2086
"$cov" report -show-functions ${core_objects# -object } -instr-profile="$work/core.profdata" $core_readers >"$work/core.functions"

passed=0
failed=0
for function in $core_functions; do
    grep -q "^$function " "$work/core.functions" || { echo "coverage: no function $function" && failed=$((failed + 1)); }
done
# shellcheck disable=SC2086
row=$(echo $core_functions | tr ' ' '\n' | awk 'NR == FNR { is_reader[$1] = 1; next }
    is_reader[$1] { all += $(NF - 2); missed += $(NF - 1) } END { print all - missed, all, all ? 100 * (all - missed) / all : 0 }' - "$work/core.functions")
echo "$row" | awk '{ printf "states and worlds: %d of %d branches, %.2f%%\n", $1, $2, $3 }'
if echo "$row" | awk -v least=$least '{ exit !($3 >= least) }'; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
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
