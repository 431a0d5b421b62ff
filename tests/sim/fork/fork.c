/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The program uses an accelerator, forks, and prints what a new context in the child can use.
 *
 *     fork NAME [ended|only-probed]
 *
 * ended: the context is destroyed before the fork. only-probed: the accelerator is checked but not
 * started.
 */
#include <ds_accel.h>

#include <signal.h>
#include <spawn.h>
#ifdef __SANITIZE_ADDRESS__
#include <dirent.h>
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *name;
extern char **environ;

/* Objects of the parent that are open at the fork. */
static ds_accel_device_t *inherited;
static ds_accel_tensor_t *pinned;

static int32_t open_more(ds_accel_t *context)
{
    const int64_t shape = 4;
    int32_t status;

    if (strcmp(name, "hpu") == 0) {
        return DS_ACCEL_OK; /* an open device could not be used by the spawned process */
    }
    status = ds_accel_device_open(context, 0, &inherited);
    return status < 0 ? status
                      : ds_accel_tensor_create_pinned(inherited, DS_ACCEL_DTYPE_FLOAT32, 1, &shape,
                                                      1, &pinned);
}

/* Checks that each call fails in the child, even calls that need no plugin. */
static void use_inherited(void)
{
    ds_accel_stream_t *stream = NULL;
    ds_accel_tensor_t *tensor = NULL;
    uint64_t bytes;
    int32_t statuses[] = {
        ds_accel_default_stream(inherited, &stream),
        ds_accel_current_stream(inherited, &stream),
        ds_accel_memory_allocated(inherited, &bytes),
        ds_accel_tensor_zero(pinned, NULL),
        ds_accel_tensor_contiguous(pinned, NULL, &tensor),
        ds_accel_device_synchronize(inherited),
    };

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        if (statuses[i] != DS_ACCEL_ERR_STATE) {
            printf("inherited: call %zu: %d\n", i, statuses[i]);
        }
    }
    ds_accel_tensor_put(pinned);
    ds_accel_device_close(inherited);
}

static int32_t work(ds_accel_t *context)
{
    ds_accel_device_t *device = NULL;
    ds_accel_stream_t *stream = NULL;
    char from[64] = "what is sent";
    char back[64] = "";
    void *memory = NULL;
    int32_t status = ds_accel_device_open(context, 0, &device);

    status = status < 0 ? status : ds_accel_stream_create(device, 0, 0, &stream);
    status = status < 0 ? status : ds_accel_mem_alloc(device, stream, sizeof(from), &memory);
    status = status < 0 ? status
                        : ds_accel_mem_copy_async(stream, memory, from, sizeof(from),
                                                  DS_ACCEL_COPY_HOST_TO_DEVICE);
    status = status < 0 ? status
                        : ds_accel_mem_copy_async(stream, back, memory, sizeof(back),
                                                  DS_ACCEL_COPY_DEVICE_TO_HOST);
    status = status < 0 ? status : ds_accel_stream_synchronize(stream);
    if (status >= 0 && strcmp(from, back) != 0) {
        printf("WRONG DATA ");
    }
    ds_accel_mem_free(device, stream, memory);
    ds_accel_device_close(device);
    return status;
}

static ds_accel_t *make(const char *accelerator)
{
    struct ds_accel_options options = {.struct_size = sizeof(options), .accelerator = accelerator};
    ds_accel_t *context = NULL;

    if (ds_accel_create(&options, &context) < 0) {
        printf("no context: %s\n", ds_accel_last_error());
        exit(2);
    }
    return context;
}

/* Prints, for example, "forced: rocm works", or the status and the message of the error. */
static void try(const char *what, const char *accelerator)
{
    ds_accel_t *context = make(accelerator);
    int32_t status = ds_accel_detect(context);

    if (status >= 0) {
        status = work(context);
        printf("%s: %s %s\n", what, ds_accel_name(context),
               status < 0 ? ds_accel_last_error() : "works");
    } else {
        printf("%s: %d %s\n", what, status,
               strstr(ds_accel_last_error(), "posix_spawn() or exec()") != NULL
                   ? "says what to do"
                   : ds_accel_last_error());
    }
    ds_accel_destroy(context);
    fflush(stdout);
}

static void check(void)
{
    ds_accel_t *context = make(NULL);
    uint32_t count;

    ds_accel_check(context, name);
    count = ds_accel_candidate_count(context);
    for (uint32_t i = 0; i < count; i++) {
        struct ds_accel_candidate candidate = {.struct_size = sizeof(candidate)};

        if (ds_accel_candidate_get(context, i, &candidate) >= 0 &&
            strcmp(candidate.name, name) == 0 && candidate.state != DS_ACCEL_STATE_SHADOWED) {
            printf("check: %s\n", candidate.reason[0] != '\0' ? candidate.reason : "available");
        }
    }
    ds_accel_destroy(context);
    fflush(stdout);
}

/* Starts a program, which does not inherit the state of the library in this process. */
static void spawn_own(const char *program)
{
    char *arguments[] = {(char *)program, (char *)name, (char *)"spawned", NULL};
    pid_t pid;
    int status;

    if (posix_spawn(&pid, program, NULL, NULL, arguments, environ) == 0) {
        waitpid(pid, &status, 0);
    }
}

static int wait_for(pid_t child)
{
    int status = 0;

    waitpid(child, &status, 0);
    if (WIFSIGNALED(status)) {
        printf("signal %d\n", WTERMSIG(status));
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

static int play_child(const char *program)
{
    pid_t child;

    alarm(120); /* kills a process that hangs */
    if (inherited != NULL) {
        use_inherited();
    }
    try("forced", name);
    check();
    try("detected", NULL);
    try("cpu", "cpu");
    spawn_own(program);
    fflush(stdout);
    child = fork();
    if (child == 0) {
        alarm(60);
        try("grandchild", name);
        _exit(0);
    }
    return wait_for(child);
}

#ifdef __SANITIZE_ADDRESS__
/* Returns non-zero if all other threads of this process are asleep. */
static int is_quiet(void)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *entry;
    int is_quiet = 1;

    while (tasks != NULL && (entry = readdir(tasks)) != NULL) {
        char path[300];
        char state = 'S';
        FILE *file;

        if (entry->d_name[0] == '.' || atoi(entry->d_name) == getpid()) {
            continue;
        }
        snprintf(path, sizeof(path), "/proc/self/task/%s/stat", entry->d_name);
        file = fopen(path, "r");
        if (file != NULL && fscanf(file, "%*d (%*[^)]) %c", &state) == 1) {
            is_quiet = is_quiet && state == 'S';
        }
        if (file != NULL) {
            fclose(file);
        }
    }
    if (tasks != NULL) {
        closedir(tasks);
    }
    return is_quiet;
}

/* Waits until all other threads are asleep. The address sanitizer of gcc 12 does not handle fork():
   if a thread of the simulator exits during fork(), the sanitizer's locks remain held in the child,
   which then hangs. */
static void settle(void)
{
    for (int i = 0; i < 10000 && !is_quiet(); i++) {
        usleep(1000);
    }
}
#else
static void settle(void)
{
}
#endif

int main(int argc, char **argv)
{
    const char *mode = argc > 2 ? argv[2] : "";
    ds_accel_t *context;
    pid_t child;
    int code;

    name = argc > 1 ? argv[1] : "cpu";
    context = make(name);
    if (strcmp(mode, "spawned") == 0) {
        printf("spawned: %s\n", ds_accel_detect(context) >= 0 && work(context) >= 0
                                    ? "works"
                                    : ds_accel_last_error());
        ds_accel_destroy(context);
        return 0;
    }
    if (strcmp(mode, "only-probed") == 0) {
        ds_accel_check(context, name);
    } else if (ds_accel_detect(context) < 0 || work(context) < 0 ||
               (strcmp(mode, "") == 0 && open_more(context) < 0)) {
        printf("parent: %s\n", ds_accel_last_error());
        return 1;
    }
    if (strcmp(mode, "ended") == 0) {
        ds_accel_destroy(context);
        context = NULL;
    }
    fflush(stdout);
    settle();
    child = fork();
    if (child == 0) {
        _exit(play_child(argv[0]));
    }
    code = wait_for(child);
    if (strcmp(mode, "") == 0 && work(context) < 0) {
        printf("parent behind the fork: %s\n", ds_accel_last_error());
    }
    ds_accel_tensor_put(pinned);
    ds_accel_destroy(context);
    return code;
}
