#!/bin/sh
# SPDX-License-Identifier: MIT
# Part of selftest.sh: check_commits.sh on a small history, whose last commits each make one mistake. Sourced.
# shellcheck disable=SC2154
history=$work/history
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=test GIT_AUTHOR_EMAIL=test@localhost GIT_COMMITTER_NAME=test \
    GIT_COMMITTER_EMAIL=test@localhost

# A base that breaks every rule, and one good commit of each kind behind it.
good_history() {
    rm -rf "$history"
    mkdir -p "$history/deep/folder"
    (
        cd "$history"
        git init -q
        seq 1 50 >deep/folder/numbers
        git add .
        git commit -q -m 'Everything; all at once'
        git rev-parse HEAD >"$work/base"
        change 5 'fence, tasks: wake one waiter per ticket'
        change 1 'docs: bring the page up to date'
        change 1 "fence: wake $(printf '%060d' 1)"
        change 1 'arena: pass, embed and need: words that end so'
        change 40 'channel: keep the order of messages' 'Two senders could swap them.'
        git mv deep/folder/numbers deep/moved
        git commit -q -m 'tree: move the numbers'
        git checkout -q -b side HEAD~1
        change 40 'loop: measure the pace' 'It was guessed.'
        git checkout -q -
        git merge -q --no-ff -m 'merge: branch side' side
    )
}

change() { # how many lines, subject, body
    seq 1 "$1" >"changed $2"
    git add .
    git commit -q -m "$2" ${3:+-m "$3"}
}

refused() { # expected-text how many lines, subject, body
    expected=$1
    shift
    (cd "$history" && change "$@")
    fails commits "$expected"
    (cd "$history" && git reset -q --hard HEAD~1)
}

if command -v git >/dev/null 2>&1; then
    good_history
    cp -R "$history" "$work/good_history"
    passes commits
    grep -q '^check_commits: 8 commits$' "$work/out" || { echo "selftest: commits does not count 8 commits:" && cat "$work/out" && status=1; }
    refused '73 columns' 1 "fence: wake $(printf '%061d' 1)"
    refused 'with an area' 1 'wake one waiter'
    refused 'with an area' 1 'Fence: wake one waiter'
    refused 'with an area' 1 'fence : wake one waiter'
    refused 'a semicolon' 1 'fence: wake one waiter; rename it'
    for verb in wakes waked waking woken-up-s agreed the One trying; do
        refused "\"$verb\" is no imperative" 1 "fence: $verb one waiter"
    done
    refused '31 changed lines' 31 'fence: wake one waiter'
    refused '31 changed lines' 31 'fence: wake one waiter' 'Co-authored-by: nobody <nobody@localhost>'
    merged() { # expected-text subject
        (
            cd "$history"
            git checkout -q -b other HEAD~1
            change 1 'fence: add a file'
            git checkout -q -
            git merge -q --no-ff -m "$2" other
        )
        fails commits "$1"
        rm -rf "$history"
        cp -R "$work/good_history" "$history"
    }
    merged 'a merge says' "Merge branch 'other'"
    merged 'a merge says' 'merge other'
    merged '7[0-9] columns' 'merge: branch other, with everything that it says about itself in one line'

    # Without the history there is nothing to check, and it says so.
    skips() { # expected-text
        passes commits
        grep -q "^check_commits: skipped: .*$1" "$work/out" || { echo "selftest: commits does not say: skipped: $1" && cat "$work/out" && status=1; }
    }
    git clone -q --depth 1 "file://$history" "$work/shallow"
    history=$work/shallow
    skips 'not in this history'
    history=$work/history
    (cd "$history" && git checkout -q --orphan alone && git commit -q -m 'all: begin again')
    skips 'no ancestor'
    mkdir "$work/none"
    history=$work/none
    skips 'no history'
fi
