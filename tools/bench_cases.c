/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Transfers: copies between host, device and another device, and fills. A case has a source and a
 * destination. Before it is measured, the source is filled with the pattern and the destination
 * with other bytes, one transfer is made, and its result is read back and compared.
 */
#include "bench.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILL_BYTE 0x5a
#define OTHER_BYTE 0xa5

int32_t bench_fail(struct bench *bench, int32_t status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(bench->reason, sizeof(bench->reason), format, arguments);
    va_end(arguments);
    return status;
}

/* ---- places --------------------------------------------------------------------------------- */

static bool is_on_host(enum bench_place place)
{
    return place < BENCH_DEVICE;
}

static ds_accel_device_t *device_of(const struct bench *bench, enum bench_place place)
{
    return place == BENCH_PEER ? bench->peer : bench->device;
}

/* The host memory that is available without swapping (MemAvailable); UINT64_MAX if unknown. */
static uint64_t host_available_bytes(void)
{
    FILE *file = fopen("/proc/meminfo", "re");
    uint64_t available = UINT64_MAX;
    char line[256];

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "MemAvailable:", 13) == 0) {
            available = strtoull(line + 13, NULL, 10) * 1024;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return available;
}

/* Do count blocks of the size fit in three quarters of the available memory? The rest is left to
 * other processes. */
static bool fits(const struct bench *bench, uint64_t count, uint64_t available)
{
    return bench->size_bytes <= available / 4 * 3 / count;
}

static void set_missing(struct bench *bench, enum bench_place place, int32_t status,
                        const char *reason)
{
    bench->place_status[place] = status;
    snprintf(bench->place_reason[place], sizeof(bench->place_reason[place]), "%s", reason);
}

static void make_host(struct bench *bench, enum bench_place place)
{
    long page = sysconf(_SC_PAGESIZE);

    if (!fits(bench, 3, host_available_bytes())) {
        set_missing(bench, place, DS_ACCEL_ERR_NO_MEMORY, "the host has too little memory for it");
    } else if (place == BENCH_PINNED) {
        int32_t status = ds_accel_mem_alloc_pinned(bench->device, bench->size_bytes, 0, 0,
                                                   &bench->places[place]);

        if (status < 0) {
            set_missing(bench, place, status, ds_accel_last_error());
        }
    } else if (posix_memalign(&bench->places[place], page > 0 ? (size_t)page : 4096,
                              bench->size_bytes) != 0) {
        bench->places[place] = NULL;
        set_missing(bench, place, DS_ACCEL_ERR_NO_MEMORY, "the host has no memory for it");
    }
}

static void make_on_device(struct bench *bench, enum bench_place place)
{
    struct ds_accel_memory_info info = {.struct_size = sizeof(info)};
    ds_accel_device_t *device = device_of(bench, place);
    int32_t status;

    if (device == NULL) {
        set_missing(bench, place, DS_ACCEL_ERR_UNSUPPORTED,
                    bench->peer_reason[0] != '\0' ? bench->peer_reason
                                                  : "there is no second device");
        return;
    }
    if (place == BENCH_DEVICE_OTHER && bench->places[BENCH_DEVICE] == NULL) {
        set_missing(bench, place, bench->place_status[BENCH_DEVICE],
                    bench->place_reason[BENCH_DEVICE]);
        return;
    }
    status = ds_accel_device_memory(device, &info);
    if (status >= 0 && (info.valid & DS_ACCEL_MEMORY_AVAILABLE) != 0 &&
        !fits(bench, place == BENCH_DEVICE ? 2 : 1, info.available_bytes)) {
        char reason[128];

        snprintf(reason, sizeof(reason), "the device has %llu bytes available, too few for it",
                 (unsigned long long)info.available_bytes);
        set_missing(bench, place, DS_ACCEL_ERR_NO_MEMORY, reason);
        return;
    }
    status = ds_accel_mem_alloc(device, NULL, bench->size_bytes, &bench->places[place]);
    if (status < 0) {
        bench->places[place] = NULL;
        set_missing(bench, place, status, ds_accel_last_error());
    }
}

/* Write pseudo-random bytes, so that all words, and so all pages, differ. */
static void write_pattern(unsigned char *memory, uint64_t size_bytes)
{
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

    for (uint64_t i = 0; i < size_bytes; i += sizeof(state)) {
        uint64_t left = size_bytes - i;

        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        memcpy(memory + i, &state, left < sizeof(state) ? left : sizeof(state));
    }
}

void bench_places_make(struct bench *bench)
{
    for (int place = 0; place < BENCH_PLACES; place++) {
        bench->places[place] = NULL;
        if (is_on_host((enum bench_place)place)) {
            make_host(bench, (enum bench_place)place);
        } else {
            make_on_device(bench, (enum bench_place)place);
        }
    }
    if (bench->places[BENCH_HOST_IN] != NULL) {
        write_pattern(bench->places[BENCH_HOST_IN], bench->size_bytes);
    }
}

void bench_places_release(struct bench *bench)
{
    for (int place = 0; place < BENCH_PLACES; place++) {
        if (place == BENCH_PINNED) {
            ds_accel_mem_free_pinned(bench->device, bench->places[place]);
        } else if (is_on_host((enum bench_place)place)) {
            free(bench->places[place]);
        } else if (bench->places[place] != NULL) {
            ds_accel_mem_free(device_of(bench, (enum bench_place)place), NULL,
                              bench->places[place]);
        }
        bench->places[place] = NULL;
    }
}

/* ---- preparing and checking ----------------------------------------------------------------- */

static int32_t need(struct bench *bench, enum bench_place place)
{
    if (bench->places[place] == NULL) {
        return bench_fail(bench, bench->place_status[place], "%s", bench->place_reason[place]);
    }
    return DS_ACCEL_OK;
}

/* Write the pattern to a place that a transfer reads. */
static int32_t put_pattern(struct bench *bench, enum bench_place place)
{
    if (is_on_host(place)) {
        if (place != BENCH_HOST_IN) {
            memcpy(bench->places[place], bench->places[BENCH_HOST_IN], bench->size_bytes);
        }
        return DS_ACCEL_OK;
    }
    return ds_accel_mem_copy(device_of(bench, place), bench->places[place],
                             bench->places[BENCH_HOST_IN], bench->size_bytes,
                             DS_ACCEL_COPY_HOST_TO_DEVICE);
}

/* Write bytes that differ from the pattern into a destination. */
static int32_t spoil(struct bench *bench, enum bench_place place)
{
    if (is_on_host(place)) {
        memset(bench->places[place], OTHER_BYTE, bench->size_bytes);
        return DS_ACCEL_OK;
    }
    memset(bench->places[BENCH_HOST_OUT], OTHER_BYTE, bench->size_bytes);
    return ds_accel_mem_copy(device_of(bench, place), bench->places[place],
                             bench->places[BENCH_HOST_OUT], bench->size_bytes,
                             DS_ACCEL_COPY_HOST_TO_DEVICE);
}

/* Return the contents of a destination in host memory. */
static int32_t fetch(struct bench *bench, enum bench_place place, const unsigned char **given_out)
{
    *given_out = bench->places[is_on_host(place) ? place : BENCH_HOST_OUT];
    if (is_on_host(place)) {
        return DS_ACCEL_OK;
    }
    memset(bench->places[BENCH_HOST_OUT], (unsigned char)~OTHER_BYTE, bench->size_bytes);
    return ds_accel_mem_copy(device_of(bench, place), bench->places[BENCH_HOST_OUT],
                             bench->places[place], bench->size_bytes, DS_ACCEL_COPY_DEVICE_TO_HOST);
}

static int32_t differs(struct bench *bench, uint64_t position, unsigned wanted, unsigned given)
{
    return bench_fail(bench, DS_ACCEL_ERR_INTERNAL,
                      "the data is wrong: byte %llu is 0x%02x and should be 0x%02x",
                      (unsigned long long)position, given, wanted);
}

static int32_t compare(struct bench *bench, const unsigned char *given)
{
    const unsigned char *wanted = bench->places[BENCH_HOST_IN];

    if (memcmp(given, wanted, bench->size_bytes) == 0) {
        return DS_ACCEL_OK;
    }
    for (uint64_t i = 0;; i++) {
        if (given[i] != wanted[i]) {
            return differs(bench, i, wanted[i], given[i]);
        }
    }
}

static int32_t do_once(struct bench *bench)
{
    int32_t status = bench->test->once(bench);

    return status < 0 ? status : bench_wait(bench);
}

static int32_t prepare_copy(struct bench *bench)
{
    const struct bench_case *test = bench->test;
    const enum bench_place places[] = {test->source, test->destination, BENCH_HOST_IN,
                                       BENCH_HOST_OUT};
    const unsigned char *given = NULL;
    int32_t status = DS_ACCEL_OK;

    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && status >= 0; i++) {
        status = need(bench, places[i]);
    }
    status = status < 0 ? status : put_pattern(bench, test->source);
    status = status < 0 ? status : spoil(bench, test->destination);
    status = status < 0 ? status : do_once(bench);
    status = status < 0 ? status : fetch(bench, test->destination, &given);
    return status < 0 ? status : compare(bench, given);
}

static int32_t prepare_fill(struct bench *bench)
{
    const unsigned char *given = NULL;
    int32_t status = need(bench, BENCH_DEVICE);

    status = status < 0 ? status : need(bench, BENCH_HOST_OUT);
    status = status < 0 ? status : spoil(bench, BENCH_DEVICE);
    status = status < 0 ? status : do_once(bench);
    status = status < 0 ? status : fetch(bench, BENCH_DEVICE, &given);
    for (uint64_t i = 0; status >= 0 && i < bench->size_bytes; i++) {
        if (given[i] != FILL_BYTE) {
            return differs(bench, i, FILL_BYTE, given[i]);
        }
    }
    return status;
}

/* ---- the transfers -------------------------------------------------------------------------- */

static int32_t copy(struct bench *bench)
{
    const struct bench_case *test = bench->test;

    return ds_accel_mem_copy(bench->device, bench->places[test->destination],
                             bench->places[test->source], bench->size_bytes, test->kind);
}

static int32_t copy_async(struct bench *bench)
{
    const struct bench_case *test = bench->test;

    return ds_accel_mem_copy_async(bench->stream, bench->places[test->destination],
                                   bench->places[test->source], bench->size_bytes, test->kind);
}

static int32_t copy_peer(struct bench *bench)
{
    const struct bench_case *test = bench->test;

    return ds_accel_mem_copy_peer_async(
        bench->stream, device_of(bench, test->destination), bench->places[test->destination],
        device_of(bench, test->source), bench->places[test->source], bench->size_bytes);
}

static int32_t fill(struct bench *bench)
{
    return ds_accel_mem_set_async(bench->stream, bench->places[BENCH_DEVICE], FILL_BYTE,
                                  bench->size_bytes);
}

#define COPY(name_, to, from, kind_) \
    { \
        .group = "copy", .name = (name_), .sized = true, .destination = (to), .source = (from), \
        .kind = (kind_), .prepare = prepare_copy, .once = copy \
    }
#define COPY_ASYNC(group_, name_, to, from, kind_, once_) \
    { \
        .group = (group_), .name = (name_), .sized = true, .queued = true, .destination = (to), \
        .source = (from), .kind = (kind_), .prepare = prepare_copy, .once = (once_) \
    }

const struct bench_case bench_transfers[] = {
    COPY("h2d_pageable", BENCH_DEVICE, BENCH_HOST_IN, DS_ACCEL_COPY_HOST_TO_DEVICE),
    COPY_ASYNC("copy", "h2d_pageable_async", BENCH_DEVICE, BENCH_HOST_IN,
               DS_ACCEL_COPY_HOST_TO_DEVICE, copy_async),
    COPY("h2d_pinned", BENCH_DEVICE, BENCH_PINNED, DS_ACCEL_COPY_HOST_TO_DEVICE),
    COPY_ASYNC("copy", "h2d_pinned_async", BENCH_DEVICE, BENCH_PINNED, DS_ACCEL_COPY_HOST_TO_DEVICE,
               copy_async),
    COPY("d2h_pageable", BENCH_HOST_OUT, BENCH_DEVICE, DS_ACCEL_COPY_DEVICE_TO_HOST),
    COPY_ASYNC("copy", "d2h_pageable_async", BENCH_HOST_OUT, BENCH_DEVICE,
               DS_ACCEL_COPY_DEVICE_TO_HOST, copy_async),
    COPY("d2h_pinned", BENCH_PINNED, BENCH_DEVICE, DS_ACCEL_COPY_DEVICE_TO_HOST),
    COPY_ASYNC("copy", "d2h_pinned_async", BENCH_PINNED, BENCH_DEVICE, DS_ACCEL_COPY_DEVICE_TO_HOST,
               copy_async),
    COPY_ASYNC("copy", "d2d_async", BENCH_DEVICE_OTHER, BENCH_DEVICE,
               DS_ACCEL_COPY_DEVICE_TO_DEVICE, copy_async),
    {.group = "fill",
     .name = "fill_async",
     .sized = true,
     .queued = true,
     .prepare = prepare_fill,
     .once = fill},
    COPY_ASYNC("peer", "to_peer_async", BENCH_PEER, BENCH_DEVICE, 0, copy_peer),
    COPY_ASYNC("peer", "from_peer_async", BENCH_DEVICE, BENCH_PEER, 0, copy_peer),
};
const size_t bench_transfer_count = sizeof(bench_transfers) / sizeof(bench_transfers[0]);
