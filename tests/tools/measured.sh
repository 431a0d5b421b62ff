#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Run a command, then print a line with the wall time and the processor time that it took. The exit
# status is that of the command.
#
#     measured.sh NAME COMMAND [ARGUMENT...]
#
# On a machine that is not idle, compare the processor time. It covers all processes that the
# command waited for; it is omitted on systems without /proc.
#
# With $FAILURES, the name of a file, the output is printed when the command has ended, and if it
# fails, the lines that tell why are appended to that file (failures.sh). A command that has not
# ended after $TEST_SECONDS, if that is set, is killed (watchdog.sh).
set -u
name=$1
shift
start=$(date +%s)
code=0
failures=${FAILURES-}
unset FAILURES
if [ -n "$failures" ]; then
    output=$(mktemp "${TMPDIR:-/tmp}/ds-accel-output.XXXXXX") || exit 1
    watchdog=
    trap '[ -z "$watchdog" ] || kill "$watchdog" 2>/dev/null; rm -f "$output"' EXIT
    trap 'cat "$output"; exit 130' INT
    trap 'cat "$output"; exit 143' TERM
    if [ -n "${TEST_SECONDS-}" ]; then
        "$(dirname "$0")/watchdog.sh" $$ "$TEST_SECONDS" >>"$output" 2>&1 &
        watchdog=$!
    fi
    "$@" >>"$output" 2>&1 || code=$?
    cat "$output"
    [ $code = 0 ] || "$(dirname "$0")/failures.sh" "$name" "$output" >>"$failures"
else
    "$@" || code=$?
fi
seconds=$(($(date +%s) - start))
# The fields after the program's name include the user and system time, in ticks, of waited-for
# children.
used=$(awk -v ticks="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); printf ", %.0f s of a processor", ($14 + $15) / ticks }' \
    "/proc/$$/stat" 2>/dev/null)
echo "-- $name: $seconds s$used"
exit "$code"
