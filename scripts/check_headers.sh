#!/bin/sh
# SPDX-License-Identifier: MIT
# check_headers.sh [ROOT]: every public header compiles alone as C17 and as C++17 with every compiler that is here, has its
# licence line, #pragma once and a usage sketch, and is part of nebula.h, but for those of modules and of nebula/advanced.
set -eu
. "$(dirname "$0")/files.sh"
root=${1:-$(dirname "$0")/..}
cd "$root"
status=0

warnings='-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror'
includes=$(public_includes)
compile() { # compiler language standard header
    command -v "$1" >/dev/null 2>&1 || return 0
    # Twice: a header must bear being included again.
    # shellcheck disable=SC2086
    if ! printf '#include "%s"\n#include "%s"\nextern int nbi_not_empty;\n' "$4" "$4" | "$1" -x "$2" -std="$3" $warnings $includes -fsyntax-only -; then
        echo "check_headers: $4 does not compile alone with $1 -std=$3" >&2
        status=1
    fi
}

compilers_c=$(printf '%s\n' "${CC:-gcc}" gcc clang | awk -F/ '!seen[$NF]++')
compilers_cxx=$(printf '%s\n' "${CXX:-g++}" g++ clang++ | awk -F/ 'NF && !seen[$NF]++')
count=0
for path in $(public_headers); do
    header=${path#*include/}
    count=$((count + 1))
    for compiler in $compilers_c; do compile "$compiler" c c17 "$header"; done
    for compiler in $compilers_cxx; do compile "$compiler" c++ c++17 "$header"; done
    grep -q '^#pragma once$' "$path" || { echo "$path: no #pragma once" >&2; status=1; }
    grep -q '^//     [^ ]' "$path" || { echo "$path: no usage sketch" >&2; status=1; }
    # The core is there without the modules; nebula/advanced is for hosts with parts of their own.
    case $path in include/nebula/nebula.h | include/nebula/advanced/* | modules/*) continue ;; esac
    grep -q "^#include \"$header\"" include/nebula/nebula.h || { echo "$path: nebula.h does not include it" >&2; status=1; }
done
[ $status -eq 0 ] && report_files check_headers $count
