/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * libcuda.so.1, simulated: start, devices, contexts.
 *
 * cuInit determines the visible devices: the order (CUDA_DEVICE_ORDER, by default the machine's
 * "order", by default fastest first), then CUDA_VISIBLE_DEVICES. A device divided into MIG parts is
 * never used whole; a part is chosen by its UUID and is then the only device of the process.
 */
#include "cuda_abi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define MAX_DEVICES 64
#define STACK_DEPTH 32

static struct {
    pthread_mutex_t lock; /* guards the start and the contexts' counts */
    atomic_bool is_started;
    atomic_bool is_poisoned; /* set in a child of a process that had called cuInit */
    uint32_t visible[MAX_DEVICES];
    uint32_t count;
    struct CUctx_st contexts[MAX_DEVICES];
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The current context of a thread is the top of its stack. */
static _Thread_local struct {
    CUcontext contexts[STACK_DEPTH];
    int depth;
} stack;

static _Thread_local struct sim_stream *own_streams[MAX_DEVICES];
_Thread_local int cuda_capture_mode; /* this thread's mode: 0 global, 1 thread-local, 2 relaxed */

/* ---- checks at the start of functions ------------------------------------------------------- */

/* Begins a call. In a child that cannot use the driver, the engine is not called at all. */
static int64_t enter(const char *call)
{
    int64_t code;

    if (atomic_load(&driver.is_poisoned)) {
        return NOT_INITIALIZED;
    }
    code = sim_enter(call);
    if (!atomic_load(&driver.is_started)) {
        sim_shut_down(); /* before cuInit: a child may start the driver */
    }
    return code;
}

CUresult cuda_enter(const char *call)
{
    int64_t code = enter(call);

    if (code != 0) {
        return (CUresult)code;
    }
    if (!atomic_load(&driver.is_started)) {
        return NOT_INITIALIZED;
    }
    return sim_is_worker() ? NOT_PERMITTED : OK;
}

CUresult cuda_lost_code(void)
{
    return (CUresult)sim_vendor_number("lost_code", LAUNCH_FAILED);
}

static bool is_alive(CUcontext context)
{
    bool alive;

    pthread_mutex_lock(&driver.lock);
    alive = context->retain_count > 0;
    pthread_mutex_unlock(&driver.lock);
    return alive;
}

CUresult cuda_enter_context(const char *call, CUcontext *context_out)
{
    CUresult code = cuda_enter(call);

    if (code != OK) {
        return code;
    }
    *context_out = stack.depth > 0 ? stack.contexts[stack.depth - 1] : NULL;
    if (*context_out == NULL) {
        return INVALID_CONTEXT;
    }
    if (!is_alive(*context_out)) {
        return CONTEXT_IS_DESTROYED;
    }
    return sim_is_lost((*context_out)->physical) ? cuda_lost_code() : OK;
}

bool cuda_enter_release(const char *call, CUcontext *context_out, CUresult *code_out)
{
    int64_t scripted = enter(call);

    *code_out = scripted != 0 ? (CUresult)scripted : NOT_INITIALIZED;
    if (!atomic_load(&driver.is_started) || atomic_load(&driver.is_poisoned)) {
        return false;
    }
    *code_out = sim_is_worker() ? NOT_PERMITTED : (CUresult)scripted;
    if (sim_is_worker() || context_out == NULL) {
        return !sim_is_worker();
    }
    *context_out = stack.depth > 0 ? stack.contexts[stack.depth - 1] : NULL;
    if (*context_out == NULL || !is_alive(*context_out)) {
        *code_out = *context_out == NULL ? INVALID_CONTEXT : CONTEXT_IS_DESTROYED;
        return false;
    }
    if (*code_out == OK && sim_is_lost((*context_out)->physical)) {
        *code_out = cuda_lost_code();
    }
    return true;
}

bool cuda_is_device(CUdevice device, uint32_t *physical_out)
{
    if (device < 0 || (uint32_t)device >= driver.count) {
        return false;
    }
    *physical_out = driver.visible[device];
    return true;
}

CUresult cuda_enter_device(const char *call, CUdevice device, uint32_t *physical_out)
{
    CUresult code = cuda_enter(call);

    if (code == OK && !cuda_is_device(device, physical_out)) {
        return INVALID_DEVICE;
    }
    return code;
}

CUcontext cuda_context_of(uint32_t physical)
{
    return &driver.contexts[physical];
}

int cuda_ordinal_of(uint32_t physical)
{
    for (uint32_t i = 0; i < driver.count; i++) {
        if (driver.visible[i] == physical) {
            return (int)i;
        }
    }
    return -1;
}

struct sim_stream *cuda_stream(CUstream stream, CUcontext context, const char *call)
{
    if (stream == NULL || stream == STREAM_LEGACY) {
        return context->legacy;
    }
    if (stream == STREAM_PER_THREAD) {
        if (own_streams[context->physical] == NULL) {
            own_streams[context->physical] = sim_stream_create(context->physical, 0, 0);
        }
        return own_streams[context->physical];
    }
    sim_handle_check(stream, "stream", call);
    return (struct sim_stream *)stream;
}

CUresult cuda_forbidden(CUcontext context)
{
    bool forbidden = cuda_capture_mode == 0   ? sim_capture_is_strict()
                     : cuda_capture_mode == 1 ? sim_capture_is_own()
                                              : false;

    if (!forbidden) {
        return OK;
    }
    sim_capture_forbid(context->physical);
    return STREAM_CAPTURE_UNSUPPORTED;
}

bool cuda_is_implicit(CUcontext context, CUstream stream)
{
    return (stream == NULL || stream == STREAM_LEGACY) &&
           sim_capture_is_blocking(context->physical);
}

CUresult cuda_implicit(CUcontext context, CUstream stream)
{
    if (!cuda_is_implicit(context, stream)) {
        return OK;
    }
    sim_capture_break_blocking(context->physical);
    return STREAM_CAPTURE_IMPLICIT;
}

CUresult cuda_submitted(const struct sim_stream *stream, int status)
{
    if (status == 0) {
        return OK;
    }
    return sim_capture_status(stream) != SIM_CAPTURE_NONE ? STREAM_CAPTURE_INVALIDATED
                                                          : cuda_lost_code();
}

/* ---- visible devices ------------------------------------------------------------------------ */

static bool is_usable(uint32_t physical)
{
    const struct sim_device *device = sim_device_at(physical);

    if (device->is_partition) {
        device = sim_device_at((uint32_t)device->parent);
    }
    return sim_number(device, "permission", 1) != 0;
}

static uint32_t first_part(uint32_t whole)
{
    uint32_t count = sim_device_count("cuda");

    for (uint32_t i = whole + 1; i < count; i++) {
        if (sim_device_at(i)->parent == (int32_t)whole) {
            return i;
        }
    }
    return whole;
}

/* Returns the index in order[] of the device that a token selects by number, by UUID or by an
 * unambiguous beginning of a UUID; -1: no device. */
static int64_t find_token(const char *token, const uint32_t *order, uint32_t count)
{
    uint32_t all = sim_device_count("cuda");
    int64_t found = -1;
    char *end;
    unsigned long index = strtoul(token, &end, 10);

    if (token[0] >= '0' && token[0] <= '9') {
        if (*end != '\0' || index >= count) {
            return -1;
        }
        return sim_device_at(order[index])->is_partitioned ? first_part(order[index])
                                                           : order[index];
    }
    if (strncmp(token, "GPU-", 4) != 0 && strncmp(token, "MIG-", 4) != 0) {
        return -1;
    }
    for (uint32_t i = 0; i < all; i++) {
        if (strncasecmp(sim_device_at(i)->uuid_text, token, strlen(token)) == 0) {
            if (found >= 0) {
                return -1;
            }
            found = i;
        }
    }
    return found;
}

static bool add_visible(int64_t physical)
{
    bool is_part = physical >= 0 && sim_device_at((uint32_t)physical)->is_partition;

    if (physical < 0 || (is_part && driver.count > 0) || !is_usable((uint32_t)physical)) {
        return false;
    }
    driver.visible[driver.count++] = (uint32_t)physical;
    return !is_part;
}

static void choose_listed(const char *list, const uint32_t *order, uint32_t count)
{
    char copy[4096], *save;

    snprintf(copy, sizeof(copy), "%s", list);
    for (char *token = strtok_r(copy, ",", &save); token != NULL;
         token = strtok_r(NULL, ",", &save)) {
        token += strspn(token, " ");
        token[strcspn(token, " ")] = '\0';
        int64_t physical = find_token(token, order, count);

        if (physical >= 0 && cuda_ordinal_of((uint32_t)physical) >= 0) {
            driver.count = 0; /* a device named twice: no device is visible */
            return;
        }
        if (!add_visible(physical)) {
            return;
        }
    }
}

static void choose_devices(void)
{
    const char *by = getenv("CUDA_DEVICE_ORDER");
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    uint32_t order[MAX_DEVICES];
    uint32_t count;

    driver.count = 0;
    sim_device_count("cuda");
    count = sim_order(by == NULL                      ? NULL
                      : strcmp(by, "PCI_BUS_ID") == 0 ? "pci"
                                                      : "fastest",
                      "fastest", order, MAX_DEVICES);
    if (list != NULL) {
        choose_listed(list, order, count);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!sim_device_at(order[i])->is_partitioned && is_usable(order[i])) {
            driver.visible[driver.count++] = order[i];
        }
    }
    for (uint32_t i = 0; i < count && driver.count == 0; i++) {
        add_visible(first_part(order[i]));
    }
}

/* Reads the first line of a file below DS_ACCEL_ROOT; "" without the file. */
static void root_line(const char *path, char *line, size_t line_size)
{
    const char *root = getenv("DS_ACCEL_ROOT");
    char full[512];
    FILE *file;

    line[0] = '\0';
    snprintf(full, sizeof(full), "%s%s", root != NULL ? root : "/nowhere", path);
    file = fopen(full, "re");
    if (file != NULL) {
        if (fgets(line, (int)line_size, file) != NULL) {
            line[strcspn(line, "\n")] = '\0';
        }
        fclose(file);
    }
}

static bool root_has(const char *path)
{
    const char *root = getenv("DS_ACCEL_ROOT");
    char full[512];

    snprintf(full, sizeof(full), "%s%s", root != NULL ? root : "/nowhere", path);
    return access(full, F_OK) == 0;
}

/* Reads the version in this library's file name (libcuda.so.580.65.06); "" without a version. */
static void own_version(char *version, size_t version_size)
{
    Dl_info info;
    char *path = NULL;
    const char *found;

    if (dladdr(&driver, &info) != 0) {
        path = realpath(info.dli_fname, NULL);
    }
    found = path != NULL ? strstr(path, "libcuda.so.") : NULL;
    snprintf(version, version_size, "%s",
             found != NULL && strchr(found + 11, '.') != NULL ? found + 11 : "");
    free(path);
}

/*
 * Checks the kernel's current state. A test can change it while a machine runs, unlike the
 * machine's description: the module for memory is not loaded, or the driver has another version.
 */
static CUresult ask_kernel(void)
{
    char kernel[64];
    char own[64];

    root_line("/sys/module/nvidia/version", kernel, sizeof(kernel));
    own_version(own, sizeof(own));
    if (kernel[0] != '\0' && own[0] != '\0' && strcmp(kernel, own) != 0) {
        return SYSTEM_DRIVER_MISMATCH;
    }
    return root_has("/dev/nvidiactl") && !root_has("/dev/nvidia-uvm") ? UNKNOWN : OK;
}

SIM_EXPORT CUresult cuInit(unsigned int Flags)
{
    CUresult code;

    sim_device_count("cuda");
    code = (CUresult)enter("cuInit");
    if (code == OK) {
        code = Flags != 0 ? INVALID_VALUE : (CUresult)sim_vendor_number("init_code", OK);
    }
    REQUIRE(code == OK, code);
    code = ask_kernel();
    REQUIRE(code == OK, code);
    pthread_mutex_lock(&driver.lock);
    if (!atomic_load(&driver.is_started)) {
        choose_devices();
        for (uint32_t i = 0; i < MAX_DEVICES; i++) {
            driver.contexts[i].physical = i;
        }
        atomic_store(&driver.is_started, driver.count > 0);
    }
    pthread_mutex_unlock(&driver.lock);
    return atomic_load(&driver.is_started) ? OK : NO_DEVICE;
}

/* Runs in a child after fork(): cuInit's state does not survive there, and every call returns "not
 * initialized". */
static void forked(void)
{
    atomic_store(&driver.is_poisoned,
                 atomic_load(&driver.is_poisoned) || atomic_load(&driver.is_started));
}

__attribute__((constructor)) static void load(void)
{
    sim_failure = UNKNOWN;
    sim_tasks_in_turn = true; /* the driver has one thread for them in each context */
    pthread_atfork(NULL, NULL, forked);
}

SIM_EXPORT CUresult cuDriverGetVersion(int *driverVersion)
{
    CUresult code = (CUresult)enter("cuDriverGetVersion");

    REQUIRE(code == OK, code);
    REQUIRE(driverVersion != NULL, INVALID_VALUE);
    sim_device_count("cuda");
    *driverVersion = (int)sim_vendor_number("driver_api", 13000);
    return OK;
}

/* ---- devices -------------------------------------------------------------------------------- */

SIM_EXPORT CUresult cuDeviceGetCount(int *count)
{
    ENTER();
    REQUIRE(count != NULL, INVALID_VALUE);
    *count = (int)driver.count;
    return OK;
}

SIM_EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    uint32_t physical;

    ENTER_DEVICE(ordinal, physical);
    REQUIRE(device != NULL, INVALID_VALUE);
    *device = ordinal;
    return OK;
}

SIM_EXPORT CUresult cuDeviceGetName(char *name, int len, CUdevice dev)
{
    uint32_t physical;

    ENTER_DEVICE(dev, physical);
    REQUIRE(name != NULL && len > 0, INVALID_VALUE);
    snprintf(name, (size_t)len, "%s", sim_device_at(physical)->name);
    return OK;
}

SIM_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice dev)
{
    uint32_t physical;

    ENTER_DEVICE(dev, physical);
    REQUIRE(uuid != NULL, INVALID_VALUE);
    memcpy(uuid->bytes, sim_device_at(physical)->uuid, sizeof(uuid->bytes));
    return OK;
}

/* cuDeviceGetUuid is older than MIG: for a part, it returns the whole device's UUID. */
SIM_EXPORT CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice dev)
{
    const struct sim_device *device;
    uint32_t physical;

    ENTER_DEVICE(dev, physical);
    REQUIRE(uuid != NULL, INVALID_VALUE);
    device = sim_device_at(physical);
    device = device->is_partition ? sim_device_at((uint32_t)device->parent) : device;
    memcpy(uuid->bytes, device->uuid, sizeof(uuid->bytes));
    return OK;
}

SIM_EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice dev)
{
    uint32_t physical;

    ENTER_DEVICE(dev, physical);
    REQUIRE(bytes != NULL, INVALID_VALUE);
    *bytes = sim_device_at(physical)->memory_bytes;
    return OK;
}

SIM_EXPORT CUresult cuDeviceGetPCIBusId(char *pciBusId, int len, CUdevice dev)
{
    uint32_t physical;

    ENTER_DEVICE(dev, physical);
    REQUIRE(pciBusId != NULL && len >= 13, INVALID_VALUE);
    snprintf(pciBusId, (size_t)len, "%s", sim_device_at(physical)->pci_address);
    return OK;
}

SIM_EXPORT CUresult cuDeviceGetByPCIBusId(CUdevice *dev, const char *pciBusId)
{
    ENTER();
    REQUIRE(dev != NULL && pciBusId != NULL, INVALID_VALUE);
    for (uint32_t i = 0; i < driver.count; i++) {
        if (strcasecmp(sim_device_at(driver.visible[i])->pci_address, pciBusId) == 0) {
            *dev = (CUdevice)i;
            return OK;
        }
    }
    return INVALID_DEVICE;
}

/* Attributes that the device's description may override by number, and their defaults. */
static const struct {
    int attribute;
    int otherwise;
    const char *fact;
} attributes[] = {
    {1, 1024, "max_threads_per_block"},
    {9, 65536, "constant_memory_bytes"},
    {10, 32, "warp_size"},
    {13, 1980000, "clock_khz"},
    {16, 132, "multiprocessors"},
    {17, 0, "kernel_timeout"},
    {18, 0, "integrated"},
    {19, 1, "maps_host_memory"},
    {20, 0, "compute_mode"},
    {31, 1, "concurrent_kernels"},
    {32, 1, "ecc"},
    {35, 0, "tcc"},
    {36, 2619000, "memory_clock_khz"},
    {37, 5120, "memory_bus_bits"},
    {38, 52428800, "l2_cache_bytes"},
    {39, 2048, "max_threads_per_multiprocessor"},
    {40, 3, "async_engines"},
    {41, 1, "unified_addressing"},
    {78, 1, "stream_priorities"},
    {81, 233472, "shared_memory_per_multiprocessor"},
    {83, 1, "managed_memory"},
    {88, 0, "pageable_memory_access"},
    {89, 1, "concurrent_managed_access"},
    {91, 1, "host_pointer_for_registered"},
    {97, 232448, "shared_memory_per_block_optin"},
    {99, 1, "host_register"},
    {102, 1, "virtual_memory"},
    {103, 1, "handle_fd"},
    {113, 1, "read_only_host_register"},
    {115, 1, "memory_pools"},
    {116, 1, "gpu_direct_rdma"},
    {124, 1, "dma_buf"},
    {125, 1, "ipc_events"},
    {8, 49152, "shared_memory_per_block"},
    {12, 65536, "registers_per_block"},
};

SIM_EXPORT CUresult cuDeviceGetAttribute(int *pi, int attrib, CUdevice dev)
{
    const struct sim_device *device;
    uint32_t physical;

    ENTER_DEVICE(dev, physical);
    REQUIRE(pi != NULL, INVALID_VALUE);
    device = sim_device_at(physical);
    switch (attrib) {
    case 33:
        *pi = (int)device->pci_bus;
        return OK;
    case 34:
        *pi = (int)device->pci_slot;
        return OK;
    case 50:
        *pi = (int)device->pci_domain;
        return OK;
    case 75:
        *pi = (int)device->compute_major;
        return OK;
    case 76:
        *pi = (int)device->compute_minor;
        return OK;
    case 110: /* GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED */
        *pi = (int)sim_number(device, "rdma_with_vmm", 1);
        return OK;
    case 134: /* HOST_NUMA_ID: the nearest NUMA node of the host */
        *pi = device->numa_node;
        return OK;
    case 131: /* NUMA_ID: the NUMA node of the device's memory, if it is one */
        *pi = -1;
        return OK;
    default:
        break;
    }
    for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++) {
        if (attributes[i].attribute == attrib) {
            *pi = (int)sim_number(device, attributes[i].fact, attributes[i].otherwise);
            return OK;
        }
    }
    return INVALID_VALUE;
}

/* ---- contexts ------------------------------------------------------------------------------- */

static CUresult create_context(CUcontext context)
{
    const struct sim_device *device = sim_device_at(context->physical);
    int64_t mode = sim_number(device, "compute_mode", 0);

    if (sim_is_lost(context->physical)) {
        return cuda_lost_code();
    }
    if (mode == 2 || sim_number(device, "busy", 0) != 0) {
        return DEVICE_UNAVAILABLE;
    }
    context->legacy = sim_stream_create(context->physical, SIM_STREAM_DEFAULT, 0);
    sim_handle_add(context, "context");
    return OK;
}

SIM_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
    CUresult code = OK;
    uint32_t physical;
    CUcontext context;

    ENTER_DEVICE(dev, physical);
    REQUIRE(pctx != NULL, INVALID_VALUE);
    context = cuda_context_of(physical);
    pthread_mutex_lock(&driver.lock);
    if (context->retain_count == 0) {
        code = create_context(context);
    }
    if (code == OK) {
        context->retain_count++;
        *pctx = context;
    }
    pthread_mutex_unlock(&driver.lock);
    return code;
}

static void end_context(CUcontext context)
{
    sim_handle_remove(context, "context", "cuDevicePrimaryCtxRelease_v2");
    sim_stream_destroy(context->legacy);
    context->legacy = NULL;
    context->retain_count = 0;
}

/*
 * Objects that the caller leaves in the context are leaks: they stay registered, and are reported
 * at exit.
 */
SIM_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
    uint32_t physical;
    CUcontext context;
    CUresult code;

    REQUIRE(cuda_enter_release(__func__, NULL, &code), code);
    REQUIRE(cuda_is_device(dev, &physical), INVALID_DEVICE);
    context = cuda_context_of(physical);
    sim_device_synchronize(physical);
    pthread_mutex_lock(&driver.lock);
    if (context->retain_count == 0) {
        code = INVALID_CONTEXT;
    } else if (context->retain_count == 1) {
        end_context(context);
    } else {
        context->retain_count--;
    }
    pthread_mutex_unlock(&driver.lock);
    return code;
}

/* Resets a lost device. */
SIM_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
    uint32_t physical;

    ENTER_DEVICE(dev, physical);
    sim_device_synchronize(physical);
    pthread_mutex_lock(&driver.lock);
    if (cuda_context_of(physical)->retain_count > 0) {
        end_context(cuda_context_of(physical));
    }
    pthread_mutex_unlock(&driver.lock);
    sim_device_reset(physical);
    return OK;
}

SIM_EXPORT CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
    uint32_t physical;

    ENTER_DEVICE(dev, physical);
    REQUIRE((flags & ~0x1Fu) == 0, INVALID_VALUE);
    pthread_mutex_lock(&driver.lock);
    cuda_context_of(physical)->flags = flags;
    pthread_mutex_unlock(&driver.lock);
    return OK;
}

SIM_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
    uint32_t physical;

    ENTER_DEVICE(dev, physical);
    REQUIRE(flags != NULL && active != NULL, INVALID_VALUE);
    pthread_mutex_lock(&driver.lock);
    *flags = cuda_context_of(physical)->flags;
    *active = cuda_context_of(physical)->retain_count > 0;
    pthread_mutex_unlock(&driver.lock);
    return OK;
}

static void check_context(CUcontext context, const char *call)
{
    if (context < driver.contexts || context >= driver.contexts + MAX_DEVICES) {
        sim_misuse("%s: %p is no context", call, (void *)context);
    }
}

SIM_EXPORT CUresult cuCtxSetCurrent(CUcontext ctx)
{
    ENTER();
    if (ctx == NULL) {
        stack.depth -= stack.depth > 0;
        return OK;
    }
    check_context(ctx, __func__);
    REQUIRE(is_alive(ctx), CONTEXT_IS_DESTROYED);
    stack.depth += stack.depth == 0;
    stack.contexts[stack.depth - 1] = ctx;
    return OK;
}

SIM_EXPORT CUresult cuCtxGetCurrent(CUcontext *pctx)
{
    ENTER();
    REQUIRE(pctx != NULL, INVALID_VALUE);
    *pctx = stack.depth > 0 ? stack.contexts[stack.depth - 1] : NULL;
    return OK;
}

SIM_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
    ENTER();
    REQUIRE(ctx != NULL, INVALID_CONTEXT);
    check_context(ctx, __func__);
    REQUIRE(is_alive(ctx), CONTEXT_IS_DESTROYED);
    if (stack.depth == STACK_DEPTH) {
        sim_misuse("cuCtxPushCurrent_v2: %d contexts lie on this thread's stack", STACK_DEPTH);
    }
    stack.contexts[stack.depth++] = ctx;
    return OK;
}

SIM_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *pctx)
{
    ENTER();
    REQUIRE(stack.depth > 0, INVALID_CONTEXT);
    stack.depth--;
    if (pctx != NULL) {
        *pctx = stack.contexts[stack.depth];
    }
    return OK;
}

SIM_EXPORT CUresult cuCtxGetDevice(CUdevice *device)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    REQUIRE(device != NULL, INVALID_VALUE);
    *device = cuda_ordinal_of(context->physical);
    return OK;
}

SIM_EXPORT CUresult cuCtxGetFlags(unsigned int *flags)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    REQUIRE(flags != NULL, INVALID_VALUE);
    *flags = context->flags;
    return OK;
}

/* In every mode, and from every thread, the call breaks the captures of the context. */
SIM_EXPORT CUresult cuCtxSynchronize(void)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    REQUIRE(!sim_capture_break_all(context->physical), STREAM_CAPTURE_UNSUPPORTED);
    return sim_device_synchronize(context->physical) == 0 ? OK : cuda_lost_code();
}

SIM_EXPORT CUresult cuCtxGetStreamPriorityRange(int *leastPriority, int *greatestPriority)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    if (leastPriority != NULL) {
        *leastPriority = 0;
    }
    if (greatestPriority != NULL) {
        *greatestPriority = -5;
    }
    return OK;
}

/* ---- functions by name ---------------------------------------------------------------------- */

/* Finds this library's own export of a name, in its newest version. */
static void *find_export(const char *symbol)
{
    static const char *const suffixes[] = {"_v3", "_v2", ""};
    char name[128];
    Dl_info info;
    void *handle, *found = NULL;

    if (dladdr(&driver, &info) == 0) {
        return NULL;
    }
    handle = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    for (size_t i = 0; handle != NULL && found == NULL && i < 3; i++) {
        snprintf(name, sizeof(name), "%s%s", symbol, suffixes[i]);
        found = dlsym(handle, name);
    }
    if (handle != NULL) {
        dlclose(handle);
    }
    return found;
}

SIM_EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion,
                                        uint64_t flags, int *symbolStatus)
{
    CUresult code = (CUresult)enter("cuGetProcAddress_v2");

    REQUIRE(code == OK, code);
    REQUIRE(symbol != NULL && pfn != NULL && cudaVersion > 0 && flags <= 2, INVALID_VALUE);
    *pfn = find_export(symbol);
    if (symbolStatus != NULL) {
        *symbolStatus = *pfn != NULL ? 0 : 1;
    }
    return *pfn != NULL ? OK : NOT_FOUND;
}

/* ---- profiler, modules: no kernel compiles for a simulated device --------------------------- */

SIM_EXPORT CUresult cuProfilerStart(void)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    return cuda_forbidden(context);
}

SIM_EXPORT CUresult cuProfilerStop(void)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    return cuda_forbidden(context);
}

SIM_EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    REQUIRE(module != NULL && image != NULL, INVALID_VALUE);
    return NO_BINARY_FOR_GPU;
}

SIM_EXPORT CUresult cuModuleUnload(CUmodule hmod)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    sim_handle_check(hmod, "module", __func__);
    return INVALID_HANDLE;
}

SIM_EXPORT CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
    CUcontext context;

    ENTER_CONTEXT(context);
    REQUIRE(hfunc != NULL && name != NULL, INVALID_VALUE);
    sim_handle_check(hmod, "module", __func__);
    return NOT_FOUND;
}

SIM_EXPORT CUresult cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
                                   unsigned int gridDimZ, unsigned int blockDimX,
                                   unsigned int blockDimY, unsigned int blockDimZ,
                                   unsigned int sharedMemBytes, CUstream hStream,
                                   void **kernelParams, void **extra)
{
    CUcontext context;

    (void)sharedMemBytes;
    (void)kernelParams;
    (void)extra;
    ENTER_CONTEXT(context);
    REQUIRE(gridDimX * gridDimY * gridDimZ > 0 && blockDimX * blockDimY * blockDimZ > 0,
            INVALID_VALUE);
    cuda_stream(hStream, context, __func__);
    sim_handle_check(f, "function", __func__);
    return INVALID_HANDLE;
}
