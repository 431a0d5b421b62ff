#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Each fault of a plugin, beside a good plugin that must still be chosen: the report of explain is
# compared with tests/fixtures/golden, no process is left running, and the remedy works.
# test_faults.sh BUILD [--golden]: with --golden, write the golden reports instead.
set -eu
build=$(cd "$1" && pwd)
golden=${2:+--write}
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
umask 022
chmod 755 "$dir"
export DS_ACCEL_CACHE=off
fixtures=$build/tests/fixtures
faults=$fixtures/faults
python=${PYTHON:-/usr/bin/python3}
plugins=$dir/plugins
program=$dir/prefix/bin/ds-accel
config=$dir/config.json
mark=DS_TEST_RUN=$$-$(date +%s)

# The build directory is an installation prefix; other users can read this copy, and the test can
# damage it.
mkdir -p "$dir/prefix" "$dir/answers"
for part in bin lib libexec share; do
    [ ! -d "$build/$part" ] || cp -R "$build/$part" "$dir/prefix/"
done
cp "$faults/none/ds_accel_faulty.so" "$dir/good.so"
cd "$dir"

# Time limits of plugins: the short one for plugins that hang, the long one for all others.
short_ms=700
[ -z "${SAN:-}" ] || short_ms=1500
long_ms=60000 # on a loaded machine, PoCL takes more than 10 s to start under a sanitizer
timeout_ms=$long_ms
# Command prefix: empty, or a command that runs the program as another user.
as_user=

validate() {
    "$python" "$source/tests/tools/validate.py" "$@"
}

# ---- steps ---------------------------------------------------------------------------------------

# configure [MEMBERS]: write the configuration, with additional members.
configure() {
    printf '{"detection_order": %s, "probe": {"timeout_ms": %s}%s}\n' \
        '["faulty", "other", "cuda", "pocl", "neighbour"]' "$timeout_ms" "${1:+, $1}" >"$config"
}

# fresh: a plugin directory with the good plugin "neighbour", and the usual configuration.
fresh() {
    rm -rf "$plugins"
    mkdir -p "$plugins"
    cp "$faults/neighbour/ds_accel_neighbour.so" "$plugins/"
    timeout_ms=$long_ms
    as_user=
    configure
}

# put FAULT: install a faulty plugin beside the good one, replacing an earlier faulty plugin.
put() {
    rm -rf "$plugins/ds_accel_faulty.so"
    cp "$faults/$1/ds_accel_faulty.so" "$plugins/"
}

# poke OFFSET BYTES: overwrite bytes of the faulty plugin; BYTES has escapes of printf.
poke() {
    # shellcheck disable=SC2059 # the argument has escapes
    printf "$2" | dd of="$plugins/ds_accel_faulty.so" bs=1 seek="$1" conv=notrunc 2>/dev/null
}

# ds_accel [NAME=VALUE...] ARGUMENTS...: run the program with these plugins.
ds_accel() {
    # shellcheck disable=SC2086 # a list of words
    run $as_user env "$mark" DS_TEST_PID_FILE="$dir/pid" $with "$program" --config "$config" \
        --plugin-dir "$plugins" "$@"
}

# with NAME=VALUE...: set variables for the following runs; without arguments, clear them.
with=
with() {
    with=$*
}

# of_ours: print the running processes that this test started; a zombie has no environment and is
# not counted.
of_ours() {
    grep -lsaF "$mark" /proc/[0-9]*/environ || true
}

# nobody_left NAME: check that no such process is left. A process that was just killed may take a
# moment to disappear.
nobody_left() {
    tries=0
    while left=$(of_ours) && [ -n "$left" ] && [ $tries -lt 3000 ]; do
        tries=$((tries + 1))
        sleep 0.02
    done
    is "$1: no process is left" "" "$left"
    for path in $left; do
        kill -KILL "$(basename "$(dirname "$path")")" 2>/dev/null || true
    done
}

# meet NAME STATE CODE [BACKEND [CHOSEN [KIND]]]: run explain and store its report for golden.py,
# which compares it at the end; check that detect chooses the neighbour and that no process is left.
meet() {
    printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "${4:-faulty}" "${5:-neighbour}" "${6:-own}" \
        >>"$dir/cases"
    ds_accel explain --json
    printf '%s\n' "$out" >"$dir/answers/$1.json"
    is "$1: explain's exit code" 0 "$code"
    is "$1: what the plugin prints stays with the helper" "" \
        "$(printf '%s' "$err" | grep -F 'fixture ' || true)"
    ds_accel detect
    is "$1: detect" "0 ${5:-neighbour}" "$code $out"
    nobody_left "$1"
}

# remedied NAME WHAT [WANTED]: check that the plugin is chosen after the remedy WHAT.
remedied() {
    ds_accel detect
    is "$1, after the remedy: $2" "0 ${3:-faulty}" "$code $out"
    nobody_left "$1, after the remedy: $2"
}

skip() {
    echo "faults: not tested: $1: $2"
}

# ---- faults in the code of a plugin --------------------------------------------------------------

# is_buildable FAULT: return true if the fault was built and can occur on this machine.
is_buildable() {
    if [ ! -f "$faults/$1/ds_accel_faulty.so" ]; then
        skip "$1" "it was not built, for want of a C++ compiler"
    elif [ "$(id -u)" != 0 ] && { [ "$1" = change_root ] || [ "$1" = change_ids ]; }; then
        skip "$1" "only root can do it"
    elif [ "$1" = change_affinity ] && [ "$(nproc)" = 1 ]; then
        skip "$1" "there is only one CPU"
    else
        return 0
    fi
    return 1
}

# changed_too NAME: print the further changes that the kernel makes along with the change NAME.
changed_too() {
    case $1 in
    change_ids) echo ', "changes_dumpable", "changes_death_signal"' ;;
    esac
}

# code_fault NAME STATE CODE [KIND]: check a plugin whose code has the fault NAME.
code_fault() {
    is_buildable "$1" || return 0
    fresh
    put "$1"
    rm -f "$dir/pid"
    case $2 in
    timed_out)
        timeout_ms=$short_ms
        configure
        ;;
    esac
    meet "$1" "$2" "$3" faulty neighbour "${4:-own}"
    case $1 in
    leave_process | leave_daemon)
        is "$1: it left a process" "$leaves_process" "$([ -s "$dir/pid" ] && echo yes || echo no)"
        ;;
    esac
    timeout_ms=$long_ms
    case $3 in
    prints_* | leaves_* | changes_*)
        configure "\"backends\": {\"faulty\": {\"tolerate\": [\"$3\"$(changed_too "$1")]}}"
        remedied "$1" "tolerate it"
        ;;
    esac
    configure
    case $3 in
    name_mismatch)
        mv "$plugins/ds_accel_faulty.so" "$plugins/ds_accel_other.so"
        remedied "$1" "rename the file" other
        rm "$plugins/ds_accel_other.so"
        ;;
    dependency_missing)
        mkdir -p "$dir/libs"
        cp "$fixtures/absent/libds_accel_absent.so" "$dir/libs/libds_accel_absent.so.1"
        with LD_LIBRARY_PATH="$dir/libs"
        remedied "$1" "install the library"
        with
        ;;
    tls_exhausted)
        with GLIBC_TUNABLES=glibc.rtld.optional_static_tls=4194304
        remedied "$1" "a larger GLIBC_TUNABLES"
        with
        ;;
    esac
    put none
    remedied "$1" "install a version without the defect"
}

while read -r fault state reason; do
    leaves_process=yes
    [ "$fault" != leave_thread ] || leaves_process=no
    code_fault "$fault" "$state" "$reason"
done <"$source/tests/fixtures/faults.txt"

leaves_process=yes
code_fault leave_daemon rejected leaves_process variant
code_fault ignores_term timed_out probe_hung variant
# The helper also exits this way when memory is short, so it is not the fault of the plugin.
leaves_process=no
code_fault out_of_memory error helper_failed

# A slow plugin has no defect: the remedy is a longer time limit.
fresh
put slow
timeout_ms=500
configure
meet slow timed_out probe_hung faulty neighbour variant
timeout_ms=$long_ms
configure
remedied slow "raise probe.timeout_ms"

# ---- files that are not valid plugins ------------------------------------------------------------

# file_fault NAME STATE CODE: check a file that is not a valid plugin; the remedy is a valid file.
file_fault() {
    meet "$1" "$2" "$3"
    put none
    remedied "$1" "install the plugin again"
}

fresh
echo "no plugin" >"$plugins/ds_accel_faulty.so"
file_fault not_elf rejected not_elf

fresh
head -c 4096 "$faults/none/ds_accel_faulty.so" >"$plugins/ds_accel_faulty.so"
file_fault truncated rejected elf_truncated

fresh
put none
poke 4 '\001'
file_fault wrong_class rejected elf_wrong_class

fresh
put none
poke 18 '\002\002'
file_fault wrong_machine rejected elf_wrong_machine

fresh
put none
poke 16 '\002\000'
file_fault program rejected elf_not_shared_object

# Remove the dynamic section: the program header of type 2 becomes type 0, which is ignored.
fresh
put none
poke "$("$python" -c 'import struct, sys
head = open(sys.argv[1], "rb").read(4096)
at, size, count = struct.unpack_from("<Q14xHH", head, 32)
print(next(at + i * size for i in range(count) if struct.unpack_from("<I", head, at + i * size)[0] == 2))' \
    "$plugins/ds_accel_faulty.so")" '\000'
file_fault bad_dynamic rejected elf_bad_dynamic

# An ELF version that our reader ignores but the dynamic linker rejects.
fresh
put none
poke 20 '\002\002\002\002'
file_fault refused_by_linker rejected load_failed

fresh
mkfifo "$plugins/ds_accel_faulty.so"
file_fault fifo rejected is_fifo

fresh
"$python" -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' \
    "$plugins/ds_accel_faulty.so"
file_fault socket rejected is_socket

fresh
mkdir "$plugins/ds_accel_faulty.so"
file_fault directory rejected is_directory

fresh
if mknod "$plugins/ds_accel_faulty.so" c 1 3 2>/dev/null; then
    file_fault device rejected not_regular_file
else
    skip device "mknod is not permitted"
fi

fresh
ln -s "$dir/nothing.so" "$plugins/ds_accel_faulty.so"
meet dangling_link rejected dangling_link
cp "$faults/none/ds_accel_faulty.so" "$dir/nothing.so"
remedied dangling_link "install the file that the link names"

fresh
ln -s ds_accel_faulty.so "$plugins/ds_accel_faulty.so"
meet link_loop rejected link_loop
ln -sf "$dir/good.so" "$plugins/ds_accel_faulty.so"
remedied link_loop "make it a link to the plugin's file"

# ---- owners and modes ----------------------------------------------------------------------------

fresh
put none
chmod o+w "$plugins/ds_accel_faulty.so"
meet file_writable rejected file_writable
chmod go-w "$plugins/ds_accel_faulty.so"
remedied file_writable "chmod go-w the file"

# apart: install the faulty plugin in $dir/above/below, which the configuration names. The neighbour
# stays elsewhere, because a fault of a directory affects all files in it.
apart() {
    fresh
    rm -rf "$dir/above"
    mkdir -p "$dir/above/below"
    cp "$faults/none/ds_accel_faulty.so" "$dir/above/below/"
    configure "\"plugin_dirs\": [\"$dir/above/below\"]"
}

apart
chmod o+w "$dir/above/below"
meet dir_writable rejected dir_writable
chmod go-w "$dir/above/below"
remedied dir_writable "chmod go-w the directory"

apart
chmod o+w "$dir/above"
meet parent_writable rejected parent_writable
chmod go-w "$dir/above"
remedied parent_writable "chmod go-w the directory"

if [ "$(id -u)" = 0 ]; then
    fresh
    put none
    chown 12345 "$plugins/ds_accel_faulty.so"
    meet file_owner rejected file_owner
    chown root "$plugins/ds_accel_faulty.so"
    remedied file_owner "chown root the file"

    apart
    chown 12345 "$dir/above/below"
    meet dir_owner rejected dir_owner
    chown root "$dir/above/below"
    remedied dir_owner "chown root the directory"

    fresh
    ln -s "$dir/good.so" "$plugins/ds_accel_faulty.so"
    chown -h 12345 "$plugins/ds_accel_faulty.so"
    meet link_owner rejected link_owner
    rm "$plugins/ds_accel_faulty.so"
    ln -s "$dir/good.so" "$plugins/ds_accel_faulty.so"
    remedied link_owner "create the link again as root"

    fresh
    put none
    as_user="setpriv --reuid 65534 --regid 65534 --clear-groups"
    chmod 000 "$plugins/ds_accel_faulty.so"
    meet unreadable rejected not_readable
    chmod 644 "$plugins/ds_accel_faulty.so"
    remedied unreadable "give the user read permission"
else
    skip "file_owner, dir_owner, link_owner" "only root can give files away"

    fresh
    put none
    chmod 000 "$plugins/ds_accel_faulty.so"
    meet unreadable rejected not_readable
    chmod 644 "$plugins/ds_accel_faulty.so"
    remedied unreadable "give the user read permission"
fi

# ---- names and lists -----------------------------------------------------------------------------

fresh
cp "$faults/none/ds_accel_faulty.so" "$plugins/ds_accel_Faulty.so"
meet bad_name rejected bad_name Faulty
mv "$plugins/ds_accel_Faulty.so" "$plugins/ds_accel_faulty.so"
remedied bad_name "rename the file"

# Two plugins of one name: the first is broken, the second is good but shadowed by the first.
apart
put no_note
meet shadowed shadowed shadowed
rm "$plugins/ds_accel_faulty.so"
remedied shadowed "remove one of the two files"

fresh
put none
configure '"deny": ["fau*"]'
meet denied disabled denied
configure '"deny": []'
remedied denied "remove the pattern"

configure '"allow": ["neighbour"]'
meet not_allowed disabled not_allowed
configure '"allow": ["neighbour", "faulty"]'
remedied not_allowed "add the name"

# Hashes of both plugins; the evidence must contain the hash to add.
hash_of() {
    sha256sum "$1" | cut -d ' ' -f 1
}
neighbour_hash=$(hash_of "$plugins/ds_accel_neighbour.so")
faulty_hash=$(hash_of "$plugins/ds_accel_faulty.so")
# enforce [MEMBERS]: require hashes, of the neighbour and of the plugins in MEMBERS.
enforce() {
    configure "\"trust\": {\"mode\": \"enforce\", \"sha256\": {\"neighbour\": \"$neighbour_hash\"${1:+, $1}}}"
}

enforce
meet hash_unlisted rejected hash_unlisted
has "hash_unlisted: the detail has the hash" "$(cat "$dir/answers/hash_unlisted.json")" "$faulty_hash"
enforce "\"faulty\": \"$faulty_hash\""
remedied hash_unlisted "add its SHA-256"
enforce "\"faulty\": \"$neighbour_hash\""
meet hash_mismatch rejected hash_mismatch
enforce "\"faulty\": \"$faulty_hash\""
remedied hash_mismatch "correct its SHA-256"

# ---- reasons that the plugin itself reports ------------------------------------------------------

# The report of explain for each reason. Here options of the mock select the reason, so there is
# nothing to repair; tests/sim/test_remedies.sh checks the remedies on a machine with real nodes and
# libraries.
fresh
cp "$fixtures/mocks/ds_accel_cuda.so" "$plugins/"
for reason in no_device no_driver no_permission library_missing symbol_missing driver_mismatch \
    device_busy hidden device_too_old device_asleep driver_failed; do
    state=unavailable
    available=false
    if [ $reason = driver_failed ]; then
        state=error
        available=error
    fi
    with DS_ACCEL_CUDA_AVAILABLE=$available DS_ACCEL_CUDA_REASON=$reason
    meet $reason $state $reason cuda
done
with DS_ACCEL_CUDA_DEVICE_COUNT=many
meet bad_option error bad_option cuda
with DS_ACCEL_CUDA_DEVICE_COUNT=1
remedied bad_option "correct the option" cuda
with

# ---- a real runtime ------------------------------------------------------------------------------

# PoCL leaves threads, and its LLVM installs signal handlers, as runtimes of vendors do. The printed
# remedies are applied until no finding is left. Without PoCL, the plugin reports its absence.
fresh
cp "$faults/pocl/ds_accel_pocl.so" "$plugins/"
with POCL_CACHE_DIR="$dir/pocl"
tolerated=
for _ in 1 2 3 4 5 6 7 8; do
    configure "\"backends\": {\"pocl\": {\"tolerate\": [$tolerated]}}"
    ds_accel explain --json
    reason=$(printf '%s\n' "$out" | validate - candidates/name=pocl/reason 2>&1 || true)
    case $reason in
    prints_* | leaves_* | changes_*) tolerated="${tolerated:+$tolerated, }\"$reason\"" ;;
    *) break ;;
    esac
done
case $reason in
library_missing | no_device) skip "an OpenCL runtime" "$reason" ;;
*) remedied "an OpenCL runtime" "tolerate $tolerated; then ${reason:-none}" pocl ;;
esac
with

# ---- several faulty plugins at once --------------------------------------------------------------

# renamed FAULT NAME: install a faulty plugin under another name of six letters, replacing the name
# in the whole file.
renamed() {
    LC_ALL=C sed "s/faulty/$2/g" "$faults/$1/ds_accel_faulty.so" >"$plugins/ds_accel_$2.so"
}

# Ten plugins: eight are broken in different ways, and two of these hang.
fresh
renamed load_segv fault0
renamed load_hang fault1
renamed entry_abort fault2
renamed probe_exit fault3
renamed probe_hang fault4
renamed forge fault5
renamed leave_process fault6
renamed no_note fault7
renamed none friend
timeout_ms=$short_ms
order='["fault0", "fault1", "fault2", "fault3", "fault4", "fault5", "fault6", "fault7", "friend"]'
wanted="crashed timed_out crashed crashed timed_out crashed rejected rejected selected"
for parallel in 1 4; do
    printf '{"detection_order": %s, "probe": {"timeout_ms": %s, "parallel": %s}}\n' \
        "$order" "$timeout_ms" "$parallel" >"$config"
    start=$(date +%s%N)
    ds_accel explain --json
    elapsed_ms=$((($(date +%s%N) - start) / 1000000))
    states=$(for name in fault0 fault1 fault2 fault3 fault4 fault5 fault6 fault7 friend; do
        echo "candidates/name=$name/state"
    done)
    # shellcheck disable=SC2086 # a list of words
    is "ten plugins, $parallel at a time" "$wanted" "$(printf '%s' "$out" |
        validate "$source/conf/schema/explain.json" $states 2>&1 | paste -sd ' ' -)"
    # In the worst case each of the ten takes its time limit and one more second to be killed.
    limit_ms=$((10 * (short_ms + 1000)))
    is "ten plugins, $parallel at a time, within $limit_ms ms" yes \
        "$([ $elapsed_ms -lt $limit_ms ] && echo yes || echo "$elapsed_ms ms")"
    ds_accel detect
    is "ten plugins, $parallel at a time: detect" "0 friend" "$code $out"
    nobody_left "ten plugins, $parallel at a time"
done

# ---- the reports of explain ----------------------------------------------------------------------

[ -z "$golden" ] || mkdir -p "$source/tests/fixtures/golden"
# shellcheck disable=SC2086 # empty or an option
PYTHONDONTWRITEBYTECODE=1 "$python" "$source/tests/tools/golden.py" $golden \
    "$source/conf/schema/explain.json" "$source/core/reasons.def" "$source/tests/fixtures/golden" "$dir" \
    <"$dir/cases" >"$dir/verdict" ||
    fail "golden.py" "$(cat "$dir/verdict")"
sed '$d' "$dir/verdict"
read -r more_passed more_failed <<END
$(tail -n 1 "$dir/verdict")
END
passed=$((passed + more_passed))
failed=$((failed + more_failed))

# This test must cover every reason of a plugin except those of other tests: file_changed (a race),
# asleep (power states of a machine), quarantined (the cache).
cut -f 3 "$dir/cases" | sort -u >"$dir/met"
sed -n '/^GATE("",/q; s/^REASON([A-Z0-9_]*, "\([a-z0-9_]*\)".*/\1/p' "$source/core/reasons.def" |
    grep -vx -e file_changed -e asleep -e quarantined | sort -u >"$dir/reasons"
if [ "$(id -u)" = 0 ] && [ -f "$faults/load_exception/ds_accel_faulty.so" ]; then
    is "reasons that no fault here has" "" "$(comm -23 "$dir/reasons" "$dir/met")"
fi
finish
