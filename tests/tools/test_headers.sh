#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The public headers compile alone, in every language version they promise, without a warning; so does
# a plugin in C and in C++. Their constants are literals, which tools of other languages read.
# test_headers.sh BUILD
set -eu
build=$1
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"

cat >"$dir/plugin.c" <<'END'
#include "plugin-api.h"
static int32_t probe(const struct ds_accel_host *host, struct ds_accel_verdict *verdict,
                     struct ds_accel_error *error)
{
    (void)host;
    (void)verdict;
    (void)error;
    return DS_ACCEL_ERR_UNSUPPORTED;
}
static void fill(struct ds_accel_plugin *table)
{
    table->probe = probe;
}
DS_ACCEL_PLUGIN("header_test", "the tests", "1.0", DS_ACCEL_FEATURE_CONFIG, 0, fill);
DS_ACCEL_PLUGIN_HARDWARE("pci 1ab8:12\n" "node /dev/header_test[0-9]*\n");
END
cp "$dir/plugin.c" "$dir/plugin.cc"
for header in plugin-api.h ds_accel.h; do
    echo "#include \"$header\"" >"$dir/${header%.h}.c"
    cp "$dir/${header%.h}.c" "$dir/${header%.h}.cc"
done

# check COMPILER STANDARD FILE
check() {
    run "$1" "-std=$2" -Wall -Wextra -pedantic -Werror -Wno-unused-command-line-argument \
        -I"$build/include/ds-accel" -fPIC -c -o "$dir/out.o" "$dir/$3"
    is "$1 -std=$2 $3" "0 " "$code $err"
}

compilers="gcc:g++"
command -v clang >/dev/null 2>&1 && compilers="$compilers clang:clang++"
for pair in $compilers; do
    for standard in c99 c11; do
        for file in plugin-api.c ds_accel.c plugin.c; do
            check "${pair%:*}" $standard $file
        done
    done
    for standard in c++11 c++17; do
        for file in plugin-api.cc ds_accel.cc plugin.cc; do
            check "${pair#*:}" $standard $file
        done
    done
done

# ---- constants ----------------------------------------------------------------------------------

# A macro without parameters is a number or a text as it stands, no macro of a macro and no cast, or
# the enumerator of its own name; a family, DS_ACCEL_FLAG_*, has one type.
cat >"$dir/constants.awk" <<'END'
BEGIN {
    split("PLUGIN_API_H H EXPORT INLINE HOT NOTE_SECTION ENTRY_LINKAGE", names, " ")
    for (i in names) no_constant["DS_ACCEL_" names[i]] = 1
}
$1 != "#define" || $2 !~ /^DS_ACCEL_[A-Z0-9_]+$/ || $2 in no_constant { next }
{
    name = $2
    value = $0
    sub(/^#define [^ ]+ ?/, "", value)
    count++
}
value == "(+" name ")" { type = "enumerator" }
value ~ /^"[^"]*"$/ { type = "text" }
value ~ /^(0x[0-9a-f]+|[0-9]+)(u|ull)?$/ { type = "number" value; sub(/(0x[0-9a-f]+|[0-9]+)/, "", type) }
type == "" { print name ": no literal: " value }
{
    family = name
    if (family !~ /_MAX$/ && split(family, part, "_") > 3)
        family = part[1] "_" part[2] "_" part[3]
    if (type !~ /^number/) family = family "_" type
    if (family in types && types[family] != type) print name ": " type ", others: " types[family]
    types[family] = type
    type = ""
}
END { print count }
END
for header in plugin-api.h ds_accel.h; do
    gcc -E -dM "$build/include/ds-accel/$header" | sort >"$dir/macros"
    grep -q 'define DS_ACCEL_FLAG_GRAPHS ' "$dir/macros" || fail "no constants of $header"
    run awk -f "$dir/constants.awk" "$dir/macros"
    is "constants of $header" "$(echo "$out" | tail -n 1)" "$out"
    has "constants of $header were seen" "$(test "$(echo "$out" | tail -n 1)" -gt 170 && echo many)" many
done
finish
