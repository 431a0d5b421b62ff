#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The result of a job (ds-accel run --result FILE) and the summary on stderr: exit code and cause for
# each way in which a rank can end. test_run_result.sh BUILD
# shellcheck disable=SC2016 # the shell of a rank expands it
set -eu
build=$1
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
source=$(cd "$(dirname "$0")/../.." && pwd)
tool=$build/bin/ds-accel
export DS_ACCELERATOR=cpu

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
    is "$name: exit code" "$wanted" "$code"
    is "$name: the form of the result" "" "$(validate "$source/conf/schema/run-result.json" <"$dir/result" 2>&1)"
    is "$name: exit code in the result" "$wanted" "$(value exit_code)"
}
value() {
    validate - "$@" <"$dir/result" 2>&1 | paste -sd ' ' -
}

job "success" 0 --num_gpus 2 true
is "success: no cause" "null" "$(value cause)"
is "success: nothing on stderr" "" "$err"
is "success: the ranks" "ended 0 null false ended 0 null false" \
    "$(value ranks/0/state ranks/0/exit_code ranks/0/signal ranks/0/was_terminated \
        ranks/1/state ranks/1/exit_code ranks/1/signal ranks/1/was_terminated)"

job "a process left" 0 --num_gpus 2 sh -c '[ $RANK = 0 ] || exit 0; sleep 1000 >/dev/null 2>&1 & sleep 1000 >/dev/null 2>&1 & exit 0'
has "a process left: their number" "$err" "all ranks have ended; 2 processes that they started still run and are terminated: "
has "a process left: names" "$err" " (process "
is "a process left: one warning" 1 "$(printf '%s\n' "$err" | wc -l)"
job "many processes left" 0 --num_gpus 1 sh -c 'for i in 1 2 3 4 5 6 7; do sleep 1000 >/dev/null 2>&1 & done; exit 0'
has "many processes left: the number" "$err" "; 7 processes that "
has "many processes left: the rest" "$err" ", and 2 more"
is "many processes left: five names" 5 "$(printf '%s\n' "$err" | grep -o ' (process ' | wc -l)"
# A busy machine may need longer than such a helper has.
for _ in 1 2 3 4 5; do
    job "a helper that ends after its rank" 0 --num_gpus 2 sh -c 'sleep 0.02 >/dev/null 2>&1 & exit 0'
    [ -n "$err" ] || break
done
is "a helper that ends after its rank: no warning" "" "$err"
job "a process left by a failed rank" 3 --num_gpus 1 sh -c 'sleep 1000 >/dev/null 2>&1 & exit 3'
is "a process left by a failed rank: no warning" 0 "$(printf '%s\n' "$err" | grep -c 'still run')"

job "an exit code" 7 --num_gpus 3 sh -c 'if [ $RANK = 1 ]; then echo the cause; exit 7; fi; exec sleep 1000'
is "an exit code: the cause" "exit 7 1 1 localhost" "$(value cause/kind cause/code cause/rank cause/local_rank cause/host)"
is "an exit code: the last lines" '["the cause"]' "$(value cause/last_lines)"
is "an exit code: the others are not the cause" "true SIGTERM false" \
    "$(value ranks/0/was_terminated ranks/0/signal ranks/1/was_terminated)"
has "an exit code: on stderr" "$err" "rank 1 (host localhost, local rank 1, process"
has "an exit code: the predicate" "$err" "exited with code 7"
has "an exit code: the others" "$err" "2 other ranks were then ended"
has "an exit code: the line" "$err" "| the cause"
is "an exit code: the output" "10" "$(value ranks/1/output_bytes)"

job "a signal" 139 --num_gpus 2 sh -c 'if [ $RANK = 0 ]; then ulimit -c 0; kill -SEGV $$; fi; exec sleep 1000'
is "a signal: the cause" "signal null SIGSEGV 0 absent" \
    "$(value cause/kind cause/code cause/signal cause/rank cause/core_dump/kind)"
has "a signal: on stderr" "$err" "was killed by SIGSEGV (signal 11), no core dump"

# A failure that spreads. Rank 1 closes a FIFO when it exits, and rank 0 fails then, perhaps before
# rank 1 has ended. Which one was first is not certain, but the launcher ended neither.
for round in $(seq 20); do
    rm -f "$dir/fifo"
    mkfifo "$dir/fifo"
    rm -f "$dir/result"
    run "$tool" run --master_port auto --result "$dir/result" --num_gpus 2 \
        sh -c 'if [ $RANK = 1 ]; then exec 3>"$0"; exit 3; fi; read -r line <"$0"; exit 1' "$dir/fifo"
    others=$(value cause/rank cause/code cause/also_failed/0/rank cause/also_failed/0/exit_code 2>&1)
    # Rank 0 may not have failed yet when the job is ended; rank 1 has.
    case "$code $others $(value ranks/0/was_terminated ranks/1/was_terminated)" in
    "1 0 1 1 3 false false" | "3 1 3 0 1 false false" | "3 1 3 "*" true false") ;;
    *) is "a failure that spreads, round $round" "codes and ranks" "$code $others $err" ;;
    esac
done
# Rank 1 closes the FIFO first, and then many files. Rank 0 is reaped meanwhile.
cat >"$dir/slow.py" <<'EOF'
import os, resource, sys
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
for _ in range(min(limit, 60000) - 100):
    os.open("/dev/null", os.O_RDONLY)
os.open(sys.argv[1], os.O_WRONLY)
os._exit(3)
EOF
for options in "" "--enable_each_rank_log $dir/logs"; do
    rm -f "$dir/fifo"
    mkfifo "$dir/fifo"
    # shellcheck disable=SC2086 # words
    job "a rank that ends slowly" 3 $options --num_gpus 2 sh -c 'if [ $RANK = 1 ]; then exec python3 "$1" "$0"; fi
        read -r line <"$0"; exit 1' "$dir/fifo" "$dir/slow.py"
    is "a rank that ends slowly: the cause" "exit 3 1 false" "$(value cause/kind cause/code cause/rank ranks/1/was_terminated)"
done
rm -rf "$dir/logs"

rtmin=$(python3 -c 'import signal; print(int(signal.SIGRTMIN))')
job "a real-time signal" $((130 + rtmin)) --num_gpus 1 sh -c "kill -$((rtmin + 2)) \$\$"
is "a real-time signal: the cause" "signal SIGRTMIN+2" "$(value cause/kind cause/signal)"
has "a real-time signal: on stderr" "$err" "was killed by SIGRTMIN+2 (signal $((rtmin + 2)))"

job "fifty lines" 1 --num_gpus 2 sh -c 'if [ $RANK = 0 ]; then exec sleep 1000; fi; seq 1 70; exit 1'
is "fifty lines: they are the last" "50 21 70" "$(value cause/last_lines/# cause/last_lines/0 cause/last_lines/49)"

nul='[ $RANK = 1 ] || exec sleep 1000; printf "first\0bin\nsecond line\nERROR real cause\n"; exit 4'
job "a NUL byte" 4 --num_gpus 2 sh -c "$nul"
is "a NUL byte: the last lines" '["first bin","second line","ERROR real cause"]' \
    "$(value cause/last_lines | tr -d '\n' | sed 's/", "/","/g')"
has "a NUL byte: on stderr" "$err" "| ERROR real cause"

mkdir "$dir/logs"
job "a NUL byte in a log" 4 --enable_each_rank_log "$dir/logs" --num_gpus 2 sh -c "$nul"
is "a NUL byte in a log: the last lines" '["first bin","second line","ERROR real cause"]' \
    "$(value cause/last_lines | tr -d '\n' | sed 's/", "/","/g')"
rm -rf "$dir/logs"
mkdir "$dir/logs"
job "a log" 2 --enable_each_rank_log "$dir/logs" --num_gpus 2 sh -c 'echo "to the log"; [ $RANK = 1 ] || exec sleep 1000; exit 2'
has "a log: its name" "$(value cause/rank ranks/1/log)" "_rank1.log"
is "a log: the last lines" '["to the log"]' "$(value cause/last_lines)"
job "a long log" 2 --enable_each_rank_log "$dir/logs" --num_gpus 1 \
    sh -c 'truncate -s 1200M /proc/$$/fd/1; printf "\nits end\nits last line"; exit 2'
is "a long log: the last lines" '["its end","its last line"]' "$(value cause/last_lines | tr -d '\n' | sed 's/", "/","/g')"
rm -rf "$dir/logs"

job "not found" 127 --num_gpus 2 no-such-program
is "not found: the cause" "not_started 0 null null not_started" \
    "$(value cause/kind cause/rank cause/pid cause/code ranks/0/state)"
has "not found: on stderr" "$err" "rank 0 (host localhost, local rank 0) could not be started: no-such-program"
printf 'no program' >"$dir/data"
chmod 644 "$dir/data"
job "not executable" 126 --no_python --num_gpus 2 "$dir/data"

job "arguments and environment" 1 --num_gpus 1 sh -c 'exit 1' 'a b' ''
is "arguments" '["sh","-c","exit 1","a b",""]' "$(value cause/argv | tr -d '\n' | sed 's/", "/","/g')"
has "environment" "$(value cause/env)" '"RANK": "0"'
# A long environment is reported on several lines, and a long value in parts.
CCL_LONG=$(printf '%02500d' 7) job "a long environment" 1 --num_gpus 1 sh -c 'exit 1'
is "a long environment: its lines" "yes" "$(printf '%s\n' "$err" | awk 'length($0) > 1000 { bad = 1 } END { print bad ? "no" : "yes" }')"
has "a long environment: its begin" "$err" "CCL_LONG=000"
has "a long environment: its end" "$err" "00007"
has "a long environment: the last variable" "$err" " MASTER_PORT="

if [ "$(nproc)" -gt 1 ]; then
    job "a place" 3 --bind-to core --num_gpus 2 sh -c 'exit 3'
    is "a place: as planned" "$(value ranks/0/cpus ranks/1/cpus)" "$(value ranks/0/real_cpus ranks/1/real_cpus)"
    has "a place: on stderr" "$err" "CPUs "
fi

# A signal to the launcher is passed on, and the ranks are not the cause.
# start: start a job of two ranks in the background, and wait until both run.
start() {
    rm -f "$dir/result" "$dir"/ready.*
    "$tool" run --master_port auto --result "$dir/result" --num_gpus 2 sh -c ': >"$0.$RANK"; exec sleep 1000' "$dir/ready" 2>"$dir/stderr" &
    launcher=$!
    for rank in 0 1; do
        for _ in $(seq 600); do
            [ ! -e "$dir/ready.$rank" ] || break
            sleep 0.05
        done
    done
}
start
kill -TERM $launcher
code=0
wait $launcher || code=$?
is "interrupted: exit code" 143 "$code"
is "interrupted: the form" "" "$(validate "$source/conf/schema/run-result.json" <"$dir/result" 2>&1)"
is "interrupted: the cause" "interrupt SIGTERM true" "$(value cause/kind cause/signal ranks/0/was_terminated)"
has "interrupted: on stderr" "$(cat "$dir/stderr")" "the job was ended by SIGTERM"

# The guard reports the death of the supervisor.
start
kill -KILL "$(cat "/proc/$launcher/task/$launcher/children")"
code=0
wait $launcher || code=$?
is "the supervisor's death: exit code" 137 "$code"
is "the supervisor's death: the form" "" "$(validate "$source/conf/schema/run-result.json" <"$dir/result" 2>&1)"
is "the supervisor's death: the cause" "launcher SIGKILL" "$(value cause/kind cause/signal)"

# A place that cannot be written is an error before the start, not after a week.
for file in "$dir/no/such/result" "$dir" ""; do
    run "$tool" run --result "$file" touch "$dir/started"
    is "a result in \"$file\"" "1 not started" "$code $([ -e "$dir/started" ] || echo not started)"
    has "a result in \"$file\": the reason" "$err" "ds-accel: $file: "
done
# The file that stdout or stderr is appended to is not replaced.
for target in /dev/stdout /dev/fd/1 "$dir/log"; do
    { echo before && "$tool" run --result "$target" echo during && echo after; } >"$dir/log" 2>/dev/null
    is "a result in $target" "before during after" \
        "$(sed -n '1p; 2p; $p' "$dir/log" | tr '\n' ' ' | sed 's/ $//')"
    is "a result in $target: its form" "" \
        "$(sed '1d; 2d; $d' "$dir/log" | validate "$source/conf/schema/run-result.json" 2>&1)"
done
{ echo before && "$tool" run --master_port auto --result /dev/stderr true; } >"$dir/log" 2>&1
is "a result in /dev/stderr" "before {" "$(head -n 2 "$dir/log" | tr '\n' ' ' | sed 's/ $//')"
finish
