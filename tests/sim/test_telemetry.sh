#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Checks every value of every vendor's sensors, in the interface's units, with the table
# telemetry.json, on simulated machines.  test_telemetry.sh BUILD [NAME...]
set -eu
cd "$(dirname "$0")/../.."
build=$1
shift
exec tests/sim/telemetry.py "$build" tests/sim/telemetry.json "$@"
