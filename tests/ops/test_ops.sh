#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Check the optimizers on every code path, and that all paths of all machines compute the same bits.
#   test_ops.sh BUILD OP...     SAN: what the build checks; FULL=1: all elements, where not emulated
set -eu
build=$1
shift
tests=$build/tests/ops
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
passed=0
failed=0
OPS_SAMPLE=1
OMP_NUM_THREADS=3 # more than some machines have CPUs
export OPS_SAMPLE OMP_NUM_THREADS

# checked NAME COMMAND...: run checks; keep the paths with their bits in $dir/NAME.
checked() {
    name=$1
    shift
    code=0
    "$@" >"$dir/out" || code=$?
    cat "$dir/out"
    grep ' path ' "$dir/out" >>"$dir/$name" || :
    # shellcheck disable=SC2046 # two numbers
    set -- $(sed -n 's/.*: \([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$dir/out")
    passed=$((passed + ${1:-0}))
    failed=$((failed + ${2:-1}))
    [ "$code" = 0 ] || [ "${2:-1}" != 0 ] || failed=$((failed + 1))
}

on_arm() { # VECTOR_BYTES COMMAND...
    bytes=$1
    shift
    OPS_SVE_BYTES=$bytes qemu-aarch64 -L /usr/aarch64-linux-gnu \
        -cpu "max,sve-max-vq=16,sve-default-vector-length=$bytes" "$@"
}

for op in "$@"; do
    files=$build/lib/ds-accel/ops/$op.so
    [ ! -f "$tests/emulated/$op.so" ] || files="$files $tests/emulated/$op.so"
    # shellcheck disable=SC2086 # a list of files
    checked "$op" "$tests/$op" $files
    if [ -f "$tests/aarch64/$op" ]; then
        checked "$op" on_arm 32 "$tests/aarch64/$op" "$tests/aarch64/$op.so"
        for bytes in 16 256; do
            OPS_PATH=sve checked "$op" on_arm "$bytes" "$tests/aarch64/$op" "$tests/aarch64/$op.so"
        done
    fi
    if [ "$(sed 's/.* bits //' "$dir/$op" | sort -u | wc -l)" != 1 ]; then
        echo "$op: paths compute different bits"
        failed=$((failed + 1))
    fi
    [ -z "${FULL:-}" ] || checked "full_$op" env -u OPS_SAMPLE "$tests/$op" "$build/lib/ds-accel/ops/$op.so"
    # The paths that this run must have had.
    for path in scalar $([ -n "${SAN:-}" ] || [ "$(uname -m)" != x86_64 ] || echo avx512 neon sve); do
        if ! grep -q "path $path," "$dir/$op"; then
            echo "$op: path $path did not run"
            failed=$((failed + 1))
        fi
    done
done
echo "ops: $passed passed, $failed failed"
[ "$failed" = 0 ]
