#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The facts of a backend in conf/ds-accel.json equal those of its plugin: the power gate, doctor and
# the remedies use the file, detection uses the plugin, and both must search for the same files and
# libraries. The plugin's facts are read from its own table, by facts/facts.c linked with its
# objects; the keys of its options are the texts in the built plugin.
#
#     test_facts.sh BUILD
set -eu
build=$1
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/tools/lib.sh
. "$here/../tools/lib.sh"
conf=$here/../../conf/ds-accel.json
: "${CC:=gcc}"
# Directories from the environment are not facts of the file.
unset ROCM_PATH HIP_PATH ASCEND_HOME_PATH ASCEND_TOOLKIT_HOME NEUWARE_HOME SDAA_ROOT BIREN_HOME 2>/dev/null || true

# compare FILE NAME: prints each difference between the file and the plugin's facts.
compare() {
    python3 - "$1" "$2" "$dir/$2.json" "$dir/$2.options" <<'PYTHON'
import json
import sys

conf = json.load(open(sys.argv[1]))["backends"][sys.argv[2]]
own = json.load(open(sys.argv[3]))
options = set(open(sys.argv[4]).read().split())
names = ["pci", "device_nodes", "libraries", "visible_devices_envs", "export_envs"]
conf["device_nodes"] = conf.get("device_nodes", []) + conf.get("other_device_nodes", [])
# The first name may be for DeepSpeed's launcher only, unknown to the vendor's runtime.
if sys.argv[2] == "hpu" and conf["visible_devices_envs"][:1] == ["CUDA_VISIBLE_DEVICES"]:
    del conf["visible_devices_envs"][0]
for key in names:
    if conf.get(key, []) != own[key]:
        print(f"{key}: the file has {conf.get(key, [])}, the plugin {own[key]}")
if conf.get("other_device_nodes", []) != own["other_ways"]:
    print(f"other_device_nodes: the file has {conf.get('other_device_nodes')}, the plugin {own['other_ways']}")
for key in ["is_synchronized_device", "resolves_data_dependency", "handles_memory_backpressure"]:
    if conf[key] != own[key]:
        print(f"{key}: the file has {conf[key]}, the plugin {own[key]}")
# null in the file leaves the fact to the plugin: the plugin's table must have the flag set, and the
# plugin clears it for a device without the feature.
for key in ["is_triton_supported", "prefer_triton_grouped_mm", "supports_range_domains", "graph_supported"]:
    if conf[key] is not None and conf[key] != own[key]:
        print(f"{key}: the file has {conf[key]}, the plugin {own[key]}")
    if conf[key] is None and not own[key]:
        print(f"{key}: the file leaves it to the plugin, which never has it")
if conf["use_host_timers"] and not own["use_host_timers"]:
    print("use_host_timers")
if set(own["needed_nodes"]) - set(own["device_nodes"]):
    print(f"needed nodes that are no nodes: {own['needed_nodes']}")
if set(conf.get("options", {})) != options:
    print(f"options: the file has {sorted(conf.get('options', {}))}, the plugin {sorted(options)}")
PYTHON
}

for backend in cuda rocm xpu npu hpu mlu sdaa supa opencl; do
    # Only objects of existing sources are linked: the build directory may have objects of other
    # sources.
    objects=$(cd "$here/../../plugins" && for source in "$backend"/*.c common/*.c; do
        echo "$build/obj/plugins/${source%.c}.o"
    done)
    # shellcheck disable=SC2086 # no flag is no word; a list
    "$CC" -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror ${SAN:+-fsanitize=$SAN} \
        -I"$build/include/ds-accel" -I"$here/../../plugins/common" -I"$here" -I"$here/.." -o "$dir/$backend" \
        "$here/facts/facts.c" "$here/drive/host.c" $objects \
        -Wl,--wrap=vendor_lib_open -lpthread -ldl
    run env "DS_ACCEL_$(echo "$backend" | tr '[:lower:]' '[:upper:]')_PRESENCE=off" "$dir/$backend"
    is "$backend: its open() looks for a library" 0 "$code"
    printf '%s\n' "$out" >"$dir/$backend.json"
    # The C program prints the option "library"; the option presence belongs to the frame.
    { strings -d -n 6 "$build/lib/ds-accel/ds_accel_$backend.so" |
        grep -Ex '[a-z0-9]+_library|numbering|device_type|platform' || true; } >"$dir/$backend.options"
    printf 'library\npresence\n' >>"$dir/$backend.options"
    is "$backend" "" "$(compare "$conf" "$backend")"
done

# A difference of each kind must be detected.
changed() {
    sed "$2" "$conf" >"$dir/changed.json"
    has "a change is noticed: $2" "$(compare "$dir/changed.json" "$1")" "$3"
}
changed rocm 's/"1002:12"/"1002:13"/' "pci: "
changed npu 's|"/dev/devmm_svm"|"/dev/devmm"|' "device_nodes: "
changed mlu 's|"libcnrt.so"|"libcnrt.so.1"|' "libraries: "
changed sdaa 's/"SDAA_VISIBLE_DEVICES"/"SDAA_VISIBLE"/' "visible_devices_envs: "
changed hpu 's/"graph_supported": false/"graph_supported": true/' "graph_supported: "
changed cuda 's/"prefer_triton_grouped_mm": null/"prefer_triton_grouped_mm": true, "x": 0/; s/"supports_range_domains": true/"supports_range_domains": false/' "supports_range_domains: "
changed sdaa 's/"prefer_triton_grouped_mm": false/"prefer_triton_grouped_mm": null/' "prefer_triton_grouped_mm: "
changed supa 's/"brml_library"/"brm_library"/' "options: "

# With a device the facts have no null, and the plugin's own facts are reported.
while read -r backend facts; do
    run env DS_ACCEL_SUPA_NUMBERING=cuda SIM_BUILD="$build" "$here/ds-accel-sim" "$backend" \
        "$build/bin/ds-accel" info "$backend" --json
    is "info $backend" "0 $facts" "$code $(printf '%s\n' "$out" | python3 -c '
import json, sys
it = json.load(sys.stdin)
print(*(json.dumps(it[name]) for name in (
    "available", "device_count", "is_synchronized_device", "use_host_timers", "resolves_data_dependency",
    "handles_memory_backpressure", "graph_supported", "is_triton_supported", "is_bf16_supported",
    "is_fp16_supported", "prefer_triton_grouped_mm", "supports_range_domains")), *it["supported_dtypes"])')"
done <<'END'
cuda true 2 false false false false true true true true false true float32 float16 bfloat16
rocm true 2 false false false false true true true true false false float32 float16 bfloat16
xpu true 2 false false false false true false true true false false float32 float16 bfloat16
npu true 2 false false false false true false true true false false float32 float16 bfloat16
hpu true 2 false false true true false false true true false false float32 float16 bfloat16
mlu true 2 false false false false true true true true false false float32 float16 bfloat16
sdaa true 8 false false false false false false false true false false float32 float16
supa true 2 false false false false true true true true false false float32 float16 bfloat16
END

# facts_differ BACKEND MACHINE FILE: prints each fact that is not null in FILE and differs from the
# plugin's fact for a device.
facts_differ() {
    run env DS_ACCEL_SUPA_NUMBERING=cuda SIM_BUILD="$build" "$here/ds-accel-sim" "$2" "$build/bin/ds-accel" info "$1" --json
    printf '%s\n' "$out" | python3 -c '
import json, sys
conf = json.load(open(sys.argv[1]))["backends"][sys.argv[2]]
info = json.load(sys.stdin)
if not info["available"]:
    print("it is not available")
for key in ("is_synchronized_device", "use_host_timers", "resolves_data_dependency", "handles_memory_backpressure",
            "graph_supported", "is_triton_supported", "is_bf16_supported", "is_fp16_supported", "prefer_triton_grouped_mm",
            "supports_range_domains", "supported_dtypes", "communication_backend", "compile_backend"):
    if conf.get(key) is not None and conf[key] != info[key]:
        print(f"{key}: the file has {conf[key]}, the plugin {info[key]}")' "$3" "$1"
}
for backend in cuda rocm xpu npu hpu mlu sdaa supa cpu mock; do
    machine=$backend
    case $backend in cpu | mock) machine=none ;; esac
    is "facts of $backend" "" "$(facts_differ "$backend" "$machine" "$conf")"
done
flipped() {
    python3 -c 'import json, sys
conf = json.load(open(sys.argv[1]))
facts = conf["backends"][sys.argv[2]]
facts[sys.argv[3]] = not facts[sys.argv[3]]
print(json.dumps(conf))' "$conf" "$1" "$2" >"$dir/flipped.json"
    has "a change of $2 is noticed: $1" "$(facts_differ "$1" "$3" "$dir/flipped.json")" "$2: the file has "
}
for key in is_synchronized_device use_host_timers resolves_data_dependency handles_memory_backpressure graph_supported \
    is_triton_supported is_bf16_supported prefer_triton_grouped_mm supports_range_domains; do
    flipped hpu $key hpu
done
for key in is_synchronized_device use_host_timers resolves_data_dependency handles_memory_backpressure graph_supported; do
    flipped cpu $key none
done

# Triton's grouped matrix product is preferred on compute capability 7 and 8. Facts are those of the
# first device.
while read -r first second facts; do
    python3 -c 'import json, sys
m = json.load(open(sys.argv[1]))
devices = m["vendors"]["cuda"]["devices"]
for d, major in zip(devices, sys.argv[2:]): d["compute"] = [int(major), 0]
m["vendors"]["cuda"]["order"] = "file"
print(json.dumps(m))' "$here/machines/cuda.json" "$first" "$second" >"$dir/majors.json"
    run env SIM_BUILD="$build" "$here/ds-accel-sim" "$dir/majors.json" "$build/bin/ds-accel" info cuda --json
    is "cuda of compute capability $first and $second" "$facts" "$(printf '%s\n' "$out" | python3 -c '
import json, sys
it = json.load(sys.stdin)
print(*(json.dumps(it[name]) for name in ("is_triton_supported", "prefer_triton_grouped_mm")))')"
done <<'END'
6 9 false false
7 9 false true
8 7 true true
9 8 true false
END
# Without a device the constants are reported, and facts that depend on the device stay null.
while read -r backend facts; do
    run env SIM_BUILD="$build" "$here/ds-accel-sim" none "$build/bin/ds-accel" info "$backend" --json
    is "info $backend without a device" "$facts" "$(printf '%s\n' "$out" | python3 -c '
import json, sys
it = json.load(sys.stdin)
print(*(json.dumps(it[name]) for name in ("graph_supported", "prefer_triton_grouped_mm", "supports_range_domains")))')"
done <<'END'
cuda true null true
rocm true false false
xpu null false false
npu null false false
hpu false false false
sdaa false false false
END

finish
