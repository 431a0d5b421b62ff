/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Memory between processes. Level Zero's handle is 64 bytes that stand for a file descriptor of the
 * process that made it. Ours adds the process: who opens it takes the descriptor from there with
 * pidfd_getfd(), which the kernel allows to processes of the user that may trace each other (see
 * kernel.yama.ptrace_scope), and puts it in the place of the other's number.
 *
 * The extension of 1.6 turns a handle into a descriptor and back. Without it the number is where
 * Intel's driver has it, in the first four bytes.
 */
#include "xpu.h"

#include <sys/syscall.h>
#include <unistd.h>

struct handle {
    uint32_t pid;
    int32_t fd;
    uint32_t is_converted; /* fd came from the extension, and goes back through it */
    uint32_t reserved;
    struct ze_ipc_handle vendor;
};
_Static_assert(sizeof(struct handle) == XPU_HANDLE_BYTES, "the size in backend_info");

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
        ze->zeMemGetIpcHandleFromFileDescriptorExp != NULL &&
        ze->zeMemGetFileDescriptorFromIpcHandleExp(state->context, ours.vendor, &fd) ==
            ZE_SUCCESS) {
        ours.fd = (int32_t)fd;
        ours.is_converted = 1;
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
        return DS_ACCEL_OK; /* before 1.6 the handle ends with the memory */
    }
    return XPU_CHECK(device, state->runtime->ze.zeMemPutIpcHandle(state->context, ours.vendor),
                     error, "zeMemPutIpcHandle");
}

/* A descriptor of another process as one of ours; -1 with errno. */
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

static ze_result make_vendor_handle(const struct xpu_state *state, const struct handle *ours,
                                    int32_t fd, struct ze_ipc_handle *vendor_out)
{
    if (ours->is_converted && state->runtime->ze.zeMemGetIpcHandleFromFileDescriptorExp != NULL) {
        return state->runtime->ze.zeMemGetIpcHandleFromFileDescriptorExp(state->context,
                                                                         (uint64_t)fd, vendor_out);
    }
    *vendor_out = ours->vendor;
    memcpy(vendor_out->data, &fd, sizeof(fd));
    return ZE_SUCCESS;
}

int32_t xpu_ipc_memory_open(ds_accel_plugin_device_t *device, const void *handle,
                            uint64_t size_bytes, void **base_out, struct ds_accel_error *error)
{
    const struct xpu_state *state = xpu_state(device);
    struct handle ours;
    struct ze_ipc_handle vendor;
    int taken = -1;
    ze_result result = ZE_SUCCESS;

    memcpy(&ours, handle, sizeof(ours));
    vendor = ours.vendor;
    if (ours.pid != (uint32_t)getpid()) {
        taken = take_descriptor(ours.pid, ours.fd);
        if (taken < 0) {
            return plugin_fail(error,
                               errno == EPERM    ? DS_ACCEL_ERR_PERMISSION
                               : errno == ENOSYS ? DS_ACCEL_ERR_UNSUPPORTED
                                                 : DS_ACCEL_ERR_INVALID,
                               "ipc_memory_open: pidfd_getfd(process %u, descriptor %d): %s",
                               ours.pid, ours.fd, strerror(errno));
        }
        result = make_vendor_handle(state, &ours, taken, &vendor);
    }
    if (result == ZE_SUCCESS) {
        result = state->runtime->ze.zeMemOpenIpcHandle(state->context, state->unit->handle, vendor,
                                                       0, base_out);
    }
    if (taken >= 0) {
        close(taken); /* what it stands for is mapped, or is not */
    }
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
