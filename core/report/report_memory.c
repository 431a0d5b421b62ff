/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The report memory: the current memory of a backend's devices (total, available, and used by each
 * process where the vendor reports it), as a tree and as a picture with one bar for each device.
 */
#include "base/json.h"
#include "base/text.h"
#include "host/registry.h"
#include "report/report.h"
#include "runtime/facts.h"

#include <stdio.h>
#include <stdlib.h>

#define PROCESS_LIMIT 256
#define LEFT 20.0
#define PLOT 960.0
#define WIDTH 1000.0
#define TOP 76.0
#define BAR_HEIGHT 26.0
#define STEP 74.0
#define COLOURS 7
#define DRAWN_LIMIT 1024 /* maximum number of devices drawn */

static const char style[] =
    "<style>\n"
    "text{font:12px sans-serif;fill:#222}.t{font-size:16px;font-weight:bold}\n"
    "rect{stroke:#fff;stroke-width:.4}.f{fill:#e4e4e4}.u{fill:#9a9a9a}.o{fill:none;stroke:#888;"
    "stroke-width:1}\n"
    ".s0{fill:#0b6e99}.s1{fill:#b3541e}.s2{fill:#3b7d3a}.s3{fill:#7a4fa3}.s4{fill:#a33b5f}"
    ".s5{fill:#6b6b1f}.s6{fill:#4a5a6a}\n"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}rect{stroke:#111}.f{fill:#3a3a3a}"
    ".u{fill:#777}}\n"
    "</style>\n";

/* ---- the tree ------------------------------------------------------------------------------- */

static json_t *processes_tree(const struct ds_accel__facts *facts, uint32_t index, bool *failed)
{
    const struct ds_accel_plugin *table = &facts->candidate->table;
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    struct ds_accel_process *processes = calloc(PROCESS_LIMIT, sizeof(*processes));
    json_t *array = NULL;
    uint32_t count = 0;

    if (processes == NULL) {
        *failed = true;
        return NULL;
    }
    for (size_t i = 0; i < PROCESS_LIMIT; i++) {
        processes[i].struct_size = sizeof(processes[i]);
    }
    if (table->telemetry_processes(facts->instance, index, processes, sizeof(processes[0]),
                                   PROCESS_LIMIT, &count, &error) != DS_ACCEL_OK) {
        free(processes);
        return json_null();
    }
    array = json_array();
    for (uint32_t i = 0; i < count && i < PROCESS_LIMIT; i++) {
        bool known = (processes[i].valid & DS_ACCEL_TELEMETRY_MEMORY) != 0;
        json_t *tree = json_object();

        ds_accel__json_set(tree, "pid",
                           processes[i].pid > 0 ? json_integer(processes[i].pid) : json_null(),
                           failed);
        ds_accel__json_set(
            tree, "memory_bytes",
            known ? json_integer((json_int_t)processes[i].memory_bytes) : json_null(), failed);
        *failed = json_array_append_new(array, tree) != 0 || *failed;
    }
    free(processes);
    return array;
}

/* Set a member to the value, or to null if it is not known. */
static void set_figure(json_t *tree, const char *key, bool known, uint64_t value, bool *failed)
{
    ds_accel__json_set(tree, key, known ? json_integer((json_int_t)value) : json_null(), failed);
}

static json_t *device_tree(const struct ds_accel__facts *facts, uint32_t index, bool *failed)
{
    const struct ds_accel_plugin *table = &facts->candidate->table;
    struct ds_accel_device_info info = {.struct_size = sizeof(info)};
    struct ds_accel_memory_info memory = {.struct_size = sizeof(memory)};
    struct ds_accel_telemetry telemetry = {.struct_size = sizeof(telemetry)};
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    ds_accel_plugin_device_t *device = NULL;
    json_t *tree = json_object();

    if (table->device_open(facts->instance, index, &device, &error) == DS_ACCEL_OK &&
        device != NULL) {
        if (table->device_info(device, &info, &error) != DS_ACCEL_OK) {
            info.name[0] = '\0';
        }
        if (table->mem_info(device, &memory, &error) != DS_ACCEL_OK) {
            memory.valid = 0;
        }
        table->device_close(device);
    }
    if (table->telemetry_get(facts->instance, index, &telemetry, &error) != DS_ACCEL_OK) {
        telemetry.valid = 0;
    }
    ds_accel__sanitize(info.name, sizeof(info.name));
    ds_accel__json_set(tree, "index", json_integer(index), failed);
    ds_accel__json_set(tree, "name", ds_accel__json_text(info.name), failed);
    set_figure(tree, "total_memory_bytes", (memory.valid & DS_ACCEL_MEMORY_TOTAL) != 0,
               memory.total_bytes, failed);
    set_figure(tree, "available_memory_bytes", (memory.valid & DS_ACCEL_MEMORY_AVAILABLE) != 0,
               memory.available_bytes, failed);
    set_figure(tree, "process_memory_bytes", (memory.valid & DS_ACCEL_MEMORY_PROCESS) != 0,
               memory.process_bytes, failed);
    set_figure(tree, "used_memory_bytes", (telemetry.valid & DS_ACCEL_TELEMETRY_MEMORY) != 0,
               telemetry.memory_used_bytes, failed);
    ds_accel__json_set(tree, "processes", processes_tree(facts, index, failed), failed);
    return tree;
}

static json_t *memory_tree(const struct ds_accel__facts *facts, uint32_t count)
{
    bool failed = false;
    json_t *tree = json_object();
    json_t *devices = json_array();
    enum ds_accel__reason_id reason = facts->candidate == NULL ? DS_ACCEL__REASON_NO_PLUGIN
                                                               : facts->candidate->reason;
    bool is_available = facts->candidate != NULL && facts->instance != NULL;

    for (uint32_t i = 0; i < count && is_available && !failed; i++) {
        failed = json_array_append_new(devices, device_tree(facts, i, &failed)) != 0 || failed;
    }
    ds_accel__json_set(tree, "schema_version", json_integer(1), &failed);
    ds_accel__json_set(tree, "name", ds_accel__json_text(facts->name), &failed);
    ds_accel__json_set(tree, "available", json_boolean(is_available), &failed);
    ds_accel__json_set(tree, "reason",
                       ds_accel__json_text(is_available ? "" : ds_accel__reason_code(reason)),
                       &failed);
    ds_accel__json_set(tree, "devices", devices, &failed);
    if (failed) {
        json_decref(tree);
        return NULL;
    }
    return tree;
}

int32_t ds_accel__report_memory(ds_accel_t *context, const char *name, json_t **tree_out)
{
    return ds_accel__with_facts(context, name, memory_tree, tree_out);
}

/* ---- the picture ---------------------------------------------------------------------------- */

struct bar {
    struct ds_accel__text *out;
    double x, y;
    double units_per_byte;
    uint64_t left; /* rest of the part that is drawn now: memory in use, or available memory */
};

/* Draw a part of a device's memory, of at most bar->left bytes; nothing if that is 0. */
static void draw_part(struct bar *bar, const char *classes, uint64_t bytes, const char *what)
{
    double width;
    char size[32];

    bytes = bytes < bar->left ? bytes : bar->left;
    if (bytes == 0) {
        return;
    }
    width = (double)bytes * bar->units_per_byte;
    ds_accel__size_text(bytes, size, sizeof(size));
    ds_accel__text_add(bar->out,
                       "<rect class=\"%s\" x=\"%.3f\" y=\"%.1f\" width=\"%.3f\" height=\"%.1f\">"
                       "<title>%s: %s</title></rect>\n",
                       classes, bar->x, bar->y, width, BAR_HEIGHT, what, size);
    bar->x += width;
    bar->left -= bytes;
}

static void draw_processes(struct bar *bar, const json_t *device)
{
    const json_t *processes = json_object_get(device, "processes");

    for (size_t i = 0; i < json_array_size(processes); i++) {
        const json_t *process = json_array_get(processes, i);
        json_int_t pid = json_integer_value(json_object_get(process, "pid"));
        char classes[32];
        char what[48];

        snprintf(classes, sizeof(classes), "s%zu", i % COLOURS);
        snprintf(what, sizeof(what), pid > 0 ? "process %lld" : "a process that cannot be seen",
                 (long long)pid);
        draw_part(bar, classes, ds_accel__json_size(process, "memory_bytes"), what);
    }
}

static void draw_device(const json_t *device, double y, struct ds_accel__text *out)
{
    const char *name = json_string_value(json_object_get(device, "name"));
    json_t *available = json_object_get(device, "available_memory_bytes");
    uint64_t total = ds_accel__json_size(device, "total_memory_bytes");
    uint64_t free_now = ds_accel__json_size(device, "available_memory_bytes");
    struct bar bar = {.out = out, .x = LEFT, .y = y, .left = total};
    char texts[2][32];

    ds_accel__size_text(total, texts[0], sizeof(texts[0]));
    ds_accel__size_text(free_now, texts[1], sizeof(texts[1]));
    ds_accel__text_add(out, "<g><text x=\"%.0f\" y=\"%.1f\">device %lld", LEFT, y - 8,
                       (long long)json_integer_value(json_object_get(device, "index")));
    if (name != NULL && name[0] != '\0') {
        ds_accel__text_add(out, ", ");
        ds_accel__xml_add(out, name);
    }
    if (total == 0) {
        ds_accel__text_add(out, ": its memory is not known</text></g>\n");
        return;
    }
    ds_accel__text_add(out, ": %s", texts[0]);
    if (json_is_integer(available)) {
        ds_accel__text_add(out, ", %s available", texts[1]);
    }
    ds_accel__text_add(out, "</text>\n");
    free_now = free_now < total ? free_now : total;
    bar.units_per_byte = PLOT / (double)total;
    bar.left = json_is_integer(available) ? total - free_now : total;
    draw_processes(&bar, device);
    if (json_is_integer(available)) {
        draw_part(&bar, "u", bar.left, "in use, by an unknown user");
        bar.left = free_now;
        draw_part(&bar, "f", free_now, "available");
    }
    ds_accel__text_add(out,
                       "<rect class=\"o\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>"
                       "</g>\n",
                       LEFT, y, PLOT, BAR_HEIGHT);
}

int32_t ds_accel__memory_tree_svg(json_t *tree, struct ds_accel__text *out)
{
    const json_t *devices = json_object_get(tree, "devices");
    const char *name = json_string_value(json_object_get(tree, "name"));
    const char *reason = json_string_value(json_object_get(tree, "reason"));
    size_t count = json_array_size(devices);
    size_t drawn = count < DRAWN_LIMIT ? count : DRAWN_LIMIT;
    double height = TOP + STEP * (double)(drawn > 0 ? drawn : 1);

    ds_accel__text_add(out,
                       "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" "
                       "aria-labelledby=\"title desc\" width=\"%.0f\" height=\"%.0f\" "
                       "viewBox=\"0 0 %.0f %.0f\">\n<title id=\"title\">Memory of ",
                       WIDTH, height, WIDTH, height);
    ds_accel__xml_add(out, name != NULL ? name : "");
    ds_accel__text_add(out,
                       "</title>\n<desc id=\"desc\">%zu device%s: what is in use, by process "
                       "where that is known, and what is available</desc>\n%s"
                       "<text class=\"t\" x=\"%.0f\" y=\"26\">Memory of ",
                       count, count == 1 ? "" : "s", style, LEFT);
    ds_accel__xml_add(out, name != NULL ? name : "");
    ds_accel__text_add(out, "</text>\n");
    if (count == 0) {
        ds_accel__text_add(out, "<text x=\"%.0f\" y=\"%.1f\">no device is available", LEFT, TOP);
        if (reason != NULL && reason[0] != '\0') {
            ds_accel__text_add(out, ": ");
            ds_accel__xml_add(out, reason);
        }
        ds_accel__text_add(out, "</text>\n");
    }
    for (size_t i = 0; i < drawn; i++) {
        draw_device(json_array_get(devices, i), TOP + STEP * (double)i, out);
    }
    ds_accel__text_add(out, "</svg>\n");
    return out->failed ? ds_accel__no_memory() : DS_ACCEL_OK;
}
