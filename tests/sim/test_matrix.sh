#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Which accelerator is chosen on which machine, and why not the others: the table matrix.json, on
# simulated machines.  test_matrix.sh BUILD
set -eu
cd "$(dirname "$0")/../.."
exec tests/sim/matrix.py "$1" tests/sim/matrix.json
