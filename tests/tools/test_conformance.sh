#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The mock and the cpu plugin pass the conformance suite. For each mistake of mutants.txt and
# mutants_cpu.txt, the suite reports exactly the rule that the mistake breaks. Every rule that has a
# check has a mutant.  test_conformance.sh BUILD
set -eu
build=$1
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
program=$build/bin/ds-accel
plugins=$build/lib/ds-accel
mutant=$build/tests/fixtures/mutants/ds_accel_mock.so
mutants=$source/tests/fixtures/mutants.txt
mutant_cpu=$build/tests/fixtures/mutants/ds_accel_cpu.so
mutants_cpu=$source/tests/fixtures/mutants_cpu.txt
python=${PYTHON:-/usr/bin/python3}
schema=$source/conf/schema/conformance.json

# valid NAME: check that the last output matches conformance.json.
valid() {
    if message=$(printf '%s\n' "$out" | "$python" "$source/tests/tools/validate.py" "$schema" 2>&1); then
        pass
    else
        fail "$1 has the shape of conformance.json" "$message"
    fi
}

# at PATH...: print values of the last output.
at() {
    printf '%s\n' "$out" | "$python" "$source/tests/tools/validate.py" - "$@" 2>&1 | paste -sd ' ' -
}

# broken: print the rules that the last output, in text form, reports as broken.
broken() {
    printf '%s\n' "$out" | awk '$2 == "failed" { print $1 }' | sort -u | paste -sd ' ' -
}

# ---- the list of rules ---------------------------------------------------------------------------

run "$program" conformance --list --json
is "exit code of --list" 0 "$code"
valid "--list"
listed=$(printf '%s\n' "$out" | sed -n 's/^ *"rule": "\(.*\)",$/\1/p' | sort -u)
is "nothing is run for it" "listed" "$(at 'checks/*/result' | tr ' ' '\n' | sort -u)"
is "every rule that is checked has a mutant" "$listed" \
    "$(awk '{ print $2 }' "$mutants" "$mutants_cpu" | sort -u)"
printf '%s\n' "$out" | sed -n 's/^ *"rule": "\(.*\)",$/\1/p; s/^ *"title": "\(.*\)",$/\1/p' |
    paste -d ' ' - - | sort -u >"$dir/titles"
while read -r rule title; do
    is "title of $rule" "$title." \
        "$(sed -n "s/^- \\*\\*$rule\\*\\* //p" "$source/docs/plugin-abi.md" | tr -d '\`')"
done <"$dir/titles"
run "$program" conformance --list --group stream
is "--list of a group" "0 stream" "$code $(printf '%s\n' "$out" | awk '{ print $3 }' | sort -u)"
run "$program" conformance --list --rule DSA-P19
is "--list of a rule" "0 DSA-P19" "$code $(printf '%s\n' "$out" | awk '{ print $1 }' | sort -u)"

# ---- plugins that pass ---------------------------------------------------------------------------

for name in mock cpu async; do
    asynchronous=false
    if [ "$name" = async ]; then
        name=cpu asynchronous=true
    fi
    run env DS_ACCEL_CPU_ASYNC="$asynchronous" "$program" conformance --json "$name"
    is "conformance $name" "0 " "$code $err"
    valid "conformance $name"
    is "conformance $name" "true 0" "$(at ok summary/failed)"
    is "its file" "$name $plugins/ds_accel_$name.so" "$(at name path)"
done
run "$program" conformance "$plugins/ds_accel_mock.so" --device 1
is "another device, a file" "0 mock, device 1: " "$code $(printf '%s\n' "$out" | sed -n 's/^\(mock, device 1: \).*, 0 failed.*/\1/p')"
run env DS_ACCEL_MOCK_LAUNCH_LATENCY_NS=3000000 DS_ACCEL_MOCK_COPY_LATENCY_NS=20000 \
    DS_ACCEL_MOCK_DEVICE_COUNT=1 "$program" conformance mock
is "a device that takes its time, alone" "0 " "$code $(broken)"
run "$program" conformance mock --group stream -v
is "one group" "0 stream" "$code $(printf '%s\n' "$out" | sed '$d' | awk '{ print $3 }' | sort -u)"
run "$program" conformance mock --rule DSA-P29 -v
is "one rule" "0 DSA-P29 passed" "$code $(printf '%s\n' "$out" | sed '$d' | awk '{ print $1, $2 }')"
# The mock queues no work and sets few flags; the checks that it skips for these reasons run on cpu.
skipped() {
    printf '%s\n' "$out" | awk '$2 == "skipped" && ($3 == "held" || $3 == "flags") == '"$1"
}
run "$program" conformance "$mutant" -v
is "the mutants' plugin without a mistake" "0  " "$code $(broken) $(skipped 0)"
is "what it skips" "DS_ACCEL_FLAG_DEFAULT_STREAM_SYNCS is not set
DS_ACCEL_FLAG_RESOLVES_DEPENDENCIES is not set
DS_ACCEL_FLAG_SYNCHRONIZED is not set
host tasks are run within the calls" "$(skipped 1 | sed 's/.*: //' | sort -u)"
export LOCAL_SIZE=2 # cpu has two devices
run env DS_ACCEL_CPU_ASYNC=true "$program" conformance "$mutant_cpu" -v
is "the cpu mutants' plugin without a mistake" "0  4" "$code $(broken) $(skipped 1 | wc -l)"
unset LOCAL_SIZE

# ---- mutants that each make one mistake ----------------------------------------------------------

# find_mistakes PLUGIN JOBS [--rule]: run the suite for each mistake listed on stdin, JOBS at a
# time; with --rule, run only the checks of the rule that the mistake breaks.
find_mistakes() {
    # shellcheck disable=SC2016 # expanded by the inner shell
    xargs -r -P "$2" -L 1 sh -c '
        status=0
        MUTANT=$4 "$1" conformance "$2" ${3:+"$3" "$5"} >"$found/$4.out" 2>&1 || status=$?
        echo "$status" >"$found/$4.code"' sh "$program" "$1" "${3-}"
}

# what_broke NAME: print the exit code and the broken rules of the run for the mistake NAME.
what_broke() {
    out=$(cat "$found/$1.out")
    echo "$(cat "$found/$1.code") $(broken)"
}

# mistakes PLUGIN LIST JOBS ONE_IN: check that each mistake of LIST is found by the checks of its
# rule, JOBS runs at a time. Only the whole suite shows that a mistake breaks no other rule: it runs
# for one mistake in ONE_IN, and for each mistake that the checks of its rule alone do not find.
mistakes() {
    export found="$dir/found"
    rm -rf "$found"
    mkdir "$found"
    : >"$found/.alone"
    : >"$found/.whole"
    while read -r line; do
        if taken "$4"; then echo "$line" >>"$found/.whole"; else echo "$line" >>"$found/.alone"; fi
    done <"$2"
    find_mistakes "$1" "$3" --rule <"$found/.alone"
    while read -r name rule; do
        [ "$(what_broke "$name")" = "1 $rule" ] || echo "$name $rule" >>"$found/.whole"
    done <"$found/.alone"
    find_mistakes "$1" "$3" <"$found/.whole"
    while read -r name rule; do
        is "mistake $name" "1 $rule" "$(what_broke "$name")"
    done <"$2"
}
mistakes "$mutant" "$mutants" 4 20
# Most of these mistakes wait for work that never finishes, so all of them run at the same time.
export LOCAL_SIZE=2 DS_ACCEL_CPU_ASYNC=true
mistakes "$mutant_cpu" "$mutants_cpu" 0 5
unset LOCAL_SIZE DS_ACCEL_CPU_ASYNC

run env MUTANT=lacks_library "$program" conformance "$mutant"
is "a library that is not installed is no mistake" "0 " "$code $(broken)"

run env MUTANT=is_nearly_full "$program" conformance "$mutant" --rule DSA-P66
is "a device that other processes fill is no mistake" "0 " "$code $(broken)"
run env MUTANT=plain_flags "$program" conformance "$mutant"
is "flags that are not offered are no mistake" "0 " "$code $(broken)"
run env MUTANT=lacks_synchronize "$program" conformance "$mutant" -v
is "a slot that is not there is no mistake" "0 " "$code $(broken)"
has "what needs it is skipped" "$out" "a state is restored: not offered: rng_state_size"
has "what needs it is skipped" "$out" "queued copies: not offered: stream_synchronize"
run env MUTANT=lacks_streams "$program" conformance "$mutant" -v
is "a device with its default stream alone is no mistake" "0 " "$code $(broken)"
has "what needs a stream is skipped" "$out" "two launches: not offered: stream_create"

run env MUTANT=aborts "$program" conformance --json "$mutant" --rule DSA-P26
is "a crash" "1 failed" "$code $(at checks/0/result)"
has "a crash says how" "$(at checks/0/detail)" "SIGABRT ended the process"
valid "a crash"
for fault in load_segv entry_segv; do
    run "$program" conformance "$build/tests/fixtures/faults/$fault/ds_accel_faulty.so"
    is "$fault" "1 DSA-P26" "$code $(broken)"
    case $fault in load_*) where="loading" ;; *) where="the entry" ;; esac
    has "$fault names the code that crashed" "$out" "SIGSEGV ended the process, in $where"
done
printf '{"probe": {"timeout_ms": 200}}\n' >"$dir/short.json"
run env DS_ACCEL_MOCK_LAUNCH_LATENCY_NS=100000000000 "$program" --config "$dir/short.json" \
    conformance --json mock --rule DSA-P52
is "a check that does not end" "1 no result within 200 ms, in stream_synchronize" "$code $(at checks/0/detail)"

# ---- plugins that kill or exit the process -------------------------------------------------------

# counts: print the numbers of passed, failed and skipped checks of the last output, in JSON form.
counts() {
    at summary/passed summary/failed summary/skipped
}

# slot RULE: print the first failed check of RULE, and its slot, in the last output, in JSON form.
slot() {
    printf '%s\n' "$out" | "$python" -c '
import json, sys
for check in json.load(sys.stdin)["checks"]:
    if check["result"] == "failed" and check["rule"] == sys.argv[1]:
        print(check["slot"])
        break' "$1"
}

run env MUTANT=aborts_elsewhere "$program" conformance --json "$mutant"
is "a crash of another thread names the slot" "device_health" "$(slot DSA-P26)"
valid "a crash of another thread"
has "what it printed is there" "$(at 'checks/*/output')" "the worker gives up"
run env MUTANT=aborts_elsewhere "$program" conformance "$mutant"
has "its line, in text" "$out" "SIGABRT ended the process, in device_health; printed: the worker gives up"
run "$program" conformance --json "$mutant"
always_skipped=$(at summary/skipped)
run env MUTANT=exits_for_info "$program" conformance --json "$mutant"
is "exit() in backend_info costs a check" "1 backend_info" "$(at summary/failed) $(slot DSA-P26)"
is "and those that are about it are skipped" 1 "$(($(at summary/skipped) <= always_skipped + 14))"
run env MUTANT=exits_for_stream "$program" conformance --json "$mutant"
is "exit() in stream_create costs a check" "1 stream_create" "$(at summary/failed) $(slot DSA-P26)"
is "what needs no stream goes on" 1 "$(($(at summary/passed) >= 70))"
has "what needs one is skipped, and why" "$(at 'checks/*/detail')" "stream_create ended the process of an earlier check"
run env MUTANT=exits_for_nothing "$program" conformance --json "$mutant"
is "exit() for a size of 0 costs the checks of that size" \
    "2 $always_skipped" "$(at summary/failed summary/skipped)"
printf '{"probe": {"timeout_ms": 1000}}\n' >"$dir/second.json"
run env MUTANT=hangs "$program" --config "$dir/second.json" conformance --json "$mutant"
is "a hang in one slot costs a check" "1 device_health" "$(at summary/failed) $(slot DSA-P26)"
is "and those that are about it are skipped" 1 "$(($(at summary/skipped) <= always_skipped + 2))"

# ---- output of the plugin ------------------------------------------------------------------------

run env MUTANT=prints_banner "$program" conformance --json "$mutant" --rule DSA-P13
has "what is printed is shown with its check, without what controls a terminal" \
    "$(at checks/0/output)" "Welcome to  [31mmock"
valid "what is printed"
run env MUTANT=prints_support "$program" conformance "$mutant" --rule DSA-P88
has "without -v too" "$out" "| dtype 1"
has "but not all of it" "$out" "(13 lines more: -v)"
run env MUTANT=prints_support "$program" conformance -v "$mutant" --rule DSA-P88
has "with -v all of it" "$out" "| dtype 14"

run env MUTANT=prints_support "$program" conformance --json "$mutant" --group dtype
has "of two checks in one process, each has its own" "$(at checks/0/output)" "dtype 999"
is "of two checks in one process, each has its own" 0 "$(at checks/1/output | grep -c 'dtype 999')"

# ---- lint ----------------------------------------------------------------------------------------

# A plugin that prints or leaves something behind breaks the same rule in lint and in conformance;
# DSA-P5 is a defect of the fixture itself.
for name in prints_banner prints_at_end leaves_descriptor leaves_by_init logs_two_lines logs_nothing; do
    run env MUTANT="$name" "$program" lint "$mutant"
    wanted=$(broken | sed 's/ *DSA-P5//')
    run env MUTANT="$name" "$program" conformance "$mutant"
    is "lint and conformance of $name" "$wanted" "$(broken)"
done
run env MUTANT=leaves_by_init "$program" lint "$mutant"
has "lint names what init left" "$out" "DSA-P30  failed  Instances are independent: leaves_descriptor"
run env MUTANT=prints_banner "$program" lint "$mutant"
has "lint shows what was printed" "$out" "written to stdout or stderr: Welcome"
printf '{"backends": {"mock": {"tolerate": ["leaves_descriptor"]}}}\n' >"$dir/tolerant.json"
run env MUTANT=leaves_by_init "$program" --config "$dir/tolerant.json" lint "$mutant"
has "lint of what is tolerated" "$out" "tolerated: leaves_descriptor"
run env MUTANT=leaves_by_init "$program" --config "$dir/tolerant.json" conformance "$mutant"
is "conformance of what is tolerated" 0 "$code"

# ---- sanitizers ----------------------------------------------------------------------------------

# sanitized KIND LIBRARY: build the plugin of the mutants with a sanitizer and set $preload to its
# runtime library; fail if the compiler cannot, or if this build has a sanitizer already.
sanitized() {
    preload=$(gcc -print-file-name="$2" 2>/dev/null || true)
    mkdir -p "$dir/$1"
    objects=$(find "$build/obj/plugins/mock" -name '*.o' ! -name mock.o)
    # shellcheck disable=SC2086
    [ -z "${SAN-}" ] && [ -f "$preload" ] &&
        gcc -std=c11 -D_GNU_SOURCE -fPIC -fvisibility=hidden -g -fsanitize="$1" \
            -I"$build/stage/plugin" -I"$source/plugins/common" -I"$source/plugins/mock" \
            "$source/tests/fixtures/mutant.c" $objects -shared -Wl,-z,now,-z,nodelete -lpthread \
            -o "$dir/$1/ds_accel_mock.so" 2>"$dir/gcc"
}

if sanitized address libasan.so; then
    run env LD_PRELOAD="$preload" "$program" conformance "$dir/address/ds_accel_mock.so"
    is "with AddressSanitizer nothing is lost" "0 " "$code $(broken)"
    run env LD_PRELOAD="$preload" MUTANT=loses_memory "$program" conformance \
        "$dir/address/ds_accel_mock.so" --rule DSA-P55
    is "a leak breaks a rule" "1 DSA-P30" "$code $(broken)"
    has "the report of the leak is shown" "$out" "loses_memory"
else
    echo "address: not run: $(cat "$dir/gcc" 2>/dev/null)"
fi
if sanitized thread libtsan.so; then
    run env LD_PRELOAD="$preload" MUTANT=races "$program" conformance "$dir/thread/ds_accel_mock.so" \
        --rule DSA-P26
    is "a race breaks a rule" "1 DSA-P27" "$code $(broken)"
    has "the report of the race is shown" "$out" "count_health"
else
    echo "thread: not run: $(cat "$dir/gcc" 2>/dev/null)"
fi

# ---- several devices -----------------------------------------------------------------------------

run "$program" conformance --json "$mutant" --rule DSA-P120
is "each device, and the first of them in another order" "0 1 0 MOCK_VISIBLE_DEVICES 1,0" \
    "$(at 'checks/0/runs/*/device') $(at visible/variable visible/value)"
is "no device of the run in particular" "null" "$(at device)"
run env MUTANT=opens_first "$program" conformance "$mutant" --device 0
is "one device on its own hides that all are the first" "" \
    "$(broken | tr ' ' '\n' | grep -v DSA-P120 || true)"
run env MUTANT=hidden_first "$program" conformance --json "$mutant" --rule DSA-P88
has "a mistake in another order" "$(at checks/0/detail)" "device 0 with MOCK_VISIBLE_DEVICES=1,0: "
run "$program" conformance mock --device all --rule DSA-P120
is "--device all" "0 mock, 2 devices, and with MOCK_VISIBLE_DEVICES=1,0" \
    "$code $(printf '%s\n' "$out" | sed -n 's/: .*//p' | tail -n 1)"

# ---- errors -------------------------------------------------------------------------

# refuses CODE PART COMMAND...: check the exit code and the message.
refuses() {
    wanted=$1
    part=$2
    shift 2
    run "$@"
    is "exit code of $*" "$wanted" "$code"
    has "what $* says" "$err" "$part"
    is "$* prints nothing" "" "$out"
}

refuses 4 "mock is not available: no_driver" env DS_ACCEL_MOCK_AVAILABLE=false DS_ACCEL_MOCK_REASON=no_driver \
    "$program" conformance mock
refuses 4 "bad_option" env DS_ACCEL_MOCK_DEVICE_COUNT=many "$program" conformance mock
refuses 1 "no plugin named" "$program" conformance nosuch
refuses 1 "No such file" "$program" conformance "$dir/ds_accel_none.so"
refuses 2 "expected ds_accel_<name>.so" "$program" conformance "$dir/other.so"
refuses 2 "or --list" "$program" conformance
refuses 2 "takes no argument" "$program" conformance --list mock
refuses 2 "either --rule or --group" "$program" conformance mock --rule DSA-P9 --group life
refuses 2 "no check is of the rule or group" "$program" conformance mock --rule DSA-P1
refuses 2 "is not a number of a device" "$program" conformance mock --device x
refuses 2 "option of conformance" "$program" detect --list
broken=$build/tests/fixtures
refuses 4 "does not load" "$program" conformance "$broken/undefined_symbol/ds_accel_undefined_symbol.so"
refuses 4 "returns no table" "$program" conformance "$broken/entry_null/ds_accel_entry_null.so"
refuses 4 "no_note: it has no note" "$program" conformance "$broken/no_note/ds_accel_no_note.so"
run "$program" conformance "$broken/none/ds_accel_none.so"
is "a plugin of seven functions" "0 " "$code $(broken)"
run "$program" conformance "$broken/size_zero/ds_accel_size_zero.so"
is "a table without a size" "1 DSA-P10 DSA-P11" "$code $(broken)"
refuses 4 "there is no device 9: mock has 2" "$program" conformance mock --device 9 --group stream
refuses 4 "there is no device 9: mock has 2" "$program" conformance mock --device 9
refuses 4 "there is no device 9: mock has 2" "$program" conformance mock --device 9 --rule DSA-P33
run "$build/libexec/ds-accel/ds-accel-probe" --conformance
is "the helper alone" 2 "$code"

finish
