#!/bin/sh
# SPDX-License-Identifier: MIT
# What the tests of pictures share; sourced, with $demo and $work set.
# shellcheck disable=SC2154
failures=0
fail() {
    echo "FAILED: $1"
    failures=$((failures + 1))
}

# Lavapipe where it is installed, also beside a card: pictures of another driver are others.
for file in /usr/share/vulkan/icd.d/lvp_icd*.json; do
    if [ -f "$file" ]; then export VK_DRIVER_FILES="$file" VK_ICD_FILENAMES="$file"; fi
done

# Ends the test as skipped (77) where there is nothing to draw with; with NB_TEST_VULKAN=1 that is a failure.
needs_vulkan() {
    "$demo" --gpu vulkan --virtual --frames 1 --size 16x16 >"$work/probe" 2>"$work/err" && return 0
    grep -q 'no Vulkan' "$work/err" || cat "$work/probe"
    cat "$work/err"
    grep -q 'no Vulkan' "$work/err" && [ "${NB_TEST_VULKAN:-0}" != 1 ] && echo "skipped: no Vulkan" && exit 77
    exit 1
}

# lockstep OPTION...: a run whose summary is in $work/out.
lockstep() {
    "$demo" --gpu vulkan --lockstep "$@" >"$work/out" 2>"$work/err" || fail "'$*' ended with $?"
    if [ -s "$work/err" ]; then
        cat "$work/err"
        fail "'$*' wrote to stderr"
    fi
}
