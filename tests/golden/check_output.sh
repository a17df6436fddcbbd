#!/bin/sh
# SPDX-License-Identifier: MIT
# check_output.sh FILE PROGRAM [ARGUMENT...]: what the program prints is what stands in the file.
set -eu
golden=$1
shift
"$@" | diff "$golden" - || { echo "the output of $* is not $golden" >&2; exit 1; }
