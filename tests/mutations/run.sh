#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Run the tests against deliberate defects: each tests/mutations/*/*.patch must make the test in its
# heading fail. README.md in this directory describes the patches.
#
#     run.sh [--seed N] [--sample N] [--seconds N] [--only PATTERN] [--jobs N] BUILD
#
# --sample runs N mutations with a quick test, chosen by --seed; --seconds starts no other mutation
# after that time; --only selects the mutations whose AREA/NAME matches a shell pattern.
#
# Each job has a copy of the tree and of BUILD, so that only files that depend on a patched file are
# compiled again. The patches' tests first run without a defect and must pass. Last line and exit
# status are like those of the other tests: `passed` counts the defects that were caught.
set -eu

usage() {
    echo "usage: run.sh [--seed N] [--sample N] [--seconds N] [--only PATTERN] [--jobs N] BUILD" >&2
    exit 2
}

seed=
sample=
seconds=
only='*'
jobs=2
while [ $# -gt 1 ]; do
    case $1 in
    --seed) seed=$2 ;;
    --sample) sample=$2 ;;
    --seconds) seconds=$2 ;;
    --only) only=$2 ;;
    --jobs) jobs=$2 ;;
    *) usage ;;
    esac
    shift 2
done
[ $# = 1 ] || usage
case $seed$sample$seconds in *[!0-9]*) usage ;; esac
case $jobs in '' | *[!0-9]* | 0) usage ;; esac

source=$(cd "$(dirname "$0")/../.." && pwd -P)
case $1 in /*) build=$1 ;; *) build=$PWD/$1 ;; esac
[ -n "$seed" ] || seed=$(od -An -N3 -tu4 /dev/urandom | tr -d ' ')
begin=$(date +%s)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/ds-accel-mut.XXXXXX")
scratch=$(cd "$scratch" && pwd -P)
chmod 755 "$scratch" # tests run programs as other users

# Run all cases of a test, because any of them may catch a defect.
export FULL=1
# A make started here must not join the jobserver of the calling make.
unset MAKEFLAGS MFLAGS MAKELEVEL DS_ACCEL_CPU_ASYNC

# end_below DIRECTORY: kill every process whose program or working directory is below it.
end_below() {
    for entry in /proc/[0-9]*; do
        pid=${entry#/proc/}
        [ "$pid" != $$ ] || continue
        for link in "$(readlink "$entry/exe" 2>/dev/null)" "$(readlink "$entry/cwd" 2>/dev/null)"; do
            case $link in
            "$1"/*)
                kill -KILL "$pid" 2>/dev/null || true
                break
                ;;
            esac
        done
    done
}

clean_up() {
    trap - EXIT INT TERM
    end_below "$scratch"
    rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# ---- the mutations -------------------------------------------------------------------------------

# field NAME PATCH: print the text after "NAME: " in the heading of the patch.
field() {
    sed -n "/^--- /q; s/^$1: *//p" "$2" | head -n 1
}

is_quick() {
    case $1 in "unit "* | "program fuzz "*) return 0 ;; *) return 1 ;; esac
}

: >"$scratch/all"
for patch in "$source"/tests/mutations/*/*.patch; do
    name=${patch#"$source"/tests/mutations/}
    name=${name%.patch}
    # shellcheck disable=SC2254 # $only is a pattern
    case $name in $only) ;; *) continue ;; esac
    test=$(field Test "$patch")
    if [ -n "$sample" ] && ! is_quick "$test"; then continue; fi
    printf '%s\t%s\n' "$name" "$test" >>"$scratch/all"
done
if [ -n "$sample" ]; then
    echo "mutations: seed $seed"
    awk -v seed="$seed" 'BEGIN { srand(seed) } { printf "%.9f\t%s\n", rand(), $0 }' "$scratch/all" |
        sort -n | cut -f 2- | head -n "$sample" >"$scratch/chosen"
else
    cp "$scratch/all" "$scratch/chosen"
fi
if ! [ -s "$scratch/chosen" ]; then
    echo "mutations: none matches $only" >&2
    exit 2
fi
cut -f 2 "$scratch/chosen" | sort -u >"$scratch/tests"

# The unit program of a copy contains only the files with the chosen tests.
sed -n 's/^unit \([a-z_0-9]*\).*/\1/p' "$scratch/tests" | sort -u | while read -r suite; do
    (cd "$source" && grep -lE "^(Parameterized)?Test\\((.*, )?$suite," tests/*/test_*.c)
done >"$scratch/units"
units=$(sort -u "$scratch/units" | tr '\n' ' ')

# ---- one test ------------------------------------------------------------------------------------

# make_in TREE ARGUMENT...: run make in TREE.
make_in() {
    tree=$1
    shift
    make -s --no-print-directory -C "$tree" BUILD=build WERROR= UNIT_SOURCES="$units" "$@"
}

# build_for TREE TEST: build everything that the test needs, and run nothing.
build_for() {
    case $2 in
    unit*) make_in "$1" mutant-unit ;;
    "shell tests/tools/test_abi.sh") make_in "$1" mutant-abi ;;
    "shell tests/tools/test_bench_ops.sh") make_in "$1" mutant-bench-ops ;;
    shell*) make_in "$1" mutant-shell ;;
    "program fuzz "*) make_in "$1" mutant-fuzz FUZZERS="${2#program fuzz }" ;;
    "program ops "*) make_in "$1" mutant-ops ;;
    "program "*) make_in "$1" "mutant-${2#program }" ;;
    *)
        echo "no such kind of test: $2"
        return 1
        ;;
    esac
}

# run_test TREE TEST LIMIT_S: run the test as make check does. A test that hangs is killed and
# counts as failed.
run_test() (
    cd "$1"
    limit="timeout --preserve-status -k 5 $3"
    case $2 in
    unit*) $limit build/tests/unit --jobs 1 --filter "${2#unit }" ;;
    "shell tests/tools/"*) FIRST_FAILURE_ENDS=1 $limit "${2#shell }" "$1/build/testbed" ;;
    shell*) FIRST_FAILURE_ENDS=1 $limit "${2#shell }" "$1/build" ;;
    "program fuzz "*) $limit make -s BUILD=build WERROR= test-fuzz FUZZERS="${2#program fuzz }" ;;
    # All cases of the collectives take hours.
    "program ops "*) $limit make -s BUILD=build WERROR= FULL=0 test-ops OPS_PROGRAMS="${2#program ops }" ;;
    "program "*) $limit make -s BUILD=build WERROR= "test-${2#program }" MODEL_OPERATIONS=1000000 ;;
    esac
)

# ---- jobs ----------------------------------------------------------------------------------------

# prepare TREE: copy the sources and the build directory with their times, so that make reuses the
# objects, except those of unit tests, which contain paths.
prepare() {
    mkdir -p "$1/build" "$1.tmp"
    tar -C "$source" --exclude=./.git --exclude='./build*' -c . | tar -C "$1" -x
    if [ -d "$build/obj" ]; then
        tar -C "$build" --exclude=./tests/abi --exclude='./obj/tests/*/test_*' \
            --exclude=./obj/tests/fixture.o --exclude=./obj/tests/far.o --exclude=./obj/tests/bad.o --exclude=./tests/unit \
            --exclude=./bench -c . | tar -C "$1/build" -x
        # The copies build without -Werror; that difference must not recompile everything.
        make_in "$1" build/obj/settings
        touch -r "$build/obj/settings" "$1/build/obj/settings"
        # Otherwise the copy would compile with the headers of $source, which have no defect.
        rm -rf "$1/build/stage/rooms"
        make_in "$1" mutant-rooms
    fi
}

# next QUEUE: print the next line of a file that all jobs read, or nothing.
next() {
    # shellcheck disable=SC2016 # expanded by the inner shell
    flock "$1" sh -c '
        at=$(cat "$1.at" 2>/dev/null || echo 0)
        echo $((at + 1)) >"$1.at"
        sed -n "$((at + 1))p" "$1"' sh "$1"
}

# safe NAME: print a file name for NAME.
safe() {
    printf '%s' "$1" | tr -c 'A-Za-z0-9_.-' '_'
}

# say LINE...: print the lines in one piece, since jobs run in parallel.
say() {
    printf '%s\n' "$@"
}

# tests_without_a_defect TREE: run each test without a defect; it must pass, and its time determines
# its limit.
tests_without_a_defect() {
    while test=$(next "$scratch/tests") && [ -n "$test" ]; do
        log=$scratch/log.$(safe "$test")
        if ! build_for "$1" "$test" >"$log" 2>&1; then
            say "ERROR: does not build: $test" "$(tail -n 20 "$log")"
            continue
        fi
        started=$(date +%s)
        if ! TMPDIR=$1.tmp run_test "$1" "$test" 600 >"$log" 2>&1; then
            say "ERROR: fails without a defect: $test" "$(tail -n 20 "$log")"
        elif [ "${test#unit}" != "$test" ] && ! grep -q 'Tested: [^1-9]*[1-9]' "$log"; then
            say "ERROR: there is no such test: $test"
        elif [ "${test#unit}" != "$test" ] && grep -q '^\[SKIP\]' "$log"; then
            : >"$scratch/skipped.$(safe "$test")"
        else
            echo $((30 + 10 * ($(date +%s) - started))) >"$scratch/limit.$(safe "$test")"
        fi
        end_below "$1"
    done
}

# judge TREE NAME TEST PATCH LOG: run the test against an applied mutation, and record the result.
judge() {
    if ! build_for "$1" "$3" >"$5" 2>&1; then
        say "ERROR: $2: the mutant does not build" "$(tail -n 20 "$5")"
        echo error >>"$scratch/results"
        return
    fi
    code=0
    begun=$(date +%s)
    limit=$(cat "$scratch/limit.$(safe "$3")")
    TMPDIR=$1.tmp run_test "$1" "$3" "$limit" >"$5" 2>&1 || code=$?
    end_below "$1"
    if [ $code = 0 ]; then
        say "SURVIVED: $2: $(field Defect "$4") ($3)"
        echo "survived $2" >>"$scratch/results"
    else
        late=
        [ $(($(date +%s) - begun)) -lt "$limit" ] || late=", which was ended after $limit s"
        say "caught: $2 by $3$late"
        echo caught >>"$scratch/results"
    fi
}

# mutate TREE NAME TEST: apply the patch, build, run the test, revert the patch.
mutate() {
    patch=$source/tests/mutations/$2.patch
    log=$1.log
    if [ -f "$scratch/skipped.$(safe "$3")" ]; then
        say "skipped: $2: $3 cannot run here"
        echo skipped >>"$scratch/results"
        return
    fi
    if ! [ -f "$scratch/limit.$(safe "$3")" ]; then
        say "ERROR: $2: its test cannot tell: ${3:-it names none}"
        echo error >>"$scratch/results"
        return
    fi
    files=$(sed -n 's,^--- a/,,p' "$patch")
    if patch -d "$1" -p1 -s -f -F0 --dry-run <"$patch" >"$log" 2>&1 && [ -n "$files" ]; then
        patch -d "$1" -p1 -s -f -F0 --no-backup-if-mismatch <"$patch" >"$log" 2>&1
        judge "$1" "$2" "$3" "$patch" "$log"
        # Restore the files with a newer time than the mutant's objects.
        for file in $files; do
            cp "$scratch/pristine/$file" "$1/$file"
            touch "$1/$file"
        done
    else
        say "ERROR: $2: the patch does not apply" "$(cat "$log")"
        echo error >>"$scratch/results"
    fi
    rm -rf "$1.tmp"
    mkdir "$1.tmp"
}

# in_time RUN: whether a job may start another mutation; it always runs the first one, however busy
# the machine is.
in_time() {
    [ -z "$seconds" ] || [ "$1" = 0 ] || [ $(($(date +%s) - begin)) -lt "$seconds" ]
}

mutations_of_job() {
    done=0
    while in_time "$done" && line=$(next "$scratch/chosen") && [ -n "$line" ]; do
        mutate "$1" "${line%%	*}" "${line#*	}"
        done=$((done + 1))
    done
}

# each_job FUNCTION: call FUNCTION for every tree at the same time.
each_job() {
    pids=
    for job in $(seq "$jobs"); do
        "$1" "$scratch/tree$job" &
        pids="$pids $!"
    done
    for pid in $pids; do
        wait "$pid"
    done
}

mkdir "$scratch/pristine"
tar -C "$source" --exclude=./.git --exclude='./build*' -c . | tar -C "$scratch/pristine" -x
: >"$scratch/results"
each_job prepare
copied=$(date +%s)
each_job tests_without_a_defect
echo "mutations: copied in $((copied - begin)) s, tests without a defect in $(($(date +%s) - copied)) s"
each_job mutations_of_job

chosen=$(wc -l <"$scratch/chosen")
caught=$(grep -c '^caught$' "$scratch/results" || true)
skipped=$(grep -c '^skipped$' "$scratch/results" || true)
chosen=$((chosen - skipped))
run=$(($(wc -l <"$scratch/results") - skipped))
[ "$run" = "$chosen" ] || echo "mutations: $((chosen - run)) of $chosen not run within $seconds s"
sed -n 's/^survived /survivor: /p' "$scratch/results" | sort
echo "mutations: $caught passed, $((run - caught)) failed"
[ "$run" -gt 0 ] && [ "$caught" = "$run" ]
