#!/bin/sh
# SPDX-License-Identifier: MIT
# Part of selftest.sh: mutants.sh on a tree with one mutant in the deepest folder, and on a small history. Sourced.
# shellcheck disable=SC2154
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=test GIT_AUTHOR_EMAIL=test@localhost GIT_COMMITTER_NAME=test \
    GIT_COMMITTER_EMAIL=test@localhost
deep=src/frame/store/deep/deep.c
deep_mutants=tests/mutants/$deep.mutants
deep_test=tests/frame/store/deep/test_deep.c

# The good tree with a test of the deepest source, the runner of tests, and one mutant.
mutant_tree() {
    good_tree
    mkdir -p "$tree/tests/support" "$tree/${deep_test%/*}" "$tree/${deep_mutants%/*}"
    cp "$root/tests/support/case.h" "$root/tests/support/runner.c" "$tree/tests/support/"
    cat >"$tree/$deep_test" <<'TEXT'
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nebula/advanced/deep.h"
#include "support/case.h"

TEST(depth_is_two_below_its_start) { assert_int_equal(nb_deep_get(1), 3); }
TEST(depth_of_nothing) { skip(); }
TEXT
    cat >"$tree/$deep_mutants" <<'TEXT'
# Ways to break deep.c.

--- starts_elsewhere
why: the start is left out
test: frame/store/deep/deep.depth_is_two_below_its_start
<<<<
add(start, 2)
====
add(0, 2)
>>>>
TEXT
}

mutant_fails() { # pattern text expected-text
    mutant_tree
    replace "$deep_mutants" "$1" "$2"
    fails mutants "$3"
}

says() { # expected-text
    passes mutants
    grep -q -e "$1" "$work/out" || { echo "selftest: mutants does not say: $1" && cat "$work/out" && status=1; }
}

if command -v ninja >/dev/null 2>&1 && echo 'int main(void) { return 0; }' | $cc -x c - -lcmocka -o "$work/probe" 2>/dev/null; then
    mutant_tree
    says '^mutants: 1 passed, 0 failed$'
    mutants_argument=--full
    says '1 in all, all chosen'
    mutants_argument=deep.c:starts
    says '1 chosen by name'
    mutants_argument=deep.c:ends
    fails mutants 'none matches'
    mutants_argument=

    mutant_fails 'add(0, 2)' 'add(2, start)' 'SURVIVED: .*deep.c:starts_elsewhere: .* the start is left out'
    mutant_fails 'add(0, 2)' 'add(2, start)' "^    scripts/mutants.sh $deep:starts_elsewhere"
    mutant_fails 'add(start, 2)' 'add(start, 3)' 'rotten: .*not in'
    mutant_fails 'add(start, 2)' 'e' 'rotten: .*more than once'
    mutant_fails 'add(0, 2)' 'add(start, 2)' 'rotten: .*changes nothing'
    mutant_fails 'add(0, 2)' 'add(nought, 2)' 'rotten: .*does not compile'
    mutant_fails '^>>>>' '' 'rotten: .*no complete block'
    mutant_fails '^why: .*' '' 'rotten: .*no why'
    mutant_fails '^why: ' 'because: ' 'rotten: .*a line that is none'
    mutant_fails 'deep/deep.depth' 'deep/gone.depth' 'rotten: .*no tests/frame/store/deep/test_gone.c'
    mutant_fails 'depth_is_two_below_its_start' 'depth_is_two' 'rotten: .*no case'
    mutant_fails '^test: .*' 'test: demo/deep.picture' 'rotten: .*judges no mutant'
    mutant_fails '^<<<<' 'file: tests/support/runner.c\n<<<<' 'rotten: .*not below src'
    mutant_tree
    tail -n +2 "$tree/$deep_mutants" >"$work/again"
    cat "$work/again" >>"$tree/$deep_mutants"
    fails mutants 'rotten: .*not a new one of its file'
    mutant_tree
    replace "$deep_test" ', 3)' ', 4)'
    fails mutants 'rotten: .*fails without the mutant'
    mutant_tree
    replace "$deep_mutants" 'deep.depth_is_two_below_its_start' 'deep.depth_of_nothing'
    says 'skipped: .*deep.c:starts_elsewhere'
    # A mutant that is not chosen rots too.
    mutant_tree
    mkdir -p "$tree/tests/mutants/src/base"
    sed 's|add(start, 2)|add(gone)|' "$tree/$deep_mutants" >"$tree/tests/mutants/src/base/piece.c.mutants"
    mutants_argument=deep.c:starts
    fails mutants 'rotten: src/base/piece.c:starts_elsewhere: '
    mutants_argument=
fi

# What has changed in the last 30 commits: a file that only moved has not.
if command -v ninja >/dev/null 2>&1 && command -v git >/dev/null 2>&1 && [ -x "$work/probe" ]; then
    commit() { (cd "$tree" && git add -A . && git commit -q --allow-empty -m "$1"); }
    mutant_tree
    says 'no history of 30 commits'
    (cd "$tree" && git init -q && mkdir -p src/old tests/mutants/src/old)
    mv "$tree/$deep" "$tree/src/old/deep.c"
    mv "$tree/$deep_mutants" "$tree/tests/mutants/src/old/deep.c.mutants"
    commit first
    mv "$tree/src/old/deep.c" "$tree/$deep"
    mv "$tree/tests/mutants/src/old/deep.c.mutants" "$tree/$deep_mutants"
    commit 'a file moves'
    for i in $(seq 29); do commit "nothing $i"; done
    says '1 chosen: 0 of the 0 that changed in the last 30 commits, 1 of the other 1'
    echo '// Changed.' >>"$tree/$deep"
    commit 'a source changes'
    says '1 chosen: 1 of the 1 that changed in the last 30 commits, 0 of the other 0'
    for i in $(seq 30); do commit "nothing $i"; done
    says '0 of the 0 that changed'
    replace "$deep_mutants" 'the start is left out' 'the start is forgotten'
    commit 'an entry changes'
    says '1 of the 1 that changed'
fi
