#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# A plugin does not affect the others: they get the same verdicts, reasons and strikes as without
# it, cpu is available, no process that the plugin started is left, and the stored verdicts are
# right. This is tested with each kind of containment.  test_isolation.sh BUILD
set -eu
build=$(cd "$1" && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
umask 022
chmod 755 "$dir"
fixtures=$build/tests/fixtures
program=$build/bin/ds-accel
plugins=$dir/plugins
config=$dir/config.json
mark=DS_TEST_RUN=$$-$(date +%s)
python=${PYTHON:-/usr/bin/python3}
mkdir -p "$plugins" "$dir/run"
export XDG_RUNTIME_DIR="$dir/run" DS_ACCEL_CACHE=rw

# configure CONTAINMENT [TIMEOUT_MS [MEMBERS]]: write the configuration, with additional members.
configure() {
    printf '{"detection_order": ["faulty", "neighbour"], "probe": {"containment": "%s", "timeout_ms": %s}%s}\n' \
        "$1" "${2:-20000}" "${3:+, $3}" >"$config"
}

# put DIRECTORY FAULT: install the fault and a good plugin, "neighbour", which comes later in the
# order.
put() {
    rm -f "$plugins"/*
    cp "$fixtures/faults/neighbour/ds_accel_neighbour.so" "$plugins/"
    cp "$fixtures/$1/$2/ds_accel_faulty.so" "$plugins/"
}

ds_accel() {
    run env "$mark" DS_TEST_PID_FILE="$dir/pid" "$program" --config "$config" --plugin-dir "$plugins" "$@"
}

# others: print the report of all other plugins, without the values that differ from run to run.
others() {
    printf '%s' "$out" | "$python" -c '
import json, sys
for one in json.load(sys.stdin)["candidates"]:
    if one["name"] != "faulty" and one["state"] != "not_probed":
        print(one["name"], "available" if one["state"] == "selected" else one["state"], one["reason"] or "-",
              one["strikes"], one["detail"], one["output"])' 2>/dev/null || echo "no report: $out"
}

of_ours() {
    grep -lsaF "$mark" /proc/[0-9]*/environ || true
}

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

# ---- a plugin that is not chosen affects no other ------------------------------------------------

configure auto
put faults none
rm "$plugins/ds_accel_faulty.so"
ds_accel explain --json
alone=$(others)
has "alone" "$alone" "neighbour available - 0"
has "alone" "$alone" "cpu available not_needed 0"

# harmless NAME DIRECTORY FAULT LIMIT: run explain, which probes all plugins, and detect with the
# fault, then detect without it.
harmless() {
    put "$2" "$3"
    rm -rf "$dir/run/ds-accel"
    run sh -c "ulimit -n $4; exec \"\$@\"" sh env "$mark" DS_TEST_PID_FILE="$dir/pid" "$program" \
        --config "$config" --plugin-dir "$plugins" explain --json
    is "$1: explain's exit code" 0 "$code"
    is "$1: what is said of the others" "$alone" "$(others)"
    nobody_left "$1"
    ds_accel detect -q
    is "$1: detect" "0 neighbour" "$code $out"
    rm "$plugins/ds_accel_faulty.so"
    ds_accel detect -q
    is "$1: detect, remembering, without it" "0 neighbour" "$code $out"
    rm "$plugins/ds_accel_neighbour.so"
    ds_accel detect -q
    is "$1: detect, remembering, cpu alone" "0 cpu" "$code $out"
    nobody_left "$1, afterwards"
}

for directory in "$fixtures"/losers/*; do
    fault=$(basename "$directory")
    harmless "$fault" losers "$fault" 256
done

# ---- each kind of containment --------------------------------------------------------------------

# A fork bomb whose processes leave their group and session, children created with CLONE_PARENT,
# which belong to the parent of the process of the plugin, and daemons of a plugin that exits.
for way in namespace cgroup tree; do
    configure "$way"
    put faults none
    ds_accel detect
    case $err in
    *"containment of the plugins' processes"*)
        echo "isolation: not tested: $way: $(printf '%s' "$err" | head -n 1)"
        continue
        ;;
    esac
    for fault in fork_bomb clone_parent daemon_end daemon_kill leave_daemon leave_process; do
        harmless "$fault, $way" losers "$fault" 1024
    done
    put faults close_and_spin
    configure "$way" 30000
    rm -f "$dir/answer"
    env "$mark" "$program" --config "$config" --plugin-dir "$plugins" detect >"$dir/answer" 2>&1 &
    pid=$!
    tries=0
    while [ "$(of_ours | wc -l)" -lt 3 ] && [ $tries -lt 3000 ]; do
        tries=$((tries + 1))
        sleep 0.02
    done
    kill -KILL "$pid"
    wait "$pid" 2>/dev/null || true
    nobody_left "the caller is killed, $way"
    configure "$way" 300
    put faults ignores_term
    ds_accel detect -q
    is "ignores_term, $way" "0 neighbour" "$code $out"
    nobody_left "ignores_term, $way"
done
configure auto

# Run in process 1 of a container, where no other process reaps zombies.
put faults none
rm "$plugins/ds_accel_faulty.so"
if unshare --pid --fork --mount-proc true 2>/dev/null; then
    cat >"$dir/first.py" <<'END'
import glob, os, sys, time

for i in range(2):
    os.waitpid(os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ), 0)
time.sleep(0.1)
print(sum(") Z " in open(stat).read() for stat in glob.glob("/proc/[0-9]*/stat")))
END
    for way in auto namespace tree; do
        configure "$way"
        run env "$mark" DS_ACCEL_CACHE=off unshare --pid --fork --mount-proc "$python" "$dir/first.py" \
            "$program" --config "$config" --plugin-dir "$plugins" detect -q
        is "no zombie is left to process 1, $way" "0 neighbour
neighbour
0" "$code $out"
    done
    configure auto
else
    echo "isolation: not tested: process 1: no pid namespace"
fi

# ---- commands with a hostile chosen plugin -------------------------------------------------------

# The probe opens no device, so these faults occur in info, which must print a line and exit with a
# documented code.
for fault in open_segv open_exit open_daemon; do
    put faults "$fault"
    ds_accel detect -q
    is "$fault: detect" "0 faulty" "$code $out"
    ds_accel info faulty -q
    is "$fault: info's exit code" 1 "$code"
    has "$fault: info says it" "$err" "ds-accel: info: "
    nobody_left "$fault"
done

# Ctrl-C terminates a command whose plugin ignores the signal.
put faults open_hang
rm -f "$dir/pid"
env "$mark" PID_FILE="$dir/pid" "$python" - "$program" --config "$config" --plugin-dir "$plugins" info faulty -q >"$dir/answer" 2>&1 <<'END'
import os, signal, subprocess, sys, time

signal.signal(signal.SIGINT, signal.SIG_DFL)
end = time.monotonic() + 60
process = subprocess.Popen(sys.argv[1:], env=os.environ | {"DS_TEST_PID_FILE": os.environ["PID_FILE"]})
while not os.path.exists(os.environ["PID_FILE"]) and time.monotonic() < end:
    time.sleep(0.02)
process.send_signal(signal.SIGINT)
try:
    print(signal.Signals(-process.wait(30)).name)
except subprocess.TimeoutExpired:
    process.kill()
    print("it goes on")
END
is "open_hang: Ctrl-C" SIGINT "$(cat "$dir/answer")"
nobody_left "open_hang"
put faults destructor_hang
for command in detect list explain doctor "info faulty" "topo faulty" "env faulty"; do
    # shellcheck disable=SC2086 # words
    ds_accel $command -q
    case $code in
    0 | 1) pass ;;
    *) fail "destructor_hang: $command" "exit code $code" ;;
    esac
    [ "$command" = doctor ] || is "destructor_hang: $command: the answer's code" 0 "$code"
    nobody_left "destructor_hang: $command"
done

# The probe rejects a plugin that crashes, exits or hangs while it starts.
for fault in init_segv init_exit shutdown_ill shutdown_exit; do
    put faults "$fault"
    for command in detect list explain "info neighbour"; do
        # shellcheck disable=SC2086 # words
        ds_accel $command -q
        is "$fault: $command" 0 "$code"
    done
done

# The probe finds changes and leftovers that only init() makes.
for directory in "$fixtures"/start-only/*; do
    fault=$(basename "$directory")
    case $fault in
    change_root | change_ids) [ "$(id -u)" = 0 ] || continue ;;
    change_affinity) [ "$(nproc)" != 1 ] || continue ;;
    esac
    case $fault in
    change_*) reason=changes_${fault#change_} ;;
    leave_*) reason=leaves_${fault#leave_} ;;
    *) reason=leaves_process ;;
    esac
    put start-only "$fault"
    ds_accel explain faulty --json
    is "$fault, in init alone" "rejected $reason" "$(printf '%s' "$out" | "$python" -c '
import json, sys
one = json.load(sys.stdin)["candidates"][0]
print(one["state"], one["reason"])')"
    ds_accel detect -q
    is "$fault, in init alone: detect" "0 neighbour" "$code $out"
    nobody_left "$fault, in init alone"
done

# ---- many processes at once, and few descriptors -------------------------------------------------

# The device admits one process: a probe that finds it busy is not a failure, and causes neither a
# stored verdict nor a strike.
put faults init_busy
for cache in off rw; do
    rm -rf "$dir/run/ds-accel"
    i=0
    while [ $i -lt 32 ]; do
        env DS_ACCEL_CACHE=$cache DS_TEST_LOCK_FILE="$dir/lock" "$program" --config "$config" --plugin-dir "$plugins" \
            detect -q >"$dir/many.$i" 2>&1 &
        i=$((i + 1))
    done
    wait
    is "32 at once, cache $cache" "     32 faulty" "$(sort "$dir"/many.* | uniq -c)"
    with_lock=$(DS_TEST_LOCK_FILE="$dir/lock" "$program" --config "$config" --plugin-dir "$plugins" explain faulty --json |
        "$python" -c 'import json, sys; print(json.load(sys.stdin)["candidates"][0]["strikes"])')
    is "32 at once, cache $cache: strikes" 0 "$with_lock"
done

# If too few file descriptors are left for a helper, cpu is still chosen. Inherited descriptors are
# closed first.
rm -f "$plugins"/*
for limit in 14 15 16 17 18 19 20 24 32; do
    run "$python" -c 'import os, resource, sys
os.closerange(3, 1024)
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[1])))
os.execvp("env", ["env", "DS_ACCEL_CACHE=off", *sys.argv[2:]])' "$limit" "$program" detect -q
    is "$limit descriptors" "0 cpu" "$code $out"
done

finish
