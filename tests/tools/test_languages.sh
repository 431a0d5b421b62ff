#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Plugins in Rust (bindgen) and C++17, and a cffi program, built with only the headers and commands
# of a prefix. Plugins must pass lint and conformance and be detected.  test_languages.sh BUILD
set -eu
build=$1
here=$(cd "$(dirname "$0")/../languages" && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
program=$build/bin/ds-accel
export PKG_CONFIG_PATH="$build/lib/pkgconfig"
include=$(pkg-config --variable=includedir ds-accel)/ds-accel
has "pkg-config knows the build directory" "$(cd "$include" && pwd -P)" "$(cd "$build" && pwd -P)/"
link="-Wl,-z,defs,-z,now,-z,nodelete,-z,noexecstack"
mkdir "$dir/plugins"

skip() {
    echo "test_languages: not run: $1"
}

# plugin NAME VERSION VENDOR: run the checks that every plugin must pass.
plugin() {
    file=$dir/plugins/ds_accel_$1.so
    run "$program" lint "$file"
    is "lint of $1: $out" "0 " "$code $err"
    run "$program" conformance "$file"
    is "conformance of $1: $out" 0 "$code"
    has "conformance of $1 ran checks" "$out" " 0 failed"
    run "$program" --plugin-dir "$dir/plugins" -a "$1" detect
    is "detect $1" "0 $1 " "$code $out $err"
    run "$program" --plugin-dir "$dir/plugins" list
    has "list has $1" "$(printf '%s\n' "$out" | grep "^$1 ")" " $2 "
    has "list has $1" "$(printf '%s\n' "$out" | grep "^$1 ")" " $3 "
    run "$program" --plugin-dir "$dir/plugins" info "$1"
    has "info of $1" "$code $out" "device_count                 1"
}

# ---- C++17 ---------------------------------------------------------------------------------------

compilers=g++
command -v clang++ >/dev/null 2>&1 && compilers="$compilers clang++"
for compiler in $compilers; do
    useless=
    [ "$compiler" != g++ ] || useless=-Wuseless-cast
    # shellcheck disable=SC2046,SC2086 # flags are words
    run "$compiler" -std=c++17 -O1 -g -Wall -Wextra -Wpedantic -Wconversion -Wold-style-cast -Wredundant-decls \
        $useless -Werror -shared -fPIC -fvisibility=hidden $link $(pkg-config --cflags ds-accel) \
        "-Wl,--version-script=$(pkg-config --variable=exampledir ds-accel)/plugin.map" \
        -o "$dir/plugins/ds_accel_cxx.so" "$here/plugin.cc"
    is "$compiler -std=c++17" "0 " "$code $err"
    plugin cxx 1.2.3 "C++ Vendor"
done

# ---- Rust ----------------------------------------------------------------------------------------

if ! command -v bindgen >/dev/null 2>&1 || ! command -v rustc >/dev/null 2>&1; then
    skip "bindgen or rustc is not installed"
else
    run bindgen --no-rustfmt-bindings --allowlist-file '.*/plugin-api.h' -o "$dir/plugin_api.rs" "$include/plugin-api.h" -- \
        -DDS_ACCEL_NO_INLINE
    is "bindgen" "0 " "$code $err"
    # The binding must have every constant, and its functions must return statuses.
    gcc -E -dM "$include/plugin-api.h" |
        sed -n 's/^#define \(DS_ACCEL_[A-Z0-9_]*[A-Z0-9]\) [-("+0-9].*/\1/p' | sort >"$dir/macros"
    grep -oE 'pub const DS_ACCEL_[A-Z0-9_]+ *: *[^=]*[^= ]' "$dir/plugin_api.rs" |
        sed 's/pub const //; s/ *: */ /' | sort >"$dir/types"
    cut -d ' ' -f 1 "$dir/types" >"$dir/constants"
    is "bindgen has every constant" "" "$(comm -23 "$dir/macros" "$dir/constants" | paste -sd ' ' -)"
    has "there are constants" "$(paste -sd ' ' "$dir/macros")" " DS_ACCEL_FLAG_DMABUF "
    is "statuses are of one type" "_bindgen_ty_1" \
        "$(sed -n -E 's/^DS_ACCEL_(OK|NOT_READY|ERR_[A-Z_]*) //p' "$dir/types" | sort -u)"
    for name in ds_accel_write ds_accel_write_element; do
        is "bindgen has $name" 1 "$(grep -cE "pub fn $name *\(" "$dir/plugin_api.rs")"
    done
    run "$program" note rust "Rust Vendor" 1.2.3 optional=demand_only -o "$dir/note.s"
    is "note" "0 " "$code $err"
    run env PLUGIN_API="$dir/plugin_api.rs" PLUGIN_NOTE="$dir/note.s" rustc --edition 2021 -O --crate-type cdylib \
        -D warnings -C "link-args=$link" -o "$dir/plugins/ds_accel_rust.so" "$here/plugin.rs"
    is "rustc" "0 " "$code $err"
    plugin rust 1.2.3 "Rust Vendor"
fi

# ---- a program in Python -------------------------------------------------------------------------

python=${PYTHON:-/usr/bin/python3}
if [ -n "${SAN:-}" ]; then
    skip "cffi: the sanitizer's runtime is not in Python"
elif ! "$python" -c 'import cffi' 2>/dev/null; then
    skip "cffi is not installed"
else
    # Write the declarations without those of the headers of libc, then the constants.
    mkdir "$dir/libc"
    for header in stddef.h stdint.h string.h; do : >"$dir/libc/$header"; done
    gcc -E -P -nostdinc -I"$dir/libc" -DDS_ACCEL_NO_INLINE '-D__attribute__(x)=' "$include/ds_accel.h" >"$dir/headers"
    gcc -E -dM -nostdinc -I"$dir/libc" -DDS_ACCEL_NO_INLINE "$include/ds_accel.h" |
        grep -E '^#define DS_ACCEL_[A-Z0-9_]+ (0x)?[0-9a-f]+u?(ll)?$' >>"$dir/headers"
    run env LD_LIBRARY_PATH="$build/lib" "$python" "$here/program.py" "$dir/headers" "$build/lib/libds_accel.so"
    is "a program of cffi" "0 cpu $("$program" --version | sed 's/ds-accel \([^,]*\),.*/\1/') " "$code $out $err"
fi
finish
