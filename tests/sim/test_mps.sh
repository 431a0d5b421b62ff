#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Tests of the mps plugin over a simulated libobjc and Metal, on machines other than a Mac.
# test_mps.sh BUILD
set -eu
build=$(cd "$1" && pwd -P)
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$source/tests/tools/lib.sh"
if [ "$(uname -s)" = Darwin ]; then
    echo "test_mps: not run: this machine has Metal itself"
    finish
    exit
fi
# shellcheck source=tests/sim/drive.sh
. "$source/tests/sim/drive.sh"
plugin=$build/sim/plugins/ds_accel_mps.so
metal=$build/sim/lib/Metal
objc=$build/sim/lib/libobjc.A.dylib

# on [VARIABLE=VALUE...] COMMAND...: runs the command on the simulated Mac.
on() {
    driven "$source/tests/sim/ds-accel-sim" mac env DS_ACCEL_PLUGIN_PATH="$build/sim/plugins" \
        DS_ACCEL_MPS_LIBRARY="$metal" DS_ACCEL_MPS_OBJC_LIBRARY="$objc" "$@"
}

# The plugin is not part of the product on this machine, and its absence is explained.
is "not among the plugins" "" "$(find "$build/lib/ds-accel" -name '*mps*')"
run env DS_ACCEL_PLUGIN_PATH="$build/sim/plugins" DS_ACCELERATOR=mps "$build/bin/ds-accel" detect
is "the library is absent" 4 "$code"
has "the library is absent, says" "$err" \
    "library_missing: /usr/lib/libobjc.A.dylib: no such library is installed"
run env DS_ACCEL_PLUGIN_PATH="$build/sim/plugins" DS_ACCELERATOR=mps DS_ACCEL_MPS_LIBRARY="$metal" \
    DS_ACCEL_MPS_OBJC_LIBRARY="$objc" "$build/bin/ds-accel" detect
is "the library is there, no device" 4 "$code"
has "the library is there, says" "$err" "no_device: "
on "$build/bin/ds-accel" detect
is "a device" "0 mps" "$code $out"

on DS_ACCELERATOR=mps "$build/bin/ds-accel" info
is "info" 0 "$code"
for line in "device 0: Apple M3 Max, 1.0 GiB of 1.0 GiB available" "supported_dtypes             float32" \
    "is_bf16_supported            no" "is_fp16_supported            no" \
    "use_host_timers              yes" "is_synchronized_device       no"; do
    has "info: $line" "$out" "$line"
done
on "$build/bin/ds-accel" lint "$plugin"
is "lint" 0 "$code"
on "$build/bin/ds-accel" conformance mps
is "conformance" "0 mps, device 0: 133 passed, 0 failed, 81 skipped" "$code $(echo "$out" | tail -n 1)"
on DS_ACCELERATOR=mps "$build/bin/ds-accel" bench --json --time 0.01 --size 64K \
    --only copy,fill,alloc,event
is "bench" 0 "$code"

# The scenarios have work for the GPU (copies within, fills of a byte) and for the host, one after
# the other.
for case in work pageable; do
    on "$drive" "$plugin" $case
    is "$case" "0  " "$code $out $err"
    on SIM_LATENCY_US=copy=5000,fill=5000 "$drive" "$plugin" $case
    is "$case, slow" "0  " "$code $out $err"
done
on SIM_LOSE=0@copy:1 "$drive" "$plugin" work
is "lost in mid-copy" 1 "$code"
has "lost in mid-copy, says" "$out" ": -10 11 MTLCommandBufferErrorDeviceRemoved: "
is "after that nothing is asked" "" "$(echo "$out" | grep -v '^failed [a-z_]*: -10 ' || true)"
on 'SIM_FAIL=commit:2=99' "$drive" "$plugin" work
has "a code that nobody knows" "$out" ": -4 99 -: MTLCommandBuffer commit: error (99)"
on 'SIM_FAIL=newBufferWithLength:*=1' "$drive" "$plugin" work
has "no memory" "$out" "failed mem_alloc: -2 "

# Every call that can fail (of the sample) fails once; no object may be left.
n=0
while :; do
    n=$((n + 1))
    taken 3 || continue
    rm -f "$dir/report"
    on SIM_REPORT="$dir/report" SIM_FAIL="*:$n" timeout 60 "$drive" "$plugin" walk
    grep -q ^failed "$dir/report" 2>/dev/null || break
    [ "$code $err $(grep -c '^alive' "$dir/report" || true)" = "0  0" ] ||
        fail "call $n fails" "exit $code $out $err $(cat "$dir/report")"
done
is "call $n is beyond the last: nothing failed, and all went well" "0 " \
    "$code $(printf '%s\n' "$out" | grep -v '^failed [a-z_]*: -3 ' || true)"
is "that is a lot of calls" yes "$([ $n -le 40 ] || echo yes)"

# mutant NAME FILE SED: checks that a method's argument in another place, or a wrong number, is
# detected. A sample of the mistakes is tested.
mutant() {
    name=$1
    file=$2
    rm -rf "$dir/mutant"
    mkdir "$dir/mutant"
    cp "$source"/plugins/mps/*.[ch] "$dir/mutant"
    sed -i "$3" "$dir/mutant/$file"
    if cmp -s "$dir/mutant/$file" "$source/plugins/mps/$file"; then
        fail "mutant $name: nothing to change"
        return
    fi
    taken 3 || return 0
    "$CC" -std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden -shared -w -I"$dir/mutant" -I"$source" \
        -I"$source/plugins/common" -o "$dir/ds_accel_mps.so" "$dir"/mutant/*.c \
        "$build"/obj/plugins/common/*.o -lpthread -ldl 2>"$dir/cc" || {
        fail "mutant $name: does not compile" "$(cat "$dir/cc")"
        return
    }
    on timeout 20 "$drive" "$dir/ds_accel_mps.so" work
    if [ "$code" != 0 ]; then
        pass
    else
        fail "mutant $name is not found" "$out"
    fi
}

if [ -z "${SAN-}" ]; then
    # copyFromBuffer:sourceOffset:toBuffer:destinationOffset:size: has the source first
    mutant "destination first" send.c \
        's/encoder, selector, source, source_offset, destination, destination_offset/encoder, selector, destination, destination_offset, source, source_offset/'
    # order of a range: {location, length}
    mutant "length before the location" send.c 's/range = {offset, size_bytes}/range = {size_bytes, offset}/'
    # shared is 0; a private buffer would have no contents
    mutant "private storage" objc.h 's/MTL_STORAGE_SHARED 0u/MTL_STORAGE_SHARED 32u/'
    mutant "completed is taken for a failure" objc.h 's/MTL_STATUS_ERROR 5u/MTL_STATUS_ERROR 4u/'
    mutant "no pool" queue.c \
        '/^int32_t mps_commit/,/^}/{s/= runtime->objc.objc_autoreleasePoolPush()/= NULL/; /autoreleasePoolPop/d}'
    mutant "released twice" queue.c 's/^        runtime->objc.objc_release(last);/&&/'
fi

finish
