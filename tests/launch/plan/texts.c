/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The plan as JSON and as text. */
#include "launch.h"

#include <unistd.h>

static bool keep(void *user_data, const char *text, size_t length)
{
    ds_accel__text_add_bytes(user_data, text, length);
    return true;
}

static bool refuse(void *user_data, const char *text, size_t length)
{
    (void)user_data;
    (void)text;
    (void)length;
    return false;
}

/* ---- JSON ----------------------------------------------------------------------------------- */

/* Write a plan as JSON, and parse the JSON. */
static json_t *reread(const struct ds_accel__plan *plan)
{
    struct ds_accel__text text = {0};
    json_error_t error;
    json_t *tree = NULL;

    if (ds_accel__plan_write_json(plan, keep, &text) >= 0) {
        tree = json_loadb(text.data, text.size_bytes, JSON_REJECT_DUPLICATES, &error);
    }
    ds_accel__text_clear(&text);
    return tree;
}

static void check_json(const struct ds_accel__plan *plan)
{
    static const char expected[] =
        "{\"rank\": 1, \"local_rank\": 1, \"host\": \"here\", \"cpus\": \"2\","
        " \"reserved_cpus\": \"3\", \"mem_policy\": \"bind\", \"mem_nodes\": \"0\","
        " \"env\": {\"CUDA_VISIBLE_DEVICES\": \"0,1\", \"MASTER_ADDR\": \"here\","
        " \"MASTER_PORT\": \"29500\", \"WORLD_SIZE\": \"3\", \"RANK\": \"1\","
        " \"LOCAL_RANK\": \"1\", \"LOCAL_SIZE\": \"2\", \"LOCAL_WORLD_SIZE\": \"2\","
        " \"CROSS_RANK\": \"0\", \"CROSS_SIZE\": \"2\", \"OMP_NUM_THREADS\": \"1\","
        " \"DS_ACCEL_RESERVED_CPUS\": \"3\", \"KMP_X\": \"1 2\", \"KMP_OLD\": null},"
        " \"argv\": [\"python3\", \"-u\", \"train.py\", \"--local_rank=1\", \"a b\"]}";
    json_t *tree = reread(plan);
    json_t *rank = json_loads(expected, 0, NULL);
    char *got = json_dumps(json_array_get(json_object_get(tree, "ranks"), 1), 0);

    check("JSON describes each rank",
          json_equal(json_array_get(json_object_get(tree, "ranks"), 1), rank), "%s",
          got != NULL ? got : "no JSON");
    free(got);
    got = json_dumps(json_object_get(tree, "hosts"), JSON_COMPACT);
    check("JSON has the hosts and their slots",
          got != NULL && strcmp(got, "[{\"host\":\"here\",\"slots\":[0,1]},"
                                     "{\"host\":\"w1\",\"slots\":[0]}]") == 0,
          "%s", got);
    check("JSON has the reason why the plan is not started",
          member(tree, "refusal") != NULL && strcmp(member(tree, "launcher"), "pdsh") == 0, "%s",
          "no refusal");
    check("JSON has the variables of other hosts",
          json_object_get(json_object_get(tree, "exports"), "PYTHONPATH") != NULL, "%s", "none");
    free(got);
    json_decref(rank);
    json_decref(tree);
}

/* ---- text ----------------------------------------------------------------------------------- */

static void check_text(const struct ds_accel__plan *plan)
{
    static const char expected[] =
        "cuda: 3 ranks on 2 hosts, master here, port 29500\n"
        "not started here: this job has ranks on host w1, and this release starts ranks on this "
        "machine only: start it on each host with --no_ssh and --node_rank, or show the plan with "
        "--dry-run\n"
        "\n"
        "RANK  HOST  LOCAL_RANK  CPUS  RESERVED  MEMORY  DEVICE\n"
        "0     here  0           0     1         bind 0  0\n"
        "1     here  1           2     3         bind 0  1\n"
        "2     w1    0           -     -         -       0\n"
        "\n"
        "command of each rank:\n"
        "  python3 -u train.py --local_rank=$LOCAL_RANK 'a b'\n"
        "\n"
        "environment of all ranks, as arguments of env:\n"
        "  MASTER_ADDR=here\n"
        "  MASTER_PORT=29500\n"
        "  WORLD_SIZE=3\n"
        "  CROSS_SIZE=2\n"
        "  KMP_X='1 2'\n"
        "  -u KMP_OLD\n"
        "\n"
        "environment of each rank:\n"
        "  rank 0: CUDA_VISIBLE_DEVICES=0,1 RANK=0 LOCAL_RANK=0 LOCAL_SIZE=2 LOCAL_WORLD_SIZE=2 "
        "CROSS_RANK=0 OMP_NUM_THREADS=1 DS_ACCEL_RESERVED_CPUS=1\n"
        "  rank 1: CUDA_VISIBLE_DEVICES=0,1 RANK=1 LOCAL_RANK=1 LOCAL_SIZE=2 LOCAL_WORLD_SIZE=2 "
        "CROSS_RANK=0 OMP_NUM_THREADS=1 DS_ACCEL_RESERVED_CPUS=3\n"
        "  rank 2: CUDA_VISIBLE_DEVICES=0 RANK=2 LOCAL_RANK=0 LOCAL_SIZE=1 LOCAL_WORLD_SIZE=1 "
        "CROSS_RANK=1\n"
        "\n"
        "environment for other hosts:\n"
        "  UCX_TLS=tcp\n"
        "  PYTHONPATH=/job\n";
    struct ds_accel__text text = {0};
    int32_t status = ds_accel__plan_write_text(plan, keep, &text);

    check("the text shows all of a plan", status >= 0 && strcmp(text.data, expected) == 0, "\n%s",
          text.data != NULL ? text.data : ds_accel_last_error());
    ds_accel__text_clear(&text);
}

static void test_hosts(void)
{
    static const struct ds_accel__job_variable settings[] = {{"KMP_X", "1 2"}, {"KMP_OLD", NULL}};
    json_t *description = json_pack("{s:[s,s,s,s,s], s:s, s:{s:s, s:s}}", "args",
                                    "--bind_core_list=0-3", "--reserve-cores=1", "--log_level=info",
                                    "train.py", "a b", "hostfile", "here slots=2\nw1 slots=1\n",
                                    "env", "UCX_TLS", "tcp", "HOME", "/home/me");
    struct ds_accel__text notes = {0};
    struct ds_accel__plan plan = {0};
    struct job job;
    bool is_made = make_job(description, &job) >= 0;

    job.facts.settings = settings;
    job.facts.setting_count = ARRAY_SIZE(settings);
    is_made = is_made && plan_job(&job, &notes, &plan) >= 0;
    check("a plan of two hosts is made", is_made, "%s", ds_accel_last_error());
    if (is_made) {
        check_json(&plan);
        check_text(&plan);
        check("a failed write is reported",
              ds_accel__plan_write_json(&plan, refuse, NULL) == DS_ACCEL_ERR_IO &&
                  ds_accel__plan_write_text(&plan, refuse, NULL) == DS_ACCEL_ERR_IO,
              "%s", "no error");
    }
    ds_accel__text_clear(&notes);
    ds_accel__plan_clear(&plan);
    clear_job(&job);
    json_decref(description);
}

/* ---- quoting -------------------------------------------------------------------------------- */

/* Read what bash makes of a line: each word, and a NUL behind it. */
static size_t run_bash(const char *line, char *output, size_t output_size)
{
    char path[] = "/tmp/ds-accel-launch-XXXXXX";
    int descriptor = mkstemp(path);
    char command[64];
    size_t size = 0;
    FILE *pipe;

    if (descriptor < 0) {
        return 0;
    }
    dprintf(descriptor, "printf '%%s\\0' %s\n", line);
    close(descriptor);
    snprintf(command, sizeof(command), "bash %s", path);
    pipe = popen(command, "r");
    if (pipe != NULL) {
        size = fread(output, 1, output_size, pipe);
        pclose(pipe);
    }
    unlink(path);
    return size;
}

/* Let bash read the command in a plan's text, and compare its words with the program. */
static void check_command(char *text, const char *const *program, size_t count)
{
    static const char title[] = "command of each rank:\n";
    char *line = strstr(text, title) + strlen(title);
    char expected[512];
    char output[1024];
    size_t expected_size = 0;
    size_t size;

    for (size_t i = 0; i < count; i++) {
        memcpy(expected + expected_size, program[i], strlen(program[i]) + 1);
        expected_size += strlen(program[i]) + 1;
    }
    line[strcspn(line, "\n")] = '\0';
    size = run_bash(line, output, sizeof(output));
    check("bash reads the command as it was given",
          size == expected_size && memcmp(output, expected, size) == 0, "%s", line);
    check("the command is printable", ds_accel__is_printable(line), "%s", line);
}

/* Plan a program with arguments that a shell would change. */
static void test_quoting(void)
{
    static const char *const program[] = {
        "./a program", "",         " ",        "it's",     "'",     "\"$HOME\" `id` \\n",
        "a\nb\tc\r",   "\xff\xfe", "\xc3\xbc", "\x1b[31m", "a=b",   "--x=y",
        "*",           "~",        "#",        "!!",       "\0017", "{a,b}",
        ";rm",         "\xff'\\",
    };
    json_t *description = json_pack("{s:s}", "args", "--no_python --no_local_rank x");
    struct ds_accel__text notes = {0};
    struct ds_accel__text text = {0};
    struct ds_accel__plan plan = {0};
    struct job job;
    bool is_written = make_job(description, &job) >= 0;

    job.options.program = program;
    job.options.program_count = ARRAY_SIZE(program);
    is_written = is_written && plan_job(&job, &notes, &plan) >= 0 &&
                 ds_accel__plan_write_text(&plan, keep, &text) >= 0;
    check("a plan of any arguments is written", is_written, "%s", ds_accel_last_error());
    if (is_written) {
        check_command(text.data, program, ARRAY_SIZE(program));
    }
    ds_accel__text_clear(&notes);
    ds_accel__text_clear(&text);
    ds_accel__plan_clear(&plan);
    clear_job(&job);
    json_decref(description);
}

/* Names and values from outside, as the text shows them. */
static void test_names(void)
{
    static const struct ds_accel__job_variable settings[] = {
        {"A\x1b[31mB", "1"}, {"C D", "it's"}, {"E\x9b", NULL}, {"F", "\x1b]0;x\a"}};
    static const char expected[] = "  $'A\\033[31mB=1'\n"
                                   "  'C D=it'\\''s'\n"
                                   "  -u $'E\\233'\n"
                                   "  F=$'\\033]0;x\\007'\n";
    json_t *description = json_pack("{s:[s,s,s], s:s, s:{s:s}}", "args", "--no_ssh",
                                    "--node_rank=0", "train.py", "hostfile", "w\x1b[0m slots=1\n",
                                    "env", "UCX\x1b[31m", "1");
    struct ds_accel__text notes = {0};
    struct ds_accel__text text = {0};
    struct ds_accel__plan plan = {0};
    struct job job;
    bool is_written = make_job(description, &job) >= 0;

    job.facts.settings = settings;
    job.facts.setting_count = ARRAY_SIZE(settings);
    is_written = is_written && plan_job(&job, &notes, &plan) >= 0 &&
                 ds_accel__plan_write_text(&plan, keep, &text) >= 0;
    check("a plan with any names is written", is_written, "%s", ds_accel_last_error());
    check("names of variables are escaped as words of a shell",
          is_written && strstr(text.data, expected) != NULL, "\n%s", text.data);
    for (char *c = text.data; is_written && *c != '\0'; c++) {
        *c = *c == '\n' ? ' ' : *c;
    }
    check("the text is printable", is_written && ds_accel__is_printable(text.data), "%s",
          text.data);
    ds_accel__text_clear(&notes);
    ds_accel__text_clear(&text);
    ds_accel__plan_clear(&plan);
    clear_job(&job);
    json_decref(description);
}

static void test_notes(void)
{
    struct ds_accel__text notes = {0};

    ds_accel__launch_note(&notes, "%s is ignored", "a\nb\x1b[31m");
    check("a note is one line without control characters",
          !notes.failed && strcmp(notes.data, "a b [31m is ignored\n") == 0, "%s", notes.data);
    ds_accel__text_clear(&notes);
}

void test_texts(void)
{
    test_names();
    test_notes();
    test_hosts();
    test_quoting();
}
