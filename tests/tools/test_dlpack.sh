#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# numpy and torch use tensors of the library, and the library uses theirs, without a copy.
# test_dlpack.sh BUILD
set -eu
build=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"

# This test does not run with a sanitizer, whose library Python would have to load first.
if [ -n "${SAN:-}" ]; then
    echo "$(basename "$0" .sh): not run: Python has no sanitizer"
    exit 0
fi
python=${PYTHON:-/usr/bin/python3}
# One process for all checks: importing torch takes seconds.
run env OMP_NUM_THREADS=1 "$python" "$source/tests/tools/dlpack.py" "$build/lib/libds_accel.so" mock cpu
passed=$((passed + $(printf '%s\n' "$out" | grep -c '^ok ' || true)))
is "every check of dlpack.py" "0 " "$code $(printf '%s\n' "$out" | grep '^FAILED' || true)$(
    printf '%s\n' "$err" | tail -5)"
for backend in mock cpu; do
    has "dlpack.py ran to its end" "$(printf '%s\n' "$out" | grep '^end: ' || true)" \
        "end: $backend with numpy torch"
done
finish
