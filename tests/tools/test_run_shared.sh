#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Files that a failed job of ds-accel run leaves in /dev/shm: which are named, and that none is
# removed. If possible the test has a /dev/shm of its own, because jobs of other tests would name its
# files. test_run_shared.sh BUILD
# shellcheck disable=SC2016 # the shell of a rank expands it
set -eu
build=$1
tool=$build/bin/ds-accel

# With a /dev/shm of its own: start again in a mount namespace in which the launcher works.
if [ -z "${OWN_SHARED_MEMORY-}" ]; then
    for options in -m -rm; do
        if unshare $options sh -c 'mount -t tmpfs tmpfs /dev/shm && DS_ACCELERATOR=cpu "$1" run --num_gpus 1 true' sh "$tool" >/dev/null 2>&1; then
            OWN_SHARED_MEMORY=yes exec unshare $options sh -c 'mount -t tmpfs tmpfs /dev/shm && exec "$@"' sh "$0" "$@"
        fi
    done
    OWN_SHARED_MEMORY=no
fi
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
source=$(cd "$(dirname "$0")/../.." && pwd)
export DS_ACCELERATOR=cpu

mine=/dev/shm/ds-accel-test.$$
trap 'rm -rf "$dir" "$mine".*' EXIT
skip() {
    echo "skipped: $1"
}
if [ "$(stat -f -c %T /dev/shm 2>&1)" != tmpfs ] || ! (: >"$mine.x") 2>/dev/null; then
    skip "all: /dev/shm is no tmpfs that can be written"
    finish
    exit
fi
rm "$mine.x"
[ "$OWN_SHARED_MEMORY" = yes ] || skip "a /dev/shm of its own: unshare failed"

validate() {
    python3 "$source/tests/tools/validate.py" "$@"
}
# job NAME CODE ARGUMENTS...: run a job, and check its exit code and the form of its result.
job() {
    name=$1
    wanted=$2
    shift 2
    rm -f "$dir/result"
    run "$tool" run --master_port auto --result "$dir/result" "$@"
    check "$name" "$wanted"
}
check() {
    is "$1: exit code" "$2" "$code"
    is "$1: the form of the result" "" "$(validate "$source/conf/schema/run-result.json" <"$dir/result" 2>&1)"
}
# The files of this test that the summary names, and those that the result does.
named() {
    printf '%s\n' "$err" | sed -n "s|^ds-accel: warning: run:   $mine\.||p" | paste -sd ' ' -
}
listed() {
    python3 - "$mine." "$dir/result" <<'END'
import json, sys
files = json.load(open(sys.argv[2])).get("shared_memory")
print("absent" if files is None else " ".join(f'{f["path"][len(sys.argv[1]):]}={f["bytes"]}'
      for f in files if f["path"].startswith(sys.argv[1])))
END
}

# Programs of ranks: leave NAME MODE KIB... writes files, with the tests' umask.
cat >"$dir/leave" <<'END'
#!/bin/sh
while [ $# -gt 0 ]; do
    head -c $(($3 * 1024)) /dev/zero >"$1" && chmod "$2" "$1"
    shift 3
done
END
chmod +x "$dir/leave"
export mine dir

"$dir/leave" "$mine.old" 600 2048
job "a failure" 3 --num_gpus 2 sh -c '[ $RANK = 0 ] || exec sleep 1000
    "$dir/leave" $mine.left 600 3072 $mine.small 600 1020 $mine.group 640 2048 $mine.private 400 1024; exit 3'
is "a failure: the files" "left (3 MiB) private (1 MiB)" "$(named)"
is "a failure: in the result" "left=3145728 private=1048576" "$(listed)"
has "a failure: what to do" "$err" "left in /dev/shm since the job started: "
has "a failure: what to do" "$err" "that no process has open; remove with rm what no other program needs:"
is "a failure: nothing is removed" "group left old private small" \
    "$(cd /dev/shm && for file in "${mine##*/}".*; do echo "${file##*.}"; done | paste -sd ' ' -)"
if [ "$OWN_SHARED_MEMORY" = yes ]; then
    has "a failure: all files" "$err" ": 4 MiB in 2 files that"
fi

job "the next failure" 3 --num_gpus 1 sh -c 'exit 3'
is "the next failure: the files are old" "" "$(named)"
is "the next failure: in the result" "" "$(listed)"
rm -f "$mine".*

job "success" 0 --num_gpus 2 sh -c '"$dir/leave" $mine.$RANK 600 2048'
is "success: nothing is said" "" "$err"
is "success: in the result" "absent" "$(listed)"
rm -f "$mine".*

job "a killed rank" 137 --num_gpus 2 sh -c '"$dir/leave" $mine.$RANK 600 2048
    [ $RANK = 0 ] || { : >"$dir/left"; exec sleep 1000; }
    while [ ! -e "$dir/left" ]; do sleep 0.05; done; kill -KILL $$'
is "a killed rank: the files of both" "0 (2 MiB) 1 (2 MiB)" "$(named | tr ' ' '\n' | paste -d ' ' - - - | sort | paste -sd ' ' -)"
rm -f "$mine".*

job "control characters" 1 --num_gpus 1 sh -c '"$dir/leave" "$(printf "$mine.a\033[1m\nb\377")" 600 2048; exit 1'
is "control characters: the file" "a [1m b? (2 MiB)" "$(named)"
is "control characters: in the result" "$(printf 'a\033[1m\nb?=2097152')" "$(listed)"
rm -f "$mine".*

job "many files" 1 --num_gpus 1 sh -c 'for i in $(seq 12); do "$dir/leave" $mine.$i 600 $((1024 + i * 4)); done; exit 1'
if [ "$OWN_SHARED_MEMORY" = yes ]; then
    is "many files: the largest" "12 11 10 9 8 7 6 5 4 3" "$(named | sed 's/ ([^)]*)//g')"
    has "many files: the others" "$err" "run:   and 2 more"
    is "many files: in the result" 10 "$(listed | wc -w)"
fi
rm -f "$mine".*

# A signal to the launcher.
rm -f "$dir/result"
"$tool" run --master_port auto --result "$dir/result" --num_gpus 1 sh -c '"$dir/leave" $mine.left 600 2048; : >"$dir/ready"; exec sleep 1000' 2>"$dir/stderr" &
launcher=$!
while [ ! -e "$dir/ready" ] && kill -0 $launcher; do
    sleep 0.05
done
kill -TERM $launcher
code=0
wait $launcher || code=$?
err=$(cat "$dir/stderr")
check "interrupted" 143
is "interrupted: the file" "left (2 MiB)" "$(named)"
rm -f "$mine".*

# The files of the job that other programs, which the launcher does not know, have mapped.
cat >"$dir/hold.py" <<'END'
"""hold.py FILE READY END: map the file, close it, make READY, and wait for END."""
import mmap, os, sys, time
file = os.open(sys.argv[1], os.O_RDWR)
memory = mmap.mmap(file, 4096)
os.close(file)
open(sys.argv[2], "w").close()
while not os.path.exists(sys.argv[3]):
    time.sleep(0.05)
END
# held NAME COMMAND...: the job fails when the command, with hold.py behind it, has mapped its file.
held() {
    name=$1
    shift
    rm -f "$dir/made" "$dir/ready" "$dir/end"
    (
        while [ ! -e "$dir/made" ] && [ ! -e "$dir/end" ]; do
            sleep 0.05
        done
        exec "$@" "${PYTHON:-/usr/bin/python3}" "$dir/hold.py" "$mine.held" "$dir/ready" "$dir/end"
    ) &
    holder=$!
    job "$name" 1 --num_gpus 1 sh -c '"$dir/leave" $mine.held 600 4096 $mine.left 600 2048; : >"$dir/made"
        while [ ! -e "$dir/ready" ]; do sleep 0.05; done; exit 1'
    is "$name: the file is not named" "left (2 MiB)" "$(named)"
    is "$name: in the result" "left=2097152" "$(listed)"
    : >"$dir/end"
    code=0
    wait $holder || code=$?
    is "$name: the other program" 0 "$code"
    rm -f "$mine".*
}
held "mapped" env
for options in "-p -f" "-r -p -f" none; do
    [ "$options" != none ] || skip "mapped in another pid namespace: unshare failed"
    # shellcheck disable=SC2086 # two options
    if [ "$options" != none ] && unshare $options true 2>/dev/null; then
        # shellcheck disable=SC2086
        held "mapped in another pid namespace" unshare $options
        break
    fi
done
finish
