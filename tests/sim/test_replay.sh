#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Recordings of simulated machines with several vendors or many devices: without the runtimes and
# the machine's files, every report is byte for byte the same as on the machine, with the same exit
# code. Only elapsed times differ.
#
#     test_replay.sh BUILD
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$here/../tools/lib.sh"
unset SIM_MACHINE SIM_FAIL SIM_LATENCY_US SIM_LOSE SIM_REPORT SIM_RANGES 2>/dev/null || true
export SIM_BUILD="$build"
program=$build/bin/ds-accel
python=${PYTHON:-/usr/bin/python3}

# The commands, one on each line; variables that are set for a command follow @.
cat >"$dir/commands" <<'END'
detect --json
detect
list --json
list
explain --json
explain
explain cuda
info --json
info cuda --json
info xpu --json
info hpu --json
info cuda
info nosuch --json
env --json
env cuda --json
env xpu
env hpu --json
topo --json
topo
topo --svg
topo cuda xpu --json
topo hpu
topo nosuch
config show --json
@DS_ACCELERATOR=cuda detect --json
@DS_ACCELERATOR=xpu detect --json
@DS_ACCELERATOR=hpu info --json
@DS_ACCELERATOR=xpu explain --json
@DS_ACCELERATOR=cpu list --json
@DS_ACCELERATOR=rocm detect
@DS_ACCELERATOR=opencl detect
@DS_ACCELERATOR=nosuch detect --json
-a cuda topo --json
--config order.json detect --json
--config order.json explain --json
--config order.json list --json
--config deny.json detect --json
--config deny.json info cuda --json
--config deny.json topo --json
END
echo '{"detection_order": ["cuda", "xpu", "hpu", "cpu"], "backends": {"xpu": {"defers_to": null}}}' >"$dir/order.json"
echo '{"deny": ["cuda", "h*"]}' >"$dir/deny.json"

# ask LINE OPTIONS...: prints the program's output and exit code, with elapsed times replaced by 0.
ask() {
    line=$1
    shift
    setting=DS_ACCEL_CACHE=off
    case $line in
    @*)
        setting=${line%% *}
        setting=${setting#@}
        line=${line#* }
        ;;
    esac
    code=0
    # shellcheck disable=SC2086 # a list of words
    (cd "$dir" && env "$setting" "$program" -q "$@" $line </dev/null) >"$dir/said" 2>"$dir/stderr" || code=$?
    echo "code $code"
    sed -E 's/"elapsed_us": [0-9]+/"elapsed_us": 0/' "$dir/said" "$dir/stderr"
}

# replay MACHINE: records the machine, runs all commands on it, removes it, and runs them on the
# recording.
replay() {
    machine=$1
    root=$dir/root
    mkdir "$root"
    "$here/machine.py" "$here/machines/$machine.json" "$root"
    (
        export DS_ACCEL_ROOT="$root" SIM_MACHINE="$here/machines/$machine.json" LD_LIBRARY_PATH="$build/sim/lib"
        "$program" -q report --record "$dir/$machine.json" || exit 1
        mkdir "$dir/$machine"
        live=0
        while read -r line; do
            live=$((live + 1))
            ask "$line" >"$dir/$machine/$live"
        done <"$dir/commands"
    ) || fail "$machine: recording"
    rm -r "$root"
    is "$machine: the shape" "" "$("$python" "$source/tests/tools/validate.py" "$source/conf/schema/recording.json" \
        <"$dir/$machine.json" 2>&1)"
    number=0
    while read -r line; do
        number=$((number + 1))
        ask "$line" --machine "$dir/$machine.json" >"$dir/given"
        if cmp -s "$dir/$machine/$number" "$dir/given"; then
            pass
        else
            fail "$machine: $line" "$(diff "$dir/$machine/$number" "$dir/given" | head -20)"
        fi
    done <"$dir/commands"
}

for machine in cuda+xpu node-8gpu hpu none; do
    replay "$machine"
done
is "a recording has what its machine had" "7 2 2 2" "$(for pair in node-8gpu:cuda cuda+xpu:xpu hpu:hpu none:cpu; do
    run "$program" -q --machine "$dir/${pair%:*}.json" info --json
    printf '%s\n' "$out" | "$python" -c 'import json, sys; print(len(json.load(sys.stdin)["devices"]))'
done | paste -sd ' ' -)"
finish
