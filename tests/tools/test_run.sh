#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# ds-accel run on this machine: how the program is found, its arguments and environment, its
# streams, exit codes and binding. Signals and killed processes are tested by test_run_signals.sh,
# terminals by launch.py.  test_run.sh BUILD
# shellcheck disable=SC2016 # the ranks expand these
set -eu
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/tools/cli.sh
. "$(dirname "$0")/cli.sh"
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT OMP_NUM_THREADS KMP_AFFINITY MOCK_VISIBLE_DEVICES 2>/dev/null || true
export DS_ACCEL_MOCK_DEVICE_COUNT=256
cd "$dir"

# limited COMMAND...: end the command after a time that only a failure takes.
limited() {
    timeout --foreground -k 5 100 "$@"
}

# ranks COUNT ARGUMENT...: run a job of the mock's devices; the arguments are those of the command.
ranks() {
    count=$1
    shift
    limited "$program" run -a mock --master_port auto --num_gpus "$count" "$@"
}

# shells COUNT SCRIPT [ARGUMENT...]: run a shell script as each rank.
shells() {
    count=$1
    script=$2
    shift 2
    ranks "$count" --no_python --no_local_rank sh -c "$script" "$@"
}

# ---- the program ---------------------------------------------------------------------------------

cat >show.py <<'END'
import sys
print(__name__, int(sys.stdout.write_through), *sys.argv[1:])
END
cat >script.sh <<'END'
#!/bin/sh
echo "script $*"
END
echo 'echo "without #! $*"' >plain
cp script.sh unexecutable
chmod +x script.sh plain
mkdir -p bin package
cp script.sh bin/in-path
cp show.py package/tool.py

# program WANTED ARGUMENT...: check the code and the output of a single rank.
program() {
    wanted=$1
    shift
    run ranks 1 "$@"
    is "run $*" "$wanted" "$code $out"
}

program "0 __main__ 1 --local_rank=0 a b" show.py a b
program "0 __main__ 1 a b" --no_local_rank show.py a b
PYTHONPATH="$dir/package" program "0 __main__ 1 --local_rank=0 --master_port 1" --module tool --master_port 1
has "a hint" "$err" "--master_port is passed to the program"
program "0 script a" ./script.sh a
program "0 script --local_rank=0 a" --no_python ./script.sh a
program "0 script a" --no_python --no_local_rank ./script.sh a
program "0 script a" --no_python --no_local_rank script.sh a
program "0 without #! a" --no_python --no_local_rank ./plain a
PATH="$dir/bin:$PATH" program "0 script a" --no_python --no_local_rank in-path a
program "127 " --no_python ./no-such-program
has "what is missing" "$err" "no-such-program"
program "127 " --no_python no-such-program
program "126 " --no_python ./unexecutable
has "what cannot be executed" "$err" "unexecutable"
program "126 " --no_python ./package
run ranks 3 --no_python ./no-such-program
is "no rank can be started" "127 " "$code $out"
run ranks 1 no-such.py
is "python does not find the program" "2 " "$code $out"
printf '#!/no/such/interpreter\n' >strange
chmod +x strange
program "126 " --no_python ./strange
has "a missing interpreter" "$err" 'names the interpreter "/no/such/interpreter", which does not exist'
printf '#!/bin/sh\r\nexit 0\n' >strange
program "126 " --no_python ./strange
has "a line end of another system" "$err" 'names the interpreter "/bin/sh\r"'
run ranks 1
is "no program" "2 " "$code $out"

# ---- arguments and environment -------------------------------------------------------------------

run python3 "$source/tests/tools/launch.py" bytes "$program" "$dir"
is "arguments and environment are passed on as bytes" "0 " "$code $out$err"

# rank_environment NAME...: print these variables of each rank, by rank.
rank_environment() {
    shells 3 'for name; do eval "printf \"%s \" \"\${$name-unset}\""; done; echo' - RANK "$@" | sort
}

is "the environment of ranks" \
    "0 0 3 3 3 0 1 127.0.0.1 
1 1 3 3 3 0 1 127.0.0.1 
2 2 3 3 3 0 1 127.0.0.1 " \
    "$(rank_environment LOCAL_RANK WORLD_SIZE LOCAL_SIZE LOCAL_WORLD_SIZE CROSS_RANK CROSS_SIZE MASTER_ADDR)"
is "all devices of the job are visible" "0 0,1,2 
1 0,1,2 
2 0,1,2 " "$(rank_environment MOCK_VISIBLE_DEVICES)"
# The pod's file, in which a variable may be set many times.
mkdir -p pod/dlts-runtime/env
for i in 1 2 3 4 5 6 7 8 9 10; do
    for j in 1 2 3 4 5 6 7 8 9 10; do
        printf 'export FC_TASK_INDEX=%s\r\nexport FC_TASKROLE_NAME=role-%s-%s extra\n' \
            "$i$j" $i $j
    done
done >pod/dlts-runtime/env/pod.env
printf 'export FC_TASK_INDEX\nFC_TASK_INDEX=0\nexport FC_TASK_INDEX_2=0' >>pod/dlts-runtime/env/pod.env
run limited "$program" run -a cpu --root pod --dry-run true
is "the last line of the pod's file counts" "0 FC_TASKROLE_NAME=role-10-10
  FC_TASK_INDEX=1010" "$code $(echo "$out" | grep FC_TASK | sed '1s/^  //')"

for list in 0,-1,1 "0, -1 ,1"; do
    run limited env CUDA_VISIBLE_DEVICES="$list" "$program" run -a cpu --json --dry-run true
    has "$list hides the devices behind -1" "$code $out" '"hosts":[{"host":"localhost","slots":[0]}]'
done

# A hostfile's slots are all devices of this machine, whatever the environment selects.
printf 'localhost slots=4\n' >hosts
uuid=MOCK-00000000-0000-0000-0000-00000000000
run limited env DS_ACCEL_MOCK_DEVICE_COUNT=4 MOCK_VISIBLE_DEVICES=2,3 "$program" run -a mock \
    --hostfile hosts --include "localhost:${uuid}1,${uuid}3" --no_python --no_local_rank \
    --master_port auto sh -c 'echo "$LOCAL_RANK $MOCK_VISIBLE_DEVICES"'
is "a hostfile chooses among all devices" "0 0 1,3
1 1,3" "$code $(echo "$out" | sort)"
has "what chooses the devices" "$err" "MOCK_VISIBLE_DEVICES=2,3 is ignored: the hostfile chooses the devices"
# A port that is free, and that no job takes which chooses one itself.
port=$(python3 -c 'import os, socket
for port in range(2000 + os.getpid() % 7000, 10000):
    try:
        socket.socket().bind(("", port))
        break
    except OSError:
        pass
print(port)')
is "a port, and the address of this machine" "127.0.0.1 $port" \
    "$("$program" run -a mock --num_gpus 1 --no_python --no_local_rank --master_port "$port" \
        sh -c 'echo "$MASTER_ADDR $MASTER_PORT"')"
is "the first port of a range" "$port" \
    "$("$program" run -a mock --num_gpus 1 --no_python --no_local_rank --master_port "$port-$((port + 9))" \
        sh -c 'echo "$MASTER_PORT"')"
for none in "-H /dev/null" "-H hosts"; do
    # shellcheck disable=SC2086 # two words
    run env DS_ENV_FILE=/dev/null "$program" run -a mock $none --num_gpus 1 --no_python --no_local_rank \
        --master_port auto sh -c 'echo "$RANK"'
    is "$none" "0 0 " "$code $out $err"
done
printf '127.0.0.1.example slots=1\n' >other
run "$program" run -a mock -H other --master_port auto true
has "a name that begins as an address does" "$err" "this job has ranks on host 127.0.0.1.example"
is "variables of the backend, and of the user" "1 kept a  b" \
    "$(USER_S="a  b" MOCK_RUNTIME=kept shells 1 'echo "$MOCK_RUNTIME $USER_S"' | sed 's/^kept/1 kept/; s/^1 a/1 kept a/')"
is "threads are left to the program" "unset" "$(shells 1 'echo "${OMP_NUM_THREADS-unset}"')"
is "old variables are replaced" "0 1 once" \
    "$(RANK=7 WORLD_SIZE=8 LOCAL_RANK=7 shells 1 'echo "$RANK $WORLD_SIZE $(env | grep -c "^RANK=" | sed s/1/once/)"')"

# The work-arounds of a vendor's backend, on a simulated machine.
if [ -e "$build/../sim/lib" ]; then
    run env SIM_BUILD="$build/.." "$source/tests/sim/ds-accel-sim" hpu "$program" run --plugin-dir "$build/../lib/ds-accel" -a hpu --num_gpus 2 \
        --master_port auto --no_python --no_local_rank \
        sh -c 'echo "$HABANA_VISIBLE_MODULES $PT_HPU_LAZY_ACC_PAR_MODE $PT_HPU_ENABLE_REFINE_DYNAMIC_SHAPES"'
    is "variables of hpu" "0 0,1 0 0
0,1 0 0" "$code $out"
fi

# seen BACKEND MACHINE [VARIABLE...] [OPTION...]: run ranks on a simulated machine; print of the first
# one the visible devices, and the UUIDs of the devices that it sees.
seen() {
    backend=$1
    machine=$2
    shift 2
    variables=
    while [ $# -gt 0 ] && [ "${1#*=}" != "$1" ] && [ "${1#-}" = "$1" ]; do
        variables="$variables $1"
        shift
    done
    # shellcheck disable=SC2086 # several variables
    run env SIM_BUILD="$build/.." $variables "$source/tests/sim/ds-accel-sim" "$machine" "$program" run "$@" \
        --plugin-dir "$build/../lib/ds-accel" -a "$backend" --master_port auto --no_python --no_local_rank \
        sh -c '[ "$RANK" != 0 ] || { echo HIP $HIP_VISIBLE_DEVICES CUDA $CUDA_VISIBLE_DEVICES ranks $WORLD_SIZE
            "$0" info "$1" --json; }' "$program" "$backend"
    printf '%s\n' "$out" | python3 -c 'import json, sys
print(sys.stdin.readline().strip(), *[d["uuid"] for d in json.load(sys.stdin)["devices"]])' 2>/dev/null || echo "$err"
}

if [ -e "$build/../sim/lib" ]; then
    # Without HIP_VISIBLE_DEVICES, HIP reads CUDA_VISIBLE_DEVICES: both name the same device.
    is "the variable that HIP reads" "HIP 1 CUDA 1 ranks 1 GPU-7d10c4e8b5623fa9" \
        "$(seen rocm rocm CUDA_VISIBLE_DEVICES=1)"
    is "the variable that HIP reads, and options" \
        "HIP 0,1 CUDA ranks 2 GPU-2e5b90c71fa84d36 GPU-7d10c4e8b5623fa9" \
        "$(seen rocm rocm CUDA_VISIBLE_DEVICES=1 --num_gpus 2)"
    is "the variable that HIP does not read" "HIP 1 CUDA 0 ranks 1 GPU-7d10c4e8b5623fa9" \
        "$(seen rocm rocm HIP_VISIBLE_DEVICES=1 CUDA_VISIBLE_DEVICES=0)"
    # One of eight GPUs is divided: programs cannot use it, but the runtime counts it.
    whole=$(seen cuda node-8gpu)
    # shellcheck disable=SC2086 # words
    set -- $whole
    is "as many devices as ranks" "7 7" "${5-} $(($# - 5))"
    is "a divided device is not counted" "HIP CUDA $8 ranks 1 $8" \
        "$(seen cuda node-8gpu --include "localhost:2")"
    is "a device by its PCI address" "GPU-20110507-5c1d-4e2f-8a9b-000000000001" \
        "$(seen cuda node-8gpu --include localhost:2a:00.0 | sed 's/.* //')"
    is "a UUID in other letters" "GPU-20110507-5c1d-4e2f-8a9b-000000000001" \
        "$(seen cuda node-8gpu --include localhost:gpu-20110507-5C1D-4e2f-8a9b-000000000001 | sed 's/.* //')"
    has "an item that is no device" "$(seen cuda node-8gpu CUDA_VISIBLE_DEVICES=0,99,1)" \
        "CUDA_VISIBLE_DEVICES=0,99,1 names 3 devices, but cuda has only 1 of them"
fi

# What hides all devices hides them from the ranks, too.
for list in -1 ""; do
    run env CUDA_VISIBLE_DEVICES="$list" "$program" run -a cpu --num_gpus 1 --master_port auto \
        --no_python --no_local_rank sh -c 'echo "<$CUDA_VISIBLE_DEVICES>"'
    is "CUDA_VISIBLE_DEVICES=$list for the CPU" "0 <$list>" "$code $out"
done

# An item "-1" hides the devices behind it; a UUID may contain these characters.
if [ -e "$build/../sim/lib" ]; then
    uuid=GPU-3b7c8d2e-14a5-4c1f-9e60-5d2f8a7b9c01
    for list in "$uuid" "$uuid,-1" "$uuid,-1,GPU-8e41f0a6-72bd-4d93-8c15-0f6e3d9b2a47"; do
        run env SIM_BUILD="$build/.." CUDA_VISIBLE_DEVICES="$list" "$source/tests/sim/ds-accel-sim" "$source/tests/sim/machines/cuda.json" "$program" run \
            --plugin-dir "$build/../lib/ds-accel" -a cuda --master_port auto --no_python --no_local_rank \
            sh -c 'echo "$CUDA_VISIBLE_DEVICES"'
        is "CUDA_VISIBLE_DEVICES=$list" "0 $uuid" "$code $out$err"
    done
fi

# ---- exit codes ----------------------------------------------------------------------------------

# ends CODE COUNT SCRIPT: check the exit code of a job.
ends() {
    run shells "$2" "$3"
    is "$2 ranks: $3" "$1" "$code"
}

ends 0 1 true
ends 0 4 true
ends 7 1 "exit 7"
ends 255 1 "exit 255"
ends 137 1 'kill -KILL $$'
ends 143 2 'kill $$'
# The first failure counts; the others, which are terminated, do not.
ends 5 8 '[ $RANK = 3 ] && exit 5; exec sleep 1000'
has "the failed rank is named" "$err" "rank 3"
ends 137 4 '[ $RANK = 2 ] && kill -KILL $$; exec sleep 1000'
ends 9 3 '[ $RANK = 1 ] && exit 9; trap "exit 3" TERM; while :; do sleep 0.05; done'
ends 6 2 '[ $RANK = 0 ] && exit 0; sleep 0.2; exit 6'
# A rank that succeeds does not end the others.
is "the others go on" "late" "$(shells 2 '[ $RANK = 0 ] && exit 0; sleep 0.3; echo late')"

# ---- streams -------------------------------------------------------------------------------------

is "one rank inherits stdin, stdout and stderr" "in out err" \
    "$(echo in | shells 1 'read -r line; printf "%s out " "$line"; echo err >&2' 2>&1)"
is "one rank inherits descriptors" "$(stat -L -c %i /dev/null)" "$(shells 1 'stat -L -c %i /proc/$$/fd/0' </dev/null)"
is "rank 0 alone reads stdin" "0 one two 
1 
2 " "$(printf 'one\ntwo\n' | shells 3 'printf "%s " "$RANK"; tr "\n" " "; echo' | sort)"
is "stdout and stderr stay apart" "out out|err err" \
    "$(shells 2 'echo out; echo err >&2' 2>err.txt | paste -sd ' ')|$(paste -sd ' ' err.txt)"

run python3 "$source/tests/tools/launch.py" lines "$program" "$dir"
is "lines of ranks are not mixed, lost or cut" "0 " "$code $out$err"

host=$("$program" run -a mock --num_gpus 1 --dry-run --json true | validate - hosts/0/name 2>/dev/null || echo localhost)
is "prefixes of ranks" "$host:0: a|$host:0: b|$host:1: a|$host:1: b" \
    "$(ranks 2 --show-ranks --no_python --no_local_rank printf 'a\nb\n' | sort | paste -sd '|')"
is "a prefix before an incomplete line" "$host:0: x$host:1: x" \
    "$(ranks 2 --show-ranks --no_python --no_local_rank printf x | sort | tr -d '\n')"
is "an empty line has a prefix" "$host:0: |$host:1: " \
    "$(ranks 2 --show_ranks --no_python --no_local_rank echo | sort | paste -sd '|')"

# An incomplete line appears while its rank waits for the reaction to it.
mkfifo prompt answer go
shells 2 '[ $RANK = 1 ] && { read -r line <go; echo between; exit 0; }; printf "answer? "; read -r line; echo "got $line"' <answer >prompt &
exec 3>answer 4<prompt
is "an incomplete line is written" "answer? " "$(timeout 100 dd bs=8 count=1 iflag=fullblock status=none <&4)"
echo >go
is "the line of another rank begins on a new line" "
between" "$(timeout 100 dd bs=9 count=1 iflag=fullblock status=none <&4)"
echo yes >&3
is "the rest follows" "got yes" "$(timeout 100 cat <&4)"
exec 3>&- 4<&-
wait

is "a reader that ends ends the job" "0 y" "$(timeout 60 sh -c '"$0" run -a mock --num_gpus 2 --master_port auto --no_python --no_local_rank yes' "$program" 2>/dev/null | (head -n 1 | sed 's/^/0 /'))"
run sh -c '"$0" run -a mock --num_gpus 2 --master_port auto --no_python --no_local_rank echo x >&-' "$program"
is "stdout is closed" "0 " "$code $out"
run sh -c '"$0" run -a mock --num_gpus 1 --master_port auto --no_python --no_local_rank sh -c "ls /proc/\$\$/fd | head -n 3 | wc -l" <&- 2>&-' "$program"
is "stdin and stderr are closed" "0 3" "$code $out"
# A reader that begins after the ranks have ended gets everything.
is "a slow reader loses nothing" "400000" "$(shells 2 'yes 123456789 | head -c 200000' | (sleep 1; wc -c))"
code=0
shells 2 'yes | head -c 100000 && echo "rank $RANK wrote all" >&2' >/dev/full 2>err.txt || code=$?
is "a full disk ends no job" "0 2" "$code $(grep -c 'wrote all' err.txt)"
is "a full disk is reported once" "1" "$(grep -c 'stdout: No space left on device; output is dropped' err.txt)"
code=0
(ulimit -f 64 && shells 2 'yes | head -c 100000 && echo "rank $RANK wrote all" >&2' >limit.txt 2>err.txt) || code=$?
is "nor does a limit on the size of files" "0 2" "$code $(grep -c 'wrote all' err.txt)"
has "it is reported" "$(cat err.txt)" "stdout: File too large; output is dropped"
rm -f limit.txt
run python3 "$source/tests/tools/launch.py" outside "$program" "$dir"
is "output that never ends does not keep the launcher" "0 " "$code $out$err"
is "no descriptor of the launcher reaches a rank" "" \
    "$(shells 2 'ls -l /proc/$$/fd' | grep -E 'anon_inode|memfd|ds_accel|/dev/mock' || true)"
run shells 1 'ulimit -n'
is "the limit of descriptors" "$(sh -c 'ulimit -n')" "$out"

# ---- logs ----------------------------------------------------------------------------------------

run ranks 2 --enable_each_rank_log logs/of/job --no_python --no_local_rank sh -c 'echo "out $RANK"; echo "err $RANK" >&2'
is "logs are silent" "0 " "$code $out$err"
for rank in 0 1; do
    is "the log of rank $rank" "out $rank
err $rank" "$(cat logs/of/job/*_rank$rank.log)"
done
is "the names of logs" "2" "$(find logs -name '*.log' | grep -cE '/2[0-9]{13}_rank[01]\.log$')"
run ranks 1 --enable_each_rank_log logs/one --no_python --no_local_rank echo x
is "the log of a single rank" "0 x" "$code $out$(cat logs/one/*_rank0.log)"
run ranks 1 --enable_each_rank_log show.py --no_python --no_local_rank true
is "a log directory that is a file" "1" "$code"
has "which" "$err" "show.py"
run ranks 2 --enable_each_rank_log /proc/no --no_python --no_local_rank true
has "a log directory that cannot be made" "$code $err" "/proc/no"

# ---- many ranks, and limits ----------------------------------------------------------------------

shells 256 'echo $RANK' >many.txt
is "256 ranks" "$(seq 0 255)" "$(sort -n many.txt)"
run shells 256 '[ $RANK = 255 ] && exit 3; exec sleep 1000'
is "the last of 256 ranks fails" "3" "$code"
# Only this test has ranks of this command.
sleeper="sleep 1000.4$$"
# sleepers: print the processes with this command.
sleepers() {
    pgrep -f "$sleeper\$" || true
}

run sh -c 'ulimit -n 30; shift; exec "$@"' - - "$program" run -a mock --num_gpus 1 --master_port auto true
has "too few descriptors for one rank" "$err" "1 rank needs 32 open files, and"
# shellcheck disable=SC2086 # words
run sh -c 'ulimit -n 200; shift; exec "$@"' - - "$program" run -a mock --num_gpus 256 --master_port auto \
    --no_python --no_local_rank $sleeper
has "too few descriptors are allowed" "$err" "256 ranks need 544 open files, and the hard limit is 200: it can be raised by ulimit -n 544"
is "no rank is started" "1 " "$code $out$(sleepers)"
run sh -c 'ulimit -n 60; shift; exec "$@"' - - "$program" run -a mock --num_gpus 100 --master_port auto \
    --enable_each_rank_log logs/100 --no_python --no_local_rank true
is "logs need no descriptors" "0 " "$code $out$err"
# The launcher inherits most descriptors that it may have.
# shellcheck disable=SC2086
run python3 -c 'import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (240, 240))
for _ in range(180):
    os.set_inheritable(os.dup(0), True)
os.execv(sys.argv[1], sys.argv[1:])' "$program" run -a mock --num_gpus 100 --master_port auto --no_python --no_local_rank $sleeper
is "descriptors run out during the start" "126 " "$code $out"
has "why" "$err" "could not be started: sleep: its streams: Too many open files"
is "no rank is left" "" "$(sleepers)"
is "few descriptors are raised to the hard limit" "0 100" \
    "$(sh -c 'ulimit -S -n 40; shift; exec "$@"' - - "$program" run -a mock --num_gpus 100 --master_port auto \
        --no_python --no_local_rank sh -c 'ulimit -n' >limits.txt; echo "$? $(grep -c '^40$' limits.txt)")"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && setpriv --reuid 61234 --clear-groups "$program" --version >/dev/null 2>&1; then
    chmod 755 "$dir"
    # shellcheck disable=SC2086
    run limited setpriv --reuid 61234 --clear-groups prlimit --nproc=12 "$program" run -a mock --num_gpus 100 \
        --master_port auto --no_python --no_local_rank $sleeper
    is "processes run out during the start" "126 " "$code $out"
    is "no rank is left" "" "$(sleepers)"
fi

# ---- binding -------------------------------------------------------------------------------------

allowed='sed -n "s/^Cpus_allowed_list:.//p" /proc/self/status'
cpus=$(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)))')
first=${cpus%% *}
is "a single allowed CPU" "$first" "$(taskset -c "$first" "$program" run -a mock --num_gpus 1 --master_port auto \
    --bind_cores_to_rank --no_python --no_local_rank sh -c "$allowed")"
is "without binding, the allowed CPUs" "$first" "$(taskset -c "$first" "$program" run -a mock --num_gpus 1 --master_port auto \
    --no_python --no_local_rank sh -c "$allowed")"
second=$(echo "$cpus" | cut -d ' ' -f 2)
if [ "$second" != "$first" ] && [ -n "$second" ]; then
    only="taskset -c $first,$second"
    # shellcheck disable=SC2086 # words
    is "two ranks share two CPUs" "0 $first 1
1 $second 1" "$($only "$program" run -a mock --num_gpus 2 --master_port auto --bind_cores_to_rank --no_python --no_local_rank \
        sh -c "echo \"\$RANK \$($allowed) \$OMP_NUM_THREADS\"" | sort)"
    # shellcheck disable=SC2086
    is "a reserved core" "$first 1 $second" "$($only "$program" run -a mock --num_gpus 1 --master_port auto --bind_cores_to_rank \
        --reserve-cores 1 --no_python --no_local_rank sh -c "echo \"\$($allowed) \$OMP_NUM_THREADS \$DS_ACCEL_RESERVED_CPUS\"")"
    # shellcheck disable=SC2086
    run $only "$program" run -a mock --num_gpus 1 --master_port auto --bind-to core --no_python --no_local_rank sh -c "$allowed"
    is "bound to a core" "0 $first" "$code $out"
fi
# A virtual machine may show no caches; the unit tests know the machines for which this is said.
no_l3="ds-accel: warning: run: this machine shows no level-3 cache that cores share: --bind-to l3 binds ranks to cores"
for to in node socket l3 none; do
    run ranks 1 --bind-to $to --no_python --no_local_rank sh -c "$allowed"
    is "--bind-to $to stays within the allowed CPUs" "0 0" "$code $(python3 -c '
import sys
given = set()
for part in sys.argv[1].split(","):
    low, _, high = part.partition("-")
    given |= set(range(int(low), int(high or low) + 1))
print(len(given - {int(cpu) for cpu in sys.argv[2].split()}))' "$out" "$cpus")"
    [ "$to $err" != "l3 $no_l3" ] || err=
    is "no warning" "" "$err"
done
finish
