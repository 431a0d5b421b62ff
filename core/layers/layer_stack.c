/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The stacks of the process, and the choice of the stack for a call. */
#include "host/registry.h"
#include "layers/layer.h"

#include <assert.h>

/* Guarded by the layers' lock. */
static struct ds_accel__stack *stacks;
static uint64_t next_id = 1;

void ds_accel__stack_add(struct ds_accel__stack *stack)
{
    ds_accel__layer_lock();
    stack->id = next_id++;
    stack->next = stacks;
    stacks = stack;
    ds_accel__layer_unlock();
}

void ds_accel__stack_remove(const struct ds_accel__stack *stack)
{
    struct ds_accel__stack **place = &stacks;

    while (*place != stack) {
        assert(*place != NULL);
        place = &(*place)->next;
    }
    *place = stack->next;
}

void ds_accel__stack_find(struct ds_accel__call *call)
{
    const struct ds_accel__slot_info *slot = &ds_accel__slots[call->slot];
    const void *first = DS_ACCEL__POINTER(call, 0);
    const struct ds_accel__object *object;

    ds_accel__layer_lock();
    object = slot->meanings[0] < DS_ACCEL__OBJECT_COUNT
                 ? ds_accel__object_find(slot->meanings[0], first)
                 : NULL;
    if (object != NULL) {
        call->stack = object->stack;
        call->instance = object->instance;
    } else if (stacks != NULL && stacks->next == NULL) {
        call->stack = stacks;
    }
    for (struct ds_accel__stack *stack = stacks; stack != NULL && object == NULL;
         stack = stack->next) {
        if (slot->meanings[0] == DS_ACCEL__HOST && first == &stack->candidate->host.abi) {
            call->stack = stack;
        }
    }
    ds_accel__layer_unlock();
}

struct ds_accel__stack *ds_accel__layer_any_stack(void)
{
    struct ds_accel__stack *stack = stacks;

    while (stack != NULL && stack->races == NULL) {
        stack = stack->next;
    }
    return stack;
}
