#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The optimizers compute what torch's do, and what numpy does in double where torch has none. Torch's
# tensors become their arguments through DLPack.
# test_torch.sh BUILD
set -eu
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$source/tests/tools/lib.sh"

if [ -n "${SAN:-}" ]; then
    echo "test_torch: not run: Python has no sanitizer"
    exit 0
fi
if ! "${PYTHON:-/usr/bin/python3}" -c 'import torch' 2>/dev/null; then
    echo "test_torch: not tested: ${PYTHON:-/usr/bin/python3} has no torch (python3-torch)"
    exit 0
fi

run env CC="${CC:-gcc}" "$source/tests/ops/layout.sh" "$build" "$dir/layout"
is "the layout of the structures" "0 " "$code $err"
printf '%s\n' "$out" >"$dir/layout.txt"

# Python cannot call inline functions.
cat >"$dir/inline.c" <<'END'
#include <ds-accel/ops/dlpack.h>
int32_t from_dlpack(const struct ds_accel_op_dlpack *tensors,
                    struct ds_accel_optimizer_tensor *tensor_out, struct ds_accel_error *error);
int32_t from_dlpack(const struct ds_accel_op_dlpack *tensors,
                    struct ds_accel_optimizer_tensor *tensor_out, struct ds_accel_error *error)
{
    return ds_accel_optimizer_tensor_from_dlpack(tensors, tensor_out, error);
}
END
run "${CC:-gcc}" -std=c11 -Wall -Wextra -Werror -fPIC -shared -I"$build/include" \
    -o "$dir/inline.so" "$dir/inline.c"
is "the library with the inline functions" "0 " "$code $err"

# One process for all checks: importing torch takes seconds. Torch itself needs only one thread; the
# ops are told their number.
run env OMP_NUM_THREADS=3 "${PYTHON:-/usr/bin/python3}" -B "$source/tests/ops/torch_reference.py" \
    "$build/lib/ds-accel/ops" "$dir/layout.txt" "$dir/inline.so"
passed=$((passed + $(printf '%s\n' "$out" | grep -c '^ok ' || true)))
[ -z "${VERBOSE:-}" ] || printf '%s\n' "$out"
is "every comparison with torch" "0 " "$code $(printf '%s\n' "$out" | grep '^FAILED' || true)$(
    printf '%s\n' "$err" | tail -5)"
has "the comparisons ran to their end" "$out" "end: "
finish
