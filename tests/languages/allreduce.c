/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * An MPI program. mpirun makes its processes one world. Processes that were started otherwise, by
 * ds-accel run or by a shell, are each a world of one process: what connects them is up to the
 * program, from RANK and WORLD_SIZE.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int number(const char *name)
{
    const char *value = getenv(name);

    return value != NULL ? atoi(value) : -1;
}

int main(int argc, char **argv)
{
    int rank;
    int size;
    int sum;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    rank++;
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("rank %d of %d, world of %d: %d\n", number("RANK"), number("WORLD_SIZE"), size, sum);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
