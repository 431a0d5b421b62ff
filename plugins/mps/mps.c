/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The mps plugin: Apple's Metal, through the Objective-C runtime. It is part of the product only on
 * Darwin; on other systems it is compiled only for its test, with the simulated libobjc and Metal
 * of tests/sim/mps. The plugin was never run on a Mac.
 *
 * The flags have the values of DeepSpeed's mps accelerator: host timers, no fp16, no bf16, one
 * device (the system's default device). Metal has no variable that hides devices, no peers, no
 * memory shared between processes, no capture and no stream-ordered memory. There is no telemetry:
 * sensors are available only through IOKit's registry, which has few of the values in struct
 * ds_accel_telemetry.
 */
#include "mps.h"

#include <dlfcn.h>

/*
 * The libraries are in the dyld shared cache: dlopen() finds them but stat() does not, so the
 * plugin does not look for the files first.
 */
static const char *const metal_names[] = {"/System/Library/Frameworks/Metal.framework/Metal", NULL};
static const char *const objc_names[] = {"/usr/lib/libobjc.A.dylib", NULL};
/* A command-line program must load this library before it requests the default device. */
#define CORE_GRAPHICS "/System/Library/Frameworks/CoreGraphics.framework/CoreGraphics"

#define OBJC(symbol) VENDOR_REQUIRED(struct objc, symbol)
static const struct vendor_symbol objc_symbols[] = {
    OBJC(sel_registerName),
    OBJC(object_getClass),
    OBJC(class_getMethodImplementation),
    OBJC(class_respondsToSelector),
    OBJC(objc_autoreleasePoolPush),
    OBJC(objc_autoreleasePoolPop),
    OBJC(objc_retain),
    OBJC(objc_release),
};
static const struct vendor_symbol metal_symbols[] = {
    VENDOR_REQUIRED(struct metal, MTLCreateSystemDefaultDevice),
};

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

static int open_libraries(struct mps_runtime *runtime, struct vendor_problem *problem)
{
    const struct ds_accel_host *host = runtime->host;

    if (vendor_lib_open(&runtime->objc_library, host, "objc_library", objc_names, problem) != 0 ||
        vendor_lib_bind(&runtime->objc_library, objc_symbols, ARRAY_SIZE(objc_symbols),
                        &runtime->objc, problem) != 0 ||
        vendor_lib_open(&runtime->metal_library, host, "library", metal_names, problem) != 0 ||
        vendor_lib_bind(&runtime->metal_library, metal_symbols, ARRAY_SIZE(metal_symbols),
                        &runtime->metal, problem) != 0) {
        return -1;
    }
    dlopen(CORE_GRAPHICS, RTLD_NOW | RTLD_LOCAL);
    return 0;
}

/*
 * Checks that the device responds to four of the selectors that the plugin uses; a macOS that lacks
 * one of them is too old. Returns 0, also if there is no device, or -1 with *problem set.
 */
static int check_device(struct mps_runtime *runtime, struct vendor_problem *problem)
{
    const struct {
        objc_sel selector;
        const char *name;
    } needed[] = {
        {runtime->sel.newCommandQueue, "newCommandQueue"},
        {runtime->sel.newSharedEvent, "newSharedEvent"},
        {runtime->sel.newBufferWithLength_options_, "newBufferWithLength:options:"},
        {runtime->sel.recommendedMaxWorkingSetSize, "recommendedMaxWorkingSetSize"},
    };

    for (size_t i = 0; runtime->device != NULL && i < ARRAY_SIZE(needed); i++) {
        if (!mps_responds(runtime, runtime->device, needed[i].selector)) {
            return vendor_problem_set(problem, DS_ACCEL_REASON_SYMBOL_MISSING,
                                      "MTLDevice has no %s: this macOS is too old", needed[i].name);
        }
    }
    return 0;
}

static void close_runtime(void *state)
{
    struct mps_runtime *runtime = state;

    if (runtime->device != NULL) {
        runtime->objc.objc_release(runtime->device);
    }
    free(runtime);
}

static int open_runtime(const struct ds_accel_host *host, void **runtime_out,
                        struct vendor_problem *problem)
{
    struct mps_runtime *runtime = calloc(1, sizeof(*runtime));
    void *pool;

    if (runtime == NULL) {
        problem->is_error = 1;
        return vendor_problem_set(problem, DS_ACCEL_REASON_DRIVER_FAILED, "no memory");
    }
    runtime->host = host;
    if (open_libraries(runtime, problem) != 0) {
        free(runtime);
        return -1;
    }
#define X(member, text) runtime->sel.member = runtime->objc.sel_registerName(text);
    MPS_SELECTORS(X)
#undef X
    pool = runtime->objc.objc_autoreleasePoolPush();
    runtime->device = runtime->metal.MTLCreateSystemDefaultDevice();
    runtime->objc.objc_autoreleasePoolPop(pool);
    if (check_device(runtime, problem) != 0) {
        close_runtime(runtime);
        return -1;
    }
    *runtime_out = runtime;
    return 0;
}

static int count_devices(void *state, uint32_t *count_out, struct vendor_problem *problem)
{
    (void)problem;
    *count_out = ((struct mps_runtime *)state)->device != NULL;
    return 0;
}

/*
 * Codes of MTLCommandBufferError, by number; the numbers were not verified on a Mac. Any other code
 * is reported as ERR_DRIVER, without a name.
 */
static const struct {
    const char *name;
    int32_t status;
} causes[] = {
    [1] = {"MTLCommandBufferErrorInternal", DS_ACCEL_ERR_DRIVER},
    [2] = {"MTLCommandBufferErrorTimeout", DS_ACCEL_ERR_TIMEOUT},
    [3] = {"MTLCommandBufferErrorPageFault", DS_ACCEL_ERR_DRIVER},
    [4] = {"MTLCommandBufferErrorAccessRevoked", DS_ACCEL_ERR_PERMISSION},
    [7] = {"MTLCommandBufferErrorNotPermitted", DS_ACCEL_ERR_PERMISSION},
    [8] = {"MTLCommandBufferErrorOutOfMemory", DS_ACCEL_ERR_NO_MEMORY},
    [9] = {"MTLCommandBufferErrorInvalidResource", DS_ACCEL_ERR_INVALID},
    [11] = {"MTLCommandBufferErrorDeviceRemoved", DS_ACCEL_ERR_DEVICE_LOST},
};

static void describe(void *runtime, int64_t code, int32_t *status_out, const char **name_out)
{
    (void)runtime;
    *status_out = DS_ACCEL_ERR_DRIVER;
    *name_out = NULL;
    if (code > 0 && code < (int64_t)ARRAY_SIZE(causes) && causes[code].name != NULL) {
        *status_out = causes[code].status;
        *name_out = causes[code].name;
    }
}

static int32_t backend_info(ds_accel_plugin_instance_t *instance,
                            struct ds_accel_backend_info *info, struct ds_accel_error *error)
{
    (void)instance;
    (void)error;
    snprintf(info->compile_backend, sizeof(info->compile_backend), "inductor");
    return DS_ACCEL_OK;
}

static void copy_name(struct mps_runtime *runtime, char *name, size_t name_size)
{
    void *pool = runtime->objc.objc_autoreleasePoolPush();
    objc_id string = mps_send_id(runtime, runtime->device, runtime->sel.name);

    if (string != NULL) {
        const char *text =
            (const char *)(uintptr_t)mps_send_word(runtime, string, runtime->sel.UTF8String);

        snprintf(name, name_size, "%s", text != NULL ? text : "");
    }
    runtime->objc.objc_autoreleasePoolPop(pool);
}

static int32_t identify(ds_accel_plugin_device_t *device, struct ds_accel_device_identity *identity,
                        struct ds_accel_error *error)
{
    struct mps_runtime *runtime = mps_runtime(device);

    (void)error;
    identity->vendor_index = 0;
    identity->valid |= DS_ACCEL_IDENTITY_VENDOR_INDEX;
    identity->total_memory_bytes =
        mps_send_word(runtime, runtime->device, runtime->sel.recommendedMaxWorkingSetSize);
    copy_name(runtime, identity->name, sizeof(identity->name));
    device->native_device = (uint64_t)(uintptr_t)runtime->device;
    return DS_ACCEL_OK;
}

static int32_t open_device(ds_accel_plugin_device_t *device, uint64_t native_context,
                           struct ds_accel_error *error)
{
    struct mps_runtime *runtime = mps_runtime(device);
    struct ds_accel_device_info *info = &device->info;
    struct mps_device *state = calloc(1, sizeof(*state));

    (void)native_context;
    if (state == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "device_open: no memory");
    }
    pthread_mutex_init(&state->lock, NULL);
    pthread_rwlock_init(&state->copying, NULL);
    atomic_init(&state->is_lost, 0);
    device->state = state;
    copy_name(runtime, info->name, sizeof(info->name));
    info->total_memory_bytes =
        mps_send_word(runtime, runtime->device, runtime->sel.recommendedMaxWorkingSetSize);
    info->max_allocation_bytes =
        mps_send_word(runtime, runtime->device, runtime->sel.maxBufferLength);
    return DS_ACCEL_OK;
}

static void close_device(ds_accel_plugin_device_t *device)
{
    struct mps_device *state = device->state;

    mps_buffers_end(device);
    pthread_mutex_destroy(&state->lock);
    pthread_rwlock_destroy(&state->copying);
    free(state);
    device->state = NULL;
}

/*
 * Reports what DeepSpeed's mps accelerator reports: computation only in float32, although Metal's
 * shaders also have half.
 */
static int32_t dtype_support(ds_accel_plugin_device_t *device, uint32_t dtype,
                             uint32_t *support_out, struct ds_accel_error *error)
{
    (void)device;
    (void)error;
    *support_out = DS_ACCEL_DTYPE_STORES |
                   (dtype == DS_ACCEL_DTYPE_FLOAT32 ? DS_ACCEL_DTYPE_COMPUTES : 0);
    return DS_ACCEL_OK;
}

const struct vendor_backend vendor_backend = {
    .name = "mps",
    .flags = DS_ACCEL_FLAG_HOST_TIMERS | DS_ACCEL_FLAG_HOST_ACCESSIBLE |
             DS_ACCEL_FLAG_UNIFIED_ADDRESSES,
    .allocation_align_bytes = 16,
    .open = open_runtime,
    .close = close_runtime,
    .count = count_devices,
    .describe = describe,
    .backend_info = backend_info,
    .identify = identify,
    .device_open = open_device,
    .device_close = close_device,
    .stream_create = mps_stream_create,
    .stream_destroy = mps_stream_destroy,
    .stream_synchronize = mps_stream_synchronize,
    .stream_query = mps_stream_query,
    .stream_wait_event = mps_stream_wait_event,
    .stream_host_task = mps_stream_host_task,
    .event_create = mps_event_create,
    .event_destroy = mps_event_destroy,
    .event_record = mps_event_record,
    .event_query = mps_event_query,
    .event_synchronize = mps_event_synchronize,
    .event_elapsed_ms = mps_event_elapsed_ms,
    .alloc = mps_alloc,
    .free = mps_free,
    .alloc_pinned = mps_alloc_pinned,
    .free_pinned = mps_free,
    .pinned_flags = DS_ACCEL_PINNED_PORTABLE | DS_ACCEL_PINNED_MAPPED,
    .host_register = mps_host_register,
    .host_unregister = mps_host_unregister,
    .host_device_pointer = mps_host_device_pointer,
    .alloc_managed = mps_alloc,
    .copy = mps_copy,
    .copy_async = mps_copy_async,
    .fill_async = mps_fill_async,
    .fill_widths = 1 | 2 | 4,
    .memory_info = mps_memory_info,
    .dtype_support = dtype_support,
    .native_handle = mps_native_handle,
    .native_wrap = mps_native_wrap,
    .native_unwrap = mps_native_unwrap,
    .native_memory = mps_native_memory,
};

DS_ACCEL_PLUGIN("mps", "ds-accel", "0.1.0", DS_ACCEL_FEATURE_CONFIG | DS_ACCEL_FEATURE_MACHINE, 0,
                vendor_fill);
