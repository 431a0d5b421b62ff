#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Checks that each of a device's names selects the same physical device, regardless of the vendor's
# order.  test_identity.sh BUILD
set -eu
cd "$(dirname "$0")/../.."
exec tests/sim/identity.py "$1"
