#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The benchmark of async_io beside fio (make bench-ops BENCH_OPS=async_io): its table, JSON and SVG,
# and what it refuses. No time is checked.  test_bench_fio.sh BUILD
set -eu
# The testbed has no benchmark; its obj is a link into the build directory.
build=$(cd -P "$1/obj" && cd .. && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"

# The results are written into a prefix of the test.
mkdir -p "$dir/prefix/bench" "$dir/files"
ln -s "$build/lib" "$dir/prefix/lib"

cat >"$dir/check.py" <<'END'
import json, sys
import xml.dom.minidom

with open(sys.argv[1] + "/io.json") as file:
    report = json.load(file)
assert report["bytes"] == 16 << 20, report["bytes"]
assert [row["transfer"] for row in report["rows"]] == ["write"] * 5 + ["read"] * 5
for row in report["rows"]:
    assert row["gb_per_s"] is None or row["gb_per_s"] > 0, row
    # What is missing is explained.
    assert row["gb_per_s"] is not None or row["note"] or row["by"] == "fio, huge pages", row
measured = [row["by"] for row in report["rows"] if row["gb_per_s"] is not None]
assert measured.count("ours, threads") == 2, measured
drawing = xml.dom.minidom.parse(sys.argv[1] + "/io.svg")
assert len(drawing.getElementsByTagName("rect")) == 11, "a background and ten bars"
print("right")
END

bench() { # DIRECTORY MIB
    run "$build/bench/io" "$dir/prefix" "$dir/torch" "$1" "$2"
}
printf '#!/bin/sh\necho 1.25\n' >"$dir/torch"
printf '#!/bin/sh\necho "missing there is no torch"\n' >"$dir/missing"
chmod +x "$dir/torch" "$dir/missing"
DEEPSPEED=
export DEEPSPEED

bench "$dir/files" 17
is "a file of 16 MiB" "0 " "$code $err"
has "the table" "$out" "16 MiB in blocks of 1 MiB, O_DIRECT, 32 in flight"
is "its files" right "$(python3 "$dir/check.py" "$dir/prefix/bench" 2>&1)"
has "DeepSpeed is left out" "$out" "DeepSpeed was not measured: DEEPSPEED=DIR names no checkout of it"
is "the file is removed" "" "$(ls "$dir/files")"

DEEPSPEED=$dir/checkout
bench "$dir/files" 16
is "DeepSpeed beside it" "0 " "$code $err"
is "DeepSpeed beside it: its files" right "$(python3 "$dir/check.py" "$dir/prefix/bench" 2>&1)"
has "DeepSpeed beside it: JSON" "$(cat "$dir/prefix/bench/io.json")" '"by": "DeepSpeed", "note": "", "gb_per_s": 1.25'
run "$build/bench/io" "$dir/prefix" "$dir/missing" "$dir/files" 16
has "torch is missing" "$out" "DeepSpeed was not measured: there is no torch"
is "torch is missing: the files" right "$(python3 "$dir/check.py" "$dir/prefix/bench" 2>&1)"
DEEPSPEED=

for size in 7 16x 1048577 -8; do
    bench "$dir/files" "$size"
    has "size $size" "$code $err" "1 bench: BENCH_IO_MIB is \"$size\"; wanted MiB from 8 to 1048576"
done
bench "$dir/none" 16
has "no directory" "$code $err" "1 bench: async_io: write: "
is "no file remains" "" "$(ls "$dir/files")"
finish
