/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Misuse that layer validate must keep from a runtime, one line for each case. Run by
 * test_alike.sh. */
#include <ds-accel/ds_accel.h>
#include <pthread.h>
#include <stdio.h>

#define BYTES 4096u

static const struct ds_accel_plugin *table;
static ds_accel_plugin_device_t *device;
static ds_accel_plugin_stream_t *stream;
static ds_accel_plugin_event_t *event;
static struct ds_accel_error error = {sizeof(error), 0, 0, "", ""};

static void tell(const char *what, int32_t status)
{
    printf("%s: %s\n", what, ds_accel_status_name(status));
}

static void *call_beside(void *nothing)
{
    struct ds_accel_error here = {sizeof(here), 0, 0, "", ""};

    tell("the device, waited for by another thread",
         table->device_synchronize(device, UINT64_MAX, &here));
    tell("an event, asked by another thread", table->event_query(event, &here));
    return nothing;
}

static void capture(void)
{
    ds_accel_plugin_stream_t *captured = NULL;
    ds_accel_plugin_graph_t *graph = NULL;
    pthread_t thread;

    if (table->stream_create(device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &captured, &error) < 0 ||
        table->graph_capture_begin(captured, DS_ACCEL_CAPTURE_GLOBAL, &error) < 0) {
        table->stream_destroy(captured);
        return; /* the backend has no graphs */
    }
    if (pthread_create(&thread, NULL, call_beside, NULL) == 0) {
        pthread_join(thread, NULL);
    }
    tell("the capture", table->graph_capture_end(captured, &graph, &error));
    table->graph_destroy(graph);
    table->stream_destroy(captured);
}

int main(void)
{
    ds_accel_t *accelerator;
    ds_accel_plugin_instance_t *instance = NULL;
    ds_accel_device_t *opened[2] = {NULL, NULL};
    ds_accel_plugin_stream_t *theirs = NULL;
    void *memory = NULL;
    void *pinned = NULL;
    static char host[BYTES];

    setvbuf(stdout, NULL, _IOLBF, 0); /* keeps the printed lines after a crash */
    accelerator = ds_accel_get();
    if (accelerator == NULL || ds_accel_instance(accelerator, &table, &instance) < 0 ||
        ds_accel_device_open(accelerator, 0, &opened[0]) < 0 ||
        ds_accel_device_open(accelerator, 1, &opened[1]) < 0) {
        fprintf(stderr, "%s\n", ds_accel_last_error());
        return 1;
    }
    device = ds_accel_device_handle(opened[0]);
    if (table->mem_alloc(device, BYTES, 0, 0, &memory, &error) < 0 ||
        table->mem_alloc_pinned(device, BYTES, 1, 0, &pinned, &error) < 0 ||
        table->stream_create(device, 0, 0, &stream, &error) < 0 ||
        table->stream_create(ds_accel_device_handle(opened[1]), 0, 0, &theirs, &error) < 0 ||
        table->event_create(device, 0, &event, &error) < 0) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    tell("pinned memory, copied as the device's",
         table->mem_copy_async(stream, memory, pinned, BYTES, DS_ACCEL_COPY_DEVICE_TO_DEVICE,
                               &error));
    tell("device memory, copied as the host's",
         table->mem_copy_async(stream, pinned, memory, BYTES, DS_ACCEL_COPY_HOST_TO_HOST, &error));
    tell("device memory, copied the wrong way",
         table->mem_copy(device, memory, host, BYTES, DS_ACCEL_COPY_DEVICE_TO_HOST, &error));
    tell("an event on another device's stream", table->event_record(event, theirs, &error));
    tell("a copy the right way", table->mem_copy_async(stream, memory, pinned, BYTES,
                                                       DS_ACCEL_COPY_HOST_TO_DEVICE, &error));
    table->stream_synchronize(stream, UINT64_MAX, &error);
    capture();
    table->event_destroy(event);
    table->stream_destroy(theirs);
    table->stream_destroy(stream);
    table->mem_free_pinned(device, pinned, &error);
    table->mem_free(device, memory, &error);
    ds_accel_device_close(opened[1]);
    ds_accel_device_close(opened[0]);
    return 0;
}
