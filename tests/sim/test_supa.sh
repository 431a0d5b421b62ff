#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Tests of the supa plugin over simulated SUPA runtimes of SDK 1.x and 2.x, BRML and BRTX. The
# simulated errors have their own numbers: only their names identify them.
#
#     test_supa.sh BUILD
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck disable=SC2034 # for vendor.sh
vendor=supa
# shellcheck source=tests/tools/lib.sh
. "$here/../tools/lib.sh"
unset SUPA_VISIBLE_DEVICES BIREN_HOME DS_ACCEL_SUPA_NUMBERING DS_ACCEL_SUPA_LIBRARY 2>/dev/null || true
# shellcheck source=tests/sim/vendor.sh
. "$here/vendor.sh"
first=$build/sim/lib/libsupa-runtime.so
second=$build/sim/lib/supa-2/libsupa-runtime.so

# ---- detection ----------------------------------------------------------------------------------

# The numbers of copy kinds and flags are not confirmed: the plugin is rejected, and the message
# contains the option.
is "not vouched for" \
    "error bad_option libsupa-runtime.so (SDK 1.x, 2 devices): its numbers of copy kinds and flags are not verified; if the SDK's headers have CUDA's, set option numbering to cuda" \
    "$(verdict "$sim" supa)"
is "not vouched for, 2.x" \
    "error bad_option libsupa-runtime.so (SDK 2.x, 2 devices): its numbers of copy kinds and flags are not verified; if the SDK's headers have CUDA's, set option numbering to cuda" \
    "$(DS_ACCEL_SUPA_LIBRARY=$second verdict "$sim" supa)"
is "vouched for wrongly" 'error bad_option option numbering: "hip" is not cuda' \
    "$(DS_ACCEL_SUPA_NUMBERING=hip verdict "$sim" supa)"
run "$sim" supa env DS_ACCELERATOR=supa "$build/bin/ds-accel" detect
is "forced" 4 "$code"
has "forced: the remedy" "$err" "set DS_ACCEL_SUPA_NUMBERING=cuda"

export DS_ACCEL_SUPA_NUMBERING=cuda
is "available" "available - libsupa-runtime.so, 2 devices" "$(verdict "$sim" supa)"
is "available, 2.x" "available - $second, 2 devices" "$(DS_ACCEL_SUPA_LIBRARY=$second verdict "$sim" supa)"
is "no hardware" "unavailable no_device no /dev/biren/card_[0-9]*" "$(verdict "$sim" none)"
has "the library is absent" "$(verdict bare)" \
    "unavailable library_missing libsupa-runtime.so, libsupart.so, /usr/local/birensupa/sdk/latest/supa/lib/libsupa-runtime.so, "
is "the library is there, and no device" \
    "unavailable no_device libsupa-runtime.so finds no device: suGetDeviceCount: suErrorNoDevice (1004), although /dev/biren/card_0 is there" \
    "$(verdict bare env SIM_MACHINE="$here/machines/none.json" LD_LIBRARY_PATH="$build/sim/lib")"
is "the library is there, and no device, 2.x" \
    "unavailable no_device libsupa-runtime.so finds no device: supaGetDeviceCount: supaErrorNoDevice (1004), although /dev/biren/card_0 is there" \
    "$(verdict bare env SIM_MACHINE="$here/machines/none.json" DS_ACCEL_SUPA_LIBRARY="$second" LD_LIBRARY_PATH="$build/sim/lib")"
is "hidden" 'unavailable hidden SUPA_VISIBLE_DEVICES="" hides every device' \
    "$(SUPA_VISIBLE_DEVICES='' verdict "$sim" supa)"
has "a runtime that fails" "$(SIM_FAIL=suGetDeviceCount:1=1022 verdict "$sim" supa)" \
    "error driver_failed libsupa-runtime.so: suGetDeviceCount: suErrorOther (1022)"
is "a driver that is too old" "unavailable driver_mismatch libsupa-runtime.so: suGetDeviceCount: suErrorInsufficientDriver (1023)" \
    "$(SIM_FAIL=suGetDeviceCount:1=1023 verdict "$sim" supa)"
is "a driver that is too old, 2.x" \
    "unavailable driver_mismatch libsupa-runtime.so: supaGetDeviceCount: supaErrorInsufficientDriver (1023)" \
    "$(SIM_FAIL=supaGetDeviceCount:1=1023 DS_ACCEL_SUPA_LIBRARY=$second verdict "$sim" supa)"
echo 'int suDeviceGetAttribute(int *v, int a, int d) { return *v = a + d; }' |
    "$CC" -xc -shared -fPIC -o "$dir/libsupa-runtime.so" -
is "neither generation" \
    "unavailable symbol_missing $dir/libsupa-runtime.so has neither supaGetDeviceCount (SDK 2.x) nor suMallocDevice (SDK 1.x)" \
    "$(DS_ACCEL_SUPA_LIBRARY=$dir/libsupa-runtime.so verdict bare)"
echo 'int suMallocDevice(void **p, unsigned long n) { return *p = 0, n != 0; }' |
    "$CC" -xc -shared -fPIC -o "$dir/libsupa-runtime.so" -
has "a library that lacks functions" "$(DS_ACCEL_SUPA_LIBRARY=$dir/libsupa-runtime.so verdict bare)" \
    "unavailable symbol_missing $dir/libsupa-runtime.so has no suGetDeviceCount, "
mkdir -p "$dir/biren/supa/lib"
cp "$build/sim/lib/libsim_supa.so" "$first" "$dir/biren/supa/lib/"
is "below BIREN_HOME" "available - $dir/biren/supa/lib/libsupa-runtime.so, 2 devices" \
    "$(verdict bare env SIM_MACHINE="$machine" BIREN_HOME="$dir/biren")"

refused /dev/biren/card_0
# An unprivileged user cannot prove that there is no device: the plugin is probed, and reports the
# obstacle.
if unprivileged "a closed directory"; then
    chmod 700 "$dir/refused/dev/biren"
    [ "$(id -u)" = 0 ] || chmod 000 "$dir/refused/dev/biren"
    # shellcheck disable=SC2086 # words
    run env XDG_RUNTIME_DIR= $as_user env DS_ACCEL_ROOT="$dir/refused" "$reached/bin/ds-accel" explain supa
    has "a closed directory: it is asked" "$out" "hardware passed  no permission to read /dev/biren"
    has "a closed directory: what is in the way" "$out" \
        "probe    failed  /dev/biren: no permission to read and write for user $user"
    has "a closed directory: the reason" "$out" "reason no_permission"
    chmod 755 "$dir/refused/dev/biren"
fi
reached=

# ---- numbers that are not CUDA's ----------------------------------------------------------------

# The numbers were confirmed, but are wrong: with either generation, the plugin detects this because
# it copies bytes to the device and back before it is used.
variant other 'v["numbering"] = "other"'
for library in "$first" "$second"; do
    DS_ACCEL_SUPA_LIBRARY=$library drive "$dir/other.json" work
    is "other numbers, $library" 1 "$code"
    has "other numbers, $library: told" "$out" "rrorInvalidMemcpyDirection"
    is "other numbers, $library: what is left" "" "$(grep '^alive' "$dir/report" || true)"
done

# SDK 2.x without error names: the plugin reports texts, and uses CUDA's numbers if they are
# confirmed.
unnamed=$build/sim/lib/supa-unnamed/libsupa-runtime.so
is "available, 2.x without names" "available - $unnamed, 2 devices" "$(DS_ACCEL_SUPA_LIBRARY=$unnamed verdict "$sim" supa)"
DS_ACCEL_SUPA_LIBRARY=$unnamed drive supa work
is "2.x without names: work" "0 " "$code $out"
DS_ACCEL_SUPA_LIBRARY=$unnamed drive supa memory
has "2.x without names: memory is exhausted" "$out" "failed mem_alloc: -2 2 supaErrorMemoryAllocation: "
while read -r number status name; do
    SIM_FAIL="supaMalloc:2=$number" DS_ACCEL_SUPA_LIBRARY=$unnamed drive supa work
    has "2.x without names: code $number" "$out" "failed mem_alloc: $status $number supaError$name: "
done <<'END'
220 -10 NvlinkUncorrectable
226 -10 Contained
700 -10 IllegalAddress
702 -10 LaunchTimeout
710 -10 Assert
714 -10 HardwareStackError
715 -10 IllegalInstruction
716 -10 MisalignedAddress
717 -10 InvalidAddressSpace
718 -10 InvalidPc
902 -12 StreamCaptureMerge
903 -12 StreamCaptureUnmatched
904 -12 StreamCaptureUnjoined
905 -12 StreamCaptureIsolation
END
SIM_FAIL='supaMalloc:1=4711' DS_ACCEL_SUPA_LIBRARY=$unnamed drive supa work
has "2.x without names: a code that nobody knows has the runtime's text" "$out" ": -4 4711 something went wrong: "

# ---- identity, in both generations ---------------------------------------------------------------

for library in "$first" "$second"; do
    export DS_ACCEL_SUPA_LIBRARY="$library"
    drive supa facts
    has "device 0, $library" "$out" "device 0 vendor 0 pci 0000:5e:00.0 uuid b17e0106-3c4d-4e5f-a061-728394a5b6c7 node /dev/biren/card_0 numa 0 memory 1073741824"
    has "device 1, $library" "$out" "device 1 vendor 1 pci 0000:de:00.0 uuid b17e0106-d8e9-4fa0-b1c2-d3e4f5061728 node /dev/biren/card_1 numa 1"
    SUPA_VISIBLE_DEVICES=1 drive supa facts
    has "one visible device, $library" "$out" "device 0 vendor 1 pci 0000:de:00.0 uuid b17e0106-d8e9-4fa0-b1c2-d3e4f5061728 node /dev/biren/card_1 numa 1"
done
unset DS_ACCEL_SUPA_LIBRARY
variant holes 'v["devices"][0]["minor"] = 6; v["devices"][1]["minor"] = 2'
drive "$dir/holes.json" facts
has "holes in the nodes: 0" "$out" "device 0 vendor 0 pci 0000:5e:00.0 uuid b17e0106-3c4d-4e5f-a061-728394a5b6c7 node /dev/biren/card_6"
has "holes in the nodes: 1" "$out" "device 1 vendor 1 pci 0000:de:00.0 uuid b17e0106-d8e9-4fa0-b1c2-d3e4f5061728 node /dev/biren/card_2"
run "$sim" supa "$build/bin/ds-accel" info supa --json
has "info: bf16" "$out" '"is_bf16_supported": true'

# ---- sensors and ranges -------------------------------------------------------------------------

variant busy 'd = v["devices"][1]; d["utilization_percent"] = 58; d["memory_utilization_percent"] = 9
d["temperature_c"] = 66; d["power_milliwatts"] = 287500'
drive "$dir/busy.json" facts 67108864
has "sensors: memory is total, free, used" "$out" "device 0 valid 0x100f utilization 0 memory_utilization 0 temperature 45000 power 80000 memory_used 67108864 memory_total 1073741824"
has "sensors of another device" "$out" "device 1 valid 0x100f utilization 58 memory_utilization 9 temperature 66000 power 287500"
SUPA_VISIBLE_DEVICES=1 drive "$dir/busy.json" facts 0
has "sensors of the only visible device" "$out" "device 0 valid 0x100f utilization 58 memory_utilization 9 temperature 66000"
DS_ACCEL_SUPA_BRML_LIBRARY=/nowhere drive supa facts 0
has "no BRML" "$out" "device 0 valid 0x0 "
DS_ACCEL_SUPA_BRTX_LIBRARY=$build/sim/lib/libbrtx.so SIM_RANGES=$dir/ranges drive supa ranges
is "ranges" "0 push step,push forward,pop,push backward,pop,pop" "$code $(paste -sd, "$dir/ranges")"
drive supa ranges
is "ranges without BRTX" "0 " "$code $out"

# ---- conformance, and a benchmark ---------------------------------------------------------------

# Checks are skipped for functions that SUPA lacks (managed, virtual and stream-ordered memory), or
# that are not verified (IPC).
conforms "conformance, 1.x" supa "162 passed, 0 failed, 52 skipped"
export DS_ACCEL_SUPA_LIBRARY="$second"
conforms "conformance, 2.x" supa "162 passed, 0 failed, 52 skipped"
unset DS_ACCEL_SUPA_LIBRARY
run "$sim" supa "$build/bin/ds-accel" bench supa --json --only copy,alloc --size 64K --time 0.001
is "bench" 0 "$code"
has "bench: copies" "$out" '"state": "measured"'

# ---- failures -----------------------------------------------------------------------------------

drive supa memory
has "out of memory" "$out" "failed mem_alloc: -2 1002 suErrorMemoryAllocation: suMallocDevice(67108864 bytes, device 0): suErrorMemoryAllocation (1002)"
has "out of memory: and on" "$out" "and one that fits"
SIM_FAIL='suMallocDevice:2=424242' drive supa work
has "a code that nobody knows keeps its number" "$out" "failed mem_alloc: -4 424242 "
for copy in 3 4 5; do
    SIM_LOSE="0@copy:$copy" drive supa work
    is "lost in copy $copy" 1 "$code"
    has "lost in copy $copy: told" "$out" ": -10 1012 suErrorLaunchFailure: "
    is "lost in copy $copy: what is left" "" "$(grep '^alive' "$dir/report" || true)"
done
every_call work 'Destroy|suGetDevice|suSetDevice|EndCapture|suFree' ' 1022 suErrorOther: '
export DS_ACCEL_SUPA_LIBRARY="$second"
drive supa work
is "work, 2.x" "0 " "$code $out"
SIM_FAIL='supaMalloc:2' drive supa work
has "a failure, 2.x" "$out" "failed mem_alloc: -4 1022 supaErrorOther: supaMalloc("
unset DS_ACCEL_SUPA_LIBRARY

# ---- mistakes that must be detected -------------------------------------------------------------

wrong_works_second() {
    DS_ACCEL_SUPA_LIBRARY=$second wrong_works "$machine"
}

# In 2.x, suGetErrorName() belongs to the driver: the simulator aborts when it is called.
wrong_fails_second() {
    SIM_FAIL='supaMalloc:2=1002' DS_ACCEL_SUPA_LIBRARY=$second timeout 60 "$sim" supa "$drive" "$wrong" work >"$dir/said" || true
    grep -Fq supaErrorMemoryAllocation "$dir/said"
}

# The plugin is built with one deliberate mistake. The simulators have their own prototypes and
# numbers.
wrong "2.x's order for 1.x" \
    's/supa->api.copy_stream_kind(destination, source, size_bytes, native_stream, native_kind)/((supa_error_t (*)(void *, const void *, size_t, int, void *))(void *)supa->api.copy_stream_kind)(destination, source, size_bytes, native_kind, native_stream)/' \
    verbs.c wrong_works
wrong "1.x's order for 2.x" \
    's/CALL(device, copy(destination, source, size_bytes, native_kind, native_stream))/cuda_shaped_code(shaped_of(device), ((int (*)(void *, const void *, size_t, void *, int))(void *)shaped_of(device)->api.copy)(destination, source, size_bytes, native_stream, native_kind))/' \
    common/cuda_shaped.c wrong_works_second
wrong "the driver's names for the runtime's" 's/"supaGetErrorName", error_name/"suGetErrorName", error_name/' \
    supa.c wrong_fails_second
wrong "not ready by CUDA's number" 's/if (!is_named(supa, code, "NotReady"))/if (code != 600)/' supa.c wrong_conforms DSA-P49
wrong "pinned memory freed by a function that 1.x may not have" \
    's/^        supa->shaped.api.host_free = supa->shaped.api.free;$//' supa.c wrong_works
wrong "the event before the stream" 's/stream_wait_event(native, native_event, 0)/stream_wait_event(native_event, native, 0)/' \
    common/cuda_shaped.c wrong_works
wrong "the end before the start" 's/&milliseconds, start, end)/\&milliseconds, end, start)/' common/cuda_shaped.c wrong_works
wrong "total before free" 's/, memory_info(&free_bytes, &total_bytes)/, memory_info(\&total_bytes, \&free_bytes)/' \
    common/cuda_shaped.c wrong_works
wrong "used before free, as HLML has it" 's/uint64_t total, free, used;/uint64_t total, used, free;/; /brmlMemory_t.used is the last/d' \
    sensors.c wrong_says "facts 0" "memory_used 0 memory_total 1073741824"
wrong "the device is not put back" 's/^    if (saved != device->index) {$/    if (0) {/' common/cuda_shaped.c wrong_conforms DSA-P38

finish
