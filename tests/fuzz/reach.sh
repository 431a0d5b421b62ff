#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Does each fuzzer, with what is in its corpus, reach the functions that reach.txt names? An input that
# stops at a check of its first bytes tests nothing that lies behind.
#
#     reach.sh BUILD FUZZER...
#
# BUILD has the replays, compiled and linked with --coverage.
set -eu
source=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
shift
passed=0
failed=0

# reached FILE: the functions of core/*/FILE.c of which a line was run.
reached() {
    counters=$(cd "$build" && find obj/core -name "$1.gcda")
    (cd "$build" && gcov -n -f -o "$(dirname "$counters")" "$counters" 2>/dev/null) |
        sed -n "/^Function/{N;s/^Function '\\([^']*\\)'\\n[^:]*:\\([0-9.]*\\)%.*/\\1 \\2/p;}" | awk '$2 > 0 { print $1 }'
}

for fuzzer in "$@"; do
    find "$build/obj" -name '*.gcda' -delete
    "$build/fuzz/replay/fuzz_$fuzzer" "$source/corpus/$fuzzer" >/dev/null
    lines=$(grep "^$fuzzer " "$source/reach.txt" || true)
    if [ -z "$lines" ]; then
        echo "FAILED: reach.txt does not say what fuzz_$fuzzer is for"
        failed=$((failed + 1))
    fi
    while read -r _ file functions; do
        [ -n "$file" ] || continue
        found=$(reached "$file")
        for function in $functions; do
            if printf '%s\n' "$found" | grep -qx "$function"; then
                passed=$((passed + 1))
            else
                failed=$((failed + 1))
                echo "FAILED: no input of corpus/$fuzzer gets fuzz_$fuzzer into $function() of $file.c"
            fi
        done
    done <<LINES
$lines
LINES
done
echo "fuzz_reach: $passed passed, $failed failed"
[ "$failed" = 0 ]
