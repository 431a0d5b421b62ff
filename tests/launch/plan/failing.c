/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Fails the Nth allocation, for every N until none fails. A function must then report
 * ERR_NO_MEMORY, release everything and leave no half result; if it reports no failure, its result
 * must be that of an undisturbed run.
 */
#include "alloc/allocations.h"
#include "launch.h"
#include "launch/exports.h"

/* ---- scenarios ------------------------------------------------------------------------------ */

/* The result of the running scenario, and of the undisturbed run. */
static char result[1 << 18];
static char expected[sizeof(result)];
static size_t result_size;

static bool keep(void *user_data, const char *text, size_t length)
{
    (void)user_data;
    if (result_size + length < sizeof(result)) {
        memcpy(result + result_size, text, length);
        result_size += length;
        result[result_size] = '\0';
    }
    return true;
}

static bool is_zero(const void *data, size_t size)
{
    const char *bytes = data;

    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

static struct job job;

/* Make the job's plan, and write it in both ways. */
static int32_t make_plan(bool *is_half)
{
    struct ds_accel__text notes = {0};
    struct ds_accel__plan plan = {0};
    int32_t status = plan_job(&job, &notes, &plan);

    *is_half = status < 0 && !is_zero(&plan, sizeof(plan));
    status = status < 0 ? status : ds_accel__plan_write_json(&plan, keep, NULL);
    status = status < 0 ? status : ds_accel__plan_write_text(&plan, keep, NULL);
    ds_accel__text_clear(&notes);
    ds_accel__plan_clear(&plan);
    return status;
}

static struct ds_accel__machine machine = {.root = ""};

static int32_t read_machine(bool *is_half)
{
    struct ds_accel__cpus cpus = {0};
    struct ds_accel__text text = {0};
    int32_t status = ds_accel__cpus_read(&machine, &cpus);

    *is_half = status < 0 && !is_zero(&cpus, sizeof(cpus));
    if (status >= 0) {
        ds_accel__set_write(&cpus.allowed, &text);
        status = text.failed ? ds_accel__no_memory() : status;
    }
    if (status >= 0) {
        keep(NULL, text.data, text.size_bytes);
    }
    ds_accel__text_clear(&text);
    ds_accel__cpus_clear(&cpus);
    return status;
}

static char env_directory[] = "/tmp/ds-accel-launch-XXXXXX";

static int32_t read_env_files(bool *is_half)
{
    static const char *const environment[] = {"DS_ENV_FILE=env", "HOME=/", "UCX_A=1", NULL};
    struct ds_accel__env_file files[DS_ACCEL__ENV_FILE_LIMIT] = {{0}};
    uint32_t count = 0;
    int32_t status = ds_accel__env_files_read(environment, env_directory, files, &count);

    *is_half = status < 0 && !is_zero(files, sizeof(files));
    for (uint32_t i = 0; status >= 0 && i < count; i++) {
        keep(NULL, files[i].text, files[i].size_bytes);
    }
    ds_accel__env_files_clear(files, count);
    return status;
}

/* ---- the driver ----------------------------------------------------------------------------- */

static unsigned long calls; /* allocations of the last run */
static long left;           /* blocks that it allocated and did not free */

/* Run a scenario once, with the allocation of this number failing; 0: none. */
static int32_t run(int32_t (*scenario)(bool *is_half), unsigned long number, bool *is_half)
{
    int32_t status;

    result_size = 0;
    result[0] = '\0';
    allocations_count(number);
    status = scenario(is_half);
    calls = allocations_stop(&left);
    return status;
}

static void fail_all(const char *name, int32_t (*scenario)(bool *is_half))
{
    bool is_half = false;
    int32_t undisturbed = run(scenario, 0, &is_half);
    unsigned long total = calls;
    unsigned long number;

    memcpy(expected, result, sizeof(expected));
    check(name, left == 0 && total > 0 && !is_half, "%ld blocks leaked without a failure", left);
    for (number = 1; number <= total; number++) {
        int32_t status = run(scenario, number, &is_half);
        bool is_right = status == DS_ACCEL_ERR_NO_MEMORY ||
                        (status == undisturbed && strcmp(result, expected) == 0);

        if (!is_right || is_half || left != 0) {
            check(name, false, "allocation %lu of %lu: status %d, %ld blocks leaked%s%s", number,
                  total, status, left, is_half ? ", a half result" : "",
                  is_right ? "" : ", a wrong result");
            return;
        }
    }
    check(name, true, "%s", "");
}

static void fail_job(const json_t *description)
{
    if (make_job(description, &job) >= 0) {
        fail_all(member(description, "name"), make_plan);
    }
    clear_job(&job);
}

/* Every STEP-th job of a table; all with $FULL. */
static void fail_jobs(const json_t *jobs, size_t step)
{
    const char *full = getenv("FULL");
    const char *seed = getenv("SEED");
    bool is_full = full != NULL && full[0] != '\0';
    size_t i;
    json_t *description;

    json_array_foreach(jobs, i, description)
    {
        if (is_full || i % step == (seed != NULL ? strtoul(seed, NULL, 10) : 0) % step) {
            fail_job(description);
        }
    }
}

static void fail_env_files(void)
{
    char path[64];
    FILE *file;

    if (mkdtemp(env_directory) == NULL) {
        check("a directory is made", false, "%s", env_directory);
        return;
    }
    snprintf(path, sizeof(path), "%s/env", env_directory);
    file = fopen(path, "w");
    if (file != NULL) {
        fputs("A=1\n", file);
        fclose(file);
    }
    fail_all("reading environment files without memory", read_env_files);
    remove(path);
    remove(env_directory);
}

void test_failing(void)
{
    json_t *original;
    json_t *machines;

    if (!allocations_can_fail()) {
        return;
    }
    original = read_data("original.json");
    machines = read_data("machines.json");
    machine.files = find_machine("two-sockets-smt");
    fail_all("reading a machine without memory", read_machine);
    fail_env_files();
    fail_jobs(json_object_get(original, "jobs"), 4);
    fail_jobs(json_object_get(machines, "plans"), 8);
    json_decref(original);
    json_decref(machines);
}
