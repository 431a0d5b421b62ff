#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# op_prefix.sh BUILD DIR: for tests/bench/op_build.c, make in DIR
#   prefix    an installation without built ops
#   cache     the cache of built ops, with cpu_adam
#   bare.sh   the commands of the compiler that built it, with its output in DIR/bare
#   built     the path of the op in the cache
set -eu
umask 022
build=$1
dir=$2
rm -rf "$dir"
prefix=$dir/prefix
mkdir -p "$prefix/bin" "$prefix/lib/ds-accel" "$prefix/libexec/ds-accel" "$dir/bare" "$dir/home"
cp "$build/bin/ds-accel" "$prefix/bin/"
cp -a "$build"/lib/libds_accel* "$prefix/lib/"
cp "$build/lib/ds-accel/ds_accel_cpu.so" "$prefix/lib/ds-accel/"
cp "$build/libexec/ds-accel/ds-accel-probe" "$prefix/libexec/ds-accel/"
cp -R "$build/share" "$prefix/share"

# The compiler's commands are those of a first build; a second one fills the cache without the
# script, which belongs to the key.
export HOME="$dir/home" DS_ACCEL_CACHE_DIR="$dir/first"
cat >"$dir/cc" <<END
#!/bin/sh
{
    printf 'cd %s; gcc' "\$PWD"
    printf " '%s'" "\$@"
    echo " || exit"
} >>"$dir/commands"
exec gcc "\$@"
END
chmod 755 "$dir/cc"
CC="$dir/cc" "$prefix/bin/ds-accel" -q ops build cpu_adam cpu --jobs 1 >"$dir/log"
# Only what compiles and links into the directory of the build, which becomes DIR/bare.
sed -n "s,$dir/first/ops/\.build-[^/' =]*,$dir/bare,gp" "$dir/commands" >"$dir/bare.sh"
[ -s "$dir/bare.sh" ] || { echo "op_prefix.sh: no command of the compiler was seen" >&2; exit 1; }
unset CC
export DS_ACCEL_CACHE_DIR="$dir/cache"
"$prefix/bin/ds-accel" -q ops build cpu_adam cpu >>"$dir/log"
ls "$dir"/cache/ops/cpu_adam.*.so >"$dir/built"
