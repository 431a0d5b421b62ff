#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Run a command of `make valgrind`; valgrind writes its errors to files in $BUILD/valgrind.
set -eu
export SIM_SCOPE="valgrind.$$" # gives this run its own simulated machine
cd "$(dirname "$0")/../.."
# shellcheck disable=SC2086 # words
set -- $1
errors="-q --log-file=$BUILD/valgrind/%p --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite"
if [ "$1" = on ]; then
    vendor=$2
    shift 2
    # shellcheck disable=SC2086 # words
    exec env DS_ACCEL_SUPA_NUMBERING=cuda SIM_BUILD="$BUILD" tests/sim/ds-accel-sim "$vendor" valgrind $errors \
        --suppressions=tests/tools/valgrind.supp --show-leak-kinds=definite "$PROGRAM" "$@" >/dev/null
fi
# shellcheck disable=SC2086 # words
exec valgrind $errors "$PROGRAM" "$@" >/dev/null
