#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
"""Identity: all names of a physical device lead to the same device.

    identity.py BUILD [VENDOR...]

Each vendor gets a machine of four devices, with gaps in their node numbers and PCI addresses in no
order. The amount of memory differs between the devices and identifies each independently of its
names. The vendor's library counts them as in the file, by PCI address, the fastest first and
shuffled; each time UUID, PCI address, index and the vendor's own number in its variable must lead to
the same memory. Prints one line per failure and a summary.
"""
import copy
import json
import os
import shutil
import subprocess
import sys
import tempfile

from matrix import HERE, VENDOR_VARIABLES, libraries_of

MIB = 1 << 20
# The vendor's variable that contains device numbers; a number counts all devices, hidden ones too.
VARIABLES = {
    "cuda": "CUDA_VISIBLE_DEVICES", "rocm": "ROCR_VISIBLE_DEVICES", "xpu": "ZE_AFFINITY_MASK",
    "npu": "ASCEND_RT_VISIBLE_DEVICES", "hpu": "HABANA_VISIBLE_MODULES", "mlu": "MLU_VISIBLE_DEVICES",
    "sdaa": "SDAA_VISIBLE_DEVICES", "supa": "SUPA_VISIBLE_DEVICES",
}
# Settings that make the tools' numbers valid in the variable: CUDA counts the fastest device first,
# while its tools count by PCI address.
BESIDE = {"cuda": {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}}
# Variables that enable a backend: the numbers in SUPA's headers could not be verified.
NEEDED = {"supa": {"DS_ACCEL_SUPA_NUMBERING": "cuda"}}
# The order in which SUPA's runtime counts could not be observed; its tools count by PCI address.
ORDERS = {"supa": ("pci",)}
# (PCI bus, number of the node, speed) of the physical devices 0 to 3
PLACES = ((0x9a, 3, 20), (0x17, 0, 40), (0xc8, 6, 10), (0x2a, 1, 30))


class Count:
    passed = 0
    failed = 0

    def same(self, what, wanted, given):
        if wanted == given:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED: {what}: wanted {wanted!r}, given {given!r}")


def other_uuid(text, number):
    """The template's UUID with its last hexadecimal digits replaced."""
    return text[:-4] + f"{0xa0 + number:04x}" if text else text


def machine_of(vendor, order):
    with open(os.path.join(HERE, "machines", vendor + ".json"), encoding="utf-8") as file:
        machine = json.load(file)
    template = machine["vendors"][vendor]["devices"][0]
    devices = []
    for number, (bus, minor, speed) in enumerate(PLACES):
        device = copy.deepcopy(template)
        device.pop("parts", None)
        device.update({"pci": f"0000:{bus:02x}:00.0", "minor": minor, "speed": speed, "numa_node": number & 1,
                       "memory_bytes": (1024 + 64 * number) * MIB})
        if "uuid" in device:
            device["uuid"] = other_uuid(device["uuid"], number)
        for key in ("module_id", "render", "card", "phy_id"):
            if key in device:
                device[key] = device[key] + minor
        devices.append(device)
    machine["vendors"][vendor].update({"order": order, "devices": devices})
    return machine


class Machine:
    def __init__(self, build, vendor, order):
        self.build = build
        self.vendor = vendor
        self.directory = tempfile.mkdtemp(prefix="ds-accel-identity.")
        self.description = os.path.join(self.directory, "machine.json")
        with open(self.description, "w", encoding="utf-8") as file:
            json.dump(machine_of(vendor, order), file)
        self.root = os.path.join(self.directory, "root")
        subprocess.run([sys.executable, os.path.join(HERE, "machine.py"), self.description, self.root],
                       check=True)
        libraries_of(build, [vendor], os.path.join(self.directory, "lib"))

    def run(self, *arguments, **variables):
        environment = {name: value for name, value in os.environ.items()
                       if not any(part in name for part in VENDOR_VARIABLES) and name != "DS_ACCELERATOR"}
        environment.update({"LD_LIBRARY_PATH": os.path.join(self.directory, "lib"), "LC_ALL": "C",
                            "SIM_MACHINE": self.description, "DS_ACCEL_CACHE": "off",
                            "XDG_CONFIG_HOME": os.path.join(self.directory, "none")})
        environment.update(NEEDED.get(self.vendor, {}))
        environment.update(variables)
        answer = subprocess.run([os.path.join(self.build, "bin/ds-accel"), "--root", self.root, *arguments],
                                env=environment, capture_output=True, text=True, timeout=120, check=False)
        if answer.returncode != 0:
            return {"failed": answer.stderr.strip()}
        return json.loads(answer.stdout)

    def devices(self, **variables):
        return self.run("info", self.vendor, "--json", **variables).get("devices") or []

    def close(self):
        shutil.rmtree(self.directory)


def check(build, vendor, order, count):
    machine = Machine(build, vendor, order)
    what = f"{vendor}, {order}"
    devices = machine.devices()
    by_pci = {f"0000:{bus:02x}:00.0": number for number, (bus, _, _) in enumerate(PLACES)}
    count.same(f"{what}: devices", 4, len(devices))
    count.same(f"{what}: every device once", sorted(by_pci), sorted(d["pci_address"] for d in devices))
    for device in devices:
        number = by_pci.get(device["pci_address"], 0)
        memory = (1024 + 64 * number) * MIB
        name = f"{what}, {device['pci_address']}"
        count.same(f"{name}: memory", memory, device["total_memory_bytes"])
        count.same(f"{name}: NUMA node", number & 1, device["numa_node"])
        for text in filter(None, (device["uuid"], device["pci_address"], str(device["index"]))):
            found = machine.run("bench", vendor, "--device", text, "--only", "dispatch", "--time", "0.001",
                                "--json").get("device", {})
            count.same(f"{name}: found as {text}", (device["index"], device["pci_address"]),
                       (found.get("index"), found.get("pci_address")))
        visible = machine.devices(**{VARIABLES[vendor]: str(device["vendor_index"]), **BESIDE.get(vendor, {})})
        count.same(f"{name}: alone visible as {device['vendor_index']}",
                   [(0, device["pci_address"], device["uuid"], device["vendor_index"], memory)],
                   [(d["index"], d["pci_address"], d["uuid"], d["vendor_index"], d["total_memory_bytes"])
                    for d in visible])
    machine.close()


def main():
    build, *vendors = sys.argv[1:]
    count = Count()
    with open(os.path.join(build, "sim/sonames"), encoding="utf-8") as file:
        built = {line.split()[0] for line in file}
    for vendor in vendors or sorted(built & set(VARIABLES)):
        for order in ORDERS.get(vendor, ("file", "pci", "fastest", "shuffled")):
            check(build, vendor, order, count)
    print(f"identity: {count.passed} passed, {count.failed} failed")
    return count.failed != 0


if __name__ == "__main__":
    sys.exit(main())
