/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Scenarios that many threads run at once on any backend, and functions shared with vendor.c. */
#ifndef DS_ACCEL_TESTS_THREADS_THREADS_H
#define DS_ACCEL_TESTS_THREADS_THREADS_H

#include "ds_accel.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 16
#define ROUNDS 20

/* The context that all threads use, and one of its devices. */
extern ds_accel_t *shared;
extern ds_accel_device_t *shared_device;
/* Barrier of all threads that run() started. */
extern pthread_barrier_t barrier;
/* Barrier of THREADS threads for a scenario that waits within; initialized by the scenario's
   caller. */
extern pthread_barrier_t between;

/* One thread's part of a scenario; returns false if a result was wrong. */
typedef bool (*part_t)(unsigned thread);

/* Start all threads at the same time; returns true if all of them returned true. */
bool run(part_t part, unsigned count);
/* Count a result, and print its name if the result is wrong. */
void check(const char *name, bool right);
/* Create a context that reads the environment only if environment_flag is 0. */
ds_accel_t *create_with(const char *accelerator, uint64_t environment_flag);
/* A host task that adds one to the uint64_t at data. */
void add_one(void *data, int32_t status);

/* Scenarios with their own contexts. with_shared() destroys the context passed to it. */
void with_shared(ds_accel_t *context);
void with_layers(const char *accelerator);
void with_allocator(const char *accelerator, const char *settings);
void with_changes(void);
void with_vendor(const char *vendor);
void with_loss(const char *vendor);

/* Parts on shared_device that need only a stream and memory. */
bool one_device(unsigned thread);
bool pinned_pool(unsigned thread);
bool streams_come_and_go(unsigned thread);
bool history(unsigned thread);

#endif
