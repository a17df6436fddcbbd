#!/bin/sh
# SPDX-License-Identifier: MIT
# pictures.sh [FOLDER]: draws the pictures of the README anew, by the demo's own script, into docs/pictures or FOLDER. Any
# Vulkan 1.3 device does; without a graphics card it takes some minutes.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
folder=${1:-$root/docs/pictures}
cd "$root"
mkdir -p build
if ! { cmake --preset release && cmake --build build/release --target nebula_demo; } >build/pictures.log 2>&1; then
    cat build/pictures.log
    exit 1
fi
build/release/nebula-demo --gpu vulkan --no-window --lockstep --quality 7 --size 960x540 --script demo/scripts/postcards.txt \
    --pictures "$folder"
