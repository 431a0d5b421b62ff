#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The benchmark of shm_comm (make bench-ops BENCH_OPS=shm_comm): its programs with every peer that is
# installed, its table, JSON and SVG, and what it refuses. No time is checked.
#   test_bench_comm.sh BUILD
set -eu
# The testbed has no benchmark; its obj is a link into the build directory.
build=$(cd -P "$1/obj" && cd .. && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"

# The results are written into a prefix of the test.
mkdir -p "$dir/prefix/bench"
ln -s "$build/lib" "$dir/prefix/lib"
for program in comm_ours comm_openmpi comm_mpich; do
    [ ! -f "$build/bench/$program" ] || ln -s "$build/bench/$program" "$dir/prefix/bench/"
done
cd "$source"

cat >"$dir/check.py" <<'END'
import json, os, sys
import xml.dom.minidom

directory, sizes, absent = sys.argv[1], list(map(int, sys.argv[2].split())), sys.argv[3].split(",")
with open(directory + "/comm.json") as file:
    report = json.load(file)
rows = report["rows"]
crowd = 2 * os.sysconf("SC_NPROCESSORS_ONLN")
assert [(row["ranks"], row["bytes"]) for row in rows] == [(n, size) for n in (2, crowd) for size in sizes]
for row in rows:
    for name, ns in row["ns"].items():
        is_limit = name.startswith("limit")
        assert (ns is None) == (name in absent or is_limit and row["ranks"] != 2), (row, name)
        assert ns is None or ns > 0, (row, name)
    peers = [row["ns"][name] for name in ("Open MPI", "MPICH", "gloo", "DeepSpeed") if row["ns"][name]]
    for mode in "private", "registered":
        ours, limit = row["ns"]["ours, " + mode], row["ns"]["limit, " + mode]
        assert row[mode]["faster"] == (not peers or ours < min(peers)), row
        assert row[mode]["near_limit"] == (limit is None or ours <= report["goal"] * limit * 1.0001), row
drawing = xml.dom.minidom.parse(directory + "/comm.svg")
lines = [path for path in drawing.getElementsByTagName("path") if path.getAttribute("fill") == "none"]
assert len(lines) == len(rows[0]["ns"]), len(lines)
print("right", *report["notes"])
END

no_deepspeed="DeepSpeed was not measured: DEEPSPEED=DIR names no checkout of it"
unset DEEPSPEED
absent=
[ -x /usr/bin/mpirun.openmpi ] || absent=ccl_comm
for mpi in openmpi:"Open MPI" mpich:MPICH; do
    [ -x "$build/bench/comm_${mpi%%:*}" ] && [ -x "/usr/bin/mpirun.${mpi%%:*}" ] ||
        absent="$absent${absent:+,}${mpi#*:}"
done
bench() { # PYTHON SIZES: with few calls
    run "$build/bench/comm" "$dir/prefix" "$1" "$2" 1000
}

bench /nonexistent "8 70000"
is "two sizes" "0 " "$code $err"
is "two sizes: its files" "right $no_deepspeed gloo was not measured: /nonexistent: No such file or directory" \
    "$(python3 "$dir/check.py" "$dir/prefix/bench" "8 70000" "gloo,DeepSpeed,$absent" 2>&1)"
has "two sizes: the table" "$out" "all-reduce of float32, sum, 2 ranks, "

# gloo itself, and what the driver makes of its output.
if "${PYTHON:-/usr/bin/python3}" -c 'from torch import distributed as d; d.is_gloo_available() or 1 / 0' 2>/dev/null; then
    run "${PYTHON:-/usr/bin/python3}" tests/bench/comm_torch.py gloo 2 "$dir/gloo" 1000 8 70000
    is "gloo" 0 "$code"
    is "gloo: the sizes" "version 8 70000" "$(printf '%s\n' "$out" | cut -d ' ' -f 1 | tr '\n' ' ' | sed 's/ $//')"
fi
printf '#!/bin/sh\necho "version 9"; echo "8 2500.5"\n' >"$dir/torch"
printf '#!/bin/sh\necho "missing No module named torch"\n' >"$dir/missing"
printf '#!/bin/sh\necho "version 9"; echo "9 1"\n' >"$dir/other"
chmod +x "$dir/torch" "$dir/missing" "$dir/other"
bench "$dir/torch" 8
is "gloo beside it" "0 right $no_deepspeed" "$code $(python3 "$dir/check.py" "$dir/prefix/bench" 8 "DeepSpeed,$absent" 2>&1)"
has "gloo beside it: the table" "$out" "  2.50  "
bench "$dir/missing" 8
is "torch is missing" "right $no_deepspeed gloo was not measured: No module named torch" \
    "$(python3 "$dir/check.py" "$dir/prefix/bench" 8 "gloo,DeepSpeed,$absent" 2>&1)"
DEEPSPEED=$dir/none
export DEEPSPEED
bench "$dir/torch" 8
unset DEEPSPEED
is "DeepSpeed beside it" "0 right" "$code $(python3 "$dir/check.py" "$dir/prefix/bench" 8 "$absent" 2>&1)"
if "${PYTHON:-/usr/bin/python3}" -c 'import torch.utils.cpp_extension' 2>/dev/null; then
    run env DEEPSPEED="$dir" DEEPSPEED_BUILD="$dir/extension" \
        "${PYTHON:-/usr/bin/python3}" tests/bench/comm_torch.py deepspeed 2 "$dir/meeting" 1000 8
    is "no checkout" "0 missing there is no $dir/csrc/cpu/comm/shm_interface.cpp" "$code $out"
fi
bench "$dir/other" 8
has "another size than asked for" "$code $err" '1 bench: gloo printed "9 1"'

refuses() { # MESSAGE SIZES
    bench /nonexistent "$2"
    is "$1: exit code" 1 "$code"
    has "$1" "$err" "$1"
}
for size in 3 8x 1e12 nan -8 ten; do
    refuses "BENCH_SIZES takes numbers of bytes from 4 to 1073741824 for shm_comm, not \"$size\"" "$size"
done
refuses "BENCH_SIZES has more than 16 sizes" "8 8 8 8 8 8 8 8 8 8 8 8 8 8 8 8 8"
finish
