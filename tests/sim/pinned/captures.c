/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Runs the library's own queries of the runtime during a capture in mode global: prints for each
 * query whether the capture survived.
 *
 *     captures NAME
 */
#include <ds_accel.h>

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BYTES (UINT64_C(1) << 20)
#define FLOATS (BYTES / 4)
#define CAPTURES 20000u

static ds_accel_device_t *device;
static ds_accel_device_t *apart; /* the same device, of a second context */
static ds_accel_stream_t *captured;
static ds_accel_stream_t *first;
static ds_accel_stream_t *second;
static ds_accel_graph_t *replayed;
static ds_accel_rng_t *rng;
static void *memory;
static void *pinned;
static sem_t gate;

static void must(int32_t status, const char *call)
{
    if (status < 0) {
        printf("%s: %s\n", call, ds_accel_last_error());
        exit(1);
    }
}

#define MUST(call) must(call, #call)

static void wait_at_gate(void *unused, int32_t status)
{
    (void)unused;
    (void)status;
    while (sem_wait(&gate) != 0) {
    }
}

static void take_pinned(ds_accel_device_t *from)
{
    MUST(ds_accel_mem_alloc_pinned(from, 4096, 1, 0, &pinned));
}

static void close_gate(ds_accel_stream_t *stream)
{
    MUST(ds_accel_stream_host_task(stream, wait_at_gate, NULL));
}

static void nothing(void)
{
}

static void open_gate(void)
{
    sem_post(&gate);
}

/* ---- preparations and queries --------------------------------------------------------------- */

static void free_used(void)
{
    MUST(ds_accel_mem_alloc(device, first, BYTES, &memory));
    MUST(ds_accel_mem_record_stream(device, memory, second));
    close_gate(second);
    MUST(ds_accel_mem_free(device, first, memory));
}

static void allocate(void)
{
    MUST(ds_accel_mem_alloc(device, first, BYTES, &memory));
}

static void free_busy_pinned(void)
{
    take_pinned(device);
    close_gate(first);
    MUST(ds_accel_mem_copy_async(first, memory, pinned, 4096, DS_ACCEL_COPY_HOST_TO_DEVICE));
    MUST(ds_accel_mem_free_pinned(device, pinned));
}

static void take_two_pinned(void)
{
    take_pinned(device);
    take_pinned(device);
}

static void free_one_pinned(void)
{
    MUST(ds_accel_mem_free_pinned(device, pinned));
    MUST(ds_accel_pinned_empty_cache(device));
}

static void replay(void)
{
    void *inside = NULL;

    MUST(ds_accel_graph_create(device, &replayed));
    MUST(ds_accel_graph_capture_begin(replayed, captured, NULL, DS_ACCEL_CAPTURE_RELAXED));
    MUST(ds_accel_mem_alloc(device, captured, BYTES, &inside));
    MUST(ds_accel_mem_set_async(captured, inside, 1, BYTES));
    MUST(ds_accel_graph_capture_end(replayed));
    MUST(ds_accel_mem_free(device, captured, inside));
    MUST(ds_accel_graph_replay(replayed, first));
}

static void destroy_replayed(void)
{
    ds_accel_graph_destroy(replayed);
}

static void fill_twice(void)
{
    for (int i = 0; i < 3; i++) { /* there are two blocks of staging memory */
        MUST(ds_accel_rng_uniform(rng, first, memory, FLOATS, DS_ACCEL_DTYPE_FLOAT32, 0, 1));
    }
}

static void take_apart(void)
{
    take_pinned(apart);
}

static void free_apart(void)
{
    MUST(ds_accel_mem_free_pinned(apart, pinned));
}

static const struct {
    const char *what;
    void (*before)(void);
    void (*during)(void);
    void (*after)(void);
} cases[] = {
    {"memory that another stream used, allocated", free_used, allocate, open_gate},
    {"pinned memory, while a freed block waits", free_busy_pinned, take_two_pinned, open_gate},
    {"pinned memory, given back", nothing, free_one_pinned, nothing},
    {"a graph that was replayed, destroyed", replay, destroy_replayed, nothing},
    {"numbers, through staging memory", nothing, fill_twice, nothing},
    {"pinned memory, freed in a second context", take_apart, free_apart, nothing},
};

static void play(size_t number)
{
    ds_accel_graph_t *graph = NULL;

    cases[number].before();
    MUST(ds_accel_graph_create(device, &graph));
    MUST(ds_accel_graph_capture_begin(graph, captured, NULL, DS_ACCEL_CAPTURE_GLOBAL));
    cases[number].during();
    printf("%s: %d\n", cases[number].what, ds_accel_graph_capture_end(graph));
    cases[number].after();
    ds_accel_graph_destroy(graph);
    MUST(ds_accel_device_synchronize(device));
}

/* ---- a thread that frees memory continuously ------------------------------------------------ */

static int has_ended;

static void *free_for_ever(void *unused)
{
    (void)unused;
    while (!__atomic_load_n(&has_ended, __ATOMIC_SEQ_CST)) {
        void *block = NULL;

        MUST(ds_accel_mem_alloc_pinned(device, 4096, 1, 0, &block));
        MUST(ds_accel_mem_free_pinned(device, block));
    }
    return NULL;
}

static void capture_beside(void)
{
    ds_accel_graph_t *graph = NULL;
    uint32_t broken = 0;
    pthread_t thread;

    MUST(ds_accel_graph_create(device, &graph));
    pthread_create(&thread, NULL, free_for_ever, NULL);
    for (uint32_t i = 0; i < CAPTURES; i++) {
        MUST(ds_accel_graph_capture_begin(graph, captured, NULL, DS_ACCEL_CAPTURE_GLOBAL));
        broken += ds_accel_graph_capture_end(graph) < 0;
    }
    __atomic_store_n(&has_ended, 1, __ATOMIC_SEQ_CST);
    pthread_join(thread, NULL);
    ds_accel_graph_destroy(graph);
    printf("captures broken beside a thread that frees pinned memory: %u\n", broken);
}

static ds_accel_t *make_context(const char *name, ds_accel_device_t **device_out)
{
    struct ds_accel_options options = {.struct_size = sizeof(options), .accelerator = name};
    ds_accel_t *context = NULL;

    MUST(ds_accel_create(&options, &context));
    MUST(ds_accel_detect(context));
    MUST(ds_accel_device_open(context, 0, device_out));
    return context;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "cpu";
    ds_accel_t *contexts[2];

    alarm(120);
    sem_init(&gate, 0, 0);
    contexts[0] = make_context(name, &device);
    contexts[1] = make_context(name, &apart);
    MUST(ds_accel_stream_create(device, 0, 0, &captured));
    MUST(ds_accel_stream_create(device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &first));
    MUST(ds_accel_stream_create(device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &second));
    MUST(ds_accel_rng_create(device, 1, 0, &rng));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        play(i);
    }
    capture_beside();
    ds_accel_device_close(apart);
    ds_accel_destroy(contexts[1]);
    ds_accel_device_close(device);
    ds_accel_destroy(contexts[0]);
    return 0;
}
