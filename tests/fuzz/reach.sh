#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Check that each fuzzer, with its corpus, reaches the functions listed in reach.txt. An input that
# fails a check of its first bytes tests nothing after that check.
#
#     reach.sh BUILD FUZZER...
#
# BUILD contains the fuzzers, compiled and linked with --coverage.
set -eu
source=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
shift
passed=0
failed=0

# reached FILE: print the functions of core/*/FILE.c with at least one executed line.
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
