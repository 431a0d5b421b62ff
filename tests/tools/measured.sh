#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Run a command and print a line with the time and the processor time that it took; the exit status is the command's.
#
#     measured.sh NAME COMMAND [ARGUMENT...]
#
# On a machine that others use, too, the processor time is the figure to compare. It covers all processes that the
# command waited for; where there is no /proc, it is left out.
set -u
name=$1
shift
start=$(date +%s)
code=0
"$@" || code=$?
seconds=$(($(date +%s) - start))
# Behind the program's name: user and system time of the children that were waited for, in ticks.
used=$(awk -v ticks="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); printf ", %.0f s of a processor", ($14 + $15) / ticks }' \
    "/proc/$$/stat" 2>/dev/null)
echo "-- $name: $seconds s$used"
exit "$code"
