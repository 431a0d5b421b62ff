#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
"""Compare the reports of `ds-accel explain --json` on each fault with the golden reports.

    golden.py [--write] SCHEMA REASONS GOLDEN DIR <CASES

Each line of CASES is NAME STATE CODE BACKEND CHOSEN KIND, tab-separated: DIR/answers/NAME.json
is the report. It must match SCHEMA; candidate BACKEND must have STATE and CODE there, and CHOSEN
must be the chosen accelerator; BACKEND and the neighbour must equal GOLDEN/NAME.json, except for
values that differ from run to run. No two cases may share a code, unless KIND is "variant", and
every code must be one of REASONS (reasons.def). --write writes the golden reports instead of
comparing them.

Prints "FAILED: ..." for each difference, and "PASSED FAILED", two numbers, at the end.
"""
import difflib
import json
import os
import re
import sys

import validate

NEIGHBOUR = "neighbour"
OUTPUT_LIMIT = 300


class Check:
    """Counts checks and prints those that fail."""

    def __init__(self):
        self.passed = 0
        self.failed = 0

    def that(self, is_right, message):
        if is_right:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED: {message}")


def steady(text, directory):
    """TEXT with placeholders for what differs between runs: directories, addresses, process ids."""
    text = text.replace(directory, "DIR")
    text = re.sub(r"\b[0-9a-f]{64}\b", "HASH", text)
    text = re.sub(r"\b0x[0-9a-f]{3,}\b", "N", text)
    text = re.sub(r"\b(pid|process|thread|owner|group|segment) \d+", r"\1 N", text)
    text = re.sub(r"\b\d+ CPUs?\b", "N CPUs", text)
    niceness = os.nice(0)
    text = text.replace(f"nice value {niceness} before, {niceness + 1} after", "nice value 0 before, 1 after")
    text = re.sub(r"\bELF machine \d+; expected \d+", "ELF machine N; expected N", text)
    return re.sub(r"(?<![-\w.])[1-9]\d{2,}(?![\w.])", "N", text)  # file modes begin with 0


def steady_output(text, directory):
    """A plugin's output with each line once, since a flood of output is cut at any point."""
    lines = list(dict.fromkeys(steady(text, directory).splitlines()))
    whole = [line for line in lines if not any(other != line and line in other for other in lines)]
    return "\n".join(whole)[:OUTPUT_LIMIT]


def shorten(candidate, directory):
    """A candidate in the form of the golden reports: one line per gate, without skipped gates."""
    answer = {}
    for key, value in candidate.items():
        if key == "elapsed_us":
            continue
        if key == "gates":
            value = [f'{gate["gate"]} {gate["result"]}: {steady(gate["evidence"], directory)}'
                     for gate in value if gate["result"] != "skipped"]
        elif key == "output":
            value = steady_output(value, directory)
        elif isinstance(value, str):
            value = steady(value, directory)
        answer[key] = value
    return answer


def golden_text(report, backend, directory):
    names = [backend] if backend == NEIGHBOUR else [backend, NEIGHBOUR]
    answer = {
        "accelerator": report["accelerator"],
        "set_method": report["set_method"],
        "candidates": [shorten(candidate, directory) for name in names
                       for candidate in report["candidates"] if candidate["name"] == name],
    }
    return json.dumps(answer, indent=2, ensure_ascii=False) + "\n"


def compare(path, given, name, check):
    try:
        with open(path, encoding="utf-8") as file:
            wanted = file.read()
    except FileNotFoundError:
        check.that(False, f"{name}: there is no {path}")
        return
    difference = "\n".join(difflib.unified_diff(wanted.splitlines(), given.splitlines(), "wanted",
                                                "given", "", "", 1, ""))
    check.that(wanted == given, f"{name}: explain says something else\n{difference}")


def judge(report, case, check):
    name, state, code, backend, chosen, _ = case
    found = [item for item in report["candidates"] if item["name"] == backend]

    check.that(report["accelerator"] == chosen,
               f'{name}: {report["accelerator"]} was chosen, not {chosen}')
    check.that(found != [], f"{name}: {backend} is not among the candidates")
    for candidate in found[-1:]:  # of two candidates with one name, the last is shadowed
        check.that((candidate["state"], candidate["reason"]) == (state, code),
                   f'{name}: wanted {state} {code}, given {candidate["state"]} '
                   f'{candidate["reason"]}: {candidate["detail"]}')
        check.that(candidate["meaning"] != "", f"{name}: no meaning")
        check.that(candidate["remedy"] != "", f"{name}: no remedy")


def judge_codes(cases, reasons, check):
    with open(reasons, encoding="utf-8") as file:
        known = re.findall(r'^REASON\([A-Z0-9_]+, "([a-z0-9_]+)"', file.read(), re.M)
    owners = {}
    for name, _, code, _, _, kind in cases:
        check.that(code in known and "unknown" not in (code, name), f"{name}: {code} is no reason")
        if kind != "variant":
            check.that(code not in owners, f"{name} and {owners.get(code)} share {code}")
            owners[code] = name


def main(arguments):
    is_writing = arguments[0] == "--write"
    schema_path, reasons, golden, directory = arguments[is_writing:]
    with open(schema_path, encoding="utf-8") as file:
        schema = validate.read(file.read())
    cases = [line.rstrip("\n").split("\t") for line in sys.stdin]
    check = Check()

    for case in cases:
        name = case[0]
        path = os.path.join(golden, f"{name}.json")
        try:
            with open(os.path.join(directory, "answers", f"{name}.json"), encoding="utf-8") as file:
                report = validate.read(file.read())
            validate.check(report, schema)
        except (validate.Problem, ValueError) as problem:
            check.that(False, f"{name}: {problem}")
            continue
        check.that(True, "")
        judge(report, case, check)
        text = golden_text(report, case[3], os.path.realpath(directory))
        if is_writing:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        else:
            compare(path, text, name, check)
    judge_codes(cases, reasons, check)
    print(check.passed, check.failed)


if __name__ == "__main__":
    main(sys.argv[1:])
