/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Messages about exhausted memory: a table of cases, once, and arbitrary facts; for these, check
 * that the advice can help.
 */
#include "fuzz.h"

#include "base/text.h"
#include "runtime/oom.h"

#define MIB (UINT64_C(1) << 20)

static const struct {
    struct ds_accel__oom_facts facts;
    enum ds_accel__oom_advice advice;
    const char *says;
} cases[] = {
    /* The memory is full. */
    {{.device = "mock",
      .asked_bytes = 64 * MIB,
      .allocated_bytes = 90 * MIB,
      .reserved_bytes = 90 * MIB,
      .device_total_bytes = 100 * MIB,
      .device_free_bytes = 10 * MIB,
      .can_grow = true},
     DS_ACCEL__OOM_ADVICE_NONE,
     "mock: out of memory: 64 MiB requested, 90 MiB allocated, 90 MiB reserved, largest free block "
     "0 "
     "B, "
     "fragmentation 0 %, device 10 MiB of 100 MiB free; 54 MiB more would be needed"},
    /* The memory is fragmented, and the backend has virtual memory. */
    {{.device = "cuda:1",
      .asked_bytes = 20 * MIB,
      .allocated_bytes = 32 * MIB,
      .reserved_bytes = 64 * MIB,
      .largest_free_bytes = 8 * MIB,
      .device_total_bytes = 64 * MIB,
      .can_grow = true},
     DS_ACCEL__OOM_ADVICE_GROWABLE,
     "cuda:1: out of memory: 20 MiB requested, 32 MiB allocated, 64 MiB reserved, largest free "
     "block "
     "8 MiB, fragmentation 75 %, device 0 B of 64 MiB free; enough is free, but in pieces: "
     "growable_segments would have helped, and is off"},
    /* The memory is fragmented, and the fragments suffice together with the device's free
     * memory. */
    {{.asked_bytes = 34 * MIB,
      .allocated_bytes = 32 * MIB,
      .reserved_bytes = 64 * MIB,
      .largest_free_bytes = 8 * MIB,
      .device_total_bytes = 70 * MIB,
      .device_free_bytes = 6 * MIB,
      .can_grow = true},
     DS_ACCEL__OOM_ADVICE_GROWABLE,
     "the device: out of memory: 34 MiB requested"},
    /* The sum of the fragments is too small. */
    {{.asked_bytes = 40 * MIB,
      .allocated_bytes = 32 * MIB,
      .reserved_bytes = 64 * MIB,
      .largest_free_bytes = 8 * MIB,
      .can_grow = true},
     DS_ACCEL__OOM_ADVICE_NONE,
     "; 8 MiB more would be needed"},
    /* Virtual memory is already enabled. */
    {{.asked_bytes = 20 * MIB,
      .allocated_bytes = 32 * MIB,
      .reserved_bytes = 64 * MIB,
      .largest_free_bytes = 8 * MIB,
      .can_grow = true,
      .is_growable = true},
     DS_ACCEL__OOM_ADVICE_NONE,
     "; enough is free, but in pieces"},
    /* There is no virtual memory: the advice is to keep large blocks whole. */
    {{.asked_bytes = 20 * MIB,
      .allocated_bytes = 32 * MIB,
      .reserved_bytes = 64 * MIB,
      .largest_free_bytes = 8 * MIB},
     DS_ACCEL__OOM_ADVICE_SPLIT,
     "max_split_bytes would have kept large blocks whole"},
    {{.asked_bytes = 20 * MIB,
      .allocated_bytes = 32 * MIB,
      .reserved_bytes = 64 * MIB,
      .largest_free_bytes = 8 * MIB,
      .max_split_bytes = 16 * MIB},
     DS_ACCEL__OOM_ADVICE_NONE,
     "; enough is free, but in pieces"},
    /* The limit prevents the allocation; the device has free memory. */
    {{.asked_bytes = 20 * MIB,
      .allocated_bytes = 50 * MIB,
      .reserved_bytes = 50 * MIB,
      .limit_bytes = 60 * MIB,
      .device_total_bytes = 100 * MIB,
      .device_free_bytes = 50 * MIB},
     DS_ACCEL__OOM_ADVICE_LIMIT,
     "limit 60 MiB, device 50 MiB of 100 MiB free; the device has room: limit_bytes of at least "
     "70 MiB would have helped"},
    /* The limit prevents the allocation, but free pages can be used: a smaller increase of the
     * limit suffices. */
    {{.asked_bytes = 20 * MIB,
      .allocated_bytes = 45 * MIB,
      .reserved_bytes = 50 * MIB,
      .largest_free_bytes = 5 * MIB,
      .limit_bytes = 60 * MIB,
      .device_total_bytes = 100 * MIB,
      .device_free_bytes = 50 * MIB,
      .can_grow = true,
      .is_growable = true},
     DS_ACCEL__OOM_ADVICE_LIMIT,
     "limit_bytes of at least 65 MiB"},
    /* Both the limit and the device prevent the allocation. */
    {{.asked_bytes = 20 * MIB,
      .allocated_bytes = 50 * MIB,
      .reserved_bytes = 50 * MIB,
      .limit_bytes = 60 * MIB,
      .device_total_bytes = 65 * MIB,
      .device_free_bytes = 15 * MIB},
     DS_ACCEL__OOM_ADVICE_NONE,
     "; 10 MiB more would be needed"},
    /* A limit is set, but does not prevent the allocation. */
    {{.asked_bytes = 20 * MIB,
      .allocated_bytes = 50 * MIB,
      .reserved_bytes = 50 * MIB,
      .limit_bytes = 90 * MIB,
      .device_total_bytes = 65 * MIB,
      .device_free_bytes = 15 * MIB},
     DS_ACCEL__OOM_ADVICE_NONE,
     "; 5 MiB more would be needed"},
    /* A higher limit and growing segments would both help; growing segments need no additional
     * memory. */
    {{.asked_bytes = 20 * MIB,
      .allocated_bytes = 30 * MIB,
      .reserved_bytes = 60 * MIB,
      .largest_free_bytes = 10 * MIB,
      .limit_bytes = 60 * MIB,
      .device_total_bytes = 100 * MIB,
      .device_free_bytes = 40 * MIB,
      .can_grow = true},
     DS_ACCEL__OOM_ADVICE_GROWABLE,
     "growable_segments would have helped"},
    /* The free memory belongs to other streams, or its free is deferred. */
    {{.asked_bytes = 20 * MIB,
      .allocated_bytes = 10 * MIB,
      .reserved_bytes = 60 * MIB,
      .elsewhere_bytes = 50 * MIB,
      .can_grow = true},
     DS_ACCEL__OOM_ADVICE_NONE,
     "50 MiB free in other streams or pools; 20 MiB more"},
    {{.asked_bytes = 20 * MIB,
      .allocated_bytes = 10 * MIB,
      .reserved_bytes = 60 * MIB,
      .pending_bytes = 50 * MIB,
      .can_grow = true},
     DS_ACCEL__OOM_ADVICE_NONE,
     "50 MiB waiting for streams, 60 MiB reserved"},
    /* More is requested than the driver allocates at a time: fragments and a limit are not the
     * cause. */
    {{.asked_bytes = 40 * MIB,
      .allocated_bytes = 32 * MIB,
      .reserved_bytes = 64 * MIB,
      .largest_free_bytes = 24 * MIB,
      .largest_bytes = 25 * MIB,
      .limit_bytes = 80 * MIB,
      .device_total_bytes = 100 * MIB,
      .device_free_bytes = 36 * MIB,
      .can_grow = true},
     DS_ACCEL__OOM_ADVICE_SMALLER,
     "36 MiB of 100 MiB free; the driver allocates at most 25 MiB in one allocation "
     "(max_allocation_bytes): make several smaller ones"},
    /* More is requested than the driver allocates at a time, and than the device has. */
    {{.asked_bytes = 101 * MIB, .largest_bytes = 25 * MIB, .device_total_bytes = 100 * MIB},
     DS_ACCEL__OOM_ADVICE_NONE,
     "; 101 MiB more would be needed"},
    /* The request is larger than any device. */
    {{.asked_bytes = UINT64_MAX,
      .allocated_bytes = 1,
      .reserved_bytes = 2,
      .largest_free_bytes = 1,
      .limit_bytes = UINT64_MAX,
      .device_total_bytes = 2},
     DS_ACCEL__OOM_ADVICE_NONE,
     "16.0 EiB requested"},
};

static void check_cases(void)
{
    static int is_done;
    char text[512];

    if (is_done++) {
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        ds_accel__oom_describe(&cases[i].facts, text, sizeof(text));
        if (ds_accel__oom_advise(&cases[i].facts) != cases[i].advice ||
            strstr(text, cases[i].says) == NULL) {
            fprintf(stderr, "case %zu: advice %d, text: %s\n", i,
                    (int)ds_accel__oom_advise(&cases[i].facts), text);
            abort();
        }
    }
}

/* Read a size from three bytes, a mantissa and a shift, so that sizes of all magnitudes occur. */
static uint64_t take(const uint8_t **data, size_t *size)
{
    uint64_t value = 0;

    if (*size >= 3) {
        value = (uint64_t)((*data)[0] | (*data)[1] << 8) << ((*data)[2] & 63);
        *data += 3;
        *size -= 3;
    }
    return value;
}

static void check_advice(const struct ds_accel__oom_facts *facts)
{
    switch (ds_accel__oom_advise(facts)) {
    case DS_ACCEL__OOM_ADVICE_GROWABLE:
        FUZZ_CHECK(facts->can_grow && !facts->is_growable);
        FUZZ_CHECK(facts->largest_free_bytes < facts->asked_bytes);
        break;
    case DS_ACCEL__OOM_ADVICE_LIMIT:
        FUZZ_CHECK(facts->limit_bytes != 0 && facts->device_total_bytes != 0);
        break;
    case DS_ACCEL__OOM_ADVICE_SPLIT:
        FUZZ_CHECK(facts->max_split_bytes == 0 && !facts->is_growable && !facts->can_grow);
        break;
    case DS_ACCEL__OOM_ADVICE_SMALLER:
        FUZZ_CHECK(facts->largest_bytes != 0 && facts->asked_bytes > facts->largest_bytes);
        break;
    case DS_ACCEL__OOM_ADVICE_NONE:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ds_accel__oom_facts facts = {.device = "mock"};
    uint64_t *const members[] = {
        &facts.asked_bytes,     &facts.allocated_bytes,    &facts.reserved_bytes,
        &facts.pending_bytes,   &facts.elsewhere_bytes,    &facts.largest_free_bytes,
        &facts.limit_bytes,     &facts.device_total_bytes, &facts.device_free_bytes,
        &facts.max_split_bytes, &facts.largest_bytes,
    };
    char whole[512];
    char cut[64];

    check_cases();
    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        *members[i] = take(&data, &size);
    }
    facts.can_grow = size > 0 && (data[0] & 1) != 0;
    facts.is_growable = facts.can_grow && (data[0] & 2) != 0;
    check_advice(&facts);
    ds_accel__oom_describe(&facts, whole, sizeof(whole));
    FUZZ_CHECK(strlen(whole) < sizeof(whole) - 1);
    FUZZ_CHECK(strncmp(whole, "mock: out of memory: ", 21) == 0);
    FUZZ_CHECK(strchr(whole, '\n') == NULL);
    ds_accel__oom_describe(&facts, cut, sizeof(cut));
    FUZZ_CHECK(strlen(cut) == sizeof(cut) - 1 && strncmp(cut, whole, sizeof(cut) - 1) == 0);
    return 0;
}
