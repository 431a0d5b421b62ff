#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# deps.sh GROUP...: list the missing Debian packages of these groups and install them.
# With NO_DEPS=1, only list them. Root is needed only if a package is missing.
set -eu

wanted=
for group in "$@"; do
    case $group in
    build) wanted="$wanted gcc libc6-dev pkg-config libltdl-dev libjansson-dev libnuma-dev libmd-dev libdlpack-dev libdw-dev liburing-dev libxxhash-dev" ;;
    check) wanted="$wanted procps g++ libcriterion-dev python3 python3-jsonschema binutils zsh pocl-opencl-icd libamdhip64-5 librocm-smi64-1 ocl-icd-libopencl1 abigail-tools python3-numpy python3-torch strace oclgrind libze1 python3-clang bindgen libclang-dev rustc python3-cffi openmpi-bin libopenmpi-dev mpich libmpich-dev libsimde-dev gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user libfuse3-dev" ;;
    lint) wanted="$wanted clang clang-format clang-tidy shellcheck mandoc" ;;
    headers) wanted="$wanted python3-clang libamdhip64-dev librocm-smi-dev libze-dev opencl-c-headers libdlpack-dev" ;;
    fuzz) wanted="$wanted clang libclang-rt-dev" ;;
    bench) wanted="$wanted libmimalloc2.0 libjemalloc2 libtbbmalloc2 openmpi-bin libopenmpi-dev mpich libmpich-dev python3-torch fio" ;;
    deepspeed) wanted="$wanted g++ libaio-dev ninja-build python3-dev python3-setuptools python3-torch libtorch-dev pybind11-dev" ;;
    valgrind) wanted="$wanted valgrind" ;;
    *)
        echo "deps.sh: unknown group $group" >&2
        exit 2
        ;;
    esac
done

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "deps: this is not a Debian system; the build needs what these packages hold:$wanted" >&2
    exit 0
fi

missing=
for package in $wanted; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
        missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ -n "${NO_DEPS:-}" ]; then
    echo "deps: missing packages:$missing" >&2
    exit 0
fi
if [ "$(id -u)" != 0 ]; then
    echo "deps: missing packages; as root, run: apt-get install$missing" >&2
    exit 1
fi
echo "deps: installing$missing"
export DEBIAN_FRONTEND=noninteractive
# The package lists may be missing or outdated, so update them if the installation fails.
# shellcheck disable=SC2086 # a list of words
apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1 || {
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends $missing >/dev/null
}
