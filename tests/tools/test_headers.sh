#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The public headers compile alone and without a warning in every supported language version; so do
# plugins in C and in C++. Constants of the headers are literals, which tools of other languages can
# read.
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
ops=$(cd "$build/include/ds-accel/ops" && printf '%s\n' *.h | sed 's/\.h$//')
has "headers of ops" "$ops" cpu_adam
for op in $ops; do
    echo "#include \"ops/$op.h\"" >"$dir/ops_$op.c"
    cp "$dir/ops_$op.c" "$dir/ops_$op.cc"
done
for header in plugin-api.h ds_accel.h ds_accel_tools.h; do
    echo "#include \"$header\"" >"$dir/${header%.h}.c"
    cp "$dir/${header%.h}.c" "$dir/${header%.h}.cc"
done

cat >"$dir/typed.c" <<'END'
#define DS_ACCEL_TYPED_HANDLES
#include "ds_accel.h"
static int32_t get(ds_accel_plugin_device_t *device, uint32_t kind,
                   const ds_accel_plugin_object_t *object, uint64_t *native_out,
                   uint64_t *offset_bytes_out, struct ds_accel_error *error)
{
    (void)device;
    (void)offset_bytes_out;
    (void)error;
    *native_out = kind == DS_ACCEL_NATIVE_STREAM && ds_accel_object_as_stream(object) ? 1 : 0;
    return DS_ACCEL_OK;
}
int32_t use(struct ds_accel_plugin *table, ds_accel_plugin_device_t *device,
            ds_accel_plugin_stream_t *stream, struct ds_accel_error *error);
int32_t use(struct ds_accel_plugin *table, ds_accel_plugin_device_t *device,
            ds_accel_plugin_stream_t *stream, struct ds_accel_error *error)
{
    uint64_t native;
    uint64_t offset;
    table->native_get = get;
    return table->native_get(device, DS_ACCEL_NATIVE_STREAM, ds_accel_object_of_stream(stream),
                             &native, &offset, error);
}
END
cp "$dir/typed.c" "$dir/typed.cc"
printf '#define DS_ACCEL_NO_INLINE\n#include "ds_accel.h"\n' | tee "$dir/declared.c" >"$dir/declared.cc"

warnings="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wcast-qual -Wundef
    -Wredundant-decls -Wwrite-strings -Wmissing-declarations"
warnings_c="-Wmissing-prototypes -Wstrict-prototypes -Wc++-compat"
warnings_cc="-Wold-style-cast -Wzero-as-null-pointer-constant -Wextra-semi -Wnon-virtual-dtor"

# check COMPILER STANDARD FILE WARNING...: compile FILE; the headers must cause no warning.
check() {
    compiler=$1
    standard=$2
    file=$3
    shift 3
    # shellcheck disable=SC2086 # warnings are words
    run "$compiler" "-std=$standard" $warnings "$@" -Werror -Wno-unused-command-line-argument \
        -I"$build/include/ds-accel" -fPIC -c -o "$dir/out.o" "$dir/$file"
    is "$compiler -std=$standard $file" "0 " "$code $err"
}

# languages C C++ WARNING...: compile every header and plugin in every language version with these
# two compilers; the warnings are for C++ only.
languages() {
    cc=$1
    cxx=$2
    shift 2
    for standard in c99 c11 c17 c2x; do
        for file in plugin-api.c ds_accel.c ds_accel_tools.c plugin.c typed.c declared.c \
            $(for op in $ops; do echo "ops_$op.c"; done); do
            # shellcheck disable=SC2086
            check "$cc" $standard $file $warnings_c
        done
    done
    for standard in c++11 c++17 c++20 c++2b; do
        for file in plugin-api.cc ds_accel.cc ds_accel_tools.cc plugin.cc typed.cc declared.cc \
            $(for op in $ops; do echo "ops_$op.cc"; done); do
            # shellcheck disable=SC2086
            check "$cxx" $standard $file $warnings_cc "$@"
        done
    done
}
languages gcc g++ -Wuseless-cast -Wduplicated-cond -Wlogical-op
command -v clang >/dev/null 2>&1 && languages clang clang++

# Passing a handle of the wrong kind fails to compile only with DS_ACCEL_TYPED_HANDLES.
sed 's/ds_accel_object_of_stream(stream)/stream/' "$dir/typed.c" >"$dir/mixed.c"
run gcc -std=c11 -Werror -I"$build/include/ds-accel" -fsyntax-only "$dir/mixed.c"
is "typed: a stream is no object" 1 "$code"
has "typed: a stream is no object" "$err" "incompatible-pointer-types"
sed -e /TYPED_HANDLES/d -e 's/const ds_accel_plugin_object_t/const void/' -e 's/_as_stream(object)/_as/; s/ds_accel_object_as/object/' \
    "$dir/mixed.c" >"$dir/plain.c"
run gcc -std=c11 -Werror -I"$build/include/ds-accel" -fsyntax-only "$dir/plain.c"
is "plain: a stream is one" "0 " "$code $err"

# A plugin compiled with typed handles or inline functions has the same ABI.
if command -v abidiff >/dev/null 2>&1; then
    for option in -DDS_ACCEL_PLAIN -DDS_ACCEL_TYPED_HANDLES; do
        gcc -std=c11 -g $option -I"$build/include/ds-accel" -fPIC -shared -o "$dir/lib$option.so" \
            "$dir/plugin.c"
    done
    run abidiff "$dir/lib-DDS_ACCEL_PLAIN.so" "$dir/lib-DDS_ACCEL_TYPED_HANDLES.so"
    is "typed: no incompatible change: $out" 0 "$((code & 8))"
fi

# ---- comments ------------------------------------------------------------------------------------

# Every function that one side of the ABI provides for the other has a comment with its contract.
cat >"$dir/slots.awk" <<'AWK'
/^struct ds_accel_(plugin|host|ext_[a-z]+) \{/ { inside = 1 }
/^}/ { inside = 0 }
inside && match($0, /^    [a-z0-9_ ]*[ *]+\(\*[a-z_]+\)\(/) {
    slots++
    if (previous !~ /\*\/$/ || previous ~ /^    \/\* --/ || previous ~ /-- \*\/$/) print "no comment: " $0
}
{ previous = $0 }
END { print slots }
AWK
run awk -f "$dir/slots.awk" "$build/include/ds-accel/plugin-api.h"
is "a comment above every slot" "$(echo "$out" | tail -n 1)" "$out"
has "there are slots" "$(test "$(echo "$out" | tail -n 1)" -gt 110 && echo many)" many
run awk '/^struct ds_accel_[a-z_]+ \{/ && previous !~ /\*\/$/ { print "no comment: " $0 } { previous = $0 }' \
    "$build/include/ds-accel/plugin-api.h"
is "a comment above every struct" "0 " "$code $out"

# ---- constants -----------------------------------------------------------------------------------

# A macro without parameters is a number or a string literal, neither another macro nor a cast, or
# is the enumerator of the same name. All constants of a family, such as DS_ACCEL_FLAG_*, have one
# type.
cat >"$dir/constants.awk" <<'AWK'
BEGIN {
    split("PLUGIN_API_H H EXPORT INLINE HOT NOTE_SECTION ENTRY_LINKAGE", names, " ")
    for (i in names) no_constant["DS_ACCEL_" names[i]] = 1
}
$1 != "#define" || $2 !~ /^DS_ACCEL_[A-Z0-9_]+$/ || $2 ~ /_$/ || $2 in no_constant { next }
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
AWK
for header in plugin-api.h ds_accel.h; do
    gcc -E -dM "$build/include/ds-accel/$header" | sort >"$dir/macros"
    grep -q 'define DS_ACCEL_FLAG_GRAPHS ' "$dir/macros" || fail "no constants of $header"
    run awk -f "$dir/constants.awk" "$dir/macros"
    is "constants of $header" "$(echo "$out" | tail -n 1)" "$out"
    has "constants of $header were seen" "$(test "$(echo "$out" | tail -n 1)" -gt 170 && echo many)" many
done
finish
