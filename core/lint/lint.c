/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Checks a plugin file against the numbered rules of docs/plugin-abi.md that can be checked without
 * a device; plugin vendors run it. A rule that depends on a broken rule is skipped, so that one
 * mistake is reported once. Rules that need the plugin's code are checked in a helper process
 * (probe_lint.c), because that code may crash, unless the configuration turns helpers off.
 */
#include "base/json.h"
#include "base/text.h"
#include "base/trust.h"
#include "ds_accel_tools.h"
#include "host/context.h"
#include "host/guard.h"
#include "host/probe.h"
#include "host/registry.h"
#include "machine/elf_file.h"
#include "runtime/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define RULE_LIMIT 109

struct lint {
    struct {
        const char *title; /* NULL: not a rule for files */
        const char *result;
        char detail[512];
    } rules[RULE_LIMIT]; /* indexed by rule number */
    bool is_broken;
    const char *path;
    char name[DS_ACCEL__NAME_SIZE];
    struct ds_accel__elf elf;
    bool has_elf;
    bool has_note;
    struct ds_accel__elf_harm harm; /* valid if has_elf */
    ds_accel_t *context;
    struct ds_accel__candidate *candidate; /* the plugin as the host probes it */
};

/* Rules whose check runs the plugin's code. */
static const struct {
    int number;
    const char *title;
} code_rules[] = {
    {6, "it loads by itself, with every symbol bound"},
    {9, "its entry returns the same static table each time"},
    {10, "its table is complete and agrees with its note"},
    {11, "its required functions are there"},
    {13, "its probe returns a complete verdict"},
    {25, "Texts are UTF-8, end with a NUL, and have one line"},
    {26, "No exception, longjmp() or thread cancellation escapes, and nothing ends the process"},
    {28, "The process is left unchanged"},
    {30, "Instances are independent"},
    {32, "Probe leaves nothing behind and wakes no device"},
};

/* Set the result of a rule. After a failure, later results of the rule are ignored. */
__attribute__((format(printf, 4, 5))) static void
set_result(struct lint *lint, int number, uint32_t result, const char *format, ...)
{
    bool has_failed = strcmp(lint->rules[number].result, "failed") == 0;
    va_list arguments;

    if (has_failed) {
        return;
    }
    lint->rules[number].result = result == DS_ACCEL__RULE_FAILED   ? "failed"
                                 : result == DS_ACCEL__RULE_PASSED ? "passed"
                                                                   : "skipped";
    lint->is_broken = lint->is_broken || result == DS_ACCEL__RULE_FAILED;
    va_start(arguments, format);
    vsnprintf(lint->rules[number].detail, sizeof(lint->rules[number].detail), format, arguments);
    va_end(arguments);
    ds_accel__sanitize(lint->rules[number].detail, sizeof(lint->rules[number].detail));
}

/* Mark a rule as passed. A rule that already passed keeps its detail, which lists tolerated
 * findings. */
static void pass_rule(struct lint *lint, int number)
{
    if (strcmp(lint->rules[number].result, "passed") != 0) {
        set_result(lint, number, DS_ACCEL__RULE_PASSED, "%s", "");
    }
}

static void judge(struct lint *lint, int number, const char *title, bool can_check,
                  const struct ds_accel__finding *finding)
{
    lint->rules[number].title = title;
    lint->rules[number].result = "skipped";
    if (can_check) {
        lint->rules[number].result = finding->reason != DS_ACCEL__REASON_NONE ? "failed" : "passed";
        memcpy(lint->rules[number].detail, finding->detail, sizeof(finding->detail));
        lint->is_broken = lint->is_broken || finding->reason != DS_ACCEL__REASON_NONE;
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
        ds_accel__finding_set(&finding, DS_ACCEL__REASON_BAD_NAME,
                              "\"%.200s\"; expected ds_accel_<name>.so", file);
    }
    judge(lint, 1, "the file is named ds_accel_<name>.so", true, &finding);
}

/* Check the ELF file and its note. A note whose name differs from the file name breaks P4, and a
 * note that requires an unknown feature breaks P12; neither breaks P3. */
static int32_t check_file(struct lint *lint)
{
    struct ds_accel__finding elf = {0};
    struct ds_accel__finding note = {0};
    struct ds_accel__finding none = {0};
    bool bad_name;
    bool bad_feature;
    int32_t status;
    int fd;

    /* The owner of the file and its directories is not checked here, so that files in a vendor's
     * build tree can be linted: ds_accel__trust_named_file() checks it in a process with raised
     * rights. */
    fd = open(lint->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return ds_accel__error(DS_ACCEL_ERR_IO, "%s: %s", lint->path, strerror(errno));
    }
    status = ds_accel__elf_open(fd, &lint->elf, &elf);
    close(fd);
    if (status < 0) {
        return status;
    }
    if (elf.reason == DS_ACCEL__REASON_NONE) {
        ds_accel__elf_read_harm(&lint->elf, &lint->harm);
        elf = lint->harm.dynamic;
        if (lint->elf.is_short_of_memory) {
            return ds_accel__no_memory();
        }
    }
    lint->has_elf = elf.reason == DS_ACCEL__REASON_NONE;
    judge(lint, 2, "it is a shared object of this machine", true, &elf);
    if (lint->has_elf) {
        ds_accel__elf_check_note(&lint->elf, lint->name, &note);
        if (lint->elf.is_short_of_memory) {
            return ds_accel__no_memory();
        }
    }
    bad_name = note.reason == DS_ACCEL__REASON_NAME_MISMATCH;
    bad_feature = note.reason == DS_ACCEL__REASON_FEATURE_UNKNOWN;
    lint->has_note = lint->has_elf &&
                     (note.reason == DS_ACCEL__REASON_NONE || bad_name || bad_feature);
    judge(lint, 3, "it has one well-formed ds-accel note", lint->has_elf,
          lint->has_note ? &none : &note);
    judge(lint, 4, "file name and note have the same name",
          lint->has_note && ds_accel__is_backend_name(lint->name), bad_name ? &note : &none);
    judge(lint, 12, "this host knows its required features", lint->has_note,
          bad_feature ? &note : &none);
    return DS_ACCEL_OK;
}

/* Write the lines of a text that is_fine() rejects to the finding's detail, after head. */
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
        ds_accel__finding_set(finding, DS_ACCEL__REASON_BROKEN_RULE, "%s%s", head, list.data);
    }
    ds_accel__text_clear(&list);
}

static bool is_our_export(const char *symbol)
{
    /* Linkers of old binutils define __bss_start, _edata and _end in every object. */
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

    for (size_t i = 0; i < ARRAY_SIZE(vendors); i++) {
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
    if (!dynamic.has_bind_now || !dynamic.has_nodelete ||
        lint->harm.text.reason != DS_ACCEL__REASON_NONE) {
        ds_accel__finding_set(&flags, DS_ACCEL__REASON_BROKEN_RULE, "%s%s%s",
                              dynamic.has_bind_now ? "" : "not linked with -z now. ",
                              dynamic.has_nodelete ? "" : "not linked with -z nodelete. ",
                              lint->harm.text.reason != DS_ACCEL__REASON_NONE
                                  ? "has text relocations: build with -fPIC. "
                                  : "");
    }
    judge(lint, 8, "it is linked with -z now and -z nodelete, position-independent", lint->has_elf,
          &flags);
    judge(lint, 107, "it needs no executable stack", lint->has_elf, &lint->harm.stack);
    judge(lint, 108, "its libraries are found from / or $ORIGIN", lint->has_elf, &lint->harm.paths);
    if (dynamic.exports.failed || dynamic.needed.failed) {
        status = ds_accel__no_memory();
    }
    ds_accel__elf_dynamic_clear(&dynamic);
    return status;
}

/* ---- rules that run the plugin's code ------------------------------------------------------- */

static void take_rule(void *user_data, uint32_t number, uint32_t result, const char *detail)
{
    struct lint *lint = user_data;

    if (number < RULE_LIMIT && lint->rules[number].title != NULL) {
        set_result(lint, (int)number, result, "%s", detail);
    }
}

/* Record a change that the plugin made to the process, found by the gate conduct, as a result of
 * rule P28, P30 or P32. If the configuration tolerates the change, the rule passes. */
static void take_conduct(void *user_data, bool is_started, enum ds_accel__reason_id reason,
                         const char *detail)
{
    struct lint *lint = user_data;
    bool is_left = strncmp(ds_accel__reason_code(reason), "leaves_", 7) == 0;
    bool is_tolerated = ds_accel__conduct_is_tolerated(lint->candidate, reason);

    set_result(lint, is_left ? is_started ? 30 : 32 : 28,
               is_tolerated ? DS_ACCEL__RULE_PASSED : DS_ACCEL__RULE_FAILED, "%s%s: %s",
               is_tolerated ? "tolerated: " : "", ds_accel__reason_code(reason), detail);
}

static void take_change(void *user_data, enum ds_accel__reason_id reason, const char *detail)
{
    take_conduct(user_data, false, reason, detail);
}

/* Fail P28 if the plugin printed anything; the detail is the first line. Output is captured only in
 * a helper process. */
static void judge_output(struct lint *lint)
{
    const char *output = lint->candidate->output;

    if (output != NULL && output[0] != '\0') {
        set_result(lint, 28, DS_ACCEL__RULE_FAILED, "written to stdout or stderr: %.*s",
                   (int)strcspn(output, "\n"), output);
    }
}

/* True if no helper process could run, which is no mistake of the plugin. */
static bool has_no_helper(const struct ds_accel__candidate *candidate)
{
    return strncmp(ds_accel__reason_code(candidate->reason), "helper_", 7) == 0;
}

/* Set the results of the rules that depend on how the process that ran the plugin's code
 * terminated. */
static void judge_process(struct lint *lint)
{
    const struct ds_accel__candidate *candidate = lint->candidate;
    const char *detail = candidate->detail != NULL ? candidate->detail : "";
    bool is_whole = candidate->state != DS_ACCEL_STATE_CRASHED &&
                    candidate->state != DS_ACCEL_STATE_TIMED_OUT;

    if (is_whole) {
        judge_output(lint);
        pass_rule(lint, 26);
        pass_rule(lint, 28);
        pass_rule(lint, 30);
        pass_rule(lint, 32);
    } else if (ds_accel__reason_is_of_result(candidate->reason)) {
        pass_rule(lint, 26);
        set_result(lint, 28, DS_ACCEL__RULE_FAILED, "%s: %s",
                   ds_accel__reason_code(candidate->reason), detail);
    } else {
        set_result(lint, 26, DS_ACCEL__RULE_FAILED, "%s: %s",
                   ds_accel__reason_code(candidate->reason), detail);
    }
}

/* Check the code rules in this process. Resources that the plugin leaks cannot be detected here,
 * and a crash of the plugin kills this process. */
static int32_t check_code_here(struct lint *lint)
{
    struct ds_accel__guard guard;
    int32_t status;

    ds_accel__guard_take(&guard);
    status = ds_accel__probe_lint(lint->candidate, take_rule, lint);
    ds_accel__guard_compare(&guard, take_change, lint);
    ds_accel__guard_restore(&guard, NULL, NULL);
    pass_rule(lint, 26);
    pass_rule(lint, 28);
    return status;
}

static int32_t check_code(struct lint *lint)
{
    struct ds_accel__candidate *candidate = lint->candidate;
    const struct ds_accel__lint_sink sink = {take_rule, take_conduct, lint};
    int32_t status;

    if (!ds_accel__probe_is_isolated(lint->context)) {
        return check_code_here(lint);
    }
    candidate->lint = &sink;
    /* The file passed the file rules. */
    ds_accel__candidate_enter(candidate, DS_ACCEL__PHASE_CHECKED);
    status = ds_accel__probe_all(lint->context, &candidate, 1);
    ds_accel__probe_finish(lint->context);
    candidate->lint = NULL;
    if (status >= 0 && has_no_helper(candidate)) {
        status = ds_accel__error(DS_ACCEL_ERR_IO, "%s: %s",
                                 ds_accel__reason_code(candidate->reason),
                                 candidate->detail != NULL ? candidate->detail : "");
    }
    if (status >= 0) {
        judge_process(lint);
    }
    return status;
}

/* True if the file has a property for which every host refuses to load it. Such a file is not
 * loaded here either, and the rules that need its code are skipped. */
static bool is_harmful(const struct lint *lint)
{
    return lint->harm.stack.reason != DS_ACCEL__REASON_NONE ||
           lint->harm.text.reason != DS_ACCEL__REASON_NONE ||
           lint->harm.paths.reason != DS_ACCEL__REASON_NONE;
}

static int32_t run_checks(struct lint *lint)
{
    int32_t status;

    check_name(lint);
    status = check_file(lint);
    if (status >= 0) {
        status = check_dynamic(lint);
    }
    for (size_t i = 0; i < ARRAY_SIZE(code_rules); i++) {
        lint->rules[code_rules[i].number].title = code_rules[i].title;
        lint->rules[code_rules[i].number].result = "skipped";
    }
    return status >= 0 && lint->has_note && !is_harmful(lint) ? check_code(lint) : status;
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
    char *real;

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
    if (lint.context->recording != NULL) {
        ds_accel_destroy(lint.context);
        return ds_accel__error(DS_ACCEL_ERR_NOT_USABLE,
                               "the machine is a recorded one: no plugin is run on it");
    }
    real = realpath(path, NULL);
    status = ds_accel__trust_named_file(real != NULL ? real : path);
    if (status < 0) {
        free(real);
        ds_accel_destroy(lint.context);
        return status;
    }
    lint.candidate = ds_accel__candidate_create(lint.context, "", real != NULL ? real : path);
    free(real);
    status = lint.candidate != NULL ? run_checks(&lint) : ds_accel__no_memory();
    if (status >= 0) {
        status = ds_accel__report_write(DS_ACCEL__REPORT_LINT, lint_tree(&lint), format, text_out);
    }
    if (status >= 0 && lint.is_broken) {
        status = ds_accel__error(DS_ACCEL_ERR_ABI, "%s breaks rules of the plugin ABI", path);
    }
    ds_accel__candidate_destroy(lint.candidate);
    ds_accel__elf_close(&lint.elf);
    ds_accel_destroy(lint.context);
    return status;
}
