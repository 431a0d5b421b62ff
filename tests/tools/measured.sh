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
set -u
name=$1
shift
start=$(date +%s)
code=0
"$@" || code=$?
seconds=$(($(date +%s) - start))
# The fields after the program's name include the user and system time, in ticks, of waited-for
# children.
used=$(awk -v ticks="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); printf ", %.0f s of a processor", ($14 + $15) / ticks }' \
    "/proc/$$/stat" 2>/dev/null)
echo "-- $name: $seconds s$used"
exit "$code"
