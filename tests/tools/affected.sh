#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Print the tests that the changed files are likely to affect; `make check QUICK=1` runs them.
#
#     affected.sh shell [COMMIT]      the shell tests
#     affected.sh unit [COMMIT]       a pattern for the unit tests' --filter; '*' for all of them
#
# Changed files are those that differ from the commit (HEAD by default) and untracked files. A file
# of a room of core/ selects the unit tests of its room and of all later rooms, which can call it.
# It also selects the shell tests of its room and of its own name: core/host/cache.c selects
# test_cache.sh, plugins/xpu selects test_xpu.sh. A few quick tests always run; a file that all
# tests share selects all of them. This selection is meant for the time between edits; `make check`
# runs all tests.
set -eu
cd "$(dirname "$0")/../.."
kind=$1
since=${2:-HEAD}
rooms=$(sed -n 's/^\(TOOLS_\)\{0,1\}ROOMS := //p' Makefile | paste -sd ' ' -)

# Each of these tests takes less than five seconds of processor time: symbols, the order of rooms,
# and a brief test of the plugin of each vendor.
always="tests/tools/test_symbols.sh tests/tools/test_rooms.sh tests/tools/test_note.sh tests/tools/test_private.sh
tests/sim/test_alike.sh tests/sim/test_identity.sh"

# tests_named WORD...: print the shell tests with these names that exist.
tests_named() {
    for word in "$@"; do
        for test in tests/tools/test_"$word".sh tests/sim/test_"$word".sh; do
            [ ! -f "$test" ] || echo "$test"
        done
    done
}

# tests_of PATH: print the tests named after the file's directories, the file, and each part of its
# name up to an underscore.
tests_of() {
    case $1 in
    Makefile | *.mk | tests/tools/lib.sh | tests/tools/cli.sh | tests/tools/run_tests.sh)
        ls tests/tools/test_*.sh tests/sim/test_*.sh tests/ops/test_torch.sh
        return
        ;;
    tests/sim/vendor.sh) ls tests/sim/test_*.sh ;;
    tests/tools/ops_build.sh) tests_named ops_build ops_share ;;
    esac
    stem=$(basename "$1")
    stem=${stem%.*}
    stem=${stem#test_}
    stem=${stem#cmd_}
    while :; do
        tests_named "$stem"
        case $stem in *_*) stem=${stem%_*} ;; *) break ;; esac
    done
    # shellcheck disable=SC2046 # words
    tests_named $(dirname "$1" | tr / ' ')
    # Shell tests that use the room through the command or through plugins of vendors.
    case $1 in
    core/*.h | core/*.map | core/*.def) tests_named headers abi manual ;;
    core/base/* | tests/base/*) tests_named cli texts fork secure reports ;;
    core/config/* | tests/config/*) tests_named config cli matrix secure ;;
    core/machine/* | tests/machine/*) tests_named topo matrix opened remedies ;;
    core/host/* | tests/host/*) tests_named cli cache secure matrix ;;
    core/runtime/* | tests/runtime/*) tests_named facts pinned telemetry engine ;;
    core/layers/* | tests/layers/*) tests_named races engine ;;
    core/report/* | tests/report/*) tests_named doctor reports topo cli texts ;;
    core/record/*) tests_named record replay ;;
    core/memtools/*) tests_named memory ;;
    core/conformance/* | tests/conformance/*) tests_named conformance ;;
    core/lint/* | tests/lint/*) tests_named cli porting ;;
    core/ops/* | tests/ops/*) tests_named ops_load ops_build ops_share ;;
    esac
    case $1 in
    plugin-api.h | tests/abi/*) tests_named abi headers ;;
    ops/* | tests/ops/*) echo tests/ops/test_torch.sh ;;
    plugins/common/*) tests_named frame opened cuda cli ;;
    plugins/cpu/* | plugins/mock/*) tests_named cli bench ;;
    docs/*.md | README.md | CONTRIBUTING.md) tests_named docs examples ;;
    docs/*.[157] | core/reasons.def | tools/reasons.c) tests_named manual ;;
    tools/completion/*) tests_named completion ;;
    core/launch/options.c) tests_named completion manual ;;
    tools/*.c) tests_named cli completion ;;
    conf/*) tests_named facts cli ;;
    *allocator* | core/*memory* | core/*oom*) tests_named memory ;;
    core/*probe* | core/*contain* | core/*guard* | core/*message*) tests_named faults ;;
    core/*verdict* | core/*snapshot*) tests_named cache ;;
    core/*tensor* | core/*dlpack*) tests_named dlpack ;;
    tests/sim/*.[ch] | tests/sim/*.py) tests_named engine ;;
    tests/bench/*) tests_named bench_ops ;;
    tests/fixtures/mutant*) tests_named conformance ;;
    tests/fixtures/fault*) tests_named faults isolation ;;
    esac
}

# suites_of PATH: print the suites of unit tests that can depend on the file; "*" for all suites.
suites_of() {
    case $1 in
    conf/* | tests/fixtures/* | *.mk) echo '*' && return ;;
    core/*/* | tests/*/*) room=${1#*/} && room=${room%%/*} ;;
    plugins/*) room=plugins ;;
    plugin-api.h | core/* | tests/*.[ch] | Makefile) echo '*' && return ;;
    *) return 0 ;;
    esac
    seen=
    for directory in $rooms plugins; do
        # A test file selects only the suites of its own room.
        case $directory/$1 in "$room"/*) seen=yes ;; */tests/*) seen= ;; esac
        [ -z "$seen" ] || ! ls "tests/$directory"/test_*.c >/dev/null 2>&1 ||
            sed -n 's/^Test(\([a-z_0-9]*\),.*/\1/p' "tests/$directory"/test_*.c
    done
}

changed() {
    { git diff --name-only "$since" && git ls-files --others --exclude-standard; } 2>/dev/null
}

git rev-parse --quiet --verify "$since^{commit}" >/dev/null || {
    echo "affected.sh: $since is no commit" >&2
    exit 2
}

case $kind in
shell)
    {
        printf '%s\n' "$always"
        changed | while read -r path; do
            tests_of "$path"
        done
    } | tr ' ' '\n' | awk 'NF && !seen[$0]++'
    ;;
unit)
    suites=$(changed | while read -r path; do suites_of "$path"; done | sort -u | paste -sd '|' -)
    case $suites in
    \** | '') echo '*' ;;
    *) echo "@($suites)/*" ;;
    esac
    ;;
*)
    echo "affected.sh: shell or unit" >&2
    exit 2
    ;;
esac
