#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# One small program on every backend: the common behaviour, and the errors for misuse. This test and
# docs/backends.md list the results that differ on a backend.
#
#     test_alike.sh BUILD
set -eu
build=$(cd "$1" && pwd -P)
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$source/tests/tools/lib.sh"
: "${CC:=gcc}"
export SIM_BUILD="$build" LD_LIBRARY_PATH="$build/lib"

# compile PROGRAM: compiles a program of tests/sim/alike.
compile() {
    run "$CC" -std=c11 -Wall -Wextra -Werror ${SAN:+"-fsanitize=$SAN"} -o "$dir/$1" \
        "$source/tests/sim/alike/$1.c" -I"$build/include" -L"$build/lib" -lds_accel
    is "$1.c compiles" "0 " "$code $err"
}

cat >"$dir/streams" <<'END'
the range of priorities: DS_ACCEL_OK
a priority below the least: DS_ACCEL_ERR_INVALID
a priority above the greatest: DS_ACCEL_ERR_INVALID
unknown flags of a stream: DS_ACCEL_ERR_INVALID
END
cat >"$dir/ranges" <<'END'
a range that is ended before it began: DS_ACCEL_ERR_STATE
a range that begins: DS_ACCEL_OK
and ends: DS_ACCEL_OK
and ends again: DS_ACCEL_ERR_STATE
END
sed 's/: .*/: DS_ACCEL_ERR_UNSUPPORTED/' "$dir/ranges" >"$dir/no-ranges"
cat >"$dir/graphs" <<'END'
the stream that began a capture: DS_ACCEL_OK 1
the stream that was drawn in: DS_ACCEL_OK 1
a capture that forks and joins: DS_ACCEL_OK
the stream that was drawn in, after the end: DS_ACCEL_OK 0
an event of a capture, asked: DS_ACCEL_ERR_STATE
an event of a capture, waited for: DS_ACCEL_ERR_STATE
a launch: DS_ACCEL_OK
a wait for the launch: DS_ACCEL_OK
what the graph did: 61 62
a mark behind the join: DS_ACCEL_OK
a capture with a fork that is not joined: DS_ACCEL_ERR_STATE
the stream after that: DS_ACCEL_OK
the fork after that: DS_ACCEL_OK
a capture with work behind the join: DS_ACCEL_ERR_STATE
the end of a capture on the stream that was drawn in: DS_ACCEL_ERR_STATE
and then where it began: DS_ACCEL_ERR_STATE
a capture on a stream that was drawn in: DS_ACCEL_ERR_STATE
a capture on a stream that captures: DS_ACCEL_ERR_STATE
and then the end: DS_ACCEL_OK
a capture on the default stream: DS_ACCEL_ERR_STATE
a fork to the default stream: DS_ACCEL_ERR_STATE
the default stream after that: DS_ACCEL_OK
an event of outside, waited for in a capture: DS_ACCEL_ERR_STATE
and then its end: DS_ACCEL_ERR_STATE
an event of another capture, waited for in a capture: DS_ACCEL_ERR_STATE
the capture that waited: DS_ACCEL_OK 2
the other one: DS_ACCEL_OK 2
the end of that which waited: DS_ACCEL_ERR_STATE
the end of the other one: DS_ACCEL_ERR_STATE
the stream that waited, after that: DS_ACCEL_OK
an event of an ended capture, waited for in a capture: DS_ACCEL_ERR_STATE
and then its end: DS_ACCEL_ERR_STATE
a capture whose fork was joined and destroyed: DS_ACCEL_OK
its launch: DS_ACCEL_OK
a capture whose fork was destroyed, and not joined: DS_ACCEL_ERR_STATE
a stream that captures, waited for: DS_ACCEL_ERR_STATE
and then its end: DS_ACCEL_ERR_STATE
the end of no capture: DS_ACCEL_ERR_STATE
a capture in no mode: DS_ACCEL_ERR_INVALID
END

# but FILE LINE STATUS: prints the lines of FILE with another status for LINE, which must exist.
but() {
    has "the table has a line to change" "$(cat "$1")" "$2: "
    sed "s/^$2: .*/$2: $3/" "$1" >"$dir/changed"
    cat "$dir/changed"
}
# On xpu, the runtime's signal of an event is a node of its own graph, and so is its wait for an
# event outside the graph.
but "$dir/graphs" "a mark behind the join" DS_ACCEL_ERR_STATE >"$dir/graphs-xpu.1"
but "$dir/graphs-xpu.1" "an event of outside, waited for in a capture" DS_ACCEL_OK >"$dir/graphs-xpu.2"
# After an attempt to merge two captures, the other capture stays active until its end.
but "$dir/graphs-xpu.2" "the other one" "DS_ACCEL_OK 1" >"$dir/graphs-xpu.3"
awk '/^and then its end/ && !seen++ { sub(/ERR_STATE/, "OK") } { print }' "$dir/graphs-xpu.3" \
    >"$dir/graphs-xpu"

# On rocm, HIP would ignore these two waits: the plugin refuses them, and the captures go on.
awk '/^and then its end/ && seen++ < 2 { sub(/ERR_STATE/, "OK") } { print }' "$dir/graphs" \
    >"$dir/graphs-rocm"

# alike NAME "TABLE..." COMMAND...: checks that the program prints the lines of the tables.
alike() {
    name=$1
    wanted=
    for table in $2; do
        wanted="$wanted$(cat "$dir/$table")
"
    done
    shift 2
    run "$@" "$dir/alike"
    is "$name ends well" "0 " "$code $err"
    is "$name answers as all do" "$wanted" "$out
"
}

compile alike
alike mock "streams ranges graphs" env DS_ACCELERATOR=mock
alike cpu "streams no-ranges graphs" env DS_ACCELERATOR=cpu
alike "cpu with queues" "streams no-ranges graphs" env DS_ACCELERATOR=cpu DS_ACCEL_CPU_ASYNC=true
for backend in cuda npu mlu; do
    alike "$backend" "streams ranges graphs" \
        "$source/tests/sim/ds-accel-sim" "$backend" env DS_ACCELERATOR="$backend"
done
alike supa "streams ranges graphs" \
    "$source/tests/sim/ds-accel-sim" supa env DS_ACCELERATOR=supa DS_ACCEL_SUPA_NUMBERING=cuda
alike rocm "streams ranges graphs-rocm" "$source/tests/sim/ds-accel-sim" rocm env DS_ACCELERATOR=rocm
alike xpu "streams ranges graphs-xpu" "$source/tests/sim/ds-accel-sim" xpu env DS_ACCELERATOR=xpu
alike sdaa "streams ranges" "$source/tests/sim/ds-accel-sim" sdaa env DS_ACCELERATOR=sdaa
alike hpu "streams no-ranges" "$source/tests/sim/ds-accel-sim" hpu env DS_ACCELERATOR=hpu
if [ -e /etc/OpenCL/vendors/pocl.icd ] && [ -z "${SAN:-}" ]; then
    mkdir "$dir/vendors" "$dir/pocl"
    cp /etc/OpenCL/vendors/pocl.icd "$dir/vendors/"
    alike opencl "streams no-ranges graphs" env OCL_ICD_VENDORS="$dir/vendors" \
        POCL_CACHE_DIR="$dir/pocl" DS_ACCEL_OPENCL_DEVICE_TYPE=cpu DS_ACCELERATOR=opencl
else
    echo "test_alike: opencl: not tested: PoCL is not here, or a sanitizer is"
fi

# ---- calls beside a capture, or while it begins, break it in no mode and from no thread -----------

for backend in cuda rocm npu mlu supa xpu; do
    run env DS_ACCEL_SUPA_NUMBERING=cuda timeout 60 "$source/tests/sim/ds-accel-sim" "$backend" \
        "$build/sim/drive" "$build/lib/ds-accel/ds_accel_$backend.so" beside
    is "calls beside a capture on $backend" "0 " "$code $(printf '%s' "$out" | grep -v '^beside:')"
    run env DS_ACCEL_SUPA_NUMBERING=cuda timeout 120 "$source/tests/sim/ds-accel-sim" "$backend" \
        "$build/sim/drive" "$build/lib/ds-accel/ds_accel_$backend.so" raced
    is "captures that begin beside waits on $backend" "0 " "$code $(printf '%s' "$out" | grep -v '^raced:')"
done

# ---- misuse that would break the runtime, rejected by layer validate -----------------------------

compile misused
for backend in hpu cuda; do
    run "$source/tests/sim/ds-accel-sim" "$backend" \
        env DS_ACCELERATOR="$backend" DS_ACCEL_LAYERS=validate "$dir/misused"
    is "misuse on $backend is refused" "0 " "$code $err"
    has "$backend: host memory said to be the device's" "$out" \
        "pinned memory, copied as the device's: DS_ACCEL_ERR_INVALID"
    has "$backend: device memory said to be the host's" "$out" \
        "device memory, copied as the host's: DS_ACCEL_ERR_INVALID"
    has "$backend: another device's event" "$out" \
        "an event on another device's stream: DS_ACCEL_ERR_INVALID"
    has "$backend: it works after that" "$out" "a copy the right way: DS_ACCEL_OK"
done
has "cuda: another thread beside a global capture" "$out" \
    "the device, waited for by another thread: DS_ACCEL_ERR_STATE"
has "cuda: an event that another thread asks" "$out" \
    "an event, asked by another thread: DS_ACCEL_OK"
has "cuda: the capture is whole" "$out" "the capture: DS_ACCEL_OK"

finish
