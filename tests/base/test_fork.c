/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The library in a child after fork(): every call returns, and the child can open an accelerator of
   its own. */
#include "fork.h"

#include <dlfcn.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

static void start(void)
{
    struct ds_accel_options options = test_options();

    options.accelerator = "mock";
    context = test_create_with(&options);
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_assert_eq(ds_accel_device_open(context, 0, &device), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_instance(context, &table, &instance), DS_ACCEL_OK);
}

Test(core_fork, device_calls_say_who_started_the_accelerator, .init = start, .fini = stop)
{
    in_child(use_device);
    cr_expect_eq(ds_accel_device_synchronize(device), DS_ACCEL_OK, "the parent is as it was");
}

static void use_device_in_grandchild(void)
{
    pid_t parent = getppid();
    int status = 0;
    pid_t child = fork();
    char words[64];

    snprintf(words, sizeof(words), "started by process %ld before fork()", (long)parent);
    if (child == 0) {
        CHECK(ds_accel_device_synchronize(device) == DS_ACCEL_ERR_STATE);
        CHECK(strstr(ds_accel_last_error(), words) != NULL);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

Test(core_fork, child_of_a_child_too, .init = start, .fini = stop)
{
    in_child(use_device_in_grandchild);
}

/* The mock logs its remaining objects at shutdown; an empty log shows that the child did not call
   it. */
static void destroy_all(void)
{
    test_log[0] = '\0';
    ds_accel_device_close(device);
    ds_accel_destroy(context);
    CHECK(test_log[0] == '\0');
}

Test(core_fork, destroying_in_the_child_leaves_the_plugin_alone, .init = start, .fini = stop)
{
    ds_accel_plugin_stream_t *stream = NULL;
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    cr_assert_eq(table->stream_create(ds_accel_device_handle(device), 0, 0, &stream, &error),
                 DS_ACCEL_OK);
    in_child(destroy_all);
    table->stream_destroy(stream);
}

static void start_anew(void)
{
    struct ds_accel_options options = test_options();
    ds_accel_device_t *own = NULL;
    ds_accel_t *made = NULL;

    options.accelerator = "mock";
    CHECK(ds_accel_create(&options, &made) == DS_ACCEL_OK);
    CHECK(ds_accel_detect(made) == DS_ACCEL_OK);
    CHECK(ds_accel_device_open(made, 0, &own) == DS_ACCEL_OK);
    CHECK(ds_accel_device_synchronize(own) == DS_ACCEL_OK);
    CHECK(ds_accel_device_synchronize(device) == DS_ACCEL_ERR_STATE);
    ds_accel_device_close(own);
    ds_accel_destroy(made);
}

Test(core_fork, child_starts_an_accelerator_of_its_own, .init = start, .fini = stop)
{
    in_child(start_anew);
}

static void start_layered(void)
{
    setenv("DS_ACCEL_LAYERS", "validate,leak", 1);
    start();
}

Test(core_fork, layers_tell_nothing_of_what_the_parent_has, .init = start_layered, .fini = stop)
{
    void *memory = NULL;
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    cr_assert_eq(table->mem_alloc(ds_accel_device_handle(device), 64, 0, 0, &memory, &error),
                 DS_ACCEL_OK);
    in_child(use_device);
    in_child(destroy_all);
    in_child(start_anew);
    cr_expect_eq(table->mem_free(ds_accel_device_handle(device), memory, &error), DS_ACCEL_OK, "%s",
                 error.message);
}

static ds_accel_t *default_context;

static void get_default(void)
{
    CHECK(ds_accel_get() == default_context);
    CHECK(ds_accel_device_synchronize(device) == DS_ACCEL_ERR_STATE && says_why());
}

Test(core_fork, default_context_stays_the_same, .init = start)
{
    cr_assert_eq(ds_accel_set_default(context), DS_ACCEL_OK);
    default_context = context;
    in_child(get_default);
}

static ds_accel_stream_t *stream;
static ds_accel_event_t *event;
static ds_accel_graph_t *graph;
static ds_accel_timer_t *timer;

static void make_handles(void)
{
    start();
    cr_assert_eq(ds_accel_stream_create(device, 0, 0, &stream), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_event_create(device, 0, &event), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_graph_create(device, &graph), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_timer_create(device, &timer), DS_ACCEL_OK);
}

/* Check that every call with a handle fails at once. */
static void use_handles(void)
{
    ds_accel_stream_t *made = NULL;
    ds_accel_graph_t *drawn = NULL;
    uint64_t count = 0;
    double elapsed_ms;
    char *text;

    CHECK(ds_accel_device_synchronize(device) == DS_ACCEL_ERR_STATE && says_why());
    CHECK(ds_accel_device_health(device) == DS_ACCEL_ERR_STATE);
    CHECK(ds_accel_stream_create(device, 0, 0, &made) == DS_ACCEL_ERR_STATE);
    CHECK(ds_accel_stream_synchronize(stream) == DS_ACCEL_ERR_STATE && says_why());
    CHECK(ds_accel_stream_query(stream) == DS_ACCEL_ERR_STATE);
    CHECK(ds_accel_stream_wait_event(stream, event) == DS_ACCEL_ERR_STATE);
    CHECK(ds_accel_stream_wait_stream(stream, stream) == DS_ACCEL_ERR_STATE);
    CHECK(ds_accel_set_current_stream(stream) == DS_ACCEL_ERR_STATE);
    CHECK(ds_accel_event_record(event, stream) == DS_ACCEL_ERR_STATE);
    CHECK(ds_accel_event_query(event) == DS_ACCEL_ERR_STATE);
    CHECK(ds_accel_event_synchronize(event) == DS_ACCEL_ERR_STATE);
    CHECK(ds_accel_event_elapsed_ms(event, event, &elapsed_ms) == DS_ACCEL_ERR_STATE);
    CHECK(ds_accel_graph_create(device, &drawn) == DS_ACCEL_ERR_STATE);
    CHECK(ds_accel_graph_capture_begin(graph, stream, NULL, 0) == DS_ACCEL_ERR_STATE);
    CHECK(ds_accel_graph_capture_end(graph) == DS_ACCEL_ERR_STATE);
    CHECK(ds_accel_graph_instantiate(graph) == DS_ACCEL_ERR_STATE);
    CHECK(ds_accel_graph_replay(graph, NULL) == DS_ACCEL_ERR_STATE && says_why());
    CHECK(ds_accel_graph_node_count(graph, &count) == DS_ACCEL_ERR_STATE);
    CHECK(ds_accel_graph_dump(graph, &text) == DS_ACCEL_ERR_STATE);
    CHECK(ds_accel_timer_start(timer, stream) == DS_ACCEL_ERR_STATE);
    CHECK(ds_accel_mem_copy_async(stream, &count, &count, 8, DS_ACCEL_COPY_HOST_TO_HOST) ==
          DS_ACCEL_ERR_STATE);
    CHECK(ds_accel_mem_set(device, &count, 0, 8) == DS_ACCEL_ERR_STATE);
    CHECK(ds_accel_mem_free(device, stream, &count) == DS_ACCEL_ERR_STATE);
    ds_accel_timer_destroy(timer);
    ds_accel_graph_destroy(graph);
    ds_accel_event_destroy(event);
    ds_accel_stream_destroy(stream);
    ds_accel_device_close(device);
}

static void use_handles_of_a_destroyed_context(void)
{
    use_handles();
    mallopt(M_PERTURB, 0x5a); /* freed memory is overwritten */
    ds_accel_destroy(context);
    use_handles();
}

Test(core_fork, handles_answer_in_the_child_also_after_their_context, .init = make_handles,
     .fini = stop)
{
    in_child(use_handles);
    in_child(use_handles_of_a_destroyed_context);
    cr_expect_eq(ds_accel_stream_synchronize(stream), DS_ACCEL_OK, "the parent is as it was");
}

/* Further objects that the parent creates on its device. */
static struct {
    ds_accel_pool_t *pool;
    ds_accel_rng_t *rng;
    ds_accel_tensor_t *tensor;
    ds_accel_tensor_t *pinned;
} others;

static void make_all(void)
{
    const int64_t shape = 4;

    make_handles();
    cr_assert_eq(ds_accel_timer_start(timer, stream), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_timer_stop(timer, stream), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_pool_create(device, &others.pool), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_rng_create(device, 1, 0, &others.rng), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_FLOAT32, 1, &shape, &others.tensor),
                 DS_ACCEL_OK);
    cr_assert_eq(
        ds_accel_tensor_create_pinned(device, DS_ACCEL_DTYPE_FLOAT32, 1, &shape, 0, &others.pinned),
        DS_ACCEL_OK);
}

#define REFUSED(call) refused(call, #call)

static bool all_refused;

static void refused(int32_t status, const char *call)
{
    if (status != DS_ACCEL_ERR_STATE) {
        fprintf(stderr, "%s: %d\n", call, status);
        all_refused = false;
    }
}

static void use_streams_and_memory(void)
{
    ds_accel_stream_t *got = NULL;
    ds_accel_event_t *made = NULL;
    void *pointer = NULL;
    uint64_t number = 0;
    uint32_t word = 0;
    int32_t low;
    int32_t high;

    REFUSED(ds_accel_default_stream(device, &got));
    REFUSED(ds_accel_current_stream(device, &got));
    REFUSED(ds_accel_stream_priority_range(device, &low, &high));
    REFUSED(ds_accel_stream_wrap(device, 1, &got));
    REFUSED(ds_accel_stream_native(stream, &number));
    REFUSED(ds_accel_stream_is_capturing(stream, &word));
    REFUSED(ds_accel_event_create(device, 0, &made));
    REFUSED(ds_accel_mem_alloc(device, stream, 64, &pointer));
    REFUSED(ds_accel_mem_alloc(device, NULL, 64, &pointer));
    REFUSED(ds_accel_mem_alloc_aligned(device, stream, 64, 64, &pointer));
    REFUSED(ds_accel_mem_record_stream(device, &number, stream));
    REFUSED(ds_accel_mem_alloc_pinned(device, 64, 1, 0, &pointer));
    REFUSED(ds_accel_mem_free_pinned(device, &number));
    REFUSED(ds_accel_mem_register(device, &number, 8, 0));
    REFUSED(ds_accel_mem_unregister(device, &number));
    REFUSED(ds_accel_mem_copy(device, &number, &number, 8, DS_ACCEL_COPY_HOST_TO_HOST));
    REFUSED(ds_accel_mem_copy_peer_async(stream, device, &number, device, &number, 8));
    REFUSED(ds_accel_pool_create(device, &(ds_accel_pool_t *){NULL}));
    REFUSED(ds_accel_pool_begin(others.pool));
    REFUSED(ds_accel_pool_end(others.pool));
    REFUSED(ds_accel_peer_can_access(device, device, &word));
    REFUSED(ds_accel_peer_enable(device, device));
    REFUSED(ds_accel_peer_disable(device, device));
    REFUSED(ds_accel_ipc_memory_export(device, &number, &number, 8));
    REFUSED(ds_accel_ipc_memory_unexport(device, &number, 8));
    REFUSED(ds_accel_ipc_memory_open(device, &number, 8, &pointer));
    REFUSED(ds_accel_ipc_memory_close(device, &number));
    REFUSED(ds_accel_ipc_event_export(event, &number, 8));
    REFUSED(ds_accel_ipc_event_open(device, &number, 8, &made));
    REFUSED(ds_accel_dmabuf_export(device, &number, 8, &low, &number));
    REFUSED(ds_accel_dmabuf_import(device, 0, 0, 8, &pointer));
    REFUSED(ds_accel_dmabuf_release(device, &number));
    REFUSED(ds_accel_dtype_support(device, DS_ACCEL_DTYPE_FLOAT32, &word));
}

static void use_figures(void)
{
    struct ds_accel_pinned_stats stats = {.struct_size = sizeof(stats)};
    uint64_t number = 0;
    int64_t value = 0;
    double part = 0;
    char *text = NULL;
    void *data = NULL;

    REFUSED(ds_accel_memory_allocated(device, &number));
    REFUSED(ds_accel_max_memory_allocated(device, &number));
    REFUSED(ds_accel_memory_reserved(device, &number));
    REFUSED(ds_accel_max_memory_reserved(device, &number));
    REFUSED(ds_accel_reset_peak_memory_stats(device));
    REFUSED(ds_accel_reset_max_memory_allocated(device));
    REFUSED(ds_accel_reset_max_memory_reserved(device));
    REFUSED(ds_accel_total_memory(device, &number));
    REFUSED(ds_accel_available_memory(device, &number));
    REFUSED(ds_accel_memory_stat(device, "allocation.all.current", &value));
    REFUSED(ds_accel_memory_stats(device, &text));
    REFUSED(ds_accel_memory_fragmentation(device, &part, &number));
    REFUSED(ds_accel_empty_cache(device));
    REFUSED(ds_accel_memory_trim(device, 0));
    REFUSED(ds_accel_memory_set_limit(device, UINT64_MAX));
    REFUSED(ds_accel_memory_set_fraction(device, 1));
    REFUSED(ds_accel_memory_set_failure_callback(device, NULL, NULL));
    REFUSED(ds_accel_memory_record_history(device, 0, 0));
    REFUSED(ds_accel_memory_snapshot(context, device, 0, &data, &(size_t){0}));
    REFUSED(ds_accel_pinned_stats(device, &stats));
    REFUSED(ds_accel_host_memory_stat(device, "allocation.current", &value));
    REFUSED(ds_accel_host_memory_stats(device, &text));
    REFUSED(ds_accel_pinned_reset_peaks(device));
    REFUSED(ds_accel_pinned_empty_cache(device));
    REFUSED(ds_accel_pinned_set_limit(device, UINT64_MAX));
}

static void use_generator_and_timer(void)
{
    struct ds_accel_rng_position position = {.struct_size = sizeof(position)};
    ds_accel_timer_t *made = NULL;
    ds_accel_rng_t *got = NULL;
    unsigned char state[64];
    uint64_t number = 0;
    double elapsed_ms;

    REFUSED(ds_accel_rng_create(device, 1, 0, &got));
    REFUSED(ds_accel_default_rng(device, &got));
    REFUSED(ds_accel_rng_manual_seed(others.rng, 1));
    REFUSED(ds_accel_rng_seed(others.rng, &number));
    REFUSED(ds_accel_rng_initial_seed(others.rng, &number));
    REFUSED(ds_accel_rng_position(others.rng, &position));
    REFUSED(ds_accel_rng_set_position(others.rng, &position));
    REFUSED(ds_accel_rng_get_state(others.rng, state, sizeof(state), &number));
    REFUSED(ds_accel_rng_set_state(others.rng, state, sizeof(state)));
    REFUSED(ds_accel_rng_uniform(others.rng, stream, &number, 1, DS_ACCEL_DTYPE_FLOAT32, 0, 1));
    REFUSED(ds_accel_rng_normal(others.rng, stream, &number, 1, DS_ACCEL_DTYPE_FLOAT32, 0, 1));
    REFUSED(ds_accel_rng_bits(others.rng, stream, &number, 1, DS_ACCEL_DTYPE_INT32));
    REFUSED(ds_accel_timer_create(device, &made));
    REFUSED(ds_accel_timer_elapsed_ms(timer, &elapsed_ms));
    REFUSED(ds_accel_timer_start(timer, stream));
    REFUSED(ds_accel_timer_start(timer, NULL));
    REFUSED(ds_accel_timer_stop(timer, stream));
}

static void use_tensor(ds_accel_tensor_t *tensor)
{
    const int64_t shape = 4;
    const int64_t half = 2;
    struct ds_accel_tensor_memory memory = {.struct_size = sizeof(memory),
                                            .dtype = DS_ACCEL_DTYPE_FLOAT32};
    ds_accel_tensor_t *got = NULL;
    float value = 1;
    void *managed = NULL;

    REFUSED(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_FLOAT32, 1, &shape, &got));
    REFUSED(ds_accel_tensor_create_pinned(device, DS_ACCEL_DTYPE_FLOAT32, 1, &shape, 0, &got));
    REFUSED(ds_accel_tensor_from_memory(device, &memory, &got));
    REFUSED(ds_accel_tensor_copy(tensor, tensor, NULL));
    REFUSED(ds_accel_tensor_to(tensor, device, NULL, &got));
    REFUSED(ds_accel_tensor_to(tensor, NULL, NULL, &got));
    CHECK(ds_accel_tensor_view(tensor, 2, 1, &half, NULL, &got) == DS_ACCEL_OK);
    ds_accel_tensor_put(got);
    REFUSED(ds_accel_tensor_contiguous(tensor, NULL, &got));
    REFUSED(ds_accel_tensor_fill(tensor, &value, NULL));
    REFUSED(ds_accel_tensor_zero(tensor, NULL));
    REFUSED(ds_accel_tensor_record_stream(tensor, stream));
    REFUSED(ds_accel_pin_memory(tensor, device, 1, &got));
    REFUSED(ds_accel_tensor_to_dlpack(tensor, 0, DS_ACCEL_DLPACK_NO_STREAM, &managed));
}

static void use_all(void)
{
    all_refused = true;
    use_streams_and_memory();
    use_figures();
    use_generator_and_timer();
    use_tensor(others.tensor);
    use_tensor(others.pinned);
    CHECK(all_refused);
}

Test(core_fork, every_call_on_a_device_is_refused_in_the_child, .init = make_all, .fini = stop)
{
    in_child(use_all);
}

Test(core_fork, every_accelerator_of_the_parent_is_out_of_use_in_the_child)
{
    ds_accel_device_t *devices[2];
    ds_accel_t *contexts[2] = {test_start("mock", &devices[0]), test_start("cpu", &devices[1])};
    int result = -1;
    pid_t child = fork();

    cr_assert_geq(child, 0);
    if (child == 0) {
        alarm(60);
        _exit(ds_accel_device_synchronize(devices[0]) == DS_ACCEL_ERR_STATE &&
                      ds_accel_device_synchronize(devices[1]) == DS_ACCEL_ERR_STATE
                  ? 0
                  : 1);
    }
    cr_assert_eq(waitpid(child, &result, 0), child);
    cr_expect_eq(result, 0);
    test_finish(contexts[1], devices[1]);
    test_finish(contexts[0], devices[0]);
}

/* ---- a plugin that forks at the start of a capture ------------------------------------------- */

static int32_t (*true_begin)(ds_accel_plugin_stream_t *stream, uint32_t mode,
                             struct ds_accel_error *error);
static pid_t forked = -1;

static int32_t fork_and_begin(ds_accel_plugin_stream_t *captured, uint32_t mode,
                              struct ds_accel_error *error)
{
    forked = fork();
    return forked == 0 ? DS_ACCEL_ERR_STATE : true_begin(captured, mode, error);
}

static const struct ds_accel_plugin *forking_entry(const struct ds_accel_host *host)
{
    static struct ds_accel_plugin forking;
    void *module = dlopen(TEST_MOCKS "/ds_accel_alpha.so", RTLD_NOW | RTLD_LOCAL);
    ds_accel_entry_v1_t entry =
        module != NULL ? (ds_accel_entry_v1_t)dlsym(module, DS_ACCEL_ENTRY_V1_SYMBOL) : NULL;

    cr_assert_not_null(entry);
    forking = *entry(host);
    forking.name = "forking";
    true_begin = forking.graph_capture_begin;
    forking.graph_capture_begin = fork_and_begin;
    return &forking;
}

static void sleep_a_while(void *unused, int32_t status)
{
    (void)unused;
    (void)status;
    usleep(50000);
}

/* Check that the child reuses the pinned block of a destroyed stream. Such a stream can be queried
   only through its device, which is allowed only while no stream captures. */
static void reuse_pinned(void)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *made = NULL;
    ds_accel_device_t *own = NULL;
    ds_accel_stream_t *gone = NULL;
    void *first = NULL;
    void *second = NULL;

    setenv("DS_ACCEL_CPU_ASYNC", "true", 1);
    options.accelerator = "cpu";
    CHECK(ds_accel_create(&options, &made) == DS_ACCEL_OK);
    CHECK(ds_accel_detect(made) == DS_ACCEL_OK);
    CHECK(ds_accel_device_open(made, 0, &own) == DS_ACCEL_OK);
    CHECK(ds_accel_stream_create(own, 0, 0, &gone) == DS_ACCEL_OK);
    CHECK(ds_accel_mem_alloc_pinned(own, 4096, 1, 0, &first) == DS_ACCEL_OK);
    CHECK(ds_accel_stream_host_task(gone, sleep_a_while, NULL) == DS_ACCEL_OK);
    ds_accel_stream_destroy(gone);
    CHECK(ds_accel_mem_free_pinned(own, first) == DS_ACCEL_OK);
    CHECK(ds_accel_device_synchronize(own) == DS_ACCEL_OK);
    CHECK(ds_accel_mem_alloc_pinned(own, 4096, 1, 0, &second) == DS_ACCEL_OK);
    CHECK(second == first);
    ds_accel_destroy(made);
}

Test(core_fork, captures_of_the_parent_are_not_counted_in_the_child)
{
    struct ds_accel_options options = test_options();
    int status = 0;
    int32_t begun;

    options.accelerator = "forking";
    context = test_create_with(&options);
    MUST(ds_accel_register(context, forking_entry));
    MUST(ds_accel_detect(context));
    MUST(ds_accel_device_open(context, 0, &device));
    MUST(ds_accel_stream_create(device, 0, 0, &stream));
    MUST(ds_accel_graph_create(device, &graph));
    begun = ds_accel_graph_capture_begin(graph, stream, NULL, DS_ACCEL_CAPTURE_RELAXED);
    if (forked == 0) {
        alarm(60);
        CHECK(begun == DS_ACCEL_ERR_STATE);
        reuse_pinned();
        _exit(0);
    }
    cr_assert_eq(begun, DS_ACCEL_OK);
    cr_assert_eq(waitpid(forked, &status, 0), forked);
    cr_expect_eq(status, 0);
    in_child(reuse_pinned); /* while this process is capturing */
    MUST(ds_accel_graph_capture_end(graph));
    ds_accel_graph_destroy(graph);
    ds_accel_stream_destroy(stream);
    stop();
}
