/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Reads the frames of another process's threads.
 *
 *      PTRACE_SEIZE -> PTRACE_INTERRUPT -> wait for the stop -> libdw unwinds -> PTRACE_DETACH
 *
 * One thread is stopped at a time. PTRACE_SEIZE sends no signal, and a process that SIGSTOP stopped
 * is stopped again after the detach. The stop ends the system call in which the thread is blocked;
 * some, such as epoll_wait(), then fail with EINTR, so the caller chooses the threads (stack.c). A
 * signal that arrives at the same time is delivered by the detach. A thread that does not stop in
 * time stays seized until this process ends; the kernel then releases it. The tracer is not the
 * parent of the process, so waiting for a thread here takes no exit status from the parent.
 *
 * libdw is loaded on first use, and unwinds with the tables (.eh_frame) that every compiler writes
 * by default. It never downloads debug files.
 */
#include "launch/unwind.h"
#include "base/clock.h"
#include "base/text.h"

#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STOP_NS 1000000000ull /* a thread on a busy machine runs, and stops, late */
#define PAUSE_LIMIT_NS 4000000

/* The functions of libdw, and of the C++ runtime. */
static struct {
    __typeof__(&dwfl_begin) begin;
    __typeof__(&dwfl_end) end;
    __typeof__(&dwfl_errmsg) errmsg;
    __typeof__(&dwfl_linux_proc_report) linux_proc_report;
    __typeof__(&dwfl_report_end) report_end;
    __typeof__(&dwfl_linux_proc_attach) linux_proc_attach;
    __typeof__(&dwfl_linux_proc_find_elf) linux_proc_find_elf;
    __typeof__(&dwfl_standard_find_debuginfo) standard_find_debuginfo;
    __typeof__(&dwfl_getthread_frames) getthread_frames;
    __typeof__(&dwfl_frame_pc) frame_pc;
    __typeof__(&dwfl_addrmodule) addrmodule;
    __typeof__(&dwfl_module_addrinfo) module_addrinfo;
    __typeof__(&dwfl_module_info) module_info;
    char *(*demangle)(const char *name, char *buffer, size_t *size, int *status); /* may be NULL */
    Dwfl_Callbacks callbacks;
} libdw;

struct ds_accel__unwind {
    Dwfl *dwfl;
    struct ds_accel__frame frames[DS_ACCEL__UNWIND_FRAMES];
    size_t frame_count;
};

static bool find(void *library, const char *name, void *function_out)
{
    void *function = dlsym(library, name);

    memcpy(function_out, &function, sizeof(function));
    return function != NULL;
}

static bool load_libdw(char *cause, size_t cause_size)
{
    void *library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL), *runtime;

    if (library == NULL) {
        snprintf(cause, cause_size, "libdw (elfutils) cannot be loaded: %s", dlerror());
        return false;
    }
    if (!find(library, "dwfl_begin", &libdw.begin) || !find(library, "dwfl_end", &libdw.end) ||
        !find(library, "dwfl_errmsg", &libdw.errmsg) ||
        !find(library, "dwfl_linux_proc_report", &libdw.linux_proc_report) ||
        !find(library, "dwfl_report_end", &libdw.report_end) ||
        !find(library, "dwfl_linux_proc_attach", &libdw.linux_proc_attach) ||
        !find(library, "dwfl_linux_proc_find_elf", &libdw.linux_proc_find_elf) ||
        !find(library, "dwfl_standard_find_debuginfo", &libdw.standard_find_debuginfo) ||
        !find(library, "dwfl_getthread_frames", &libdw.getthread_frames) ||
        !find(library, "dwfl_frame_pc", &libdw.frame_pc) ||
        !find(library, "dwfl_addrmodule", &libdw.addrmodule) ||
        !find(library, "dwfl_module_addrinfo", &libdw.module_addrinfo) ||
        !find(library, "dwfl_module_info", &libdw.module_info)) {
        snprintf(cause, cause_size, "libdw (elfutils) is too old: %s", dlerror());
        libdw.begin = NULL;
        return false;
    }
    runtime = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL);
    if (runtime == NULL || !find(runtime, "__cxa_demangle", &libdw.demangle)) {
        libdw.demangle = NULL;
    }
    libdw.callbacks = (Dwfl_Callbacks){.find_elf = libdw.linux_proc_find_elf,
                                       .find_debuginfo = libdw.standard_find_debuginfo};
    return true;
}

struct ds_accel__unwind *ds_accel__unwind_create(pid_t pid, char *cause, size_t cause_size)
{
    struct ds_accel__unwind *unwind = NULL;
    int error;

    /* debuginfod would download debug files for minutes. */
    unsetenv("DEBUGINFOD_URLS");
    if (libdw.begin == NULL && !load_libdw(cause, cause_size)) {
        return NULL;
    }
    unwind = calloc(1, sizeof(*unwind));
    if (unwind == NULL || (unwind->dwfl = libdw.begin(&libdw.callbacks)) == NULL) {
        snprintf(cause, cause_size, "out of memory");
        free(unwind);
        return NULL;
    }
    error = libdw.linux_proc_report(unwind->dwfl, pid);
    if (libdw.report_end(unwind->dwfl, NULL, NULL) != 0 || error != 0 ||
        (error = libdw.linux_proc_attach(unwind->dwfl, pid, true)) != 0) {
        snprintf(cause, cause_size, "the mapped files of process %ld cannot be read: %s", (long)pid,
                 error > 0 ? strerror(error) : libdw.errmsg(-1));
        ds_accel__unwind_destroy(unwind);
        return NULL;
    }
    return unwind;
}

static void clear_frames(struct ds_accel__unwind *unwind)
{
    for (size_t i = 0; i < unwind->frame_count; i++) {
        free(unwind->frames[i].function);
    }
    unwind->frame_count = 0;
}

void ds_accel__unwind_destroy(struct ds_accel__unwind *unwind)
{
    if (unwind != NULL) {
        clear_frames(unwind);
        libdw.end(unwind->dwfl);
        free(unwind);
    }
}

static char *readable_name(const char *name)
{
    int error;
    char *readable = NULL;

    if (name != NULL && libdw.demangle != NULL && strncmp(name, "_Z", 2) == 0) {
        readable = libdw.demangle(name, NULL, NULL, &error);
    }
    if (readable == NULL) {
        readable = strdup(name != NULL ? name : "");
    }
    if (readable != NULL) { /* without a version, as in "read@@GLIBC_2.2.5" */
        readable[strcspn(readable, "@")] = '\0';
    }
    return readable;
}

static int add_frame(Dwfl_Frame *state, void *user_data)
{
    struct ds_accel__unwind *unwind = user_data;
    struct ds_accel__frame *frame = &unwind->frames[unwind->frame_count];
    Dwarf_Addr address;
    GElf_Off offset = 0;
    GElf_Sym symbol;
    Dwfl_Module *module;
    const char *name = NULL;
    bool is_activation;

    if (!libdw.frame_pc(state, &address, &is_activation)) {
        return DWARF_CB_ABORT;
    }
    *frame = (struct ds_accel__frame){.address = address, .module = ""};
    /* The return address may be the first byte of the next function. */
    address -= is_activation ? 0 : 1;
    module = libdw.addrmodule(unwind->dwfl, address);
    if (module != NULL) {
        const char *path = libdw.module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
        const char *slash = path != NULL ? strrchr(path, '/') : NULL;

        frame->module = slash != NULL ? slash + 1 : path != NULL ? path : "";
        name = libdw.module_addrinfo(module, address, &offset, &symbol, NULL, NULL, NULL);
    }
    frame->offset = name != NULL ? offset + (frame->address - address) : 0;
    frame->function = readable_name(name);
    if (frame->function == NULL) {
        return DWARF_CB_ABORT;
    }
    unwind->frame_count++;
    return unwind->frame_count < DS_ACCEL__UNWIND_FRAMES ? DWARF_CB_OK : DWARF_CB_ABORT;
}

/* Wait until the thread has stopped. *signal_out: a signal to be delivered by the detach. */
static const char *wait_stop(pid_t tid, int *signal_out)
{
    struct timespec pause = {.tv_nsec = 20000};
    uint64_t start_ns = ds_accel__now_ns();
    int status = 0;

    for (;;) {
        pid_t result = waitpid(tid, &status, __WALL | WNOHANG);

        if (result == tid) {
            break;
        }
        if (result < 0 && errno != EINTR) {
            return strerror(errno);
        }
        if (ds_accel__now_ns() - start_ns > STOP_NS) {
            return "the thread did not stop in time";
        }
        nanosleep(&pause, NULL);
        pause.tv_nsec = pause.tv_nsec < PAUSE_LIMIT_NS ? 2 * pause.tv_nsec : PAUSE_LIMIT_NS;
    }
    if (!WIFSTOPPED(status)) {
        return "the thread has ended";
    }
    *signal_out = status >> 16 == 0 ? WSTOPSIG(status) : 0;
    return NULL;
}

const char *ds_accel__unwind_thread(struct ds_accel__unwind *unwind, pid_t tid,
                                    const struct ds_accel__frame **frames_out,
                                    size_t *frame_count_out)
{
    int delivered = 0;
    const char *cause;

    clear_frames(unwind);
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0) {
        return errno == EPERM
                   ? "the kernel does not permit ptrace() (another user, a container's rules, "
                     "or Yama's ptrace_scope)"
                   : strerror(errno);
    }
    if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0) {
        return strerror(errno);
    }
    cause = wait_stop(tid, &delivered);
    if (cause != NULL) {
        return cause;
    }
    if (libdw.getthread_frames(unwind->dwfl, tid, add_frame, unwind) != 0 &&
        unwind->frame_count == 0) {
        cause = libdw.errmsg(-1);
    }
    ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)delivered);
    *frames_out = unwind->frames;
    *frame_count_out = unwind->frame_count;
    return cause;
}
