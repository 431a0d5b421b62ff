#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Tests of the mlu plugin over simulated CNRT, CNDev and CNPX.
#
#     test_mlu.sh BUILD
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck disable=SC2034 # for vendor.sh
vendor=mlu
# shellcheck source=tests/tools/lib.sh
. "$here/../tools/lib.sh"
unset MLU_VISIBLE_DEVICES NEUWARE_HOME CNPX_LIB_PATH 2>/dev/null || true
# shellcheck source=tests/sim/vendor.sh
. "$here/vendor.sh"

# ---- detection -----------------------------------------------------------------------------------

is "available" "available - libcnrt.so, driver 6.2.10, 2 devices" "$(verdict "$sim" mlu)"
has "no hardware" "$(verdict "$sim" none)" "unavailable no_device "
has "no hardware: what was looked for" "$(verdict "$sim" none)" "/dev/cambricon_ctl"
has "the library is absent" "$(verdict bare)" "unavailable library_missing libcnrt.so, "
is "the library is there, and no device" "unavailable no_device" \
    "$(verdict bare env SIM_MACHINE="$here/machines/none.json" LD_LIBRARY_PATH="$build/sim/lib" | cut -d' ' -f1,2)"
is "hidden" 'unavailable hidden MLU_VISIBLE_DEVICES="" hides every device' \
    "$(MLU_VISIBLE_DEVICES='' verdict "$sim" mlu)"
is "hidden by a number that is there twice" 'unavailable hidden MLU_VISIBLE_DEVICES="0,1,1" hides every device: it names one twice' \
    "$(MLU_VISIBLE_DEVICES=0,1,1 verdict "$sim" mlu)"
variant broken 'v["driver_state"] = "broken"'
is "CNRT does not start" "error driver_failed cnrtGetDeviceCount(): cnrtErrorInit (100002)" \
    "$(verdict "$sim" "$dir/broken.json")"
refused /dev/cambricon_ctl
mkdir "$dir/half"
echo 'int cnrtGetDeviceCount(unsigned *count) { return count == 0; }' |
    "$CC" -xc -shared -fPIC -o "$dir/half/libcnrt.so" -
has "a library that is too old" "$(LD_LIBRARY_PATH=$dir/half verdict bare)" "unavailable symbol_missing"
mkdir -p "$dir/neuware/lib64"
ln -s "$build/sim/lib/libsim_mlu.so" "$dir/neuware/lib64/libsim_mlu.so"
cp "$build/sim/lib/libcnrt.so" "$dir/neuware/lib64/"
has "by NEUWARE_HOME" "$(verdict bare env SIM_MACHINE="$machine" NEUWARE_HOME="$dir/neuware")" \
    "available - $dir/neuware/lib64/libcnrt.so"

# ---- identity ------------------------------------------------------------------------------------

drive mlu facts
has "device 0" "$out" "device 0 vendor 0 pci 0000:4f:00.0 uuid cabc0590-5a10-4e02-b6d1-2f9a7c3e8d01 node /dev/cambricon_dev0 numa 0 memory 1073741824 name MLU590-M9"
has "device 1" "$out" "device 1 vendor 1 pci 0000:d0:00.0 uuid cabc0590-8c27-41f9-93ae-7b60d15f4e02 node /dev/cambricon_dev1 numa 1"
has "the driver's version" "$out" "driver 6.2.10"
MLU_VISIBLE_DEVICES=1 drive mlu facts
has "one visible device" "$out" "device 0 vendor 1 pci 0000:d0:00.0 uuid cabc0590-8c27-41f9-93ae-7b60d15f4e02 node /dev/cambricon_dev1 numa 1"
MLU_VISIBLE_DEVICES=1,0 drive mlu facts
has "visible the other way round" "$out" "device 1 vendor 0 pci 0000:4f:00.0"
# The slowest device is first in the file: both libraries count by PCI address.
variant turned 'v["order"] = "pci"; v["devices"].reverse()'
drive "$dir/turned.json" facts
has "by PCI: 0" "$out" "device 0 vendor 0 pci 0000:4f:00.0 uuid cabc0590-5a10-4e02-b6d1-2f9a7c3e8d01"
for where in mlu "$dir/turned.json"; do
    for name in 0000:d0:00.0 cabc0590-8c27-41f9-93ae-7b60d15f4e02; do
        run "$sim" "$where" "$build/bin/ds-accel" bench mlu --json --only event --time 0.001 --device "$name"
        is "bench of $name on $(basename "$where")" "0 0000:d0:00.0" \
            "$code $(printf '%s' "$out" | python3 -c 'import json, sys; print(json.load(sys.stdin)["device"]["pci_address"])')"
    done
done

# ---- facts ---------------------------------------------------------------------------------------

sensors="valid 0x105d utilization 37 temperature 50000 power 110000 power_limit 350000 core_clock 1000000 memory_used 67108864 memory_total 1073741824"
drive mlu facts 67108864
has "sensors" "$out" "device 0 $sensors"
has "processes" "$out" "device 0 process 1 of 1 memory 67108864"
# A library of API version 5 has neither the V2 structs nor the newer power struct.
variant old 'v["cndev_version"] = 5; v["not_ready"] = 632014'
drive "$dir/old.json" facts 67108864
has "sensors of an old library" "$out" "device 0 valid 0x1045 utilization 37 temperature 50000 core_clock 1000000 memory_used 67108864 memory_total 1073741824"
has "an old library's cards" "$("$sim" "$dir/old.json" "$drive" "$plugin" facts)" \
    "device 1 vendor 1 pci 0000:d0:00.0 uuid cabc0590-8c27-41f9-93ae-7b60d15f4e02"
variant heat 'v["devices"][1]["temperature"] = 77'
MLU_VISIBLE_DEVICES=1 drive "$dir/heat.json" facts 0
has "sensors of the right card" "$out" "device 0 valid 0x105d utilization 37 temperature 86000"
drive mlu ranges
is "ranges that nobody looks at" "0 " "$code $out"
DS_ACCEL_MLU_CNDEV_LIBRARY=/nowhere/libcndev.so drive mlu facts 0
has "no library of sensors: nothing is known" "$out" "device 0 valid 0x0 "
CNPX_LIB_PATH=$build/sim/lib/libcnpx.so SIM_RANGES=$dir/ranges drive mlu ranges
is "ranges" "0 push step,push forward,pop,push backward,pop,pop" "$code $(paste -sd, "$dir/ranges")"
run "$sim" mlu "$build/bin/ds-accel" info mlu --json
has "info: bf16" "$out" '"is_bf16_supported": true'
variant mlu290 'for d in v["devices"]: d["bf16"] = 0'
run "$sim" "$dir/mlu290.json" "$build/bin/ds-accel" info mlu --json
has "info: a card without bf16" "$out" '"is_bf16_supported": false'
run "$sim" mlu "$build/bin/ds-accel" bench mlu --json --only copy,alloc --size 64K --time 0.001
is "bench" 0 "$code"
has "bench: copies" "$out" '"state": "measured"'

# ---- conformance ---------------------------------------------------------------------------------

# Checks are skipped for functions that CNRT lacks, or that have no known signature: registering the
# caller's memory, managed and virtual memory, a stream-ordered allocator, updating and showing
# graphs.
export CNPX_LIB_PATH="$build/sim/lib/libcnpx.so"
for where in mlu "$dir/old.json" "$dir/turned.json"; do
    conforms "conformance on $(basename "$where" .json)" "$where" "168 passed, 0 failed, 46 skipped"
done
# Only CNDev reports the processes that use a device: without CNDev, the error says so, and nothing
# else fails.
DS_ACCEL_MLU_CNDEV_LIBRARY=/nowhere/libcndev.so
export DS_ACCEL_MLU_CNDEV_LIBRARY
conforms "conformance without CNDev" mlu "167 passed, 0 failed, 47 skipped"
unset CNPX_LIB_PATH DS_ACCEL_MLU_CNDEV_LIBRARY

drive mlu share
has "memory and events for others" "$out" "event: 64 bytes"

# ---- failures ------------------------------------------------------------------------------------

drive mlu memory
has "memory is exhausted" "$out" "failed mem_alloc: -2 100100 cnrtErrorNoMem: cnrtMalloc(67108864 bytes, device 0): cnrtErrorNoMem (100100)"
has "and the device goes on" "$out" "parts 16
and one that fits"
is "nothing is left" "" "$(grep '^alive' "$dir/report" || true)"
SIM_FAIL='cnrtMalloc:1=424242' drive mlu work
has "a code that nobody knows keeps its number" "$out" "failed mem_alloc: -4 424242 simulated failure: "
# The status for each code, which is reported with its name. 632006 is a resource of another device,
# which is an error of the caller.
while read -r number status name; do
    SIM_FAIL="cnrtMalloc:1=$number" drive mlu work
    has "code $number" "$out" "failed mem_alloc: $status $number $name: cnrtMalloc("
done <<'END'
100133 -4 cnrtErrorKernelUserTrap
100302 -1 cnrtErrorInvalidKernel
100303 -3 cnrtErrorUnsupportedKernelVersion
100361 -12 cnrtErrorQueueCaptureInvalidated
100362 -12 cnrtErrorQueueCaptureWrongThread
100363 -12 cnrtErrorQueueCaptureMerged
100364 -12 cnrtErrorQueueCaptureUnjoined
100365 -12 cnrtErrorQueueCaptureIsolation
100366 -12 cnrtErrorQueueCaptureUnmatched
100400 -12 cnrtErrorTaskTopoEntityUpdateFailure
101312 -5 cnrtErrorNoKernel
101315 -5 cnrtErrorNoModule
632006 -1 cnrtErrorDevice
632009 -5 cnrtErrorNoAttribute
632015 -4 cnrtErrorCndrvFuncCall
632100 -1 cnrtErrorInvalidSymbol
END
# A resource of another device, or a failed driver call, does not mean a lost device while the card
# is healthy.
for number in 632006 632015; do
    SIM_FAIL="cnrtMalloc:1=$number" drive mlu walk
    has "code $number is told" "$out" "failed mem_alloc: "
    is "code $number: the device goes on" "" "$(printf '%s\n' "$out" | grep ': -10 ' || true)"
done
# Without CNDev the plugin cannot recognize a lost device: its calls fail, each with the driver's
# code.
DS_ACCEL_MLU_CNDEV_LIBRARY=/nowhere/libcndev.so
export DS_ACCEL_MLU_CNDEV_LIBRARY
SIM_LOSE="0@copy:1" drive mlu work
unset DS_ACCEL_MLU_CNDEV_LIBRARY
has "lost without CNDev: told" "$out" ": -4 632015 cnrtErrorCndrvFuncCall: "
for copy in 1 2 3; do
    SIM_LOSE="0@copy:$copy" drive mlu work
    is "lost in copy $copy" 1 "$code"
    has "lost in copy $copy: told" "$out" ": -10 632015 cnrtErrorCndrvFuncCall: "
    is "lost in copy $copy: what is left" "" "$(grep '^alive' "$dir/report" || true)"
done
every_call work 'cnrtQueueDestroy|cnrtNotifierDestroy|cnrtTaskTopo(Entity)?Destroy|cnrt[SG]etDevice|cnrtQueueEndCapture' \
    ' 632015 cnrtErrorCndrvFuncCall: '

# ---- mistakes that must be detected --------------------------------------------------------------

# The plugin is built with one deliberate mistake. The simulator's prototypes and numbers are its
# own, so that the wrong plugin fails, misuses the library (which aborts), or moves the wrong bytes.
# The asynchronous copy uses the newest name that the library has, and the oldest if there is no
# other.
for name in v3 v2 v1; do
    DS_ACCEL_MLU_LIBRARY="$build/sim/lib/libcnrt_$name.so"
    export DS_ACCEL_MLU_LIBRARY
    drive mlu work
    is "asynchronous copies with libcnrt_$name.so" "0 " "$code $out"
    unset DS_ACCEL_MLU_LIBRARY
done
SIM_FAIL='cnrtMemcpyAsync_V3:1=100007' drive mlu work
has "_V3 comes first" "$out" "cnrtMemcpyAsync_V3("
wrong "directions numbered as CUDA does" \
    's/HOST_TO_DEVICE 0/HOST_TO_DEVICE 1/; s/HOST_TO_HOST 3/HOST_TO_HOST 0/; s/DEVICE_TO_DEVICE 1/DEVICE_TO_DEVICE 3/' \
    cnrt.h wrong_works
wrong "the direction before the queue" \
    's/runtime->copy_async(destination/((cnrt_code (*)(void *, void *, size_t, int, void *))(void *)runtime->copy_async)(destination/; s/size_bytes, queue,$/size_bytes, direction_of(kind),/; s/^ *direction_of(kind)),$/queue),/' \
    memory.c wrong_works
wrong "the queue before the notifier" 's/cnrtQueueWaitNotifier(notifier, queue, 0)/cnrtQueueWaitNotifier(queue, notifier, 0)/' \
    work.c wrong_works
wrong "the time before the notifiers" \
    's/MLU_CNRT(device)->cnrtNotifierElapsedTime(start, end, &milliseconds)/((cnrt_code (*)(float *, void *, void *))(void *)MLU_CNRT(device)->cnrtNotifierElapsedTime)(\&milliseconds, start, end)/' \
    work.c wrong_works
wrong "the end before the start" 's/(start, end, &milliseconds)/(end, start, \&milliseconds)/' work.c wrong_works
wrong "not ready that is only 1" 's/ || code == CNRT_BUSY//' work.c wrong_conforms DSA-P49 "$dir/old.json"
wrong "not ready that is only 632014" 's/code == CNRT_NOT_READY || //' work.c wrong_conforms DSA-P49
wrong "a capture that is thread-local" 's/CAPTURE_RELAXED 2/CAPTURE_RELAXED 1/' cnrt.h wrong_works
wrong "a capture that is global" 's/CAPTURE_RELAXED 2/CAPTURE_RELAXED 0/' cnrt.h wrong_conforms DSA-P106
wrong "an event between processes with timing" 's/CNRT_NOTIFIER_INTERPROCESS | CNRT_NOTIFIER_DISABLE_TIMING_ALL/CNRT_NOTIFIER_INTERPROCESS/' \
    work.c wrong_says share "event: 64 bytes"
wrong "total before free" 's/cnrtMemGetInfo(&free_bytes, &total), error,$/cnrtMemGetInfo(\&total, \&free_bytes), error,/' \
    memory.c wrong_works
wrong "a thread's device that is not put back" '/^void mlu_leave/,/^}/ s/cnrtSetDevice((int)saved)/cnrtSetDevice((int)device->index)/' \
    device.c wrong_conforms DSA-P38
wrong "structs without their version" 's/(value).version = (runtime)->cndev_version/(value).version = 0/' telemetry.c \
    wrong_says "facts 0" "utilization 37 "
wrong "a V2 struct with a version" 's/    int64_t total_mb;\n    int64_t used_mb;\n    int64_t reserved_mb/&/; /^struct cndev_memory {/ s/{/{ int32_t version;/; s/uint64_t reserved\[16\];/uint64_t reserved[15];/' \
    cndev.h wrong_says "facts 67108864" "memory_used 67108864 memory_total 1073741824"
wrong "an index for a handle" 's/cndevGetDeviceHandleByIndex((int32_t)i, &card->handle) != 0/cndevGetDeviceHandleByIndex((int32_t)i, \&(int32_t){0}) != 0/' \
    telemetry.c wrong_says "facts 0" "utilization 37 "
wrong "milliwatts for watts" 's/(uint64_t)power.usage \* 1000/(uint64_t)power.usage/' telemetry.c \
    wrong_says "facts 0" "power 110000 power_limit 350000 "
wrong "KiB for bytes" 's/physical_kib \* 1024/physical_kib/' telemetry.c \
    wrong_says "facts 67108864" "process 1 of 1 memory 67108864"

finish
