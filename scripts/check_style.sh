#!/bin/sh
# SPDX-License-Identifier: MIT
# check_style.sh [ROOT]: file and function sizes, licence lines, no unfinished work, scripts that can be executed, and the format
# where clang-format 14 is installed (other versions format differently).
set -eu
. "$(dirname "$0")/files.sh"
root=${1:-$(dirname "$0")/..}
cd "$root"

list=$(find src include modules demo tools examples bench tests -type f \( -name '*.c' -o -name '*.h' -o -name '*.cpp' \) 2>/dev/null | sort)
[ -n "$list" ] || { echo "check_style: no sources below $root" >&2; exit 1; }
status=0

# shellcheck disable=SC2086
functions=$(awk -v file_max=1000 -v function_max=70 '
function report(line, message) { printf "%s:%d: %s\n", name, line, message > "/dev/stderr"; bad = 1 }
function close_file() { if (name != "" && lines > file_max) report(lines, "file of " lines " lines, " file_max " at most") }

FNR == 1 {
    close_file(); name = FILENAME; start = 0; open = 0
    if ($0 !~ /^\/\/ SPDX-License-Identifier: MIT$/) report(1, "the first line is not the licence line")
}
{ lines = FNR }
/TODO|FIXME|XXX/ { report(FNR, "unfinished work") }
/\t/ { report(FNR, "tab") }

# clang-format puts a definition at the left margin and its closing brace alone at the left margin.
!open && /^[A-Za-z_]/ && /\(/ && !/;[ \t]*(\/\/.*)?$/ && !/^(typedef|struct|enum|union|extern "C")/ { start = FNR }
!open && start && /^[^\/#]*;[ \t]*(\/\/.*)?$/ { start = 0 }
!open && start && /\{[ \t]*(\/\/.*)?$/ { open = 1 }
!open && start && /\}[ \t]*$/ { start = 0 }
open && /^\}/ {
    ++functions
    size = FNR - start + 1
    if (size > function_max) report(start, "function of " size " lines, " function_max " at most")
    open = 0; start = 0
}
END { close_file(); if (bad) exit 1; print functions + 0 " functions of several lines" }
' $list) || status=1

# A script without its mode answers "Permission denied". Git has a mode of its own where file systems have none.
scripts=$(
    find . -path './build*' -prune -o -type f \( -name '*.sh' -o -path ./dev -o -path ./.ci/run \) ! -perm -100 -print | sed 's|^\./||'
    git ls-files -s -- '*.sh' dev .ci/run 2>/dev/null | awk '$1 == "100644" { print $4 }'
)
for script in $(echo "$scripts" | sort -u); do
    echo "$script: not executable (chmod +x, git update-index --chmod=+x)" >&2
    status=1
done

# The format of C sources, with the one version the tree is written for.
format=
for candidate in clang-format-14 clang-format; do
    if command -v "$candidate" >/dev/null 2>&1 && "$candidate" --version | grep -q 'version 14\.'; then
        format=$candidate
        break
    fi
done
if [ -z "$format" ]; then
    echo "check_style: clang-format 14 is not installed, the format was not checked"
elif [ ! -f .clang-format ]; then
    echo "check_style: no .clang-format below $root, the format was not checked"
else
    # shellcheck disable=SC2086
    "$format" --dry-run --Werror $list || status=1
fi
[ $status -eq 0 ] && report_files check_style "$(echo "$list" | wc -l)" "$functions"
