#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Each library exports exactly the symbols that its map in core/ lists, and a plugin only its entry;
# every exported function is declared in a public header, and every inline function of a header is
# exported too. Exports of libds_accel.so that are only for libds_accel_tools.so are in no header,
# are all used, and have the version of this release.  test_symbols.sh BUILD
set -eu
build=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"

exported() {
    nm -D --defined-only "$1" | awk '$2 != "A" {sub(/@.*/, "", $3); print $3}' | sort
}

# node MAP NODE: print the symbols of one version node of a map.
node() {
    awk -v open="$2 {" '$0 == open { on = 1 } /^};$/ { on = 0 } on' "$source/core/$1.map" |
        sed -n 's/^    \(ds_accel[a-z0-9_]*\);$/\1/p' | sort
}

version=$(sed -n 's/^#define DS_ACCEL_VERSION "\(.*\)"$/\1/p' "$source/core/ds_accel.h")
public=$(node ds_accel DS_ACCEL_0)
private=$(node ds_accel "DS_ACCEL_PRIVATE_$version")
tools=$(node ds_accel_tools DS_ACCEL_TOOLS_0)
listed=$(printf '%s\n' "$public" "$tools" | sort)
is "nm -D of the library equals the map" "$(printf '%s\n' "$public" "$private" | sort)" \
    "$(exported "$build/lib/libds_accel.so")"
is "nm -D of the tools library equals its map" "$tools" "$(exported "$build/lib/libds_accel_tools.so")"
for symbol in $listed; do
    if grep -q "\\b$symbol\\b" "$source/core/ds_accel.h" "$source/core/ds_accel_tools.h" "$source/plugin-api.h"; then
        pass
    else
        fail "$symbol is exported but declared in no header"
    fi
done

# ---- between the two libraries -------------------------------------------------------------------

is "what is private is no program's" "" "$(printf '%s\n' "$private" |
    grep -wFf - "$source/core/ds_accel.h" "$source/core/ds_accel_tools.h" "$source/plugin-api.h" || true)"
is "the tools use all that is private" "$private" "$(nm -D --with-symbol-versions "$build/lib/libds_accel_tools.so" |
    sed -n "s/^ *U \(.*\)@DS_ACCEL_PRIVATE_$version\$/\1/p" | sort)"
printf 'test_symbols: %s private symbols\n' "$(printf '%s\n' "$private" | wc -l)"
is "calls within the libraries do not go through their tables" "" \
    "$(for name in libds_accel libds_accel_tools; do
        exported "$build/lib/$name.so" >"$dir/own"
        readelf -rW "$build/lib/$name.so" | awk '/JUMP_SLO/ { sub(/@.*/, "", $5); print $5 }' | grep -xFf "$dir/own" || true
    done)"
# Files that are linked into both libraries must have no variables: each copy would have its own
# value.
sanitized=${SAN:+yes}
for file in $(sed -n '/^STATELESS := /,/^$/p' "$source/Makefile" | tr -d '\134' | awk '
    { while (match($0, /addprefix [a-z]*\/,[a-z_ ]*/)) {
          split(substr($0, RSTART + 10, RLENGTH - 10), part, ","); count = split(part[2], name, " ")
          for (i = 1; i <= count; i++) if (part[1] != "core/") print part[1] name[i]
          $0 = substr($0, RSTART + RLENGTH) } }'); do
    is "$file keeps nothing" "${sanitized:-}" "${sanitized:-$(objdump -h "$build/obj/core/$file.o" |
        awk '$2 ~ /^\.(data|bss|tdata|tbss)$/ && $3 !~ /^0*$/ { print $2 }')}"
done
# List every function of the headers, without inline definitions, as a binding generator reads them.
echo '#include "ds_accel_tools.h"' >"$dir/all.c"
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
# The mock is compiled with plugin-api.h alone, so it has its own list of the functions that a test
# can make fail; both lists must agree.
filled=$(sed -n 's/^ *table->\([a-z_]*\) = .*/\1/p' "$source"/plugins/mock/*.c)
is "the mock's names are those of slots.def that it fills, in the order of the table" \
    "$(sed -n 's/^\(CALL\|PROBE\)(\([a-z_]*\),.*/\2/p' "$source/core/slots.def" | grep -xF "$filled")" \
    "$(sed -n '/ slot_names\[\] = {$/,/^};$/s/^    "\([a-z_]*\)",$/\1/p' "$source/plugins/mock/script.c")"
has "soname" "$(readelf -d "$build/lib/libds_accel.so")" "soname: [libds_accel.so.0]"
has "soname of the tools" "$(readelf -d "$build/lib/libds_accel_tools.so")" "soname: [libds_accel_tools.so.0]"
finish
