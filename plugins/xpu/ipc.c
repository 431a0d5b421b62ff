/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Memory shared between processes. Level Zero's handle is 64 bytes, whose first eight contain a
 * descriptor of the process that created the handle. What the handle means in another process
 * depends on Intel's driver:
 *
 *      newer drivers   The handle also contains the process id, and the driver fetches the
 *                      descriptor from that process. A handle whose descriptor was replaced is
 *                      treated as an older handle.
 *      older drivers   The descriptor must belong to the process that opens the handle. An
 *                      unchanged handle would open whatever object has the same number in that
 *                      process.
 *
 * The plugin's handle therefore contains the process id in addition to the driver's handle. If the
 * driver's handle contains that process id too, or this process created the handle, the plugin
 * opens it unchanged. Otherwise, or if the driver fails to open a handle of another process, the
 * plugin copies the descriptor from the process with pidfd_getfd(), which the kernel permits
 * between processes of a user that may trace each other (see kernel.yama.ptrace_scope), and writes
 * it into the handle.
 *
 * zeMemGetIpcHandleFromFileDescriptorExp() is of no use here: since April 2023 it succeeds only for
 * handles that its own process has exported.
 */
#include "xpu.h"

#include <sys/syscall.h>
#include <unistd.h>

struct handle {
    uint32_t pid;
    int32_t fd;
    uint32_t reserved[2];
    struct ze_ipc_handle vendor;
};
_Static_assert(sizeof(struct handle) == XPU_HANDLE_BYTES, "the size in backend_info");

/*
 * Offset of the process id in the handle, after the descriptor and the offset in a pool; in older
 * handles this field is a kind of memory with the value 0.
 */
#define PROCESS_PLACE 16u

static int names_its_process(const struct handle *ours)
{
    uint32_t process;

    memcpy(&process, ours->vendor.data + PROCESS_PLACE, sizeof(process));
    return process == ours->pid;
}

int32_t xpu_ipc_memory_export(ds_accel_plugin_device_t *device, void *base, uint64_t size_bytes,
                              void *handle, struct ds_accel_error *error)
{
    const struct xpu_state *state = xpu_state(device);
    const struct ze_api *ze = &state->runtime->ze;
    struct handle ours = {.pid = (uint32_t)getpid()};
    uint64_t fd = 0;
    ze_result result = ze->zeMemGetIpcHandle(state->context, base, &ours.vendor);

    if (result != ZE_SUCCESS) {
        return XPU_CHECK(device, result, error, "zeMemGetIpcHandle(%p, %llu bytes)", base,
                         (unsigned long long)size_bytes);
    }
    memcpy(&ours.fd, ours.vendor.data, sizeof(ours.fd));
    if (ze->zeMemGetFileDescriptorFromIpcHandleExp != NULL &&
        ze->zeMemGetFileDescriptorFromIpcHandleExp(state->context, ours.vendor, &fd) ==
            ZE_SUCCESS) {
        ours.fd = (int32_t)fd;
    }
    memcpy(handle, &ours, sizeof(ours));
    return DS_ACCEL_OK;
}

int32_t xpu_ipc_memory_unexport(ds_accel_plugin_device_t *device, const void *handle,
                                struct ds_accel_error *error)
{
    const struct xpu_state *state = xpu_state(device);
    struct handle ours;

    memcpy(&ours, handle, sizeof(ours));
    if (state->runtime->ze.zeMemPutIpcHandle == NULL) {
        return DS_ACCEL_OK; /* before 1.6 the handle is valid until the memory is freed */
    }
    return XPU_CHECK(device, state->runtime->ze.zeMemPutIpcHandle(state->context, ours.vendor),
                     error, "zeMemPutIpcHandle");
}

/*
 * Copies a descriptor of another process into this process, and returns the copy; -1: failure, with
 * errno set.
 */
static int take_descriptor(uint32_t pid, int32_t fd)
{
    int process = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    int taken;
    int saved;

    if (process < 0) {
        return -1;
    }
    taken = (int)syscall(SYS_pidfd_getfd, process, fd, 0);
    saved = errno;
    close(process);
    errno = saved;
    return taken;
}

/*
 * Returns the handle with this process's descriptor, and with this process's id if the handle
 * contains a process id: the first drivers with such handles always fetch the descriptor from the
 * process in the handle.
 */
static struct ze_ipc_handle with_descriptor(const struct handle *ours, int32_t fd)
{
    const uint64_t number = (uint64_t)fd;
    const uint32_t process = (uint32_t)getpid();
    struct ze_ipc_handle vendor = ours->vendor;

    memcpy(vendor.data, &number, sizeof(number));
    if (names_its_process(ours)) {
        memcpy(vendor.data + PROCESS_PLACE, &process, sizeof(process));
    }
    return vendor;
}

int32_t xpu_ipc_memory_open(ds_accel_plugin_device_t *device, const void *handle,
                            uint64_t size_bytes, void **base_out, struct ds_accel_error *error)
{
    const struct xpu_state *state = xpu_state(device);
    const struct ze_api *ze = &state->runtime->ze;
    ze_result result = ZE_SUCCESS;
    struct handle ours;
    int taken;

    memcpy(&ours, handle, sizeof(ours));
    if (names_its_process(&ours) || ours.pid == (uint32_t)getpid()) {
        result =
            ze->zeMemOpenIpcHandle(state->context, state->unit->handle, ours.vendor, 0, base_out);
        if (result == ZE_SUCCESS || ours.pid == (uint32_t)getpid()) {
            return XPU_CHECK(device, result, error, "zeMemOpenIpcHandle(%llu bytes, device %u)",
                             (unsigned long long)size_bytes, device->index);
        }
    }
    taken = take_descriptor(ours.pid, ours.fd);
    if (taken < 0) {
        return plugin_fail(error,
                           errno == EPERM    ? DS_ACCEL_ERR_PERMISSION
                           : errno == ENOSYS ? DS_ACCEL_ERR_UNSUPPORTED
                                             : DS_ACCEL_ERR_INVALID,
                           "ipc_memory_open: pidfd_getfd(process %u, descriptor %d): %s", ours.pid,
                           ours.fd, strerror(errno));
    }
    result = ze->zeMemOpenIpcHandle(state->context, state->unit->handle,
                                    with_descriptor(&ours, taken), 0, base_out);
    close(taken); /* the driver has mapped the memory, or failed */
    return XPU_CHECK(device, result, error, "zeMemOpenIpcHandle(%llu bytes, device %u)",
                     (unsigned long long)size_bytes, device->index);
}

int32_t xpu_ipc_memory_close(ds_accel_plugin_device_t *device, const void *handle, void *base,
                             struct ds_accel_error *error)
{
    const struct xpu_state *state = xpu_state(device);

    (void)handle;
    return XPU_CHECK(device, state->runtime->ze.zeMemCloseIpcHandle(state->context, base), error,
                     "zeMemCloseIpcHandle(%p)", base);
}
