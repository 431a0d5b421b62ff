/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A simulated libobjc: selectors, classes, reference counts and autorelease pools. It is strict
 * where Apple's library only leaks or crashes later: an object that is released too often, an
 * object that is autoreleased without a pool, a pool that is popped out of order, an unregistered
 * selector, a method that the class does not have.
 */
#include "object.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SELECTORS 128

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the selectors */
static char *selectors[SELECTORS];
static size_t selector_count;

struct pool {
    struct pool *outer;
    void **objects;
    size_t count;
};

static _Thread_local struct pool *innermost;

/* ---- selectors and classes ------------------------------------------------------------------ */

const char *sel_registerName(const char *name)
{
    char *selector = NULL;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < selector_count && selector == NULL; i++) {
        selector = strcmp(selectors[i], name) == 0 ? selectors[i] : NULL;
    }
    if (selector == NULL && selector_count < SELECTORS) {
        selector = selectors[selector_count++] = strdup(name);
    }
    pthread_mutex_unlock(&lock);
    return selector;
}

static void check_selector(const char *selector)
{
    bool is_known = false;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < selector_count; i++) {
        is_known = is_known || selectors[i] == selector;
    }
    pthread_mutex_unlock(&lock);
    if (!is_known) {
        sim_misuse("a selector that sel_registerName() did not give");
    }
}

const struct sim_class *object_getClass(void *object)
{
    if (object == NULL) {
        return NULL;
    }
    sim_handle_check(object, "object", "object_getClass");
    return ((struct sim_object *)object)->isa;
}

static const struct sim_method *find_method(const struct sim_class *class, const char *selector)
{
    const struct sim_method *method = class->methods;

    check_selector(selector);
    while (method->selector != NULL && strcmp(method->selector, selector) != 0) {
        method++;
    }
    return method->selector == NULL ? NULL : method;
}

/* Apple's library returns a function that raises "unrecognized selector"; for a nil class, NULL. */
sim_imp class_getMethodImplementation(const struct sim_class *class, const char *selector)
{
    const struct sim_method *method;

    if (class == NULL) {
        sim_misuse("%s: sent to nil", selector);
    }
    method = find_method(class, selector);
    if (method == NULL) {
        sim_misuse("%s: unrecognized selector %s", class->name, selector);
    }
    return method->imp;
}

signed char class_respondsToSelector(const struct sim_class *class, const char *selector)
{
    return class != NULL && find_method(class, selector) != NULL;
}

/* ---- reference counts and pools ------------------------------------------------------------- */

void *sim_object_new(const struct sim_class *class, size_t size)
{
    struct sim_object *object = calloc(1, size);

    if (object != NULL) {
        object->isa = class;
        atomic_init(&object->count, 1);
        sim_handle_add(object, "object");
    }
    return object;
}

void *objc_retain(void *object)
{
    if (object != NULL) {
        sim_handle_check(object, "object", "objc_retain");
        atomic_fetch_add(&((struct sim_object *)object)->count, 1);
    }
    return object;
}

void objc_release(void *object)
{
    struct sim_object *base = object;

    if (object == NULL) {
        return;
    }
    sim_handle_check(object, "object", "objc_release");
    if (atomic_fetch_sub(&base->count, 1) == 1) {
        sim_handle_remove(object, "object", "objc_release");
        if (base->isa->dealloc != NULL) {
            base->isa->dealloc(object);
        }
        free(object);
    }
}

void *sim_object_autorelease(void *object)
{
    void **larger;

    if (object == NULL) {
        return NULL;
    }
    if (innermost == NULL) {
        sim_misuse("%s: autoreleased with no pool in place",
                   ((struct sim_object *)object)->isa->name);
    }
    larger = realloc(innermost->objects, (innermost->count + 1) * sizeof(*larger));
    if (larger == NULL) {
        sim_misuse("the simulator itself has no memory");
    }
    innermost->objects = larger;
    innermost->objects[innermost->count++] = object;
    return object;
}

void *objc_autoreleasePoolPush(void)
{
    struct pool *pool = calloc(1, sizeof(*pool));

    if (pool == NULL) {
        sim_misuse("the simulator itself has no memory");
    }
    pool->outer = innermost;
    innermost = pool;
    return pool;
}

void objc_autoreleasePoolPop(void *token)
{
    struct pool *pool = token;

    if (pool == NULL || pool != innermost) {
        sim_misuse("objc_autoreleasePoolPop: not this thread's innermost pool");
    }
    innermost = pool->outer;
    for (size_t i = 0; i < pool->count; i++) {
        objc_release(pool->objects[i]);
    }
    free(pool->objects);
    free(pool);
}
