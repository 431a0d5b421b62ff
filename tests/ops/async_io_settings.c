/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The op async_io: settings of the configuration. Called with the path of its shared object. */
#include "async_io.h"

#include <inttypes.h>
#include <pthread.h>

static ds_accel_op_configure_v1_fn configure;

static struct ds_accel_async_io_info info_of(struct ds_accel_async_io_options options)
{
    struct ds_accel_async_io_info info = {.struct_size = sizeof(info)};
    ds_accel_async_io_handle_t *handle = make(options);

    CHECK(handle && io->info(handle, &info, NULL) == DS_ACCEL_OK, "info");
    io->destroy(handle);
    return info;
}

#define OPTIONS(...) ((struct ds_accel_async_io_options){__VA_ARGS__})

static void check_info(struct ds_accel_async_io_options options, uint64_t block, uint32_t depth,
                       uint32_t parallelism, uint32_t single, uint32_t overlap)
{
    struct ds_accel_async_io_info info = info_of(options);

    CHECK(info.block_bytes == block, "block_bytes %" PRIu64, info.block_bytes);
    CHECK(info.queue_depth == depth, "queue_depth %u", info.queue_depth);
    CHECK(info.parallelism == parallelism, "parallelism %u", info.parallelism);
    CHECK(info.single_submit == single, "single_submit %u", info.single_submit);
    CHECK(info.overlap_events == overlap, "overlap_events %u", info.overlap_events);
}

#define SET(...) \
    do { \
        const struct ds_accel_op_setting settings_[] = {__VA_ARGS__}; \
        struct ds_accel_error error_ = {.struct_size = sizeof(error_)}; \
        CHECK(configure(settings_, sizeof(settings_) / sizeof(settings_[0]), &error_) == \
                  DS_ACCEL_OK, \
              "%s", error_.message); \
    } while (0)

static void check_defaults(void)
{
    SET({"block_bytes", "8388608"}, {"queue_depth", "32"}, {"parallelism", "2"},
        {"single_submit", "true"}, {"overlap_events", "true"}, {"engine", "threads"});
    check_info(OPTIONS(0), 8388608, 32, 2, 1, 1);
    CHECK(info_of(OPTIONS(0)).engine == DS_ACCEL_ASYNC_IO_ENGINE_THREADS, "the engine");
    check_info(OPTIONS(.block_bytes = 4096, .queue_depth = 3, .parallelism = 1), 4096, 3, 1, 1, 1);
    check_info(OPTIONS(.flags = DS_ACCEL_ASYNC_IO_NO_SETTINGS), 1048576, 128, 1, 0, 0);
    check_info(OPTIONS(.single_submit = DS_ACCEL_ASYNC_IO_OFF), 8388608, 32, 2, 0, 1);
    check_info(OPTIONS(.overlap_events = DS_ACCEL_ASYNC_IO_OFF), 8388608, 32, 2, 1, 0);
    SET({"block_bytes", "1073741824"}, {"queue_depth", "4096"}, {"parallelism", "64"},
        {"engine", "threads"});
    check_info(OPTIONS(0), 1073741824, 4096, 64, 0, 0);
    SET({"queue_depth", "7"}, {"single_submit", "false"}, {"engine", "io_uring"});
    check_info(OPTIONS(0), 1048576, 7, 1, 0, 0);
    check_info(OPTIONS(.single_submit = DS_ACCEL_ASYNC_IO_ON), 1048576, 7, 1, 1, 0);
    check_info(OPTIONS(.overlap_events = DS_ACCEL_ASYNC_IO_OFF), 1048576, 7, 1, 0, 0);
    check_info(OPTIONS(.flags = DS_ACCEL_ASYNC_IO_NO_SETTINGS,
                       .single_submit = DS_ACCEL_ASYNC_IO_OFF,
                       .overlap_events = DS_ACCEL_ASYNC_IO_ON),
               1048576, 128, 1, 0, 1);
    CHECK(info_of(OPTIONS(.engine = DS_ACCEL_ASYNC_IO_ENGINE_THREADS)).engine ==
              DS_ACCEL_ASYNC_IO_ENGINE_THREADS,
          "the caller's engine");
}

static void refuse(const char *name, const char *value, const char *text)
{
    const struct ds_accel_op_setting settings[] = {{"parallelism", "3"}, {name, value}};
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    REFUSED(configure(settings, 2, failed), DS_ACCEL_ERR_INVALID, text);
    configure(settings, 2, &error);
    CHECK(strcmp(error.vendor_text, name) == 0, "the setting is \"%s\"", error.vendor_text);
    ERROR_SIZES(configure(settings, 2, failed), DS_ACCEL_ERR_INVALID);
}

static void check_refused(void)
{
    SET({"queue_depth", "9"});
    refuse("depth", "1", "async_io: configure: unknown setting \"depth\"; wanted block_bytes");
    refuse("block_bytes", "0", "block_bytes is \"0\"; wanted a multiple of 512");
    refuse("block_bytes", "1000", "block_bytes is \"1000\"");
    refuse("block_bytes", "1073742336", "block_bytes is \"1073742336\"");
    refuse("block_bytes", "99999999999999999999999", "block_bytes is \"9999999");
    refuse("block_bytes", "1e6", "block_bytes is \"1e6\"");
    refuse("queue_depth", "4097", "queue_depth is \"4097\"; wanted a whole number from 1 to 4096");
    refuse("queue_depth", "-1", "queue_depth is \"-1\"");
    refuse("parallelism", "65", "parallelism is \"65\"; wanted a whole number from 1 to 64");
    refuse("parallelism", "", "parallelism is \"\"");
    refuse("single_submit", "1", "single_submit is \"1\"; wanted true or false");
    refuse("overlap_events", "on", "overlap_events is \"on\"; wanted true or false");
    refuse("engine", "uring", "engine is \"uring\"; wanted auto, io_uring or threads");
    REFUSED(configure(NULL, 1, failed), DS_ACCEL_ERR_INVALID, "settings is NULL");
    check_info(OPTIONS(0), 1048576, 9, 1, 0, 0);
    CHECK(configure(NULL, 0, NULL) == DS_ACCEL_OK, "no settings");
    check_info(OPTIONS(0), 1048576, 128, 1, 0, 0);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *change(void *unused)
{
    for (int i = 0; i < 2000; i++) {
        SET({"block_bytes", "4096"}, {"queue_depth", "4"}, {"engine", "threads"});
        SET({"block_bytes", "8192"}, {"queue_depth", "8"}, {"engine", "threads"});
    }
    return unused;
}

/* Handles have the settings of one call, never of two. */
static void check_threads(void)
{
    pthread_t thread;

    SET({"block_bytes", "4096"}, {"queue_depth", "4"}, {"engine", "threads"});
    if (pthread_create(&thread, NULL, change, NULL) != 0) {
        perror("async_io_settings: pthread_create");
        exit(1);
    }
    for (int i = 0; i < 100; i++) {
        struct ds_accel_async_io_info info = info_of(OPTIONS(0));

        CHECK(info.block_bytes == info.queue_depth * UINT64_C(1024), "%" PRIu64 " and %u",
              info.block_bytes, info.queue_depth);
    }
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    void *library;

    (void)argc;
    io = (const struct ds_accel_async_io *)open_op(argv[1], "async_io");
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    configure = library ? (ds_accel_op_configure_v1_fn)dlsym(library, DS_ACCEL_OP_CONFIGURE) : NULL;
    if (!configure) {
        fprintf(stderr, "async_io_settings: %s\n", dlerror());
        return 1;
    }
    check_defaults();
    check_refused();
    check_threads();
    return finish("async_io_settings");
}
