/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Sensors through CNDev, and profiler ranges through CNPX. Either library may be absent. */
#include "mlu.h"

#include <dlfcn.h>

#define MEGABYTE (UINT64_C(1) << 20)

/* ---- CNDev ---------------------------------------------------------------------------------- */

#define OPTIONAL(name) VENDOR_OPTIONAL(struct cndev_api, name, NULL)

static const struct vendor_symbol cndev_symbols[] = {
    VENDOR_REQUIRED(struct cndev_api, cndevInit),
    VENDOR_REQUIRED(struct cndev_api, cndevGetDeviceCount),
    OPTIONAL(cndevGetDeviceHandleByIndex),
    OPTIONAL(cndevGetUUID),
    OPTIONAL(cndevGetPCIeInfoV2),
    OPTIONAL(cndevGetPCIeInfo),
    OPTIONAL(cndevGetMemoryUsageV2),
    OPTIONAL(cndevGetMemoryUsage),
    OPTIONAL(cndevGetDeviceUtilizationInfo),
    OPTIONAL(cndevGetTemperatureInfo),
    OPTIONAL(cndevGetDevicePowerInfo),
    OPTIONAL(cndevGetFrequencyInfo),
    OPTIONAL(cndevGetVersionInfo),
    OPTIONAL(cndevGetCardHealthState),
    OPTIONAL(cndevGetProcessInfo),
};

/* Whether this plugin has initialized CNDev in this process, for all its instances. */
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t is_started;

static int start(const struct cndev_api *cndev)
{
    int code = 0;

    pthread_mutex_lock(&start_lock);
    if (!is_started) {
        code = cndev->cndevInit(0);
        is_started = code == 0;
    }
    pthread_mutex_unlock(&start_lock);
    return code;
}

/*
 * Zeroes a struct that is passed to CNDev, and sets its version member to the version that
 * count_cards() found.
 */
#define BEGIN_STRUCT(runtime, value) \
    do { \
        memset(&(value), 0, sizeof(value)); \
        (value).version = (runtime)->cndev_version; \
    } while (0)

/*
 * Reads the number of cards, and stores in cndev_version which version of structs the library
 * accepts: it tries the newer version first. Returns CNDev's code.
 */
static int count_cards(struct mlu_runtime *runtime, uint32_t *count_out)
{
    static const int32_t versions[] = {CNDEV_VERSION_NEW, CNDEV_VERSION_OLD};
    int code = CNDEV_WRONG_VERSION;

    for (size_t i = 0; i < 2 && code == CNDEV_WRONG_VERSION; i++) {
        struct cndev_count count;

        runtime->cndev_version = versions[i];
        BEGIN_STRUCT(runtime, count);
        code = runtime->cndev.cndevGetDeviceCount(&count);
        if (code == 0) {
            *count_out = count.count;
        }
    }
    return code;
}

static void read_card(const struct mlu_runtime *runtime, struct mlu_card *card)
{
    const struct cndev_api *cndev = &runtime->cndev;
    struct cndev_pcie pcie;
    struct cndev_pcie_old old;
    struct cndev_uuid uuid;

    memset(&pcie, 0, sizeof(pcie));
    BEGIN_STRUCT(runtime, old);
    BEGIN_STRUCT(runtime, uuid);
    if (cndev->cndevGetPCIeInfoV2 != NULL && cndev->cndevGetPCIeInfoV2(&pcie, card->handle) == 0) {
        snprintf(card->pci_address, sizeof(card->pci_address), "%04x:%02x:%02x.%x",
                 pcie.domain & 0xffffu, pcie.bus & 0xffu, pcie.slot & 0x1fu, pcie.function & 7u);
    } else if (cndev->cndevGetPCIeInfo != NULL &&
               cndev->cndevGetPCIeInfo(&old, card->handle) == 0) {
        snprintf(card->pci_address, sizeof(card->pci_address), "%04x:%02x:%02x.%x",
                 old.domain & 0xffffu, old.bus & 0xffu, old.slot & 0x1fu, old.function & 7u);
    }
    if (cndev->cndevGetUUID != NULL && cndev->cndevGetUUID(&uuid, card->handle) == 0) {
        uuid.uuid[sizeof(uuid.uuid) - 1] = '\0';
        snprintf(card->uuid_text, sizeof(card->uuid_text), "%s", uuid.uuid);
    }
}

static void list_cards(struct mlu_runtime *runtime)
{
    uint32_t count = 0;
    int code = count_cards(runtime, &count);

    if (code != 0) {
        vendor_log(runtime->host, DS_ACCEL_LOG_DEBUG, "no telemetry: cndevGetDeviceCount(): %d",
                   code);
        return;
    }
    for (uint32_t i = 0; i < count && i < MLU_MAX_CARDS; i++) {
        struct mlu_card *card = &runtime->cards[i];

        /* In libraries without handles, the card's number is its handle. */
        if (runtime->cndev.cndevGetDeviceHandleByIndex == NULL ||
            runtime->cndev.cndevGetDeviceHandleByIndex((int32_t)i, &card->handle) != 0) {
            card->handle = (int32_t)i;
        }
        read_card(runtime, card);
        runtime->card_count = i + 1;
    }
}

void mlu_cndev_open(struct mlu_runtime *runtime)
{
    static const char *const names[] = {"libcndev.so", "/usr/local/neuware/lib64/libcndev.so",
                                        "/usr/lib/x86_64-linux-gnu/libcndev.so",
                                        "/usr/lib/aarch64-linux-gnu/libcndev.so", NULL};
    struct vendor_problem problem;
    int code;

    memset(&problem, 0, sizeof(problem));
    if (vendor_lib_open(&runtime->cndev_lib, runtime->host, "cndev_library", names, &problem) !=
            0 ||
        vendor_lib_bind(&runtime->cndev_lib, cndev_symbols,
                        sizeof(cndev_symbols) / sizeof(cndev_symbols[0]), &runtime->cndev,
                        &problem) != 0) {
        memset(&runtime->cndev, 0, sizeof(runtime->cndev));
        vendor_log(runtime->host, DS_ACCEL_LOG_DEBUG, "no telemetry: %s", problem.detail);
        return;
    }
    code = start(&runtime->cndev);
    if (code != 0) {
        vendor_log(runtime->host, DS_ACCEL_LOG_DEBUG, "no telemetry: cndevInit(): %d", code);
        return;
    }
    list_cards(runtime);
}

int32_t mlu_card_at(const struct mlu_runtime *runtime, const char *pci_address)
{
    for (uint32_t i = 0; pci_address[0] != '\0' && i < runtime->card_count; i++) {
        if (strcmp(runtime->cards[i].pci_address, pci_address) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

void mlu_driver_version(const struct mlu_runtime *runtime, uint32_t version[4])
{
    struct cndev_versions versions;

    BEGIN_STRUCT(runtime, versions);
    if (runtime->card_count > 0 && runtime->cndev.cndevGetVersionInfo != NULL &&
        runtime->cndev.cndevGetVersionInfo(&versions, runtime->cards[0].handle) == 0) {
        memcpy(version, versions.driver, sizeof(versions.driver));
    }
}

/* ---- sensors -------------------------------------------------------------------------------- */

/* Returns NULL and sets *error (ERR_UNSUPPORTED) if there is no card for the device. */
static const struct mlu_card *card_of(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                                      const char *call, struct ds_accel_error *error)
{
    const struct mlu_runtime *runtime = MLU(instance);
    uint32_t card = instance->devices[device_index].identity.vendor_index;

    if (card >= runtime->card_count) {
        vendor_unsupported(error, call,
                           runtime->card_count == 0 ? "libcndev.so is missing or does not respond"
                                                    : "libcndev.so has no such card");
        return NULL;
    }
    return &runtime->cards[card];
}

static void read_memory(const struct mlu_runtime *runtime, const struct mlu_card *card,
                        struct ds_accel_telemetry *telemetry)
{
    const struct cndev_api *cndev = &runtime->cndev;
    struct cndev_memory memory;
    struct cndev_memory_old old;
    int64_t total = 0;
    int64_t used = 0;

    memset(&memory, 0, sizeof(memory)); /* this struct has no version member */
    BEGIN_STRUCT(runtime, old);
    if (cndev->cndevGetMemoryUsageV2 != NULL &&
        cndev->cndevGetMemoryUsageV2(&memory, card->handle) == 0) {
        total = memory.total_mb;
        used = memory.used_mb;
    } else if (cndev->cndevGetMemoryUsage != NULL &&
               cndev->cndevGetMemoryUsage(&old, card->handle) == 0) {
        total = old.total_mb;
        used = old.used_mb;
    }
    if (total > 0 && used >= 0 && used <= total) {
        telemetry->memory_total_bytes = (uint64_t)total * MEGABYTE;
        telemetry->memory_used_bytes = (uint64_t)used * MEGABYTE;
        telemetry->valid |= DS_ACCEL_TELEMETRY_MEMORY;
    }
}

static void read_load(const struct mlu_runtime *runtime, const struct mlu_card *card,
                      struct ds_accel_telemetry *telemetry)
{
    const struct cndev_api *cndev = &runtime->cndev;
    struct cndev_utilization utilization;
    struct cndev_frequency frequency;

    BEGIN_STRUCT(runtime, utilization);
    BEGIN_STRUCT(runtime, frequency);
    if (cndev->cndevGetDeviceUtilizationInfo != NULL &&
        cndev->cndevGetDeviceUtilizationInfo(&utilization, card->handle) == 0 &&
        utilization.average_percent >= 0 && utilization.average_percent <= 100) {
        telemetry->utilization_percent = (uint32_t)utilization.average_percent;
        telemetry->valid |= DS_ACCEL_TELEMETRY_UTILIZATION;
    }
    if (cndev->cndevGetFrequencyInfo != NULL &&
        cndev->cndevGetFrequencyInfo(&frequency, card->handle) == 0 && frequency.board_mhz >= 0) {
        telemetry->core_clock_khz = (uint32_t)frequency.board_mhz * 1000;
        telemetry->valid |= DS_ACCEL_TELEMETRY_CORE_CLOCK;
    }
}

static void read_heat(const struct mlu_runtime *runtime, const struct mlu_card *card,
                      struct ds_accel_telemetry *telemetry)
{
    const struct cndev_api *cndev = &runtime->cndev;
    struct cndev_temperature temperature;
    struct cndev_power power;

    BEGIN_STRUCT(runtime, temperature);
    memset(&power, 0, sizeof(power)); /* this struct has no version member */
    if (cndev->cndevGetTemperatureInfo != NULL &&
        cndev->cndevGetTemperatureInfo(&temperature, card->handle) == 0) {
        /* Report the processor's sensor if there is one, otherwise the board's. */
        telemetry->temperature_millidegrees_c =
            (temperature.chip > 0 ? temperature.chip : temperature.board) * 1000;
        telemetry->valid |= DS_ACCEL_TELEMETRY_TEMPERATURE;
    }
    if (cndev->cndevGetDevicePowerInfo != NULL &&
        cndev->cndevGetDevicePowerInfo(&power, card->handle) == 0 && power.usage >= 0) {
        telemetry->power_milliwatts = (uint64_t)power.usage * 1000;
        telemetry->valid |= DS_ACCEL_TELEMETRY_POWER;
        if (power.cap > 0) {
            telemetry->power_limit_milliwatts = (uint64_t)power.cap * 1000;
            telemetry->valid |= DS_ACCEL_TELEMETRY_POWER_LIMIT;
        }
    }
}

int32_t mlu_telemetry(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                      struct ds_accel_telemetry *telemetry, struct ds_accel_error *error)
{
    const struct mlu_runtime *runtime = MLU(instance);
    uint32_t number = instance->devices[device_index].identity.vendor_index;
    const struct mlu_card *card;

    (void)error;
    if (number >= runtime->card_count) {
        return DS_ACCEL_OK; /* no member is valid: CNDev is absent, or its call fails */
    }
    card = &runtime->cards[number];
    read_load(runtime, card, telemetry);
    read_heat(runtime, card, telemetry);
    read_memory(runtime, card, telemetry);
    return DS_ACCEL_OK;
}

#define MAX_PROCESSES 256

int32_t mlu_processes(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                      struct ds_accel_process *processes, uint32_t capacity, uint32_t *count_out,
                      struct ds_accel_error *error)
{
    const struct mlu_runtime *runtime = MLU(instance);
    struct cndev_process found[MAX_PROCESSES];
    uint32_t count = MAX_PROCESSES;
    const struct mlu_card *card = card_of(instance, device_index, "telemetry_processes", error);
    int code;

    if (card == NULL) {
        return DS_ACCEL_ERR_UNSUPPORTED;
    }
    if (runtime->cndev.cndevGetProcessInfo == NULL) {
        return vendor_unsupported(error, "telemetry_processes",
                                  "libcndev.so has no cndevGetProcessInfo");
    }
    memset(found, 0, sizeof(found));
    for (uint32_t i = 0; i < MAX_PROCESSES; i++) {
        found[i].version = runtime->cndev_version;
    }
    code = runtime->cndev.cndevGetProcessInfo(&count, found, card->handle);
    if (code != 0 && code != CNDEV_NO_SPACE) {
        return plugin_fail(error, DS_ACCEL_ERR_DRIVER, "cndevGetProcessInfo(card %u): %d",
                           instance->devices[device_index].identity.vendor_index, code);
    }
    for (uint32_t i = 0; i < count && i < capacity && i < MAX_PROCESSES; i++) {
        processes[i].pid = (int32_t)found[i].pid;
        processes[i].memory_bytes = found[i].physical_kib * 1024;
        processes[i].valid = DS_ACCEL_TELEMETRY_MEMORY;
    }
    *count_out = count < MAX_PROCESSES ? count : MAX_PROCESSES;
    return DS_ACCEL_OK;
}

/*
 * Returns true if CNDev lists the card and reports it as faulty. Then the device counts as lost
 * from now on, even if CNDev reports otherwise later.
 */
static int is_in_trouble(ds_accel_plugin_device_t *device)
{
    const struct mlu_runtime *runtime = MLU(device->instance);
    uint32_t card = device->identity.vendor_index;
    struct cndev_health health;

    BEGIN_STRUCT(runtime, health);
    if (card >= runtime->card_count || runtime->cndev.cndevGetCardHealthState == NULL ||
        runtime->cndev.cndevGetCardHealthState(&health, runtime->cards[card].handle) != 0 ||
        health.is_healthy != 0) {
        return 0;
    }
    atomic_store(&device->is_lost, 1);
    return 1;
}

int32_t mlu_judge(ds_accel_plugin_device_t *device, int32_t status, struct ds_accel_error *error)
{
    int32_t lost = DS_ACCEL_ERR_DEVICE_LOST;

    if (status != DS_ACCEL_ERR_DRIVER || !is_in_trouble(device)) {
        return status;
    }
    if (error != NULL && DS_ACCEL_HAS(error, struct ds_accel_error, code)) {
        error->code = lost;
    }
    return lost;
}

int32_t mlu_device_health(ds_accel_plugin_device_t *device, struct ds_accel_error *error)
{
    return is_in_trouble(device)
               ? plugin_fail(error, DS_ACCEL_ERR_DEVICE_LOST,
                             "cndevGetCardHealthState(card %u): the card is in trouble",
                             device->identity.vendor_index)
               : DS_ACCEL_OK;
}

/* ---- ranges --------------------------------------------------------------------------------- */

/*
 * Looks for cnpxInitInternal() in the libraries that the process has loaded, then in the library
 * whose path is in the variable CNPX_LIB_PATH, and calls the function to fill the table of range
 * functions.
 */
void mlu_ranges_open(struct mlu_runtime *runtime)
{
    const char *const names[] = {secure_getenv("CNPX_LIB_PATH"), NULL};
    void (*begin)(struct cnpx_api * api) = NULL;
    struct vendor_problem problem;
    void *symbol = dlsym(RTLD_DEFAULT, "cnpxInitInternal");

    memset(&problem, 0, sizeof(problem));
    if (symbol == NULL && names[0] != NULL &&
        vendor_lib_open(&runtime->cnpx_lib, runtime->host, NULL, names, &problem) == 0) {
        symbol = dlsym(runtime->cnpx_lib.handle, "cnpxInitInternal");
    }
    if (symbol == NULL) {
        vendor_log(runtime->host, DS_ACCEL_LOG_DEBUG, "no ranges: %s",
                   problem.detail[0] != '\0' ? problem.detail : "no cnpxInitInternal");
        return;
    }
    memcpy(&begin, &symbol, sizeof(begin));
    runtime->cnpx.state = CNPX_BEGUN;
    runtime->cnpx.version = CNPX_VERSION;
    begin(&runtime->cnpx);
}

int32_t mlu_range_push(ds_accel_plugin_instance_t *instance, const char *message,
                       const char *domain, const char *category, struct ds_accel_error *error)
{
    const struct cnpx_api *cnpx = &MLU(instance)->cnpx;

    (void)domain;
    (void)category;
    (void)error;
    if (cnpx->range_push != NULL && cnpx->range_pop != NULL) {
        cnpx->range_push(message); /* a negative result means that no profiler is attached */
    }
    return DS_ACCEL_OK; /* without CNPX, no profiler records ranges */
}

int32_t mlu_range_pop(ds_accel_plugin_instance_t *instance, const char *domain,
                      struct ds_accel_error *error)
{
    const struct cnpx_api *cnpx = &MLU(instance)->cnpx;

    (void)domain;
    (void)error;
    if (cnpx->range_push != NULL && cnpx->range_pop != NULL) {
        cnpx->range_pop();
    }
    return DS_ACCEL_OK;
}
