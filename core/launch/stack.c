/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Reads the threads of live processes from /proc, and their frames with unwind.c. All of this runs
 * in a child process (worker.c): reads of /proc/PID block while the process maps memory from a file
 * server that does not respond, and libdw parses files of any origin.
 *
 * The kernel permits ptrace() of a process of the same user, unless the process has changed its
 * user, or a container forbids it, or Yama's ptrace_scope is above 0. With 1, as on Ubuntu, a rank
 * that was started with is_traceable (spawn.h) can be read, but not a child of the rank. Where
 * ptrace() is not permitted, frames are missing, and the result has the reason.
 *
 * A thread is stopped while its frames are read. That ends the system call in which it is blocked,
 * and not every call is repeated by the kernel (system_call.c), so threads in such calls are not
 * stopped, unless their job is about to be ended anyway.
 */
#include "launch/stack.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "launch/system_call.h"
#include "launch/worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_LIMIT 65536u
#define KERNEL_FRAMES 16u
#define NS_PER_MS 1000000ull
#define CAUSE_SIZE 256

/* The work of the child process. */
struct sample {
    pid_t pid;
    enum ds_accel__stack_scope scope;
    const json_t *earlier;
    struct ds_accel__unwind *unwind; /* NULL: not created yet, or it failed */
    bool is_prepared;                /* it was created, or it failed */
    char cause[CAUSE_SIZE];          /* why it failed */
};

/* A text of any origin, such as a thread's name, without unprintable characters. */
static json_t *clean_text(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = strdup(text);
    json_t *value = NULL;

    if (copy != NULL) {
        ds_accel__sanitize(copy, size);
        value = ds_accel__json_text(copy);
    }
    free(copy);
    return value;
}

static char *read_file(pid_t pid, pid_t tid, const char *name)
{
    char path[96], *data;
    const char *cause;
    size_t size;

    snprintf(path, sizeof(path), "/proc/%ld/task/%ld/%s", (long)pid, (long)tid, name);
    return ds_accel__file_read(path, FILE_LIMIT, &data, &size, &cause) >= 0 ? data : NULL;
}

static bool parse_stat(const char *text, struct ds_accel__stat *stat)
{
    const char *begin = strchr(text, '('), *end = strrchr(text, ')');
    uint64_t ticks = (uint64_t)sysconf(_SC_CLK_TCK);
    unsigned long long user, system, children_user, children_system, threads, start;

    if (begin == NULL || end == NULL || end < begin ||
        sscanf(end,
               ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu %*d %*d %llu %*d "
               "%llu",
               &stat->state, &user, &system, &children_user, &children_system, &threads,
               &start) != 7) {
        return false;
    }
    snprintf(stat->name, sizeof(stat->name), "%.*s", (int)(end - begin - 1), begin + 1);
    stat->cpu_ms = (user + system) * 1000 / ticks;
    stat->children_ms = (children_user + children_system) * 1000 / ticks;
    stat->thread_count = threads;
    stat->start_ticks = start;
    return true;
}

bool ds_accel__stat_read(const char *path, struct ds_accel__stat *stat)
{
    const char *cause;
    size_t size;
    char *text;
    bool is_read;

    if (ds_accel__file_read(path, FILE_LIMIT, &text, &size, &cause) < 0) {
        return false;
    }
    is_read = parse_stat(text, stat);
    free(text);
    return is_read;
}

static bool is_tid(const char *name)
{
    return name[0] >= '0' && name[0] <= '9';
}

/* ---- one thread ----------------------------------------------------------------------------- */

/* The functions of a kernel stack, "[<0>] name+0x1/0x2" on each line. */
static json_t *kernel_stack(char *text)
{
    json_t *names = json_array();
    char *save = NULL, *line = strtok_r(text, "\n", &save);

    for (unsigned i = 0; line != NULL && i < KERNEL_FRAMES; i++) {
        char *name = strstr(line, "] ");

        if (name != NULL) {
            name += 2;
            name[strcspn(name, "+")] = '\0';
            json_array_append_new(names, clean_text(name));
        }
        line = strtok_r(NULL, "\n", &save);
    }
    return names;
}

/* What the kernel shows of the thread's wait. */
static void add_kernel(json_t *thread, pid_t pid, pid_t tid, bool *failed)
{
    char *text = read_file(pid, tid, "wchan");

    if (text != NULL && text[0] != '\0' && strcmp(text, "0") != 0) {
        ds_accel__json_set(thread, "wchan", clean_text(text), failed);
    }
    free(text);
    text = read_file(pid, tid, "stack");
    if (text != NULL && text[0] != '\0') {
        ds_accel__json_set(thread, "kernel", kernel_stack(text), failed);
    }
    free(text);
}

/* Hash the calls that lead to the frame, and the frame's function. */
static uint64_t hash_place(const struct ds_accel__frame *frames, size_t index, size_t count)
{
    uint64_t hash =
        ds_accel__hash_text(frames[index].function, ds_accel__hash_text(frames[index].module, 0));

    for (size_t i = index + 1; i < count; i++) {
        hash = ds_accel__hash(&frames[i].address, sizeof(frames[i].address), hash);
    }
    return hash & INT64_MAX;
}

static void add_wait(json_t *thread, const struct ds_accel__frame *frames, size_t count,
                     bool *failed)
{
    size_t index = ds_accel__waiting_frame(frames, count);
    const char *function;
    json_t *wait;
    char *name;

    if (index == count) {
        return;
    }
    function = frames[index].function;
    function += strncmp(function, "PMPI_", 5) == 0; /* the same operation as MPI_ */
    name = strndup(function, ds_accel__waiting_name_length(function));
    wait = json_object();
    ds_accel__json_set(wait, "function", name != NULL ? clean_text(name) : NULL, failed);
    free(name);
    ds_accel__json_set(wait, "module", clean_text(frames[index].module), failed);
    ds_accel__json_set(wait, "place", json_integer((json_int_t)hash_place(frames, index, count)),
                       failed);
    ds_accel__json_set(thread, "wait", wait, failed);
}

static json_t *frame_list(const struct ds_accel__frame *frames, size_t count, bool *failed)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count && i < DS_ACCEL__STACK_REPORTED; i++) {
        json_t *frame = json_object();

        ds_accel__json_set(frame, "function", clean_text(frames[i].function), failed);
        ds_accel__json_set(frame, "offset", json_integer((json_int_t)frames[i].offset), failed);
        ds_accel__json_set(frame, "module", clean_text(frames[i].module), failed);
        ds_accel__json_set(frame, "address", json_integer((json_int_t)frames[i].address), failed);
        *failed = json_array_append_new(list, frame) != 0 || *failed;
    }
    return list;
}

static void add_frames(json_t *thread, const struct sample *sample, pid_t tid, bool *failed)
{
    bool has_frames = sample->scope != DS_ACCEL__STACK_ACTIVE;
    const struct ds_accel__frame *frames;
    size_t count;
    const char *cause = ds_accel__unwind_thread(sample->unwind, tid, &frames, &count);

    if (cause != NULL) {
        ds_accel__json_set(thread, "why", clean_text(cause), failed);
        return;
    }
    add_wait(thread, frames, count, failed);
    if (has_frames) {
        ds_accel__json_set(thread, "frames", frame_list(frames, count, failed), failed);
    }
    if (has_frames && count > DS_ACCEL__STACK_REPORTED) {
        ds_accel__json_set(thread, "omitted_frame_count",
                           json_integer((json_int_t)(count - DS_ACCEL__STACK_REPORTED)), failed);
    }
}

bool ds_accel__stack_is_active(const json_t *thread, uint64_t earlier_ms)
{
    return strcmp(json_string_value(json_object_get(thread, "state")), "R") == 0 ||
           ds_accel__json_size(thread, "cpu_ms") > earlier_ms;
}

/* Compare a thread with the earlier sample. A thread that began later is active if it runs. */
static bool is_active(const struct sample *sample, const json_t *thread)
{
    uint64_t tid = ds_accel__json_size(thread, "tid");
    const json_t *earlier;
    size_t i;

    json_array_foreach(json_object_get(sample->earlier, "threads"), i, earlier)
    {
        if (ds_accel__json_size(earlier, "tid") == tid) {
            return ds_accel__stack_is_active(thread, ds_accel__json_size(earlier, "cpu_ms"));
        }
    }
    return sample->earlier != NULL && ds_accel__stack_is_active(thread, UINT64_MAX);
}

/* Add the system call of a thread in a state. True: the thread may be stopped; else why not is
 * added. This is the last step before the stop, so that the thread is still where it was. */
static bool add_system_call(json_t *thread, const struct sample *sample, pid_t tid, char state,
                            bool *failed)
{
    bool is_any = sample->scope == DS_ACCEL__STACK_ALL || state == 'T'; /* it has stopped before */
    struct ds_accel__system_call call;

    if (!ds_accel__system_call_read(sample->pid, tid, &call)) {
        if (!is_any) {
            ds_accel__json_set(thread, "why",
                               json_string("the kernel does not permit reading the thread's system "
                                           "call (another user, a container's rules, or Yama's "
                                           "ptrace_scope)"),
                               failed);
        }
        return is_any;
    }
    if (call.name[0] != '\0' && sample->scope != DS_ACCEL__STACK_ACTIVE) {
        ds_accel__json_set(thread, "system_call", json_string(call.name), failed);
    }
    if (!is_any && !call.is_restarted) {
        ds_accel__json_set(thread, "why",
                           json_string("the thread was not stopped, because a stop may make its "
                                       "system call return too early"),
                           failed);
    }
    return is_any || call.is_restarted;
}

/* Prepare to read frames, on first use, because it takes longer than the rest. */
static bool prepare_unwind(struct sample *sample)
{
    if (!sample->is_prepared) {
        sample->unwind = ds_accel__unwind_create(sample->pid, sample->cause, sizeof(sample->cause));
        sample->is_prepared = true;
    }
    return sample->unwind != NULL;
}

/* NULL: the thread has ended, or memory is exhausted, as *failed shows. */
static json_t *read_thread(struct sample *sample, pid_t tid, bool *failed)
{
    char path[64];
    struct ds_accel__stat stat;
    json_t *thread;

    snprintf(path, sizeof(path), "/proc/%ld/task/%ld/stat", (long)sample->pid, (long)tid);
    if (!ds_accel__stat_read(path, &stat) || stat.state == 'Z' || stat.state == 'X') {
        return NULL;
    }
    thread = json_object();
    ds_accel__json_set(thread, "tid", json_integer(tid), failed);
    ds_accel__json_set(thread, "name", clean_text(stat.name), failed);
    ds_accel__json_set(thread, "state", json_stringn(&stat.state, 1), failed);
    ds_accel__json_set(thread, "cpu_ms", json_integer((json_int_t)stat.cpu_ms), failed);
    add_kernel(thread, sample->pid, tid, failed);
    if (stat.state == 'D') {
        /* It cannot stop now, and would stop for nothing later. */
        ds_accel__json_set(thread, "why", json_string("the thread is in an uninterruptible wait"),
                           failed);
    } else if (!*failed && (sample->scope != DS_ACCEL__STACK_ACTIVE || is_active(sample, thread))) {
        bool is_prepared = prepare_unwind(sample);

        if (add_system_call(thread, sample, tid, stat.state, failed) && is_prepared) {
            add_frames(thread, sample, tid, failed);
        }
    }
    return thread;
}

/* ---- one process ---------------------------------------------------------------------------- */

static json_t *read_threads(struct sample *sample, bool *failed)
{
    pid_t pid = sample->pid;
    json_t *threads = json_array();
    const char *cause;
    char path[64], **names = NULL;
    size_t count = 0;

    snprintf(path, sizeof(path), "/proc/%ld/task", (long)pid);
    if (ds_accel__dir_list(path, is_tid, &names, &count, &cause) < 0) {
        return threads;
    }
    /* The main thread is the first, although names are sorted as text. */
    for (size_t i = 0, read = 0; i <= count && read < DS_ACCEL__STACK_THREADS; i++) {
        pid_t tid = i == 0 ? pid : (pid_t)strtol(names[i - 1], NULL, 10);
        json_t *thread;

        if (i > 0 && tid == pid) {
            continue;
        }
        thread = read_thread(sample, tid, failed);
        if (thread != NULL) {
            *failed = json_array_append_new(threads, thread) != 0 || *failed;
            read++;
        }
    }
    ds_accel__names_free(names, count);
    return threads;
}

/* The process without its threads; NULL: it has ended, or memory is exhausted. */
static json_t *read_summary(pid_t pid, bool *failed)
{
    char path[64];
    struct ds_accel__stat stat;
    json_t *stack;

    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    if (!ds_accel__stat_read(path, &stat) || stat.state == 'Z' || stat.state == 'X') {
        return NULL;
    }
    stack = json_object();
    ds_accel__json_set(stack, "pid", json_integer(pid), failed);
    ds_accel__json_set(stack, "name", clean_text(stat.name), failed);
    ds_accel__json_set(stack, "time_ms", json_integer((json_int_t)(ds_accel__now_ns() / NS_PER_MS)),
                       failed);
    ds_accel__json_set(stack, "cpu_ms", json_integer((json_int_t)stat.cpu_ms), failed);
    ds_accel__json_set(stack, "thread_count", json_integer((json_int_t)stat.thread_count), failed);
    return stack;
}

/* Write a result without threads first, which remains if reading the threads takes too long. */
static void read_process(struct ds_accel__worker *worker, void *user_data)
{
    struct sample *sample = user_data;
    bool failed = false;
    json_t *stack = read_summary(sample->pid, &failed);

    if (stack == NULL || failed) {
        json_decref(stack);
        return;
    }
    ds_accel__worker_result(worker, stack);
    ds_accel__json_set(stack, "threads", read_threads(sample, &failed), &failed);
    if (sample->is_prepared && sample->unwind == NULL) {
        ds_accel__json_set(stack, "why", clean_text(sample->cause), &failed);
    }
    ds_accel__unwind_destroy(sample->unwind);
    if (!failed) {
        ds_accel__worker_result(worker, stack);
    }
    json_decref(stack);
}

int32_t ds_accel__stack_sample(pid_t pid, enum ds_accel__stack_scope scope, const json_t *earlier,
                               json_t **stack_out)
{
    struct sample sample = {.pid = pid, .scope = scope, .earlier = earlier};
    json_t *results, *stack = NULL;
    bool is_late, failed = false;
    size_t count;
    int32_t status =
        ds_accel__worker_run(read_process, &sample, DS_ACCEL__STACK_TIMEOUT_NS, &results, &is_late);

    if (status < 0) {
        return status;
    }
    count = json_array_size(results);
    if (count > 0) {
        stack = json_incref(json_array_get(results, count - 1));
    }
    if (count == 1) {
        ds_accel__json_set(stack, "why",
                           json_string(is_late ? "reading the threads took too long"
                                               : "reading the threads failed"),
                           &failed);
    }
    json_decref(results);
    *stack_out = stack;
    return DS_ACCEL_OK;
}

/* ---- text ----------------------------------------------------------------------------------- */

static void write_frames(const json_t *thread, struct ds_accel__text *text)
{
    const json_t *frame, *name, *why = json_object_get(thread, "why");
    uint64_t omitted = ds_accel__json_size(thread, "omitted_frame_count");
    size_t i;

    if (json_array_size(json_object_get(thread, "kernel")) > 0) {
        ds_accel__text_add(text, "    kernel:");
        json_array_foreach(json_object_get(thread, "kernel"), i, name)
        {
            ds_accel__text_add(text, "%s%s", i > 0 ? " < " : " ", json_string_value(name));
        }
        ds_accel__text_add(text, "\n");
    }
    json_array_foreach(json_object_get(thread, "frames"), i, frame)
    {
        const char *function = json_string_value(json_object_get(frame, "function"));
        const char *module = json_string_value(json_object_get(frame, "module"));
        uint64_t address = (uint64_t)json_integer_value(json_object_get(frame, "address"));

        ds_accel__text_add(text, "    #%zu ", i);
        if (function[0] != '\0') {
            ds_accel__text_add(text, "%s+0x%llx", function,
                               (unsigned long long)ds_accel__json_size(frame, "offset"));
        } else {
            ds_accel__text_add(text, "0x%llx", (unsigned long long)address);
        }
        ds_accel__text_add(text, module[0] != '\0' ? " (%s)\n" : "\n", module);
    }
    if (omitted > 0) {
        ds_accel__text_add(text, "    (%llu more)\n", (unsigned long long)omitted);
    }
    if (why != NULL) {
        ds_accel__text_add(text, "    no frames: %s\n", json_string_value(why));
    }
}

void ds_accel__stack_write(const json_t *stack, struct ds_accel__text *text)
{
    const json_t *threads = json_object_get(stack, "threads");
    const json_t *why = json_object_get(stack, "why"), *thread;
    uint64_t count = ds_accel__json_size(stack, "thread_count");
    size_t i;

    if (why != NULL) {
        ds_accel__text_add(text, "  no frames: %s\n", json_string_value(why));
    }
    json_array_foreach(threads, i, thread)
    {
        const char *wchan = json_string_value(json_object_get(thread, "wchan"));
        const char *call = json_string_value(json_object_get(thread, "system_call"));
        uint64_t cpu_ms = ds_accel__json_size(thread, "cpu_ms");

        ds_accel__text_add(
            text, "  thread %llu %s: state %s, %s%s%s%s%s%llu.%02llu s of CPU time\n",
            (unsigned long long)ds_accel__json_size(thread, "tid"),
            json_string_value(json_object_get(thread, "name")),
            json_string_value(json_object_get(thread, "state")), wchan != NULL ? wchan : "",
            wchan != NULL ? ", " : "", call != NULL ? "system call " : "", call != NULL ? call : "",
            call != NULL ? ", " : "", (unsigned long long)(cpu_ms / 1000),
            (unsigned long long)(cpu_ms % 1000 / 10));
        write_frames(thread, text);
    }
    if (count > json_array_size(threads) && count > DS_ACCEL__STACK_THREADS) {
        ds_accel__text_add(text, "  (%llu more threads)\n",
                           (unsigned long long)(count - json_array_size(threads)));
    }
}
