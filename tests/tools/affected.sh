#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Print the shell tests that changed files can affect first: what `make check QUICK=1` runs beside the unit tests.
#
#     affected.sh [COMMIT]
#
# Changed is what differs from the commit (HEAD, unless given), and what git does not know yet. Names decide: a test of
# the same name as the changed file or its directory (core/cache_file.c: test_cache.sh, plugins/xpu: test_xpu.sh).
# What names do not tell, whole `make check` does: this is for the time between edits. A few quick tests are always run.
set -eu
cd "$(dirname "$0")/../.."

# Under five seconds of a processor each: symbols, the command's edges, each vendor's plugin in brief.
always="tests/tools/test_symbols.sh tests/tools/test_note.sh tests/tools/test_private.sh tests/sim/test_alike.sh
tests/sim/test_identity.sh"

# tests_named WORD...: the tests of these names that there are.
tests_named() {
    for word in "$@"; do
        for test in tests/tools/test_"$word".sh tests/sim/test_"$word".sh; do
            [ ! -f "$test" ] || echo "$test"
        done
    done
}

# tests_of PATH: by the directory's names, and the file's name up to each of its underscores.
tests_of() {
    stem=$(basename "$1")
    stem=${stem%.*}
    stem=${stem#test_}
    stem=${stem#cmd_}
    while :; do
        tests_named "$stem"
        case $stem in *_*) stem=${stem%_*} ;; *) break ;; esac
    done
    # shellcheck disable=SC2046 # words
    tests_named $(dirname "$1" | tr / ' ')
    case $1 in
    plugin-api.h | tests/abi/*) tests_named abi headers ;;
    plugins/common/*) tests_named frame opened ;;
    docs/*.md | README.md | CONTRIBUTING.md) tests_named docs examples ;;
    docs/*.[157] | core/reasons.def | tools/reasons.c) tests_named manual ;;
    tools/completion/*) tests_named completion ;;
    tools/*.c) tests_named cli ;;
    conf/*) tests_named facts cli ;;
    *allocator* | core/*memory*) tests_named memory ;;
    core/*probe* | core/*contain* | core/*guard*) tests_named faults ;;
    core/*trust* | core/*scan* | core/*elf*) tests_named secure ;;
    core/*verdict* | core/*snapshot*) tests_named cache ;;
    core/*record*) tests_named record replay ;;
    core/*layer* | core/*race*) tests_named races ;;
    core/*presence* | core/*hardware*) tests_named matrix ;;
    core/*detect* | core/*config* | core/*context*) tests_named matrix cli ;;
    tests/sim/*.[ch]) tests_named engine ;;
    tests/fixtures/mutant*) tests_named conformance ;;
    tests/fixtures/fault*) tests_named faults isolation ;;
    esac
}

{
    printf '%s\n' "$always"
    { git diff --name-only "${1:-HEAD}" && git ls-files --others --exclude-standard; } 2>/dev/null |
        while read -r path; do
            tests_of "$path"
        done
} | tr ' ' '\n' | awk 'NF && !seen[$0]++'
