/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Contexts and the process-wide default context: first use, several at once, misuse. */
#include "fixture.h"

#include <pthread.h>

static void *get_first(void *name_out)
{
    *(ds_accel_t **)name_out = ds_accel_get();
    return NULL;
}

Test(core_context, first_get_from_many_threads_gives_one_context)
{
    pthread_t threads[32];
    ds_accel_t *contexts[32];

    setenv("DS_ACCELERATOR", "cpu", 1);
    for (int i = 0; i < 32; i++) {
        cr_assert_eq(pthread_create(&threads[i], NULL, get_first, &contexts[i]), 0);
    }
    for (int i = 0; i < 32; i++) {
        cr_assert_eq(pthread_join(threads[i], NULL), 0);
    }
    cr_assert_not_null(contexts[0], "%s", ds_accel_last_error());
    for (int i = 1; i < 32; i++) {
        cr_expect_eq(contexts[i], contexts[0]);
    }
    cr_expect_str_eq(ds_accel_name(contexts[0]), "cpu");
    cr_expect_str_eq(ds_accel_set_method(contexts[0]), "override");
}

Test(core_context, a_failed_first_get_is_tried_again)
{
    setenv("DS_ACCELERATOR", "no_such", 1);
    cr_expect_null(ds_accel_get());
    cr_expect_not_null(strstr(ds_accel_last_error(), "no_such"), "%s", ds_accel_last_error());
    setenv("DS_ACCELERATOR", "cpu", 1);
    cr_assert_not_null(ds_accel_get());
    cr_expect_str_eq(ds_accel_name(ds_accel_get()), "cpu");
}

Test(core_context, several_live_in_one_process)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *first;
    ds_accel_t *second;

    options.accelerator = "cpu";
    cr_assert_eq(ds_accel_create(&options, &first), DS_ACCEL_OK);
    options.accelerator = "mock";
    cr_assert_eq(ds_accel_create(&options, &second), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_detect(first), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_assert_eq(ds_accel_detect(second), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_expect_str_eq(ds_accel_name(first), "cpu");
    cr_expect_str_eq(ds_accel_name(second), "mock");
    ds_accel_destroy(first);
    cr_expect_str_eq(ds_accel_name(second), "mock");
    ds_accel_destroy(second);
}

Test(core_context, set_default_is_what_get_returns)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;
    ds_accel_t *other;

    options.accelerator = "cpu";
    cr_assert_eq(ds_accel_create(&options, &context), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_create(&options, &other), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_set_default(context), DS_ACCEL_OK);
    cr_expect_eq(ds_accel_get(), context);
    cr_expect_eq(ds_accel_set_default(context), DS_ACCEL_OK);
    cr_expect_eq(ds_accel_set_default(other), DS_ACCEL_ERR_STATE);
    ds_accel_destroy(other);
}

Test(core_context, misuse_is_a_status)
{
    struct ds_accel_options options = {.struct_size = 2};
    struct ds_accel_candidate candidate = {.struct_size = sizeof(candidate)};
    ds_accel_t *context = test_create();
    ds_accel_device_t *device;
    uint32_t value;
    char name[2];
    char *text;

    cr_expect_eq(ds_accel_create(&options, &context), DS_ACCEL_ERR_INVALID);
    cr_expect_eq(ds_accel_create(NULL, NULL), DS_ACCEL_ERR_INVALID);
    cr_expect_eq(ds_accel_detect(NULL), DS_ACCEL_ERR_INVALID);
    cr_expect_eq(ds_accel_set_default(NULL), DS_ACCEL_ERR_INVALID);
    cr_expect_eq(ds_accel_check(NULL, NULL), DS_ACCEL_ERR_INVALID);
    cr_expect_eq(ds_accel_register(context, NULL), DS_ACCEL_ERR_INVALID);
    cr_expect_eq(ds_accel_report(context, 99, NULL, 0, &text), DS_ACCEL_ERR_INVALID);
    cr_expect_eq(ds_accel_candidate_get(context, 1000, &candidate), DS_ACCEL_ERR_INVALID);
    cr_expect_null(ds_accel_name(NULL));
    cr_expect_null(ds_accel_name(context));
    cr_expect_null(ds_accel_set_method(context));
    cr_expect_eq(ds_accel_device_count(context, &value), DS_ACCEL_ERR_STATE);
    cr_expect_eq(ds_accel_device_open(context, 0, &device), DS_ACCEL_ERR_STATE);
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK);
    cr_expect_eq(ds_accel_device_count(context, NULL), DS_ACCEL_ERR_INVALID);
    cr_expect_eq(ds_accel_device_count(NULL, &value), DS_ACCEL_ERR_INVALID);
    cr_expect_eq(ds_accel_device_name(context, -1, NULL, 0), DS_ACCEL_ERR_INVALID);
    cr_expect_eq(ds_accel_current_device(context, NULL), DS_ACCEL_ERR_INVALID);
    cr_expect_eq(ds_accel_device_open(context, 0, NULL), DS_ACCEL_ERR_INVALID);
    cr_expect_eq(ds_accel_instance(context, NULL, NULL), DS_ACCEL_ERR_INVALID);
    cr_expect_eq(ds_accel_device_open(context, 100000, &device), DS_ACCEL_ERR_INVALID);
    cr_expect_eq(ds_accel_device_name(context, -2, name, sizeof(name)), DS_ACCEL_ERR_INVALID);
    cr_expect_eq(ds_accel_device_name(context, -1, name, sizeof(name)), DS_ACCEL_ERR_INVALID);
    ds_accel_device_close(NULL);
    ds_accel_free_text(NULL);
    ds_accel_destroy(NULL);
    ds_accel_destroy(context);
}

Test(core_context, status_names_are_complete)
{
    cr_expect_str_eq(ds_accel_status_name(0), "DS_ACCEL_OK");
    cr_expect_str_eq(ds_accel_status_name(1), "DS_ACCEL_NOT_READY");
    cr_expect_str_eq(ds_accel_status_name(-18), "DS_ACCEL_ERR_INTERNAL");
    cr_expect_str_eq(ds_accel_status_name(-15), "DS_ACCEL_ERR_NOT_USABLE");
    cr_expect_str_eq(ds_accel_status_name(-1000), "DS_ACCEL_ERR_INTERNAL");
    cr_expect_str_eq(ds_accel_status_name(1000), "DS_ACCEL_ERR_INTERNAL");
}

Test(core_context, opens_and_asks_a_device)
{
    struct ds_accel_options options = test_options();
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    struct ds_accel_memory_info memory = {.struct_size = sizeof(memory)};
    ds_accel_device_t *device;
    ds_accel_t *context;
    char name[16];

    options.accelerator = "cpu";
    cr_assert_eq(ds_accel_create(&options, &context), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_device_open(context, 0, &device), DS_ACCEL_OK);
    cr_expect_eq(ds_accel_device_info(device, &info), DS_ACCEL_OK);
    cr_expect(info.total_memory_bytes > 0);
    cr_expect_eq(ds_accel_device_memory(device, &memory), DS_ACCEL_OK);
    cr_expect(memory.available_bytes > 0 && memory.available_bytes <= memory.total_bytes);
    cr_expect_eq(ds_accel_device_synchronize(device), DS_ACCEL_OK);
    /* A slot that this plugin lacks is a stub: it can be called and reports "not supported". */
    {
        struct ds_accel_error error = {.struct_size = sizeof(error)};
        uint64_t seed;

        cr_expect_eq(ds_accel_device_table(device)->rng_initial_seed(ds_accel_device_handle(device),
                                                                     &seed, &error),
                     DS_ACCEL_ERR_UNSUPPORTED);
        cr_expect_eq(error.code, DS_ACCEL_ERR_UNSUPPORTED);
        cr_expect_str_eq(error.message, "this accelerator has no such function");
        cr_expect_eq(ds_accel_device_table(device)->rng_initial_seed(ds_accel_device_handle(device),
                                                                     &seed, NULL),
                     DS_ACCEL_ERR_UNSUPPORTED);
    }
    {
        const struct ds_accel_plugin *table;
        ds_accel_plugin_instance_t *instance;
        struct ds_accel_device_identity identity = {.struct_size = sizeof(identity)};
        struct ds_accel_error error = {.struct_size = sizeof(error)};

        cr_assert_eq(ds_accel_instance(context, &table, &instance), DS_ACCEL_OK);
        cr_expect_eq(table->device_identity(instance, 0, &identity, &error), DS_ACCEL_OK);
        cr_expect_neq(identity.name[0], '\0');
    }
    cr_expect_eq(ds_accel_device_name(context, 0, name, sizeof(name)), DS_ACCEL_OK);
    ds_accel_device_close(device);
    ds_accel_destroy(context);
}
