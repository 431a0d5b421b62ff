#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Tests of the engine of the simulated runtimes: tests/sim/self/self.c, plain and under the thread
# sanitizer, and the engine's tools.
#
#     test_engine.sh BUILD
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/tools/lib.sh
. "$here/../tools/lib.sh"
unset SIM_MACHINE SIM_FAIL SIM_LATENCY_US SIM_LOSE SIM_REPORT SIM_RANGES 2>/dev/null || true
: "${CC:=gcc}"

# compile NAME FLAG...: compiles self.c with the engine to $dir/NAME.
compile() {
    name=$1
    shift
    # shellcheck disable=SC2046 # flags
    "$CC" -std=c11 -D_GNU_SOURCE -g -O1 -I"$here" -I"$here/.." "$@" $(pkg-config --cflags jansson) \
        "$here"/*.c "$here/self/self.c" -o "$dir/$name" $(pkg-config --libs jansson) -lpthread
}

# a_case PROGRAM CASE: runs the case with its machine and its script.
a_case() {
    SIM_MACHINE=$here/machines/cuda.json
    set -- "$@" SIM_REPORT="$dir/report"
    case $2 in
    orders_*) SIM_MACHINE=$here/machines/node-8gpu.json ;;
    event_times_*) set -- "$@" SIM_LATENCY_US=copy=3000 ;;
    scripts_*) set -- "$@" SIM_FAIL='a:2=77,*:5,b:*=9' ;;
    a_lost_*) set -- "$@" SIM_LOSE=0@copy:2 ;;
    esac
    export SIM_MACHINE
    program=$1
    case_name=$2
    shift 2
    rm -f "$dir/report"
    run env "$@" timeout 60 "$dir/$program" "$case_name"
}

compile self
for case in $("$dir/self"); do
    a_case self "$case" 2>/dev/null
    case $case in
    dies:the_host_*) is "$case" 139 "$code" ;;
    dies:*)
        is "$case" 134 "$code"
        has "$case: it is said what was wrong" "$err" "simulated runtime misused: "
        ;;
    scripts_*)
        is "$case" "0 " "$code $err"
        is "$case: the report" "calls 7
failed a
failed b
failed a
failed b
alive stream 2
alive device-memory 1" "$(cat "$dir/report")"
        ;;
    *) is "$case" "0 " "$code $err" ;;
    esac
done

SIM_MACHINE=$here/machines/cuda.json SIM_REPORT="$dir/of.%p" SIM_FAIL='a:2' "$dir/self" ends_at_once
is "a report of each process, though it ends at once" "calls 2
failed a
alive event 1
alive pinned-memory 1" "$(cat "$dir"/of.*)"
rm -f "$dir"/of.*

# Cases run again under the thread sanitizer, if the compiler supports it, except those that must
# abort: misuse is not a race.
if [ -z "${SAN-}" ] && compile self-threads -fsanitize=thread 2>/dev/null; then
    export TSAN_OPTIONS=halt_on_error=1
    for case in $("$dir/self"); do
        case $case in
        dies:* | memory_and_events_cross_*) ;;
        *)
            a_case self-threads "$case"
            is "threads: $case" "0 " "$code $err"
            ;;
        esac
    done
else
    echo "test_engine: not run under the thread sanitizer"
fi

# -- the rules of CUDA's driver, as its simulator enforces them --

"$CC" -std=c11 -D_GNU_SOURCE -g ${SAN:+-fsanitize="$SAN"} -I"$here" "$here/self/cuda.c" -o "$dir/cuda" \
    "$build/sim/lib/libcuda.so.1" "$build/sim/lib/libnvidia-ml.so.1" "$build/sim/lib/libsim_cuda.so" -Wl,-rpath,"$build/sim/lib" -lpthread
for case in $("$dir/cuda"); do
    a_case cuda "$case" 2>/dev/null
    case $case in
    dies:*) is "cuda: $case" 134 "$code" ;;
    list) ;;
    *)
        is "cuda: $case" "0 " "$code $err"
        is "cuda: $case: nothing is left" "" "$(grep -sv "^calls " "$dir/report")"
        ;;
    esac
done

# visible NAME WANTED VARIABLE...: checks the buses of the visible devices, in order; or cuInit's
# code.
visible() {
    name=$1
    wanted=$2
    shift 2
    run env "$@" SIM_MACHINE="$here/machines/node-8gpu.json" "$dir/cuda" list
    is "visible: $name" "$wanted" "$(printf '%s' "$out" | tr ' ' '\n' | sed 's|^0000:\(..\):.*|\1|' | xargs)"
}
V=CUDA_VISIBLE_DEVICES
by_pci=CUDA_DEVICE_ORDER=PCI_BUS_ID
mig=MIG-a90d4e57-1b62-5f38-9c04-e83b6d52f710
visible "fastest first, the divided one left out" "18 2a 5d ba db 3a 9a"
visible "by PCI address" "18 2a 3a 5d 9a ba db" $by_pci
visible "a list" "3a 18" $by_pci $V=2,0
visible "numbers of the order that holds" "9a 18" $V=7,0
visible "cut at the first that is none" "18 2a" $by_pci $V=0,1,99,2
visible "cut at -1" "18" $by_pci $V=0,-1,2
visible "a list that names one twice hides all" "100" $by_pci $V=0,0,1
visible "empty hides all" 100 $V=
visible "by UUID, its beginning, and a number" "5d 18" $by_pci $V=GPU-22170f15,0
visible "a beginning of several is none" 100 $V=GPU-2
visible "a part is alone" "ab" $V=$mig,0
visible "a number of a divided device is its first part" "ab" $by_pci $V=5

# -- the machine's files, and the runner --

sim="$here/ds-accel-sim"
SIM_BUILD=$build
export SIM_BUILD
for machine in "$here"/machines/*.json; do
    run "$here/machine.py" "$machine" "$dir/root"
    is "$(basename "$machine"): it can be written" "0 " "$code $err"
    rm -rf "$dir/root"
done
"$here/machine.py" "$here/machines/cuda+xpu.json" "$dir/root"
is "a device on the bus" "0x10de 0x030200 0 active" \
    "$(cd "$dir/root/sys/bus/pci/devices/0000:18:00.0" && cat vendor class numa_node power/runtime_status | xargs)"
is "a node and its device" "0x8086" "$(cat "$dir/root/sys/class/drm/renderD129/device/vendor")"
is "all slots" "4" "$(wc -l <"$dir/root/proc/bus/pci/devices" | xargs)"
is "nodes are plain files" "666 regular empty file" "$(stat -c '%a %F' "$dir/root/dev/nvidia1")"
rm -rf "$dir/root"

cat >"$dir/odd.json" <<'END'
{"vendors": {"cuda": {"driver": false, "devices": [{"name": "A", "pci": "0000:01:00.0"}]},
             "npu": {"devices": [{"name": "B", "pci": "0000:02:00.0", "permission": false, "power": "suspended"}]}},
 "files": {"/proc/odd": "text"}}
END
"$here/machine.py" "$dir/odd.json" "$dir/root"
is "a card without its driver has no node" "0x10de none" \
    "$(cat "$dir/root/sys/bus/pci/devices/0000:01:00.0/vendor") $([ -e "$dir/root/dev/nvidiactl" ] || echo none)"
is "a node that nobody may open" "0 666" \
    "$(stat -c %a "$dir/root/dev/davinci0") $(stat -c %a "$dir/root/dev/davinci_manager")"
is "a device that sleeps" suspended "$(cat "$dir/root/sys/bus/pci/devices/0000:02:00.0/power/runtime_status")"
is "files of the description's own" text "$(cat "$dir/root/proc/odd")"

# shellcheck disable=SC2016 # for the shell inside
run "$sim" node-8gpu sh -c 'echo "$SIM_MACHINE" "$DS_ACCEL_CACHE" "${LD_LIBRARY_PATH%%:*}"; ls "$DS_ACCEL_ROOT/dev"; echo "$DS_ACCEL_ROOT" >'"$dir/where"'; exit 7'
is "the runner: the command's exit status" 7 "$code"
has "the runner: what is set" "$out" "$here/machines/node-8gpu.json off $build/sim/lib"
has "the runner: nodes with holes" "$out" "nvidia9"
is "the runner: its directory is gone" gone "$([ -e "$(cat "$dir/where")" ] || echo gone)"
# shellcheck disable=SC2016 # for the shell inside
run env DS_ACCEL_ROOT="$dir/root" "$sim" cuda sh -c 'echo "$DS_ACCEL_ROOT"'
is "the runner: a root that is set already stays" "$dir/root" "$out"
run "$sim" nowhere true
is "the runner: no such machine" 1 "$code"
run "$sim" node-8gpu "$build/bin/ds-accel" info cpu --json
has "the command sees that machine" "$out" '"Simulated CPU"'

finish
