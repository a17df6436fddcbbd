#!/bin/sh
# SPDX-License-Identifier: MIT
# check_docs.sh [ROOT]: the comment directly above every public function says Thread:, Owner: and Fails:.
set -eu
. "$(dirname "$0")/files.sh"
root=${1:-$(dirname "$0")/..}
cd "$root"

headers=$(public_headers)
[ -n "$headers" ] || { report_files check_docs 0; exit 1; }

# shellcheck disable=SC2086
functions=$(awk '
function report(message) { printf "%s:%d: %s\n", FILENAME, FNR, message > "/dev/stderr"; bad = 1 }

FNR == 1 { comment = ""; continued = 0 }

# Macro bodies declare nothing by themselves.
continued { continued = /\\$/; comment = ""; next }
/^[ \t]*#/ { continued = /\\$/; comment = ""; next }

/^\/\// { comment = comment "\n" $0; next }

/^static inline/ && FILENAME ~ /include\// { report("public inline functions are declared with NB_INLINE") }

/^(NB_API|NB_EXPERIMENTAL|NB_INLINE)[ \t]/ {
    name = $0
    if (!match(name, /nbi?_[a-z0-9_]+\(/)) {
        # The name stands on the next line where the return type is long.
        pending = comment; comment = ""; waiting = 1; next
    }
    check(name, comment)
}
waiting && match($0, /nbi?_[a-z0-9_]+\(/) { check($0, pending); waiting = 0 }
{ comment = "" }

function check(line, text,    word, missing, i, words) {
    match(line, /nbi?_[a-z0-9_]+\(/)
    word = substr(line, RSTART, RLENGTH - 1)
    if (word ~ /^nbi_/) return
    ++count
    split("Thread: Owner: Fails:", words, " ")
    for (i = 1; i <= 3; ++i) if (index(text, words[i]) == 0) missing = missing " " words[i]
    if (missing != "") report(word " lacks" missing)
    else if (text !~ /\n\/\/ Thread: /) report(word ": Thread: does not begin its line")
}

END { if (bad) exit 1; print count + 0 " functions" }
' $headers)
report_files check_docs "$(echo "$headers" | grep -c .)" "$functions"
