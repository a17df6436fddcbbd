#!/bin/sh
# SPDX-License-Identifier: MIT
# golden_pictures.sh: makes tests/golden/pictures anew with lavapipe, after a change of what the demo shows. Look at them
# before you commit them.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$root"
mkdir -p build
log=build/golden_pictures.log
if ! { cmake --preset release && cmake --build build/release --target nebula_demo; } >"$log" 2>&1; then
    cat "$log"
    exit 1
fi
sh tests/pictures/golden.sh --write build/release/nebula-demo - tests/golden/pictures build/golden_pictures
