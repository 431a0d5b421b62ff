#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Check the ops. Optimizers run on every code path of this CPU, those of EMULATED also on an emulated
# AVX-512, and those of ARM on an emulated CPU: all paths of all machines compute the same bits.
#   test_ops.sh BUILD OPTIMIZERS OTHER_OPS CUDA_ARCHITECTURES EMULATED ARM
#                               SAN: what the build checks; FULL=1: all elements, more where emulated;
#                               OPS_PROGRAMS: run these only, as "cpu_adam arm_cpu_adam fork"
set -eu
build=$1
optimizers=$2
others=$3
archs=$4
emulated=$5
arm=$6
tests=$build/tests/ops
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
passed=0
failed=0
OPS_SAMPLE=1
arm_sample=2
[ -z "${FULL:-}" ] || arm_sample=1
OMP_NUM_THREADS=3 # more than some machines have CPUs
export OPS_SAMPLE OMP_NUM_THREADS

chosen() { # NAME
    case " ${OPS_PROGRAMS:-$1} " in *" $1 "*) ;; *) return 1 ;; esac
}

# checked NAME COMMAND...: run checks; keep the paths with their bits in $dir/NAME.
checked() {
    name=$1
    chosen "$name" || return 0
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

# same_bits NAME: all paths of checked NAME had the same bits.
same_bits() {
    if chosen "$1" && [ "$(sed 's/.* bits //' "$dir/$1" | sort -u | wc -l)" != 1 ]; then
        echo "$1: paths compute different bits"
        failed=$((failed + 1))
    fi
}

ran() { # NAME PATH: the path was among those of checked NAME
    if chosen "$1" && ! grep -q "path $2," "$dir/$1"; then
        echo "$1: path $2 did not run"
        failed=$((failed + 1))
    fi
}

on_arm() { # VECTOR_BYTES COMMAND...
    bytes=$1
    shift
    OPS_SAMPLE=$arm_sample OPS_SVE_BYTES=$bytes qemu-aarch64 -L /usr/aarch64-linux-gnu \
        -cpu "max,sve-max-vq=16,sve-default-vector-length=$bytes" "$@"
}

for op in $others; do
    checked "$op" "$tests/$op" "$build/lib/ds-accel/ops/$op.so"
done
for program in async_io_errors async_io_faults async_io_ring async_io_settings async_io_wakeups; do
    checked "$program" "$tests/$program" "$build/lib/ds-accel/ops/async_io.so"
done
checked ccl_comm_hosts "$tests/ccl_comm_hosts" "$build/lib/ds-accel/ops/ccl_comm.so"
checked fork "$tests/fork" "$build/lib/ds-accel/ops/utils.so" "$build/lib/ds-accel/ops/cpu_adam.so"
checked threads "$tests/threads" "$build/lib/ds-accel/ops/cpu_adam.so"
for program in "$tests/dlpack" "$tests/dlpack_cxx"; do
    [ ! -f "$program" ] || checked dlpack "$program" "$build/lib/ds-accel/ops/utils.so"
done
# A sanitizer's library must be loaded before Python.
[ -n "${SAN:-}" ] || checked header_calls "${PYTHON:-/usr/bin/python3}" "$(dirname "$0")/header_calls.py" "$build/lib/ds-accel/ops"
# The kernel of CUDA on the CPU has the same bits as the op of the CPU.
cuda=$build/lib/ds-accel/ops/cuda/fused_adam.so
[ -n "$archs" ] || cuda=
# shellcheck disable=SC2086 # no file, or one
checked cuda "$tests/cuda/fused_adam" "$tests/cuda" "$build/lib/ds-accel/ops/cpu/fused_adam.so" $cuda
OPS_CUDA_DRIVER=$tests/cuda/libcuda.so.1 checked cuda "$tests/fused_adam" \
    "$build/lib/ds-accel/ops/cpu/fused_adam.so" "$tests/cuda/fused_adam.so"
# ptxas has compiled it for every architecture, and keeps all numbers in registers.
for arch in $archs; do
    chosen cuda || continue
    log=$build/obj/ops/fused_adam/cuda/kernel.fatbin.log
    for kernel in ds_accel_fused_adam ds_accel_fused_adam_sum; do
        spills=$(sed -n "/entry function '$kernel' for 'sm_$arch'/,/bytes spill/p" "$log" |
            sed -n 's/.*, \([0-9]* bytes spill stores, [0-9]* bytes spill loads\)/\1/p')
        if [ "$spills" = "0 bytes spill stores, 0 bytes spill loads" ]; then
            passed=$((passed + 1))
        else
            echo "$kernel for sm_$arch: ${spills:-not compiled}"
            failed=$((failed + 1))
        fi
    done
done
for op in $optimizers; do
    file=$build/lib/ds-accel/ops/$op.so
    [ -f "$file" ] || file=$build/lib/ds-accel/ops/cpu/$op.so
    files=$file
    case " $emulated " in *" $op "*) files="$files $tests/emulated/$op.so" ;; esac
    # shellcheck disable=SC2086 # a list of files
    checked "$op" "$tests/$op" $files
    case " $arm " in
    *" $op "*)
        OPS_SAMPLE=$arm_sample OPS_PATH=scalar checked "arm_$op" "$tests/$op" "$file"
        checked "arm_$op" on_arm 32 "$tests/aarch64/$op" "$tests/aarch64/$op.so"
        for bytes in 16 256; do
            OPS_PATH=sve checked "arm_$op" on_arm "$bytes" "$tests/aarch64/$op" "$tests/aarch64/$op.so"
        done
        same_bits "arm_$op"
        ran "arm_$op" neon
        ran "arm_$op" sve
        ;;
    esac
    same_bits "$op"
    # shellcheck disable=SC2086 # a list of files
    [ -z "${FULL:-}" ] || checked "full_$op" env -u OPS_SAMPLE "$tests/$op" $files
    ran "$op" scalar
    [ -n "${SAN:-}" ] || [ "$(uname -m)" != x86_64 ] || ran "$op" avx512
done
echo "ops: $passed passed, $failed failed"
[ "$failed" = 0 ]
