/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The command ds-accel note: writes the ELF note of DS_ACCEL_PLUGIN() for languages without C
 * macros. */
#include "tool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HARDWARE_BYTES 4096 /* limit of DS_ACCEL_PLUGIN_HARDWARE() */

/* The values of the arguments. */
struct plan {
    struct ds_accel_note note;
    uint64_t required, optional;
    char hardware[HARDWARE_BYTES]; /* contents of the second note; "": only one note is written */
    bool is_c;
};

/* The output. The buffer is large enough for two notes, whose bytes take up to 6 characters
 * each. */
struct output {
    char text[64 * 1024];
    size_t length;
};

/* ---- reading the arguments ------------------------------------------------------------------ */

static bool is_name(const char *text)
{
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_.");

    return text[0] >= 'a' && text[0] <= 'z' && text[length] == '\0' && length <= 31;
}

/* Copy a text to a field. False if the text is too long, empty, or has characters that a terminal
 * interprets. */
static bool take_text(char *field, size_t field_bytes, const char *text)
{
    char clean[HARDWARE_BYTES];
    size_t length = strlen(text);

    if (length == 0 || length >= field_bytes || length >= sizeof(clean)) {
        return false;
    }
    memcpy(clean, text, length + 1);
    ds_accel_sanitize_text(clean, length + 1);
    memcpy(field, text, length + 1);
    return strcmp(clean, text) == 0;
}

/* Parse the name of a feature, or a number whose set bits each stand for a feature, and set the
 * bits in *bits. False: the text is neither. */
static bool take_feature(const char *text, uint64_t *bits)
{
    static const struct {
        const char *name;
        uint64_t bit;
    } features[] = {
        {"config", DS_ACCEL_FEATURE_CONFIG},           {"machine", DS_ACCEL_FEATURE_MACHINE},
        {"topology", DS_ACCEL_FEATURE_TOPOLOGY},       {"trace", DS_ACCEL_FEATURE_TRACE},
        {"demand_only", DS_ACCEL_FEATURE_DEMAND_ONLY},
    };
    char *end;
    unsigned long long number;

    for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++) {
        if (strcmp(text, features[i].name) == 0) {
            *bits |= features[i].bit;
            return true;
        }
    }
    errno = 0;
    number = strtoull(text, &end, 0);
    *bits |= number;
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0;
}

/* Parse a list of features: "config,topology", "0x4". */
static bool take_features(const char *list, uint64_t *bits)
{
    char word[64];

    for (;;) {
        size_t length = strcspn(list, ",");

        if (length >= sizeof(word)) {
            return false;
        }
        memcpy(word, list, length);
        word[length] = '\0';
        if (!take_feature(word, bits)) {
            return false;
        }
        if (list[length] == '\0') {
            return true;
        }
        list += length + 1;
    }
}

/* Add a line to the second note, which lists hardware. False if the line does not begin with "pci "
 * or "node /", or take_text() rejects it. */
static bool take_hardware(const char *line, char *hardware)
{
    size_t used = strlen(hardware);

    if (strncmp(line, "pci ", 4) != 0 && strncmp(line, "node /", 6) != 0) {
        return false;
    }
    if (!take_text(hardware + used, HARDWARE_BYTES - used - 1, line)) {
        return false;
    }
    strcat(hardware + used, "\n");
    return true;
}

static bool take_size(const char *text, uint32_t *size)
{
    char *end;
    unsigned long number = strtoul(text, &end, 0);

    *size = (uint32_t)number;
    return text[0] >= '0' && text[0] <= '9' && *end == '\0' && number <= 65536;
}

/* Parse one KEY=VALUE. */
static bool take_value(struct plan *plan, const char *argument)
{
    size_t key = strcspn(argument, "=");
    const char *value = argument + key + (argument[key] == '=');

    if (strncmp(argument, "required=", key + 1) == 0) {
        return take_features(value, &plan->required);
    }
    if (strncmp(argument, "optional=", key + 1) == 0) {
        return take_features(value, &plan->optional);
    }
    if (strncmp(argument, "hardware=", key + 1) == 0) {
        return take_hardware(value, plan->hardware);
    }
    if (strncmp(argument, "table_size=", key + 1) == 0) {
        return take_size(value, &plan->note.desc.table_size);
    }
    plan->is_c = strcmp(value, "c") == 0;
    return strncmp(argument, "language=", key + 1) == 0 &&
           (plan->is_c || strcmp(value, "assembler") == 0);
}

/* Initialize the note as DS_ACCEL_PLUGIN() does, before the arguments change it. */
static void begin(struct plan *plan)
{
    struct ds_accel_note_desc *desc = &plan->note.desc;

    memset(plan, 0, sizeof(*plan));
    plan->note.owner_size = sizeof(DS_ACCEL_NOTE_NAME);
    plan->note.desc_size = sizeof(*desc);
    plan->note.type = DS_ACCEL_NOTE_TYPE;
    memcpy(plan->note.owner, DS_ACCEL_NOTE_NAME, sizeof(DS_ACCEL_NOTE_NAME));
    desc->struct_size = sizeof(*desc);
    desc->abi_major = DS_ACCEL_ABI_MAJOR;
    desc->abi_minor = DS_ACCEL_ABI_MINOR;
    desc->table_size = sizeof(struct ds_accel_plugin);
}

/* Parse all arguments. Returns -1 on success, or the exit code for a usage error. */
static int take(const struct tool *tool, struct plan *plan, int argument_count, char **arguments)
{
    struct ds_accel_note_desc *desc = &plan->note.desc;

    if (!is_name(arguments[0])) {
        return tool_usage(tool, "\"%s\" is not a plugin name", arguments[0]);
    }
    if (!take_text(desc->name, sizeof(desc->name), arguments[0]) ||
        !take_text(desc->vendor, sizeof(desc->vendor), arguments[1])) {
        return tool_usage(tool, "\"%s\" is not a vendor of 1 to 63 bytes", arguments[1]);
    }
    if (!take_text(desc->version, sizeof(desc->version), arguments[2])) {
        return tool_usage(tool, "\"%s\" is not a version of 1 to 31 bytes", arguments[2]);
    }
    for (int i = 3; i < argument_count; i++) {
        if (!take_value(plan, arguments[i])) {
            return tool_usage(tool, "cannot use \"%s\"", arguments[i]);
        }
    }
    desc->required_features[0] = (uint32_t)plan->required;
    desc->required_features[1] = (uint32_t)(plan->required >> 32);
    desc->optional_features[0] = (uint32_t)plan->optional;
    desc->optional_features[1] = (uint32_t)(plan->optional >> 32);
    return -1;
}

/* ---- writing -------------------------------------------------------------------------------- */

static void put(struct output *output, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void put(struct output *output, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    output->length += (size_t)vsnprintf(output->text + output->length,
                                        sizeof(output->text) - output->length, format, arguments);
    va_end(arguments);
}

/* Write bytes, 12 per line; each line begins with before and ends with after. */
static void put_bytes(struct output *output, const void *bytes, size_t size, const char *before,
                      const char *after)
{
    const unsigned char *byte = bytes;

    for (size_t i = 0; i < size; i++) {
        put(output, "%s0x%02x", i % 12 == 0 ? before : ", ", byte[i]);
        if (i % 12 == 11 || i + 1 == size) {
            put(output, "%s\n", after);
        }
    }
}

/* Write the note as assembler code. Numbers are written as operands of .2byte and .4byte, not as
 * bytes, so that the assembler chooses the byte order of its target. */
static void put_assembler(struct output *output, const struct plan *plan,
                          const struct ds_accel_note *second, size_t hardware_bytes)
{
    const struct ds_accel_note *note = &plan->note;
    const struct ds_accel_note_desc *desc = &note->desc;
    const char *const byte = "\t.byte ";

    put(output,
        "/* The note of ds_accel_%s.so, by ds-accel note. */\n"
        "\t.pushsection .note.ds_accel,\"a\",%%note\n\t.balign 4\n",
        desc->name);
    put(output, "\t.4byte %u, %u, %u\n", note->owner_size, note->desc_size, note->type);
    put_bytes(output, note->owner, sizeof(note->owner), byte, "");
    put(output, "\t.4byte %u\n\t.2byte %u, %u\n\t.4byte %u, %u, %u, %u, %u, %u\n",
        desc->struct_size, desc->abi_major, desc->abi_minor, desc->required_features[0],
        desc->required_features[1], desc->optional_features[0], desc->optional_features[1],
        desc->table_size, desc->reserved);
    put_bytes(output, desc->name, sizeof(desc->name), byte, "");
    put_bytes(output, desc->version, sizeof(desc->version), byte, "");
    put_bytes(output, desc->vendor, sizeof(desc->vendor), byte, "");
    if (hardware_bytes > 0) {
        put(output, "\t.4byte %u, %u, %u\n", second->owner_size, second->desc_size, second->type);
        put_bytes(output, second->owner, sizeof(second->owner), byte, "");
        put_bytes(output, plan->hardware, hardware_bytes, byte, "");
    }
    put(output, "\t.popsection\n\t.section .note.GNU-stack,\"\",%%progbits\n");
}

static void put_c(struct output *output, const struct plan *plan,
                  const struct ds_accel_note *second, size_t hardware_bytes)
{
    put(output,
        "/* The note of ds_accel_%s.so, by ds-accel note. */\n"
        "#if __BYTE_ORDER__ != __ORDER_%s_ENDIAN__\n"
        "#error \"the note was written for another byte order\"\n"
        "#endif\n"
        "#ifdef __clang__\n"
        "__attribute__((no_sanitize_address))\n"
        "#endif\n"
        "__attribute__((used, aligned(4), section(\".note.ds_accel\")))\n"
        "static const unsigned char ds_accel_note_[] = {\n",
        plan->note.desc.name, __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? "LITTLE" : "BIG");
    put_bytes(output, &plan->note, sizeof(plan->note), "    ", ",");
    if (hardware_bytes > 0) {
        put_bytes(output, second, offsetof(struct ds_accel_note, desc), "    ", ",");
        put_bytes(output, plan->hardware, hardware_bytes, "    ", ",");
    }
    put(output, "};\n");
}

static int run(struct tool *tool, int argument_count, char **arguments)
{
    static struct plan plan;
    static struct output output;
    struct ds_accel_note second;
    size_t hardware_bytes = 0;
    int code;

    if (tool->json) {
        return tool_usage(tool, "a note is source, not JSON");
    }
    begin(&plan);
    code = take(tool, &plan, argument_count, arguments);
    if (code >= 0) {
        return code;
    }
    if (plan.hardware[0] != '\0') {
        hardware_bytes = (strlen(plan.hardware) + 1 + 3) / 4 * 4;
    }
    second = plan.note;
    second.type = DS_ACCEL_HARDWARE_NOTE_TYPE;
    second.desc_size = (uint32_t)hardware_bytes;
    if (plan.is_c) {
        put_c(&output, &plan, &second, hardware_bytes);
    } else {
        put_assembler(&output, &plan, &second, hardware_bytes);
    }
    return tool_answer(tool, output.text, output.length, EXIT_OK);
}

const struct tool_command cmd_note = {
    .name = "note",
    .arguments = "NAME VENDOR VERSION [KEY=VALUE...]",
    .summary = "write a plugin's ELF note, for other languages than C",
    .help = "Writes the section .note.ds_accel that DS_ACCEL_PLUGIN() makes in C and C++, as\n"
            "source to assemble or compile into the plugin. Keys:\n"
            "  required=FEATURES, optional=FEATURES  names, as config,topology, or bits, as 0x5\n"
            "  hardware=LINE        as DS_ACCEL_PLUGIN_HARDWARE() has it, without the newline:\n"
            "                       \"pci 10de:03\"; may be given again\n"
            "  language=assembler   or c\n"
            "  table_size=BYTES     of the plugin's table, if it is not of this version\n"
            "  -o, --output FILE    write to FILE in place of stdout",
    .least = 3,
    .most = 64,
    .own_options = "output",
    .run = run,
};
