#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# ds-accel topo on fake machines: bridges, nodes and network cards of sysfs compared with the
# expected result, as JSON, text and SVG.  test_topo.sh BUILD
set -eu
build=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
program=$build/bin/ds-accel
mocks=$build/tests/fixtures/mocks
machine=$dir/machine
python=${PYTHON:-/usr/bin/python3}

put() {
    mkdir -p "$machine/$(dirname "$1")"
    printf '%s\n' "$2" >"$machine/$1"
}

# pci ADDRESS PATH NODE: create a device below the bridges of PATH.
pci() {
    mkdir -p "$machine/sys/devices/$2/$1" "$machine/sys/bus/pci/devices"
    ln -sfn "../../../devices/$2/$1" "$machine/sys/bus/pci/devices/$1"
    printf '%s\n' "$3" >"$machine/sys/devices/$2/$1/numa_node"
}

# nic CLASS NAME PATH: create an entry of a device class, linked as the kernel links it.
nic() {
    mkdir -p "$machine/sys/class/$1"
    ln -sfn "../../devices/$3/$1/$2" "$machine/sys/class/$1/$2"
}

# topo ARGUMENTS...: run topo, check the JSON, set $out.
topo() {
    run "$program" -q --root "$machine" --plugin-dir "$mocks" topo --json "$@"
    is "topo $*" "0 " "$code $err"
    printf '%s\n' "$out" >"$dir/json"
    is "the shape of topo $*" "" "$("$python" "$source/tests/tools/validate.py" \
        "$source/conf/schema/topo.json" <"$dir/json" 2>&1)"
}

# near A B CLOSENESS [LINKS]: check how close A and B are in the last report.
near() {
    is "$1 and $2" "$3 ${4-}" "$("$python" - "$dir/json" "$1" "$2" <<'PY'
import json, sys
for relation in json.load(open(sys.argv[1]))["relations"]:
    if {relation["a"], relation["b"]} == set(sys.argv[2:4]):
        print(relation["closeness"], ",".join(f'{l["kind"]}:{l["count"]}:{l["is_direct"]}'
                                              for l in relation["links"]))
PY
)"
}

# at PATH...: print values of the last report.
at() {
    "$python" "$source/tests/tools/validate.py" - "$@" <"$dir/json" | paste -sd ' ' -
}

put proc/meminfo "MemTotal:       16777216 kB
MemAvailable:    8388608 kB"
put sys/devices/system/node/online 0-1
for node in 0 1; do
    put sys/devices/system/node/node$node/cpulist "$((node * 4))-$((node * 4 + 3))"
    put sys/devices/system/node/node$node/meminfo "Node $node MemTotal: 8388608 kB
Node $node MemFree: 4194304 kB"
done
put sys/devices/system/node/node0/distance "10 21"
put sys/devices/system/node/node1/distance "21 10"

# Devices of the mock are 0000:e0:00.0, e1 and so on: two below one switch, one at another port, one
# below another host bridge of the same node, one on the other node. Network cards are near some of
# them.
switch=pci0000:80/0000:80:01.0/0000:81:00.0
pci 0000:e0:00.0 $switch/0000:82:00.0 0
pci 0000:e1:00.0 $switch/0000:82:01.0 0
pci 0000:e2:00.0 pci0000:80/0000:80:02.0 0
pci 0000:e3:00.0 pci0000:90/0000:90:01.0 0
pci 0000:e4:00.0 pci0000:c0/0000:c0:01.0 1
pci 0000:18:00.0 $switch/0000:82:02.0 0
pci 0000:e0:00.1 $switch/0000:82:00.0 0
pci 0000:c8:00.0 pci0000:c0/0000:c0:01.0 1
pci 0000:c9:00.0 pci0000:c0/0000:c0:03.0 1
nic infiniband mlx5_0 $switch/0000:82:02.0/0000:18:00.0
nic net ib0 $switch/0000:82:02.0/0000:18:00.0
nic net eth0 pci0000:c0/0000:c0:01.0/0000:c8:00.0/virtio0
nic net eth1 $switch/0000:82:00.0/0000:e0:00.1
mkdir -p "$machine/sys/devices/virtual/net/lo" "$machine/sys/class/net"
ln -sfn ../../devices/virtual/net/lo "$machine/sys/class/net/lo"
# A card whose position no link shows, as on a machine where sysfs is a copy with directories
# instead of links.
put sys/class/net/eth2/device/uevent "DRIVER=x
PCI_SLOT_NAME=0000:c9:00.0"

# ---- closeness -----------------------------------------------------------------------------------

export DS_ACCEL_CUDA_DEVICE_COUNT=5
topo cuda
is "devices" "5 cuda:0 cuda:4" "$(at "devices/#" devices/0/id devices/4/id)"
is "cards" "4 mlx5_0 infiniband 0000:18:00.0 0" \
    "$(at "nics/#" nics/0/id nics/0/kind nics/0/pci_address nics/0/numa_node)"
is "the interface of a card goes with it" '["ib0"]' "$(at nics/0/interfaces | tr -d ' ')"
is "loopback is no card" "eth0 eth1 eth2" "$(at nics/1/id nics/2/id nics/3/id)"
is "nodes" "2 0-3 4-7 21" "$(at "numa_nodes/#" numa_nodes/0/cpus numa_nodes/1/cpus numa_nodes/0/distances/1)"
is "node of each" "0 0 0 0 1" "$(at devices/0/numa_node devices/1/numa_node devices/2/numa_node \
    devices/3/numa_node devices/4/numa_node)"
near cuda:0 cuda:2 host_bridge
near cuda:0 cuda:3 numa_node
near cuda:2 cuda:4 machine
near cuda:0 mlx5_0 switch
near cuda:2 mlx5_0 host_bridge
near cuda:4 mlx5_0 machine
near cuda:4 eth0 root_port
near cuda:4 eth2 host_bridge
near cuda:0 eth1 device
# The devices of the mock form a ring: their links are reported in addition to the bridges.
near cuda:0 cuda:1 switch other:1:True
near cuda:0 cuda:4 machine other:1:True
near cuda:1 cuda:3 numa_node

# On a machine with a single node, all devices are on it; the value -1 of the kernel means unknown.
put sys/devices/system/node/online 0
printf -- '-1\n' >"$machine/sys/devices/pci0000:c0/0000:c0:01.0/0000:e4:00.0/numa_node"
topo cuda
near cuda:3 cuda:1 numa_node
is "a node is known" "0" "$(at devices/4/numa_node)"
put sys/devices/system/node/online 0-1
topo cuda
is "or not" "null" "$(at devices/4/numa_node)"
near cuda:4 cuda:2 unknown
near cuda:4 eth0 root_port
printf '1\n' >"$machine/sys/devices/pci0000:c0/0000:c0:01.0/0000:e4:00.0/numa_node"

# If no links show the bridges, the nodes of the devices are compared.
for address in 0000:e0:00.0 0000:e1:00.0; do
    rm "$machine/sys/bus/pci/devices/$address"
    put sys/bus/pci/devices/$address/numa_node 1
done
topo cuda
near cuda:0 cuda:1 numa_node other:1:True
near cuda:0 cuda:2 machine
rm -r "$machine/sys/bus/pci/devices/0000:e0:00.0" "$machine/sys/bus/pci/devices/0000:e1:00.0"
pci 0000:e0:00.0 $switch/0000:82:00.0 0
pci 0000:e1:00.0 $switch/0000:82:01.0 0

# ---- which accelerators --------------------------------------------------------------------------

topo cuda rocm
is "two kinds" "cuda rocm" "$(at accelerators/0/name accelerators/1/name)"
near cuda:0 rocm:0 device
near cuda:1 rocm:0 switch
topo cuda rocm,cuda cuda
is "one that is named again is there once" "2 7" "$(at "accelerators/#" "devices/#")"
export DS_ACCEL_ROCM_AVAILABLE=false DS_ACCEL_ROCM_REASON=no_driver
topo cuda rocm
is "one that is not there" "false no_driver null" \
    "$(at accelerators/1/available accelerators/1/reason accelerators/1/device_count)"
run "$program" -q --root "$machine" topo cudo
is "one that nobody knows" "1" "$code"
has "did you mean" "$err" 'did you mean "cuda"?'
run "$program" -q --root "$machine" topo --json
printf '%s\n' "$out" >"$dir/json"
is "cpu, where nothing else is" "cpu" "$(at accelerators/0/name)"
mkdir "$dir/plugins"
cp "$mocks/ds_accel_cuda.so" "$dir/plugins"
run "$program" -q --root "$machine" --plugin-dir "$dir/plugins" topo --json
printf '%s\n' "$out" >"$dir/json"
is "what can be used, without cpu" "1 cuda" "$(at "accelerators/#" accelerators/0/name)"

# A forced accelerator has the same meaning as in `info`: the report has only this accelerator, or
# the reason why it cannot be used. A name on the command line overrides it.
printf '{"accelerator": "rocm"}\n' >"$dir/forced.json"
unset DS_ACCEL_ROCM_AVAILABLE DS_ACCEL_ROCM_REASON
# forced OPTIONS...: print the exit codes of info and topo, and the accelerators of the report.
forced() {
    run "$program" -q --root "$machine" --plugin-dir "$mocks" "$@" info --json
    info=$code
    run "$program" -q --root "$machine" --plugin-dir "$mocks" "$@" topo --json
    printf '%s\n' "$out" >"$dir/json"
    echo "$info $code $([ "$code" != 0 ] || at "accelerators/#" accelerators/0/name)"
}
is "forced by the option" "0 0 1 rocm" "$(forced -a rocm)"
is "forced by the environment" "0 0 1 rocm" "$(DS_ACCELERATOR=rocm forced)"
is "forced by the configuration" "0 0 1 rocm" "$(forced --config "$dir/forced.json")"
is "the option goes before both" "0 0 1 cuda" \
    "$(DS_ACCELERATOR=rocm forced --config "$dir/forced.json" -a cuda)"
is "one that is chosen by name only" "0 0 1 mock" "$(forced -a mock)"
is "cpu" "0 0 1 cpu" "$(forced -a cpu)"
is "forced, and not usable" "4 4 " "$(DS_ACCEL_ROCM_AVAILABLE=false forced -a rocm)"
is "forced, and unknown" "4 4 " "$(DS_ACCELERATOR=nosuch forced)"
run "$program" -q --root "$machine" --plugin-dir "$mocks" -a nosuch topo
has "forced, and unknown: says" "$err" '"nosuch"'
run "$program" -q --root "$machine" --plugin-dir "$mocks" -a rocm topo cuda --json
printf '%s\n' "$out" >"$dir/json"
is "a name goes before what is forced" "1 cuda" "$(at "accelerators/#" accelerators/0/name)"

# ---- text and picture ----------------------------------------------------------------------------

run "$program" -q --root "$machine" --plugin-dir "$dir/plugins" topo
is "text" "0 " "$code $err"
is "the matrix" "cuda:0 - LNK1 HB NODE LNK1 SW SYS DEV SYS 0 0-3" \
    "$(printf '%s\n' "$out" | sed -n '/^cuda:0/{s/  */ /g;p;q}')"
has "the legend" "$out" "  SW    below the same PCIe switch"
has "distances" "$out" "node 1: CPUs 4-7, distances 21 10"
run "$program" -q --root "$machine" --plugin-dir "$dir/plugins" topo --svg
printf '%s\n' "$out" >"$dir/topo.svg"
is "a picture" "0 9 81" "$code $("$python" - "$dir/topo.svg" <<'PY'
import sys, xml.etree.ElementTree as tree
svg = "{http://www.w3.org/2000/svg}"
root = tree.parse(sys.argv[1]).getroot()
cells = [r for r in root.findall(svg + "rect") if r.get("height") == "28"]
print(len([c for c in cells if c.get("class") == "x"]), len(cells))
PY
)"
run "$program" topo --svg --json
is "one form at a time" "2" "$code"
finish
