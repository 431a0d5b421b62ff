#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The cuda plugin over the simulated driver, NVML and NVTX, over the toolkit's stub and over
# Debian's libcuda1, where installed.
#
#     test_cuda.sh BUILD
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/tools/lib.sh
. "$here/../tools/lib.sh"
# shellcheck source=tests/sim/drive.sh
. "$here/drive.sh"
unset CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER DS_ALLOW_DEPRECATED_FP16 LD_LIBRARY_PATH 2>/dev/null || true
program=$build/bin/ds-accel
plugin=$build/lib/ds-accel/ds_accel_cuda.so
sim=$here/ds-accel-sim

# machine NAME <JSON: writes $dir/NAME.json, and the machine's files to $dir/NAME.
machine() {
    cat >"$dir/$1.json"
    rm -rf "${dir:?}/$1"
    "$here/machine.py" "$dir/$1.json" "$dir/$1"
}

# verdict ROOT COMMAND...: prints "state reason: detail" of the plugin on that machine, from the
# program run by COMMAND.
verdict() {
    root=$1
    shift
    "$@" "$program" --root "$root" --json list 2>/dev/null | python3 -c '
import json, sys
it = [p for p in json.load(sys.stdin)["plugins"] if p["name"] == "cuda"][0]
print(it["state"], it["reason"] + ":", it["detail"])'
}

# refused NAME ROOT REASON DETAIL COMMAND...: checks the verdict, and exit code 4 if the plugin is
# forced.
refused() {
    name=$1
    root=$2
    wanted="$3: $4"
    shift 4
    is "$name" "$wanted" "$(verdict "$root" "$@")"
    run "$@" "$program" --root "$root" -a cuda detect
    is "$name: forced" 4 "$code"
    has "$name: forced, with the reason" "$err" "${wanted#* }"
}

# -- no device, hardware without a driver, a node without permission --

machine none <<'END'
{"vendors": {}}
END
machine bare <<'END'
{"vendors": {"cuda": {"driver": false, "devices": [{"name": "A", "pci": "0000:18:00.0"}]}}}
END
machine two <"$here/machines/cuda.json"
machine eight <"$here/machines/node-8gpu.json"
with_sim="env LD_LIBRARY_PATH=$build/sim/lib"
on_two="$with_sim SIM_MACHINE=$dir/two.json"

# shellcheck disable=SC2086 # words
{
    refused "no hardware" "$dir/none" "unavailable no_device" \
        "no PCI device 10de:03 and no /dev/nvidiactl" $with_sim
    refused "a card, no driver" "$dir/bare" "unavailable no_driver" \
        "PCI device 0000:18:00.0 is there, but /dev/nvidiactl is not: the kernel driver nvidia is not loaded" \
        $with_sim
}

# The verdict differs by cause: a container that sees the machine's buses, a device that another
# driver owns, some of the nodes.
echo 'DRIVER=nvidia' >"$dir/bare/sys/bus/pci/devices/0000:18:00.0/uevent"
# shellcheck disable=SC2086 # words
refused "a card, its driver, no node" "$dir/bare" "unavailable no_driver" \
    "PCI device 0000:18:00.0 is there, and the kernel driver nvidia has it, but /dev/nvidiactl is not: is this a container without access to it?" \
    $with_sim
echo 'DRIVER=vfio-pci' >"$dir/bare/sys/bus/pci/devices/0000:18:00.0/uevent"
# shellcheck disable=SC2086 # words
refused "a card of a virtual machine" "$dir/bare" "unavailable no_driver" \
    "PCI device 0000:18:00.0 is there, but /dev/nvidiactl is not: the kernel driver vfio-pci has the device, where nvidia is expected" \
    $with_sim
mkdir -p "$dir/some/dev"
: >"$dir/some/dev/nvidia0"
# shellcheck disable=SC2086 # words
refused "a node, not all" "$dir/some" "unavailable no_driver" \
    "/dev/nvidia0 is there, but /dev/nvidiactl is not: is this a container without access to it?" \
    $with_sim

machine locked <<'END'
{"vendors": {"cuda": {"permission": false, "devices": [{"name": "A", "pci": "0000:18:00.0"}]}}}
END
chmod 755 "$dir/locked"
if unprivileged "no permission"; then
    program=$reached/bin/ds-accel
    # shellcheck disable=SC2086 # words
    {
        is "no permission" \
            "unavailable no_permission: /dev/nvidiactl: no permission to read and write for user $user" \
            "$(verdict "$dir/locked" env -u XDG_RUNTIME_DIR $as_user)"
        chmod -R a+rwX "$dir/locked/dev"
        is "no permission, before it is granted" "unavailable library_missing:" \
            "$(DS_ACCEL_CUDA_LIBRARY=/nowhere/libcuda.so.1 \
                verdict "$dir/locked" env -u XDG_RUNTIME_DIR $as_user | cut -d' ' -f1,2)"
    }
    program=$build/bin/ds-accel
fi

# -- the library: absent, the toolkit's stub, without a device, of another version --

if ! ldconfig -p 2>/dev/null | grep -q 'libcuda\.so'; then
    refused "library absent" "$dir/two" "unavailable library_missing" \
        "libcuda.so.1, libcuda.so, /usr/lib/wsl/lib/libcuda.so.1: no such library is installed" env
else
    echo "test_cuda: an absent library is not tested: this machine has libcuda"
fi

stub=
for directory in /usr/local/cuda/lib64/stubs /usr/lib/x86_64-linux-gnu/stubs; do
    [ ! -e "$directory/libcuda.so" ] || stub=$directory/libcuda.so
done
if [ -n "$stub" ]; then
    mkdir "$dir/stub"
    cp -L "$stub" "$dir/stub/libcuda.so.1"
    refused "the toolkit's stub" "$dir/two" "unavailable library_missing" \
        "$dir/stub/libcuda.so.1 is the CUDA toolkit's stub; the driver's own comes with libcuda1 (Debian) or libnvidia-compute (Ubuntu)" \
        env LD_LIBRARY_PATH="$dir/stub"
else
    echo "test_cuda: the toolkit's stub is not tested: no lib64/stubs/libcuda.so here"
fi

# One library lacks a library that it depends on; another library is too old.
mkdir "$dir/lacks" "$dir/old"
echo 'int gone(void); int cuInit(unsigned flags); int cuInit(unsigned flags) { return gone() + (int)flags; }' >"$dir/lacks.c"
echo 'int gone(void); int gone(void) { return 0; }' >"$dir/gone.c"
"$CC" -shared -fPIC "$dir/gone.c" -Wl,-soname,libgone.so.9 -o "$dir/lacks/libgone.so"
"$CC" -shared -fPIC "$dir/lacks.c" -L"$dir/lacks" -lgone -Wl,-soname,libcuda.so.1 -o "$dir/lacks/libcuda.so.1"
rm "$dir/lacks/libgone.so"
has "a library lacks another" "$(verdict "$dir/two" env LD_LIBRARY_PATH="$dir/lacks")" \
    "unavailable library_missing: libcuda.so.1, libcuda.so, /usr/lib/wsl/lib/libcuda.so.1 cannot be opened: libgone.so.9: "
echo 'int cuInit(unsigned flags); int cuInit(unsigned flags) { return (int)flags; }' >"$dir/old.c"
"$CC" -shared -fPIC "$dir/old.c" -Wl,-soname,libcuda.so.1 -o "$dir/old/libcuda.so.1"
given=$(verdict "$dir/two" env LD_LIBRARY_PATH="$dir/old")
has "a library that is too old" "$given" \
    "unavailable symbol_missing: $dir/old/libcuda.so.1 has no cuDriverGetVersion, cuGetErrorName, "
is "the detail has an end" yes "$([ "${#given}" -lt 300 ] && echo yes || echo "$given")"

real=/usr/lib/x86_64-linux-gnu/libcuda.so.1
if [ -e "$real" ] && [ ! -e /proc/driver/nvidia/version ]; then
    has "the real library, no device" "$(verdict "$dir/two" env)" \
        "unavailable no_device: $real is present, no device: cuInit(0): CUDA_ERROR_NO_DEVICE (100)"
else
    echo "test_cuda: NVIDIA's own library is not tested: no $real, or a machine with a driver"
fi

# shellcheck disable=SC2086 # words
{
    refused "the library, no device" "$dir/two" "unavailable no_device" \
        "$build/sim/lib/libcuda.so.1 is present, no device: cuInit(0): CUDA_ERROR_NO_DEVICE (100), although /dev/nvidiactl is there" \
        $with_sim
    is "devices" "available : libcuda.so.1, driver 580.65.06, 2 devices" \
        "$(verdict "$dir/two" $on_two)"
    refused "hidden" "$dir/two" "unavailable hidden" \
        'CUDA_VISIBLE_DEVICES="" hides every device' $on_two CUDA_VISIBLE_DEVICES=
    refused "hidden by a number that is none" "$dir/two" "unavailable hidden" \
        'CUDA_VISIBLE_DEVICES="7" hides every device' $on_two CUDA_VISIBLE_DEVICES=7
    refused "hidden by a number that is there twice" "$dir/two" "unavailable hidden" \
        'CUDA_VISIBLE_DEVICES="0,1,0" hides every device: it names one twice' $on_two CUDA_VISIBLE_DEVICES=0,1,0
    refused "a list with number 0 hides none that is there" "$dir/two" "unavailable no_device" \
        "$build/sim/lib/libcuda.so.1 is present, no device: cuInit(0): CUDA_ERROR_NO_DEVICE (100), although /dev/nvidiactl is there" \
        $with_sim CUDA_VISIBLE_DEVICES=0,1
    refused "a service of MPS that takes nobody" "$dir/two" "unavailable device_busy" \
        'the MPS service accepts no more clients now: cuInit(0): CUDA_ERROR_MPS_MAX_CLIENTS_REACHED (808)' $on_two SIM_FAIL=cuInit:1=808
    is "an option: the library" "available : $build/sim/lib/libcuda.so.1, driver 580.65.06, 2 devices" \
        "$(verdict "$dir/two" env SIM_MACHINE="$dir/two.json" LD_LIBRARY_PATH="$build/sim/lib" \
            DS_ACCEL_CUDA_LIBRARY="$build/sim/lib/libcuda.so.1")"
    refused "an option that is not valid" "$dir/two" "error bad_option" \
        'option presence: expected on or off, not "perhaps"' $on_two DS_ACCEL_CUDA_PRESENCE=perhaps
    is "presence off asks the library unseen" "available : libcuda.so.1, driver 580.65.06, 2 devices" \
        "$(verdict "$dir/none" $on_two DS_ACCEL_CUDA_PRESENCE=off)"
    # Windows' GPUs under WSL 2, and the GPU of a Tegra, have one node, and no device on a bus.
    for node in dxg nvmap; do
        mkdir -p "$dir/$node/dev"
        : >"$dir/$node/dev/$node"
        is "/dev/$node stands for the driver's nodes" \
            "available : libcuda.so.1, driver 580.65.06, 2 devices" "$(verdict "$dir/$node" $on_two)"
    done
    rm "$dir/dxg/dev/dxg"
    has "without it" "$(verdict "$dir/dxg" $on_two)" "unavailable no_device: no PCI device 10de:03 and"
}

# start CODE STATE-AND-REASON PART: checks the verdict if cuInit() returns CODE.
start() {
    machine "init$1" <<END
{"vendors": {"cuda": {"init_code": $1, "driver_version": "535.161.08",
    "devices": [{"name": "A", "pci": "0000:18:00.0"}]}}}
END
    # shellcheck disable=SC2086 # words
    given=$(verdict "$dir/init$1" $with_sim SIM_MACHINE="$dir/init$1.json")
    has "cuInit returns $1" "$given" "$2: "
    has "cuInit returns $1: the evidence" "$given" "$3"
}
start 803 "unavailable driver_mismatch" "the kernel driver is 535.161.08, the library "
start 804 "unavailable driver_mismatch" "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE (804)"
start 802 "error driver_failed" "nvidia-fabricmanager"
start 46 "unavailable device_busy" "CUDA_ERROR_DEVICE_UNAVAILABLE (46)"
start 999 "error driver_failed" "CUDA_ERROR_UNKNOWN (999)"
case $given in
*" without /dev/nvidia-uvm"*) fail "cuInit returns 999, and every node is there" "$given" ;;
*) pass ;;
esac
rm "$dir/init999/dev/nvidia-uvm"
# shellcheck disable=SC2086 # words
has "cuInit returns 999, and a node is not there" \
    "$(verdict "$dir/init999" $with_sim SIM_MACHINE="$dir/init999.json")" \
    "libcuda.so.1: without /dev/nvidia-uvm (modprobe nvidia_uvm): cuInit(0): CUDA_ERROR_UNKNOWN (999)"
start 12345 "error driver_failed" "error (12345)"

# A library that aborts its process aborts only the helper process.
# shellcheck disable=SC2086 # words
is "a library that crashes" \
    "error driver_failed: the vendor's library terminated the probing process, signal 6" \
    "$(verdict "$dir/two" $with_sim SIM_MACHINE=/nonexistent.json)"

# -- identity: the same device by each of its names, in any order --

# hasnt NAME TEXT PART: checks that TEXT does not contain PART.
hasnt() {
    case $2 in
    *"$3"*) fail "$1" "has $3: $2" ;;
    *) pass ;;
    esac
}

# -- captures --

# The simulated driver does what a GPU's driver did while a stream captured: captures.txt is the
# record, captures.c says how it was made. Lines that are not simulated are left out.
run "$CC" -std=gnu11 -Wall -Wextra -Werror ${SAN:+"-fsanitize=$SAN"} -o "$dir/captures" \
    "$here/cuda/captures.c" -lpthread -ldl
is "captures.c compiles" "0 " "$code $err"
grep -v "^not simulated" "$here/cuda/captures.txt" >"$dir/captures.wanted"
"$sim" cuda "$dir/captures" libcuda.so.1 2>&1 | grep -v "^not simulated" >"$dir/captures.given" || true
is "calls beside a capture" "" "$(diff "$dir/captures.wanted" "$dir/captures.given" 2>&1)"

# Drivers before CUDA 12.5 have no cuCtxRecordEvent.
driven env SIM_FAIL="cuCtxRecordEvent:*=801" "$sim" cuda timeout 60 "$drive" "$plugin" raced
is "captures that begin while a thread waits for the device by cuCtxSynchronize" "0 " "$code $out$err"
driven "$sim" cuda timeout 60 "$drive" "$plugin" ended
is "a capture that another thread tries to end goes on" "0 " "$code $out$err"

# -- a handle that another thread opens at the same time --

driven env SIM_FAIL="cuIpcOpenMemHandle_v2:1=208,cuIpcOpenMemHandle_v2:2=208,cuIpcOpenMemHandle_v2:9=208" \
    "$sim" cuda timeout 60 "$drive" "$plugin" imports
is "an open that collides is repeated" "0 " "$code $out$err"
driven env SIM_FAIL="cuIpcOpenMemHandle_v2:*=208" "$sim" cuda timeout 60 "$drive" "$plugin" exchanged
has "an open that always collides fails" "$out" "CUDA_ERROR_ALREADY_MAPPED (208)"

# -- memory that the program allocated from the driver --

run "$CC" -std=c11 -Wall -Wextra -Werror ${SAN:+"-fsanitize=$SAN"} -o "$dir/foreign" \
    "$here/cuda/foreign.c" -I"$build/include" -L"$build/lib" -lds_accel -ldl
is "foreign.c compiles" "0 " "$code $err"
run env DS_ACCELERATOR=cuda LD_LIBRARY_PATH="$build/lib" "$sim" cuda "$dir/foreign"
is "memory of others" "device memory: kind 1, device 1, offset 0, 8192 bytes, pinned 0
inside it: kind 1, device 1, offset 100, 8192 bytes, pinned 0
managed memory: kind 3, device 1, offset 0, 8192 bytes, pinned 0
pinned memory: kind 2, device 1, offset 0, 8192 bytes, pinned 1
inside pinned memory: kind 2, device 1, offset 100, 8192 bytes, pinned 1
the stack: kind 0, device -1, offset 0, 0 bytes, pinned 0
pinned memory, without a current context: kind 2, device 1, offset 0, 8192 bytes, pinned 1
freed memory: kind 0, device -1, offset 0, 0 bytes, pinned 0" "$out$err"

# told SCENARIO MACHINE VARIABLE...: runs the scenario on the machine, like driven.
told() {
    scenario=$1
    root=$2
    shift 2
    driven env "$@" DS_ACCEL_ROOT="$dir/$root" LD_LIBRARY_PATH="$build/sim/lib" \
        SIM_MACHINE="$dir/$root.json" timeout 60 "$drive" "$plugin" "$scenario"
}

# facts MACHINE VARIABLE..., polled MACHINE VARIABLE...: run the scenario: what the plugin reports
# without opening a device.
facts() {
    told facts "$@"
    printf '%s\n' "$out"
    return "$code"
}
polled() {
    told polled "$@"
    printf '%s\n' "$out"
    return "$code"
}

# names VARIABLE...: prints each device with its facts, sorted by UUID, because the enumeration
# order must not change them.
names() {
    facts eight "$@" | sed -n 's/^device [0-9]* \(vendor .*\)/\1/p' | sort
}
names >"$dir/fastest"
is "fastest first, all whole devices" 7 "$(wc -l <"$dir/fastest" | xargs)"
is "by PCI address they are the same" "$(cat "$dir/fastest")" "$(names CUDA_DEVICE_ORDER=PCI_BUS_ID)"
has "a device's names belong together" "$(cat "$dir/fastest")" \
    "vendor 3 pci 0000:5d:00.0 uuid GPU-22170f15-5c1d-4e2f-8a9b-000000000003 node /dev/nvidia3 numa 0 memory 1073741824 name NVIDIA H100 80GB HBM3 arch sm_90 power 1 "
# NVML counts by PCI address and ignores CUDA_VISIBLE_DEVICES: a plugin that used an index instead
# of the UUID would report another device's telemetry and node. Here the second visible device is
# NVML's number 0.
is "hidden and turned around" "0 vendor 3 pci 0000:5d:00.0 uuid GPU-22170f15-5c1d-4e2f-8a9b-000000000003 node /dev/nvidia3
1 vendor 0 pci 0000:18:00.0 uuid GPU-1f0e0000-5c1d-4e2f-8a9b-000000000000 node /dev/nvidia0" \
    "$(facts eight CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=3,0 |
        sed -n 's/^device \([0-9] vendor .*\) numa .*/\1/p')"
is "a part of a device" \
    "device 0 vendor 5 pci 0000:ab:00.0 uuid MIG-a90d4e57-1b62-5f38-9c04-e83b6d52f710 node /dev/nvidia6 numa 1 memory 268435456 name NVIDIA H100 80GB HBM3 MIG 2g.20gb arch sm_90 power 1 id a90d4e571b625f389c04e83b6d52f710 part 1 of GPU-241d1923-5c1d-4e2f-8a9b-000000000005 instance 5/0" \
    "$(facts eight CUDA_VISIBLE_DEVICES=MIG-a90d4e57-1b62-5f38-9c04-e83b6d52f710 | grep part)"

# A child gets CUDA_VISIBLE_DEVICES for the devices in reverse order; the conformance suite checks
# that the child then has these devices (DSA-P103).
for setting in CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_DEVICE_ORDER=FASTEST_FIRST \
    CUDA_VISIBLE_DEVICES=2,0,1 CUDA_VISIBLE_DEVICES=GPU-26232331,GPU-20110507 \
    CUDA_VISIBLE_DEVICES=MIG-6c2f9d10-83b1-5a47-b0de-4f71c8a90e31; do
    run env "$setting" "$sim" node-8gpu "$program" conformance cuda --group env
    is "a child has the devices that it is shown: $setting" 0 "$code"
done

# -- telemetry --

# All values differ, so that swapped values are detected: NVML's memory is total, free, used (free
# in place of used would be 900 MiB here), clocks are in MHz, PCI Express in kB/s.
machine figures <<'END'
{"numa_nodes": [{"cpus": "0-1", "memory_bytes": 1073741824}],
 "vendors": {"cuda": {"devices": [
    {"name": "A", "pci": "0000:18:00.0", "uuid": "GPU-11111111-2222-3333-4444-555555555555",
     "memory_bytes": 1073741824, "numa_node": 0, "compute": [7, 0], "other_process_bytes": 130023424,
     "other_process": 1, "temperature_c": 61, "power_mw": 250500, "power_limit_mw": 300000,
     "energy_mj": 987654}]}}}
END
given=" $(facts figures | tr '\n' ' ')"
for figure in "temperature 61000" "power 250500" "power_limit 300000" "energy 987654" \
    "memory_total 1073741824" "memory_used 130023424"; do
    has "telemetry: $figure" "$given " " $figure "
done
has "telemetry: a process" "$given" "device 0 process 1 of 1 memory 130023424 pid 1 "
# More processes run than the first array has space for: all of them are reported, with valid
# records.
sed 's/"other_process": 1/"other_process": 1, "other_process_count": 600/' "$dir/figures.json" | machine crowd
is "telemetry: many processes, as many as there is room for" 16 \
    "$(facts crowd | grep -c '^device 0 process [0-9]* of 600 memory 130023424 pid 1$')"
# Early R535 drivers have records that are longer than in any header.
sed 's/"vendors": {"cuda": {/&"nvml_process_bytes": 32, /; s/"other_process": 1/"other_process": 1, "other_process_count": 60/' \
    "$dir/figures.json" | machine early
run "$sim" "$dir/early.json" env LD_LIBRARY_PATH="$build/sim/lib/nvml-535:$build/sim/lib" "$drive" "$plugin" facts
is "telemetry: longer records" 16 \
    "$(printf '%s\n' "$out" | grep -c '^device 0 process [0-9]* of 60 memory 130023424 pid 1$')"
has "telemetry: the link" "$given" "link kind 1 peer -1 width 16 generation 5 up 1"

# Corrected errors are type 0, and errors since the driver was loaded are counter 0: all four values
# differ, so that swapped arguments are detected.
counts='"ecc_corrected": 11, "ecc_uncorrected": 3, "ecc_corrected_in_life": 700, "ecc_uncorrected_in_life": 500'
sed "s/\"other_process\": 1/$counts/" "$dir/figures.json" | machine ecc
has "telemetry: ECC counts" "$(facts ecc) " " ecc_corrected 11 ecc_uncorrected 3 "
sed 's/"other_process": 1/"ecc": 0/' "$dir/figures.json" | machine no_ecc
hasnt "telemetry: no ECC, no counts" "$(facts no_ecc)" "ecc_corrected"

# throttled BITS VARIABLE...: prints the ABI's bits (1 idle, 2 power, 4 thermal, 8 hardware, 16
# setting) for NVML's BITS.
throttled() {
    sed "s/\"other_process\": 1/\"throttle_reasons\": $1/" "$dir/figures.json" | machine throttled
    shift
    facts throttled "$@" | sed -n 's/^device 0 .* throttle \([0-9]*\).*/\1/p'
}
is "throttled: by nothing" 0 "$(throttled 0)"
is "throttled: each reason" "1 16 2 8 16 4 12 10 16" \
    "$(for bit in 1 2 4 8 16 32 64 128 256; do throttled "$bit"; done | xargs)"
is "throttled: one that is not known yet" 2 "$(throttled 516)"
is "throttled: by the name that older drivers have" 4 \
    "$(throttled 32 "SIM_FAIL=nvmlDeviceGetCurrentClocksEventReasons:*=3")"
is "throttled: not known" "" "$(throttled -1)"

# A rate is the increase of a counter since the last poll; the first counter is for sent bytes. Here
# the increases are 20 GB and 10 GB, over any time. The counters may wrap around at an unknown
# value: a counter that never exceeded 32 bits has no rate, nor does a counter that decreased.
# counted FACTS: prints "RECEIVED SENT" of the second poll.
counted() {
    sed "s/\"other_process\": 1/$1/" "$dir/figures.json" | machine counted
    polled counted | sed -n 's/^device 0 .* pcie_rx \([0-9]*\) pcie_tx \([0-9]*\).*/\1 \2/p'
}
steps='"pcie_tx_step_bytes": 20000000000, "pcie_rx_step_bytes": 10000000000'
# in_bytes_per_s: prints yes for each rate of `polled` that is possible with the shortest and the
# longest time between the two polls.
in_bytes_per_s() {
    polled counted | awk '
        $1 == "device" && $2 == 0 && $3 == "valid" {
            for (i = 4; i < NF; i++) { if ($i ~ /^pcie_/) { rate[$i] = $(i + 1) } }
        }
        $1 == "polled" { least = $3 / 1e9; most = $5 / 1e9 }
        function fits(name, step) {
            return rate[name] >= step / most - 1 && rate[name] <= step / least + 1 ? "yes" : \
                name " " rate[name] ", " step " bytes in " least " to " most " s"
        }
        END { print fits("pcie_tx", 20000000000) ", " fits("pcie_rx", 10000000000) }'
}
given=$(counted "$steps")
is "telemetry: PCI Express, bytes a second" "yes, yes" "$(in_bytes_per_s)"
is "telemetry: PCI Express, twice as much sent as received" "yes" \
    "$(echo "$given" | awk '$1 > 0 && $2 >= 2 * $1 - 2 && $2 <= 2 * $1 + 2 { print "yes"; exit }
        { print "received and sent: " $0 }')"
hasnt "telemetry: PCI Express, no rate of one poll" "$(facts counted)" "pcie_rx"
is "telemetry: PCI Express, counters of 32 bits" "" "$(counted "$steps, \"pcie_counter_bits\": 32")"
is "telemetry: PCI Express, counters that may be of 32 bits" "" \
    "$(counted '"pcie_tx_step_bytes": 2000, "pcie_rx_step_bytes": 1000')"
is "telemetry: PCI Express, a counter that goes back" "" \
    "$(counted '"pcie_tx_bytes": 90000000000, "pcie_tx_step_bytes": -20000000000, "pcie_rx_bytes": 5000000000')"
# Telemetry is polled often: an NVML function that blocks its caller for 20 ms must not be called.
told polled figures SIM_FAIL="nvmlDeviceGetPcieThroughput:*=999" SIM_REPORT="$dir/report"
is "telemetry: never measured for 20 ms" "0 " "$code $(sed -n 's/^failed //p' "$dir/report")"

# A sleeping device is not queried: reading its sensors, links or processes would wake it.
sed 's/"other_process": 1/"other_process": 1, "power": "suspended", "nvlinks": ["2 switch"]/' \
    "$dir/figures.json" | machine asleep
given=$(facts asleep)
has "asleep: told as such" "$given" " power 2 "
is "asleep: no figures, no links, no processes" "device 0 valid 0x0 -
failed telemetry_processes: -3 0 -: telemetry_processes: libnvidia-ml.so.1 is absent, too old, or would wake the device" \
    "$(printf '%s\n' "$given" | sed -n '2,3p')"
hasnt "asleep: nothing more" "$(printf '%s\n' "$given" | sed 1,3d)" "device"

# The driver returns memory as (free, total): if swapped, more memory would be free than exists.
run "$sim" "$dir/figures.json" "$program" info cuda --json
is "info" 0 "$code"
has "info: total" "$out" '"total_memory_bytes": 1073741824'

# -- links --

# links MACHINE VARIABLE...: prints the NVLinks, each kind once with its count.
links() {
    facts "$@" | sed -n 's/^device \([0-9]*\) link kind 2 /\1 /p' | sort | uniq -c | sed 's/^ *//'
}
# Kind 2 is NVLink, generation 4 is NVML's 6; a peer is a visible device, or has an address.
is "links between two" "4 0 peer 1 width 0 generation 4 up 1 bytes_per_s 26562000000
4 1 peer 0 width 0 generation 4 up 1 bytes_per_s 26562000000" "$(links two)"
is "links to one that is hidden" \
    "4 0 peer -1 width 0 generation 4 up 1 bytes_per_s 26562000000 to 0000:9a:00.0" \
    "$(links two CUDA_VISIBLE_DEVICES=0)"
is "links to one that has another number" \
    "4 0 peer 1 width 0 generation 4 up 1 bytes_per_s 26562000000
4 1 peer 0 width 0 generation 4 up 1 bytes_per_s 26562000000" "$(links two CUDA_VISIBLE_DEVICES=1,0)"
is "a part has no links" "" \
    "$(links eight CUDA_VISIBLE_DEVICES=MIG-a90d4e57-1b62-5f38-9c04-e83b6d52f710)"
is "links to switches" "4 0 peer -1 width 0 generation 4 up 1 bytes_per_s 26562000000 to 0000:83:00.0
5 0 peer -1 width 0 generation 4 up 1 bytes_per_s 26562000000 to 0000:84:00.0
5 0 peer -1 width 0 generation 4 up 1 bytes_per_s 26562000000 to 0000:85:00.0
4 0 peer -1 width 0 generation 4 up 1 bytes_per_s 26562000000 to 0000:86:00.0" \
    "$(links eight CUDA_VISIBLE_DEVICES=0)"

# linked LINKS FACTS [VENDOR]: writes a machine of two devices, each with LINKS and FACTS, and with
# VENDOR as facts of the vendor.
linked() {
    machine linked <<END
{"numa_nodes": [{"cpus": "0-1", "memory_bytes": 1073741824}],
 "vendors": {"cuda": {${3:-} "devices": [
    {"name": "A", "pci": "0000:18:00.0", "uuid": "GPU-11111111-2222-3333-4444-555555555555",
     "memory_bytes": 67108864, "numa_node": 0, "compute": [9, 0], "nvlinks": [$1]$2},
    {"name": "B", "pci": "0000:9a:00.0", "uuid": "GPU-21111111-2222-3333-4444-555555555555",
     "memory_bytes": 67108864, "numa_node": 0, "compute": [9, 0], "nvlinks": [$1]$2}]}}}
END
}
# one: prints the links of the first device of that machine.
one() {
    links linked "$@" | sed -n 's/^\([0-9]*\) 0 peer /\1 /p'
}
linked '"2 down", "1 cpu 0004:00:01.0", "12 switch"' ""
# A virtual machine sees no switch: NVML has no address for it, and the plugin reports an address of
# all ones.
is "links that are down, to a processor, and to a switch that is not seen" \
    "2 -1 width 0 generation 4 up 0 bytes_per_s 0
1 -1 width 0 generation 4 up 1 bytes_per_s 26562000000 to 0004:00:01.0
12 -1 width 0 generation 4 up 1 bytes_per_s 26562000000 to ffffffff:ff:1f.7" "$(one)"
linked '"3 other", "40 down"' ""
is "a peer of no kind, and no more links than there can be" \
    "33 -1 width 0 generation 4 up 0 bytes_per_s 0
3 -1 width 0 generation 4 up 1 bytes_per_s 26562000000" "$(one)"
for answers in call field; do
    linked '"2 gpu 0000:9a:00.0"' ", \"nvlink_answers\": \"$answers\""
    is "links that only the $answers says are up" \
        "2 1 width 0 generation 4 up 1 bytes_per_s 26562000000" "$(one)"
done
linked '"2 gpu 0000:9a:00.0"' ', "nvlink_mbps": -1, "nvlink_mbps_common": 25781, "nvlink_version": 3'
is "links' speed, where only the common one is known" \
    "2 1 width 0 generation 2 up 1 bytes_per_s 25781000000" "$(one)"
for type in signed unsigned; do
    linked '"2 gpu 0000:9a:00.0"' ", \"nvlink_mbps_unknown\": \"$type\", \"nvlink_mbps_common\": 25781"
    is "links' speed, where it is $type and not available" \
        "2 1 width 0 generation 4 up 1 bytes_per_s 25781000000" "$(one)"
done
linked '"2 gpu 0000:9a:00.0"' ', "nvlink_version": 99'
is "links of a generation to come" "2 1 width 0 generation 0 up 1 bytes_per_s 26562000000" "$(one)"
# NVML's header defines the version numbers only from 12.8 (driver 570) on.
linked '"2 gpu 0000:9a:00.0"' "" '"driver_version": "535.161.08",'
is "links of an older driver: no generation" "2 1 width 0 generation 0 up 1 bytes_per_s 26562000000" \
    "$(one)"
linked '"2 gpu 0000:9a:00.0"' ""
is "links without fields: counted, no speed" "2 1 width 0 generation 4 up 1 bytes_per_s 0" \
    "$(one "SIM_FAIL=nvmlDeviceGetFieldValues:*=3")"
is "links without an address" "2 -1 width 0 generation 4 up 1 bytes_per_s 26562000000" \
    "$(one "SIM_FAIL=nvmlDeviceGetNvLinkRemotePciInfo_v2:*=3")"
is "no NVLink" "" "$(links figures)"

# cell MACHINE: prints the entry of `topo` for the first device and the second.
cell() {
    "$sim" "$1" "$program" topo -a cuda 2>/dev/null | sed -n 's/^cuda:0  *-  *\([^ ]*\).*/\1/p'
}
is "topo: links between two" NVL4 "$(cell cuda)"
is "topo: links through switches" NVL18 "$(cell node-8gpu)"
linked '"12 switch"' ""
is "topo: links through switches that are not seen" NVL12 "$(cell "$dir/linked.json")"
linked '"3 other"' ""
is "topo: links to who knows where" "NODE" "$(cell "$dir/linked.json")"

# -- data types by compute capability --

# types MAJOR MINOR VARIABLE...: prints the supported data types, and the support of triton.
types() {
    machine "sm$1$2" <<END
{"vendors": {"cuda": {"devices": [{"name": "A", "pci": "0000:18:00.0", "memory_bytes": 67108864,
    "compute": [$1, $2]}]}}}
END
    which=sm$1$2
    shift 2
    env "$@" "$sim" "$dir/$which.json" "$program" info cuda --json | python3 -c '
import json, sys
it = json.load(sys.stdin)
print("".join("y" if it["is_" + what + "_supported"] else "n" for what in ("fp16", "bf16", "triton")))'
}
is "Pascal" nnn "$(types 6 0)"
is "Pascal, as its user allows" ynn "$(types 6 0 DS_ALLOW_DEPRECATED_FP16=1)"
is "only 1 allows" nnn "$(types 6 0 DS_ALLOW_DEPRECATED_FP16=true)"
is "Maxwell, whatever is allowed" nnn "$(types 5 2 DS_ALLOW_DEPRECATED_FP16=1)"
is "Volta" ynn "$(types 7 0)"
is "Ampere" yyy "$(types 8 0)"
is "Hopper" yyy "$(types 9 0)"

# -- the conformance suite --

# Wrong data reveals a wrong argument order: swapped cuMemcpy*(destination, source) copies the other
# way, swapped cuEventElapsedTime(ms, start, end) returns negative times (DSA-P58), cuMemsetD8/16/32
# differ by width; and the engine treats a host address in place of a device address as misuse.
for machine in cuda node-8gpu; do
    run env SIM_REPORT="$dir/report" "$sim" "$machine" "$program" conformance cuda -v
    is "conformance on $machine" 0 "$code"
    has "conformance on $machine: all of it" "$out" "193 passed, 0 failed, 21 skipped"
    skipped=$(printf '%s\n' "$out" | sed -n 's/^[^ ]* *skipped  *[^:]*: //p' | sort -u)
    is "conformance on $machine: what is skipped" "DS_ACCEL_FLAG_HOST_ACCESSIBLE is not set
DS_ACCEL_FLAG_RESOLVES_DEPENDENCIES is not set
DS_ACCEL_FLAG_SYNCHRONIZED is not set
more than 4 GiB cannot be allocated
not offered: dmabuf_import
not offered: env_rules_get
not offered: op_builders_get
not offered: op_compatible
not offered: rng_normal
not offered: rng_seed
not offered: stream_get_current
the configuration declares no option that is a number or truth value
the configuration declares no option to be refused
the largest allocation is not known" "$skipped"
done
run env SIM_FAIL='nvmlInit_v2:*=1' "$sim" cuda "$program" conformance cuda -v
is "conformance without NVML" 0 "$code"
has "conformance without NVML: all of it" "$out" "192 passed, 0 failed, 22 skipped"
run "$sim" cuda "$program" conformance cuda --device 1
is "conformance of the second device" 0 "$code"
run env CUDA_VISIBLE_DEVICES=MIG-6c2f9d10-83b1-5a47-b0de-4f71c8a90e31 "$sim" node-8gpu \
    "$program" conformance cuda
is "conformance of a part" 0 "$code"

run "$sim" cuda "$program" bench cuda --json --only event,stream --time 0.005
is "bench" 0 "$code"
has "bench: measured" "$out" '"state": "measured"'

# -- ranges --

driven env SIM_RANGES="$dir/ranges" "$sim" cuda "$drive" "$plugin" walk
is "a walk" "0 " "$code $err$(printf '%s\n' "$out" | grep -v '^failed [a-z_]*: -3 ' || true)"
is "ranges reach NVTX" "push walk
pop
push domain [category]: walk
pop" "$(cat "$dir/ranges")"
# Each domain has its own stack and its own categories; a range that was not pushed cannot be
# popped.
rm -f "$dir/ranges"
driven env SIM_RANGES="$dir/ranges" "$sim" cuda "$drive" "$plugin" domains
nobodys="failed range_pop: -12 0 -: range_pop: no range of domain \"nobody's\" is open on this thread"
is "ranges of domains" "0 $nobodys" "$code $out$err"
domains="push step
push model [compute]: forward
push network [collective]: gather
push model [compute]: layer
pop
push model: loss
push [host]: log
push model [host]: log
push model [compute]: norm
pop
pop
pop
pop
pop
pop
pop"
is "ranges of domains reach NVTX" "$domains" "$(cat "$dir/ranges")"
run "$sim" cuda "$program" info cuda --json
has "ranges: domains are heeded" "$out" '"supports_range_domains": true'
mkdir "$dir/plain"
cp "$build/sim/lib/"*.so* "$dir/plain/"
echo 'int nvtxRangePushA(const char *message); int nvtxRangePop(void);
int nvtxRangePushA(const char *message) { return message[0] == 0; } int nvtxRangePop(void) { return 0; }' >"$dir/plain.c"
"$CC" -shared -fPIC "$dir/plain.c" -Wl,-soname,libnvtx3interop.so.1 -o "$dir/plain/libnvtx3interop.so.1"
run env DS_ACCEL_ROOT="$dir/two" SIM_MACHINE="$dir/two.json" LD_LIBRARY_PATH="$dir/plain" \
    "$program" info cuda --json
has "ranges: without domains in the library they are not" "$out" '"supports_range_domains": false'
driven env DS_ACCEL_ROOT="$dir/two" SIM_MACHINE="$dir/two.json" LD_LIBRARY_PATH="$dir/plain" \
    "$drive" "$plugin" domains
is "ranges: without domains in the library they nest" "0 $nobodys" "$code $out$err"

# NVIDIA's own library is tested with the test's profiler attached and without.
toolkit=/usr/local/cuda
if [ -e "$toolkit/lib64/libnvtx3interop.so.1" ] && [ -e "$toolkit/include/nvtx3/nvToolsExt.h" ]; then
    "$CC" -shared -fPIC -isystem "$toolkit/include" "$here/cuda/profiler.c" -o "$dir/profiler.so"
    cp -L "$toolkit/lib64/libnvtx3interop.so.1" "$dir/plain/libnvtx3interop.so.1"
    driven env DS_ACCEL_ROOT="$dir/two" SIM_MACHINE="$dir/two.json" LD_LIBRARY_PATH="$dir/plain" \
        NVTX_INJECTION64_PATH="$dir/profiler.so" "$drive" "$plugin" domains
    is "ranges of domains reach a profiler" "0 $domains" \
        "$code $(printf '%s\n' "$out" | grep -v '^failed range_pop: ')"
    driven env DS_ACCEL_ROOT="$dir/two" SIM_MACHINE="$dir/two.json" LD_LIBRARY_PATH="$dir/plain" \
        "$drive" "$plugin" domains
    is "ranges of domains without a profiler" "0 " \
        "$code $(printf '%s\n' "$out" | grep -v '^failed range_pop: ')$err"
else
    echo "test_cuda: NVIDIA's NVTX library is not tested: no toolkit in $toolkit"
fi

# -- failures --

# walk VARIABLE...: runs the scenario walk like driven; also sets $alive to the objects left in the
# simulator.
walk() {
    rm -f "$dir/report"
    told walk two SIM_REPORT="$dir/report" "$@"
    alive=$(sed -n 's/^alive //p' "$dir/report" 2>/dev/null) || true
}

walk SIM_FAIL=cuMemAlloc_v2:1=2
is "out of memory" "0 " "$code $err"
has "out of memory: the driver's code and name" "$out" ", device 0): CUDA_ERROR_OUT_OF_MEMORY (2)"
# Codes after which, according to the header, only a new process can continue; and other notable
# codes.
while read -r number status name; do
    walk "SIM_FAIL=cuMemAlloc_v2:1=$number"
    has "code $number" "$out" "failed mem_alloc: $status $number CUDA_ERROR_$name: "
done <<'END'
36 -3 CALL_REQUIRES_NEWER_DRIVER
214 -10 ECC_UNCORRECTABLE
220 -10 NVLINK_UNCORRECTABLE
226 -10 CONTAINED
700 -10 ILLEGAL_ADDRESS
702 -10 LAUNCH_TIMEOUT
710 -10 ASSERT
711 -13 TOO_MANY_PEERS
714 -10 HARDWARE_STACK_ERROR
715 -10 ILLEGAL_INSTRUCTION
716 -10 MISALIGNED_ADDRESS
717 -10 INVALID_ADDRESS_SPACE
718 -10 INVALID_PC
719 -10 LAUNCH_FAILED
720 -4 COOPERATIVE_LAUNCH_TOO_LARGE
721 -10 TENSOR_MEMORY_LEAK
807 -8 MPS_SERVER_NOT_READY
808 -8 MPS_MAX_CLIENTS_REACHED
809 -8 MPS_MAX_CONNECTIONS_REACHED
810 -10 MPS_CLIENT_TERMINATED
911 -10 EXTERNAL_DEVICE
END
walk SIM_FAIL=cuStreamQuery:1=777
has "an unknown code keeps its number" "$out" "): error (777)"
walk SIM_FAIL=cuMemHostRegister_v2:1=712
has "a code that says what was wrong" "$out" "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED (712)"
walk SIM_FAIL=nvmlInit_v2:*=9
is "without NVML all else works" "0 " "$code $err"
walk SIM_FAIL=cuMemFree_v2:1=1
is "what the driver did not free is freed with the device" "" "$alive"
has "and that is told" "$log" "device 0 closed with 1 allocations left"

# A device is lost during a copy, and instead of a host task.
for copy in 1 2 3 4; do
    walk SIM_LOSE="0@copy:$copy"
    is "lost in copy $copy" "0 " "$code $err"
    has "lost in copy $copy: the driver's code" "$out" "CUDA_ERROR_LAUNCH_FAILED (719)"
    has "lost in copy $copy: from then on" "$out" ": device 0 was lost before"
done

# Every call of the runtime (of the sample) fails once: the program does not crash, every failure
# has a status with code and text (call.c and walk.c list the checks), and no object is left except
# those that the failing call itself should have destroyed.
walk
is "nothing is left" "" "$alive"
calls=$(sed -n 's/^calls //p' "$dir/report")
is "the walk is long enough to mean something" yes "$([ "$calls" -gt 250 ] && echo yes || echo "$calls")"
number=1
while [ "$number" -le "$calls" ]; do
    taken 10 || { number=$((number + 1)) && continue; }
    walk SIM_FAIL="*:$number"
    call=$(sed -n 's/^failed //p' "$dir/report" 2>/dev/null) || true
    case $code in
    0) pass ;;
    *) fail "call $number, $call, fails" "exit code $code: $out $err" ;;
    esac
    case $call in
    *Destroy* | *Release* | *Free*) ;;
    *) is "call $number, $call, fails: nothing is left" "" "$alive" ;;
    esac
    number=$((number + 1))
done

finish
