#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# No vendor's library is opened on a machine without that vendor's hardware: strace shows the files
# that detection opens, on simulated machines where every library could be opened.  test_opened.sh
# BUILD
set -eu
build=$(cd "$1" && pwd -P)
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$source/tests/tools/lib.sh"
sim=$source/tests/sim/ds-accel-sim
machines=$source/tests/sim/machines
export SIM_BUILD="$build"

# opened MACHINE COMMAND...: prints the vendors whose libraries ds-accel or its helper mapped or
# searched for.
opened() {
    machine=$1
    shift
    strace -f -qq -e trace=openat,open,execve -o "$dir/trace" \
        "$sim" "$machines/$machine.json" "$build/bin/ds-accel" "$@" >/dev/null 2>&1 || true
    # A library counts if the trace contains a path that ends with its soname.
    while read -r vendor soname; do
        if grep -q "/$soname\"" "$dir/trace"; then
            echo "$vendor"
        fi
    done <"$build/sim/sonames" | sort -u | paste -sd ' ' -
}

if ! strace -qq -o /dev/null true 2>/dev/null; then
    echo "opened: not run: strace is not permitted here"
    finish
    exit
fi

is "no hardware: detect" "" "$(opened none detect)"
is "no hardware: list" "" "$(opened none list)"
is "no hardware: explain" "" "$(opened none explain)"
is "no hardware: doctor" "" "$(opened none doctor)"
cut -d ' ' -f 1 "$build/sim/sonames" | sort -u >"$dir/vendors"
while read -r vendor; do
    if [ ! -f "$machines/$vendor.json" ] || [ ! -f "$build/lib/ds-accel/ds_accel_$vendor.so" ]; then
        continue
    fi
    is "hardware of $vendor: list" "$vendor" "$(opened "$vendor" list)"
    is "hardware of $vendor: $vendor alone is asked when it is forced" "$vendor" \
        "$(DS_ACCELERATOR=$vendor opened "$vendor" detect)"
done <"$dir/vendors"
is "two vendors: list" "cuda xpu" "$(opened cuda+xpu list)"
is "another vendor is forced: nothing is opened" "" "$(DS_ACCELERATOR=npu opened none detect)"

finish
