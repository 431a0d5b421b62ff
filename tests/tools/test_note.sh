#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# ds-accel note writes the same section as DS_ACCEL_PLUGIN() and DS_ACCEL_PLUGIN_HARDWARE(), byte
# for byte, as assembler and as C.  test_note.sh BUILD
set -eu
build=$1
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
program=$build/bin/ds-accel

# macro NAME VENDOR VERSION REQUIRED OPTIONAL [HARDWARE]: compile the section from the header's
# macro.
macro() {
    cat >"$dir/macro.c" <<END
#include "plugin-api.h"
static void fill(struct ds_accel_plugin *table)
{
    (void)table;
}
DS_ACCEL_PLUGIN("$1", "$2", "$3", $4, $5, fill);
${6:+DS_ACCEL_PLUGIN_HARDWARE($6);}
END
    gcc -I"$build/include/ds-accel" -fPIC -c -o "$dir/macro.o" "$dir/macro.c"
    objcopy -O binary --only-section=.note.ds_accel "$dir/macro.o" "$dir/macro.bin"
}

# same LANGUAGE COMPILER SUFFIX ARGUMENT...: check that the output of the command compiles to the
# same section.
same() {
    language=$1
    compiler=$2
    suffix=$3
    shift 3
    run "$program" note "$@" language="$language"
    is "note $* as $language" "0 " "$code $err"
    printf '%s\n' "$out" >"$dir/note.$suffix"
    run "$compiler" -Wall -Wextra -Werror -c -o "$dir/note.o" "$dir/note.$suffix"
    is "$compiler takes it" "0 " "$code $err"
    rm -f "$dir/note.bin"
    objcopy -O binary --only-section=.note.ds_accel "$dir/note.o" "$dir/note.bin"
    is "note $* as $language: the macro's bytes" same "$(cmp -s "$dir/macro.bin" "$dir/note.bin" && echo same)"
    # The object must not require an executable stack, and the linker must recognize the section as
    # a note.
    has "$language: a note" "$(readelf -SW "$dir/note.o" | tr -s ' ')" ".note.ds_accel NOTE"
    has "$language: stacks" "$(readelf -SW "$dir/note.o")" ".note.GNU-stack"
}

compilers=gcc
command -v clang >/dev/null 2>&1 && compilers="$compilers clang"

# both ARGUMENT...: check the output as assembler and as C.
both() {
    for compiler in $compilers; do
        same assembler "$compiler" s "$@"
        same c "$compiler" c "$@"
    done
}

macro example "Example Vendor" 1.0 0 0
both example "Example Vendor" 1.0
macro a.b_2 "Wörks & */ Söns" "3.2.1-rc1 %s" 0x8000000000000005ull \
    "DS_ACCEL_FEATURE_DEMAND_ONLY | DS_ACCEL_FEATURE_TRACE"
both a.b_2 "Wörks & */ Söns" "3.2.1-rc1 %s" required=topology,config,0x8000000000000000 optional=trace,demand_only
for lines in 'pci 1ab8' 'pci 1ab8:1' 'pci 1ab8:12' 'pci 1ab8:120'; do # each length of padding
    macro example v 1 0 0 "\"$lines\\n\""
    both example v 1 "hardware=$lines"
done
macro example v 1 0 0 '"pci 1ab8:12\n" "node /dev/example[0-9]*\n"'
both example v 1 hardware="pci 1ab8:12" hardware="node /dev/example[0-9]*"
run "$program" note example v 1 -o "$dir/file.s"
is "to a file" "0 " "$code $out$err"
is "to a file" "$("$program" note example v 1)" "$(cat "$dir/file.s")"
macro example v 1 0 0
"$program" note example v 1 language=c table_size=872 >"$dir/note.c"
gcc -c -o "$dir/note.o" "$dir/note.c"
objcopy -O binary --only-section=.note.ds_accel "$dir/note.o" "$dir/note.bin"
is "the size of the table" 872 "$(od -An -tu4 -j 48 -N 4 "$dir/note.bin" | tr -d ' ')"

# ---- sanitizers ----------------------------------------------------------------------------------

# Notes are adjacent in the section; a sanitizer would insert gaps between variables.
macro example v 1 0 0 '"pci 1ab8:12\n" "node /dev/example[0-9]*\n"'
run "$program" note example v 1 language=c hardware="pci 1ab8:12" hardware="node /dev/example[0-9]*" -o "$dir/note.c"
is "note" "0 " "$code $err"
for compiler in $compilers; do
    for file in macro.c note.c; do
        run "$compiler" -Wall -Wextra -Werror -fsanitize=address,undefined -I"$build/include/ds-accel" -fPIC -c \
            -o "$dir/sanitized.o" "$dir/$file"
        is "$compiler -fsanitize=address $file" "0 " "$code $err"
        rm -f "$dir/sanitized.bin"
        objcopy -O binary --only-section=.note.ds_accel "$dir/sanitized.o" "$dir/sanitized.bin"
        is "$compiler -fsanitize=address $file: the same bytes" same \
            "$(cmp -s "$dir/macro.bin" "$dir/sanitized.bin" && echo same)"
    done
done

# ---- invalid notes -------------------------------------------------------------------------------

# refuses TEXT ARGUMENT...: check for exit code 2 and TEXT.
refuses() {
    wanted=$1
    shift
    run "$program" note "$@"
    is "note $*" "2 " "$code $out"
    has "note $*" "$err" "$wanted"
}
refuses "note takes" example vendor
refuses '"Example" is not a plugin name' Example v 1
refuses 'is not a plugin name' 1a v 1
refuses 'is not a plugin name' abcdefghijklmnopqrstuvwxyz012345 v 1
refuses 'is not a vendor' example "" 1
refuses 'is not a vendor' example "$(printf 'a\033[31m')" 1
refuses 'is not a vendor' example "$(printf '%064d' 0)" 1
refuses 'is not a version' example v "$(printf '%032d' 0)"
refuses '"required=sound"' example v 1 required=sound
refuses '"required="' example v 1 required=
refuses '"optional=1,"' example v 1 optional=1,
refuses '"optional=-1"' example v 1 optional=-1
refuses '"hardware=usb 1"' example v 1 "hardware=usb 1"
refuses 'cannot use' example v 1 "hardware=pci 1
pci 2"
refuses 'cannot use' example v 1 "hardware=node /$(printf '%04090d' 0)"
refuses '"language=go"' example v 1 language=go
refuses '"table_size=x"' example v 1 table_size=x
refuses '"require=0"' example v 1 require=0
refuses '"="' example v 1 =
refuses '"c"' example v 1 c
refuses 'not JSON' example v 1 --json
finish
