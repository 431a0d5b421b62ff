/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The mock with option ipc: memory and events shared between processes. The other process is forked
 * before this process starts the plugin, and starts the plugin itself; handles are sent through a
 * pipe.
 */
#include "fixture.h"
#include "table.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define HANDLE_BYTES 64u

static ds_accel_t *context;
static ds_accel_device_t *device;
static const struct ds_accel_plugin *table;
static ds_accel_plugin_device_t *handle;
static struct ds_accel_error error = {.struct_size = sizeof(error)};

/* Start the mock; returns DS_ACCEL_OK or the error, because assertions do not work in the child. */
static int32_t start_mock(void)
{
    struct ds_accel_options options = test_options();
    int32_t status;

    options.accelerator = "mock";
    status = ds_accel_create(&options, &context);
    if (status >= 0) {
        status = ds_accel_detect(context);
    }
    if (status >= 0) {
        status = ds_accel_device_open(context, 0, &device);
    }
    if (status >= 0) {
        table = ds_accel_device_table(device);
        handle = ds_accel_device_handle(device);
    }
    return status;
}

static void open_mock(void)
{
    cr_assert_eq(start_mock(), DS_ACCEL_OK, "%s", ds_accel_last_error());
}

static void close_mock(void)
{
    ds_accel_device_close(device);
    ds_accel_destroy(context);
}

static void turn_on(void)
{
    setenv("DS_ACCEL_MOCK_IPC", "true", 1);
}

TestSuite(plugin_mock_share, .init = turn_on, .timeout = 60);

static char *allocate(uint64_t size_bytes)
{
    void *pointer = NULL;

    ASSERT_OK(table->mem_alloc(handle, size_bytes, 0, 0, &pointer, &error));
    return pointer;
}

/* ---- within one process --------------------------------------------------------------------- */

Test(plugin_mock_share, is_off_unless_it_is_asked_for)
{
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    unsigned char bytes[HANDLE_BYTES];
    ds_accel_plugin_event_t *event;
    char *pointer;

    setenv("DS_ACCEL_MOCK_IPC", "false", 1);
    open_mock();
    pointer = allocate(100);
    EXPECT_OK(ds_accel_device_info(device, &info));
    cr_expect_eq(info.flags &
                     (DS_ACCEL_FLAG_MEMORY_IPC | DS_ACCEL_FLAG_EVENT_IPC | DS_ACCEL_FLAG_DMABUF),
                 0);
    EXPECT_FAIL(table->ipc_memory_export(handle, pointer, bytes, sizeof(bytes), &error),
                DS_ACCEL_ERR_UNSUPPORTED, "option ipc is off");
    EXPECT_FAIL(table->event_create(handle, DS_ACCEL_EVENT_INTERPROCESS, &event, &error),
                DS_ACCEL_ERR_UNSUPPORTED, "between processes");
    EXPECT_OK(table->mem_free(handle, pointer, &error));
    close_mock();
}

Test(plugin_mock_share, the_backend_says_so)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    const uint64_t flags = DS_ACCEL_FLAG_MEMORY_IPC | DS_ACCEL_FLAG_EVENT_IPC |
                           DS_ACCEL_FLAG_DMABUF;
    ds_accel_plugin_instance_t *instance;
    const struct ds_accel_plugin *same;

    open_mock();
    cr_assert_eq(ds_accel_instance(context, &same, &instance), DS_ACCEL_OK);
    EXPECT_OK(table->backend_info(instance, &info, &error));
    cr_expect_eq(info.flags & flags, flags);
    cr_expect_eq(info.memory_handle_bytes, HANDLE_BYTES);
    cr_expect_eq(info.event_handle_bytes, HANDLE_BYTES);
    close_mock();
}

Test(plugin_mock_share, a_handle_opens_the_same_memory_at_the_same_place)
{
    unsigned char bytes[HANDLE_BYTES];
    void *openings[2] = {NULL, NULL};
    char *pointer;

    open_mock();
    pointer = allocate(10000);
    strcpy(pointer + 5000, "here");
    ASSERT_OK(table->ipc_memory_export(handle, pointer + 5000, bytes, sizeof(bytes), &error));
    for (int i = 0; i < 2; i++) {
        ASSERT_OK(table->ipc_memory_open(handle, bytes, sizeof(bytes), 0, &openings[i], &error));
        cr_expect_str_eq((char *)openings[i], "here");
    }
    cr_expect_neq(openings[0], openings[1]);
    ((char *)openings[1])[-5000] = 'x';
    cr_expect_eq(pointer[0], 'x');
    EXPECT_OK(table->ipc_memory_close(handle, openings[0], &error));
    EXPECT_FAIL(table->ipc_memory_close(handle, openings[0], &error), DS_ACCEL_ERR_INVALID,
                "closed before");
    EXPECT_FAIL(table->mem_free(handle, openings[1], &error), DS_ACCEL_ERR_INVALID,
                "not the start");
    EXPECT_OK(table->ipc_memory_unexport(handle, bytes, sizeof(bytes), &error));
    EXPECT_FAIL(table->ipc_memory_open(handle, bytes, sizeof(bytes), 0, &openings[0], &error),
                DS_ACCEL_ERR_NOT_FOUND, "shares this no more");
    EXPECT_FAIL(table->ipc_memory_unexport(handle, bytes, sizeof(bytes), &error),
                DS_ACCEL_ERR_INVALID, "withdrew it before");
    EXPECT_OK(table->mem_free(handle, pointer, &error));
    cr_expect_str_eq((char *)openings[1], "here"); /* an opened mapping stays valid */
    EXPECT_OK(table->ipc_memory_close(handle, openings[1], &error));
    close_mock();
}

static int count_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;

    cr_assert_not_null(directory);
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

Test(plugin_mock_share, freeing_withdraws_the_handles)
{
    unsigned char bytes[HANDLE_BYTES];
    void *opened = NULL;
    char *pointer;
    int descriptors;

    open_mock();
    descriptors = count_descriptors();
    pointer = allocate(100);
    for (int i = 0; i < 3; i++) {
        ASSERT_OK(table->ipc_memory_export(handle, pointer, bytes, sizeof(bytes), &error));
    }
    EXPECT_OK(table->mem_free(handle, pointer, &error));
    EXPECT_FAIL(table->ipc_memory_open(handle, bytes, sizeof(bytes), 0, &opened, &error),
                DS_ACCEL_ERR_NOT_FOUND, "no more");
    cr_expect_eq(count_descriptors(), descriptors);
    pointer = allocate(100); /* closing must release the block and its handle */
    ASSERT_OK(table->ipc_memory_export(handle, pointer, bytes, sizeof(bytes), &error));
    ASSERT_OK(table->ipc_memory_open(handle, bytes, sizeof(bytes), 0, &opened, &error));
    ds_accel_device_close(device);
    cr_expect_eq(count_descriptors(), descriptors);
    ds_accel_destroy(context);
}

Test(plugin_mock_share, a_damaged_handle_opens_nothing_that_is_not_there)
{
    unsigned char bytes[HANDLE_BYTES];
    unsigned char *pointer;
    int refused = 0;

    open_mock();
    pointer = (unsigned char *)allocate(100);
    ASSERT_OK(table->ipc_memory_export(handle, pointer, bytes, sizeof(bytes), &error));
    for (size_t i = 0; i + 8 <= sizeof(bytes); i += 8) {
        const uint64_t large = UINT64_C(1) << 30;
        unsigned char damaged[HANDLE_BYTES];
        void *opened = NULL;

        memcpy(damaged, bytes, sizeof(damaged));
        memcpy(damaged + i, &large, sizeof(large));
        if (table->ipc_memory_open(handle, damaged, sizeof(damaged), 0, &opened, &error) < 0) {
            cr_expect_null(opened);
            refused++;
            continue;
        }
        pointer[0] = 7;
        cr_expect_eq(*(unsigned char *)opened, 7, "word %zu", i / 8);
        EXPECT_OK(table->ipc_memory_close(handle, opened, &error));
    }
    cr_expect_geq(refused, 5, "%d words were refused", refused);
    EXPECT_OK(table->mem_free(handle, pointer, &error));
    close_mock();
}

Test(plugin_mock_share, what_is_no_handle_is_refused)
{
    unsigned char bytes[HANDLE_BYTES];
    unsigned char event_bytes[HANDLE_BYTES];
    ds_accel_plugin_event_t *event = NULL;
    ds_accel_plugin_event_t *plain = NULL;
    void *opened = NULL;
    char *pointer;
    int local = 0;

    open_mock();
    pointer = allocate(100);
    ASSERT_OK(table->ipc_memory_export(handle, pointer, bytes, sizeof(bytes), &error));
    EXPECT_FAIL(table->ipc_memory_export(handle, pointer + 100, bytes, sizeof(bytes), &error),
                DS_ACCEL_ERR_INVALID, "is not in live memory");
    EXPECT_FAIL(table->ipc_memory_export(handle, &local, bytes, sizeof(bytes), &error),
                DS_ACCEL_ERR_INVALID, "is not in live memory");
    EXPECT_FAIL(table->ipc_memory_export(handle, pointer, bytes, 8, &error), DS_ACCEL_ERR_INVALID,
                "expected 64");
    EXPECT_FAIL(table->ipc_memory_open(handle, bytes, 8, 0, &opened, &error), DS_ACCEL_ERR_INVALID,
                "expected 64");
    EXPECT_FAIL(table->ipc_memory_open(handle, bytes, sizeof(bytes), 1, &opened, &error),
                DS_ACCEL_ERR_INVALID, "flags");
    ASSERT_OK(table->event_create(handle, DS_ACCEL_EVENT_INTERPROCESS, &event, &error));
    ASSERT_OK(table->ipc_event_export(event, event_bytes, sizeof(event_bytes), &error));
    EXPECT_FAIL(
        table->ipc_memory_open(handle, event_bytes, sizeof(event_bytes), 0, &opened, &error),
        DS_ACCEL_ERR_INVALID, "no such handle");
    EXPECT_FAIL(table->ipc_event_open(handle, bytes, sizeof(bytes), &plain, &error),
                DS_ACCEL_ERR_INVALID, "no such handle");
    EXPECT_FAIL(table->event_create(handle, DS_ACCEL_EVENT_INTERPROCESS | DS_ACCEL_EVENT_TIMING,
                                    &plain, &error),
                DS_ACCEL_ERR_INVALID, "timing");
    ASSERT_OK(table->event_create(handle, 0, &plain, &error));
    EXPECT_FAIL(table->ipc_event_export(plain, event_bytes, sizeof(event_bytes), &error),
                DS_ACCEL_ERR_INVALID, "INTERPROCESS");
    table->event_destroy(plain);
    table->event_destroy(event);
    EXPECT_FAIL(table->ipc_event_open(handle, event_bytes, sizeof(event_bytes), &plain, &error),
                DS_ACCEL_ERR_NOT_FOUND, "no more");
    memset(bytes + 8, 0x7f, 4); /* an invalid process id */
    EXPECT_FAIL(table->ipc_memory_open(handle, bytes, sizeof(bytes), 0, &opened, &error),
                DS_ACCEL_ERR_NOT_FOUND, "has ended");
    EXPECT_OK(table->mem_free(handle, pointer, &error));
    close_mock();
}

Test(plugin_mock_share, another_file_under_the_number_of_a_handle_is_not_found)
{
    unsigned char bytes[HANDLE_BYTES];
    void *opened = NULL;
    char *pointer;
    int other;
    int32_t number;

    open_mock();
    pointer = allocate(100);
    ASSERT_OK(table->ipc_memory_export(handle, pointer, bytes, sizeof(bytes), &error));
    memcpy(&number, bytes + 12, sizeof(number));
    EXPECT_OK(table->ipc_memory_unexport(handle, bytes, sizeof(bytes), &error));
    other = open("/dev/null", O_RDONLY | O_CLOEXEC);
    cr_assert_geq(other, 0);
    cr_assert(other == number || dup2(other, number) == number);
    errno = EACCES; /* an earlier failure, not of this call */
    EXPECT_FAIL(table->ipc_memory_open(handle, bytes, sizeof(bytes), 0, &opened, &error),
                DS_ACCEL_ERR_NOT_FOUND, "shares this no more");
    close(number);
    if (other != number) {
        close(other);
    }
    EXPECT_OK(table->mem_free(handle, pointer, &error));
    close_mock();
}

Test(plugin_mock_share, a_dmabuf_is_a_descriptor_of_the_memory)
{
    uint64_t offset = 0;
    void *imported = NULL;
    char *pointer;
    int32_t fd = -1;

    open_mock();
    pointer = allocate(20000);
    strcpy(pointer + 9000, "buffer");
    ASSERT_OK(table->dmabuf_export(handle, pointer + 9000, 100, 0, &fd, &offset, &error));
    cr_expect_eq(offset, 9000);
    cr_expect_neq(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    ASSERT_OK(table->dmabuf_import(handle, fd, offset, 100, &imported, &error));
    cr_expect_str_eq((char *)imported, "buffer");
    EXPECT_FAIL(table->dmabuf_export(handle, pointer + 19000, 1001, 0, &fd, &offset, &error),
                DS_ACCEL_ERR_INVALID, "is not in live memory");
    EXPECT_FAIL(table->dmabuf_import(handle, fd, 19999, 2, &imported, &error), DS_ACCEL_ERR_INVALID,
                "can't be mapped");
    EXPECT_FAIL(table->ipc_memory_close(handle, imported, &error), DS_ACCEL_ERR_INVALID,
                "was not opened");
    cr_expect_eq(close(fd), 0);
    EXPECT_OK(table->mem_free(handle, pointer, &error));
    cr_expect_str_eq((char *)imported, "buffer");
    EXPECT_OK(table->dmabuf_release(handle, imported, &error));
    close_mock();
}

/* ---- between processes ---------------------------------------------------------------------- */

static int to_child[2];
static int from_child[2];

static bool receive(int from, void *bytes, size_t size)
{
    return read(from, bytes, size) == (ssize_t)size;
}

static bool send(int to, const void *bytes, size_t size)
{
    return write(to, bytes, size) == (ssize_t)size;
}

/*
 * The child opens the parent's exports, reads and changes them, and waits for the parent's event.
 */
static int be_other_process(void)
{
    unsigned char memory_bytes[HANDLE_BYTES];
    unsigned char event_bytes[HANDLE_BYTES];
    ds_accel_plugin_event_t *event = NULL;
    ds_accel_plugin_stream_t *stream = NULL;
    void *opened = NULL;
    char go;

    alarm(50);
    if (!receive(to_child[0], memory_bytes, sizeof(memory_bytes)) ||
        !receive(to_child[0], event_bytes, sizeof(event_bytes))) {
        return 10;
    }
    if (start_mock() < 0 || table->stream_create(handle, 0, 0, &stream, &error) < 0) {
        return 11;
    }
    if (table->ipc_memory_open(handle, memory_bytes, sizeof(memory_bytes), 0, &opened, &error) <
            0 ||
        strcmp(opened, "from the parent") != 0) {
        return 12;
    }
    if (table->ipc_event_open(handle, event_bytes, sizeof(event_bytes), &event, &error) < 0 ||
        table->event_query(event, &error) != DS_ACCEL_NOT_READY ||
        table->stream_wait_event(stream, event, &error) != DS_ACCEL_OK ||
        table->stream_query(stream, &error) != DS_ACCEL_NOT_READY) {
        return 13;
    }
    strcpy(opened, "from the child");
    if (!send(from_child[1], "1", 1) || !receive(to_child[0], &go, 1)) {
        return 14;
    }
    /* The parent has recorded the event again, on a stream without delay. */
    if (table->event_synchronize(event, UINT64_MAX, &error) != DS_ACCEL_OK ||
        table->ipc_memory_open(handle, memory_bytes, sizeof(memory_bytes), 0, &opened, &error) !=
            DS_ACCEL_ERR_NOT_FOUND ||
        table->event_record(event, stream, &error) != DS_ACCEL_OK) {
        return 15;
    }
    table->event_destroy(event);
    return send(from_child[1], "2", 1) ? 0 : 16;
}

static void do_nothing(void *data, int32_t status)
{
    (void)data;
    (void)status;
}

Test(plugin_mock_share, memory_and_events_are_shared_with_another_process)
{
    unsigned char memory_bytes[HANDLE_BYTES];
    unsigned char event_bytes[HANDLE_BYTES];
    ds_accel_plugin_stream_t *slow = NULL;
    ds_accel_plugin_stream_t *fast = NULL;
    ds_accel_plugin_event_t *event = NULL;
    char *pointer;
    char answer = 0;
    int status;
    pid_t child;

    setenv("DS_ACCEL_MOCK_LAUNCH_LATENCY_NS", "3600000000000", 1); /* a task takes an hour */
    cr_assert(pipe(to_child) == 0 && pipe(from_child) == 0);
    test_dir(); /* create the directory before fork() */
    child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        _exit(be_other_process());
    }
    open_mock();
    pointer = allocate(4096);
    strcpy(pointer, "from the parent");
    ASSERT_OK(table->stream_create(handle, 0, 0, &slow, &error));
    ASSERT_OK(table->stream_create(handle, 0, 0, &fast, &error));
    ASSERT_OK(table->event_create(handle, DS_ACCEL_EVENT_INTERPROCESS, &event, &error));
    ASSERT_OK(table->stream_host_task(slow, do_nothing, NULL, &error));
    ASSERT_OK(table->event_record(event, slow, &error));
    ASSERT_OK(
        table->ipc_memory_export(handle, pointer, memory_bytes, sizeof(memory_bytes), &error));
    ASSERT_OK(table->ipc_event_export(event, event_bytes, sizeof(event_bytes), &error));
    cr_assert(send(to_child[1], memory_bytes, sizeof(memory_bytes)));
    cr_assert(send(to_child[1], event_bytes, sizeof(event_bytes)));
    close(from_child[1]); /* so that the read fails if the child exits */
    cr_expect(receive(from_child[0], &answer, 1) && answer == '1');
    cr_expect_str_eq(pointer, "from the child");
    EXPECT_OK(table->ipc_memory_unexport(handle, memory_bytes, sizeof(memory_bytes), &error));
    EXPECT_OK(table->event_record(event, fast, &error));
    cr_assert(send(to_child[1], "g", 1));
    cr_expect(receive(from_child[0], &answer, 1) && answer == '2');
    /* The child's stream still waits an hour for the first record, and recorded the event after
       that wait. */
    cr_expect_eq(table->event_query(event, &error), DS_ACCEL_NOT_READY);
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status 0x%x", (unsigned)status);
    table->event_destroy(event);
    table->stream_destroy(slow);
    table->stream_destroy(fast);
    EXPECT_OK(table->mem_free(handle, pointer, &error));
    close_mock();
}
