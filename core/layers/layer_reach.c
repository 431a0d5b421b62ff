/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Whether the process can read an address, by querying the system. */
#include "layers/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

/* Try process_vm_readv() first, because it is a single system call. It fails if a filter forbids
 * it, and for memory that a driver has mapped; in these cases write() to a pipe decides. */
bool ds_accel__layer_is_readable(uint64_t address)
{
    unsigned char byte;
    const struct iovec here = {&byte, 1};
    const struct iovec there = {(void *)(uintptr_t)address, 1};
    int ends[2];
    bool is;

    if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1 ||
        pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        return true;
    }
    is = write(ends[1], (const void *)(uintptr_t)address, 1) == 1 || errno != EFAULT;
    close(ends[0]);
    close(ends[1]);
    return is;
}

bool ds_accel__layer_can_read(uint64_t address, enum ds_accel__reach *reach)
{
    if (*reach == DS_ACCEL__REACH_UNKNOWN) {
        *reach = ds_accel__layer_is_readable(address) ? DS_ACCEL__REACH_READABLE
                                                      : DS_ACCEL__REACH_NONE;
    }
    return *reach == DS_ACCEL__REACH_READABLE;
}
