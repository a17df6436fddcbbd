#!/bin/sh
# SPDX-License-Identifier: MIT
# Sourced by the scripts that test a program with a golden file: they need both, and count their failures in a folder of their own.
if [ $# -ne 2 ]; then
    echo "usage: $(basename "$0") PROGRAM GOLDEN" >&2
    exit 2
fi
program=$1 golden=$2
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
failures=0
