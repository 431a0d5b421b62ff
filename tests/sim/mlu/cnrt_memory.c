/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A simulated CNRT: memory, copies, and memory of other processes. A handle of another process's
 * memory is a pointer: here it is a number that identifies a file in /dev/shm with the engine's 64
 * bytes.
 */
#include "sim_cnrt.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DEVICE_KINDS ((1u << SIM_DEVICE) | (1u << SIM_MANAGED))

SIM_EXPORT cnrtRet_t cnrtMemGetInfo(size_t *free, size_t *total)
{
    int device;
    uint32_t physical;
    uint64_t free_bytes;
    uint64_t total_bytes;
    cnrtRet_t code;

    BEGIN("cnrtMemGetInfo");
    code = cnrt_ready(&device, &physical);
    if (code == cnrtSuccess) {
        sim_memory_info(physical, &free_bytes, &total_bytes);
        *free = free_bytes;
        *total = total_bytes;
    }
    return code;
}

/* ---- memory of other processes -------------------------------------------------------------- */

struct exported {
    struct exported *next;
    void *base;
    uint64_t number;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct exported *exports;
static uint32_t last;

static void name_file(uint64_t number, char name[64])
{
    snprintf(name, 64, "/dev/shm/ds-accel-sim-mlu.%u.%llx", (unsigned)getuid(),
             (unsigned long long)number);
}

static void forget(struct exported **at)
{
    struct exported *gone = *at;
    char name[64];

    name_file(gone->number, name);
    unlink(name);
    *at = gone->next;
    free(gone);
}

/* Removes the handle of memory that is freed. */
static void forget_base(const void *base)
{
    pthread_mutex_lock(&lock);
    for (struct exported **at = &exports; *at != NULL;) {
        if ((*at)->base == base) {
            forget(at);
        } else {
            at = &(*at)->next;
        }
    }
    pthread_mutex_unlock(&lock);
}

__attribute__((destructor)) static void unload(void)
{
    while (exports != NULL && exports->number >> 24 == (uint64_t)getpid()) {
        forget(&exports);
    }
}

static bool write_handle(uint64_t number, const unsigned char handle[64])
{
    char name[64];
    int fd;
    bool is_written;

    name_file(number, name);
    fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return false;
    }
    is_written = write(fd, handle, 64) == 64;
    close(fd);
    if (!is_written) {
        unlink(name);
    }
    return is_written;
}

SIM_EXPORT cnrtRet_t cnrtAcquireMemHandle(void **handle, void *ptr)
{
    unsigned char bytes[64];
    struct exported *made;

    BEGIN("cnrtAcquireMemHandle");
    if (!sim_export(ptr, bytes)) {
        return cnrtErrorArgsInvalid;
    }
    made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return cnrtErrorSysNoMem;
    }
    pthread_mutex_lock(&lock);
    made->base = ptr;
    made->number = (uint64_t)getpid() << 24 | ++last;
    if (!write_handle(made->number, bytes)) {
        pthread_mutex_unlock(&lock);
        free(made);
        return cnrtErrorSysNoMem;
    }
    made->next = exports;
    exports = made;
    *handle = (void *)(uintptr_t)made->number;
    pthread_mutex_unlock(&lock);
    return cnrtSuccess;
}

SIM_EXPORT cnrtRet_t cnrtMapMemHandle(void **ptr, void *handle, int flags)
{
    int device;
    uint32_t physical;
    unsigned char bytes[64];
    uint64_t size;
    char name[64];
    void *address;
    ssize_t got = -1;
    int fd;
    cnrtRet_t code;

    BEGIN("cnrtMapMemHandle");
    code = cnrt_ready(&device, &physical);
    if (code != cnrtSuccess) {
        return code;
    }
    name_file((uint64_t)(uintptr_t)handle, name);
    fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        got = read(fd, bytes, sizeof(bytes));
        close(fd);
    }
    if (flags != 0 || got != (ssize_t)sizeof(bytes)) {
        return cnrtErrorArgsInvalid;
    }
    address = sim_import(physical, bytes, &size);
    if (address == NULL) {
        return cnrtErrorArgsInvalid;
    }
    *ptr = address;
    return cnrtSuccess;
}

SIM_EXPORT cnrtRet_t cnrtUnMapMemHandle(void *ptr)
{
    BEGIN("cnrtUnMapMemHandle");
    return sim_import_close(ptr) ? cnrtSuccess : cnrtErrorArgsInvalid;
}

/* ---- allocations ---------------------------------------------------------------------------- */

SIM_EXPORT cnrtRet_t cnrtMalloc(void **pPtr, size_t bytes)
{
    int device;
    uint32_t physical;
    void *pointer;
    cnrtRet_t code;

    BEGIN("cnrtMalloc");
    code = cnrt_ready(&device, &physical);
    if (code != cnrtSuccess) {
        return code;
    }
    if (bytes == 0) {
        return cnrtErrorArgsInvalid;
    }
    if (cnrt_is_forbidden(physical)) {
        return cnrtErrorQueueCaptureUnsupported;
    }
    pointer = sim_alloc(physical, bytes, 0, SIM_DEVICE, 0);
    if (pointer == NULL) {
        return cnrtErrorNoMem;
    }
    *pPtr = pointer;
    return cnrtSuccess;
}

SIM_EXPORT cnrtRet_t cnrtFree(void *ptr)
{
    BEGIN("cnrtFree");
    forget_base(ptr);
    sim_free(ptr, SIM_DEVICE, "cnrtFree");
    return cnrtSuccess;
}

SIM_EXPORT cnrtRet_t cnrtHostMalloc(void **pPtr, size_t bytes)
{
    int device;
    uint32_t physical;
    void *pointer;
    cnrtRet_t code;

    BEGIN("cnrtHostMalloc");
    code = cnrt_ready(&device, &physical);
    if (code != cnrtSuccess) {
        return code;
    }
    if (bytes == 0) {
        return cnrtErrorArgsInvalid;
    }
    pointer = sim_alloc(physical, bytes, 0, SIM_PINNED, 0);
    if (pointer == NULL) {
        return cnrtErrorSysNoMem;
    }
    *pPtr = pointer;
    return cnrtSuccess;
}

SIM_EXPORT cnrtRet_t cnrtFreeHost(void *ptr)
{
    BEGIN("cnrtFreeHost");
    sim_free(ptr, SIM_PINNED, "cnrtFreeHost");
    return cnrtSuccess;
}

/* ---- copies --------------------------------------------------------------------------------- */

static bool is_device(const void *address, size_t bytes)
{
    return sim_range_is(address, bytes, DEVICE_KINDS);
}

/*
 * Returns true for host memory, as far as the simulator can know: neither device memory, nor a
 * number used as an address.
 */
static bool is_host(const void *address, const char *call)
{
    struct sim_block block;

    if ((uintptr_t)address < 65536) {
        sim_misuse("%s: %p is no address of the host", call, address);
    }
    return !sim_find(address, &block) || block.kind != SIM_DEVICE;
}

static cnrtRet_t check_copy(const void *dst, const void *src, size_t bytes, int dir,
                            const char *call)
{
    bool from_device = dir == cnrtMemcpyDevToDev || dir == cnrtMemcpyDevToHost;
    bool to_device = dir == cnrtMemcpyDevToDev || dir == cnrtMemcpyHostToDev;

    if (bytes == 0) {
        return cnrtErrorArgsInvalid;
    }
    if (dir < 0 || dir > cnrtMemcpyNoDirection || dir == cnrtMemcpyPeerToPeer) {
        return cnrtErrorMemcpyDirectionInvalid;
    }
    if (dir == cnrtMemcpyNoDirection) {
        return (is_device(dst, bytes) || is_host(dst, call)) &&
                       (is_device(src, bytes) || is_host(src, call))
                   ? cnrtSuccess
                   : cnrtErrorArgsInvalid;
    }
    if (from_device ? !is_device(src, bytes) : !is_host(src, call)) {
        return cnrtErrorMemcpyDirectionInvalid;
    }
    if (to_device ? !is_device(dst, bytes) : !is_host(dst, call)) {
        return cnrtErrorMemcpyDirectionInvalid;
    }
    return cnrtSuccess;
}

SIM_EXPORT cnrtRet_t cnrtMemcpy(void *dst, void *src, size_t bytes, cnrtMemTransDir_t dir)
{
    int device;
    uint32_t physical;
    struct sim_stream *stream;
    cnrtRet_t code;
    int result;

    BEGIN("cnrtMemcpy");
    code = cnrt_ready(&device, &physical);
    if (code == cnrtSuccess) {
        code = check_copy(dst, src, bytes, (int)dir, "cnrtMemcpy");
    }
    if (code != cnrtSuccess) {
        return code;
    }
    if (cnrt_is_forbidden(physical)) {
        return cnrtErrorQueueCaptureUnsupported;
    }
    stream = sim_stream_create(physical, SIM_STREAM_NON_BLOCKING, 0);
    if (stream == NULL) {
        return cnrtErrorSysNoMem;
    }
    result = sim_submit_copy(stream, dst, src, bytes);
    if (result == 0) {
        result = sim_stream_synchronize(stream, UINT64_MAX);
    }
    sim_stream_destroy(stream);
    return cnrt_work(result, physical);
}

static cnrtRet_t copy_async(void *dst, void *src, size_t bytes, cnrtQueue_t queue,
                            cnrtMemTransDir_t dir, const char *call)
{
    struct queue *in;
    cnrtRet_t code = cnrt_queue(queue, call, &in);

    if (code == cnrtSuccess) {
        code = check_copy(dst, src, bytes, (int)dir, call);
    }
    if (code != cnrtSuccess) {
        return code;
    }
    return cnrt_work(sim_submit_copy(in->sim, dst, src, bytes), sim_stream_physical(in->sim));
}

/*
 * The queue comes before the direction. Version 6.14 has all three asynchronous copies; the first
 * is deprecated there. A library from the time of one of them lacks the later ones (and eventually
 * the earlier ones).
 */
SIM_EXPORT cnrtRet_t cnrtMemcpyAsync(void *dst, void *src, size_t bytes, cnrtQueue_t queue,
                                     cnrtMemTransDir_t dir)
{
    BEGIN("cnrtMemcpyAsync");
    return copy_async(dst, src, bytes, queue, dir, "cnrtMemcpyAsync");
}

SIM_EXPORT cnrtRet_t cnrtMemcpyAsync_V2(void *dst, void *src, size_t bytes, cnrtQueue_t queue,
                                        cnrtMemTransDir_t dir)
{
    BEGIN("cnrtMemcpyAsync_V2");
    return copy_async(dst, src, bytes, queue, dir, "cnrtMemcpyAsync_V2");
}

SIM_EXPORT cnrtRet_t cnrtMemcpyAsync_V3(void *dst, void *src, size_t bytes, cnrtQueue_t queue,
                                        cnrtMemTransDir_t dir)
{
    BEGIN("cnrtMemcpyAsync_V3");
    return copy_async(dst, src, bytes, queue, dir, "cnrtMemcpyAsync_V3");
}

static bool is_of(const void *address, size_t bytes, int device)
{
    struct sim_block block;

    return is_device(address, bytes) && sim_find(address, &block) &&
           (int32_t)block.physical == cnrt_physical(device);
}

SIM_EXPORT cnrtRet_t cnrtMemcpyPeerAsync(void *dst, int dstDev, void *src, int srcDev, size_t bytes,
                                         cnrtQueue_t queue)
{
    struct queue *in;
    cnrtRet_t code;

    BEGIN("cnrtMemcpyPeerAsync");
    code = cnrt_queue(queue, "cnrtMemcpyPeerAsync", &in);
    if (code != cnrtSuccess) {
        return code;
    }
    if (bytes == 0 || !is_of(dst, bytes, dstDev) || !is_of(src, bytes, srcDev)) {
        return cnrtErrorArgsInvalid;
    }
    return cnrt_work(sim_submit_copy(in->sim, dst, src, bytes), sim_stream_physical(in->sim));
}

SIM_EXPORT cnrtRet_t cnrtMemsetAsync(void *ptr, int value, size_t bytes, cnrtQueue_t queue)
{
    struct queue *in;
    unsigned char byte = (unsigned char)value;
    cnrtRet_t code;

    BEGIN("cnrtMemsetAsync");
    code = cnrt_queue(queue, "cnrtMemsetAsync", &in);
    if (code != cnrtSuccess) {
        return code;
    }
    if (bytes == 0 || value < 0 || value > 255 || !is_device(ptr, bytes)) {
        return cnrtErrorArgsInvalid;
    }
    return cnrt_work(sim_submit_fill(in->sim, ptr, &byte, 1, bytes), sim_stream_physical(in->sim));
}
