# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
# shellcheck shell=sh
#
# Shared by the tests of the op builder: a prefix without installed ops, a recipe of a small op, a
# compiler that logs what it does, and a program that loads ops. Source it behind lib.sh, with
# $build set.
#
# The op "tiny" reports what it was compiled from in its minor version: 1000 times TINY of tiny.c,
# 100 times HEADER of the header beside it, 10 times VENDOR of a header elsewhere, and FLAG.
#
# Variables come from, and go to, the test; arguments of functions too.
# shellcheck disable=SC2034,SC2119,SC2120,SC2154

cc=$(command -v "${CC:-gcc}")
umask 022
unset CC CXX NVCC NVCC_CCBIN DS_ACCEL_CACHE XDG_CACHE_HOME
prefix=$dir/prefix
program=$prefix/bin/ds-accel
src=$dir/src
vendor=$dir/vendor
config=$dir/config.json
cache=$dir/cache
store=$cache/ops
log=$dir/compiled
mkdir -p "$prefix/bin" "$prefix/lib/ds-accel" "$prefix/libexec/ds-accel" "$src/include" "$vendor" "$dir/home"
cp "$build/bin/ds-accel" "$prefix/bin/"
cp -a "$build"/lib/libds_accel* "$prefix/lib/"
cp "$build/lib/ds-accel/ds_accel_cpu.so" "$prefix/lib/ds-accel/"
cp "$build/libexec/ds-accel/ds-accel-probe" "$prefix/libexec/ds-accel/"
cp -R "$build/share" "$prefix/share"
cp -R "$build/include" "$dir/include"
chmod go-w "$prefix" "$prefix/lib" "$prefix/lib/ds-accel"
export DS_ACCEL_CACHE_DIR="$cache" HOME="$dir/home" DS_ACCEL_PROBE=in-process

# compiler FILE [ARGUMENT...]: write a compiler that runs $cc with the arguments, and adds a line to
# $log for each source that it compiles, "link" for what it links. While $dir/gate exists, a
# compilation waits; then $dir/entered has a line for each one that waits. With $is_unknown set, it is
# of no known kind, so that nobody reads the 35 MB of its programs.
is_unknown=
compiler() {
    file=$1
    shift
    cat >"$file.new" <<END
#!/bin/sh
for last; do :; done
case " \$* " in
*" -c "*) what=\$last ;;
*" -shared "*) what=link ;;
*" --version "*) ${is_unknown:+echo unknown 1.0 && exit;} exec $cc $* "\$@" ;;
*) exec $cc $* "\$@" ;;
esac
echo "\$what" >>"$log"
if [ -e "$dir/gate" ] && [ "\$what" != link ]; then
    echo \$\$ >>"$dir/entered"
    read -r line <"$dir/gate"
fi
[ ! -x "$dir/before" ] || "$dir/before" "\$what" || exit
$cc $* "\$@" || exit
[ ! -x "$dir/after" ] || "$dir/after" "\$what"
END
    chmod 755 "$file.new"
    mv "$file.new" "$file"
}

sources() {
    cat >"$src/tiny.c" <<'END'
#include "tiny.h"
#include <ds-accel/ops/op.h>
#include <vendor.h>
#ifndef FLAG
#define FLAG 0
#endif
#define TINY 1
static const char *const names[] = {__FILE__, 0};
static const char *const *paths(void) { return names; }
static const char *path(void) { return names[0]; }
static const struct ds_accel_op table = {sizeof(table), DS_ACCEL_OP_ABI_MAJOR,
    1000 * TINY + 100 * HEADER + 10 * VENDOR + FLAG, "tiny", paths, path};
DS_ACCEL_OP("tiny", &table);
END
    echo '#define HEADER 1' >"$src/include/tiny.h"
    echo '#define VENDOR 1' >"$vendor/vendor.h"
}

# recipe [MEMBERS]: write the configuration; MEMBERS of the recipe replace others.
recipe() {
    python3 - "$config" "$src" "$dir/include" "$vendor" "{${1-}}" <<'END'
import json, sys
kernel = {"source_dir": sys.argv[2], "sources": ["tiny.c"], "include_dirs": ["include", *sys.argv[3:5]],
          "cflags": ["-std=c11"]}
kernel.update(json.loads(sys.argv[5]))
builders = {"TinyBuilder": {"op": "tiny", "kind": "compiled"}}
with open(sys.argv[1], "w") as file:
    json.dump({"kernels": {"tiny": kernel}, "backends": {"cpu": {"op_builders": builders}}}, file)
END
}

# fresh: the sources, the recipe, the compiler and an empty cache.
fresh() {
    rm -rf "$cache" "$log" "$dir/gate" "$dir/entered" "$dir/before" "$dir/after"
    sources
    recipe
    [ -n "${CC-}" ] || compiler "$dir/cc"
    export CC="$dir/cc" CXX="$dir/cc"
}

# settle: wait until a file that is written now is later than those of the test. The kernel's clock for
# files moves in steps of up to 10 ms, and a source that was changed in the step in which a build
# begins is compiled twice.
settle() {
    sleep 0.02
}

# With $no_compiler set, there are none in PATH, and no variable names one.
no_compiler=
without() {
    if [ -n "$no_compiler" ]; then
        env -u CC -u CXX PATH=/nonexistent "$@"
    else
        "$@"
    fi
}

ops() {
    settle
    run without "$program" --config "$config" -a cpu ops "$@"
}

# compiled: how many sources were compiled since the last call, except those of checks.
compiled() {
    [ ! -e "$log" ] || grep -vc -e '^link$' -e '^probe\.' "$log" || true
    [ -e "$log" ] || echo 0
    rm -f "$log"
}

# builds NAME STATE COMPILATIONS: check what `ops build tiny` does. Sets $file to the op's file.
builds() {
    ops build tiny
    file=${out#*, }
    case $2 in
    built | cached) is "$1" "0 tiny: $2, $store, $3" "$code ${out%"/tiny."*}, $(compiled)" ;;
    *) is "$1" "1 $2 $3" "$code $out $(compiled)" ;;
    esac
}

# load [OP...]: load the ops in a program.
load() {
    settle
    run without "$dir/load" "$config" "${@:-tiny}"
}

# loads NAME MINOR COMPILATIONS: check which op is loaded.
loads() {
    load tiny
    is "$1" "0 tiny $2, $3" "$code $out, $(compiled)"
}

# leftovers: what builds have left, except files of ops.
leftovers() {
    find "$store" -mindepth 1 -maxdepth 1 -name '.*' -printf '%f '
}

# wait_for COMMAND...: until it succeeds. The limit is for a test that would otherwise never end.
wait_for() {
    attempts=6000
    until "$@" 2>/dev/null; do
        attempts=$((attempts - 1))
        [ $attempts -gt 0 ] || {
            fail "waited in vain for: $*"
            return
        }
        sleep 0.02
    done
}

cat >"$dir/load.c" <<'END'
#include <ds-accel/ds_accel.h>
#include <ds-accel/ops/op.h>
#include <stdio.h>
static void print(void *user_data, uint32_t level, const char *topic, const char *line)
{
    (void)user_data;
    (void)level;
    fprintf(stderr, "%s: %s\n", topic, line);
}
int main(int argument_count, char **arguments)
{
    struct ds_accel_options options = {.struct_size = sizeof(options), .accelerator = "cpu"};
    ds_accel_t *context = NULL;
    int status;

    options.config_file = arguments[1];
    options.log_sink = print;
    status = ds_accel_create(&options, &context);
    for (int i = 2; i < argument_count && status >= 0; i++) {
        const struct ds_accel_op *op;

        status = ds_accel_op_load(context, arguments[i], &op);
        if (status >= 0)
            printf("%s %u\n", op->name, (unsigned)op->abi_minor);
    }
    if (status < 0)
        printf("%d %s\n", status, ds_accel_last_error());
    ds_accel_destroy(context);
    return status < 0;
}
END
# shellcheck disable=SC2086 # flags
"$cc" -std=c11 -Wall -Wextra -Werror -I"$build/include" -o "$dir/load" "$dir/load.c" \
    -L"$prefix/lib" -lds_accel -Wl,-rpath,"$prefix/lib" ${SAN:+-fsanitize=$SAN}

# start NAME: load the op in the background, with its output in $dir/NAME. Sets $pid.
start() {
    "$dir/load" "$config" tiny >"$dir/$1" 2>&1 &
    pid=$!
}

# start_gated NAME: the same, until its compiler waits at the gate.
start_gated() {
    rm -f "$dir/gate" "$dir/entered"
    mkfifo "$dir/gate"
    start "$1"
    wait_for test -s "$dir/entered"
    mv "$dir/gate" "$dir/gate.held"
}

# ends NAME WANTED_CODE PID: wait for a process in the background.
ends() {
    code=0
    wait "$3" 2>/dev/null || code=$?
    is "$1" "$2" "$code"
}

waits_for_lock() {
    find "/proc/$1/fd" -lname '*/ops-*.lock' 2>/dev/null | grep -q .
}

is_gone() {
    ! kill -0 "$1"
}
