#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# A child of fork() whose parent has used an accelerator: the result of a new context in the child,
# for each vendor's plugin on its simulator (which aborts a process that uses it on both sides of a
# fork), for opencl over PoCL (which hangs), and for cpu and mock, which start again. test_fork.sh
# BUILD
set -eu
build=$(cd "$1" && pwd -P)
here=$(cd "$(dirname "$0")" && pwd -P)
# shellcheck source=tests/tools/lib.sh
. "$here/../tools/lib.sh"
: "${CC:=gcc}"
unset SIM_MACHINE SIM_FAIL SIM_LATENCY_US SIM_LOSE SIM_REPORT DS_ACCEL_PROBE 2>/dev/null || true
export SIM_BUILD="$build" DS_ACCEL_SUPA_NUMBERING=cuda
sim=$here/ds-accel-sim

# shellcheck disable=SC2086 # words
"$CC" -std=c11 -D_GNU_SOURCE -Wall -Wextra ${SAN:+-fsanitize=$SAN} -I"$build/include/ds-accel" \
    -o "$dir/fork" "$here/fork/fork.c" -L"$build/lib" -lds_accel -Wl,-rpath,"$build/lib"

refused="forced: -12 says what to do
check: forked
detected: -12 says what to do
cpu: cpu works
spawned: works
grandchild: -12 says what to do"

for mode in isolated in-process; do
    export DS_ACCEL_PROBE=$mode
    for vendor in cuda rocm xpu npu hpu mlu sdaa supa; do
        run timeout 300 "$sim" "$vendor" "$dir/fork" "$vendor"
        is "$vendor, probed $mode" "0 $refused" "$code $out"
        run timeout 300 "$sim" "$vendor" "$dir/fork" "$vendor" ended
        is "$vendor, probed $mode, whose context was destroyed" "0 $refused" "$code $out"
    done
done
# With DS_ACCEL_PROBE=in-process and only a probe in the parent, the child is the first to start the
# runtime.
for vendor in cuda rocm xpu npu hpu mlu sdaa supa; do
    run timeout 300 "$sim" "$vendor" "$dir/fork" "$vendor" only-probed
    is "$vendor, only probed before the fork" "0 forced: $vendor works
check: available
detected: $vendor works
cpu: cpu works
spawned: works
grandchild: -12 says what to do" "$code $out"
done
unset DS_ACCEL_PROBE

for backend in cpu mock; do
    for mode in "" ended; do
        # shellcheck disable=SC2086 # a word or none
        run timeout 300 env DS_ACCEL_CPU_ASYNC=true "$sim" none "$dir/fork" $backend $mode
        is "$backend starts anew${mode:+, $mode}" "0 forced: $backend works
check: $([ $backend = mock ] && echo demand_only || echo available)
detected: cpu works
cpu: cpu works
spawned: works
grandchild: $backend works" "$code $out"
    done
done

# Detection does not choose opencl by itself.
if [ -e /etc/OpenCL/vendors/pocl.icd ]; then
    mkdir "$dir/vendors" "$dir/pocl"
    cp /etc/OpenCL/vendors/pocl.icd "$dir/vendors/"
    export OCL_ICD_VENDORS="$dir/vendors" POCL_CACHE_DIR="$dir/pocl" DS_ACCEL_OPENCL_DEVICE_TYPE=cpu
    for mode in isolated in-process; do
        run env DS_ACCEL_PROBE=$mode timeout 300 "$sim" none "$dir/fork" opencl
        is "opencl over PoCL, probed $mode" "0 forced: -12 says what to do
check: forked
detected: cpu works
cpu: cpu works
spawned: works
grandchild: -12 says what to do" "$code $out"
    done
else
    echo "test_fork: not tested: opencl: PoCL is not installed"
fi

finish
