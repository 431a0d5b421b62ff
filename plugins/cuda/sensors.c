/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Sensors of a device, and the processes that use the device, through NVML. */
#include "plugin.h"

#include <unistd.h>

static void read_use(const struct nvml_api *nvml, nvml_device_t device,
                     struct ds_accel_telemetry *telemetry)
{
    nvml_utilization_t use = {0, 0};
    nvml_memory_t memory = {0, 0, 0};

    if (nvml->nvmlDeviceGetUtilizationRates != NULL &&
        nvml->nvmlDeviceGetUtilizationRates(device, &use) == NVML_SUCCESS && use.gpu <= 100 &&
        use.memory <= 100) {
        telemetry->valid |= DS_ACCEL_TELEMETRY_UTILIZATION | DS_ACCEL_TELEMETRY_MEMORY_UTILIZATION;
        telemetry->utilization_percent = use.gpu;
        telemetry->memory_utilization_percent = use.memory;
    }
    if (nvml->nvmlDeviceGetMemoryInfo != NULL &&
        nvml->nvmlDeviceGetMemoryInfo(device, &memory) == NVML_SUCCESS &&
        memory.used <= memory.total) {
        telemetry->valid |= DS_ACCEL_TELEMETRY_MEMORY;
        telemetry->memory_total_bytes = memory.total;
        telemetry->memory_used_bytes = memory.used;
    }
}

static void read_power(const struct nvml_api *nvml, nvml_device_t device,
                       struct ds_accel_telemetry *telemetry)
{
    unsigned int value = 0;
    unsigned long long energy = 0;

    if (nvml->nvmlDeviceGetTemperature != NULL &&
        nvml->nvmlDeviceGetTemperature(device, NVML_TEMPERATURE_GPU, &value) == NVML_SUCCESS &&
        value < 200) {
        telemetry->valid |= DS_ACCEL_TELEMETRY_TEMPERATURE;
        telemetry->temperature_millidegrees_c = (int32_t)value * 1000;
    }
    if (nvml->nvmlDeviceGetPowerUsage != NULL &&
        nvml->nvmlDeviceGetPowerUsage(device, &value) == NVML_SUCCESS) {
        telemetry->valid |= DS_ACCEL_TELEMETRY_POWER;
        telemetry->power_milliwatts = value;
    }
    if (nvml->nvmlDeviceGetEnforcedPowerLimit != NULL &&
        nvml->nvmlDeviceGetEnforcedPowerLimit(device, &value) == NVML_SUCCESS) {
        telemetry->valid |= DS_ACCEL_TELEMETRY_POWER_LIMIT;
        telemetry->power_limit_milliwatts = value;
    }
    if (nvml->nvmlDeviceGetTotalEnergyConsumption != NULL &&
        nvml->nvmlDeviceGetTotalEnergyConsumption(device, &energy) == NVML_SUCCESS) {
        telemetry->valid |= DS_ACCEL_TELEMETRY_ENERGY;
        telemetry->energy_millijoules = energy;
    }
    if (nvml->nvmlDeviceGetFanSpeed != NULL &&
        nvml->nvmlDeviceGetFanSpeed(device, &value) == NVML_SUCCESS) {
        telemetry->valid |= DS_ACCEL_TELEMETRY_FAN;
        telemetry->fan_percent = value;
    }
}

static void read_clocks(const struct nvml_api *nvml, nvml_device_t device,
                        struct ds_accel_telemetry *telemetry)
{
    unsigned int value = 0;

    if (nvml->nvmlDeviceGetClockInfo == NULL) {
        return;
    }
    if (nvml->nvmlDeviceGetClockInfo(device, NVML_CLOCK_SM, &value) == NVML_SUCCESS) {
        telemetry->valid |= DS_ACCEL_TELEMETRY_CORE_CLOCK;
        telemetry->core_clock_khz = value * 1000;
    }
    if (nvml->nvmlDeviceGetClockInfo(device, NVML_CLOCK_MEM, &value) == NVML_SUCCESS) {
        telemetry->valid |= DS_ACCEL_TELEMETRY_MEMORY_CLOCK;
        telemetry->memory_clock_khz = value * 1000;
    }
}

static void read_reasons(const struct nvml_api *nvml, nvml_device_t device,
                         struct ds_accel_telemetry *telemetry)
{
    static const struct {
        uint32_t nvml;
        uint64_t ours;
    } reasons[] = {
        {NVML_REASON_IDLE, DS_ACCEL_THROTTLE_IDLE},
        {NVML_REASON_APPLICATION_CLOCKS, DS_ACCEL_THROTTLE_SETTING},
        {NVML_REASON_POWER_CAP, DS_ACCEL_THROTTLE_POWER},
        {NVML_REASON_HARDWARE, DS_ACCEL_THROTTLE_HARDWARE},
        {NVML_REASON_SYNC_BOOST, DS_ACCEL_THROTTLE_SETTING},
        {NVML_REASON_THERMAL, DS_ACCEL_THROTTLE_THERMAL},
        {NVML_REASON_HARDWARE_THERMAL, DS_ACCEL_THROTTLE_HARDWARE | DS_ACCEL_THROTTLE_THERMAL},
        {NVML_REASON_HARDWARE_POWER_BRAKE, DS_ACCEL_THROTTLE_HARDWARE | DS_ACCEL_THROTTLE_POWER},
        {NVML_REASON_DISPLAY_CLOCKS, DS_ACCEL_THROTTLE_SETTING},
    };
    unsigned long long bits = 0;

    if ((nvml->nvmlDeviceGetCurrentClocksEventReasons == NULL ||
         nvml->nvmlDeviceGetCurrentClocksEventReasons(device, &bits) != NVML_SUCCESS) &&
        (nvml->nvmlDeviceGetCurrentClocksThrottleReasons == NULL ||
         nvml->nvmlDeviceGetCurrentClocksThrottleReasons(device, &bits) != NVML_SUCCESS)) {
        return;
    }
    telemetry->valid |= DS_ACCEL_TELEMETRY_THROTTLE;
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        if ((bits & reasons[i].nvml) != 0) {
            telemetry->throttle_reasons |= reasons[i].ours;
        }
    }
}

/*
 * Reads the error counts since the driver was loaded, over all memories of the device. NVML fails
 * if ECC is off.
 */
static void read_ecc(const struct nvml_api *nvml, nvml_device_t device,
                     struct ds_accel_telemetry *telemetry)
{
    unsigned long long corrected = 0;
    unsigned long long uncorrected = 0;

    if (nvml->nvmlDeviceGetTotalEccErrors != NULL &&
        nvml->nvmlDeviceGetTotalEccErrors(device, NVML_ECC_CORRECTED, NVML_ECC_VOLATILE,
                                          &corrected) == NVML_SUCCESS &&
        nvml->nvmlDeviceGetTotalEccErrors(device, NVML_ECC_UNCORRECTED, NVML_ECC_VOLATILE,
                                          &uncorrected) == NVML_SUCCESS) {
        telemetry->valid |= DS_ACCEL_TELEMETRY_ECC;
        telemetry->ecc_corrected_count = corrected;
        telemetry->ecc_uncorrected_count = uncorrected;
    }
}

/*
 * ---- traffic of PCI Express ------------------------------------------------------------------
 *
 * nvmlDeviceGetPcieThroughput() blocks the caller for 20 ms in each direction, too long for a
 * polled value. Reading the counters takes less than 1 ms. A rate is the difference between two
 * polls, so the first poll has no rate. NVIDIA's manual says that the counters wrap around, but not
 * at which value: the plugin reports rates only after a counter has exceeded 32 bits.
 */

#define TRAFFIC_PERIOD_NS UINT64_C(20000000) /* minimum time between two readings */

static uint64_t per_second(uint64_t from, uint64_t to, uint64_t elapsed_ns)
{
    return (uint64_t)((double)(to - from) * 1e9 / (double)elapsed_ns);
}

/* Computes new rates if enough time has passed since the last. Caller holds the runtime's lock. */
static void note_traffic(struct cuda_traffic *traffic, uint64_t now_ns, uint64_t sent,
                         uint64_t received)
{
    uint64_t elapsed_ns = now_ns - traffic->taken_ns;

    if (traffic->taken_ns != 0 && sent >= traffic->sent_bytes &&
        received >= traffic->received_bytes) {
        if (elapsed_ns < TRAFFIC_PERIOD_NS) {
            return; /* the previous rates remain valid */
        }
        traffic->has_rates = 1;
        traffic->sent_per_s = per_second(traffic->sent_bytes, sent, elapsed_ns);
        traffic->received_per_s = per_second(traffic->received_bytes, received, elapsed_ns);
    } else {
        traffic->has_rates = 0; /* this is the first reading, or a counter was reset */
    }
    traffic->taken_ns = now_ns;
    traffic->sent_bytes = sent;
    traffic->received_bytes = received;
}

/*
 * Holds the lock from reading the counters and the clock until they are stored. Otherwise another
 * thread could store a later reading first: the counters would seem to decrease.
 */
static void read_traffic(struct cuda_runtime *runtime, nvml_device_t device, uint32_t device_index,
                         struct ds_accel_telemetry *telemetry)
{
    nvml_field_t fields[2] = {{.field = NVML_FIELD_PCIE_SENT}, {.field = NVML_FIELD_PCIE_RECEIVED}};
    uint64_t sent = 0;
    uint64_t received = 0;
    struct cuda_traffic *traffic = &runtime->traffic[device_index % CUDA_TRAFFIC_LIMIT];

    if (device_index >= CUDA_TRAFFIC_LIMIT) {
        return;
    }
    pthread_mutex_lock(&runtime->lock);
    if (nvml_ask_fields(&runtime->nvml, device, fields, 2) &&
        nvml_field_number(&fields[0], &sent) && nvml_field_number(&fields[1], &received) &&
        (sent > UINT32_MAX || received > UINT32_MAX)) {
        note_traffic(traffic, runtime->host->clock_ns(runtime->host), sent, received);
        if (traffic->has_rates) {
            telemetry->valid |= DS_ACCEL_TELEMETRY_PCIE;
            telemetry->pcie_tx_bytes_per_s = traffic->sent_per_s;
            telemetry->pcie_rx_bytes_per_s = traffic->received_per_s;
        }
    }
    pthread_mutex_unlock(&runtime->lock);
}

int32_t nvml_telemetry(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                       struct ds_accel_telemetry *telemetry, struct ds_accel_error *error)
{
    struct cuda_runtime *runtime = instance->runtime;
    const struct nvml_api *nvml = &runtime->nvml;
    nvml_device_t device = nvml_find(instance, device_index);

    (void)error;
    if (device == NULL) {
        return DS_ACCEL_OK; /* without NVML's device, no value is reported */
    }
    read_use(nvml, device, telemetry);
    read_power(nvml, device, telemetry);
    read_clocks(nvml, device, telemetry);
    read_reasons(nvml, device, telemetry);
    read_ecc(nvml, device, telemetry);
    read_traffic(runtime, device, device_index, telemetry);
    return DS_ACCEL_OK;
}

/* ---- processes ------------------------------------------------------------------------------ */

/*
 * Returns the pid that the driver reports, or 0 if this process's /proc has no such process: the
 * driver reports pids of the host's PID namespace, and this process may be in another namespace.
 */
static int32_t visible_pid(unsigned int pid)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/%u", pid);
    return pid <= INT32_MAX && access(path, F_OK) == 0 ? (int32_t)pid : 0;
}

static void fill_process(const nvml_process_t *from, struct ds_accel_process *process)
{
    process->pid = visible_pid(from->pid);
    if (from->used_bytes != UINT64_MAX) {
        process->valid = DS_ACCEL_TELEMETRY_MEMORY;
        process->memory_bytes = from->used_bytes;
    }
}

#define FIRST_ROOM 64u
#define PROCESS_LIMIT 65536u
#define ROOM_TRIES 4 /* attempts, each with a larger buffer: processes may start meanwhile */

static int32_t fail_nvml(const struct nvml_api *nvml, nvml_result_t code, uint32_t device_index,
                         struct ds_accel_error *error)
{
    struct ds_accel_error details;

    memset(&details, 0, sizeof(details));
    details.code = DS_ACCEL_ERR_DRIVER;
    details.vendor_code = code;
    snprintf(details.vendor_text, sizeof(details.vendor_text), "%.63s",
             nvml->nvmlErrorString(code));
    snprintf(details.message, sizeof(details.message),
             "nvmlDeviceGetComputeRunningProcesses_v3(device %u): %.63s (%d)", device_index,
             details.vendor_text, code);
    ds_accel_write(error, &details, sizeof(details));
    return DS_ACCEL_ERR_DRIVER;
}

/*
 * Early R535 drivers write process records of 32 bytes instead of the 24 that every header
 * declares: their record has one more member, for memory protected by confidential computing.
 * These drivers are recognized by two functions: they export
 * nvmlDeviceGetConfComputeMemSizeInfo(), introduced with that member, but not
 * nvmlDeviceGetRunningProcessDetailList(), which replaced the member.
 */
#define LONG_RECORD_BYTES 32u

static size_t record_bytes(const struct nvml_api *nvml)
{
    return nvml->nvmlDeviceGetConfComputeMemSizeInfo != NULL &&
                   nvml->nvmlDeviceGetRunningProcessDetailList == NULL
               ? LONG_RECORD_BYTES
               : sizeof(nvml_process_t);
}

/*
 * Returns a buffer of malloc() with the records of all processes that use the device, each of
 * record_bytes() bytes. The buffer has room for long records in any case. NULL: *code_out is NVML's
 * code, or NVML_SUCCESS if malloc() failed.
 */
static unsigned char *list_processes(const struct nvml_api *nvml, nvml_device_t device,
                                     unsigned int *count_out, nvml_result_t *code_out)
{
    unsigned int room = FIRST_ROOM;

    *code_out = NVML_INSUFFICIENT_SIZE;
    for (int i = 0; i < ROOM_TRIES && *code_out == NVML_INSUFFICIENT_SIZE; i++) {
        unsigned char *found = calloc(room, LONG_RECORD_BYTES);
        unsigned int count = room;

        if (found == NULL) {
            *code_out = NVML_SUCCESS;
            return NULL;
        }
        *code_out = nvml->nvmlDeviceGetComputeRunningProcesses_v3(device, &count, found);
        if (*code_out == NVML_SUCCESS) {
            *count_out = count < room ? count : room;
            return found;
        }
        free(found);
        room = count < PROCESS_LIMIT ? count + FIRST_ROOM : PROCESS_LIMIT;
    }
    return NULL;
}

int32_t nvml_processes(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                       struct ds_accel_process *processes, uint32_t capacity, uint32_t *count_out,
                       struct ds_accel_error *error)
{
    const struct cuda_runtime *runtime = instance->runtime;
    const struct nvml_api *nvml = &runtime->nvml;
    nvml_device_t device = nvml_find(instance, device_index);
    const size_t bytes = record_bytes(nvml);
    nvml_process_t process;
    unsigned char *found;
    unsigned int count = 0;
    nvml_result_t code = NVML_SUCCESS;

    if (device == NULL || nvml->nvmlDeviceGetComputeRunningProcesses_v3 == NULL) {
        return vendor_unsupported(error, "telemetry_processes",
                                  "libnvidia-ml.so.1 is absent, too old, or would wake the device");
    }
    found = list_processes(nvml, device, &count, &code);
    if (code != NVML_SUCCESS) {
        return fail_nvml(nvml, code, device_index, error);
    }
    if (found == NULL) {
        return plugin_fail(error, DS_ACCEL_ERR_NO_MEMORY, "telemetry_processes: no memory");
    }
    for (uint32_t i = 0; i < count && i < capacity; i++) {
        memcpy(&process, found + i * bytes, sizeof(process));
        fill_process(&process, &processes[i]);
    }
    free(found);
    *count_out = count;
    return DS_ACCEL_OK;
}
