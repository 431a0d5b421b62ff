#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The same physical device by any of its names, regardless of the vendor's order.  test_identity.sh
# BUILD
set -eu
cd "$(dirname "$0")/../.."
exec tests/sim/identity.py "$1"
