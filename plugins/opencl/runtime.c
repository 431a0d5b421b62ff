/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Checks for OpenCL platforms, opens the library, and selects devices.
 *
 * libOpenCL.so.1 is only a loader: the files /etc/OpenCL/vendors/NAME.icd contain the names of the
 * runtimes, and the loader opens all runtimes at the first query. The plugin therefore checks these
 * files first; on a machine without such files it opens nothing. Variables of the loaders select
 * other places (ocl-icd: OCL_ICD_VENDORS, Khronos: OCL_ICD_FILENAMES, both: OPENCL_VENDOR_PATH): if
 * one of them is set, only the loader can find the runtimes.
 *
 * A CPU is selected only if the option device_type includes CPUs. A program that selects opencl by
 * name on a machine whose GPU driver is broken should not compute on the processor unnoticed, and
 * the accelerator cpu is the better choice for a processor. If the machine has only CPUs, the
 * message about the missing device mentions the option.
 *
 * Platforms fail independently: a platform that has no device (CL_DEVICE_NOT_FOUND) or whose calls
 * fail is skipped, and its error is reported only if no device is found. After an error, the plugin
 * does not read a call's outputs: PoCL does not write the count.
 */
#include "opencl.h"

#include <dirent.h>
#include <strings.h>

#define PLATFORM_LIMIT 64u
#define DEVICE_LIMIT 1024u /* maximum number of devices of one platform */
#define TEXT_LIMIT (1u << 20)

/* ---- errors --------------------------------------------------------------------------------- */

static const struct {
    int32_t code;
    int32_t status;
    const char *name;
} errors[] = {
    {CL_DEVICE_NOT_FOUND, DS_ACCEL_ERR_NO_DEVICE, "CL_DEVICE_NOT_FOUND"},
    {CL_DEVICE_NOT_AVAILABLE, DS_ACCEL_ERR_DEVICE_LOST, "CL_DEVICE_NOT_AVAILABLE"},
    {-3, DS_ACCEL_ERR_UNSUPPORTED, "CL_COMPILER_NOT_AVAILABLE"},
    {CL_MEM_OBJECT_ALLOCATION_FAILURE, DS_ACCEL_ERR_NO_MEMORY, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {CL_OUT_OF_RESOURCES, DS_ACCEL_ERR_NO_MEMORY, "CL_OUT_OF_RESOURCES"},
    {CL_OUT_OF_HOST_MEMORY, DS_ACCEL_ERR_NO_MEMORY, "CL_OUT_OF_HOST_MEMORY"},
    {CL_PROFILING_INFO_NOT_AVAILABLE, DS_ACCEL_ERR_STATE, "CL_PROFILING_INFO_NOT_AVAILABLE"},
    {-8, DS_ACCEL_ERR_INVALID, "CL_MEM_COPY_OVERLAP"},
    {-12, DS_ACCEL_ERR_DRIVER, "CL_MAP_FAILURE"},
    {-13, DS_ACCEL_ERR_INVALID, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
    {-14, DS_ACCEL_ERR_DRIVER, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    {-30, DS_ACCEL_ERR_INVALID, "CL_INVALID_VALUE"},
    {-31, DS_ACCEL_ERR_INVALID, "CL_INVALID_DEVICE_TYPE"},
    {-32, DS_ACCEL_ERR_INVALID, "CL_INVALID_PLATFORM"},
    {-33, DS_ACCEL_ERR_NO_DEVICE, "CL_INVALID_DEVICE"},
    {-34, DS_ACCEL_ERR_INVALID, "CL_INVALID_CONTEXT"},
    {-35, DS_ACCEL_ERR_UNSUPPORTED, "CL_INVALID_QUEUE_PROPERTIES"},
    {-36, DS_ACCEL_ERR_INVALID, "CL_INVALID_COMMAND_QUEUE"},
    {-37, DS_ACCEL_ERR_INVALID, "CL_INVALID_HOST_PTR"},
    {-38, DS_ACCEL_ERR_INVALID, "CL_INVALID_MEM_OBJECT"},
    {-57, DS_ACCEL_ERR_INVALID, "CL_INVALID_EVENT_WAIT_LIST"},
    {-58, DS_ACCEL_ERR_INVALID, "CL_INVALID_EVENT"},
    {CL_INVALID_OPERATION, DS_ACCEL_ERR_STATE, "CL_INVALID_OPERATION"},
    {CL_INVALID_BUFFER_SIZE, DS_ACCEL_ERR_NO_MEMORY, "CL_INVALID_BUFFER_SIZE"},
    {-64, DS_ACCEL_ERR_UNSUPPORTED, "CL_INVALID_PROPERTY"},
    {CL_PLATFORM_NOT_FOUND_KHR, DS_ACCEL_ERR_NO_DEVICE, "CL_PLATFORM_NOT_FOUND_KHR"},
};

void opencl_describe(void *runtime, int64_t code, int32_t *status_out, const char **name_out)
{
    (void)runtime;
    *status_out = DS_ACCEL_ERR_DRIVER;
    *name_out = NULL;
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (errors[i].code == code) {
            *status_out = errors[i].status;
            *name_out = errors[i].name;
        }
    }
}

/* ---- options -------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    uint64_t bits;
} types[] = {
    {"gpu", CL_DEVICE_TYPE_GPU},
    {"accelerator", CL_DEVICE_TYPE_ACCELERATOR},
    {"cpu", CL_DEVICE_TYPE_CPU},
    {"all", CL_DEVICE_TYPE_ALL},
};

/* Reads an option. If the option is not set, returns 0 and sets *text to "". */
static int read_option(const struct ds_accel_host *host, const char *key, char *text,
                       size_t text_size, struct vendor_problem *problem)
{
    int32_t status = host->config_get(host, key, text, (uint32_t)text_size, NULL);

    if (status == DS_ACCEL_ERR_NOT_FOUND) {
        text[0] = '\0';
        return 0;
    }
    if (status < 0) {
        return vendor_problem_set(problem, DS_ACCEL_REASON_BAD_OPTION,
                                  "option %s: longer than %zu bytes", key, text_size - 1);
    }
    return 0;
}

static uint64_t type_of(const char *name)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(types[i].name, name) == 0) {
            return types[i].bits;
        }
    }
    return 0;
}

/*
 * Parses the option device_type, a list such as "gpu,cpu"; if it is not set, the types are GPU and
 * accelerator.
 */
static int read_types(const struct ds_accel_host *host, uint64_t *types_out,
                      struct vendor_problem *problem)
{
    char text[64];
    char *rest = NULL;
    char *name;

    if (read_option(host, "device_type", text, sizeof(text), problem) != 0) {
        return -1;
    }
    *types_out = text[0] == '\0' ? CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR : 0;
    for (name = strtok_r(text, ", ", &rest); name != NULL; name = strtok_r(NULL, ", ", &rest)) {
        uint64_t bits = type_of(name);

        if (bits == 0) {
            return vendor_problem_set(problem, DS_ACCEL_REASON_BAD_OPTION,
                                      "option device_type: \"%s\" is not gpu, accelerator, cpu or "
                                      "all",
                                      name);
        }
        *types_out |= bits;
    }
    if (*types_out == 0) {
        return vendor_problem_set(problem, DS_ACCEL_REASON_BAD_OPTION,
                                  "option device_type: names no type");
    }
    return 0;
}

static int read_options(const struct ds_accel_host *host, struct opencl_options *options,
                        struct vendor_problem *problem)
{
    char presence[8];

    if (read_types(host, &options->types, problem) != 0 ||
        read_option(host, "presence", presence, sizeof(presence), problem) != 0) {
        return -1;
    }
    options->sees_all = strcmp(presence, "off") == 0; /* the frame has rejected other values */
    return read_option(host, "platform", options->platform, sizeof(options->platform), problem);
}

/* ---- presence of platforms ------------------------------------------------------------------ */

#define VENDORS "/etc/OpenCL/vendors"

static int is_icd(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);

    return length > 4 && strcmp(entry->d_name + length - 4, ".icd") == 0;
}

static int check_vendors(const struct ds_accel_host *host, struct vendor_problem *problem)
{
    static const char *const variables[] = {"OCL_ICD_VENDORS", "OCL_ICD_FILENAMES",
                                            "OPENCL_VENDOR_PATH"};
    struct dirent *entry;
    char path[4096];
    int found = 0;
    DIR *directory;

    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        const char *value = getenv(variables[i]);

        if (value != NULL && value[0] != '\0') {
            return 0;
        }
    }
    snprintf(path, sizeof(path), "%s" VENDORS, host->machine_root);
    directory = opendir(path);
    while (directory != NULL && !found && (entry = readdir(directory)) != NULL) {
        found = is_icd(entry);
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return found ? 0
                 : vendor_problem_set(problem, DS_ACCEL_REASON_NO_DEVICE,
                                      "no OpenCL platform is installed: " VENDORS
                                      " has no .icd file");
}

/* ---- the library ---------------------------------------------------------------------------- */

#define NEED(symbol) VENDOR_REQUIRED(struct cl_calls, symbol)
#define CAN(symbol) VENDOR_OPTIONAL(struct cl_calls, symbol, "OpenCL 2.0")

static const struct vendor_symbol symbols[] = {
    NEED(clGetPlatformIDs),
    NEED(clGetPlatformInfo),
    NEED(clGetDeviceIDs),
    NEED(clGetDeviceInfo),
    NEED(clCreateContext),
    NEED(clRetainContext),
    NEED(clReleaseContext),
    NEED(clGetContextInfo),
    NEED(clCreateCommandQueue),
    CAN(clCreateCommandQueueWithProperties),
    NEED(clRetainCommandQueue),
    NEED(clReleaseCommandQueue),
    NEED(clGetCommandQueueInfo),
    NEED(clCreateBuffer),
    NEED(clRetainMemObject),
    NEED(clReleaseMemObject),
    NEED(clGetMemObjectInfo),
    NEED(clEnqueueReadBuffer),
    NEED(clEnqueueWriteBuffer),
    NEED(clEnqueueCopyBuffer),
    NEED(clEnqueueFillBuffer),
    NEED(clEnqueueMapBuffer),
    NEED(clEnqueueUnmapMemObject),
    NEED(clEnqueueMarkerWithWaitList),
    NEED(clEnqueueBarrierWithWaitList),
    NEED(clFlush),
    NEED(clFinish),
    NEED(clWaitForEvents),
    NEED(clGetEventInfo),
    NEED(clGetEventProfilingInfo),
    NEED(clRetainEvent),
    NEED(clReleaseEvent),
    NEED(clCreateUserEvent),
    NEED(clSetUserEventStatus),
    NEED(clSetEventCallback),
    CAN(clSVMAlloc),
    CAN(clSVMFree),
    CAN(clEnqueueSVMMemcpy),
    CAN(clEnqueueSVMMemFill),
};

static int start(struct opencl_runtime *runtime, const struct ds_accel_host *host,
                 struct vendor_problem *problem)
{
    static const char *const names[] = {"libOpenCL.so.1", "libOpenCL.so", NULL};

    if (read_options(host, &runtime->options, problem) != 0 ||
        (!runtime->options.sees_all && check_vendors(host, problem) != 0) ||
        vendor_lib_open(&runtime->lib, host, "library", names, problem) != 0) {
        return -1;
    }
    return vendor_lib_bind(&runtime->lib, symbols, sizeof(symbols) / sizeof(symbols[0]),
                           &runtime->cl, problem);
}

int opencl_open(const struct ds_accel_host *host, void **runtime_out,
                struct vendor_problem *problem)
{
    struct opencl_runtime *runtime = calloc(1, sizeof(*runtime));

    if (runtime == NULL || opencl_map_init(&runtime->memory) != 0) {
        free(runtime);
        problem->is_error = 1;
        return vendor_problem_set(problem, DS_ACCEL_REASON_DRIVER_FAILED, "no memory to start");
    }
    if (opencl_map_init(&runtime->host) != 0) {
        opencl_map_destroy(&runtime->memory);
        free(runtime);
        problem->is_error = 1;
        return vendor_problem_set(problem, DS_ACCEL_REASON_DRIVER_FAILED, "no memory to start");
    }
    if (start(runtime, host, problem) != 0) {
        opencl_close(runtime);
        return -1;
    }
    *runtime_out = runtime;
    return 0;
}

void opencl_close(void *opened)
{
    struct opencl_runtime *runtime = opened;

    if (runtime != NULL) {
        opencl_map_destroy(&runtime->host);
        opencl_map_destroy(&runtime->memory);
        free(runtime->devices);
        free(runtime);
    }
}

/* ---- texts ---------------------------------------------------------------------------------- */

/*
 * Removes blanks around a text: some device names have them. A text may be very long, so it is
 * moved only once.
 */
static void trim(char *text)
{
    size_t start = strspn(text, " \t");
    size_t length = strlen(text + start);

    while (length > 0 && (text[start + length - 1] == ' ' || text[start + length - 1] == '\t')) {
        length--;
    }
    memmove(text, text + start, length);
    text[length] = '\0';
}

/* Queries the device, or the platform if device is NULL. */
static int32_t get_info(const struct cl_calls *cl, cl_platform platform, cl_device device,
                        uint32_t name, size_t size, void *value, size_t *size_out)
{
    return device != NULL ? cl->clGetDeviceInfo(device, name, size, value, size_out)
                          : cl->clGetPlatformInfo(platform, name, size, value, size_out);
}

static void take_text(const struct cl_calls *cl, cl_platform platform, cl_device device,
                      uint32_t name, char *text, size_t text_size)
{
    size_t size = 0;
    char *whole;

    text[0] = '\0';
    if (get_info(cl, platform, device, name, 0, NULL, &size) != CL_SUCCESS || size == 0 ||
        size > TEXT_LIMIT) {
        return;
    }
    whole = calloc(1, size + 1);
    if (whole != NULL && get_info(cl, platform, device, name, size, whole, NULL) == CL_SUCCESS) {
        trim(whole);
        snprintf(text, text_size, "%s", whole);
    }
    free(whole);
}

void opencl_platform_text(const struct opencl_runtime *runtime, cl_platform platform, uint32_t name,
                          char *text, size_t text_size)
{
    take_text(&runtime->cl, platform, NULL, name, text, text_size);
}

void opencl_device_text(const struct opencl_runtime *runtime, cl_device device, uint32_t name,
                        char *text, size_t text_size)
{
    take_text(&runtime->cl, NULL, device, name, text, text_size);
}

/* ---- devices -------------------------------------------------------------------------------- */

/*
 * State of an enumeration of the platforms. It contains the running count of devices, and facts for
 * the message if no device is selected.
 */
struct walk {
    struct opencl_runtime *runtime;
    uint32_t all_count;      /* devices of all platforms */
    uint32_t platform_count; /* platforms whose name matches */
    char names[128];         /* names of all platforms */
    char other[128];         /* name of the first device of another type */
    uint64_t other_type;
    int32_t code; /* error code of the first call that failed */
    char failed[160];
};

static void note_failure(struct walk *walk, int32_t code, const char *call, const char *platform)
{
    if (walk->code == CL_SUCCESS) {
        walk->code = code;
        snprintf(walk->failed, sizeof(walk->failed), "%s(%.100s)", call, platform);
    }
}

static int take_device(struct walk *walk, cl_platform platform, cl_device device,
                       struct vendor_problem *problem)
{
    struct opencl_runtime *runtime = walk->runtime;
    uint32_t index = walk->all_count++;
    struct opencl_found *grown;
    uint64_t type = 0;
    int32_t code = runtime->cl.clGetDeviceInfo(device, CL_DEVICE_TYPE, sizeof(type), &type, NULL);

    if (code != CL_SUCCESS) {
        note_failure(walk, code, "clGetDeviceInfo", "CL_DEVICE_TYPE");
        return 0;
    }
    if ((type & runtime->options.types) == 0) {
        if (walk->other_type == 0) {
            opencl_device_text(runtime, device, CL_DEVICE_NAME, walk->other, sizeof(walk->other));
        }
        walk->other_type |= type;
        return 0;
    }
    grown = realloc(runtime->devices, (runtime->device_count + 1) * sizeof(*grown));
    if (grown == NULL) {
        problem->is_error = 1;
        return vendor_problem_set(problem, DS_ACCEL_REASON_DRIVER_FAILED,
                                  "no memory for %u devices", runtime->device_count + 1);
    }
    runtime->devices = grown;
    grown[runtime->device_count++] = (struct opencl_found){platform, device, type, index};
    return 0;
}

static int walk_platform(struct walk *walk, cl_platform platform, struct vendor_problem *problem)
{
    const struct cl_calls *cl = &walk->runtime->cl;
    char name[OPENCL_TEXT_SIZE];
    cl_device *devices;
    uint32_t count = 0;
    int32_t code;
    int result = 0;

    opencl_platform_text(walk->runtime, platform, CL_PLATFORM_NAME, name, sizeof(name));
    snprintf(walk->names + strlen(walk->names), sizeof(walk->names) - strlen(walk->names), "%s%s",
             walk->names[0] == '\0' ? "" : ", ", name);
    code = cl->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &count);
    if (code != CL_SUCCESS || count == 0) {
        count = 0;
        if (code != CL_SUCCESS && code != CL_DEVICE_NOT_FOUND) {
            note_failure(walk, code, "clGetDeviceIDs", name);
        }
    }
    count = count > DEVICE_LIMIT ? DEVICE_LIMIT : count;
    if (strcasestr(name, walk->runtime->options.platform) == NULL) {
        walk->all_count += count;
        return 0;
    }
    walk->platform_count++;
    devices = calloc(count + 1, sizeof(*devices));
    code = devices == NULL ? CL_OUT_OF_HOST_MEMORY
           : count == 0    ? CL_SUCCESS
                           : cl->clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices, NULL);
    if (code != CL_SUCCESS) {
        note_failure(walk, code, "clGetDeviceIDs", name);
        count = 0;
    }
    for (uint32_t i = 0; i < count && result == 0; i++) {
        result = take_device(walk, platform, devices[i], problem);
    }
    free(devices);
    return result;
}

/*
 * Reports why no device was selected; the causes are checked in order of importance to an operator.
 */
static int explain_none(const struct walk *walk, struct vendor_problem *problem)
{
    const struct opencl_options *options = &walk->runtime->options;

    if (walk->platform_count == 0) {
        return vendor_problem_set(problem, DS_ACCEL_REASON_NO_DEVICE,
                                  "option platform: no platform's name has \"%s\"; there is %s",
                                  options->platform, walk->names);
    }
    if (walk->code != CL_SUCCESS) {
        return vendor_problem_code(problem, DS_ACCEL_REASON_DRIVER_FAILED, walk->runtime,
                                   walk->code, 1, "%s", walk->failed);
    }
    if ((walk->other_type & CL_DEVICE_TYPE_CPU) != 0) {
        return vendor_problem_set(problem, DS_ACCEL_REASON_NO_DEVICE,
                                  "no GPU or accelerator; %.64s is a CPU, which is used with "
                                  "DS_ACCEL_OPENCL_DEVICE_TYPE=cpu",
                                  walk->other);
    }
    if (walk->other_type != 0) {
        return vendor_problem_set(problem, DS_ACCEL_REASON_NO_DEVICE,
                                  "option device_type leaves out %.64s", walk->other);
    }
    return vendor_problem_set(problem, DS_ACCEL_REASON_NO_DEVICE,
                              "clGetDeviceIDs: %s has no device", walk->names);
}

static int find_devices(struct opencl_runtime *runtime, struct vendor_problem *problem)
{
    struct walk walk = {.runtime = runtime};
    cl_platform platforms[PLATFORM_LIMIT];
    uint32_t count = 0;
    int32_t code = runtime->cl.clGetPlatformIDs(PLATFORM_LIMIT, platforms, &count);

    if (code == CL_PLATFORM_NOT_FOUND_KHR || (code == CL_SUCCESS && count == 0)) {
        return vendor_problem_code(problem, DS_ACCEL_REASON_NO_DEVICE, runtime,
                                   CL_PLATFORM_NOT_FOUND_KHR, 0,
                                   "clGetPlatformIDs: no OpenCL platform is installed");
    }
    if (code != CL_SUCCESS) {
        return vendor_problem_code(problem, DS_ACCEL_REASON_DRIVER_FAILED, runtime, code, 1,
                                   "clGetPlatformIDs");
    }
    for (uint32_t i = 0; i < count && i < PLATFORM_LIMIT; i++) {
        if (walk_platform(&walk, platforms[i], problem) != 0) {
            return -1;
        }
    }
    return runtime->device_count > 0 ? 0 : explain_none(&walk, problem);
}

/* ---- counting -------------------------------------------------------------------------------- */

/*
 * Returns true if the platforms of all selected devices need serialized calls, as Oclgrind does; a
 * runtime with threads of its own does not work with serialized calls.
 */
static int is_serial(const struct opencl_runtime *runtime)
{
    char name[OPENCL_TEXT_SIZE];

    for (uint32_t i = 0; i < runtime->device_count; i++) {
        opencl_platform_text(runtime, runtime->devices[i].platform, CL_PLATFORM_NAME, name,
                             sizeof(name));
        if (strcmp(name, "Oclgrind") != 0) {
            return 0;
        }
    }
    return 1;
}

int opencl_count(void *opened, uint32_t *count_out, struct vendor_problem *problem)
{
    struct opencl_runtime *runtime = opened;

    if (!runtime->was_counted) {
        struct opencl_process *process = opencl_process_keep();
        int result;

        if (process == NULL) {
            problem->is_error = 1;
            return vendor_problem_set(problem, DS_ACCEL_REASON_DRIVER_FAILED, "no memory");
        }
        result = find_devices(runtime, problem);
        opencl_process_restore(process);
        if (result != 0) {
            return -1;
        }
        if (is_serial(runtime) && opencl_serialize(runtime) != 0) {
            problem->is_error = 1;
            return vendor_problem_set(problem, DS_ACCEL_REASON_DRIVER_FAILED,
                                      "%.128s: another library's calls are serialized already",
                                      runtime->lib.path);
        }
        runtime->was_counted = 1;
    }
    *count_out = runtime->device_count;
    return 0;
}
