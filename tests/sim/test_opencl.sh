#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Tests of the plugin opencl over real runtimes that need no device: PoCL (OpenCL 3.0, on the CPU,
# with one device and with three), oclgrind (OpenCL 1.2: the old calls, no shared virtual memory)
# and the loader without any platform. test_opencl.sh BUILD
#
# The runtimes themselves detect swapped arguments: sizes and offsets of copies outside their buffer
# (-30), an object in place of another (-34 to -58), and wrong data. Conformance, the walk and the
# scenario native, which has its own prototypes, make these calls.
set -eu
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$source/tests/tools/lib.sh"
# shellcheck source=tests/sim/drive.sh
. "$source/tests/sim/drive.sh"
program=$build/bin/ds-accel
plugin=$build/lib/ds-accel/ds_accel_opencl.so
failing=$build/sim/opencl/libopencl_failing.so
python=${PYTHON:-/usr/bin/python3}
oclgrind=/usr/lib/oclgrind/liboclgrind-rt-icd.so

unset OCL_ICD_VENDORS OCL_ICD_FILENAMES OPENCL_VENDOR_PATH POCL_DEVICES POCL_MEMORY_LIMIT \
    POCL_CACHE_DIR 2>/dev/null || true
for name in $(env | sed -n 's/^\(DS_ACCEL_OPENCL_[A-Z_]*\)=.*/\1/p'); do
    unset "$name"
done
make -s -C "$source" BUILD="$build" sim >/dev/null

# Only PoCL is used, regardless of the machine's other runtimes.
mkdir "$dir/vendors" "$dir/pocl"
cp /etc/OpenCL/vendors/pocl.icd "$dir/vendors/"
export OCL_ICD_VENDORS="$dir/vendors" POCL_CACHE_DIR="$dir/pocl"

# refused NAME REASON PART [VARIABLE=VALUE...]: checks that choosing opencl fails with exit code 4,
# the reason and the evidence.
refused() {
    name=$1
    reason=$2
    part=$3
    shift 3
    run env DS_ACCELERATOR=opencl "$@" "$program" detect
    is "$name: exit" 4 "$code"
    has "$name: reason" "$err" "cannot be used: $reason: "
    has "$name: evidence" "$err" "$part"
    has "$name: remedy" "$err" "Remedy: "
}

cpu=DS_ACCEL_OPENCL_DEVICE_TYPE=cpu

# ---- no library; no device; a device -------------------------------------------------------------

refused "no library" library_missing "/nonexistent/libOpenCL.so.1" \
    "$cpu" DS_ACCEL_OPENCL_LIBRARY=/nonexistent/libOpenCL.so.1
refused "another library" symbol_missing "libm.so.6 has no clGetPlatformIDs, clGetPlatformInfo" \
    "$cpu" DS_ACCEL_OPENCL_LIBRARY=libm.so.6
refused "no platform" no_device "CL_PLATFORM_NOT_FOUND_KHR (-1001)" \
    "$cpu" OCL_ICD_VENDORS=/nonexistent
refused "no platform: remedy" no_device "pocl-opencl-icd" "$cpu" OCL_ICD_VENDORS=/nonexistent
# With each of the two variables PoCL leaves the count of devices unset.
refused "a platform without devices" no_device "Portable Computing Language has no device" \
    "$cpu" POCL_DEVICES=none
refused "PoCL without a cache" no_device "Portable Computing Language has no device" \
    "$cpu" POCL_CACHE_DIR=/proc/nonexistent
refused "only a CPU" no_device "is a CPU, which is used with DS_ACCEL_OPENCL_DEVICE_TYPE=cpu"
refused "only a CPU, by name" no_device "is a CPU" DS_ACCEL_OPENCL_DEVICE_TYPE=gpu,accelerator
refused "no such type" bad_option 'option device_type: "tpu" is not' \
    DS_ACCEL_OPENCL_DEVICE_TYPE=cpu,tpu
refused "no such platform" no_device 'no platform'"'"'s name has "nosuch"; there is Portable' \
    "$cpu" DS_ACCEL_OPENCL_PLATFORM=nosuch
refused "presence" bad_option "option presence" "$cpu" DS_ACCEL_OPENCL_PRESENCE=maybe

# On a machine without a platform, no library is opened.
mkdir "$dir/root"
run env -u OCL_ICD_VENDORS DS_ACCELERATOR=opencl "$cpu" LD_DEBUG=files \
    "$program" --root "$dir/root" detect
is "no .icd file: exit" 4 "$code"
has "no .icd file" "$err" "/etc/OpenCL/vendors has no .icd file"
is "no .icd file: nothing is opened" 0 "$(printf '%s\n' "$err" | grep -c 'file=libOpenCL' || true)"

export DS_ACCEL_OPENCL_DEVICE_TYPE=cpu
for platform in "" portable "Computing Lang"; do
    run env DS_ACCELERATOR=opencl DS_ACCEL_OPENCL_PLATFORM="$platform" "$program" detect
    is "PoCL with platform \"$platform\"" "0 opencl" "$code $out"
done
# The verdict has the driver's version as its vendor writes it, not the numbers alone.
run "$program" explain opencl
has "PoCL's own version" "$out" "+debian, 1 device"
run "$program" detect
case $out in
opencl) fail "by demand only" "$out" ;;
*) pass ;;
esac

# ---- devices and their features ------------------------------------------------------------------

# ask EXPRESSION COMMAND...: prints the value of an expression over the JSON that the command
# prints.
ask() {
    expression=$1
    shift
    "$@" | "$python" -c 'import json, sys
a = json.load(sys.stdin)
print(eval(sys.argv[1]))' "$expression"
}

is "three devices" 3 \
    "$(POCL_DEVICES="pthread pthread pthread" ask 'a["device_count"]' \
        "$program" info --json opencl 2>&1)"
is "memory of a gigabyte" "$((1 << 30))" \
    "$(POCL_MEMORY_LIMIT=1 ask 'a["devices"][0]["total_memory_bytes"]' \
        "$program" info --json opencl 2>&1)"

# conforms NAME MINIMUM [VARIABLE=VALUE...] -- ARGUMENTS: checks that no check of the suite fails,
# and that at least MINIMUM pass.
conforms() {
    name=$1
    minimum=$2
    shift 2
    run env "$@"
    is "conformance, $name: exit" 0 "$code"
    counts=$(printf '%s\n' "$out" | tail -n 1)
    has "conformance, $name: $out" "$counts" " 0 failed"
    passes=$(printf '%s\n' "$counts" | sed 's/.*: \([0-9]*\) passed.*/\1/')
    is "conformance, $name: at least $minimum pass" 1 "$((passes >= minimum))"
    echo "  $name: $counts"
}

# suite_on_oclgrind: runs each check; of the checks of queued work, only those of one rule of the
# sample. Each of those checks takes five seconds of processor time for stream_host_task, which
# returns on oclgrind only after its task has finished, and is then skipped.
suite_on_oclgrind() {
    if [ -n "${FULL-}" ]; then
        conforms "oclgrind" 80 "$program" conformance opencl
        return
    fi
    "$program" conformance --list >"$dir/checks"
    groups=$(awk '$3 != "held" { print $3 }' "$dir/checks" | sort -u)
    passes_of_all=0
    for group in $groups; do
        conforms "oclgrind, $group" 0 "$program" conformance opencl --group "$group"
        passes_of_all=$((passes_of_all + passes))
    done
    is "conformance, oclgrind: at least 80 pass" 1 "$((passes_of_all >= 80))"
    rule=$(awk '$3 == "held" { print $1 }' "$dir/checks" | sort -u |
        awk -v seed="${SEED:-0}" '{ rule[NR - 1] = $0 } END { print rule[seed % NR] }')
    conforms "oclgrind, held work of $rule" 0 "$program" conformance opencl --rule "$rule"
}

conforms "PoCL" 80 "$program" conformance opencl
conforms "PoCL, the third of three devices" 80 POCL_DEVICES="pthread pthread pthread" \
    "$program" conformance opencl --device 2
# PoCL's limit counts memory that is really used: allocations beyond it fail, and the device
# continues to work.
conforms "PoCL, a gigabyte" 1 POCL_MEMORY_LIMIT=1 "$program" conformance opencl --rule DSA-P62

POCL_DEVICES="pthread pthread" run "$program" bench --time 0.002 --size 64K --json opencl
is "bench: exit" 0 "$code"

# The host copies between devices, without the runtime's knowledge.
driven env POCL_DEVICES="pthread pthread" "$drive" "$plugin" peer
is "memory that is freed while it is copied to another device" "0 " "$code $out"

# ---- a call that fails, and a program that uses OpenCL itself ------------------------------------

# The codes: one that no specification has, one for a lost device, one for a runtime without
# resources. In a sample, each code occurs at other calls.
step=9
[ -z "${FULL-}" ] || step=1
first=${SEED:-0}
for number in -9999 -2 -5; do
    first=$((first % step + 1))
    driven env POCL_DEVICES="pthread pthread" DS_ACCEL_OPENCL_LIBRARY="$failing" \
        "$drive" "$plugin" rounds "$failing" "$number" "$step" "$first"
    is "each call fails with $number: $err$(printf '%s\n' "$out" | grep -A 9 -E '^(wrong|untold|left)' || true)" 0 "$code"
    printf '%s\n' "$out" | sed -n "s/^[0-9]* \(calls\|failed\)/  code $number: &/p"
done

# A runtime sets, changes and removes variables; the plugin restores them.
run env FAILING_CHANGES="a=value" FAILING_REMOVES= DS_ACCEL_OPENCL_LIBRARY="$failing" \
    "$program" conformance opencl --rule DSA-P28
is "the environment is as it was" 0 "$code"
has "the environment is as it was: $out" "$(printf '%s\n' "$out" | tail -n 1)" " 0 failed"

driven "$drive" "$plugin" native
is "native: $err" 0 "$code"
has "native" "$out" mixed
printf '%s\n' "$out" | sed -n 's/^copy of/  &/p'

# ---- oclgrind: OpenCL 1.2 ------------------------------------------------------------------------

if [ -e "$oclgrind" ]; then
    mkdir "$dir/oclgrind"
    echo "$oclgrind" >"$dir/oclgrind/oclgrind.icd"
    # oclgrind reports itself as a GPU as well, and is selected without the option.
    run env -u DS_ACCEL_OPENCL_DEVICE_TYPE OCL_ICD_VENDORS="$dir/oclgrind" DS_ACCELERATOR=opencl \
        "$program" detect
    is "oclgrind" "0 opencl" "$code $out"
    OCL_ICD_VENDORS="$dir/oclgrind" suite_on_oclgrind
    driven env OCL_ICD_VENDORS="$dir/oclgrind" DS_ACCEL_OPENCL_DEVICE_TYPE=all "$drive" "$plugin" native
    is "native, oclgrind: $err" 0 "$code"
    # Two platforms are installed: both are devices of one instance, and either can be selected.
    cp "$dir/vendors/pocl.icd" "$dir/oclgrind/"
    is "two platforms" 2 "$(OCL_ICD_VENDORS="$dir/oclgrind" \
        ask 'a["device_count"]' "$program" info --json opencl 2>&1)"
    is "one of two platforms" 1 \
        "$(OCL_ICD_VENDORS="$dir/oclgrind" DS_ACCEL_OPENCL_PLATFORM=oclgrind \
            ask 'a["device_count"]' "$program" info --json opencl 2>&1)"
else
    echo "  skipped: oclgrind is not installed"
fi

finish
