#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Checks the accelerator chosen on each machine, and the reasons against the others, with the table
# matrix.json, on simulated machines.  test_matrix.sh BUILD
set -eu
cd "$(dirname "$0")/../.."
exec tests/sim/matrix.py "$1" tests/sim/matrix.json
