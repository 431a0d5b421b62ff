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
