#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Stalls of jobs, as a user meets them: ds-accel run --stall-timeout. test_run_stall.sh BUILD
# shellcheck disable=SC2016 # the shell of a rank expands it
set -eu
build=$1
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
source=$(cd "$(dirname "$0")/../.." && pwd)
tool=$build/bin/ds-accel
export DS_ACCELERATOR=cpu

value() {
    python3 "$source/tests/tools/validate.py" "$source/conf/schema/run-result.json" "$@" <"$dir/result" 2>&1 | paste -sd ' ' -
}

# One rank sleeps outside the function in which the others wait.
cat >"$dir/wait.py" <<'END_OF_PYTHON'
import faulthandler, os, signal, time
fd = os.environ.get("DS_ACCEL_FAULTHANDLER_FD")
if fd:
    faulthandler.register(signal.SIGUSR1, file=int(fd), all_threads=True)
    os.write(int(fd), b"armed %d %d\n" % (signal.SIGUSR1, os.getpid()))
def load_batch():
    time.sleep(1000)
def all_reduce():
    os.read(os.pipe()[0], 1)
load_batch() if os.environ["RANK"] == "1" else all_reduce()
END_OF_PYTHON
run timeout 120 "$tool" run --stall-timeout 1 --stall-kill --result "$dir/result" --num_gpus 3 "$dir/wait.py"
is "a stall ends the job on request: exit code" 124 "$code"
is "a stall: in the result" "stall 1" "$(value cause/kind stalls/#)"
has "a stall: on stderr" "$err" "no output for"
has "a stall: each rank" "$err" "rank 2 (python3"
has "a stall: the traceback of a program that armed faulthandler" "$err" "in load_batch"
has "a stall: of the others, too" "$err" "in all_reduce"
has "a stall: the cause" "$err" "made no progress for"

# The devices are those of the accelerator that an option named.
run env DS_ACCELERATOR=none timeout 120 "$tool" run -a mock --master_port auto --stall-timeout 1 --stall-kill \
    --result "$dir/result" --num_gpus 1 sleep 1000
is "a stall: the accelerator that was read" "124 mock" \
    "$code $(python3 -c 'import json, sys; print(json.load(sys.stdin)["stalls"][0]["devices"]["accelerator"])' <"$dir/result")"

# Without --stall-kill the job goes on after the report.
run timeout 120 "$tool" run --stall-timeout 1 --result "$dir/result" --num_gpus 2 sh -c 'sleep 10; exit 5'
is "a reported stall: exit code" 5 "$code"
is "a reported stall: it is not the cause" "exit 1" "$(value cause/kind stalls/#)"

# Output, and work, are progress: at least two timeouts pass without a report. Lines come much more
# often than the timeout passes, because a busy machine delays them.
run timeout 120 "$tool" run --master_port auto --stall-timeout 3 --num_gpus 1 sh -c 'for i in $(seq 16); do echo $i; sleep 0.4; done'
is "a rank that writes: nothing on stderr" "0 " "$code $err"
run timeout 120 "$tool" run --master_port auto --stall-timeout 1 --num_gpus 2 sh -c 'end=$(($(date +%s) + 4)); while [ $(date +%s) -lt $end ]; do :; done'
is "ranks that work silently: nothing on stderr" "0 " "$code $err"
# A rank is its process with all descendants: a shell that waits for a pipeline, a program that polls.
run timeout 120 "$tool" run --master_port auto --stall-timeout 3 --stall-kill --num_gpus 1 sh -c '(for i in $(seq 16); do echo $i; sleep 0.4; done) | cat; exit 0'
is "a pipeline that writes: nothing on stderr" "0 " "$code $err"
cat >"$dir/poll.py" <<'END_OF_PYTHON'
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time\nend = time.time() + 4\nwhile time.time() < end: pass"])
while child.poll() is None:
    time.sleep(0.1)
END_OF_PYTHON
run timeout 120 "$tool" run --master_port auto --stall-timeout 1 --stall-kill --num_gpus 2 "$dir/poll.py"
is "a program that polls its child: nothing on stderr" "0 " "$code $err"

# The search does not change a job that works: epoll_wait() fails in a process that is stopped.
cat >"$dir/events.py" <<'END_OF_PYTHON'
import ctypes, os, time
if os.environ["RANK"] == "0":
    end = time.time() + 8
    while time.time() < end:
        pass
else:
    libc = ctypes.CDLL(None, use_errno=True)
    epoll, event = libc.epoll_create1(0), ctypes.create_string_buffer(12)
    if libc.epoll_wait(epoll, event, 1, 7000) != 0:
        raise OSError(ctypes.get_errno(), "epoll_wait")
END_OF_PYTHON
run timeout 120 "$tool" run --master_port auto --stall-timeout 1 --num_gpus 2 "$dir/events.py"
is "a rank in epoll_wait() beside one that works: nothing on stderr" "0 " "$code $err"

# A job that cannot go on for a reason outside it: it is stopped, or its reader is slow. The user
# learns once that stalls are not looked for.
run timeout 120 "$tool" run --master_port auto --stall-timeout 1 --stall-kill --num_gpus 2 sh -c '(sleep 6; kill -CONT $$) & [ $RANK = 0 ] || kill -STOP $$; wait'
has "a stopped rank: a message" "$err" "rank 1 is stopped"
is "a stopped rank: nothing else on stderr" "0 1" "$code $(printf '%s\n' "$err" | wc -l)"
# A helper process that is stopped does not end the search.
run timeout 120 "$tool" run --master_port auto --stall-timeout 1 --stall-kill --num_gpus 2 sh -c 'sleep 1000 & kill -STOP $!; sleep 20'
is "a stopped helper: exit code" 124 "$code"
has "a stopped helper: the cause" "$err" "made no progress for"
is "a stopped helper: no message" 0 "$(printf '%s\n' "$err" | grep -c "is stopped")"
for count in 1 2; do
    run sh -c '"$1" run --master_port auto --stall-timeout 1 --stall-kill --num_gpus "$2" seq 1 400000 | (sleep 4; wc -l)' sh "$tool" "$count"
    is "a slow reader of $count ranks: all lines" "$((count * 400000)) " "$out $err"
done

run "$tool" run --stall-kill true
is "--stall-kill needs a time" 2 "$code"
finish
