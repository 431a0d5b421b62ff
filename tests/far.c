/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "far.h"

#include <dlfcn.h>

#define QUEUE_LIMIT 100000u

static struct ds_accel_plugin far;
static const struct ds_accel_plugin *near;
static struct work {
    ds_accel_plugin_stream_t *stream;
    void *destination;
    const void *source; /* NULL for a fill */
    uint64_t size_bytes;
    uint32_t kind; /* kind of the copy, or the pattern's size */
    unsigned char pattern[4];
} queued[QUEUE_LIMIT];
static uint64_t vendor_seed;
static void *wrapped;
static ds_accel_plugin_instance_t *instance;

size_t far_wrapped_count;
size_t far_queued_count;
size_t far_copy_count;
size_t far_fail_copy_at;

static void do_work(void)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    for (size_t i = 0; i < far_queued_count; i++) {
        const struct work *work = &queued[i];
        int32_t status = work->source != NULL
                             ? near->mem_copy_async(work->stream, work->destination, work->source,
                                                    work->size_bytes, work->kind, &error)
                             : near->mem_fill_async(work->stream, work->destination, work->pattern,
                                                    work->kind, work->size_bytes, &error);

        cr_assert_eq(status, DS_ACCEL_OK, "%s", error.message);
    }
    far_queued_count = 0;
}

static struct work *queue(ds_accel_plugin_stream_t *stream, void *destination, uint64_t size_bytes)
{
    struct work *work = &queued[far_queued_count];

    cr_assert_lt(far_queued_count, QUEUE_LIMIT);
    far_queued_count++;
    work->stream = stream;
    work->destination = destination;
    work->size_bytes = size_bytes;
    return work;
}

static int32_t far_device_info(ds_accel_plugin_device_t *device,
                               struct ds_accel_device_info *info_out, struct ds_accel_error *error)
{
    int32_t status = near->device_info(device, info_out, error);

    info_out->flags &= ~DS_ACCEL_FLAG_HOST_ACCESSIBLE;
    return status;
}

static int32_t far_copy_async(ds_accel_plugin_stream_t *stream, void *destination,
                              const void *source, uint64_t size_bytes, uint32_t kind,
                              struct ds_accel_error *error)
{
    struct work *work;

    if (++far_copy_count == far_fail_copy_at) {
        snprintf(error->message, sizeof(error->message), "the copy failed");
        return DS_ACCEL_ERR_DRIVER;
    }
    work = queue(stream, destination, size_bytes);
    work->source = source;
    work->kind = kind;
    return DS_ACCEL_OK;
}

static int32_t far_fill_async(ds_accel_plugin_stream_t *stream, void *destination,
                              const void *pattern, uint32_t pattern_bytes, uint64_t size_bytes,
                              struct ds_accel_error *error)
{
    struct work *work;

    if (pattern_bytes != 1 && pattern_bytes != 2 && pattern_bytes != 4) {
        snprintf(error->message, sizeof(error->message), "no such pattern");
        return DS_ACCEL_ERR_INVALID;
    }
    work = queue(stream, destination, size_bytes);
    work->source = NULL;
    work->kind = pattern_bytes;
    memcpy(work->pattern, pattern, pattern_bytes);
    return DS_ACCEL_OK;
}

static int32_t far_event_synchronize(ds_accel_plugin_event_t *event, uint64_t timeout_ns,
                                     struct ds_accel_error *error)
{
    do_work();
    return near->event_synchronize(event, timeout_ns, error);
}

static int32_t far_stream_synchronize(ds_accel_plugin_stream_t *stream, uint64_t timeout_ns,
                                      struct ds_accel_error *error)
{
    do_work();
    return near->stream_synchronize(stream, timeout_ns, error);
}

static int32_t far_device_synchronize(ds_accel_plugin_device_t *device, uint64_t timeout_ns,
                                      struct ds_accel_error *error)
{
    do_work();
    return near->device_synchronize(device, timeout_ns, error);
}

static int32_t far_free(ds_accel_plugin_device_t *device, void *pointer,
                        struct ds_accel_error *error)
{
    do_work();
    if (pointer != NULL && pointer == wrapped) {
        wrapped = NULL;
        far_wrapped_count--;
        return DS_ACCEL_OK;
    }
    return near->mem_free(device, pointer, error);
}

static int32_t far_native_get(ds_accel_plugin_device_t *device, uint32_t kind, const void *object,
                              uint64_t *native_out, uint64_t *offset_bytes_out,
                              struct ds_accel_error *error)
{
    struct ds_accel_pointer_info info = {.struct_size = sizeof(info)};

    if (kind != DS_ACCEL_NATIVE_MEMORY) {
        return near->native_get(device, kind, object, native_out, offset_bytes_out, error);
    }
    cr_assert_eq(near->mem_pointer_info(instance, device, object, &info, error), DS_ACCEL_OK);
    *native_out = info.base_address ^ FAR_OBJECT_BITS;
    *offset_bytes_out = (uintptr_t)object - info.base_address;
    return DS_ACCEL_OK;
}

static int32_t far_native_wrap(ds_accel_plugin_device_t *device, uint32_t kind, uint64_t native,
                               void **object_out, struct ds_accel_error *error)
{
    if (kind != DS_ACCEL_NATIVE_MEMORY) {
        return near->native_wrap(device, kind, native, object_out, error);
    }
    wrapped = (void *)(uintptr_t)(native ^ FAR_OBJECT_BITS);
    far_wrapped_count++;
    *object_out = wrapped;
    return DS_ACCEL_OK;
}

static int32_t far_init(const struct ds_accel_host *host, ds_accel_plugin_instance_t **instance_out,
                        struct ds_accel_error *error)
{
    int32_t status = near->init(host, instance_out, error);

    instance = *instance_out;
    return status;
}

/* A vendor's random number generator in which every number equals the seed. */
static int32_t far_rng_seed(ds_accel_plugin_device_t *device, uint64_t seed,
                            struct ds_accel_error *error)
{
    (void)device;
    (void)error;
    vendor_seed = seed;
    return DS_ACCEL_OK;
}

static int32_t far_rng_initial_seed(ds_accel_plugin_device_t *device, uint64_t *seed_out,
                                    struct ds_accel_error *error)
{
    (void)device;
    (void)error;
    *seed_out = vendor_seed;
    return DS_ACCEL_OK;
}

static int32_t far_rng_state_size(ds_accel_plugin_device_t *device, uint64_t *size_bytes_out,
                                  struct ds_accel_error *error)
{
    (void)device;
    (void)error;
    *size_bytes_out = sizeof(vendor_seed);
    return DS_ACCEL_OK;
}

static int32_t far_rng_get_state(ds_accel_plugin_device_t *device, void *state, uint64_t size_bytes,
                                 struct ds_accel_error *error)
{
    (void)device;
    (void)error;
    cr_assert_eq(size_bytes, sizeof(vendor_seed));
    memcpy(state, &vendor_seed, sizeof(vendor_seed));
    return DS_ACCEL_OK;
}

static int32_t far_rng_set_state(ds_accel_plugin_device_t *device, const void *state,
                                 uint64_t size_bytes, struct ds_accel_error *error)
{
    (void)device;
    (void)error;
    if (size_bytes != sizeof(vendor_seed)) {
        return DS_ACCEL_ERR_INVALID;
    }
    memcpy(&vendor_seed, state, sizeof(vendor_seed));
    return DS_ACCEL_OK;
}

static int32_t far_rng_uniform(ds_accel_plugin_stream_t *stream, void *destination, uint64_t count,
                               uint32_t dtype, double low, double high,
                               struct ds_accel_error *error)
{
    (void)stream;
    (void)error;
    (void)high;
    cr_assert_eq(dtype, DS_ACCEL_DTYPE_FLOAT32);
    for (uint64_t i = 0; i < count; i++) {
        ((float *)destination)[i] = (float)(low + (double)vendor_seed);
    }
    return DS_ACCEL_OK;
}

static const struct ds_accel_plugin *far_entry(const struct ds_accel_host *host)
{
    void *module = dlopen(TEST_MOCKS "/ds_accel_alpha.so", RTLD_NOW | RTLD_LOCAL);
    ds_accel_entry_v1_t entry =
        module != NULL ? (ds_accel_entry_v1_t)dlsym(module, DS_ACCEL_ENTRY_V1_SYMBOL) : NULL;

    cr_assert_not_null(entry);
    near = entry(host);
    far = *near;
    far.device_info = far_device_info;
    far.stream_host_task = NULL;
    far.mem_copy_async = far_copy_async;
    far.mem_fill_async = far_fill_async;
    far.event_synchronize = far_event_synchronize;
    far.stream_synchronize = far_stream_synchronize;
    far.device_synchronize = far_device_synchronize;
    far.mem_free = far_free;
    far.rng_seed = far_rng_seed;
    far.rng_initial_seed = far_rng_initial_seed;
    far.rng_state_size = far_rng_state_size;
    far.rng_get_state = far_rng_get_state;
    far.rng_set_state = far_rng_set_state;
    far.rng_uniform = far_rng_uniform;
    return &far;
}

static const struct ds_accel_plugin *opencl_entry(const struct ds_accel_host *host)
{
    far_entry(host);
    far.name = "opencl";
    far.init = far_init;
    far.native_get = far_native_get;
    far.native_wrap = far_native_wrap;
    return &far;
}

static const struct ds_accel_plugin *bare_entry(const struct ds_accel_host *host)
{
    far_entry(host);
    far.event_create = NULL;
    far.mem_alloc_pinned = NULL;
    far.mem_free_pinned = NULL;
    return &far;
}

static ds_accel_t *start(const char *name, ds_accel_entry_v1_t entry,
                         ds_accel_device_t **device_out)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;

    options.accelerator = name;
    context = test_create_with(&options);
    cr_assert_eq(ds_accel_register(context, entry), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_assert_eq(ds_accel_device_open(context, 0, device_out), DS_ACCEL_OK, "%s",
                 ds_accel_last_error());
    return context;
}

ds_accel_t *far_start(ds_accel_device_t **device_out)
{
    return start("alpha", far_entry, device_out);
}

ds_accel_t *far_start_bare(ds_accel_device_t **device_out)
{
    return start("alpha", bare_entry, device_out);
}

ds_accel_t *far_start_opencl(ds_accel_device_t **device_out)
{
    return start("opencl", opencl_entry, device_out);
}
