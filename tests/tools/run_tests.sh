#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Run shell tests, JOBS at a time, in the order given; what each prints comes in one piece. Those of tests/tools see the
# testbed, all others the whole build. Fails if one of them does, after the last has ended.
#
#     run_tests.sh JOBS BUILD TESTBED TEST...
#
# Tests take the sample of $SEED, or everything with $FULL (lib.sh).
set -eu
jobs=$1
RUN_TESTS_BUILD=$2
RUN_TESTS_TESTBED=$3
shift 3
RUN_TESTS_DIR=$(mktemp -d "${TMPDIR:-/tmp}/ds-accel-tests.XXXXXX")
trap 'rm -rf "$RUN_TESTS_DIR"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
export RUN_TESTS_BUILD RUN_TESTS_TESTBED RUN_TESTS_DIR
# A make that a test starts is no part of the one that started us.
unset MAKEFLAGS MFLAGS MAKELEVEL

# shellcheck disable=SC2016 # the inner shell's own
printf '%s\n' "$@" | xargs -n 1 -P "$jobs" sh -c '
    case $1 in
    tests/tools/*) build=$RUN_TESTS_TESTBED ;;
    *) build=$RUN_TESTS_BUILD ;;
    esac
    code=0
    # Each test has simulated machines of its own: a device that serves one process is not taken by
    # the test beside it.
    export SIM_SCOPE="${RUN_TESTS_DIR##*/}.$$"
    tests/tools/measured.sh "$1" "$1" "$build" >"$RUN_TESTS_DIR/out.$$" 2>&1 || code=1
    [ $code = 0 ] || [ -n "${FULL-}" ] || echo "-- $1: SEED=${SEED:-0} repeats this sample" >>"$RUN_TESTS_DIR/out.$$"
    flock "$RUN_TESTS_DIR" cat "$RUN_TESTS_DIR/out.$$"
    exit $code' sh
