#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The reports list, explain, info and lint: contents, the shape of the JSON, order of precedence.
# test_reports.sh BUILD
set -eu
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/tools/cli.sh
. "$(dirname "$0")/cli.sh"

# ---- list ----------------------------------------------------------------------------------------

run "$program" list
is "list" "0 NAME STATE VERSION VENDOR ABI PATH, REASON" \
    "$code $(printf '%s\n' "$out" | sed -n '1s/  */ /gp')"
is "the cpu's state" "available" "$(printf '%s\n' "$out" | awk '$1 == "cpu" { print $2 }')"
has "why mock was not probed" "$out" "demand_only"
report list 0 "$program" list --json
is "keys of a plugin" "name path vendor version abi state reason detail" "$(at 'plugins/0/*')"
is "names" "mock cpu" "$(at 'plugins/*/name')"
report list 0 "$program" --config "$dir/deny.json" list --json
is "all are disabled" "disabled disabled" "$(at 'plugins/*/state')"

# The steps of an operator: put a plugin into a directory, then a file that is not a plugin.
mkdir "$dir/drop"
set -- "$program" --plugin-dir "$dir/drop"
answers cpu "$@" -q detect
cp "$mocks/ds_accel_cuda.so" "$dir/drop/"
answers cuda "$@" detect
report list 0 "$@" list --json
is "it is listed" "cuda mock cpu" "$(at 'plugins/*/name')"
echo "not a plugin" >"$dir/drop/ds_accel_x.so"
echo "no plugin's name" >"$dir/drop/libx.so"
: >"$dir/drop/ds_accel_Bad.so"
answers cuda "$@" detect
report list 0 "$@" list --json
is "listed" "cuda Bad mock x cpu" "$(at 'plugins/*/name')"
is "the text file" "rejected not_elf" "$(at plugins/name=x/state plugins/name=x/reason)"
is "the bad name" "rejected bad_name" "$(at plugins/name=Bad/state plugins/name=Bad/reason)"
mkdir "$dir/drop/ds_accel_directory.so"
ln -s nowhere "$dir/drop/ds_accel_link.so"
mkfifo "$dir/drop/ds_accel_pipe.so"
: >"$dir/drop/ds_accel_empty.so"
head -c 4096 "$mocks/ds_accel_npu.so" >"$dir/drop/ds_accel_npu.so"
answers cuda "$@" detect
report list 0 "$@" list --json
is "none of these is used" \
    "is_directory dangling_link is_fifo rejected rejected elf_truncated" \
    "$(at plugins/name=directory/reason plugins/name=link/reason plugins/name=pipe/reason \
        plugins/name=empty/state plugins/name=npu/state plugins/name=npu/reason)"
rm "$dir/drop/ds_accel_cuda.so"
answers cpu "$@" -q detect

# Search order: --plugin-dir, DS_ACCEL_PLUGIN_PATH, plugin_dirs, the directory beside the library.
for directory in first second third fourth; do
    plugins "$dir/$directory" cuda
done
ln -s second "$dir/again"
echo "{\"plugin_dirs\": [\"$dir/fourth\"]}" >"$dir/dirs.json"
set -- env "DS_ACCEL_PLUGIN_PATH=$dir/third::$dir/none" "$program" --config "$dir/dirs.json" \
    --plugin-dir "$dir/first" --plugin-dir "$dir/second" --plugin-dir "$dir/again"
report list 0 "$@" list --json
file=ds_accel_cuda.so
library=$(cd "$build/lib/ds-accel" && pwd -P)
ours="$library/ds_accel_mock.so $library/ds_accel_cpu.so"
is "order of the directories" \
    "$here/first/$file $here/second/$file $here/third/$file $here/fourth/$file $ours" \
    "$(at 'plugins/*/path')"
is "the first one counts" "available shadowed shadowed shadowed not_probed available" \
    "$(at 'plugins/*/state')"
is "by whom" "shadowed by $here/first/$file" "$(at plugins/1/reason plugins/1/detail)"
report explain 0 "$@" explain --json
has "directories searched" "$(at 'searched/*')" "$here/first $here/second $here/third $dir/none $here/fourth $library"
report detect 0 "$@" detect --json
is "which file is used" "$here/first/$file" "$(at plugin/path)"
answers cuda "$@" -q --plugin-dir "$dir/none" detect
run "$@" --plugin-dir "$dir/none" detect
has "a directory that is not there" "$err" "scan: $dir/none is not a directory"

# ---- explain -------------------------------------------------------------------------------------

set -- "$program" --plugin-dir "$dir/cuda"
run env DS_ACCEL_CUDA_AVAILABLE=false DS_ACCEL_CUDA_REASON=no_driver DS_ACCEL_CUDA_DETAIL="no module" \
    "$@" explain
is "explain" "0" "$code"
has "the choice" "$out" "chosen: cpu (auto detect)"
has "the failed gate" "$out" "  probe  failed  no module"
has "the reason" "$out" "  reason no_driver: the device is present, but its kernel driver is not loaded"
has "the remedy" "$out" "  remedy install and load NVIDIA's kernel driver (Debian, non-free: nvidia-driver"
has "what has no plugin" "$out" "without a plugin file: xpu.external, xpu, npu"
lacks "cuda has one" "$(printf '%s\n' "$out" | grep '^without')" "cuda"
has "mock" "$out" "mock: not_probed (by name only)"
has "why" "$out" "reason demand_only: it is chosen only by name"
is "nothing is skipped in it" "0" "$(count "$out" skipped)"
run "$@" explain -v
is "-v shows what was not reached" "17" "$(count "$out" ' skipped ')"
# Output of a plugin during its probe is shown line by line and without terminal control characters.
faults=$build/tests/fixtures/faults
run "$program" -q --plugin-dir "$faults/print_stderr" explain faulty
has "its output is shown" "$out" "  output "
has "and shortened" "$out" "lines more; -v shows them"
is "no line of it is raw" "0" "$(printf '%s' "$out" | grep -c "$escape")"
run "$@" explain mock
is "one alone" "0 chosen: cuda (auto detect) mock: available (by name only)" \
    "$code $(printf '%s\n' "$out" | grep '^[a-z.]*: ' | paste -sd ' ' -)"
run env DS_ACCEL_CUDA_AVAILABLE=maybe "$@" explain cuda
has "a bad option is named" "$out" "option available: \"maybe\""

report explain 0 "$@" explain --json cuda
is "only cuda" "cuda" "$(at 'candidates/*/name')"
is "gates in order" \
    "name trust elf note hash allow power quarantine hardware load entry probe start conduct" \
    "$(at 'candidates/0/gates/*/gate')"
is "none failed" "passed passed passed passed skipped passed skipped skipped skipped passed passed \
passed passed passed" "$(at 'candidates/0/gates/*/result')"
report explain 0 "$program" --config "$dir/deny.json" explain --json
is "nothing was chosen" "null null" "$(at accelerator set_method)"

# explain gives the reason why an available plugin is not chosen.
report explain 0 "$program" --plugin-dir "$dir/two" explain --json
is "cuda comes after npu" "available not_needed" \
    "$(at candidates/name=cuda/state candidates/name=cuda/reason)"
report explain 0 env DS_ACCELERATOR=cuda "$program" --plugin-dir "$dir/two" explain --json
is "npu was not asked for" "available not_chosen" \
    "$(at candidates/name=npu/state candidates/name=npu/reason)"
run env DS_ACCELERATOR=rocm "$program" explain
has "why nothing was chosen" "$out$err" 'DS_ACCELERATOR is "rocm"'

# For each kind of broken plugin, explain shows the first gate that fails; later gates are skipped.
while read -r defect gate reason; do
    report explain 0 "$program" -q --plugin-dir "$broken/$defect" explain "$defect" --json
    is "$defect" "$gate $gate $reason" \
        "$(at candidates/0/stage candidates/0/gates/result=failed/gate candidates/0/reason)"
    is "$defect: one gate fails, later ones are skipped" "" "$(at 'candidates/0/gates/*/result' |
        sed 's/^\(passed \|skipped \)*failed\( skipped\)*$//')"
    lacks "$defect: the remedy" "|$(at candidates/0/remedy)|" "||"
    lacks "$defect: the meaning" "|$(at candidates/0/meaning)|" "||"
    answers cpu "$program" -q --plugin-dir "$broken/$defect" detect
done <<'END'
no_note note no_note
two_notes note duplicate_note
abi_2 note abi_unsupported
unknown_required_bit note feature_unknown
wrong_name note name_mismatch
undefined_symbol load symbol_undefined
missing_library load dependency_missing
no_entry entry no_entry
short_table entry table_short
missing_required_slot entry slot_missing
probe_zero_devices probe bad_verdict
probe_bad_reason probe newer_reason
END

# ---- info ----------------------------------------------------------------------------------------

for backend in cuda rocm xpu xpu.external npu hpu mlu sdaa supa mps opencl; do
    report info 0 "$program" info "$backend" --json
    is "info $backend" "$backend false no_plugin ${backend%.external} null null null" \
        "$(at name available reason device_name current_device_name device_count devices)"
    is "op builders of $backend" \
        "$(validate - "backends/$backend/op_builders/#" <"$source/conf/ops.json")" "$(at 'op_builders/#')"
done
report info 0 "$program" info cuda --json
is "what the configuration knows" "nccl inductor true null CUDA_VISIBLE_DEVICES NCCL" \
    "$(at communication_backend compile_backend graph_supported is_bf16_supported \
        'visible_devices_envs/*' 'export_envs/*')"
has "its op builders" "$(at 'op_builders/*')" "FusedAdamBuilder"
# Facts that are the same on every machine for a backend, and null for facts that only a device can
# report.
while read -r backend facts; do
    report info 0 "$program" info "$backend" --json
    is "facts of $backend, which is not here" "$facts" \
        "$(at is_synchronized_device use_host_timers resolves_data_dependency handles_memory_backpressure \
            graph_supported is_triton_supported is_bf16_supported is_fp16_supported prefer_triton_grouped_mm \
            supports_range_domains memory_limit)"
done <<'END'
cuda false false false false true null null null null true null
rocm false false false false true null null null false false null
xpu false false false false null false true true false false null
npu false false false false null false null true false false null
sdaa false false false false false false null true false false null
mlu false false false false true true null true false false null
supa false false false false true true true true false false null
hpu false false true true false false true null false false null
mps false true false false false false false false false false null
opencl false false false false null false null null false false null
END
report info 0 env DS_ACCEL_CUDA_AVAILABLE=false DS_ACCEL_CUDA_REASON=hidden DS_ACCEL_CUDA_DETAIL=d \
    "$program" --plugin-dir "$dir/cuda" info cuda --json
is "there, and not available" "false hidden d null" "$(at available reason detail devices)"
# The launcher of DeepSpeed uses the first variable and fails without one; a variable of ds-accel
# may follow it.
while read -r backend wanted; do
    "$program" info "$backend" --json >"$dir/json" 2>/dev/null
    is "visible devices of $backend begin as in DeepSpeed" "$wanted" "$(at visible_devices_envs/0)"
    is "the configuration says so" "$wanted" \
        "$(validate - "backends/$backend/visible_devices_envs/0" <"$source/conf/ds-accel.json")"
done <<END
cuda CUDA_VISIBLE_DEVICES
cpu CUDA_VISIBLE_DEVICES
xpu ZE_AFFINITY_MASK
xpu.external ZE_AFFINITY_MASK
npu ASCEND_RT_VISIBLE_DEVICES
mps CUDA_VISIBLE_DEVICES
hpu CUDA_VISIBLE_DEVICES
mlu MLU_VISIBLE_DEVICES
sdaa SDAA_VISIBLE_DEVICES
supa SUPA_VISIBLE_DEVICES
END
"$program" info hpu --json >"$dir/json" 2>/dev/null
is "ours in addition" "CUDA_VISIBLE_DEVICES HABANA_VISIBLE_MODULES" "$(at 'visible_devices_envs/*')"
run "$program" info hpu
is "info hpu" "0 hpu: not available: no_plugin" "$code $(printf '%s\n' "$out" | head -n 1)"
has "unknown" "$out" "device_count                 unknown"

report info 0 "$program" info mock --json
is "info mock" "mock true  mock:0 2" "$(at name available reason current_device_name device_count)"
is "its devices" "0 1 1073741824 1073741824 Mock Device" \
    "$(at 'devices/*/index' 'devices/*/total_memory_bytes' devices/0/name)"
is "its data types" "float32 float16 bfloat16 true true" \
    "$(at 'supported_dtypes/*' is_fp16_supported is_bf16_supported)"
report info 0 env DS_ACCEL_MOCK_DEVICE_COUNT=3 DS_ACCEL_MOCK_MEMORY_BYTES=4096 DS_ACCEL_MOCK_FP16=false \
    DS_ACCEL_MOCK_DEVICE_NAME="A  name" "$program" -a mock info --json
is "as its options say" "3 4096 A  name float32 bfloat16 false" \
    "$(at device_count devices/2/total_memory_bytes devices/2/name 'supported_dtypes/*' is_fp16_supported)"

# The operator's configuration overrides the plugin's values.
echo '{"backends": {"mock": {"communication_backend": "mpi", "options": {"device_count": 5}}}}' \
    >"$dir/facts.json"
report info 0 "$program" --config "$dir/facts.json" info mock --json
is "by the configuration" "mpi 5" "$(at communication_backend device_count)"
report info 0 env DS_ACCEL_MOCK_DEVICE_COUNT=1 "$program" --config "$dir/facts.json" info mock --json
is "by the environment" "1" "$(at device_count)"

report info 0 "$program" info cpu --json
is "info cpu" "cpu true cpu cpu" "$(at name available device_name current_device_name)"
is "as many devices as it says" "$(at device_count)" "$(at 'devices/#')"
is "its op builders" "$(validate - backends/cpu/op_builders/# <"$source/conf/ops.json")" \
    "$(at 'op_builders/#')"
physical=$(awk '/^MemTotal:/ { printf "%.0f", $2 * 1024 }' /proc/meminfo)
all=0
for bytes in $(at 'devices/*/total_memory_bytes'); do
    all=$((all + bytes))
done
index=0
while [ "$index" -lt "$(at device_count)" ]; do
    bytes=$(at "devices/$index/total_memory_bytes")
    free=$(at "devices/$index/available_memory_bytes")
    used=$(at "devices/$index/process_memory_bytes")
    if [ "$free" -gt 0 ] && [ "$free" -le "$bytes" ] && [ "$used" -gt 0 ] && [ "$used" -le "$bytes" ]; then
        pass
    else
        fail "memory of cpu device $index" "total $bytes, available $free, process $used"
    fi
    index=$((index + 1))
done
if [ "$all" -gt 0 ] && [ "$all" -le "$physical" ]; then
    pass
else
    fail "memory of all cpu devices" "$all of $physical"
fi

# A fake machine: two nodes of 1 and 2 GiB, and a memory limit of 1.5 GiB in total.
machine=$dir/machine
for node in 0 1; do
    directory=$machine/sys/devices/system/node/node$node
    mkdir -p "$directory"
    echo "$((4 * node))-$((4 * node + 3))" >"$directory/cpulist"
    printf 'Node %d MemTotal: %d kB\nNode %d MemFree: 524288 kB\n' \
        $node $((1048576 * (node + 1))) $node >"$directory/meminfo"
done
echo 0-1 >"$machine/sys/devices/system/node/online"
mkdir -p "$machine/sys/devices/system/cpu" "$machine/proc/self" "$machine/sys/fs/cgroup/job"
echo 0-7 >"$machine/sys/devices/system/cpu/online"
printf 'MemTotal: 3145728 kB\nMemFree: 1048576 kB\nMemAvailable: 1048576 kB\n' >"$machine/proc/meminfo"
printf 'processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: Recorded CPU 9000\nflags\t\t: fpu sse2 avx2\n' \
    >"$machine/proc/cpuinfo"
printf 'Name:\tds-accel\nVmHWM:\t3648 kB\nVmRSS:\t3584 kB\n' >"$machine/proc/self/status"
echo 0::/job >"$machine/proc/self/cgroup"
echo "29 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw" >"$machine/proc/self/mountinfo"
echo max >"$machine/sys/fs/cgroup/job/memory.max"
report info 0 "$program" --root "$machine" info cpu --json
is "two nodes, two devices" "2 0 1 1073741824 2147483648" \
    "$(at device_count 'devices/*/numa_node' 'devices/*/total_memory_bytes')"
is "of that machine" "Recorded CPU 9000 4 3670016 null" \
    "$(at devices/0/name devices/0/compute_units devices/0/process_memory_bytes memory_limit)"
run "$program" --root "$machine" info cpu
has "as text" "$out" "  device 1: Recorded CPU 9000, "
has "as text" "$out" " of 2.0 GiB available, NUMA node 1"
echo 536870912 >"$machine/sys/fs/cgroup/job/memory.max"
report info 0 "$program" --root "$machine" info cpu --json
is "its limit" "536870912 /sys/fs/cgroup/job/memory.max" "$(at memory_limit/bytes memory_limit/source)"
report info 0 env LOCAL_SIZE=4 LOCAL_RANK=3 "$program" --root "$machine" info cpu --json
is "a launcher's ranks" "4 0 0 1 1" "$(at device_count 'devices/*/numa_node')"
report detect 0 "$program" --root "$machine" -a cpu detect --json
is "device count" "2" "$(at device_count)"
report info 0 env MOCK_VISIBLE_DEVICES=1 "$program" info mock --json
is "every name of a device that is the vendor's second" \
    "0 1 MOCK-00000000-0000-0000-0000-000000000001 0000:e1:00.0 active null" \
    "$(at devices/0/index devices/0/vendor_index devices/0/uuid devices/0/pci_address \
        devices/0/power_state devices/0/partition)"
run env MOCK_VISIBLE_DEVICES=1 "$program" info mock
has "its names, as text" "$out" "    MOCK-00000000-0000-0000-0000-000000000001, 0000:e1:00.0, vendor's index 1"
refuses 1 "No such file" "$program" --root "$dir/none" detect
report detect 0 env DS_ACCEL_ROOT="$machine" "$program" -a cpu detect --json
is "the root by the environment" "2" "$(at device_count)"
report detect 0 env DS_ACCEL_ROOT="$dir/none" "$program" --root "$machine" -a cpu detect --json
is "the option goes before it" "2" "$(at device_count)"
refuses 1 "No such file" env DS_ACCEL_ROOT="$dir/none" "$program" detect

# ---- lint ----------------------------------------------------------------------------------------

report lint 0 "$program" lint "$mocks/ds_accel_cuda.so" --json
is "a good one" "true 20" "$(at ok 'rules/#')"
is "all rules passed" "" "$(at 'rules/*/result' | sed 's/\(passed *\)*//')"
run "$program" lint "$mocks/ds_accel_cuda.so"
has "as text" "$out" "keeps every rule that a file can be checked for"
while read -r defect rule; do
    report lint 1 "$program" lint --json "$broken/$defect/ds_accel_$defect.so"
    is "lint of $defect" "false $rule" "$(at ok rules/result=failed/rule)"
    is "lint of $defect: one mistake, one rule" "1" "$(at 'rules/*/result' | tr ' ' '\n' | grep -c failed)"
    run "$program" lint "$broken/$defect/ds_accel_$defect.so"
    is "lint of $defect" "1 $rule 1" "$code $(printf '%s\n' "$out" |
        awk '$2 == "failed" { print $1 }') $(count "$out" ' breaks 1 rule of docs/plugin-abi.md$')"
done <<'END'
no_note DSA-P3
wrong_name DSA-P4
extra_export DSA-P5
undefined_symbol DSA-P6
no_entry DSA-P9
short_table DSA-P10
missing_required_slot DSA-P11
unknown_required_bit DSA-P12
probe_unterminated DSA-P13
END
report lint 1 "$program" lint --json "$dir/drop/ds_accel_x.so"
is "lint of a text" "DSA-P2" "$(at rules/result=failed/rule)"

finish
