#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Write the files of verdicts that the corpus of fuzz_cache began with, made by the library: one with a
# good verdict, one with a bad one, one with strikes. To be done again when a record has other members.
#
#     cache_seeds.sh BUILD DIRECTORY
set -eu
build=$(cd "$1" && pwd)
directory=$2
faults=$build/tests/fixtures/faults
dir=$(mktemp -d "${TMPDIR:-/tmp}/ds-accel-seeds.XXXXXX")
trap 'rm -rf "$dir"' EXIT
export XDG_CONFIG_HOME="$dir" LC_ALL=C
unset DS_ACCELERATOR DS_ACCEL_CONFIG DS_ACCEL_CACHE DS_ACCEL_PROBE DS_ACCEL_PLUGIN_PATH 2>/dev/null || true
echo '{"deny": ["cpu", "mock"]}' >"$dir/only.json"

# detect DIRECTORY: the plugin of that directory is the only one that is asked.
detect() {
    cp "$faults/$1/ds_accel_faulty.so" "$dir/plugins/"
    DS_ACCEL_CACHE_DIR=$dir/cache "$build/bin/ds-accel" --config "$dir/only.json" --plugin-dir "$dir/plugins" detect \
        >/dev/null 2>&1 || true
}

# keep NAME: what is remembered becomes a seed, and is forgotten.
keep() {
    cat "$dir/cache/verdicts" >"$directory/$1"
    rm -r "$dir/cache"
    mkdir -m 700 "$dir/cache"
}

mkdir -m 700 "$dir/cache" "$dir/plugins"
mkdir -p "$directory"
detect none
keep good
detect probe_no_state
keep bad
detect probe_segv
DS_ACCEL_CACHE_DIR=$dir/cache "$build/bin/ds-accel" cache clear >/dev/null 2>&1 || true
detect probe_segv
keep strikes
