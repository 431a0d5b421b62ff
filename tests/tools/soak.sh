#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Run every part, even after a failure, and copy the output to LOG. The last lines are meant for the
# release notes: commit, seed, machine, and the result, counts and times of each part. The script
# fails if a part failed.
#
#     soak.sh LOG SEED COMMAND...     each COMMAND is one argument, split into words by the shell
set -eu
log=$1
seed=$2
shift 2
mkdir -p "$(dirname "$log")"
: >"$log"
failed=0
for part in "$@"; do
    # Keep the exit status of the part, because the status of the pipeline is that of tee.
    {
        echo "== $part"
        code=0
        # shellcheck disable=SC2086 # words
        tests/tools/measured.sh "$part" $part 2>&1 || code=$?
        echo "== exit status $code: $part"
    } | tee -a "$log"
    tail -n 1 "$log" | grep -q '^== exit status 0' || failed=1
done
echo
commit=$(git rev-parse HEAD 2>/dev/null || echo unknown)
[ -z "$(git status --porcelain 2>/dev/null)" ] || commit="$commit, with changes"
echo "soak: commit $commit, SEED=$seed, $(nproc) processors, $(uname -m), $(date -u +%Y-%m-%d)"
grep -E '^==|^-- |[0-9]+ passed, [0-9]+ failed|^survivor: |number_of_executed_units' "$log"
exit $failed
