#!/bin/sh
# SPDX-License-Identifier: MIT
# coverage.sh: how many branches of the readers of foreign bytes are reached, with clang and llvm-cov. Each file must reach
# 95 % by itself: all of it by its tests and fuzz corpora, and its functions that read by the corpora alone.
set -eu
. "$(dirname "$0")/files.sh"
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
work=${NEBULA_COVERAGE_WORK:-$root/build/coverage}
jobs=$(nproc 2>/dev/null || echo 2)
least=95
core_readers='src/frame/state/state.c src/frame/store/store_save.c src/base/handle.c'
parsers="$core_readers modules/record/replay.c modules/record/recording_format.c modules/record/save_file.c
    modules/net/message.c modules/net/netplay_exchange.c"
readers="$parsers modules/net/netplay_compare.c"
tests='frame/state/state frame/store/store frame/store/store_save base/handle bad_input/state bad_input/store
    record/state_image record/load record/record record/replay record/save_file record/verify record/verify_bytes
    bad_input/record/record net/netplay net/netplay_faults net/netplay_message net/netplay_strangers bad_input/net/net'
targets='store states correction recording save netplay'
# Those that take foreign bytes: not the ones that write, and not those that take nothing but the caller's arguments.
functions='nbi_states_check nbi_saved_part_next state.c:load_some state.c:load_all nbi_states_load
state.c:call_load state.c:provider_load nb_states_load store_save.c:take
store_save.c:take_u32 nbi_saved_table_take store_save.c:fill_spare store_save.c:saved_entity store_save.c:slot_of
store_save.c:has_valid_entities store_save.c:has_valid_rows store_save.c:check_table store_save.c:check_body
store_save.c:check_header store_save.c:swap_pools nbi_table_slot_last store_save.c:mark_blocks store_save.c:take_columns
store_save.c:take_rows store_save.c:load_table nb_store_load handle.c:is_waiting_slot handle.c:has_valid_counts
handle.c:has_valid_chain nb_handle_pool_is_valid
replay.c:open_bytes replay.c:read_all replay.c:scan_blocks replay.c:scan_block replay.c:misplaced replay.c:take_last
replay.c:take_block replay.c:reach replay.c:load_block replay.c:find_entry replay.c:reserve replay.c:walk_ticks
replay.c:read_events replay.c:find_key replay.c:unpack_key replay.c:take_key
nbi_head_read nbi_block_read nbi_tick_read recording_format.c:is_sized
save_file.c:read_head save_file.c:unpack save_file.c:take_apart save_file.c:open_bytes save_file.c:load_states
nbi_message_read message.c:read_head message.c:read_inputs message.c:read_run
netplay_exchange.c:impossible_of netplay_exchange.c:is_consistent netplay_exchange.c:take netplay_exchange.c:take_digests
netplay_exchange.c:take_time netplay_exchange.c:take_rtt netplay_exchange.c:refuse'

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
mkdir -p "$work/core" "$work/counted"
flags='-std=c17 -O0 -w -ffp-contract=off -Iinclude -Imodules/record/include -Imodules/net/include -Imodules -Isrc -Itests'
counted='-fprofile-instr-generate -fcoverage-mapping'
export flags counted work
sources_below src | xargs -P "$jobs" -n 1 sh -c 'clang $flags -c "$0" -o "$work/core/$(echo "$0" | tr / _).o"'
ar rc "$work/core.a" "$work"/core/*.o
# shellcheck disable=SC2086
printf '%s\n' $core_readers $(sources_below modules/record modules/net) |
    xargs -P "$jobs" -n 1 sh -c 'clang $flags $counted -c "$0" -o "$work/counted/$(echo "$0" | tr / _).o"'

count() { # source name flags [argument...]: builds and runs a program that counts
    source=$1 name=$2 linked=$3
    shift 3
    # shellcheck disable=SC2086
    clang $flags $linked $source "$work"/counted/*.o "$work/core.a" -lcmocka -lzstd -lm -pthread -o "$work/$name"
    # A process each: every case of a test has its own.
    (cd "$work" && LLVM_PROFILE_FILE=$name-%p.profraw "./$name" "$@" >"$name.log" 2>&1) || { tail -n 20 "$work/$name.log" && exit 1; }
}

objects=
for test in $tests; do
    name=$(echo "$test" | tr / _)
    source="tests/${test%/*}/test_${test##*/}.c tests/support/runner.c tests/support/faults.c @tests/support/faults.options"
    count "$source" "$name" '-fprofile-instr-generate'
    objects="$objects -object $work/$name"
done
fuzz_objects=
for target in $targets; do
    inputs=$work/corpus/$target
    sh scripts/corpus.sh --unpack "$target" "$inputs"
    count "tests/fuzz/fuzz_$target.c" "fuzz_$target" '-fprofile-instr-generate -fsanitize=fuzzer' -runs=0 "$inputs"
    fuzz_objects="$fuzz_objects -object $work/fuzz_$target"
done
"$profdata" merge -o "$work/corpora.profdata" "$work"/fuzz_*.profraw
"$profdata" merge -o "$work/all.profdata" "$work"/*.profraw

passed=0
failed=0
judge() { # text branches missed
    echo "$2 $3" | awk -v text="$1" '{ part = $1 ? 100 * ($1 - $2) / $1 : 0
        printf "%s: %d of %d branches, %.2f%%\n", text, $1 - $2, $1, part }'
    if [ $((100 * ($2 - $3))) -ge $((least * $2)) ] && [ "$2" -gt 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

for reader in $readers; do
    # The last three numbers of a row are branches, missed branches and the part that was reached.
    # shellcheck disable=SC2086
    row=$("$cov" report ${objects# -object } $fuzz_objects -instr-profile="$work/all.profdata" "$reader" 2>/dev/null |
        awk '/^TOTAL/ { print $(NF - 2), $(NF - 1) }')
    judge "$reader" "${row% *}" "${row#* }"
done
for reader in $parsers; do
    # shellcheck disable=SC2086
    "$cov" report -show-functions ${fuzz_objects# -object } -instr-profile="$work/corpora.profdata" "$reader" >"$work/functions" 2>/dev/null
    cat "$work/functions" >>"$work/all.functions"
    # shellcheck disable=SC2086
    row=$(printf '%s\n' $functions | awk 'NR == FNR { is_reader[$1] = 1; next }
        is_reader[$1] { all += $(NF - 2); missed += $(NF - 1) } END { print all + 0, missed + 0 }' - "$work/functions")
    judge "$reader by corpora" "${row% *}" "${row#* }"
done
for function in $functions; do
    grep -q "^$function " "$work/all.functions" || { echo "coverage: no function $function" && failed=$((failed + 1)); }
done
# shellcheck disable=SC2086
report_files coverage "$(echo $readers $tests $targets | wc -w)" "$(find "$work/corpus" -type f | wc -l) inputs" || failed=$((failed + 1))
echo "coverage: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
