/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Sensors and ranges. The libraries are opened at first use: rocm_smi, or amd_smi if rocm_smi
 * cannot be opened and initialized. Values that the opened library does not report, or all values
 * without a library, are read from the driver's files in sysfs. Reading a value neither wakes a
 * device nor creates a context; a suspended device is not read at all.
 *
 * rsmi_init() prints to stderr if /sys/class/drm does not exist, as in some containers: in that
 * case the plugin opens neither library.
 */
#include "sensors.h"

#include <dirent.h>
#include <unistd.h>

#define RSMI(name) VENDOR_REQUIRED(struct rsmi_api, name)
#define AMDSMI(name) VENDOR_REQUIRED(struct amdsmi_api, name)

static const struct vendor_symbol rsmi_symbols[] = {
    RSMI(rsmi_init),
    RSMI(rsmi_shut_down),
    RSMI(rsmi_num_monitor_devices),
    RSMI(rsmi_dev_pci_id_get),
    RSMI(rsmi_dev_memory_total_get),
    RSMI(rsmi_dev_memory_usage_get),
    RSMI(rsmi_dev_busy_percent_get),
    RSMI(rsmi_dev_memory_busy_percent_get),
    RSMI(rsmi_dev_temp_metric_get),
    RSMI(rsmi_dev_power_ave_get),
    VENDOR_OPTIONAL(struct rsmi_api, rsmi_dev_current_socket_power_get, "ROCm 6.0"),
    RSMI(rsmi_dev_power_cap_get),
    RSMI(rsmi_dev_energy_count_get),
    VENDOR_OPTIONAL(struct rsmi_api, rsmi_topo_get_link_type, NULL),
    VENDOR_OPTIONAL(struct rsmi_api, rsmi_topo_get_link_weight, NULL),
    VENDOR_OPTIONAL(struct rsmi_api, rsmi_minmax_bandwidth_get, "ROCm 5.0"),
};

static const struct vendor_symbol amdsmi_symbols[] = {
    AMDSMI(amdsmi_init),
    AMDSMI(amdsmi_shut_down),
    AMDSMI(amdsmi_get_socket_handles),
    AMDSMI(amdsmi_get_processor_handles),
    AMDSMI(amdsmi_get_gpu_device_bdf),
    AMDSMI(amdsmi_get_gpu_activity),
    AMDSMI(amdsmi_get_temp_metric),
    AMDSMI(amdsmi_get_gpu_memory_total),
    AMDSMI(amdsmi_get_gpu_memory_usage),
    AMDSMI(amdsmi_get_energy_count),
    VENDOR_OPTIONAL(struct amdsmi_api, amdsmi_topo_get_link_type, NULL),
    VENDOR_OPTIONAL(struct amdsmi_api, amdsmi_topo_get_link_weight, NULL),
    VENDOR_OPTIONAL(struct amdsmi_api, amdsmi_get_minmax_bandwidth_between_processors, NULL),
};

static const struct vendor_symbol roctx_symbols[] = {
    VENDOR_REQUIRED(struct roctx_api, roctxRangePushA),
    VENDOR_REQUIRED(struct roctx_api, roctxRangePop),
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *const rsmi_names[] = {"librocm_smi64.so.7",
                                         "librocm_smi64.so.6",
                                         "librocm_smi64.so.5",
                                         "librocm_smi64.so.1",
                                         "librocm_smi64.so",
                                         "/opt/rocm/lib/librocm_smi64.so",
                                         NULL};
static const char *const amdsmi_names[] = {"libamd_smi.so.26",
                                           "libamd_smi.so.25",
                                           "libamd_smi.so.24",
                                           "libamd_smi.so",
                                           "/opt/rocm/lib/libamd_smi.so",
                                           NULL};
static const char *const roctx_names[] = {"librocprofiler-sdk-roctx.so.1",
                                          "librocprofiler-sdk-roctx.so",
                                          "libroctx64.so.4",
                                          "libroctx64.so",
                                          "/opt/rocm/lib/libroctx64.so",
                                          NULL};

struct rocm_sensors *rocm_sensors_create(const struct ds_accel_host *host)
{
    struct rocm_sensors *sensors = calloc(1, sizeof(*sensors));

    if (sensors == NULL) {
        return NULL;
    }
    if (pthread_mutex_init(&sensors->lock, NULL) != 0) {
        free(sensors);
        return NULL;
    }
    sensors->host = host;
    return sensors;
}

void rocm_sensors_destroy(struct rocm_sensors *sensors)
{
    if (sensors == NULL) {
        return;
    }
    if (sensors->source == SOURCE_RSMI) {
        (void)sensors->rsmi.rsmi_shut_down();
    } else if (sensors->source == SOURCE_AMDSMI) {
        (void)sensors->amdsmi.amdsmi_shut_down();
    }
    pthread_mutex_destroy(&sensors->lock);
    free(sensors);
}

/* -- opening -- */

static int open_rsmi(struct rocm_sensors *sensors, struct vendor_problem *problem)
{
    int code;

    if (vendor_lib_open(&sensors->smi_lib, sensors->host, "smi_library", rsmi_names, problem) !=
            0 ||
        vendor_lib_bind(&sensors->smi_lib, rsmi_symbols, COUNT(rsmi_symbols), &sensors->rsmi,
                        problem) != 0) {
        return -1;
    }
    code = sensors->rsmi.rsmi_init(0);
    return code == RSMI_SUCCESS
               ? 0
               : vendor_problem_set(problem, DS_ACCEL_REASON_DRIVER_FAILED, "%s: rsmi_init(0): %d",
                                    sensors->smi_lib.path, code);
}

static int open_amdsmi(struct rocm_sensors *sensors, struct vendor_problem *problem)
{
    int code;

    if (vendor_lib_open(&sensors->smi_lib, sensors->host, NULL, amdsmi_names, problem) != 0 ||
        vendor_lib_bind(&sensors->smi_lib, amdsmi_symbols, COUNT(amdsmi_symbols), &sensors->amdsmi,
                        problem) != 0) {
        return -1;
    }
    code = sensors->amdsmi.amdsmi_init(AMDSMI_INIT_GPUS);
    return code == AMDSMI_SUCCESS
               ? 0
               : vendor_problem_set(problem, DS_ACCEL_REASON_DRIVER_FAILED,
                                    "%s: amdsmi_init(2): %d", sensors->smi_lib.path, code);
}

enum rocm_source rocm_sensors_source(struct rocm_sensors *sensors)
{
    struct vendor_problem problem = {0};
    struct vendor_problem other = {0};
    char path[512];

    if (sensors->source != SOURCE_UNTRIED) {
        return sensors->source;
    }
    snprintf(path, sizeof(path), "%s/sys/class/drm", sensors->host->machine_root);
    if (access(path, F_OK) != 0) {
        sensors->source = SOURCE_NONE;
        vendor_log(sensors->host, DS_ACCEL_LOG_DEBUG, "no sensors: there is no /sys/class/drm");
    } else if (open_rsmi(sensors, &problem) == 0) {
        sensors->source = SOURCE_RSMI;
    } else if (open_amdsmi(sensors, &other) == 0) {
        sensors->source = SOURCE_AMDSMI;
    } else {
        sensors->source = SOURCE_NONE;
        vendor_log(sensors->host, DS_ACCEL_LOG_DEBUG, "sensors by sysfs alone: %s; %s",
                   problem.detail, other.detail);
    }
    return sensors->source;
}

/* -- telemetry members: a value of an earlier source is not overwritten -- */

static int lacks(const struct ds_accel_telemetry *telemetry, uint64_t member)
{
    return (telemetry->valid & member) == 0;
}

static void take_percent(struct ds_accel_telemetry *telemetry, uint64_t member, uint32_t *place,
                         uint64_t percent)
{
    if (lacks(telemetry, member) && percent <= 100) {
        *place = (uint32_t)percent;
        telemetry->valid |= member;
    }
}

static void take_u64(struct ds_accel_telemetry *telemetry, uint64_t member, uint64_t *place,
                     uint64_t value)
{
    if (lacks(telemetry, member)) {
        *place = value;
        telemetry->valid |= member;
    }
}

static void take_temperature(struct ds_accel_telemetry *telemetry, int64_t millidegrees)
{
    if (lacks(telemetry, DS_ACCEL_TELEMETRY_TEMPERATURE)) {
        telemetry->temperature_millidegrees_c = (int32_t)millidegrees;
        telemetry->valid |= DS_ACCEL_TELEMETRY_TEMPERATURE;
    }
}

static void take_memory(struct ds_accel_telemetry *telemetry, uint64_t total, uint64_t used)
{
    if (lacks(telemetry, DS_ACCEL_TELEMETRY_MEMORY) && used <= total) {
        telemetry->memory_total_bytes = total;
        telemetry->memory_used_bytes = used;
        telemetry->valid |= DS_ACCEL_TELEMETRY_MEMORY;
    }
}

/* Stores the energy; count is the counter, and resolution the microjoules of one count. */
static void take_energy(struct ds_accel_telemetry *telemetry, uint64_t count, float resolution)
{
    if (resolution > 0) {
        take_u64(telemetry, DS_ACCEL_TELEMETRY_ENERGY, &telemetry->energy_millijoules,
                 (uint64_t)((double)count * (double)resolution / 1000.0));
    }
}

/* -- rocm_smi -- */

/*
 * Converts a PCI address to rocm_smi's number, domain << 32 | bus << 8 | device << 3 | function;
 * newer releases add a partition in bits 28 to 31. Returns UINT64_MAX for any other text.
 */
static uint64_t rsmi_address(const char *pci_address)
{
    unsigned int domain = 0;
    unsigned int bus = 0;
    unsigned int slot = 0;
    unsigned int function = 0;

    if (sscanf(pci_address, "%x:%x:%x.%x", &domain, &bus, &slot, &function) != 4) {
        return UINT64_MAX;
    }
    return (uint64_t)domain << 32 | (uint64_t)bus << 8 | slot << 3 | function;
}

int rocm_find_rsmi(const struct rsmi_api *rsmi, const char *pci_address, uint32_t *index_out)
{
    const uint64_t partition = UINT64_C(15) << 28;
    uint64_t wanted = rsmi_address(pci_address);
    uint64_t address = 0;
    uint32_t count = 0;
    uint32_t i;

    if (rsmi->rsmi_num_monitor_devices(&count) != RSMI_SUCCESS) {
        return -1;
    }
    for (i = 0; i < count; i++) {
        if (rsmi->rsmi_dev_pci_id_get(i, &address) == RSMI_SUCCESS &&
            (address & ~partition) == wanted) {
            *index_out = i;
            return 0;
        }
    }
    return -1;
}

static void ask_rsmi_power(const struct rsmi_api *rsmi, uint32_t index,
                           struct ds_accel_telemetry *telemetry)
{
    uint64_t microwatts = 0;
    uint64_t stamp = 0;
    uint64_t count = 0;
    float resolution = 0;

    if (rsmi->rsmi_dev_power_ave_get(index, 0, &microwatts) == RSMI_SUCCESS ||
        (rsmi->rsmi_dev_current_socket_power_get != NULL &&
         rsmi->rsmi_dev_current_socket_power_get(index, &microwatts) == RSMI_SUCCESS)) {
        take_u64(telemetry, DS_ACCEL_TELEMETRY_POWER, &telemetry->power_milliwatts,
                 microwatts / 1000);
    }
    if (rsmi->rsmi_dev_power_cap_get(index, 0, &microwatts) == RSMI_SUCCESS) {
        take_u64(telemetry, DS_ACCEL_TELEMETRY_POWER_LIMIT, &telemetry->power_limit_milliwatts,
                 microwatts / 1000);
    }
    if (rsmi->rsmi_dev_energy_count_get(index, &count, &resolution, &stamp) == RSMI_SUCCESS) {
        take_energy(telemetry, count, resolution);
    }
}

static void ask_rsmi(const struct rsmi_api *rsmi, const char *pci_address,
                     struct ds_accel_telemetry *telemetry)
{
    uint32_t index;
    uint32_t percent = 0;
    uint64_t total = 0;
    uint64_t used = 0;
    int64_t temperature = 0;

    if (rocm_find_rsmi(rsmi, pci_address, &index) != 0) {
        return;
    }
    if (rsmi->rsmi_dev_busy_percent_get(index, &percent) == RSMI_SUCCESS) {
        take_percent(telemetry, DS_ACCEL_TELEMETRY_UTILIZATION, &telemetry->utilization_percent,
                     percent);
    }
    if (rsmi->rsmi_dev_memory_busy_percent_get(index, &percent) == RSMI_SUCCESS) {
        take_percent(telemetry, DS_ACCEL_TELEMETRY_MEMORY_UTILIZATION,
                     &telemetry->memory_utilization_percent, percent);
    }
    if (rsmi->rsmi_dev_memory_total_get(index, RSMI_MEMORY_VRAM, &total) == RSMI_SUCCESS &&
        rsmi->rsmi_dev_memory_usage_get(index, RSMI_MEMORY_VRAM, &used) == RSMI_SUCCESS) {
        take_memory(telemetry, total, used);
    }
    /*
     * Accelerators such as MI300 have no edge sensor, so the junction sensor is read if the edge
     * sensor cannot be read.
     */
    if (rsmi->rsmi_dev_temp_metric_get(index, RSMI_TEMPERATURE_EDGE, RSMI_TEMPERATURE_CURRENT,
                                       &temperature) == RSMI_SUCCESS ||
        rsmi->rsmi_dev_temp_metric_get(index, RSMI_TEMPERATURE_JUNCTION, RSMI_TEMPERATURE_CURRENT,
                                       &temperature) == RSMI_SUCCESS) {
        take_temperature(telemetry, temperature);
    }
    ask_rsmi_power(rsmi, index, telemetry);
}

/* -- amd_smi -- */

#define SOCKETS_MAX 64
#define PROCESSORS_MAX 64

/*
 * Converts a PCI address to amd_smi's number: as rsmi_address(), but with the domain in bits 16 to
 * 63.
 */
static uint64_t amdsmi_address(const char *pci_address)
{
    uint64_t address = rsmi_address(pci_address);

    return address == UINT64_MAX ? address : address >> 32 << 16 | (address & 0xffff);
}

void *rocm_find_amdsmi(const struct amdsmi_api *amdsmi, const char *pci_address)
{
    void *sockets[SOCKETS_MAX];
    void *processors[PROCESSORS_MAX];
    uint64_t wanted = amdsmi_address(pci_address);
    uint64_t address = 0;
    uint32_t socket_count = SOCKETS_MAX;
    uint32_t count;
    uint32_t i;
    uint32_t j;

    if (amdsmi->amdsmi_get_socket_handles(&socket_count, sockets) != AMDSMI_SUCCESS) {
        return NULL;
    }
    for (i = 0; i < socket_count && i < SOCKETS_MAX; i++) {
        count = PROCESSORS_MAX;
        if (amdsmi->amdsmi_get_processor_handles(sockets[i], &count, processors) !=
            AMDSMI_SUCCESS) {
            continue;
        }
        for (j = 0; j < count && j < PROCESSORS_MAX; j++) {
            if (amdsmi->amdsmi_get_gpu_device_bdf(processors[j], &address) == AMDSMI_SUCCESS &&
                address == wanted) {
                return processors[j];
            }
        }
    }
    return NULL;
}

/*
 * Converts a temperature: documented in thousandths of a degree, but some releases report whole
 * degrees, so a value up to 1000 counts as degrees.
 */
static int64_t amdsmi_millidegrees(int64_t temperature)
{
    return temperature > 1000 ? temperature : temperature * 1000;
}

static void ask_amdsmi(const struct amdsmi_api *amdsmi, const char *pci_address,
                       struct ds_accel_telemetry *telemetry)
{
    void *processor = rocm_find_amdsmi(amdsmi, pci_address);
    struct amdsmi_activity activity;
    uint64_t total = 0;
    uint64_t used = 0;
    int64_t temperature = 0;
    float resolution = 0;

    if (processor == NULL) {
        return;
    }
    memset(&activity, 0, sizeof(activity));
    if (amdsmi->amdsmi_get_gpu_activity(processor, &activity) == AMDSMI_SUCCESS) {
        take_percent(telemetry, DS_ACCEL_TELEMETRY_UTILIZATION, &telemetry->utilization_percent,
                     activity.compute_percent);
        take_percent(telemetry, DS_ACCEL_TELEMETRY_MEMORY_UTILIZATION,
                     &telemetry->memory_utilization_percent, activity.memory_percent);
    }
    if (amdsmi->amdsmi_get_gpu_memory_total(processor, AMDSMI_MEMORY_VRAM, &total) ==
            AMDSMI_SUCCESS &&
        amdsmi->amdsmi_get_gpu_memory_usage(processor, AMDSMI_MEMORY_VRAM, &used) ==
            AMDSMI_SUCCESS) {
        take_memory(telemetry, total, used);
    }
    if (amdsmi->amdsmi_get_temp_metric(processor, AMDSMI_TEMPERATURE_EDGE,
                                       AMDSMI_TEMPERATURE_CURRENT,
                                       &temperature) == AMDSMI_SUCCESS ||
        amdsmi->amdsmi_get_temp_metric(processor, AMDSMI_TEMPERATURE_JUNCTION,
                                       AMDSMI_TEMPERATURE_CURRENT,
                                       &temperature) == AMDSMI_SUCCESS) {
        take_temperature(telemetry, amdsmi_millidegrees(temperature));
    }
    if (amdsmi->amdsmi_get_energy_count(processor, &total, &resolution, &used) == AMDSMI_SUCCESS) {
        take_energy(telemetry, total, resolution);
    }
}

/* -- sysfs: the driver's files in the kernel's hwmon interface -- */

static int read_number(const struct ds_accel_host *host, const char *hwmon, const char *name,
                       uint64_t *value_out)
{
    char path[400];
    char line[64];

    snprintf(path, sizeof(path), "%s/%s", hwmon, name);
    return vendor_read_line(host, path, line, sizeof(line)) == 0 &&
                   plugin_parse_u64(line, value_out) == 0
               ? 0
               : -1;
}

/* Finds DEVICE/hwmon/hwmon<N>, the only directory there. */
static int find_hwmon(const struct ds_accel_host *host, const char *device, char *hwmon,
                      size_t hwmon_size)
{
    char path[512];
    const struct dirent *entry;
    DIR *directory;
    int found = -1;

    snprintf(path, sizeof(path), "%s%s/hwmon", host->machine_root, device);
    directory = opendir(path);
    if (directory == NULL) {
        return -1;
    }
    while (found != 0 && (entry = readdir(directory)) != NULL) {
        if (strncmp(entry->d_name, "hwmon", 5) == 0) {
            snprintf(hwmon, hwmon_size, "%s/hwmon/%.16s", device, entry->d_name);
            found = 0;
        }
    }
    closedir(directory);
    return found;
}

static void read_hwmon(const struct ds_accel_host *host, const char *device,
                       struct ds_accel_telemetry *telemetry)
{
    char hwmon[256];
    uint64_t value = 0;

    if (find_hwmon(host, device, hwmon, sizeof(hwmon)) != 0) {
        return;
    }
    /*
     * Read the edge sensor, or the junction sensor on MI300, where the driver has no file for the
     * edge.
     */
    if (read_number(host, hwmon, "temp1_input", &value) == 0 ||
        read_number(host, hwmon, "temp2_input", &value) == 0) {
        take_temperature(telemetry, (int64_t)value);
    }
    if (read_number(host, hwmon, "power1_average", &value) == 0 ||
        read_number(host, hwmon, "power1_input", &value) == 0) {
        take_u64(telemetry, DS_ACCEL_TELEMETRY_POWER, &telemetry->power_milliwatts, value / 1000);
    }
    if (read_number(host, hwmon, "power1_cap", &value) == 0) {
        take_u64(telemetry, DS_ACCEL_TELEMETRY_POWER_LIMIT, &telemetry->power_limit_milliwatts,
                 value / 1000);
    }
    if (read_number(host, hwmon, "freq1_input", &value) == 0) {
        telemetry->core_clock_khz = (uint32_t)(value / 1000);
        telemetry->valid |= DS_ACCEL_TELEMETRY_CORE_CLOCK;
    }
    if (read_number(host, hwmon, "freq2_input", &value) == 0) {
        telemetry->memory_clock_khz = (uint32_t)(value / 1000);
        telemetry->valid |= DS_ACCEL_TELEMETRY_MEMORY_CLOCK;
    }
}

static void read_sysfs(const struct ds_accel_host *host, const char *pci_address,
                       struct ds_accel_telemetry *telemetry)
{
    char device[96];
    uint64_t total = 0;
    uint64_t value = 0;

    snprintf(device, sizeof(device), "/sys/bus/pci/devices/%s", pci_address);
    if (read_number(host, device, "gpu_busy_percent", &value) == 0) {
        take_percent(telemetry, DS_ACCEL_TELEMETRY_UTILIZATION, &telemetry->utilization_percent,
                     value);
    }
    if (read_number(host, device, "mem_busy_percent", &value) == 0) {
        take_percent(telemetry, DS_ACCEL_TELEMETRY_MEMORY_UTILIZATION,
                     &telemetry->memory_utilization_percent, value);
    }
    if (read_number(host, device, "mem_info_vram_total", &total) == 0 &&
        read_number(host, device, "mem_info_vram_used", &value) == 0) {
        take_memory(telemetry, total, value);
    }
    read_hwmon(host, device, telemetry);
}

int32_t rocm_telemetry(ds_accel_plugin_instance_t *instance, uint32_t device_index,
                       struct ds_accel_telemetry *telemetry, struct ds_accel_error *error)
{
    struct rocm_sensors *sensors = ((struct rocm *)instance->runtime)->sensors;
    const char *pci_address = instance->devices[device_index].identity.pci_address;
    uint32_t power = vendor_pci_power_state(instance->host, pci_address);

    (void)error;
    if (power == DS_ACCEL_POWER_SUSPENDED || power == DS_ACCEL_POWER_OFF) {
        return DS_ACCEL_OK;
    }
    pthread_mutex_lock(&sensors->lock);
    if (rocm_sensors_source(sensors) == SOURCE_RSMI) {
        ask_rsmi(&sensors->rsmi, pci_address, telemetry);
    } else if (sensors->source == SOURCE_AMDSMI) {
        ask_amdsmi(&sensors->amdsmi, pci_address, telemetry);
    }
    pthread_mutex_unlock(&sensors->lock);
    read_sysfs(instance->host, pci_address, telemetry);
    return DS_ACCEL_OK;
}

/* -- ranges -- */

/*
 * Returns 0 if roctx can be called, else -1. If roctx is not installed, ranges have no effect, as
 * without a profiler.
 */
static int open_roctx(struct rocm_sensors *sensors)
{
    struct vendor_problem problem = {0};

    if (atomic_load(&sensors->has_roctx) != 0) {
        return 0;
    }
    pthread_mutex_lock(&sensors->lock);
    if (sensors->is_roctx_tried == 0) {
        sensors->is_roctx_tried = 1;
        if (vendor_lib_open(&sensors->roctx_lib, sensors->host, "roctx_library", roctx_names,
                            &problem) == 0 &&
            vendor_lib_bind(&sensors->roctx_lib, roctx_symbols, COUNT(roctx_symbols),
                            &sensors->roctx, &problem) == 0) {
            atomic_store(&sensors->has_roctx, 1);
        } else {
            vendor_log(sensors->host, DS_ACCEL_LOG_DEBUG, "no ranges: %s", problem.detail);
        }
    }
    pthread_mutex_unlock(&sensors->lock);
    return atomic_load(&sensors->has_roctx) != 0 ? 0 : -1;
}

int32_t rocm_range_push(ds_accel_plugin_instance_t *instance, const char *message,
                        const char *domain, const char *category, struct ds_accel_error *error)
{
    struct rocm_sensors *sensors = ((struct rocm *)instance->runtime)->sensors;

    /* roctx has neither domains nor categories, so the flag RANGE_DOMAINS is not set */
    (void)domain;
    (void)category;
    if (open_roctx(sensors) != 0) {
        return DS_ACCEL_OK;
    }
    if (sensors->roctx.roctxRangePushA(message) < 0) {
        return plugin_fail(error, DS_ACCEL_ERR_DRIVER, "roctxRangePushA(\"%s\"): failed", message);
    }
    return DS_ACCEL_OK;
}

int32_t rocm_range_pop(ds_accel_plugin_instance_t *instance, const char *domain,
                       struct ds_accel_error *error)
{
    struct rocm_sensors *sensors = ((struct rocm *)instance->runtime)->sensors;

    (void)domain;
    if (open_roctx(sensors) != 0) {
        return DS_ACCEL_OK;
    }
    if (sensors->roctx.roctxRangePop() < 0) {
        return plugin_fail(error, DS_ACCEL_ERR_STATE, "roctxRangePop: no range is open");
    }
    return DS_ACCEL_OK;
}
