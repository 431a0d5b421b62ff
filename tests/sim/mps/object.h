/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Objects of the simulated Objective-C runtime, which the simulated Metal creates. */
#ifndef DS_ACCEL_TESTS_SIM_MPS_OBJECT_H
#define DS_ACCEL_TESTS_SIM_MPS_OBJECT_H

#include "engine.h"

#include <stdatomic.h>

typedef void (*sim_imp)(void);

struct sim_method {
    const char *selector;
    sim_imp imp;
};

struct sim_class {
    const char *name;
    const struct sim_method *methods; /* ends with NULL */
    void (*dealloc)(void *object);    /* releases the members; the object is freed afterwards */
};

struct sim_object {
    const struct sim_class *isa;
    atomic_int count;
};

/* Returns an object of size bytes, zeroed, with a reference count of one; NULL: out of memory. */
SIM_EXPORT void *sim_object_new(const struct sim_class *class, size_t size);
/* Adds the object to the thread's innermost pool. Without a pool the object would leak: misuse. */
SIM_EXPORT void *sim_object_autorelease(void *object);

SIM_EXPORT const char *sel_registerName(const char *name);
SIM_EXPORT const struct sim_class *object_getClass(void *object);
SIM_EXPORT sim_imp class_getMethodImplementation(const struct sim_class *class,
                                                 const char *selector);
SIM_EXPORT signed char class_respondsToSelector(const struct sim_class *class,
                                                const char *selector);
SIM_EXPORT void *objc_autoreleasePoolPush(void);
SIM_EXPORT void objc_autoreleasePoolPop(void *pool);
SIM_EXPORT void *objc_retain(void *object);
SIM_EXPORT void objc_release(void *object);

#endif
