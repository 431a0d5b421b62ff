/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Sensors through the device management library (DCMI), and profiler ranges through mstx. Either
 * may be absent; on many machines, only root and the driver's group can use DCMI.
 */
#include "npu.h"

#define MEGABYTE (UINT64_C(1) << 20)

/* ---- DCMI ----------------------------------------------------------------------------------- */

static const struct vendor_symbol dcmi_symbols[] = {
    VENDOR_REQUIRED(struct dcmi_api, dcmi_init),
    VENDOR_REQUIRED(struct dcmi_api, dcmi_get_card_list),
    VENDOR_REQUIRED(struct dcmi_api, dcmi_get_device_num_in_card),
    VENDOR_REQUIRED(struct dcmi_api, dcmi_get_device_logic_id),
    VENDOR_OPTIONAL(struct dcmi_api, dcmi_get_device_chip_info, NULL),
    VENDOR_OPTIONAL(struct dcmi_api, dcmi_get_device_pcie_info_v2, NULL),
    VENDOR_OPTIONAL(struct dcmi_api, dcmi_get_device_power_info, NULL),
    VENDOR_OPTIONAL(struct dcmi_api, dcmi_get_device_temperature, NULL),
    VENDOR_OPTIONAL(struct dcmi_api, dcmi_get_device_hbm_info, NULL),
    VENDOR_OPTIONAL(struct dcmi_api, dcmi_get_device_utilization_rate, NULL),
    VENDOR_OPTIONAL(struct dcmi_api, dcmi_get_device_frequency, NULL),
    VENDOR_OPTIONAL(struct dcmi_api, dcmi_get_device_resource_info, NULL),
};

/* Lists the chips of all cards, with ACL's number for each chip. */
static void list_chips(struct npu_runtime *runtime)
{
    const struct dcmi_api *dcmi = &runtime->dcmi;
    int cards[NPU_MAX_DEVICES];
    int card_count = 0;

    if (dcmi->dcmi_get_card_list(&card_count, cards, NPU_MAX_DEVICES) != 0) {
        return;
    }
    for (int i = 0; i < card_count && i < NPU_MAX_DEVICES; i++) {
        int chip_count = 0;

        if (dcmi->dcmi_get_device_num_in_card(cards[i], &chip_count) != 0) {
            continue;
        }
        for (int j = 0; j < chip_count && runtime->chip_count < NPU_MAX_DEVICES; j++) {
            struct npu_chip chip = {cards[i], j, -1};

            /* The last chip of a card may be its management controller, which has no number. */
            if (dcmi->dcmi_get_device_logic_id(&chip.logic, chip.card, chip.device) == 0 &&
                chip.logic >= 0) {
                runtime->chips[runtime->chip_count++] = chip;
            }
        }
    }
}

void npu_dcmi_open(struct npu_runtime *runtime)
{
    static const char *const names[] = {"libdcmi.so", "/usr/local/dcmi/libdcmi.so", NULL};
    struct vendor_problem problem;

    memset(&problem, 0, sizeof(problem));
    if (vendor_lib_open(&runtime->dcmi_lib, runtime->host, "dcmi_library", names, &problem) != 0 ||
        vendor_lib_bind(&runtime->dcmi_lib, dcmi_symbols,
                        sizeof(dcmi_symbols) / sizeof(dcmi_symbols[0]), &runtime->dcmi,
                        &problem) != 0) {
        memset(&runtime->dcmi, 0, sizeof(runtime->dcmi));
        vendor_log(runtime->host, DS_ACCEL_LOG_DEBUG, "no telemetry: %s", problem.detail);
        return;
    }
    if (runtime->dcmi.dcmi_init() != 0) {
        vendor_log(runtime->host, DS_ACCEL_LOG_DEBUG, "no telemetry: dcmi_init() failed");
        return;
    }
    list_chips(runtime);
}

const struct npu_chip *npu_chip_of(const struct npu_runtime *runtime, uint32_t logic)
{
    for (uint32_t i = 0; i < runtime->chip_count; i++) {
        if ((uint32_t)runtime->chips[i].logic == logic) {
            return &runtime->chips[i];
        }
    }
    return NULL;
}

/* Returns the device's chip; if DCMI lists none, returns NULL and sets *error (ERR_UNSUPPORTED). */
static const struct npu_chip *chip_at(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                                      const char *call, struct ds_accel_error *error)
{
    const struct npu_runtime *runtime = NPU(instance);
    uint32_t logic = instance->devices[device_index].identity.vendor_index;
    const struct npu_chip *chip = npu_chip_of(runtime, logic);

    if (chip == NULL) {
        vendor_unsupported(error, call,
                           runtime->chip_count == 0 ? "libdcmi.so is missing or cannot be used"
                                                    : "libdcmi.so has no such chip");
    }
    return chip;
}

static uint32_t percent_of(const struct dcmi_api *dcmi, const struct npu_chip *chip, int type,
                           uint64_t bit, struct ds_accel_telemetry *telemetry)
{
    unsigned int percent = 0;

    if (dcmi->dcmi_get_device_utilization_rate != NULL &&
        dcmi->dcmi_get_device_utilization_rate(chip->card, chip->device, type, &percent) == 0 &&
        percent <= 100) {
        telemetry->valid |= bit;
        return percent;
    }
    return 0;
}

static uint32_t clock_of(const struct dcmi_api *dcmi, const struct npu_chip *chip, int type,
                         uint64_t bit, struct ds_accel_telemetry *telemetry)
{
    unsigned int mhz = 0;

    if (dcmi->dcmi_get_device_frequency != NULL &&
        dcmi->dcmi_get_device_frequency(chip->card, chip->device, type, &mhz) == 0 &&
        mhz < UINT32_MAX / 1000) {
        telemetry->valid |= bit;
        return mhz * 1000;
    }
    return 0;
}

static void read_memory(const struct dcmi_api *dcmi, const struct npu_chip *chip,
                        struct ds_accel_telemetry *telemetry)
{
    struct dcmi_hbm hbm;

    memset(&hbm, 0, sizeof(hbm));
    if (dcmi->dcmi_get_device_hbm_info != NULL &&
        dcmi->dcmi_get_device_hbm_info(chip->card, chip->device, &hbm) == 0 &&
        hbm.used_mb <= hbm.size_mb && hbm.size_mb > 0) {
        telemetry->memory_total_bytes = hbm.size_mb * MEGABYTE;
        telemetry->memory_used_bytes = hbm.used_mb * MEGABYTE;
        telemetry->valid |= DS_ACCEL_TELEMETRY_MEMORY;
    }
}

int32_t npu_telemetry(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                      struct ds_accel_telemetry *telemetry, struct ds_accel_error *error)
{
    const struct dcmi_api *dcmi = &NPU(instance)->dcmi;
    const struct npu_chip *chip =
        npu_chip_of(NPU(instance), instance->devices[device_index].identity.vendor_index);
    int value = 0;

    (void)error;
    if (chip == NULL) {
        return DS_ACCEL_OK; /* no member is valid: DCMI is absent, or this user may not use it */
    }
    telemetry->utilization_percent =
        percent_of(dcmi, chip, DCMI_UTILIZATION_AICORE, DS_ACCEL_TELEMETRY_UTILIZATION, telemetry);
    telemetry->memory_utilization_percent = percent_of(
        dcmi, chip, DCMI_UTILIZATION_HBM, DS_ACCEL_TELEMETRY_MEMORY_UTILIZATION, telemetry);
    telemetry->core_clock_khz =
        clock_of(dcmi, chip, DCMI_FREQUENCY_AICORE, DS_ACCEL_TELEMETRY_CORE_CLOCK, telemetry);
    telemetry->memory_clock_khz =
        clock_of(dcmi, chip, DCMI_FREQUENCY_HBM, DS_ACCEL_TELEMETRY_MEMORY_CLOCK, telemetry);
    if (dcmi->dcmi_get_device_temperature != NULL &&
        dcmi->dcmi_get_device_temperature(chip->card, chip->device, &value) == 0) {
        telemetry->temperature_millidegrees_c = value * 1000;
        telemetry->valid |= DS_ACCEL_TELEMETRY_TEMPERATURE;
    }
    if (dcmi->dcmi_get_device_power_info != NULL &&
        dcmi->dcmi_get_device_power_info(chip->card, chip->device, &value) == 0 && value >= 0) {
        telemetry->power_milliwatts = (uint64_t)value * 100;
        telemetry->valid |= DS_ACCEL_TELEMETRY_POWER;
    }
    read_memory(dcmi, chip, telemetry);
    return DS_ACCEL_OK;
}

#define MAX_PROCESSES 256

int32_t npu_processes(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                      struct ds_accel_process *processes, uint32_t capacity, uint32_t *count_out,
                      struct ds_accel_error *error)
{
    const struct dcmi_api *dcmi = &NPU(instance)->dcmi;
    struct dcmi_process found[MAX_PROCESSES];
    const struct npu_chip *chip = chip_at(instance, device_index, "telemetry_processes", error);
    int count = MAX_PROCESSES;
    int code;

    if (chip == NULL) {
        return DS_ACCEL_ERR_UNSUPPORTED;
    }
    if (dcmi->dcmi_get_device_resource_info == NULL) {
        return vendor_unsupported(error, "telemetry_processes",
                                  "libdcmi.so has no dcmi_get_device_resource_info");
    }
    memset(found, 0, sizeof(found));
    code = dcmi->dcmi_get_device_resource_info(chip->card, chip->device, found, &count);
    if (code != 0 || count < 0) {
        return plugin_fail(error, DS_ACCEL_ERR_DRIVER,
                           "dcmi_get_device_resource_info(card %d, device %d): %d", chip->card,
                           chip->device, code);
    }
    if (count > MAX_PROCESSES) {
        count = MAX_PROCESSES;
    }
    for (uint32_t i = 0; i < (uint32_t)count && i < capacity; i++) {
        processes[i].pid = found[i].pid;
        processes[i].memory_bytes = found[i].memory_bytes;
        processes[i].valid = DS_ACCEL_TELEMETRY_MEMORY;
    }
    *count_out = (uint32_t)count;
    return DS_ACCEL_OK;
}

/* ---- ranges --------------------------------------------------------------------------------- */

/*
 * mstx returns a number for each range, and needs the number to end the range. A stack of numbers
 * for each thread provides push and pop. A range that is nested deeper than the stack is rejected.
 */
#define MAX_DEPTH 256

static _Thread_local uint64_t range_stack[MAX_DEPTH];
static _Thread_local uint32_t range_depth;

struct mstx_api {
    uint64_t (*mstxRangeStartA)(const char *message, void *stream);
    void (*mstxRangeEnd)(uint64_t range);
};

static const struct vendor_symbol mstx_symbols[] = {
    VENDOR_REQUIRED(struct mstx_api, mstxRangeStartA),
    VENDOR_REQUIRED(struct mstx_api, mstxRangeEnd),
};

void npu_ranges_open(struct npu_runtime *runtime, const char *const *names)
{
    struct vendor_problem problem;
    struct vendor_lib lib;
    struct mstx_api api = {NULL, NULL};

    memset(&problem, 0, sizeof(problem));
    memset(&lib, 0, sizeof(lib));
    if (vendor_lib_open(&lib, runtime->host, "mstx_library", names, &problem) != 0 ||
        vendor_lib_bind(&lib, mstx_symbols, 2, &api, &problem) != 0) {
        vendor_log(runtime->host, DS_ACCEL_LOG_DEBUG, "no ranges: %s", problem.detail);
        return;
    }
    runtime->mstxRangeStartA = api.mstxRangeStartA;
    runtime->mstxRangeEnd = api.mstxRangeEnd;
}

int32_t npu_range_push(ds_accel_plugin_instance_t *instance, const char *message,
                       const char *domain, const char *category, struct ds_accel_error *error)
{
    const struct npu_runtime *runtime = NPU(instance);

    (void)domain;
    (void)category;
    if (runtime->mstxRangeStartA == NULL) {
        return DS_ACCEL_OK; /* without mstx, no profiler records ranges */
    }
    if (range_depth == MAX_DEPTH) {
        return plugin_fail(error, DS_ACCEL_ERR_LIMIT,
                           "range_push: %d ranges are open on this thread", MAX_DEPTH);
    }
    range_stack[range_depth++] = runtime->mstxRangeStartA(message, NULL);
    return DS_ACCEL_OK;
}

int32_t npu_range_pop(ds_accel_plugin_instance_t *instance, const char *domain,
                      struct ds_accel_error *error)
{
    const struct npu_runtime *runtime = NPU(instance);

    (void)domain;
    if (runtime->mstxRangeEnd == NULL) {
        return DS_ACCEL_OK;
    }
    if (range_depth == 0) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE, "range_pop: no range is open on this thread");
    }
    runtime->mstxRangeEnd(range_stack[--range_depth]);
    return DS_ACCEL_OK;
}
