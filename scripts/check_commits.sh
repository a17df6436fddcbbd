#!/bin/sh
# SPDX-License-Identifier: MIT
# check_commits.sh [ROOT [BASE]]: the commits behind BASE say what they do and why: `area: imperative` in at most 72 columns,
# with a body where more than 30 lines change. A merge says `merge: what` and needs no body. Older commits are as they are.
# Skipped where the history is not here.
set -eu
root=${1:-$(dirname "$0")/..}
base=${2:-ad5e518d1d38f8f8a08dcbce8b216fb9de0b6f66}
cd "$root"

skip() { # reason
    echo "check_commits: skipped: $1"
    exit 0
}

command -v git >/dev/null 2>&1 || skip "no git"
git rev-parse --git-dir >/dev/null 2>&1 || skip "no history here"
git cat-file -e "$base^{commit}" 2>/dev/null || skip "$base is not in this history"
git merge-base --is-ancestor "$base" HEAD || skip "$base is no ancestor of this commit"

# A moved file has only the lines that changed in it. Each commit begins with \1, its parts with \2, its numbers with \3.
git log --reverse -M -l0 --numstat --format='%x01%h%x02%P%x02%s%x02%b%x03' "$base..HEAD" | awk -v columns_max=72 -v lines_max=30 '
BEGIN {
    RS = "\001"
    count = split("a an the this that these those each every all any some no one two new not what who which how why when where there it they at after before for from in of on to with without", words, " ")
    for (i = 1; i <= count; ++i) not_a_verb[words[i]] = 1
    count = split("freed agreed guaranteed decreed fed led fled bled bred sped", words, " ")
    for (i = 1; i <= count; ++i) is_past[words[i]] = 1
}

function refuse(problem) { print "check_commits: " hash " \"" subject "\": " problem > "/dev/stderr"; bad = 1 }

# By its ending. Words of one syllable end so in their plain form (bring, shed), as do -eed (need) and -ss, -us, -ias (pass).
function is_imperative(word) {
    if (word in not_a_verb || word in is_past) return 0
    if (word ~ /ing$/) return word ~ /^[^aeiouy]+ing$/
    if (word ~ /ed$/) return word ~ /^[^aeiouy]*ed$/ || word ~ /eed$/ || word == "embed"
    return word !~ /s$/ || word ~ /(ss|us|ias)$/
}

function has_body(text,    count, lines, i) {
    count = split(text, lines, "\n")
    for (i = 1; i <= count; ++i) if (lines[i] ~ /[^ \t]/ && lines[i] !~ /^[A-Z][A-Za-z-]*-[Bb]y: /) return 1
    return 0
}

NR > 1 {
    ++commits
    split($0, part, "\002")
    hash = part[1]; subject = part[3]
    is_merge = part[2] ~ / /
    split(part[4], ends, "\003")
    if (length(subject) > columns_max) refuse(length(subject) " columns, " columns_max " at most")
    if (subject ~ /;/) refuse("a semicolon: one idea a commit")
    if (is_merge) {
        if (subject !~ /^merge: [^ ]/) refuse("a merge says \"merge: what\"")
        next
    }
    if (subject !~ /^[a-z][a-z0-9_-]*( [a-z0-9_-]+)*(, [a-z][a-z0-9_-]*( [a-z0-9_-]+)*)*: [^ ]/) {
        refuse("not \"area: imperative\" with an area in lower case")
        next
    }
    verb = subject; sub(/^[^:]*: /, "", verb); sub(/[ ,:].*/, "", verb)
    if (verb !~ /^[a-z]+(-[a-z]+)*$/ || !is_imperative(verb)) refuse("\"" verb "\" is no imperative")
    lines = 0
    count = split(ends[2], rows, "\n")
    for (i = 1; i <= count; ++i) if (split(rows[i], cell, "\t") == 3) lines += cell[1] + cell[2]
    if (lines > lines_max && !has_body(ends[1])) refuse(lines " changed lines, and no body that says why")
}

END { if (bad) exit 1; print "check_commits: " commits + 0 " commits" }
'
