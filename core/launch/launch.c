/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A job, from its command line to its plan:
 *
 *      arguments -> options          options.c
 *      hostfile -> hosts             hostfile.c
 *      machine, plugin -> facts      facts.c
 *      all of them -> plan           plan.c; shown by --dry-run
 *      plan -> processes             guard.c, supervise.c
 */
#include "launch/launch.h"
#include "ds_accel_tools.h"
#include "host/context.h"
#include "launch/guard.h"
#include "launch/plan_json.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_HOSTFILE "/job/hostfile"

/* Log each line of the notes. */
static void log_notes(const struct ds_accel_launch *launch, struct ds_accel__text *notes)
{
    char *state = NULL;

    for (char *line = notes->data != NULL ? strtok_r(notes->data, "\n", &state) : NULL;
         line != NULL; line = strtok_r(NULL, "\n", &state)) {
        ds_accel__log(&launch->log, "run", DS_ACCEL_LOG_WARN, "%s", line);
    }
}

/* Replace a text by a copy. */
static bool keep_text(struct ds_accel_launch *launch, const char **text)
{
    char *copy = *text != NULL ? strdup(*text) : NULL;

    if (copy != NULL) {
        launch->texts[launch->text_count++] = copy;
    }
    if (*text != NULL && copy == NULL) {
        return false;
    }
    *text = copy;
    return true;
}

/* Replace all texts of the context's options by copies. */
static int32_t keep_options(struct ds_accel_launch *launch)
{
    struct ds_accel_options *options = &launch->context_options;
    const char **const texts[] = {&options->accelerator,        &options->config_file,
                                  &options->package_config_dir, &options->system_config_dir,
                                  &options->machine_root,       &options->log_levels,
                                  &options->cache_dir,          &options->machine_file};
    uint32_t count = options->plugin_dir_count;
    bool kept;

    launch->texts = calloc(ARRAY_SIZE(texts) + count, sizeof(*launch->texts));
    launch->plugin_dirs = calloc(count + 1, sizeof(*launch->plugin_dirs));
    kept = launch->texts != NULL && launch->plugin_dirs != NULL;
    for (size_t i = 0; kept && i < ARRAY_SIZE(texts); i++) {
        kept = keep_text(launch, texts[i]);
    }
    for (uint32_t i = 0; kept && i < count; i++) {
        launch->plugin_dirs[i] = options->plugin_dirs[i];
        kept = keep_text(launch, &launch->plugin_dirs[i]);
    }
    if (count > 0) {
        options->plugin_dirs = launch->plugin_dirs;
    }
    return kept ? DS_ACCEL_OK : ds_accel__no_memory();
}

/* Options of the context: those of the caller, replaced by those of the command line. */
static int32_t make_options(const struct ds_accel_options *given,
                            const struct ds_accel__launch_options *launch,
                            struct ds_accel_options *options)
{
    int32_t status = ds_accel__options_read(given, options);

    if (status < 0) {
        return status;
    }
    options->accelerator = launch->accelerator != NULL ? launch->accelerator : options->accelerator;
    options->config_file = launch->config != NULL ? launch->config : options->config_file;
    options->machine_file = launch->machine != NULL ? launch->machine : options->machine_file;
    options->machine_root = launch->root != NULL ? launch->root : options->machine_root;
    if (launch->plugin_dir_count > 0) {
        options->plugin_dirs = launch->plugin_dirs;
        options->plugin_dir_count = launch->plugin_dir_count;
    }
    if (launch->verbosity > 0) {
        options->log_levels = launch->verbosity > 1 ? "debug" : "info";
    } else if (strcmp(launch->log_level, "debug") == 0) {
        options->log_levels = "debug";
    } else if (strcmp(launch->log_level, "error") == 0 ||
               strcmp(launch->log_level, "critical") == 0) {
        options->log_levels = "error";
    }
    return DS_ACCEL_OK;
}

/* Read the hostfile. *found_out is false if there is none: the job then has this machine only. */
static int32_t read_hosts(const struct ds_accel__launch_options *options,
                          struct ds_accel__hosts *hosts, struct ds_accel__text *notes,
                          bool *found_out)
{
    const char *path = options->hostfile != NULL ? options->hostfile : DEFAULT_HOSTFILE;
    int32_t status;

    *found_out = false;
    if (strcmp(path, "/dev/null") == 0) { /* how people say that there is none */
        return DS_ACCEL_OK;
    }
    status = ds_accel__hostfile_read(path, hosts);
    *found_out = status >= 0;
    if (status == DS_ACCEL_ERR_NOT_FOUND) {
        if (options->hostfile != NULL) {
            ds_accel__launch_note(
                notes, "there is no hostfile %s: the job runs on this machine only", path);
        }
        return DS_ACCEL_OK;
    }
    return status;
}

static int32_t make_plan(struct ds_accel_launch *launch, const struct ds_accel_options *given,
                         struct ds_accel__text *notes)
{
    struct ds_accel__hosts hosts = {0};
    struct ds_accel_options *options = &launch->context_options;
    bool has_hostfile = false;
    int32_t status = make_options(given, &launch->options, options);

    if (status >= 0) {
        status = keep_options(launch);
    }
    if (status >= 0) {
        status = read_hosts(&launch->options, &hosts, notes, &has_hostfile);
    }
    if (status >= 0) {
        status = ds_accel__known_facts_read(options, &launch->options, has_hostfile, notes,
                                            &launch->known);
    }
    if (status >= 0) {
        launch->log = launch->known.context->log;
        status = ds_accel__plan_make(&launch->options, &launch->known.facts,
                                     has_hostfile ? &hosts : NULL, notes, &launch->plan);
    }
    ds_accel__hosts_clear(&hosts);
    return status;
}

int32_t ds_accel_launch_create(const struct ds_accel_options *options, uint32_t argument_count,
                               const char *const *arguments, ds_accel_launch_t **launch_out)
{
    struct ds_accel__text notes = {0};
    struct ds_accel_launch *launch;
    int32_t status;

    if (arguments == NULL || launch_out == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "arguments or launch_out is NULL");
    }
    launch = calloc(1, sizeof(*launch));
    if (launch == NULL) {
        return ds_accel__no_memory();
    }
    status = ds_accel__launch_options_parse(argument_count, arguments, &launch->options);
    if (status >= 0 && !launch->options.wants_help && !launch->options.wants_version) {
        status = launch->options.program_count > 0
                     ? make_plan(launch, options, &notes)
                     : ds_accel__error(DS_ACCEL_ERR_INVALID, "no program was given");
    }
    if (status >= 0 && launch->options.misplaced != NULL) {
        ds_accel__launch_note(&notes,
                              "%s is passed to the program, because it follows it; as an "
                              "option of ds-accel run it must precede the program",
                              launch->options.misplaced);
    }
    if (status >= 0 && notes.failed) {
        status = ds_accel__no_memory();
    }
    if (status < 0) {
        ds_accel_launch_destroy(launch);
    } else {
        log_notes(launch, &notes);
        *launch_out = launch;
    }
    ds_accel__text_clear(&notes);
    return status;
}

void ds_accel_launch_destroy(ds_accel_launch_t *launch)
{
    if (launch == NULL) {
        return;
    }
    ds_accel__plan_clear(&launch->plan);
    ds_accel__known_facts_clear(&launch->known);
    for (size_t i = 0; i < launch->text_count; i++) {
        free(launch->texts[i]);
    }
    free(launch->texts);
    free(launch->plugin_dirs);
    free(launch);
}

uint32_t ds_accel_launch_wish(const ds_accel_launch_t *launch)
{
    if (launch->options.wants_help) {
        return DS_ACCEL_LAUNCH_HELP;
    }
    if (launch->options.wants_version) {
        return DS_ACCEL_LAUNCH_VERSION;
    }
    return launch->options.dry_run ? DS_ACCEL_LAUNCH_PLAN : DS_ACCEL_LAUNCH_RUN;
}

int32_t ds_accel_launch_write(const ds_accel_launch_t *launch, ds_accel_write_t write,
                              void *user_data)
{
    if (launch == NULL || write == NULL || launch->plan.ranks == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "there is no plan, or write is NULL");
    }
    return launch->options.json ? ds_accel__plan_write_json(&launch->plan, write, user_data)
                                : ds_accel__plan_write_text(&launch->plan, write, user_data);
}

const char *ds_accel_launch_result_file(const ds_accel_launch_t *launch)
{
    return launch->options.result;
}

int32_t ds_accel_launch_run(ds_accel_launch_t *launch, int32_t *exit_code_out, char **result_out)
{
    if (launch == NULL || exit_code_out == NULL || launch->plan.ranks == NULL) {
        return ds_accel__error(DS_ACCEL_ERR_INVALID, "there is no plan, or exit_code_out is NULL");
    }
    if (launch->has_run) {
        return ds_accel__error(DS_ACCEL_ERR_STATE,
                               "the job has run already, and a job runs once: create another one "
                               "with ds_accel_launch_create()");
    }
    if (launch->known.context->recording != NULL) {
        return ds_accel__error(DS_ACCEL_ERR_NOT_USABLE,
                               "the machine is a recorded one: only --dry-run can use it");
    }
    if (launch->plan.refusal != NULL) {
        return ds_accel__error(DS_ACCEL_ERR_UNSUPPORTED, "%s", launch->plan.refusal);
    }
    return ds_accel__guard_run(launch, exit_code_out, result_out);
}
