/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Conformance checks: every line that the plugin logs conforms to DSA-P25. */
#include "base/text.h"
#include "conformance/conformance.h"
#include "host/probe_child.h"

#include <stdio.h>

#define GROUP "texts"

static void want_clean_log(struct ds_accel__run *run)
{
    char text[DS_ACCEL__LOG_OFFENCE_SIZE];

    EXPECT(run, !ds_accel__log_offence(text, sizeof(text)), "log: %s", text);
}

/* Check the lines logged from probe to shutdown, in a process that ran no other check. */
static void check_life(struct ds_accel__run *run)
{
    struct ds_accel_verdict verdict = {.struct_size = sizeof(verdict)};
    ds_accel_plugin_instance_t *instance;
    uint32_t count = 0;

    CALL(run, probe, run->host, &verdict);
    if (verdict.state != DS_ACCEL_PROBE_AVAILABLE) {
        ds_accel__skip(run, "it is not available");
        return;
    }
    instance = ds_accel__run_init(run, run->host);
    WANT(run, DS_ACCEL_OK, device_count, instance, &count);
    if (run->device_index < count) {
        run->table.device_close(ds_accel__run_open(run, instance, run->device_index));
    }
    run->table.shutdown(instance);
    want_clean_log(run);
}

/* Check the lines logged in earlier checks of this process, including those of rejected calls. */
static void check_calls(struct ds_accel__run *run)
{
    want_clean_log(run);
}

static const struct ds_accel__check checks[] = {
    {25, GROUP, "lines that all other checks logged", DS_ACCEL__STAGE_DEVICE, 0, check_calls, {0}},
    {25,
     GROUP,
     "lines that a life logs",
     DS_ACCEL__STAGE_TABLE,
     DS_ACCEL__CHECK_ALONE,
     check_life,
     {SLOT(probe), SLOT(init), SLOT(shutdown), SLOT(device_count), SLOT(device_open),
      SLOT(device_close)}},
};

const struct ds_accel__check_list ds_accel__checks_log = {checks, ARRAY_SIZE(checks)};
