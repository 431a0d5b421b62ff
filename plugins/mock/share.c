/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Sharing of memory, events and dma-bufs between processes, which the option ipc enables.
 *
 * Shared data is in a memfd: a whole allocation of device memory, or the completion time of an
 * event, on a clock that all processes of the machine share. A handle contains the pid of the
 * process that has the memfd open, the descriptor's number and the file's identity. The importer
 * opens /proc/PID/fd/N, which the kernel permits to the same user, and checks that the file is the
 * same. A handle whose object was unexported or freed, or whose process has exited, is therefore
 * rejected, even if the pid or number was reused. The memfd exists as long as any process has it
 * open or mapped.
 *
 * Exporting memory makes a separate descriptor for each handle, which unexport and mem_free close.
 * A dma-buf is simulated by another descriptor of the memfd.
 */
#include "mock.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct mock_export {
    struct mock_export *next;
    uint64_t block_id;
    int fd;
};

struct mock_handle {
    char magic[8];
    int32_t pid;
    int32_t fd;
    uint64_t device; /* device and inode identify the file */
    uint64_t inode;
    uint64_t size_bytes;
    uint64_t offset_bytes; /* offset of the exported pointer */
    uint64_t reserved[2];
};

_Static_assert(sizeof(struct mock_handle) == MOCK_HANDLE_BYTES, "size of a handle");

struct mock_shared {
    atomic_uint_fast64_t done_ns; /* 0: never recorded */
};

static const char memory_magic[8] = "mockmem";
static const char event_magic[8] = "mockevt";

/* ---- files ---------------------------------------------------------------------------------- */

int mock_file_create(uint64_t size_bytes)
{
    int fd = memfd_create("ds_accel_mock", MFD_CLOEXEC);

    if (fd >= 0 && ftruncate(fd, (off_t)size_bytes) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/*
 * Maps a range of a file. Fails if the range exceeds the file, because an access after its end
 * would kill the process.
 */
static char *map_file(int fd, uint64_t offset_bytes, uint64_t size_bytes)
{
    struct stat info;
    void *mapping;

    if (size_bytes == 0 || fstat(fd, &info) != 0 || info.st_size < 0 ||
        offset_bytes > (uint64_t)info.st_size ||
        size_bytes > (uint64_t)info.st_size - offset_bytes) {
        return NULL;
    }
    mapping =
        mmap(NULL, (size_t)size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset_bytes);
    return mapping == MAP_FAILED ? NULL : mapping;
}

static int32_t check_ipc(const ds_accel_plugin_device_t *device, const char *slot,
                         struct ds_accel_error *error)
{
    if (!device->instance->options.ipc) {
        return plugin_fail(error, DS_ACCEL_ERR_UNSUPPORTED,
                           "%s: option ipc is off: nothing is shared between processes", slot);
    }
    return DS_ACCEL_OK;
}

/* Fills a handle for a descriptor. Returns 0, or -1 with errno. */
static int fill_handle(struct mock_handle *handle, const char *magic, int fd)
{
    struct stat info;

    memset(handle, 0, sizeof(*handle));
    if (fstat(fd, &info) != 0) {
        return -1;
    }
    memcpy(handle->magic, magic, sizeof(handle->magic));
    handle->pid = getpid();
    handle->fd = fd;
    handle->device = (uint64_t)info.st_dev;
    handle->inode = (uint64_t)info.st_ino;
    return 0;
}

static int is_file_of(const struct stat *info, const struct mock_handle *handle)
{
    return S_ISREG(info->st_mode) && (uint64_t)info->st_dev == handle->device &&
           (uint64_t)info->st_ino == handle->inode;
}

static int32_t read_handle(const void *bytes, uint32_t handle_bytes, const char *magic,
                           const char *slot, struct mock_handle *handle_out,
                           struct ds_accel_error *error)
{
    if (bytes == NULL || handle_bytes != sizeof(*handle_out)) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: handle is NULL or has %u bytes; expected %zu", slot, handle_bytes,
                           sizeof(*handle_out));
    }
    memcpy(handle_out, bytes, sizeof(*handle_out));
    if (memcmp(handle_out->magic, magic, sizeof(handle_out->magic)) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: the bytes are no such handle", slot);
    }
    return DS_ACCEL_OK;
}

/*
 * Opens the file of a handle. The file is checked before it is opened, because opening an unrelated
 * file could have side effects. The path does not begin with machine_root (the directory below
 * which the files of the machine are read), because it refers to a process of the running machine.
 */
static int32_t open_handle(const struct mock_handle *handle, const char *slot, int *fd_out,
                           struct ds_accel_error *error)
{
    struct stat info;
    char path[64];
    int cause = 0; /* the errno of the call that failed; 0: the file is another one */
    int fd = -1;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", handle->pid, handle->fd);
    if (stat(path, &info) != 0) {
        cause = errno;
    } else if (is_file_of(&info, handle)) {
        fd = open(path, O_RDWR | O_CLOEXEC);
        cause = fd < 0 ? errno : 0;
    }
    if (fd >= 0 && fstat(fd, &info) == 0 && is_file_of(&info, handle)) {
        *fd_out = fd;
        return DS_ACCEL_OK;
    }
    if (fd >= 0) {
        close(fd);
    }
    if (cause == EACCES || cause == EPERM) {
        errno = cause;
        return plugin_fail(error, DS_ACCEL_ERR_PERMISSION, "%s: %s: %m", slot, path);
    }
    return plugin_fail(error, DS_ACCEL_ERR_NOT_FOUND,
                       "%s: process %d has ended, or shares this no more", slot, handle->pid);
}

/* ---- memory: export ------------------------------------------------------------------------- */

/* The shared allocation that contains the whole range, or NULL. Caller holds instance->lock. */
static struct mock_block *find_shared(const ds_accel_plugin_device_t *device, const void *pointer,
                                      uint64_t size_bytes)
{
    struct mock_block *block = mock_block_find(device->instance, pointer);
    uint64_t offset;

    if (block == NULL || block->source != MOCK_SOURCE_FILE || block->device != device) {
        return NULL;
    }
    offset = (uintptr_t)pointer - (uintptr_t)block->base;
    return size_bytes <= block->size_bytes - offset ? block : NULL;
}

static int32_t fail_foreign(const char *slot, const void *pointer, struct ds_accel_error *error)
{
    return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                       "%s: %p is not in live memory of mem_alloc() of this device", slot, pointer);
}

/* Exports a block. Returns 0 or -1. Caller holds instance->lock. */
static int export_block(ds_accel_plugin_device_t *device, const struct mock_block *block,
                        const void *pointer, struct mock_handle *handle_out)
{
    struct mock_export *entry = malloc(sizeof(*entry));

    if (entry == NULL) {
        return -1;
    }
    entry->fd = fcntl(block->fd, F_DUPFD_CLOEXEC, 3);
    if (entry->fd < 0) {
        free(entry);
        return -1;
    }
    if (fill_handle(handle_out, memory_magic, entry->fd) != 0) {
        close(entry->fd);
        free(entry);
        return -1;
    }
    handle_out->size_bytes = block->size_bytes;
    handle_out->offset_bytes = (uintptr_t)pointer - (uintptr_t)block->base;
    entry->block_id = block->id;
    entry->next = device->exports;
    device->exports = entry;
    return 0;
}

static int32_t mock_ipc_memory_export(ds_accel_plugin_device_t *device, void *pointer, void *handle,
                                      uint32_t handle_bytes, struct ds_accel_error *error)
{
    const char *slot = "ipc_memory_export";
    struct mock_handle made = {0};
    const struct mock_block *block;
    int failed = 0;
    int32_t status = mock_enter_device(device, slot, error);

    if (status == DS_ACCEL_OK) {
        status = check_ipc(device, slot, error);
    }
    if (status < 0) {
        return status;
    }
    if (handle == NULL || handle_bytes != sizeof(made)) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: handle is NULL or has %u bytes; expected %zu", slot, handle_bytes,
                           sizeof(made));
    }
    pthread_mutex_lock(&device->instance->lock);
    block = find_shared(device, pointer, 1);
    failed = block != NULL && export_block(device, block, pointer, &made) != 0;
    pthread_mutex_unlock(&device->instance->lock);
    if (block == NULL) {
        return fail_foreign(slot, pointer, error);
    }
    if (failed) {
        return plugin_fail(error, DS_ACCEL_ERR_LIMIT, "%s: no descriptor for the handle: %m", slot);
    }
    memcpy(handle, &made, sizeof(made));
    return DS_ACCEL_OK;
}

static int32_t mock_ipc_memory_unexport(ds_accel_plugin_device_t *device, const void *handle,
                                        uint32_t handle_bytes, struct ds_accel_error *error)
{
    const char *slot = "ipc_memory_unexport";
    struct mock_export **link;
    struct mock_export *found;
    struct mock_handle given = {0};
    int32_t status = mock_enter_device(device, slot, error);

    if (status == DS_ACCEL_OK) {
        status = check_ipc(device, slot, error);
    }
    if (status == DS_ACCEL_OK) {
        status = read_handle(handle, handle_bytes, memory_magic, slot, &given, error);
    }
    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&device->instance->lock);
    for (link = &device->exports; *link != NULL; link = &(*link)->next) {
        if ((*link)->fd == given.fd && given.pid == getpid()) {
            break;
        }
    }
    found = *link;
    if (found != NULL) {
        *link = found->next;
        close(found->fd);
    }
    pthread_mutex_unlock(&device->instance->lock);
    free(found);
    if (found == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: this device has no such export, or withdrew it before", slot);
    }
    return DS_ACCEL_OK;
}

void mock_share_forget(ds_accel_plugin_device_t *device, uint64_t block_id)
{
    struct mock_export **link = &device->exports;

    while (*link != NULL) {
        struct mock_export *entry = *link;

        if (entry->block_id != block_id) {
            link = &entry->next;
            continue;
        }
        *link = entry->next;
        close(entry->fd);
        free(entry);
    }
}

/* ---- memory: import ------------------------------------------------------------------------- */

/*
 * Adds a mapping of imported memory to the register of addresses; if that fails, unmaps the memory.
 * The program's pointer to the memory is base plus offset_bytes.
 */
static int32_t enter_import(ds_accel_plugin_device_t *device, char *base, uint64_t size_bytes,
                            uint64_t offset_bytes, uint32_t source, const char *slot,
                            struct ds_accel_error *error)
{
    const struct mock_block block = {.base = base,
                                     .size_bytes = size_bytes,
                                     .kind = DS_ACCEL_POINTER_DEVICE,
                                     .source = source,
                                     .access = DS_ACCEL_VMEM_ACCESS_READ_WRITE,
                                     .device = device,
                                     .fd = -1,
                                     .offset_bytes = offset_bytes};
    int failed;

    pthread_mutex_lock(&device->instance->lock);
    failed = mock_block_insert(device->instance, &block);
    pthread_mutex_unlock(&device->instance->lock);
    if (failed) {
        munmap(base, (size_t)size_bytes);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "%s: no memory for the register", slot);
    }
    return DS_ACCEL_OK;
}

/* Imports a range of a file. The mapping begins at the page that contains offset_bytes. */
static int32_t import_file(ds_accel_plugin_device_t *device, int fd, uint64_t offset_bytes,
                           uint64_t size_bytes, uint32_t source, const char *slot,
                           void **pointer_out, struct ds_accel_error *error)
{
    const uint64_t inside = offset_bytes % (uint64_t)sysconf(_SC_PAGESIZE);
    char *base = NULL;
    int32_t status;

    if (size_bytes > 0 && size_bytes <= UINT64_MAX - inside) {
        base = map_file(fd, offset_bytes - inside, size_bytes + inside);
    }
    if (base == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: %llu bytes at %llu of descriptor %d can't be mapped", slot,
                           (unsigned long long)size_bytes, (unsigned long long)offset_bytes, fd);
    }
    status = enter_import(device, base, size_bytes + inside, inside, source, slot, error);
    if (status == DS_ACCEL_OK) {
        *pointer_out = base + inside;
    }
    return status;
}

static int32_t mock_ipc_memory_open(ds_accel_plugin_device_t *device, const void *handle,
                                    uint32_t handle_bytes, uint32_t flags, void **pointer_out,
                                    struct ds_accel_error *error)
{
    const char *slot = "ipc_memory_open";
    struct mock_handle given = {0};
    char *base;
    int fd = -1;
    int32_t status = mock_enter_device(device, slot, error);

    if (status == DS_ACCEL_OK) {
        status = check_ipc(device, slot, error);
    }
    if (status < 0) {
        return status;
    }
    if (pointer_out == NULL || flags != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: pointer_out is NULL or flags are %#x",
                           slot, flags);
    }
    status = read_handle(handle, handle_bytes, memory_magic, slot, &given, error);
    if (status == DS_ACCEL_OK) {
        status = open_handle(&given, slot, &fd, error);
    }
    if (status < 0) {
        return status;
    }
    base = given.size_bytes > given.offset_bytes ? map_file(fd, 0, given.size_bytes) : NULL;
    close(fd);
    if (base == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID, "%s: the memory can't be mapped", slot);
    }
    status = enter_import(device, base, given.size_bytes, given.offset_bytes, MOCK_SOURCE_IMPORT,
                          slot, error);
    if (status == DS_ACCEL_OK) {
        *pointer_out = base + given.offset_bytes;
    }
    return status;
}

/*
 * Unmaps memory that ipc_memory_open or dmabuf_import mapped, and removes it from the register of
 * addresses.
 */
static int32_t end_import(ds_accel_plugin_device_t *device, const void *pointer, uint32_t source,
                          const char *slot, struct ds_accel_error *error)
{
    struct mock_block *block;
    int is_ours;
    int32_t status = mock_enter_device(device, slot, error);

    if (status == DS_ACCEL_OK) {
        status = check_ipc(device, slot, error);
    }
    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&device->instance->lock);
    block = mock_block_find(device->instance, pointer);
    is_ours = block != NULL && block->source == source && block->device == device &&
              block->base + block->offset_bytes == (const char *)pointer;
    if (is_ours) {
        munmap(block->base, (size_t)block->size_bytes);
        mock_block_remove(device->instance, block);
    }
    pthread_mutex_unlock(&device->instance->lock);
    if (!is_ours) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: %p was not opened on device %u, or closed before", slot, pointer,
                           device->index);
    }
    return DS_ACCEL_OK;
}

static int32_t mock_ipc_memory_close(ds_accel_plugin_device_t *device, void *pointer,
                                     struct ds_accel_error *error)
{
    return end_import(device, pointer, MOCK_SOURCE_IMPORT, "ipc_memory_close", error);
}

/* ---- dma-bufs ------------------------------------------------------------------------------- */

static int32_t mock_dmabuf_export(ds_accel_plugin_device_t *device, void *pointer,
                                  uint64_t size_bytes, uint32_t flags, int32_t *fd_out,
                                  uint64_t *offset_bytes_out, struct ds_accel_error *error)
{
    const char *slot = "dmabuf_export";
    const struct mock_block *block;
    uint64_t offset = 0;
    int fd = -1;
    int32_t status = mock_enter_device(device, slot, error);

    if (status == DS_ACCEL_OK) {
        status = check_ipc(device, slot, error);
    }
    if (status < 0) {
        return status;
    }
    if (fd_out == NULL || offset_bytes_out == NULL || size_bytes == 0 || flags != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: fd_out or offset_bytes_out is NULL, size 0 or flags not 0", slot);
    }
    pthread_mutex_lock(&device->instance->lock);
    block = find_shared(device, pointer, size_bytes);
    if (block != NULL) {
        fd = fcntl(block->fd, F_DUPFD_CLOEXEC, 3);
        offset = (uintptr_t)pointer - (uintptr_t)block->base;
    }
    pthread_mutex_unlock(&device->instance->lock);
    if (block == NULL) {
        return fail_foreign(slot, pointer, error);
    }
    if (fd < 0) {
        return plugin_fail(error, DS_ACCEL_ERR_LIMIT, "%s: no descriptor: %m", slot);
    }
    *fd_out = fd;
    *offset_bytes_out = offset;
    return DS_ACCEL_OK;
}

static int32_t mock_dmabuf_import(ds_accel_plugin_device_t *device, int32_t fd,
                                  uint64_t offset_bytes, uint64_t size_bytes, void **pointer_out,
                                  struct ds_accel_error *error)
{
    const char *slot = "dmabuf_import";
    int32_t status = mock_enter_device(device, slot, error);

    if (status == DS_ACCEL_OK) {
        status = check_ipc(device, slot, error);
    }
    if (status < 0) {
        return status;
    }
    if (pointer_out == NULL) {
        return mock_null(error, slot, "pointer_out");
    }
    return import_file(device, fd, offset_bytes, size_bytes, MOCK_SOURCE_DMABUF, slot, pointer_out,
                       error);
}

static int32_t mock_dmabuf_release(ds_accel_plugin_device_t *device, void *pointer,
                                   struct ds_accel_error *error)
{
    return end_import(device, pointer, MOCK_SOURCE_DMABUF, "dmabuf_release", error);
}

/* ---- events --------------------------------------------------------------------------------- */

/*
 * Makes the mark store its time in a shared file: in fd, a file that another process created, or in
 * a new file if fd is -1. Takes ownership of fd. Returns 0, or -1 on failure.
 */
static int share_mark(struct mock_mark *mark, int fd)
{
    fd = fd >= 0 ? fd : mock_file_create(sizeof(struct mock_shared));
    if (fd < 0) {
        return -1;
    }
    mark->shared = (struct mock_shared *)(void *)map_file(fd, 0, sizeof(*mark->shared));
    if (mark->shared == NULL) {
        close(fd);
        return -1;
    }
    mark->fd = fd;
    return 0;
}

int mock_mark_share(struct mock_mark *mark)
{
    return share_mark(mark, -1);
}

void mock_mark_unshare(struct mock_mark *mark)
{
    if (mark->shared != NULL) {
        munmap(mark->shared, sizeof(*mark->shared));
        close(mark->fd);
    }
}

void mock_mark_publish(struct mock_mark *mark)
{
    if (mark->shared != NULL) {
        atomic_store(&mark->shared->done_ns, mark->done_ns);
    }
}

void mock_mark_refresh(struct mock_mark *mark)
{
    if (mark->shared != NULL) {
        mark->done_ns = atomic_load(&mark->shared->done_ns);
        mark->recorded = mark->done_ns != 0;
    }
}

static int32_t mock_ipc_event_export(ds_accel_plugin_event_t *event, void *handle,
                                     uint32_t handle_bytes, struct ds_accel_error *error)
{
    const char *slot = "ipc_event_export";
    struct mock_handle made = {0};
    int32_t status = mock_enter_event(event, slot, error);

    if (status == DS_ACCEL_OK) {
        status = check_ipc(event->device, slot, error);
    }
    if (status < 0) {
        return status;
    }
    if (handle == NULL || handle_bytes != sizeof(made) || event->mark->shared == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_INVALID,
                           "%s: handle is NULL or has %u bytes, expected %zu, or the event is not "
                           "DS_ACCEL_EVENT_INTERPROCESS",
                           slot, handle_bytes, sizeof(made));
    }
    if (fill_handle(&made, event_magic, event->mark->fd) != 0) {
        return plugin_fail(error, DS_ACCEL_ERR_DRIVER, "%s: %m", slot);
    }
    memcpy(handle, &made, sizeof(made));
    return DS_ACCEL_OK;
}

static int32_t mock_ipc_event_open(ds_accel_plugin_device_t *device, const void *handle,
                                   uint32_t handle_bytes, ds_accel_plugin_event_t **event_out,
                                   struct ds_accel_error *error)
{
    const char *slot = "ipc_event_open";
    ds_accel_plugin_event_t *event;
    struct mock_handle given = {0};
    int fd = -1;
    int32_t status = mock_enter_device(device, slot, error);

    if (status == DS_ACCEL_OK) {
        status = check_ipc(device, slot, error);
    }
    if (status < 0) {
        return status;
    }
    if (event_out == NULL) {
        return mock_null(error, slot, "event_out");
    }
    status = read_handle(handle, handle_bytes, event_magic, slot, &given, error);
    if (status == DS_ACCEL_OK) {
        status = open_handle(&given, slot, &fd, error);
    }
    if (status < 0) {
        return status;
    }
    event = mock_event_make(device, DS_ACCEL_EVENT_INTERPROCESS, NULL);
    if (event == NULL) {
        close(fd);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "%s: no memory", slot);
    }
    if (share_mark(event->mark, fd) != 0) {
        free(event->mark);
        free(event);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "%s: the event can't be mapped", slot);
    }
    *event_out = event;
    return DS_ACCEL_OK;
}

void mock_share_fill(struct ds_accel_plugin *table)
{
    table->ipc_memory_export = mock_ipc_memory_export;
    table->ipc_memory_unexport = mock_ipc_memory_unexport;
    table->ipc_memory_open = mock_ipc_memory_open;
    table->ipc_memory_close = mock_ipc_memory_close;
    table->ipc_event_export = mock_ipc_event_export;
    table->ipc_event_open = mock_ipc_event_open;
    table->dmabuf_export = mock_dmabuf_export;
    table->dmabuf_import = mock_dmabuf_import;
    table->dmabuf_release = mock_dmabuf_release;
}
