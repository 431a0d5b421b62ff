#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# hardware.sh BUILD NAME: print a section for docs/hardware.md about the accelerator NAME on this
# machine: detection, identity, conformance, the scenarios of the simulator's tests on the real
# runtime, many threads, measurements, and for cuda the driver's own times and its behaviour beside
# captures. Exit code 1 if a check fails or the accelerator is absent.
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

# shellcheck disable=SC2317 # called by section
# scenarios: run those that need neither a simulator nor a second device; print each one's counts.
scenarios() {
    failed=0
    for scenario in facts work pageable memory pages vmem aligned released waited gone imports \
        exchanged capturing beside raced ended joined reopened frame again walk; do
        timeout 60 "$build/sim/drive" "$build/lib/ds-accel/ds_accel_$name.so" "$scenario" \
            >"$build/scenario.txt" 2>&1 || failed=1
        tail -n 1 "$build/scenario.txt"
        grep -E "^(failed|wrong|untold)" "$build/scenario.txt" || true
    done
    rm -f "$build/scenario.txt"
    return "$failed"
}

# shellcheck disable=SC2317 # called by section
# captures: print the lines that differ from the record.
captures() {
    here=$(cd "$(dirname "$0")/../.." && pwd)
    "$build/bench/captures" libcuda.so.1 | diff "$here/tests/sim/cuda/captures.txt" - &&
        echo "no difference"
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
section "Scenarios of the plugin (tests/sim/drive)" scenarios
section "Many threads (tests/threads)" env LD_LIBRARY_PATH="$build/lib" "$build/tests/threads" \
    "$build" "$name"
section "Figures" "$program" bench "$name" --size 64K,64M
if [ "$name" = cuda ]; then
    section "Beside the driver's own functions, in one run" "$build/bench/beside_cuda"
    section "What breaks a capture, compared with tests/sim/cuda/captures.txt" captures
fi
rm -f "$build/hardware.txt"
exit $code
