#!/bin/sh
# SPDX-License-Identifier: MIT
# mutants.sh [NAME...]: applies each deliberate mistake of tests/mutants/*.mutant (or those whose name contains a NAME) to a
# copy of the sources and expects its test to fail. A mutant whose text is no longer found once, or that does not compile,
# is a failure, and so is a test that fails without any mutant. The format of a mutant is in CONTRIBUTING.md.
set -eu
root=${NEBULA_ROOT:-$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)}
self=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)/mutants.sh
work=${NEBULA_MUTANTS_WORK:-$root/build/mutants}
jobs=$(nproc 2>/dev/null || echo 2)
# A deadlock is a way of failing: a run may take ten times as long as without the mutant and 10 s more, but no more than this.
run_timeout_s=30
# A mistake that only a race shows takes luck to be seen: what passed is run again, so many times in all. The number of
# runs it took is printed; more than one says that the test, or the mutant, leaves too much to chance.
runs_max=5

# --- the one place that knows how a test program is built; the kind is <runtime>[+<sanitizer>] ---

kind_of() { # test sanitizer
    case $1 in explore_* | simulate) printf explore ;; *) printf plain ;; esac
    [ -z "$2" ] || printf '+%s' "$2"
}

test_source() {
    case $1 in
    explore_*) echo "tests/explore/$1.c" ;;
    simulate) echo "tests/simulation/$1.c" ;;
    *) echo "tests/$1.c" ;;
    esac
}

library_sources() { # kind, in a tree
    case $1 in
    explore*)
        for file in $(find src -name '*.c' | sort); do case $file in */platform_*.c) ;; *) echo "$file" ;; esac; done
        for file in tests/explore/*.c tests/simulation/*.c modules/net/*.c; do
            case $file in */explore_*.c | */simulate.c | 'tests/simulation/*.c' | 'modules/net/*.c') ;; *) echo "$file" ;; esac
        done
        ;;
    *)
        find src -name '*.c' | sort
        # The demo's parts, for its tests; an archive leaves out what a test does not use.
        find demo -name '*.c' ! -path demo/main.c ! -path 'demo/without/*' | sort
        # The modules whose libraries are here.
        for file in modules/net/*.c modules/scene/*.c modules/gpu/*/*.c; do
            case $file in
            */vulkan_none.c) ! has_vulkan || continue ;;
            */gpu/vulkan/*.c) has_vulkan || continue ;;
            esac
            [ -f "$file" ] && echo "$file"
        done
        if [ -d modules/record ] && echo '#include <zstd.h>' | gcc -E - >/dev/null 2>&1; then printf '%s\n' modules/record/*.c; fi
        ;;
    esac
}

# Asked of the compiler once.
has_vulkan() {
    [ -n "${vulkan:-}" ] || { if echo '#include <vulkan/vulkan.h>' | gcc -E - >/dev/null 2>&1; then vulkan=yes; else vulkan=no; fi; }
    [ "$vulkan" = yes ]
}

# The shaders that tests include as "shaders/<name>.h", as cmake/shaders.cmake makes them.
build_shaders() {
    mkdir -p "$work/shaders/shaders"
    for file in "$root"/tests/shaders/*.*; do
        [ -f "$file" ] && command -v glslc >/dev/null 2>&1 || continue
        name=$(basename "$file")
        {
            printf '#include <stdint.h>\nstatic const uint32_t %s[] =\n' "$(echo "$name" | tr . _)"
            glslc -O --target-env=vulkan1.3 -mfmt=c -o - "$file"
            echo ';'
        } >"$work/shaders/shaders/$name.h"
    done
}

kind_flags() {
    case $1 in explore*) printf '%s' '-DNB_EXPLORE ' ;; esac
    case $1 in *+*) printf '%s' "-fsanitize=${1#*+}" ;; esac
}

compile() { # kind source object, in a tree
    # shellcheck disable=SC2046
    gcc -std=c17 -O1 -w -ffp-contract=off -Iinclude -Imodules/record/include -Imodules/net/include -Imodules/scene/include -Imodules/gpu/include -Imodules -Isrc -Itests -I"$work/shaders" -I. $(kind_flags "$1") -MMD -c "$2" -o "$3"
}

link_program() { # kind test_source program object...
    kind=$1 source=$2 program=$3
    shift 3
    # shellcheck disable=SC2046
    gcc $(kind_flags "$kind") "$@" -o "$program" -lcmocka -pthread $(sed -n 's|^// link:||p' "$source" | head -n 1)
}

object_of() { echo "$1" | sed 's|/|_|g; s|\.c$|.o|'; }

# --- reading a mutant ---

field() { sed -n "/^<<<</q; s/^$2: *//p" "$1" | head -n 1; }

# Applies all blocks below the tree; prints what is wrong and fails.
apply_mutant() { # mutant tree
    awk -v tree="$2" '
    function read_all(path,    line, text) {
        text = ""
        while ((getline line < path) > 0) text = text line "\n"
        close(path)
        return text
    }
    function apply(    text, at) {
        text = read_all(tree "/" file)
        at = index(text, old)
        if (old == "" || at == 0) { print "the old text is not in " file; bad = 1; return }
        if (index(substr(text, at + 1), old) != 0) { print "the old text is more than once in " file; bad = 1; return }
        ORS = ""
        print substr(text, 1, at - 1) new substr(text, at + length(old)) > (tree "/" file)
        close(tree "/" file)
        ORS = "\n"
        ++blocks
    }
    state == "" && /^file: / { file = $2 }
    /^<<<<$/ && state == "" { state = "old"; old = ""; first = 1; next }
    /^====$/ && state == "old" { state = "new"; new = ""; first = 1; next }
    /^>>>>$/ && state == "new" { state = ""; apply(); next }
    state == "old" { old = old (first ? "" : "\n") $0; first = 0 }
    state == "new" { new = new (first ? "" : "\n") $0; first = 0 }
    END { if (state != "" || blocks == 0) { if (!bad) print "no complete block"; bad = 1 }; exit bad }
    ' "$1"
}

# --- one mutant: build with what changed, run, expect a failure ---

run_program() { # directory program filter size log timeout_s
    (
        cd "$1"
        [ -z "$4" ] || export NB_TEST_SIZE="$4"
        # shellcheck disable=SC2086
        timeout -k 5 "$6" "$2" ${3:+"$3"} >"$5" 2>&1 || exit
    ) 2>/dev/null # where the shell would tell of a crash
}

read_fields() {
    name=$(basename "$1" .mutant)
    test_line=$(field "$1" test)
    test_name=${test_line%% *}
    filter=
    case $test_line in *' '*) filter=${test_line#* } ;; esac
    # The explorer's filter is a part of the name, cmocka's a pattern.
    case $test_name in explore_*) filter=$(echo "$filter" | tr -d '*') ;; esac
    kind=$(kind_of "$test_name" "$(field "$1" sanitizer)")
    size=$(field "$1" size)
    # Names this way of running the test.
    run_id=$(echo "$test_line $size" | tr -c 'a-z0-9_\n' '+')
}

report() { # index count verdict detail
    printf '[%s/%s] %-8s %-44s %s\n' "$1" "$2" "$3" "$name" "$4"
    mkdir -p "$work/$name"
    echo "$3" >"$work/$name/verdict"
    [ "$3" = caught ] || printf '%-8s %s %s\n' "$3" "$name" "$4" >>"$work/failed"
}

# The sources among library and test that read one of the changed files, by the table build_bases made.
affected_sources() { # base test_source changed...
    table=$1/dependencies own=$2
    shift 2
    awk -v own="$own" -v changed="$*" '
    BEGIN { count = split(changed, files, " ") }
    $1 ~ /^tests\/((explore\/explore|test)_|simulation\/simulate)/ && $1 != own { next }
    { for (i = 1; i <= count; ++i) for (j = 1; j <= NF; ++j) if ($j == files[i]) { print $1; next } }
    ' "$table"
}

one_mutant() { # index count mutant
    read_fields "$3"
    started=$(date +%s)
    dir=$work/$name
    base=$work/base/$kind
    rm -rf "$dir"
    mkdir -p "$dir/tree"
    cp -R "$root/src" "$root/include" "$root/demo" "$dir/tree/"
    [ ! -d "$root/modules" ] || cp -R "$root/modules" "$dir/tree/"
    ln -s "$root/tests" "$dir/tree/tests"
    case $(sed -n 's/^file: *//p' "$3") in *tests/*) report "$1" "$2" rotten "it changes a test, not the library" && return 1 ;; esac
    if ! problem=$(apply_mutant "$3" "$dir/tree"); then
        report "$1" "$2" rotten "$problem"
        return 1
    fi
    changed=$(sed -n 's/^file: *//p' "$3")
    cd "$dir/tree"
    source=$(test_source "$test_name")
    test_object=$base/$(object_of "$source")
    objects=
    # shellcheck disable=SC2086
    for file in $(affected_sources "$base" "$source" $changed); do
        object=$dir/$(object_of "$file")
        if ! compile "$kind" "$file" "$object" 2>"$dir/log"; then
            report "$1" "$2" rotten "$file does not compile: $(head -n 1 "$dir/log")"
            return 1
        fi
        if [ "$file" = "$source" ]; then test_object=$object; else objects="$objects $object"; fi
    done
    if [ -z "$objects" ] && [ "$test_object" = "$base/$(object_of "$source")" ]; then
        report "$1" "$2" rotten "$test_name does not use $changed"
        return 1
    fi
    # In an archive too, in the place of what it was: a program needs stand-ins only for what it uses.
    cp "$base/library.a" "$dir/library.a"
    # shellcheck disable=SC2086
    [ -z "$objects" ] || ar r "$dir/library.a" $objects
    if ! link_program "$kind" "$source" "$dir/program" "$test_object" "$dir/library.a" 2>"$dir/log"; then
        report "$1" "$2" rotten "it does not link: $(head -n 1 "$dir/log")"
        return 1
    fi
    code=0
    usual_s=$(cat "$base/$run_id.seconds" 2>/dev/null || echo $run_timeout_s)
    timeout_s=$((10 + 10 * usual_s))
    [ $timeout_s -le $run_timeout_s ] || timeout_s=$run_timeout_s
    runs=0
    while [ $code -eq 0 ] && [ $runs -lt $runs_max ]; do
        runs=$((runs + 1))
        run_program "$dir" "$dir/program" "$filter" "$size" "$dir/log" $timeout_s || code=$?
    done
    seconds=$(($(date +%s) - started))
    if [ $code -eq 0 ]; then
        report "$1" "$2" SURVIVED "$test_line, $runs runs, $seconds s: $(field "$3" why)"
        return 1
    fi
    how="exit $code"
    [ $code -ne 124 ] || how="time-out"
    if [ $runs -gt 1 ]; then
        how="$how in run $runs"
        echo "by luck  $name: $how" >>"$work/lucky"
    fi
    report "$1" "$2" caught "$test_line, $how, $seconds s"
    rm -rf "$dir/tree" "$dir/program" "$dir"/*.a "$dir"/*.o "$dir"/*.d
}

# --- the unmutated programs ---

# Compiles the library of each kind and each test once; later builds reuse the objects.
build_bases() { # mutant...
    if cat "$@" | grep -q '^test: test_\(gpu_\)\{0,1\}vulkan'; then build_shaders; fi
    for mutant in "$@"; do
        read_fields "$mutant"
        [ ! -f "$root/$(test_source "$test_name")" ] || echo "$kind $(test_source "$test_name")"
    done | sort -u >"$work/compile.list"
    for kind in $(cut -d ' ' -f 1 "$work/compile.list" | sort -u); do
        (cd "$root" && library_sources "$kind") | sed "s|^|$kind |"
    done >>"$work/compile.list"
    while read -r kind file; do
        mkdir -p "$work/base/$kind"
        printf '%s\0%s\0%s\0' "$kind" "$file" "$work/base/$kind/$(object_of "$file")"
    done <"$work/compile.list" | xargs -0 -r -n 3 -P "$jobs" sh "$self" --compile || return 1
    for base in "$work"/base/*; do
        [ -d "$base" ] || continue
        # An archive, so that a program needs stand-ins only for what it uses.
        # One line per source: the source, then everything it reads.
        (cd "$base" && cat ./*.d) | sed 's|[a-z_]*/\.\./||g; s| \./| |g; s|^[^ ]*\.o:||' |
            awk '{ more = sub(/\\$/, ""); line = line " " $0; if (!more) { print line; line = "" } }' >"$base/dependencies"
        (cd "$root" && library_sources "$(basename "$base")") | while read -r file; do echo "$base/$(object_of "$file")"; done |
            xargs ar rc "$base/library.a"
    done
}

# The test must pass on the real sources, and really run something.
one_base() { # mutant
    read_fields "$1"
    base=$work/base/$kind
    cd "$root"
    source=$(test_source "$test_name")
    if [ ! -f "$source" ]; then
        echo "rotten   $name: there is no $source"
        return 1
    fi
    program=$base/$test_name.$name
    link_program "$kind" "$source" "$program" "$base/$(object_of "$source")" "$base/library.a" || return 1
    log=$base/$name.log
    started=$(date +%s)
    if ! run_program "$base" "$program" "$filter" "$size" "$log" $run_timeout_s || grep -q 'Running 0 test' "$log"; then
        tail -n 20 "$log" | sed 's/^/    /'
        echo "$test_line fails, or runs nothing, without any mutant ($name)"
        return 1
    fi
    echo $(($(date +%s) - started)) >"$base/$run_id.seconds"
    rm -f "$program"
}

case ${1:-} in
--compile)
    cd "$root"
    compile "$2" "$3" "$4"
    exit
    ;;
--base)
    one_base "$2"
    exit
    ;;
--one)
    # shellcheck disable=SC2086
    one_mutant $2
    exit
    ;;
esac

rm -rf "${work:?}"
mkdir -p "$work"
for mutant in "$root"/tests/mutants/*.mutant; do
    [ -f "$mutant" ] || continue
    wanted=1
    if [ $# -gt 0 ]; then
        wanted=0
        for name in "$@"; do case $(basename "$mutant") in *"$name"*) wanted=1 ;; esac; done
    fi
    [ $wanted -eq 0 ] || echo "$mutant"
done >"$work/list"
count=$(wc -l <"$work/list")
if [ "$count" -eq 0 ]; then
    [ $# -eq 0 ] || { echo "mutants: none matches $*" >&2; exit 2; }
    echo "mutants: 0 passed, 0 failed"
    exit 0
fi

# shellcheck disable=SC2046
build_bases $(cat "$work/list") || { echo "mutants: the sources do not compile" >&2; exit 1; }

# Each different way of running a test is tried once.
while read -r mutant; do
    read_fields "$mutant"
    printf '%s\t%s\n' "$kind $test_line $size" "$mutant"
done <"$work/list" | awk -F'\t' '!seen[$1]++ { print $2 }' >"$work/base.list"
base_failed=0
tr '\n' '\0' <"$work/base.list" | xargs -0 -r -n 1 -P "$jobs" sh "$self" --base || base_failed=1

# One more at a time than there are cores: some do nothing but wait for their time-out.
index=0
while read -r mutant; do
    index=$((index + 1))
    printf '%s %s %s\0' "$index" "$count" "$mutant"
done <"$work/list" | xargs -0 -r -n 1 -P "$((jobs + 1))" sh "$self" --one || true

passed=$(cat "$work"/*/verdict 2>/dev/null | grep -c '^caught$' || true)
failed=$((count - passed + base_failed))
[ $base_failed -eq 0 ] || echo "mutants: a test fails without any mutant"
# Once more, where a reader looks first.
for told in lucky failed; do [ ! -f "$work/$told" ] || cat "$work/$told"; done
echo "mutants: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
