/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The function table through which ds_accel_report() calls the reports and formatters of
 * core/report. */
#include "base/text.h"
#include "report/report.h"

int32_t (*ds_accel__report_recording)(ds_accel_t *context, json_t **tree_out);

static int32_t make_tree(ds_accel_t *context, uint32_t report, const char *name, uint32_t format,
                         json_t **tree_out)
{
    switch (report) {
    case DS_ACCEL_REPORT_MEMORY:
        return ds_accel__report_memory(context, name, tree_out);
    case DS_ACCEL_REPORT_DOCTOR:
        return ds_accel__report_doctor(context, tree_out);
    case DS_ACCEL_REPORT_BUNDLE:
        return ds_accel__report_bundle(context, format, tree_out);
    case DS_ACCEL_REPORT_TOPO:
        return ds_accel__report_topo(context, name, tree_out);
    case DS_ACCEL_REPORT_CACHE:
        return ds_accel__report_cache(context, tree_out);
    case DS_ACCEL_REPORT_QUARANTINE:
        return ds_accel__report_quarantine(context, tree_out);
    case DS_ACCEL_REPORT_RECORDING:
        return ds_accel__report_recording(context, tree_out);
    default:
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "there is no report %u", report);
    }
}

static char *write_tree(uint32_t report, json_t *tree, uint32_t format)
{
    struct ds_accel__text text = {0};
    char *written = NULL;

    if (report != DS_ACCEL_REPORT_MEMORY &&
        (report != DS_ACCEL_REPORT_TOPO || (format & DS_ACCEL_FORMAT_SVG) == 0)) {
        return ds_accel__report_text(report, tree, format);
    }
    if ((report == DS_ACCEL_REPORT_TOPO ? ds_accel__topo_svg(tree, &text)
                                        : ds_accel__memory_tree_svg(tree, &text)) >= 0) {
        written = ds_accel__text_take(&text);
    }
    ds_accel__text_clear(&text);
    return written;
}

__attribute__((constructor)) static void set_tools(void)
{
    static const struct ds_accel__report_tools tools = {
        .make_tree = make_tree,
        .write = write_tree,
    };

    __atomic_store_n(&ds_accel__report_tools, &tools, __ATOMIC_RELEASE);
}
