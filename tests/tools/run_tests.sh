#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Run shell tests in the order given, JOBS at a time; the output of each is printed in one piece.
# Tests of tests/tools get TESTBED as their build directory, all others BUILD. Runs every test, and
# fails if one failed.
#
#     run_tests.sh JOBS BUILD TESTBED TEST...
#
# With $RUN_TESTS_FAILURES, what failed is also appended to that file (measured.sh).
#
# Tests run the sample of $SEED, or all cases with $FULL (lib.sh).
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
# A make started by a test must not join the jobserver of the make that runs the tests.
unset MAKEFLAGS MFLAGS MAKELEVEL

# shellcheck disable=SC2016 # expanded by the inner shell
printf '%s\n' "$@" | xargs -n 1 -P "$jobs" sh -c '
    case $1 in
    tests/tools/*) build=$RUN_TESTS_TESTBED ;;
    *)
        build=$RUN_TESTS_BUILD
        # The leak checker crashes on libraries that are loaded late and have thread-local storage,
        # as plugins and simulators do. Instead, the simulators report what a plugin leaves
        # allocated, and valgrind finds leaks too.
        [ -z "${SAN-}" ] || export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
        ;;
    esac
    code=0
    # Each test has its own simulated machines, so that one test cannot make a device that admits a
    # single process busy for another test.
    export SIM_SCOPE="${RUN_TESTS_DIR##*/}.$$"
    FAILURES=${RUN_TESTS_FAILURES-} tests/tools/measured.sh "$1" "$1" "$build" >"$RUN_TESTS_DIR/out.$$" 2>&1 || code=1
    [ $code = 0 ] || [ -n "${FULL-}" ] || echo "-- $1: SEED=${SEED:-0} repeats this sample" >>"$RUN_TESTS_DIR/out.$$"
    flock "$RUN_TESTS_DIR" cat "$RUN_TESTS_DIR/out.$$"
    exit $code' sh
