#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Copyright (c) 2026 the ds-accel authors
#
# Programs that were written for other launchers, started by ds-accel run with 1, 2 and 4 ranks: a
# torch.distributed program for deepspeed and torchrun, MPI programs, a shell script.
#  test_run_clients.sh BUILD
# shellcheck disable=SC2016 # the ranks expand these
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")/../languages" && pwd)
# shellcheck source=tests/tools/lib.sh
. "$(dirname "$0")/lib.sh"
program=$build/bin/ds-accel
export DS_ACCEL_MOCK_DEVICE_COUNT=4 OMP_NUM_THREADS=1
unset RANK WORLD_SIZE MASTER_ADDR MASTER_PORT 2>/dev/null || true

skip() {
    echo "test_run_clients: not run: $1"
}

# ranks COUNT ARGUMENT...: run a job, with the Python of Debian, which has torch.
ranks() {
    count=$1
    shift
    PATH=/usr/bin:$PATH timeout --foreground -k 5 300 "$program" run -a mock --master_port auto --num_gpus "$count" "$@"
}

# each COUNT TEXT: print TEXT for each rank, in which R is the rank.
each() {
    for rank in $(seq 0 $(($1 - 1))); do
        echo "$2" | sed "s/R/$rank/g"
    done
}

# ---- a shell script ------------------------------------------------------------------------------

printf '#!/bin/sh\necho "rank $RANK of $WORLD_SIZE: $*"\n' >"$dir/train.sh"
chmod +x "$dir/train.sh"
for count in 1 2 4; do
    is "a shell script, $count ranks" "$(each "$count" "rank R of $count: --epochs 2")" \
        "$(ranks "$count" --no_python --no_local_rank "$dir/train.sh" --epochs 2 | sort)"
done

# ---- torch ---------------------------------------------------------------------------------------

if /usr/bin/python3 -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("torch") is None)'; then
    for count in 1 2 4; do
        run ranks "$count" "$here/allreduce.py" --value 2
        is "torch, $count ranks" "0 $(each "$count" "rank R of $count, local rank R: $((4 * count * (count + 1)))")" \
            "$code $(printf '%s\n' "$out" | sort)"
    done
else
    skip "torch: it is not installed"
fi

# ---- MPI -----------------------------------------------------------------------------------------

# Without mpirun each process is a world of its own. Under mpirun, which is then the only rank, the
# processes are one. Open MPI removes its directory for all processes of a user when it is empty, and
# another process that is about to use it fails then: "mkdir ... File exists". It is not empty here.
export TMPDIR="$dir/tmp"
mkdir -p "$TMPDIR/ompi.$(uname -n).$(id -u)/keep"
for mpi in openmpi mpich; do
    if ! command -v mpicc.$mpi >/dev/null || ! mpicc.$mpi "$here/allreduce.c" -o "$dir/$mpi" 2>"$dir/err"; then
        skip "$mpi: it is not installed"
        continue
    fi
    for count in 1 2 4; do
        run ranks "$count" --no_python --no_local_rank "$dir/$mpi"
        is "$mpi, $count ranks" "0 $(each "$count" "rank R of $count, world of 1: 1")" "$code $(printf '%s\n' "$out" | sort)"
        [ "$code" = 0 ] || echo "$err"
    done
    set -- mpirun.$mpi -n 2
    [ $mpi = mpich ] || set -- "$@" --oversubscribe --allow-run-as-root
    run ranks 1 --no_python --no_local_rank "$@" "$dir/$mpi"
    is "mpirun of $mpi as a rank" "0 rank 0 of 1, world of 2: 3
rank 0 of 1, world of 2: 3" "$code $out"
done
finish
