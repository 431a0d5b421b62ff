#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
"""Telemetry on simulated machines, as a table of data.

    telemetry.py BUILD TABLE.json [NAME...]

TABLE.json has "cases". A case is

    {"name": "...", "backend": "cuda", "machine": "cuda",   a file of tests/sim/machines
     "vendor": {...}, "devices": [{...}, ...],    changes to the vendor and to each device
     "env": {"NAME": "value"}, "allocate": 1024,  bytes allocated on device 0 during the poll
     "expect": [{"power": 250500, ...}, ...],     all known values of each device, and no others,
                                                  under the names of tests/sim/drive/facts.c and in
                                                  the units of struct ds_accel_telemetry; "any" is
                                                  a value that changes with time, null a device that
                                                  is not checked
     "processes": [[[PID, BYTES]], []]}           of each device

Two devices differ in every value, so that another device's sensors, swapped values and wrong units
are all found. Prints one line per failure and a summary.
"""
import json
import os
import subprocess
import sys
import tempfile

from matrix import HERE, VENDOR_VARIABLES, merge

# The bits of `valid`, by the names of the values that they cover
BITS = {"utilization": 0, "memory_utilization": 1, "temperature": 2, "power": 3, "power_limit": 4, "energy": 5,
        "core_clock": 6, "memory_clock": 7, "fan": 8, "pcie_rx": 9, "pcie_tx": 9, "throttle": 10,
        "ecc_corrected": 11, "ecc_uncorrected": 11, "memory_used": 12, "memory_total": 12}


def machine_of(case):
    with open(os.path.join(HERE, "machines", case["machine"] + ".json"), encoding="utf-8") as file:
        machine = json.load(file)
    vendor = machine["vendors"][case["backend"]]
    merge(vendor, case.get("vendor", {}))
    for device, change in zip(vendor["devices"], case["devices"], strict=True):
        merge(device, change)
    return machine


def drive(build, case, directory):
    description = os.path.join(directory, "machine.json")
    with open(description, "w", encoding="utf-8") as file:
        json.dump(machine_of(case), file)
    environment = {name: value for name, value in os.environ.items()
                   if not any(part in name for part in VENDOR_VARIABLES)}
    environment.update({"SIM_BUILD": build, "LC_ALL": "C"}, **case.get("env", {}))
    plugin = os.path.join(build, "lib/ds-accel", f"ds_accel_{case['backend']}.so")
    command = [os.path.join(HERE, "ds-accel-sim"), description, os.path.join(build, "sim/drive"), plugin,
               "facts"]
    if "allocate" in case:
        command.append(str(case["allocate"]))
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def figures_of(output):
    """{device: {name: number}}, the same of "valid", and {device: [[pid, bytes]]}."""
    figures, valid, processes = {}, {}, {}
    for line in output.splitlines():
        words = line.split()
        if words[:1] != ["device"]:
            continue
        device = int(words[1])
        if words[2] == "valid":
            valid[device] = int(words[3], 16)
            pairs = words[4:]
            figures[device] = {name: int(value) for name, value in zip(pairs[::2], pairs[1::2])}
        elif words[2] == "process":
            processes.setdefault(device, []).append([int(words[9]), int(words[7])])
    return figures, valid, processes


def differences(case, answer):
    """The differences from the case's expectations."""
    if answer.returncode != 0:
        yield f"exit code {answer.returncode}: {answer.stdout.strip()} {answer.stderr.strip()}"
        return
    figures, valid, processes = figures_of(answer.stdout)
    for device, wanted in enumerate(case["expect"]):
        given = figures.get(device)
        if given is None:
            yield f"device {device}: nothing is told of it"
        if given is None or wanted is None:
            continue
        bits = 0
        for name, value in wanted.items():
            bits |= 1 << BITS[name]
            if name not in given or (value != "any" and given[name] != value):
                yield f"device {device}: {name} is {given.get(name)}, not {value}"
        for name in sorted(set(given) - set(wanted)):
            yield f"device {device}: {name} is {given[name]}, and nobody knows it"
        if valid[device] != bits:
            yield f"device {device}: valid is {valid[device]:#x}, not {bits:#x}"
    if len(figures) != len(case["expect"]):
        yield f"{len(figures)} devices, not {len(case['expect'])}"
    for device, wanted in enumerate(case.get("processes", [])):
        if processes.get(device, []) != wanted:
            yield f"device {device}: processes are {processes.get(device, [])}, not {wanted}"


def main():
    build, path, *chosen = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        table = json.load(file)
    passed = failed = 0
    for case in table["cases"]:
        if chosen and case["name"] not in chosen and case["backend"] not in chosen:
            continue
        with tempfile.TemporaryDirectory(prefix="ds-accel-telemetry.") as directory:
            problems = list(differences(case, drive(os.path.abspath(build), case, directory)))
        for problem in problems:
            print(f"FAILED: {case['name']}: {problem}")
        passed += not problems
        failed += bool(problems)
    print(f"telemetry: {passed} passed, {failed} failed")
    return failed != 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main())
