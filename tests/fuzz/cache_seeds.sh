#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Write the initial files of fuzz_cache's corpus with the library: a good verdict, a bad verdict,
# strikes. Run it again when the record's members change.
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

# detect DIRECTORY: probe only the plugin in DIRECTORY.
detect() {
    cp "$faults/$1/ds_accel_faulty.so" "$dir/plugins/"
    DS_ACCEL_CACHE_DIR=$dir/cache "$build/bin/ds-accel" --config "$dir/only.json" --plugin-dir "$dir/plugins" detect \
        >/dev/null 2>&1 || true
}

# keep NAME: move the stored file of verdicts into the corpus as a seed.
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
