#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# ds-accel topo --plan draws the ranks of a plan of ds-accel run on the machine: texts, pictures and
# JSON for recorded machines, and the errors of wrong plans; and plans agree with their schema.
# test_topo_plan.sh BUILD
set -eu
build=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
program=$build/bin/ds-accel
mocks=$build/tests/fixtures/mocks
machine=$dir/machine
python=${PYTHON:-/usr/bin/python3}
two=$source/tests/machines/two-gpus.json
hbm=$source/tests/machines/two-socket-hbm
unset CUDA_VISIBLE_DEVICES MOCK_VISIBLE_DEVICES KMP_AFFINITY

validate() {
    "$python" "$source/tests/tools/validate.py" "$@"
}

# plan ARGUMENTS...: write the plan of a job to $dir/plan, and check its form.
plan() {
    run "$program" -q run --dry-run --json "$@"
    is "run $*" "0 " "$code $err"
    printf '%s\n' "$out" >"$dir/plan"
    is "the form of the plan of $*" "" "$(validate "$source/conf/schema/run.json" <"$dir/plan" 2>&1)"
}

# topo ARGUMENTS...: draw $dir/plan, set $out.
topo() {
    run "$program" -q "$@" topo --plan "$dir/plan"
    is "topo $*" "0 " "$code $err"
}

# at PATH...: print values of the plan in the report $dir/json.
at() {
    validate - "$@" <"$dir/json" | paste -sd ' ' -
}

# picture ARGUMENTS...: draw $dir/plan, check that it is XML, and print for each class of a CPU's or
# device's box its number, and the titles of the first and the last CPU.
picture() {
    "$program" -q "$@" topo --plan "$dir/plan" --svg >"$dir/svg"
    "$python" - "$dir/svg" <<'PY'
import collections, sys, xml.etree.ElementTree as tree
svg = "{http://www.w3.org/2000/svg}"
root = tree.parse(sys.argv[1]).getroot()
cpus = [g for g in root.iter(svg + "g")]
count = collections.Counter(r.get("class") for g in cpus for r in g.iter(svg + "rect"))
devices = [r for r in root.findall(svg + "rect") if r.get("height") == "40.0"]
count.update("device " + r.get("class") for r in devices)
print(" ".join(f"{name}:{count[name]}" for name in sorted(count)))
for g in cpus[:1] + cpus[-1:]:
    print(g.find(svg + "title").text)
PY
}

# ---- plans and their schema ----------------------------------------------------------------------

printf 'localhost slots=2\nworker-1 slots=4\nworker-2 slots=4\n' >"$dir/hosts"
plan --machine "$two" --master_port auto --module some.module "an argument"
is "a port that is chosen later" "null" "$(validate - master_port <"$dir/plan")"
plan --machine "$two" --hostfile "$dir/hosts" --exclude "worker-1:0,2@worker-2:1" true
is "slots of other hosts" "[1, 3]" "$(validate - hosts/1/slots <"$dir/plan")"
has "why it cannot be started" "$(validate - refusal <"$dir/plan")" "worker-1"
plan --machine "$two" --include localhost:MOCK-00000000-0000-0000-0000-000000000001 true
plan --no_python printf '%s\n' '"' ''
plan --root "$hbm" -a cpu --num_gpus 4 --bind_cores_to_rank true
# The schema rejects a plan that lacks a key or has another type.
for change in 'del plan["refusal"]' 'plan["ranks"][0]["cpus"] = "0,"' 'plan["hosts"] = []' \
    'plan["ranks"][0]["mem_policy"] = "strict"' 'plan["ranks"][0]["env"]["A"] = 1' 'plan["exports"]["A"] = None' \
    'plan["more"] = 1'; do
    "$python" -c "import json, sys; plan = json.load(sys.stdin); $change; print(json.dumps(plan))" \
        <"$dir/plan" >"$dir/changed"
    run validate "$source/conf/schema/run.json" <"$dir/changed"
    is "the schema rejects $change" "1" "$code"
done

# ---- recorded machines ---------------------------------------------------------------------------

# Both ranks are near their devices, which are on node 0.
plan --machine "$two" --bind_cores_to_rank true
topo --machine "$two"
is "two devices on one of two nodes" "2 ranks of cuda on host localhost

node 0: CPUs 0-3
  RANK  CPUS  RESERVED  MEMORY  DEVICE
  0     0-1   -         bind 0  cuda:0
  1     2-3   -         bind 0  cuda:1
  devices: cuda:0 (rank 0), cuda:1 (rank 1)
node 1: CPUs 4-7
  no rank
  idle cores: CPUs 4-7" "$out"
is "its picture" "device k0:1 device k1:1 k0:2 k1:2 x:4
CPU 0: rank 0
CPU 7: no rank" "$(picture --machine "$two")"

plan --machine "$two" true
topo --machine "$two"
is "not bound" "2 ranks of cuda on host localhost, not bound to CPUs

  RANK  DEVICE
  0     cuda:0 on node 0
  1     cuda:1 on node 0" "$out"
is "the picture without binding" "device k0:1 device k1:1 x:8
CPU 0: no rank
CPU 7: no rank" "$(picture --machine "$two")"

# The plan from a pipe.
"$program" -q run --dry-run --json --machine "$two" --bind-to core true >"$dir/plan"
run sh -c '"$1" -q --machine "$2" topo --plan - <"$3"' sh "$program" "$two" "$dir/plan"
is "from stdin" "0 " "$code $err"
has "from stdin: the text" "$out" "  1     1     -         bind 0  cuda:1"

# Memory on nodes without CPUs, reserved CPUs, and more ranks than devices.
plan --root "$hbm" -a cpu --num_gpus 4 --bind_cores_to_rank --reserve-cores 2 true
topo --root "$hbm"
is "high-bandwidth memory" "4 ranks of cpu on host localhost

node 0: CPUs 0-55,112-167
  RANK  CPUS     RESERVED  MEMORY    DEVICE
  0     0-53     54-55     prefer 2  cpu:0
  2     112-165  166-167   prefer 2  slot 2
  devices: cpu:0 (rank 0)
node 1: CPUs 56-111,168-223
  RANK  CPUS     RESERVED  MEMORY    DEVICE
  1     56-109   110-111   prefer 3  cpu:1
  3     168-221  222-223   prefer 3  slot 3
  devices: cpu:1 (rank 1)
node 2: no CPUs
  memory of ranks 0,2
node 3: no CPUs
  memory of ranks 1,3" "$out"
is "its picture" "device k0:1 device k1:1 k0:54 k0 v:2 k1:54 k1 v:2 k2:54 k2 v:2 k3:54 k3 v:2
CPU 0: rank 0
CPU 223: reserved by rank 3" "$(picture --root "$hbm")"

# ---- a machine with hardware threads -------------------------------------------------------------

put() {
    mkdir -p "$machine/$(dirname "$1")"
    printf '%s\n' "$2" >"$machine/$1"
}

# Two sockets with two cores of two threads each. The process may not use CPUs 3 and 7. The mock's
# devices are 0000:e0:00.0 on node 1, and 0000:e1:00.0, whose node is not known.
put proc/meminfo "MemTotal:       16777216 kB"
put proc/self/status "Cpus_allowed_list:	0-2,4-6
Mems_allowed_list:	0-1"
put sys/devices/system/node/online 0-1
put sys/devices/system/cpu/online 0-7
for node in 0 1; do
    put sys/devices/system/node/node$node/cpulist "$((node * 2))-$((node * 2 + 1)),$((node * 2 + 4))-$((node * 2 + 5))"
    put sys/devices/system/node/node$node/meminfo "Node $node MemTotal: 8388608 kB"
done
for cpu in 0 1 2 3 4 5 6 7; do
    core=$((cpu % 4))
    put sys/devices/system/cpu/cpu$cpu/topology/thread_siblings_list "$core,$((core + 4))"
    put sys/devices/system/cpu/cpu$cpu/topology/physical_package_id "$((core / 2))"
    put sys/devices/system/cpu/cpu$cpu/cache/index0/level 3
    put sys/devices/system/cpu/cpu$cpu/cache/index0/shared_cpu_list "$((core / 2 * 2))-$((core / 2 * 2 + 1))"
done
put sys/bus/pci/devices/0000:e0:00.0/numa_node 1
put sys/bus/pci/devices/0000:e1:00.0/numa_node -1
export DS_ACCEL_CUDA_DEVICE_COUNT=2
here="--root $machine --plugin-dir $mocks"

# This plan is written by hand: rank 0 is not near its device, rank 1 has CPUs on both nodes, ranks
# 1 and 2 share a CPU, and rank 2 has no device of this machine.
cat >"$dir/plan" <<'JSON'
{"schema_version": 1, "accelerator": "cuda", "world_size": 4,
 "hosts": [{"host": "a<b", "slots": [0, "mock-00000000-0000-0000-0000-000000000001", 7]},
           {"host": "other", "slots": [0]}],
 "ranks": [
  {"rank": 0, "local_rank": 0, "host": "a<b", "cpus": "0", "reserved_cpus": null,
   "mem_policy": "bind", "mem_nodes": "0"},
  {"rank": 1, "local_rank": 1, "host": "a<b", "cpus": "1,2", "reserved_cpus": "5",
   "mem_policy": "prefer", "mem_nodes": "0-1"},
  {"rank": 2, "local_rank": 2, "host": "a<b", "cpus": "2", "reserved_cpus": null,
   "mem_policy": null, "mem_nodes": null},
  {"rank": 3, "local_rank": 0, "host": "other", "cpus": null, "reserved_cpus": null,
   "mem_policy": null, "mem_nodes": null}]}
JSON
# shellcheck disable=SC2086 # a list of words
topo $here
is "a plan by hand" "3 of 4 ranks of cuda on host a<b

node 0: CPUs 0-1,4-5
  RANK  CPUS  RESERVED  MEMORY      DEVICE
  0     0     -         bind 0      cuda:0 on node 1
  1     1     5         prefer 0-1  cuda:1
  idle threads of used cores: CPUs 4
node 1: CPUs 2-3,6-7
  RANK  CPUS  RESERVED  MEMORY      DEVICE
  1     2     -         prefer 0-1  cuda:1
  2     2     -         -           slot 7
  devices: cuda:0 (rank 0)
  idle threads of used cores: CPUs 6
  not allowed: CPUs 3,7
node not known: no CPUs
  devices: cuda:1 (rank 1)" "$out"
# shellcheck disable=SC2086
is "its picture" "device k0:1 device k1:1 f:2 k0:1 k1:2 k1 v:1 k2:1 x:2
CPU 0: rank 0
CPU 7: not allowed" "$(picture $here)"
has "markup is escaped" "$(cat "$dir/svg")" "a&lt;b"
has "the title of a shared CPU" "$(cat "$dir/svg")" "<title>CPU 2: rank 1, rank 2</title>"
# shellcheck disable=SC2086
run "$program" -q $here topo --plan "$dir/plan" --json
printf '%s\n' "$out" >"$dir/json"
is "the form of the report" "" "$(validate "$source/conf/schema/topo.json" <"$dir/json" 2>&1)"
is "its ranks" "0 cuda:0 cuda:1 7 null 0-2,4-6 a<b 4" \
    "$(at plan/ranks/0/slot plan/ranks/0/device plan/ranks/1/device plan/ranks/2/slot \
        plan/ranks/2/device plan/allowed_cpus plan/host plan/world_size)"
is "its cores" "0,4 0 0 3,7 2 1" "$(at plan/cores/0/cpus plan/cores/0/l3 plan/cores/0/package \
    plan/cores/3/cpus plan/cores/3/l3 plan/cores/3/package)"
# shellcheck disable=SC2086
run "$program" -q $here topo cuda --json
printf '%s\n' "$out" >"$dir/json"
run validate "$source/conf/schema/topo.json" plan <"$dir/json"
has "the report without a plan has none" "$err" "there is no plan"

# A list of many CPUs is cut in the picture, and whole in the line's title.
cp "$dir/plan" "$dir/kept"
put sys/devices/system/cpu/online 0-255
put sys/devices/system/node/node1/cpulist 2-3,6-255
list=$(seq -s , 9 2 255)
sed -i "s/\"cpus\": \"2\"/\"cpus\": \"$list\"/" "$dir/plan"
# shellcheck disable=SC2086
picture $here >/dev/null
line=$(grep '<title>rank 2: ' "$dir/svg")
has "the title of a long line" "$line" "<title>rank 2: slot 7, CPUs $list</title>rank 2: slot 7, CPUs 9,11,"
is "the end of a long line" "...</text>" "${line##*,??}"
put sys/devices/system/cpu/online 0-7
put sys/devices/system/node/node1/cpulist 2-3,6-7
cp "$dir/kept" "$dir/plan"

# token SLOT DEVICE: check which device the slot of rank 1 is.
token() {
    sed "s/mock-00000000-0000-0000-0000-000000000001/$1/" "$dir/kept" >"$dir/plan"
    # shellcheck disable=SC2086
    "$program" -q $here topo --plan "$dir/plan" --json >"$dir/json"
    is "the device of $1" "$2" "$(at plan/ranks/1/device)"
}
token 0000:E1:00.0 cuda:1
token MOCK-00000000-0000-0000-0000-000000000000 cuda:0
token MOCK-0000 null # both begin with it
token MOCK-00000000-0000-0000-0000-000000000009 null
DS_ACCEL_CUDA_DEVICE_COUNT=1
token MOCK-0000 cuda:0
token MOC null # too short
DS_ACCEL_CUDA_DEVICE_COUNT=2

# Devices are those of the variable: with "1" the first one is the second.
export MOCK_VISIBLE_DEVICES=1
# shellcheck disable=SC2086
plan $here -a cuda true
# shellcheck disable=SC2086
topo $here
is "the variable selects device 1" "  0     cuda:0" "$(printf '%s\n' "$out" | sed -n '/^  0/p')"
cp "$dir/kept" "$dir/plan"
# shellcheck disable=SC2086
topo $here
has "a device that the variable hides" "$out" "bind 0      slot 0"
has "and one that it shows" "$out" "prefer 0-1  cuda:0"
unset MOCK_VISIBLE_DEVICES

# An accelerator that cannot be used here, and one that is not known.
# shellcheck disable=SC2086
DS_ACCEL_CUDA_AVAILABLE=false DS_ACCEL_CUDA_REASON=no_driver run "$program" -q $here topo --plan "$dir/plan"
is "an accelerator without devices" "0" "$code"
has "its slots" "$out" "bind 0      slot 0"
has "why" "$out" "cuda: not available: no_driver"

# ---- wrong plans ---------------------------------------------------------------------------------

# wrong NAME MESSAGE: check that $dir/plan is rejected, with its name.
wrong() {
    # shellcheck disable=SC2086
    run "$program" -q $here topo --plan "$dir/plan"
    is "$1 is rejected" "1 " "$code $out"
    has "$1" "$err" "ds-accel: $dir/plan: $2"
}

# change CODE MESSAGE: check a changed copy of the plan.
change() {
    "$python" -c "import json, sys; plan = json.load(sys.stdin); ranks = plan['ranks']; $1; print(json.dumps(plan))" \
        <"$dir/kept" >"$dir/plan"
    wrong "$1" "$2"
}

: >"$dir/plan"
wrong "an empty file" "there is no text; expected the output of ds-accel run --dry-run --json"
printf '{"schema_version": 1, ' >"$dir/plan"
# shellcheck disable=SC2086
run "$program" -q $here topo --plan "$dir/plan"
is "half a file" "1" "$code"
has "half a file: where" "$err" "$dir/plan:1:22: "
printf '2 ranks\n' >"$dir/plan"
# shellcheck disable=SC2086
run "$program" -q $here topo --plan "$dir/plan"
has "the text of a plan" "$err" "; expected the output of ds-accel run --dry-run --json"
printf '{}\0' >"$dir/plan"
wrong "a NUL byte" "there is a NUL byte; expected JSON"
echo '[1]' >"$dir/plan"
wrong "an array" "the plan is [1]; expected an object"
change 'plan["schema_version"] = 2' "schema_version is 2; expected 1"
change 'del plan["schema_version"]' "schema_version is missing; expected 1"
change 'plan["accelerator"] = "cuda,rocm"' 'accelerator is "cuda,rocm"; expected the name of'
change 'plan["accelerator"] = "cudo"' 'accelerator: '
has "the nearest name" "$err" 'did you mean "cuda"?'
change 'plan["world_size"] = 5' "world_size is 5; expected 4, the number of ranks"
change 'plan["hosts"] = {}' "hosts is {}; expected an array of hosts"
change 'plan["ranks"] = []' "ranks is []; expected an array of ranks"
change 'plan["hosts"][1]["host"] = "a<b"' 'hosts[1].host is "a<b"; expected the name of a host that is listed only once'
change 'plan["hosts"][0] = 3' "hosts[0].host is missing"
change 'plan["hosts"][0]["slots"] = []' "hosts[0].slots is []; expected an array of slots"
change 'plan["hosts"][0]["slots"][1] = -1' 'hosts[0].slots is [0,-1,7]; expected only indexes, UUIDs and PCI addresses'
change 'ranks[1] = ranks[0]' "ranks[1].rank is 0; expected its position"
change 'ranks[1]["host"] = "third"' 'ranks[1].host is "third"; expected one of the plan'
change 'ranks[1]["local_rank"] = 3' "ranks[1].local_rank is 3; expected the position of one of the host's slots"
change 'ranks[1]["cpus"] = [1]' 'ranks[1].cpus is [1]; expected null, or a list of numbers such as "0-3,8"'
change 'ranks[1]["reserved_cpus"] = "5-4"' 'ranks[1].reserved_cpus is "5-4"; expected null'
change 'del ranks[1]["mem_nodes"]' "ranks[1].mem_nodes is missing; expected null"
change 'ranks[0]["cpus"] = ""' 'ranks[0].cpus is ""; expected null'
change 'ranks[0]["cpus"] = "x" * 70' "ranks[0].cpus is \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...; expected"
change 'ranks[0]["mem_policy"] = "strict"' 'ranks[0].mem_policy is "strict"; expected null, "bind" or "prefer"'
change 'ranks[1]["cpus"] = "7-9"' 'ranks[1].cpus is "7-9", and this machine has no CPU 8; expected numbers among 0-7'
change 'ranks[1]["reserved_cpus"] = "16"' 'ranks[1].reserved_cpus is "16", and this machine has no CPU 16'
change 'ranks[1]["mem_nodes"] = "2"' 'ranks[1].mem_nodes is "2", and this machine has no NUMA node 2; expected numbers among 0-1'
change 'ranks[3]["cpus"] = "0"' 'ranks of the hosts a<b and other have "cpus"; expected bound ranks of one host'
# The CPUs of other hosts are not known here.
"$python" -c "import json, sys; plan = json.load(sys.stdin); plan['ranks'][3]['mem_nodes'] = '99'; print(json.dumps(plan))" \
    <"$dir/kept" >"$dir/plan"
# shellcheck disable=SC2086
topo $here

# Many hosts: drawn if one of them is bound, otherwise refused.
"$python" - >"$dir/plan" <<'PY'
import json
hosts = [{"host": f"worker-{i}", "slots": [0]} for i in range(10000)]
ranks = [{"rank": i, "local_rank": 0, "host": f"worker-{i}", "cpus": None, "reserved_cpus": None,
          "mem_policy": None, "mem_nodes": None} for i in range(10000)]
print(json.dumps({"schema_version": 1, "accelerator": "cuda", "world_size": 10000,
                  "hosts": hosts, "ranks": ranks}))
PY
wrong "10,000 hosts" "there are 10000 hosts, and which of them is this machine is not known; expected"
sed -i 's/\("host": "worker-9000", "cpus": \)null/\1"1"/' "$dir/plan"
# shellcheck disable=SC2086
topo $here
has "10,000 hosts, and one is bound" "$out" "1 of 10000 ranks of cuda on host worker-9000"

# ---- files and options ---------------------------------------------------------------------------

run "$program" topo --plan "$dir/nothing"
is "no file" "1 ds-accel: $dir/nothing: cannot read it: No such file or directory" "$code $err"
run "$program" topo --plan "$dir"
is "a directory" "1 ds-accel: $dir: cannot read it: Is a directory" "$code $err"
head -c 33554433 /dev/zero >"$dir/large"
run "$program" topo --plan "$dir/large"
is "a large file" "1" "$code"
has "a large file: says" "$err" "$dir/large: cannot read it: it is larger than 32 MiB; expected a plan of fewer hosts"
run sh -c ': | "$1" topo --plan -' sh "$program"
is "an empty stdin" "1" "$code"
has "an empty stdin: says" "$err" "ds-accel: <stdin>: there is no text"
run "$program" topo --plan "$dir/kept" cuda
is "a name beside a plan" "2" "$code"
run "$program" topo --plan "$dir/kept" --svg --json
is "two forms" "2" "$code"
run "$program" list --plan x
is "an option of topo" "2" "$code"
has "an option of topo: says" "$err" "--plan is an option of topo"
finish
