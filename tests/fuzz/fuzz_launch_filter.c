/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Arbitrary text as --include and as --exclude, for hosts that the fuzzer knows. */
#include "fuzz.h"

#include "base/text.h"
#include "launch/hosts.h"

#include <string.h>

/* This machine, w0, has a device GPU-1; other hosts are not known. */
static int32_t find_slot(void *user_data, const struct ds_accel__job_host *host, const char *token,
                         uint32_t *index_out)
{
    *(bool *)user_data = true;
    if (strcmp(host->name, "w0") != 0) {
        *index_out = DS_ACCEL__NO_INDEX;
        return DS_ACCEL_OK;
    }
    if (strcmp(token, "GPU-1") != 0) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "no device %s", token);
    }
    *index_out = 1;
    return DS_ACCEL_OK;
}

static void add_hosts(struct ds_accel__hosts *hosts)
{
    FUZZ_CHECK(ds_accel__hosts_add(hosts, "w0", 2, 4) >= 0);
    FUZZ_CHECK(ds_accel__hosts_add(hosts, "w1", 2, 2) >= 0);
    FUZZ_CHECK(ds_accel__hosts_add(hosts, "w2", 2, 0) >= 0);
    FUZZ_CHECK(ds_accel__hosts_add(hosts, "w3", 2, 1) >= 0);
}

/* Check that the hosts keep their order, and that each has slots in order. Return their number. */
static uint32_t check_hosts(const struct ds_accel__hosts *hosts)
{
    uint32_t total = 0;

    FUZZ_CHECK(hosts->count > 0);
    for (size_t i = 0; i < hosts->count; i++) {
        const struct ds_accel__job_host *host = &hosts->items[i];

        FUZZ_CHECK(i == 0 || strcmp(host[-1].name, host->name) < 0);
        FUZZ_CHECK(host->slot_count > 0);
        for (uint32_t j = 0; j < host->slot_count; j++) {
            const struct ds_accel__slot *slot = &host->slots[j];

            FUZZ_CHECK(slot->index != DS_ACCEL__NO_INDEX || slot->token != NULL);
            FUZZ_CHECK(j == 0 || slot[-1].index < slot->index || slot->index == DS_ACCEL__NO_INDEX);
            FUZZ_CHECK(slot->index == DS_ACCEL__NO_INDEX || slot->index < 4);
            FUZZ_CHECK(ds_accel__host_find(host, slot) == slot);
        }
        total += host->slot_count;
    }
    return total;
}

/* Filter the hosts. Return the number of slots that are left; -1: the filter is refused. */
static int64_t filter(const char *include, const char *exclude, bool *has_token,
                      struct ds_accel__hosts *hosts)
{
    if (ds_accel__hosts_filter(hosts, include, exclude, find_slot, has_token) < 0) {
        FUZZ_CHECK(ds_accel__is_printable(ds_accel_last_error()));
        return hosts->count == 0 ? 0 : -1; /* all slots are excluded, or the text is wrong */
    }
    return check_hosts(hosts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = strndup(size > 0 ? (const char *)data : "", size);
    struct ds_accel__hosts included = {0};
    struct ds_accel__hosts excluded = {0};
    bool has_token = false;
    int64_t in;
    int64_t out;

    if (text == NULL || text[0] == '\0') {
        free(text);
        return 0;
    }
    add_hosts(&included);
    add_hosts(&excluded);
    in = filter(text, NULL, &has_token, &included);
    out = filter(NULL, text, &has_token, &excluded);
    /* Both refuse the same; --exclude refuses another host's UUID as well. */
    FUZZ_CHECK(in >= 0 || out < 0);
    FUZZ_CHECK(in < 0 || out >= 0 || has_token);
    if (in >= 0 && !has_token) { /* a UUID of another host may be one of its indices */
        FUZZ_CHECK(in + out == 7);
    }
    if (in > 0) { /* the filter keeps what it kept */
        FUZZ_CHECK(filter(text, NULL, &has_token, &included) == in || strstr(text, "w2") != NULL);
    }
    ds_accel__hosts_clear(&included);
    ds_accel__hosts_clear(&excluded);
    free(text);
    return 0;
}
