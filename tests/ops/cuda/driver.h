/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The state of the simulated driver of CUDA, for the test that loads it. */
#ifndef TESTS_OPS_CUDA_DRIVER_H
#define TESTS_OPS_CUDA_DRIVER_H

struct driver {
    unsigned launches; /* of the update */
    unsigned sums;     /* launches of what adds up squares */
    unsigned finishes;
    unsigned pushes; /* contexts made current, and no longer current */
    unsigned pops;
    unsigned loads;    /* of the kernel's image */
    int version;       /* of cuDriverGetVersion */
    int processors;    /* multiprocessors of the device */
    int device_error;  /* of cuCtxGetDevice */
    int init_error;    /* codes that functions return; 0: success */
    int context_error; /* of cuStreamGetCtx */
    int load_error;    /* of cuLibraryLoadData */
    int launch_error;
    unsigned good_launches; /* that succeed before launch_error */
    int allocate_error;     /* of cuMemAllocAsync, and so on */
    int fill_error;
    int read_error;
    int synchronize_error;
    int release_error;
    int allocations;   /* that have not been released */
    void *last_stream; /* of the last launch */
    void *wanted_stream;
    unsigned other_streams; /* calls with another stream than the wanted one */
    unsigned last_grid;     /* blocks of the last update */
    unsigned last_sum_grid; /* and of the last launch that adds up */
};

/** The symbol of the state, a struct driver. */
#define DRIVER_SYMBOL "simulated_driver"

#endif
