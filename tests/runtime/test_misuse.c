/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Misuse of every argument results in a status and a message, never in a crash or a wait. */
#include "fixture.h"

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#define REFUSED(call) EXPECT_STATUS(call, DS_ACCEL_ERR_INVALID)
#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})

/* ---- NULL and impossible numbers ------------------------------------------------------------- */

static void misuse_facts(ds_accel_t *context, ds_accel_device_t *device)
{
    uint64_t flags;
    uint32_t number;
    uint32_t version[4];
    uint32_t dtypes[1];
    char name[64];
    int32_t status;

    REFUSED(ds_accel_flags(NULL, &flags, NULL));
    REFUSED(ds_accel_flags(context, NULL, NULL));
    REFUSED(ds_accel_flag(NULL, DS_ACCEL_FLAG_GRAPHS, &number));
    REFUSED(ds_accel_flag(context, DS_ACCEL_FLAG_GRAPHS, NULL));
    REFUSED(ds_accel_flag(context, 0, &number));
    REFUSED(ds_accel_flag(context, 3, &number));
    REFUSED(ds_accel_flag(context, UINT64_C(1) << 63, &number));
    for (uint64_t flag = 1; flag != 0; flag <<= 1) {
        status = ds_accel_flag(context, flag, &number);
        cr_expect(status <= 0);
    }
    REFUSED(ds_accel_backend_info(NULL, NULL));
    REFUSED(ds_accel_backend_info(context, NULL));
    REFUSED(ds_accel_capabilities(NULL, &flags));
    REFUSED(ds_accel_capabilities(context, NULL));
    REFUSED(ds_accel_is_available(NULL, NULL, &number));
    REFUSED(ds_accel_is_available(context, NULL, NULL));
    EXPECT_STATUS(ds_accel_is_available(context, "", &number), DS_ACCEL_ERR_NOT_FOUND);
    REFUSED(ds_accel_op_builder_dir(NULL, name, sizeof(name)));
    REFUSED(ds_accel_op_builder_dir(context, NULL, sizeof(name)));
    cr_expect_null(ds_accel_dtype_name(UINT32_MAX));
    cr_expect_eq(ds_accel_dtype_size_bits(UINT32_MAX), 0);
    REFUSED(ds_accel_dtype_parse(NULL, &number));
    REFUSED(ds_accel_dtype_parse("float", NULL));
    EXPECT_STATUS(ds_accel_dtype_parse("", &number), DS_ACCEL_ERR_NOT_FOUND);
    REFUSED(ds_accel_dtype_support(NULL, DS_ACCEL_DTYPE_BOOL, &number));
    REFUSED(ds_accel_dtype_support(device, DS_ACCEL_DTYPE_BOOL, NULL));
    REFUSED(ds_accel_dtype_support(device, UINT32_MAX, &number));
    REFUSED(ds_accel_supported_dtypes(NULL, dtypes, 1, &number));
    REFUSED(ds_accel_supported_dtypes(context, dtypes, 1, NULL));
    REFUSED(ds_accel_supported_dtypes(context, NULL, 1, &number));
    REFUSED(ds_accel_is_bf16_supported(NULL, &number));
    REFUSED(ds_accel_is_bf16_supported(context, NULL));
    REFUSED(ds_accel_is_fp16_supported(NULL, &number));
    REFUSED(ds_accel_is_fp16_supported(context, NULL));
    REFUSED(ds_accel_communication_backend(NULL, name, sizeof(name)));
    REFUSED(ds_accel_communication_backend(context, NULL, sizeof(name)));
    REFUSED(ds_accel_communication_backend(context, name, 0));
    REFUSED(ds_accel_communication_backend_version(NULL, version));
    REFUSED(ds_accel_communication_backend_version(context, NULL));
    REFUSED(ds_accel_set_communication_backend(NULL, "x"));
    REFUSED(ds_accel_set_communication_backend(context, ""));
    REFUSED(ds_accel_compile_backend(NULL, name, sizeof(name)));
    REFUSED(ds_accel_compile_backend(context, NULL, sizeof(name)));
    REFUSED(ds_accel_set_compile_backend(NULL, NULL));
    REFUSED(ds_accel_set_compile_backend(context, "\xff"));
    REFUSED(ds_accel_lazy_call(NULL, NULL, NULL));
    REFUSED(ds_accel_lazy_call(context, NULL, NULL));
}

static void misuse_sharing(ds_accel_t *context, ds_accel_device_t *device)
{
    struct ds_accel_telemetry telemetry = {.struct_size = 0};
    struct ds_accel_process process = {.struct_size = sizeof(process)};
    unsigned char handle[256] = {0};
    ds_accel_event_t *event;
    uint64_t offset;
    uint32_t number = 0;
    int32_t fd;
    void *pointer;

    REFUSED(ds_accel_range_push(NULL, "x", NULL, NULL));
    REFUSED(ds_accel_range_push(context, NULL, NULL, NULL));
    REFUSED(ds_accel_range_pop(NULL, NULL));
    REFUSED(ds_accel_profiler_start(NULL));
    REFUSED(ds_accel_profiler_stop(NULL));
    REFUSED(ds_accel_telemetry(NULL, 0, &telemetry));
    REFUSED(ds_accel_telemetry(context, 0, NULL));
    REFUSED(ds_accel_telemetry(context, UINT32_MAX, &telemetry));
    cr_expect_leq(ds_accel_telemetry(context, 0, &telemetry), 0);
    REFUSED(ds_accel_telemetry_processes(NULL, 0, &process, sizeof(process), 1, &number));
    REFUSED(ds_accel_telemetry_processes(context, 0, NULL, sizeof(process), 1, &number));
    REFUSED(ds_accel_telemetry_processes(context, 0, &process, sizeof(process), 1, NULL));
    REFUSED(ds_accel_telemetry_processes(context, 0, &process, 0, 1, &number));
    REFUSED(ds_accel_telemetry_processes(context, UINT32_MAX, NULL, 0, 0, &number));
    REFUSED(ds_accel_device_links(NULL, 0, NULL, 0, 0, &number));
    REFUSED(ds_accel_device_links(context, 0, NULL, 4, 1, &number));
    REFUSED(ds_accel_device_links(context, UINT32_MAX, NULL, 0, 0, &number));
    REFUSED(ds_accel_peer_can_access(NULL, device, &number));
    REFUSED(ds_accel_peer_can_access(device, NULL, &number));
    REFUSED(ds_accel_peer_can_access(device, device, NULL));
    REFUSED(ds_accel_peer_enable(NULL, NULL));
    REFUSED(ds_accel_peer_disable(device, NULL));
    /* A missing function returns "not supported"; an implemented one rejects the arguments. */
    cr_expect_lt(ds_accel_ipc_memory_export(device, handle, handle, 0), 0);
    cr_expect_lt(ds_accel_ipc_memory_export(device, handle, handle, sizeof(handle)), 0);
    cr_expect_lt(ds_accel_ipc_memory_open(device, handle, 0, &pointer), 0);
    cr_expect_lt(ds_accel_ipc_memory_open(device, handle, sizeof(handle), &pointer), 0);
    cr_expect_lt(ds_accel_ipc_memory_close(device, handle), 0);
    cr_expect_lt(ds_accel_ipc_memory_unexport(device, handle, 0), 0);
    cr_expect_lt(ds_accel_ipc_event_open(device, handle, sizeof(handle), &event), 0);
    REFUSED(ds_accel_ipc_event_export(NULL, handle, 64));
    cr_expect_lt(ds_accel_dmabuf_export(device, handle, UINT64_MAX, &fd, &offset), 0);
    cr_expect_lt(ds_accel_dmabuf_export(device, handle, 0, &fd, &offset), 0);
    cr_expect_lt(ds_accel_dmabuf_import(device, -1, 0, 4096, &pointer), 0);
    cr_expect_lt(ds_accel_dmabuf_import(device, 0, UINT64_MAX, UINT64_MAX, &pointer), 0);
    cr_expect_lt(ds_accel_dmabuf_release(device, handle), 0);
}

static void misuse_environment(ds_accel_t *context)
{
    const uint32_t indices[2] = {0, UINT32_MAX};
    uint32_t needed;
    char name[64];
    bool has_variable = ds_accel_visible_devices_envs(context, 0, name, sizeof(name)) >= 0;

    REFUSED(ds_accel_visible_devices_envs(NULL, 0, name, sizeof(name)));
    REFUSED(ds_accel_visible_devices_envs(context, 0, NULL, 64));
    EXPECT_STATUS(ds_accel_visible_devices_envs(context, UINT32_MAX, name, sizeof(name)),
                  DS_ACCEL_ERR_NOT_FOUND);
    EXPECT_STATUS(ds_accel_export_envs(context, UINT32_MAX, name, sizeof(name)),
                  DS_ACCEL_ERR_NOT_FOUND);
    REFUSED(ds_accel_visible_devices_value(NULL, NULL, indices, 1, name, 64, &needed));
    REFUSED(ds_accel_visible_devices_value(context, NULL, indices, 1, NULL, 64, &needed));
    EXPECT_STATUS(ds_accel_visible_devices_value(context, "", indices, 1, name, 64, &needed),
                  DS_ACCEL_ERR_NOT_FOUND);
    REFUSED(ds_accel_apply_visible_devices(NULL, indices, 1));
    if (has_variable) {
        REFUSED(ds_accel_visible_devices_value(context, NULL, NULL, 1, name, 64, &needed));
        REFUSED(ds_accel_visible_devices_value(context, NULL, indices, 2, name, 64, &needed));
        EXPECT_STATUS(ds_accel_visible_devices_value(context, NULL, indices, 1, NULL, 0, NULL),
                      DS_ACCEL_ERR_LIMIT);
        REFUSED(ds_accel_apply_visible_devices(context, NULL, UINT32_MAX));
    }
    REFUSED(ds_accel_apply_env(NULL, NULL, NULL));
    EXPECT_STATUS(ds_accel_apply_env(context, "", NULL), DS_ACCEL_ERR_NOT_FOUND);
}

static void misuse_timers(ds_accel_device_t *device)
{
    ds_accel_timer_t *timer;
    double elapsed_ms;

    REFUSED(ds_accel_timer_create(NULL, &timer));
    REFUSED(ds_accel_timer_create(device, NULL));
    REFUSED(ds_accel_timer_start(NULL, NULL));
    REFUSED(ds_accel_timer_stop(NULL, NULL));
    REFUSED(ds_accel_timer_elapsed_ms(NULL, &elapsed_ms));
    ds_accel_timer_destroy(NULL);
    MUST(ds_accel_timer_create(device, &timer));
    EXPECT_STATUS(ds_accel_timer_stop(timer, NULL), DS_ACCEL_ERR_STATE);
    EXPECT_STATUS(ds_accel_timer_elapsed_ms(timer, &elapsed_ms), DS_ACCEL_ERR_STATE);
    REFUSED(ds_accel_timer_elapsed_ms(timer, NULL));
    ds_accel_timer_destroy(timer);
    ds_accel_timer_destroy(timer);
    REFUSED(ds_accel_timer_start(timer, NULL));
    REFUSED(ds_accel_timer_elapsed_ms(timer, &elapsed_ms));
}

static void misuse_pinned(ds_accel_t *context, ds_accel_device_t *device)
{
    struct ds_accel_pinned_stats stats = {.struct_size = sizeof(stats)};
    char local;
    uint32_t number;
    void *pointer = NULL;

    REFUSED(ds_accel_mem_alloc_pinned(NULL, 1, 1, 0, &pointer));
    REFUSED(ds_accel_mem_alloc_pinned(device, 1, 1, 0, NULL));
    REFUSED(ds_accel_mem_alloc_pinned(device, 0, 1, 0, &pointer));
    REFUSED(ds_accel_mem_alloc_pinned(device, 1, 3, 0, &pointer));
    REFUSED(ds_accel_mem_alloc_pinned(device, 1, UINT64_MAX, 0, &pointer));
    REFUSED(ds_accel_mem_alloc_pinned(device, 1, 1, UINT32_MAX, &pointer));
    cr_expect_lt(ds_accel_mem_alloc_pinned(device, UINT64_MAX, 1, 0, &pointer), 0);
    cr_expect_lt(ds_accel_mem_alloc_pinned(device, UINT64_MAX, 0, 0, &pointer), 0);
    cr_expect_lt(ds_accel_mem_alloc_pinned(device, INT64_MAX, 1, 0, &pointer), 0);
    cr_expect_lt(ds_accel_mem_alloc_pinned(device, 1, UINT64_C(1) << 63, 0, &pointer), 0);
    cr_expect_null(pointer);
    REFUSED(ds_accel_mem_free_pinned(NULL, NULL));
    REFUSED(ds_accel_mem_free_pinned(device, &local));
    REFUSED(ds_accel_pinned_stats(NULL, &stats));
    REFUSED(ds_accel_pinned_stats(device, NULL));
    REFUSED(ds_accel_pinned_reset_peaks(NULL));
    REFUSED(ds_accel_pinned_empty_cache(NULL));
    REFUSED(ds_accel_pinned_set_limit(NULL, 0));
    REFUSED(ds_accel_is_pinned(NULL, &local, &number));
    REFUSED(ds_accel_is_pinned(context, &local, NULL));
    cr_expect_leq(ds_accel_is_pinned(context, NULL, &number), 0);
}

static void misuse_generators(ds_accel_t *context, ds_accel_device_t *device)
{
    struct ds_accel_rng_position position = {.struct_size = 0};
    unsigned char state[256] = {0};
    ds_accel_rng_t *rng;
    uint64_t seed;
    float number = 0;

    REFUSED(ds_accel_rng_create(NULL, 0, 0, &rng));
    REFUSED(ds_accel_rng_create(device, 0, 0, NULL));
    REFUSED(ds_accel_rng_create(device, 0, UINT32_MAX, &rng));
    REFUSED(ds_accel_default_rng(NULL, &rng));
    REFUSED(ds_accel_default_rng(device, NULL));
    REFUSED(ds_accel_rng_manual_seed(NULL, 0));
    REFUSED(ds_accel_rng_seed(NULL, &seed));
    REFUSED(ds_accel_rng_initial_seed(NULL, &seed));
    REFUSED(ds_accel_rng_position(NULL, &position));
    REFUSED(ds_accel_rng_set_position(NULL, &position));
    REFUSED(ds_accel_rng_get_state(NULL, state, sizeof(state), NULL));
    REFUSED(ds_accel_rng_set_state(NULL, state, sizeof(state)));
    REFUSED(ds_accel_rng_uniform(NULL, NULL, &number, 1, DS_ACCEL_DTYPE_FLOAT32, 0, 1));
    REFUSED(ds_accel_manual_seed(NULL, 0));
    REFUSED(ds_accel_manual_seed_all(NULL, 0));
    REFUSED(ds_accel_seed(NULL, &seed));
    REFUSED(ds_accel_seed(context, NULL));
    REFUSED(ds_accel_initial_seed(context, NULL));
    REFUSED(ds_accel_get_rng_state(context, -2, state, sizeof(state), NULL));
    REFUSED(ds_accel_get_rng_state(context, INT32_MAX, state, sizeof(state), NULL));
    REFUSED(ds_accel_set_rng_state(context, INT32_MIN, state, sizeof(state)));
    MUST(ds_accel_rng_create(device, 0, 0, &rng));
    REFUSED(ds_accel_rng_seed(rng, NULL));
    REFUSED(ds_accel_rng_initial_seed(rng, NULL));
    REFUSED(ds_accel_rng_position(rng, NULL));
    REFUSED(ds_accel_rng_set_position(rng, NULL));
    REFUSED(ds_accel_rng_set_position(rng, &position));
    REFUSED(ds_accel_rng_get_state(rng, NULL, 0, NULL));
    REFUSED(ds_accel_rng_set_state(rng, NULL, 0));
    REFUSED(ds_accel_rng_set_state(rng, state, 0));
    REFUSED(ds_accel_rng_set_state(rng, state, sizeof(state)));
    REFUSED(ds_accel_rng_uniform(rng, NULL, NULL, 1, DS_ACCEL_DTYPE_FLOAT32, 0, 1));
    REFUSED(ds_accel_rng_uniform(rng, NULL, &number, UINT64_MAX, DS_ACCEL_DTYPE_FLOAT32, 0, 1));
    REFUSED(ds_accel_rng_uniform(rng, NULL, &number, 1, UINT32_MAX, 0, 1));
    REFUSED(ds_accel_rng_normal(rng, NULL, &number, 1, DS_ACCEL_DTYPE_FLOAT32, 0, -1));
    REFUSED(ds_accel_rng_bits(rng, NULL, (char *)&number + 1, 1, DS_ACCEL_DTYPE_INT32));
    ds_accel_rng_destroy(rng);
    ds_accel_rng_destroy(rng);
    REFUSED(ds_accel_rng_manual_seed(rng, 0));
}

static void misuse_tensors(ds_accel_t *context, ds_accel_device_t *device)
{
    struct ds_accel_tensor_memory memory = {.struct_size = 0};
    struct ds_accel_tensor_info info = {.struct_size = sizeof(info)};
    ds_accel_tensor_t *made = NULL;
    ds_accel_tensor_t *tensor;
    uint32_t number;
    void *managed;

    REFUSED(ds_accel_tensor_create(NULL, DS_ACCEL_DTYPE_INT8, 0, NULL, &made));
    REFUSED(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT8, 0, NULL, NULL));
    REFUSED(ds_accel_tensor_create(device, UINT32_MAX, 0, NULL, &made));
    REFUSED(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT8, UINT32_MAX, SHAPE(1), &made));
    REFUSED(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT8, 1, NULL, &made));
    REFUSED(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT8, 1, SHAPE(-1), &made));
    REFUSED(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT64, 1, SHAPE(INT64_MAX), &made));
    cr_expect_lt(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_INT8, 1, SHAPE(INT64_MAX), &made),
                 0);
    REFUSED(ds_accel_tensor_create_pinned(device, DS_ACCEL_DTYPE_INT8, 1, SHAPE(1), 3, &made));
    REFUSED(ds_accel_tensor_from_memory(NULL, NULL, &made));
    REFUSED(ds_accel_tensor_from_memory(NULL, &memory, &made));
    cr_expect_null(ds_accel_tensor_get(NULL));
    ds_accel_tensor_put(NULL);
    cr_expect_null(ds_accel_tensor_data(NULL));
    REFUSED(ds_accel_tensor_info(NULL, &info));
    REFUSED(ds_accel_tensor_from_dlpack(context, NULL, 0, &made));
    MUST(ds_accel_tensor_create_host(DS_ACCEL_DTYPE_INT8, 1, SHAPE(4), &tensor));
    REFUSED(ds_accel_tensor_info(tensor, NULL));
    REFUSED(ds_accel_tensor_view(tensor, INT64_MIN, 1, SHAPE(1), NULL, &made));
    REFUSED(ds_accel_tensor_view(tensor, 0, 1, SHAPE(2), SHAPE(INT64_MAX), &made));
    REFUSED(ds_accel_tensor_view(tensor, 0, 1, SHAPE(2), SHAPE(INT64_MIN), &made));
    REFUSED(ds_accel_tensor_view(tensor, 0, 1, NULL, NULL, &made));
    REFUSED(ds_accel_tensor_view(tensor, 0, 0, NULL, NULL, NULL));
    REFUSED(ds_accel_tensor_reshape(tensor, 2, SHAPE(-1, -1), &made));
    REFUSED(ds_accel_tensor_reshape(tensor, 2, SHAPE(INT64_MAX, INT64_MAX), &made));
    REFUSED(ds_accel_tensor_reshape(tensor, 1, SHAPE(INT64_MIN), &made));
    REFUSED(ds_accel_tensor_slice(tensor, 1, 0, 1, 1, &made));
    REFUSED(ds_accel_tensor_slice(tensor, 0, INT64_MIN, INT64_MAX, 1, &made));
    REFUSED(ds_accel_tensor_slice(tensor, 0, 0, 4, 0, &made));
    REFUSED(ds_accel_tensor_transpose(tensor, 0, UINT32_MAX, &made));
    REFUSED(ds_accel_tensor_copy(tensor, NULL, NULL));
    REFUSED(ds_accel_tensor_copy(NULL, tensor, NULL));
    REFUSED(ds_accel_tensor_to(NULL, device, NULL, &made));
    REFUSED(ds_accel_tensor_to(tensor, device, NULL, NULL));
    REFUSED(ds_accel_tensor_contiguous(NULL, NULL, &made));
    REFUSED(ds_accel_tensor_contiguous(tensor, NULL, NULL));
    REFUSED(ds_accel_tensor_fill(tensor, NULL, NULL));
    REFUSED(ds_accel_tensor_zero(NULL, NULL));
    REFUSED(ds_accel_tensor_record_stream(NULL, NULL));
    REFUSED(ds_accel_on_accelerator(NULL, &number));
    REFUSED(ds_accel_on_accelerator(tensor, NULL));
    REFUSED(ds_accel_pin_memory(NULL, device, 1, &made));
    REFUSED(ds_accel_pin_memory(tensor, NULL, 1, &made));
    REFUSED(ds_accel_pin_memory(tensor, device, 3, &made));
    REFUSED(ds_accel_pin_memory(tensor, device, UINT64_MAX, &made));
    REFUSED(ds_accel_tensor_is_pinned(tensor, NULL));
    REFUSED(ds_accel_tensor_to_dlpack(NULL, 0, -1, &managed));
    REFUSED(ds_accel_tensor_to_dlpack(tensor, UINT32_MAX, -1, &managed));
    REFUSED(ds_accel_tensor_to_dlpack(tensor, 0, -1, NULL));
    cr_expect_null(made);
    ds_accel_tensor_put(tensor);
    ds_accel_tensor_put(tensor);
    REFUSED(ds_accel_tensor_info(tensor, &info));
    cr_expect_null(ds_accel_tensor_get(tensor));
}

static void misuse_texts(void)
{
    void *data;
    size_t size_bytes;
    char *text;

    REFUSED(ds_accel_memory_snapshot_convert(NULL, 1, &data, &size_bytes));
    REFUSED(ds_accel_memory_snapshot_convert("/", 1, NULL, &size_bytes));
    REFUSED(ds_accel_memory_snapshot_convert("/", 1, &data, NULL));
    cr_expect_lt(ds_accel_memory_snapshot_convert("/", 1, &data, &size_bytes), 0);
    cr_expect_lt(ds_accel_memory_snapshot_convert("", UINT32_MAX, &data, &size_bytes), 0);
    ds_accel_free_data(NULL);
    REFUSED(ds_accel_conformance(NULL, "mock", 0, NULL, 0, NULL));
    REFUSED(ds_accel_conformance(NULL, NULL, 0, "no such rule", 0, &text));
}

static void misuse_all(const char *accelerator)
{
    ds_accel_device_t *device;
    ds_accel_t *context = test_start(accelerator, &device);

    misuse_facts(context, device);
    misuse_sharing(context, device);
    misuse_environment(context);
    misuse_timers(device);
    misuse_pinned(context, device);
    misuse_generators(context, device);
    misuse_tensors(context, device);
    misuse_texts();
    EXPECT_STATUS(ds_accel_device_synchronize(device), DS_ACCEL_OK);
    ds_accel_device_close(device);
    ds_accel_destroy(context);
}

Test(core_misuse, gets_a_status_from_the_mock)
{
    misuse_all("mock");
}

Test(core_misuse, gets_a_status_from_the_cpu)
{
    misuse_all("cpu");
}

/* ---- a child of a process whose other threads hold locks ------------------------------------ */

static struct ds_accel_plugin slow;
static const struct ds_accel_plugin *quick;
static sem_t opening;
static sem_t go_on;

/* Open the second device only when the test allows it; meanwhile the library's lock is held. */
static int32_t open_slowly(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                           ds_accel_plugin_device_t **device_out, struct ds_accel_error *error)
{
    if (device_index == 1) {
        sem_post(&opening);
        sem_wait(&go_on);
    }
    return quick->device_open(instance, device_index, device_out, error);
}

static const struct ds_accel_plugin *slow_entry(const struct ds_accel_host *host)
{
    void *module = dlopen(TEST_MOCKS "/ds_accel_alpha.so", RTLD_NOW | RTLD_LOCAL);
    ds_accel_entry_v1_t entry =
        module != NULL ? (ds_accel_entry_v1_t)dlsym(module, DS_ACCEL_ENTRY_V1_SYMBOL) : NULL;

    cr_assert_not_null(entry);
    quick = entry(host);
    slow = *quick;
    slow.device_open = open_slowly;
    return &slow;
}

static void *open_second(void *context)
{
    ds_accel_device_t *device = NULL;

    MUST(ds_accel_device_open(context, 1, &device));
    ds_accel_device_close(device);
    return NULL;
}

struct inherited {
    ds_accel_t *context;
    ds_accel_device_t *device;
    ds_accel_rng_t *rng;
    ds_accel_timer_t *timer;
    ds_accel_tensor_t *on_device;
    ds_accel_tensor_t *on_host;
    ds_accel_tensor_t *pinned;
};

/* Exit the child with status 1 unless the call fails as expected. */
#define REFUSES(call) \
    do { \
        if ((call) != DS_ACCEL_ERR_STATE) { \
            fprintf(stderr, "%s: %s\n", #call, ds_accel_last_error()); \
            _exit(1); \
        } \
    } while (0)

static void use_inherited(const struct inherited *had)
{
    struct ds_accel_pinned_stats stats = {.struct_size = sizeof(stats)};
    unsigned char state[256];
    ds_accel_tensor_t *made;
    ds_accel_timer_t *timer;
    ds_accel_rng_t *rng;
    uint64_t seed;
    uint32_t number;
    char value[64];
    float element = 0;
    void *pointer;

    REFUSES(ds_accel_manual_seed(had->context, 1));
    REFUSES(ds_accel_manual_seed_all(had->context, 1));
    REFUSES(ds_accel_seed(had->context, &seed));
    REFUSES(ds_accel_get_rng_state(had->context, 0, state, sizeof(state), NULL));
    REFUSES(ds_accel_rng_create(had->device, 1, 0, &rng));
    REFUSES(ds_accel_default_rng(had->device, &rng));
    REFUSES(ds_accel_rng_manual_seed(had->rng, 1));
    REFUSES(ds_accel_rng_bits(had->rng, NULL, &element, 1, DS_ACCEL_DTYPE_INT32));
    ds_accel_rng_destroy(had->rng);
    REFUSES(ds_accel_timer_create(had->device, &timer));
    REFUSES(ds_accel_dtype_support(had->device, DS_ACCEL_DTYPE_INT8, &number));
    REFUSES(ds_accel_mem_alloc_pinned(had->device, 64, 1, 0, &pointer));
    REFUSES(ds_accel_mem_free_pinned(had->device, NULL));
    REFUSES(ds_accel_pinned_stats(had->device, &stats));
    REFUSES(ds_accel_pinned_empty_cache(had->device));
    REFUSES(ds_accel_is_pinned(had->context, &element, &number));
    REFUSES(ds_accel_peer_enable(had->device, had->device));
    REFUSES(ds_accel_visible_devices_value(had->context, NULL, &(uint32_t){0}, 1, value,
                                           sizeof(value), NULL));
    REFUSES(ds_accel_tensor_create(had->device, DS_ACCEL_DTYPE_INT8, 0, NULL, &made));
    REFUSES(ds_accel_tensor_create_pinned(had->device, DS_ACCEL_DTYPE_INT8, 0, NULL, 1, &made));
    REFUSES(ds_accel_tensor_zero(had->on_device, NULL));
    REFUSES(ds_accel_tensor_copy(had->on_device, had->on_host, NULL));
    REFUSES(ds_accel_tensor_to(had->on_device, NULL, NULL, &made));
    REFUSES(ds_accel_tensor_to(had->on_host, had->device, NULL, &made));
    REFUSES(ds_accel_pin_memory(had->on_host, had->device, 1, &made));
    REFUSES(ds_accel_tensor_to_dlpack(had->on_device, DS_ACCEL_DLPACK_COPY, -1, &pointer));
    REFUSES(ds_accel_tensor_to_dlpack(had->pinned, DS_ACCEL_DLPACK_COPY, -1, &pointer));
    ds_accel_tensor_put(had->on_device);
    ds_accel_tensor_put(had->pinned);
    ds_accel_tensor_put(had->on_host);
    ds_accel_timer_destroy(had->timer);
    ds_accel_device_close(had->device);
    ds_accel_destroy(had->context);
}

Test(core_misuse, waits_for_no_lock_that_a_thread_had_before_fork)
{
    struct ds_accel_options options = test_options();
    struct inherited had;
    pthread_t thread;
    int status = 0;
    pid_t child;

    sem_init(&opening, 0, 0);
    sem_init(&go_on, 0, 0);
    options.accelerator = "alpha";
    had.context = test_create_with(&options);
    MUST(ds_accel_register(had.context, slow_entry));
    MUST(ds_accel_detect(had.context));
    MUST(ds_accel_device_open(had.context, 0, &had.device));
    MUST(ds_accel_rng_create(had.device, 0, 0, &had.rng));
    MUST(ds_accel_timer_create(had.device, &had.timer));
    MUST(ds_accel_tensor_create(had.device, DS_ACCEL_DTYPE_INT8, 1, SHAPE(4), &had.on_device));
    MUST(ds_accel_tensor_create_pinned(had.device, DS_ACCEL_DTYPE_INT8, 1, SHAPE(4), 1,
                                       &had.pinned));
    MUST(ds_accel_tensor_create_host(DS_ACCEL_DTYPE_INT8, 1, SHAPE(4), &had.on_host));
    cr_assert_eq(pthread_create(&thread, NULL, open_second, had.context), 0);
    sem_wait(&opening);
    child = fork();
    if (child == 0) {
        alarm(60);
        use_inherited(&had);
        _exit(0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %#x", status);
    sem_post(&go_on);
    pthread_join(thread, NULL);
    ds_accel_tensor_put(had.on_device);
    ds_accel_tensor_put(had.pinned);
    ds_accel_tensor_put(had.on_host);
    ds_accel_device_close(had.device);
    ds_accel_destroy(had.context);
}
