/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Layers: which layers are enabled, and that calls pass through them unchanged. */
#include "layer.h"

/* ---- which layers are enabled ---------------------------------------------------------------- */

Test(core_layer, none_is_on_unless_it_is_named)
{
    uint64_t count = 0;

    start_layers(NULL);
    cr_expect_eq(ds_accel__layers_on, 0);
    cr_expect_eq(ds_accel_race_count(context, &count), DS_ACCEL_ERR_STATE);
    EXPECT_HAS(ds_accel_last_error(), "DS_ACCEL_LAYERS");
    stop();
}

Test(core_layer, configuration_names_them_and_the_environment_goes_first)
{
    char *text;
    uint64_t count;

    test_write("etc/ds-accel.json", "{\"layers\": [\"leak\"]}");
    start_layers(NULL);
    cr_expect_eq(ds_accel__layers_on, 1);
    text = report("leak");
    ds_accel_free_text(text);
    cr_expect_eq(ds_accel_race_count(context, &count), DS_ACCEL_ERR_STATE);
    stop();
    cr_expect_eq(ds_accel__layers_on, 0);
    start_layers("race");
    cr_expect_eq(races(), 0);
    cr_expect_eq(ds_accel_layer_report(context, "leak", &text), DS_ACCEL_ERR_STATE);
    cr_expect_eq(ds_accel_layer_report(context, "lead", &text), DS_ACCEL_ERR_NOT_FOUND);
    cr_expect_eq(ds_accel_layer_report(context, NULL, &text), DS_ACCEL_ERR_INVALID);
    EXPECT_HAS(ds_accel_last_error(), "the layer is NULL");
    cr_expect_eq(ds_accel_layer_report(context, "leak", NULL), DS_ACCEL_ERR_INVALID);
    EXPECT_HAS(ds_accel_last_error(), "the output is NULL");
    cr_expect_eq(ds_accel_layer_report(NULL, NULL, &text), DS_ACCEL_ERR_INVALID);
    EXPECT_HAS(ds_accel_last_error(), "the context is NULL");
    stop();
}

Test(core_layer, unknown_name_is_refused_with_the_nearest)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *made = NULL;

    setenv("DS_ACCEL_LAYERS", "leak,valdate", 1);
    cr_expect_eq(ds_accel_create(&options, &made), DS_ACCEL_ERR_CONFIG);
    EXPECT_HAS(ds_accel_last_error(), "did you mean \"validate\"?");
    unsetenv("DS_ACCEL_LAYERS");
    test_write("etc/ds-accel.json", "{\"layers\": [\"trade\"]}");
    cr_expect_eq(ds_accel_create(&options, &made), DS_ACCEL_ERR_CONFIG);
    EXPECT_HAS(ds_accel_last_error(), "did you mean \"trace\"?");
}

/* The cpu plugin has neither managed memory nor a current stream. */
Test(core_layer, absent_slots_stay_absent)
{
    ds_accel_plugin_stream_t *stream = NULL;

    start_named("cpu", "validate,leak");
    error.message[0] = '\0';
    cr_expect_eq(table->mem_alloc_managed(NULL, 0, 0, NULL, &error), DS_ACCEL_ERR_UNSUPPORTED);
    cr_expect_eq(table->stream_get_current(NULL, &stream, &error), DS_ACCEL_ERR_UNSUPPORTED);
    stop();
}

/* ---- calls pass through unchanged ------------------------------------------------------------ */

Test(core_layer, calls_go_through_as_they_are)
{
    static const char *const stacks[] = {"validate",
                                         "race",
                                         "leak",
                                         "trace",
                                         "trace,leak,validate",
                                         "validate,leak,trace",
                                         "race,trace,leak,validate"};
    static const char *const accelerators[] = {"mock", "cpu"};

    setenv("DS_ACCEL_TRACE_FILE", test_path("trace.json"), 1);
    for (size_t i = 0; i < 2 * ARRAY_SIZE(stacks); i++) {
        start_named(accelerators[i % 2], stacks[i / 2]);
        test_log[0] = '\0';
        use_everything();
        if (strstr(stacks[i / 2], "leak") != NULL) {
            char *text = report("leak");

            cr_expect_not_null(strstr(text, "x device, made at"), "the open device: %s", text);
            cr_expect_null(strstr(text, "memory"), "%s", text);
            ds_accel_free_text(text);
        }
        stop();
        cr_expect_str_eq(test_log, "", "%s over %s: %s", stacks[i / 2], accelerators[i % 2],
                         test_log);
    }
}

/* ---- accesses that the program notes --------------------------------------------------------- */

Test(core_layer, note_access_refuses_what_is_no_handle_and_no_range)
{
    ds_accel_stream_t *stream = NULL;
    ds_accel_device_t *closed;
    uint64_t count = 0;

    start_layers("race");
    ASSERT_OK(ds_accel_stream_create(device, 0, 0, &stream));
    cr_expect_eq(ds_accel_note_access(NULL, NULL, &error, 1, DS_ACCEL_ACCESS_READ),
                 DS_ACCEL_ERR_INVALID);
    EXPECT_HAS(ds_accel_last_error(), "note_access: the device is NULL");
    cr_expect_eq(ds_accel_note_access(device, stream, &error, 1, 3), DS_ACCEL_ERR_INVALID);
    cr_expect_eq(ds_accel_note_access(device, stream, &error, UINT64_MAX, DS_ACCEL_ACCESS_READ),
                 DS_ACCEL_ERR_INVALID);
    EXPECT_OK(ds_accel_note_access(device, stream, NULL, 0, DS_ACCEL_ACCESS_WRITE));
    ds_accel_stream_destroy(stream);
    cr_expect_eq(ds_accel_note_access(device, stream, &error, 1, DS_ACCEL_ACCESS_READ),
                 DS_ACCEL_ERR_INVALID);
    EXPECT_HAS(ds_accel_last_error(), "note_access: the stream was destroyed");
    cr_expect_eq(ds_accel_race_count(context, &count), DS_ACCEL_OK);
    cr_expect_eq(count, 0);
    closed = device;
    ds_accel_device_close(device);
    cr_expect_eq(ds_accel_note_access(closed, NULL, &error, 1, DS_ACCEL_ACCESS_READ),
                 DS_ACCEL_ERR_INVALID);
    ds_accel_destroy(context);
    cr_expect_eq(ds_accel_note_access(closed, stream, &error, 1, DS_ACCEL_ACCESS_READ), DS_ACCEL_OK,
                 "no layer is on any more");
}
