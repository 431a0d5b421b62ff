/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Parts that many threads run at once, over any backend, and what vendor.c needs to run its own. */
#ifndef DS_ACCEL_TESTS_THREADS_THREADS_H
#define DS_ACCEL_TESTS_THREADS_THREADS_H

#include "ds_accel.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 16
#define ROUNDS 20

/* A context that all threads use, and a device of it. */
extern ds_accel_t *shared;
extern ds_accel_device_t *shared_device;
/* Of all threads that run() has started. */
extern pthread_barrier_t barrier;
/* For a part that waits for its like; THREADS of them, initialized by the caller of the part. */
extern pthread_barrier_t between;

/* One thread's part of a scenario; false if a result was wrong. */
typedef bool (*part_t)(unsigned thread);

/* All threads begin at once; true if every one of them was right. */
bool run(part_t part, unsigned count);
/* Count a result, and print its name if it is wrong. */
void check(const char *name, bool right);
/* With the environment (flag 0) only where an option has to come from there. */
ds_accel_t *create_with(const char *accelerator, uint64_t environment_flag);
/* A host task: counts itself in an uint64_t. */
void add_one(void *data, int32_t status);

/* Scenarios of contexts of their own. The first takes the context that it is given. */
void with_shared(ds_accel_t *context);
void with_layers(const char *accelerator);
void with_allocator(const char *accelerator, const char *settings);
void with_changes(void);
void with_vendor(const char *vendor);
void with_loss(const char *vendor);

/* Parts over shared_device that need nothing but a stream and memory. */
bool one_device(unsigned thread);
bool pinned_pool(unsigned thread);
bool streams_come_and_go(unsigned thread);
bool history(unsigned thread);

#endif
