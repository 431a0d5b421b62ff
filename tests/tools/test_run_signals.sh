#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# ds-accel run, supervised: signals, stopped and killed processes, daemons, terminals; nothing is
# left on any path. All checks are in launch.py. In `make soak`, 1,000 jobs have processes killed
# and stopped at random, and 20 GB pass through.  test_run_signals.sh BUILD
set -eu
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"

# launch PART ARGUMENT...: run checks of launch.py.
launch() {
    code=0
    python3 "$source/tests/tools/launch.py" "$@" >"$dir/$1.out" 2>"$dir/$1.err" || code=$?
    echo "$code" >"$dir/$1.code"
}

program=$build/bin/ds-accel
if [ -n "${FULL-}" ]; then
    jobs=1000
    megabytes=20000
else
    jobs=40
    megabytes=200
fi
[ -z "${FIRST_FAILURE_ENDS-}" ] || export LAUNCH_FAILED="$dir/failed"
# These mostly wait, so they run at the same time. Each finds only its own processes.
mkdir "$dir/signals" "$dir/slow" "$dir/pty"
launch signals "$program" "$dir/signals" &
launch slow "$program" "$dir/slow" &
launch pty "$program" "$dir/pty" &
launch chaos "$program" "$jobs" "${SEED:-0}"
wait
[ -e "$dir/failed" ] || launch flow "$program" "$megabytes"
for part in signals slow pty chaos flow; do
    if [ -e "$dir/failed" ] && ! [ -e "$dir/$part.code" ]; then continue; fi
    is "$part" "0 " "$(cat "$dir/$part.code" "$dir/$part.out" | paste -sd ' ' | sed 's/^0$/0 /')"
    grep -E '^[0-9]+ (jobs|MB)' "$dir/$part.err" || true
done
finish
