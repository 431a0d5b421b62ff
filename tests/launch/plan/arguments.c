/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The command line: tests of the parser with the table options.json. */
#include "launch.h"

static void set_text(json_t *answer, const char *key, const char *text)
{
    json_object_set_new(answer, key, text != NULL ? json_string(text) : json_null());
}

static void describe_texts(const struct ds_accel__launch_options *options, json_t *answer)
{
    set_text(answer, "hostfile", options->hostfile);
    set_text(answer, "include", options->include);
    set_text(answer, "exclude", options->exclude);
    set_text(answer, "master_addr", options->master_addr);
    set_text(answer, "master_port", options->master_port);
    set_text(answer, "launcher", options->launcher);
    set_text(answer, "launcher_args", options->launcher_args);
    set_text(answer, "enable_each_rank_log", options->log_directory);
    set_text(answer, "bind_core_list", options->bind_core_list);
    set_text(answer, "venv_script", options->venv_script);
    set_text(answer, "log_level", options->log_level);
    set_text(answer, "result", options->result);
    set_text(answer, "accelerator", options->accelerator);
    set_text(answer, "config", options->config);
    set_text(answer, "machine", options->machine);
    set_text(answer, "root", options->root);
    set_text(answer, "misplaced", options->misplaced);
}

static void describe_numbers(const struct ds_accel__launch_options *options, json_t *answer)
{
    const struct {
        const char *name;
        int64_t number;
    } numbers[] = {
        {"num_nodes", options->num_nodes},
        {"num_gpus", options->num_devices},
        {"min_elastic_nodes", options->min_elastic_nodes},
        {"max_elastic_nodes", options->max_elastic_nodes},
        {"node_rank", options->node_rank},
        {"ssh_port", options->ssh_port},
        {"bind_to", options->bind},
        {"reserve_cores", options->reserve_cores},
        {"reserve_percent", options->reserve_percent},
        {"stall_timeout_s", (int64_t)(options->stall_timeout_ns / 1000000000u)},
        {"verbose", options->verbosity},
    };

    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        json_object_set_new(answer, numbers[i].name, json_integer(numbers[i].number));
    }
}

/* The flags that are set, in alphabetical order. */
static json_t *describe_flags(const struct ds_accel__launch_options *options)
{
    const struct {
        const char *name;
        bool is_set;
    } flags[] = {
        {"bind_cores_to_rank", options->bind_cores_to_rank},
        {"dry_run", options->dry_run},
        {"elastic_training", options->elastic_training},
        {"force_multi", options->force_multi},
        {"help", options->wants_help},
        {"json", options->json},
        {"module", options->module},
        {"no_local_rank", options->no_local_rank},
        {"no_python", options->no_python},
        {"no_ssh", options->no_ssh},
        {"no_ssh_check", options->no_ssh_check},
        {"pty", options->pty},
        {"quiet", options->quiet},
        {"save_pid", options->save_pid},
        {"show_ranks", options->show_ranks},
        {"smt", options->uses_smt},
        {"stall_kill", options->stall_kill},
        {"version", options->wants_version},
    };
    struct ds_accel__text text = {0};
    json_t *value;

    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        if (flags[i].is_set) {
            ds_accel__text_add(&text, "%s%s", text.size_bytes > 0 ? " " : "", flags[i].name);
        }
    }
    value = json_string(text.data != NULL ? text.data : "");
    ds_accel__text_clear(&text);
    return value;
}

static json_t *describe_array(const char *const *texts, uint32_t count)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < count; i++) {
        json_array_append_new(array, json_string(texts[i]));
    }
    return array;
}

static json_t *answer_options(const json_t *args)
{
    struct ds_accel__launch_options options;
    const char *arguments[128];
    uint32_t count = 0;
    json_t *answer;

    for (size_t i = 0; i < json_array_size(args); i++) {
        arguments[count++] = json_string_value(json_array_get(args, i));
    }
    if (ds_accel__launch_options_parse(count, arguments, &options) < 0) {
        return json_pack("{s:s}", "error", ds_accel_last_error());
    }
    answer = json_object();
    describe_texts(&options, answer);
    describe_numbers(&options, answer);
    json_object_set_new(answer, "flags", describe_flags(&options));
    json_object_set_new(answer, "plugin_dirs",
                        describe_array(options.plugin_dirs, options.plugin_dir_count));
    json_object_set_new(answer, "program", describe_array(options.program, options.program_count));
    return answer;
}

static void test_many_directories(void)
{
    json_t *args = json_array();
    json_t *answer;

    for (unsigned i = 0; i <= DS_ACCEL__PLUGIN_DIR_LIMIT; i++) {
        json_array_append_new(args, json_string("--plugin-dir=/p"));
    }
    answer = answer_options(args);
    check("more directories than the limit are refused", member(answer, "error") != NULL,
          "no error");
    json_decref(answer);
    json_array_remove(args, 0);
    answer = answer_options(args);
    check("as many directories as the limit are accepted", member(answer, "error") == NULL, "%s",
          member(answer, "error"));
    json_decref(answer);
    json_decref(args);
}

void test_options(void)
{
    json_t *table = read_data("options.json");
    size_t i;
    json_t *row;

    json_array_foreach(table, i, row)
    {
        json_t *answer = answer_options(json_object_get(row, "args"));

        check_answer(member(row, "name"), answer, json_object_get(row, "expected"));
        json_decref(answer);
    }
    json_decref(table);
    test_many_directories();
}
