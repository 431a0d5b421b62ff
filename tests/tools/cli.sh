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

# answers OUT COMMAND...: check for exit code 0, OUT on stdout, nothing on stderr.
answers() {
    wanted=$1
    shift
    run "$@"
    is "$*" "0 $wanted " "$code $out $err"
}

# refuses CODE PART COMMAND...: check for exit code CODE, nothing on stdout, a message that contains
# PART on stderr.
refuses() {
    wanted=$1
    part=$2
    shift 2
    run "$@"
    is "$*" "$wanted " "$code $out"
    has "message of $*" "$err" "ds-accel: "
    has "message of $*" "$err" "$part"
}

# report SCHEMA CODE COMMAND...: check for exit code CODE and JSON of SCHEMA on stdout, which `at`
# reads.
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

# count TEXT PATTERN: print how many lines of TEXT match.
count() {
    printf '%s\n' "$1" | grep -c -- "$2" || true
}

escape=$(printf '\033')
plugins "$dir/cuda" cuda
plugins "$dir/two" npu cuda
echo '{"deny": ["*"]}' >"$dir/deny.json"
echo '{"accelerator": "mock"}' >"$dir/mock.json"
printf '{\n  "deny": [],\n  "acelerator": "cpu"\n}\n' >"$dir/bad.json"
