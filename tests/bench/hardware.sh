#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# hardware.sh BUILD NAME: print a section for docs/hardware.md about the accelerator NAME on this
# machine: detection, identity, conformance, measurements, and for cuda the driver's own times
# beside them. Exit code 1 if a rule is broken or the accelerator is absent.
set -eu
build=$1
name=$2
program=$build/bin/ds-accel
code=0
DS_ACCELERATOR=$name
export DS_ACCELERATOR

# section TITLE COMMAND...: print the output of COMMAND, indented for Markdown.
section() {
    printf '\n%s:\n\n' "$1"
    shift
    "$@" >"$build/hardware.txt" 2>&1 || code=1
    sed 's/^/    /; s/ *$//' "$build/hardware.txt"
}

"$program" -q detect >/dev/null || {
    "$program" detect || true
    exit 1
}
# The first word of the first line that looks like a version: NVIDIA's open kernel module has other
# words before its version than the closed one.
driver=$(sed q "${DS_ACCEL_ROOT:-}/proc/driver/nvidia/version" 2>/dev/null | tr -s ' \t' '\n' |
    grep -Ex '[0-9]+(\.[0-9]+)+' | sed q)
echo "## $name, $(date -u +%F)${driver:+, driver $driver}"
printf '\n%s, Linux %s, %s processors, ds-accel %s.\n' "$(uname -m)" "$(uname -r)" "$(nproc)" \
    "$("$program" --version | head -n 1 | sed 's/^ds-accel //')"
section "Chosen" "$program" detect -v
section "Why" "$program" explain "$name"
section "What it says of itself" "$program" info "$name"
section "Rules kept" "$program" conformance "$name"
section "Figures" "$program" bench "$name" --size 64K,64M
if [ "$name" = cuda ]; then
    section "Beside the driver's own functions, in one run" "$build/bench/beside_cuda"
fi
rm -f "$build/hardware.txt"
exit $code
