#!/bin/sh
# SPDX-License-Identifier: MIT
# check_sketches.sh [ROOT]: the usage sketch of every public header compiles. A sketch is the lines of the header that start
# with "//" and five spaces. Function definitions and lines of NB_..._DEFINE(...), NB_STRUCT(...) and NB_ROW(...) go to file
# scope, the rest into a function.
# A prelude declares the callbacks and types of the user that a sketch names: tests/headers/<name>.prelude for nebula/<name>.h,
# also where <name> has folders.
set -eu
. "$(dirname "$0")/files.sh"
root=${1:-$(dirname "$0")/..}
cd "$root"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
status=0
count=0

split_sketch() { # header scope(file|body)
    awk -v wanted="$2" '
    function emit(text, scope) { if (scope == wanted) print text }
    !/^\/\/     / { next }
    {
        line = substr($0, 8)
        gsub(/\.\.\./, "", line)
        if (in_function) { emit(line, "file"); if (line ~ /^\}/) in_function = 0; next }
        if (line ~ /^#/ || line ~ /^NB_([A-Z0-9_]*(DEFINE|DECLARE)[A-Z0-9_]*|STRUCT|ROW)\(/) { emit(line, "file"); next }
        if (line ~ /^(typedef|struct|enum)[^=]*\{/ && line !~ /\}.*;/) { in_type = 1 }
        if (in_type) { emit(line, "file"); if (line ~ /^\}/) in_type = 0; next }
        if (line ~ /^(typedef|struct|enum).*\}.*;/ && line !~ /=/) { emit(line, "file"); next }
        if (line ~ /^[A-Za-z_].*\).*\{/ && line !~ /^(if|for|while|switch|do|else|return)[^A-Za-z0-9_]/ && line ~ /^[A-Za-z_][A-Za-z0-9_]*[ \t*]+[A-Za-z_]/ && line !~ /=/) {
            emit(line, "file"); if (line !~ /\}[ \t]*(\/\/.*)?$/) in_function = 1; next
        }
        emit(line, "body")
    }' "$1"
}

includes=$(public_includes)
names=
for path in $(public_headers); do
    name=${path#*include/nebula/}
    name=${name%.h}
    id=$(echo "$name" | tr / _)
    names="$names $name "
    lines=$(grep -c '^//     ' "$path" || true)
    [ "$lines" -gt 0 ] || continue
    count=$((count + 1))
    if [ "$lines" -gt 15 ]; then
        echo "$path: a sketch of $lines lines, 15 at most" >&2
        status=1
    fi
    source=$work/$id.c
    {
        printf '#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include "nebula/nebula.h"\n#include "nebula/%s.h"\n' "$name"
        [ -f "tests/headers/$name.prelude" ] && cat "tests/headers/$name.prelude"
        split_sketch "$path" file
        printf 'int sketch_%s(void);\nint sketch_%s(void) {\n' "$id" "$id"
        split_sketch "$path" body
        printf 'return 0;\n}\n'
    } >"$source"
    # A sketch leaves variables unused; what must not pass is a wrong name, type or argument.
    # shellcheck disable=SC2086
    if ! "${CC:-gcc}" -std=c17 -Wall -Wextra -Werror -Wno-unused -Wno-unused-parameter -Wno-missing-field-initializers -Wno-return-type \
        -Wno-empty-body $includes -fsyntax-only "$source"; then
        echo "$path: its sketch does not compile" >&2
        status=1
    fi
done
for prelude in $(find tests/headers -type f -name '*.prelude' 2>/dev/null); do
    name=${prelude#tests/headers/}
    case $names in *" ${name%.prelude} "*) ;; *) echo "$prelude: no header nebula/${name%.prelude}.h" >&2; status=1 ;; esac
done
[ $status -eq 0 ] && report_files check_sketches $count
