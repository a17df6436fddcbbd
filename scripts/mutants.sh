#!/bin/sh
# SPDX-License-Identifier: MIT
# mutants.sh [--full | NAME...]: applies deliberate mistakes (tests/mutants/<source>.mutants) to copies of the sources, one at
# a time, and expects the test of each to fail. Without arguments it chooses those of what has changed and a sample of the
# others, with --full it takes all, with NAMEs those whose full name, <source>:<name>, contains one of them. Every run looks
# through all of them for texts and cases that are gone. CONTRIBUTING.md, "Mutants", has the format.
set -eu
root=${NEBULA_ROOT:-$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)}
scripts=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
work=${NEBULA_MUTANTS_WORK:-$root/build/mutants}
base=$work/base
tab=$(printf '\t')
export CC="${CC:-gcc}" NB_TEST_SIZE=quick # a mutant that needs a larger size says so

# The choice without arguments: what two cores judge in about a minute and a half.
commit_count=30 # mutants of what has changed in so many commits
changed_max=100
sample_size=30 # of all others

# A deadlock is a way of failing. Its time-out follows the time of the same case without the mutant: four times as long and
# 4 s more allow for what else the machine does meanwhile. Only a stuck case takes all of it.
timeout_s() { # milliseconds
    echo $((4 + $1 / 250))
}

# --- how a test program is built; its kind is plain or explore, with +<sanitizer> ---

has_header() { echo "#include <$1>" | $CC -E - >/dev/null 2>&1; }

# Asked of the compiler once; as in CMake, what needs a library that is missing is left out.
find_libraries() {
    has_zstd=no has_vulkan=no libraries='-lcmocka -pthread -ldl -lm'
    if has_header zstd.h; then has_zstd=yes libraries="$libraries -lzstd"; fi
    if has_header xxhash.h; then libraries="$libraries -lxxhash"; fi
    if has_header vulkan/vulkan.h && command -v glslc >/dev/null 2>&1; then has_vulkan=yes; fi
    export libraries
    # Each mutant is linked once: mold takes a fifth of the time. What it writes to -t differs, so not the programs without one.
    fast_link=
    if command -v mold >/dev/null 2>&1; then fast_link=-fuse-ld=mold; fi
    export fast_link
}

# What this machine lacks for a test; nothing where all is there.
lacks() { # test
    case $1 in
    record/* | */record/* | joint/*) [ $has_zstd = yes ] || echo "zstd's header" ;;
    gpu/vulkan/*) [ $has_vulkan = yes ] || echo "Vulkan's headers or glslc" ;;
    esac
}

# frame/store/guard.long_name_is_cut is in tests/frame/store/test_guard.c.
test_source() { # test
    case $1 in
    simulate) echo tests/simulation/simulate.c ;;
    *)
        file=${1%%.*}
        echo "tests/${file%/*}/test_${file##*/}.c"
        ;;
    esac
}

# What goes into the archive of a kind: the core, what each test program has, and the modules whose tests are among those on
# standard input. Left out is support/drivers.c: no test that loads drivers runs under a sanitizer here.
library_sources() { # kind
    case $1 in
    explore*)
        find src -name '*.c' ! -name 'platform_*.c'
        ls tests/support/runner.c tests/explore/explore.c
        find tests/simulation modules/net -name '*.c' ! -name simulate.c
        ;;
    *)
        find src -name '*.c'
        ls tests/support/runner.c tests/support/faults.c
        cat >"$work/tests"
        for module in modules/*; do
            grep -Eq "^joint/|(^|/)${module#*/}/" "$work/tests" || continue
            find "$module" -name '*.c' | case $has_vulkan in yes) grep -v '/vulkan_none\.c$' ;; *) grep -v '/gpu/vulkan/' ;; esac
        done
        ;;
    esac 2>/dev/null || true
}

kind_flags() {
    case $1 in explore*) printf '%s ' -DNB_EXPLORE -U_FORTIFY_SOURCE ;; esac
    case $1 in *+*) printf '%s' "-fsanitize=${1#*+}" ;; esac
}

# Relative to a tree.
compile_flags() { # kind
    printf '%s ' -std=c17 -O1 -w -ffp-contract=off -Iinclude -Isrc -Imodules -Itests -I. "-I$work/shaders"
    for module in "$root"/modules/*; do printf '%s ' "-Imodules/${module##*/}/include"; done
    kind_flags "$1"
}

link_flags() { # kind
    kind_flags "$1"
    case $1 in explore*) ;; *) if [ -f "$root/tests/support/faults.options" ]; then printf ' @%s' "$root/tests/support/faults.options"; fi ;; esac
}

object_of() { echo "$1" | sed 's|/|_|g; s|\.c$|.o|'; }
program_of() { object_of "$(test_source "$1")" | sed 's|\.o$||'; } # test

# The shaders that tests include as "shaders/<name>.h", as cmake/shaders.cmake makes them.
build_shaders() {
    mkdir -p "$work/shaders/shaders"
    find tests -path '*/gpu/*/shaders/*' -type f | while read -r file; do
        name=$(basename "$file")
        {
            printf '#include <stdint.h>\nstatic const uint32_t %s[] =\n' "$(echo "$name" | tr . _)"
            glslc -O --target-env=vulkan1.3 -mfmt=c -o - "$file"
            echo ';'
        } >"$work/shaders/shaders/$name.h"
    done
}

# --- the unmutated programs, kept from run to run ---

# A ninja file of the archive of each kind and of one program per file of tests.
write_ninja() { # list of mutants
    cut -f 2,3 "$1" | sort -u >"$work/wanted"
    for kind in $(cut -f 2 "$work/wanted" | sort -u); do
        grep "$tab$kind\$" "$work/wanted" | library_sources "$kind" | sort | sed "s|^|$kind library |"
        grep "$tab$kind\$" "$work/wanted" | cut -f 1 | while read -r test; do test_source "$test"; done | sort -u | sed "s|^|$kind test |"
        echo "$kind flags $(compile_flags "$kind")"
        echo "$kind link $(link_flags "$kind")"
    done | awk -v base="$base" -v cc="${CMAKE_C_COMPILER_LAUNCHER:-} $CC" -v ld="$CC" -v libraries="$libraries" '
        function object(kind, source) { gsub("/", "_", source); sub(/\.c$/, ".o", source); return base "/" kind "/" source }
        BEGIN {
            print "builddir = " base
            printf "rule cc\n  command = %s $flags -MMD -MF $out.d -c $in -o $out\n  depfile = $out.d\n", cc
            print "rule ar\n  command = rm -f $out && ar rc $out $in"
            printf "rule link\n  command = %s $in $flags %s -Wl,-t,-t -o $out >$out.members\n", ld, libraries
        }
        $2 == "flags" || $2 == "link" { kind = $1; what = $2; sub(/^[^ ]* [^ ]* /, ""); flags[kind, what] = $0; next }
        {
            kinds[$1] = 1
            ++count
            kind_of[count] = $1
            source_of[count] = $3
            role_of[count] = $2
            if ($2 == "library") objects[$1] = objects[$1] " " object($1, $3)
        }
        END {
            for (i = 1; i <= count; ++i) {
                kind = kind_of[i]
                out = object(kind, source_of[i])
                printf "build %s: cc %s\n  flags = %s\n", out, source_of[i], flags[kind, "flags"]
                if (role_of[i] != "test") continue
                program = out
                sub(/\.o$/, "", program)
                library = base "/" kind "/library.a"
                printf "build %s: link %s %s\n  flags = %s\n", program, out, library, flags[kind, "link"]
            }
            # An archive, so that a program needs no stand-ins for what it does not use.
            for (kind in kinds) printf "build %s/%s/library.a: ar %s\n", base, kind, objects[kind]
        }'
}

build_bases() { # list of mutants
    case $(cut -f 2 "$1") in *gpu/vulkan/*) build_shaders ;; esac
    write_ninja "$1" >"$work/build.ninja"
    ninja -f "$work/build.ninja" >"$work/ninja.log" 2>&1 || { grep -A 20 FAILED "$work/ninja.log"; return 1; }
    # One line per source of a kind: the source, then all that it reads.
    for kind in "$base"/*; do
        cat "$kind"/*.d | sed 's|[a-z_]*/\.\./||g; s| \./| |g; s|^[^ ]*\.o:||' |
            awk '{ more = sub(/\\$/, ""); line = line " " $0; if (!more) { print line; line = "" } }' >"$kind/dependencies"
    done
}

run_case() { # directory program test size log timeout_s
    (
        cd "$1"
        [ -z "$4" ] || export NB_TEST_SIZE="$4"
        # The runner ends a case that takes too long; what ends the runner, or a simulation, is twice as patient.
        if [ "$3" = simulate ]; then set -- "$1" "$2" "" "" "$5" "$6" "$2"; else set -- "$1" "$2" "$3" "" "$5" "$6" "$2" --timeout "$6" "$3"; fi
        log=$5 limit_s=$(($6 * 2))
        shift 6
        timeout -k 5 $limit_s "$@" >"$log" 2>&1 || exit
    ) 2>/dev/null # where the shell would tell of a crash
}

now_ms() { echo $(($(date +%s%N) / 1000000)); }

# Names a way to run a case.
run_id() { echo "$test $size" | tr -c 'A-Za-z0-9_.\n' '+'; } # of the mutant that was read

# --- one mutant ---

read_fields() { # index in the list
    line=$(sed -n "$1p" "$work/list")
    IFS=$tab read -r name test kind size changed why <<TEXT
$(echo "$line" | sed "s/$tab$tab/$tab-$tab/")
TEXT
    [ "$size" != - ] || size=
    where=$base/$kind
}

# Without a mutant a test must pass, and run something; how long it takes decides on its time-out.
one_base() { # index in the list
    read_fields "$1"
    result=$where/$(run_id)
    started=$(now_ms)
    code=0
    run_case "$where" "$where/$(program_of "$test")" "$test" "$size" "$result.log" 120 || code=$?
    if [ $code -ne 0 ]; then
        echo "failed $(grep -m 1 -E 'no case matches|FAILED' "$result.log" || echo "exit $code")" >"$result"
        tail -n 20 "$result.log" | sed 's/^/    /'
    elif grep -q '^0 passed' "$result.log"; then
        echo "skipped the test is skipped here" >"$result"
    else
        echo "passed $(($(now_ms) - started))" >"$result"
    fi
}

report() { # verdict detail
    printf '[%s/%s] %-8s %s  %s\n' "$index" "$(wc -l <"$work/list")" "$1" "$name" "$2"
    printf '%s\t%s\t%s\n' "$1" "$name" "$2" >>"$work/verdicts"
}

# The sources of a program that read one of the changed files. The linker has listed the objects that are in it (-t -t).
affected_sources() { # changed...
    awk -v changed="$*" '
    BEGIN { count = split(changed, files, " ") }
    FILENAME == ARGV[1] { sub(/.*[\/()]/, ""); is_linked[$0] = 1; next }
    {
        object = $1
        gsub("/", "_", object)
        sub(/\.c$/, ".o", object)
        if (!(object in is_linked)) next
        for (i = 1; i <= count; ++i) for (j = 1; j <= NF; ++j) if ($j == files[i]) { print $1; next }
    }' "$where/$(program_of "$test").members" "$where/dependencies"
}

one_mutant() { # index in the list
    index=$1
    read_fields "$1"
    read -r outcome usual_ms <"$where/$(run_id)"
    case $outcome in
    skipped) report skipped "$test: $usual_ms" && return ;;
    failed) report rotten "$test fails without the mutant: $usual_ms" && return ;;
    esac
    started=$(now_ms)
    dir=$work/run/$(echo "$name" | tr /: __)
    mkdir -p "$dir/tree"
    for folder in src include modules; do [ ! -d "$root/$folder" ] || cp -R "$root/$folder" "$dir/tree/"; done
    ln -s "$root/tests" "$dir/tree/tests"
    awk -v root="$root" -v name="${name##*:}" -v tree="$dir/tree" -f "$scripts/mutants/read.awk" "$root/tests/mutants/${name%:*}.mutants" >"$dir/log"
    cd "$dir/tree"
    source=$(test_source "$test")
    own=$where/$(object_of "$source")
    objects=
    # shellcheck disable=SC2086
    for file in $(affected_sources $changed); do
        object=$dir/$(object_of "$file")
        # shellcheck disable=SC2046
        if ! ${CMAKE_C_COMPILER_LAUNCHER:-} $CC $(compile_flags "$kind") -c "$file" -o "$object" 2>"$dir/log"; then
            report rotten "$file does not compile: $(grep -m 1 error "$dir/log")"
            return
        fi
        case $file in
        "$source") own=$object ;;
        *) objects="$objects $object" ;;
        esac
    done
    if [ -z "$objects" ] && [ "$own" = "$where/$(object_of "$source")" ]; then
        report rotten "$test does not use $changed"
        return
    fi
    # In an archive too, in the place of what it was.
    cp "$where/library.a" "$dir/library.a"
    # shellcheck disable=SC2086
    [ -z "$objects" ] || ar r "$dir/library.a" $objects
    # shellcheck disable=SC2046,SC2086
    if ! $CC "$own" "$dir/library.a" $(link_flags "$kind") $fast_link $libraries -o "$dir/program" 2>"$dir/log"; then
        report rotten "it does not link: $(head -n 1 "$dir/log")"
        return
    fi
    code=0
    run_case "$dir" "$dir/program" "$test" "$size" "$dir/log" "$(timeout_s "$usual_ms")" || code=$?
    took="$((($(now_ms) - started) / 100))"
    took="${took%?}.${took#"${took%?}"} s"
    if [ $code -eq 0 ]; then
        report SURVIVED "$test passes, $took: $why"
        return
    fi
    how="exit $code"
    if [ $code -eq 124 ] || grep -q 'no end after' "$dir/log"; then how=time-out; fi
    report caught "$test, $how, $took"
    rm -rf "$dir"
}

# --- the choice ---

# Keeps so many lines of a file, those with the smallest hash of the commit and the first field, in their order.
sample() { # file count
    awk -F '\t' -v salt="$commit" '
    BEGIN { for (i = 32; i < 127; ++i) code[sprintf("%c", i)] = i }
    function hash(text,    i, h) {
        # A multiplicative hash below 2^26, whose squares are exact in a double.
        for (i = 1; i <= length(text); ++i) h = (h * 33554393 + code[substr(text, i, 1)]) % 67108859
        h = (h * h) % 67108859
        return (h * h) % 67108859
    }
    { printf "%d\t%d\t%s\n", hash(salt $1 salt), NR, $0 }' "$1" | sort -n | head -n "$2" | sort -n -k 2 | cut -f 3-
}

# One line per mutant of files in the format: its name and everything it says.
entries() {
    awk -v file="$1" '
    /^--- / { name = $2; next }
    name != "" && $0 != "" { all[name] = all[name] "\001" $0 }
    END { for (name in all) printf "%s:%s\t%s\n", file, name, all[name] }' | sort
}

# The full names of mutants whose source, or which themselves, have changed. Git lists a file that moved with both names.
changed_mutants() {
    git -C "$root" diff -M --numstat -z "HEAD~$commit_count" | tr '\0' '\n' |
        awk -F '\t' '$3 == "" { getline old; getline new } $3 != "" { old = new = $3 } $1 + $2 > 0 || $1 == "-" { print old "\t" new }' >"$work/diff"
    cut -f 2 "$work/diff" >"$work/changed.files"
    awk -F '\t' 'FILENAME == ARGV[1] { changed[$1] = 1; next } { count = split($5, files, " "); for (i = 1; i <= count; ++i) if (files[i] in changed) { print $1; next } }' \
        "$work/changed.files" "$work/all"
    while IFS=$tab read -r old new; do
        case $new in tests/mutants/*.mutants) [ -f "$root/$new" ] || continue ;; *) continue ;; esac
        source=${new#tests/mutants/}
        source=${source%.mutants}
        entries "$source" <"$root/$new" >"$work/entries.new"
        git -C "$root" show "HEAD~$commit_count:./$old" 2>/dev/null | entries "$source" >"$work/entries.old"
        comm -13 "$work/entries.old" "$work/entries.new" | cut -f 1
    done <"$work/diff"
}

choose() {
    commit=$(git -C "$root" rev-parse HEAD 2>/dev/null || echo none)
    if git -C "$root" rev-parse -q --verify "HEAD~$commit_count" >/dev/null 2>&1; then
        changed_mutants | sort -u >"$work/changed"
        why_changed="that changed in the last $commit_count commits"
    else
        : >"$work/changed"
        why_changed="that changed (there is no history of $commit_count commits)"
    fi
    awk -F '\t' -v out="$work/rest" 'FILENAME == ARGV[1] { changed[$1] = 1; next } $1 in changed { print; next } { print >out }' "$work/changed" "$work/all" >"$work/new"
    touch "$work/rest"
    sample "$work/new" $changed_max >"$work/list"
    of_changed=$(wc -l <"$work/list")
    sample "$work/rest" $sample_size >>"$work/list"
    chosen=$(wc -l <"$work/list")
    echo "mutants: $all_count in all, $chosen chosen: $of_changed of the $(wc -l <"$work/new") $why_changed, $((chosen - of_changed)) of the other $(wc -l <"$work/rest")"
}

choose_by_name() { # name...
    while IFS= read -r line; do
        for wanted in "$@"; do
            case ${line%%"$tab"*} in *"$wanted"*) echo "$line" && break ;; esac
        done
    done <"$work/all" >"$work/list"
    echo "mutants: $all_count in all, $(wc -l <"$work/list") chosen by name"
}

cd "$root"
case ${1:-} in
--base)
    one_base "$2"
    exit
    ;;
--one)
    one_mutant "$2"
    exit
    ;;
esac

mkdir -p "$work"
rm -rf "$work/run" "$work/rest" "$base"/*/*+*
find_libraries
find tests/mutants -name '*.mutants' 2>/dev/null | sort | xargs -r awk -v root=. -f "$scripts/mutants/read.awk" >"$work/read"
grep "^rotten$tab" "$work/read" >"$work/verdicts" || true
grep -v "^rotten$tab" "$work/read" >"$work/all" || true
all_count=$(wc -l <"$work/read")
case ${1:-} in
'') choose ;;
--full)
    cp "$work/all" "$work/list"
    echo "mutants: $all_count in all, all chosen"
    ;;
-*)
    echo "usage: mutants.sh [--full | NAME...]" >&2
    exit 2
    ;;
*)
    choose_by_name "$@"
    [ -s "$work/list" ] || { echo "mutants: none matches $*" >&2; exit 2; }
    ;;
esac

# Out of the list is what cannot be built here.
while IFS= read -r line; do
    test=${line#*"$tab"}
    missing=$(lacks "${test%%"$tab"*}")
    if [ -n "$missing" ]; then printf 'skipped\t%s\tno %s here\n' "${line%%"$tab"*}" "$missing" >>"$work/verdicts"; else printf '%s\n' "$line"; fi
done <"$work/list" >"$work/buildable"
mv "$work/buildable" "$work/list"

if [ -s "$work/list" ]; then
    jobs=$(nproc 2>/dev/null || echo 2)
    started=$(now_ms)
    build_bases "$work/list" || { echo "mutants: the sources do not compile" >&2; exit 1; }
    echo "mutants: unmutated programs after $((($(now_ms) - started) / 1000)) s"
    awk -F '\t' '!seen[$2, $3, $4]++ { print NR }' "$work/list" | xargs -r -n 1 -P "$jobs" sh "$scripts/mutants.sh" --base
    echo "mutants: tests without mutants after $((($(now_ms) - started) / 1000)) s"
    # One more at a time than there are cores: some do nothing but wait for their time-out.
    awk '{ print NR }' "$work/list" | xargs -r -n 1 -P "$((jobs + 1))" sh "$scripts/mutants.sh" --one
fi

# The failures once more, where a reader looks first.
awk -F '\t' '
$1 == "caught" { ++passed; next }
{ print $1 ": " $2 ": " $3 }
$1 == "skipped" { next }
{ ++failed; if ($1 == "SURVIVED") print "    scripts/mutants.sh " $2 }
END { printf "mutants: %d passed, %d failed\n", passed, failed; exit failed > 0 }' "$work/verdicts"
