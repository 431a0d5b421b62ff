/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Memory. The functions for copies and fills have an argument for the destination's capacity; the
 * plugin passes the size of the copy, which the frame (plugins/common) has checked.
 *
 * Some CANN releases reject aclrtMemcpyAsync() of host memory that ACL did not allocate; with these
 * releases the plugin waits for the queued work and copies synchronously, which other releases do
 * inside the call.
 */
#include "npu.h"

#include <sys/utsname.h>

/* Smallest page size of a device; page sizes are 4 KiB, 2 MiB and 1 GiB */
#define DEVICE_PAGE 4096u
#define HOST_PAGE 4096u /* aclrtHostRegister() accepts only whole pages of this size */

/*
 * While another stream is captured in a mode other than relaxed, ACL rejects allocations and
 * queries. The plugin's own calls are not part of that capture and must succeed (rule DSA-P106), so
 * the mode of this thread is set to relaxed for their duration.
 */
int npu_relax(const struct acl_api *acl)
{
    int mode = ACL_CAPTURE_RELAXED;

    return acl->aclmdlRICaptureThreadExchangeMode != NULL &&
                   acl->aclmdlRICaptureThreadExchangeMode(&mode) == ACL_OK
               ? mode
               : -1;
}

void npu_restore(const struct acl_api *acl, int mode)
{
    if (mode >= 0) {
        acl->aclmdlRICaptureThreadExchangeMode(&mode);
    }
}

int32_t npu_alloc(ds_accel_plugin_device_t *device, uint64_t size_bytes, void **pointer_out,
                  struct ds_accel_error *error)
{
    const struct acl_api *acl = NPU_ACL(device);
    int mode = npu_relax(acl);
    acl_error code = acl->aclrtMalloc(pointer_out, size_bytes, ACL_MALLOC_HUGE_FIRST);

    npu_restore(acl, mode);
    return NPU_CHECK(device, code, error, "aclrtMalloc(%llu bytes, device %u)",
                     (unsigned long long)size_bytes, device->index);
}

int32_t npu_free(ds_accel_plugin_device_t *device, void *pointer, struct ds_accel_error *error)
{
    return NPU_CHECK(device, NPU_ACL(device)->aclrtFree(pointer), error, "aclrtFree(%p)", pointer);
}

int32_t npu_alloc_pinned(ds_accel_plugin_device_t *device, uint64_t size_bytes, uint32_t flags,
                         void **pointer_out, struct ds_accel_error *error)
{
    (void)flags;
    return NPU_CHECK(device, NPU_ACL(device)->aclrtMallocHost(pointer_out, size_bytes), error,
                     "aclrtMallocHost(%llu bytes)", (unsigned long long)size_bytes);
}

int32_t npu_free_pinned(ds_accel_plugin_device_t *device, void *pointer,
                        struct ds_accel_error *error)
{
    return NPU_CHECK(device, NPU_ACL(device)->aclrtFreeHost(pointer), error, "aclrtFreeHost(%p)",
                     pointer);
}

/* Returns the address of the page that contains the pointer. */
static void *page_of(const void *pointer)
{
    return (void *)((uintptr_t)pointer & ~(uintptr_t)(HOST_PAGE - 1));
}

/*
 * Returns true for Linux 5.10 and earlier, where, according to CANN's manual, the registration of
 * memory that is not already page-locked "causes exceptions". Returns false if the version cannot
 * be read.
 */
static int is_old_kernel(const struct ds_accel_host *host)
{
    struct utsname name;
    char release[64] = "";
    unsigned int major = 0;
    unsigned int minor = 0;

    if (vendor_read_line(host, "/proc/sys/kernel/osrelease", release, sizeof(release)) != 0 &&
        uname(&name) == 0) {
        snprintf(release, sizeof(release), "%.63s", name.release);
    }
    return sscanf(release, "%u.%u", &major, &minor) == 2 &&
           (major < 5 || (major == 5 && minor <= 10));
}

int32_t npu_host_register(ds_accel_plugin_device_t *device, void *pointer, uint64_t size_bytes,
                          uint32_t flags, struct ds_accel_error *error)
{
    const struct acl_api *acl = NPU_ACL(device);
    void *first = page_of(pointer);
    uint64_t size = size_bytes + (uint64_t)((char *)pointer - (char *)first);
    void *device_pointer = NULL;

    (void)flags;
    if (acl->aclrtHostRegister == NULL || acl->aclrtHostUnregister == NULL) {
        return NPU_MISSING(error, "mem_register", "aclrtHostRegister", "CANN 7");
    }
    if (is_old_kernel(device->instance->host)) {
        return vendor_unsupported(error, "mem_register",
                                  "on Linux 5.10 and before CANN registers only memory of "
                                  "aclrtMallocHost(), which is pinned already");
    }
    size = (size + HOST_PAGE - 1) & ~(uint64_t)(HOST_PAGE - 1);
    return NPU_CHECK(device,
                     acl->aclrtHostRegister(first, size, ACL_HOST_REGISTER_MAPPED, &device_pointer),
                     error, "aclrtHostRegister(%p, %llu bytes)", first, (unsigned long long)size);
}

int32_t npu_host_unregister(ds_accel_plugin_device_t *device, void *pointer,
                            struct ds_accel_error *error)
{
    const struct acl_api *acl = NPU_ACL(device);

    if (acl->aclrtHostUnregister == NULL) {
        return NPU_MISSING(error, "mem_unregister", "aclrtHostUnregister", "CANN 7");
    }
    return NPU_CHECK(device, acl->aclrtHostUnregister(page_of(pointer)), error,
                     "aclrtHostUnregister(%p)", page_of(pointer));
}

/* ---- copies --------------------------------------------------------------------------------- */

static int acl_kind(uint32_t kind)
{
    switch (kind) {
    case DS_ACCEL_COPY_HOST_TO_HOST:
        return ACL_COPY_HOST_TO_HOST;
    case DS_ACCEL_COPY_HOST_TO_DEVICE:
        return ACL_COPY_HOST_TO_DEVICE;
    case DS_ACCEL_COPY_DEVICE_TO_HOST:
        return ACL_COPY_DEVICE_TO_HOST;
    default:
        return ACL_COPY_DEVICE_TO_DEVICE;
    }
}

int32_t npu_copy(ds_accel_plugin_device_t *device, void *destination, const void *source,
                 uint64_t size_bytes, uint32_t kind, struct ds_accel_error *error)
{
    return NPU_CHECK(
        device,
        NPU_ACL(device)->aclrtMemcpy(destination, size_bytes, source, size_bytes, acl_kind(kind)),
        error, "aclrtMemcpy(%llu bytes, kind %d, device %u)", (unsigned long long)size_bytes,
        acl_kind(kind), device->index);
}

/* Copies after the stream's queued work, and returns when the copy is complete. */
static int32_t copy_behind(ds_accel_plugin_device_t *device, void *stream, void *destination,
                           const void *source, uint64_t size_bytes, uint32_t kind,
                           struct ds_accel_error *error)
{
    int32_t status = npu_stream_synchronize(device, stream, error);

    return status != DS_ACCEL_OK ? status
                                 : npu_copy(device, destination, source, size_bytes, kind, error);
}

int32_t npu_copy_async(ds_accel_plugin_device_t *device, void *stream, void *destination,
                       const void *source, uint64_t size_bytes, uint32_t kind,
                       struct ds_accel_error *error)
{
    const struct acl_api *acl = NPU_ACL(device);
    uint32_t capturing = DS_ACCEL_CAPTURING_NO;
    acl_error code =
        acl->aclrtMemcpyAsync(destination, size_bytes, source, size_bytes, acl_kind(kind), stream);

    if ((code == ACL_RT_FEATURE_NOT_SUPPORT || code == ACL_RT_PARAM) &&
        kind != DS_ACCEL_COPY_DEVICE_TO_DEVICE &&
        npu_capture_status(device, stream, &capturing, error) != DS_ACCEL_ERR_DEVICE_LOST &&
        capturing == DS_ACCEL_CAPTURING_NO) {
        return copy_behind(device, stream, destination, source, size_bytes, kind, error);
    }
    return NPU_CHECK(device, code, error, "aclrtMemcpyAsync(%llu bytes, kind %d, device %u)",
                     (unsigned long long)size_bytes, acl_kind(kind), device->index);
}

int32_t npu_fill_async(ds_accel_plugin_device_t *device, void *stream, void *destination,
                       uint32_t pattern, uint32_t pattern_bytes, uint64_t count,
                       struct ds_accel_error *error)
{
    (void)pattern_bytes; /* fill_widths is 1, so pattern_bytes is always 1 */
    return NPU_CHECK(device,
                     NPU_ACL(device)->aclrtMemsetAsync(destination, count,
                                                       (int32_t)(pattern & 0xffu), count, stream),
                     error, "aclrtMemsetAsync(%llu bytes, device %u)", (unsigned long long)count,
                     device->index);
}

int32_t npu_memory_info(ds_accel_plugin_device_t *device, uint64_t *free_out, uint64_t *total_out,
                        struct ds_accel_error *error)
{
    int attribute = NPU_STATE(device)->memory_attribute;
    size_t free_bytes = 0;
    size_t total = 0;
    int32_t status = NPU_CHECK(device,
                               NPU_ACL(device)->aclrtGetMemInfo(attribute, &free_bytes, &total),
                               error, "aclrtGetMemInfo(%s, device %u)",
                               attribute == ACL_HBM ? "ACL_HBM_MEM" : "ACL_DDR_MEM", device->index);

    if (status == DS_ACCEL_OK) {
        *free_out = free_bytes;
        *total_out = total;
    }
    return status;
}

/* ---- sharing between processes: a handle is a key of 65 characters -------------------------- */

int32_t npu_ipc_export(ds_accel_plugin_device_t *device, void *base, uint64_t size_bytes,
                       void *handle, struct ds_accel_error *error)
{
    const struct acl_api *acl = NPU_ACL(device);

    if (acl->aclrtIpcMemGetExportKey == NULL || acl->aclrtIpcMemClose == NULL) {
        return NPU_MISSING(error, "ipc_memory_export", "aclrtIpcMemGetExportKey", "CANN 8");
    }
    /*
     * Only the smallest page size is checked here. If the memory has larger pages, CANN itself
     * rejects a size that is not a multiple of them.
     */
    if (((uintptr_t)base | size_bytes) % DEVICE_PAGE != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_UNSUPPORTED,
                           "ipc_memory_export: CANN shares whole pages of %u bytes, and this is "
                           "%llu bytes at %p",
                           DEVICE_PAGE, (unsigned long long)size_bytes, base);
    }
    memset(handle, 0, ACL_IPC_KEY_BYTES);
    return NPU_CHECK(device,
                     acl->aclrtIpcMemGetExportKey(base, size_bytes, handle, ACL_IPC_KEY_BYTES,
                                                  ACL_IPC_DISABLE_PID_VALIDATION),
                     error, "aclrtIpcMemGetExportKey(%p, %llu bytes)", base,
                     (unsigned long long)size_bytes);
}

/* Returns the key as a terminated text, even if another process overwrote its last byte. */
static const char *key_of(const void *handle, char key[ACL_IPC_KEY_BYTES + 1])
{
    memcpy(key, handle, ACL_IPC_KEY_BYTES);
    key[ACL_IPC_KEY_BYTES] = '\0';
    return key;
}

static int32_t close_key(ds_accel_plugin_device_t *device, const void *handle, const char *call,
                         struct ds_accel_error *error)
{
    const struct acl_api *acl = NPU_ACL(device);
    char key[ACL_IPC_KEY_BYTES + 1];

    if (acl->aclrtIpcMemClose == NULL) {
        return NPU_MISSING(error, call, "aclrtIpcMemClose", "CANN 8");
    }
    return NPU_CHECK(device, acl->aclrtIpcMemClose(key_of(handle, key)), error,
                     "aclrtIpcMemClose(device %u)", device->index);
}

int32_t npu_ipc_unexport(ds_accel_plugin_device_t *device, const void *handle,
                         struct ds_accel_error *error)
{
    return close_key(device, handle, "ipc_memory_unexport", error);
}

int32_t npu_ipc_open(ds_accel_plugin_device_t *device, const void *handle, uint64_t size_bytes,
                     void **base_out, struct ds_accel_error *error)
{
    const struct acl_api *acl = NPU_ACL(device);
    char key[ACL_IPC_KEY_BYTES + 1];

    (void)size_bytes;
    if (acl->aclrtIpcMemImportByKey == NULL) {
        return NPU_MISSING(error, "ipc_memory_open", "aclrtIpcMemImportByKey", "CANN 8");
    }
    return NPU_CHECK(device, acl->aclrtIpcMemImportByKey(base_out, key_of(handle, key), 0), error,
                     "aclrtIpcMemImportByKey(device %u)", device->index);
}

int32_t npu_ipc_close(ds_accel_plugin_device_t *device, const void *handle, void *base,
                      struct ds_accel_error *error)
{
    (void)base;
    return close_key(device, handle, "ipc_memory_close", error);
}
