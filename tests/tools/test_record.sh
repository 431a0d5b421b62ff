#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Recorded machines: on a recording, without the plugins, the program must print exactly what it
# printed on the machine, with the same exit code. Also the bundle of reports, and invalid
# recordings.  test_record.sh BUILD
set -eu
build=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
program=$build/bin/ds-accel
mocks=$build/tests/fixtures/mocks
faults=$build/tests/fixtures/faults
python=${PYTHON:-/usr/bin/python3}
plugins=$dir/plugins
mkdir "$plugins" "$dir/live"

validate() {
    "$python" "$source/tests/tools/validate.py" "$@"
}

# Mask times, and the memory use of this process and machine; memory of the devices of the mock is
# not masked.
same() {
    sed -E 's/"(elapsed_us|process_memory_bytes)": [0-9]+/"\1": 0/
        s/"available_memory_bytes": [0-9]+/"available_memory_bytes": 0/
        s/[0-9.]+ GiB of ([0-9.]+ GiB) available/? of \1 available/' "$1"
}

# The commands, one per line; @NAME=VALUE before a command sets a variable.
cat >"$dir/commands" <<'END'
detect --json
detect
list --json
explain --json
explain cuda --json
explain
info --json
info cuda --json
info rocm --json
info xpu --json
info hpu --json
info mock --json
info cpu
env --json
env hpu --json
env cuda
env mock --json
topo --json
topo cuda rocm mock --json
topo cuda
topo cpu --svg
config show --json
config show
@DS_ACCELERATOR=cuda detect --json
@DS_ACCELERATOR=cpu detect --json
@DS_ACCELERATOR=mock info --json
@DS_ACCELERATOR=nosuch detect --json
@DS_ACCELERATOR=hpu detect
-a rocm detect --json
-a xpu explain --json
-a faulty detect --json
info nosuch
--config deny.json detect --json
--config deny.json list --json
--config order.json detect --json
--config order.json explain --json
--config trust.json detect --json
--config trust.json list --json
--config facts.json explain --json
--config bad.json detect
END
cat >"$dir/deny.json" <<'END'
{"deny": ["cuda", "m*"]}
END
cat >"$dir/order.json" <<'END'
{"detection_order": ["rocm", "xpu", "cuda", "cpu"],
 "backends": {"xpu": {"defers_to": {"driver": ["rocm"]}}, "cuda": {"demand_only": true},
              "mock": {"demand_only": false, "communication_backend": "mpi"}}}
END
cat >"$dir/trust.json" <<'END'
{"trust": {"mode": "enforce"}}
END
cat >"$dir/facts.json" <<'END'
{"backends": {"cuda": {"pci": ["8086:03", "8086:06"]}, "rocm": {"device_nodes": ["/dev/nvidia*"]}}}
END
echo '{"accelerators": 1}' >"$dir/bad.json"

# ask LINE OPTIONS...: run the command of a line with these options; print its output and exit code.
ask() {
    line=$1
    shift
    variable=DS_ACCEL_CACHE=off
    case $line in
    @*)
        variable=${line%% *}
        variable=${variable#@}
        line=${line#* }
        ;;
    esac
    code=0
    # shellcheck disable=SC2086 # a list of words
    (cd "$dir" && env "$variable" "$program" -q "$@" $line) 2>"$dir/stderr" || code=$?
    echo "code $code"
    cat "$dir/stderr"
}

# ask_plainly LINE OPTIONS...: as ask, but without the variables that control the plugins.
ask_plainly() {
    for variable in $(env | sed -n 's/^\(DS_ACCEL_[A-Z_]*\)=.*/\1/p'); do
        [ "$variable" = DS_ACCEL_CACHE ] || unset "$variable"
    done
    ask "$@"
}

# record NAME OPTIONS...: record the machine, run every command, remove the plugins, and run every
# command on the recording.
record() {
    name=$1
    shift
    run "$program" -q "$@" report --record "$dir/$name.json"
    is "$name: recorded" "0 " "$code $err$out"
    is "$name: the shape" "" "$(validate "$source/conf/schema/recording.json" <"$dir/$name.json" 2>&1)"
    number=0
    while read -r line; do
        number=$((number + 1))
        ask "$line" "$@" >"$dir/live/$number" </dev/null
    done <"$dir/commands"
    mv "$plugins" "$plugins.gone"
    number=0
    while read -r line; do
        number=$((number + 1))
        # Commands that name the backend wake a suspended device, which a recording cannot
        # reproduce.
        case $name:$line in
        *:explain*) ;;
        suspended-gpu:*cuda* | suspended-gpu:*facts*) continue ;;
        esac
        (ask_plainly "$line" --machine "$dir/$name.json" >"$dir/replayed" </dev/null)
        same "$dir/live/$number" >"$dir/wanted"
        same "$dir/replayed" >"$dir/given"
        if cmp -s "$dir/wanted" "$dir/given"; then
            pass
        else
            fail "$name: $line" "$(diff "$dir/wanted" "$dir/given" | head -20)"
        fi
    done <"$dir/commands"
    mv "$plugins.gone" "$plugins"
}

# ---- machines ------------------------------------------------------------------------------------

record this
cp "$mocks/ds_accel_cuda.so" "$mocks/ds_accel_rocm.so" "$mocks/ds_accel_xpu.so" "$plugins"
export DS_ACCEL_CUDA_DEVICE_COUNT=3 DS_ACCEL_ROCM_DEVICE_NAME="Another <one> \"é\"" DS_ACCEL_ROCM_FP16=false \
    DS_ACCEL_XPU_VARIANT=driver
record deference --plugin-dir "$plugins"
for machine in "$source"/tests/machines/*/; do
    record "$(basename "$machine")" --root "${machine%/}" --plugin-dir "$plugins"
done
export DS_ACCEL_CUDA_AVAILABLE=false DS_ACCEL_CUDA_REASON=no_driver DS_ACCEL_CUDA_DETAIL="no module" \
    DS_ACCEL_ROCM_FAIL=init=driver DS_ACCEL_XPU_FAIL=mem_info=device_lost
record failures --plugin-dir "$plugins"
unset DS_ACCEL_CUDA_AVAILABLE DS_ACCEL_CUDA_REASON DS_ACCEL_CUDA_DETAIL DS_ACCEL_ROCM_FAIL DS_ACCEL_XPU_FAIL \
    DS_ACCEL_CUDA_DEVICE_COUNT DS_ACCEL_ROCM_DEVICE_NAME DS_ACCEL_ROCM_FP16 DS_ACCEL_XPU_VARIANT
# Files that are not plugins, invalid names, a plugin that shadows another, a plugin that other
# users may write to, and a plugin that crashes.
mkdir "$plugins/second"
cp "$mocks/ds_accel_cuda.so" "$plugins/second/"
echo "no plugin" >"$plugins/ds_accel_text.so"
cp "$mocks/ds_accel_cuda.so" "$plugins/ds_accel_Bad.so"
cp "$mocks/ds_accel_cuda.so" "$plugins/ds_accel_npu.so"
chmod 666 "$plugins/ds_accel_xpu.so"
cp "$faults/probe_segv/ds_accel_faulty.so" "$plugins/"
record rejected --plugin-dir "$plugins" --plugin-dir "$plugins/second"
cp "$faults/change_umask/ds_accel_faulty.so" "$plugins/"
record conduct --plugin-dir "$plugins" --plugin-dir "$plugins/second"
rm -r "$plugins"
mkdir "$plugins"
cp "$mocks/ds_accel_cuda.so" "$mocks/ds_accel_rocm.so" "$plugins"

# The recorded machine has a forced accelerator, and variables that rules of backends read.
export DS_ACCELERATOR=rocm PT_HPU_LAZY_ACC_PAR_MODE=1
run "$program" -q --plugin-dir "$plugins" report --record "$dir/forced.json"
is "recorded with an override" "0 " "$code $err"
run "$program" -q --plugin-dir "$plugins" env hpu --json
live=$out
unset DS_ACCELERATOR PT_HPU_LAZY_ACC_PAR_MODE
run "$program" -q --machine "$dir/forced.json" detect
is "the machine's override" "0 rocm" "$code $out"
run env DS_ACCELERATOR=cpu "$program" -q --machine "$dir/forced.json" detect
is "one of now goes before it" "0 cpu" "$code $out"
run "$program" -q --machine "$dir/forced.json" env hpu --json
is "variables are the machine's" "$live" "$out"

# ---- doctor --------------------------------------------------------------------------------------

# On the machine itself doctor runs more checks, for example of the libraries of plugins. Checks that
# find no problem are not displayed, and must not change the columns of the displayed lines.
cp "$mocks/ds_accel_xpu.so" "$plugins"
export DS_ACCEL_XPU_AVAILABLE=false
for machine in two-socket-hbm container-v2; do
    run "$program" -q --root "$source/tests/machines/$machine" --plugin-dir "$plugins" doctor
    live="$code $out"
    has "$machine: doctor displays what is absent" "$live" "
info     hardware  no hardware of xpu here"
    run "$program" -q --root "$source/tests/machines/$machine" --plugin-dir "$plugins" \
        report --record "$dir/doctor.json"
    run "$program" -q --machine "$dir/doctor.json" doctor
    is "$machine: doctor on the recording" "$live" "$code $out"
done
unset DS_ACCEL_XPU_AVAILABLE
rm "$plugins/ds_accel_xpu.so"

# ---- recorded times, and recordings of recordings ------------------------------------------------

run "$program" -q --machine "$dir/deference.json" explain --json
is "elapsed times are those recorded" \
    "$(validate - "plugins/name=cuda/elapsed_us" "plugins/name=xpu/elapsed_us" <"$dir/deference.json")" \
    "$(printf '%s\n' "$out" | validate - "candidates/name=cuda/elapsed_us" "candidates/name=xpu/elapsed_us")"
run "$program" -q --machine "$dir/deference.json" report --record "$dir/again.json"
is "a recording recorded is itself" "0" "$code$(diff "$dir/deference.json" "$dir/again.json")"

# ---- commands that need a device -----------------------------------------------------------------

run env LD_DEBUG=files "$program" --machine "$dir/deference.json" info
is "no plugin is loaded" "0" "$(printf '%s\n' "$err" | grep -c 'ds_accel_[a-z]*\.so' || true)"
run "$program" --machine "$dir/deference.json" bench cuda
is "no device is opened" "4" "$code"
has "and why" "$err" "the machine is a recorded one"
for command in "conformance cuda" "lint $build/lib/ds-accel/ds_accel_cpu.so" "info --memory-map"; do
    # shellcheck disable=SC2086 # a list of words
    run "$program" --machine "$dir/deference.json" $command
    is "not on a recording: $command" "4" "$code"
done
run "$program" --machine "$dir/this.json" --root / detect
is "a root beside it" "1" "$code"
has "what to leave out" "$err" "leave out the root"
run env DS_ACCEL_ROOT=/ "$program" --machine "$dir/this.json" detect
has "or where it came from" "$err" "leave out DS_ACCEL_ROOT"
run "$program" --machine "$dir/this.json" --plugin-dir / detect
is "plugins beside it" "1" "$code"
run "$program" -q --plugin-dir "$plugins" --config "$dir/deny.json" report --record "$dir/denied.json"
printf '{"deny": []}\n' >"$dir/none.json"
run "$program" -q --machine "$dir/denied.json" --config "$dir/none.json" -a cuda detect
is "what nobody asked" "4" "$code"
has "is not known" "$err" "not_recorded: it was disabled (denied) when the machine was recorded"
run "$program" -q --machine "$dir/denied.json" --config "$dir/none.json" detect
is "others are" "rocm" "$out"

# ---- invalid recordings --------------------------------------------------------------------------

# refuses NAME TEXT: check that the file is rejected with its name and TEXT.
refuses() {
    run "$program" -q --machine "$dir/wrong.json" detect
    is "$1" "1 " "$code $out"
    has "$1: the file" "$err" "$dir/wrong.json"
    has "$1: the cause" "$err" "$2"
}

size=$(wc -c <"$dir/this.json")
for part in 0 1 7 50 90 99; do
    head -c $((size * part / 100)) "$dir/this.json" >"$dir/wrong.json"
    refuses "cut after $part %" "cut short"
done
echo '{"schema_version": 1}' >"$dir/wrong.json"
refuses "another file" "not a recorded machine of ds-accel"
head -c 4096 "$program" >"$dir/wrong.json"
refuses "no text" "not a recorded machine"
rm "$dir/wrong.json"
refuses "no file" "No such file"
mkdir "$dir/wrong.json"
refuses "a directory" "it is a directory"
rmdir "$dir/wrong.json"

# change EXPRESSION: change a valid recording with Python.
change() {
    "$python" - "$dir/this.json" "$dir/wrong.json" "$1" <<'END'
import json, sys
r = json.load(open(sys.argv[1]))

def plugin(name):
    return [p for p in r["plugins"] if p["name"] == name][0]

exec(sys.argv[3])
json.dump(r, open(sys.argv[2], "w"))
END
}

# each line: EXPRESSION # TEXT
while IFS='#' read -r expression text; do
    change "$expression"
    refuses "$expression" "$text"
done <<'END'
r["format"] = 9; r["version"] = "7.1"#ds-accel 7.1 recorded it in format 9; this version reads format 1
del r["format"]#it has no "format"
del r["plugins"]#it has no "plugins"
r["plugins"] = {}#/plugins: it is of another type
r["plugins"][0]["gates"][3]["result"] = "maybe"#/plugins/0/gates/3/result
r["plugins"][0]["gates"].pop()#/plugins/0: its gates are not those of this version, in their order
del r["plugins"][0]["gates"][3]#/plugins/0: its gates are not those of this version, in their order
r["plugins"][0]["gates"].append(r["plugins"][0]["gates"][-1])#/plugins/0: its gates are not those of this version, in their order
r["plugins"][0]["gates"].reverse()#/plugins/0: its gates are not those of this version, in their order
r["plugins"][0]["gates"][3]["gate"] = "later"#/plugins/0: its gates are not those of this version, in their order
r["plugins"][0]["name"] = "x" * 32#/plugins/0/name: a text of 32 bytes is too long
r["plugins"][0]["state"] = "fine"#unknown state "fine"
r["plugins"][0]["reason"] = "because"#unknown reason "because"
r["plugins"][0]["stage"] = "second"#unknown gate "second"
plugin("cpu")["answers"]["device_count"] = 0#it has 0 devices
r["files"]["/proc/meminfo"]["text"] = 5#/files/~1proc~1meminfo/text
r["configuration"][0]["layer"] = "top"#/configuration/0/layer
r["environment"]["X"] = 1#/environment/X
r["who"]["users"] = "me"#/who/users: it is of another type
r["who"]["host"] = "h" * 256#/who/host: a text of 256 bytes is too long
END
# The configuration in a recording is checked like any other configuration.
change 'r["configuration"][0]["text"] = "{\"accelerators\": 1}"'
run "$program" -q --machine "$dir/wrong.json" detect
is "a configuration that is wrong" "5" "$code"
# Malformed or missing values of a plugin count as absent.
for answers in '{"device_count": 2}' '{"device_count": 70, "devices": [], "env_rules": 5, "export_envs": {}}' \
    '{"device_count": 1, "devices": [{"open": {"status": 0}, "identity": [], "memory": {"status": "x"}}]}' None; do
    change "plugin('mock')['answers'] = $answers"
    for command in info env topo; do
        run "$program" -q --machine "$dir/wrong.json" $command mock --json
        is "$command with answers $answers" "0 " "$code $err"
        is "the shape of $command with answers $answers" "" "$(printf '%s\n' "$out" |
            validate "$source/conf/schema/$command.json" 2>&1)"
    done
done
# The list of PCI devices is parsed a single time, not again for each of its lines.
change 'r["files"]["/proc/bus/pci/devices"] = {"text": "\n" * 1000000}'
run timeout 60 "$program" -q --machine "$dir/wrong.json" detect
is "a list of a million lines" "0 cpu" "$code $out"
# Bandwidths whose sum overflows 64 bits.
cat >"$dir/links" <<'END'
a = plugin("cpu")["answers"]
a["device_count"] = 2
a["devices"] = [dict(a["devices"][0]), dict(a["devices"][0])]
for i, most in ((0, 2 ** 63 - 1), (1, -1)):
    a["devices"][i]["links"] = [{"kind": 2, "peer_index": 1 - i, "is_up": 1, "bandwidth_bytes_per_s": most}] * 60
END
change "$(cat "$dir/links")"
run "$program" -q --machine "$dir/wrong.json" topo cpu --json
is "links as fast as can be" "0 9223372036854775807" "$code $(printf '%s\n' "$out" |
    validate - "relations/a=cpu:0/links/kind=nvlink/bandwidth_bytes_per_s")"
is "the shape of it" "" "$(printf '%s\n' "$out" | validate "$source/conf/schema/topo.json" 2>&1)"

# ---- recordings in the source tree ---------------------------------------------------------------

# each line: FILE|COMMAND|CODE|part of the output
while IFS='|' read -r file command wanted answer; do
    # shellcheck disable=SC2086 # a list of words
    run "$program" -q --machine "$source/tests/machines/$file" $command
    is "$file: $command" "$wanted" "$code"
    has "$file: $command: the answer" "$out$err" "$answer"
done <<'END'
two-gpus.json|detect|0|cuda
two-gpus.json|-a rocm detect|0|rocm
two-gpus.json|-a hpu detect|4|no_plugin
two-gpus.json|info cuda|0|device 1: Mock Device
two-gpus.json|topo cuda|0|below the same PCIe switch
two-gpus.json|explain xpu|0|reason deferred
h200.json|detect|0|cuda
h200.json|info cuda|0|device 0: NVIDIA H200, 139.3 GiB of 139.8 GiB available
h200.json|explain cuda|0|1 device: libcuda.so.1, driver 580.159.04, 1 device
h200.json|explain opencl|0|reason demand_only
h200.json|topo cuda|0|below the same PCIe host bridge
h200.json|doctor|0|0 problems, 0 warnings
h200.json|-a rocm detect|4|no_device
suspended-gpu.json|detect|0|cpu
suspended-gpu.json|explain cuda|0|reason asleep
suspended-gpu.json|-a cuda detect|4|not_recorded
END

# ---- the bundle ----------------------------------------------------------------------------------

here=$(uname -n)
run env USER=hermione HOME=/home/hermione DS_ACCEL_CUDA_AVAILABLE=false DS_ACCEL_CUDA_DETAIL="hermione, \
/home/hermione/x, 192.0.2.77, 52:54:00:12:34:56, 0000:01:00.0, v1.2.3" \
    "$program" -q --plugin-dir "$plugins" report
is "report" "0 " "$code $err"
printf '%s\n' "$out" >"$dir/bundle"
is "the shape of it" "" "$(validate "$source/conf/schema/report.json" <"$dir/bundle" 2>&1)"
for part in detect list explain doctor topo; do
    is "the shape of its $part" "" "$("$python" -c 'import json, sys
json.dump(json.load(open(sys.argv[1]))[sys.argv[2]], sys.stdout)' "$dir/bundle" "$part" |
        validate "$source/conf/schema/$part.json" 2>&1)"
done
is "names and addresses; neither PCI addresses nor versions" "USER, ~/x, ADDRESS, ADDRESS, 0000:01:00.0, v1.2.3" \
    "$(validate - "list/plugins/name=cuda/detail" <"$dir/bundle")"
# each line: TEXT|WITHOUT, where WITHOUT is TEXT without names and addresses
while IFS='|' read -r text without; do
    run env USER=hermione LOGNAME=hgranger SUDO_USER=ginny HOME=/data/hermione/ DS_ACCEL_CUDA_AVAILABLE=false \
        DS_ACCEL_CUDA_DETAIL="$text" "$program" -q --plugin-dir "$plugins" report
    is "without names and addresses: $text" "$without" \
        "$(printf '%s\n' "$out" | validate - "list/plugins/name=cuda/detail")"
done <<'END'
hgranger and ginny and ginnys and /data/hermione/x and /data/hermione2|USER and USER and ginnys and ~/x and /data/hermione2
/home/harry/lib and "/snap/home/ron": x|/home/USER/lib and "/snap/home/USER": x
at 192.0.2.77. or tcp:192.0.2.77:80 or [::ffff:192.0.2.77]/24|at ADDRESS. or tcp:ADDRESS:80 or [::ffff:ADDRESS]/24
no 192.0.2 nor 1.2.3.4.5 nor 300.1.2.3 nor libx.so.1.2.3.4|no 192.0.2 nor 1.2.3.4.5 nor 300.1.2.3 nor libx.so.1.2.3.4
mac:52:54:00:12:34:56 52-54-00-12-34-5f fe80::5054:ff:fe12:3456%eth0|mac:ADDRESS ADDRESS ADDRESS%eth0
enx52540012345f enx52540012345f0 wlx525400123456|INTERFACE enx52540012345f0 INTERFACE
GPU-3b7c8d2e-14a5-4c1f-9e60-5d2f8a7b9c01 00000000:65:00.0 10de:2330|GPU-3b7c8d2e-14a5-4c1f-9e60-5d2f8a7b9c01 00000000:65:00.0 10de:2330
END
is "the host's name" "HOST true" "$(validate - machine/host redacted <"$dir/bundle" | paste -sd ' ' -)"
run env USER=hermione DS_ACCEL_CUDA_AVAILABLE=false DS_ACCEL_CUDA_DETAIL="hermione" \
    "$program" -q --plugin-dir "$plugins" report --no-redact -o "$dir/bundle"
is "report into a file" "0 " "$code $out$err"
is "as it is" "hermione $here false" \
    "$(validate - "list/plugins/name=cuda/detail" machine/host redacted <"$dir/bundle" | paste -sd ' ' -)"
run "$program" -q --machine "$dir/deference.json" report
printf '%s\n' "$out" >"$dir/bundle"
is "of a recorded machine" "0 true" "$code $(validate - machine/recorded <"$dir/bundle")"
# The bundle of a recording redacts the names of the recorded machine and those of this machine.
run env USER=hermione LOGNAME=hgranger HOME=/data/hermione/ DS_ACCEL_CUDA_AVAILABLE=false \
    DS_ACCEL_CUDA_DETAIL="hermione, hgranger, /data/hermione/x, ron, harry, /home/harry/lib, n7.hogwarts.example, n7x, \
elsewhere, 192.0.2.77" "$program" -q --plugin-dir "$plugins" report --record "$dir/owl.json"
is "who is recorded" "$here /data/hermione/ hermione hgranger" \
    "$(validate - who/host who/home who/users/0 who/users/1 <"$dir/owl.json" | paste -sd ' ' -)"
is "the shape of it, with who it was" "" "$(validate "$source/conf/schema/recording.json" <"$dir/owl.json" 2>&1)"
# owl CHANGE: change the recording by the Python statement CHANGE, write a bundle as user ron, and
# print a detail from the bundle.
owl() {
    "$python" - "$dir/owl.json" "$dir/flown.json" "$1" <<'END'
import json, sys
r = json.load(open(sys.argv[1]))
exec(sys.argv[3])
json.dump(r, open(sys.argv[2], "w"))
END
    run env USER=ron LOGNAME=elsewhere HOME="$dir/burrow/" DS_ACCEL_CONFIG="$dir/burrow/ron.json" \
        "$program" -q --machine "$dir/flown.json" report
    printf '%s\n' "$out" >"$dir/bundle"
    validate - "list/plugins/name=cuda/detail" <"$dir/bundle"
}
mkdir "$dir/burrow"
echo '{"accelerator": "mock"}' >"$dir/burrow/ron.json"
given=$(owl 'r["who"]["host"] = "n7.hogwarts.example"')
is "the recording's names" \
    "USER, USER, ~/x, ron, USER, /home/USER/lib, HOST, n7x, elsewhere, ADDRESS" "$given"
is "the recording's host" "HOST" "$(validate - machine/host <"$dir/bundle")"
is "no name of it is left" "" "$(grep -nE 'hermione|hgranger|harry|hogwarts' "$dir/bundle" || true)"
is "nor the home directory of here" "" "$(grep -nF "burrow" "$dir/bundle" || true)"
has "the configuration of here" "$(cat "$dir/bundle")" '"origin": "~/ron.json'
run env USER=ron HOME=/home/ron "$program" -q --machine "$dir/flown.json" report --no-redact
is "the recording's host, as it is" "n7.hogwarts.example" "$(printf '%s\n' "$out" | validate - machine/host)"
# Many names taken from home directories must leave space for further names, including those of this
# machine.
given=$(DS_ACCEL_CACHE_DIR=/var/ron/elsewhere owl 'r["searched"] = "/home/dobby/lib\n" * 70 + "/home/winky/lib\n"
[p for p in r["plugins"] if p["name"] == "cuda"][0]["detail"] = "dobby, winky"')
is "many homes" "USER, USER" "$given"
has "many homes: the variables of here" "$(cat "$dir/bundle")" '"/var/USER/USER"'
given=$(owl 'del r["who"]')
is "an older recording's names: those of home directories" "hermione, hgranger, /data/hermione/x, ron, USER, \
/home/USER/lib, n7.hogwarts.example, n7x, elsewhere, ADDRESS" "$given"
is "an older recording's host" "" "$(validate - machine/host <"$dir/bundle")"
run "$program" report --record x --no-redact
is "a recording is never redacted" "2" "$code"
finish
