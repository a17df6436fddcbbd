#!/bin/sh
# SPDX-License-Identifier: MIT
# check_dev.sh ROOT: ./dev refuses what it does not know with one line and exit status 2, from any directory.
set -eu
. "$(dirname "$0")/files.sh"
root=$(CDPATH='' cd -- "$1" && pwd)
cd /
status=0
refusals=0

refused() {
    refusals=$((refusals + 1))
    code=0
    output=$("$root/dev" "$@" 2>&1) || code=$?
    if [ "$code" -ne 2 ] || [ "$(echo "$output" | wc -l)" -ne 1 ]; then
        echo "check_dev: ./dev $*: exit $code, wanted 2 and one line; it said: $output" >&2
        status=1
    fi
}

refused frobnicate
refused --frobnicate
refused --no-install frobnicate
refused test now
refused check --fast
refused check --full --fast
refused bench --quickly
refused bench --only
refused bench --json
refused format --nicely
refused replay
"$root/dev" help | grep -q '^Usage: ' || { echo "check_dev: help says nothing" >&2; status=1; }

# Without any tool on the path, --no-install names what is missing and installs nothing.
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
trap 'exit 1' HUP INT TERM
for tool in sh cat date dirname nproc id tr wc env sed; do ln -s "$(command -v $tool)" "$tools/$tool"; done
for command in demo 'replay run.nbr'; do
    code=0
    # shellcheck disable=SC2086
    output=$(PATH=$tools "$root/dev" $command --no-install 2>&1) || code=$?
    case $output in
    *gcc*cmake*ninja-build*) ;;
    *) code=0 ;;
    esac
    [ "$code" -eq 1 ] || { echo "check_dev: $command --no-install on a bare path: exit $code: $output" >&2; status=1; }
done
[ $status -eq 0 ] && report_files check_dev 1 "$refusals refusals"
