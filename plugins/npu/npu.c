/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Huawei Ascend through AscendCL (ACL), the C runtime of CANN.
 *
 * A process initializes ACL once, and some CANN releases in use cannot initialize it again after
 * aclFinalize(); another part of the program may use ACL too. The plugin therefore initializes ACL,
 * or uses it if it is already initialized (aclInit() then returns 100002), and never finalizes it.
 *
 * Work belongs to a context, which must be the calling thread's current context: see npu_enter() in
 * device.c.
 */
#include "npu.h"

#define SYMBOL(name) VENDOR_REQUIRED(struct acl_api, name)
#define NEWER(name, since) VENDOR_OPTIONAL(struct acl_api, name, since)

static const struct vendor_symbol acl_symbols[] = {
    SYMBOL(aclInit),
    SYMBOL(aclrtGetDeviceCount),
    SYMBOL(aclrtSetDevice),
    SYMBOL(aclrtResetDevice),
    SYMBOL(aclrtGetDevice),
    SYMBOL(aclrtGetCurrentContext),
    SYMBOL(aclrtSetCurrentContext),
    SYMBOL(aclrtSynchronizeDevice),
    SYMBOL(aclrtGetSocName),
    SYMBOL(aclrtGetMemInfo),
    SYMBOL(aclrtMalloc),
    SYMBOL(aclrtFree),
    SYMBOL(aclrtMallocHost),
    SYMBOL(aclrtFreeHost),
    SYMBOL(aclrtMemcpy),
    SYMBOL(aclrtMemcpyAsync),
    SYMBOL(aclrtMemsetAsync),
    SYMBOL(aclrtCreateStream),
    SYMBOL(aclrtDestroyStream),
    SYMBOL(aclrtSynchronizeStream),
    SYMBOL(aclrtStreamQuery),
    SYMBOL(aclrtStreamWaitEvent),
    SYMBOL(aclrtCreateEventExWithFlag),
    SYMBOL(aclrtDestroyEvent),
    SYMBOL(aclrtRecordEvent),
    SYMBOL(aclrtQueryEventStatus),
    SYMBOL(aclrtSynchronizeEvent),
    SYMBOL(aclrtEventElapsedTime),
    NEWER(aclrtGetVersion, "CANN 6"),
    NEWER(aclrtGetDeviceInfo, "CANN 8"),
    NEWER(aclrtDeviceGetUuid, "CANN 8"),
    NEWER(aclrtQueryDeviceStatus, "CANN 7"),
    NEWER(aclrtGetLogicDevIdByUserDevId, "CANN 8"),
    NEWER(aclrtGetPhyDevIdByLogicDevId, "CANN 8"),
    NEWER(aclrtGetPhyDevIdByUserDevId, "CANN 9"),
    NEWER(aclrtHostRegister, "CANN 7"),
    NEWER(aclrtHostUnregister, "CANN 7"),
    NEWER(aclrtMemGetAllocationGranularity, "CANN 7"),
    NEWER(aclrtReserveMemAddress, "CANN 7"),
    NEWER(aclrtReleaseMemAddress, "CANN 7"),
    NEWER(aclrtMallocPhysical, "CANN 7"),
    NEWER(aclrtFreePhysical, "CANN 7"),
    NEWER(aclrtMapMem, "CANN 7"),
    NEWER(aclrtUnmapMem, "CANN 7"),
    NEWER(aclrtCreateStreamWithConfig, "CANN 6"),
    NEWER(aclrtDeviceGetStreamPriorityRange, "CANN 8"),
    NEWER(aclrtLaunchHostFunc, "CANN 8"),
    NEWER(aclmdlRICaptureBegin, "CANN 8"),
    NEWER(aclmdlRICaptureGetInfo, "CANN 8"),
    NEWER(aclmdlRICaptureEnd, "CANN 8"),
    NEWER(aclmdlRICaptureThreadExchangeMode, "CANN 8"),
    NEWER(aclmdlRIExecuteAsync, "CANN 8"),
    NEWER(aclmdlRIDestroy, "CANN 8"),
    NEWER(aclrtDeviceCanAccessPeer, "CANN 6"),
    NEWER(aclrtDeviceEnablePeerAccess, "CANN 6"),
    NEWER(aclrtDeviceDisablePeerAccess, "CANN 6"),
    NEWER(aclrtIpcMemGetExportKey, "CANN 8"),
    NEWER(aclrtIpcMemImportByKey, "CANN 8"),
    NEWER(aclrtIpcMemClose, "CANN 8"),
    NEWER(aclrtIpcGetEventHandle, "CANN 8"),
    NEWER(aclrtIpcOpenEventHandle, "CANN 8"),
};

/* ---- locations of the libraries ------------------------------------------------------------- */

#define PLACE_COUNT 7

/*
 * names[0] is the soname; it is followed by the file's path in the directories of ASCEND_HOME_PATH
 * and ASCEND_TOOLKIT_HOME, if they are set, and in each directory where CANN installs itself. A
 * library that is opened by its path still needs the driver's libraries on LD_LIBRARY_PATH: the
 * linker's own message reports that.
 */
struct places {
    char text[PLACE_COUNT][256];
    const char *names[PLACE_COUNT + 2];
};

static void list_places(struct places *places, const char *soname)
{
    static const char *const variables[] = {"ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"};
    static const char *const directories[] = {"/usr/local/Ascend/ascend-toolkit/latest",
                                              "/usr/local/Ascend/cann", "/usr/local/Ascend/latest",
                                              "/usr/local/Ascend/nnrt/latest"};
    size_t count = 0;
    size_t used = 0;

    places->names[count++] = soname;
    for (size_t i = 0; i < 2; i++) {
        const char *directory = secure_getenv(variables[i]);

        if (directory != NULL && directory[0] == '/' &&
            snprintf(places->text[used], sizeof(places->text[used]), "%s/lib64/%s", directory,
                     soname) < (int)sizeof(places->text[used])) {
            places->names[count++] = places->text[used++];
        }
    }
    for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++) {
        snprintf(places->text[used], sizeof(places->text[used]), "%s/lib64/%s", directories[i],
                 soname);
        places->names[count++] = places->text[used++];
    }
    places->names[count] = NULL;
}

/* ---- opening and closing -------------------------------------------------------------------- */

/* The initialization of ACL, which the whole process shares. */
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t is_started;

static acl_error start(const struct acl_api *acl)
{
    acl_error code = ACL_OK;

    pthread_mutex_lock(&start_lock);
    if (!is_started) {
        code = acl->aclInit(NULL);
        if (code == ACL_REPEAT_INITIALIZE) { /* the program initialized ACL, and finalizes it */
            code = ACL_OK;
        }
        is_started = code == ACL_OK;
    }
    pthread_mutex_unlock(&start_lock);
    return code;
}

static int npu_open(const struct ds_accel_host *host, void **runtime_out,
                    struct vendor_problem *problem)
{
    struct npu_runtime *runtime = calloc(1, sizeof(*runtime));
    struct places places;
    acl_error code;

    if (runtime == NULL) {
        problem->is_error = 1;
        return vendor_problem_set(problem, DS_ACCEL_REASON_DRIVER_FAILED, "no memory");
    }
    runtime->host = host;
    list_places(&places, "libascendcl.so");
    if (vendor_lib_open(&runtime->acl_lib, host, "library", places.names, problem) != 0 ||
        vendor_lib_bind(&runtime->acl_lib, acl_symbols,
                        sizeof(acl_symbols) / sizeof(acl_symbols[0]), &runtime->acl,
                        problem) != 0) {
        free(runtime);
        return -1;
    }
    code = start(&runtime->acl);
    if (code != ACL_OK) {
        vendor_problem_code(problem, DS_ACCEL_REASON_DRIVER_FAILED, runtime, code, 1, "aclInit()");
        free(runtime);
        return -1;
    }
    npu_dcmi_open(runtime);
    list_places(&places, "libms_tools_ext.so");
    npu_ranges_open(runtime, places.names);
    *runtime_out = runtime;
    return 0;
}

static void npu_close(void *runtime)
{
    free(runtime);
}

static int take_ascending(void *user_data, const char *token)
{
    int64_t *last = user_data;
    uint64_t value;

    if (plugin_parse_u64(token, &value) != 0 || value > UINT32_MAX) {
        return 2; /* end the search: CANN ignores the rest of the list */
    }
    if ((int64_t)value <= *last) {
        return 1;
    }
    *last = (int64_t)value;
    return 0;
}

/*
 * Reports an ASCEND_RT_VISIBLE_DEVICES whose numbers do not ascend: CANN hides all devices and
 * returns the same code as on a machine without devices. Returns 0 if the order is correct.
 */
static int tell_order(struct vendor_problem *problem)
{
    int64_t last = -1;

    if (vendor_visible_each(NPU_VISIBLE, take_ascending, &last) != 1) {
        return 0;
    }
    return vendor_problem_set(problem, DS_ACCEL_REASON_HIDDEN,
                              NPU_VISIBLE "=\"%.96s\" hides every device: CANN takes numbers in "
                                          "ascending order only, each once",
                              getenv(NPU_VISIBLE));
}

static int npu_count(void *opaque, uint32_t *count_out, struct vendor_problem *problem)
{
    struct npu_runtime *runtime = opaque;
    uint32_t count = 0;
    acl_error code = runtime->acl.aclrtGetDeviceCount(&count);

    if (code == ACL_RT_NO_DEVICE) {
        count = 0;
        if (tell_order(problem) != 0) {
            return -1;
        }
    } else if (code != ACL_OK) {
        return vendor_problem_code(problem, DS_ACCEL_REASON_DRIVER_FAILED, runtime, code, 1,
                                   "aclrtGetDeviceCount()");
    }
    *count_out = count;
    return 0;
}

/* ---- errors --------------------------------------------------------------------------------- */

struct acl_code {
    int64_t code;
    int32_t status;
    const char *name;
};

/* Sorted by code. */
static const struct acl_code acl_codes[] = {
    {100000, DS_ACCEL_ERR_INVALID, "ACL_ERROR_INVALID_PARAM"},
    {100001, DS_ACCEL_ERR_STATE, "ACL_ERROR_UNINITIALIZE"},
    {100002, DS_ACCEL_ERR_STATE, "ACL_ERROR_REPEAT_INITIALIZE"},
    {100036, DS_ACCEL_ERR_TIMEOUT, "ACL_ERROR_WAIT_CALLBACK_TIMEOUT"},
    {100037, DS_ACCEL_ERR_STATE, "ACL_ERROR_REPEAT_FINALIZE"},
    {107000, DS_ACCEL_ERR_INVALID, "ACL_ERROR_RT_PARAM_INVALID"},
    {107001, DS_ACCEL_ERR_NO_DEVICE, "ACL_ERROR_RT_INVALID_DEVICEID"},
    {107002, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_CONTEXT_NULL"},
    {107003, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_STREAM_CONTEXT"},
    {107004, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_MODEL_CONTEXT"},
    {107006, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID"},
    {107007, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL"},
    {107008, DS_ACCEL_ERR_INVALID, "ACL_ERROR_RT_ADDR_UNALIGNED"},
    {107013, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_GROUP_NOT_SET"},
    {107014, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_GROUP_NOT_CREATE"},
    {107015, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_STREAM_NO_CB_REG"},
    {107016, DS_ACCEL_ERR_INVALID, "ACL_ERROR_RT_INVALID_MEMORY_TYPE"},
    {107017, DS_ACCEL_ERR_INVALID, "ACL_ERROR_RT_INVALID_HANDLE"},
    {107018, DS_ACCEL_ERR_INVALID, "ACL_ERROR_RT_INVALID_MALLOC_TYPE"},
    {107019, DS_ACCEL_ERR_TIMEOUT, "ACL_ERROR_RT_WAIT_TIMEOUT"},
    {107020, DS_ACCEL_ERR_TIMEOUT, "ACL_ERROR_RT_TASK_TIMEOUT"},
    {107021, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_SYSPARAMOPT_NOT_SET"},
    /* The program's aclrtDeviceTaskAbort() is running; the device is usable again afterwards. */
    {107022, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_DEVICE_TASK_ABORT"},
    {107023, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_STREAM_ABORT"},
    {107024, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_CAPTURE_DEPENDENCY"},
    {107025, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_STREAM_UNJOINED"},
    {107026, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_MODEL_CAPTURED"},
    {107027, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_STREAM_CAPTURED"},
    {107028, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_EVENT_CAPTURED"},
    {107029, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_STREAM_NOT_CAPTURED"},
    {107030, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT"},
    {107031, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT"},
    {107032, DS_ACCEL_ERR_STATE, "ACL_ERROR_STREAM_CAPTURE_CONFLICT"},
    {107033, DS_ACCEL_ERR_STATE, "ACL_ERROR_STREAM_TASK_GROUP_STATUS"},
    {107034, DS_ACCEL_ERR_STATE, "ACL_ERROR_STREAM_TASK_GROUP_INTR"},
    {107035, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_TASK_ABORT_STOP"},
    {107036, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED"},
    {107037, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_MODEL_RUNNING"},
    {107038, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD"},
    {107039, DS_ACCEL_ERR_INVALID, "ACL_ERROR_RT_INSUFFICIENT_INPUT_ARRAY"},
    {107040, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_MODEL_UPDATE_FAILED"},
    {107041, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC"},
    {107042, DS_ACCEL_ERR_NOT_FOUND, "ACL_ERROR_RT_SYMBOL_NOT_FOUND"},
    {107043, DS_ACCEL_ERR_INVALID, "ACL_ERROR_RT_INVALID_SYMBOL"},
    {107044, DS_ACCEL_ERR_INVALID, "ACL_ERROR_RT_INVALID_DEVICE_FUNCTION"},
    {107045, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_SUB_ACLGRAPH_IS_CAPTURING"},
    {148051, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RELATIVE_RESOURCE_NOT_CLEARED"},
    {200000, DS_ACCEL_ERR_NO_MEMORY, "ACL_ERROR_BAD_ALLOC"},
    {200001, DS_ACCEL_ERR_UNSUPPORTED, "ACL_ERROR_API_NOT_SUPPORT"},
    {200002, DS_ACCEL_ERR_NO_DEVICE, "ACL_ERROR_INVALID_DEVICE"},
    {200003, DS_ACCEL_ERR_INVALID, "ACL_ERROR_MEMORY_ADDRESS_UNALIGNED"},
    {200004, DS_ACCEL_ERR_INVALID, "ACL_ERROR_RESOURCE_NOT_MATCH"},
    {200005, DS_ACCEL_ERR_INVALID, "ACL_ERROR_INVALID_RESOURCE_HANDLE"},
    {200006, DS_ACCEL_ERR_UNSUPPORTED, "ACL_ERROR_FEATURE_UNSUPPORTED"},
    {207000, DS_ACCEL_ERR_UNSUPPORTED, "ACL_ERROR_RT_FEATURE_NOT_SUPPORT"},
    {207001, DS_ACCEL_ERR_NO_MEMORY, "ACL_ERROR_RT_MEMORY_ALLOCATION"},
    {207002, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_MEMORY_FREE"},
    {207003, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_AICORE_OVER_FLOW"},
    {207004, DS_ACCEL_ERR_NO_DEVICE, "ACL_ERROR_RT_NO_DEVICE"},
    {207005, DS_ACCEL_ERR_NO_MEMORY, "ACL_ERROR_RT_RESOURCE_ALLOC_FAIL"},
    {207006, DS_ACCEL_ERR_PERMISSION, "ACL_ERROR_RT_NO_PERMISSION"},
    {207007, DS_ACCEL_ERR_LIMIT, "ACL_ERROR_RT_NO_EVENT_RESOURCE"},
    {207008, DS_ACCEL_ERR_LIMIT, "ACL_ERROR_RT_NO_STREAM_RESOURCE"},
    {207009, DS_ACCEL_ERR_LIMIT, "ACL_ERROR_RT_NO_NOTIFY_RESOURCE"},
    {207010, DS_ACCEL_ERR_LIMIT, "ACL_ERROR_RT_NO_MODEL_RESOURCE"},
    {207011, DS_ACCEL_ERR_LIMIT, "ACL_ERROR_RT_NO_CDQ_RESOURCE"},
    {207012, DS_ACCEL_ERR_LIMIT, "ACL_ERROR_RT_OVER_LIMIT"},
    {207013, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_QUEUE_EMPTY"},
    {207014, DS_ACCEL_ERR_LIMIT, "ACL_ERROR_RT_QUEUE_FULL"},
    {207015, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_REPEATED_INIT"},
    {207016, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_AIVEC_OVER_FLOW"},
    {207017, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_OVER_FLOW"},
    {207018, DS_ACCEL_ERR_NO_MEMORY, "ACL_ERROR_RT_DEVICE_OOM"},
    {207019, DS_ACCEL_ERR_UNSUPPORTED, "ACL_ERROR_RT_FEATURE_NOT_SUPPORT_UPDATE_OP"},
    {207020, DS_ACCEL_ERR_TIMEOUT, "ACL_ERROR_RT_TIMEOUT"},
    {207021, DS_ACCEL_ERR_UNSUPPORTED, "ACL_ERROR_RT_LINK_TYPE_NOT_SUPPORTED"},
    {300000, DS_ACCEL_ERR_LIMIT, "ACL_ERROR_STORAGE_OVER_LIMIT"},
    {500000, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_INTERNAL_ERROR"},
    {500001, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_FAILURE"},
    {500003, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_FAILURE"},
    {500004, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_DRV_FAILURE"},
    {507000, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_INTERNAL_ERROR"},
    {507001, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_TS_ERROR"},
    {507002, DS_ACCEL_ERR_LIMIT, "ACL_ERROR_RT_STREAM_TASK_FULL"},
    {507003, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_STREAM_TASK_EMPTY"},
    {507004, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_STREAM_NOT_COMPLETE"},
    {507005, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_END_OF_SEQUENCE"},
    {507006, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_EVENT_NOT_COMPLETE"},
    {507007, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_CONTEXT_RELEASE_ERROR"},
    {507008, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_SOC_VERSION"},
    {507009, DS_ACCEL_ERR_UNSUPPORTED, "ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT"},
    {507010, DS_ACCEL_ERR_DEVICE_LOST, "ACL_ERROR_RT_LOST_HEARTBEAT"},
    {507011, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_MODEL_EXECUTE"},
    {507012, DS_ACCEL_ERR_TIMEOUT, "ACL_ERROR_RT_REPORT_TIMEOUT"},
    {507013, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_SYS_DMA"},
    {507014, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_AICORE_TIMEOUT"},
    {507015, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_AICORE_EXCEPTION"},
    {507016, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_AICORE_TRAP_EXCEPTION"},
    {507017, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_AICPU_TIMEOUT"},
    {507018, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_AICPU_EXCEPTION"},
    {507020, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_AICPU_MODEL_RSP_ERR"},
    {507022, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_IPC_ERROR"},
    {507023, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_MODEL_ABORT_NORMAL"},
    {507024, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_KERNEL_UNREGISTERING"},
    {507025, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_RINGBUFFER_NOT_INIT"},
    {507026, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_RINGBUFFER_NO_DATA"},
    {507027, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_KERNEL_LOOKUP"},
    {507028, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_KERNEL_DUPLICATE"},
    {507029, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_DEBUG_REGISTER_FAIL"},
    {507030, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_DEBUG_UNREGISTER_FAIL"},
    {507031, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_LABEL_CONTEXT"},
    {507032, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_PROGRAM_USE_OUT"},
    {507033, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_DEV_SETUP_ERROR"},
    {507034, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_VECTOR_CORE_TIMEOUT"},
    {507035, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_VECTOR_CORE_EXCEPTION"},
    {507036, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_VECTOR_CORE_TRAP_EXCEPTION"},
    {507037, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_CDQ_BATCH_ABNORMAL"},
    {507038, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_DIE_MODE_CHANGE_ERROR"},
    {507039, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_DIE_SET_ERROR"},
    {507040, DS_ACCEL_ERR_INVALID, "ACL_ERROR_RT_INVALID_DIEID"},
    {507041, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_DIE_MODE_NOT_SET"},
    {507042, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_AICORE_TRAP_READ_OVERFLOW"},
    {507043, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_AICORE_TRAP_WRITE_OVERFLOW"},
    {507044, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_VECTOR_CORE_TRAP_READ_OVERFLOW"},
    {507045, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_VECTOR_CORE_TRAP_WRITE_OVERFLOW"},
    {507046, DS_ACCEL_ERR_TIMEOUT, "ACL_ERROR_RT_STREAM_SYNC_TIMEOUT"},
    {507047, DS_ACCEL_ERR_TIMEOUT, "ACL_ERROR_RT_EVENT_SYNC_TIMEOUT"},
    {507048, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_FFTS_PLUS_TIMEOUT"},
    {507049, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_FFTS_PLUS_EXCEPTION"},
    {507050, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_FFTS_PLUS_TRAP_EXCEPTION"},
    {507051, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_SEND_MSG"},
    {507052, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_COPY_DATA"},
    {507053, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_DEVICE_MEM_ERROR"},
    {507054, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_HBM_MULTI_BIT_ECC_ERROR"},
    {507055, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_SUSPECT_DEVICE_MEM_ERROR"},
    {507056, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_LINK_ERROR"},
    {507057, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_SUSPECT_REMOTE_ERROR"},
    {507899, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_DRV_INTERNAL_ERROR"},
    {507900, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_AICPU_INTERNAL_ERROR"},
    {507901, DS_ACCEL_ERR_DEVICE_LOST, "ACL_ERROR_RT_SOCKET_CLOSE"},
    {507902, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_AICPU_INFO_LOAD_RSP_ERR"},
    {507903, DS_ACCEL_ERR_STATE, "ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED"},
    {507904, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_COMM_OP_RETRY_FAIL"},
    {507905, DS_ACCEL_ERR_TIMEOUT, "ACL_ERROR_SNAPSHOT_LOCK_TIMEOUT"},
    {507906, DS_ACCEL_ERR_STATE, "ACL_ERROR_SNAPSHOT_LOCK_FAILED"},
    {507907, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_SNAPSHOT_UNLOCK_FAILED"},
    {507908, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_SNAPSHOT_BACKUP_FAILED"},
    {507909, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_SNAPSHOT_RESTORE_FAILED"},
    {507910, DS_ACCEL_ERR_INVALID, "ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED"},
    {507911, DS_ACCEL_ERR_INVALID, "ACL_ERROR_HOST_MEMORY_NOT_REGISTERED"},
    {507912, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_SNAPSHOT_CALLBACK_FAILED"},
    {507913, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_SNAPSHOT_REGISTER_CALLBACK_FAILED"},
    {507914, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_L3_PORT_ERROR"},
    {507915, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_CCU_TIMEOUT"},
    {507916, DS_ACCEL_ERR_DRIVER, "ACL_ERROR_RT_CCU_EXCEPTION"},
};

static void npu_describe(void *runtime, int64_t code, int32_t *status_out, const char **name_out)
{
    (void)runtime;
    *status_out = DS_ACCEL_ERR_DRIVER;
    *name_out = NULL;
    for (size_t i = 0; i < sizeof(acl_codes) / sizeof(acl_codes[0]); i++) {
        if (acl_codes[i].code == code) {
            *status_out = acl_codes[i].status;
            *name_out = acl_codes[i].name;
            return;
        }
    }
}

/* ---- the backend ---------------------------------------------------------------------------- */

static int32_t npu_backend_info(ds_accel_plugin_instance_t *instance,
                                struct ds_accel_backend_info *info, struct ds_accel_error *error)
{
    const struct acl_api *acl = &NPU(instance)->acl;

    (void)error;
    snprintf(info->communication_backend, sizeof(info->communication_backend), "hccl");
    snprintf(info->compile_backend, sizeof(info->compile_backend), "inductor");
    npu_runtime_version(instance->host, info->runtime_version);
    npu_driver_version(instance->host, info->driver_version);
    if (acl->aclmdlRICaptureBegin == NULL || acl->aclmdlRICaptureEnd == NULL ||
        acl->aclmdlRIExecuteAsync == NULL || acl->aclmdlRIDestroy == NULL) {
        info->flags &= ~DS_ACCEL_FLAG_GRAPHS;
    }
    if (!npu_has_vmem(acl)) {
        info->flags &= ~DS_ACCEL_FLAG_VIRTUAL_MEMORY;
    }
    if (acl->aclrtIpcMemGetExportKey == NULL || acl->aclrtIpcMemImportByKey == NULL ||
        acl->aclrtIpcMemClose == NULL) {
        info->flags &= ~DS_ACCEL_FLAG_MEMORY_IPC;
        info->memory_handle_bytes = 0;
    }
    if (acl->aclrtIpcGetEventHandle == NULL || acl->aclrtIpcOpenEventHandle == NULL) {
        info->flags &= ~DS_ACCEL_FLAG_EVENT_IPC;
        info->event_handle_bytes = 0;
    }
    return DS_ACCEL_OK;
}

#define HARDWARE \
    "pci 19e5:12\n" \
    "node /dev/davinci_manager\n" \
    "node /dev/devmm_svm\n" \
    "node /dev/hisi_hdc\n" \
    "node /dev/davinci[0-9]*\n"

static const struct vendor_pattern pattern = {
    .hardware = HARDWARE,
    .needed_nodes =
        (const char *const[]){"/dev/davinci_manager", "/dev/devmm_svm", "/dev/hisi_hdc", NULL},
    .driver = "devdrv_device_driver",
};

static const struct vendor_visible visible[] = {
    {.variable = NPU_VISIBLE, .separator = ",", .is_renumbered = VENDOR_KEEPS_ORDER},
};

const struct vendor_backend vendor_backend = {
    .name = "npu",
    .flags = DS_ACCEL_FLAG_GRAPHS | DS_ACCEL_FLAG_VIRTUAL_MEMORY | DS_ACCEL_FLAG_MEMORY_IPC |
             DS_ACCEL_FLAG_EVENT_IPC,
    .pattern = &pattern,
    .visible = visible,
    .visible_count = 1,
    .export_prefixes = (const char *const[]){"ASCEND", "HCCL", "LD_LIBRARY", "PATH", NULL},
    .memory_handle_bytes = ACL_IPC_KEY_BYTES,
    .event_handle_bytes = sizeof(struct acl_ipc_event),
    .device_wait_breaks_captures = 1,
    .captures_no_ipc_events = 1, /* according to CANN's manual, for events of ACL_EVENT_IPC */
    .allocation_align_bytes = 64,
    .probes_in_child = 1, /* aclInit() cannot be undone and repeated */

    .open = npu_open,
    .close = npu_close,
    .count = npu_count,
    .describe = npu_describe,
    .backend_info = npu_backend_info,

    .identify = npu_identify,
    .device_open = npu_device_open,
    .device_close = npu_device_close,
    .takes_native_context = 1,
    .enter = npu_enter,
    .leave = npu_leave,
    .enters_for_streams = 1,
    .get_current = npu_get_current,
    .set_current = npu_set_current,
    .device_synchronize = npu_device_synchronize,
    .device_health = npu_device_health,

    .stream_create = npu_stream_create,
    .stream_destroy = npu_stream_destroy,
    .stream_priority_range = npu_stream_priority_range,
    .stream_synchronize = npu_stream_synchronize,
    .stream_query = npu_stream_query,
    .stream_wait_event = npu_stream_wait_event,
    .stream_host_task = npu_stream_host_task,

    .event_create = npu_event_create,
    .event_destroy = npu_event_destroy,
    .event_record = npu_event_record,
    .event_query = npu_event_query,
    .event_synchronize = npu_event_synchronize,
    .event_elapsed_ms = npu_event_elapsed_ms,

    .alloc = npu_alloc,
    .free = npu_free,
    .alloc_pinned = npu_alloc_pinned,
    .free_pinned = npu_free_pinned,
    .host_register = npu_host_register,
    .host_unregister = npu_host_unregister,
    .copy = npu_copy,
    .copy_async = npu_copy_async,
    .copy_peer_async = npu_copy_peer_async,
    .fill_async = npu_fill_async,
    /*
     * Pinned memory belongs to the process, not to a device, so every device can use it. The vendor
     * does not document whether the copies of all devices are equally fast.
     */
    .pinned_flags = DS_ACCEL_PINNED_PORTABLE,
    .fill_widths = 1,
    .memory_info = npu_memory_info,

    .vmem_granularity = npu_vmem_granularity,
    .vmem_reserve = npu_vmem_reserve,
    .vmem_release = npu_vmem_release,
    .vmem_create = npu_vmem_create,
    .vmem_destroy = npu_vmem_destroy,
    .vmem_map = npu_vmem_map,
    .vmem_unmap = npu_vmem_unmap,
    .vmem_set_access = npu_vmem_set_access,

    .capture_begin = npu_capture_begin,
    .capture_end = npu_capture_end,
    .capture_status = npu_capture_status,
    .graph_destroy = npu_graph_destroy,
    .graph_launch = npu_graph_launch,

    .dtype_support = npu_dtype_support,
    .telemetry = npu_telemetry,
    .processes = npu_processes,
    .range_push = npu_range_push,
    .range_pop = npu_range_pop,
    .visible_token = npu_visible_token,

    .peer_can_access = npu_peer_can_access,
    .peer_enable = npu_peer_enable,
    .peer_disable = npu_peer_disable,
    .ipc_memory_export = npu_ipc_export,
    .ipc_memory_unexport = npu_ipc_unexport,
    .ipc_memory_open = npu_ipc_open,
    .ipc_memory_close = npu_ipc_close,
    .ipc_event_export = npu_ipc_event_export,
    .ipc_event_open = npu_ipc_event_open,
    .wraps_events = 1,
};

DS_ACCEL_PLUGIN("npu", "ds-accel", "0.1.0", DS_ACCEL_FEATURE_CONFIG | DS_ACCEL_FEATURE_MACHINE, 0,
                vendor_fill);
DS_ACCEL_PLUGIN_HARDWARE(HARDWARE);
