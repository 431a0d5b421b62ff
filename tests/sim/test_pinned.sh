#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Pinned memory is freed while a stream still reads or writes it, on each vendor's simulator, on
# PoCL and on the cpu. test_pinned.sh BUILD
set -eu
build=$(cd "$1" && pwd -P)
here=$(cd "$(dirname "$0")" && pwd -P)
# shellcheck source=tests/tools/lib.sh
. "$here/../tools/lib.sh"
: "${CC:=gcc}"
unset SIM_MACHINE SIM_FAIL SIM_LATENCY_US SIM_LOSE SIM_REPORT 2>/dev/null || true
export SIM_BUILD="$build" DS_ACCEL_SUPA_NUMBERING=cuda DS_ACCEL_CPU_ASYNC=true
sim=$here/ds-accel-sim

for program in pinned captures; do
    # shellcheck disable=SC2086 # words
    "$CC" -std=c11 -D_GNU_SOURCE -Wall -Wextra ${SAN:+-fsanitize=$SAN} -I"$build/include/ds-accel" \
        -o "$dir/$program" "$here/pinned/$program.c" -L"$build/lib" -lds_accel -lpthread \
        -Wl,-rpath,"$build/lib"
done

kept="read: waits, kept
read: aa
read: given out behind it
written: waits, kept
written: bb
written: given out behind it"

# hpu is not tested: Synapse has no host tasks, which could delay a copy.
for vendor in cuda rocm xpu npu mlu sdaa supa; do
    run timeout 300 "$sim" "$vendor" "$dir/pinned" "$vendor"
    is "$vendor" "0 $kept" "$code $out"
done
run timeout 300 "$sim" none "$dir/pinned" cpu
is "cpu" "0 $kept" "$code $out"

# A query of the device would break a capture. Backends without pinned memory, mlu and sdaa are not
# tested here.
for vendor in cuda rocm xpu npu supa; do
    run timeout 300 "$sim" "$vendor" "$dir/pinned" "$vendor" captures
    is "$vendor, in captures" "0 ours: 0
through the table: 0
another library's, of a stream of ours: 0
another library's, of a stream of its own: 0" "$code $out"
done
# The library's own queries of streams and events must not break a capture either, also with layer
# validate, which rejects such queries of a program.
for vendor in cuda rocm xpu npu supa mlu; do
    for layers in "" validate; do
        run timeout 300 "$sim" "$vendor" env DS_ACCEL_LAYERS="$layers" "$dir/captures" "$vendor"
        is "$vendor, questions beside captures, layers '$layers'" "0 \
memory that another stream used, allocated: 0
pinned memory, while a freed block waits: 0
pinned memory, given back: 0
a graph that was replayed, destroyed: 0
numbers, through staging memory: 0
pinned memory, freed in a second context: 0
captures broken beside a thread that frees pinned memory: 0" "$code $out"
    done
done

# let_go VENDOR COMMAND...: a wrapped stream of another library; destroying the handle ends none of
# the stream's work.
let_go() {
    vendor=$1
    run timeout 300 "$sim" "$@"
    is "$vendor, a wrapped stream that was let go" "0 let go: waits
behind it, with the device at work: given out" "$code $out"
}
let_go cuda "$dir/pinned" cuda libcuda.so.1 cuStreamCreate
let_go rocm "$dir/pinned" rocm libamdhip64.so.6 hipStreamCreateWithPriority
let_go npu "$dir/pinned" npu libascendcl.so aclrtCreateStream
let_go mlu "$dir/pinned" mlu libcnrt.so cnrtQueueCreate
let_go sdaa "$dir/pinned" sdaa libsdaart.so sdaaStreamCreateWithFlags
let_go supa "$dir/pinned" supa libsupa-runtime.so suStreamCreateWithFlags

if [ -e /etc/OpenCL/vendors/pocl.icd ]; then
    mkdir "$dir/vendors" "$dir/pocl"
    cp /etc/OpenCL/vendors/pocl.icd "$dir/vendors/"
    run env OCL_ICD_VENDORS="$dir/vendors" POCL_CACHE_DIR="$dir/pocl" DS_ACCEL_OPENCL_DEVICE_TYPE=cpu \
        timeout 300 "$sim" none "$dir/pinned" opencl
    is "opencl over PoCL" "0 $kept" "$code $out"
else
    echo "test_pinned: not tested: opencl: PoCL is not installed"
fi

finish
