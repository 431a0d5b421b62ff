/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Memory and events shared with other processes. */
#include "facts.h"

#include <unistd.h>

/* ---- telemetry, peers and sharing ------------------------------------------------------------ */

Test(core_facts, check_what_is_shared_with_other_processes)
{
    ds_accel_t *context = start("mock");
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    unsigned char handle[256] = {0};
    uint64_t capabilities = 0;
    ds_accel_device_t *device;
    ds_accel_event_t *event;
    ds_accel_event_t *opened = NULL;
    void *memory = NULL;
    void *again = NULL;
    uint64_t offset_bytes;
    int32_t fd = -1;
    int32_t status;

    cr_assert_eq(ds_accel_device_get(context, 0, &device), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_mem_alloc(device, NULL, 4096, &memory), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_event_create(device, 0, &event), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_backend_info(context, &info), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_capabilities(context, &capabilities), DS_ACCEL_OK);
    status = ds_accel_ipc_memory_export(device, memory, handle, info.memory_handle_bytes);
    cr_expect_eq(status == DS_ACCEL_ERR_UNSUPPORTED,
                 (capabilities & DS_ACCEL_CAPABILITY_MEMORY_IPC) == 0, "%d", status);
    if (status >= 0) {
        EXPECT_STATUS(ds_accel_ipc_memory_open(device, handle, info.memory_handle_bytes, &again),
                      DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_ipc_memory_close(device, again), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_ipc_memory_unexport(device, handle, info.memory_handle_bytes),
                      DS_ACCEL_OK);
    }
    status = ds_accel_ipc_event_export(event, handle, info.event_handle_bytes);
    cr_expect_eq(status == DS_ACCEL_ERR_UNSUPPORTED,
                 (capabilities & DS_ACCEL_CAPABILITY_EVENT_IPC) == 0, "%d", status);
    if (status >= 0) {
        EXPECT_STATUS(ds_accel_ipc_event_open(device, handle, info.event_handle_bytes, &opened),
                      DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_event_query(opened), DS_ACCEL_OK);
        ds_accel_event_destroy(opened);
    }
    status = ds_accel_dmabuf_export(device, memory, 4096, &fd, &offset_bytes);
    cr_expect_eq(status == DS_ACCEL_ERR_UNSUPPORTED,
                 (capabilities & DS_ACCEL_CAPABILITY_DMABUF) == 0, "%d", status);
    if (status >= 0) {
        close(fd);
    }
    EXPECT_STATUS(ds_accel_ipc_memory_export(device, NULL, handle, 64), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_ipc_memory_export(device, memory, NULL, 64), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_ipc_memory_open(device, NULL, 64, &again), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_ipc_memory_open(device, handle, 64, NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_ipc_memory_close(device, NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_ipc_event_export(NULL, handle, 64), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_ipc_event_open(device, NULL, 64, &opened), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_dmabuf_export(device, NULL, 1, &fd, &offset_bytes),
                  DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_dmabuf_import(device, -1, 0, 1, NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_STATUS(ds_accel_dmabuf_release(NULL, memory), DS_ACCEL_ERR_INVALID);
    ds_accel_event_destroy(event);
    EXPECT_REFUSED(ds_accel_ipc_event_export(event, handle, 64), DS_ACCEL_ERR_INVALID, "destroyed");
    ds_accel_destroy(context);
}
