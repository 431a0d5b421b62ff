#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The ABI between parts of different versions: every combination of hosts, plugins and programs of
# each frozen version, of the current one, and of a future minor version. docs/plugin-abi.md,
# "Proof", has the table.  test_abi.sh BUILD
set -eu
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
abi=$(cd "$build/tests/abi" && pwd -P)
frozen=$source/tests/abi
fixtures=$build/tests/fixtures
# Unset the path: otherwise a library of another version could replace that of the program.
unset LD_LIBRARY_PATH

skip() {
    echo "test_abi: not run: $1"
}

# host_of VERSION: print the installation prefix of a host; VERSION is today, future or a frozen
# version.
host_of() {
    case $1 in
    today) echo "$build" ;;
    *) echo "$abi/$1/build" ;;
    esac
}

# call VERSION LIBRARY PLUGINS NAME: run the program of VERSION on backend NAME, with the
# libds_accel of version LIBRARY and the plugins in the directory PLUGINS.
call() {
    case $1 in
    today) program=$abi/calls ;;
    *) program=$abi/$1/build/calls ;;
    esac
    run env LD_LIBRARY_PATH="$(host_of "$2")/lib" "$program" "$3" "$4"
}

# calls_same VERSION LIBRARY PLUGINS NAME WANTED: check that the program prints WANTED.
calls_same() {
    call "$1" "$2" "$3" "$4"
    is "calls of $1, library of $2, $4 of $3" "0 $5 " "$code $out $err"
}

# steady: remove from JSON the values that differ between runs and directories, and the commas at
# line ends.
steady() {
    sed -e '/"path": /d' -e '/"elapsed_us": /d' -e '/"available_memory_bytes": /d' \
        -e '/"process_memory_bytes": /d' -e 's/,$//'
}

# finds HOST PLUGINS: check that the command of HOST uses mock and cpu from the directory PLUGINS.
finds() {
    program=$(host_of "$1")/bin/ds-accel
    for name in mock cpu; do
        run "$program" --plugin-dir "$2" -a $name detect
        is "detect, host of $1, $name of $2" "0 $name " "$code $out $err"
        run "$program" --plugin-dir "$2" --json list
        has "list, host of $1, $name of $2" "$out" "\"$2/ds_accel_$name.so\""
        run "$program" lint "$2/ds_accel_$name.so"
        is "lint, host of $1, $name of $2" "0 " "$code $err"
    done
}

# facts HOST PLUGINS NAME: print the report `info` of a plugin without the values that differ
# between runs.
facts() {
    "$(host_of "$1")/bin/ds-accel" --plugin-dir "$2" -a "$3" --json info | steady
}

today=$build/lib/ds-accel
future=$abi/future/build/lib/ds-accel
versions=
for directory in "$frozen"/*/commit; do
    versions="$versions $(basename "$(dirname "$directory")")"
done

call today today "$today" mock
mock_calls=$out
is "calls of today" "0 " "$code $err"
has "calls of today" "$mock_calls" "move_data: the same"
call today today "$today" cpu
cpu_calls=$out
is "calls of today, cpu" "0 " "$code $err"

# ---- a future minor version ----------------------------------------------------------------------

is "the future's minor version" "#define DS_ACCEL_ABI_MINOR 99" \
    "$(grep '^#define DS_ACCEL_ABI_MINOR' "$abi/future/plugin-api.h")"
for host in today future; do
    for plugins in "$today" "$future"; do
        finds $host "$plugins"
        for name in mock cpu; do
            is "info, host of $host, $name of $plugins" "$(facts today "$today" $name)" \
                "$(facts $host "$plugins" $name)"
        done
        calls_same $host $host "$plugins" mock "$mock_calls"
        calls_same $host $host "$plugins" cpu "$cpu_calls"
    done
done
calls_same today future "$today" mock "$mock_calls"
run "$build/bin/ds-accel" --plugin-dir "$future" --json list
has "the future plugin says its version" "$out" '"abi": "1.99"'

# fixture HOST NAME: detect with the fixture NAME as the only plugin, then force it.
fixture() {
    program=$(host_of "$1")/bin/ds-accel
    run "$program" --plugin-dir "$fixtures/$2" detect
    free="$code $out"
    run "$program" --plugin-dir "$fixtures/$2" -a "$2" detect
}

# works HOST NAME: check that HOST prefers the fixture to cpu and starts it. The fixture has a
# longer table, an unknown optional bit, or a note of generation 2 beside the current note.
works() {
    fixture "$1" "$2"
    is "host of $1 chooses $2" "0 $2" "$free"
    is "host of $1 takes $2" "0 $2 " "$code $out $err"
    run "$program" --plugin-dir "$fixtures/$2" -a "$2" info
    is "host of $1 starts $2" "0 " "$code $err"
    has "host of $1 starts $2" "$out" "device_count                 1"
}

# refused HOST NAME REASON: check that HOST refuses the fixture with REASON, and still chooses cpu.
refused() {
    fixture "$1" "$2"
    is "host of $1 goes on without $2" "0 cpu" "$free"
    is "host of $1 refuses $2" "4 " "$code $out"
    has "host of $1 refuses $2" "$err" "\"$2\""
    has "host of $1 refuses $2" "$err" "$3: "
}

# judges HOST: check fixtures of future plugins that cannot be compiled from a changed header.
judges() {
    works "$1" long_table
    works "$1" unknown_optional_bit
    works "$1" two_generations
    refused "$1" unknown_required_bit feature_unknown
    has "host of $1 names the bit" "$err" 40
    refused "$1" abi_2 abi_unsupported
}
judges today
judges future

# ---- every frozen version ------------------------------------------------------------------------

# constant_names HEADER: print the constants of HEADER, except those without a value, version
# counts, unions of all flags, and the header's internal names, which end in _.
constant_names() {
    gcc -E -dM -x c "$1" | awk '$2 ~ /^DS_ACCEL_[A-Z0-9_]*$/ { print $2 }' | sort |
        grep -vxE 'DS_ACCEL_(PLUGIN_API_H|ABI_MINOR|EXPORT|INLINE|NOTE_SECTION|ENTRY_LINKAGE|FLAGS_ALL|[A-Z0-9_]*_)'
}

# constants HEADER NAMES: print name, size and value of each, as the compiler evaluates them.
constants() {
    {
        echo "#include \"$1\""
        cat <<'PROGRAM'
#include <stdio.h>
static void text(const char *name, int bytes, const char *value)
{
    printf("%s %d \"%s\"\n", name, bytes, value);
}
static void number(const char *name, int bytes, long long value)
{
    printf("%s %d %lld\n", name, bytes, value);
}
#define SHOW(x) _Generic((x) + 0, char *: text, default: number)(#x, (int)sizeof(x), x)
int main(void)
{
PROGRAM
        sed 's/.*/    SHOW(&);/' "$2"
        echo "    return 0; }"
    } >"$dir/constants.c"
    if gcc -std=c11 -o "$dir/constants" "$dir/constants.c" 2>&1; then
        "$dir/constants"
    fi
}

# members HEADER: print the number of members of each struct, as in "ds_accel_error 5".
members() {
    gcc -E -P -x c "$1" | awk '
        /^struct ds_accel_[a-z_]+ \{$/ { name = $2; count = 0; next }
        /^};$/ { if (name != "") print name, count; name = "" }
        name != "" { count += gsub(/;/, "") }' | sort
}

# layout HEADER LIST: check that HEADER has the offsets listed in the file LIST.
layout() {
    cat >"$dir/layout.c" <<END
#include "$1"
#define SIZE(name, size) _Static_assert(sizeof(struct name) >= (size), #name " shrank");
#define MEMBER(name, member, at) \\
    _Static_assert(offsetof(struct name, member) == (at), #name "." #member " moved");
#include "$2"
#include "$1"
#define SIZE(name, size) _Static_assert(sizeof(struct name) >= (size), #name " shrank");
#define MEMBER(name, member, at) \\
    _Static_assert(offsetof(struct name, member) == (at), #name "." #member " moved");
#include "$2"
END
    run gcc -std=c11 -fsyntax-only "$dir/layout.c"
    is "offsets of $(basename "$2") in $1" "0 " "$code $err"
}

# header VERSION: check that the constants and struct offsets of the header of VERSION equal the
# current ones.
header() {
    header=$frozen/$1/plugin-api.h
    layout=$source/tests/host/abi_layout_$(echo "$1" | tr . _).h

    constant_names "$header" >"$dir/names"
    has "constants of $1" "$(paste -sd ' ' "$dir/names")" " DS_ACCEL_ERR_TIMEOUT "
    constants "$header" "$dir/names" >"$dir/then"
    constants "$source/plugin-api.h" "$dir/names" >"$dir/today"
    is "constants of $1 today" "" "$(diff "$dir/then" "$dir/today")"
    is "the list of offsets has every member of $1" "$(members "$header")" \
        "$(sed -n 's/^MEMBER(\([a-z_]*\),.*/\1/p' "$layout" | sort | uniq -c |
            awk '{ print $2, $1 }' | sort)"
    layout "$header" "$layout"
    layout "$source/plugin-api.h" "$layout"
    layout "$abi/future/plugin-api.h" "$layout"
}

# reports HOST PLUGINS: check that the report of today has every line of the report of the older
# host; it may have more lines.
reports() {
    facts "$1" "$2" mock | sort >"$dir/older"
    facts today "$2" mock | sort >"$dir/newer"
    has "info, host of $1, mock of $2" "$(cat "$dir/older")" '"name": "mock"'
    is "info, host of $1, mock of $2" "" "$(comm -23 "$dir/older" "$dir/newer")"
}

# older_host VERSION: check the host of VERSION with plugins of every version, and the plugins and
# programs of VERSION with hosts of every version.
older_host() {
    own=$abi/$1/build/lib/ds-accel

    is "the frozen header is that of its commit" "same" \
        "$(cmp -s "$frozen/$1/plugin-api.h" "$abi/$1/plugin-api.h" && echo same)"
    for plugins in "$today" $compiled "$future"; do
        finds "$1" "$plugins"
        calls_same "$1" "$1" "$plugins" mock "$mock_calls"
        calls_same "$1" "$1" "$plugins" cpu "$cpu_calls"
        reports "$1" "$plugins"
    done
    judges "$1"
    reports "$1" "$own"
    call "$1" "$1" "$own" mock
    own_calls=$out
    is "calls of $1" "0 " "$code $err"
    for host in today future; do
        finds $host "$own"
        calls_same $host $host "$own" mock "$own_calls"
        calls_same "$1" $host "$today" mock "$mock_calls"
    done
}

# older_header PLUGINS: check the current plugins compiled with an older header.
older_header() {
    for host in today future; do
        finds $host "$1"
        for name in mock cpu; do
            is "info, host of $host, $name of $1" "$(facts today "$today" $name)" \
                "$(facts $host "$1" $name)"
        done
        calls_same $host $host "$1" mock "$mock_calls"
        calls_same $host $host "$1" cpu "$cpu_calls"
    done
}

for version in $versions; do
    header "$version"
    compiled=$abi/frozen-$version
    if [ -d "$compiled" ]; then
        older_header "$compiled"
    else
        skip "today's plugins are not compiled with the header of ABI $version"
        compiled=
    fi
    if [ -e "$abi/$version/built" ]; then
        older_host "$version"
    else
        skip "the host of ABI $version: git has not commit $(cat "$frozen/$version/commit") here"
    fi
done

# ---- the library's interface ---------------------------------------------------------------------

# These functions moved to libds_accel_tools.so before 1.0: in every version, compare them with the
# functions of that library.
moved=$(sed -n 's/^    \(ds_accel_[a-z_]*\);$/\1/p' "$source/core/ds_accel_tools.map" | paste -sd '|' -)
printf '[suppress_function]\nname_regexp = ^(%s)$\nchange_kind = deleted-function\n' "$moved" >"$dir/moved"
printf '[suppress_function]\nname_not_regexp = ^(%s)$\nchange_kind = deleted-function\n' "$moved" >"$dir/stayed"
printf '[suppress_variable]\nname_regexp = .*\nchange_kind = deleted-variable\n' >>"$dir/stayed"

# compare DUMP HOST: run abidiff for removals and changes; additions are allowed.
compare() {
    "$frozen/dump.sh" "$(host_of "$2")" "$1" >"$dir/now.abi"
    run abidiff --no-added-syms --no-show-locs --harmless --suppressions "$dir/moved" "$1" "$dir/now.abi"
}

# compare_moved DUMP HOST: as compare, for the functions that moved.
compare_moved() {
    "$frozen/dump.sh" "$(host_of "$2")" "$1" ds_accel_tools |
        sed 's/DS_ACCEL_TOOLS_0/DS_ACCEL_0/; s/libds_accel_tools\.so/libds_accel.so/' >"$dir/now.abi"
    run abidiff --no-added-syms --no-show-locs --harmless --suppressions "$dir/stayed" "$1" "$dir/now.abi"
}

# changed BITS TEXT SED: change the frozen interface by the script SED, and check that abidiff
# rejects the current and the future library with BITS in its exit code (4: a change, 8: an
# incompatible change) and with TEXT in its output.
changed() {
    sed "$3" "$dump" >"$dir/changed.abi"
    is "a change: $3" "differs" "$(cmp -s "$dump" "$dir/changed.abi" || echo differs)"
    for host in today future; do
        compare "$dir/changed.abi" $host
        is "abidiff refuses: $2" "$1" "$((code & 15))"
        has "abidiff says what it refuses" "$out" "$2"
    done
}

# refuses_changes: check that abidiff reports changes, on the first version, whose text this test
# can rely on.
refuses_changes() {
    dump=$frozen/1.0/libds_accel.abi
    changed 12 "ds_accel_check_all" "s/'ds_accel_check'/'ds_accel_check_all'/g"
    id=$(sed -n "s/.*<type-decl name='double'.* id='\(type-id-[0-9]*\)'.*/\1/p" "$dump")
    function="/<function-decl name='ds_accel_device_name'/,/<.function-decl>/"
    changed 4 "int32_t ds_accel_device_name" \
        "$function s/<parameter type-id='[^']*'/<parameter type-id='$id'/"
    function="/<function-decl name='ds_accel_lint'/,/<.function-decl>/"
    sed "$function s/<parameter type-id='[^']*'/<parameter type-id='$id'/" "$dump" >"$dir/changed.abi"
    compare_moved "$dir/changed.abi" today
    is "abidiff refuses a change of what moved" 4 "$((code & 15))"
    has "abidiff says what it refuses" "$out" "ds_accel_lint"
    # Two structs that may grow, and do grow in the future version: a member gets another type, name
    # or offset, or a member is inserted.
    options="/<class-decl name='ds_accel_options'/,/<.class-decl>/"
    changed 4 "'double flags'" "$options s/\('flags' type-id=\)'[^']*'/\1'$id'/"
    changed 4 "flags_once" "$options s/<var-decl name='flags'/<var-decl name='flags_once'/"
    candidate="/<class-decl name='ds_accel_candidate'/,/<.class-decl>/"
    changed 4 "offset changed from 96 to 64" \
        "$candidate s/layout-offset-in-bits='64'/layout-offset-in-bits='96'/"
    changed 4 "'uint32_t device_count', at offset 64" \
        "$candidate {/layout-offset-in-bits='64'/,/<.data-member>/d}"
}

interface() {
    for host in today future; do
        compare "$frozen/$1/libds_accel.abi" $host
        is "interface of $1 in the library of $host: $out" "0 " "$code $err"
        compare_moved "$frozen/$1/libds_accel.abi" $host
        is "interface of $1 in the tools library of $host: $out" "0 " "$code $err"
    done
}

if [ -n "${SAN:-}" ]; then
    skip "abidiff: a sanitizer's library is another"
elif ! command -v abidiff >/dev/null 2>&1; then
    skip "abidiff is not installed"
elif ! readelf -S --wide "$build/lib/libds_accel.so" | grep -q ' \.debug_info '; then
    skip "abidiff: the library was built without -g"
elif ! readelf -h "$build/lib/libds_accel.so" | grep -q ELF64; then
    skip "abidiff: the frozen interface is that of 64-bit machines"
else
    for version in $versions; do
        interface "$version"
    done
    refuses_changes
fi
finish
