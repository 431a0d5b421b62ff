/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Formats the JSON trees of reports as readable text, with aligned columns and optional colours. */
#include "base/reason.h"
#include "base/text.h"
#include "report/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTPUT_LINES 8u /* lines of a plugin's output shown without -v */

struct page {
    struct ds_accel__text text;
    bool colour;
    bool verbose;
};

static const char *get_text(json_t *tree, const char *key)
{
    const char *text = json_string_value(json_object_get(tree, key));

    return text != NULL ? text : "";
}

static const char *colour_of(const char *state)
{
    static const struct {
        const char *state;
        const char *code;
    } codes[] = {
        {"selected", "\033[1;32m"}, {"available", "\033[32m"}, {"passed", "\033[32m"},
        {"error", "\033[31m"},      {"rejected", "\033[31m"},  {"failed", "\033[31m"},
        {"crashed", "\033[31m"},    {"timed_out", "\033[31m"}, {"unavailable", "\033[33m"},
        {"disabled", "\033[33m"},   {"shadowed", "\033[33m"},  {"quarantined", "\033[33m"},
        {"ok", "\033[32m"},         {"problem", "\033[31m"},   {"warning", "\033[33m"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
        if (strcmp(codes[i].state, state) == 0) {
            return codes[i].code;
        }
    }
    return NULL;
}

/* Write a word padded to a width; colour codes are not counted. */
static void add_word(struct page *page, const char *word, int width)
{
    const char *code = page->colour ? colour_of(word) : NULL;
    int blanks = width - (int)strlen(word);

    ds_accel__text_add(&page->text, "%s%s%s%*s", code != NULL ? code : "", word,
                       code != NULL ? "\033[0m" : "", blanks > 0 ? blanks : 0, "");
}

static int widest(json_t *array, const char *key, int at_least)
{
    int width = at_least;

    for (size_t i = 0; i < json_array_size(array); i++) {
        int length = (int)strlen(get_text(json_array_get(array, i), key));

        width = length > width ? length : width;
    }
    return width;
}

static void add_reason(struct page *page, json_t *tree)
{
    const char *reason = get_text(tree, "reason");
    const char *detail = get_text(tree, "detail");

    ds_accel__text_add(&page->text, "%s%s%s\n", reason,
                       reason[0] != '\0' && detail[0] != '\0' ? ": " : "", detail);
}

/* ---- detect, list, explain ------------------------------------------------------------------ */

static void write_detect(struct page *page, json_t *tree)
{
    const char *name = get_text(tree, "accelerator");

    if (name[0] != '\0') {
        ds_accel__text_add(&page->text, "%s\n", name);
    }
}

static void write_list(struct page *page, json_t *tree)
{
    json_t *plugins = json_object_get(tree, "plugins");
    int name = widest(plugins, "name", 4) + 2;
    int state = widest(plugins, "state", 5) + 2;
    int version = widest(plugins, "version", 7) + 2;
    int vendor = widest(plugins, "vendor", 6) + 2;

    if (json_array_size(plugins) == 0) {
        ds_accel__text_add(&page->text, "no plugin was found\n");
        return;
    }
    ds_accel__text_add(&page->text, "%-*s%-*s%-*s%-*s%-5s%s\n", name, "NAME", state, "STATE",
                       version, "VERSION", vendor, "VENDOR", "ABI", "PATH, REASON");
    for (size_t i = 0; i < json_array_size(plugins); i++) {
        json_t *plugin = json_array_get(plugins, i);

        add_word(page, get_text(plugin, "name"), name);
        add_word(page, get_text(plugin, "state"), state);
        ds_accel__text_add(&page->text, "%-*s%-*s%-5s%s\n", version, get_text(plugin, "version"),
                           vendor, get_text(plugin, "vendor"), get_text(plugin, "abi"),
                           get_text(plugin, "path"));
        if (get_text(plugin, "reason")[0] != '\0') {
            ds_accel__text_add(&page->text, "%*s", name, "");
            add_reason(page, plugin);
        }
    }
}

/* The width of the longest gate name that is shown, but at least 6. */
static int gate_width(const struct page *page, json_t *gates)
{
    int width = 6;

    for (size_t i = 0; i < json_array_size(gates); i++) {
        json_t *gate = json_array_get(gates, i);
        int length = (int)strlen(get_text(gate, "gate"));

        if ((page->verbose || strcmp(get_text(gate, "result"), "skipped") != 0) && length > width) {
            width = length;
        }
    }
    return width;
}

/* Write the plugin's output, line by line; without -v only its first OUTPUT_LINES lines. */
static void add_output(struct page *page, json_t *lines)
{
    size_t count = json_array_size(lines);
    size_t shown = page->verbose || count <= OUTPUT_LINES ? count : OUTPUT_LINES;

    for (size_t i = 0; i < shown; i++) {
        ds_accel__text_add(&page->text, "  output %s\n",
                           json_string_value(json_array_get(lines, i)));
    }
    if (shown < count) {
        ds_accel__text_add(&page->text, "  output ... %zu lines more; -v shows them\n",
                           count - shown);
    }
}

static void write_candidate(struct page *page, json_t *candidate)
{
    json_t *gates = json_object_get(candidate, "gates");
    int width = gate_width(page, gates);
    bool failed = false;

    add_word(page, get_text(candidate, "name"), 0);
    ds_accel__text_add(&page->text, ": ");
    add_word(page, get_text(candidate, "state"), 0);
    ds_accel__text_add(&page->text, "%s\n",
                       json_is_true(json_object_get(candidate, "demand_only")) ? " (by name only)"
                                                                               : "");
    for (size_t i = 0; i < json_array_size(gates); i++) {
        json_t *gate = json_array_get(gates, i);
        const char *result = get_text(gate, "result");

        if (strcmp(result, "skipped") == 0 && !page->verbose) {
            continue;
        }
        failed = failed || strcmp(result, "failed") == 0;
        ds_accel__text_add(&page->text, "  %-*s ", width, get_text(gate, "gate"));
        add_word(page, result, 8);
        ds_accel__text_add(&page->text, "%s\n", get_text(gate, "evidence"));
    }
    if (get_text(candidate, "reason")[0] != '\0') {
        ds_accel__text_add(&page->text, "  reason %s: %s\n", get_text(candidate, "reason"),
                           get_text(candidate, "meaning"));
        if (!failed && get_text(candidate, "detail")[0] != '\0') {
            ds_accel__text_add(&page->text, "  detail %s\n", get_text(candidate, "detail"));
        }
        ds_accel__text_add(&page->text, "  remedy %s\n", get_text(candidate, "remedy"));
    }
    add_output(page, json_object_get(candidate, "output"));
}

static void write_list_line(struct page *page, const char *head, json_t *names)
{
    if (json_array_size(names) == 0) {
        return;
    }
    ds_accel__text_add(&page->text, "%s", head);
    for (size_t i = 0; i < json_array_size(names); i++) {
        ds_accel__text_add(&page->text, "%s %s", i > 0 ? "," : "",
                           json_string_value(json_array_get(names, i)));
    }
    ds_accel__text_add(&page->text, "\n");
}

static void write_explain(struct page *page, json_t *tree)
{
    json_t *candidates = json_object_get(tree, "candidates");

    if (get_text(tree, "accelerator")[0] != '\0') {
        ds_accel__text_add(&page->text, "chosen: %s (%s)\n\n", get_text(tree, "accelerator"),
                           get_text(tree, "set_method"));
    } else {
        ds_accel__text_add(&page->text, "chosen: nothing: %s\n\n", get_text(tree, "failure"));
    }
    for (size_t i = 0; i < json_array_size(candidates); i++) {
        write_candidate(page, json_array_get(candidates, i));
        ds_accel__text_add(&page->text, "\n");
    }
    write_list_line(page, "without a plugin file:", json_object_get(tree, "without_plugin"));
    if (json_array_size(candidates) == 0 &&
        json_array_size(json_object_get(tree, "without_plugin")) == 1) {
        const struct ds_accel__reason *reason = ds_accel__reason(DS_ACCEL__REASON_NO_PLUGIN);

        ds_accel__text_add(&page->text, "  reason no_plugin: %s\n  remedy %s\n", reason->meaning,
                           get_text(tree, "remedy"));
    }
    write_list_line(page, "directories searched:", json_object_get(tree, "searched"));
}

/* ---- info ----------------------------------------------------------------------------------- */

static void add_bytes(struct page *page, json_t *value)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double amount = (double)json_integer_value(value);
    size_t unit = 0;

    if (!json_is_integer(value)) {
        ds_accel__text_add(&page->text, "unknown");
        return;
    }
    while (amount >= 1024 && unit + 1 < ARRAY_SIZE(units)) {
        amount /= 1024;
        unit++;
    }
    ds_accel__text_add(&page->text, unit == 0 ? "%.0f %s" : "%.1f %s", amount, units[unit]);
}

/* Write a string, a boolean, an integer or an array of strings on one line; any other value, such
 * as null, is written as "unknown". */
static void add_value(struct page *page, json_t *value)
{
    if (json_is_string(value)) {
        ds_accel__text_add(&page->text, "%s",
                           json_string_length(value) > 0 ? json_string_value(value) : "-");
    } else if (json_is_boolean(value)) {
        ds_accel__text_add(&page->text, "%s", json_is_true(value) ? "yes" : "no");
    } else if (json_is_integer(value)) {
        ds_accel__text_add(&page->text, "%lld", (long long)json_integer_value(value));
    } else if (json_is_array(value) && json_array_size(value) > 0) {
        for (size_t i = 0; i < json_array_size(value); i++) {
            ds_accel__text_add(&page->text, "%s%s", i > 0 ? ", " : "",
                               json_string_value(json_array_get(value, i)));
        }
    } else {
        ds_accel__text_add(&page->text, "%s", json_is_array(value) ? "none" : "unknown");
    }
}

/* Write a line with a device's UUID, addresses and the like, if it has any. */
static void write_identity(struct page *page, json_t *device)
{
    static const char *const names[] = {"uuid", "pci_address", "node_path", "architecture"};
    json_t *vendor_index = json_object_get(device, "vendor_index");
    json_t *partition = json_object_get(device, "partition");
    const char *separator = "    ";

    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (get_text(device, names[i])[0] != '\0') {
            ds_accel__text_add(&page->text, "%s%s", separator, get_text(device, names[i]));
            separator = ", ";
        }
    }
    if (json_is_integer(vendor_index) &&
        json_integer_value(vendor_index) != json_integer_value(json_object_get(device, "index"))) {
        ds_accel__text_add(&page->text, "%svendor's index %lld", separator,
                           (long long)json_integer_value(vendor_index));
        separator = ", ";
    }
    if (json_is_object(partition)) {
        ds_accel__text_add(&page->text, "%s%s of %s", separator, get_text(partition, "kind"),
                           get_text(partition, "parent_uuid"));
        separator = ", ";
    }
    if (separator[0] == ',') {
        ds_accel__text_add(&page->text, "\n");
    }
}

static void write_device(struct page *page, json_t *device)
{
    json_t *node = json_object_get(device, "numa_node");

    ds_accel__text_add(&page->text, "  device %lld: %s, ",
                       (long long)json_integer_value(json_object_get(device, "index")),
                       get_text(device, "name"));
    add_bytes(page, json_object_get(device, "available_memory_bytes"));
    ds_accel__text_add(&page->text, " of ");
    add_bytes(page, json_object_get(device, "total_memory_bytes"));
    ds_accel__text_add(&page->text, " available");
    if (json_is_integer(node)) {
        ds_accel__text_add(&page->text, ", NUMA node %lld", (long long)json_integer_value(node));
    }
    ds_accel__text_add(&page->text, "\n");
    write_identity(page, device);
}

static void write_info(struct page *page, json_t *tree)
{
    static const char *const rows[] = {
        "current_device_name",
        "device_count",
        "supported_dtypes",
        "is_bf16_supported",
        "is_fp16_supported",
        "is_triton_supported",
        "prefer_triton_grouped_mm",
        "supports_range_domains",
        "graph_supported",
        "is_synchronized_device",
        "use_host_timers",
        "resolves_data_dependency",
        "handles_memory_backpressure",
        "communication_backend",
        "compile_backend",
        "visible_devices_envs",
        "export_envs",
        "op_builders",
    };
    json_t *devices = json_object_get(tree, "devices");
    json_t *limit = json_object_get(tree, "memory_limit");

    ds_accel__text_add(&page->text, "%s: ", get_text(tree, "name"));
    if (json_is_true(json_object_get(tree, "available"))) {
        ds_accel__text_add(&page->text, "available\n");
    } else {
        ds_accel__text_add(&page->text, "not available: ");
        add_reason(page, tree);
        if (get_text(tree, "remedy")[0] != '\0') {
            ds_accel__text_add(&page->text, "  remedy %s\n", get_text(tree, "remedy"));
        }
    }
    for (size_t i = 0; i < json_array_size(devices); i++) {
        write_device(page, json_array_get(devices, i));
    }
    if (json_is_object(limit)) {
        ds_accel__text_add(&page->text, "  memory limited to ");
        add_bytes(page, json_object_get(limit, "bytes"));
        ds_accel__text_add(&page->text, " by %s\n", get_text(limit, "source"));
    }
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        ds_accel__text_add(&page->text, "  %-29s", rows[i]);
        add_value(page, json_object_get(tree, rows[i]));
        ds_accel__text_add(&page->text, "\n");
    }
}

/* ---- env: lines for eval -------------------------------------------------------------------- */

static void add_quoted(struct page *page, const char *name, const char *value)
{
    ds_accel__text_add(&page->text, "export %s='", name);
    for (; *value != '\0'; value++) {
        if (*value == '\'') {
            ds_accel__text_add(&page->text, "'\\''");
        } else {
            ds_accel__text_add_bytes(&page->text, value, 1);
        }
    }
    ds_accel__text_add(&page->text, "'\n");
}

/*
 * Write a value with bytes that a terminal would interpret or not show, as a printf command with
 * escapes. The shell removes line ends from the end of a command's output, so a dot is appended and
 * then removed.
 */
static void add_encoded(struct page *page, const char *name, const char *value)
{
    ds_accel__text_add(&page->text, "%s=\"$(printf '", name);
    for (; *value != '\0'; value++) {
        if ((unsigned char)*value < 0x20 || (unsigned char)*value >= 0x7f ||
            strchr("'\\%", *value) != NULL) {
            ds_accel__text_add(&page->text, "\\%03o", (unsigned char)*value);
        } else {
            ds_accel__text_add_bytes(&page->text, value, 1);
        }
    }
    ds_accel__text_add(&page->text, ".')\"; export %s=\"${%s%%.}\"\n", name, name);
}

static void write_env(struct page *page, json_t *tree)
{
    json_t *variables = json_object_get(tree, "variables");

    for (size_t i = 0; i < json_array_size(variables); i++) {
        json_t *variable = json_array_get(variables, i);

        if (!json_is_true(json_object_get(variable, "applied"))) {
            continue;
        }
        if (strcmp(get_text(variable, "rule"), "unset") == 0) {
            ds_accel__text_add(&page->text, "unset %s\n", get_text(variable, "name"));
            continue;
        }
        if (ds_accel__is_printable(get_text(variable, "value"))) {
            add_quoted(page, get_text(variable, "name"), get_text(variable, "value"));
        } else {
            add_encoded(page, get_text(variable, "name"), get_text(variable, "value"));
        }
    }
}

/* ---- configuration -------------------------------------------------------------------------- */

static void write_config(struct page *page, json_t *tree)
{
    json_t *files = json_object_get(tree, "files");
    json_t *values = json_object_get(tree, "values");

    for (size_t i = 0; i < json_array_size(files); i++) {
        json_t *file = json_array_get(files, i);

        ds_accel__text_add(&page->text, "# %-8s %s\n", get_text(file, "layer"),
                           get_text(file, "path"));
    }
    for (size_t i = 0; i < json_array_size(values); i++) {
        json_t *value = json_array_get(values, i);
        char *dump =
            ds_accel__json_dump(json_object_get(value, "value"), JSON_ENCODE_ANY | JSON_COMPACT);

        page->text.failed = page->text.failed || dump == NULL;
        ds_accel__text_add(&page->text, "%s = ", get_text(value, "key"));
        ds_accel__text_add_printable_json(&page->text, dump != NULL ? dump : "");
        ds_accel__text_add(&page->text, "  # %s\n", get_text(value, "origin"));
        free(dump);
    }
}

static void write_config_env(struct page *page, json_t *tree)
{
    json_t *variables = json_object_get(tree, "variables");
    int name = widest(variables, "name", 4) + 2;
    int value = widest(variables, "value", 7) + 2;

    ds_accel__text_add(&page->text, "%-*s%-*s%-13s%s\n", name, "NAME", value, "VALUE", "ORIGIN",
                       "MEANING");
    for (size_t i = 0; i < json_array_size(variables); i++) {
        json_t *variable = json_array_get(variables, i);
        bool is_set = json_is_string(json_object_get(variable, "value"));

        ds_accel__text_add(&page->text, "%-*s%-*s%-13s%s\n", name, get_text(variable, "name"),
                           value, is_set ? get_text(variable, "value") : "(unset)",
                           get_text(variable, "origin"), get_text(variable, "help"));
    }
}

static void write_config_check(struct page *page, json_t *tree)
{
    json_t *problems = json_object_get(tree, "problems");

    for (size_t i = 0; i < json_array_size(problems); i++) {
        json_t *problem = json_array_get(problems, i);

        ds_accel__text_add(&page->text, "%s:%lld:%lld: %s\n", get_text(problem, "file"),
                           (long long)json_integer_value(json_object_get(problem, "line")),
                           (long long)json_integer_value(json_object_get(problem, "column")),
                           get_text(problem, "message"));
    }
    if (json_array_size(problems) == 0) {
        size_t count = json_array_size(json_object_get(tree, "files"));

        ds_accel__text_add(&page->text, "%zu configuration file%s, no problem\n", count,
                           count == 1 ? "" : "s");
    }
}

/* ---- lint ----------------------------------------------------------------------------------- */

static void write_lint(struct page *page, json_t *tree)
{
    json_t *rules = json_object_get(tree, "rules");
    int broken = 0;

    for (size_t i = 0; i < json_array_size(rules); i++) {
        json_t *rule = json_array_get(rules, i);
        const char *result = get_text(rule, "result");

        broken += strcmp(result, "failed") == 0;
        ds_accel__text_add(&page->text, "%-8s ", get_text(rule, "rule"));
        add_word(page, result, 8);
        ds_accel__text_add(&page->text, "%s%s%s\n", get_text(rule, "title"),
                           get_text(rule, "detail")[0] != '\0' ? ": " : "",
                           get_text(rule, "detail"));
    }
    if (broken > 0) {
        ds_accel__text_add(&page->text, "%s breaks %d rule%s of docs/plugin-abi.md\n",
                           get_text(tree, "path"), broken, broken == 1 ? "" : "s");
    } else {
        ds_accel__text_add(&page->text, "%s keeps every rule that a file can be checked for\n",
                           get_text(tree, "path"));
    }
}

/* ---- conformance ---------------------------------------------------------------------------- */

#define SHOWN_LINES 4 /* output lines shown without -v for a check that did not fail */

/* Write the plugin's output during a check. A line that is repeated is written once, with the
 * number of times. is_whole false: write at most SHOWN_LINES lines. */
static void write_output(struct page *page, json_t *lines, bool is_whole)
{
    size_t shown = 0;
    size_t next;

    for (size_t i = 0; i < json_array_size(lines); i = next) {
        const char *line = json_string_value(json_array_get(lines, i));

        next = i + 1;
        while (next < json_array_size(lines) &&
               strcmp(line, json_string_value(json_array_get(lines, next))) == 0) {
            next++;
        }
        if (!is_whole && shown++ == SHOWN_LINES) {
            ds_accel__text_add(&page->text, "%-9s | ... (%zu lines more: -v)\n", "",
                               json_array_size(lines) - i);
            return;
        }
        ds_accel__text_add(&page->text, "%-9s | %s", "", line);
        if (next - i > 1) {
            ds_accel__text_add(&page->text, " (%zu times)", next - i);
        }
        ds_accel__text_add(&page->text, "\n");
    }
}

static void write_check(struct page *page, json_t *check, int group)
{
    const char *detail = get_text(check, "detail");

    ds_accel__text_add(&page->text, "%-9s ", get_text(check, "rule"));
    add_word(page, get_text(check, "result"), 9);
    ds_accel__text_add(&page->text, "%-*s%s%s%s\n", group, get_text(check, "group"),
                       get_text(check, "name"), detail[0] != '\0' ? ": " : "", detail);
    write_output(page, json_object_get(check, "output"),
                 page->verbose || strcmp(get_text(check, "result"), "failed") == 0);
}

/* The number of checks of a group that have this result. */
static size_t count_results(json_t *checks, const char *group, const char *result)
{
    size_t count = 0;

    for (size_t i = 0; i < json_array_size(checks); i++) {
        json_t *check = json_array_get(checks, i);

        count += strcmp(get_text(check, "group"), group) == 0 &&
                 strcmp(get_text(check, "result"), result) == 0;
    }
    return count;
}

/* Write one line for each group, in order of first appearance. */
static void write_groups(struct page *page, json_t *checks, int width)
{
    static const char *const results[] = {"passed", "failed", "skipped"};

    for (size_t i = 0; i < json_array_size(checks); i++) {
        const char *group = get_text(json_array_get(checks, i), "group");
        bool is_first = true;

        for (size_t k = 0; k < i && is_first; k++) {
            is_first = strcmp(get_text(json_array_get(checks, k), "group"), group) != 0;
        }
        if (!is_first) {
            continue;
        }
        ds_accel__text_add(&page->text, "%-*s", width, group);
        for (size_t k = 0; k < ARRAY_SIZE(results); k++) {
            ds_accel__text_add(&page->text, "%3zu %s%s", count_results(checks, group, results[k]),
                               results[k], k < 2 ? "  " : "\n");
        }
    }
}

/* Write which devices were checked: "device 1"; "2 devices, and with X_VISIBLE=1,0". */
static void write_devices(struct page *page, json_t *tree)
{
    json_t *device = json_object_get(tree, "device");
    json_t *visible = json_object_get(tree, "visible");

    if (json_is_integer(device)) {
        ds_accel__text_add(&page->text, "device %lld", (long long)json_integer_value(device));
    } else {
        ds_accel__text_add(&page->text, "%zu devices",
                           json_array_size(json_object_get(tree, "devices")));
    }
    if (json_is_object(visible)) {
        ds_accel__text_add(&page->text, ", and with %s=%s", get_text(visible, "variable"),
                           get_text(visible, "value"));
    }
}

/* Write the report conformance: with -v or if no check ran, one line per check; otherwise one line
 * per group, followed by failures and output. */
static void write_conformance(struct page *page, json_t *tree)
{
    json_t *checks = json_object_get(tree, "checks");
    json_t *summary = json_object_get(tree, "summary");
    int group = widest(checks, "group", 5) + 2;
    bool is_list = get_text(tree, "path")[0] == '\0';

    if (!page->verbose && !is_list) {
        write_groups(page, checks, group);
    }
    for (size_t i = 0; i < json_array_size(checks); i++) {
        json_t *check = json_array_get(checks, i);

        if (page->verbose || is_list || strcmp(get_text(check, "result"), "failed") == 0 ||
            json_array_size(json_object_get(check, "output")) > 0) {
            write_check(page, check, group);
        }
    }
    if (!is_list) {
        ds_accel__text_add(&page->text, "%s, ", get_text(tree, "name"));
        write_devices(page, tree);
        ds_accel__text_add(&page->text, ": %lld passed, %lld failed, %lld skipped\n",
                           (long long)json_integer_value(json_object_get(summary, "passed")),
                           (long long)json_integer_value(json_object_get(summary, "failed")),
                           (long long)json_integer_value(json_object_get(summary, "skipped")));
    }
}

/* ---- cache, quarantine ---------------------------------------------------------------------- */

#define DURATION_WIDTH 9

/* Write a duration in a suitable unit: "59 s", "59 min", "23 h". */
static void add_duration(struct page *page, json_t *seconds)
{
    long long amount = (long long)json_integer_value(seconds);
    const char *unit = amount < 120 ? "s" : amount < 7200 ? "min" : "h";
    char text[32];

    snprintf(text, sizeof(text), "%lld %s",
             amount < 120    ? amount
             : amount < 7200 ? amount / 60
                             : amount / 3600,
             unit);
    ds_accel__text_add(&page->text, "%-*s", DURATION_WIDTH, text);
}

static void add_path(struct page *page, json_t *entry, int indent)
{
    ds_accel__text_add(&page->text, "%s\n", get_text(entry, "path"));
    if (get_text(entry, "reason")[0] != '\0') {
        ds_accel__text_add(&page->text, "%*s", indent, "");
        add_reason(page, entry);
    }
}

static void write_cache(struct page *page, json_t *tree)
{
    json_t *entries = json_object_get(tree, "entries");
    int name = widest(entries, "name", 4) + 2;
    int state = widest(entries, "state", 5) + 2;

    if (get_text(tree, "unused")[0] != '\0') {
        ds_accel__text_add(&page->text, "not used: %s\n", get_text(tree, "unused"));
        return;
    }
    ds_accel__text_add(&page->text, "%s (%s)\n", get_text(tree, "file"), get_text(tree, "mode"));
    if (json_array_size(entries) == 0) {
        ds_accel__text_add(&page->text, "no verdict is remembered\n");
        return;
    }
    ds_accel__text_add(&page->text, "%-*s%-*s%-9s%-*s%-*s%s\n", name, "NAME", state, "STATE",
                       "DEVICES", DURATION_WIDTH, "AGE", DURATION_WIDTH, "EXPIRES", "PATH, REASON");
    for (size_t i = 0; i < json_array_size(entries); i++) {
        json_t *entry = json_array_get(entries, i);

        add_word(page, get_text(entry, "name"), name);
        add_word(page, get_text(entry, "state"), state);
        ds_accel__text_add(&page->text, "%-9lld",
                           (long long)json_integer_value(json_object_get(entry, "device_count")));
        add_duration(page, json_object_get(entry, "age_s"));
        add_duration(page, json_object_get(entry, "expires_in_s"));
        add_path(page, entry, name);
    }
}

static void write_quarantine(struct page *page, json_t *tree)
{
    json_t *entries = json_object_get(tree, "entries");
    int name = widest(entries, "name", 4) + 2;
    int until = widest(entries, "until", 5) + 2;

    if (json_array_size(entries) == 0) {
        ds_accel__text_add(&page->text, "no plugin has crashed or hung recently\n");
        return;
    }
    ds_accel__text_add(&page->text, "%-*s%-9s%-*s%-*s%s\n", name, "NAME", "STRIKES", until, "UNTIL",
                       DURATION_WIDTH, "LEFT", "PATH, REASON");
    for (size_t i = 0; i < json_array_size(entries); i++) {
        json_t *entry = json_array_get(entries, i);
        bool is_quarantined = json_is_true(json_object_get(entry, "quarantined"));

        add_word(page, get_text(entry, "name"), name);
        ds_accel__text_add(&page->text, "%-9lld%-*s",
                           (long long)json_integer_value(json_object_get(entry, "strikes")), until,
                           is_quarantined ? get_text(entry, "until") : "-");
        if (is_quarantined) {
            add_duration(page, json_object_get(entry, "remaining_s"));
        } else {
            ds_accel__text_add(&page->text, "%-*s", DURATION_WIDTH, "-");
        }
        add_path(page, entry, name);
    }
}

/* ---- doctor --------------------------------------------------------------------------------- */

/* Does the text display this finding on lines of its own? Without -v it omits findings of severity
 * ok, and lists all backends without hardware on one line. */
static bool is_displayed(const struct page *page, json_t *finding)
{
    return page->verbose || (strcmp(get_text(finding, "severity"), "ok") != 0 &&
                             get_text(finding, "absent")[0] == '\0');
}

/* The width of the longest check name that the text displays, but at least that of "hardware".
 * Omitted findings do not count, so that equal lines have equal columns on a machine and on its
 * recording, which lacks some of the omitted findings. */
static int check_width(const struct page *page, json_t *findings)
{
    int width = (int)strlen("hardware");

    for (size_t i = 0; i < json_array_size(findings); i++) {
        json_t *finding = json_array_get(findings, i);
        int length = (int)strlen(get_text(finding, "check"));

        if (is_displayed(page, finding) && length > width) {
            width = length;
        }
    }
    return width;
}

static void write_finding(struct page *page, json_t *finding, int check)
{
    const char *subject = get_text(finding, "subject");

    add_word(page, get_text(finding, "severity"), 9);
    ds_accel__text_add(&page->text, "%-*s%s%s%s\n", check, get_text(finding, "check"), subject,
                       subject[0] != '\0' ? ": " : "", get_text(finding, "detail"));
    if (get_text(finding, "remedy")[0] != '\0') {
        ds_accel__text_add(&page->text, "%*sremedy: %s\n", 9 + check, "",
                           get_text(finding, "remedy"));
    }
}

/* Write all backends without hardware on one line, because missing hardware is not a problem. */
static void write_absent(struct page *page, json_t *findings, int check)
{
    struct ds_accel__text names = {0};

    for (size_t i = 0; i < json_array_size(findings); i++) {
        const char *absent = get_text(json_array_get(findings, i), "absent");
        bool is_new = absent[0] != '\0';

        for (size_t k = 0; k < i && is_new; k++) {
            is_new = strcmp(get_text(json_array_get(findings, k), "absent"), absent) != 0;
        }
        if (is_new) {
            ds_accel__text_add(&names, "%s%s", names.size_bytes > 0 ? ", " : "", absent);
        }
    }
    if (names.size_bytes > 0) {
        add_word(page, "info", 9);
        ds_accel__text_add(&page->text, "%-*sno hardware of %s here; -v shows more\n", check,
                           "hardware", names.data);
    }
    page->text.failed = page->text.failed || names.failed;
    ds_accel__text_clear(&names);
}

static void write_doctor(struct page *page, json_t *tree)
{
    json_t *findings = json_object_get(tree, "findings");
    int check = check_width(page, findings) + 2;
    int problems = 0;
    int warnings = 0;

    for (size_t i = 0; i < json_array_size(findings); i++) {
        json_t *finding = json_array_get(findings, i);
        const char *severity = get_text(finding, "severity");

        problems += strcmp(severity, "problem") == 0;
        warnings += strcmp(severity, "warning") == 0;
        if (is_displayed(page, finding)) {
            write_finding(page, finding, check);
        }
    }
    if (!page->verbose) {
        write_absent(page, findings, check);
    }
    ds_accel__text_add(&page->text, "%d problem%s, %d warning%s\n", problems,
                       problems == 1 ? "" : "s", warnings, warnings == 1 ? "" : "s");
}

/* Replace control characters in all texts of a tree, which come from file names, plugins and
 * configuration, so that a terminal does not interpret them. False: out of memory. */
static bool sanitize_tree(json_t *value)
{
    const char *text = json_string_value(value);
    const char *key;
    json_t *member;
    size_t i;

    json_object_foreach(value, key, member)
    {
        if (!sanitize_tree(member)) {
            return false;
        }
    }
    json_array_foreach(value, i, member)
    {
        if (!sanitize_tree(member)) {
            return false;
        }
    }
    if (text != NULL && !ds_accel__is_printable(text)) {
        char *copy = strdup(text);
        bool done;

        if (copy == NULL) {
            return false;
        }
        ds_accel__sanitize(copy, strlen(copy) + 1);
        done = json_string_set(value, copy) == 0;
        free(copy);
        return done;
    }
    return true;
}

/* Sanitize the keys and origins of the configuration's values, and the list of files. The values
 * themselves are shown as escaped JSON. False: out of memory. */
static bool sanitize_config(json_t *tree)
{
    json_t *values = json_object_get(tree, "values");

    for (size_t i = 0; i < json_array_size(values); i++) {
        json_t *value = json_array_get(values, i);

        if (!sanitize_tree(json_object_get(value, "key")) ||
            !sanitize_tree(json_object_get(value, "origin"))) {
            return false;
        }
    }
    return sanitize_tree(json_object_get(tree, "files"));
}

/* Split a text into an array of its lines, without empty lines; NULL: out of memory. */
static json_t *split_lines(const char *text)
{
    json_t *lines = json_array();

    while (lines != NULL && *text != '\0') {
        size_t length = strcspn(text, "\n");

        if (length > 0 && json_array_append_new(lines, json_stringn(text, length)) != 0) {
            json_decref(lines);
            return NULL;
        }
        text += length + (text[length] == '\n');
    }
    return lines;
}

/* Split outputs of several lines into arrays, because sanitizing would replace line ends with
 * blanks. False: out of memory. */
static bool split_outputs(json_t *entries)
{
    for (size_t i = 0; i < json_array_size(entries); i++) {
        json_t *entry = json_array_get(entries, i);

        if (get_text(entry, "output")[0] != '\0' &&
            json_object_set_new(entry, "output", split_lines(get_text(entry, "output"))) != 0) {
            return false;
        }
    }
    return true;
}

/* Make the texts of a report safe for a terminal. The report env needs no preparation, because its
 * lines are escaped when they are written. False: out of memory. */
static bool prepare(uint32_t report, json_t *tree)
{
    if (report == DS_ACCEL_REPORT_ENV) {
        return true;
    }
    return report == DS_ACCEL_REPORT_CONFIG
               ? sanitize_config(tree)
               : split_outputs(json_object_get(tree, "candidates")) &&
                     split_outputs(json_object_get(tree, "checks")) &&
                     split_outputs(json_object_get(tree, "ops")) && sanitize_tree(tree);
}

char *ds_accel__report_text(uint32_t report, json_t *tree, uint32_t format)
{
    static const struct {
        uint32_t report;
        void (*write)(struct page *page, json_t *tree);
    } writers[] = {
        {DS_ACCEL_REPORT_DETECT, write_detect},
        {DS_ACCEL_REPORT_LIST, write_list},
        {DS_ACCEL_REPORT_INFO, write_info},
        {DS_ACCEL_REPORT_EXPLAIN, write_explain},
        {DS_ACCEL_REPORT_ENV, write_env},
        {DS_ACCEL_REPORT_CONFIG, write_config},
        {DS_ACCEL_REPORT_CONFIG_ENV, write_config_env},
        {DS_ACCEL_REPORT_CACHE, write_cache},
        {DS_ACCEL_REPORT_QUARANTINE, write_quarantine},
        {DS_ACCEL__REPORT_CONFIG_CHECK, write_config_check},
        {DS_ACCEL__REPORT_LINT, write_lint},
        {DS_ACCEL__REPORT_CONFORMANCE, write_conformance},
        {DS_ACCEL_REPORT_DOCTOR, write_doctor},
    };
    struct page page = {
        .colour = (format & DS_ACCEL_FORMAT_COLOUR) != 0,
        .verbose = (format & DS_ACCEL_FORMAT_VERBOSE) != 0,
    };

    /* The tree shares parts with the configuration, so a copy is changed. */
    json_t *copy = json_deep_copy(tree);

    if (copy == NULL || !prepare(report, copy)) {
        json_decref(copy);
        return NULL;
    }
    if (report == DS_ACCEL_REPORT_TOPO) {
        ds_accel__topo_write(&page.text, copy, page.colour);
    }
    if (report == DS_ACCEL__REPORT_OPS) {
        ds_accel__ops_write(&page.text, copy, page.colour, page.verbose);
    }
    if (report == DS_ACCEL__REPORT_BUILD) {
        ds_accel__build_write(&page.text, copy, page.verbose);
    }
    for (size_t i = 0; i < ARRAY_SIZE(writers); i++) {
        if (writers[i].report == report) {
            writers[i].write(&page, copy);
        }
    }
    json_decref(copy);
    return ds_accel__text_take(&page.text);
}
