#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The hpu plugin over the simulated libSynapse.so and libhlml.so.  test_hpu.sh BUILD
set -eu
build=$(cd "$1" && pwd -P)
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$source/tests/tools/lib.sh"
# shellcheck source=tests/sim/drive.sh
. "$source/tests/sim/drive.sh"
unset HABANA_VISIBLE_MODULES HLS_MODULE_ID DS_ACCEL_HPU_LIBRARY 2>/dev/null || true
machines=$source/tests/sim/machines
plugin=$build/lib/ds-accel/ds_accel_hpu.so
typed=$build/sim/lib/libSynapse-typed.so
chmod 755 "$dir"

# on MACHINE [VARIABLE=VALUE...] COMMAND...: runs the command on a simulated machine.
on() {
    machine=$1
    shift
    driven "$source/tests/sim/ds-accel-sim" "$machine" env "$@"
}

# refused NAME MACHINE [VARIABLE=VALUE...]: prints why hpu cannot be used, according to detect when
# hpu is forced.
refused() {
    machine=$1
    shift
    on "$machine" DS_ACCELERATOR=hpu "$@" "$build/bin/ds-accel" detect
    echo "$code ${err#*cannot be used: }"
}

# machine NAME PYTHON: writes hpu-holes with a change; in PYTHON, hpu is its vendor and all its
# devices.
machine() {
    python3 - "$machines/hpu-holes.json" "$dir/$1.json" "$2" <<'END'
import json, sys
machine = json.load(open(sys.argv[1]))
hpu = machine["vendors"]["hpu"]
exec(sys.argv[3], {"machine": machine, "hpu": hpu, "all": hpu["devices"]})
json.dump(machine, open(sys.argv[2], "w"))
END
}

# ---- the three outcomes, and their reasons -------------------------------------------------------

"$source/tests/sim/machine.py" "$machines/hpu-holes.json" "$dir/root"
run env DS_ACCELERATOR=hpu DS_ACCEL_ROOT="$dir/root" "$build/bin/ds-accel" detect
is "the library is absent" "4 library_missing: libSynapse.so, /usr/lib/habanalabs/libSynapse.so: \
no such library is installed. Remedy: install the Gaudi software (habanalabs-graph has \
libSynapse.so)" "$code ${err#*cannot be used: }"
run env DS_ACCELERATOR=hpu DS_ACCEL_HPU_PRESENCE=off LD_LIBRARY_PATH="$build/sim/lib" \
    "$build/bin/ds-accel" detect
is "the library is there, no device" "4 no_device: libSynapse.so is present, no device. Remedy: \
install a Gaudi card (hl-smi lists them), or choose another accelerator" "$code ${err#*cannot be used: }"
on hpu-holes "$build/bin/ds-accel" detect --json
is "a device" "0 true true" "$code $(printf '%s' "$out" | python3 -c '
import json, sys
answer = json.load(sys.stdin)
hpu = next(c for c in answer["candidates"] if c["name"] == "hpu")
same = hpu["detail"] == "libSynapse.so, driver 1.21, 3 devices"
print(str(answer["accelerator"] == "hpu" and answer["device_count"] == 3).lower(), str(same).lower())')"

has "no hardware" "$(refused none)" "4 no_device: no PCI device 1da3 and no /dev/accel/accel"
machine no-driver 'hpu["driver"] = False'
has "no driver" "$(refused "$dir/no-driver.json")" "habanalabs"
# /dev/accel is a class shared by several vendors: a node of Intel's NPU does not count.
machine others 'machine["vendors"] = {}
machine["files"] = {"/dev/accel/accel0": "", "/sys/class/accel/accel0/device/vendor": "0x8086\n",
                    "/sys/class/accel/accel0/device/device": "0x643e\n"}'
has "the node of another vendor" "$(refused "$dir/others.json")" "4 no_device: "
# The nodes have the names that drivers used before /dev/accel.
"$source/tests/sim/machine.py" "$machines/hpu-holes.json" "$dir/old"
rm -r "$dir/old/dev/accel" "$dir/old/sys/class/accel"
for card in "0 0000:33:00.0 2" "1 0000:b3:00.0 0" "2 0000:9a:00.0 5"; do
    # shellcheck disable=SC2086 # three words
    set -- $card
    mkdir -p "$dir/old/sys/class/habanalabs/hl$1"
    : >"$dir/old/dev/hl$1"
    echo "$2" >"$dir/old/sys/class/habanalabs/hl$1/pci_addr"
    echo "$3" >"$dir/old/sys/class/habanalabs/hl$1/module_id"
done
set -- "$build"
on hpu-holes DS_ACCEL_ROOT="$dir/old" "$drive" "$plugin" facts
has "older nodes" "$out" "device 0 vendor 0 pci 0000:b3:00.0 uuid \
01P0-HL2080A0-15-TNBS63-05-02-11 node /dev/hl1 numa 1 memory 1073741824 name HL-225 arch gaudi2 "
machine no-permission 'for device in all: device["permission"] = False'
if unprivileged "no permission"; then
    "$source/tests/sim/machine.py" "$dir/no-permission.json" "$dir/closed"
    chmod 755 "$dir/closed"
    # forced_plainly: prints the verdict for an unprivileged user, with hpu forced.
    forced_plainly() {
        # shellcheck disable=SC2086 # words
        run env XDG_RUNTIME_DIR= $as_user env XDG_CONFIG_HOME=/nowhere DS_ACCELERATOR=hpu \
            DS_ACCEL_HPU_LIBRARY=/nowhere/libSynapse.so DS_ACCEL_ROOT="$dir/closed" "$reached/bin/ds-accel" detect
    }
    forced_plainly
    is "no permission: exit code" 4 "$code"
    has "no permission: which node" "$err" \
        "no_permission: /dev/accel/accel0: no permission to read and write for user $user"
    chmod -R a+rwX "$dir/closed/dev"
    forced_plainly
    has "no permission, before it is granted" "$err" "library_missing: /nowhere/libSynapse.so"
fi

is "hidden: none" '4 hidden: HABANA_VISIBLE_MODULES="" hides every device. Remedy: unset '\
'HABANA_VISIBLE_MODULES, or name a module in it that is there' "$(refused hpu-holes HABANA_VISIBLE_MODULES=)"
has "hidden: another" "$(refused hpu-holes HABANA_VISIBLE_MODULES=1,7)" \
    '4 hidden: HABANA_VISIBLE_MODULES="1,7" hides every device'
has "hidden: by the launcher's choice" "$(refused hpu-holes HLS_MODULE_ID=1)" \
    '4 hidden: HLS_MODULE_ID="1" is none of the 3 visible modules'
has "a list that is none" "$(refused hpu-holes HABANA_VISIBLE_MODULES=0,gaudi)" \
    '4 bad_option: HABANA_VISIBLE_MODULES: "gaudi" is not the number of a module'
has "a choice that is none" "$(refused hpu-holes HLS_MODULE_ID=two)" \
    '4 bad_option: HLS_MODULE_ID: "two" is not the number of a module'

# A module serves one process. The process that holds it is visible at the module's node, before
# anything is acquired.
"$source/tests/sim/machine.py" "$machines/hpu-holes.json" "$dir/held"
mkdir -p "$dir/held/proc/4242/fd"
echo trainer >"$dir/held/proc/4242/comm"
ln -s /dev/accel/accel0 "$dir/held/proc/4242/fd/7"
is "one of three is held" "0 " \
    "$(DS_ACCEL_ROOT=$dir/held refused hpu-holes | sed 's/falling.*//')"
ln -s /dev/accel/accel1 "$dir/held/proc/4242/fd/8"
ln -s /dev/accel/accel3 "$dir/held/proc/4242/fd/9"
has "all are held" "$(DS_ACCEL_ROOT=$dir/held refused hpu-holes)" '4 device_busy: module 0 is held by '\
'process 4242 (trainer), and a module serves one process; hl-smi or "fuser -v /dev/accel/accel3" '\
'shows which process has it'
# The process that detects does not count as a holder: it shares the module with itself, even if a
# helper process probes. The process that started it counts as a holder.
cat >"$dir/hold" <<'END'
#!/bin/sh
# hold as-own|as-parent COMMAND...: runs COMMAND while COMMAND itself, or its parent process, has
# every module's node open
mkdir -p "$DS_ACCEL_ROOT/proc/$$/fd"
echo launcher >"$DS_ACCEL_ROOT/proc/$$/comm"
for node in 0 1 3; do
    ln -sf "/dev/accel/accel$node" "$DS_ACCEL_ROOT/proc/$$/fd/$node"
done
as=$1
shift
if [ "$as" = as-own ]; then
    exec "$@"
fi
"$@"
exit $?
END
chmod 755 "$dir/hold"
for mode in isolated in-process; do
    on hpu-holes DS_ACCELERATOR=hpu DS_ACCEL_PROBE=$mode "$dir/hold" as-own \
        "$build/bin/ds-accel" detect
    is "$mode: held by who asks" "0 " "$code $err"
    on hpu-holes DS_ACCELERATOR=hpu DS_ACCEL_PROBE=$mode "$dir/hold" as-parent \
        "$build/bin/ds-accel" detect
    is "$mode: held by who started who asks" 4 "$code"
    has "$mode: held by who started who asks, says" "$err" "device_busy: module 0 is held by process"
done
has "busy, says Synapse" "$(refused hpu-holes 'SIM_FAIL=synInitialize:*=20')" \
    "4 device_busy: synInitialize(): synDeviceAlreadyAcquired (20); hl-smi shows which processes have the modules"
has "busy, says the count" "$(refused hpu-holes 'SIM_FAIL=synDeviceGetCount:*=22')" \
    "4 device_busy: synDeviceGetCount(): synBusy (22)"
has "no device, says Synapse" "$(refused hpu-holes 'SIM_FAIL=synInitialize:*=8')" "4 no_device: "
has "a failure" "$(refused hpu-holes 'SIM_FAIL=synInitialize:*=26')" \
    "4 driver_failed: synInitialize(): synFail (26)"
has "a code that nobody knows" "$(refused hpu-holes 'SIM_FAIL=synInitialize:*=99')" \
    "4 driver_failed: synInitialize(): error (99)"

# ---- identity and sensors ------------------------------------------------------------------------

# Modules 2, 0 and 5 have PCI addresses and nodes in other orders; HLML counts by PCI address. The
# module without module_id in sysfs is found by HLML's PCI address. HLML's memory is {free, total,
# used}: read as NVML's {total, free, used}, the first line of values would have the total
# 973078528.
unknown=00000000000000000000000000000000
facts="device 0 vendor 0 pci 0000:b3:00.0 uuid 01P0-HL2080A0-15-TNBS63-05-02-11 node /dev/accel/accel3 numa 1 memory 1073741824 name HL-225 arch gaudi2 power 1 id $unknown
device 0 valid 0x147d utilization 0 temperature 40000 power 90000 power_limit 600000 energy 0 core_clock 1650000 throttle 0 memory_used 0 memory_total 1073741824
device 1 vendor 2 pci 0000:33:00.0 uuid 01P0-HL2080A0-15-TNBS63-04-07-03 node /dev/accel/accel0 numa 0 memory 1073741824 name HL-225 arch gaudi2 power 1 id $unknown
device 1 valid 0x147d utilization 37 temperature 48000 power 151000 power_limit 600000 energy 123456789 core_clock 1650000 throttle 2 memory_used 104857600 memory_total 1073741824
device 2 vendor 5 pci 0000:9a:00.0 uuid 01P0-HL3090A0-18-U4V193-22-07-00 node /dev/accel/accel1 numa 1 memory 1073741824 name HL-325L arch gaudi3 power 1 id $unknown
device 2 valid 0x147d utilization 0 temperature 40000 power 90000 power_limit 600000 energy 0 core_clock 1650000 throttle 0 memory_used 0 memory_total 1073741824
runtime 0.0.0
driver 1.21.0"
on hpu-holes SIM_REPORT="$dir/report" "$drive" "$plugin" facts
is "facts" "$facts" "$out"
for order in file shuffled fastest; do
    machine $order "hpu['order'] = '$order'"
    on "$dir/$order.json" "$drive" "$plugin" facts
    is "facts, counted otherwise: $order" "$facts" "$out"
done
# The facts need no acquisition: with every module held by another process they are the same.
machine busy 'for device in all: device["busy"] = 1'
on "$dir/busy.json" "$drive" "$plugin" facts
is "facts of modules in other hands" "$facts" "$out"
on hpu-holes HABANA_VISIBLE_MODULES=5,2,5 "$drive" "$plugin" facts
is "the order of the list is that of the devices" "0 vendor 5 1 vendor 2" \
    "$(echo "$out" | sed -n 's/^device \(. vendor .\) pci .*/\1/p' | paste -sd ' ' -)"
on hpu-holes HABANA_VISIBLE_MODULES=5,2 HLS_MODULE_ID=2 "$drive" "$plugin" facts
is "the launcher's choice" "0 vendor 2" \
    "$(echo "$out" | sed -n 's/^device \(. vendor .\) pci .*/\1/p' | paste -sd ' ' -)"
on hpu-holes DS_ACCELERATOR=hpu DS_ACCEL_HPU_TELEMETRY_LIBRARY=/nowhere/libhlml.so \
    "$build/bin/ds-accel" info
is "without HLML" 0 "$code"
has "without HLML there is the rest" "$out" "current_device_name          hpu:0"
on hpu DS_ACCEL_HPU_TELEMETRY_LIBRARY=/nowhere/libhlml.so "$build/bin/ds-accel" conformance hpu
is "without HLML the suite passes" 0 "$code"

# fp16 depends on the device: Gaudi 1 does not support it.
for type in 2 4 5; do
    machine "type$type" "for device in all: device['type'] = $type"
    on "$dir/type$type.json" DS_ACCELERATOR=hpu "$build/bin/ds-accel" info
    echo "$out" | sed -n 's/^ *\(supported_dtypes\|is_fp16_supported\) *//p' | paste -sd ';' -
done >"$dir/dtypes"
is "data types of Gaudi, Gaudi 2 and Gaudi 3" "float32, bfloat16;no
float32, float16, bfloat16;yes
float32, float16, bfloat16;yes" "$(cat "$dir/dtypes")"
# SynapseAI_Core counts Gaudi and Gaudi 2 from 0 and has no Gaudi 3: for an unknown number, the PCI
# id decides.
for type in "0 0x1000" "1 0x1020" "0 0x1063" "7 0x4242" "0 0x1011" "1 0x1021" "7 0x1062"; do
    machine "core" "
for index, device in enumerate(all):
    device['type'] = ${type% *}
    device.setdefault('files', {})['/sys/bus/pci/devices/' + device['pci'] + '/device'] = '${type#* }\\n'"
    on "$dir/core.json" "$drive" "$plugin" facts
    printf '%s\n' "$out" | sed -n 's/^device 0 .* arch \(.*\) power .*/\1/p'
    on "$dir/core.json" DS_ACCELERATOR=hpu "$build/bin/ds-accel" info
    echo "$out" | sed -n 's/^ *is_fp16_supported *//p'
done >"$dir/types"
is "the generation where the type's number says nothing" "gaudi no gaudi2 yes gaudi3 yes no gaudi no gaudi2 yes gaudi3 yes" \
    "$(tr -s '\n' ' ' <"$dir/types" | sed 's/ $//')"
for flag in resolves_data_dependency handles_memory_backpressure; do
    has "$flag" "$out" "$(printf '%-28s yes' $flag)"
done

# ---- work, with both generations of streams ------------------------------------------------------

for library in "" "$typed"; do
    what=${library##*/}
    what=${what:-libSynapse.so}
    # The simulator aborts if memory is mapped twice, is unmapped while in use, or stays mapped.
    for case in work pageable; do
        on hpu-holes ${library:+DS_ACCEL_HPU_LIBRARY="$library"} "$drive" "$plugin" $case
        is "$what: $case" "0  " "$code $out $err"
        on hpu-holes ${library:+DS_ACCEL_HPU_LIBRARY="$library"} SIM_LATENCY_US=copy=5000,fill=2000 \
            "$drive" "$plugin" $case 5
        is "$what, slow: $case" "0  " "$code $out $err"
    done
    on hpu-holes DS_ACCEL_HPU_LIBRARY="${library:-libSynapse.so}" \
        "$build/bin/ds-accel" conformance hpu
    is "$what: conformance" "0 112 passed, 0 failed, 102 skipped" \
        "$code $(echo "$out" | sed -n '$s/^hpu, .*: //p')"
    on hpu-holes SIM_LOSE=1@copy:3 ${library:+DS_ACCEL_HPU_LIBRARY="$library"} "$drive" "$plugin" work
    is "$what: lost in mid-copy" 1 "$code"
    has "$what: lost in mid-copy, says" "$out" ": -10 17 synDeviceReset: "
    is "$what: after that nothing is asked" "" "$(echo "$out" | grep -v '^failed [a-z_]*: -10 ' || true)"
done
on hpu-holes DS_ACCELERATOR=hpu "$build/bin/ds-accel" bench --json --time 0.01 --size 64K \
    --only copy,fill,alloc,event
is "bench" 0 "$code"
has "bench has copies" "$out" '"h2d'

# The status for each vendor code, which is reported with its name; an unknown code keeps its
# number.
while read -r number status name; do
    on hpu-holes "SIM_FAIL=synDeviceMalloc:*=$number" "$drive" "$plugin" work
    has "code $number" "$out" "failed mem_alloc: $status $number $name: synDeviceMalloc("
done <<END
1 -1 synInvalidArgument
3 -2 synOutOfHostMemory
4 -2 synOutOfDeviceMemory
8 -6 synNoDeviceFound
14 -2 synFailedToAllocateDeviceMemory
17 -10 synDeviceReset
18 -3 synUnsupported
22 -8 synBusy
26 -4 synFail
27 -2 synOutOfResources
34 -1 synMappingNotFound
42 -9 synTimeout
4712 -4 -
4711 -4 -
END

# A source that cannot be mapped, such as a read-only page, is copied through memory that can be
# mapped.
on hpu-holes 'SIM_FAIL=synHostMap:1=12' "$drive" "$plugin" work
is "a source that cannot be mapped" "0  " "$code $out $err"
on hpu-holes 'SIM_FAIL=synHostMap:*=12' "$drive" "$plugin" work
has "a destination that cannot" "$out" "failed mem_copy_async: -4 12 synFailedToMapCb: synHostMap("

# Another process has acquired the module, or acquires it in the meantime; two instances of one
# process share it.
mkfifo "$dir/go"
"$source/tests/sim/ds-accel-sim" hpu-holes "$drive" "$plugin" busy <"$dir/go" >"$dir/busy" &
holder=$!
exec 3>"$dir/go"
for _ in $(seq 1200); do
    [ ! -s "$dir/busy" ] || break
    sleep 0.05
done
is "a module, opened twice by one process" open "$(cat "$dir/busy")"
on hpu-holes "$drive" "$plugin" work
is "and by another" 'failed device_open: -8 20 synDeviceAlreadyAcquired: '\
'synDeviceAcquireByModuleId(module 0): synDeviceAlreadyAcquired (20); a module serves one process: '\
'hl-smi or "fuser -v /dev/accel/accel3" shows which process has it' "$out"
exec 3>&-
wait "$holder" || fail "the holder" "exit $?"
on hpu-holes "$drive" "$plugin" work
is "and when it is free again" "0  " "$code $out $err"

# ---- every call fails once -----------------------------------------------------------------------

# Each failure is reported completely, the process survives, and no object is left except those that
# could not be released. Each run fails one call of the sample, until a run has no such call.
"$source/tests/sim/machine.py" "$machines/hpu-holes.json" "$dir/every"
export SIM_MACHINE="$machines/hpu-holes.json"
for library in "" "$typed"; do
    n=0
    while :; do
        n=$((n + 1))
        taken 6 || continue
        rm -f "$dir/report"
        driven env LD_LIBRARY_PATH="$build/sim/lib" DS_ACCEL_ROOT="$dir/every" SIM_REPORT="$dir/report" \
            SIM_FAIL="*:$n" ${library:+DS_ACCEL_HPU_LIBRARY="$library"} timeout 60 "$drive" "$plugin" walk
        grep -q ^failed "$dir/report" 2>/dev/null || break
        lost=$(grep -c '^alive' "$dir/report" || true)
        case $(sed -n 's/^failed //p' "$dir/report") in
        *Destroy | *Release | hlml_shutdown | *Free | *Unmap) lost=0 ;;
        esac
        [ "$code $err $lost" = "0  0" ] ||
            fail "call $n fails" "exit $code $out $err $(cat "$dir/report")"
    done
    is "call $n is beyond the last: nothing failed, and all went well" "0 " \
        "$code $(printf '%s\n' "$out" | grep -v '^failed [a-z_]*: -3 ' || true)"
    is "that is a lot of calls" yes "$([ $n -le 150 ] || echo yes)"
done
unset SIM_MACHINE

# ---- mistakes that must be detected --------------------------------------------------------------

# mutant NAME FILE SED [CASE [VARIABLE=VALUE...]]: checks that a mistake in an argument's order or
# in a number is detected. A sample of the mistakes is tested; none is in a build with a sanitizer.
mutant() {
    name=$1
    file=$2
    script=$3
    case=${4:-work}
    shift 3
    [ $# = 0 ] || shift
    rm -rf "$dir/mutant"
    mkdir "$dir/mutant"
    cp "$source"/plugins/hpu/*.[ch] "$dir/mutant"
    sed -i "$script" "$dir/mutant/$file"
    if cmp -s "$dir/mutant/$file" "$source/plugins/hpu/$file"; then
        fail "mutant $name: nothing to change"
        return
    fi
    taken 4 || return 0
    case $file in
    *.h) changed=$(ls "$dir/mutant/"*.c) ;;
    *) changed=$dir/mutant/$file ;;
    esac
    # shellcheck disable=SC2046,SC2086 # lists of files
    "$CC" -std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden -shared -w -I"$dir/mutant" -I"$source" \
        -I"$source/plugins/common" -o "$dir/ds_accel_hpu.so" $changed "$build"/obj/plugins/common/*.o \
        $(for object in "$build"/obj/plugins/hpu/*.o; do
            base=$(basename "$object" .o)
            case "$changed" in *"/$base.c"*) ;; *) echo "$object" ;; esac
        done) -lpthread -ldl 2>"$dir/cc" || { fail "mutant $name: does not compile" "$(cat "$dir/cc")"; return; }
    [ "$case" != work ] || case="work 5"
    # shellcheck disable=SC2086 # a scenario with its argument
    on hpu-holes SIM_LATENCY_US=copy=5000 "$@" timeout 20 "$drive" "$dir/ds_accel_hpu.so" $case
    if [ "$code" != 0 ] || { [ "$case" = facts ] && [ "$out" != "$facts" ]; }; then
        pass
    else
        fail "mutant $name is not found" "$out"
    fi
}

if [ -z "${SAN-}" ]; then
    # order of arguments: (stream, SRC, size, DST, direction)
    mutant "source and destination" memory.c \
        's/synMemCopyAsync(native, source, size_bytes, destination/synMemCopyAsync(native, destination, size_bytes, source/'
    mutant "size behind the destination" memory.c \
        's/synMemCopyAsync(native, source, size_bytes, destination/synMemCopyAsync(native, source, destination, size_bytes/'
    # directions: 0 up, 1 down, 2 within; CUDA's are 1, 2, 3
    mutant "directions up and down" synapse.h \
        's/SYN_HOST_TO_DRAM 0/SYN_HOST_TO_DRAM 1/; s/SYN_DRAM_TO_HOST 1/SYN_DRAM_TO_HOST 0/'
    mutant "directions of CUDA" synapse.h 's/SYN_DRAM_TO_DRAM 2/SYN_DRAM_TO_DRAM 3/'
    # order of arguments: (destination, value, count, stream)
    mutant "count before the value" memory.c \
        's/synMemsetD16Async(address, (uint16_t)pattern, count/synMemsetD16Async(address, (uint16_t)count, pattern/'
    mutant "widths of fills" memory.c 's/synMemsetD16Async(address/synMemsetD8Async(address/'
    # order of arguments: (device, free, total)
    mutant "total before free" memory.c \
        'N; s/free_out, total_out);/total_out, free_out);/; P; D'
    # order of arguments: (stream, event, flags) and (event, stream)
    mutant "event before the stream" stream.c \
        's/synStreamWaitEvent(lane, native_event/synStreamWaitEvent(native_event, lane/'
    mutant "stream before the event" stream.c \
        's/synEventRecord(native, lane)/synEventRecord(lane, native)/'
    # order of arguments: (out, start, end); in nanoseconds, and only with EVENT_COLLECT_TIME
    mutant "start behind the end" stream.c 's/(&nanoseconds, start, end)/(\&nanoseconds, end, start)/'
    mutant "microseconds" stream.c 's|nanoseconds / 1e6|nanoseconds / 1e3|'
    mutant "seconds" stream.c 's|nanoseconds / 1e6|nanoseconds / 1e9|'
    mutant "events without times" synapse.h 's/SYN_EVENT_COLLECT_TIME 1u/SYN_EVENT_COLLECT_TIME 0u/'
    # 22 is "not ready"; CUDA's code is 600
    mutant "busy is a failure" synapse.h 's/SYN_BUSY 22/SYN_BUSY 600/'
    # order of arguments: (device, size, wanted address, flags, out)
    mutant "the wanted address before the size" memory.c \
        's/size_bytes, 0, 0, &address)/0, size_bytes, 0, \&address)/'
    # order of arguments: (device, size, buffer), an integer and a pointer that compilers convert to
    # each other
    mutant "buffer before the size" memory.c \
        's/synHostMap(card->id, size_bytes, pointer)/synHostMap(card->id, (uint64_t)pointer, (void *)size_bytes)/'
    mutant "host memory is not mapped" memory.c \
        's/code = copy->runtime->syn.synHostMap(.*/code = SYN_SUCCESS; if (0)/'
    mutant "maps are taken back in use" maps.c 's/return code == SYN_SUCCESS || code == SYN_DEVICE_RESET;/return 1;/' \
        pageable
    mutant "a module by its position" device.c 's/hpu_card_get(runtime, module->id/hpu_card_get(runtime, 1/'
    # types of streams in the older generation: 0 down, 1 up, 2 within
    mutant "types of streams" synapse.h \
        's/COPY_DEVICE_TO_HOST 0/COPY_DEVICE_TO_HOST 1/; s/COPY_HOST_TO_DEVICE 1/COPY_HOST_TO_DEVICE 0/' \
        work DS_ACCEL_HPU_LIBRARY="$typed"
    mutant "lanes without order" stream.c 's/lane != stream->last) {/0) {/' work DS_ACCEL_HPU_LIBRARY="$typed" \
        SIM_LATENCY_US=copy=50000
    # HLML's memory is {free, total, used}; sensor 0 is the processor's
    mutant "memory as NVML has it" hlml.h \
        '/struct hlml_memory {/,/};/{s/long free;/long swap;/; s/long total;/long free;/; s/long swap;/long total;/}' facts
    mutant "the board's sensor" hlml.h 's/HLML_SENSOR_ON_AIP 0/HLML_SENSOR_ON_AIP 1/' facts
    mutant "another clock" hlml.h 's/HLML_CLOCK_OF_SOC 0/HLML_CLOCK_OF_SOC 1/' facts
    mutant "DRAM's attribute" synapse.h 's/DRAM_SIZE 3/DRAM_SIZE 5/' facts
fi

finish
