#!/bin/sh
# SPDX-License-Identifier: MIT
# golden.sh [--write] [CONFIGURATION...]: the same hash at every tick, whatever compiler, optimisation, machine, number of
# workers and frame rate. Builds tests/determinism for each configuration (or those named) and compares its hashes with
# tests/golden/determinism.txt; the demo's ticks on its virtual clock are compared with each other. NB_TEST_SIZE=full is the
# promised size. A configuration whose compiler is missing is skipped. A build that fuses multiplications and additions
# must be found out. --write makes the file anew, without threads and with all input in time.
set -eu
. "$(dirname "$0")/files.sh"
root=${NEBULA_ROOT:-$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)}
self=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)/golden.sh
work=${NEBULA_GOLDEN_WORK:-$root/build/golden}
jobs=$(nproc 2>/dev/null || echo 2)
golden=$root/tests/golden/determinism.txt
write_ticks=1000000

# Name, compiler, flags. Those of *-arm64 run in qemu. -ffp-contract=off is the project's own flag: what it is for is seen in
# the control.
configurations() {
    cat <<'TEXT'
gcc-O2 gcc -O2
gcc-O0 gcc -O0
gcc-O3 gcc -O3
gcc-O3-native gcc -O3 -march=native
gcc-ubsan gcc -O1 -fsanitize=undefined -fno-sanitize-recover=all
clang-O0 clang -O0
clang-O2 clang -O2
clang-O3 clang -O3
clang-O3-native clang -O3 -march=native
gcc-O0-arm64 aarch64-linux-gnu-gcc -O0 -static
gcc-O2-arm64 aarch64-linux-gnu-gcc -O2 -static
gcc-O3-arm64 aarch64-linux-gnu-gcc -O3 -static
clang-O2-arm64 clang --target=aarch64-linux-gnu -O2 -static
control gcc -O2 -march=native -ffp-contract=fast
control-arm64 aarch64-linux-gnu-gcc -O2 -ffp-contract=fast -static
TEXT
}

# --- one run, in a process of its own: "--run LOG COMMAND..." ---

if [ "${1:-}" = --run ]; then
    log=$2
    shift 2
    code=0
    timeout "${NEBULA_GOLDEN_TIMEOUT_S:-7200}" "$@" >"$log.out" 2>&1 || code=$?
    echo $code >"$log.code"
    exit 0
fi

is_writing=0
if [ "${1:-}" = --write ]; then
    is_writing=1
    shift
    set -- gcc-O2
fi
chosen=" $* "
passed=0
failed=0

cd "$root"
mkdir -p "$work/runs"
rm -f "$work/runs"/*

note() { # status what
    if [ "$1" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $2"
    fi
}

# --- building ---

# The preset whose tests compare the same hashes with the same file. Such a configuration runs at full size, or when named.
preset_of() { # name
    [ "${NB_TEST_SIZE:-check}" != full ] && [ "$chosen" = '  ' ] || return 0
    case $1 in
    gcc-O0) echo debug ;;
    gcc-O3) echo release ;;
    gcc-ubsan) echo asan-ubsan ;;
    esac
}

# Why a configuration cannot be built or run here; nothing where it can.
missing() { # name compiler flag...
    preset=$(preset_of "$1")
    [ -z "$preset" ] || { echo "tested by the preset $preset" && return; }
    command -v "$2" >/dev/null 2>&1 || { echo "no $2" && return; }
    case $1 in
    *-arm64)
        command -v qemu-aarch64 >/dev/null 2>&1 || { echo "no qemu-aarch64" && return; }
        shift
        echo 'int main(void) { return 0; }' | "$@" -x c - -o "$work/probe" 2>/dev/null || echo "no C library for it"
        ;;
    control) grep -q -w fma /proc/cpuinfo 2>/dev/null || echo "the processor does not fuse" ;;
    esac
}

# At full size, or for configurations that are named, the demo is built for all but the controls. Else it is built for one of
# each compiler and machine: the presets compare its ticks too.
has_demo() { # name
    case $1 in
    control*) return 1 ;;
    gcc-O3-native | clang-O2 | gcc-O2-arm64 | clang-O2-arm64) return 0 ;;
    *) [ "${NB_TEST_SIZE:-check}" = full ] || [ "$chosen" != '  ' ] ;;
    esac
}

# The demo with the module scene, and without those whose libraries are not there for other machines.
demo_sources() {
    [ ! -d modules/scene ] || find modules/scene -name '*.c'
    find demo -name '*.c' ! -path 'demo/draw/*' ! -path 'demo/show/*' ! -path 'demo/record/*' ! -path 'demo/net/*'
}

# The game's own arithmetic is what a control fuses, so it takes the library of this configuration where that is built.
core_of() { # name
    case $1:$built in
    control:*' gcc-O2'*) echo gcc-O2 ;;
    control-arm64:*' gcc-O2-arm64'*) echo gcc-O2-arm64 ;;
    *) echo "$1" ;;
    esac
}

# The library, the program and the demo, unless they are there and newer than all sources.
build() { # name compiler flags
    name=$1 compiler=$2 flags=$3
    to=$work/$name
    demo=
    if has_demo "$name"; then demo=$(demo_sources); fi
    core=$(core_of "$name")
    stamp="$compiler $flags${demo:+ demo} $core"
    if [ -f "$to/stamp" ] && [ "$(cat "$to/stamp")" = "$stamp" ] &&
        [ -z "$(find src include modules/scene demo tests/determinism scripts/golden.sh -newer "$to/stamp" 2>/dev/null | head -n 1)" ]; then
        return 0
    fi
    rm -rf "${to:?}"
    mkdir -p "$to/core" "$to/game" "$to/demo"
    sources=$(sources_below "$([ "$core" = "$name" ] && echo src)" tests/determinism)${demo:+"
$demo"}
    core=$work/$core/core
    contract=-ffp-contract=off
    case $flags in *contract=fast*) contract= ;; esac
    compile="$compiler -std=c17 -w $contract $flags -Iinclude -Imodules/scene/include -c"
    export compile to
    # shellcheck disable=SC2016
    echo "$sources" | xargs -P "$jobs" -n 6 sh -c 'for file; do
        case $file in tests/*) part=game ;; demo/* | modules/*) part=demo ;; *) part=core ;; esac
        $compile "$file" -o "$to/$part/$(echo "$file" | tr / _).o" || exit 255
    done' sh || return 1
    # shellcheck disable=SC2086
    $compiler $flags "$to"/game/*.o "$core"/*.o -lm -pthread -o "$to/determinism" || return 1
    # shellcheck disable=SC2086
    if ls "$to"/demo/*.o >/dev/null 2>&1; then $compiler $flags "$to"/demo/*.o "$core"/*.o -lm -pthread -o "$to/demo-program" || return 1; fi
    echo "$stamp" >"$to/stamp"
}

built=
while read -r name compiler flags; do
    if [ "$chosen" != '  ' ]; then case $chosen in *" $name "*) ;; *) continue ;; esac fi
    # shellcheck disable=SC2086
    reason=$(missing "$name" "$compiler" $flags)
    if [ -n "$reason" ]; then
        echo "skipped: $name: $reason"
    elif build "$name" "$compiler" "$flags"; then
        built="$built $name"
    else
        note 1 "$name does not build"
    fi
done <<TEXT
$(configurations)
TEXT

runner() { case $1 in *-arm64) printf '%s' 'qemu-aarch64 ' ;; esac }

if [ $is_writing -eq 1 ]; then
    {
        echo "Hashes of the game of tests/determinism, by scripts/golden.sh --write: a line a tick, then one for all up to it."
        "$work/gcc-O2/determinism" --golden --in-time --workers 0 --ticks $write_ticks
    } >"$work/new.txt"
    mv "$work/new.txt" "$golden"
    wc -c "$golden"
    exit 0
fi

# --- runs ---

# Of each number of workers, of a few of them, of each configuration, of those that are emulated.
case ${NB_TEST_SIZE:-check} in
quick) each=500 long=1000 ticks=500 slow=200 frames=10 ;;
full) each=100000 long=1000000 ticks=100000 slow=100000 frames=600 ;;
*) each=3000 long=12000 ticks=4000 slow=1500 frames=20 ;;
esac
list=$work/runs/list
: >"$list"
add() { # name command...
    echo "$work/runs/$*" >>"$list"
}
add_determinism() { # name ticks workers rate
    add "$1.workers$3.rate$4" "$(runner "$1")$work/$1/determinism" --ticks "$2" --workers "$3" --frame-rate "$4" --compare "$golden"
}

for name in $built; do
    case $name in
    control*) add_determinism "$name" 1000 0 50 ;;
    *-arm64)
        add_determinism "$name" "$slow" 0 50
        add_determinism "$name" "$slow" 3 0
        ;;
    *)
        add_determinism "$name" "$ticks" 0 144
        add_determinism "$name" "$ticks" 3 50
        ;;
    esac
    if [ -f "$work/$name/demo-program" ]; then
        case $name in *-arm64) workers=1 ;; *) workers=2 ;; esac
        add "$name.demo" "$(runner "$name")$work/$name/demo-program" --virtual --frames "$frames" --ticks --workers $workers
    fi
done
first=${built# }
first=${first%% *}
case $first in
'' | control* | *-arm64) ;;
*)
    for workers in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
        add_determinism "$first" "$each" $workers $((workers % 4 * 48))
    done
    for workers in 1 2 4 8 16; do add_determinism "$first" "$long" $workers 50; done
    ;;
esac

# Two at a time, one for each core: a run does not have the machine for itself, and need not.
xargs -P "$jobs" -L 1 sh "$self" --run <"$list"

# --- results ---

demo_first=
while read -r log command; do
    name=${log##*/}
    code=$(cat "$log.code" 2>/dev/null || echo none)
    case $name in
    control*)
        # Must differ, and be told so.
        if [ "$code" = 1 ] && grep -q '^tick [0-9]*: ' "$log.out"; then note 0 "$name"; else note 1 "$name: fused arithmetic was not found out"; fi
        ;;
    *.demo)
        # Only the state after each tick: the summary says which machine it was.
        sed -n '/^tick /p' "$log.out" >"$log.ticks"
        [ -n "$demo_first" ] || demo_first=$log.ticks
        if [ "$code" = 0 ] && [ -s "$log.ticks" ] && cmp -s "$log.ticks" "$demo_first"; then
            note 0 "$name"
        else
            note 1 "$name: exit $code, or another state than in ${demo_first##*/}: $(diff "$demo_first" "$log.ticks" | sed -n 2p)"
        fi
        ;;
    *)
        note "$([ "$code" = 0 ] && echo 0 || echo 1)" "$name: exit $code: $(head -n 3 "$log.out") ($command)"
        ;;
    esac
done <"$list"
echo "configurations:$built"
report_files golden "$(sources_below src tests/determinism | wc -l)" || failed=$((failed + 1))
echo "golden: $passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
