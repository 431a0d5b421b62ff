/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The plugin ABI: its layout never changes, and tables and structs of every length are safe. */
#include "fixture.h"

#if UINTPTR_MAX == UINT64_MAX
#define SIZE(name, size) \
    DS_ACCEL_STATIC_ASSERT(sizeof(struct name) >= (size), "ABI 1: " #name " shrank");
#define MEMBER(name, member, at) \
    DS_ACCEL_STATIC_ASSERT(offsetof(struct name, member) == (at), \
                           "ABI 1: " #name "." #member " moved");
#include "abi_layout_1_0.h"
#include "abi_layout_1_1.h"
#undef SIZE
#undef MEMBER
#endif

/* ---- tables of every length, in memory of exactly that length: ASan detects overreads -------- */

static struct ds_accel_plugin *table_now;

static int32_t probe(const struct ds_accel_host *host, struct ds_accel_verdict *verdict,
                     struct ds_accel_error *error)
{
    struct ds_accel_verdict answer = {0};

    (void)host;
    (void)error;
    answer.state = DS_ACCEL_PROBE_AVAILABLE;
    answer.device_count = 1;
    ds_accel_write(verdict, &answer, sizeof(answer));
    return DS_ACCEL_OK;
}

static int32_t init(const struct ds_accel_host *host, ds_accel_plugin_instance_t **instance_out,
                    struct ds_accel_error *error)
{
    (void)host;
    (void)error;
    *instance_out = (ds_accel_plugin_instance_t *)&table_now;
    return DS_ACCEL_OK;
}

static void stop(ds_accel_plugin_instance_t *instance)
{
    (void)instance;
}

static int32_t count(ds_accel_plugin_instance_t *instance, uint32_t *count_out,
                     struct ds_accel_error *error)
{
    (void)instance;
    (void)error;
    *count_out = 1;
    return DS_ACCEL_OK;
}

static int32_t open_device(ds_accel_plugin_instance_t *instance, uint32_t index,
                           ds_accel_plugin_device_t **device_out, struct ds_accel_error *error)
{
    (void)index;
    (void)error;
    *device_out = (ds_accel_plugin_device_t *)instance;
    return DS_ACCEL_OK;
}

static void close_device(ds_accel_plugin_device_t *device)
{
    (void)device;
}

static int32_t info(ds_accel_plugin_device_t *device, struct ds_accel_device_info *info_out,
                    struct ds_accel_error *error)
{
    struct ds_accel_device_info answer = {.total_memory_bytes = 77};

    (void)device;
    (void)error;
    ds_accel_write(info_out, &answer, sizeof(answer));
    return DS_ACCEL_OK;
}

static const struct ds_accel_plugin *entry(const struct ds_accel_host *host)
{
    (void)host;
    return table_now;
}

static struct ds_accel_plugin whole_table(void)
{
    struct ds_accel_plugin table = {
        .struct_size = sizeof(table),
        .abi_major = DS_ACCEL_ABI_MAJOR,
        .name = "tested",
        .vendor = "tests",
        .version = "1",
        .probe = probe,
        .init = init,
        .shutdown = stop,
        .device_count = count,
        .device_open = open_device,
        .device_close = close_device,
        .device_info = info,
    };

    return table;
}

/* Register a table in memory of exactly `size` bytes whose struct_size is `said`. */
static int32_t register_prefix(ds_accel_t *context, size_t size, uint32_t said)
{
    struct ds_accel_plugin table = whole_table();
    int32_t status;

    table.struct_size = said;
    table_now = malloc(size);
    cr_assert_not_null(table_now);
    memcpy(table_now, &table, size);
    status = ds_accel_register(context, entry);
    free(table_now);
    table_now = NULL;
    return status;
}

Test(core_abi, tables_of_every_length_are_taken_or_refused_whole)
{
    uint32_t needed = DS_ACCEL_SIZE_THROUGH(struct ds_accel_plugin, device_close);
    uint32_t with_info = DS_ACCEL_SIZE_THROUGH(struct ds_accel_plugin, device_info);

    for (uint32_t size = 4; size <= sizeof(struct ds_accel_plugin); size++) {
        struct ds_accel_options options = test_options();
        struct ds_accel_device_info device_info = {.struct_size = sizeof(device_info)};
        ds_accel_t *context;
        ds_accel_device_t *device;
        int32_t status;

        options.accelerator = "tested";
        cr_assert_eq(ds_accel_create(&options, &context), DS_ACCEL_OK);
        status = register_prefix(context, size, size);
        if (size < needed) {
            cr_assert_eq(status, DS_ACCEL_ERR_ABI, "size %u", size);
            cr_assert_not_null(strstr(ds_accel_last_error(), "table_short"));
        } else {
            cr_assert_eq(status, DS_ACCEL_OK, "size %u: %s", size, ds_accel_last_error());
            cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
            cr_assert_eq(ds_accel_device_open(context, 0, &device), DS_ACCEL_OK);
            cr_assert_eq(ds_accel_device_info(device, &device_info),
                         size >= with_info ? DS_ACCEL_OK : DS_ACCEL_ERR_UNSUPPORTED, "size %u",
                         size);
            cr_assert_eq(ds_accel_device_synchronize(device), DS_ACCEL_ERR_UNSUPPORTED);
            ds_accel_device_close(device);
        }
        ds_accel_destroy(context);
    }
}

Test(core_abi, struct_sizes_below_the_smallest_are_refused)
{
    ds_accel_t *context = test_create();

    for (uint32_t said = 0; said < DS_ACCEL_SIZE_THROUGH(struct ds_accel_plugin, name); said++) {
        cr_expect_eq(register_prefix(context, said < 4 ? 4 : said, said), DS_ACCEL_ERR_ABI);
    }
    ds_accel_destroy(context);
}

Test(core_abi, a_table_from_the_future_is_taken)
{
    struct {
        struct ds_accel_plugin known;
        int32_t (*later[8])(void);
    } future = {.known = whole_table()};
    ds_accel_t *context = test_create();

    memset(future.later, 0x5a, sizeof(future.later));
    future.known.struct_size = sizeof(future);
    future.known.abi_minor = 99;
    future.known.optional_features = UINT64_C(1) << 50;
    table_now = &future.known;
    cr_expect_eq(ds_accel_register(context, entry), DS_ACCEL_OK, "%s", ds_accel_last_error());
    ds_accel_destroy(context);
}

Test(core_abi, what_a_table_gets_wrong_is_named)
{
    struct ds_accel_plugin table;
    ds_accel_t *context = test_create();

    table_now = &table;
    table = whole_table();
    table.abi_major = 2;
    cr_expect_eq(ds_accel_register(context, entry), DS_ACCEL_ERR_ABI);
    cr_expect_not_null(strstr(ds_accel_last_error(), "table_abi"));
    table = whole_table();
    table.required_features = UINT64_C(1) << 40;
    cr_expect_eq(ds_accel_register(context, entry), DS_ACCEL_ERR_ABI);
    cr_expect_not_null(strstr(ds_accel_last_error(), "bit 40"));
    table = whole_table();
    table.name = NULL;
    cr_expect_eq(ds_accel_register(context, entry), DS_ACCEL_ERR_ABI);
    cr_expect_not_null(strstr(ds_accel_last_error(), "table_no_name"));
    table = whole_table();
    table.name = "Not A Name";
    cr_expect_eq(ds_accel_register(context, entry), DS_ACCEL_ERR_ABI);
    cr_expect_not_null(strstr(ds_accel_last_error(), "bad_name"));
    table = whole_table();
    table.device_open = NULL;
    cr_expect_eq(ds_accel_register(context, entry), DS_ACCEL_ERR_ABI);
    cr_expect_not_null(strstr(ds_accel_last_error(), "device_open"));
    table = whole_table();
    table.struct_size = 0x7fffffff;
    cr_expect_eq(ds_accel_register(context, entry), DS_ACCEL_ERR_ABI);
    cr_expect_not_null(strstr(ds_accel_last_error(), "table_absurd"));
    table_now = NULL;
    cr_expect_eq(ds_accel_register(context, entry), DS_ACCEL_ERR_ABI);
    cr_expect_not_null(strstr(ds_accel_last_error(), "entry_refused"));
    ds_accel_destroy(context);
}

/* ---- structs that one side fills for the other, for every pair of lengths -------------------- */

static void check_write(uint32_t destination_size, uint32_t source_size)
{
    unsigned char *destination = malloc(destination_size);
    unsigned char *source = malloc(source_size);
    uint32_t said;

    cr_assert(destination != NULL && source != NULL);
    memset(destination, 0x11, destination_size);
    memset(source, 0x22, source_size);
    memcpy(destination, &destination_size, sizeof(destination_size));
    memcpy(source, &source_size, sizeof(source_size));
    ds_accel_write(destination, source, source_size);
    memcpy(&said, destination, sizeof(said));
    cr_assert_eq(said, destination_size);
    for (uint32_t i = sizeof(said); i < destination_size; i++) {
        cr_assert_eq(destination[i], i < source_size ? 0x22 : 0x11);
    }
    free(destination);
    free(source);
}

Test(core_abi, writing_a_struct_stays_within_both_sizes)
{
    static const uint32_t sizes[] = {
        sizeof(struct ds_accel_error),        sizeof(struct ds_accel_numa_node),
        sizeof(struct ds_accel_host_memory),  sizeof(struct ds_accel_verdict),
        sizeof(struct ds_accel_backend_info), sizeof(struct ds_accel_device_identity),
        sizeof(struct ds_accel_device_info),  sizeof(struct ds_accel_memory_info),
        sizeof(struct ds_accel_memory_stats), sizeof(struct ds_accel_pointer_info),
        sizeof(struct ds_accel_link),         sizeof(struct ds_accel_telemetry),
        sizeof(struct ds_accel_process),      sizeof(struct ds_accel_env_rule),
        sizeof(struct ds_accel_op_builder),   sizeof(struct ds_accel_options),
        sizeof(struct ds_accel_candidate),
    };

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (uint32_t size = 4; size <= sizes[i] + 8; size++) {
            check_write(size, sizes[i]);
            check_write(sizes[i], size);
        }
    }
}

/* Fills the struct of a caller, of any size; returns DS_ACCEL_OK. */
typedef int32_t (*fill_t)(void *from, void *struct_out);

/*
 * Expect that a caller's struct of every size has the same bytes as the whole struct, up to its own
 * size. Each struct is in memory of exactly its size, filled with a pattern beforehand: no byte of
 * the pattern may remain.
 */
static void expect_prefixes(const char *what, fill_t fill, void *from, uint32_t whole_size)
{
    unsigned char *whole = calloc(1, whole_size);

    cr_assert_not_null(whole);
    memcpy(whole, &whole_size, sizeof(whole_size));
    cr_assert_eq(fill(from, whole), DS_ACCEL_OK, "%s: %s", what, ds_accel_last_error());
    for (uint32_t size = 4; size <= whole_size; size++) {
        for (int before = 0; before < 2; before++) {
            unsigned char *part = malloc(size);

            cr_assert_not_null(part);
            memset(part, before == 0 ? 0x5a : 0xa5, size);
            memcpy(part, &size, sizeof(size));
            cr_assert_eq(fill(from, part), DS_ACCEL_OK, "%s of %u bytes: %s", what, size,
                         ds_accel_last_error());
            cr_assert_eq(memcmp(part, &size, sizeof(size)), 0, "%s of %u bytes: its size", what,
                         size);
            cr_assert_eq(memcmp(part + sizeof(size), whole + sizeof(size), size - sizeof(size)), 0,
                         "%s of %u bytes has other contents than the whole", what, size);
            free(part);
        }
    }
    free(whole);
}

static int32_t fill_candidate(void *from, void *struct_out)
{
    return ds_accel_candidate_get(from, 0, struct_out);
}

static int32_t fill_identity(void *from, void *struct_out)
{
    return ds_accel_device_identity(from, 0, struct_out);
}

static int32_t fill_backend(void *from, void *struct_out)
{
    return ds_accel_backend_info(from, struct_out);
}

static int32_t fill_device(void *from, void *struct_out)
{
    return ds_accel_device_info(from, struct_out);
}

static int32_t fill_memory(void *from, void *struct_out)
{
    return ds_accel_device_memory(from, struct_out);
}

Test(core_abi, callers_of_every_age_get_their_part_of_a_struct)
{
    struct ds_accel_candidate candidate = {.struct_size = sizeof(candidate)};
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    ds_accel_device_t *device;
    ds_accel_t *context = test_start("mock", &device);

    /* Check that the structs have contents; empty structs would prove nothing. */
    MUST(ds_accel_candidate_get(context, 0, &candidate));
    cr_assert(candidate.name[0] != '\0' && candidate.stage != NULL);
    MUST(ds_accel_device_info(device, &info));
    cr_assert_gt(info.total_memory_bytes, 0);
    expect_prefixes("candidate", fill_candidate, context, sizeof(struct ds_accel_candidate));
    expect_prefixes("identity", fill_identity, context, sizeof(struct ds_accel_device_identity));
    expect_prefixes("backend", fill_backend, context, sizeof(struct ds_accel_backend_info));
    expect_prefixes("device", fill_device, device, sizeof(struct ds_accel_device_info));
    expect_prefixes("memory", fill_memory, device, sizeof(struct ds_accel_memory_info));
    test_finish(context, device);
}

/* Expect that the members within the caller's struct are read, and no member past its size. */
static void expect_options(const struct ds_accel_options *options, uint32_t size)
{
    const uint32_t with_name = DS_ACCEL_SIZE_THROUGH(struct ds_accel_options, accelerator);
    const uint32_t with_dirs = DS_ACCEL_SIZE_THROUGH(struct ds_accel_options, plugin_dir_count);
    const uint32_t with_file = DS_ACCEL_SIZE_THROUGH(struct ds_accel_options, config_file);
    bool has_alpha = false;
    ds_accel_t *context;
    char *text;

    cr_assert_eq(ds_accel_create(options, &context), DS_ACCEL_OK, "size %u: %s", size,
                 ds_accel_last_error());
    for (uint32_t i = 0; i < ds_accel_candidate_count(context); i++) {
        struct ds_accel_candidate candidate = {.struct_size = sizeof(candidate)};

        MUST(ds_accel_candidate_get(context, i, &candidate));
        has_alpha = has_alpha || strcmp(candidate.name, "alpha") == 0;
    }
    cr_expect_eq(has_alpha, size >= with_dirs, "size %u: plugin_dirs", size);
    text = test_report(context, DS_ACCEL_REPORT_CONFIG, NULL, DS_ACCEL_FORMAT_JSON);
    cr_expect_eq(strstr(text, "late.json:") != NULL, size >= with_file, "size %u: config_file",
                 size);
    ds_accel_free_text(text);
    MUST(ds_accel_detect(context));
    cr_expect_eq(strcmp(ds_accel_name(context), "mock") == 0, size >= with_name,
                 "size %u: accelerator: %s", size, ds_accel_name(context));
    ds_accel_destroy(context);
}

Test(core_abi, options_of_every_age_are_read_to_their_end)
{
    test_add_mock("alpha");
    for (uint32_t size = 8; size <= sizeof(struct ds_accel_options); size++) {
        struct ds_accel_options whole = test_options();
        struct ds_accel_options *options = malloc(size);

        cr_assert_not_null(options);
        whole.accelerator = "mock";
        whole.config_file = test_write("late.json",
                                       "{\"probe\": {\"timeout_ms\": 2718}, "
                                       "\"detection_order\": [\"cpu\"], \"deny\": [\"alpha\"]}");
        memcpy(options, &whole, size);
        memcpy(options, &size, sizeof(size));
        /* A caller's struct can end inside a count, but never inside a pointer. */
        if (size % sizeof(void *) == 0) {
            expect_options(options, size);
        }
        free(options);
    }
}

Test(core_abi, array_elements_keep_their_stride)
{
    unsigned char array[3 * 40];
    struct ds_accel_process process = {.pid = 7, .memory_bytes = 9};
    uint32_t stride;

    memset(array, 0x11, sizeof(array));
    ds_accel_write_element(array, 40, 1, &process, sizeof(process));
    cr_expect_eq(array[39], 0x11);
    memcpy(&stride, array + 40, sizeof(stride));
    cr_expect_eq(stride, 40);
    memcpy(&process, array + 40, sizeof(process));
    cr_expect_eq(process.pid, 7);
    cr_expect_eq(array[40 + sizeof(process)], 0x11);
    cr_expect_eq(array[80], 0x11);
}

/* ---- the note, at every length, and every single damaged byte of a plugin's head ------------ */

Test(core_abi, a_plugin_file_cut_anywhere_is_a_reason)
{
    static unsigned char file[16 << 20];
    FILE *plugin = fopen(TEST_MOCKS "/ds_accel_alpha.so", "rb");
    size_t size;

    cr_assert_not_null(plugin);
    size = fread(file, 1, sizeof(file), plugin);
    fclose(plugin);
    cr_assert(size > 1000 && size < sizeof(file));
    for (size_t cut = 0; cut < size; cut += cut < 4096 ? 7 : 997) {
        struct ds_accel_candidate candidate;
        ds_accel_t *context;

        if (!test_is_sampled(cut < 4096 ? cut / 7 : cut / 997, 4)) {
            continue;
        }
        /* Write a new file each time because the previous file may be mapped. */
        remove(test_path("plugins/ds_accel_alpha.so"));
        test_write_bytes("plugins/ds_accel_alpha.so", file, cut);
        context = test_create();
        cr_assert_eq(ds_accel_check(context, "alpha"), DS_ACCEL_OK);
        candidate = test_candidate(context, "alpha");
        /* The bytes cut off at the end may be section headers, which the loader does not need. */
        cr_assert(candidate.state == DS_ACCEL_STATE_REJECTED ||
                      candidate.state == DS_ACCEL_STATE_AVAILABLE,
                  "cut at %zu: %s %s", cut, candidate.state_name, candidate.reason);
        ds_accel_destroy(context);
    }
}

Test(core_abi, a_plugin_file_with_a_damaged_head_never_crashes_the_reader)
{
    static unsigned char file[16 << 20];
    FILE *plugin = fopen(TEST_FIXTURES "/no_note/ds_accel_no_note.so", "rb");
    size_t size;
    unsigned rejected = 0;

    cr_assert_not_null(plugin);
    size = fread(file, 1, sizeof(file), plugin);
    fclose(plugin);
    /* This plugin has no note, so no damage makes the loader run it. */
    for (size_t at = 0; at < 1024 && at < size; at++) {
        unsigned char kept = file[at];
        ds_accel_t *context;

        file[at] ^= 0xff;
        test_write_bytes("plugins/ds_accel_no_note.so", file, size);
        file[at] = kept;
        context = test_create();
        cr_assert_eq(ds_accel_check(context, "no_note"), DS_ACCEL_OK);
        rejected += test_candidate(context, "no_note").state == DS_ACCEL_STATE_REJECTED;
        ds_accel_destroy(context);
    }
    cr_expect_eq(rejected, 1024);
}
