#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Tests of the rocm plugin over simulated HIP (6.3 and 5.2), rocm_smi, amd_smi and roctx; and, where
# Debian's packages are installed, over the real runtime without a device.
#
#     test_rocm.sh BUILD
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck disable=SC2034 # for vendor.sh
vendor=rocm
# shellcheck source=tests/tools/lib.sh
. "$here/../tools/lib.sh"
unset HIP_VISIBLE_DEVICES ROCR_VISIBLE_DEVICES CUDA_VISIBLE_DEVICES ROCM_PATH HIP_PATH 2>/dev/null || true
# shellcheck source=tests/sim/vendor.sh
. "$here/vendor.sh"
hip6=$build/sim/lib/libamdhip64.so.6
hip5=$build/sim/lib/rocm-5/libamdhip64.so.5

# ---- detection -----------------------------------------------------------------------------------

is "available" "available - libamdhip64.so.6, driver 6.12.12, 2 devices" "$(verdict "$sim" rocm)"
has "no hardware" "$(verdict "$sim" none)" "unavailable no_device no PCI device 1002:03 or 1002:12 and no /dev/kfd"
is "the library is absent" \
    "unavailable library_missing /nowhere/libamdhip64.so.6: no such library is installed" \
    "$(DS_ACCEL_ROCM_LIBRARY=/nowhere/libamdhip64.so.6 verdict bare)"
is "the library is there, and no device" \
    "unavailable no_device libamdhip64.so.6 finds no device: hipInit(0): hipErrorInvalidDevice (101), although /dev/kfd is there" \
    "$(verdict bare env SIM_MACHINE="$here/machines/none.json" LD_LIBRARY_PATH="$build/sim/lib")"
if [ -z "${SAN:-}" ] && ldconfig -p | grep -q 'libamdhip64\.so\.5 '; then
    is "the real runtime is there, and no device" \
        "unavailable no_device libamdhip64.so.5 finds no device: hipInit(0): hipErrorInvalidDevice (101), although /dev/kfd is there" \
        "$(DS_ACCEL_ROCM_LIBRARY=libamdhip64.so.5 verdict bare)"
    run env DS_ACCEL_ROOT="$dir/root" DS_ACCEL_ROCM_LIBRARY=libamdhip64.so.5 DS_ACCELERATOR=rocm \
        "$build/bin/ds-accel" detect
    is "the real runtime, forced" 4 "$code"
    has "the real runtime, forced: why" "$err" "hipErrorInvalidDevice (101)"
else
    echo "rocm: not run: the real runtime is not installed (libamdhip64-5)"
fi

# Each variable hides devices; CUDA_VISIBLE_DEVICES counts only if HIP_VISIBLE_DEVICES is unset or
# empty.
is "hidden by HIP" 'unavailable hidden HIP_VISIBLE_DEVICES="-1" hides every device' \
    "$(HIP_VISIBLE_DEVICES=-1 verdict "$sim" rocm)"
# An empty list of HIP counts as unset; an empty list of ROCR hides every device.
is "not hidden by an empty HIP" "available - libamdhip64.so.6, driver 6.12.12, 2 devices" \
    "$(HIP_VISIBLE_DEVICES='' verdict "$sim" rocm)"
is "not hidden by an empty CUDA" "available - libamdhip64.so.6, driver 6.12.12, 2 devices" \
    "$(CUDA_VISIBLE_DEVICES='' verdict "$sim" rocm)"
is "CUDA counts where HIP is empty" "available - libamdhip64.so.6, driver 6.12.12, 1 device" \
    "$(HIP_VISIBLE_DEVICES='' CUDA_VISIBLE_DEVICES=1 verdict "$sim" rocm)"
is "hidden by CUDA where HIP is empty" 'unavailable hidden CUDA_VISIBLE_DEVICES="-1" hides every device' \
    "$(HIP_VISIBLE_DEVICES='' CUDA_VISIBLE_DEVICES=-1 verdict "$sim" rocm)"
is "hidden by ROCR where HIP is empty" 'unavailable hidden ROCR_VISIBLE_DEVICES="" hides every device' \
    "$(HIP_VISIBLE_DEVICES='' ROCR_VISIBLE_DEVICES='' verdict "$sim" rocm)"
is "hidden by ROCR" 'unavailable hidden ROCR_VISIBLE_DEVICES="" hides every device' \
    "$(ROCR_VISIBLE_DEVICES='' verdict "$sim" rocm)"
is "hidden by CUDA" 'unavailable hidden CUDA_VISIBLE_DEVICES="-1" hides every device' \
    "$(CUDA_VISIBLE_DEVICES=-1 verdict "$sim" rocm)"
is "HIP before CUDA" "available - libamdhip64.so.6, driver 6.12.12, 1 device" \
    "$(HIP_VISIBLE_DEVICES=1 CUDA_VISIBLE_DEVICES=-1 verdict "$sim" rocm)"

variant gone 'v["driver"] = False'
has "no driver" "$(verdict "$sim" "$dir/gone.json")" "unavailable no_driver"
# The driver lists no GPU: a card that ROCm cannot compute with.
variant unlisted 'v["files"] = {}
for d in v["devices"]: d["gpu_id"] = 0'
is "the driver lists no GPU" \
    "unavailable no_device /sys/class/kfd/kfd/topology/nodes: none of 4 nodes is a GPU (gpu_id 0), although /dev/kfd is there" \
    "$(verdict "$sim" "$dir/unlisted.json")"
has "a runtime that fails" "$(SIM_FAIL=hipInit:1=999 verdict "$sim" rocm)" \
    "error driver_failed hipInit(0): hipErrorUnknown (999)"
has "a runtime and a driver that disagree" "$(SIM_FAIL=hipInit:1=35 verdict "$sim" rocm)" \
    "unavailable driver_mismatch libamdhip64.so.6: hipInit(0): hipErrorInsufficientDriver (35)"
echo 'int hipInit(unsigned flags) { return flags != 0; }' |
    "$CC" -xc -shared -fPIC -Wl,-soname,libamdhip64.so.6 -o "$dir/libamdhip64.so.6" -
has "a library that is too old" "$(DS_ACCEL_ROCM_LIBRARY=$dir/libamdhip64.so.6 verdict bare)" \
    "unavailable symbol_missing"

# A user without the right to open /dev/kfd gets no_permission (the superuser may open any file).
refused /dev/kfd

# The library is below ROCM_PATH, where the linker does not search.
mkdir -p "$dir/rocm/lib"
cp "$build/sim/lib/libsim_rocm.so" "$dir/rocm/lib/"
cp "$hip6" "$dir/rocm/lib/libamdhip64.so.7"
if ldconfig -p | grep -q libamdhip64; then
    echo "rocm: not run: by ROCM_PATH, for the linker finds a runtime before"
else
    has "by ROCM_PATH" "$(verdict bare env SIM_MACHINE="$machine" ROCM_PATH="$dir/rocm")" \
        "available - $dir/rocm/lib/libamdhip64.so.7"
fi

# ---- identity ------------------------------------------------------------------------------------

drive rocm facts
has "device 0" "$out" "device 0 vendor 0 pci 0000:0c:00.0 uuid GPU-2e5b90c71fa84d36 node /dev/dri/renderD128 numa 0 memory 1073741824 name AMD Instinct MI300X"
has "device 1" "$out" "device 1 vendor 1 pci 0000:8c:00.0 uuid GPU-7d10c4e8b5623fa9 node /dev/dri/renderD129 numa 1"
has "the runtime's version" "$out" "runtime 6.3.42134"
has "the driver's version" "$out" "driver 6.12.12"
HIP_VISIBLE_DEVICES=1 drive rocm facts
has "one visible device" "$out" "device 0 vendor 1 pci 0000:8c:00.0"
CUDA_VISIBLE_DEVICES=1 drive rocm facts
has "one visible device, as CUDA has it" "$out" "device 0 vendor 1 pci 0000:8c:00.0"
HIP_VISIBLE_DEVICES='' ROCR_VISIBLE_DEVICES=1,0 drive rocm facts
has "an empty list of HIP's, and one of ROCR's" "$out" "device 0 vendor 1 pci 0000:8c:00.0"
drive rocm shown HIP_VISIBLE_DEVICES
shown=$out
HIP_VISIBLE_DEVICES='' CUDA_VISIBLE_DEVICES='' drive rocm shown HIP_VISIBLE_DEVICES
is "names of devices with empty lists are those without lists" "$shown" "$out"
# HIP skips a device that the list repeats, by number or by UUID; ROCR's list ends there.
HIP_VISIBLE_DEVICES=1,1,0 drive rocm facts
has "named twice: the other device" "$out" "device 1 vendor 0 pci 0000:0c:00.0"
HIP_VISIBLE_DEVICES=1,1,0 drive rocm shown HIP_VISIBLE_DEVICES
has "named twice: the names of both" "$out" "shown 0,1"
CUDA_VISIBLE_DEVICES=1,0,1 drive rocm shown HIP_VISIBLE_DEVICES
has "named twice in CUDA's list: the names of both" "$out" "shown 0,1"
for list in 1,GPU-7d10c4e8b5623fa9,0 GPU-7d10c4e8b5623fa9,1,0; do
    HIP_VISIBLE_DEVICES=$list drive rocm shown HIP_VISIBLE_DEVICES
    has "named by number and UUID: the other device: $list" "$out" "shown GPU-2e5b90c71fa84d36,"
    run env HIP_VISIBLE_DEVICES=$list "$sim" rocm "$build/bin/ds-accel" conformance rocm --group env
    is "a child has the devices that it is shown: $list" 0 "$code"
done
is "ROCR's list ends at a device that it has" "available - libamdhip64.so.6, driver 6.12.12, 1 device" \
    "$(ROCR_VISIBLE_DEVICES=1,1,0 verdict "$sim" rocm)"
# HIP counts the devices that remain after ROCR's variable: HIP's device 0 is ROCR's first, the
# physical device 1.
ROCR_VISIBLE_DEVICES=1,0 HIP_VISIBLE_DEVICES=0 drive rocm facts
has "a variable of a variable" "$out" "device 0 vendor 1 pci 0000:8c:00.0"
ROCR_VISIBLE_DEVICES=GPU-7d10c4e8b5623fa9 drive rocm facts
has "visible by UUID" "$out" "device 0 vendor 1 pci 0000:8c:00.0"
variant holes 'v["devices"][0]["minor"] = 7; v["devices"][1]["minor"] = 3'
drive "$dir/holes.json" facts
has "holes in the nodes: 0" "$out" "device 0 vendor 0 pci 0000:0c:00.0 uuid GPU-2e5b90c71fa84d36 node /dev/dri/renderD135"
has "holes in the nodes: 1" "$out" "device 1 vendor 1 pci 0000:8c:00.0 uuid GPU-7d10c4e8b5623fa9 node /dev/dri/renderD131"
for name in 0000:8c:00.0 GPU-7d10c4e8b5623fa9; do
    run "$sim" rocm "$build/bin/ds-accel" bench rocm --json --only event --time 0.001 --device "$name"
    is "bench of $name" "0 0000:8c:00.0" \
        "$code $(printf '%s' "$out" | python3 -c 'import json, sys; print(json.load(sys.stdin)["device"]["pci_address"])')"
done

# ---- facts ---------------------------------------------------------------------------------------

# Sensors are found by PCI address: rocm_smi ignores the variables.
variant busy 'd = v["devices"][1]; d["utilization_percent"] = 63; d["edge_millidegrees"] = -1
d["power_microwatts"] = 310500000; d["energy_count"] = 2000000'
drive "$dir/busy.json" facts 67108864
has "sensors" "$out" "device 0 valid 0x103f utilization 0 memory_utilization 0 temperature 41000 power 90000 power_limit 560000 energy 15300 memory_used 67108864 memory_total 1073741824"
has "sensors of another device; the junction's temperature" "$out" "device 1 valid 0x103f utilization 63 memory_utilization 0 temperature 47000 power 310500 power_limit 560000"
HIP_VISIBLE_DEVICES=1 drive "$dir/busy.json" facts 0
has "sensors of the only visible device" "$out" "device 0 valid 0x103f utilization 63 memory_utilization 0 temperature 47000"
DS_ACCEL_ROCM_SMI_LIBRARY=/nowhere drive "$dir/busy.json" facts 0
has "sensors by amd_smi, degrees and all" "$out" "device 0 valid 0x1027 utilization 0 memory_utilization 0 temperature 41000"
# Each release has its own file name for amd_smi.
shims=$(cd "$build/sim/lib" && pwd)
for number in 26 25 24; do
    mkdir "$dir/smi$number"
    ln -s "$shims/libamdhip64.so.6" "$shims/libsim_rocm.so" "$dir/smi$number"
    ln -s "$shims/libamd_smi.so.26" "$dir/smi$number/libamd_smi.so.$number"
    DS_ACCEL_ROCM_SMI_LIBRARY=/nowhere driven "$sim" rocm env LD_LIBRARY_PATH="$dir/smi$number" "$drive" "$plugin" facts 0
    has "sensors by libamd_smi.so.$number" "$out" "device 0 valid 0x1027 utilization 0 memory_utilization 0 temperature 41000"
done
variant sysfs 'v["files"] = {"/sys/bus/pci/devices/0000:0c:00.0/" + k: t for k, t in {
    "gpu_busy_percent": "21\n", "mem_info_vram_total": "1073741824\n", "mem_info_vram_used": "1048576\n",
    "hwmon/hwmon4/temp1_input": "39000\n", "hwmon/hwmon4/power1_average": "77000000\n",
    "hwmon/hwmon4/power1_cap": "300000000\n", "hwmon/hwmon4/freq1_input": "1200000000\n"}.items()}'
SIM_FAIL='rsmi_init:1=8,amdsmi_init:1=34' drive "$dir/sysfs.json" facts 0
has "sensors by sysfs alone" "$out" "device 0 valid 0x105d utilization 21 temperature 39000 power 77000 power_limit 300000 core_clock 1200000 memory_used 1048576 memory_total 1073741824"
variant junction 'v["files"] = {"/sys/bus/pci/devices/0000:0c:00.0/hwmon/hwmon4/temp2_input": "48000\n"}'
SIM_FAIL='rsmi_init:1=8,amdsmi_init:1=34' drive "$dir/junction.json" facts 0
has "the junction by sysfs, without an edge" "$out" "device 0 valid 0x4 temperature 48000"
variant asleep 'v["devices"][1]["power"] = "suspended"'
drive "$dir/asleep.json" facts 0
has "a suspended device is not asked" "$out" "device 1 valid 0x0 "
# rsmi_init() prints if there is no /sys/class/drm: the plugin must not call it then.
"$here/machine.py" "$machine" "$dir/drmless"
rm -r "$dir/drmless/sys/class/drm"
DS_ACCEL_ROOT=$dir/drmless drive rocm facts 0
is "without /sys/class/drm: no noise" "0 " "$code $err"
has "without /sys/class/drm" "$out" "device 0 valid 0x0 "

# links MACHINE: prints the links of device 0, "KIND PEER WIDTH GENERATION MB/S" each.
links() {
    "$sim" "$1" env DS_ACCELERATOR=rocm "$build/bin/ds-accel" -q topo --json | python3 -c '
import json
import sys

devices = [d for d in json.load(sys.stdin)["devices"] if d["accelerator"] == "rocm"]
print(", ".join("%s %s %s %s %s" % (l["kind"], l["peer_index"], l["width"], l["generation"],
    (l["bandwidth_bytes_per_s"] or 0) // 1000000) for l in devices[0]["links"]))'
}

run "$sim" rocm "$build/bin/ds-accel" topo
has "topo: XGMI between two" "$out" "rocm:1  XGMI1   -"
is "links: PCI Express, XGMI" "pci None 16 5 63015, xgmi 1 0 0 50000" "$(links rocm)"
is "links by amd_smi" "pci None 16 5 63015, xgmi 1 0 0 50000" "$(DS_ACCEL_ROCM_SMI_LIBRARY=/nowhere links rocm)"
is "links without either" "pci None 16 5 63015" \
    "$(SIM_FAIL='rsmi_init:1=8,amdsmi_init:1=34' links rocm)"
is "a link whose bandwidth is not told" "pci None 16 5 63015, xgmi 1 0 0 0" \
    "$(SIM_FAIL='rsmi_minmax_bandwidth_get:*=2' links rocm)"
is "a way whose weight is not told is no link" "pci None 16 5 63015" \
    "$(SIM_FAIL='rsmi_topo_get_link_weight:*=2' links rocm)"
# Two links to each neighbour in a ring of four; the path to the opposite device leads over a
# neighbour. The GPU is behind two bridges of its card: its link is the outer bridge's.
variant ring 'import copy
v["xgmi_ring"] = 4
for i in (2, 3):
    d = copy.deepcopy(v["devices"][0]); d.update(pci="0000:%d0:00.0" % i, uuid="GPU-000000000000000%d" % i, minor=i, xgmi=i)
    v["devices"].append(d)
for d in v["devices"]: d["xgmi_links"] = 2
d = v["devices"][0]; d["root_bus"] = "0000:09"; d["bridges"] = ["0000:09:01.0", "0000:0a:00.0", "0000:0b:00.0"]
p = "/sys/devices/pci0000:09/0000:09:01.0/"
v["files"] = {p + "vendor": "0x1022\n", p + "0000:0a:00.0/vendor": "0x1002\n", p + "0000:0a:00.0/0000:0b:00.0/vendor": "0x1002\n",
    p + "0000:0a:00.0/current_link_speed": "16.0 GT/s PCIe\n", p + "0000:0a:00.0/current_link_width": "8\n"}'
is "links in a ring, behind bridges" \
    "pci None 8 4 15753, xgmi 2 0 0 50000, xgmi 2 0 0 50000, xgmi 3 0 0 50000, xgmi 3 0 0 50000" "$(links "$dir/ring.json")"
# Kernels before 5.7 write a rate without its ".0".
for rate in "2.5 1 4000" "5 2 8000" "8 3 15753" "16 4 31507"; do
    # shellcheck disable=SC2086 # three words
    set -- $rate
    variant older "v['devices'][0]['link_speed'] = '$1 GT/s'"
    is "links: $1 GT/s, as older kernels have it" "pci None 16 $2 $3, xgmi 1 0 0 50000" \
        "$(links "$dir/older.json")"
done
variant newer "v['devices'][0]['link_speed'] = '128.0 GT/s PCIe'"
is "links: a rate to come" "xgmi 1 0 0 50000" "$(links "$dir/newer.json")"
for weight in 13 41; do
    variant weight "v['xgmi_weight'] = $weight"
    is "a link that weighs $weight" "pci None 16 5 63015, xgmi 1 0 0 50000" "$(links "$dir/weight.json")"
done
variant weight "v['xgmi_weight'] = 16"
is "a way that weighs more than a link" "pci None 16 5 63015" "$(links "$dir/weight.json")"
variant absurd "v['xgmi_mb_per_s'] = (1 << 62) + 1"
is "a link whose bandwidth is absurd" "pci None 16 5 63015, xgmi 1 0 0 0" "$(links "$dir/absurd.json")"
# The libraries ignore the variables: peers have the numbers of visible devices.
is "links between visible devices" "pci None 16 5 63015, xgmi 1 0 0 50000, xgmi 1 0 0 50000" \
    "$(HIP_VISIBLE_DEVICES=2,1 links "$dir/ring.json")"
variant apart 'for d in v["devices"]: d["xgmi"] = -1'
run "$sim" "$dir/apart.json" "$build/bin/ds-accel" topo
has "topo: no XGMI" "$out" "rocm:1  SYS     -"
is "links to a suspended device" "pci None 16 5 63015" "$(links "$dir/asleep.json")"

SIM_RANGES=$dir/ranges drive rocm ranges
is "ranges" "0 push step,push forward,pop,push backward,pop,pop" "$code $(paste -sd, "$dir/ranges")"
DS_ACCEL_ROCM_ROCTX_LIBRARY=/nowhere drive rocm ranges
is "ranges without roctx" "0 " "$code $out"

# bf16 works in matrix units from gfx908 on, and is emulated on older devices; fp16 always works.
for arch in gfx906:true:false gfx908:true:true gfx90a:sramecc+:xnack-:true:true gfx1030:true:false gfx1100:true:true; do
    bf16=${arch##*:}
    name=${arch%:*:*}
    variant arch "for d in v['devices']: d['arch'] = '$name'"
    run "$sim" "$dir/arch.json" "$build/bin/ds-accel" info rocm --json
    has "info: bf16 on $name" "$out" "\"is_bf16_supported\": $bf16"
    has "info: fp16 on $name" "$out" '"is_fp16_supported": true'
    has "info: the architecture $name" "$out" "$name"
done
run "$sim" rocm "$build/bin/ds-accel" bench rocm --json --only copy,alloc --size 64K --time 0.001
is "bench" 0 "$code"
has "bench: copies" "$out" '"state": "measured"'

# ---- conformance ---------------------------------------------------------------------------------

# Checks are skipped only for a function that HIP lacks: pictures of graphs.
conforms "conformance" rocm "188 passed, 0 failed, 26 skipped"
# Release 5.2 has a struct of 792 bytes, no hipLaunchHostFunc, and another flag for IPC.
export DS_ACCEL_ROCM_LIBRARY="$hip5"
drive rocm facts
has "5.2: version" "$out" "runtime 5.2.21153"
run "$sim" rocm "$build/bin/ds-accel" conformance rocm -v
# HIP 5.2 cannot put a host task into a graph: hipStreamAddCallback() cannot be captured.
is "5.2: what fails" "DSA-P81 a captured host task" \
    "$(printf '%s\n' "$out" | sed -n 's/^\(DSA-P[0-9]*\) *failed *graph *\(a captured host task\):.*/\1 \2/p; t; s/^DSA-P[0-9]* *failed/&/p')"
drive rocm work
is "5.2: work" "0 " "$code $out"
unset DS_ACCEL_ROCM_LIBRARY
# The plugin undoes a runtime's change of the caller's CPU mask, in its probe and afterwards.
variant narrow 'v["narrows_affinity"] = 1'
conforms "conformance of a runtime that changes the affinity" "$dir/narrow.json" \
    "188 passed, 0 failed, 26 skipped"
variant poor 'for d in v["devices"]: d["memory_pools"] = 0; d["managed"] = 0; d["virtual_memory"] = 0'
conforms "conformance of a device that has neither" "$dir/poor.json" "176 passed, 0 failed, 38 skipped"
has "without pools" "$out" "mem_alloc_async: the device has no memory pools"
has "without managed memory" "$out" "mem_alloc_managed: the device has no managed memory"
has "without virtual memory" "$out" "vmem_granularity: the device has no virtual memory management"
# The page size differs between the two devices.
variant pages 'v["devices"][0]["granularity_bytes"] = 65536'
conforms "conformance with small pages" "$dir/pages.json" "188 passed, 0 failed, 26 skipped"
drive rocm vmem
is "virtual memory, turned round" "0 " "$code $out"
is "virtual memory: what is left" "" "$(grep '^alive' "$dir/report" || true)"
drive rocm aligned
is "aligned addresses" "0 " "$code $out"
variant heedless 'v["heeds_alignment"] = 0'
drive "$dir/heedless.json" aligned
has "addresses that are not aligned are refused" "$out" "failed vmem_reserve: -3 0 -: vmem_reserve: hipMemAddressReserve returned "
is "and given back" "1 " "$code $(grep '^alive' "$dir/report" || true)"
drive "$dir/heedless.json" vmem
has "nor is one taken that no piece fits" "$out" "not aligned to 4194304"
is "which is given back too" "1 " "$code $(grep '^alive' "$dir/report" || true)"
drive rocm released
is "addresses that are not reserved" "0 granularity 4194304" "$code $out"
# The runtime recommends the page size; pieces of that size would need too many handles.
drive "$dir/pages.json" released
is "pieces are no pages" "0 granularity 2097152" "$code $out"
for call in hipMemCreate hipMemMap hipMemSetAccess; do
    SIM_LOSE="0@$call:1" drive rocm vmem
    is "lost in $call: what is left" "1 " "$code $(grep '^alive' "$dir/report" || true)"
done
# Runtimes before 6.0 have another layout for the description of an allocation: the plugin does not
# use their functions.
DS_ACCEL_ROCM_LIBRARY=$hip5 drive rocm vmem
is "5.2: virtual memory is refused" 1 "$code"
has "5.2: why" "$out" "failed vmem_granularity: -3 0 -: vmem_granularity: libamdhip64 is older than ROCm 6.0, or lacks hipMemCreate"

# ---- failures ------------------------------------------------------------------------------------

drive rocm memory
has "out of memory" "$out" "failed mem_alloc: -2 2 hipErrorOutOfMemory: hipMalloc(67108864 bytes, device 0): hipErrorOutOfMemory (2)"
has "out of memory: and on" "$out" "and one that fits"
SIM_FAIL='hipMalloc:1=424242' drive rocm work
has "a code that nobody knows keeps its number" "$out" "failed mem_alloc: -4 424242 "
SIM_FAIL='hipMemcpyAsync:1=700' drive rocm work
has "an illegal address ends the device's use, as CUDA's does" "$out" ": -10 700 "
# "Unknown" is an error like others, unless every later call returns it too.
SIM_FAIL='hipMalloc:1=999' drive rocm walk
has "one unknown error" "$out" "failed mem_alloc: -4 999 "
is "one unknown error: the device goes on" "" "$(printf '%s\n' "$out" | grep ': -10 ' || true)"
for number in 999 710 702; do
    variant stuck "v['lost_code'] = $number"
    SIM_LOSE=0@copy:2 drive "$dir/stuck.json" work
    has "every call returns $number" "$out" ": -10 $number "
    is "every call returns $number: no other failure" "" "$(printf '%s\n' "$out" | grep ": -4 $number " || true)"
done
for copy in 1 2 3; do
    SIM_LOSE="0@copy:$copy" drive rocm work
    is "lost in copy $copy" 1 "$code"
    has "lost in copy $copy: told" "$out" ": -10 719 hipErrorLaunchFailure: "
    is "lost in copy $copy: what is left" "" "$(grep '^alive' "$dir/report" || true)"
done
drive rocm capturing
is "memory of the host beside a strict capture" "0 captured" "$code $out"
drive rocm ended
is "a capture that another thread tries to end goes on" "0 " "$code $out"
drive rocm peered
is "a copy to another device, captured" "0 " "$code $out"
drive rocm captured
has "an event for other processes in a capture" "$out" "failed event_record: -3 0 -: event_record: "
has "a wait for one in a capture" "$out" "failed stream_wait_event: -3 0 -: stream_wait_event: "
is "neither breaks the capture" "" "$(printf '%s\n' "$out" | grep 'capture_end' || true)"
every_call work 'Destroy|hipGetDevice|hipSetDevice|EndCapture' ' 1053 hipErrorRuntimeOther: '
every_call vmem 'Destroy|hipGetDevice|hipSetDevice|hipMemRelease' ' 1053 hipErrorRuntimeOther: '

# ---- mistakes that must be detected --------------------------------------------------------------

# wrong_architecture: the test for a mistake in bf16, which depends on the architecture's name.
wrong_architecture() {
    variant told "for d in v['devices']: d['arch'] = 'gfx90a'"
    "$sim" "$dir/told.json" env DS_ACCELERATOR=rocm "$build/bin/ds-accel" --plugin-dir "$dir/wrong" info rocm --json |
        grep -Fq '"is_bf16_supported": true'
}

# wrong_affinity: the mistake affects only the calling program, which starts the runtime in its own
# process.
wrong_affinity() {
    timeout 60 "$sim" "$dir/narrow.json" "$build/bin/ds-accel" conformance "$wrong" --rule DSA-P28
}

wrong_links() {
    wanted=$(links "$dir/ring.json")
    [ "$(DS_ACCEL_PLUGIN_PATH=$dir/wrong links "$dir/ring.json")" = "$wanted" ]
}

wrong_pieces() {
    timeout 60 "$sim" rocm "$drive" "$wrong" vmem
}

# The plugin is built with one deliberate mistake. The simulator has its own prototypes and numbers,
# so that the wrong plugin fails, misuses the library (which aborts), or moves the wrong bytes.
wrong "the stream before the kind, as in SUPA 1.x" \
    's/CALL(device, copy(destination, source, size_bytes, native_kind, native_stream))/cuda_shaped_code(shaped_of(device), ((int (*)(void *, const void *, size_t, void *, int))(void *)shaped_of(device)->api.copy)(destination, source, size_bytes, native_stream, native_kind))/' \
    common/cuda_shaped.c wrong_works
wrong "kinds numbered as the ABI does" 's/= CUDA_SHAPED_COPY_KIND(kind)/= (int)kind/' common/cuda_shaped.c wrong_works
wrong "kinds numbered as CNRT does" 's/= CUDA_SHAPED_COPY_KIND(kind)/= (int)((const int[]){0, 3, 0, 2, 1, 5})[kind]/' \
    common/cuda_shaped.c wrong_works
wrong "the event before the stream" 's/stream_wait_event(native, native_event, 0)/stream_wait_event(native_event, native, 0)/' \
    common/cuda_shaped.c wrong_works
wrong "the stream before the event" 's/event_record(native, native_stream)/event_record(native_stream, native)/' \
    common/cuda_shaped.c wrong_works
wrong "the end before the start" 's/&milliseconds, start, end)/\&milliseconds, end, start)/' common/cuda_shaped.c wrong_works
wrong "an event without timing" 's/== 0 ? CUDA_SHAPED_EVENT_DISABLE_TIMING/!= 0 ? CUDA_SHAPED_EVENT_DISABLE_TIMING/' \
    common/cuda_shaped.c wrong_works
wrong "not ready is another number" 's/HIP_NOT_READY = 600/HIP_NOT_READY = 34/' hip.h wrong_conforms DSA-P49
wrong "total before free" 's/, memory_info(&free_bytes, &total_bytes)/, memory_info(\&total_bytes, \&free_bytes)/' \
    common/cuda_shaped.c wrong_works
wrong "IPC handles by address" \
    's/hip->hipIpcOpenMemHandle(base_out, value, flags)/((hip_error_t (*)(void **, void *, unsigned int))(void *)hip->hipIpcOpenMemHandle)(base_out, (void *)(uintptr_t)handle, flags)/' \
    memory.c wrong_conforms DSA-P104
wrong "5.x's flag for 6.x" 's/HIP_IPC_LAZY_PEER_ACCESS_6 = 1/HIP_IPC_LAZY_PEER_ACCESS_6 = 0/' hip.h wrong_conforms DSA-P104
wrong "the offset before the size" 's/(char \*)address + done, piece, 0,/(char *)address + done, 0, piece,/' \
    vmem.c wrong_conforms DSA-P78
wrong "a handle that is mapped from its middle" 's/memory->pieces\[(offset_bytes + done) \/ piece\], 0)/memory->pieces[0], 0)/' \
    vmem.c wrong_pieces
wrong "the size behind the alignment" 's/&address, size_bytes, align_bytes, hint, 0)/\&address, align_bytes, size_bytes, hint, 0)/' \
    vmem.c wrong_conforms DSA-P78
wrong "a place before its type" 's/{{HIP_LOCATION_DEVICE, (int)accessor->index}/{{(int)accessor->index, HIP_LOCATION_DEVICE}/' \
    vmem.c wrong_conforms DSA-P78
wrong "5.x's properties of an allocation for 6.x" 's/    int handle_type;/    struct hip_location before;/; s/sizeof(struct hip_allocation) == 32/1/; s/offsetof(struct hip_allocation, location) == 8/1/' \
    hip.h wrong_conforms DSA-P77
wrong "a range of several mappings unmapped at once" 's/unmap_pieces(device, address, size_bytes, piece, /unmap_pieces(device, address, size_bytes, size_bytes, /' \
    vmem.c wrong_conforms DSA-P78
wrong "the type before the hops" 's/(here, there, &hops, &type)/(here, there, (void *)\&type, (void *)\&hops)/' \
    links.c wrong_links
wrong "PCI Express for XGMI" 's/RSMI_LINK_XGMI = 2/RSMI_LINK_XGMI = 1/' sensors.h wrong_links
wrong "a way over others for a link" 's/!is_one_link(weight)/0/' links.c wrong_links
wrong "the most before the least" 's/(here, there, &least, &most)/(here, there, \&most, \&least)/' links.c wrong_links
wrong "the architecture at the old struct's place" \
    's/size_t offset = HIP_PROPERTIES_ARCH_R0600/size_t offset = HIP_PROPERTIES_ARCH/' device.c wrong_architecture
wrong "a plain name for the new struct" \
    's/OWN_OPTIONAL(hipGetDevicePropertiesR0600, "ROCm 6.0")/{"hipGetDeviceProperties", offsetof(struct rocm, hip.hipGetDevicePropertiesR0600), 0, NULL}/' \
    rocm.c wrong_architecture
wrong "microwatts for milliwatts" 's|microwatts / 1000|microwatts|' sensors.c wrong_says "facts 0" "power 90000 power_limit 560000 "
wrong "an affinity that is not put back" 's/^    restore_affinity(rocm->host, &affinity);$//' rocm.c wrong_affinity
wrong "allocation in a strict capture" 's/int mode = CUDA_SHAPED_CAPTURE_RELAXED/int mode = 0/' common/cuda_shaped.c wrong_conforms DSA-P106
wrong "the device is not put back" 's/^    if (saved != device->index) {$/    if (0) {/' common/cuda_shaped.c wrong_conforms DSA-P38

finish
