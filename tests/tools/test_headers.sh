#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The public headers compile alone, in every language version they promise, without a warning; so does
# a plugin in C and in C++.  test_headers.sh BUILD
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
finish
