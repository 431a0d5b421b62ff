/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Probe, init and shutdown. Probe and init run the same steps and stop at the first problem:
 *
 *      find the hardware -> open the library -> count the devices
 *
 * Probe then also checks whether the devices can be used. Probe converts the problem to a verdict,
 * or to an error if the problem has a status; init always converts it to an error.
 */
#include "vendor_frame.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- the steps ------------------------------------------------------------------------------ */

/* If the runtime has no device and a variable hides all devices, report the variable. */
static void tell_hidden(struct vendor_problem *problem)
{
    char text[192];
    int64_t code = problem->vendor_code;
    char vendor_text[sizeof(problem->vendor_text)];

    if (problem->reason != DS_ACCEL_REASON_NO_DEVICE || vendor_visible_is_hiding == NULL ||
        vendor_visible_is_hiding(vendor_backend.visible, vendor_backend.visible_count, text,
                                 sizeof(text)) == NULL) {
        return;
    }
    memcpy(vendor_text, problem->vendor_text, sizeof(vendor_text));
    vendor_problem_set(problem, DS_ACCEL_REASON_HIDDEN, "%s", text);
    problem->vendor_code = code;
    memcpy(problem->vendor_text, vendor_text, sizeof(vendor_text));
}

/* If the runtime has no device although device nodes exist, add the first node to the detail. */
static void tell_nodes(const struct vendor_hardware *hardware, struct vendor_problem *problem)
{
    size_t used = strlen(problem->detail);

    if (problem->reason == DS_ACCEL_REASON_NO_DEVICE && hardware->node_count > 0) {
        snprintf(problem->detail + used, sizeof(problem->detail) - used, ", although %s is there",
                 hardware->first_node);
    }
}

/* Run the steps. On success, which is 0, *runtime_out is open and has *count_out > 0 devices, and
   library contains the library's name, or "the library" if open() reported no name. On failure the
   result is -1, and *problem contains the cause. */
static int start(const struct ds_accel_host *host, void **runtime_out, uint32_t *count_out,
                 char *library, size_t library_size, struct vendor_problem *problem)
{
    struct vendor_hardware hardware;
    void *runtime = NULL;
    uint32_t count = 0;

    memset(problem, 0, sizeof(*problem));
    memset(&hardware, 0, sizeof(hardware));
    if (vendor_backend.pattern != NULL &&
        vendor_presence_check(host, vendor_backend.pattern, &hardware, problem) != 0) {
        return -1;
    }
    if (vendor_backend.open(host, &runtime, problem) != 0) {
        tell_hidden(problem);
        tell_nodes(&hardware, problem);
        return -1;
    }
    snprintf(library, library_size, "%s",
             problem->reason == DS_ACCEL_REASON_NONE && problem->detail[0] != '\0' ? problem->detail
                                                                                   : "the library");
    if (vendor_backend.count(runtime, &count, problem) != 0) {
        tell_hidden(problem);
    } else if (count == 0) {
        vendor_problem_set(problem, DS_ACCEL_REASON_NO_DEVICE, "%.100s is present, no device",
                           library);
        tell_hidden(problem);
    } else {
        *runtime_out = runtime;
        *count_out = count;
        return 0;
    }
    tell_nodes(&hardware, problem);
    vendor_backend.close(runtime);
    return -1;
}

/* ---- probe ---------------------------------------------------------------------------------- */

static void answer_problem(struct ds_accel_verdict *answer, const struct vendor_problem *problem)
{
    answer->state = problem->is_error ? DS_ACCEL_PROBE_ERROR : DS_ACCEL_PROBE_UNAVAILABLE;
    answer->reason = problem->reason;
    answer->vendor_code = problem->vendor_code;
    answer->device_count = 0;
    memcpy(answer->detail, problem->detail, sizeof(answer->detail));
}

/* Write what was found to answer->detail, such as "libamdhip64.so.6, driver 6.12.12, 2 devices".
   A backend with an evidence() writes the text itself; a backend needs it if its vendor does not
   write versions as plain numbers. */
static void tell_evidence(const struct ds_accel_host *host, void *runtime, const char *library,
                          struct ds_accel_verdict *answer)
{
    ds_accel_plugin_instance_t instance = {.host = host, .runtime = runtime};
    struct ds_accel_backend_info info = {.struct_size = sizeof(info)};
    struct ds_accel_error ignored = {.struct_size = sizeof(ignored)};
    const uint32_t *version = info.driver_version;
    const char *which = "driver";
    char text[64] = "";

    if (vendor_backend.evidence != NULL) {
        vendor_backend.evidence(runtime, answer->detail, sizeof(answer->detail));
        return;
    }
    instance.device_count = answer->device_count;
    if (vendor_backend.backend_info != NULL &&
        vendor_backend.backend_info(&instance, &info, &ignored) == DS_ACCEL_OK) {
        if (version[0] == 0 && version[1] == 0) {
            version = info.runtime_version;
            which = "runtime";
        }
        if (version[0] != 0 || version[1] != 0) {
            snprintf(text, sizeof(text), version[2] != 0 ? "%u.%u.%u" : "%u.%u", version[0],
                     version[1], version[2]);
        }
    }
    vendor_write_evidence(answer->detail, sizeof(answer->detail), library, which, text,
                          answer->device_count);
}

/* Run the steps and fill the verdict. If the returned status is negative, probe fails with it, and
   the verdict's detail is the message. */
static int32_t ask(const struct ds_accel_host *host, struct ds_accel_verdict *answer)
{
    struct vendor_problem problem;
    char library[256];
    void *runtime = NULL;
    uint32_t count = 0;
    uint32_t usable = 0; /* not used: the verdict has the count that device_count() will return */

    memset(answer, 0, sizeof(*answer));
    if (start(host, &runtime, &count, library, sizeof(library), &problem) != 0) {
        answer_problem(answer, &problem);
        return problem.status;
    }
    if (vendor_backend.judge != NULL &&
        vendor_backend.judge(runtime, count, &usable, answer->variant, &problem) != 0) {
        answer_problem(answer, &problem);
    } else {
        answer->state = DS_ACCEL_PROBE_AVAILABLE;
        answer->device_count = count;
        tell_evidence(host, runtime, library, answer);
    }
    vendor_backend.close(runtime);
    return DS_ACCEL_OK;
}

/* ---- probe in a child ----------------------------------------------------------------------- */

#define CHILD_LIMIT_MS 60000

static int64_t now_ms(void)
{
    return (int64_t)(plugin_now_ns() / 1000000);
}

/* What the child sends: the result of ask(). */
struct report {
    int32_t status;
    struct ds_accel_verdict answer;
};

/* Read size_bytes, or fewer up to the end of file or the time limit. Signals that interrupt poll()
   or read() do not stop it. Returns the number of bytes read. */
static size_t read_until(int channel, void *bytes, size_t size_bytes, int64_t limit_ms)
{
    struct pollfd waiting = {.fd = channel, .events = POLLIN};
    size_t have = 0;

    while (have < size_bytes) {
        int64_t left_ms = limit_ms - now_ms();
        int count = poll(&waiting, 1, left_ms > 0 ? (int)left_ms : 0);
        ssize_t size = count > 0 ? read(channel, (char *)bytes + have, size_bytes - have) : count;

        if (size > 0) {
            have += (size_t)size;
        } else if (size == 0 || errno != EINTR) {
            break;
        }
    }
    return have;
}

static void tell_end(int status, int is_late, struct vendor_problem *problem)
{
    if (is_late) {
        vendor_problem_set(problem, DS_ACCEL_REASON_DRIVER_FAILED,
                           "the vendor's library did not answer within %d s",
                           CHILD_LIMIT_MS / 1000);
    } else if (WIFSIGNALED(status)) {
        vendor_problem_set(problem, DS_ACCEL_REASON_DRIVER_FAILED,
                           "the vendor's library terminated the probing process, signal %d",
                           WTERMSIG(status));
    } else {
        vendor_problem_set(problem, DS_ACCEL_REASON_DRIVER_FAILED,
                           "the vendor's library terminated the probing process, exit code %d",
                           WIFEXITED(status) ? WEXITSTATUS(status) : 0);
    }
}

/* Read the child's report and wait until the child exits. If the report does not arrive completely,
   make a verdict that describes how the child terminated; a child that exceeds CHILD_LIMIT_MS is
   killed. Returns the status of ask(). */
static int32_t read_answer(int channel, pid_t child, struct ds_accel_verdict *answer)
{
    int64_t limit_ms = now_ms() + CHILD_LIMIT_MS;
    struct vendor_problem problem;
    struct report report;
    size_t have = read_until(channel, &report, sizeof(report), limit_ms);
    int is_late = have < sizeof(report) && now_ms() >= limit_ms;
    int status = 0;

    if (is_late) {
        kill(child, SIGKILL);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (have < sizeof(report)) {
        memset(answer, 0, sizeof(*answer));
        tell_end(status, is_late, &problem);
        answer_problem(answer, &problem);
        return DS_ACCEL_OK;
    }
    *answer = report.answer;
    return report.status;
}

static void write_report(int channel, const struct report *report)
{
    const char *bytes = (const char *)report;
    size_t left = sizeof(*report);

    while (left > 0) {
        ssize_t size = write(channel, bytes, left);

        if (size > 0) {
            bytes += size;
            left -= (size_t)size;
        } else if (size == 0 || errno != EINTR) {
            return;
        }
    }
}

/*
 * Prepare the child. The kernel kills it when the parent's thread that waits for it exits; if the
 * parent has exited already, the child exits here. The program's handlers for crashes (which may
 * write a report or jump) must not run in the child.
 */
static void leave_program(pid_t parent)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP};

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(1);
    }
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        signal(signals[i], SIG_DFL);
    }
}

/* The processes on whose behalf probe runs. */
static struct {
    pid_t program; /* the process that requested the probe; 0 while no probe runs */
    pid_t process; /* the process in which the host called probe */
} asking;

static pid_t program_of(const struct ds_accel_host *host)
{
#ifdef DS_ACCEL_EXT_ASKER /* defined since version 1.1 of the header */
    const struct ds_accel_ext_asker *asker = DS_ACCEL_HAS(host, struct ds_accel_host, extension) &&
                                                     host->extension != NULL
                                                 ? host->extension(host, DS_ACCEL_EXT_ASKER)
                                                 : NULL;

    return asker != NULL ? (pid_t)asker->process_id(host) : getpid();
#else
    (void)host;
    return getpid();
#endif
}

int vendor_is_asking(int32_t pid)
{
    return pid == getpid() ||
           (asking.program != 0 && (pid == asking.program || pid == asking.process));
}

/* The process that last called init, which may have started the library; 0 before. */
static atomic_int started_in;

/*
 * Most runtimes cannot be stopped once they have started, and cannot be used after a fork.
 * Therefore probe starts the runtime in a child process, unless this process may have started it
 * already or no child can be made. This process itself searches for the hardware: without hardware
 * no child is needed. The result is that of ask().
 */
static int32_t ask_child(const struct ds_accel_host *host, struct ds_accel_verdict *answer)
{
    struct vendor_hardware hardware;
    struct vendor_problem problem;
    int ends[2];
    pid_t parent = getpid();
    pid_t child;
    int32_t status;

    memset(answer, 0, sizeof(*answer));
    if (vendor_presence_check(host, vendor_backend.pattern, &hardware, &problem) != 0) {
        answer_problem(answer, &problem);
        return DS_ACCEL_OK;
    }
    if (atomic_load(&started_in) == parent || pipe2(ends, O_CLOEXEC) != 0) {
        return ask(host, answer);
    }
    child = fork();
    if (child == 0) {
        struct report report = {0};

        leave_program(parent);
        report.status = ask(host, &report.answer);
        write_report(ends[1], &report);
        _exit(0);
    }
    close(ends[1]);
    status = child < 0 ? ask(host, answer) : read_answer(ends[0], child, answer);
    close(ends[0]);
    return status;
}

static int32_t vendor_probe(const struct ds_accel_host *host, struct ds_accel_verdict *verdict,
                            struct ds_accel_error *error)
{
    struct ds_accel_verdict answer;
    int32_t status;

    if (host == NULL || verdict == NULL) {
        return vendor_null(error, "probe", "host or verdict");
    }
    asking.program = program_of(host);
    asking.process = getpid();
    status = vendor_backend.probes_in_child ? ask_child(host, &answer) : ask(host, &answer);
    asking.program = 0;
    if (status < 0) {
        return plugin_fail(error, status, "%s", answer.detail);
    }
    ds_accel_write(verdict, &answer, sizeof(answer));
    return DS_ACCEL_OK;
}

/* ---- init and shutdown ---------------------------------------------------------------------- */

/* Flags of slots that are in the table even if the installed library does not support them. */
#define FLAGS_OF_SLOTS \
    (DS_ACCEL_FLAG_GRAPHS | DS_ACCEL_FLAG_STREAM_ORDERED_MEMORY | DS_ACCEL_FLAG_VIRTUAL_MEMORY | \
     DS_ACCEL_FLAG_MEMORY_IPC | DS_ACCEL_FLAG_EVENT_IPC | DS_ACCEL_FLAG_DMABUF)

static int32_t ask_backend(ds_accel_plugin_instance_t *instance, struct ds_accel_backend_info *info,
                           struct ds_accel_error *error)
{
    memset(info, 0, sizeof(*info));
    info->struct_size = sizeof(*info);
    info->flags = vendor_backend.flags;
    info->flags_known = DS_ACCEL_FLAGS_ALL;
    info->memory_handle_bytes = vendor_handle_bytes != NULL ? vendor_handle_bytes() : 0;
    info->event_handle_bytes = vendor_backend.event_handle_bytes;
    if (vendor_backend.backend_info != NULL) {
        int32_t status = vendor_backend.backend_info(instance, info, error);

        if (status < 0) {
            return status;
        }
    }
    /* A flag that this library lacks becomes unknown: its slot is not NULL but returns
       UNSUPPORTED. */
    info->flags_known &= ~(vendor_backend.flags & ~info->flags & FLAGS_OF_SLOTS);
    info->flags &= info->flags_known;
    info->reserved = 0;
    return DS_ACCEL_OK;
}

static void identify_all(ds_accel_plugin_instance_t *instance)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    for (uint32_t i = 0; i < instance->device_count && !vendor_backend.identifies_late; i++) {
        if (vendor_device_identify(&instance->devices[i], &error) < 0) {
            vendor_log(instance->host, DS_ACCEL_LOG_WARN, "device %u: %.200s", i, error.message);
        }
    }
}

static int32_t make_instance(ds_accel_plugin_instance_t *instance, struct ds_accel_error *error)
{
    struct ds_accel_backend_info info;
    int32_t status = vendor_backend.start != NULL
                         ? vendor_backend.start(instance->runtime, &info.flags, error)
                         : ask_backend(instance, &info, error);

    if (status < 0) {
        return status;
    }
    instance->flags = info.flags;
    instance->blocks = vendor_register_create();
    if (instance->blocks == NULL || vendor_devices_create(instance) != 0) {
        vendor_register_destroy(instance->blocks);
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "init: no memory for %u devices",
                           instance->device_count);
    }
    identify_all(instance);
    return DS_ACCEL_OK;
}

static int32_t vendor_init(const struct ds_accel_host *host,
                           ds_accel_plugin_instance_t **instance_out, struct ds_accel_error *error)
{
    ds_accel_plugin_instance_t *instance;
    struct vendor_problem problem;
    char library[256];
    int32_t status;

    if (host == NULL || instance_out == NULL) {
        return vendor_null(error, "init", "host or instance_out");
    }
    instance = calloc(1, sizeof(*instance));
    if (instance == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "init: no memory for the instance");
    }
    instance->host = host;
    atomic_store(&started_in, getpid());
    if (start(host, &instance->runtime, &instance->device_count, library, sizeof(library),
              &problem) != 0) {
        free(instance);
        return vendor_problem_fail(&problem, "init", error);
    }
    pthread_mutex_init(&instance->lock, NULL);
    status = make_instance(instance, error);
    if (status < 0) {
        vendor_backend.close(instance->runtime);
        pthread_mutex_destroy(&instance->lock);
        free(instance);
        return status;
    }
    *instance_out = instance;
    return DS_ACCEL_OK;
}

static void vendor_shutdown(ds_accel_plugin_instance_t *instance)
{
    if (instance == NULL) {
        return;
    }
    vendor_devices_stop(instance);
    vendor_register_destroy(instance->blocks);
    vendor_devices_destroy(instance);
    vendor_backend.close(instance->runtime);
    pthread_mutex_destroy(&instance->lock);
    free(instance);
}

/* ---- facts of the backend ------------------------------------------------------------------- */

static int32_t vendor_extension(ds_accel_plugin_instance_t *instance, const char *id,
                                const void **extension_out, struct ds_accel_error *error)
{
    int32_t status = vendor_check_instance(instance, "extension", error);

    if (status < 0) {
        return status;
    }
    if (id == NULL || extension_out == NULL) {
        return vendor_null(error, "extension", "id or extension_out");
    }
    return plugin_fail(error, DS_ACCEL_ERR_NOT_FOUND, "extension: no \"%.100s\" here", id);
}

static int32_t vendor_backend_info(ds_accel_plugin_instance_t *instance,
                                   struct ds_accel_backend_info *info_out,
                                   struct ds_accel_error *error)
{
    struct ds_accel_backend_info info;
    int32_t status = vendor_check_instance(instance, "backend_info", error);

    if (status < 0) {
        return status;
    }
    if (info_out == NULL) {
        return vendor_null(error, "backend_info", "info_out");
    }
    status = ask_backend(instance, &info, error);
    if (status == DS_ACCEL_OK) {
        ds_accel_write(info_out, &info, sizeof(info));
    }
    return status;
}

static int32_t vendor_device_count(ds_accel_plugin_instance_t *instance, uint32_t *count_out,
                                   struct ds_accel_error *error)
{
    int32_t status = vendor_check_instance(instance, "device_count", error);

    if (status < 0) {
        return status;
    }
    if (count_out == NULL) {
        return vendor_null(error, "device_count", "count_out");
    }
    *count_out = instance->device_count;
    return DS_ACCEL_OK;
}

void vendor_fill(struct ds_accel_plugin *table)
{
    table->probe = vendor_probe;
    table->init = vendor_init;
    table->shutdown = vendor_shutdown;
    table->extension = vendor_extension;
    table->backend_info = vendor_backend_info;
    table->device_count = vendor_device_count;
    vendor_device_fill(table);
    vendor_stream_fill(table);
    vendor_event_fill(table);
    vendor_memory_fill(table);
    vendor_usage_fill(table);
    vendor_work_fill(table);
    vendor_vmem_fill(table);
    vendor_graph_fill(table);
    vendor_facts_fill(table);
    if (vendor_share_fill != NULL) {
        vendor_share_fill(table);
    }
    if (vendor_visible_fill != NULL) {
        vendor_visible_fill(table);
    }
    if (vendor_native_fill != NULL) {
        vendor_native_fill(table);
    }
}
