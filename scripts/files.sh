#!/bin/sh
# SPDX-License-Identifier: MIT
# What the checks share: lists of files at any depth, and the line that a check ends with. Sourced; the functions run in the
# root of the tree.

# The headers below include and below the include folder of each module.
public_headers() {
    for folder in include modules/*/include; do [ ! -d "$folder" ] || find "$folder" -type f -name '*.h'; done | sort
}

# The -I flags that find them.
public_includes() {
    for folder in include modules/*/include; do [ ! -d "$folder" ] || printf ' -I%s' "$folder"; done
}

# The sources below folders, of which some may be missing.
sources_below() { # folder...
    for folder; do [ ! -d "$folder" ] || find "$folder" -type f -name '*.c'; done | sort
}

# `check_docs: 31 files, 12 functions`, the last line of a check that found nothing. A check that read no file fails.
report_files() { # check count [what else it counted]
    if [ "$2" -eq 0 ]; then
        echo "$1: no files" >&2
        return 1
    fi
    if [ "$2" -eq 1 ]; then noun=file; else noun=files; fi
    echo "$1: $2 $noun${3:+, $3}"
}
