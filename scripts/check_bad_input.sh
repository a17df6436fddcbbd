#!/bin/sh
# SPDX-License-Identifier: MIT
# check_bad_input.sh [ROOT]: every public function gets a bad argument in tests/bad_input,
# or is exempt below, with a reason: so none is added without saying what it does with one.
set -eu
. "$(dirname "$0")/files.sh"
root=${1:-$(dirname "$0")/..}
cd "$root"

# "name: reason". Functions without an argument that can be bad, and nothing else.
exempt='
nb_version: has no argument
nb_hooks_default: has no argument
nb_arena_desc_default: has no argument
nb_async_desc_default: has no argument
nb_async_job_desc_default: has no argument
nb_budget_desc_default: has no argument
nb_channel_desc_default: has no argument
nb_engine_desc_default: has no argument
nb_fence_desc_default: has no argument
nb_gpu_desc_default: has no argument
nb_gpu_null_backend: has no argument
nb_gpu_vulkan_backend: has no argument
nb_gpu_vulkan_desc_default: has no argument
nb_graph_desc_default: has no argument
nb_guard_desc_default: has no argument
nb_handle_pool_desc_default: has no argument
nb_history_desc_default: has no argument
nb_input_desc_default: has no argument
nb_labels_desc_default: has no argument
nb_log_service_desc_default: has no argument
nb_link_desc_default: has no argument
nb_llu: takes any number
nb_loop_desc_default: has no argument
nb_netplay_desc_default: has no argument
nb_node_desc_default: has no argument
nb_random_make: takes any numbers
nb_random_words: takes any numbers
nb_random_u32: takes any numbers
nb_random_u64: takes any numbers
nb_random_float: takes any numbers
nb_random_double: takes any numbers
nb_recorder_desc_default: has no argument
nb_replay_desc_default: has no argument
nb_save_desc_default: has no argument
nb_scene_desc_default: has no argument
nb_scheduler_desc_default: has no argument
nb_states_desc_default: has no argument
nb_service_desc_default: has no argument
nb_services_desc_default: has no argument
nb_smooth_desc_default: has no argument
nb_snapshots_desc_default: has no argument
nb_store_stage_desc_default: has no argument
nb_table_desc_default: has no argument
nb_thread_arenas_desc_default: has no argument
nb_timelines_desc_default: has no argument
nb_token_desc_default: has no argument
nb_trace_desc_default: has no argument
nb_transform_identity: has no argument
nb_verify_desc_default: has no argument
nb_store_desc_default: has no argument
'

headers=$(public_headers)
tests=$(sources_below tests | grep '^tests/bad_input/') || { echo "check_bad_input: no tests of bad input below $root" >&2; exit 1; }

# shellcheck disable=SC2086
functions=$(EXEMPT=$exempt awk '
BEGIN {
    count = split(ENVIRON["EXEMPT"], lines, "\n")
    for (i = 1; i <= count; ++i) {
        if (lines[i] == "") continue
        name = lines[i]; sub(/:.*/, "", name)
        if (lines[i] !~ /^nb_[a-z0-9_]+: [^ ]/) problem("exempt without a reason: " lines[i])
        reason[name] = 1
    }
}

function problem(message) { print "check_bad_input: " message > "/dev/stderr"; bad = 1 }

FNR == 1 { is_test = FILENAME ~ /^tests\//; continued = 0; waiting = 0 }

# A comment or a string calls nothing.
{ line = $0; gsub(/"([^"\\]|\\.)*"/, "\"\"", line); sub(/\/\/.*/, "", line) }

is_test {
    while (match(line, /[A-Za-z_][A-Za-z0-9_]*/)) {
        used[substr(line, RSTART, RLENGTH)] = 1
        line = substr(line, RSTART + RLENGTH)
    }
    next
}

# Macro bodies declare nothing by themselves.
continued { continued = /\\$/; next }
/^[ \t]*#/ { continued = /\\$/; next }

# The name stands on a later line where the return type is long.
/^(NB_API|NB_EXPERIMENTAL|NB_INLINE)[ \t]/ { waiting = 1 }
waiting && match(line, /nbi?_[a-z0-9_]+\(/) {
    name = substr(line, RSTART, RLENGTH - 1)
    if (name !~ /^nbi_/) where[name] = FILENAME ":" FNR
    waiting = 0
}

END {
    for (name in where) {
        ++functions
        if (name in used) continue
        if (name in reason) { ++exempted; continue }
        problem(where[name] ": " name " is not in tests/bad_input")
    }
    if (functions == 0) problem("no public function found")
    if (bad) exit 1
    print functions " functions, " exempted + 0 " exempt"
}
' $headers $tests)
report_files check_bad_input "$(printf '%s\n' "$headers" "$tests" | grep -c .)" "$functions"
