#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# A program with more rights than its caller: ds-accel, set-uid root, run by another user. Settings
# in the environment and configuration of the caller must have no effect; the options that the
# program itself passes must have one. The same program without the set-uid bit shows that each
# setting would have an effect. The tests are repeated with a set-group bit, with a file capability,
# and with set-uid to a user other than root: only files of root are trusted.  test_secure.sh BUILD
set -eu
build=$(cd "$1" && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
stranger=12345

skip() {
    echo "$(basename "$0" .sh): skipped: $1"
    exit 0
}

[ "$(id -u)" = 0 ] || skip "needs root, to make a set-uid program"
command -v setpriv >/dev/null || skip "needs setpriv of util-linux"
[ -z "${SAN:-}" ] || skip "sanitizers do not run in set-uid programs"
chmod 755 "$dir"

# The program is linked again: in a set-uid program the dynamic linker resolves no $ORIGIN outside
# its own directories.
prefix=$dir/prefix
mkdir -p "$prefix/bin"
cp -R -P "$build/lib" "$build/libexec" "$build/share" "$prefix"
chmod -R go-w "$prefix"
objects=$(find "$build/obj/tools" -name '*.o' ! -name ds-accel-probe.o ! -name reasons.o)
# shellcheck disable=SC2086 # a list of files
"${CC:-gcc}" -pie -o "$prefix/bin/plain" $objects -L"$prefix/lib" -lds_accel_tools -lds_accel \
    -Wl,-rpath,"$prefix/lib"
cp "$prefix/bin/plain" "$prefix/bin/secure"
chmod 4755 "$prefix/bin/secure"

# A set-uid program stores verdicts as root in this directory; remove it unless it existed before.
system=/var/cache/ds-accel
[ -d "$system" ] || trap 'rm -rf "$dir" "$system"' EXIT

# Settings that a caller controls: variables, two directories of user configuration, plugins.
mkdir -p "$dir/more" "$dir/theirs" "$dir/xdg/ds-accel" "$dir/home/.config/ds-accel"
cp "$build/tests/fixtures/mocks/ds_accel_alpha.so" "$dir/more/"
cp "$build/tests/fixtures/mocks/ds_accel_beta.so" "$dir/theirs/"
chown -R "$stranger" "$dir/theirs"
printf '%s\n' '{"accelerator": "mock"}' >"$dir/xdg/ds-accel/user.json"
printf '%s\n' '{"accelerator": "mock"}' >"$dir/home/.config/ds-accel/user.json"
printf '%s\n' '{"deny": ["*"]}' >"$dir/deny.json"

# as SETTING... PROGRAM ARGUMENTS: run the program as the other user, with only these settings. Its
# verdicts would be stored in TMPDIR, where that user may not write.
as() {
    run setpriv --reuid "$stranger" --regid "$stranger" --clear-groups \
        env -i PATH="$PATH" LC_ALL=C TMPDIR="$dir" "$@"
}

# A set-uid copy of id shows whether this machine runs set-uid programs in this directory at all.
cp "$(command -v id)" "$dir/id"
chmod 4755 "$dir/id"
as "$dir/id" -u
[ "$code $out" = "0 0" ] || skip "this machine or directory runs no set-uid programs"

# answers NAME PLAIN SECURE SETTING... -- ARGUMENTS: check that the plain program prints PLAIN on
# stdout and the set-uid program prints SECURE.
answers() {
    name=$1 plain=$2 secure=$3
    shift 3
    settings=
    while [ "$1" != -- ]; do
        settings="$settings $1"
        shift
    done
    shift
    # shellcheck disable=SC2086 # settings are words
    as $settings "$prefix/bin/plain" "$@"
    is "$name: it takes part without the bit" "$plain" "$out"
    # shellcheck disable=SC2086
    as $settings "$prefix/bin/secure" "$@"
    is "$name: set-uid" "$secure" "$out"
}

answers DS_ACCELERATOR mock cpu DS_ACCELERATOR=mock -- detect
answers DS_ACCEL_CONFIG "" cpu DS_ACCEL_CONFIG="$dir/deny.json" -- detect
answers XDG_CONFIG_HOME mock cpu XDG_CONFIG_HOME="$dir/xdg" -- detect
answers HOME mock cpu HOME="$dir/home" -- detect

as DS_ACCEL_PLUGIN_PATH="$dir/more" "$prefix/bin/plain" list
has "DS_ACCEL_PLUGIN_PATH: it takes part without the bit" "$out" "$dir/more/ds_accel_alpha.so"
as DS_ACCEL_PLUGIN_PATH="$dir/more" "$prefix/bin/secure" list
has "DS_ACCEL_PLUGIN_PATH: set-uid" "$out" "$prefix/lib/ds-accel/ds_accel_cpu.so"
is "DS_ACCEL_PLUGIN_PATH: its directory is not searched" 0 "$(printf '%s' "$out" | grep -c alpha)"

mkdir -m 700 "$dir/cache"
chown "$stranger" "$dir/cache"
as DS_ACCEL_CACHE_DIR="$dir/cache" "$prefix/bin/plain" detect
is "DS_ACCEL_CACHE_DIR: it takes part without the bit" verdicts \
    "$(find "$dir/cache" -name verdicts -printf '%f')"
rm -f "$dir/cache"/*
as DS_ACCEL_CACHE_DIR="$dir/cache" "$prefix/bin/secure" detect
is "DS_ACCEL_CACHE_DIR: set-uid" "cpu " "$out $(find "$dir/cache" -type f)"
as DS_ACCEL_PROBE=in-process "$prefix/bin/plain" explain mock
has "DS_ACCEL_PROBE: it takes part without the bit" "$out" "opened in this process"
as DS_ACCEL_PROBE=in-process "$prefix/bin/secure" explain mock
has "DS_ACCEL_PROBE: set-uid" "$out" "opened by ds-accel-probe"

as DS_ACCEL_LOG=debug "$prefix/bin/plain" detect
has "DS_ACCEL_LOG: it takes part without the bit" "$err" debug
as DS_ACCEL_LOG=debug "$prefix/bin/secure" detect
is "DS_ACCEL_LOG: set-uid" "cpu" "$out$err"

as DS_ACCEL_ROOT="$dir/none" "$prefix/bin/plain" -q detect
has "DS_ACCEL_ROOT: it takes part without the bit" "$err" "machine root $dir/none"
as DS_ACCEL_ROOT="$dir/none" "$prefix/bin/secure" -q detect
is "DS_ACCEL_ROOT: set-uid" "cpu" "$out$err"

as DS_ACCEL_MOCK_DEVICE_COUNT=3 "$prefix/bin/plain" -a mock detect --json
has "a plugin's option: it takes part without the bit" "$out" '"device_count": 3'
as DS_ACCEL_MOCK_DEVICE_COUNT=3 "$prefix/bin/secure" -a mock detect --json
has "a plugin's option: set-uid" "$out" '"device_count": 2'

# `config show --env` lists the variables as ignored, without their values.
as DS_ACCELERATOR=mock DS_ACCEL_PLUGIN_PATH="$dir/more" DS_ACCEL_CONFIG="$dir/deny.json" \
    DS_ACCEL_LOG=debug "$prefix/bin/secure" config show --env
for variable in DS_ACCELERATOR DS_ACCEL_PLUGIN_PATH DS_ACCEL_CONFIG DS_ACCEL_LOG; do
    has "$variable is shown as ignored" "$(printf '%s\n' "$out" | grep "^$variable ")" ignored
done

# Options that the program itself sets have an effect.
as "$prefix/bin/secure" -a mock detect
is "the option accelerator" mock "$out"
as "$prefix/bin/secure" --plugin-dir "$dir/more" explain alpha
has "the option plugin_dirs" "$out" "alpha: selected"
as "$prefix/bin/secure" --config "$dir/deny.json" detect
is "the option config" 3 "$code"

# Ownership is checked against the effective user, so plugins of the caller belong to another user.
as "$prefix/bin/plain" --plugin-dir "$dir/theirs" explain beta
has "the caller's plugin without the bit" "$out" "beta: selected"
as "$prefix/bin/secure" --plugin-dir "$dir/theirs" explain beta
has "the caller's plugin: set-uid" "$out" "dir_owner"
chown 0 "$dir/theirs"
as "$prefix/bin/secure" --plugin-dir "$dir/theirs" explain beta
has "the caller's plugin in root's directory: set-uid" "$out" "file_owner"
chown 0 "$dir/theirs/ds_accel_beta.so"
as "$prefix/bin/secure" --plugin-dir "$dir/theirs" explain beta
has "given to root" "$out" "beta: selected"

# ---- the effective user is the caller, or is not root --------------------------------------------

# kinds: copies of the program, each with a different kind of additional rights.
owner=23456
cp "$prefix/bin/plain" "$prefix/bin/group"
chmod 2755 "$prefix/bin/group"
cp "$prefix/bin/plain" "$prefix/bin/other"
chown "$owner" "$prefix/bin/other"
chmod 4755 "$prefix/bin/other"
kinds="group other"
cp "$prefix/bin/plain" "$prefix/bin/capability"
if setcap cap_sys_admin,cap_dac_override+ep "$prefix/bin/capability" 2>/dev/null; then
    kinds="$kinds capability"
else
    echo "test_secure: file capabilities are not tested: setcap does not work here"
fi

# Every user can put a plugin into a sticky directory, so the owner of the file decides.
mkdir -m 1777 "$dir/sticky" "$dir/linked"
cp "$build/tests/fixtures/mocks/ds_accel_beta.so" "$dir/sticky/"
ln -s "$dir/more/ds_accel_alpha.so" "$dir/linked/ds_accel_alpha.so"
mkdir "$dir/own"
cp "$build/tests/fixtures/mocks/ds_accel_beta.so" "$dir/own/"
chown -h "$stranger" "$dir/linked/ds_accel_alpha.so"
chown "$stranger" "$dir/own"

# user_of KIND: print the effective user of the copy KIND.
user_of() {
    case $1 in
    other) echo "$owner" ;;
    *) echo "$stranger" ;;
    esac
}

for kind in $kinds; do
    secure=$prefix/bin/$kind
    user=$(user_of "$kind")
    as "$secure" --plugin-dir "$dir/more" explain alpha
    has "$kind: root's plugin" "$out" "alpha: selected"
    chown "$user" "$dir/sticky/ds_accel_beta.so"
    as "$secure" --plugin-dir "$dir/sticky" explain beta
    has "$kind: the effective user's plugin in a sticky directory" "$out" \
        "ds_accel_beta.so has owner $user, "
    has "$kind: whom it must belong to" "$out" "expected owner 0: the program has raised rights"
    has "$kind: the reason" "$out" file_owner
    as "$secure" -a beta --plugin-dir "$dir/sticky" detect
    is "$kind: nor is it chosen by force" "4 " "$code $out"
    chown "$user" "$dir/own"
    as "$secure" --plugin-dir "$dir/own" explain beta
    has "$kind: the effective user's directory" "$out" dir_owner
    chown -h "$user" "$dir/linked/ds_accel_alpha.so"
    as "$secure" --plugin-dir "$dir/linked" explain alpha
    has "$kind: the effective user's link" "$out" link_owner
    # Commands that run a named file do not run a file of the caller either.
    as "$secure" lint "$dir/sticky/ds_accel_beta.so"
    has "$kind: lint" "$err" file_owner
    as "$secure" conformance "$dir/sticky/ds_accel_beta.so" --rule DSA-P13
    has "$kind: conformance" "$err" file_owner
    chown 0 "$dir/sticky/ds_accel_beta.so"
    as "$secure" --plugin-dir "$dir/sticky" explain beta
    has "$kind: given to root" "$out" "beta: selected"
    as "$secure" lint "$dir/sticky/ds_accel_beta.so"
    is "$kind: lint of root's plugin" 0 "$code"
done
chown "$stranger" "$dir/sticky/ds_accel_beta.so" "$dir/own"
chown -h "$stranger" "$dir/linked/ds_accel_alpha.so"
as "$prefix/bin/plain" --plugin-dir "$dir/sticky" explain beta
has "without the bit: in a sticky directory" "$out" "beta: selected"
as "$prefix/bin/plain" --plugin-dir "$dir/own" explain beta
has "without the bit: an own directory" "$out" "beta: selected"
as "$prefix/bin/plain" --plugin-dir "$dir/linked" explain alpha
has "without the bit: an own link" "$out" "alpha: selected"
as "$prefix/bin/plain" lint "$dir/sticky/ds_accel_beta.so"
is "without the bit: lint" 0 "$code"

# A cache directory that a program passes is written by the effective user, who could forge its
# contents.
cat >"$dir/remember.c" <<'END'
#include <ds_accel.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    struct ds_accel_options options = {.struct_size = sizeof(options)};
    ds_accel_t *context;
    options.cache_dir = argc > 1 ? argv[1] : NULL;
    if (ds_accel_create(&options, &context) < 0 || ds_accel_detect(context) < 0) {
        fprintf(stderr, "%s\n", ds_accel_last_error());
        return 1;
    }
    puts(ds_accel_name(context));
    ds_accel_destroy(context);
    return 0;
}
END
"${CC:-gcc}" -std=c11 -I"$build/stage/program" -o "$prefix/bin/remember" "$dir/remember.c" \
    -L"$prefix/lib" -lds_accel -Wl,-rpath,"$prefix/lib"
as "$prefix/bin/remember" "$dir/cache"
is "a cache without the bit" "cpu verdicts" "$out $(find "$dir/cache" -name verdicts -printf '%f')"
for kind in $kinds; do
    rm -f "$dir/cache"/*
    chown "$(user_of "$kind")" "$dir/cache"
    cp "$prefix/bin/remember" "$prefix/bin/remember-$kind"
    case $kind in
    group) chmod 2755 "$prefix/bin/remember-$kind" ;;
    other) chown "$owner" "$prefix/bin/remember-$kind" && chmod 4755 "$prefix/bin/remember-$kind" ;;
    capability) setcap cap_sys_admin,cap_dac_override+ep "$prefix/bin/remember-$kind" ;;
    esac
    as "$prefix/bin/remember-$kind" "$dir/cache"
    is "$kind: no cache of the effective user's" "cpu " "$out $(find "$dir/cache" -type f)"
done

# An op reads DS_ACCEL_OPS_ISA itself.
cat >"$dir/path.c" <<'END'
#include <dlfcn.h>
#include <ds-accel/ops/op.h>
#include <stdio.h>
#include <string.h>
int main(void)
{
    void *library = dlopen(FILE_NAME, RTLD_NOW);
    ds_accel_op_entry_v1_fn entry =
        library ? (ds_accel_op_entry_v1_fn)dlsym(library, DS_ACCEL_OP_ENTRY) : NULL;
    const struct ds_accel_op *op = entry ? entry() : NULL;
    puts(!op ? dlerror() : op->paths()[1] == NULL ? "one" : strcmp(op->path(), "scalar") == 0 ? "scalar" : "best");
    return 0;
}
END
"${CC:-gcc}" -std=c11 -I"$build/include" -DFILE_NAME="\"$prefix/lib/ds-accel/ops/cpu_adam.so\"" \
    -o "$prefix/bin/path" "$dir/path.c" -ldl
as "$prefix/bin/path"
if [ "$out" = one ]; then
    echo "test_secure: DS_ACCEL_OPS_ISA is not tested: this CPU has only scalar code"
else
    is "DS_ACCEL_OPS_ISA: unset" best "$out"
    as DS_ACCEL_OPS_ISA=scalar "$prefix/bin/path"
    is "DS_ACCEL_OPS_ISA: it takes part without the bit" scalar "$out"
    chmod 4755 "$prefix/bin/path"
    as DS_ACCEL_OPS_ISA=scalar "$prefix/bin/path"
    is "DS_ACCEL_OPS_ISA: set-uid" best "$out"
fi

# ---- files beside the command --------------------------------------------------------------------

# The command looks for files beside its own file. If the caller makes a hard link to the program in
# a directory of the caller, the program must find no file of the caller, whatever additional rights
# it has: owner, group or capabilities.
# beside NAME WANTED PROGRAM: check from which directory the plugins of PROGRAM come; WANTED is
# empty if it finds none.
beside() {
    as "$3" list
    is "what lies beside it: $1" "$2" "$(printf '%s\n' "$out" |
        sed -n "s|.*\($dir/[a-z]*\)/lib/ds-accel/ds_accel_mock.so.*|\1|p" | head -n 1)"
}
mkdir -p "$dir/his/bin"
cp -R -P "$prefix/lib" "$prefix/libexec" "$prefix/share" "$dir/his"
for kind in plain user group capability; do
    cp "$build/bin/ds-accel" "$prefix/bin/$kind-command"
    ln "$prefix/bin/$kind-command" "$dir/his/bin/$kind"
done
chown -R "$stranger" "$dir/his/lib" "$dir/his/share" "$dir/his/libexec"
chown "$stranger" "$dir/his" "$dir/his/bin"
chmod 4755 "$prefix/bin/user-command"
chmod 2755 "$prefix/bin/group-command"
beside "no rights" "$dir/his" "$dir/his/bin/plain"
beside "the owner's rights" "" "$dir/his/bin/user"
beside "the group's rights" "" "$dir/his/bin/group"
beside "the owner's rights, at home" "$prefix" "$prefix/bin/user-command"
beside "the group's rights, at home" "$prefix" "$prefix/bin/group-command"
if setcap cap_sys_nice+ep "$prefix/bin/capability-command" 2>/dev/null; then
    beside "a capability" "" "$dir/his/bin/capability"
    beside "a capability, at home" "$prefix" "$prefix/bin/capability-command"
fi

finish
