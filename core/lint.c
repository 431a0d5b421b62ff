/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The vendor's gate: the rules of docs/plugin-abi.md that can be checked on a file, by number. A
 * rule that depends on a broken one is skipped, so that one mistake is reported once.
 */
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define RULE_LIMIT 14

struct lint {
    struct {
        const char *title; /* NULL: not a rule for files */
        const char *result;
        char detail[512];
    } rules[RULE_LIMIT]; /* by number */
    bool is_broken;
    const char *path;
    char name[DS_ACCEL__NAME_SIZE];
    struct ds_accel__elf elf;
    bool has_elf;
    bool has_note;
    ds_accel__module_t *module;
    const struct ds_accel_plugin *theirs;
    struct ds_accel_plugin table;
    bool has_table;
    ds_accel_t *context;
    struct ds_accel__candidate *candidate; /* who the host logs for, and who is probed */
};

static void judge(struct lint *lint, int number, const char *title, bool can_check,
                  const struct ds_accel__finding *finding)
{
    lint->rules[number].title = title;
    lint->rules[number].result = "skipped";
    if (can_check) {
        lint->rules[number].result = finding->reason != NULL ? "failed" : "passed";
        memcpy(lint->rules[number].detail, finding->detail, sizeof(finding->detail));
        lint->is_broken = lint->is_broken || finding->reason != NULL;
    }
}

/* ---- the file ------------------------------------------------------------------------------- */

static void check_name(struct lint *lint)
{
    const char *file = strrchr(lint->path, '/');
    struct ds_accel__finding finding = {0};
    size_t length;

    file = file != NULL ? file + 1 : lint->path;
    length = strlen(file);
    if (length > 12 && length - 12 < sizeof(lint->name) && strncmp(file, "ds_accel_", 9) == 0 &&
        strcmp(file + length - 3, ".so") == 0) {
        snprintf(lint->name, sizeof(lint->name), "%.*s", (int)length - 12, file + 9);
    }
    memcpy(lint->candidate->name, lint->name, sizeof(lint->name));
    if (!ds_accel__is_backend_name(lint->name)) {
        ds_accel__find(&finding, "bad_name", "\"%.200s\"; expected ds_accel_<name>.so", file);
    }
    judge(lint, 1, "the file is named ds_accel_<name>.so", true, &finding);
}

/* The file's two gates in one; a note that fails for its name breaks P4, not P3. */
static int32_t check_file(struct lint *lint)
{
    struct ds_accel__finding elf = {0};
    struct ds_accel__finding note = {0};
    struct ds_accel__finding none = {0};
    bool bad_name;
    bool bad_feature;
    int32_t status;
    int fd;

    /* Whoever owns it and its folders: a vendor's build tree need not be trusted. */
    fd = open(lint->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return ds_accel__error(DS_ACCEL_ERR_IO, "%s: %s", lint->path, strerror(errno));
    }
    status = ds_accel__elf_open(fd, &lint->elf, &elf);
    close(fd);
    if (status < 0) {
        return status;
    }
    lint->has_elf = elf.reason == NULL;
    judge(lint, 2, "it is a shared object of this machine", true, &elf);
    if (lint->has_elf) {
        ds_accel__elf_check_note(&lint->elf, lint->name, &note);
    }
    bad_name = note.reason != NULL && strcmp(note.reason, "name_mismatch") == 0;
    bad_feature = note.reason != NULL && strcmp(note.reason, "feature_unknown") == 0;
    lint->has_note = lint->has_elf && (note.reason == NULL || bad_name || bad_feature);
    judge(lint, 3, "it has one well-formed ds-accel note", lint->has_elf,
          lint->has_note ? &none : &note);
    judge(lint, 4, "file and note say the same name",
          lint->has_note && ds_accel__is_backend_name(lint->name), bad_name ? &note : &none);
    judge(lint, 12, "its required features are known here", lint->has_note,
          bad_feature ? &note : &none);
    return DS_ACCEL_OK;
}

/* Lines of text other than those that are as expected, as a list in detail. */
static void list_lines(const struct ds_accel__text *text, bool (*is_fine)(const char *line),
                       struct ds_accel__finding *finding, const char *head)
{
    const char *at = text->data != NULL ? text->data : "";
    struct ds_accel__text list = {0};

    while (*at != '\0') {
        char line[256];
        size_t length = strcspn(at, "\n");

        snprintf(line, sizeof(line), "%.*s", (int)(length < 255 ? length : 255), at);
        if (!is_fine(line)) {
            ds_accel__text_add(&list, " %s", line);
        }
        at += length + (at[length] == '\n');
    }
    if (list.size_bytes > 0) {
        ds_accel__find(finding, "broken", "%s%s", head, list.data);
    }
    ds_accel__text_clear(&list);
}

static bool is_our_export(const char *symbol)
{
    /* Linkers of old binutils define the last three in every object. */
    return strncmp(symbol, "ds_accel_entry_v", 16) == 0 || strcmp(symbol, "_init") == 0 ||
           strcmp(symbol, "_fini") == 0 || strcmp(symbol, "__bss_start") == 0 ||
           strcmp(symbol, "_edata") == 0 || strcmp(symbol, "_end") == 0;
}

static bool is_allowed_library(const char *library)
{
    static const char *const vendors[] = {
        "libcuda.so", "libcudart",    "libnvidia-ml", "libamdhip64", "librocm_smi64",
        "libamd_smi", "libze_loader", "libascendcl",  "libdcmi",     "libSynapse",
        "libhlml",    "libcnrt",      "libcndev",     "libsdaart",   "libtcml",
        "libsupa",    "libbiren",     "libOpenCL",    "libnccl",     "librccl",
    };

    for (size_t i = 0; i < DS_ACCEL__ARRAY_SIZE(vendors); i++) {
        if (strncmp(library, vendors[i], strlen(vendors[i])) == 0) {
            return false;
        }
    }
    return true;
}

static int32_t check_dynamic(struct lint *lint)
{
    struct ds_accel__elf_dynamic dynamic = {0};
    struct ds_accel__finding exports = {0};
    struct ds_accel__finding needed = {0};
    struct ds_accel__finding flags = {0};
    int32_t status = DS_ACCEL_OK;

    if (lint->has_elf) {
        ds_accel__elf_read_dynamic(&lint->elf, &dynamic);
    }
    list_lines(&dynamic.exports, is_our_export, &exports, "also exported:");
    judge(lint, 5, "it exports its entry and nothing else", lint->has_elf, &exports);
    list_lines(&dynamic.needed, is_allowed_library, &needed, "linked:");
    judge(lint, 7, "it opens its vendor's runtime itself, and links none", lint->has_elf, &needed);
    if (!dynamic.has_bind_now || !dynamic.has_nodelete || dynamic.has_textrel ||
        dynamic.has_executable_stack) {
        ds_accel__find(&flags, "broken", "%s%s%s%s",
                       dynamic.has_bind_now ? "" : "not linked with -z now. ",
                       dynamic.has_nodelete ? "" : "not linked with -z nodelete. ",
                       dynamic.has_textrel ? "has text relocations: build with -fPIC. " : "",
                       dynamic.has_executable_stack ? "needs an executable stack. " : "");
    }
    judge(lint, 8, "it is linked with -z now and -z nodelete, position-independent", lint->has_elf,
          &flags);
    if (dynamic.exports.failed || dynamic.needed.failed) {
        status = ds_accel__no_memory();
    }
    ds_accel__elf_dynamic_clear(&dynamic);
    return status;
}

/* ---- its code ------------------------------------------------------------------------------- */

static int32_t check_load(struct lint *lint)
{
    struct ds_accel__finding finding = {0};
    char *path = lint->has_note ? realpath(lint->path, NULL) : NULL;
    int32_t status = DS_ACCEL_OK;

    if (path != NULL) {
        status = ds_accel__module_open(path, &lint->module, &finding);
    }
    judge(lint, 6, "it loads by itself, with every symbol bound", path != NULL, &finding);
    free(path);
    return status;
}

/* Note and table, both of the plugin, must agree in all that both say. */
static void compare_note(const struct lint *lint, struct ds_accel__finding *finding)
{
    const struct ds_accel_note_desc *note = &lint->elf.desc;
    const struct ds_accel_plugin *table = &lint->table;
    uint64_t required = note->required_features[0] | (uint64_t)note->required_features[1] << 32;
    uint64_t optional = note->optional_features[0] | (uint64_t)note->optional_features[1] << 32;
    uint32_t table_size;

    memcpy(&table_size, lint->theirs, sizeof(table_size));
    if (table->vendor == NULL || table->version == NULL) {
        ds_accel__find(finding, "broken", "vendor or version is NULL");
    } else if (strncmp(table->vendor, note->vendor, sizeof(note->vendor)) != 0 ||
               strncmp(table->version, note->version, sizeof(note->version)) != 0) {
        ds_accel__find(finding, "broken", "note and table differ in vendor or version");
    } else if (table->required_features != required || table->optional_features != optional) {
        ds_accel__find(finding, "broken", "note and table differ in features");
    } else if (table_size != note->table_size) {
        ds_accel__find(finding, "broken", "the note says a table of %u bytes, the table %u",
                       note->table_size, table_size);
    }
}

static void check_entry(struct lint *lint)
{
    struct ds_accel__finding finding = {0};
    struct ds_accel__finding table = {0};
    struct ds_accel__finding none = {0};
    const struct ds_accel_plugin *second = NULL;
    bool can_call = lint->module != NULL;
    bool has_all_slots;
    bool knows_features;

    ds_accel__plugin_lock();
    if (can_call) {
        ds_accel__module_entry(lint->module, &lint->candidate->host.abi, &lint->theirs, &finding);
    }
    if (lint->theirs != NULL) {
        ds_accel__module_entry(lint->module, &lint->candidate->host.abi, &second, &finding);
        if (second != lint->theirs) {
            ds_accel__find(&finding, "broken", "two calls gave two tables");
        }
        /* By the note's name: whether the file has it is another rule's matter. */
        ds_accel__table_import(lint->theirs, lint->elf.desc.name, &lint->table, &table);
        knows_features = table.reason == NULL || strcmp(table.reason, "feature_unknown") != 0;
        if (table.reason == NULL || !knows_features) {
            table.reason = NULL;
            table.detail[0] = '\0';
            compare_note(lint, &table);
        }
    }
    ds_accel__plugin_unlock();
    judge(lint, 9, "its entry gives the same static table each time", can_call, &finding);
    has_all_slots = table.reason == NULL || strcmp(table.reason, "slot_missing") != 0;
    lint->has_table = lint->theirs != NULL && table.reason == NULL;
    judge(lint, 10, "its table is complete and says what its note says", lint->theirs != NULL,
          has_all_slots ? &table : &none);
    judge(lint, 11, "its required functions are there", lint->has_table || !has_all_slots,
          has_all_slots ? &none : &table);
}

static void check_probe(struct lint *lint)
{
    struct ds_accel__candidate *candidate = lint->candidate;
    struct ds_accel__finding finding = {0};

    if (lint->has_table) {
        candidate->table = lint->table;
        candidate->has_table = true;
        ds_accel__probe_here(candidate);
        if (strcmp(candidate->reason, "bad_verdict") == 0) {
            ds_accel__find(&finding, "broken", "%s",
                           candidate->detail != NULL ? candidate->detail : "");
        }
    }
    judge(lint, 13, "its probe gives a complete verdict", lint->has_table, &finding);
}

static int32_t run_checks(struct lint *lint)
{
    int32_t status;

    check_name(lint);
    status = check_file(lint);
    if (status >= 0) {
        status = check_dynamic(lint);
    }
    if (status >= 0) {
        status = check_load(lint);
    }
    if (status >= 0) {
        check_entry(lint);
        check_probe(lint);
    }
    return status;
}

static json_t *lint_tree(const struct lint *lint)
{
    bool failed = false;
    json_t *tree = json_object();
    json_t *rules = json_array();

    ds_accel__json_set(tree, "schema_version", json_integer(1), &failed);
    ds_accel__json_set(tree, "path", ds_accel__json_text(lint->path), &failed);
    ds_accel__json_set(tree, "ok", json_boolean(!lint->is_broken), &failed);
    for (int number = 1; number < RULE_LIMIT; number++) {
        json_t *rule;
        char id[16];

        if (lint->rules[number].title == NULL) {
            continue;
        }
        rule = json_object();
        snprintf(id, sizeof(id), "DSA-P%d", number);
        ds_accel__json_set(rule, "rule", ds_accel__json_text(id), &failed);
        ds_accel__json_set(rule, "title", ds_accel__json_text(lint->rules[number].title), &failed);
        ds_accel__json_set(rule, "result", ds_accel__json_text(lint->rules[number].result),
                           &failed);
        ds_accel__json_set(rule, "detail", ds_accel__json_text(lint->rules[number].detail),
                           &failed);
        if (json_array_append_new(rules, rule) != 0) {
            failed = true;
        }
    }
    ds_accel__json_set(tree, "rules", rules, &failed);
    if (failed) {
        json_decref(tree);
        return NULL;
    }
    return tree;
}

int32_t ds_accel_lint(const struct ds_accel_options *options, const char *path, uint32_t format,
                      char **text_out)
{
    struct lint lint = {.path = path};
    int32_t status;

    if (path == NULL || text_out == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "path or text_out is NULL");
    }
    if (access(path, R_OK) != 0) {
        return ds_accel__error(DS_ACCEL_ERR_IO, "%s: %s", path, strerror(errno));
    }
    status = ds_accel_create(options, &lint.context);
    if (status < 0) {
        return status;
    }
    lint.candidate = ds_accel__candidate_create(lint.context, "", path);
    status = lint.candidate != NULL ? run_checks(&lint) : ds_accel__no_memory();
    if (status >= 0) {
        status = ds_accel__report_write(DS_ACCEL__REPORT_LINT, lint_tree(&lint), format, text_out);
    }
    if (status >= 0 && lint.is_broken) {
        status = ds_accel__error(DS_ACCEL_ERR_ABI, "%s breaks rules of the plugin ABI", path);
    }
    ds_accel__candidate_destroy(lint.candidate);
    ds_accel__module_close(lint.module);
    ds_accel__elf_close(&lint.elf);
    ds_accel_destroy(lint.context);
    return status;
}
