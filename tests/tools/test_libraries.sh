#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# A program linked with libds_accel.so alone gets data; text output, further reports and recorded
# machines fail with a message that names the missing library. If the same program links or loads
# libds_accel_tools.so, it gets the output of the command. Libraries of two releases do not load
# together.
# test_libraries.sh BUILD
set -eu
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
unset DS_ACCELERATOR

cat >"$dir/ask.c" <<'END'
#include "ds_accel.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* ask REPORT FORMAT [MACHINE [LIBRARY]] */
int main(int argc, char **argv)
{
    struct ds_accel_options options = {.struct_size = sizeof(options)};
    ds_accel_t *context = NULL;
    char *text = NULL;
    int32_t status;
    int code;

    options.flags = DS_ACCEL_OPTION_NO_CACHE;
    options.machine_file = argc > 3 && argv[3][0] != '\0' ? argv[3] : NULL;
    if (argc > 4 && dlopen(argv[4], RTLD_NOW) == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 9;
    }
    status = ds_accel_create(&options, &context);
    if (status >= 0) {
        status = ds_accel_report(context, (uint32_t)atoi(argv[1]), NULL, (uint32_t)atoi(argv[2]), &text);
    }
    fputs(text != NULL ? text : "", stdout);
    if (status < 0) {
        fprintf(stderr, "%s: %s\n", ds_accel_status_name(status), ds_accel_last_error());
    }
    code = status < 0 && text == NULL;
    ds_accel_free_text(text);
    ds_accel_destroy(context);
    return code;
}
END
export LD_LIBRARY_PATH="$build/lib"
# compile PROGRAM PACKAGE: compile the program with the flags of a pkg-config package.
compile() {
    # shellcheck disable=SC2046 # flags are words
    run "${CC:-gcc}" -std=c11 -Wall -Wextra -Werror ${SAN:+-fsanitize=$SAN} -I"$build/include/ds-accel" -Wl,--as-needed \
        -o "$dir/$1" "$dir/ask.c" $(PKG_CONFIG_PATH="$build/lib/pkgconfig" pkg-config --libs "$2") -ldl
    is "$1 compiles" "0 " "$code $err"
}
compile alone ds-accel
compile both ds-accel-tools
is "one has one library" 1 "$(readelf -d "$dir/alone" | grep -c 'NEEDED.*libds_accel')"
is "one has both" 2 "$(readelf -d "$dir/both" | grep -c 'NEEDED.*libds_accel')"

# ---- data ----------------------------------------------------------------------------------------

# reports DETECT, LIST, INFO, EXPLAIN, ENV, CONFIG, CONFIG_ENV
for report in 1 2 3 4 5 6 7; do
    run "$dir/alone" $report 1
    has "report $report as JSON" "$code $out" '0 {'
done

# ---- reports of the tools library ----------------------------------------------------------------

needs="needs libds_accel_tools.so, which is not loaded: link the program with -lds_accel_tools"
# reports DOCTOR, CACHE, QUARANTINE, TOPO, BUNDLE, RECORDING, MEMORY
for report in 8 9 10 11 12 13 16; do
    run "$dir/alone" $report 1
    is "report $report without the tools" "1  DS_ACCEL_ERR_UNSUPPORTED: this report $needs" "$code $out $err"
    run "$dir/both" $report 1
    has "report $report with them" "$code $out" '0 {'
done
for report in 1 2 3 4 5 6 7; do
    run "$dir/alone" $report 0
    is "report $report as text without the tools" "1  DS_ACCEL_ERR_UNSUPPORTED: the text of a report $needs" "$code $out $err"
done
run "$dir/alone" 99 1
has "no report" "$code $err" "1 DS_ACCEL_ERR_INVALID: there is no report 99"
machine=$source/tests/machines/two-gpus.json
run "$dir/alone" 4 1 "$machine"
is "a recorded machine without the tools" "1  DS_ACCEL_ERR_UNSUPPORTED: a recorded machine $needs" "$code $out $err"
for format in 0 1; do
    # shellcheck disable=SC2046 # an option or none
    run "$build/bin/ds-accel" --machine "$machine" $([ $format = 0 ] || echo --json) explain
    command=$out
    run "$dir/both" 4 $format "$machine"
    is "explain $format, linked" "0 $command" "$code $out"
    run "$dir/alone" 4 $format "$machine" libds_accel_tools.so.0
    is "explain $format, opened" "0 $command" "$code $out"
done

# ---- another release -----------------------------------------------------------------------------

version=$(sed -n 's/^#define DS_ACCEL_VERSION "\(.*\)"$/\1/p' "$source/core/ds_accel.h")
mkdir "$dir/mixed"
cp -P "$build"/lib/libds_accel*.so* "$dir/mixed"
LC_ALL=C sed "s/DS_ACCEL_PRIVATE_$version/DS_ACCEL_PRIVATE_9.9.9/" "$build/lib/libds_accel_tools.so.$version" \
    >"$dir/mixed/libds_accel_tools.so.$version"
run env LD_LIBRARY_PATH="$dir/mixed" "$dir/both" 2 1
is "libraries of two releases" 1 "$code"
has "are refused by name" "$err" "version \`DS_ACCEL_PRIVATE_9.9.9' not found (required by $dir/mixed/libds_accel_tools.so.0)"
finish
