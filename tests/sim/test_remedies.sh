#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The remedy printed for each reason of a plugin works: the test applies to the machine what the
# remedy and the detail say, and the verdict changes afterwards. The nodes, libraries, variables and
# processes are real, and real plugins search for them, on a machine that starts empty.
#
#     test_remedies.sh BUILD
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/tools/lib.sh
. "$here/../tools/lib.sh"
: "${CC:=gcc}"
unset CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER HABANA_VISIBLE_MODULES HLS_MODULE_ID LD_LIBRARY_PATH 2>/dev/null || true
program=$build/bin/ds-accel
root=$dir/root
libs=$dir/libs
description=$dir/machine.json
mkdir "$libs"
: >"$dir/met"
: >"$dir/variables"

# Root may open any node; without that right it is like other users.
plain=
[ "$(id -u)" != 0 ] || plain="setpriv --bounding-set=-dac_override,-dac_read_search"

# machine <JSON: replaces the machine's description.
machine() {
    cat >"$description"
    rm -rf "$root"
    "$here/machine.py" "$description" "$root"
}

# ask ARGUMENT...: runs ds-accel on the current machine, with the variables of $dir/variables.
ask() {
    # shellcheck disable=SC2046,SC2086 # words
    run env $(cat "$dir/variables") $plain env DS_ACCEL_ROOT="$root" SIM_MACHINE="$description" \
        LD_LIBRARY_PATH="$libs" "$program" ${directory:+--plugin-dir "$directory"} "$@"
}

# refused REASON: checks that the backend cannot be used for that reason, with a remedy. Sets
# $detail and $remedy.
refused() {
    ask explain "$backend" --json
    printf '%s\n' "$out" >"$dir/json"
    given=$(told reason)
    detail=$(told detail)
    remedy=$(told remedy)
    is "$backend: $1" "$1" "$given"
    ask -a "$backend" detect
    is "$backend: $1: forced" 4 "$code"
    has "$backend: $1: the remedy is printed" "$err" "Remedy: $remedy"
    echo "$1" >>"$dir/met"
}

# told MEMBER: prints the member of the backend in $dir/json.
told() {
    python3 -c '
import json, sys
print([c for c in json.load(open(sys.argv[1]))["candidates"] if c["name"] == sys.argv[2]][0][sys.argv[3]])' \
        "$dir/json" "$backend" "$1"
}

# usable: checks that the backend can be used after the last remedy.
usable() {
    ask -a "$backend" detect
    is "$backend: after the remedies" "0 $backend" "$code $out$err"
}

# named TEXT SED: prints the part of TEXT that SED selects; the test exits if it selects nothing,
# since then no remedy can be applied.
named() {
    found=$(printf '%s\n' "$1" | sed -n "$2")
    if [ -z "$found" ]; then
        fail "$backend: nothing to do is named" "$1"
        finish
        exit 1
    fi
    printf '%s\n' "$found"
}

# seen TEXT SED: like named, but the test continues if SED selects nothing.
seen() {
    printf '%s\n' "$1" | sed -n "$2"
}

# ---- cuda, from an empty machine to a device -----------------------------------------------------

backend=cuda
directory=
echo CUDA_VISIBLE_DEVICES= >"$dir/variables"
card='"name": "A", "pci": "0000:18:00.0", "memory_bytes": 67108864'
echo '{"vendors": {}}' | machine
refused no_device

# the remedy is "lspci -d 10de: lists those the machine shows"
id=$(named "$remedy" 's/.*lspci -d \([0-9a-f]*\):.*/\1/p')
echo "{\"vendors\": {\"cuda\": {\"driver\": false, \"devices\": [{$card, \"pci_vendor\": \"0x$id\"}]}}}" | machine
refused no_driver

# "modprobe nvidia" is simulated: the module, its files and its nodes, which no user may open yet.
module=$(named "$remedy" 's/.*modprobe \([a-z]*\)).*/\1/p')
has "cuda: no_driver: the detail names the module" "$detail" "the kernel driver $module is not loaded"
echo "{\"vendors\": {\"cuda\": {\"driver_version\": \"535.161.08\", \"permission\": false, \"devices\": [{$card}]}}}" | machine
rm "$root/dev/nvidia-uvm"
refused no_permission

# Grant permission for the node in the detail, and then for the next one.
granted=
while [ "$given" = no_permission ] && [ "$granted" != "$detail" ]; do
    granted=$detail
    chmod u+rw "$root$(named "$detail" 's/^\(\/dev\/[^:]*\): .*/\1/p')"
    ask explain cuda --json
    printf '%s\n' "$out" >"$dir/json"
    given=$(told reason)
    detail=$(told detail)
done
echo "{\"vendors\": {\"cuda\": {\"driver_version\": \"535.161.08\", \"devices\": [{$card}]}}}" >"$description"

# The detail is "libcuda.so.1, ...: no such library is installed". The first library to be installed
# is an old one.
if ldconfig -p 2>/dev/null | grep -q 'libcuda\.so'; then
    echo "test_remedies: library_missing is not tested as it is: this machine has libcuda"
    library=libcuda.so.1
    echo library_missing >>"$dir/met"
else
    refused library_missing
    library=$(named "$detail" 's/^\(lib[^,]*\), .*: no such library is installed$/\1/p')
fi
echo 'int cuInit(unsigned flags); int cuInit(unsigned flags) { return (int)flags; }' >"$dir/old.c"
"$CC" -shared -fPIC "$dir/old.c" -Wl,-soname,"$library" -o "$libs/$library"
refused symbol_missing

# The remedy is "update the vendor's runtime to one that has the symbol": install a release for
# another kernel driver.
path=$(named "$detail" 's/^\(.*\) has no cuDriverGetVersion, .*/\1/p')
is "cuda: symbol_missing: the detail names the file" "$libs/$library" "$path"
cp "$build/sim/lib/libsim_cuda.so" "$libs/"
cp -L "$build/sim/lib/libcuda.so.1" "$libs/libcuda.so.580.65.06"
ln -sf libcuda.so.580.65.06 "$path"
refused driver_mismatch

# The remedy is "bring kernel driver and libcuda to the same version": the kernel's version becomes
# the version in the detail.
version=$(named "$detail" 's/^the kernel driver is 535\.161\.08, the library libcuda\.so\.\([0-9.]*\): .*/\1/p')
echo "$version" >"$root/sys/module/nvidia/version"
sed -i "s/535\.161\.08/$version/" "$root/proc/driver/nvidia/version"
refused driver_failed

# The detail is "without /dev/nvidia-uvm (modprobe nvidia_uvm): cuInit(0): CUDA_ERROR_UNKNOWN
# (999)".
node=$(named "$detail" 's/.*: without \(\/dev\/[^ ]*\) (modprobe nvidia_uvm): .*/\1/p')
: >"$root$node"
refused hidden

# the detail is: CUDA_VISIBLE_DEVICES="" hides every device
variable=$(named "$detail" 's/^\([A-Z_]*\)="" hides every device$/\1/p')
has "cuda: hidden: the remedy names the variable" "$remedy" "unset $variable, "
sed -i "/^$variable=/d" "$dir/variables"
usable

# Set the option in the detail to the expected value.
echo DS_ACCEL_CUDA_PRESENCE=perhaps >"$dir/variables"
refused bad_option
option=$(named "$detail" 's/^option \([a-z]*\): expected on or off, not "perhaps"$/\1/p')
echo "DS_ACCEL_CUDA_$(echo "$option" | tr '[:lower:]' '[:upper:]')=on" >"$dir/variables"
usable

# On this machine every card is set to PROHIBITED; the remedy is "nvidia-smi -c 0 allows it".
echo "{\"vendors\": {\"cuda\": {\"devices\": [{$card, \"compute_mode\": 2}]}}}" >"$description"
refused device_busy
mode=$(named "$detail" 's/.*: nvidia-smi -c \([0-9]\) allows it$/\1/p')
echo "{\"vendors\": {\"cuda\": {\"devices\": [{$card, \"compute_mode\": $mode}]}}}" >"$description"
usable

# ---- hpu, whose module another process has acquired ----------------------------------------------

backend=hpu
: >"$dir/variables"
cp "$build/sim/lib"/libsim_hpu.so "$build/sim/lib"/libSynapse.so "$build/sim/lib"/libhlml.so "$libs/"
machine <"$here/machines/hpu.json"
usable
# A process that runs until it is killed; its /proc entry is visible on the machine until then.
cat >"$dir/hold" <<'END'
#!/bin/sh
trap 'rm -rf "$1/proc/$$"; exit 0' TERM
mkdir -p "$1/proc/$$/fd"
echo trainer >"$1/proc/$$/comm"
ln -s /dev/accel/accel0 "$1/proc/$$/fd/7"
ln -s /dev/accel/accel1 "$1/proc/$$/fd/8"
: >"$1/held"
while :; do
    sleep 0.05
done
END
chmod 755 "$dir/hold"
"$dir/hold" "$root" &
holder=$!
while [ ! -e "$root/held" ]; do
    sleep 0.02
done
refused device_busy
has "hpu: device_busy: what can be done" "$remedy" "wait for that process, end it"
process=$(seen "$detail" 's/.* is held by process \([0-9]*\) (trainer), .*/\1/p')
is "hpu: device_busy: the process that has it" "$holder" "$process"
# No other process may be killed: number 0 would be this test and all its parents.
if [ "$process" = "$holder" ]; then
    kill "$process"
    wait "$holder" || true
    usable
else
    kill "$holder"
fi

# ---- a sleeping device, and an old device -------------------------------------------------------

backend=aged
directory=$dir/plugins
mkdir "$directory"
# shellcheck disable=SC2086 # no flag is no word
"$CC" -std=c11 -D_GNU_SOURCE -fPIC -shared -fvisibility=hidden ${SAN:+-fsanitize=$SAN} -I"$build/include/ds-accel" \
    -Wl,-z,now,-z,nodelete -o "$directory/ds_accel_aged.so" "$here/remedies/aged.c"
echo "{\"vendors\": {\"cuda\": {\"devices\": [{$card, \"pci_device\": \"0x1db4\", \"power\": \"suspended\"}]}}}" | machine
refused device_asleep

# the remedy is "wake the device: use it once, or keep it awake in the system's power settings"
has "aged: device_asleep: what can be done" "$remedy" "keep it awake in the system's power settings"
setting=$(named "$detail" 's/^\(\/sys\/.*\/power\/control\) lets it sleep$/\1/p')
echo on >"$root$setting"
echo active >"$root$(dirname "$setting")/runtime_status"
refused device_too_old

# the remedy is "use a newer device"
has "aged: device_too_old: what can be done" "$remedy" "use a newer device"
echo 0x2330 >"$root$(named "$detail" 's/^\(\/sys\/.*\/device\) is before 0x2000$/\1/p')"
usable

# ---- all reasons --------------------------------------------------------------------------------

# Every reason that plugins report, from the first to the last in reasons.def, was tested.
sed -n '/^REASON(NO_DEVICE,/,/^REASON(BAD_OPTION,/s/^REASON([A-Z_]*, "\([a-z_]*\)".*/\1/p' "$here/../../core/reasons.def" |
    sort >"$dir/reasons"
is "reasons without a remedy that was applied" "" "$(sort -u "$dir/met" | comm -23 "$dir/reasons" -)"

finish
