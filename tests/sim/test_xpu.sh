#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Tests of the xpu plugin over a simulated Level Zero with Sysman and ITT, and over Debian's real
# loader.
#
#     test_xpu.sh BUILD
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck disable=SC2034 # for vendor.sh
vendor=xpu
# shellcheck source=tests/tools/lib.sh
. "$here/../tools/lib.sh"
unset ZE_AFFINITY_MASK ZE_FLAT_DEVICE_HIERARCHY ZES_ENABLE_SYSMAN INTEL_LIBITTNOTIFY64 VIRTUAL_ENV \
    CONDA_PREFIX PYTHONPATH DS_ACCEL_XPU_LIBRARY DS_ACCEL_XPU_PRESENCE 2>/dev/null || true
# shellcheck source=tests/sim/vendor.sh
. "$here/vendor.sh"
export HOME="$dir/home" # no package of this user's

# A loader of version 1.8 replaces the current loader.
mkdir "$dir/old"
ln -s "$build/sim/lib/libze_loader_1.8.so" "$dir/old/libze_loader.so.1"
ln -s "$build/sim/lib/libsim_xpu.so" "$dir/old/libsim_xpu.so"

# on_old COMMAND...: runs the simulator with that loader before its own.
cat >"$dir/on_old" <<SH
#!/bin/sh
where=\$1
shift
exec "$sim" "\$where" env LD_LIBRARY_PATH="$dir/old" "\$@"
SH
chmod +x "$dir/on_old"

# ---- detection -----------------------------------------------------------------------------------

uninitialized="ZE_RESULT_ERROR_UNINITIALIZED (2013265921)"
is "available" "available - libze_loader.so.1, runtime 1.6.33578, 2 devices" "$(verdict "$sim" xpu)"
is "available with a loader of 1.8" "available - libze_loader.so.1, runtime 1.6.33578, 2 devices" \
    "$(verdict "$dir/on_old" xpu)"
is "no hardware" "unavailable no_device no PCI device 8086:03 and no /dev/dri/renderD[0-9]*" \
    "$(verdict "$sim" none)"
has "the library is absent" "$(verdict bare env DS_ACCEL_XPU_LIBRARY="$dir/libze_loader.so.1")" \
    "unavailable library_missing $dir/libze_loader.so.1"
is "the library is there, and no device" \
    "unavailable no_device no driver that Level Zero loads (libze_intel_gpu.so.1) has a GPU; zeInitDrivers: $uninitialized, although /dev/dri/renderD128 is there" \
    "$(verdict bare env SIM_MACHINE="$here/machines/none.json" LD_LIBRARY_PATH="$build/sim/lib")"
is "hidden" "unavailable hidden ZE_AFFINITY_MASK=\"7\" hides every device; zeInitDrivers: $uninitialized" \
    "$(ZE_AFFINITY_MASK=7 verdict "$sim" xpu)"
is "an empty mask hides nothing" "available - libze_loader.so.1, runtime 1.6.33578, 2 devices" \
    "$(ZE_AFFINITY_MASK='' verdict "$sim" xpu)"
is "and an empty mask is not why there is none" \
    "unavailable no_device no driver that Level Zero loads (libze_intel_gpu.so.1) has a GPU; zeInitDrivers: $uninitialized, although /dev/dri/renderD128 is there" \
    "$(ZE_AFFINITY_MASK='' verdict bare env SIM_MACHINE="$here/machines/none.json" LD_LIBRARY_PATH="$build/sim/lib")"
variant gone 'v["driver"] = False'
has "no kernel driver" "$(verdict "$sim" "$dir/gone.json")" "unavailable no_driver"
variant mismatch 'v["loader_code"] = 0x78000002'
is "layers of another version" \
    "unavailable driver_mismatch zeInitDrivers: ZE_RESULT_ERROR_UNSUPPORTED_VERSION (2013265922)" \
    "$(verdict "$sim" "$dir/mismatch.json")"
variant denied 'v["loader_code"] = 0x70010000'
is "refused by the driver" \
    "unavailable no_permission zeInitDrivers: ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS (1879113728)" \
    "$(verdict "$sim" "$dir/denied.json")"
variant strange 'v["loader_code"] = 0x12345678'
is "a code that nobody knows" "error driver_failed zeInitDrivers: error 305419896" \
    "$(verdict "$sim" "$dir/strange.json" | sed 's/: .*305419896.*/: error 305419896/')"
variant failing 'v["has_init_drivers"] = 0'
has "a driver without zeInitDrivers" "$(verdict "$sim" "$dir/failing.json")" "available - "
# The plugin uses only GPUs: the same driver also lists another kind of Intel processor.
variant vpu 'v["devices"][0]["type"] = 5'
has "a device that is no GPU" "$(verdict "$sim" "$dir/vpu.json")" "available - libze_loader.so.1, runtime 1.6.33578, 1 device"

# A user without the right to open a node gets no_permission (the superuser may open any file).
refused /dev/dri/renderD128

mkdir "$dir/half"
echo 'int zeInit(unsigned flags) { return flags != 0; }' |
    "$CC" -xc -shared -fPIC -o "$dir/half/libze_loader.so.1" -
has "a library that is too old" "$(LD_LIBRARY_PATH=$dir/half verdict bare)" "unavailable symbol_missing"

# The real loader of Debian 12: it has the functions that the plugin requires, but not six later
# ones, and it finds no driver.
real=$(ldconfig -p 2>/dev/null | sed -n 's/.*libze_loader\.so\.1 .* => //p' | head -1)
if [ -n "$real" ] && dpkg-query -W -f '${Version}' libze1 2>/dev/null | grep -q '^1\.8\.'; then
    is "Debian's loader, and no device" \
        "unavailable no_device no driver that Level Zero loads (libze_intel_gpu.so.1) has a GPU; zeInit(ZE_INIT_FLAG_GPU_ONLY): $uninitialized, although /dev/dri/renderD128 is there" \
        "$(verdict bare env DS_ACCEL_XPU_LIBRARY="$real")"
    for symbol in zesInit zeInitDrivers zeCommandListHostSynchronize zeDriverGetLastErrorDescription \
        zeMemPutIpcHandle zeCommandListIsImmediate; do
        is "Debian's loader has no $symbol" "" "$(nm -D "$real" | grep " T $symbol\$" || true)"
    done
    # The real loader exports what the simulated loader of 1.8 exports.
    nm -D "$real" | sed -n 's/.* T //p' | sort >"$dir/real"
    nm -D "$build/sim/lib/libze_loader_1.8.so" | sed -n 's/.* T \(ze.*\)/\1/p' | sort >"$dir/simulated"
    is "the simulated loader of 1.8 has no more" "" "$(comm -13 "$dir/real" "$dir/simulated")"
else
    echo "test_xpu: without Debian's libze1 1.8 its loader is not tried"
fi

# ---- the three variants --------------------------------------------------------------------------

# way MACHINE: prints the facts that depend on the verdict's variant: timers and communication.
way() {
    "$sim" "$1" "$build/bin/ds-accel" -q info xpu --json 2>/dev/null | python3 -c '
import json
import sys

facts = json.load(sys.stdin)
text = json.dumps(facts)
find = lambda key: text.split("\"" + key + "\": ")[1].split(",")[0].strip("}\" ")
print(find("use_host_timers"), find("communication_backend"))'
}

# package ROOT PACKAGE VERSION: writes the files that a wheel installs in ROOT.
package() {
    mkdir -p "$1/$2-$3.dist-info"
    printf 'Metadata-Version: 2.1\nName: %s\nVersion: %s\n\nVersion: 9.9\n' "$2" "$3" >"$1/$2-$3.dist-info/METADATA"
}

venv=$dir/venv/lib/python3.11/site-packages
is "the plain driver" "false xccl" "$(way xpu)"
package "$venv" intel_extension_for_pytorch 2.5.10+xpu
is "IPEX before 2.6: the host's timers" "true xccl" "$(VIRTUAL_ENV=$dir/venv way xpu)"
package "$dir/conda/lib/python3.12/site-packages" intel_extension_for_pytorch 2.10.20+xpu
is "IPEX 2.10 is after 2.6" "false xccl" "$(CONDA_PREFIX=$dir/conda way xpu)"
package "$dir/user" intel_extension_for_pytorch 2.6.0
package "$dir/user" oneccl_bind_pt 2.6.0+gpu
is "IPEX 2.6, with oneCCL" "false ccl" "$(PYTHONPATH=/nonexistent:$dir/user way xpu)"
is "the first directory has the say" "false ccl" "$(VIRTUAL_ENV=$dir/venv PYTHONPATH=$dir/user way xpu)"
mkdir -p "$dir/egg/intel_extension_for_pytorch-2.5.0+xpu-py3.10.egg-info" "$dir/old"
printf 'Metadata-Version: 2.1\nVersion: 2.5.0+xpu\n' | tee "$dir/old/intel_extension_for_pytorch-2.5.0+xpu-py3.10.egg-info" \
    >"$dir/egg/intel_extension_for_pytorch-2.5.0+xpu-py3.10.egg-info/PKG-INFO"
is "IPEX installed as an egg-info directory" "true xccl" "$(PYTHONPATH=$dir/egg way xpu)"
is "IPEX installed as an egg-info file" "true xccl" "$(PYTHONPATH=$dir/old way xpu)"
package "$dir/cpu" intel_extension_for_pytorch 2.1.0+cpu
is "IPEX that was built for the CPU" "false xccl" "$(PYTHONPATH=$dir/cpu way xpu)"
variant packaged 'm["files"] = {
    "/usr/lib/python3/dist-packages/intel_extension_for_pytorch-1.13.120+xpu.dist-info/METADATA": "Version: 1.13.120+xpu\n",
    "/usr/local/lib/python3.9/dist-packages/oneccl_bindings_for_pytorch-2.0.dist-info/METADATA": "Version: 2.0\n"}'
is "in the machine's own directories" "true ccl" "$(way "$dir/packaged.json")"

# Beside a CUDA device, cuda is chosen before xpu with the plain driver, xpu before cuda with IPEX;
# xpu.external precedes both.
mocks=$build/tests/fixtures/mocks
mkdir "$dir/pair"
if [ -e "$mocks/ds_accel_cuda.so" ] && [ -e "$mocks/ds_accel_xpu.external.so" ]; then
    cp "$plugin" "$mocks/ds_accel_cuda.so" "$dir/pair"
    chosen() {
        "$sim" xpu env DS_ACCEL_PLUGIN_PATH="$dir/pair" "$@" "$build/bin/ds-accel" -q detect
    }
    is "the driver defers to cuda" "cuda" "$(chosen env)"
    is "IPEX does not" "xpu" "$(chosen env VIRTUAL_ENV="$dir/venv")"
    is "and without a CUDA device it need not" "xpu" "$(chosen env DS_ACCEL_CUDA_AVAILABLE=false)"
    is "by name" "xpu" "$(chosen env DS_ACCELERATOR=xpu)"
    cp "$mocks/ds_accel_xpu.external.so" "$dir/pair"
    is "xpu.external goes before" "xpu.external" "$(chosen env)"
    is "and before IPEX" "xpu.external" "$(chosen env VIRTUAL_ENV="$dir/venv")"
fi

# ---- identity ------------------------------------------------------------------------------------

first="pci 0000:29:00.0 uuid 8680d50b-2f00-0000-2900-000000000000 node /dev/dri/renderD128 numa 0"
second="pci 0000:b9:00.0 uuid 8680d50b-2f00-0000-b900-000000000000 node /dev/dri/renderD129 numa 1"
drive xpu facts
has "device 0" "$out" "device 0 vendor 0 $first memory 1073741824 name Intel(R) Data Center GPU Max 1550"
has "device 1" "$out" "device 1 vendor 1 $second"
ZE_AFFINITY_MASK=1 drive xpu facts
has "one visible device" "$out" "device 0 vendor 1 $second"
# A mask does not change the order of devices; a number without a device is ignored.
ZE_AFFINITY_MASK=1,9,0 drive xpu facts
has "a mask has no order: 0" "$out" "device 0 vendor 0 $first"
has "a mask has no order: 1" "$out" "device 1 vendor 1 $second"
ZE_AFFINITY_MASK=0x1 drive xpu facts
has "a mask of another base" "$out" "device 0 vendor 1 $second"
run env ZE_AFFINITY_MASK=0x1 "$sim" xpu "$build/bin/ds-accel" conformance xpu --group env
is "a child has the device that it is shown: 0x1" 0 "$code"
variant shuffled 'v["order"] = "shuffled"; v["devices"][0]["shuffle"] = 2; v["devices"][1]["shuffle"] = 1'
drive "$dir/shuffled.json" facts
has "shuffled: 0" "$out" "device 0 vendor 0 $second"
ZE_AFFINITY_MASK=1 drive "$dir/shuffled.json" facts
has "shuffled, one visible" "$out" "device 0 vendor 1 $first"
variant holes 'v["devices"][0]["minor"] = 5; v["devices"][1]["minor"] = 2'
drive "$dir/holes.json" facts
has "nodes with holes" "$out" "device 0 vendor 0 pci 0000:29:00.0 uuid 8680d50b-2f00-0000-2900-000000000000 node /dev/dri/renderD133"

# The second card has two tiles: in a flat hierarchy, each tile is a device.
variant tiles 'v["devices"][1]["parts"] = [
    {"uuid": "8680d50b-2f00-0000-b900-00000000000%d" % i, "memory_bytes": (256 << i) << 20, "instance": i} for i in (1, 2)]'
drive "$dir/tiles.json" facts
has "cards: the second one" "$out" "device 1 vendor 1 $second"
ZE_AFFINITY_MASK=1.1 drive "$dir/tiles.json" facts
has "one tile of a card" "$out" "device 0 vendor 1 pci 0000:b9:00.0 uuid 8680d50b-2f00-0000-b900-000000000002 node /dev/dri/renderD129 numa 1 memory 1073741824"
ZE_FLAT_DEVICE_HIERARCHY=FLAT drive "$dir/tiles.json" facts
has "tiles: the first" "$out" "device 1 vendor 1 pci 0000:b9:00.0 uuid 8680d50b-2f00-0000-b900-000000000001 node /dev/dri/renderD129 numa 1 memory 536870912"
has "tiles: the second" "$out" "device 2 vendor 2 pci 0000:b9:00.0 uuid 8680d50b-2f00-0000-b900-000000000002 node /dev/dri/renderD129 numa 1 memory 1073741824"
ZE_FLAT_DEVICE_HIERARCHY=FLAT ZE_AFFINITY_MASK=2,0 drive "$dir/tiles.json" facts
has "tiles, two visible" "$out" "device 1 vendor 2 pci 0000:b9:00.0 uuid 8680d50b-2f00-0000-b900-000000000002"
# Where tiles are devices, "0.0" in the mask selects no device; the variable or the product
# determines whether they are.
ZE_FLAT_DEVICE_HIERARCHY=FLAT ZE_AFFINITY_MASK=0.0,2,1 drive "$dir/tiles.json" facts
has "a tile's name names nothing: 0" "$out" "device 0 vendor 1 pci 0000:b9:00.0 uuid 8680d50b-2f00-0000-b900-000000000001"
has "a tile's name names nothing: 1" "$out" "device 1 vendor 2 pci 0000:b9:00.0 uuid 8680d50b-2f00-0000-b900-000000000002"
variant flat 'v["hierarchy"] = "FLAT"'
for mask in 0.0,1 0.1,1; do
    ZE_AFFINITY_MASK=$mask drive "$dir/flat.json" facts
    has "a product whose tiles are devices: $mask" "$out" "device 0 vendor 1 $second"
    run env ZE_AFFINITY_MASK=$mask "$sim" "$dir/flat.json" "$build/bin/ds-accel" conformance xpu --group env
    is "a child has the device that it is shown: $mask" 0 "$code"
done
ZE_AFFINITY_MASK=0.0,1 drive xpu facts
has "where cards are devices it is a card's tile: 0" "$out" "device 0 vendor 0 $first"
has "where cards are devices it is a card's tile: 1" "$out" "device 1 vendor 1 $second"
run env ZE_FLAT_DEVICE_HIERARCHY=COMBINED "$sim" "$dir/tiles.json" "$build/bin/ds-accel" info xpu --json
has "a tile is one" "$out" '"tile"'
has "and has a parent" "$out" "8680d50b-2f00-0000-b900-000000000000"
# Each of a device's names selects the same physical device, in either order.
for where in xpu "$dir/shuffled.json"; do
    for name in 0000:b9:00.0 8680d50b-2f00-0000-b900-000000000000; do
        run "$sim" "$where" "$build/bin/ds-accel" bench xpu --json --only event --time 0.001 --device "$name"
        is "bench of $name on $(basename "$where")" "0 0000:b9:00.0" \
            "$code $(printf '%s' "$out" | python3 -c 'import json, sys; print(json.load(sys.stdin)["device"]["pci_address"])')"
    done
done

# ---- facts ---------------------------------------------------------------------------------------

# without_energy: prints $out without the energy values, because energy grows with time.
without_energy() {
    printf '%s\n' "$out" | sed 's/ energy [1-9][0-9]* / /'
}
drive xpu facts 67108864
has "sensors" "$(without_energy)" "device 0 valid 0x14ed utilization 37 temperature 46500 power 250000 core_clock 1550000 memory_clock 3200000 throttle 0 memory_used 67108864 memory_total 1073741824"
variant heat 'v["order"] = "shuffled"; v["devices"][0]["shuffle"] = 2; v["devices"][1]["shuffle"] = 1
v["devices"][0].update(temperature=77, process_pid=4242, process_bytes=12345, utilization_percent=90, port_peer=1)
v["devices"][1]["port_peer"] = 0'
drive "$dir/heat.json" facts 0
has "sensors of the right card" "$out" "device 1 valid 0x14ed utilization 90 temperature 78500"
has "processes" "$out" "device 1 process 1 of 1 memory 12345"
# A process appears between the two calls: the second one fails with 0x78000008, and the plugin
# repeats both.
SIM_FAIL=zesDeviceProcessesGetState:3=2013265928 drive "$dir/heat.json" facts 0
has "more processes than were counted" "$out" "device 1 process 1 of 1 memory 12345"
SIM_FAIL='zesDeviceProcessesGetState:*=2013265928' drive "$dir/heat.json" facts 0
has "processes that are never counted" "$out" "ZE_RESULT_ERROR_INVALID_SIZE"
# A tile has its own memory and its share of the power; the power of a card is its own counter's.
variant warm 'v["devices"][1]["parts"] = [
    {"uuid": "8680d50b-2f00-0000-b900-00000000000%d" % i, "memory_bytes": (256 << i) << 20, "instance": i} for i in (1, 2)]'
ZE_FLAT_DEVICE_HIERARCHY=FLAT drive "$dir/warm.json" facts 0
has "sensors of a tile" "$(without_energy)" "device 2 valid 0x146d utilization 37 temperature 46500 power 125000 core_clock 1550000 throttle 0 memory_used 0 memory_total 1073741824"
drive "$dir/warm.json" facts 0
has "sensors of a card with tiles" "$(without_energy)" "device 1 valid 0x146d utilization 37 temperature 46500 power 250000 core_clock 1550000 throttle 0 memory_used 0 memory_total 1610612736"
variant deaf 'v["sysman"] = 0'
drive "$dir/deaf.json" facts 0
has "without Sysman nothing is known" "$out" "device 0 valid 0x0 "
has "without Sysman: why" "$out" "Sysman is not there"
# Then the plugin itself counts the memory that it allocated.
drive "$dir/deaf.json" used
is "without Sysman: used memory" "0 device memory: 3001 bytes are used
with managed memory: 1051577 bytes are used
without managed memory: 3001 bytes are used
nothing: 0 bytes are used" "$code $out"
# A loader of 1.8 has Sysman only with a variable, and then accepts the handles of core devices.
driven "$dir/on_old" xpu "$drive" "$plugin" facts 0
has "a loader of 1.8: no sensors" "$out" "device 0 valid 0x0 "
driven env ZES_ENABLE_SYSMAN=1 "$dir/on_old" "$dir/heat.json" "$drive" "$plugin" facts 0
has "a loader of 1.8 with ZES_ENABLE_SYSMAN" "$out" "device 1 valid 0x14ed utilization 90 temperature 78500"

export INTEL_LIBITTNOTIFY64="$build/sim/lib/libittnotify_sim.so"
SIM_RANGES=$dir/ranges drive xpu ranges
is "ranges" "0 push ds-accel: step,push a domain: forward,pop,push ds-accel: backward,pop,pop" \
    "$code $(paste -sd, "$dir/ranges")"
INTEL_LIBITTNOTIFY64=$dir/nowhere.so drive xpu ranges
is "a collector that is not there" "0 " "$code $out"
has "a collector that is not there: told" "$log" "no ranges for INTEL_LIBITTNOTIFY64"
unset INTEL_LIBITTNOTIFY64

run "$sim" xpu "$build/bin/ds-accel" info xpu --json
has "info: graphs" "$out" '"graph_supported": true'
run "$sim" "$dir/heat.json" "$build/bin/ds-accel" topo
has "topo: a link" "$out" "0000:b9:00.0"
run "$sim" xpu "$build/bin/ds-accel" bench xpu --json --only copy,alloc --size 64K --time 0.001
is "bench" 0 "$code"
has "bench: copies" "$out" '"clock": "device"'

# ---- conformance ---------------------------------------------------------------------------------

# Checks are skipped for functions that Level Zero lacks: a current device, trimming, stream-ordered
# memory, registering the program's memory (except for an extension that no driver was seen to
# have), updating and counting graphs; and for random numbers and op builders, which belong to the
# library.
conforms "conformance" xpu "180 passed, 0 failed, 34 skipped"
conforms "conformance on a shuffled machine" "$dir/shuffled.json" "180 passed, 0 failed, 34 skipped"
conforms "conformance without Sysman" "$dir/deaf.json" "179 passed, 0 failed, 35 skipped"
variant old 'v["api_minor"] = 3; v["has_graphs"] = 0; v["has_init_drivers"] = 0'
run env ZES_ENABLE_SYSMAN=1 "$dir/on_old" "$dir/old.json" "$build/bin/ds-accel" conformance xpu -v
is "conformance with a loader of 1.8 and a driver of 1.3: what fails" "" "$(printf '%s\n' "$out" | grep ' failed  ' || true)"
has "conformance with a loader of 1.8 and a driver of 1.3" "$out" "166 passed, 0 failed, 48 skipped"
run env ZE_FLAT_DEVICE_HIERARCHY=FLAT "$sim" "$dir/tiles.json" "$build/bin/ds-accel" conformance xpu --device 2 -v
is "conformance of a tile: what fails" "" "$(printf '%s\n' "$out" | grep ' failed  ' || true)"
has "conformance of a tile" "$out" "180 passed, 0 failed, 34 skipped"
variant narrow 'for d in v["devices"]: d["max_alloc_bytes"] = 64 << 20'
conforms "conformance with small allocations" "$dir/narrow.json" "180 passed, 0 failed, 34 skipped"

# ---- failures ------------------------------------------------------------------------------------

drive xpu memory
has "memory is exhausted" "$out" "failed mem_alloc: -2 1879048195 ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY: zeMemAllocDevice(67108864 bytes, device 0): ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY (1879048195)"
has "and the device goes on" "$out" "parts 16
and one that fits"
is "nothing is left" "" "$(grep '^alive' "$dir/report" || true)"
SIM_FAIL='zeMemAllocDevice:1=0x424242' drive xpu work
has "a code that nobody knows keeps its number" "$out" "failed mem_alloc: -4 4342338 -: "
SIM_FAIL='zeMemAllocDevice:1=0x78000020' drive xpu work
has "a code of Level Zero 1.17" "$out" " -4 2013265952 ZE_RESULT_ERROR_SURVIVABILITY_MODE_DETECTED: zeMemAllocDevice("
for copy in 1 2 3; do
    SIM_LOSE="0@copy:$copy" drive xpu work
    is "lost in copy $copy" 1 "$code"
    has "lost in copy $copy: told" "$out" ": -10 1879048193 ZE_RESULT_ERROR_DEVICE_LOST: "
    is "lost in copy $copy: what is left" "" "$(grep '^alive' "$dir/report" || true)"
done
# A driver and a Sysman whose calls fail are treated like absent ones.
every_call work 'NOTHING' ' 2147483646 ZE_RESULT_ERROR_UNKNOWN: '

# ---- marks ---------------------------------------------------------------------------------------

# shellcheck disable=SC2086 # no flag is no word
"$CC" -std=c11 -D_GNU_SOURCE -g ${SAN:+-fsanitize=$SAN} -I"$build/include" "$here/xpu/marks.c" -o "$dir/marks" \
    -L"$build/lib" -lds_accel -lpthread
# The clock has 32 bits and wraps around 10 ms after the first event; a driver before 1.2 uses
# another unit.
variant wrap 'v["devices"][0]["tick_start"] = 2**32 - 125000'
variant plain 'v["api_minor"] = 1; v["has_graphs"] = 0; v["devices"][0]["tick_start"] = 2**32 - 125000'
for where in "$dir/wrap.json" "$dir/plain.json"; do
    run "$sim" "$where" env DS_ACCELERATOR=xpu LD_LIBRARY_PATH="$build/sim/lib:$build/lib" timeout 60 "$dir/marks"
    is "times of $(basename "$where")" "0 " "$code $out"
done
for loader in "$sim" "$dir/on_old"; do
    run "$loader" xpu env DS_ACCELERATOR=xpu LD_LIBRARY_PATH="$([ "$loader" = "$sim" ] || echo "$dir/old:")$build/sim/lib:$build/lib" \
        SIM_REPORT="$dir/marks_report" timeout 60 "$dir/marks"
    is "an event that is recorded again while a stream waits for it" "0 " "$code $out"
    is "and nothing is left" "" "$(grep '^alive' "$dir/marks_report" || true)"
done

# ---- mistakes that must be detected --------------------------------------------------------------

wrong_marks() {
    mkdir -p "$dir/alone"
    cp "$wrong" "$dir/alone"
    "$sim" "${1:-xpu}" env DS_ACCELERATOR=xpu DS_ACCEL_PLUGIN_PATH="$dir/alone" LD_LIBRARY_PATH="$build/sim/lib:$build/lib" \
        timeout 60 "$dir/marks"
}

wrong_ranges() {
    rm -f "$dir/said"
    SIM_RANGES=$dir/said INTEL_LIBITTNOTIFY64="$build/sim/lib/libittnotify_sim.so" "$sim" xpu "$drive" "$wrong" ranges &&
        cmp "$dir/said" "$dir/ranges"
}

wrong_heat() {
    "$sim" "$dir/heat.json" "$drive" "$wrong" facts 0 >"$dir/said" &&
        grep -F "device 1 valid 0x14ed utilization 90 temperature 78500" "$dir/said"
}

wrong_suite() {
    timeout 60 "$sim" xpu "$build/bin/ds-accel" conformance "$wrong"
}

# The plugin is built with one deliberate mistake. The simulator's prototypes and numbers are its
# own, so that the wrong plugin fails, misuses the library (which aborts), or moves the wrong bytes.
wrong "the source before the destination" \
    's/stream->list, destination, source, size_bytes, NULL/stream->list, (void *)source, destination, size_bytes, NULL/' \
    stream.c wrong_works
wrong "a fill's size before its pattern's" 's/\&pattern, pattern_bytes, size_bytes, NULL/\&pattern, size_bytes, pattern_bytes, NULL/' \
    stream.c wrong_works
wrong "waits before what is signalled" \
    's/zeCommandListAppendBarrier(stream->list, passed->event, 1,$/zeCommandListAppendBarrier(stream->list, task->done->event, 1,/; s/\&task->done->event);/\&passed->event);/' \
    stream.c wrong_works
wrong "the first group of queues" 's/uint32_t wanted = ZE_GROUP_COMPUTE | ZE_GROUP_COPY/uint32_t wanted = ZE_GROUP_COPY/' \
    device.c wrong_works
wrong "a descriptor's tag" 's/ZE_TAG_QUEUE 0xeu/ZE_TAG_QUEUE 0xfu/' ze.h wrong_works
wrong "the alignment before the size" 's/size_bytes, ALIGN_BYTES,/ALIGN_BYTES, size_bytes,/' memory.c wrong_works
wrong "not ready as CUDA has it" 's/ZE_NOT_READY 1u/ZE_NOT_READY 600u/' ze.h wrong_conforms DSA-P49
wrong "a list without order" 's/is_in_order ? ZE_QUEUE_IN_ORDER : 0/is_in_order ? 0 : 0/' stream.c wrong_works
wrong "a signal without its barrier" 's/^    return stream->state->runtime->ze.zeCommandListAppendBarrier(stream->list, NULL, 0, NULL);/    return ZE_SUCCESS;/' \
    stream.c wrong_works "$dir/old.json"
wrong "ticks for nanoseconds" 's/? 1e9 \/ resolution/? resolution/' device.c wrong_marks
wrong "a clock that never begins again" 's/ \& state->tick_bits) \*/) */' mark.c wrong_marks "$dir/wrap.json"
wrong "the tag of 1.2 with a driver of 1.1" 's/api_version >= ZE_VERSION(1, 2)/api_version >= ZE_VERSION(1, 0)/' \
    device.c wrong_works "$dir/plain.json"
wrong "an event that is signalled twice" \
    's/mark->is_armed \&\& state->runtime->ze.zeEventHostReset(mark->event) != ZE_SUCCESS/0/' mark.c \
    wrong_suite
wrong "an event that is reset while a list waits for it" 's/if (!is_reached(state, passed))/if (0)/' mark.c \
    wrong_marks

# ---- wrapped lists -------------------------------------------------------------------------------

# The simulator aborts where a list is used after the program destroyed it.
drive xpu unwrapped
is "a list that is destroyed after its wrapper" "0 " "$code $out"

# ---- memory between processes, and mapped memory -------------------------------------------------

# Handles of the newest driver contain their process; the descriptor in older handles belongs to the
# opening process; an old loader lacks the functions that convert them.
drive xpu exchanged
is "handles of the newest driver" "0 " "$code $out"
variant descriptor 'v["ipc"] = "descriptor"; v["mappings"] = 0'
for library in libze_loader.so.1 libze_loader_1.8.so; do
    DS_ACCEL_XPU_LIBRARY="$build/sim/lib/$library" drive "$dir/descriptor.json" exchanged
    is "handles that are descriptors, by $library" "0 " "$code $out"
done
conforms "conformance with handles that are descriptors" "$dir/descriptor.json" "180 passed, 0 failed, 34 skipped"
# The newest driver maps a physical memory only once at a time.
drive xpu vmem
has "a second mapping" "$out" "failed vmem_map: -13 2013265924 ZE_RESULT_ERROR_INVALID_ARGUMENT: zeVirtualMemMap("
has "a second mapping, says" "$out" "is mapped already, and this driver maps physical memory once at a time"
drive "$dir/descriptor.json" vmem
is "a second mapping, before" "0 " "$code $out"

# Handles of the first drivers whose handles contain the process; and the fallback when the first
# method fails.
variant named 'v["ipc"] = "named"'
for where in xpu "$dir/named.json"; do
    SIM_FAIL='zeMemOpenIpcHandle:1=2147483646' drive "$where" exchanged
    is "the second way in, $(basename "$where" .json)" "0 " "$code $out"
    drive "$where" exchanged
    is "the first way in, $(basename "$where" .json)" "0 " "$code $out"
done
wrong_exchanged() {
    timeout 60 "$sim" "$1" "$drive" "$wrong" exchanged
}
wrong "an untouched handle that does not name its process" \
    's/names_its_process(&ours) || ours.pid == (uint32_t)getpid()/1/' ipc.c wrong_exchanged "$dir/descriptor.json"
wrong "a descriptor of ours fetched from the other process" \
    's/if (names_its_process(&ours) || ours.pid == (uint32_t)getpid())/if (0)/; s/if (names_its_process(ours))/if (0)/' \
    ipc.c wrong_exchanged "$dir/named.json"
wrong "a graph that ends before what was made of it" 's/    atomic_fetch_add(&exec->graph->references, 1);//' graph.c \
    wrong_conforms DSA-P82
wrong "identifiers by their address" \
    's/runtime->itt.__itt_task_begin(where, none, none, name)/((void (*)(const void *, const void *, const void *, void *))(void *)runtime->itt.__itt_task_begin)(where, \&none, \&none, name)/' \
    range.c wrong_ranges
wrong "what is used for what is free" 's/free_bytes += state.free_bytes/free_bytes += state.size_bytes - state.free_bytes/' \
    sysman.c wrong_says "facts 0" "memory_used 0 memory_total 1073741824"
wrong "Sysman's numbers for ours" 's/if (is_unit(&runtime->units\[i\], &properties, &pci))/if (runtime->units[i].sysman == NULL \&\& (i == 0 || runtime->units[i - 1].sysman != NULL) \&\& (i + 1 == runtime->unit_count || runtime->units[i + 1].sysman == NULL) \&\& (i == 0 || runtime->units[i - 1].sysman != device))/' \
    sysman.c wrong_heat
wrong "milliwatts" 's/uj \* 1000 \/ us/uj \/ us/' sysman.c wrong_says "facts 0" "power 250000 "

finish
