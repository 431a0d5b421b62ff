#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The behaviour of the frame of the vendors' plugins (plugins/common) that no vendor's own test
# covers, mostly over the simulated CUDA: several threads, lost devices, captures, the probing
# process.
#
#     test_frame.sh BUILD
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/tools/lib.sh
. "$here/../tools/lib.sh"
vendor=cuda
# shellcheck source=tests/sim/vendor.sh
. "$here/vendor.sh"
unset CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER LD_LIBRARY_PATH 2>/dev/null || true

# whole NAME: checks that the last command succeeded, printed nothing, and left no object alive.
whole() {
    is "$1" "0 " "$code $out$err"
    is "$1: nothing is left" "" "$(grep '^alive' "$dir/report" || true)"
}

# The simulator reports the use of a destroyed stream as misuse.
drive "$machine" waited
whole "streams come and go while another thread asks the device"

# device_close() closes memory that was opened twice and not closed, twice.
drive "$machine" imports
whole "four threads open and close the same memory"

drive "$machine" peer
whole "memory that is freed while it is copied to another device"

SIM_LOSE=0@copy:1 drive "$machine" lost
is "a task of a lost device runs before anybody can wait for it" "0 " "$code $out"

# Only the thread that began a CUDA capture can end it, unless it is relaxed; any thread can end
# ACL's.
drive "$machine" ended
whole "another thread does not end a capture"
# A host that recognises the hardware note reports the same verdict as the plugin itself.
mkdir "$dir/bare"
for vendor in cuda rocm xpu npu hpu mlu sdaa supa; do
    driven env DS_ACCEL_ROOT="$dir/bare" "$drive" "$build/lib/ds-accel/ds_accel_$vendor.so" probe
    has "$vendor: the host speaks for the plugin" "$out" \
        "reason 1 $(verdict env DS_ACCEL_ROOT="$dir/bare" | sed 's/^unavailable no_device //')"
done
vendor=npu
machine=$here/machines/npu.json
plugin=$build/lib/ds-accel/ds_accel_npu.so
drive "$machine" ended
is "another thread ends a capture, where the runtime lets it" "0 another thread ended it" "$code $out"
for vendor in cuda rocm mlu; do
    machine=$here/machines/$vendor.json
    plugin=$build/lib/ds-accel/ds_accel_$vendor.so
    drive "$machine" joined
    whole "$vendor: asking a device leaves captures alone"
done

for vendor in cuda rocm xpu npu mlu sdaa; do
    machine=$here/machines/$vendor.json
    plugin=$build/lib/ds-accel/ds_accel_$vendor.so
    drive "$machine" gone
    whole "$vendor: a stream that was destroyed is waited for"
    drive "$machine" reopened
    whole "$vendor: a host task opens the device that is being closed"
done

# The message names the limit of locked memory beside the vendor's own code.
machine=$here/machines/npu.json
plugin=$build/lib/ds-accel/ds_accel_npu.so
if prlimit --memlock=65536 true 2>/dev/null; then
    driven env SIM_FAIL=aclrtMallocHost:1=207012 prlimit --memlock=65536 \
        "$sim" "$machine" "$drive" "$plugin" work
    has "a limit of locked memory" "$out" "failed mem_alloc_pinned: "
    has "a limit of locked memory: the code" "$out" " 207012 ACL_ERROR_RT_OVER_LIMIT: "
    has "a limit of locked memory: the limit" "$out" "RLIMIT_MEMLOCK is 65536 bytes"
else
    echo "test_frame: a limit of locked memory is not tested: it cannot be lowered here"
fi

# visible_devices_value() rejects a list with a duplicate, for which CUDA would show no device.
machine=$here/machines/cuda.json
plugin=$build/lib/ds-accel/ds_accel_cuda.so
drive "$machine" shown CUDA_VISIBLE_DEVICES
is "a device that is named twice is refused" \
    "1 shown 1,0
failed visible_devices_value: -1 0 -: visible_devices_value: device 1 is named twice
then untouched" "$code $out"

# Rejections, delays and waits that the frame implements itself.
for vendor in cuda rocm xpu npu hpu mlu sdaa; do
    machine=$here/machines/$vendor.json
    plugin=$build/lib/ds-accel/ds_accel_$vendor.so
    drive "$machine" frame
    whole "$vendor: the frame"
done
machine=$here/machines/cuda.json
plugin=$build/lib/ds-accel/ds_accel_cuda.so
drive "$machine" frame cuInit
whole "the vendor's library is the plugin's own"
# After one injected failure a repeated call succeeds, and the failed call leaves no object alive.
for call in cuStreamBeginCapture_v2 cuMemHostRegister_v2; do
    SIM_FAIL=$call:1 drive "$machine" frame
    whole "$call fails once"
    has "$call fails once: it was called" "$(cat "$dir/report")" "failed $call"
done
SIM_FAIL=cuCtxGetStreamPriorityRange:1 drive "$machine" frame
is "a device that could not be opened: code" 1 "$code"
is "a device that could not be opened is closed" "" "$(grep '^alive' "$dir/report" || true)"
for vendor in cuda rocm npu mlu; do
    machine=$here/machines/$vendor.json
    plugin=$build/lib/ds-accel/ds_accel_$vendor.so
    SIM_LOSE=0@copy:1 drive "$machine" order
    is "$vendor: tasks of a lost device" "0 " "$code $out"
done

# The frame copies on a stream of its own. A stream whose copy failed is not used again: the second
# copy creates the third stream, after the default stream and that of the first copy.
machine=$here/machines/xpu.json
plugin=$build/lib/ds-accel/ds_accel_xpu.so
SIM_FAIL=zeCommandListHostSynchronize:1=0x7ffffffe,zeCommandListCreateImmediate:3=0x78000001 \
    drive "$machine" copied
has "a copy fails" "$out" "failed mem_copy: -4 2147483646 ZE_RESULT_ERROR_UNKNOWN: zeCommandListHostSynchronize("
has "a copy fails: the next one has another stream" "$out" \
    "failed mem_copy: -6 2013265921 ZE_RESULT_ERROR_UNINITIALIZED: zeCommandListCreateImmediate("
is "a copy fails: nothing is left" "" "$(grep '^alive' "$dir/report" || true)"

# -- the probing process --

machine=$here/machines/cuda.json
plugin=$build/lib/ds-accel/ds_accel_cuda.so
export SIM_LATENCY_US=cuInit=20000
drive "$machine" probe
is "signals of the program do not end it" \
    "0 state 1 reason 0 libcuda.so.1, driver 580.65.06, 2 devices" "$code $out"
unset SIM_LATENCY_US
driven env LD_LIBRARY_PATH="$build/sim/lib" SIM_MACHINE=/nonexistent.json DS_ACCEL_CUDA_PRESENCE=off \
    "$drive" "$plugin" probe
is "a crash in it is none of the program's" \
    "0 state 3 reason 11 the vendor's library terminated the probing process, signal 6" "$code $out"
"$CC" -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$dir/libexits.so" -x c - <<'END'
#include <stdlib.h>
__attribute__((constructor)) static void leave(void)
{
    _Exit(7);
}
END
driven env DS_ACCEL_CUDA_PRESENCE=off DS_ACCEL_CUDA_LIBRARY="$dir/libexits.so" "$drive" "$plugin" probe
is "a library that exits" \
    "0 state 3 reason 11 the vendor's library terminated the probing process, exit code 7" "$code $out"
# A status that a backend sets in the probing process is the status of probe.
vendor=npu
drops_status() {
    ! "$sim" "$here/machines/npu.json" "$drive" "$wrong" probe | grep -Fx 'failed probe: -2 0 -: no room'
}
wrong "a status of the probing process" 's/^    npu_dcmi_open(runtime);/\
    vendor_problem_set(problem, DS_ACCEL_REASON_NONE, "no room");\
    problem->status = DS_ACCEL_ERR_NO_MEMORY;\
    return -1;/' npu.c drops_status
for vendor in cuda rocm xpu npu hpu mlu sdaa; do
    plugin=$build/lib/ds-accel/ds_accel_$vendor.so
    drive "$here/machines/$vendor.json" again
    is "$vendor: asked in a process that uses it" 0 "$code"
    has "$vendor: asked in a process that uses it, says" "$out" "state 1 reason 0 lib"
done

finish
