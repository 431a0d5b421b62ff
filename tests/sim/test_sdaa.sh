#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Tests of the sdaa plugin over a simulated SDAARuntime of the current and of the first generation,
# TCML, TCPX.
#
#     test_sdaa.sh BUILD
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck disable=SC2034 # for vendor.sh
vendor=sdaa
# shellcheck source=tests/tools/lib.sh
. "$here/../tools/lib.sh"
unset SDAA_VISIBLE_DEVICES SDAA_ROOT 2>/dev/null || true
# shellcheck source=tests/sim/vendor.sh
. "$here/vendor.sh"

# ---- detection -----------------------------------------------------------------------------------

# The machine has two cards of four devices each.
is "available" "available - libsdaart.so, 8 devices" "$(verdict "$sim" sdaa)"
is "no hardware" "unavailable no_device no /dev/tcaicard[0-9]*" "$(verdict "$sim" none)"
is "the library is absent" \
    "unavailable library_missing libsdaart.so, /opt/tecoai/lib64/libsdaart.so: no such library is installed" \
    "$(verdict bare)"
is "the library is there, and no device" \
    "unavailable no_device libsdaart.so finds no device: sdaaGetDeviceCount: sdaaErrorNoDevice (100), although /dev/tcaicard0 is there" \
    "$(verdict bare env SIM_MACHINE="$here/machines/none.json" LD_LIBRARY_PATH="$build/sim/lib")"
is "hidden" 'unavailable hidden SDAA_VISIBLE_DEVICES="" hides every device' \
    "$(SDAA_VISIBLE_DEVICES='' verdict "$sim" sdaa)"
is "some are hidden" "available - libsdaart.so, 2 devices" "$(SDAA_VISIBLE_DEVICES=5,2 verdict "$sim" sdaa)"
has "a runtime that fails" "$(SIM_FAIL=sdaaGetDeviceCount:1=999 verdict "$sim" sdaa)" \
    "error driver_failed sdaaGetDeviceCount: sdaaErrorUnknown (999)"
has "a runtime and a driver that disagree" "$(SIM_FAIL=sdaaGetDeviceCount:1=35 verdict "$sim" sdaa)" \
    "unavailable driver_mismatch libsdaart.so: sdaaGetDeviceCount: "
# Streams of the first generation are ints: none of its functions may be called, because a call
# aborts.
first=$(DS_ACCEL_SDAA_LIBRARY=$build/sim/lib/sdaa-first/libsdaart.so verdict "$sim" sdaa)
has "the first generation is refused" "$first" "unavailable symbol_missing "
has "the first generation is refused: by what" "$first" "has no sdaaGetErrorName: it is of the first generation, which is not supported"
echo 'const char *sdaaGetErrorName(int e) { return e ? "a" : "b"; } int sdaaGetDeviceCount(int *c) { return *c = 0; }' |
    "$CC" -xc -shared -fPIC -o "$dir/libsdaart.so" -
has "a library that lacks functions" "$(DS_ACCEL_SDAA_LIBRARY=$dir/libsdaart.so verdict bare)" \
    "unavailable symbol_missing $dir/libsdaart.so has no sdaaSetDevice, "
mkdir -p "$dir/teco/lib64"
cp "$build/sim/lib/libsim_sdaa.so" "$build/sim/lib/libsdaart.so" "$dir/teco/lib64/"
is "below SDAA_ROOT" "available - $dir/teco/lib64/libsdaart.so, 8 devices" \
    "$(verdict bare env SIM_MACHINE="$machine" SDAA_ROOT="$dir/teco")"

refused /dev/tcaicard0

# ---- identity ------------------------------------------------------------------------------------

drive sdaa facts
has "device 0" "$out" "device 0 vendor 0 pci 0000:3d:00.0 uuid 7e1c0719-00a1-4b3d-8f20-6a5c9d7e1b00 node /dev/tcaicard0 numa 0 memory 1073741824 name TECO_AICARD_01"
has "device 3 is of the first card" "$out" "device 3 vendor 3 pci 0000:3d:00.0 uuid 7e1c0719-00a1-4b3d-8f20-6a5c9d7e1b03 node /dev/tcaicard3 numa 0"
has "device 4 is of the second" "$out" "device 4 vendor 4 pci 0000:bd:00.0 uuid 7e1c0719-00a1-4b3d-8f20-6a5c9d7e1b10 node /dev/tcaicard4 numa 1"
SDAA_VISIBLE_DEVICES=6,1 drive sdaa facts
has "visible in another order: 0" "$out" "device 0 vendor 6 pci 0000:bd:00.0 uuid 7e1c0719-00a1-4b3d-8f20-6a5c9d7e1b12 node /dev/tcaicard6 numa 1"
has "visible in another order: 1" "$out" "device 1 vendor 1 pci 0000:3d:00.0 uuid 7e1c0719-00a1-4b3d-8f20-6a5c9d7e1b01 node /dev/tcaicard1 numa 0"
# Nodes are assigned to devices in the order of their numbers, as in a container that has only some
# nodes.
variant holes 'for d in v["devices"][4:]: d["minor"] += 16'
drive "$dir/holes.json" facts
has "holes in the nodes" "$out" "device 7 vendor 7 pci 0000:bd:00.0 uuid 7e1c0719-00a1-4b3d-8f20-6a5c9d7e1b13 node /dev/tcaicard23 numa 1"
# A driver may have one node per card: the runtime's count of devices reveals this, or TCML's count
# if devices are hidden.
variant card_nodes 'for d in v["devices"]: d["tcaicard"] = d["card"]'
drive "$dir/card_nodes.json" facts
has "a node per card: device 3" "$out" "device 3 vendor 3 pci 0000:3d:00.0 uuid 7e1c0719-00a1-4b3d-8f20-6a5c9d7e1b03 node /dev/tcaicard0 numa 0"
has "a node per card: device 4" "$out" "device 4 vendor 4 pci 0000:bd:00.0 uuid 7e1c0719-00a1-4b3d-8f20-6a5c9d7e1b10 node /dev/tcaicard1 numa 1"
SDAA_VISIBLE_DEVICES=6,1 drive "$dir/card_nodes.json" facts
has "a node per card, by TCML's count" "$out" "device 0 vendor 6 pci 0000:bd:00.0 uuid 7e1c0719-00a1-4b3d-8f20-6a5c9d7e1b12 node /dev/tcaicard1 numa 1"
# TCML reports domain, slot and function; the runtime reports only the bus, and the plugin guesses
# the rest.
variant place 'for d in v["devices"][4:]: d["pci"] = "0001:bd:05.1"'
drive "$dir/place.json" facts
has "an address that TCML tells" "$out" "device 5 vendor 5 pci 0001:bd:05.1 uuid 7e1c0719-00a1-4b3d-8f20-6a5c9d7e1b11 node /dev/tcaicard5 numa 1"
SDAA_VISIBLE_DEVICES=6,1 drive "$dir/place.json" facts
has "an address that TCML tells, of a visible device" "$out" "device 0 vendor 6 pci 0001:bd:05.1 uuid"
variant place_cards 'v["tcml_counts"] = "cards"
for d in v["devices"][4:]: d["pci"] = "0001:bd:05.1"'
drive "$dir/place_cards.json" facts
has "the address of a card" "$out" "device 7 vendor 7 pci 0001:bd:05.1"
for how in no garbled elsewhere; do
    variant guess "v['tcml_pci'] = '$how'"
    drive "$dir/guess.json" facts
    has "a guess, where TCML's answer is: $how" "$out" "device 4 vendor 4 pci 0000:bd:00.0 uuid"
    variant lost "v['tcml_pci'] = '$how'
for d in v['devices'][4:]: d['pci'] = '0001:bd:05.1'"
    drive "$dir/lost.json" facts
    has "a guess that is no device, where TCML's answer is: $how" "$out" "device 4 vendor 4 pci  uuid"
done
DS_ACCEL_SDAA_TCML_LIBRARY=/nowhere drive sdaa facts
has "a guess without TCML" "$out" "device 4 vendor 4 pci 0000:bd:00.0 uuid"
run "$sim" sdaa env DS_ACCEL_SDAA_TCML_LIBRARY=/nowhere DS_ACCEL_LOG=debug "$build/bin/ds-accel" info sdaa
has "a guess is told as one" "$err" "device 4: 0000:bd:00.0 is a guess, made of bus 189"
run "$sim" sdaa "$build/bin/ds-accel" info sdaa --json
has "info: fp16" "$out" '"is_fp16_supported": true'
has "info: bf16 is emulated" "$out" '"is_bf16_supported": false'
has "info: no graphs" "$out" '"graph_supported": false'
run "$sim" sdaa "$build/bin/ds-accel" bench sdaa --json --only event --time 0.001 \
    --device 7e1c0719-00a1-4b3d-8f20-6a5c9d7e1b11
is "bench of a device by its UUID" "0 5" \
    "$code $(printf '%s' "$out" | python3 -c 'import json, sys; print(json.load(sys.stdin)["device"]["index"])')"

# ---- sensors and ranges --------------------------------------------------------------------------

variant busy 'd = v["devices"][5]; d["utilization_percent"] = 44; d["memory_utilization_percent"] = 12; d["temperature_c"] = 71'
drive "$dir/busy.json" facts 67108864
has "sensors: memory is total, free, used" "$out" "device 0 valid 0x1007 utilization 0 memory_utilization 0 temperature 45000 memory_used 67108864 memory_total 1073741824"
has "sensors of another device" "$out" "device 5 valid 0x1007 utilization 44 memory_utilization 12 temperature 71000"
SDAA_VISIBLE_DEVICES=5 drive "$dir/busy.json" facts 0
has "sensors of the only visible device" "$out" "device 0 valid 0x1007 utilization 44 memory_utilization 12 temperature 71000"
# If TCML counts cards, a device has its card's load, and no memory values of its own.
variant cards 'v["tcml_counts"] = "cards"; d = v["devices"][4]; d["utilization_percent"] = 44; d["temperature_c"] = 71'
drive "$dir/cards.json" facts 0
has "sensors of cards" "$out" "device 6 valid 0x7 utilization 44 memory_utilization 0 temperature 71000"
variant unknown 'v["tcml_counts"] = "nothing"'
drive "$dir/unknown.json" facts 0
has "sensors that cannot be matched" "$out" "device 0 valid 0x0 "
DS_ACCEL_SDAA_TCML_LIBRARY=/nowhere drive sdaa facts 0
has "no TCML" "$out" "device 0 valid 0x0 "
DS_ACCEL_SDAA_TCPX_LIBRARY=$build/sim/lib/libtcpx.so SIM_RANGES=$dir/ranges drive sdaa ranges
is "ranges" "0 push step,push forward,pop,push backward,pop,pop" "$code $(paste -sd, "$dir/ranges")"
drive sdaa ranges
is "ranges without TCPX" "0 " "$code $out"

# ---- conformance, and a benchmark ----------------------------------------------------------------

# Checks are skipped for functions that SDAA lacks (captures, managed memory, registered memory,
# peer access, virtual memory) or that are not verified (stream-ordered memory, memory IPC).
conforms "conformance" sdaa "146 passed, 0 failed, 68 skipped"
run "$sim" sdaa "$build/bin/ds-accel" bench sdaa --json --only copy,alloc --size 64K --time 0.001
is "bench" 0 "$code"
has "bench: copies" "$out" '"state": "measured"'

drive sdaa opened
is "an event between processes" "0 event: opened" "$code $out"

# ---- failures ------------------------------------------------------------------------------------

drive sdaa memory
has "out of memory" "$out" "failed mem_alloc: -2 2 sdaaErrorOutOfMemory: sdaaMalloc(67108864 bytes, device 0): sdaaErrorOutOfMemory (2)"
has "out of memory: and on" "$out" "and one that fits"
SIM_FAIL='sdaaMalloc:1=424242' drive sdaa work
has "a code that nobody knows keeps its number" "$out" "failed mem_alloc: -4 424242 "
for copy in 1 2 3; do
    SIM_LOSE="0@copy:$copy" drive sdaa work
    is "lost in copy $copy" 1 "$code"
    has "lost in copy $copy: told" "$out" ": -10 719 sdaaErrorLaunchFailure: "
    is "lost in copy $copy: what is left" "" "$(grep '^alive' "$dir/report" || true)"
done
every_call work 'Destroy|sdaaGetDevice|sdaaSetDevice' ' 1053 sdaaErrorRuntimeOther: '

# ---- mistakes that must be detected --------------------------------------------------------------

wrong_place() {
    "$sim" "$dir/place.json" "$drive" "$wrong" facts >"$dir/said" && grep -Fq "device 4 vendor 4 pci 0001:bd:05.1" "$dir/said"
}

# The plugin is built with one deliberate mistake. The simulator has its own prototypes and numbers.
wrong "the stream before the kind, as in SUPA 1.x" \
    's/CALL(device, copy(destination, source, size_bytes, native_kind, native_stream))/cuda_shaped_code(shaped_of(device), ((int (*)(void *, const void *, size_t, void *, int))(void *)shaped_of(device)->api.copy)(destination, source, size_bytes, native_stream, native_kind))/' \
    common/cuda_shaped.c wrong_works
wrong "kinds numbered as the ABI does" 's/= CUDA_SHAPED_COPY_KIND(kind)/= (int)kind/' common/cuda_shaped.c wrong_works
wrong "the event before the stream" 's/stream_wait_event(native, native_event, 0)/stream_wait_event(native_event, native, 0)/' \
    common/cuda_shaped.c wrong_works
wrong "the end before the start" 's/&milliseconds, start, end)/\&milliseconds, end, start)/' common/cuda_shaped.c wrong_works
wrong "not ready as in the first generation" 's/SDAA_NOT_READY = 600/SDAA_NOT_READY = 34/' sdaa.h wrong_conforms DSA-P49
wrong "total before free" 's/, memory_info(&free_bytes, &total_bytes)/, memory_info(\&total_bytes, \&free_bytes)/' \
    common/cuda_shaped.c wrong_works
wrong "used before free, as HLML has it" 's/uint64_t total, free, used;/uint64_t total, used, free;/; /tcmlMemory_t.used is the last/d' \
    sensors.c wrong_says "facts 0" "memory_used 0 memory_total 1073741824"
wrong "the address's text before its numbers" 's/char short_text\[16\]/char text[32]/; s/char text\[32\]; ..* "00000000.*/char short_text[16];/; /^_Static_assert(offsetof(struct tcml_pci/d' \
    sensors.c wrong_place
wrong "a function for a slot" 's/domain, bus, slot, function;/domain, bus, function, slot;/' sensors.c wrong_place
wrong "a device for a card" 's/SDAA_DEVICES_PER_CARD 4u/SDAA_DEVICES_PER_CARD 1u/' sdaa.h \
    wrong_says facts "device 3 vendor 3 pci 0000:3d:00.0 uuid 7e1c0719-00a1-4b3d-8f20-6a5c9d7e1b03 node /dev/tcaicard3"
wrong "properties of no more than is known" 's/SDAA_PROPERTIES_BYTES 4096/SDAA_PROPERTIES_BYTES 288/' sdaa.h wrong_works
wrong "event handles by address" \
    's/CALL(device, ipc_event_open(native_out, value))/cuda_shaped_code(shaped_of(device), ((int (*)(void **, void *))(void *)shaped_of(device)->api.ipc_event_open)(native_out, (void *)(uintptr_t)handle))/' \
    common/cuda_shaped.c wrong_says opened "event: opened"
wrong "the device is not put back" 's/^    if (saved != device->index) {$/    if (0) {/' common/cuda_shaped.c wrong_conforms DSA-P38

finish
