# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
# shellcheck shell=sh
#
# Shared by the shell tests: a scratch directory, counted checks, sampling of cases, a summary line.
# Source this file, run checks, then call `finish`.

passed=0
failed=0
dir=$(mktemp -d "${TMPDIR:-/tmp}/ds-accel-test.XXXXXX")
trap 'rm -rf "$dir"' EXIT

# Unset settings of this user and machine, which would affect the tests.
unset DS_ACCELERATOR DS_ACCEL_PLUGIN_PATH DS_ACCEL_CONFIG DS_ACCEL_LOG DS_ACCEL_PROBE \
    DS_ACCEL_CACHE_DIR DS_ACCEL_ALLOCATOR DS_ACCEL_DECISION DS_ACCEL_RESERVED_CPUS DS_ACCEL_LAYERS DS_ACCEL_TRACE_FILE DS_ACCEL_RACE_FILE DS_ACCEL_OPS_ISA DS_ACCEL_ROOT LOCAL_SIZE LOCAL_RANK 2>/dev/null || true
export XDG_CONFIG_HOME="$dir/config" XDG_RUNTIME_DIR="$dir" DS_ACCEL_CACHE=off LC_ALL=C

# Call Python by its absolute path: a python3 in PATH may be a wrapper script, which takes ten times
# as long to start.
python3() {
    "${PYTHON:-/usr/bin/python3}" "$@"
}

# pass NAME, fail NAME [DETAIL]: count a check.
pass() {
    passed=$((passed + 1))
}

fail() {
    failed=$((failed + 1))
    echo "FAILED: $1"
    [ $# -lt 2 ] || printf '%s\n' "$2" | sed 's/^/    /'
    [ -z "${FIRST_FAILURE_ENDS:-}" ] || exit 1
}

# is NAME WANTED GIVEN: check that two texts are equal.
is() {
    if [ "$2" = "$3" ]; then
        pass
    else
        fail "$1" "wanted: $2
given:  $3"
    fi
}

# has NAME TEXT PART: check that TEXT contains PART.
has() {
    case $2 in
    *"$3"*) pass ;;
    *) fail "$1" "wanted a text with: $3
given: $2" ;;
    esac
}

# run COMMAND...: run the command and set $code, $out and $err.
# shellcheck disable=SC2034 # for the scripts that source this
run() {
    code=0
    out=$("$@" 2>"$dir/stderr") || code=$?
    err=$(cat "$dir/stderr")
}

# A test with very many cases runs a sample of them in the gate, and all of them with $FULL, as in
# `make soak`. $SEED selects the sample: equal seeds select equal cases, and each commit has its own
# seed.
#
# taken ONE_IN: return true if the next case belongs to the sample, which has one case in ONE_IN.
turn=0
taken() {
    turn=$((turn + 1))
    [ -n "${FULL-}" ] || [ $(((turn + ${SEED:-0}) % $1)) = 0 ]
}

finish() {
    echo "$(basename "$0" .sh): $passed passed, $failed failed"
    [ "$failed" = 0 ]
}
