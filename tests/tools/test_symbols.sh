#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The library exports what core/ds_accel.map lists, plugins their entry, and nothing more; everything
# exported is declared in a public header, and what a header has inline is exported too.
# test_symbols.sh BUILD
set -eu
build=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"

exported() {
    nm -D --defined-only "$1" | awk '$2 != "A" {sub(/@.*/, "", $3); print $3}' | sort
}

listed=$(sed -n 's/^    \(ds_accel[a-z0-9_]*\);$/\1/p' "$source/core/ds_accel.map" | sort)
is "nm -D of the library equals the map" "$listed" "$(exported "$build/lib/libds_accel.so")"
for symbol in $listed; do
    if grep -q "\\b$symbol\\b" "$source/core/ds_accel.h" "$source/plugin-api.h"; then
        pass
    else
        fail "$symbol is exported but declared in no header"
    fi
done
# Without the inline definitions, as a tool reads the headers: every function that a header has.
echo '#include "ds_accel.h"' >"$dir/all.c"
functions() {
    gcc -std=c11 "$@" -I"$build/include/ds-accel" -fsyntax-only -aux-info "$dir/aux" "$dir/all.c"
    grep '/ds-accel/[a-z_-]*\.h:[0-9]*:N[CF]' "$dir/aux" | grep -o '\bds_accel_[a-z0-9_]* (' | tr -d ' (' | sort -u
}
is "what the headers declare is exported" "$(echo "$listed" | grep -vxE 'ds_accel__(default|layers_on)')" \
    "$(functions -DDS_ACCEL_NO_INLINE)"
is "and so is what they have inline" "" "$(functions | grep -vxF "$listed" || true)"
for plugin in "$build"/lib/ds-accel/ds_accel_*.so; do
    is "exports of $(basename "$plugin")" ds_accel_entry_v1 "$(exported "$plugin")"
done
# The mock is compiled with plugin-api.h alone, so it has a list of its own of the functions that a
# script may let fail.
filled=$(sed -n 's/^ *table->\([a-z_]*\) = .*/\1/p' "$source"/plugins/mock/*.c)
is "the mock's names are those of slots.def that it fills, in the order of the table" \
    "$(sed -n 's/^\(CALL\|PROBE\)(\([a-z_]*\),.*/\2/p' "$source/core/slots.def" | grep -xF "$filled")" \
    "$(sed -n '/ slot_names\[\] = {$/,/^};$/s/^    "\([a-z_]*\)",$/\1/p' "$source/plugins/mock/script.c")"
has "soname" "$(readelf -d "$build/lib/libds_accel.so")" "soname: [libds_accel.so.0]"
finish
