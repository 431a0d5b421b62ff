#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The command bench: it measures the delays that the mock is configured with, checks the data, skips
# or fails a row for the right reason, writes valid JSON and complete files, draws its progress bar
# only on a terminal, and exits on Ctrl-C.  test_bench.sh BUILD
set -eu
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
unset NO_COLOR TERM
program=$build/bin/ds-accel
python=${PYTHON:-/usr/bin/python3}
fast="--time 0.0005"

validate() {
    "$python" "$source/tests/tools/validate.py" "$@"
}

# bench CODE ARGUMENT...: check that bench exits with CODE, prints nothing on stderr and valid JSON
# on stdout. Later calls of `at` read this JSON.
bench() {
    wanted=$1
    shift
    # shellcheck disable=SC2086 # a list of words
    run "$program" bench --json $fast "$@"
    is "bench $*" "$wanted " "$code $err"
    printf '%s\n' "$out" >"$dir/json"
    message=$(validate "$source/conf/schema/bench.json" <"$dir/json" 2>&1) || true
    is "bench $* has the shape of bench.json" "" "$message"
}

# at PATH...: print values of the last report, separated by spaces.
at() {
    validate - "$@" <"$dir/json" 2>&1 | paste -sd ' ' -
}

# holds NAME EXPRESSION: check that the Python EXPRESSION is true for the last report. In it, `rows`
# are all rows, and r[...] is a row by "group name" or "group name size".
cat >"$dir/holds.py" <<'END'
import json, sys

rows = json.load(open(sys.argv[1]))["rows"]
r = {" ".join([x["group"], x["name"]] + [str(x["size_bytes"])] * bool(x["size_bytes"])): x for x in rows}
value = eval(sys.argv[2])
print(value if value is True else f"{value}: {json.dumps(rows)[:3000]}")
END
holds() {
    is "$1" True "$("$python" "$dir/holds.py" "$dir/json" "$2" 2>&1)"
}

# refuses CODE PART ARGUMENT...: check that the command exits with CODE, prints nothing on stdout,
# and prints a message that contains PART on stderr.
refuses() {
    wanted=$1
    part=$2
    shift 2
    run "$program" "$@"
    is "$*" "$wanted " "$code $out"
    has "message of $*" "$err" "ds-accel: "
    has "message of $*" "$err" "$part"
}

# ---- measured values -----------------------------------------------------------------------------

# The mock takes at least the configured time, by its own clock and by the clock of the host.
rate=100000000
export DS_ACCEL_MOCK_COPY_BYTES_PER_S=$rate
bench 0 mock --only copy,fill,peer --size 16K --size 1000,64K
unset DS_ACCEL_MOCK_COPY_BYTES_PER_S
is "sizes" "16384 1000 65536" "$(at 'sizes_bytes/*')"
holds "every transfer is measured at every size" \
    'len(rows) == 36 and {x["state"] for x in rows} == {"measured"}'
holds "no sample is above the scripted rate" "max(x['max'] for x in rows) <= $rate"
# A row whose best sample is 500 times too slow has a wrong unit. A busy machine cannot cause that:
# every copy of 64 KiB would have to take 300 ms.
holds "the best samples are not in a smaller unit" \
    "min(x['max'] for x in rows if x['size_bytes'] == 65536) > $rate / 500"
holds "their order" 'all(x["min"] <= x["median"] <= x["max"] for x in rows)'
holds "they are spread no wider than they are" \
    'all(x["median_deviation"] <= x["max"] - x["min"] for x in rows)'
holds "what is queued is timed on the device, the rest by the host" \
    'all((x["clock"] == "device") == x["name"].endswith("_async") for x in rows)'

export DS_ACCEL_MOCK_LAUNCH_LATENCY_NS=300000 DS_ACCEL_MOCK_ALLOC_LATENCY_NS=400000 \
    DS_ACCEL_MOCK_SYNC_LATENCY_NS=100000
bench 0 mock --only launch --only alloc,graph,event,stream --size 4K
unset DS_ACCEL_MOCK_LAUNCH_LATENCY_NS DS_ACCEL_MOCK_ALLOC_LATENCY_NS DS_ACCEL_MOCK_SYNC_LATENCY_NS
holds "a task takes its launch and the wait" 'r["launch host_task"]["min"] >= 400000'
holds "so does a graph" 'r["graph replay_1"]["min"] >= 400000'
holds "an allocation of the backend" 'r["alloc device_backend 4096"]["min"] >= 400000'
holds "a wait" 'r["stream synchronize"]["min"] >= 100000'
holds "a query waits for nothing" 'r["stream query"]["min"] < 100000'
holds "hand-over ends in a wait" 'r["stream hand_over"]["min"] >= 100000'
holds "time is asked of the host" '{x["clock"] for x in rows} == {"host"}'

# Where the device's clock cannot be read, the host's clock is used.
export DS_ACCEL_MOCK_FAIL=event_elapsed_ms=unsupported
bench 0 mock --only fill,event --size 4K
unset DS_ACCEL_MOCK_FAIL
holds "without the device's clock" 'r["fill fill_async 4096"]["clock"] == "host"'
holds "and that row is skipped" 'r["event elapsed"]["state"] == "skipped"'

# ---- all rows on both backends -------------------------------------------------------------------

for backend in cpu mock; do
    bench 0 $backend --size 4K,64K
    is "it says on what" "$backend 0 $(sed -n 's/^#define DS_ACCEL_VERSION "\(.*\)"/\1/p' "$source/core/ds_accel.h")" \
        "$(at accelerator device/index version)"
    holds "$backend has all rows" 'len(rows) == 12 * 2 + 4 * 2 + 19'
    holds "$backend measures all but what needs another device" \
        'all(x["state"] == "measured" or x["group"] == "peer" for x in rows)'
    holds "$backend: calling through the library" 'r["dispatch stream_query"]["median"] < 1e6'
done
is "the mock's peer" "1" "$(at peer_index)"
holds "peers are measured where there are any" 'r["peer to_peer_async 4096"]["state"] == "measured"'
export LOCAL_SIZE=1
bench 0 cpu --only peer --size 4K
unset LOCAL_SIZE
is "one device has no peer" "null" "$(at peer_index)"
is "and says so" "skipped there is no second device null" "$(at rows/0/state rows/0/reason rows/0/median)"

bench 0 mock --device 1 --only fill --size 4K,4096
is "a device by its index; a size is measured once" "1 0 1" "$(at device/index peer_index rows/#)"
run "$program" info --json mock
uuid=$(printf '%s\n' "$out" | "$python" -c '
import json, sys
print(json.load(sys.stdin)["devices"][1].get("uuid") or "1")')
bench 0 mock --device "$uuid" --only fill --size 4K
is "a device by its UUID" "1" "$(at device/index)"

# Layers validate and leak must find nothing: no invalid call, no missing wait, no leak.
export DS_ACCEL_LAYERS=validate,leak DS_ACCEL_CPU_ASYNC=true
for backend in cpu mock; do
    bench 0 $backend --size 4K
    holds "$backend with layers" 'all(x["state"] == "measured" or x["group"] == "peer" for x in rows)'
done
unset DS_ACCEL_LAYERS DS_ACCEL_CPU_ASYNC

# ---- skipped and failed rows ---------------------------------------------------------------------

export DS_ACCEL_MOCK_MEMORY_BYTES=67108864
bench 0 mock --only copy,alloc --size 4K,64M,1T
unset DS_ACCEL_MOCK_MEMORY_BYTES
holds "what fits is measured" 'r["copy d2d_async 4096"]["state"] == "measured"'
holds "what does not is skipped" 'r["copy d2d_async 67108864"]["state"] == "skipped"'
holds "and says why" '"too few" in r["copy h2d_pageable 67108864"]["reason"]'
holds "no machine has that much" '"too little memory" in r["copy h2d_pageable 1099511627776"]["reason"]'

export DS_ACCEL_MOCK_PINNED_LIMIT_BYTES=4194304
bench 0 mock --only copy,alloc --size 4K,8M
unset DS_ACCEL_MOCK_PINNED_LIMIT_BYTES
holds "a limit on pinned memory" 'r["copy h2d_pinned 8388608"]["state"] == "skipped"'
holds "leaves pageable memory" 'r["copy h2d_pageable 8388608"]["state"] == "measured"'
holds "and smaller sizes" 'r["copy h2d_pinned 4096"]["state"] == "measured"'

export DS_ACCEL_MOCK_FAIL=stream_create:2+=unsupported
bench 0 mock --only stream,launch --size 4K
holds "no streams: skipped" 'r["stream create_destroy"]["state"] == "skipped"'
holds "the rest goes on" 'r["launch copy"]["state"] == "measured"'
export DS_ACCEL_MOCK_FAIL=stream_host_task=driver,mem_copy:2=io
bench 1 mock --only launch,fill --size 4K
unset DS_ACCEL_MOCK_FAIL
holds "a failure is one" 'r["launch host_task"]["state"] == "failed"'
holds "with the driver's words" '"MOCK_ERROR_DRIVER" in r["launch host_task"]["reason"]'
holds "of a check too" '"MOCK_ERROR_IO" in r["fill fill_async 4096"]["reason"]'
holds "other rows are measured" 'r["launch copy"]["state"] == "measured"'

# ---- wrong data ----------------------------------------------------------------------------------

# mutant NAME PATTERN REPLACEMENT: build a variant of the mock in which the last byte of each copy
# keeps its old value.
mutant() {
    mkdir -p "$dir/$1" "$dir/plugins.$1"
    cp "$source"/plugins/mock/*.[ch] "$dir/$1"
    sed "s/$2/$3/" "$source/plugins/mock/work.c" >"$dir/$1/work.c"
    ! cmp -s "$source/plugins/mock/work.c" "$dir/$1/work.c" || fail "the mutant $1 differs"
    run "${CC:-gcc}" -std=c11 -D_GNU_SOURCE -shared -fPIC -fvisibility=hidden -O1 \
        -DMOCK_NAME="\"$1\"" "-I$build/include/ds-accel" "-I$source/plugins/common" \
        -o "$dir/plugins.$1/ds_accel_$1.so" "$dir/$1"/*.c -lpthread
    is "the mutant $1 compiles" "0 " "$code $err"
}

mutant shortcopy 'memcpy(work->destination, work->source, (size_t)work->size_bytes)' \
    'memcpy(work->destination, work->source, (size_t)work->size_bytes - 1)'
bench 1 --plugin-dir "$dir/plugins.shortcopy" shortcopy --only copy,peer,launch --size 1000
holds "a short copy is seen, by every row that copies" \
    'all("byte 999 is" in x["reason"] for x in rows if x["size_bytes"])'
holds "also of launch" 'r["launch copy"]["state"] == "failed"'
holds "a task copies nothing" 'r["launch host_task"]["state"] == "measured"'

# ---- text output ---------------------------------------------------------------------------------

# shellcheck disable=SC2086 # a list of words
run "$program" bench cpu --size 4K,1M,1000 $fast
is "bench as text" "0 " "$code $err"
is "its first line" "cpu device 0: " "$(printf '%s\n' "$out" | sed -n '1s/: .*/: /p')"
is "its head" "GROUP NAME SIZE MEDIAN MIN MAX MAD UNIT CLOCK" "$(printf '%s\n' "$out" | sed -n 2p | tr -s ' ')"
is "columns end where the head's do" "" "$(printf '%s\n' "$out" | awk '
NR == 2 { split("SIZE MEDIAN MIN MAX MAD", names); for (i in names) at[i] = index($0, names[i]) + length(names[i]) - 1 }
NR > 2 && !/skipped: / { for (i in at) if (substr($0, at[i], 1) == " " || substr($0, at[i] + 1, 1) != " ") { print; break } }')"
has "sizes are named" "$out" " 1000 B "
has "sizes are named" "$out" " 1 MiB "
is "units" "GB/s ns us" "$(printf '%s\n' "$out" | awk 'NR > 2 && !/skipped: / { print $(NF - 1) }' | sort -u | paste -sd ' ' -)"
is "plain text has no escapes" "" "$(printf '%s\n' "$out" | tr -cd '\033')"

# ---- output to a file ----------------------------------------------------------------------------

# shellcheck disable=SC2086 # a list of words
to_file() {
    run "$program" bench mock --only fill --size 4K $fast --json "$@"
}

mkdir "$dir/work"
cd "$dir/work"
(umask 027 && "$program" bench mock --only fill --size 4K --time 0.0005 --json -o new.json)
is "a new file" "-rw-r-----" "$(find . -name new.json -printf '%M')"
is "is whole" "mock" "$(validate "$source/conf/schema/bench.json" accelerator <new.json)"
echo old >old.json
chmod 604 old.json
ln -s old.json link.json
to_file --output=link.json
is "through a link" "0  " "$code $out $err"
is "the link stays" "l -rw----r-- mock" "$(find . -name link.json -printf '%y ')$(
    find . -name old.json -printf '%M ')$(validate - accelerator <old.json)"
to_file -o none/new.json
is "no such directory" "1 " "$code $out"
has "no such directory" "$err" "none/new.json: No such file"
to_file -o .
is "a directory" "1 " "$code $out"
to_file -o /dev/full
is "a full device" "1 ds-accel: /dev/full: No space left on device" "$code $err"
to_file -o /dev/null
is "a device is written to" "0  c" "$code $err $(find /dev/null -printf '%y')"
is "nothing is left beside" "link.json new.json old.json" "$(find . -type f -o -type l | sed 's/^..//' | sort | paste -sd ' ' -)"
cd "$dir"

# ---- misuse --------------------------------------------------------------------------------------

for size in "" 0 -1 4Q 4KB "4K," ",4K" 65T 99999999999999999999 " 4K" 1.5K; do
    refuses 2 "--size takes bytes from 1 to 64T" bench --size "$size"
done
for time in "" 0 -1 inf nan 1s 3601 0x1 1e3 . 1.2.3; do
    refuses 2 "--time takes seconds" bench --time "$time"
done
refuses 2 '--only takes copy, fill, peer' bench --only frob
refuses 2 'not ""' bench --only copy,
refuses 2 "more than 32 sizes" bench --size "$(seq -s, 1 33)"
refuses 2 "bench takes [NAME]" bench cpu mock
refuses 2 "expected the same name" -a cpu bench mock
refuses 2 "option of bench" detect --size 4K
refuses 2 "option of report, bench" detect -o file
refuses 2 "option --time needs an argument" bench --time
refuses 1 "9" bench mock --device 9
refuses 1 "frob" bench mock --device frob
refuses 4 "nosuch" bench nosuch
export DS_ACCEL_MOCK_DEVICE_COUNT=0
refuses 4 "mock" bench mock
unset DS_ACCEL_MOCK_DEVICE_COUNT
export DS_ACCEL_MOCK_FAIL=device_open=busy
refuses 1 "MOCK_ERROR_BUSY" bench mock
unset DS_ACCEL_MOCK_FAIL
echo '{"deny": ["*"]}' >"$dir/deny.json"
refuses 3 "" bench --config "$dir/deny.json"
echo '{"acelerator": "cpu"}' >"$dir/bad.json"
refuses 5 "acelerator" bench --config "$dir/bad.json"
run sh -c "'$program' bench mock --only fill --size 4K $fast >/dev/full"
is "stdout is full" "1" "$code"

# ---- output to a terminal ------------------------------------------------------------------------

# terminal.py [--interrupt] [--both] COMMAND...: run COMMAND with stderr, and with --both also
# stdout, on a terminal. Prints the exit code, the terminal's text and stdout, as Python literals.
cat >"$dir/terminal.py" <<'END'
import os, pty, signal, subprocess, sys

arguments = sys.argv[1:]
interrupt = "--interrupt" in arguments
both = "--both" in arguments
command = [argument for argument in arguments if argument not in ("--interrupt", "--both")]
signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell ignores it for background commands
primary, secondary = pty.openpty()
with open("stdout", "wb") as file:
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                               stdout=secondary if both else file, stderr=secondary)
os.close(secondary)
text = b""
while True:
    try:
        piece = os.read(primary, 65536)
    except OSError:
        break
    if not piece:
        break
    text += piece
    if interrupt and b"\r[" in text:
        process.send_signal(signal.SIGINT)
        interrupt = False
code = process.wait()
print(code)
print(ascii(text))
print(ascii(open("stdout", "rb").read()))
END

# terminal ARGUMENT...: run terminal.py, and set $code, $screen and $out.
terminal() {
    code='' screen='' out=''
    {
        read -r code
        read -r screen
        read -r out
    } <<END
$("$python" "$dir/terminal.py" "$@")
END
}

export TERM=xterm
terminal "$program" bench mock --only fill --size 4K,1M --time 0.0005
is "a bar comes and goes" "0 b'\\r[....................] 0/2 fill fill_async 4 KiB\\x1b[K\
\\r[##########..........] 1/2 fill fill_async 1 MiB\\x1b[K\\r\\x1b[K'" "$code $screen"
has "and is not in the answer" "$out" "b'mock device 0: "
case $out in *'\x1b'* | *'[#'*) fail "the answer is clean" "$out" ;; *) pass ;; esac
terminal "$program" bench -q mock --only fill --size 4K --time 0.0005
is "none with -q" "0 b''" "$code $screen"
terminal env TERM=dumb "$program" bench mock --only fill --size 4K --time 0.0005
is "none on a dumb terminal" "0 b''" "$code $screen"
terminal --both "$program" bench mock --only fill --size 4K --time 0.0005
has "the head stands out on a terminal" "$screen" '\x1b[1mGROUP'
terminal --both env NO_COLOR=1 "$program" bench mock --only fill --size 4K --time 0.0005
has "but not without colours" "$screen" '\r\nGROUP'

# On Ctrl-C, bench erases the bar, prints nothing, and is killed by the signal, even while it waits
# for work that takes a minute. It creates no output file.
terminal --interrupt "$program" bench mock --only fill --size 4K --time 600 -o "$dir/interrupted"
is "Ctrl-C" "-2 b''" "$code $out"
has "Ctrl-C leaves the terminal in order" "$screen" "\\x1b[K\\r\\x1b[K'"
is "Ctrl-C leaves no file" "" "$(find "$dir" -name 'interrupted*')"
terminal --interrupt env DS_ACCEL_MOCK_COPY_LATENCY_NS=3000000000 \
    "$program" bench mock --only fill --size 4K
is "Ctrl-C while it waits" "-2 b''" "$code $out"

# ---- the section for docs/hardware.md ------------------------------------------------------------

# The heading has the version of NVIDIA's driver, whatever stands before it. The programs are stubs.
mkdir -p "$dir/stub/bin" "$dir/stub/sim" "$dir/stub/tests" "$dir/nvidia/proc/driver/nvidia"
for stub in bin/ds-accel sim/drive tests/threads; do
    printf '#!/bin/sh\necho "ds-accel 9.9"\n' >"$dir/stub/$stub"
    chmod +x "$dir/stub/$stub"
done
heading() {
    printf '%s\nGCC version:  gcc version 14.2.1\n' "$1" >"$dir/nvidia/proc/driver/nvidia/version"
    run env DS_ACCEL_ROOT="$dir/nvidia" "$source/tests/bench/hardware.sh" "$dir/stub" mock
    is "hardware.sh: $1: code" "0 " "$code $err"
    is "hardware.sh: $1" "driver $2" "$(printf '%s\n' "$out" | sed -n '1s/.*, //p')"
}
heading "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27 07:12:01 UTC 2025" 580.65.06
heading "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (nixbld@)" \
    580.159.04
cat >"$dir/stub/sim/drive" <<'END'
#!/bin/sh
echo "wrong: $2"
exit 4
END
run env DS_ACCEL_ROOT="$dir/nvidia" "$source/tests/bench/hardware.sh" "$dir/stub" mock
is "hardware.sh: a scenario that fails: code" "1 " "$code $err"
has "hardware.sh: a scenario that fails" "$out" "    wrong: walk"
printf '#!/bin/sh\necho "walk: 1 passed, 0 failed"\n' >"$dir/stub/sim/drive"
rm "$dir/nvidia/proc/driver/nvidia/version"
run env DS_ACCEL_ROOT="$dir/nvidia" "$source/tests/bench/hardware.sh" "$dir/stub" mock
is "hardware.sh without NVIDIA's driver" "0 ## mock, $(date -u +%F)" "$code $(printf '%s\n' "$out" | sed q)"

finish
