/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Conformance checks: data types, telemetry, ranges, op builders, environment, random numbers. */
#include "base/text.h"
#include "config/env.h"
#include "conformance/conformance.h"

#include <stdio.h>
#include <string.h>

/* ---- data types, telemetry ------------------------------------------------------------------ */

static void check_dtypes(struct ds_accel__run *run)
{
    const uint32_t known = DS_ACCEL_DTYPE_STORES | DS_ACCEL_DTYPE_COMPUTES |
                           DS_ACCEL_DTYPE_EMULATED;

    for (uint32_t dtype = DS_ACCEL_DTYPE_FLOAT32; dtype <= DS_ACCEL_DTYPE_COMPLEX128; dtype++) {
        uint32_t support = UINT32_MAX;

        WANT(run, DS_ACCEL_OK, dtype_support, run->device, dtype, &support);
        EXPECT(run, (support & ~known) == 0, "data type %u has support 0x%x", dtype, support);
        EXPECT(run, support == 0 || (support & DS_ACCEL_DTYPE_STORES) != 0,
               "data type %u is computed with (0x%x), and not stored", dtype, support);
    }
}

static void check_telemetry(struct ds_accel__run *run)
{
    struct ds_accel_telemetry now = {.struct_size = sizeof(now)};
    const uint64_t known = 2 * DS_ACCEL_TELEMETRY_MEMORY - 1;

    WANT(run, DS_ACCEL_OK, telemetry_get, run->instance, run->device_index, &now);
    EXPECT(run, (now.valid & ~known) == 0, "valid is 0x%llx", (unsigned long long)now.valid);
    EXPECT(run, (now.valid & DS_ACCEL_TELEMETRY_UTILIZATION) == 0 || now.utilization_percent <= 100,
           "utilization is %u %%", now.utilization_percent);
    EXPECT(run,
           (now.valid & DS_ACCEL_TELEMETRY_MEMORY_UTILIZATION) == 0 ||
               now.memory_utilization_percent <= 100,
           "memory utilization is %u %%", now.memory_utilization_percent);
    /* NVML may report a fan speed of more than 100 %. */
    EXPECT(run, (now.valid & DS_ACCEL_TELEMETRY_FAN) == 0 || now.fan_percent <= 200,
           "the fan runs at %u %%", now.fan_percent);
    EXPECT(
        run,
        (now.valid & DS_ACCEL_TELEMETRY_TEMPERATURE) == 0 ||
            (now.temperature_millidegrees_c > -100000 && now.temperature_millidegrees_c < 200000),
        "the temperature is %d thousandths of a degree", now.temperature_millidegrees_c);
    EXPECT(run,
           (now.valid & DS_ACCEL_TELEMETRY_MEMORY) == 0 ||
               now.memory_used_bytes <= now.memory_total_bytes,
           "%llu bytes are used of %llu", (unsigned long long)now.memory_used_bytes,
           (unsigned long long)now.memory_total_bytes);
}

/* ---- ranges --------------------------------------------------------------------------------- */

static void push_and_pop(struct ds_accel__run *run)
{
    WANT(run, DS_ACCEL_OK, range_push, run->instance, "outer", NULL, NULL);
    WANT(run, DS_ACCEL_OK, range_push, run->instance, "inner", "domain", "category");
    WANT(run, DS_ACCEL_OK, range_push, run->instance, "innermost", NULL, NULL);
    WANT(run, DS_ACCEL_OK, range_pop, run->instance, NULL);
    WANT(run, DS_ACCEL_OK, range_pop, run->instance, "domain");
    WANT(run, DS_ACCEL_OK, range_pop, run->instance, NULL);
}

static void *push_in_thread(void *user_data)
{
    struct ds_accel__run run = *(const struct ds_accel__run *)user_data;

    push_and_pop(&run);
    return NULL;
}

/* Pop a range on a thread that pushed none, which must fail. */
static int32_t pop_in_thread(struct ds_accel__run *run, void *user_data)
{
    (void)user_data;
    return CALL(run, range_pop, run->instance, NULL);
}

static void check_pop(struct ds_accel__run *run)
{
    struct ds_accel__caller caller;
    int32_t status;

    WANT(run, DS_ACCEL_OK, range_push, run->instance, "of this thread", NULL, NULL);
    ds_accel__caller_start(run, &caller, pop_in_thread, NULL);
    status = ds_accel__caller_finish(run, &caller);
    ds_accel__want(run, DS_ACCEL_ERR_STATE, "range_pop without a range of the thread", status);
    WANT(run, DS_ACCEL_OK, range_pop, run->instance, NULL);
    WANT(run, DS_ACCEL_ERR_STATE, range_pop, run->instance, NULL);
}

/* Check that ranges belong to the thread that pushed them. */
static void check_ranges(struct ds_accel__run *run)
{
    pthread_t thread;

    WANT(run, DS_ACCEL_OK, range_push, run->instance, "of this thread", NULL, NULL);
    EXPECT(run, pthread_create(&thread, NULL, push_in_thread, run) == 0,
           "no thread can be created");
    pthread_join(thread, NULL);
    push_and_pop(run);
    WANT(run, DS_ACCEL_OK, range_pop, run->instance, NULL);
}

static void check_profiler(struct ds_accel__run *run)
{
    WANT(run, DS_ACCEL_OK, profiler_start, run->instance);
    WANT(run, DS_ACCEL_OK, profiler_stop, run->instance);
}

/* ---- op builders ---------------------------------------------------------------------------- */

#define FEW 64u

static void check_builders(struct ds_accel__run *run)
{
    struct ds_accel_op_builder builders[FEW] = {0};
    uint32_t count = 0;

    WANT(run, DS_ACCEL_OK, op_builders_get, run->instance, builders, sizeof(builders[0]), FEW,
         &count);
    for (uint32_t i = 0; i < count && i < FEW; i++) {
        const struct ds_accel_op_builder *it = &builders[i];

        EXPECT(run, it->builder != NULL && it->builder[0] != '\0', "builder %u has no name", i);
        EXPECT(run, it->op != NULL && it->op[0] != '\0', "builder %u has no op", i);
        if (it->json != NULL) {
            json_t *recipe = json_loads(it->json, 0, NULL);

            EXPECT(run, json_is_object(recipe), "the recipe of %s is not a JSON object",
                   it->builder);
            json_decref(recipe);
        }
    }
}

static void check_compatible(struct ds_accel__run *run)
{
    char reason[256] = "";
    uint32_t is_compatible = 99;

    WANT(run, DS_ACCEL_OK, op_compatible, run->instance, "nobody_knows_this_op", &is_compatible,
         reason, (uint32_t)sizeof(reason));
    EXPECT(run, is_compatible <= 1, "compatible is %u, expected 0 or 1", is_compatible);
    EXPECT(run, is_compatible == 1 || reason[0] != '\0', "an op is refused without a reason");
}

/* ---- environment ---------------------------------------------------------------------------- */

static void check_rules(struct ds_accel__run *run)
{
    struct ds_accel_env_rule rules[FEW] = {0};
    uint32_t count = 0;

    WANT(run, DS_ACCEL_OK, env_rules_get, run->instance, rules, sizeof(rules[0]), FEW, &count);
    for (uint32_t i = 0; i < count && i < FEW; i++) {
        const struct ds_accel_env_rule *it = &rules[i];

        EXPECT(run, it->rule >= DS_ACCEL_ENV_IF_UNSET && it->rule <= DS_ACCEL_ENV_UNSET,
               "rule %u is %u", i, it->rule);
        EXPECT(run, it->name != NULL && ds_accel__is_variable_name(it->name),
               "rule %u has no variable's name", i);
        EXPECT(run, (it->value == NULL) == (it->rule == DS_ACCEL_ENV_UNSET),
               "rule %u for %s %s a value", i, it->name, it->value != NULL ? "has" : "lacks");
    }
}

/* Count the names in a list of env_name_get. */
static uint32_t count_names(struct ds_accel__run *run, uint32_t list)
{
    for (uint32_t position = 0; position < 1000; position++) {
        char name[128] = "";
        int32_t status =
            CALL(run, env_name_get, run->instance, list, position, name, (uint32_t)sizeof(name));

        if (status == DS_ACCEL_ERR_NOT_FOUND) {
            return position;
        }
        ds_accel__want(run, DS_ACCEL_OK, "env_name_get", status);
        EXPECT(run, name[0] != '\0', "name %u of list %u is empty", position, list);
    }
    ds_accel__check_fail(run, "list %u has no end within 1000 names", list);
}

static void check_names(struct ds_accel__run *run)
{
    count_names(run, DS_ACCEL_ENV_LIST_VISIBLE_DEVICES);
    count_names(run, DS_ACCEL_ENV_LIST_EXPORT);
}

static void check_visible(struct ds_accel__run *run)
{
    char variable[128] = "";
    char value[256];
    char again[256] = "";
    uint32_t needed = 0;
    const uint32_t index = run->device_count - 1;

    if (CALL(run, env_name_get, run->instance, DS_ACCEL_ENV_LIST_VISIBLE_DEVICES, 0, variable,
             (uint32_t)sizeof(variable)) == DS_ACCEL_ERR_NOT_FOUND) {
        ds_accel__skip(run, "no variable chooses devices");
        return;
    }
    WANT(run, DS_ACCEL_ERR_LIMIT, visible_devices_value, run->instance, variable, &index, 1, NULL,
         0, &needed);
    EXPECT(run, needed > 0 && needed <= sizeof(value), "%u bytes are needed for one device",
           needed);
    memset(value, 0x5a, sizeof(value));
    WANT(run, DS_ACCEL_ERR_LIMIT, visible_devices_value, run->instance, variable, &index, 1, value,
         needed - 1, NULL);
    EXPECT(run, value[0] == 0x5a, "a value that does not fit was written");
    WANT(run, DS_ACCEL_OK, visible_devices_value, run->instance, variable, &index, 1, value, needed,
         NULL);
    EXPECT(run, memchr(value, '\0', needed) == value + needed - 1,
           "%u bytes were reported as needed, but the value has another size", needed);
    EXPECT(run, value[needed] == 0x5a, "a byte after the value was written");
    WANT(run, DS_ACCEL_OK, visible_devices_value, run->instance, variable, &index, 1, again,
         (uint32_t)sizeof(again), NULL);
    EXPECT(run, strcmp(value, again) == 0, "the value is \"%.60s\" and then \"%.60s\"", value,
           again);
}

/* Check each variable of the list: its name is valid, and visible_devices_value returns OK or
 * ERR_UNSUPPORTED for it. */
static void check_variables(struct ds_accel__run *run)
{
    const uint32_t index = 0;
    char variable[128];
    char value[1024];

    for (uint32_t i = 0;
         i < 100 && CALL(run, env_name_get, run->instance, DS_ACCEL_ENV_LIST_VISIBLE_DEVICES, i,
                         variable, (uint32_t)sizeof(variable)) == DS_ACCEL_OK;
         i++) {
        int32_t status = CALL(run, visible_devices_value, run->instance, variable, &index, 1, value,
                              (uint32_t)sizeof(value), NULL);

        EXPECT(run, ds_accel__is_variable_name(variable), "\"%.60s\" is not a variable name",
               variable);
        EXPECT(run, status == DS_ACCEL_OK || status == DS_ACCEL_ERR_UNSUPPORTED,
               "visible_devices_value of %.60s, which is in the list: %s: %.150s", variable,
               ds_accel__status_text(status), run->error.message);
    }
}

/* Set the variable in another process to the value that selects these devices, and fail unless
 * that process sees exactly these devices, in this order. */
static void want_shown(struct ds_accel__run *run, const char *variable, const uint32_t *indices,
                       uint32_t count)
{
    char value[1024] = "";
    struct ds_accel__peer peer = {.variable = variable, .value = value};

    WANT(run, DS_ACCEL_OK, visible_devices_value, run->instance, variable, indices, count, value,
         (uint32_t)sizeof(value), NULL);
    EXPECT(run, ds_accel__run_peer(run, &peer), "with %s=%.64s the plugin does not start: %s",
           variable, value, peer.problem);
    EXPECT(run, peer.count == count, "with %s=%.64s there are %u devices, expected %u", variable,
           value, peer.count, count);
    for (uint32_t i = 0; i < count; i++) {
        char wanted[sizeof(peer.devices[0])];

        ds_accel__describe_device(run, indices[i], wanted, sizeof(wanted));
        EXPECT(run, strcmp(wanted, peer.devices[i]) == 0,
               "with %s=%.64s device %u is \"%s\", expected \"%s\"", variable, value, i,
               peer.devices[i], wanted);
    }
}

/* Check the values of the first listed variable that select all devices (at most
 * DS_ACCEL__PEER_DEVICES) in reverse order and, if there are several devices, the last device
 * alone. If the variable cannot reorder devices, check the original order instead of the reverse
 * order. */
static void check_shown(struct ds_accel__run *run)
{
    uint32_t count = run->device_count < DS_ACCEL__PEER_DEVICES ? run->device_count
                                                                : DS_ACCEL__PEER_DEVICES;
    const uint32_t last = run->device_count - 1;
    uint32_t indices[DS_ACCEL__PEER_DEVICES];
    char variable[128] = "";
    char value[1024] = "";

    if (CALL(run, env_name_get, run->instance, DS_ACCEL_ENV_LIST_VISIBLE_DEVICES, 0, variable,
             (uint32_t)sizeof(variable)) == DS_ACCEL_ERR_NOT_FOUND) {
        ds_accel__skip(run, "no variable chooses devices");
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        indices[i] = count - 1 - i;
    }
    if (CALL(run, visible_devices_value, run->instance, variable, indices, count, value,
             (uint32_t)sizeof(value), NULL) == DS_ACCEL_ERR_UNSUPPORTED) {
        for (uint32_t i = 0; i < count; i++) {
            indices[i] = i;
        }
    }
    want_shown(run, variable, indices, count);
    if (run->device_count > 1) {
        want_shown(run, variable, &last, 1);
    }
}

/* ---- random numbers ------------------------------------------------------------------------- */

#define NUMBERS 512u

static void draw(struct ds_accel__run *run, float *numbers)
{
    void *memory = ds_accel__take(run, NUMBERS * sizeof(float));

    WANT(run, DS_ACCEL_OK, rng_uniform, run->stream, memory, NUMBERS, DS_ACCEL_DTYPE_FLOAT32, -1.0,
         3.0);
    ds_accel__wait(run, run->stream);
    ds_accel__get(run, numbers, memory, NUMBERS * sizeof(float));
    ds_accel__give(run, memory);
}

/* Check that the generator writes exactly the requested number of values, and that the values
 * are spread over the whole requested range. */
static void check_spread(struct ds_accel__run *run)
{
    unsigned char edge[64];
    float numbers[NUMBERS];
    float *memory = ds_accel__take(run, sizeof(numbers) + sizeof(edge));
    float least = 3.0f;
    float most = -1.0f;

    ds_accel__pattern(edge, sizeof(edge), 26);
    ds_accel__put(run, memory + NUMBERS, edge, sizeof(edge));
    WANT(run, DS_ACCEL_OK, rng_seed, run->device, 2);
    WANT(run, DS_ACCEL_OK, rng_uniform, run->stream, memory, NUMBERS, DS_ACCEL_DTYPE_FLOAT32, -1.0,
         3.0);
    ds_accel__wait(run, run->stream);
    ds_accel__want_pattern(run, memory + NUMBERS, sizeof(edge), 26, "memory after the numbers");
    ds_accel__get(run, numbers, memory, sizeof(numbers));
    for (size_t i = 0; i < NUMBERS; i++) {
        least = numbers[i] < least ? numbers[i] : least;
        most = numbers[i] > most ? numbers[i] : most;
    }
    EXPECT(run, least < -0.5f && most > 2.5f, "%u numbers in [-1, 3) are from %g to %g", NUMBERS,
           (double)least, (double)most);
    ds_accel__give(run, memory);
}

#define NORMALS 4096u

/* Check the mean and deviation of normal numbers, and that no memory after them is written. A
 * tolerance of at least ten times the expected error allows for any generator. */
static void check_normal(struct ds_accel__run *run)
{
    const double mean = 10;
    const double deviation = 3;
    float *numbers = calloc(NORMALS + 16, sizeof(float));
    float *memory = ds_accel__take(run, (NORMALS + 16) * sizeof(float));
    double sum = 0;
    double squares = 0;

    EXPECT(run, numbers != NULL, "host memory is exhausted");
    ds_accel__put(run, memory, numbers, (NORMALS + 16) * sizeof(float));
    WANT(run, DS_ACCEL_OK, rng_seed, run->device, 3);
    WANT(run, DS_ACCEL_OK, rng_normal, run->stream, memory, NORMALS, DS_ACCEL_DTYPE_FLOAT32, mean,
         deviation);
    ds_accel__wait(run, run->stream);
    ds_accel__get(run, numbers, memory, (NORMALS + 16) * sizeof(float));
    for (size_t i = 0; i < NORMALS; i++) {
        sum += (double)numbers[i];
        squares += ((double)numbers[i] - mean) * ((double)numbers[i] - mean);
    }
    EXPECT(run, sum / NORMALS > mean - 0.5 && sum / NORMALS < mean + 0.5,
           "%u numbers of the mean %g have the mean %g", NORMALS, mean, sum / NORMALS);
    EXPECT(run,
           squares / NORMALS > deviation * deviation / 1.5 &&
               squares / NORMALS < deviation * deviation * 1.5,
           "%u numbers of the standard deviation %g have the variance %g", NORMALS, deviation,
           squares / NORMALS);
    for (size_t i = NORMALS; i < NORMALS + 16; i++) {
        EXPECT(run, numbers[i] == 0, "a number after %u was written", NORMALS);
    }
    free(numbers);
    ds_accel__give(run, memory);
}

static bool is_same(const float *first, const float *second)
{
    for (size_t i = 0; i < NUMBERS; i++) {
        if (first[i] != second[i]) {
            return false;
        }
    }
    return true;
}

static void check_seed(struct ds_accel__run *run)
{
    float first[NUMBERS];
    float second[NUMBERS];
    uint64_t seed = 0;

    WANT(run, DS_ACCEL_OK, rng_seed, run->device, 12345);
    if (run->table.rng_initial_seed != NULL) {
        WANT(run, DS_ACCEL_OK, rng_initial_seed, run->device, &seed);
        EXPECT(run, seed == 12345, "the seed was 12345 and is reported as %llu",
               (unsigned long long)seed);
    }
    draw(run, first);
    draw(run, second);
    EXPECT(run, !is_same(first, second), "two draws returned the same numbers");
    WANT(run, DS_ACCEL_OK, rng_seed, run->device, 12345);
    draw(run, second);
    EXPECT(run, is_same(first, second), "the same seed returned different numbers: %g and %g",
           (double)first[0], (double)second[0]);
}

static void check_state(struct ds_accel__run *run)
{
    float first[NUMBERS];
    float second[NUMBERS];
    uint64_t size = 0;
    void *state;

    WANT(run, DS_ACCEL_OK, rng_state_size, run->device, &size);
    EXPECT(run, size > 0 && size < 1u << 20, "a state has %llu bytes", (unsigned long long)size);
    state = malloc(size);
    EXPECT(run, state != NULL, "host memory is exhausted");
    WANT(run, DS_ACCEL_OK, rng_seed, run->device, 777);
    WANT_ERROR(run, rng_get_state, run->device, state, size - 1);
    WANT_ERROR(run, rng_set_state, run->device, state, size - 1);
    draw(run, first);
    WANT(run, DS_ACCEL_OK, rng_get_state, run->device, state, size);
    draw(run, first);
    WANT(run, DS_ACCEL_OK, rng_set_state, run->device, state, size);
    draw(run, second);
    EXPECT(run, is_same(first, second), "a restored state returned different numbers");
    free(state);
}

static void check_bounds(struct ds_accel__run *run)
{
    float numbers[NUMBERS];

    WANT(run, DS_ACCEL_OK, rng_seed, run->device, 1);
    draw(run, numbers);
    for (size_t i = 0; i < NUMBERS; i++) {
        EXPECT(run, numbers[i] >= -1.0f && numbers[i] < 3.0f, "number %zu is %g, not in [-1, 3)", i,
               (double)numbers[i]);
    }
}

#define DEVICE DS_ACCEL__STAGE_DEVICE
#define DRAWS \
    SLOT(rng_seed), SLOT(rng_uniform), SLOT(mem_alloc), SLOT(mem_copy), SLOT(stream_create)

static const struct ds_accel__check checks[] = {
    {88, "dtype", "every data type", DEVICE, 0, check_dtypes, {SLOT(dtype_support)}},
    {89, "telemetry", "ranges of sensors", DEVICE, 0, check_telemetry, {SLOT(telemetry_get)}},
    {91,
     "ranges",
     "ranges within ranges, in two threads",
     DEVICE,
     0,
     check_ranges,
     {SLOT(range_push), SLOT(range_pop)}},
    {91,
     "ranges",
     "more pops than pushes",
     DEVICE,
     0,
     check_pop,
     {SLOT(range_push), SLOT(range_pop)}},
    {91,
     "ranges",
     "the profiler is started and stopped",
     DEVICE,
     0,
     check_profiler,
     {SLOT(profiler_start), SLOT(profiler_stop)}},
    {94, "ops", "names of builders", DEVICE, 0, check_builders, {SLOT(op_builders_get)}},
    {94, "ops", "an op that does not exist", DEVICE, 0, check_compatible, {SLOT(op_compatible)}},
    {95, "env", "rules", DEVICE, 0, check_rules, {SLOT(env_rules_get)}},
    {96, "env", "lists of names", DEVICE, 0, check_names, {SLOT(env_name_get)}},
    {97,
     "env",
     "the value that shows a device",
     DEVICE,
     0,
     check_visible,
     {SLOT(env_name_get), SLOT(visible_devices_value)}},
    {97,
     "env",
     "variables that choose devices",
     DEVICE,
     0,
     check_variables,
     {SLOT(env_name_get), SLOT(visible_devices_value)}},
    {103,
     "env",
     "the devices that a value shows",
     DEVICE,
     0,
     check_shown,
     {SLOT(env_name_get), SLOT(visible_devices_value), SLOT(device_identity)}},
    {100, "rng", "one seed, twice", DEVICE, 0, check_seed, {DRAWS}},
    {101, "rng", "a state is restored", DEVICE, 0, check_state, {DRAWS, SLOT(rng_get_state)}},
    {102, "rng", "bounds", DEVICE, 0, check_bounds, {DRAWS}},
    {102, "rng", "as many as requested, from the whole range", DEVICE, 0, check_spread, {DRAWS}},
    {125,
     "rng",
     "mean and deviation",
     DEVICE,
     0,
     check_normal,
     {SLOT(rng_normal), SLOT(rng_seed), SLOT(mem_alloc), SLOT(mem_copy), SLOT(stream_create)}},
};

const struct ds_accel__check_list ds_accel__checks_facts = {checks, ARRAY_SIZE(checks)};
