/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Scenarios with several threads, with another process, with lost devices, and with captures that
 * another thread disturbs. */
#include "drive.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- two threads ---------------------------------------------------------------------------- */

/* A thread with its own struct run, so that threads do not share an error and counts. */
struct helper {
    struct run run; /* a copy of the scenario's run, with the same handles */
    pthread_t thread;
    atomic_int *is_over;
    const unsigned char *handle;
    uint32_t handle_bytes;
    int32_t status;
};

static void start_helper(struct helper *helper, const struct run *run, void *(*work)(void *helper))
{
    helper->run = *run;
    helper->run.passed = helper->run.failed = helper->run.refused = helper->run.missing = 0;
    if (pthread_create(&helper->thread, NULL, work, helper) != 0) {
        abort();
    }
}

static void join_helper(struct helper *helper, struct run *run)
{
    pthread_join(helper->thread, NULL);
    drive_add(run, &helper->run);
}

static void *ask_device(void *given)
{
    struct helper *helper = given;
    struct run *run = &helper->run;

    while (!atomic_load(helper->is_over)) {
        helper->status = ASK(run, device_synchronize, run->device, 0);
        if (helper->status < 0 && helper->status != DS_ACCEL_ERR_TIMEOUT) {
            drive_judge(run, "device_synchronize", helper->status);
        }
    }
    return NULL;
}

void drive_waited(struct run *run)
{
    atomic_int is_over = 0;
    struct helper helper = {.is_over = &is_over};

    if (CALL(run, device_open, run->instance, 0, &run->device) < 0) {
        return;
    }
    start_helper(&helper, run, ask_device);
    for (int i = 0; i < 3000; i++) {
        ds_accel_plugin_stream_t *stream = NULL;

        if (CALL(run, stream_create, run->device, 0, 0, &stream) == DS_ACCEL_OK) {
            run->table->stream_destroy(stream);
        }
    }
    atomic_store(&is_over, 1);
    join_helper(&helper, run);
}

/* ---- destroyed streams ---------------------------------------------------------------------- */

static void wait_for_flag(void *user_data, int32_t status)
{
    atomic_int *flag = user_data;

    (void)status;
    while (!atomic_load(flag)) {
        usleep(1000);
    }
}

/* A wait for the device with a deadline also waits for the work of a destroyed stream. */
void drive_gone(struct run *run)
{
    static atomic_int is_over; /* static, because a task may read it after this function returns */

    if (CALL(run, device_open, run->instance, 0, &run->device) < 0 ||
        CALL(run, stream_create, run->device, DS_ACCEL_STREAM_NON_BLOCKING, 0, &run->one) < 0) {
        return;
    }
    if (CALL(run, stream_host_task, run->one, wait_for_flag, &is_over) < 0 ||
        CALL(run, stream_host_task, run->one, drive_count, run) < 0) {
        atomic_store(&is_over, 1);
    }
    run->table->stream_destroy(run->one);
    for (uint64_t timeout_ns = 0; run->code == 0 && timeout_ns <= 10000000; timeout_ns += 5000000) {
        drive_want(run,
                   ASK(run, device_synchronize, run->device, timeout_ns) == DS_ACCEL_ERR_TIMEOUT,
                   "the stream's work is waited for");
    }
    atomic_store(&is_over, 1);
    if (CALL(run, device_synchronize, run->device, 60000000000u) == DS_ACCEL_OK) {
        drive_want(run, run->task_count == 1, "the stream's last task has run");
    }
}

/* ---- wrapped streams ------------------------------------------------------------------------ */

static void *wait_for_device(void *given)
{
    struct helper *helper = given;
    struct run *run = &helper->run;

    while (!atomic_load(helper->is_over)) {
        CALL(run, device_synchronize, run->device, UINT64_MAX);
    }
    return NULL;
}

static void *raise_later(void *given)
{
    struct helper *helper = given;

    usleep(2000);
    atomic_store(helper->is_over, 1);
    return NULL;
}

/*
 * Wraps the stream of another instance while the stream has work, and destroys the wrapper and then
 * the stream.
 */
static void wrap_once(struct run *run, ds_accel_plugin_device_t *owner)
{
    atomic_int flag = 0;
    struct helper helper = {.is_over = &flag};
    ds_accel_plugin_stream_t *stream = NULL;
    void *wrapped = NULL;
    uint64_t native = 0;
    uint64_t offset = 0;

    if (CALL(run, stream_create, owner, DS_ACCEL_STREAM_NON_BLOCKING, 0, &stream) < 0) {
        return;
    }
    start_helper(&helper, run, raise_later);
    if (CALL(run, stream_host_task, stream, wait_for_flag, &flag) == DS_ACCEL_OK &&
        CALL(run, native_get, owner, DS_ACCEL_NATIVE_STREAM, stream, &native, &offset) ==
            DS_ACCEL_OK &&
        CALL(run, native_wrap, run->device, DS_ACCEL_NATIVE_STREAM, native, &wrapped) ==
            DS_ACCEL_OK) {
        run->table->stream_destroy(wrapped);
    }
    CALL(run, stream_synchronize, stream, UINT64_MAX);
    run->table->stream_destroy(stream);
    join_helper(&helper, run);
}

/* A destroyed wrapper does not use its stream any more, which no longer exists then. */
void drive_unwrapped(struct run *run)
{
    atomic_int is_over = 0;
    struct helper helper = {.is_over = &is_over};
    ds_accel_plugin_instance_t *other = NULL;
    ds_accel_plugin_device_t *owner = NULL;

    if (CALL(run, device_open, run->instance, 0, &run->device) < 0 ||
        CALL(run, init, drive_host(run->table->name), &other) < 0) {
        return;
    }
    if (CALL(run, device_open, other, 0, &owner) == DS_ACCEL_OK) {
        wrap_once(run, owner);
        CALL(run, device_synchronize, run->device, UINT64_MAX);
        start_helper(&helper, run, wait_for_device);
        for (int i = 0; i < 200; i++) {
            wrap_once(run, owner);
        }
        atomic_store(&is_over, 1);
        join_helper(&helper, run);
    }
    run->table->device_close(owner);
    run->table->shutdown(other);
}

/* ---- memory of another process -------------------------------------------------------------- */

static void *open_and_close(void *given)
{
    struct helper *helper = given;
    struct run *run = &helper->run;

    for (int i = 0; i < 2000 && run->code == 0; i++) {
        void *memory = NULL;

        if (CALL(run, ipc_memory_open, run->device, helper->handle, helper->handle_bytes, 0,
                 &memory) == DS_ACCEL_OK) {
            CALL(run, ipc_memory_close, run->device, memory);
        }
    }
    return NULL;
}

/* Four threads open and close the memory; afterwards it is opened twice, for device_close() to
 * close. */
static void import(struct run *run, const unsigned char *handle, uint32_t handle_bytes)
{
    struct helper helpers[4];
    void *left = NULL;

    if (CALL(run, device_open, run->instance, 0, &run->device) < 0) {
        return;
    }
    for (int i = 0; i < 4; i++) {
        helpers[i] = (struct helper){.handle = handle, .handle_bytes = handle_bytes};
        start_helper(&helpers[i], run, open_and_close);
    }
    for (int i = 0; i < 4; i++) {
        join_helper(&helpers[i], run);
    }
    for (int i = 0; i < 2; i++) {
        CALL(run, ipc_memory_open, run->device, handle, handle_bytes, 0, &left);
    }
}

#define OWNERS_PATTERN 5u
#define IMPORTERS_PATTERN 9u
#define IMPORTERS_BLOCKS 32

static int32_t put_pattern(struct run *run, void *memory, unsigned seed)
{
    unsigned char bytes[4096];

    drive_pattern(bytes, sizeof(bytes), seed);
    return CALL(run, mem_copy, run->device, memory, bytes, sizeof(bytes),
                DS_ACCEL_COPY_HOST_TO_DEVICE);
}

/*
 * Opens memory of the owner process after exporting memory of this process, so that the owner's
 * descriptor numbers are valid in this process too. The opened memory must be the owner's.
 */
static void exchange(struct run *run, const unsigned char *handle, uint32_t handle_bytes)
{
    unsigned char ours[IMPORTERS_BLOCKS][256];
    void *blocks[IMPORTERS_BLOCKS] = {NULL};
    unsigned char bytes[4096] = {0};
    void *memory = NULL;
    int count = 0;

    if (CALL(run, device_open, run->instance, 0, &run->device) < 0) {
        return;
    }
    while (count < IMPORTERS_BLOCKS &&
           CALL(run, mem_alloc, run->device, BYTES, 0, 0, &blocks[count]) == DS_ACCEL_OK) {
        put_pattern(run, blocks[count], IMPORTERS_PATTERN);
        CALL(run, ipc_memory_export, run->device, blocks[count], ours[count], handle_bytes);
        count++;
    }
    if (CALL(run, ipc_memory_open, run->device, handle, handle_bytes, 0, &memory) == DS_ACCEL_OK) {
        if (CALL(run, mem_copy, run->device, bytes, memory, sizeof(bytes),
                 DS_ACCEL_COPY_DEVICE_TO_HOST) == DS_ACCEL_OK) {
            drive_want(run, !drive_is_pattern(bytes, sizeof(bytes), IMPORTERS_PATTERN),
                       "the importer's own memory was opened");
            drive_want(run, drive_is_pattern(bytes, sizeof(bytes), OWNERS_PATTERN),
                       "another memory was opened");
        }
        CALL(run, ipc_memory_close, run->device, memory);
    }
    while (count > 0) {
        count--;
        CALL(run, ipc_memory_unexport, run->device, ours[count], handle_bytes);
        RELEASE(run, mem_free, run->device, blocks[count]);
    }
}

/* Runs in the child: exports memory, and frees it when the parent has closed its pipe. */
static int own(struct run *run, int to_parent, int from_parent)
{
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    unsigned char message[256] = {0};
    void *memory = NULL;

    for (int i = 0; i < IMPORTERS_BLOCKS / 2; i++) {
        (void)dup(to_parent); /* makes descriptor numbers of both processes overlap */
    }
    if (CALL(run, init, drive_host(run->table->name), &run->instance) == DS_ACCEL_OK &&
        CALL(run, device_open, run->instance, 0, &run->device) == DS_ACCEL_OK &&
        CALL(run, backend_info, run->instance, &info) == DS_ACCEL_OK &&
        CALL(run, mem_alloc, run->device, BYTES, 0, 0, &memory) == DS_ACCEL_OK &&
        put_pattern(run, memory, OWNERS_PATTERN) == DS_ACCEL_OK &&
        CALL(run, ipc_memory_export, run->device, memory, message + 1, info.memory_handle_bytes) ==
            DS_ACCEL_OK) {
        message[0] = (unsigned char)info.memory_handle_bytes;
    }
    if (write(to_parent, message, sizeof(message)) == (ssize_t)sizeof(message)) {
        (void)!read(from_parent, message, 1); /* returns when the parent closes its end */
    }
    RELEASE(run, mem_free, run->device, memory);
    run->table->device_close(run->device);
    run->table->shutdown(run->instance);
    fflush(stdout);
    return run->code;
}

/* Forks a child that exports memory, and plays a scenario that imports the memory. Called before
 * init(), because the vendor's library does not work in a forked child once it was started. */
static void with_owner(struct run *run, void (*play)(struct run *run, const unsigned char *handle,
                                                     uint32_t handle_bytes))
{
    unsigned char message[256] = {0};
    int up[2];
    int down[2];
    int status = 0;
    pid_t child;

    if (pipe(up) != 0 || pipe(down) != 0) {
        abort();
    }
    fflush(stdout);
    child = fork();
    if (child == 0) {
        close(down[1]);
        unsetenv("SIM_REPORT"); /* only the importer writes a report */
        exit(own(run, up[1], down[0]));
    }
    if (child > 0 && read(up[0], message, sizeof(message)) == (ssize_t)sizeof(message) &&
        message[0] > 0 &&
        CALL(run, init, drive_host(run->table->name), &run->instance) == DS_ACCEL_OK) {
        play(run, message + 1, message[0]);
        run->table->device_close(run->device);
        run->table->shutdown(run->instance);
    } else {
        drive_wrong(run, "nothing was exported");
    }
    close(down[1]);
    waitpid(child, &status, 0);
    if (status != 0) {
        drive_wrong(run, "the exporter failed");
    }
}

void drive_imports(struct run *run)
{
    with_owner(run, import);
}

void drive_exchanged(struct run *run)
{
    with_owner(run, exchange);
}

/* ---- memory of another device --------------------------------------------------------------- */

static void *raise_flag(void *given)
{
    struct helper *helper = given;

    usleep(100000); /* During this time the memory is freed, or mem_free() waits for the copy. */
    atomic_store(helper->is_over, 1);
    return NULL;
}

/* Queues a copy after a host task, and frees the source of the copy before the task returns. */
static void copy_freed(struct run *run, ds_accel_plugin_device_t *peer, unsigned char *bytes)
{
    atomic_int flag = 0;
    struct helper helper = {.is_over = &flag};
    void *copied = NULL;

    if (CALL(run, stream_create, run->device, 0, 0, &run->one) < 0 ||
        CALL(run, mem_alloc, run->device, BYTES, 0, 0, &run->first) < 0 ||
        CALL(run, mem_alloc, peer, BYTES, 0, 0, &copied) < 0 ||
        CALL(run, mem_copy, run->device, run->first, bytes, BYTES, DS_ACCEL_COPY_HOST_TO_DEVICE) <
            0 ||
        CALL(run, stream_host_task, run->one, wait_for_flag, &flag) < 0 ||
        CALL(run, mem_copy_peer_async, run->one, peer, copied, run->device, run->first, BYTES) <
            0) {
        return;
    }
    start_helper(&helper, run, raise_flag);
    RELEASE(run, mem_free, run->device, run->first);
    if (CALL(run, stream_synchronize, run->one, UINT64_MAX) == DS_ACCEL_OK &&
        CALL(run, mem_copy, peer, bytes + BYTES, copied, BYTES, DS_ACCEL_COPY_DEVICE_TO_HOST) ==
            DS_ACCEL_OK) {
        drive_want(run, memcmp(bytes, bytes + BYTES, BYTES) == 0, "what was copied");
    }
    join_helper(&helper, run);
    RELEASE(run, mem_free, peer, copied);
    run->table->stream_destroy(run->one);
}

void drive_peer(struct run *run)
{
    ds_accel_plugin_device_t *peer = NULL;
    unsigned char *bytes = calloc(2, BYTES);

    if (bytes == NULL) {
        abort();
    }
    drive_pattern(bytes, BYTES, 1);
    if (CALL(run, device_open, run->instance, 0, &run->device) == DS_ACCEL_OK &&
        CALL(run, device_open, run->instance, 1, &peer) == DS_ACCEL_OK) {
        copy_freed(run, peer, bytes);
    }
    run->table->device_close(peer);
    free(bytes);
}

/* Captures a copy to another device, and launches the graph. */
static void copy_captured(struct run *run, ds_accel_plugin_device_t *peer, unsigned char *bytes,
                          void *copied)
{
    if (CALL(run, mem_copy, run->device, run->first, bytes, BYTES, DS_ACCEL_COPY_HOST_TO_DEVICE) <
            0 ||
        CALL(run, mem_copy, peer, copied, bytes + BYTES, BYTES, DS_ACCEL_COPY_HOST_TO_DEVICE) < 0 ||
        CALL(run, graph_capture_begin, run->one, DS_ACCEL_CAPTURE_THREAD_LOCAL) < 0) {
        return;
    }
    CALL(run, mem_copy_peer_async, run->one, peer, copied, run->device, run->first, BYTES);
    if (CALL(run, graph_capture_end, run->one, &run->graph) < 0) {
        return;
    }
    CALL(run, mem_copy, peer, bytes + BYTES, copied, BYTES, DS_ACCEL_COPY_DEVICE_TO_HOST);
    drive_want(run, bytes[BYTES + 1] == 0, "a captured copy does not run in the capture");
    if (CALL(run, graph_instantiate, run->graph, 0, &run->exec) == DS_ACCEL_OK &&
        CALL(run, graph_launch, run->exec, run->one) == DS_ACCEL_OK &&
        CALL(run, stream_synchronize, run->one, UINT64_MAX) == DS_ACCEL_OK) {
        CALL(run, mem_copy, peer, bytes + BYTES, copied, BYTES, DS_ACCEL_COPY_DEVICE_TO_HOST);
        drive_want(run, memcmp(bytes, bytes + BYTES, BYTES) == 0, "what the graph copied");
    }
    DROP(run, graph_exec_destroy, run->exec);
    DROP(run, graph_destroy, run->graph);
}

void drive_peered(struct run *run)
{
    ds_accel_plugin_device_t *peer = NULL;
    void *copied = NULL;
    unsigned char *bytes = calloc(2, BYTES);

    if (bytes == NULL) {
        abort();
    }
    drive_pattern(bytes, BYTES, 1);
    if (drive_make(run) == DS_ACCEL_OK &&
        CALL(run, device_open, run->instance, 1, &peer) == DS_ACCEL_OK &&
        CALL(run, mem_alloc, peer, BYTES, 0, 0, &copied) == DS_ACCEL_OK) {
        copy_captured(run, peer, bytes, copied);
        RELEASE(run, mem_free, peer, copied);
    }
    run->graph = NULL;
    run->exec = NULL;
    drive_unmake(run);
    run->table->device_close(peer);
    free(bytes);
}

/* ---- lost devices, captures ----------------------------------------------------------------- */

static void note_status(void *user_data, int32_t status)
{
    atomic_int *answer = user_data;

    atomic_store(answer, status == DS_ACCEL_OK ? 1 : status);
}

/*
 * The first copy loses the device, so that the runtime does not run the host task queued after it.
 * When a caller gets the error of the loss from a call that does not wait, and then waits for the
 * stream, the task must have run with DS_ACCEL_ERR_DEVICE_LOST when the wait returns.
 */
void drive_lost(struct run *run)
{
    atomic_int answer = 0;
    atomic_int flag = 0;
    void *memory = NULL;
    int32_t status = DS_ACCEL_OK;

    if (CALL(run, device_open, run->instance, 0, &run->device) < 0 ||
        CALL(run, mem_alloc, run->device, BYTES, 0, 0, &run->first) < 0 ||
        CALL(run, mem_alloc, run->device, BYTES, 0, 0, &run->second) < 0 ||
        CALL(run, stream_create, run->device, 0, 0, &run->one) < 0 ||
        CALL(run, stream_host_task, run->one, wait_for_flag, &flag) < 0 ||
        CALL(run, mem_copy_async, run->one, run->second, run->first, BYTES,
             DS_ACCEL_COPY_DEVICE_TO_DEVICE) < 0 ||
        CALL(run, stream_host_task, run->one, note_status, &answer) < 0) {
        drive_wrong(run, "the loss was told too early");
    }
    atomic_store(&flag, 1); /* lets the copy begin */
    while (run->code == 0 && status == DS_ACCEL_OK) {
        status = ASK(run, mem_alloc, run->device, BYTES, 0, 0, &memory);
        if (status == DS_ACCEL_OK) {
            CALL(run, mem_free, run->device, memory);
        }
    }
    status = ASK(run, stream_synchronize, run->one, UINT64_MAX);
    if (status != DS_ACCEL_ERR_DEVICE_LOST || atomic_load(&answer) != DS_ACCEL_ERR_DEVICE_LOST) {
        printf("stream_synchronize %d, the task %d\n", status, atomic_load(&answer));
        drive_wrong(run, "a task of a lost device did not run");
    }
    run->table->stream_destroy(run->one);
    ASK(run, mem_free, run->device, run->first);
    ASK(run, mem_free, run->device, run->second);
}

static void *end_capture(void *given)
{
    struct helper *helper = given;
    struct run *run = &helper->run;

    helper->status = ASK(run, graph_capture_end, run->one, &run->graph);
    return NULL;
}

static void *end_broken_capture(void *given)
{
    struct helper *helper = given;
    struct run *run = &helper->run;
    ds_accel_plugin_graph_t *graph = NULL;

    helper->status = ASK(run, graph_capture_end, run->two, &graph);
    return NULL;
}

/* A capture that a wait for its own stream has broken can be ended by another thread, or else still
 * by its own, and the stream works afterwards. */
static void end_broken(struct run *run)
{
    struct helper helper = {.status = 0};
    uint32_t capturing = DS_ACCEL_CAPTURING_YES;

    if (CALL(run, graph_capture_begin, run->two, DS_ACCEL_CAPTURE_THREAD_LOCAL) < 0) {
        return;
    }
    ASK(run, stream_synchronize, run->two, UINT64_MAX);
    start_helper(&helper, run, end_broken_capture);
    join_helper(&helper, run);
    drive_want(run, helper.status == DS_ACCEL_ERR_STATE, "the end of a broken capture");
    CALL(run, graph_capture_status, run->two, &capturing);
    if (capturing != DS_ACCEL_CAPTURING_NO) {
        ds_accel_plugin_graph_t *graph = NULL;

        ASK(run, graph_capture_end, run->two, &graph);
        CALL(run, graph_capture_status, run->two, &capturing);
    }
    drive_want(run, capturing == DS_ACCEL_CAPTURING_NO, "the broken capture is over");
    CALL(run, stream_synchronize, run->two, UINT64_MAX);
}

/* If another thread can't end a capture, the capture still contains its work. */
void drive_ended(struct run *run)
{
    struct helper helper = {.status = 0};
    const unsigned char byte = 0x5a;
    uint32_t capturing = 9;

    if (drive_make(run) < 0 ||
        CALL(run, graph_capture_begin, run->one, DS_ACCEL_CAPTURE_THREAD_LOCAL) < 0 ||
        CALL(run, mem_fill_async, run->one, run->first, &byte, 1, BYTES) < 0 ||
        CALL(run, stream_host_task, run->one, drive_count, run) < 0) {
        return;
    }
    start_helper(&helper, run, end_capture);
    join_helper(&helper, run);
    if (helper.status == DS_ACCEL_OK) {
        printf("another thread ended it\n");
        run->graph = helper.run.graph;
    } else if (CALL(run, graph_capture_status, run->one, &capturing) < 0 ||
               capturing != DS_ACCEL_CAPTURING_YES ||
               CALL(run, graph_capture_end, run->one, &run->graph) < 0) {
        drive_wrong(run, "the capture was lost");
    }
    if (run->graph != NULL && CALL(run, graph_instantiate, run->graph, 0, &run->exec) == 0 &&
        CALL(run, graph_launch, run->exec, run->one) == 0 &&
        CALL(run, stream_synchronize, run->one, UINT64_MAX) == 0) {
        drive_want(run, run->task_count == 1, "the captured task runs once");
    }
    end_broken(run);
    drive_unmake(run);
}

/* ---- a device that is opened while it is being closed --------------------------------------- */

/* State shared by a host task, the main thread and a helper thread. */
static struct {
    struct run *run;
    atomic_int is_opened;
    atomic_int is_used;
    atomic_int flag;
    atomic_int answer;
} reopening;

/* The host task opens the device again, and does not return before the helper has queued work. */
static void open_again(void *user_data, int32_t status)
{
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};
    ds_accel_plugin_device_t *device = NULL;

    (void)user_data;
    (void)status;
    usleep(50000); /* until the main thread is closing the device */
    status = reopening.run->table->device_open(reopening.run->instance, 0, &device, &ignored);
    atomic_store(&reopening.is_opened, status == DS_ACCEL_OK ? 1 : -1);
    wait_for_flag(&reopening.is_used, DS_ACCEL_OK);
}

/* Queues a host task on the device that was opened again; the task is still waiting when the main
 * thread's device_close() returns. */
static void *use_opening(void *given)
{
    struct helper *helper = given;
    struct run *run = &helper->run;

    while (atomic_load(&reopening.is_opened) == 0) {
        usleep(1000);
    }
    if (CALL(run, stream_create, run->device, 0, 0, &run->two) == DS_ACCEL_OK &&
        CALL(run, stream_host_task, run->two, wait_for_flag, &reopening.flag) == DS_ACCEL_OK) {
        CALL(run, stream_host_task, run->two, note_status, &reopening.answer);
    }
    atomic_store(&reopening.is_used, 1);
    usleep(200000);
    atomic_store(&reopening.flag, 1);
    return NULL;
}

void drive_reopened(struct run *run)
{
    struct helper helper = {.status = 0};

    reopening.run = run;
    if (CALL(run, device_open, run->instance, 0, &run->device) < 0 ||
        CALL(run, stream_create, run->device, 0, 0, &run->one) < 0 ||
        CALL(run, stream_host_task, run->one, open_again, NULL) < 0) {
        return;
    }
    start_helper(&helper, run, use_opening);
    run->table->device_close(run->device);
    join_helper(&helper, run);
    run->two = helper.run.two;
    CALL(run, stream_synchronize, run->two, UINT64_MAX);
    drive_want(run, atomic_load(&reopening.is_opened) == 1, "a host task opens the device");
    drive_want(run, atomic_load(&reopening.answer) == 1, "a task of the new opening runs");
    run->table->stream_destroy(run->two);
    run->table->stream_destroy(run->one);
}

void drive_joined(struct run *run)
{
    const unsigned char byte = 0x5a;

    if (drive_make(run) < 0 ||
        CALL(run, graph_capture_begin, run->one, DS_ACCEL_CAPTURE_RELAXED) < 0 ||
        CALL(run, event_record, run->start, run->one) < 0 ||
        CALL(run, stream_wait_event, run->two, run->start) < 0 ||
        CALL(run, mem_fill_async, run->two, run->first, &byte, 1, BYTES) < 0) {
        return;
    }
    CALL(run, device_synchronize, run->device, 0);
    if (CALL(run, event_record, run->end, run->two) < 0 ||
        CALL(run, stream_wait_event, run->one, run->end) < 0 ||
        CALL(run, graph_capture_end, run->one, &run->graph) < 0) {
        drive_wrong(run, "asking the device broke a capture");
    }
    drive_unmake(run);
}
