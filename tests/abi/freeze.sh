#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# freeze.sh VERSION COMMIT: write tests/abi/VERSION, a minor version of the ABI as published: the
# header, the commit, and the library's interface. Run it once per version, never again.
set -eu
cd "$(dirname "$0")/../.."
version=$1
commit=$(git rev-parse --verify "$2^{commit}")
frozen=tests/abi/$version
if [ -e "$frozen" ]; then
    echo "freeze.sh: $frozen is frozen already" >&2
    exit 1
fi
dir=$(mktemp -d "${TMPDIR:-/tmp}/ds-accel-freeze.XXXXXX")
trap 'rm -rf "$dir"' EXIT

mkdir "$dir/source"
git archive "$commit" | tar -x -C "$dir/source"
number() {
    sed -n "s/^#define DS_ACCEL_ABI_$1 \([0-9]*\)\$/\1/p" "$dir/source/plugin-api.h"
}
if [ "$(number MAJOR).$(number MINOR)" != "$version" ]; then
    echo "freeze.sh: plugin-api.h of $commit has ABI $(number MAJOR).$(number MINOR)" >&2
    exit 1
fi
MAKEFLAGS='' make -s -C "$dir/source" build BUILD="$dir/build" CFLAGS='-O2 -g' PLUGINS=
tests/abi/dump.sh "$dir/build" >"$dir/libds_accel.abi"

mkdir "$frozen"
cp "$dir/source/plugin-api.h" "$dir/libds_accel.abi" "$frozen/"
echo "$commit" >"$frozen/commit"
cat >"$frozen/README" <<TEXT
The plugin ABI $version as it was published: the header, the commit, and libds_accel's interface (abidw).
Nothing here is ever edited: plugins, hosts and programs in the field were compiled from it.
tests/tools/test_abi.sh holds today's code against it; docs/plugin-abi.md, "Proof", tells how.
TEXT
