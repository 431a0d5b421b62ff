/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * What layers record of an allocator's blocks. The tested functions are internal, so this program
 * is linked with the core's own objects.
 *
 *     blocks PLUGINS
 */
#include "host/layers.h"

#include <stdio.h>
#include <stdlib.h>

static unsigned passed;
static unsigned failed;

static ds_accel_t *context;
static ds_accel_device_t *device;
static const struct ds_accel_plugin *table;
static ds_accel_plugin_device_t *handle;
static ds_accel_plugin_stream_t *first;
static ds_accel_plugin_stream_t *second;
static ds_accel_plugin_event_t *event;
static char *segment;
static struct ds_accel_error error = {.struct_size = sizeof(error)};

static void check(const char *name, bool right)
{
    passed += right;
    failed += !right;
    if (!right) {
        printf("FAILED: %s: %s: %s\n", name, error.message, ds_accel_last_error());
    }
}

static bool start(const char *plugins)
{
    struct ds_accel_options options = {.struct_size = sizeof(options),
                                       .flags = DS_ACCEL_OPTION_NO_USER_CONFIG |
                                                DS_ACCEL_OPTION_NO_CACHE,
                                       .accelerator = "mock",
                                       .plugin_dirs = &plugins,
                                       .plugin_dir_count = 1};

    return ds_accel_create(&options, &context) >= 0 && ds_accel_detect(context) >= 0 &&
           ds_accel_device_open(context, 0, &device) >= 0;
}

static bool prepare(void)
{
    table = ds_accel_device_table(device);
    handle = ds_accel_device_handle(device);
    return table->stream_create(handle, 0, 0, &first, &error) >= 0 &&
           table->stream_create(handle, 0, 0, &second, &error) >= 0 &&
           table->event_create(handle, 0, &event, &error) >= 0 &&
           table->mem_alloc(handle, 4096, 0, 0, (void **)&segment, &error) >= 0;
}

static bool fill(ds_accel_plugin_stream_t *stream, size_t at)
{
    return table->mem_fill_async(stream, segment + at, "x", 1, 512, &error) >= 0;
}

static uint64_t races(void)
{
    uint64_t count = UINT64_MAX;

    ds_accel_race_count(context, &count);
    return count;
}

static bool leaks(const char *words, bool wanted)
{
    char *text = NULL;
    bool is_there = ds_accel_layer_report(context, "leak", &text) >= 0 &&
                    strstr(text, words) != NULL;

    ds_accel_free_text(text);
    return is_there == wanted;
}

static void test_blocks(void)
{
    ds_accel__layer_block_alloc(handle, segment, 512, first);
    check("a block is live", leaks("1 x block, 512 bytes", true));
    check("and can be used", fill(first, 0));
    check("within its bounds",
          !fill(first, 8) && strstr(error.message, "past the end of its block") != NULL);
    ds_accel__layer_block_free(handle, segment, first);
    check("a freed block is not live", leaks("block", false));
    check("and is refused", !fill(first, 0));
    check("with its place", strstr(error.message, "lies in a freed block, at ") != NULL);
    ds_accel__layer_block_alloc(handle, segment, 512, first);
    check("given out again on its stream it is fine", fill(first, 0) && races() == 0);
    ds_accel__layer_block_free(handle, segment, first);
    table->event_record(event, first, &error);
    table->stream_wait_event(second, event, &error);
    ds_accel__layer_block_alloc(handle, segment, 512, second);
    check("on another stream that waited too", fill(second, 0) && races() == 0);
    ds_accel__layer_block_free(handle, segment, second);
    ds_accel__layer_block_alloc(handle, segment, 512, first);
    check("on one that did not wait it is a race", races() == 1);
    table->device_synchronize(handle, UINT64_MAX, &error);
    ds_accel__layer_block_free(handle, segment, first);
    ds_accel__layer_block_alloc(handle, segment, 512, NULL);
    check("the host may have it after waiting", races() == 1);
    ds_accel__layer_block_free(handle, segment, NULL);
    ds_accel__layer_block_alloc(handle, NULL, 0, NULL);
    ds_accel__layer_block_free(handle, segment + 1, NULL);
    ds_accel__layer_block_free(NULL, NULL, NULL);
    check("the segment goes", table->mem_free(handle, segment, &error) >= 0 && races() == 1);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: blocks PLUGINS\n");
        return 2;
    }
    ds_accel__layer_block_alloc(NULL, NULL, 1, NULL); /* no layer is enabled */
    setenv("DS_ACCEL_LAYERS", "validate,leak", 1);
    if (!start(argv[1]) || !prepare()) {
        printf("FAILED: start: %s: %s\n", error.message, ds_accel_last_error());
        return 1;
    }
    test_blocks();
    table->event_destroy(event);
    table->stream_destroy(first);
    table->stream_destroy(second);
    ds_accel_device_close(device);
    ds_accel_destroy(context);
    printf("blocks: %u passed, %u failed\n", passed, failed);
    return failed != 0;
}
