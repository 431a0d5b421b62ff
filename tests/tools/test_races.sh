#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# The race detector on the programs of docs/programming.md: the unchanged programs have no race. If
# one wait is removed, for each wait in turn, there is exactly one race, between the two accesses
# that the wait had ordered.  test_races.sh BUILD
set -eu
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
guide=$source/docs/programming.md
cd "$dir"

fence() {
    awk -v open="\`\`\`$1" -v wanted="$2" \
        '/^```/ { inside = $0 == open && ++count == wanted; next } inside' "$guide"
}

fence c 1 >move.c
fence c 2 >overlap.c
fence c 3 >replay.c

# Prints the report of the detector when the program exits.
cat >tell.c <<'END'
#include <ds-accel/ds_accel.h>
#include <stdio.h>
static void __attribute__((destructor)) tell(void)
{
    char *text;

    if (ds_accel_layer_report(ds_accel_get(), "race", &text) < 0) {
        fprintf(stderr, "no report: %s\n", ds_accel_last_error());
        return;
    }
    fputs(text, stderr);
    ds_accel_free_text(text);
}
END

# compile SOURCE: compile SOURCE to a program of the same name without suffix.
compile() {
    # shellcheck disable=SC2086 # a list of words
    run "${CC:-gcc}" -std=c11 -O2 -g ${SAN:+-fsanitize=$SAN} "-I$build/include" -o "${1%.c}" "$1" tell.c \
        "-L$build/lib" -lds_accel "-Wl,-rpath,$build/lib"
    is "$1 compiles" "0 " "$code $err"
}

# Backends with queues: the mock, and cpu if it can run work asynchronously.
backends=mock
run env DS_ACCEL_CPU_ASYNC=true "$build/bin/ds-accel" info --json cpu
case $out in
*'"is_synchronized_device": false'*) backends="mock cpu" ;;
*) echo "test_races: the cpu plugin has no option async: only the mock is tested" ;;
esac

# races PROGRAM BACKEND: run the program and set $out to the races found, one per line.
races() {
    run env DS_ACCELERATOR="$2" DS_ACCEL_CPU_ASYNC=true DS_ACCEL_LAYERS=validate "./$1"
    out=$err
}

# places PROGRAM: print the source lines, without indentation, of the code positions in $out.
places() {
    printf '%s\n' "$out" | grep -oE "$1\\+0x[0-9a-f]+" | while IFS=+ read -r _ address; do
        # The reported address is after the call instruction; lines of inline functions in headers
        # are skipped.
        line=$(addr2line -i -e "$1" "$(printf '0x%x' $((address - 1)))" |
            sed -n "s,.*/$1\\.c:\\([0-9]*\\).*,\\1,p" | tail -n 1)
        sed -n "${line:-0}s/^ *//p" "$1.c" 2>/dev/null || echo "no line of $1.c"
    done
}

for name in move overlap replay; do
    compile "$name.c"
    for backend in $backends; do
        races "$name" "$backend"
        is "$name has no race, on $backend" "0 " "$code $out"
    done
done

# without PROGRAM NUMBER LINE...: remove wait NUMBER, counted from 1, and check that there is one
# race, at the positions whose source lines begin with LINE...
without() {
    wait=$(grep -n '/\* wait \*/' "$1.c" | sed -n "$2s/:.*//p")
    mutant=$1_$2
    sed "${wait}s/.*//" "$1.c" >"$mutant.c"
    compile "$mutant.c"
    printf '%s %s\n' "$1" "$2" >>tried
    shift 2
    printf '%s\n' "$@" >wanted
    for backend in $backends; do
        races "$mutant" "$backend"
        is "$mutant ends well, on $backend" "0" "$code"
        is "$mutant has one race, on $backend" "1" "$(printf '%s\n' "$out" | grep -c '^race: ' || true)"
        is "and nothing else is said of $mutant, on $backend" "1" "$(printf '%s\n' "$out" | wc -l)"
        places "$mutant" >given
        while read -r part; do
            has "$mutant on $backend names the place" "$(cat given)" "$part"
        done <wanted
        is "$mutant on $backend names no other place" "$(wc -l <wanted)" "$(wc -l <given)"
    done
}

: >tried
without move 1 'check(ds_accel_mem_copy_async(stream, back, memory' 'check(ds_accel_note_access('
without overlap 1 'check(ds_accel_mem_copy_async(copies, data[slot]' \
    'check(ds_accel_note_access(device, NULL, staging[slot]'
without overlap 2 'check(ds_accel_note_access(device, kernels, data[slot]' \
    'check(ds_accel_mem_copy_async(copies, data[slot]'
without overlap 3 'check(ds_accel_mem_copy_async(copies, data[slot]' \
    'check(ds_accel_note_access(device, kernels, data[slot]'
without overlap 4 'check(ds_accel_mem_copy_async(kernels, results' \
    'check(ds_accel_note_access(device, NULL, results'
# An access in a graph has two positions: the launch and the capture.
without replay 1 'check(ds_accel_graph_replay(' 'check(ds_accel_mem_copy_async(stream, memory, input' \
    'check(ds_accel_note_access(device, NULL, input'
without replay 2 'check(ds_accel_graph_replay(' 'check(ds_accel_mem_copy_async(stream, total' \
    'check(ds_accel_note_access(device, NULL, total'
# A program that does not read the report prints nothing; the race file has the report.
# shellcheck disable=SC2086 # a list of words
run "${CC:-gcc}" -std=c11 -O2 -g ${SAN:+-fsanitize=$SAN} "-I$build/include" -o silent move_1.c \
    "-L$build/lib" -lds_accel "-Wl,-rpath,$build/lib"
is "a program that does not ask compiles" "0 " "$code $err"
run env DS_ACCELERATOR=mock DS_ACCEL_LAYERS=validate ./silent
is "nothing is printed unasked" "0 " "$code $err"
run env DS_ACCELERATOR=mock DS_ACCEL_LAYERS=validate DS_ACCEL_RACE_FILE=found.txt ./silent
is "nor with a file" "0 " "$code $err"
run env DS_ACCELERATOR=mock DS_ACCEL_LAYERS=validate DS_ACCEL_RACE_FILE=found.txt ./silent
is "each run adds its race" "2 2" "$(grep -c '^race: ' found.txt) $(wc -l <found.txt)"
has "with its places" "$(cat found.txt)" "called at silent+0x"

is "every wait was taken away once" "$(grep -c '/\* wait \*/' move.c overlap.c replay.c |
    awk -F '[.:]' '{ for (i = 1; i <= $3; i++) print $1, i }')" "$(cat tried)"

finish
