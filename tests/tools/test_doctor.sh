#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The command doctor: the test causes every finding, which must be reported with a remedy and
# disappear after the remedy. Also exit codes and the shape of the JSON; doctor wakes no device and
# loads no plugin.  test_doctor.sh BUILD
set -eu
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
unset NO_COLOR TERM LD_LIBRARY_PATH
program=$dir/prefix/bin/ds-accel
mocks=$build/tests/fixtures/mocks
machine=$dir/machine
plugins=$dir/plugins
mkdir -p "$plugins" "$machine"
chmod 755 "$dir"

# The build directory is an installation prefix; this copy of it is readable by other users.
mkdir "$dir/prefix"
for part in bin lib libexec share; do
    cp -R "$build/$part" "$dir/prefix/"
done

validate() {
    "${PYTHON:-/usr/bin/python3}" "$source/tests/tools/validate.py" "$@"
}

# doctor CODE [COMMAND...]: check that doctor exits with CODE, prints only warnings on stderr, and
# prints valid JSON and, as text, equally many problems. COMMAND runs the program, for example with
# other rights. Sets $text.
doctor() {
    wanted=$1
    shift
    run "$@" "$program" -q --root "$machine" --plugin-dir "$plugins" doctor --json
    is "exit code of doctor" "$wanted " "$code $err"
    printf '%s\n' "$out" >"$dir/json"
    if message=$(validate "$source/conf/schema/doctor.json" <"$dir/json" 2>&1); then
        pass
    else
        fail "the shape of doctor.json" "$message"
    fi
    is "ok" "$([ "$wanted" = 0 ] && echo true || echo false)" "$(validate - ok <"$dir/json")"
    run "$@" "$program" -q --root "$machine" --plugin-dir "$plugins" doctor
    is "exit code of the text" "$wanted " "$code $err"
    text=$out
    is "as many problems in both" "$(grep -c '"severity": "problem"' "$dir/json")" \
        "$(printf '%s\n' "$text" | grep -c '^problem ')"
}

# found CHECK SEVERITY SUBJECT DETAIL REMEDY: check that the last report has this finding.
found() {
    given=$(awk -v check="\"check\": \"$1\"," -v subject="\"subject\": \"$3\"," '
        /"check":/ { finding = "" }
        { finding = finding $0 }
        /"remedy":/ && index(finding, check) && index(finding, subject) { print finding }' "$dir/json")
    has "$1 $3" "$given" "\"severity\": \"$2\""
    has "detail of $1 $3" "${given#*\"detail\"}" "$4"
    has "remedy of $1 $3" "${given#*\"remedy\"}" "$5"
    case $2 in
    ok) ;;
    *) has "text of $1 $3" "$text" "$3: " ;;
    esac
}

put() {
    mkdir -p "$machine/$(dirname "$1")"
    printf '%s\n' "$2" >"$machine/$1"
}

pci=sys/bus/pci/devices/0000:01:00.0
put proc/meminfo "MemTotal:       16777216 kB
MemAvailable:    8388608 kB"
cp "$mocks/ds_accel_cuda.so" "$plugins/"

# ---- no finding ----------------------------------------------------------------------------------

doctor 0
is "in a line" "0 problems, 0 warnings" "$text"
run "$program" --plugin-dir "$plugins" doctor -v
has "what is in order, with -v" "$out" "ok       plugin "
run "$program" doctor cuda
is "no argument is taken" "2 " "$code $out"
run "$program" doctor --help
has "help" "$code $out" "0 usage: ds-accel doctor"

# ---- device nodes --------------------------------------------------------------------------------

put $pci/vendor 0x10de
put $pci/class 0x030200
put $pci/power/runtime_status active
doctor 1
found device_node problem 0000:01:00.0 "no device node for cuda" "kernel driver"
for node in nvidiactl nvidia-uvm nvidia0; do
    put dev/$node ""
    chmod 666 "$machine/dev/$node"
done
doctor 0
put etc/group "root:x:0:
render:x:$(id -g):"
chmod 000 "$machine/dev/nvidia0"
# Root may open every node, so doctor runs as another user.
user=
[ "$(id -u)" != 0 ] || user="setpriv --reuid 65534 --regid 65534 --clear-groups"
# shellcheck disable=SC2086 # a list of words
doctor 1 $user
found device_node problem /dev/nvidia0 "mode 0000, owner $(id -u), group $([ "$(id -g)" = 0 ] && echo root ||
    echo render)" "read and write permission"
chmod 666 "$machine/dev/nvidia0"
# shellcheck disable=SC2086
doctor 0 $user
if [ "$(id -u)" = 0 ]; then
    put etc/group "render:x:4711:"
    chgrp 4711 "$machine/dev/nvidia0"
    chmod 660 "$machine/dev/nvidia0"
    # shellcheck disable=SC2086
    doctor 1 $user
    found device_node problem /dev/nvidia0 "group render" "add the user to the group render"
    doctor 0 setpriv --reuid 65534 --regid 65534 --groups 4711
fi
rm "$machine/dev/nvidiactl"
doctor 0
found device_node warning /dev/nvidiactl "cuda has /dev/nvidia-uvm, but not this one" "container"
has "warnings are counted" "$text" "0 problems, 1 warning"
put dev/nvidiactl ""
doctor 0

# ---- libraries -----------------------------------------------------------------------------------

# Loading this runtime would kill the program, but doctor only looks for the file.
"${CC:-gcc}" -shared -fPIC -nostdlib -Wl,-soname,libcuda.so.1 -o "$dir/libcuda.so.1" -x c - <<'END'
__attribute__((constructor)) static void die(void) { __builtin_trap(); }
END
mkdir -p "$machine/usr/lib"
doctor 1
found library problem libcuda.so.1 "the runtime of cuda is in none of the directories" "LD_LIBRARY_PATH"
mkdir -p "$machine/opt/cuda/lib"
cp "$dir/libcuda.so.1" "$machine/opt/cuda/lib/"
doctor 1
doctor 0 env LD_LIBRARY_PATH=/opt/cuda/lib
found library ok libcuda.so.1 "/opt/cuda/lib/libcuda.so.1, for cuda" ""
cp "$dir/libcuda.so.1" "$machine/usr/lib/"
doctor 0
# Absent hardware takes a single line; -v and JSON list each backend.
rm -rf "$dir/merely"
mkdir "$dir/merely" "$dir/merely/machine"
for name in xpu npu cuda; do
    cp "$mocks/ds_accel_$name.so" "$dir/merely/"
done
merely() {
    run env DS_ACCEL_XPU_AVAILABLE=false DS_ACCEL_NPU_AVAILABLE=false DS_ACCEL_CUDA_AVAILABLE=false \
        "$program" -q --root "$dir/merely/machine" --plugin-dir "$dir/merely" doctor "$@"
}
merely
# The variables of the mocks are unknown to the configuration, which causes three warnings.
is "merely absent: all there is to say" "0 info     hardware  no hardware of xpu, npu, cuda here; -v shows more
0 problems, 3 warnings" "$code $(printf '%s\n' "$out" | sed '/^warning  config /,+1d')"
merely -v
has "merely absent: -v" "$out" "info     plugin             npu: no_device: "
is "merely absent: -v has no line for all" "" "$(printf '%s\n' "$out" | grep '^info  *hardware')"
is "merely absent: -v, remedies" 3 "$(printf '%s\n' "$out" | grep -A1 '^info  *plugin  ' | grep -c remedy:)"
merely --json
printf '%s\n' "$out" >"$dir/json"
for name in xpu npu cuda; do
    is "merely absent: $name in JSON" 1 "$(grep -c "\"absent\": \"$name\"" "$dir/json")"
done
# Present hardware keeps its own lines, whatever else is absent.
mkdir -p "$dir/merely/machine/dev"
: >"$dir/merely/machine/dev/davinci_manager"
merely
has "one is not absent" "$out" "no hardware of xpu, cuda here"
has "one is not absent: its block" "$out" "npu: no_device"
rm -rf "$dir/merely"

# A library that a plugin needs is reported with the plugin until the loader can find the library.
cp "$build/tests/fixtures/missing_library/ds_accel_missing_library.so" "$plugins/"
doctor 1
found plugin_dependency problem libds_accel_absent.so.1 \
    "needed by $(cd "$plugins" && pwd -P)/ds_accel_missing_library.so" "install the package"
mkdir "$dir/lib"
cp "$build/tests/fixtures/absent/libds_accel_absent.so" "$dir/lib/libds_accel_absent.so.1"
run env LD_LIBRARY_PATH="$dir/lib" "$program" -q --plugin-dir "$plugins" doctor --json
is "the linker finds it, and so does doctor" "0 0" \
    "$code $(printf '%s\n' "$out" | grep -c libds_accel_absent)"
rm "$plugins/ds_accel_missing_library.so"

# ---- plugins -------------------------------------------------------------------------------------

head -c 1000 "$mocks/ds_accel_npu.so" >"$plugins/ds_accel_npu.so"
doctor 1
found plugin problem "$(cd "$plugins" && pwd -P)/ds_accel_npu.so" "elf_truncated: " "copy or install"
rm "$plugins/ds_accel_npu.so"
doctor 0
cp "$mocks/ds_accel_alpha.so" "$plugins/ds_accel_beta.so"
doctor 1
found plugin problem "$(cd "$plugins" && pwd -P)/ds_accel_beta.so" name_mismatch "ds_accel_<name>.so"
mv "$plugins/ds_accel_beta.so" "$plugins/ds_accel_alpha.so"
doctor 0
rm "$plugins/ds_accel_alpha.so"
doctor 1 env DS_ACCEL_CUDA_AVAILABLE=false DS_ACCEL_CUDA_REASON=driver_mismatch
found plugin problem cuda driver_mismatch "same version"
doctor 1 env DS_ACCELERATOR=rocm
has "nothing can be chosen" "$text" "which has no plugin here"
mkdir "$dir/more"
cp "$mocks/ds_accel_cuda.so" "$dir/more/"
doctor 0 env DS_ACCEL_PLUGIN_PATH="$dir/more"
found plugin warning "$(cd "$dir/more" && pwd -P)/ds_accel_cuda.so" "shadowed: by " "remove one"
doctor 0

# A suspended device is not a problem, and doctor must not wake it: the trace of system calls must
# show no access to the device.
put $pci/power/runtime_status suspended
doctor 0
found plugin info cuda "asleep: 0000:01:00.0 suspended" "by name"
if command -v strace >/dev/null 2>&1 && [ -z "${SAN:-}" ] && strace -o "$dir/none" true 2>/dev/null; then
    strace -f -o "$dir/trace" -e trace=openat,mmap,execve "$program" -q --root "$machine" \
        --plugin-dir "$plugins" doctor >/dev/null
    is "no node is opened, no config space read" "0" \
        "$(grep -cE "$machine/dev/nvidia|$machine/$pci/(config|resource)" "$dir/trace")"
    has "the trace has what was read" "$(cat "$dir/trace")" "0000:01:00.0/vendor"
fi
put $pci/power/runtime_status active

# ---- configuration -------------------------------------------------------------------------------

run env DS_ACCEL_CACH=off "$program" -q doctor
has "an unknown variable" "$code $out" "DS_ACCEL_CACH: unknown variable DS_ACCEL_CACH; did you mean DS_ACCEL_CACHE?"
echo '{"backends": {"cuda": {"device_nodes": ["nvidia0"]}}}' >"$dir/bad.json"
run "$program" --config "$dir/bad.json" doctor
is "a bad configuration has its own exit code" "5 " "$code $out"
has "and names the value" "$err" "$dir/bad.json:1:41: "

# The schema and the program accept and reject the same values.
while read -r key value; do
    printf '{"backends": {"x": {"%s": [%s]}}}\n' "$key" "$value" >"$dir/facts.json"
    run "$program" --config "$dir/facts.json" config check
    ours=$code
    run validate "$source/conf/schema/config.json" <"$dir/facts.json"
    is "the schema and the program agree of $key $value" "$([ "$ours" = 0 ] && echo 0 || echo 1)" "$code"
done <<'END'
device_nodes "/dev/nvidia[0-9]*"
device_nodes "/dev/dri/renderD*"
device_nodes "/dev/*/x"
device_nodes "/etc/passwd"
device_nodes "dev/x"
device_nodes "/dev/"
device_nodes "/dev//x"
pci "10de"
pci "10de:03"
pci "10de:0302"
pci "10DE"
pci "10de:030"
pci "10de:"
libraries "libcuda.so.1"
libraries "/opt/x/libcuda.so"
libraries "opt/libcuda.so"
libraries "cuda"
libraries "/opt/libcuda.so/"
tolerate "leaves_thread"
tolerate "changes_signal_handler"
tolerate "leaves_threads"
tolerate "result_forged"
END

# ---- limits --------------------------------------------------------------------------------------

# Run doctor as a user without capabilities: the limit does not apply to root with CAP_IPC_LOCK.
plain=
[ "$(id -u)" != 0 ] || plain="setpriv --reuid 65534 --regid 65534 --clear-groups"
# shellcheck disable=SC2086
run sh -c "ulimit -l 64 && exec $plain \"\$0\" -q doctor" "$program"
has "little locked memory" "$code $out" "64 KiB of "
has "how to have more" "$out" "ulimit -l unlimited"
if [ "$(id -u)" = 0 ] && sh -c "ulimit -l unlimited" 2>/dev/null; then
    # shellcheck disable=SC2086
    run sh -c "ulimit -l unlimited && exec $plain \"\$0\" -q doctor -v" "$program"
    has "enough of it" "$out" "RLIMIT_MEMLOCK: unlimited"
fi
cpus=$(nproc --all)
if [ "$cpus" -gt 1 ] && command -v taskset >/dev/null 2>&1; then
    run taskset -c 0 "$program" -q doctor
    has "one CPU" "$out" "1 of "
    has "who says so" "$out" "taskset, numactl or a launcher"
fi

finish
