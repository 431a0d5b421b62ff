#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
"""Detection on simulated machines, as a table of data.

    matrix.py BUILD TABLE.json [NAME...]

TABLE.json has "machines", fragments of machine descriptions by name, and "cases". A case is

    {"name": "...", "machine": ["cuda", "xpu"],   fragments, merged in this order; a text names a file
                                                  of tests/sim/machines or a fragment of the table
     "libraries": ["cuda"],                       vendors whose simulated runtimes are installed;
                                                  default: those of the vendors in the machine. A
                                                  runtime that is really installed here is hidden
     "env": {"NAME": "value"},                    added to an environment without vendors' variables
     "arguments": ["--config", "..."],            of ds-accel detect, in addition to --json
     "config": {...},                             contents of a file for --config
     "plugins": ["xpu.external"],                 mocks of these names are installed, too
     "closed": ["/dev/nvidia0"],                  nodes without any permission
     "powerless": true,                           run without the rights that let root open any file
     "exit": 0, "accelerator": "cuda",            the expected result; accelerator null: none
     "set_method": "auto detect",
     "states": {"xpu": "available"},              of candidates
     "reasons": {"xpu": "no_device"},             of candidates; null: none
     "details": {"cuda": "part of the detail"},
     "stderr": "part of the messages"}            a text or a list of texts

Every case is run twice, the second time with the fragments' devices in reverse order of their names,
which must not change the result: one case in four by $SEED, all of them with $FULL or by name. Prints
one line per failure and a summary.
"""
import copy
import json
import os
import shutil
import subprocess
import sys
import tempfile

import machine as simulated

HERE = os.path.dirname(os.path.abspath(__file__))
REVERSED_ONE_IN = 4
# Python's package directories are those of this machine, not of the simulated one.
PYTHON_VARIABLES = ("PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX", "HOME")
VENDOR_VARIABLES = ("VISIBLE", "AFFINITY_MASK", "ASCEND", "HABANA", "HLS_MODULE", "DS_ACCEL", "SIM_",
                    "CUDA_", "HIP_", "ROCR_", "ROCM_", "ZE_", "NEUWARE", "OCL_ICD", "POCL_")


def merge(base, change):
    """Merge objects key by key; null removes a key; any other value replaces."""
    for key, value in change.items():
        if value is None:
            base.pop(key, None)
        elif isinstance(value, dict) and isinstance(base.get(key), dict):
            merge(base[key], value)
        else:
            base[key] = copy.deepcopy(value)
    return base


def fragment(table, name):
    if name in table["machines"]:
        return table["machines"][name]
    with open(os.path.join(HERE, "machines", name + ".json"), encoding="utf-8") as file:
        return json.load(file)


def machine_of(table, case, is_reversed):
    machine = {}
    for name in case["machine"]:
        change = name if isinstance(name, dict) else fragment(table, name)
        merge(machine, change)
    if is_reversed:
        machine["vendors"] = dict(sorted(machine.get("vendors", {}).items(), reverse=True))
    return machine


def libraries_of(build, vendors, directory):
    """A directory with only these vendors' simulated runtimes, as if only they were installed. Other
    versions of them are in directories of their own and stay out."""
    os.mkdir(directory)
    with open(os.path.join(build, "sim/sonames"), encoding="utf-8") as file:
        lines = file.read().splitlines()
    shared = [(vendor, f"libsim_{vendor}.so") for vendor in vendors]
    for vendor, soname in [*map(str.split, lines), *shared]:
        if vendor in vendors and "/" not in soname:
            os.symlink(os.path.join(build, "sim/lib", soname), os.path.join(directory, soname))


def options_of(build, case, directory):
    """The options for the case's configuration and plugins."""
    options = []
    if "config" in case:
        path = os.path.join(directory, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(case["config"], file)
        options += ["--config", path]
    if "plugins" in case:
        plugins = os.path.join(directory, "plugins")
        os.mkdir(plugins)
        for name in case["plugins"]:
            shutil.copy(os.path.join(build, "tests/fixtures/mocks", f"ds_accel_{name}.so"), plugins)
        options += ["--plugin-dir", plugins]
    return options


def run(build, table, case, is_reversed, directory):
    machine = machine_of(table, case, is_reversed)
    description = os.path.join(directory, "machine.json")
    with open(description, "w", encoding="utf-8") as file:
        json.dump(machine, file)
    root = os.path.join(directory, "root")
    simulated.write_machine(description, root)
    for node in case.get("closed", []):
        os.chmod(root + node, 0)
    libraries = os.path.join(directory, "lib")
    installed = case.get("libraries", list(machine.get("vendors", {})))
    libraries_of(build, installed, libraries)
    environment = {name: value for name, value in os.environ.items()
                   if not any(part in name for part in VENDOR_VARIABLES) and name not in PYTHON_VARIABLES
                   and name != "DS_ACCELERATOR"}
    environment.update({"LD_LIBRARY_PATH": libraries, "SIM_MACHINE": description, "LC_ALL": "C",
                        "DS_ACCEL_CACHE": "off", "XDG_CONFIG_HOME": os.path.join(directory, "none"),
                        "XDG_RUNTIME_DIR": directory})
    for vendor in set(machine.get("vendors", {})) - set(installed):
        environment[f"DS_ACCEL_{vendor.upper()}_LIBRARY"] = os.path.join(libraries, "absent.so")
    environment.update(case.get("env", {}))
    command = [os.path.join(build, "bin/ds-accel"), "--root", root, *options_of(build, case, directory),
               *case.get("arguments", []), "detect", "--json"]
    if case.get("powerless") and os.geteuid() == 0:
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120,
                          check=False)


def differences(case, answer):
    """The differences from the case's expectations."""
    if answer.returncode != case.get("exit", 0):
        yield f"exit code {answer.returncode}, not {case.get('exit', 0)}: {answer.stderr.strip()}"
    said = case.get("stderr", [])
    for part in [said] if isinstance(said, str) else said:
        if part not in answer.stderr:
            yield f"stderr has no {part!r}: {answer.stderr.strip()!r}"
    if not answer.stdout.strip():
        if case.get("accelerator") is not None:
            yield f"no answer: {answer.stderr.strip()}"
        return
    report = json.loads(answer.stdout)
    for key in ("accelerator", "set_method", "device_count"):
        if key in case and report[key] != case[key]:
            yield f"{key} is {report[key]!r}, not {case[key]!r}"
    candidates = {candidate["name"]: candidate for candidate in report["candidates"]}
    for member, key in (("state", "states"), ("reason", "reasons")):
        for name, wanted in case.get(key, {}).items():
            given = candidates.get(name, {}).get(member)
            if given != wanted:
                yield (f"{member} of {name} is {given!r}, not {wanted!r}: "
                       f"{candidates.get(name, {}).get('detail')}")
    for name, part in case.get("details", {}).items():
        detail = candidates.get(name, {}).get("detail") or ""
        if part not in detail:
            yield f"detail of {name} has no {part!r}: {detail!r}"


def main():
    build, path, *chosen = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        table = json.load(file)
    passed = failed = 0
    seed = int(os.environ.get("SEED") or 0)
    is_full = bool(chosen or os.environ.get("FULL"))
    for number, case in enumerate(table["cases"]):
        if chosen and case["name"] not in chosen:
            continue
        is_twice = is_full or (number + seed) % REVERSED_ONE_IN == 0
        for is_reversed in (False, True) if is_twice else (False,):
            directory = tempfile.mkdtemp(prefix="ds-accel-matrix.")
            try:
                problems = list(differences(case, run(build, table, case, is_reversed, directory)))
            finally:
                shutil.rmtree(directory)
            for problem in problems:
                print(f"FAILED: {case['name']}{' (reversed)' if is_reversed else ''}: {problem}")
            passed += not problems
            failed += bool(problems)
    print(f"matrix: {passed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
