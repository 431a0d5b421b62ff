#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Tests of the npu plugin over simulated AscendCL, DCMI and mstx.
#
#     test_npu.sh BUILD
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck disable=SC2034 # for vendor.sh
vendor=npu
# shellcheck source=tests/tools/lib.sh
. "$here/../tools/lib.sh"
unset ASCEND_RT_VISIBLE_DEVICES ASCEND_HOME_PATH ASCEND_TOOLKIT_HOME 2>/dev/null || true
# shellcheck source=tests/sim/vendor.sh
. "$here/vendor.sh"

# ---- detection -----------------------------------------------------------------------------------

is "available" "available - libascendcl.so, 2 devices" "$(verdict "$sim" npu)"
has "no hardware" "$(verdict "$sim" none)" "unavailable no_device no PCI device 19e5:12"
has "the library is absent" "$(verdict bare)" "unavailable library_missing libascendcl.so, "
is "the library is there, and no device" "unavailable no_device" \
    "$(verdict bare env SIM_MACHINE="$here/machines/none.json" LD_LIBRARY_PATH="$build/sim/lib" | cut -d' ' -f1,2)"
is "hidden" 'unavailable hidden ASCEND_RT_VISIBLE_DEVICES="" hides every device' \
    "$(ASCEND_RT_VISIBLE_DEVICES='' verdict "$sim" npu)"
for list in 1,0 0,0 0,1,0; do
    is "a list that does not ascend: $list" "unavailable hidden ASCEND_RT_VISIBLE_DEVICES=\"$list\" hides every device: \
CANN takes numbers in ascending order only, each once" "$(ASCEND_RT_VISIBLE_DEVICES=$list verdict "$sim" npu)"
done
for list in 0,1 0,1,9,0 0,1,x,0; do
    is "CANN reads up to what is no device: $list" "available - libascendcl.so, 2 devices" \
        "$(ASCEND_RT_VISIBLE_DEVICES=$list verdict "$sim" npu)"
done
variant broken 'v["driver_state"] = "broken"'
is "ACL does not start" "error driver_failed aclInit(): ACL_ERROR_RT_DEV_SETUP_ERROR (507033)" \
    "$(verdict "$sim" "$dir/broken.json")"
variant gone 'v["driver"] = False'
has "no driver" "$(verdict "$sim" "$dir/gone.json")" "unavailable no_driver"

refused /dev/davinci_manager

# The driver's libraries are not on LD_LIBRARY_PATH: the linker's message contains the missing
# library.
mkdir "$dir/hal" "$dir/half"
echo 'int hal;' | "$CC" -xc -shared -fPIC -Wl,-soname,libascend_hal.so -o "$dir/hal/libascend_hal.so" -
echo 'extern int hal; int *aclInit(void) { return &hal; }' |
    "$CC" -xc -shared -fPIC -o "$dir/half/libascendcl.so" - -L"$dir/hal" -lascend_hal
has "a library that lacks another" "$(LD_LIBRARY_PATH=$dir/half verdict bare)" \
    "unavailable library_missing"
has "a library that lacks another: which" "$(LD_LIBRARY_PATH=$dir/half verdict bare)" \
    "libascend_hal.so: cannot open shared object file"
echo 'int aclInit(const char *path) { return path != 0; }' |
    "$CC" -xc -shared -fPIC -o "$dir/half/libascendcl.so" -
has "a library that is too old" "$(LD_LIBRARY_PATH=$dir/half verdict bare)" "unavailable symbol_missing"

# The library is in CANN's directory, found through the directory's variable.
mkdir -p "$dir/cann/lib64"
ln -s "$build/sim/lib/libsim_npu.so" "$dir/cann/lib64/libsim_npu.so"
cp "$build/sim/lib/libascendcl.so" "$dir/cann/lib64/"
has "by ASCEND_HOME_PATH" "$(verdict bare env SIM_MACHINE="$machine" ASCEND_HOME_PATH="$dir/cann")" \
    "available - $dir/cann/lib64/libascendcl.so"

# If the program has already started ACL (100002), the plugin uses it as it is, and never ends it.
cat >"$dir/early.c" <<'C'
#include <dlfcn.h>
__attribute__((constructor)) static void early(void)
{
    void *library = dlopen("libascendcl.so", RTLD_NOW);
    int (*start)(const char *) = library ? (int (*)(const char *))dlsym(library, "aclInit") : 0;
    if (start) {
        start(0);
    }
}
C
if [ -z "${SAN:-}" ]; then
    "$CC" -shared -fPIC -w -o "$dir/early.so" "$dir/early.c" -ldl
    driven "$sim" npu env LD_PRELOAD="$dir/early.so" "$drive" "$plugin" work
    is "started before" "0 " "$code $out"
fi

# ---- identity ------------------------------------------------------------------------------------

drive npu facts
has "device 0" "$out" "device 0 vendor 0 pci 0000:c1:00.0 uuid c1000000-19e5-d802-0000-000000000001 node /dev/davinci0 numa 0 memory 1073741824 name Ascend910B3"
has "device 1" "$out" "device 1 vendor 1 pci 0000:81:00.0 uuid 81000000-19e5-d802-0000-000000000002 node /dev/davinci1 numa 1"
ASCEND_RT_VISIBLE_DEVICES=1 drive npu facts
has "one visible device" "$out" "device 0 vendor 1 pci 0000:81:00.0 uuid 81000000-19e5-d802-0000-000000000002 node /dev/davinci1 numa 1"
# Older releases of CANN accept a list in any order.
variant older 'v["any_order"] = 1'
ASCEND_RT_VISIBLE_DEVICES=1,0 drive "$dir/older.json" facts
has "visible the other way round" "$out" "device 1 vendor 0 pci 0000:c1:00.0"
has "visible the other way round: 0" "$out" "device 0 vendor 1 pci 0000:81:00.0 uuid 81000000-19e5-d802-0000-000000000002 node /dev/davinci1 numa 1"
has "visible the other way round: 1" "$out" "device 1 vendor 0 pci 0000:c1:00.0 uuid c1000000-19e5-d802-0000-000000000001 node /dev/davinci0 numa 0"
variant newer 'v["any_order"] = 1; v["has_user_numbers"] = 1'
ASCEND_RT_VISIBLE_DEVICES=1,0 drive "$dir/newer.json" facts
has "visible the other way round, newer CANN" "$out" "device 0 vendor 1 pci 0000:81:00.0 uuid 81000000-19e5-d802-0000-000000000002 node /dev/davinci1 numa 1"
# A child never gets a list that CANN would reject.
drive npu shown ASCEND_RT_VISIBLE_DEVICES
has "no list for another order" "$out" "visible_devices_value: ASCEND_RT_VISIBLE_DEVICES cannot show device 0 behind device 1"
has "no device twice" "$out" "visible_devices_value: device 1 is named twice"
has "nothing is written" "$out" "then untouched"
# ACL counts by PCI address, the first node is davinci3, and a card has two chips.
variant holes 'v["order"] = "pci"; v["chips_per_card"] = 2; v["devices"][0]["minor"] = 7; v["devices"][1]["minor"] = 3'
drive "$dir/holes.json" facts
has "by PCI, with holes: 0" "$out" "device 0 vendor 0 pci 0000:81:00.0 uuid 81000000-19e5-d802-0000-000000000002 node /dev/davinci3 numa 1"
has "by PCI, with holes: 1" "$out" "device 1 vendor 1 pci 0000:c1:00.0 uuid c1000000-19e5-d802-0000-000000000001 node /dev/davinci7 numa 0"
# Each of a device's names selects the same physical device, in either order.
for where in npu "$dir/holes.json"; do
    for name in 0000:81:00.0 81000000-19e5-d802-0000-000000000002; do
        run "$sim" "$where" "$build/bin/ds-accel" bench npu --json --only event --time 0.001 --device "$name"
        is "bench of $name on $(basename "$where")" "0 0000:81:00.0" \
            "$code $(printf '%s' "$out" | python3 -c 'import json, sys; print(json.load(sys.stdin)["device"]["pci_address"])')"
    done
done

# ---- facts ---------------------------------------------------------------------------------------

variant installed 'v["files"] = {
    "/usr/local/Ascend/ascend-toolkit/latest/x86_64-linux/ascend_toolkit_install.info":
        "package_name=Ascend-cann-toolkit\nversion=8.2.RC1\narch=x86_64\n",
    "/usr/local/Ascend/driver/version.info": "Version=25.0.3\nascendhal_version=7\n"}'
drive "$dir/installed.json" facts
has "CANN's version" "$out" "runtime 8.2.0"
has "the driver's version" "$out" "driver 25.0.3"
drive npu facts 67108864
has "sensors" "$out" "device 0 valid 0x10cf utilization 37 memory_utilization 12 temperature 41000 power 93200 core_clock 800000 memory_clock 1600000 memory_used 67108864 memory_total 1073741824"
has "processes" "$out" "device 0 process 1 of 1 memory 67108864"
variant heat 'v["order"] = "pci"; v["chips_per_card"] = 2; v["devices"][0]["temperature"] = 77'
drive "$dir/heat.json" facts 0
has "sensors of the right chip" "$out" "device 1 valid 0x10cf utilization 37 memory_utilization 12 temperature 77000"
variant deaf 'v["dcmi"] = "refuse"'
drive "$dir/deaf.json" facts 0
has "no sensors for this user: nothing is known" "$out" "device 0 valid 0x0 "
has "no sensors for this user: why" "$out" "libdcmi.so is missing or cannot be used"
DS_ACCEL_NPU_MSTX_LIBRARY=/nowhere/libms_tools_ext.so drive npu ranges
is "ranges that nobody looks at" "0 " "$code $out"
SIM_RANGES=$dir/ranges drive npu ranges
is "ranges" "0 push step,push forward,pop,push backward,pop,pop" "$code $(paste -sd, "$dir/ranges")"
run "$sim" npu "$build/bin/ds-accel" info npu --json
has "info: bf16" "$out" '"is_bf16_supported": true'
while read -r name bf16; do
    variant named "for d in v['devices']: d['name'] = '$name'"
    run "$sim" "$dir/named.json" "$build/bin/ds-accel" info npu --json
    has "info: bf16 of an $name" "$out" "\"is_bf16_supported\": $bf16"
done <<'END'
Ascend910A false
Ascend910B false
Ascend910ProB false
Ascend910B2C true
Ascend910B4-1 true
Ascend910_9391 true
Ascend910_9589 true
Ascend950PR_9579 true
Ascend310P3 false
Ascend310B4 true
END
run "$sim" npu "$build/bin/ds-accel" bench npu --json --only copy,alloc --size 64K --time 0.001
is "bench" 0 "$code"
has "bench: copies" "$out" '"state": "measured"'

# ---- conformance ---------------------------------------------------------------------------------

# Checks are skipped for functions that ACL lacks: managed memory, device addresses of pinned
# memory, a stream-ordered allocator, counting, showing and updating graphs.
conforms "conformance" npu "174 passed, 0 failed, 40 skipped"

variant refuse 'v["pageable"] = "refuse"'
variant ddr 'v["memory"] = "ddr"; v["devices"][0]["name"] = "Ascend310P3"'
for where in refuse ddr; do
    conforms "conformance with $where" "$dir/$where.json" "174 passed, 0 failed, 40 skipped"
done

# Only DCMI reports the processes that use a device: without DCMI, the error says so, and nothing
# else fails.
export DS_ACCEL_NPU_DCMI_LIBRARY=/nowhere/libdcmi.so
conforms "conformance without DCMI" npu "173 passed, 0 failed, 41 skipped"
unset DS_ACCEL_NPU_DCMI_LIBRARY
conforms "conformance with a DCMI that refuses" "$dir/deaf.json" "173 passed, 0 failed, 41 skipped"

# A thread keeps the context that a plugin's call set on it; the plugin must not report the
# context's device as the thread's current device.
drive npu current
is "calls leave the thread's device as it was" "0 " "$code $out"
# Calls that the manual excludes fail before the plugin calls CANN.
drive npu pages
has "memory between processes: whole pages" "$out" "failed ipc_memory_export: -3 0 -: ipc_memory_export: CANN shares whole pages of 4096 bytes, and this is "
has "memory of the caller on a newer kernel" "$out" "two pages are registered"
variant old_kernel 'v["old_kernel"] = 1; v["files"] = {"/proc/sys/kernel/osrelease": "5.10.0-60.18.0.50.oe2203"}'
drive "$dir/old_kernel.json" pages
has "memory of the caller on an old kernel" "$out" "failed mem_register: -3 0 -: mem_register: on Linux 5.10 and before CANN registers only memory of aclrtMallocHost()"
drive npu captured
has "an event for other processes in a capture" "$out" "failed event_record: -3 0 -: event_record: "
has "a wait for one in a capture" "$out" "failed stream_wait_event: -3 0 -: stream_wait_event: "
is "neither breaks the capture" "" "$(printf '%s\n' "$out" | grep 'capture_end' || true)"
drive npu share
has "memory and events for others" "$out" "event: 64 bytes"

# ---- failures ------------------------------------------------------------------------------------

drive npu memory
has "memory is exhausted" "$out" "failed mem_alloc: -2 207001 ACL_ERROR_RT_MEMORY_ALLOCATION: aclrtMalloc(67108864 bytes, device 0): ACL_ERROR_RT_MEMORY_ALLOCATION (207001)"
has "and the device goes on" "$out" "parts 16
and one that fits"
is "nothing is left" "" "$(grep '^alive' "$dir/report" || true)"
SIM_FAIL='aclrtMalloc:1=424242' drive npu work
has "a code that nobody knows keeps its number" "$out" "failed mem_alloc: -4 424242 -: "
while read -r number status name; do
    SIM_FAIL="aclrtMalloc:1=$number" drive npu work
    has "code $number" "$out" "failed mem_alloc: $status $number $name: aclrtMalloc("
done <<'END'
107022 -12 ACL_ERROR_RT_DEVICE_TASK_ABORT
107023 -12 ACL_ERROR_RT_STREAM_ABORT
107038 -12 ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD
200006 -3 ACL_ERROR_FEATURE_UNSUPPORTED
207020 -9 ACL_ERROR_RT_TIMEOUT
207021 -3 ACL_ERROR_RT_LINK_TYPE_NOT_SUPPORTED
507015 -4 ACL_ERROR_RT_AICORE_EXCEPTION
507910 -1 ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED
END
# A call during the program's aclrtDeviceTaskAbort() fails, and the device works again afterwards.
SIM_FAIL=aclrtMalloc:1=107022 drive npu walk
is "beside an abort of tasks the device is not lost" "" "$(printf '%s\n' "$out" | grep ': -10 ' || true)"
for copy in 1 2 3; do
    SIM_LOSE="0@copy:$copy" drive npu work
    is "lost in copy $copy" 1 "$code"
    has "lost in copy $copy: told" "$out" ": -10 507010 ACL_ERROR_RT_LOST_HEARTBEAT: "
    is "lost in copy $copy: what is left" "" "$(grep '^alive' "$dir/report" || true)"
done
every_call work 'aclrtDestroy|aclmdlRIDestroy|aclrtSetDevice|aclrtResetDevice|CurrentContext|CaptureEnd' \
    ' 507899 ACL_ERROR_RT_DRV_INTERNAL_ERROR: '
every_call vmem 'aclrtDestroy|aclrtFreePhysical|aclrtSetDevice|aclrtResetDevice|CurrentContext' \
    ' 507899 ACL_ERROR_RT_DRV_INTERNAL_ERROR: '

# ---- mistakes that must be detected --------------------------------------------------------------

# The plugin is built with one deliberate mistake. The simulator's prototypes and numbers are its
# own, so that the wrong plugin fails, misuses the library (which aborts), or moves the wrong bytes.
wrong "the capacity behind the source" \
    's/acl->aclrtMemcpyAsync(destination, size_bytes, source,/((acl_error (*)(void *, const void *, size_t, size_t, int, void *))(void *)acl->aclrtMemcpyAsync)(destination, source, size_bytes,/' \
    memory.c wrong_works
wrong "a fill's value before its capacity" \
    's/(int32_t)(pattern \& 0xffu), count, stream/(int32_t)count, pattern \& 0xffu, stream/' memory.c wrong_works
wrong "directions numbered as CNRT does" \
    's/COPY_HOST_TO_DEVICE 1/COPY_HOST_TO_DEVICE 0/; s/COPY_HOST_TO_HOST 0/COPY_HOST_TO_HOST 3/; s/COPY_DEVICE_TO_DEVICE 3/COPY_DEVICE_TO_DEVICE 1/' \
    acl.h wrong_works
wrong "a complete stream is 1" 's/STREAM_COMPLETE 0/STREAM_COMPLETE 1/' acl.h wrong_works
wrong "a recorded event is 0" 's/RECORDED_COMPLETE 1/RECORDED_COMPLETE 0/' acl.h wrong_works
wrong "the event before the stream" 's/aclrtStreamWaitEvent(stream, event)/aclrtStreamWaitEvent(event, stream)/' \
    work.c wrong_works
wrong "the time behind the events" \
    's/NPU_ACL(device)->aclrtEventElapsedTime(&milliseconds, start, end)/((acl_error (*)(void *, void *, float *))(void *)NPU_ACL(device)->aclrtEventElapsedTime)(start, end, \&milliseconds)/' \
    work.c wrong_works
wrong "the end before the start" 's/(&milliseconds, start, end)/(\&milliseconds, end, start)/' work.c wrong_works
wrong "an event without a time line" 's/acl_flags |= ACL_EVENT_TIME_LINE/acl_flags |= 2u/' work.c wrong_works
wrong "the stream before the model" 's/aclmdlRIExecuteAsync(exec, stream)/aclmdlRIExecuteAsync(stream, exec)/' \
    work.c wrong_works
wrong "total before free" 's/(attribute, &free_bytes, &total)/(attribute, \&total, \&free_bytes)/' memory.c wrong_works
wrong "a key of 64 characters" 's/handle, ACL_IPC_KEY_BYTES,/handle, 64,/' memory.c wrong_conforms DSA-P104
wrong "importers that were not named" 's/ ACL_IPC_DISABLE_PID_VALIDATION)/ 0)/' memory.c wrong_conforms DSA-P104
wrong "an event of this process" 's/acl_flags = ACL_EVENT_IPC;/acl_flags = ACL_EVENT_SYNC;/' work.c \
    wrong_says share "event: 64 bytes"
wrong_current() {
    timeout 60 "$sim" "$machine" "$drive" "$wrong" current
}
# A thread without a device increments the device's count of users for the time of each call.
wrong_threads() {
    rm -f "$dir/report"
    SIM_REPORT="$dir/report" timeout 60 "$sim" "$machine" "$drive" "$wrong" imports && ! grep '^alive' "$dir/report"
}
wrong "a device that is set and not reset" \
    '/^void npu_leave/,/^}/ s/^    acl->aclrtResetDevice(state->user);$//' device.c wrong_threads
wrong "a device that is left on the thread" 's/left_behind = current_context(acl)/left_behind = NULL/' device.c \
    wrong_current
wrong "a device that is reset and not set" \
    '/^int32_t npu_enter/,/^}/ s/acl->aclrtSetDevice(state->user)/acl->aclrtSetCurrentContext(state->context)/' \
    device.c wrong_threads
wrong "an allocation in a strict capture" 's/int mode = ACL_CAPTURE_RELAXED/int mode = 0/' memory.c wrong_conforms DSA-P106
wrong "a handle that is mapped from its middle" 's/(address + done, piece, 0,$/(address + done, piece, piece,/; s/memory->pieces\[(offset_bytes + done) \/ piece\]/memory->pieces[0]/' \
    vmem.c wrong_conforms DSA-P78
wrong "a card's number for ACL's" 's/(uint32_t)runtime->chips\[i\].logic == logic/(uint32_t)runtime->chips[i].card == logic/' \
    telemetry.c wrong_says facts "device 0 vendor 0 pci 0000:c1:00.0"
wrong "watts for tenths of a watt" 's/(uint64_t)value \* 100;/(uint64_t)value * 1000;/' telemetry.c \
    wrong_says "facts 0" "power 93200 "

finish
