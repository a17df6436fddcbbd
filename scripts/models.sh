#!/bin/sh
# SPDX-License-Identifier: MIT
# models.sh [NAME...]: runs the Spin models below tests/models, or those whose "file:variant" contains a NAME.
# Each model lists its variants in lines
#     // run: <variant> [-D<macro> ...] expect pass|fail [gcc: <flags>] [pan: <flags>] [size: full]
# The -D flags go to spin. `pass` must be an exhaustive search without errors: a search cut short by depth or memory fails.
# `fail` must end in a violated assertion, an invalid end state or a non-progress cycle.
# `size: full` leaves the variant to NB_TEST_SIZE=full, or to being asked for by name.
# With -DNP among the gcc flags the search is for non-progress cycles, else for safety.
set -eu
. "$(dirname "$0")/files.sh"
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
work=${NEBULA_MODELS_WORK:-$root/build/models}
models=${NEBULA_MODELS:-$root/tests/models}
# Memory for one search. The largest model so far needs far less; a machine with 8 GiB bears two at a time.
memory_mib=3072
# Steps of one execution. The search fails when a model needs more.
depth_max=1000000

# A model's path below the folder of models, without its ending.
name_of() { # file
    name=${1#"$models/"}
    echo "${name%.pml}"
}

if [ "${1:-}" != --one ]; then
    mkdir -p "$work"
    rm -rf "${work:?}"/*
    [ ! -d "$models" ] || find "$models" -type f -name '*.pml' | sort >"$work/files"
    touch "$work/files"
    while read -r model; do
        # One line per variant: file, then the run line. A model without any is an error, found by --one.
        if grep -q '^// run: ' "$model"; then
            grep '^// run: ' "$model" | sed "s|^// run: |$model |"
        else
            echo "$model none"
        fi
    done <"$work/files" | while read -r model variant rest; do
        id=$(name_of "$model"):$variant
        wanted=1
        case $rest in *'size: full'*) [ "${NB_TEST_SIZE:-}" = full ] || wanted=0 ;; esac
        if [ $# -gt 0 ]; then
            wanted=0
            for name in "$@"; do case $id in *"$name"*) wanted=1 ;; esac; done
        fi
        [ $wanted -eq 1 ] && printf '%s %s %s\n' "$model" "$variant" "$rest"
        :
    done >"$work/list"
    count=$(wc -l <"$work/list")
    index=0
    while read -r line; do
        index=$((index + 1))
        printf '%s %s %s\0' "$index" "$count" "$line"
    done <"$work/list" | xargs -0 -r -n 1 -P "$(nproc 2>/dev/null || echo 2)" sh "$0" --one || true
    passed=$(cat "$work"/*/result 2>/dev/null | grep -c '^ok$' || true)
    failed=$((count - passed))
    [ "$count" -gt 0 ] || { [ $# -eq 0 ] || { echo "models: none matches $*" >&2; exit 2; }; }
    report_files models "$(wc -l <"$work/files")" || failed=$((failed + 1))
    echo "models: $passed passed, $failed failed"
    [ "$failed" -eq 0 ]
    exit
fi

# --one "INDEX COUNT FILE VARIANT REST"
set -f
# shellcheck disable=SC2086
set -- $2
index=$1 count=$2 model=$3 variant=$4
shift 4
started=$(date +%s)
spin_flags='' gcc_flags='' pan_flags='' expect='' into=spin
for word in "$@"; do
    case $word in
    expect) into=expect ;;
    gcc:) into=gcc ;;
    pan:) into=pan ;;
    size:) into=size ;;
    *)
        case $into in
        spin) spin_flags="$spin_flags $word" ;;
        expect) expect="$expect$word" ;;
        gcc) gcc_flags="$gcc_flags $word" ;;
        pan) pan_flags="$pan_flags $word" ;;
        esac
        ;;
    esac
done
name=$(name_of "$model")
dir=$work/$(echo "$name" | tr / _).$variant
mkdir -p "$dir"
cd "$dir"

finish() { # ok|bad detail
    [ "$1" = ok ] || sed 's/^/    /' out 2>/dev/null | tail -n 25
    printf '[%s/%s] %-4s %-34s %-40s %s s\n' "$index" "$count" "$1" "$name:$variant" "$2" "$(($(date +%s) - started))"
    echo "$1" >result
    [ "$1" = ok ] || exit 1
    rm -f pan pan.* out
    exit 0
}

case $expect in
pass | fail) ;;
*) finish bad "no valid run line (expect pass|fail)" ;;
esac
# shellcheck disable=SC2086
spin -a $spin_flags "$model" >out 2>&1 || finish bad "spin refuses the model"
case " $gcc_flags " in
*" -DNP "*) mode='' pan_mode=-l ;;
*) mode=-DSAFETY pan_mode='' ;;
esac
# search COMPILER SECONDS: fails where that much processor time was not enough.
search() {
    # shellcheck disable=SC2086
    $1 -w $mode -DMEMLIM=$memory_mib $gcc_flags pan.c -o pan >out 2>&1 || finish bad "pan.c does not compile"
    code=0
    # shellcheck disable=SC2086,SC3045
    { (ulimit -t "$2" && ./pan $pan_mode -m$depth_max $pan_flags >out 2>&1) || code=$?; } 2>/dev/null # the shell's word on who was killed
    [ "$code" -lt 128 ]
}
# Most searches end within a second: gcc takes longer to compile one than it runs, tcc takes a hundredth of a second, and its
# code is as fast as that of gcc -O0. A model with a long search says -O2 among its flags for gcc.
quick='gcc -O0'
if command -v tcc >/dev/null 2>&1; then quick=tcc; fi
case " $gcc_flags " in
*' -O'*) search 'gcc -O2' 600 || true ;;
*) search "$quick" 2 || search 'gcc -O2' 600 || true ;;
esac

states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' out | head -n 1)
is_complete=1
grep -q -e 'Search not completed' -e 'search depth too small' -e 'out of memory' -e 'memory exhausted' -e 'reached -DMEMLIM' out && is_complete=0
grep -q 'errors: ' out || is_complete=0
is_refuted=0
grep -q -e 'assertion violated' -e 'invalid end state' -e 'non-progress cycle' out && grep -q 'errors: [1-9]' out && is_refuted=1
case $expect:$is_complete:$is_refuted in
pass:1:0) if grep -q 'errors: 0' out; then finish ok "holds in all $states states"; else finish bad "errors of an unknown kind"; fi ;;
pass:*:1) finish bad "violated, but it must hold" ;;
pass:*) finish bad "the search was cut short" ;;
fail:*:1) finish ok "refuted, as it must be" ;;
fail:*) finish bad "not refuted: the model does not see the mistake" ;;
esac
