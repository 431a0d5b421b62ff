#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# How tests are run: the time that is printed, what failed, and the end of a test that hangs.
# test_measured.sh BUILD
set -eu
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
measured=$(dirname "$0")/measured.sh
failures=$dir/failures
unset TEST_SECONDS

lines() {
    printf '%s\n' "$1" | sed 's/[0-9][0-9]* s/N s/g'
}

# ---- without a limit -----------------------------------------------------------------------------

run "$measured" name echo said
is "a command" "0 said
-- name: N s, N s of a processor" "$code $(lines "$out")"
run env FAILURES= "$measured" name sh -c 'exit 3'
is "its exit status" "3 -- name: N s, N s of a processor" "$code $(lines "$out")"
: >"$failures"
run env FAILURES="$failures" "$measured" name true
is "success is no failure" "0 " "$code $(cat "$failures")"
run env FAILURES="$failures" "$measured" name sh -c 'echo fine; echo x: error: y; exit 1'
is "the lines that tell why" "1 -- failed: name
x: error: y" "$code $(cat "$failures")"

# ---- a test that hangs ---------------------------------------------------------------------------

# The process ignores SIGTERM and has two children, one in a session of its own.
cat >"$dir/hang" <<'EOF'
trap '' TERM
echo begin
sleep 1000 &
echo $! >"$1"
setsid sleep 1001 &
echo $! >>"$1"
echo $$ >>"$1"
wait
echo end
EOF
: >"$failures"
run env FAILURES="$failures" TEST_SECONDS=1 "$measured" name sh "$dir/hang" "$dir/pids"
is "it is killed" 137 "$code"
has "its output is kept" "$out" "begin
FAILED: has not ended after 1 s; its processes are killed:
process "
has "what it waits for" "$out" "sleep: state S, "
has "the failures have it" "$(cat "$failures")" "-- failed: name
FAILED: has not ended after 1 s"
has "the failures have each process" "$(cat "$failures")" ": sleep 1001"
is "it has not ended by itself" "" "$(printf '%s\n' "$out" | grep -x end)"
# is_running PID: a killed process may wait for init to collect it.
is_running() {
    grep -q '^State:[[:space:]]*[DIRSTt]' "/proc/$1/status" 2>/dev/null
}
while read -r pid; do
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        is_running "$pid" || break
        sleep 1
    done
    is "process $pid is left" no "$(is_running "$pid" && echo yes || echo no)"
done <"$dir/pids"
is "processes that were looked at" 3 "$(wc -l <"$dir/pids")"

# The watchdog of a test that ends in time ends too.
run env FAILURES="$failures" TEST_SECONDS=1002 "$measured" name true
is "a test that ends in time" 0 "$code"
sleep 0.2
is "a watchdog is left" "" "$(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ' | grep -o 'sleep 100[2]')"
finish
