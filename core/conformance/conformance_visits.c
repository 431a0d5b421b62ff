/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Stops of the tour (conformance_calls.c) that make several calls. All objects are released even if
 * a call fails. Each function returns the status of the first call that failed, or DS_ACCEL_OK.
 */
#include "conformance/conformance.h"

#include <stdlib.h>
#include <unistd.h>

#define BYTES (UINT64_C(2) << 20) /* some runtimes share only whole pages of this size */
#define FEW 64u

static int32_t first_of(int32_t status, int32_t next)
{
    return status != DS_ACCEL_OK ? status : next;
}

/* ---- events --------------------------------------------------------------------------------- */

int32_t ds_accel__visit_elapsed(struct ds_accel__run *run)
{
    ds_accel_plugin_event_t *events[2] = {NULL, NULL};
    double elapsed = 0;
    int32_t status = DS_ACCEL_OK;

    for (int i = 0; i < 2 && status == DS_ACCEL_OK; i++) {
        status = CALL(run, event_create, run->device, DS_ACCEL_EVENT_TIMING, &events[i]);
        if (status == DS_ACCEL_OK) {
            status = CALL(run, event_record, events[i], run->stream);
        }
    }
    if (status == DS_ACCEL_OK) {
        status = CALL(run, stream_synchronize, run->stream, UINT64_MAX);
    }
    if (status == DS_ACCEL_OK && run->table.event_query != NULL) {
        status = CALL(run, event_query, events[1]);
    }
    if (status == DS_ACCEL_OK) {
        status = CALL(run, event_elapsed_ms, events[0], events[1], &elapsed);
    }
    run->table.event_destroy(events[0]);
    run->table.event_destroy(events[1]);
    return status;
}

/* ---- memory --------------------------------------------------------------------------------- */

int32_t ds_accel__visit_copy_async(struct ds_accel__run *run)
{
    unsigned char bytes[FEW] = {0};
    void *memory = NULL;
    int32_t status = CALL(run, mem_alloc, run->device, sizeof(bytes), 0, 0, &memory);

    if (status == DS_ACCEL_OK) {
        status = CALL(run, mem_copy_async, run->stream, memory, bytes, sizeof(bytes),
                      DS_ACCEL_COPY_HOST_TO_DEVICE);
        status = first_of(status, CALL(run, stream_synchronize, run->stream, UINT64_MAX));
        CALL(run, mem_free, run->device, memory);
    }
    return status;
}

int32_t ds_accel__visit_register(struct ds_accel__run *run)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *memory = aligned_alloc(page, 4 * page);
    int32_t status;

    if (memory == NULL) {
        return DS_ACCEL_ERR_NO_MEMORY;
    }
    status = CALL(run, mem_register, run->device, memory, 4 * page, 0);
    if (status == DS_ACCEL_OK) {
        status = CALL(run, mem_unregister, run->device, memory);
    }
    free(memory);
    return status;
}

int32_t ds_accel__visit_vmem(struct ds_accel__run *run)
{
    const struct ds_accel_plugin *table = &run->table;
    ds_accel_plugin_vmem_t *vmem = NULL;
    uint64_t size = 0;
    uint64_t best = 0;
    void *address = NULL;
    int32_t status = CALL(run, vmem_granularity, run->device, 0, &size, &best);

    if (status == DS_ACCEL_OK) {
        status = CALL(run, vmem_create, run->device, size, 0, &vmem);
    }
    if (status == DS_ACCEL_OK) {
        status = CALL(run, vmem_reserve, run->device, size, 0, NULL, 0, &address);
    }
    if (status == DS_ACCEL_OK) {
        status = CALL(run, vmem_map, run->device, address, size, vmem, 0);
        if (status == DS_ACCEL_OK) {
            status = CALL(run, vmem_set_access, run->device, address, size,
                          DS_ACCEL_VMEM_ACCESS_READ_WRITE);
            status = first_of(status, CALL(run, vmem_unmap, run->device, address, size));
        }
        status = first_of(status, CALL(run, vmem_release, run->device, address, size));
    }
    table->vmem_destroy(vmem);
    return status;
}

/* ---- graphs --------------------------------------------------------------------------------- */

static void do_nothing(void *user_data, int32_t status)
{
    (void)user_data;
    (void)status;
}

static int32_t launch(struct ds_accel__run *run, ds_accel_plugin_graph_t *graph)
{
    ds_accel_plugin_graph_exec_t *exec = NULL;
    int32_t status = CALL(run, graph_instantiate, graph, 0, &exec);

    if (status == DS_ACCEL_OK) {
        status = CALL(run, graph_launch, exec, run->stream);
        status = first_of(status, CALL(run, stream_synchronize, run->stream, UINT64_MAX));
        run->table.graph_exec_destroy(exec);
    }
    return status;
}

int32_t ds_accel__visit_graph(struct ds_accel__run *run)
{
    ds_accel_plugin_graph_t *graph = NULL;
    int32_t status = CALL(run, graph_capture_begin, run->stream, DS_ACCEL_CAPTURE_THREAD_LOCAL);

    if (status == DS_ACCEL_OK) {
        if (run->table.stream_host_task != NULL) {
            status = CALL(run, stream_host_task, run->stream, do_nothing, NULL);
        }
        status = first_of(status, CALL(run, graph_capture_end, run->stream, &graph));
    }
    if (status == DS_ACCEL_OK) {
        status = launch(run, graph);
    }
    if (graph != NULL) { /* graph may exist even if the host task was rejected */
        run->table.graph_destroy(graph);
    }
    return status;
}

/* ---- sharing -------------------------------------------------------------------------------- */

int32_t ds_accel__visit_ipc_memory(struct ds_accel__run *run)
{
    unsigned char handle[DS_ACCEL__PEER_HANDLE];
    const uint32_t size = run->info.memory_handle_bytes;
    void *memory = NULL;
    int32_t status = size <= sizeof(handle)
                         ? CALL(run, mem_alloc, run->device, BYTES, 0, 0, &memory)
                         : DS_ACCEL_ERR_UNSUPPORTED;

    if (status == DS_ACCEL_OK) {
        status = CALL(run, ipc_memory_export, run->device, memory, handle, size);
        if (status == DS_ACCEL_OK && run->table.ipc_memory_unexport != NULL) {
            status = CALL(run, ipc_memory_unexport, run->device, handle, size);
        }
        CALL(run, mem_free, run->device, memory);
    }
    return status;
}

int32_t ds_accel__visit_ipc_event(struct ds_accel__run *run)
{
    unsigned char handle[DS_ACCEL__PEER_HANDLE];
    const uint32_t size = run->info.event_handle_bytes;
    ds_accel_plugin_event_t *event = NULL;
    int32_t status = size <= sizeof(handle)
                         ? CALL(run, event_create, run->device, DS_ACCEL_EVENT_INTERPROCESS, &event)
                         : DS_ACCEL_ERR_UNSUPPORTED;

    if (status == DS_ACCEL_OK) {
        status = CALL(run, ipc_event_export, event, handle, size);
        run->table.event_destroy(event);
    }
    return status;
}

int32_t ds_accel__visit_dmabuf(struct ds_accel__run *run)
{
    uint64_t offset = 0;
    void *memory = NULL;
    void *imported = NULL;
    int32_t fd = -1;
    int32_t status = CALL(run, mem_alloc, run->device, BYTES, 65536, 0, &memory);

    if (status == DS_ACCEL_OK) {
        status = CALL(run, dmabuf_export, run->device, memory, BYTES, 0, &fd, &offset);
        if (status == DS_ACCEL_OK) {
            if (run->table.dmabuf_import != NULL && run->table.dmabuf_release != NULL &&
                CALL(run, dmabuf_import, run->device, fd, offset, BYTES, &imported) ==
                    DS_ACCEL_OK) {
                status = CALL(run, dmabuf_release, run->device, imported);
            }
            close(fd);
        }
        CALL(run, mem_free, run->device, memory);
    }
    return status;
}

/* ---- the environment ------------------------------------------------------------------------ */

int32_t ds_accel__visit_variable(struct ds_accel__run *run)
{
    const uint32_t index = run->device_index;
    char variable[128] = "";
    char value[1024] = "";
    int32_t status = CALL(run, env_name_get, run->instance, DS_ACCEL_ENV_LIST_VISIBLE_DEVICES, 0,
                          variable, (uint32_t)sizeof(variable));

    if (status == DS_ACCEL_ERR_NOT_FOUND) {
        return DS_ACCEL_OK;
    }
    if (status == DS_ACCEL_OK && run->table.visible_devices_value != NULL) {
        status = CALL(run, visible_devices_value, run->instance, variable, &index, 1, value,
                      (uint32_t)sizeof(value), NULL);
    }
    return status;
}
