# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
# shellcheck shell=sh disable=SC2034,SC2154
#
# What the tests share that run $build/sim/drive, behind tests/tools/lib.sh. $build is set.

unset SIM_MACHINE SIM_FAIL SIM_LATENCY_US SIM_LOSE SIM_REPORT SIM_RANGES DS_ACCEL_ROOT 2>/dev/null || true
: "${CC:=gcc}"
# The leak checker's own tracer dies of libraries with thread-local storage that were opened late; what a
# plugin leaves alive, the simulator reports.
[ -z "${SAN:-}" ] || export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0"
export SIM_BUILD="$build"
drive=$build/sim/drive

# driven COMMAND...: runs it; $code, $out and $err, which is without the plugin's warnings: they are in
# $log. Where it is a scenario, its last line is not in $out but in $figures, and has to fit $code.
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

# unprivileged WHAT: prepare to run as a user without the right to open every file. Sets $as_user, the
# words in front of a command (none where this user is such a one), $user, its number, and $reached, a
# prefix that it can run: $build, or a copy where the way to $build is closed to others. Where neither
# works, prints that WHAT is not tested, and returns 1.
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

# All that a run reads, and not only the program.
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
