#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
"""Write the /sys, /proc and /dev of a simulated machine, for --root DIR or DS_ACCEL_ROOT.

    machine.py FILE DIR

FILE is a machine of tests/sim/machines (tests/sim/README.md has its format), DIR a new or empty directory.
The nodes of /dev are plain files: the plugins only check their existence and permissions.
"""
import json
import os
import sys

# The files that each vendor's hardware and driver create on a machine. pci: vendor, device, class;
# nodes and files: once per machine; device_nodes and device_files: for each device. {minor},
# {render}, {pci}, {index}, {driver_version} and {memory_bytes} are replaced by their values; the
# "files" of a vendor or device ({"/sys/...": "text"}) are added.
VENDORS = {
    "cuda": {
        "pci": ("0x10de", "0x2330", "0x030200"),
        "driver": "nvidia",
        "nodes": ["/dev/nvidiactl", "/dev/nvidia-uvm"],
        "device_nodes": ["/dev/nvidia{minor}"],
        "files": {
            "/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {driver_version}"
            "  Simulated\n",
            "/sys/module/nvidia/version": "{driver_version}\n",
        },
        "device_files": {
            "/proc/driver/nvidia/gpus/{pci}/information": "Model: \t\t {name}\nGPU UUID: \t {uuid}\n"
            "Bus Type: \t PCIe\nBus Location: \t {pci}\nDevice Minor: \t {minor}\n",
        },
        "driver_version": "580.65.06",
    },
    "rocm": {
        "pci": ("0x1002", "0x74a1", "0x120000"),
        "driver": "amdgpu",
        "nodes": ["/dev/kfd"],
        "device_nodes": ["/dev/dri/renderD{render}"],
        "class": "/sys/class/drm/renderD{render}",
        "files": {"/sys/module/amdgpu/version": "{driver_version}\n"},
        "device_files": {
            "/sys/class/kfd/kfd/topology/nodes/{node}/gpu_id": "{gpu_id}\n",
            "/sys/class/kfd/kfd/topology/nodes/{node}/properties": "vendor_id 4098\ndevice_id 29857\n"
            "gfx_target_version 90402\nsimd_count 1216\ndrm_render_minor {render}\n"
            "location_id {location_id}\ndomain {domain}\n",
        },
        # The driver's list of compute devices begins with the CPUs.
        "numa_files": {
            "/sys/class/kfd/kfd/topology/nodes/{numa_node}/gpu_id": "0\n",
            "/sys/class/kfd/kfd/topology/nodes/{numa_node}/properties": "cpu_cores_count 2\nsimd_count 0\n",
        },
        "driver_version": "6.12.12",
    },
    "xpu": {
        "pci": ("0x8086", "0x0bd5", "0x038000"),
        "driver": "xe",
        "nodes": [],
        "device_nodes": ["/dev/dri/renderD{render}"],
        "class": "/sys/class/drm/renderD{render}",
        "files": {},
        "device_files": {},
        "driver_version": "",
    },
    "npu": {
        "pci": ("0x19e5", "0xd802", "0x120000"),
        "driver": "devdrv_device_driver",
        "nodes": ["/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc"],
        "device_nodes": ["/dev/davinci{minor}"],
        # Up to 5.10 CANN cannot register memory of the program.
        "files": {"/proc/sys/kernel/osrelease": "5.15.0-generic"},
        "device_files": {},
        "driver_version": "25.0.rc1",
    },
    "hpu": {
        "pci": ("0x1da3", "0x1020", "0x120000"),
        "driver": "habanalabs",
        "nodes": [],
        "device_nodes": ["/dev/accel/accel{minor}", "/dev/accel/accel_controlD{minor}"],
        "class": "/sys/class/accel/accel{minor}",
        "files": {"/sys/module/habanalabs/version": "{driver_version}\n"},
        "device_files": {},
        "driver_version": "1.21.0-ga3fb4fc",
    },
    "mlu": {
        "pci": ("0xcabc", "0x0590", "0x120000"),
        "driver": "cambricon-drv",
        "nodes": ["/dev/cambricon_ctl"],
        "device_nodes": ["/dev/cambricon_dev{minor}", "/dev/cambricon_ipcm{minor}"],
        "files": {},
        "device_files": {},
        "driver_version": "6.2.10",
    },
    "sdaa": {
        "pci": ("0x0719", "0x00a1", "0x120000"),
        "driver": "teco",
        "nodes": [],
        "device_nodes": ["/dev/tcaicard{tcaicard}"],
        "files": {},
        "device_files": {},
        "driver_version": "3.3.0",
    },
    "supa": {
        "pci": ("0x1ee0", "0x0106", "0x120000"),
        "driver": "biren",
        "nodes": ["/dev/biren-m"],
        "device_nodes": ["/dev/biren/card_{minor}"],
        "files": {},
        "device_files": {},
        "driver_version": "1.12.0",
    },
    # Metal's device is on no bus that Linux lists.
    "mps": {
        "pci": ("", "", ""),
        "driver": "",
        "nodes": [],
        "device_nodes": [],
        "files": {},
        "device_files": {},
        "driver_version": "",
    },
}

NIC_KINDS = {
    "infiniband": ("0x15b3", "0x101b", "0x020700", "mlx5_core"),
    "ethernet": ("0x15b3", "0x101d", "0x020000", "mlx5_core"),
}


class Tree:
    """Files below the root; a path is written once."""

    def __init__(self, root):
        self.root = root
        self.slots = {}
        self.renders = set()

    def path(self, name):
        path = self.root + name
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def file(self, name, text, mode=0o644):
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)

    def node(self, name, allowed):
        if os.path.lexists(self.root + name):
            return
        self.file(name, "", 0o666 if allowed else 0)

    def render(self, wanted):
        """The number of a render node, which the kernel counts across vendors."""
        while wanted in self.renders:
            wanted += 1
        self.renders.add(wanted)
        return wanted

    def link(self, name, target):
        path = self.path(name)
        if os.path.lexists(path):
            raise SystemExit(f"machine.py: two things want to be {name}")
        os.symlink(os.path.relpath(self.root + target, os.path.dirname(path)), path)

    def device(self, address, vendor, device, pci_class, fields):
        """Create a PCI device; return its directory in /sys/devices."""
        if address in self.slots:
            raise SystemExit(f"machine.py: two devices at {address}")
        bus = address[:7]
        place = f"/sys/devices/pci{fields.get('root_bus', bus)}/"
        for bridge in fields.get("bridges", []):
            place += f"{bridge}/"
        place += address
        self.file(f"{place}/vendor", f"{vendor}\n")
        self.file(f"{place}/device", f"{device}\n")
        self.file(f"{place}/class", f"{pci_class}\n")
        self.file(f"{place}/numa_node", f"{fields.get('numa_node', -1)}\n")
        self.file(f"{place}/power/runtime_status", f"{fields.get('power', 'active')}\n")
        self.file(f"{place}/current_link_speed", f"{fields.get('link_speed', '32.0 GT/s PCIe')}\n")
        self.file(f"{place}/current_link_width", f"{fields.get('link_width', 16)}\n")
        self.link(f"/sys/bus/pci/devices/{address}", place)
        self.slots[address] = vendor[2:] + device[2:]
        return place

    def bind(self, place, driver):
        directory = f"/sys/bus/pci/drivers/{driver}"
        os.makedirs(self.root + directory, exist_ok=True)
        self.link(f"{place}/driver", directory)

    def list_slots(self):
        """/proc/bus/pci/devices: bus, slot and function as one number; the domain is not in it."""
        lines = []
        for address, ids in sorted(self.slots.items()):
            _, bus, rest = address.split(":")
            slot, function = rest.split(".")
            number = int(slot, 16) << 3 | int(function)
            lines.append(f"{bus}{number:02x}\t{ids}\t0" + "\t0" * 14 + "\n")
        self.file("/proc/bus/pci/devices", "".join(lines))


def write_host(tree, machine):
    nodes = machine.get("numa_nodes", [{"cpus": "0-1", "memory_bytes": 8 << 30}])
    total = 0
    for index, node in enumerate(nodes):
        kib = node["memory_bytes"] // 1024
        total += kib
        directory = f"/sys/devices/system/node/node{index}"
        tree.file(f"{directory}/cpulist", node["cpus"] + "\n")
        tree.file(
            f"{directory}/meminfo",
            f"Node {index} MemTotal:       {kib} kB\nNode {index} MemFree:        {kib * 3 // 4} kB\n",
        )
        distances = [10 if index == other else 21 for other in range(len(nodes))]
        tree.file(f"{directory}/distance", " ".join(map(str, distances)) + "\n")
    online = f"0-{len(nodes) - 1}" if len(nodes) > 1 else "0"
    tree.file("/sys/devices/system/node/online", online + "\n")
    tree.file("/sys/devices/system/cpu/online", ",".join(node["cpus"] for node in nodes if node["cpus"]) + "\n")
    tree.file("/proc/meminfo", f"MemTotal: {total} kB\nMemFree: {total * 3 // 4} kB\nMemAvailable: {total * 3 // 4} kB\n")
    tree.file("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Simulated CPU\nflags\t\t: fpu sse2 avx2\n")
    tree.file("/proc/self/status", "Name:\tds-accel\nVmHWM:\t3648 kB\nVmRSS:\t3584 kB\n")
    tree.file("/proc/self/cgroup", "0::/\n")
    tree.file("/proc/self/mountinfo", "29 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
    os.makedirs(tree.root + "/dev", exist_ok=True)


def fill(text, facts):
    for key, value in facts.items():
        text = text.replace("{" + key + "}", str(value))
    return text


def locate(address):
    """"0001:65:00.1" as the numbers that drivers print."""
    if not address:
        return {}
    domain, bus, rest = address.split(":")
    slot, function = rest.split(".")
    return {"domain": int(domain, 16), "location_id": int(bus, 16) << 8 | int(slot, 16) << 3 | int(function)}


def counted(devices, how):
    """Each device's number in the kernel's driver, and so in the runtime: by the vendor's order."""
    positions = list(range(len(devices)))
    if how in ("pci", "fastest"):
        positions.sort(key=lambda i: (-devices[i].get("speed", 0) if how == "fastest" else 0, devices[i].get("pci", "")))
    return {position: place for place, position in enumerate(positions)}


def write_device(tree, facts, vendor, table, device, index):
    minor = device.get("minor", index)
    driver = vendor.get("driver", True)
    facts = {
        **facts,
        **{key: value for key, value in device.items() if isinstance(value, (str, int))},
        "index": index,
        "minor": minor,
        "render": tree.render(128 + minor) if "{render}" in str(table) else "",
        "card": device.get("card", minor),
        "tcaicard": device.get("tcaicard", minor),
        "node": counted(vendor["devices"], vendor.get("order"))[index] + len(facts["numa_nodes"]),
        "gpu_id": device.get("gpu_id", 4096 + index),
        **locate(device.get("pci", "")),
    }
    ids = table["pci"]
    place = None
    # Several devices may share a card (Teco): only the first one is on the bus.
    if device.get("pci") and not (device["pci"] in tree.slots and "card" in device):
        place = tree.device(
            device["pci"], device.get("pci_vendor", ids[0]), device.get("pci_device", ids[1]), device.get("pci_class", ids[2]), device
        )
    if not driver:
        return
    for node in table["device_nodes"]:
        tree.node(fill(node, facts), device.get("permission", vendor.get("permission", True)))
    if place is not None:
        tree.bind(place, vendor.get("kernel_driver", table["driver"]))
        if "class" in table:
            # As in the kernel, the class links to a directory of the device, which links back to
            # the class.
            name = fill(table["class"], facts)
            directory = f"{place}/{name.split('/')[3]}/{os.path.basename(name)}"
            os.symlink(f"../../../{os.path.basename(place)}", tree.path(directory + "/device"))
            tree.link(name, directory)
    for name, text in {**table["device_files"], **device.get("files", {})}.items():
        tree.file(fill(name, facts), fill(text, facts))


def write_vendor(tree, name, vendor, machine):
    table = VENDORS[name]
    facts = {
        "driver_version": vendor.get("driver_version", table["driver_version"]),
        "numa_nodes": machine.get("numa_nodes", [None]),
    }
    devices = vendor.get("devices", [])
    for index, device in enumerate(devices):
        write_device(tree, facts, vendor, table, device, index)
    if vendor.get("driver", True):
        for node in table["nodes"]:
            tree.node(node, vendor.get("permission", True))
        for path, text in {**table["files"], **vendor.get("files", {})}.items():
            tree.file(fill(path, facts), fill(text, facts))
        for index in range(len(facts["numa_nodes"])):
            for path, text in table.get("numa_files", {}).items():
                tree.file(fill(path, {"numa_node": index}), text)


def write_nic(tree, nic):
    vendor, device, pci_class, driver = NIC_KINDS[nic.get("kind", "infiniband")]
    place = tree.device(nic["pci"], vendor, device, pci_class, nic)
    tree.bind(place, driver)
    names = [nic["name"]] if nic.get("kind", "infiniband") == "infiniband" else []
    for name in names:
        tree.link(f"/sys/class/infiniband/{name}/device", place)
        tree.file(f"/sys/class/infiniband/{name}/ports/1/state", "4: ACTIVE\n")
        tree.file(f"/sys/class/infiniband/{name}/ports/1/rate", nic.get("rate", "400 Gb/sec (4X NDR)") + "\n")
    interface = nic.get("interface", nic["name"] if not names else "")
    if interface:
        tree.link(f"/sys/class/net/{interface}/device", place)
        tree.file(f"/sys/class/net/{interface}/operstate", "up\n")
        tree.file(f"/sys/class/net/{interface}/speed", f"{nic.get('speed_mbit', 400000)}\n")


def write_machine(path, root):
    """Write the files of the described machine below a new or empty directory."""
    with open(path, encoding="utf-8") as file:
        machine = json.load(file)
    tree = Tree(root.rstrip("/"))
    os.makedirs(tree.root, exist_ok=True)
    write_host(tree, machine)
    for name, vendor in machine.get("vendors", {}).items():
        if name not in VENDORS:
            raise SystemExit(f"machine.py: {path}: no vendor {name}: {', '.join(VENDORS)}")
        write_vendor(tree, name, vendor, machine)
    for nic in machine.get("nics", []):
        write_nic(tree, nic)
    for file_path, text in machine.get("files", {}).items():
        tree.file(file_path, text)
    tree.list_slots()


def main():
    if len(sys.argv) != 3:
        raise SystemExit(__doc__.strip().splitlines()[2].strip())
    write_machine(sys.argv[1], sys.argv[2])


if __name__ == "__main__":
    main()
