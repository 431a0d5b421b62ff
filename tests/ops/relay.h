/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#ifndef TESTS_OPS_RELAY_H
#define TESTS_OPS_RELAY_H

#include <stdatomic.h>
#include <stdint.h>

#define RELAY_MTU 9000

/*
 * Forward IPv4 packets among TUN devices: files[N] is that of address X.X.X.(N + 1). A packet is
 * written delay_us after it was read. Packets from or to a device whose bit in *cut is set are
 * lost, as are those of a full queue.
 */
__attribute__((noreturn)) void relay(const int *files, unsigned count, unsigned delay_us,
                                     const _Atomic uint32_t *cut);

#endif
