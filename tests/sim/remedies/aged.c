/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A plugin of one PCI device, for the reasons that no vendor's plugin reports: it does not wake a
 * sleeping device, and rejects a device of an old generation. It reads both states from the
 * machine's sysfs at every probe, so that the printed remedy can really be applied.
 * test_remedies.sh builds it.
 */
#include <plugin-api.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICE "/sys/bus/pci/devices/0000:18:00.0"
#define OLDEST_DEVICE 0x2000ul

struct ds_accel_plugin_instance {
    char unused;
};

static void read_attribute(const struct ds_accel_host *host, const char *name, char *text,
                           size_t text_size)
{
    char path[512];
    FILE *file;

    text[0] = '\0';
    snprintf(path, sizeof(path), "%s" DEVICE "/%s", host->machine_root, name);
    file = fopen(path, "re");
    if (file != NULL) {
        if (fgets(text, (int)text_size, file) != NULL) {
            text[strcspn(text, "\n")] = '\0';
        }
        fclose(file);
    }
}

static int32_t aged_probe(const struct ds_accel_host *host, struct ds_accel_verdict *verdict,
                          struct ds_accel_error *error)
{
    char status[32];
    char device[32];

    (void)error;
    read_attribute(host, "power/runtime_status", status, sizeof(status));
    read_attribute(host, "device", device, sizeof(device));
    verdict->state = DS_ACCEL_PROBE_UNAVAILABLE;
    if (strcmp(status, "suspended") == 0) {
        verdict->reason = DS_ACCEL_REASON_DEVICE_ASLEEP;
        snprintf(verdict->detail, sizeof(verdict->detail), DEVICE "/power/control lets it sleep");
    } else if (strtoul(device, NULL, 16) < OLDEST_DEVICE) {
        verdict->reason = DS_ACCEL_REASON_DEVICE_TOO_OLD;
        snprintf(verdict->detail, sizeof(verdict->detail), DEVICE "/device is before %#lx",
                 OLDEST_DEVICE);
    } else {
        verdict->state = DS_ACCEL_PROBE_AVAILABLE;
        verdict->device_count = 1;
    }
    return DS_ACCEL_OK;
}

static int32_t aged_init(const struct ds_accel_host *host,
                         ds_accel_plugin_instance_t **instance_out, struct ds_accel_error *error)
{
    static struct ds_accel_plugin_instance only;

    (void)host;
    (void)error;
    *instance_out = &only;
    return DS_ACCEL_OK;
}

static void aged_shutdown(ds_accel_plugin_instance_t *instance)
{
    (void)instance;
}

static int32_t aged_device_count(ds_accel_plugin_instance_t *instance, uint32_t *count_out,
                                 struct ds_accel_error *error)
{
    (void)instance;
    (void)error;
    *count_out = 1;
    return DS_ACCEL_OK;
}

static int32_t aged_device_open(ds_accel_plugin_instance_t *instance, uint32_t index,
                                ds_accel_plugin_device_t **device_out, struct ds_accel_error *error)
{
    (void)instance;
    (void)index;
    (void)device_out;
    (void)error;
    return DS_ACCEL_ERR_UNSUPPORTED;
}

static void aged_device_close(ds_accel_plugin_device_t *device)
{
    (void)device;
}

static void fill(struct ds_accel_plugin *table)
{
    table->probe = aged_probe;
    table->init = aged_init;
    table->shutdown = aged_shutdown;
    table->device_count = aged_device_count;
    table->device_open = aged_device_open;
    table->device_close = aged_device_close;
}

DS_ACCEL_PLUGIN("aged", "ds-accel tests", "1.0", DS_ACCEL_FEATURE_MACHINE, 0, fill);
