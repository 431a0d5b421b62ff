#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# End a test that hangs: after SECONDS, print what the processes below PID wait for, and kill them.
# PID itself goes on. To stop waiting, send SIGTERM.
#
#     watchdog.sh PID SECONDS
#
# Uses only /proc, because ps may not be installed.
set -u
test=$1
seconds=$2

# below PID: print the processes below it, without this script's own.
below() {
    cat /proc/[0-9]*/stat 2>/dev/null | awk -v root="$1" -v self="$$" '
        { pid = $1; sub(/.*\) /, ""); parent[pid] = $2 }
        END {
            for (pid in parent) {
                for (at = pid; at in parent && at != root && at != self; at = parent[at])
                    ;
                if (at == root && pid != root)
                    print pid
            }
        }' | sort -n
}

# describe PID: print its command, and for each thread its name, state, and place in the kernel.
describe() {
    echo "process $1: $(tr '\0' ' ' <"/proc/$1/cmdline" | cut -c 1-200)"
    for thread in "/proc/$1/task"/*; do
        echo "    thread ${thread##*/} $(cat "$thread/comm"): $(sed 's/.*) \(.\).*/state \1/' "$thread/stat")," \
            "$(cat "$thread/wchan"), system call $(cut -d ' ' -f 1 "$thread/syscall")"
    done
}

trap '[ -z "${!-}" ] || kill $!; wait; exit' TERM
sleep "$seconds" &
wait
trap - TERM
echo "FAILED: has not ended after $seconds s; its processes are killed:"
processes=$(below "$test")
for pid in $processes; do
    describe "$pid" 2>/dev/null
done
# A process that is killed may have been about to start another one.
while [ -n "$processes" ]; do
    # shellcheck disable=SC2086 # a list
    kill -KILL $processes 2>/dev/null
    sleep 1
    processes=$(below "$test")
done
