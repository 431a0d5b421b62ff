/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Layer race: the file that lists detected races. */
#include "layer.h"

#include <unistd.h>

/* ---- the file of detected races -------------------------------------------------------------- */

static void make_race(void)
{
    ds_accel_stream_t *one = NULL;
    ds_accel_stream_t *two = NULL;
    void *memory = allocate(64);

    ASSERT_OK(ds_accel_stream_create(device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &one));
    ASSERT_OK(ds_accel_stream_create(device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &two));
    EXPECT_OK(ds_accel_note_access(device, one, memory, 64, DS_ACCEL_ACCESS_WRITE));
    EXPECT_OK(ds_accel_note_access(device, two, memory, 64, DS_ACCEL_ACCESS_WRITE));
    EXPECT_OK(ds_accel_device_synchronize(device));
    EXPECT_OK(table->mem_free(handle, memory, &error));
}

static size_t line_count(const char *text, const char *start)
{
    size_t count = 0;

    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
        count += strncmp(line, start, strlen(start)) == 0;
        cr_assert_not_null(strchr(line, '\n'), "the last line is whole");
    }
    return count;
}

/* Each race is written as soon as it is detected. Two runs append to one file, and a failed run
   leaves the other run's lines in place. */
Test(core_layer, races_are_written_to_the_file_of_the_configuration)
{
    char config[512];
    char *text;

    snprintf(config, sizeof(config), "{\"validate\": {\"file\": \"%s\"}}", test_path("races"));
    test_write("etc/ds-accel.json", config);
    test_write("races", "# kept\n");
    for (size_t run = 1; run <= 2; run++) {
        char *told;

        start_layers("race");
        cr_expect_eq(line_count(read_whole(test_path("races")), "race: "), run - 1);
        make_race();
        text = read_whole(test_path("races"));
        cr_expect_eq(line_count(text, "race: "), run, "%s", text);
        cr_expect_eq(line_count(text, "# kept"), 1, "%s", text);
        told = report("race");
        EXPECT_HAS(text, told);
        ds_accel_free_text(told);
        stop();
    }
}

Test(core_layer, environment_names_a_file_of_races_for_each_process)
{
    char name[64];

    test_write("etc/ds-accel.json", "{\"validate\": {\"file\": \"/nonexistent/races\"}}");
    snprintf(name, sizeof(name), "races.%ld", (long)getpid());
    setenv("DS_ACCEL_RACE_FILE", test_path("races.%p"), 1);
    start_layers("validate");
    make_race();
    cr_expect_eq(line_count(read_whole(test_path(name)), "race: "), 1);
    stop();
    cr_expect_null(strstr(test_log, "not written"), "%s", test_log);
}

Test(core_layer, file_of_races_that_cannot_be_written_leaves_the_layer_on)
{
    setenv("DS_ACCEL_RACE_FILE", "/nonexistent/races", 1);
    start_layers("race");
    EXPECT_HAS(test_log, "races are not written to /nonexistent/races: No such file");
    make_race();
    cr_expect_eq(races(), 1);
    stop();
}

Test(core_layer, file_of_races_is_no_link)
{
    test_write("target", "");
    cr_assert_eq(symlink(test_path("target"), test_path("link")), 0);
    setenv("DS_ACCEL_RACE_FILE", test_path("link"), 1);
    start_layers("race");
    EXPECT_HAS(test_log, "races are not written to");
    make_race();
    cr_expect_str_eq(read_whole(test_path("target")), "");
    stop();
}
