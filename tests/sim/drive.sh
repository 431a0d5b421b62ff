# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
# shellcheck shell=sh disable=SC2034,SC2154
#
# Functions shared by tests that run $build/sim/drive; sourced after tests/tools/lib.sh. $build is
# set.

unset SIM_MACHINE SIM_FAIL SIM_LATENCY_US SIM_LOSE SIM_REPORT SIM_RANGES DS_ACCEL_ROOT 2>/dev/null || true
: "${CC:=gcc}"
export SIM_BUILD="$build"
drive=$build/sim/drive

# driven COMMAND...: runs the command; sets $code, $out, and $err without the plugin's warnings,
# which are in $log. The last line of a scenario is moved from $out to $figures, and must match
# $code.
driven() {
    run "$@"
    log=
    if [ -n "$err" ]; then
        log=$(printf '%s\n' "$err" | sed -n 's/^log: //p')
        err=$(printf '%s\n' "$err" | sed '/^log: /d')
    fi
    case " $* " in
    *" $drive "*) ;;
    *) return 0 ;;
    esac
    figures=${out##*
}
    case "$code $figures" in
    "0 "*" passed, 0 failed") ;;
    [134]*" passed, 0 failed") fail "what the scenario says: $*" "exit $code
$out" ;;
    [134]\ *" passed, "*" failed") ;;
    [0134]\ *) fail "what the scenario says: $*" "exit $code
$out" ;;
    *) return 0 ;;
    esac
    out=${out%"$figures"}
    out=${out%
}
}

# unprivileged WHAT: prepares to run as a user without the right to open every file. Sets $as_user
# to the words before a command (empty if this user is already unprivileged), $user to its number,
# and $reached to a prefix that it can execute: $build, or a copy if other users cannot reach
# $build. If neither works, prints that WHAT is not tested, and returns 1.
unprivileged() {
    as_user=
    user=$(id -u)
    reached=$build
    [ "$user" = 0 ] || return 0
    user=65534
    as_user="setpriv --reuid=$user --regid=$user --clear-groups"
    chmod 755 "$dir"
    is_reached || copy_build
    is_reached && return 0
    echo "$(basename "$0" .sh): not tested: $1: user $user cannot run $reached/bin/ds-accel"
    return 1
}

# is_reached: checks all files that a run reads, in addition to the program.
is_reached() {
    # shellcheck disable=SC2086 # words
    XDG_RUNTIME_DIR='' $as_user "$reached/bin/ds-accel" list >/dev/null 2>&1 &&
        $as_user test -r "$reached/lib/ds-accel/$(basename "$plugin")"
}

copy_build() {
    reached=$dir/reached
    if [ ! -d "$reached" ]; then
        mkdir "$reached"
        for part in bin lib libexec share; do
            [ ! -d "$build/$part" ] || cp -R "$build/$part" "$reached/"
        done
        chmod -R go+rX "$reached"
    fi
}
