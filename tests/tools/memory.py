#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
"""Compare the files that test_memory.sh wrote from each snapshot with the snapshot.

    memory.py DIRECTORY NAME...

DIRECTORY has NAME.json (the snapshot), and the files made from it: NAME.out.json, NAME.svg,
NAME.pickle and NAME.segments.pickle.
Prints a line for each check that fails, and "PASSED n" at the end.
"""
import importlib.util
import json
import os
import pickle
import pickletools
import re
import sys
import xml.etree.ElementTree

SVG = "{http://www.w3.org/2000/svg}"
# All opcodes that the viewer in the browser supports (pytorch, torch/utils/viz/MemoryViz.js).
BROWSER_OPCODES = set(
    "APPENDS BINGET BININT BININT1 BININT2 EMPTY_DICT EMPTY_LIST FRAME LONG1 LONG_BINGET MARK MEMOIZE PROTO "
    "SETITEMS SHORT_BINUNICODE STOP TUPLE2 APPEND NEWFALSE BINPUT BINUNICODE EMPTY_TUPLE NEWTRUE NONE BINFLOAT "
    "TUPLE TUPLE1 TUPLE3 LONG_BINPUT LIST DICT SETITEM".split())

passed = 0


def check(name, holds, detail=""):
    global passed
    if holds:
        passed += 1
    else:
        print(f"FAILED: {name}" + (f"\n    {str(detail)[:2000]}" if detail != "" else ""))


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def is_part(part, whole):
    """Whether WHOLE contains every key and value of PART."""
    if isinstance(part, dict):
        return isinstance(whole, dict) and all(k in whole and is_part(v, whole[k]) for k, v in part.items())
    if isinstance(part, list):
        return isinstance(whole, list) and len(part) == len(whole) and all(map(is_part, part, whole))
    return part == whole and type(part) is type(whole)


def check_json(name, given, tree):
    given = {"segments": given} if isinstance(given, list) else given
    known = {key: value for key, value in given.items() if key in tree}
    if "external_annotations" in given:  # skip keys that only torch writes, also in events
        for event in known["device_traces"][0]:
            event.pop("user_metadata")
    check(f"{name}: JSON holds all that was in the file", is_part(known, tree))


# ---- the picture ---------------------------------------------------------------------------------

def check_svg(name, tree, path):
    root = xml.etree.ElementTree.parse(path).getroot()
    check(f"{name}: the picture has a title and a description",
          [root.find(SVG + part).get("id") for part in ("title", "desc")] == root.get("aria-labelledby").split())
    check(f"{name}: is an image for screen readers", root.get("role") == "img")
    check(f"{name}: is of bounded size", os.path.getsize(path) < 8 << 20, os.path.getsize(path))
    rows = [group for group in root.findall(SVG + "g") if group.find(f"{SVG}rect[@class='o']") is not None]
    segments = sorted(tree["segments"], key=lambda s: -s["total_size"])[:256]
    check(f"{name}: has a row for each segment", len(rows) == min(len(tree["segments"]), 256), len(rows))
    segments.sort(key=lambda s: (s["device"], s["address"]))
    largest = max((s["total_size"] for s in segments), default=0)
    for row, segment in zip(rows, segments):
        frame = row.find(f"{SVG}rect[@class='o']")
        blocks = [rect for rect in row.findall(SVG + "rect") if rect is not frame]
        scale = largest / 960.0
        sums = {}
        for rect in blocks:
            kind = rect.get("class").split()
            kind = "m" if kind == ["m"] else "f" if kind == ["f"] else "p" if "p" in kind else "a"
            sums[kind] = sums.get(kind, 0) + float(rect.get("width")) * scale
        slack = scale * (0.0006 * len(blocks) + 0.001)
        where = f"{name}: segment {segment['address']:#x}"
        check(f"{where}: the areas add up", abs(sum(sums.values()) - segment["total_size"]) <= slack, sums)
        check(f"{where}: so does its frame", abs(float(frame.get("width")) * scale - segment["total_size"]) <= slack)
        if "m" not in sums:
            for kind, state in (("a", "active_allocated"), ("p", "active_pending_free"), ("f", "inactive")):
                wanted = sum(b["size"] for b in segment["blocks"] if b["state"] == state)
                check(f"{where}: {state}", abs(sums.get(kind, 0) - wanted) <= slack, (sums, wanted))
        ends = [(float(r.get("x")), float(r.get("x")) + float(r.get("width"))) for r in blocks]
        check(f"{where}: no gap, no overlap",
              all(abs(a[1] - b[0]) < 0.002 for a, b in zip(ends, ends[1:])) and ends[0][0] == float(frame.get("x")))
        counted = 0
        for rect in blocks:
            many = re.match(r"(\d+) blocks, ", rect.find(SVG + "title").text)
            counted += int(many[1]) if many else 1
        check(f"{where}: every block is drawn or counted", counted == len(segment["blocks"]), counted)
    rest = len(tree["segments"]) - len(rows)
    texts = [text.text for text in root.iter(SVG + "text")]
    check(f"{name}: says how many are not drawn",
          (rest > 0) == any(text.startswith(f"and {rest} smaller") for text in texts))
    lines = [group for group in root.findall(SVG + "g") if group.find(SVG + "path") is not None]
    traced = [trace for trace in tree["device_traces"] if trace]
    check(f"{name}: has a timeline for each trace", len(lines) == len(traced), len(lines))
    return rows, texts


def check_small(tree, rows, texts):
    titles = [rect.find(SVG + "title").text for row in rows for rect in row.findall(SVG + "rect")]
    check("small: tooltips have address, size, requested, stream and frame",
          "0x7f0010000000: 12 MiB allocated, 12 MiB requested, stream 94\nforward (train.c:7)" in titles, titles)
    check("small: what waits for a stream is said", any("still in use by a stream" in t for t in titles))
    check("small: names are escaped once", not any("&amp;" in t or "&lt;" in t for t in titles))
    check("small: the legend has both streams", "stream 0" in texts and "stream 94" in texts, texts)


def check_traces(texts):
    # 20 MiB in layers, half of them freed, then 2 MiB more; two segments of 20 MiB.
    check("traces: the peaks are those of the events",
          any(t.startswith("device 0 over 45 events: at most 20 MiB allocated, 40 MiB reserved") for t in texts), texts)


# ---- the pickles ---------------------------------------------------------------------------------

def check_pickle(name, tree, directory):
    for path, wanted in ((f"{directory}/{name}.pickle", tree), (f"{directory}/{name}.segments.pickle", tree["segments"])):
        with open(path, "rb") as file:
            data = file.read()
        check(f"{path}: Python reads what the JSON has", pickle.loads(data) == wanted)
        used = {opcode.name for opcode, _, _ in pickletools.genops(data)}
        check(f"{path}: only opcodes that the browser's viewer has", used <= BROWSER_OPCODES, used - BROWSER_OPCODES)


def viewer():
    """Debian's torch/cuda/_memory_viz.py alone, which imports nothing of torch."""
    for directory in ["/usr/lib/python3/dist-packages", *sys.path]:
        path = os.path.join(directory, "torch/cuda/_memory_viz.py")
        if os.path.exists(path):
            spec = importlib.util.spec_from_file_location("memory_viz", path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    return None


def totals(lines):
    """Bytes by state in the lines of a flame graph, "frame;frame;... bytes"."""
    sums = {}
    for line in lines.splitlines():
        stack, size = line.rsplit(" ", 1)
        state = next(part for part in stack.split(";") if part in
                     ("active_allocated", "active_pending_free", "inactive"))
        sums[state] = sums.get(state, 0) + int(size)
    return sums


def check_viewer(module, name, tree, directory):
    with open(f"{directory}/{name}.segments.pickle", "rb") as file:
        segments = pickle.load(file)
    with open(f"{directory}/{name}.pickle", "rb") as file:
        whole = pickle.load(file)
    takes_dict = hasattr(module, "segsum")  # torch 2.0 and newer
    data = whole if takes_dict else segments
    wanted = {}
    for segment in tree["segments"]:
        for block in segment["blocks"]:
            wanted[block["state"]] = wanted.get(block["state"], 0) + block["size"]
    lines = module.segments(data, format_flamegraph=str)
    check(f"{name}: the viewer draws every byte of the segments", totals(lines) == wanted, lines)
    check(f"{name}: and by streams", totals(module.memory(data, format_flamegraph=str)) == wanted)
    if name == "small":
        check("small: the viewer has our frames", ";main;" not in lines and
              "active_allocated;:0:main;train.c:7:forward 12582912" in lines, lines)
    if takes_dict:
        check(f"{name}: segsum", f"segments: {len(segments)}" in module.segsum(whole))
        check(f"{name}: trace", "TOTAL MEM" in module.trace(whole) or not any(whole["device_traces"]))
    else:
        sums = module.stats(segments)
        check(f"{name}: the viewer's sums", sums.pop("segments") == len(segments) and
              sums.pop("total_size").value == sum(wanted.values()) and
              {state: size.value for state, size in sums.items()} == wanted, sums)
    moved = [dict(segment, address=segment["address"] + 1) for segment in segments]
    stdout = sys.stdout
    try:
        with open(os.devnull, "w", encoding="utf-8") as sys.stdout:
            lines = module.compare(segments, moved, format_flamegraph=str)
    finally:
        sys.stdout = stdout
    check(f"{name}: the viewer compares", totals(lines) == {s: 2 * size for s, size in wanted.items()}, lines)


def main(arguments):
    directory = arguments[0]
    module = viewer()
    if module is None:
        print("NOTE: torch is not installed: its memory viewer is not tried")
    for name in arguments[1:]:
        tree = load(f"{directory}/{name}.out.json")
        check_json(name, load(f"{directory}/{name}.json"), tree)
        rows, texts = check_svg(name, tree, f"{directory}/{name}.svg")
        if name == "small":
            check_small(tree, rows, texts)
        if name == "traces":
            check_traces(texts)
        check_pickle(name, tree, directory)
        if module is not None:
            check_viewer(module, name, tree, directory)
    print(f"PASSED {passed}")


if __name__ == "__main__":
    main(sys.argv[1:])
