/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Calls deferred until the accelerator is started.
 *
 * Deferred calls are in one list. A thread that finds the accelerator started makes the calls,
 * unless another thread is already making them. When the list is empty after that, it is closed: no
 * call is added any more, and later calls are made at once. No lock is held during a call: the
 * called function may use the library, also to defer further calls.
 */
#include "base/fork.h"
#include "base/text.h"
#include "host/context.h"
#include "host/registry.h"
#include "runtime/facts.h"

#include <assert.h>
#include <stdlib.h>

struct ds_accel__lazy {
    struct ds_accel__lazy *next;
    ds_accel_lazy_call_t call;
    void *user_data;
};

/* Begin a change of the list. A child forked before change_end() inherits an inconsistent list,
 * which is_changing shows. The caller holds lazy.lock, or destroys the context. */
static void change_begin(ds_accel_t *context)
{
    ds_accel__context_change_begin(context);
    __atomic_store_n(&context->lazy.is_changing, true, __ATOMIC_SEQ_CST);
}

static void change_end(ds_accel_t *context)
{
    __atomic_store_n(&context->lazy.is_changing, false, __ATOMIC_SEQ_CST);
    ds_accel__context_change_end(context);
}

/* Remove the first call from the list and return it; NULL: the list is empty. The caller holds
 * lazy.lock, or destroys the context. */
static struct ds_accel__lazy *take_first(ds_accel_t *context)
{
    struct ds_accel__lazy *first = context->lazy.first;

    if (first != NULL) {
        assert(first->next != NULL || context->lazy.last == &first->next);
        change_begin(context);
        context->lazy.first = first->next;
        if (context->lazy.first == NULL) {
            context->lazy.last = NULL;
        }
        change_end(context);
    }
    return first;
}

static void make(struct ds_accel__lazy *lazy, int32_t status)
{
    lazy->call(lazy->user_data, status);
    free(lazy);
}

void ds_accel__lazy_run(ds_accel_t *context)
{
    struct ds_accel__lazy *lazy = NULL;

    if (__atomic_load_n(&context->lazy.is_over, __ATOMIC_ACQUIRE) ||
        context->selected->watch.is_forked) {
        return;
    }
    pthread_mutex_lock(&context->lazy.lock);
    if (context->lazy.is_running) {
        pthread_mutex_unlock(&context->lazy.lock);
        return;
    }
    context->lazy.is_running = true;
    while ((lazy = take_first(context)) != NULL) {
        pthread_mutex_unlock(&context->lazy.lock);
        make(lazy, DS_ACCEL_OK);
        pthread_mutex_lock(&context->lazy.lock);
    }
    __atomic_store_n(&context->lazy.is_over, true, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&context->lazy.lock);
}

void ds_accel__lazy_drop(ds_accel_t *context)
{
    struct ds_accel__lazy *lazy;

    if (context->lazy.is_changing ||
        (context->selected != NULL && context->selected->watch.is_forked)) {
        return;
    }
    while ((lazy = take_first(context)) != NULL) {
        ds_accel__error(DS_ACCEL_ERR_STATE, "the context was destroyed before its accelerator was "
                                            "started");
        make(lazy, DS_ACCEL_ERR_STATE);
    }
}

/* Add the call to the list, unless the list is closed. True: the call was added. */
static bool add(ds_accel_t *context, struct ds_accel__lazy *lazy)
{
    bool is_added;

    pthread_mutex_lock(&context->lazy.lock);
    is_added = !context->lazy.is_over;
    if (is_added) {
        change_begin(context);
        *(context->lazy.last != NULL ? context->lazy.last : &context->lazy.first) = lazy;
        context->lazy.last = &lazy->next;
        change_end(context);
    }
    pthread_mutex_unlock(&context->lazy.lock);
    return is_added;
}

int32_t ds_accel_lazy_call(ds_accel_t *context, ds_accel_lazy_call_t call, void *user_data)
{
    const struct ds_accel__candidate *candidate;
    struct ds_accel__lazy *lazy;
    int32_t status;

    if (context == NULL || call == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "lazy_call: the %s is NULL",
                               context == NULL ? "context" : "function");
    }
    candidate = __atomic_load_n(&context->selected, __ATOMIC_ACQUIRE);
    if (candidate != NULL && candidate->watch.is_forked) {
        return ds_accel__error(DS_ACCEL_ERR_STATE,
                               "lazy_call: the accelerator was started by process %ld before "
                               "fork()",
                               (long)ds_accel__fork_parent());
    }
    status = ds_accel__context_check(context);
    if (status < 0) {
        /* no detection is possible any more, so the function would never be called */
        return status;
    }
    lazy = malloc(sizeof(*lazy));
    if (lazy == NULL) {
        return ds_accel__no_memory();
    }
    *lazy = (struct ds_accel__lazy){.call = call, .user_data = user_data};
    if (!add(context, lazy)) {
        make(lazy, DS_ACCEL_OK);
    } else if (candidate != NULL) {
        /* the accelerator is started already, and perhaps no ds_accel_detect() follows that makes
         * the calls */
        ds_accel__lazy_run(context);
    }
    return DS_ACCEL_OK;
}
