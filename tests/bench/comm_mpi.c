/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The all-reduce of an MPI, compiled once for each:  mpirun -np N comm_mpi FILE SCALE BYTES... */
#include "comm_loop.h"

#include <mpi.h>

static void reduce_mpi(void *data, const float *in, float *out, size_t count)
{
    (void)data;
    if (MPI_Allreduce(in, out, (int)count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS) {
        comm_fail("MPI_Allreduce");
    }
}

int main(int argument_count, char **arguments)
{
    static const struct comm_contender mpi = {NULL, comm_private, reduce_mpi};
    struct comm_loop loop = {.is_pinned = true};
    int rank;
    int size;

    MPI_Init(&argument_count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    loop.rank = (unsigned)rank;
    loop.size = (unsigned)size;
    comm_parse(&loop, arguments + 1);
    comm_loop(&loop, &mpi);
    MPI_Finalize();
    return 0;
}
