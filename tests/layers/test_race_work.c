/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Races with work that the library itself does on the host: random numbers, strided copies and
 * fills. Each operation is queued on one stream while another stream uses the same memory.
 */
#include "fixture.h"

#include <dlfcn.h>
#include <errno.h>

#define ROWS 16
#define COLUMNS 8

static ds_accel_t *context;
static ds_accel_device_t *device;
static ds_accel_stream_t *first;
static ds_accel_stream_t *second;
static ds_accel_event_t *event;
static ds_accel_rng_t *rng;
static ds_accel_tensor_t *matrix;    /* float32, ROWS x COLUMNS */
static ds_accel_tensor_t *columns;   /* every second column of matrix */
static ds_accel_tensor_t *transpose; /* transposed view of the whole matrix */
static ds_accel_tensor_t *other;     /* same shape as columns */
static ds_accel_tensor_t *flipped;   /* same shape as transpose */

static void start(const char *accelerator)
{
    const int64_t shape[] = {ROWS, COLUMNS};
    const int64_t half[] = {ROWS, COLUMNS / 2};
    const int64_t turned[] = {COLUMNS, ROWS};

    setenv("DS_ACCEL_LAYERS", "validate", 1);
    setenv("DS_ACCEL_CPU_ASYNC", "true", 1);
    context = test_start(accelerator, &device);
    MUST(ds_accel_stream_create(device, 0, 0, &first));
    MUST(ds_accel_stream_create(device, 0, 0, &second));
    MUST(ds_accel_event_create(device, 0, &event));
    MUST(ds_accel_rng_create(device, 7, 0, &rng));
    MUST(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_FLOAT32, 2, shape, &matrix));
    MUST(ds_accel_tensor_slice(matrix, 1, 0, COLUMNS, 2, &columns));
    MUST(ds_accel_tensor_transpose(matrix, 0, 1, &transpose));
    MUST(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_FLOAT32, 2, half, &other));
    MUST(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_FLOAT32, 2, turned, &flipped));
    MUST(ds_accel_tensor_zero(matrix, NULL));
    MUST(ds_accel_device_synchronize(device));
}

static void stop(void)
{
    ds_accel_device_synchronize(device);
    ds_accel_tensor_put(matrix);
    ds_accel_tensor_put(columns);
    ds_accel_tensor_put(transpose);
    ds_accel_tensor_put(other);
    ds_accel_tensor_put(flipped);
    test_finish(context, device);
}

static uint64_t races(void)
{
    uint64_t count = UINT64_MAX;

    MUST(ds_accel_race_count(context, &count));
    return count;
}

static char *report(void)
{
    char *text = NULL;

    MUST(ds_accel_layer_report(context, "race", &text));
    return text;
}

/* ---- operations that queue host work --------------------------------------------------------- */

static void *data(void)
{
    return ds_accel_tensor_data(matrix);
}

static int32_t uniform(ds_accel_stream_t *stream)
{
    return ds_accel_rng_uniform(rng, stream, data(), ROWS * COLUMNS, DS_ACCEL_DTYPE_FLOAT32, 0, 1);
}

static int32_t normal(ds_accel_stream_t *stream)
{
    return ds_accel_rng_normal(rng, stream, data(), ROWS * COLUMNS, DS_ACCEL_DTYPE_FLOAT32, 0, 1);
}

static int32_t bits(ds_accel_stream_t *stream)
{
    return ds_accel_rng_bits(rng, stream, data(), ROWS * COLUMNS, DS_ACCEL_DTYPE_INT32);
}

static int32_t write_columns(ds_accel_stream_t *stream)
{
    return ds_accel_tensor_copy(columns, other, stream);
}

static int32_t read_columns(ds_accel_stream_t *stream)
{
    return ds_accel_tensor_copy(other, columns, stream);
}

static int32_t read_transposed(ds_accel_stream_t *stream)
{
    return ds_accel_tensor_copy(flipped, transpose, stream);
}

static int32_t make_contiguous(ds_accel_stream_t *stream)
{
    ds_accel_tensor_t *made = NULL;
    int32_t status = ds_accel_tensor_contiguous(transpose, stream, &made);

    ds_accel_tensor_put(made);
    return status;
}

static int32_t download(ds_accel_stream_t *stream)
{
    ds_accel_tensor_t *made = NULL;
    int32_t status = ds_accel_tensor_to(columns, NULL, stream, &made);

    ds_accel_tensor_put(made);
    return status;
}

static int32_t fill_columns(ds_accel_stream_t *stream)
{
    const float value = 1.5F;

    return ds_accel_tensor_fill(columns, &value, stream);
}

static int32_t fill_doubles(ds_accel_stream_t *stream)
{
    struct ds_accel_tensor_memory memory = {.struct_size = sizeof(memory),
                                            .dtype = DS_ACCEL_DTYPE_FLOAT64,
                                            .ndim = 1,
                                            .data = data(),
                                            .shape = (int64_t[]){ROWS * COLUMNS / 2}};
    const double value = 1.1;
    ds_accel_tensor_t *doubles = NULL;
    int32_t status;

    MUST(ds_accel_tensor_from_memory(device, &memory, &doubles));
    status = ds_accel_tensor_fill(doubles, &value, stream);
    ds_accel_tensor_put(doubles);
    return status;
}

static int32_t zero_columns(ds_accel_stream_t *stream)
{
    return ds_accel_tensor_zero(columns, stream);
}

static const struct {
    const char *call;
    int32_t (*queue)(ds_accel_stream_t *stream);
} works[] = {
    {"rng_uniform", uniform},
    {"rng_normal", normal},
    {"rng_bits", bits},
    {"tensor_copy", write_columns},
    {"tensor_copy", read_columns},
    {"tensor_copy", read_transposed},
    {"tensor_copy", make_contiguous},
    {"tensor_copy", download},
    {"tensor_fill", fill_columns},
    {"tensor_fill", fill_doubles},
    {"tensor_fill", zero_columns},
};

/* Wraps libc's backtrace() as a sanitizer does: the wrapper's frame must not be reported as the
   program's call. */
__attribute__((visibility("default"))) int backtrace(void **frames, int size);

__attribute__((visibility("default"))) int backtrace(void **frames, int size)
{
    int (*next)(void **, int) = (int (*)(void **, int))dlsym(RTLD_NEXT, "backtrace");
    int count = next(frames, size);

    __asm__ volatile("" ::: "memory"); /* prevents a tail call, so that the frame exists */
    return count;
}

static const char *const accelerators[] = {"mock", "cpu"};

static bool is_ours(const char *text, const char *call)
{
    char words[64];
    const char *name = strrchr(program_invocation_name, '/');
    const char *found;

    snprintf(words, sizeof(words), "%s on stream ", call);
    found = strstr(text, words);
    found = found != NULL ? strstr(found, "called at ") : NULL;
    name = name != NULL ? name + 1 : program_invocation_name;
    return found != NULL && strncmp(found + strlen("called at "), name, strlen(name)) == 0;
}

/* ---- each operation against a fill on another stream ----------------------------------------- */

static void race_with_a_fill(size_t which, bool is_first)
{
    char *text;

    if (is_first) {
        EXPECT_STATUS(works[which].queue(first), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_mem_set_async(second, data(), 1, ROWS * COLUMNS * 4), DS_ACCEL_OK);
    } else {
        EXPECT_STATUS(ds_accel_mem_set_async(second, data(), 1, ROWS * COLUMNS * 4), DS_ACCEL_OK);
        EXPECT_STATUS(works[which].queue(first), DS_ACCEL_OK);
    }
    text = report();
    /* download() waits for its copy before it returns. */
    if (works[which].queue == download && is_first) {
        cr_expect_eq(races(), 0, "%s", text);
    } else {
        cr_expect_eq(races(), 1, "%zu, first %d: %llu races: %s", which, is_first,
                     (unsigned long long)races(), text);
        cr_expect(is_ours(text, works[which].call), "%s", text);
        EXPECT_HAS_NOT(text, "(backtrace+");
    }
    ds_accel_free_text(text);
}

Test(core_layer_work, host_work_races_with_another_streams)
{
    for (size_t i = 0; i < ARRAY_SIZE(accelerators) * ARRAY_SIZE(works); i++) {
        for (int is_first = 0; is_first < 2; is_first++) {
            start(accelerators[i % ARRAY_SIZE(accelerators)]);
            race_with_a_fill(i / ARRAY_SIZE(accelerators), is_first != 0);
            stop();
        }
    }
}

Test(core_layer_work, host_work_behind_an_event_does_not)
{
    for (size_t i = 0; i < ARRAY_SIZE(accelerators); i++) {
        start(accelerators[i]);
        for (size_t j = 0; j < ARRAY_SIZE(works); j++) {
            char *text;

            EXPECT_STATUS(works[j].queue(first), DS_ACCEL_OK);
            EXPECT_STATUS(ds_accel_event_record(event, first), DS_ACCEL_OK);
            EXPECT_STATUS(ds_accel_stream_wait_event(second, event), DS_ACCEL_OK);
            EXPECT_STATUS(ds_accel_mem_set_async(second, data(), 1, 512), DS_ACCEL_OK);
            EXPECT_STATUS(ds_accel_event_record(event, second), DS_ACCEL_OK);
            EXPECT_STATUS(ds_accel_stream_wait_event(first, event), DS_ACCEL_OK);
            text = report();
            cr_expect_eq(races(), 0, "%s %zu: %s", accelerators[i], j, text);
            ds_accel_free_text(text);
        }
        stop();
    }
}

/* ---- which bytes an operation uses ----------------------------------------------------------- */

/* The columns between those of the tensor columns. */
static ds_accel_tensor_t *odd_columns(void)
{
    ds_accel_tensor_t *odd = NULL;

    MUST(ds_accel_tensor_slice(matrix, 1, 1, COLUMNS, 2, &odd));
    return odd;
}

Test(core_layer_work, alternate_columns_do_not_race)
{
    for (size_t i = 0; i < ARRAY_SIZE(accelerators); i++) {
        const float value = 2;
        ds_accel_tensor_t *odd;

        start(accelerators[i]);
        odd = odd_columns();
        EXPECT_STATUS(ds_accel_tensor_fill(columns, &value, first), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_tensor_fill(odd, &value, second), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_mem_set_async(second, (char *)data() + 4, 1, 4), DS_ACCEL_OK);
        cr_expect_eq(races(), 0);
        EXPECT_STATUS(ds_accel_mem_set_async(second, (char *)data() + 8, 1, 1), DS_ACCEL_OK);
        cr_expect_eq(races(), 1, "a byte of the third column");
        ds_accel_tensor_put(odd);
        stop();
    }
}

/* Rows are reversed, overlap or repeat; bytes are counted from the lowest address. */
Test(core_layer_work, every_stride_counts)
{
    const int64_t shape[] = {ROWS, 2};
    const int64_t down[] = {-COLUMNS, 2};
    const int64_t half[] = {ROWS, 2};
    ds_accel_tensor_t *view = NULL;
    ds_accel_tensor_t *copy = NULL;

    start("mock");
    MUST(ds_accel_tensor_view(matrix, (int64_t)(ROWS - 1) * COLUMNS, 2, shape, down, &view));
    MUST(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_FLOAT32, 2, half, &copy));
    EXPECT_STATUS(ds_accel_tensor_copy(copy, view, first), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_set_async(second, (char *)data() + 4, 1, 4), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_mem_set_async(second, (char *)data() + 12, 1, 20), DS_ACCEL_OK);
    cr_expect_eq(races(), 0, "it lies between");
    EXPECT_STATUS(ds_accel_mem_set_async(second, data(), 1, 4), DS_ACCEL_OK);
    cr_expect_eq(races(), 1, "the last row begins here");
    EXPECT_STATUS(ds_accel_mem_set_async(second, (char *)data() + 15 * 32 + 8, 1, 1), DS_ACCEL_OK);
    cr_expect_eq(races(), 2, "the first row ends here");
    ds_accel_tensor_put(view);
    ds_accel_tensor_put(copy);
    stop();
}

/* More runs of bytes than the detector stores. */
Test(core_layer_work, many_runs_are_compared_one_by_one)
{
    const int64_t shape[] = {40000, 4};
    const uint8_t value = 3;
    ds_accel_tensor_t *tall = NULL;
    ds_accel_tensor_t *parts[3] = {NULL};

    start("mock");
    MUST(ds_accel_tensor_create(device, DS_ACCEL_DTYPE_UINT8, 2, shape, &tall));
    for (int i = 0; i < 3; i++) {
        MUST(ds_accel_tensor_slice(tall, 1, i, i + 1, 1, &parts[i]));
    }
    EXPECT_STATUS(ds_accel_tensor_fill(parts[0], &value, first), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_tensor_fill(parts[1], &value, second), DS_ACCEL_OK);
    cr_expect_eq(races(), 0);
    EXPECT_STATUS(ds_accel_mem_set_async(second, (char *)ds_accel_tensor_data(tall) + 39997, 1, 1),
                  DS_ACCEL_OK);
    cr_expect_eq(races(), 0);
    EXPECT_STATUS(ds_accel_tensor_fill(parts[0], &value, second), DS_ACCEL_OK);
    cr_expect_eq(races(), 1);
    EXPECT_STATUS(ds_accel_device_synchronize(device), DS_ACCEL_OK);
    EXPECT_STATUS(
        ds_accel_mem_set_async(second, (char *)ds_accel_tensor_data(tall) + (39999 * 4 + 2), 1, 1),
        DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_tensor_fill(parts[2], &value, first), DS_ACCEL_OK);
    cr_expect_eq(races(), 2, "the last of all runs");
    for (int i = 0; i < 3; i++) {
        ds_accel_tensor_put(parts[i]);
    }
    ds_accel_tensor_put(tall);
    stop();
}

/* ---- work by the calling thread -------------------------------------------------------------- */

Test(core_layer_work, pinned_memory_that_a_stream_reads_is_not_filled)
{
    const int64_t shape[] = {ROWS, COLUMNS};
    const float value = 4;

    for (size_t i = 0; i < ARRAY_SIZE(accelerators); i++) {
        ds_accel_tensor_t *pinned = NULL;
        char *text;

        start(accelerators[i]);
        MUST(ds_accel_tensor_create_pinned(device, DS_ACCEL_DTYPE_FLOAT32, 2, shape, 1, &pinned));
        EXPECT_STATUS(ds_accel_tensor_fill(pinned, &value, NULL), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_tensor_copy(matrix, pinned, first), DS_ACCEL_OK);
        cr_expect_eq(races(), 0);
        EXPECT_STATUS(ds_accel_tensor_fill(pinned, &value, NULL), DS_ACCEL_OK);
        text = report();
        cr_expect_eq(races(), 1, "%s", text);
        EXPECT_HAS(text, "tensor_fill on the host writes 512 bytes");
        ds_accel_free_text(text);
        EXPECT_STATUS(ds_accel_tensor_fill(pinned, &value, first), DS_ACCEL_OK);
        cr_expect_eq(races(), 1, "it is waited for");
        ds_accel_tensor_put(pinned);
        stop();
    }
}

Test(core_layer_work, host_work_that_would_race_can_be_refused)
{
    static const unsigned char set[] = {1, 1, 1, 1};
    unsigned char bytes[4];

    test_write("etc/ds-accel.json", "{\"validate\": {\"races\": \"fail\"}}");
    for (size_t i = 0; i < ARRAY_SIZE(accelerators) * ARRAY_SIZE(works); i++) {
        start(accelerators[i % ARRAY_SIZE(accelerators)]);
        EXPECT_STATUS(ds_accel_mem_set_async(second, data(), 1, ROWS * COLUMNS * 4), DS_ACCEL_OK);
        EXPECT_REFUSED(works[i / ARRAY_SIZE(accelerators)].queue(first), DS_ACCEL_ERR_STATE,
                       "it would race");
        EXPECT_STATUS(ds_accel_device_synchronize(device), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_mem_copy(device, bytes, data(), 4, DS_ACCEL_COPY_DEVICE_TO_HOST),
                      DS_ACCEL_OK);
        cr_expect_arr_eq(bytes, set, 4);
        EXPECT_STATUS(works[i / ARRAY_SIZE(accelerators)].queue(first), DS_ACCEL_OK);
        stop();
    }
}

/* ---- freed memory, and blocks that are too small --------------------------------------------- */

/* Replace the tensors by equal tensors over a block that has been freed. */
static void free_below_tensors(void)
{
    const int64_t shape[] = {ROWS, COLUMNS};
    struct ds_accel_tensor_memory memory = {
        .struct_size = sizeof(memory), .dtype = DS_ACCEL_DTYPE_FLOAT32, .ndim = 2, .shape = shape};
    void *block = NULL;

    ds_accel_tensor_put(columns);
    ds_accel_tensor_put(transpose);
    ds_accel_tensor_put(matrix);
    MUST(ds_accel_mem_alloc(device, NULL, ROWS * COLUMNS * 4, &block));
    memory.data = block;
    MUST(ds_accel_tensor_from_memory(device, &memory, &matrix));
    MUST(ds_accel_tensor_slice(matrix, 1, 0, COLUMNS, 2, &columns));
    MUST(ds_accel_tensor_transpose(matrix, 0, 1, &transpose));
    EXPECT_STATUS(ds_accel_mem_free(device, NULL, block), DS_ACCEL_OK);
}

Test(core_layer_work, host_work_on_freed_memory_is_refused)
{
    for (size_t i = 0; i < ARRAY_SIZE(accelerators) * ARRAY_SIZE(works); i++) {
        start(accelerators[i % ARRAY_SIZE(accelerators)]);
        free_below_tensors();
        EXPECT_REFUSED(works[i / ARRAY_SIZE(accelerators)].queue(first), DS_ACCEL_ERR_INVALID,
                       "lies in a freed block, at ");
        EXPECT_HAS(ds_accel_last_error(), works[i / ARRAY_SIZE(accelerators)].call);
        stop();
    }
}

/* Memory past the end of a block may still be in the block's allocation, so a check of allocations
   alone would accept it. */
Test(core_layer_work, host_work_past_the_end_of_a_block_is_refused)
{
    const int64_t strides[] = {-512, 2};
    const float value = 1;

    for (size_t i = 0; i < ARRAY_SIZE(accelerators); i++) {
        struct ds_accel_tensor_memory memory = {.struct_size = sizeof(memory),
                                                .dtype = DS_ACCEL_DTYPE_FLOAT32,
                                                .ndim = 2,
                                                .shape = (int64_t[]){2, 256},
                                                .strides = strides};
        ds_accel_tensor_t *view = NULL;
        char *blocks[2] = {NULL, NULL};

        start(accelerators[i]);
        for (int j = 0; j < 2; j++) {
            MUST(ds_accel_mem_alloc(device, NULL, 4096, (void **)&blocks[j]));
        }
        EXPECT_STATUS(
            ds_accel_rng_uniform(rng, first, blocks[0], 1024, DS_ACCEL_DTYPE_FLOAT32, 0, 1),
            DS_ACCEL_OK);
        EXPECT_REFUSED(
            ds_accel_rng_uniform(rng, first, blocks[0], 1025, DS_ACCEL_DTYPE_FLOAT32, 0, 1),
            DS_ACCEL_ERR_INVALID, "with 4100 bytes goes past the end of its block");
        memory.data = blocks[0] + 2052; /* the last element is at the end of the block */
        MUST(ds_accel_tensor_from_memory(device, &memory, &view));
        EXPECT_STATUS(ds_accel_tensor_fill(view, &value, first), DS_ACCEL_OK);
        ds_accel_tensor_put(view);
        memory.data = blocks[0] + 2060; /* the last element is 8 bytes past the end of the block */
        MUST(ds_accel_tensor_from_memory(device, &memory, &view));
        EXPECT_REFUSED(ds_accel_tensor_fill(view, &value, first), DS_ACCEL_ERR_INVALID,
                       "goes past the end of its block");
        ds_accel_tensor_put(view);
        EXPECT_STATUS(ds_accel_device_synchronize(device), DS_ACCEL_OK);
        for (int j = 0; j < 2; j++) {
            EXPECT_STATUS(ds_accel_mem_free(device, NULL, blocks[j]), DS_ACCEL_OK);
        }
        stop();
    }
}

/* The calling thread fills pinned memory. */
Test(core_layer_work, host_work_on_freed_pinned_memory_is_refused)
{
    const float value = 4;

    for (size_t i = 0; i < ARRAY_SIZE(accelerators); i++) {
        struct ds_accel_tensor_memory memory = {.struct_size = sizeof(memory),
                                                .dtype = DS_ACCEL_DTYPE_FLOAT32,
                                                .ndim = 1,
                                                .shape = (int64_t[]){128}};
        ds_accel_tensor_t *pinned = NULL;
        void *block = NULL;

        start(accelerators[i]);
        MUST(ds_accel_mem_alloc_pinned(device, 512, 1, 0, &block));
        memory.data = block;
        MUST(ds_accel_tensor_from_memory(NULL, &memory, &pinned));
        EXPECT_STATUS(ds_accel_tensor_fill(pinned, &value, first), DS_ACCEL_OK);
        EXPECT_STATUS(ds_accel_mem_free_pinned(device, block), DS_ACCEL_OK);
        EXPECT_REFUSED(ds_accel_tensor_fill(pinned, &value, first), DS_ACCEL_ERR_INVALID,
                       "tensor_fill: destination ");
        EXPECT_HAS(ds_accel_last_error(), "lies in a freed block, at ");
        ds_accel_tensor_put(pinned);
        stop();
    }
}

/* ---- tensors of host memory without a device ------------------------------------------------- */

static ds_accel_tensor_t *host_tensor(void *memory)
{
    const int64_t shape = ROWS * COLUMNS;
    const struct ds_accel_tensor_memory of = {.struct_size = sizeof(of),
                                              .dtype = DS_ACCEL_DTYPE_FLOAT32,
                                              .ndim = 1,
                                              .data = memory,
                                              .shape = &shape};
    ds_accel_tensor_t *tensor = NULL;

    MUST(ds_accel_tensor_from_memory(NULL, &of, &tensor));
    return tensor;
}

/* The tensors have no device, and still a stream may use their memory. */
Test(core_layer_work, memory_that_a_stream_uses_is_not_filled_or_copied_by_the_host)
{
    static float memory[2][ROWS * COLUMNS];
    enum {
        FILL,
        COPY_FROM,
        COPY_TO,
        WORKS
    };

    for (size_t i = 0; i < ARRAY_SIZE(accelerators) * WORKS * 2; i++) {
        bool is_waited_for = i % 2 == 0;
        ds_accel_tensor_t *used;
        ds_accel_tensor_t *apart;
        char *text;

        start(accelerators[i / 2 / WORKS]);
        used = host_tensor(memory[0]);
        apart = host_tensor(memory[1]);
        MUST(ds_accel_mem_copy_async(first, memory[0], data(), sizeof(memory[0]),
                                     DS_ACCEL_COPY_DEVICE_TO_HOST));
        EXPECT_STATUS(ds_accel_tensor_zero(apart, NULL), DS_ACCEL_OK);
        cr_expect_eq(races(), 0, "other memory");
        if (is_waited_for) {
            MUST(ds_accel_stream_synchronize(first));
        }
        EXPECT_STATUS(i / 2 % WORKS == FILL        ? ds_accel_tensor_zero(used, NULL)
                      : i / 2 % WORKS == COPY_FROM ? ds_accel_tensor_copy(apart, used, NULL)
                                                   : ds_accel_tensor_copy(used, apart, NULL),
                      DS_ACCEL_OK);
        text = report();
        cr_expect_eq(races(), is_waited_for ? 0 : 1, "%zu: %s", i, text);
        if (!is_waited_for) {
            EXPECT_HAS(text, i / 2 % WORKS == FILL ? "tensor_fill on the host"
                                                   : "tensor_copy on the host");
        }
        ds_accel_free_text(text);
        ds_accel_tensor_put(used);
        ds_accel_tensor_put(apart);
        stop();
    }
}
