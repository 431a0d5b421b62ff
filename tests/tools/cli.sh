# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
# shellcheck shell=sh
# shellcheck disable=SC2034,SC2154 # for the scripts that source this, and from them
#
# Shared by the tests of the command line: checks of output, refusals and reports, plugin
# directories, and configurations. Source it after lib.sh, with $build and $source set.

unset NO_COLOR TERM
program=$build/bin/ds-accel
schemas=$source/conf/schema
mocks=$build/tests/fixtures/mocks
broken=$build/tests/fixtures
here=$(cd "$dir" && pwd -P)

validate() {
    "${PYTHON:-/usr/bin/python3}" "$source/tests/tools/validate.py" "$@"
}

# lacks NAME TEXT PART: check that TEXT does not contain PART.
lacks() {
    case $2 in
    *"$3"*) fail "$1" "wanted a text without: $3
given: $2" ;;
    *) pass ;;
    esac
}

# answers OUT COMMAND...: check that the command exits with 0, prints OUT on stdout, and prints
# nothing on stderr.
answers() {
    wanted=$1
    shift
    run "$@"
    is "$*" "0 $wanted " "$code $out $err"
}

# refuses CODE PART COMMAND...: check that the command exits with CODE, prints nothing on stdout,
# and prints a message that contains PART on stderr.
refuses() {
    wanted=$1
    part=$2
    shift 2
    run "$@"
    is "$*" "$wanted " "$code $out"
    has "message of $*" "$err" "ds-accel: "
    has "message of $*" "$err" "$part"
}

# report SCHEMA CODE COMMAND...: check that the command exits with CODE and prints JSON of SCHEMA on
# stdout. Later calls of `at` read this JSON.
report() {
    shape=$1
    wanted=$2
    shift 2
    run "$@"
    is "exit code of $*" "$wanted" "$code"
    printf '%s\n' "$out" >"$dir/json"
    if message=$(validate "$schemas/$shape.json" <"$dir/json" 2>&1); then
        pass
    else
        fail "$* has the shape of $shape.json" "$message"
    fi
}

# at PATH...: print values of the last report, separated by spaces.
at() {
    validate - "$@" <"$dir/json" 2>&1 | paste -sd ' ' -
}

# plugins DIRECTORY NAME...: create a directory with copies of the mock under these names.
plugins() {
    directory=$1
    shift
    mkdir -p "$directory"
    for plugin; do
        cp "$mocks/ds_accel_$plugin.so" "$directory/"
    done
}

# count TEXT PATTERN: print the number of lines of TEXT that match PATTERN.
count() {
    printf '%s\n' "$1" | grep -c -- "$2" || true
}

escape=$(printf '\033')
plugins "$dir/cuda" cuda
plugins "$dir/two" npu cuda
echo '{"deny": ["*"]}' >"$dir/deny.json"
echo '{"accelerator": "mock"}' >"$dir/mock.json"
printf '{\n  "deny": [],\n  "acelerator": "cpu"\n}\n' >"$dir/bad.json"
