#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The benchmark of ops (make bench-ops): its table, JSON and SVG, torch beside it, what it leaves out
# and what it refuses. No time is checked.  test_bench_ops.sh BUILD
set -eu
# The testbed has no benchmark; its obj is a link into the build directory.
build=$(cd -P "$1/obj" && cd .. && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
unset DS_ACCEL_OPS_ISA

# The results are written into a prefix of the test.
mkdir -p "$dir/prefix/bench"
ln -s "$build/lib" "$dir/prefix/lib"

bench() { # PYTHON OPS SIZES
    run "$build/bench/ops" "$dir/prefix" "$@"
}

cat >"$dir/check.py" <<'END'
import json, sys
import xml.dom.minidom

directory, wanted_ops, wanted_sizes = sys.argv[1], sys.argv[2].split(), sys.argv[3].split()
with open(directory + "/ops.json") as file:
    report = json.load(file)
SIZE = {"float32": 4, "float16": 2, "bfloat16": 2, None: 0}
STATES = {"cpu_adam": 2, "cpu_lion": 1, "cpu_adagrad": 1}

for row in report["rows"]:
    assert row["bytes_per_element"] == (2 * SIZE[row["parameter"]] + SIZE[row["gradient"]] + SIZE[row["copy"]]
                                        + 2 * STATES[row["op"]] * SIZE[row["state"]]), row
    figures = row["melements_per_s"], row["limit_bytes_melements_per_s"], row["limit_arithmetic_melements_per_s"]
    assert min(figures) > 0, row
    # The slower loop is the limit.
    assert row["limit"] == ("bytes" if figures[1] <= figures[2] else "arithmetic"), row
    assert abs(row["ratio"] / (min(figures[1:]) / figures[0]) - 1) < 1e-4, row
    assert row["met"] == (row["ratio"] <= row["goal"]), row
    assert abs(row["gb_per_s"] / (figures[0] * row["bytes_per_element"] / 1e3) - 1) < 1e-4, row
seen = [(row["op"], row["dtypes"], row["elements"], row["threads"]) for row in report["rows"]]
assert len(set(seen)) == len(seen), seen
assert sorted({row["op"] for row in report["rows"]}) == sorted(wanted_ops), seen
assert {row["elements"] for row in report["rows"]} == {int(float(size)) for size in wanted_sizes}, seen
assert len({row["dtypes"] for row in report["rows"]}) == 9, seen
assert any(row["stochastic"] for row in report["rows"])
assert [memory["op"] for memory in report["memory"]["peaks"]] == wanted_ops
assert all(memory["beyond_arrays_mib"] > 0 for memory in report["memory"]["peaks"]), report["memory"]

drawing = xml.dom.minidom.parse(directory + "/ops.svg")
points = [circle for circle in drawing.getElementsByTagName("circle") if circle.getElementsByTagName("title")]
assert len(points) == len(seen), len(points)
print(len(seen), report["rows"][0]["path"], report["rows"][0]["limit_path"],
      report["torch"] and [row["melements_per_s"] for row in report["torch"]["rows"]], *report["notes"])
END

# ---- what it measures ------------------------------------------------------------------------

bench /nonexistent "cpu_lion" "1000 4e3"
is "two sizes" "0 " "$code $err"
is "two sizes: its files" "18" \
    "$(python3 "$dir/check.py" "$dir/prefix/bench" cpu_lion "1000 4000" 2>&1 | cut -d ' ' -f 1)"
has "two sizes: the table" "$out" "bf16, states fp32, stochastic       4e3        1 "
has "two sizes: no torch" "$out" "torch is not measured: there is no /nonexistent"

DS_ACCEL_OPS_ISA=scalar bench /nonexistent "cpu_adagrad" 1e3
has "another path" "$(python3 "$dir/check.py" "$dir/prefix/bench" cpu_adagrad 1e3 2>&1)" \
    "9 scalar scalar None "

printf '#!/bin/sh\necho "version 9"; echo "foreach 1000 1 2.5"\n' >"$dir/torch"
printf '#!/bin/sh\necho "missing No module named torch"\n' >"$dir/missing"
chmod +x "$dir/torch" "$dir/missing"
bench "$dir/torch" cpu_adam 1e3
has "torch beside it: the table" "$out" "AdamW of torch 9, fp32, beside cpu_adam"
has "torch beside it" "$(python3 "$dir/check.py" "$dir/prefix/bench" cpu_adam 1e3 2>&1)" " [2.5]"
bench "$dir/missing" cpu_lion 1e3
has "torch is missing" "$out" "torch is not measured: No module named torch"

# ---- what it leaves out and refuses ----------------------------------------------------------

bench /nonexistent cpu_lion "1e10 1e3"
has "too large" "$out" "10000000000 elements are left out: their arrays need "
is "too large, beside another one: its files" "9" \
    "$(python3 "$dir/check.py" "$dir/prefix/bench" cpu_lion 1e3 2>&1 | cut -d ' ' -f 1)"

refuses() { # MESSAGE OPS SIZES
    message=$1
    shift
    bench /nonexistent "$@"
    is "$message: exit code" 1 "$code"
    has "$message" "$err" "$message"
}
refuses "no size is left to measure" cpu_adam 1e10
refuses "BENCH_OPS: there is no op cpu_frob" cpu_frob 1e3
for size in 10 1e3x 1e11 nan -1e6 ten; do
    refuses "BENCH_SIZES takes numbers of elements from 1000 to 1e+10 such as 1e6, not \"$size\"" \
        cpu_adam "$size"
done
refuses "BENCH_SIZES has more than 8 sizes" cpu_adam "1e3 1e3 1e3 1e3 1e3 1e3 1e3 1e3 1e3"

# ---- beside DeepSpeed --------------------------------------------------------------------------

# With a checkout it takes minutes, so only its refusals are tested here.
run make -s -C "$source" deepspeed DEEPSPEED= NO_DEPS=1
is "make deepspeed without a directory" "2 make deepspeed: DEEPSPEED=DIR is missing: DIR is a checkout of DeepSpeed" \
    "$code $(printf '%s\n' "$err" | head -1)"
if "${PYTHON:-/usr/bin/python3}" -c 'import torch' 2>/dev/null; then
    "$source/tests/ops/layout.sh" "$build" "$dir/layout" >"$dir/layout.txt"
    run "${PYTHON:-/usr/bin/python3}" -B "$source/tests/bench/deepspeed_optimizers.py" "$dir" \
        "$build/lib/ds-accel/ops" "$dir/layout.txt" "$dir/extensions" 1 1e3
    is "a directory that is no checkout: exit code" 2 "$code"
    has "a directory that is no checkout" "$err" \
        "$dir has no csrc/adam/cpu_adam.cpp: DEEPSPEED must be a checkout of DeepSpeed"
    is "a directory that is no checkout: nothing is compiled" no \
        "$([ -e "$dir/extensions" ] && echo yes || echo no)"
fi

finish
