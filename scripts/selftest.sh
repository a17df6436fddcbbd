#!/bin/sh
# SPDX-License-Identifier: MIT
# selftest.sh ROOT: every check passes on a small good tree and fails, for the reason given, on bad ones. A check that cannot
# fail is worse than none.
set -eu
root=$(CDPATH='' cd -- "$1" && pwd)
scripts=$root/scripts
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
tree=$work/tree
cc=${CC:-gcc}
cases=0
status=0

# A fresh good tree: one platform file, one piece of the base layer, one in the deepest folder of each kind, one program, a
# README. Mistakes are planted in the deepest folders: a check that looks one level down does not see them.
make_good_tree() {
    mkdir -p "$tree/include/nebula/advanced" "$tree/src/platform" "$tree/src/base" "$tree/src/tasks" "$tree/src/frame/store/deep" \
        "$tree/demo" "$tree/tests/headers/advanced" "$tree/tests/bad_input/store" "$tree/docs/deep" "$tree/scripts/deep"
    licence='// SPDX-License-Identifier: MIT'
    cat >"$tree/include/nebula/types.h" <<TEXT
$licence
#pragma once

// Types.
//
//     int x = NB_ONE;
//     if (x) { ... }

#define NB_ONE 1
#define NB_API extern __attribute__((visibility("default")))
#define NB_INLINE static inline
TEXT
    cat >"$tree/include/nebula/piece.h" <<TEXT
$licence
#pragma once

// A piece.
//
//     int total = nb_piece_add(1, 2);

#include "nebula/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// Adds.
// Thread: any. Owner: nothing. Fails: never.
NB_API int nb_piece_add(int a, int b);

// Twice the number.
// Thread: any. Owner: nothing. Fails: never.
NB_INLINE int nb_piece_twice(int a) { return nb_piece_add(a, a); }

#ifdef __cplusplus
}
#endif
TEXT
    printf '%s\n#pragma once\n// All.\n//     int one = NB_ONE;\n#include "nebula/piece.h"\n#include "nebula/types.h"\n' "$licence" >"$tree/include/nebula/nebula.h"
    printf '%s\n#pragma once\nint nbi_clock(void);\n' "$licence" >"$tree/src/platform/platform.h"
    printf '%s\n#include "platform.h"\n\n#include <unistd.h>\n\nint nbi_clock(void) { return (int)getpid(); }\n' "$licence" >"$tree/src/platform/platform_linux.c"
    printf '%s\n#include "nebula/piece.h"\n\n#include "../platform/platform.h"\n\nint nb_piece_add(int a, int b) { return a + b + 0 * nbi_clock(); }\n' "$licence" >"$tree/src/base/piece.c"
    printf '%s\n#include "nebula/piece.h"\n\nint main(void) { return nb_piece_add(1, -1); }\n' "$licence" >"$tree/demo/main.c"
    printf '%s\n#include "nebula/piece.h"\n\nint main(void) { return nb_piece_add(1, 2) == 3 ? 0 : 1; }\n' "$licence" >"$tree/tests/test_piece.c"
    printf '%s\n#include "nebula/piece.h"\n\nint main(void) { return nb_piece_add(-1, 1) + nb_piece_twice(0); }\n' "$licence" >"$tree/tests/bad_input/piece.c"
    cat >"$tree/include/nebula/advanced/deep.h" <<TEXT
$licence
#pragma once

// Something deep.
//
//     int depth = nb_deep_get(start);

#include "nebula/types.h"

#ifdef __cplusplus
extern "C" {
#endif

// The depth.
// Thread: any. Owner: nothing. Fails: never.
NB_API int nb_deep_get(int start);

#ifdef __cplusplus
}
#endif
TEXT
    printf '%s\n#include "nebula/advanced/deep.h"\n\n#include "nebula/piece.h"\n\nint nb_deep_get(int start) { return nb_piece_add(start, 2); }\n' "$licence" >"$tree/src/frame/store/deep/deep.c"
    printf '%s\n#include "nebula/advanced/deep.h"\n\nint main(void) { return nb_deep_get(-2); }\n' "$licence" >"$tree/tests/bad_input/store/deep.c"
    printf 'static int start;\n' >"$tree/tests/headers/advanced/deep.prelude"
    printf '# Deep\n\nSee `src/frame/store/deep/deep.c`.\n' >"$tree/docs/deep/page.md"
    printf '# Contributing\n\nSee `src/base/piece.c`.\n' >"$tree/CONTRIBUTING.md"
    printf '#!/bin/sh\n' >"$tree/scripts/deep/tool.sh"
    chmod 755 "$tree/scripts/deep/tool.sh"
    cp "$root/.clang-format" "$tree/"
    printf '# Piece\n\n```c\n#include "nebula/nebula.h"\nint main(void) { return nb_piece_add(0, 0); }\n```\n\nStart at `src/base/piece.c`.\n' >"$tree/README.md"
}

# One copy for each case takes less time than some thirty small commands.
good_tree() {
    rm -rf "$tree"
    cp -R "$work/good" "$tree"
}

build_libraries() {
    (
        cd "$tree"
        rm -f ./*.o ./*.a ./*.so
        $cc -c -fPIC -fvisibility=hidden -Iinclude $(find src -name '*.c')
        ar rc libpiece.a ./*.o
        $cc -shared ./*.o -o libpiece.so
        if [ -d modules/one ]; then
            mkdir -p module && rm -f module/*
            for file in $(find modules/one -name '*.c'); do $cc -c -Iinclude -Imodules/one/include "$file" -o "module/$(basename "$file" .c).o"; done
            ar rc module/libone.a module/*.o
        fi
    )
}

run_check() {
    case $1 in
    symbols) build_libraries && sh "$scripts/check_symbols.sh" "$tree" "$tree/libpiece.a" "$tree/libpiece.so" $(ls "$tree"/module/*.a 2>/dev/null) ;;
    readme) build_libraries && sh "$scripts/check_readme.sh" "$tree" "$tree/libpiece.a" ;;
    mutants) NEBULA_ROOT=$tree NEBULA_MUTANTS_WORK=$work/mutants sh "$scripts/mutants.sh" ${mutants_argument:+"$mutants_argument"} ;;
    models) NEBULA_MODELS=$tree/tests/models NEBULA_MODELS_WORK=$work/models sh "$scripts/models.sh" ;;
    hardening) sh "$scripts/check_hardening.sh" "$work/hardened" ;;
    commits) sh "$scripts/check_commits.sh" "$history" "$(cat "$work/base")" ;;
    golden)
        NEBULA_ROOT=$tree NEBULA_GOLDEN_WORK=$work/golden NB_TEST_SIZE=quick sh "$scripts/golden.sh" gcc-O0 gcc-O2 control control-arm64
        ;;
    *) sh "$scripts/check_$1.sh" "$tree" ;;
    esac
}

passes() { # check [how many files it reads]
    cases=$((cases + 1))
    if ! run_check "$1" >"$work/out" 2>&1; then
        echo "selftest: $1 fails on a good tree:"
        cat "$work/out"
        status=1
    elif [ $# -gt 1 ] && ! grep -Eq "^(check_)?$1: $2 files?(,|\$)" "$work/out"; then
        echo "selftest: $1 does not say '$2 files' of a good tree:"
        cat "$work/out"
        status=1
    fi
}

fails() { # check expected-text
    cases=$((cases + 1))
    if run_check "$1" >"$work/out" 2>&1; then
        echo "selftest: $1 passes, but should say: $2"
        status=1
    elif ! grep -q -e "$2" "$work/out"; then
        echo "selftest: $1 fails, but does not say: $2"
        cat "$work/out"
        status=1
    fi
    good_tree
}

insert() { # file line text: puts the text after that line
    awk -v at="$2" -v text="$3" '{ print } NR == at { print text }' "$tree/$1" >"$work/edited"
    cp "$work/edited" "$tree/$1"
}

replace() { # file pattern text
    sed "s|$2|$3|" "$tree/$1" >"$work/edited"
    cp "$work/edited" "$tree/$1"
}

make_good_tree
cp -R "$tree" "$work/good"
passes layers
passes docs 4
passes bad_input 6
passes style 12
passes headers 4
passes sketches 4
passes symbols 2
passes readme 3

insert src/platform/platform_linux.c 1 '#include "../base/piece.h"'
fails layers 'of a higher layer'
insert src/platform/platform_linux.c 1 '#include "nebula/piece.h"'
fails layers 'of a higher layer'
insert src/base/piece.c 1 '#include <pthread.h>'
fails layers 'pthread.h> belongs into'
insert include/nebula/piece.h 1 '#include "../../src/platform/platform.h"'
fails layers 'private'
insert include/nebula/piece.h 9 'extern _Atomic int nb_provider;'
fails layers '_Atomic'
insert demo/main.c 1 '#include "../src/platform/platform.h"'
fails layers 'public headers only'
cp "$tree/include/nebula/piece.h" "$tree/include/nebula/stray.h"
fails layers 'no layer is known'

# The demo's folders: what is drawn sees what is simulated, in folders below them too, and never the other way.
good_demo() {
    mkdir -p "$tree/demo/game/animals/herds" "$tree/demo/draw/sky"
    printf '%s\n#pragma once\nint herd_count(void);\n' "$licence" >"$tree/demo/game/animals/herds/herd.h"
    printf '%s\n#include "herd.h"\n\nint herd_count(void) { return 1; }\n' "$licence" >"$tree/demo/game/animals/herds/herd.c"
    printf '%s\n#pragma once\n#include "../../game/animals/herds/herd.h"\n' "$licence" >"$tree/demo/draw/sky/stars.h"
}
good_demo
insert demo/main.c 1 '#include "draw/sky/stars.h"'
passes layers
insert demo/game/animals/herds/herd.c 1 '#include "../../../draw/sky/stars.h"'
fails layers 'animals/herds/herd.c:2: .*of a higher layer of the demo'
good_demo
insert demo/game/animals/herds/herd.h 2 '#include "../../../main.c"'
fails layers 'of a higher layer of the demo'
mkdir -p "$tree/demo/attic"
printf '%s\nint attic;\n' "$licence" >"$tree/demo/attic/box.c"
fails layers 'no layer is known for this folder of the demo'

# A module: public headers of the core, files of its own, its operating system in one place.
good_module() {
    mkdir -p "$tree/modules/one/include/nebula/inner" "$tree/modules/one/inner/deep" "$tree/tests/bad_input/one"
    printf '%s\n#pragma once\n\n// One.\n//\n//     int one = nb_one_get();\n\n#include "nebula/types.h"\n\n// One.\n// Thread: any. Owner: nothing. Fails: never.\nNB_API int nb_one_get(void);\n' "$licence" >"$tree/modules/one/include/nebula/one.h"
    printf '%s\n#include "nebula/one.h"\n\n#include "nebula/piece.h"\n\nint nb_one_get(void) { return nb_piece_add(0, 1); }\n' "$licence" >"$tree/modules/one/one.c"
    printf '%s\n#include <unistd.h>\n\nint nbi_one_pid(void);\nint nbi_one_pid(void) { return (int)getpid(); }\n' "$licence" >"$tree/modules/one/one_posix.c"
    printf '%s\n#include "nebula/one.h"\n\nint main(void) { return nb_one_get(); }\n' "$licence" >"$tree/tests/bad_input/one/one.c"
    printf '%s\n#pragma once\n\n// Far.\n//\n//     int far = nb_far_get();\n\n#include "nebula/types.h"\n\n// Far.\n// Thread: any. Owner: nothing. Fails: never.\nNB_API int nb_far_get(void);\n' "$licence" >"$tree/modules/one/include/nebula/inner/far.h"
    printf '%s\n#include "nebula/inner/far.h"\n\n#include "nebula/piece.h"\n\nint nb_far_get(void) { return nb_piece_add(0, 9); }\n' "$licence" >"$tree/modules/one/inner/deep/far.c"
    printf '%s\n#include "nebula/inner/far.h"\n\nint main(void) { return nb_far_get(); }\n' "$licence" >"$tree/tests/bad_input/one/far.c"
}
good_module
passes layers
passes docs 6
passes bad_input 10
passes headers 6
passes sketches 6
passes symbols 3
insert modules/one/one.c 1 '#include "../../src/platform/platform.h"'
fails layers 'public headers of the core only'
good_module
insert modules/one/one.c 1 '#include <unistd.h>'
fails layers 'belongs into a \*_posix.c'
good_module
insert src/base/piece.c 1 '#include "nebula/one.h"'
fails layers 'of a higher layer'
good_module
mkdir -p "$tree/modules/two"
printf '%s\n#include "nebula/one.h"\n' "$licence" >"$tree/modules/two/two.c"
fails layers 'of a sibling module'
good_module
replace modules/one/include/nebula/inner/far.h 'Owner: nothing. ' ''
fails docs 'inner/far.h:.*: nb_far_get lacks Owner:'
good_module
rm "$tree/tests/bad_input/one/one.c"
fails bad_input 'nb_one_get is not in'
good_module
rm "$tree/tests/bad_input/one/far.c"
fails bad_input 'inner/far.h:.*: nb_far_get is not in'
good_module
replace modules/one/include/nebula/inner/far.h '#include "nebula/types.h"' ''
fails headers 'nebula/inner/far.h does not compile alone'
good_module
replace modules/one/include/nebula/inner/far.h 'nb_far_get();' 'nb_far_take();'
fails sketches 'inner/far.h: its sketch does not compile'
good_module
insert modules/one/inner/deep/far.c 5 'int nbi_clock(void); int nbi_far_now(void); int nbi_far_now(void) { return nbi_clock(); }'
fails symbols 'which the core keeps to itself'
good_module
insert modules/one/inner/deep/far.c 5 'static int calls; int nbi_far_count(void); int nbi_far_count(void) { return ++calls; }'
fails symbols 'mutable static state'

# The layers of what is deep.
good_module
insert modules/one/inner/deep/far.c 1 '#include "../../../../src/platform/platform.h"'
fails layers 'far.c:2: .*public headers of the core only'
good_module
insert modules/one/inner/deep/far.c 1 '#include <unistd.h>'
fails layers 'far.c:2: .*belongs into a \*_posix.c'
good_module
mkdir -p "$tree/modules/gpu/include/nebula" "$tree/demo/players"
printf '%s\n#pragma once\n' "$licence" >"$tree/modules/gpu/include/nebula/gpu.h"
printf '%s\n#include "nebula/gpu.h"\n' "$licence" >"$tree/demo/players/pilot.c"
fails layers 'players/pilot.c:2: "nebula/gpu.h" draws, and this part'
good_module
insert src/frame/store/deep/deep.c 1 '#include "nebula/inner/far.h"'
fails layers 'deep.c:2: .*of a higher layer'
insert src/frame/store/deep/deep.c 1 '#include <pthread.h>'
fails layers 'deep.c:2: .*pthread.h> belongs into'
insert include/nebula/advanced/deep.h 1 '#include "../../../src/platform/platform.h"'
fails layers 'deep.h:2: .*private'
insert include/nebula/advanced/deep.h 3 'extern _Atomic int nb_provider;'
fails layers 'deep.h:4: _Atomic'
mkdir -p "$tree/src/base/inner"
printf '%s\n#include "nebula/advanced/deep.h"\n' "$licence" >"$tree/src/base/inner/low.c"
fails layers 'low.c:2: .*of a higher layer'
cp "$tree/include/nebula/advanced/deep.h" "$tree/include/nebula/advanced/stray.h"
fails layers 'advanced/stray.h:1: no layer is known'
rm -r "$tree/src" "$tree/include" "$tree/demo"
fails layers 'no sources'

replace include/nebula/advanced/deep.h 'Owner: nothing. ' ''
fails docs 'nb_deep_get lacks Owner:'
insert include/nebula/advanced/deep.h 15 ''
fails docs 'nb_deep_get lacks Thread: Owner: Fails:'
insert include/nebula/advanced/deep.h 16 'static inline int nb_deep_zero(void) { return 0; }'
fails docs 'NB_INLINE'
rm -r "$tree/include"
fails docs 'no files'

insert include/nebula/advanced/deep.h 16 'NB_API int nb_deep_new(int a);'
fails bad_input 'nb_deep_new is not in'
replace tests/bad_input/store/deep.c 'nb_deep_get(-2); }' '0; } // nb_deep_get(-2)'
fails bad_input 'nb_deep_get is not in'
replace tests/bad_input/piece.c ' + nb_piece_twice(0); }' '; }'
fails bad_input 'nb_piece_twice is not in'
rm -r "$tree/tests/bad_input"
fails bad_input 'no tests of bad input'

insert src/frame/store/deep/deep.c 3 '// TODO'
fails style 'deep.c:4: unfinished'
replace tests/bad_input/store/deep.c 'SPDX-License' 'Licence'
fails style 'store/deep.c:1: the first line is not the licence line'
chmod 644 "$tree/scripts/deep/tool.sh"
fails style 'scripts/deep/tool.sh: not executable'
if command -v git >/dev/null 2>&1; then
    (cd "$tree" && git init -q && git add scripts && git update-index --chmod=-x scripts/deep/tool.sh)
    fails style 'scripts/deep/tool.sh: not executable'
fi
rm -r "$tree/src" "$tree/include" "$tree/demo" "$tree/tests"
fails style 'no sources'
awk 'BEGIN { print "// SPDX-License-Identifier: MIT"; print "int nbi_long(int a) {"; for (i = 0; i < 69; ++i) print "    a += 1;"; print "    return a;"; print "}" }' >"$tree/src/frame/store/deep/long.c"
fails style 'function of 72 lines'
awk 'BEGIN { print "// SPDX-License-Identifier: MIT"; for (i = 0; i < 1000; ++i) print "// line" }' >"$tree/src/frame/store/deep/long.c"
fails style 'file of 1001 lines'

replace include/nebula/advanced/deep.h 'int start)' 'size_t start)'
fails headers 'nebula/advanced/deep.h does not compile alone'
replace include/nebula/advanced/deep.h '#pragma once' ''
fails headers 'pragma once'
replace include/nebula/advanced/deep.h '//     int' '// int'
fails headers 'no usage sketch'
mkdir -p "$tree/include/nebula/inner"
cp "$tree/include/nebula/advanced/deep.h" "$tree/include/nebula/inner/deep.h"
fails headers 'inner/deep.h: nebula.h does not include it'
rm -r "$tree/include"
fails headers 'no files'
replace include/nebula/nebula.h '#include "nebula/piece.h"' ''
fails headers 'does not include it'
if command -v "${CXX:-g++}" >/dev/null 2>&1; then
    insert include/nebula/advanced/deep.h 7 'static inline int *nb_new(void *p) { return p; }'
    fails headers 'std=c++17'
fi

replace include/nebula/advanced/deep.h 'nb_deep_get(start);' 'nb_deep_get();'
fails sketches 'advanced/deep.h: its sketch does not compile'
replace include/nebula/advanced/deep.h 'int depth = nb_deep_get' 'int depth = nb_deep_sum'
fails sketches 'does not compile'
mv "$tree/tests/headers/advanced/deep.prelude" "$tree/tests/headers/deep.prelude"
fails sketches 'tests/headers/deep.prelude: no header nebula/deep.h'
rm -r "$tree/include" "$tree/tests/headers"
fails sketches 'no files'

insert src/frame/store/deep/deep.c 4 'int helper(void); int helper(void) { return 0; }'
fails symbols 'helper'
insert src/frame/store/deep/deep.c 4 'extern __attribute__((visibility("default"))) int nbi_leak(void); int nbi_leak(void) { return 0; }'
fails symbols 'nbi_leak'
insert src/frame/store/deep/deep.c 4 'static int calls; int nbi_count(void); int nbi_count(void) { return ++calls; }'
fails symbols 'mutable static state'
mkdir -p "$tree/src/tasks/inner/deep" "$tree/src/base/inner/deep"
printf 'int nbi_submit(void) { return 0; }\n' >"$tree/src/tasks/inner/deep/submit.c"
printf 'int nbi_submit(void); int nbi_up(void); int nbi_up(void) { return nbi_submit(); }\n' >"$tree/src/base/inner/deep/low.c"
fails symbols 'of the higher layer tasks'
mkdir -p "$tree/src/tasks/inner/deep"
printf 'int nbi_twin(void) { return 0; }\n' >"$tree/src/tasks/inner/deep/deep.c"
fails symbols 'deep.c exists in two layers'

replace README.md 'nb_piece_add(0, 0)' 'nb_piece_add(0, 1)'
fails readme 'ended with 1'
replace README.md 'nb_piece_add(0, 0)' 'nb_piece_sum(0, 0)'
fails readme 'does not compile'
replace README.md 'src/base/piece.c' 'src/base/gone.c'
fails readme 'does not exist'
replace docs/deep/page.md 'deep/deep.c' 'deep/gone.c'
fails readme 'docs/deep/page.md names .*gone.c'
replace CONTRIBUTING.md 'base/piece.c' 'base/gone.c'
fails readme 'CONTRIBUTING.md names .*gone.c'
awk 'BEGIN { for (i = 0; i < 151; ++i) print "line" }' >"$tree/README.md"
fails readme '150 at most'

cp "$root/dev" "$tree/dev"
passes dev 1
printf '#!/bin/sh\nexit 0\n' >"$tree/dev"
fails dev 'wanted 2 and one line'

# A program with one hash, of a product and a sum, and a demo with one tick.
golden_tree() {
    good_tree
    rm -rf "$work/golden"
    mkdir -p "$tree/tests/determinism/deep" "$tree/tests/golden"
    cat >"$tree/tests/determinism/deep/main.c" <<TEXT
$licence
#include <stdio.h>
#include <string.h>
int main(int count, char **words) {
    volatile float a = 1.1f, b = 1.3f, c = -1.43f;
    float sum = a * b + c;
    unsigned ours = 0, theirs = 0;
    memcpy(&ours, &sum, sizeof ours);
    FILE *file = count > 1 ? fopen(words[count - 1], "r") : NULL;
    if (file == NULL || fscanf(file, "0 %x", &theirs) != 1) return 3;
    if (ours != theirs) printf("tick 0: %08x, and %08x in the file\n", ours, theirs);
    return ours != theirs;
}
TEXT
    printf '%s\n#include <stdio.h>\n\nint main(void) { return puts("tick 0 1") < 0; }\n' "$licence" >"$tree/demo/main.c"
    echo '0 00000000' >"$tree/tests/golden/determinism.txt"
}
golden_tree
passes golden 4
golden_tree
replace tests/golden/determinism.txt '000$' '001'
fails golden 'gcc-O2.*tick 0: 00000000, and 00000001'
golden_tree
insert tests/determinism/deep/main.c 6 '#ifdef __OPTIMIZE__'
insert tests/determinism/deep/main.c 7 'sum += 1.0f;'
insert tests/determinism/deep/main.c 8 '#endif'
fails golden 'FAILED: gcc-O2.*tick 0'
golden_tree
insert demo/main.c 3 '#ifndef __OPTIMIZE__'
insert demo/main.c 4 '#define puts(text) puts("tick 0 2")'
insert demo/main.c 5 '#endif'
fails golden 'another state than in gcc-O'
golden_tree
replace demo/main.c 'tick 0 1' ''
fails golden 'another state than in'
golden_tree
replace tests/determinism/deep/main.c 'float sum' 'float sums'
fails golden 'gcc-O0 does not build'
if grep -q -w fma /proc/cpuinfo 2>/dev/null || { command -v aarch64-linux-gnu-gcc && command -v qemu-aarch64; } >/dev/null 2>&1; then
    golden_tree
    replace tests/determinism/deep/main.c 'a . b + c' '0.0f * a'
    fails golden 'fused arithmetic was not found out'
fi

# What an optimised build is linked and compiled with; each part of it is missed by itself.
harden() { # flag...
    printf '#include <string.h>\nint main(int count, char **names) { char text[9]; memcpy(text, names[0], (size_t)count); return text[0]; }\n' |
        $cc -x c - -o "$work/hardened" -O2 -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -Wl,-z,relro,-z,now "$@"
}
harden
passes hardening 1
harden -fno-stack-protector
fails hardening 'no stack protector'
harden -U_FORTIFY_SOURCE
fails hardening 'no checked libc function'
harden -Wl,-z,lazy
fails hardening 'binds lazily'
harden -Wl,-z,norelro
fails hardening 'no GNU_RELRO'

# The runner of models needs spin; where that is missing it does not run at all.
fails models 'models: no files'
if command -v spin >/dev/null 2>&1; then
    model=tests/models/inner/deep/one.pml
    write_model() { # run-line body
        good_tree
        mkdir -p "$tree/tests/models/inner/deep"
        printf '// run: %s\nbyte x;\nactive [2] proctype add() { %s }\n' "$1" "$2" >"$tree/$model"
    }
    write_model 'base expect pass' 'x++; assert(x > 0)'
    passes models 1
    write_model 'base expect pass' 'x++; assert(x < 2)'
    fails models 'violated, but it must hold'
    write_model 'base expect fail' 'x++; assert(x > 0)'
    fails models 'not refuted'
    write_model 'base expect pass pan: -m2' 'x++; x++; x++; x++'
    fails models 'cut short'
    write_model 'base' 'x++'
    fails models 'no valid run line'
    write_model 'base expect pass' 'x = = 1'
    fails models 'spin refuses'
fi

# What needs a tree of its own.
for part in "$scripts"/selftest/*.sh; do
    # shellcheck source=/dev/null
    . "$part"
done

[ $status -eq 0 ] && echo "selftest: $cases cases"
exit $status
