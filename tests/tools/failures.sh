#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Print the lines of a test's output that tell why it failed, each with the lines behind it, at most
# 60 lines of at most 300 characters; if no line looks like a failure, the last 20 lines.
#
#     failures.sh NAME FILE
set -u
echo "-- failed: $1"
grep -aE -A 6 'FAILED|\[FAIL\]|\[CRASH\]|Assertion|Sanitizer|runtime error|unexpected signal|error:|^process [0-9]+: ' "$2" | head -n 60 |
    cut -c 1-300 | grep . || tail -n 20 "$2" | cut -c 1-300
