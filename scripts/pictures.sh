#!/bin/sh
# SPDX-License-Identifier: MIT
# pictures.sh [FOLDER]: draws the pictures of the README anew, by the demo's own script, into docs/pictures or FOLDER. Any
# Vulkan 1.3 device does; without a graphics card it takes some minutes.
set -eu
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
folder=${1:-$root/docs/pictures}
demo=${NEBULA_DEMO:-$root/build/release/nebula-demo}
[ -x "$demo" ] || { echo "pictures: no $demo: ./dev build release first, or set NEBULA_DEMO" >&2; exit 2; }
"$demo" --gpu vulkan --no-window --lockstep --quality 7 --size 960x540 --script "$root/demo/scripts/postcards.txt" \
    --pictures "$folder"
