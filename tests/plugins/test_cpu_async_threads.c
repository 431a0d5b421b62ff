/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The cpu plugin with option async: the threads of streams, and forked children. */
#include "cpu_async.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* LIMITS_DO_NOTHING is 1 under a sanitizer, which gcc and clang report with different macros. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define LIMITS_DO_NOTHING 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define LIMITS_DO_NOTHING 1
#endif
#ifndef LIMITS_DO_NOTHING
#define LIMITS_DO_NOTHING 0
#endif

/* ---- threads -------------------------------------------------------------------------------- */

/* Calls visit with each other thread of this process; returns their number. */
static int each_thread(void (*visit)(pid_t thread, void *data), void *data)
{
    DIR *directory = opendir("/proc/self/task");
    struct dirent *entry;
    int count = 0;

    cr_assert_not_null(directory);
    while ((entry = readdir(directory)) != NULL) {
        pid_t thread = (pid_t)atoi(entry->d_name);

        if (thread > 0 && thread != (pid_t)syscall(SYS_gettid)) {
            count++;
            if (visit != NULL) {
                visit(thread, data);
            }
        }
    }
    closedir(directory);
    return count;
}

/* Waits until the process has this number of other threads. The kernel may still list a thread that
   was joined, because the joining thread is woken before the joined thread is removed. */
static void expect_threads(int count)
{
    const struct timespec pause = {.tv_nsec = 1000 * 1000};

    for (int i = 0; i < 10000 && each_thread(NULL, NULL) > count; i++) {
        nanosleep(&pause, NULL);
    }
    cr_expect_eq(each_thread(NULL, NULL), count);
}

static void read_thread(pid_t thread, const char *file, char *text, size_t text_size)
{
    char path[64];
    FILE *stream;
    size_t length;

    snprintf(path, sizeof(path), "/proc/self/task/%d/%s", (int)thread, file);
    stream = fopen(path, "r");
    cr_assert_not_null(stream);
    length = fread(text, 1, text_size - 1, stream);
    text[length] = '\0';
    fclose(stream);
}

/* Counts a thread with the name of a worker, and checks that it blocks all signals that can be
   blocked. */
static void look_at_worker(pid_t thread, void *data)
{
    const uint64_t blockable = ~(UINT64_C(1) << (SIGKILL - 1) | UINT64_C(1) << (SIGSTOP - 1) |
                                 UINT64_C(3) << 31); /* The C library uses signals 32 and 33. */
    char text[4096];
    const char *line;

    read_thread(thread, "comm", text, sizeof(text));
    if (strncmp(text, "ds-accel cpu0.", 14) != 0) {
        return;
    }
    (*(int *)data)++;
    read_thread(thread, "status", text, sizeof(text));
    line = strstr(text, "SigBlk:");
    cr_assert_not_null(line);
    cr_expect_eq(strtoull(line + 7, NULL, 16) & blockable, blockable, "%s", line);
}

Test(plugin_cpu_async, threads_come_with_the_first_work_and_go_with_their_streams)
{
    ds_accel_plugin_stream_t *streams[3];
    sigset_t before;
    sigset_t after;
    const int others = each_thread(NULL, NULL); /* a sanitizer may have a thread of its own */
    int workers = 0;

    pthread_sigmask(SIG_SETMASK, NULL, &before);
    open_cpu();
    for (int i = 0; i < 3; i++) {
        streams[i] = make_stream();
    }
    cr_expect_eq(each_thread(NULL, NULL), others, "a thread without work");
    for (int i = 0; i < 2; i++) {
        unsigned char byte;

        put(streams[i], &byte, 1);
        finish(streams[i]);
    }
    expect_threads(others + 2);
    /* A worker sets its name before it does work, so that both workers have their names now. */
    each_thread(look_at_worker, &workers);
    cr_expect_eq(workers, 2);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (int signal = 1; signal < SIGRTMIN; signal++) {
        cr_expect_eq(sigismember(&before, signal), sigismember(&after, signal));
    }
    table->stream_destroy(streams[0]);
    expect_threads(others + 1);
    table->stream_destroy(streams[1]);
    table->stream_destroy(streams[2]);
    expect_threads(others);
    close_cpu();
    expect_threads(others);
}

/* The limit of the address space leaves enough memory for work, but not for a thread's stack. */
Test(plugin_cpu_async, a_thread_that_cannot_start_leaves_the_stream_as_it_was)
{
    struct rlimit before;
    struct rlimit tight;
    ds_accel_plugin_stream_t *stream;
    unsigned long long pages = 0;
    unsigned char byte = 0;
    int32_t status;
    FILE *file;

    if (LIMITS_DO_NOTHING) {
        cr_skip_test("the sanitizer needs the address space");
    }
    open_cpu();
    stream = make_stream();
    file = fopen("/proc/self/statm", "r");
    cr_assert_not_null(file);
    cr_assert_eq(fscanf(file, "%llu", &pages), 1);
    fclose(file);
    cr_assert_eq(getrlimit(RLIMIT_AS, &before), 0);
    tight = before;
    tight.rlim_cur = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (1 << 20);
    cr_assert_eq(setrlimit(RLIMIT_AS, &tight), 0);
    memset(&error, 0, sizeof(error));
    error.struct_size = sizeof(error);
    status = table->mem_fill_async(stream, &byte, "\1", 1, 1, &error);
    cr_assert_eq(setrlimit(RLIMIT_AS, &before), 0);
    cr_expect(status == DS_ACCEL_ERR_LIMIT || status == DS_ACCEL_ERR_NO_MEMORY, "%d", status);
    EXPECT_HAS(error.message, "mem_fill_async: the stream's thread can't be started");
    EXPECT_OK(table->stream_query(stream, &error));
    put(stream, &byte, 2);
    finish(stream);
    cr_expect_eq(byte, 2);
    table->stream_destroy(stream);
    close_cpu();
}

static void note_cpus(void *data, int32_t status)
{
    (void)status;
    sched_getaffinity(0, sizeof(cpu_set_t), data);
}

/* The recorded machine has two nodes. Each has one of the CPUs that this process may use. */
Test(plugin_cpu_async, workers_run_on_the_node_of_their_device)
{
    ds_accel_device_t *devices[2];
    cpu_set_t allowed;
    cpu_set_t seen;
    char list[16];
    int cpus[2];
    int found = 0;

    cr_assert_eq(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++) {
        if (CPU_ISSET(cpu, &allowed)) {
            cpus[found++] = cpu;
        }
    }
    if (found < 2) {
        cr_skip_test("one CPU only");
    }
    test_write("machine/proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 524288 kB\n");
    test_write("machine/proc/cpuinfo", "model name\t: A\n\n");
    test_write("machine/sys/devices/system/node/online", "0-1\n");
    for (int node = 0; node < 2; node++) {
        char path[96];

        snprintf(path, sizeof(path), "machine/sys/devices/system/node/node%d/cpulist", node);
        snprintf(list, sizeof(list), "%d\n", cpus[node]);
        test_write(path, list);
        snprintf(path, sizeof(path), "machine/sys/devices/system/node/node%d/meminfo", node);
        test_write(path, "Node 0 MemTotal: 524288 kB\nNode 0 MemFree: 262144 kB\n");
    }
    create_context(test_path("machine"));
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    for (uint32_t i = 0; i < 2; i++) {
        ds_accel_plugin_stream_t *stream;

        cr_assert_eq(ds_accel_device_open(context, i, &devices[i]), DS_ACCEL_OK, "%s",
                     ds_accel_last_error());
        table = ds_accel_device_table(devices[i]);
        ASSERT_OK(table->stream_get_default(ds_accel_device_handle(devices[i]), &stream, &error));
        CPU_ZERO(&seen);
        ASSERT_OK(table->stream_host_task(stream, note_cpus, &seen, &error));
        finish(stream);
        cr_expect_eq(CPU_COUNT(&seen), 1);
        cr_expect(CPU_ISSET(cpus[i], &seen), "device %u", i);
    }
    cr_assert_eq(sched_getaffinity(0, sizeof(seen), &seen), 0);
    cr_expect(CPU_EQUAL(&seen, &allowed));
    ds_accel_device_close(devices[0]);
    ds_accel_device_close(devices[1]);
    ds_accel_destroy(context);
}

/* ---- fork() --------------------------------------------------------------------------------- */

static int use_in_child(ds_accel_plugin_stream_t *stream, ds_accel_plugin_event_t *event,
                        void *pointer)
{
    unsigned char byte = 0;
    int right = 0;

    alarm(60); /* kills the process if a call hangs */
    right += table->stream_synchronize(stream, UINT64_MAX, &error) == DS_ACCEL_ERR_STATE;
    right += strstr(error.message, "forked") != NULL;
    right += table->stream_query(stream, &error) == DS_ACCEL_ERR_STATE;
    right += table->device_synchronize(handle, UINT64_MAX, &error) == DS_ACCEL_ERR_STATE;
    right += table->event_synchronize(event, UINT64_MAX, &error) == DS_ACCEL_ERR_STATE;
    right += table->event_query(event, &error) == DS_ACCEL_ERR_STATE;
    right += table->mem_fill_async(stream, &byte, &byte, 1, 1, &error) == DS_ACCEL_ERR_STATE;
    right += table->stream_wait_event(stream, event, &error) == DS_ACCEL_ERR_STATE;
    right += table->event_record(event, stream, &error) == DS_ACCEL_ERR_STATE;
    right += table->mem_free(handle, pointer, &error) == DS_ACCEL_ERR_STATE;
    right += table->mem_alloc(handle, 100, 0, 0, &pointer, &error) == DS_ACCEL_ERR_STATE;
    right += table->mem_alloc_pinned(handle, 100, 0, 0, &pointer, &error) == DS_ACCEL_ERR_STATE;
    table->stream_destroy(stream);
    return right == 12 ? 0 : 1;
}

Test(plugin_cpu_async, a_forked_child_is_refused_and_does_not_hang)
{
    struct gate gate = GATE;
    struct ds_accel_plugin own;
    ds_accel_plugin_stream_t *stream;
    ds_accel_plugin_event_t *event;
    void *pointer = NULL;
    int status;
    pid_t child;

    open_cpu();
    stream = make_stream();
    event = make_event();
    ASSERT_OK(table->mem_alloc(handle, 100, 0, 0, &pointer, &error));
    hold(stream, &gate);
    EXPECT_OK(table->event_record(event, stream, &error));
    wait_for_arrival(&gate);
    own = *table; /* the plugin's functions: in the child, the host replaces those in its table */
    child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        table = &own;
        _exit(use_in_child(stream, event, pointer));
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status 0x%x", (unsigned)status);
    open_gate(&gate);
    finish(stream);
    EXPECT_OK(table->mem_free(handle, pointer, &error));
    table->event_destroy(event);
    table->stream_destroy(stream);
    close_cpu();
}
