/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The valid contents of a configuration: one table of keys. A new key needs a row here, in
 * conf/schema/config.json and in the manual.
 */
#include "base/text.h"
#include "config/config.h"
#include "config/env.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    NUL = 1,
    BOOLEAN = 2,
    INTEGER = 4,
    STRING = 8,
    ARRAY = 16,
    OBJECT = 32,
    REAL = 64,
    SCALAR = BOOLEAN | INTEGER | STRING | REAL
};

/*
 * The limit of any key. A JSON pointer through a freely chosen key must fit its buffer even if each
 * byte is escaped; otherwise a message about a value below the key could not contain its position.
 */
#define KEY_LIMIT_BYTES 255

/* Return NULL if the text is valid, else a description of the expected text. */
typedef const char *(*text_check_t)(const char *text);

struct rule {
    const char *key; /* NULL: any key, or an element of an array */
    unsigned types;
    long long minimum, maximum;                 /* limits of a number; checked if maximum != 0 */
    const char *const *values;                  /* valid values of a STRING, ending in NULL */
    text_check_t check;                         /* check of a STRING */
    text_check_t check_key;                     /* check of the keys of a map */
    const struct rule *members;                 /* fixed keys of an OBJECT, ending in types 0 */
    const char *(*check_whole)(json_t *object); /* check of an OBJECT, after its members */
    const struct rule *element;                 /* rule of the elements of an ARRAY or map */
};

static const char *check_backend_name(const char *text)
{
    return ds_accel__is_backend_name(text) ? NULL
                                           : "expected a backend's name, [a-z][a-z0-9_.]{0,30}";
}

/*
 * The name must fit into a member of a public struct, which has DS_ACCEL__SETTING_SIZE bytes: a
 * truncated name would refer to another library.
 */
static const char *check_library_name(const char *text)
{
    return text[0] != '\0' && strlen(text) < DS_ACCEL__SETTING_SIZE
               ? NULL
               : "expected a name of 1 to 31 bytes";
}

static const char *check_op_builder_dir(const char *text)
{
    return text[0] != '\0' && strlen(text) < DS_ACCEL__OP_BUILDER_DIR_SIZE
               ? NULL
               : "expected a name of 1 to 63 bytes";
}

static const char *check_variable_list(const char *text)
{
    return ds_accel__is_variable_name(text) ? NULL : "expected a variable's name, [A-Z_][A-Z0-9_]*";
}

static const char *check_variable(const char *text)
{
    if (ds_accel__is_variable_name(text) && !ds_accel__is_settable_variable(text)) {
        return "LD_* and DS_ACCEL* cannot be set from configuration";
    }
    return check_variable_list(text);
}

static const char *check_sha256(const char *text)
{
    return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64
               ? NULL
               : "expected 64 lower-case hexadecimal digits";
}

static const char *check_absolute(const char *text)
{
    return text[0] == '/' ? NULL : "expected an absolute path";
}

/*
 * Wildcards are allowed only in the last part, because presence.c searches device nodes in one
 * directory only.
 */
const char *ds_accel__check_node_fact(const char *text)
{
    static const char expected[] = "expected a pattern below /dev with wildcards in its last part "
                                   "only, as in /dev/nvidia[0-9]*";
    const char *last = strrchr(text, '/');

    if (strncmp(text, "/dev/", 5) != 0 || last[1] == '\0' || strlen(text) >= 128 ||
        strstr(text, "//") != NULL || strstr(text, "/./") != NULL || strstr(text, "/../") != NULL ||
        strcmp(last, "/.") == 0 || strcmp(last, "/..") == 0) {
        return expected;
    }
    if (strcspn(text, "*?[\\") < (size_t)(last - text)) {
        return expected;
    }
    return strchr(last, '[') != NULL && strchr(strchr(last, '['), ']') == NULL ? "a [ is not closed"
                                                                               : NULL;
}

const char *ds_accel__check_pci_fact(const char *text)
{
    size_t length = strlen(text);
    bool has_class = length > 4 && text[4] == ':';
    size_t digits = strspn(text, "0123456789abcdef");

    if (has_class) {
        digits += 1 + strspn(text + 5, "0123456789abcdef");
    }
    return digits == length && (length == 4 || (has_class && (length == 7 || length == 9)))
               ? NULL
               : "expected a PCI vendor, optionally with a class, in lower-case hexadecimal: "
                 "\"10de\", \"10de:03\" or \"10de:0302\"";
}

static const char *check_library(const char *text)
{
    const char *last = strrchr(text, '/');

    last = last != NULL ? last + 1 : text;
    return last[0] != '\0' && (last == text || text[0] == '/') && strstr(last, ".so") != NULL &&
                   strlen(text) < 256
               ? NULL
               : "expected a library's soname, as in libcuda.so.1, or its absolute path";
}

static const char *check_reason(const char *text)
{
    return text[0] != '\0' && ds_accel__reason_find(text) != DS_ACCEL__REASON_NONE
               ? NULL
               : "expected the code of a reason, as in no_device: ds-accel-reasons(7) lists them";
}

/* A remedy must be short and without line ends, because it is printed on the line of the reason. */
static const char *check_remedy(const char *text)
{
    return text[0] != '\0' && strlen(text) <= 400 && strpbrk(text, "\n\t") == NULL
               ? NULL
               : "expected one line of 1 to 400 bytes";
}

/* As ops/op.h says. */
bool ds_accel__is_op_name(const char *text)
{
    return text[0] >= 'a' && text[0] <= 'z' && strlen(text) < 32 &&
           text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '\0';
}

static const char *check_op(const char *text)
{
    return ds_accel__is_op_name(text) ? NULL : "expected an op's name, [a-z][a-z0-9_]{0,30}";
}

/* The key of a recipe: "cpu_adam", or "cuda/fused_adam" for one backend. */
static const char *check_kernel(const char *text)
{
    static const char expected[] = "expected an op's name, [a-z][a-z0-9_]{0,30}, after a backend's "
                                   "name and '/' if it is for this backend only";
    const char *slash = strchr(text, '/');
    const char *op = slash != NULL ? slash + 1 : text;
    char backend[DS_ACCEL__NAME_SIZE];

    if (slash != NULL) {
        snprintf(backend, sizeof(backend), "%.*s", (int)(slash - text), text);
        if ((size_t)(slash - text) >= sizeof(backend) || !ds_accel__is_backend_name(backend)) {
            return expected;
        }
    }
    return ds_accel__is_op_name(op) ? NULL : expected;
}

/* Names of sources are arguments of compilers, and part of what all hosts must agree on. */
static const char *check_source(const char *text)
{
    const char *last = strrchr(text, '/');

    last = last != NULL ? last + 1 : text;
    return text[0] != '\0' && text[0] != '/' && text[0] != '-' && last[0] != '\0' &&
                   strncmp(text, "../", 3) != 0 && strstr(text, "/../") == NULL &&
                   strcmp(last, "..") != 0 && strcspn(text, "*?[") >= (size_t)(last - text)
               ? NULL
               : "expected a path below source_dir, with wildcards in its last part only";
}

static const char *check_env_rule(json_t *object)
{
    const char *rule = json_string_value(json_object_get(object, "rule"));

    if (json_object_get(object, "name") == NULL) {
        return "expected a \"name\" in each element";
    }
    if ((rule == NULL || strcmp(rule, "unset") != 0) && json_object_get(object, "value") == NULL) {
        return "expected a \"value\" beside the name, unless the rule is \"unset\"";
    }
    return NULL;
}

static const char *const probe_modes[] = {"isolated", "in-process", NULL};
static const char *const allocator_modes[] = {"caching", "off", "debug", NULL};
static const char *const trust_modes[] = {"off", "warn", "enforce", NULL};
static const char *const layer_names[] = {"validate", "race", "leak", "trace", NULL};
static const char *const race_modes[] = {"report", "fail", NULL};
static const char *const thread_modes[] = {"joined", "separate", NULL};
static const char *const env_rules[] = {"if-unset", "always", "unset", NULL};
static const char *const dtype_names[] = {"float32", "float16", "bfloat16", NULL};
static const char *const op_kinds[] = {"compiled", "framework", "placeholder", NULL};

/*
 * The values that the key "tolerate" accepts: side effects of a plugin that can be permitted. They
 * are the codes of the gate "conduct" in reasons.def, except codes that make the plugin's result
 * invalid.
 */
static const char *const tolerable[] = {
    "prints_stdout",         "prints_stderr",          "leaves_process",
    "leaves_thread",         "leaves_descriptor",      "leaves_timer",
    "changes_signal_mask",   "changes_signal_handler", "changes_affinity",
    "changes_directory",     "changes_locale",         "changes_umask",
    "changes_limit",         "changes_environment",    "changes_root",
    "changes_timer",         "changes_priority",       "changes_scheduling",
    "changes_process_group", "changes_floating_point", "changes_ids",
    "changes_seccomp",       "changes_namespace",      "changes_dumpable",
    "changes_death_signal",  "changes_attribute",      NULL,
};

static const char *const containments[] = {"auto", "namespace", "cgroup", "tree", NULL};

static const struct rule text_element = {.types = STRING};
static const struct rule library_name_element = {.types = STRING, .check = check_library_name};
static const struct rule backend_element = {.types = STRING, .check = check_backend_name};
static const struct rule path_element = {.types = STRING, .check = check_absolute};
static const struct rule variable_element = {.types = STRING, .check = check_variable_list};
static const struct rule dtype_element = {.types = STRING, .values = dtype_names};
static const struct rule sha256_element = {.types = STRING, .check = check_sha256};
static const struct rule op_name_element = {.types = STRING, .check = check_op};
static const struct rule option_element = {.types = SCALAR | NUL};
static const struct rule op_settings_element = {.types = OBJECT | NUL, .element = &option_element};
static const struct rule node_element = {.types = STRING, .check = ds_accel__check_node_fact};
static const struct rule pci_element = {.types = STRING, .check = ds_accel__check_pci_fact};
static const struct rule library_element = {.types = STRING, .check = check_library};
static const struct rule tolerate_element = {.types = STRING, .values = tolerable};
static const struct rule remedy_element = {.types = STRING | NUL, .check = check_remedy};
static const struct rule defer_element = {.types = ARRAY | NUL, .element = &backend_element};

static const struct rule requires_members[] = {
    {.key = "libraries", .types = ARRAY | NUL, .element = &text_element},
    {.key = "headers", .types = ARRAY | NUL, .element = &text_element},
    {.key = "functions", .types = ARRAY | NUL, .element = &text_element},
    {.key = "commands", .types = ARRAY | NUL, .element = &text_element},
    {.key = "python", .types = ARRAY | NUL, .element = &text_element},
    {.key = "env", .types = ARRAY | NUL, .element = &variable_element},
    {.key = "ops", .types = ARRAY | NUL, .element = &op_name_element},
    {.key = "cpu", .types = ARRAY | NUL, .element = &text_element},
    {.key = "compute_major_min", .types = INTEGER | NUL, .minimum = 1, .maximum = 1000},
    {.types = 0},
};

static const struct rule op_members[] = {
    {.key = "op", .types = STRING, .check = check_op},
    {.key = "kernel", .types = STRING | NUL, .check = check_op},
    {.key = "kind", .types = STRING, .values = op_kinds},
    {.key = "module", .types = STRING | NUL},
    {.key = "build_var", .types = STRING | NUL, .check = check_variable_list},
    {.key = "sources", .types = ARRAY | NUL, .element = &text_element},
    {.key = "include_dirs", .types = ARRAY | NUL, .element = &text_element},
    {.key = "cflags", .types = ARRAY | NUL, .element = &text_element},
    {.key = "device_cflags", .types = ARRAY | NUL, .element = &text_element},
    {.key = "ldflags", .types = ARRAY | NUL, .element = &text_element},
    {.key = "libs", .types = ARRAY | NUL, .element = &text_element},
    {.key = "requires", .types = OBJECT | NUL, .members = requires_members},
    {.key = "note", .types = STRING | NUL},
    {.types = 0},
};
static const struct rule source_element = {.types = STRING, .check = check_source};
static const struct rule image_element = {.types = STRING | NUL, .check = check_source};
static const struct rule kernel_members[] = {
    {.key = "source_dir", .types = STRING},
    {.key = "sources", .types = ARRAY, .element = &source_element},
    {.key = "include_dirs", .types = ARRAY | NUL, .element = &text_element},
    {.key = "cflags", .types = ARRAY | NUL, .element = &text_element},
    {.key = "device_cflags", .types = ARRAY | NUL, .element = &text_element},
    {.key = "ldflags", .types = ARRAY | NUL, .element = &text_element},
    {.key = "libs", .types = ARRAY | NUL, .element = &text_element},
    {.key = "images",
     .types = OBJECT | NUL,
     .element = &image_element,
     .check_key = check_variable_list},
    {.key = "requires", .types = OBJECT | NUL, .members = requires_members},
    {.types = 0},
};
static const struct rule kernel_element = {.types = OBJECT | NUL, .members = kernel_members};
static const struct rule op_element = {.types = OBJECT | NUL, .members = op_members};

static const struct rule env_members[] = {
    {.key = "name", .types = STRING, .check = check_variable},
    {.key = "value", .types = STRING},
    {.key = "rule", .types = STRING, .values = env_rules},
    {.key = "why", .types = STRING},
    {.types = 0},
};
static const struct rule env_element = {
    .types = OBJECT, .members = env_members, .check_whole = check_env_rule};

static const struct rule backend_members[] = {
    {.key = "communication_backend", .types = STRING | NUL, .check = check_library_name},
    {.key = "communication_backends", .types = ARRAY | NUL, .element = &library_name_element},
    {.key = "compile_backend", .types = STRING | NUL, .check = check_library_name},
    {.key = "compile_backends", .types = ARRAY | NUL, .element = &library_name_element},
    {.key = "is_synchronized_device", .types = BOOLEAN | NUL},
    {.key = "use_host_timers", .types = BOOLEAN | NUL},
    {.key = "resolves_data_dependency", .types = BOOLEAN | NUL},
    {.key = "handles_memory_backpressure", .types = BOOLEAN | NUL},
    {.key = "is_triton_supported", .types = BOOLEAN | NUL},
    {.key = "prefer_triton_grouped_mm", .types = BOOLEAN | NUL},
    {.key = "supports_range_domains", .types = BOOLEAN | NUL},
    {.key = "is_bf16_supported", .types = BOOLEAN | NUL},
    {.key = "is_fp16_supported", .types = BOOLEAN | NUL},
    {.key = "graph_supported", .types = BOOLEAN | NUL},
    {.key = "indexed_device_names", .types = BOOLEAN | NUL},
    {.key = "supported_dtypes", .types = ARRAY | NUL, .element = &dtype_element},
    {.key = "visible_devices_envs", .types = ARRAY | NUL, .element = &variable_element},
    {.key = "export_envs", .types = ARRAY | NUL, .element = &variable_element},
    {.key = "env", .types = ARRAY | NUL, .element = &env_element},
    {.key = "device_nodes", .types = ARRAY | NUL, .element = &node_element},
    {.key = "other_device_nodes", .types = ARRAY | NUL, .element = &node_element},
    {.key = "pci", .types = ARRAY | NUL, .element = &pci_element},
    {.key = "libraries", .types = ARRAY | NUL, .element = &library_element},
    {.key = "remedies",
     .types = OBJECT | NUL,
     .element = &remedy_element,
     .check_key = check_reason},
    {.key = "tolerate", .types = ARRAY | NUL, .element = &tolerate_element},
    {.key = "demand_only", .types = BOOLEAN | NUL},
    {.key = "defers_to", .types = OBJECT | NUL, .element = &defer_element},
    {.key = "op_builder_dir", .types = STRING | NUL, .check = check_op_builder_dir},
    {.key = "op_builders", .types = OBJECT | NUL, .element = &op_element},
    {.key = "options", .types = OBJECT | NUL, .element = &option_element},
    {.types = 0},
};
static const struct rule backend_element_rule = {.types = OBJECT | NUL, .members = backend_members};

static const struct rule probe_members[] = {
    {.key = "mode", .types = STRING | NUL, .values = probe_modes},
    {.key = "containment", .types = STRING | NUL, .values = containments},
    {.key = "timeout_ms", .types = INTEGER | NUL, .minimum = 1, .maximum = 3600000},
    {.key = "parallel", .types = INTEGER | NUL, .minimum = 1, .maximum = 64},
    {.types = 0},
};

static const struct rule trust_members[] = {
    {.key = "mode", .types = STRING | NUL, .values = trust_modes},
    {.key = "sha256", .types = OBJECT | NUL, .element = &sha256_element},
    {.types = 0},
};

static const struct rule layer_element = {.types = STRING, .values = layer_names};

static const struct rule validate_members[] = {
    {.key = "races", .types = STRING | NUL, .values = race_modes},
    {.key = "threads", .types = STRING | NUL, .values = thread_modes},
    {.key = "file", .types = STRING | NUL},
    {.types = 0},
};

static const struct rule trace_members[] = {
    {.key = "file", .types = STRING | NUL},
    {.types = 0},
};

#define TIB (1LL << 40)

static const struct rule allocator_members[] = {
    {.key = "mode", .types = STRING | NUL, .values = allocator_modes},
    {.key = "growable_segments", .types = BOOLEAN | NUL},
    {.key = "gc_threshold", .types = REAL | INTEGER | NUL, .maximum = 1},
    {.key = "fraction", .types = REAL | INTEGER | NUL, .maximum = 1},
    {.key = "max_split_bytes", .types = INTEGER | NUL, .minimum = 0, .maximum = INT64_MAX},
    {.key = "roundup_power2_divisions", .types = INTEGER | NUL, .minimum = 0, .maximum = 64},
    {.key = "small_limit_bytes", .types = INTEGER | NUL, .minimum = 512, .maximum = TIB},
    {.key = "small_segment_bytes", .types = INTEGER | NUL, .minimum = 512, .maximum = TIB},
    {.key = "medium_limit_bytes", .types = INTEGER | NUL, .minimum = 0, .maximum = TIB},
    {.key = "medium_segment_bytes", .types = INTEGER | NUL, .minimum = 512, .maximum = TIB},
    {.key = "large_step_bytes", .types = INTEGER | NUL, .minimum = 512, .maximum = TIB},
    {.key = "limit_bytes", .types = INTEGER | NUL, .minimum = 0, .maximum = INT64_MAX},
    {.key = "history_entries", .types = INTEGER | NUL, .minimum = 0, .maximum = 1LL << 26},
    {.key = "quarantine_bytes", .types = INTEGER | NUL, .minimum = 0, .maximum = INT64_MAX},
    {.types = 0},
};

static const struct rule root_members[] = {
    {.key = "accelerator", .types = STRING | NUL, .check = check_backend_name},
    {.key = "detection_order", .types = ARRAY | NUL, .element = &backend_element},
    {.key = "plugin_dirs", .types = ARRAY | NUL, .element = &path_element},
    {.key = "allow", .types = ARRAY | NUL, .element = &text_element},
    {.key = "deny", .types = ARRAY | NUL, .element = &text_element},
    {.key = "probe", .types = OBJECT | NUL, .members = probe_members},
    {.key = "trust", .types = OBJECT | NUL, .members = trust_members},
    {.key = "layers", .types = ARRAY | NUL, .element = &layer_element},
    {.key = "validate", .types = OBJECT | NUL, .members = validate_members},
    {.key = "trace", .types = OBJECT | NUL, .members = trace_members},
    {.key = "communication_backends", .types = ARRAY | NUL, .element = &library_name_element},
    {.key = "compile_backends", .types = ARRAY | NUL, .element = &library_name_element},
    {.key = "allocator", .types = OBJECT | NUL, .members = allocator_members},
    {.key = "op_settings",
     .types = OBJECT | NUL,
     .element = &op_settings_element,
     .check_key = check_op},
    {.key = "kernels",
     .types = OBJECT | NUL,
     .element = &kernel_element,
     .check_key = check_kernel},
    {.key = "backends",
     .types = OBJECT | NUL,
     .element = &backend_element_rule,
     .check_key = check_backend_name},
    {.types = 0},
};
static const struct rule root_rule = {.types = OBJECT, .members = root_members};

/* A file of op builders must contain nothing else, because most programs never read such a file. */
static const struct rule ops_backend_members[] = {
    {.key = "op_builders", .types = OBJECT | NUL, .element = &op_element},
    {.types = 0},
};
static const struct rule ops_backend = {.types = OBJECT, .members = ops_backend_members};
static const struct rule ops_root_members[] = {
    {.key = "kernels",
     .types = OBJECT | NUL,
     .element = &kernel_element,
     .check_key = check_kernel},
    {.key = "backends", .types = OBJECT, .element = &ops_backend, .check_key = check_backend_name},
    {.types = 0},
};
static const struct rule ops_root_rule = {.types = OBJECT, .members = ops_root_members};

/*
 * The path to a value, innermost key first. It is converted to a JSON pointer only for a problem.
 */
struct step {
    const struct step *up;
    const char *key;
    size_t position; /* index of an array's element, whose key is NULL */
};

struct check {
    ds_accel__problem_t report;
    void *user_data;
    const struct step *at; /* the value being checked; NULL: the whole file */
};

static unsigned type_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_NULL:
        return NUL;
    case JSON_TRUE:
    case JSON_FALSE:
        return BOOLEAN;
    case JSON_INTEGER:
        return INTEGER;
    case JSON_REAL:
        return REAL;
    case JSON_STRING:
        return STRING;
    case JSON_ARRAY:
        return ARRAY;
    case JSON_OBJECT:
        return OBJECT;
    }
    return 0;
}

/* Write the names of a set of types, such as "a text or null". */
static void type_names(unsigned types, char *names, size_t names_size)
{
    static const struct {
        unsigned type;
        const char *name;
    } table[] = {
        {BOOLEAN, "true or false"},
        {INTEGER, "a whole number"},
        {REAL, "a number"},
        {STRING, "a text"},
        {ARRAY, "an array"},
        {OBJECT, "an object"},
        {NUL, "null"},
    };
    size_t length = 0;

    names[0] = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        if ((types & table[i].type) != 0) {
            length += (size_t)snprintf(names + length, names_size - length, "%s%s",
                                       length != 0 ? " or " : "", table[i].name);
        }
    }
}

static void write_pointer(const struct step *step, char *pointer, size_t size)
{
    char position[24];

    if (step != NULL) {
        write_pointer(step->up, pointer, size);
        snprintf(position, sizeof(position), "%zu", step->position);
        ds_accel__pointer_append(pointer, size, step->key != NULL ? step->key : position);
    }
}

static int32_t complain(struct check *check, bool is_key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int32_t complain(struct check *check, bool is_key, const char *format, ...)
{
    char pointer[1024] = ""; /* large enough for the path of any valid value */
    char message[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    write_pointer(check->at, pointer, sizeof(pointer));
    return check->report(check->user_data, pointer, is_key, message);
}

static int32_t check_value(struct check *check, const char *name, json_t *value,
                           const struct rule *rule);

static int32_t unknown_key(struct check *check, const char *key, const struct rule *members)
{
    const char *names[32];
    size_t count = 0;
    const char *nearest;
    struct step step = {.up = check->at, .key = key};
    int32_t status;

    check->at = &step;
    for (; members != NULL && members[count].types != 0 && count < ARRAY_SIZE(names); count++) {
        names[count] = members[count].key;
    }
    nearest = ds_accel__nearest(key, names, count);
    if (nearest != NULL) {
        status = complain(check, true, "unknown key \"%.64s\"; did you mean \"%s\"?", key, nearest);
    } else {
        char all[400] = "";
        size_t at = 0;

        for (size_t i = 0; i < count && at < sizeof(all); i++) {
            at += (size_t)snprintf(all + at, sizeof(all) - at, "%s%s", i > 0 ? ", " : "", names[i]);
        }
        status = complain(check, true, "unknown key \"%.64s\"; expected one of %s", key, all);
    }
    check->at = step.up;
    return status;
}

static int32_t check_object(struct check *check, json_t *object, const struct rule *rule)
{
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value)
    {
        const struct rule *found = rule->element;
        struct step step = {.up = check->at, .key = key};
        int32_t status = DS_ACCEL_OK;

        for (const struct rule *m = rule->members; m != NULL && m->types != 0; m++) {
            if (strcmp(m->key, key) == 0) {
                found = m;
            }
        }
        if (strlen(key) > KEY_LIMIT_BYTES) {
            status = complain(check, false,
                              "a key has %zu bytes, \"%.64s...\"; expected at most %d", strlen(key),
                              key, KEY_LIMIT_BYTES);
        } else if (found == NULL) {
            status = unknown_key(check, key, rule->members);
        } else {
            const char *wrong = rule->check_key != NULL ? rule->check_key(key) : NULL;

            check->at = &step;
            if (wrong != NULL) {
                status = complain(check, true, "\"%.64s\": %s", key, wrong);
            } else {
                status = check_value(check, key, value, found);
            }
            check->at = step.up;
        }
        if (status < 0) {
            return status;
        }
    }
    return DS_ACCEL_OK;
}

#define LIST_SHOWN_BYTES 200 /* a longer list of valid values is replaced by the closest value */

static int32_t check_string(struct check *check, const char *name, const char *text,
                            const struct rule *rule)
{
    const char *wrong = rule->check != NULL ? rule->check(text) : NULL;
    char all[800] = ""; /* values that do not fit are omitted */
    size_t at = 0;
    size_t count = 0;
    const char *nearest;

    if (wrong != NULL) {
        return complain(check, false, "\"%s\" is \"%.64s\": %s", name, text, wrong);
    }
    if (rule->values == NULL) {
        return DS_ACCEL_OK;
    }
    for (; rule->values[count] != NULL; count++) {
        if (strcmp(rule->values[count], text) == 0) {
            return DS_ACCEL_OK;
        }
    }
    for (size_t i = 0; i < count && at < sizeof(all); i++) {
        at += (size_t)snprintf(all + at, sizeof(all) - at, "%s\"%s\"", i > 0 ? ", " : "",
                               rule->values[i]);
    }
    nearest = ds_accel__nearest(text, rule->values, count);
    if (nearest != NULL && at > LIST_SHOWN_BYTES) {
        return complain(check, false, "\"%s\" is \"%.64s\"; did you mean \"%s\"?", name, text,
                        nearest);
    }
    return complain(check, false, "\"%s\" is \"%.64s\"; expected %s%s%s%s%s", name, text,
                    count > 1 ? "one of " : "", all, nearest != NULL ? "; did you mean \"" : "",
                    nearest != NULL ? nearest : "", nearest != NULL ? "\"?" : "");
}

static int32_t check_value(struct check *check, const char *name, json_t *value,
                           const struct rule *rule)
{
    unsigned type = type_of(value);

    if ((rule->types & type) == 0) {
        char expected[96];
        char given[32];

        type_names(rule->types, expected, sizeof(expected));
        type_names(type, given, sizeof(given));
        return complain(check, false, "\"%s\" is %s; expected %s", name, given, expected);
    }
    if (type == STRING) {
        return check_string(check, name, json_string_value(value), rule);
    }
    if (type == INTEGER && rule->maximum != 0 &&
        (json_integer_value(value) < rule->minimum || json_integer_value(value) > rule->maximum)) {
        return complain(check, false, "\"%s\" is %lld; expected a whole number from %lld to %lld",
                        name, (long long)json_integer_value(value), rule->minimum, rule->maximum);
    }
    if (type == REAL && rule->maximum != 0 &&
        (json_real_value(value) < (double)rule->minimum ||
         json_real_value(value) > (double)rule->maximum)) {
        return complain(check, false, "\"%s\" is %g; expected a number from %lld to %lld", name,
                        json_real_value(value), rule->minimum, rule->maximum);
    }
    if (type == ARRAY) {
        for (size_t i = 0; i < json_array_size(value); i++) {
            struct step step = {.up = check->at, .position = i};
            int32_t status;

            check->at = &step;
            status = check_value(check, name, json_array_get(value, i), rule->element);
            check->at = step.up;
            if (status < 0) {
                return status;
            }
        }
    }
    if (type == OBJECT) {
        const char *wrong = rule->check_whole != NULL ? rule->check_whole(value) : NULL;
        int32_t status = check_object(check, value, rule);

        return status >= 0 && wrong != NULL ? complain(check, false, "\"%s\": %s", name, wrong)
                                            : status;
    }
    return DS_ACCEL_OK;
}

int32_t ds_accel__config_check_tree(json_t *root, bool is_ops, ds_accel__problem_t report,
                                    void *user_data)
{
    struct check check = {.report = report, .user_data = user_data};

    return check_value(&check, "the file", root, is_ops ? &ops_root_rule : &root_rule);
}
