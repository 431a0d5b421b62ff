/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Lazy calls, which run when the accelerator is selected; and the calls of a forked child. */
#include "facts.h"

#include <sys/wait.h>
#include <unistd.h>

/* ---- lazy calls ----------------------------------------------------------------------------- */

static char said[64];
static ds_accel_t *lazy_context;

static void say(void *user_data, int32_t status)
{
    snprintf(said + strlen(said), sizeof(said) - strlen(said), "%s%d ", (const char *)user_data,
             status);
}

static void say_and_ask(void *user_data, int32_t status)
{
    uint64_t flags;

    say(user_data, status);
    /* The library holds no lock during the call, so the callback can use the library. */
    cr_expect_eq(ds_accel_flags(lazy_context, &flags, NULL), DS_ACCEL_OK);
    cr_expect_eq(ds_accel_lazy_call(lazy_context, say, (void *)"d"), DS_ACCEL_OK);
}

Test(core_facts, make_lazy_calls_once_and_in_order)
{
    struct ds_accel_options options = test_options();

    options.accelerator = "mock";
    lazy_context = test_create_with(&options);
    EXPECT_STATUS(ds_accel_lazy_call(lazy_context, say, (void *)"a"), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_lazy_call(lazy_context, say_and_ask, (void *)"b"), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_lazy_call(lazy_context, say, (void *)"c"), DS_ACCEL_OK);
    cr_expect_str_eq(said, "");
    EXPECT_STATUS(ds_accel_detect(lazy_context), DS_ACCEL_OK);
    cr_expect_str_eq(said, "a0 b0 c0 d0 ");
    EXPECT_STATUS(ds_accel_detect(lazy_context), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_lazy_call(lazy_context, say, (void *)"e"), DS_ACCEL_OK);
    cr_expect_str_eq(said, "a0 b0 c0 d0 e0 ");
    ds_accel_destroy(lazy_context);
    cr_expect_str_eq(said, "a0 b0 c0 d0 e0 ");
}

static void ask_and_say(void *user_data, int32_t status)
{
    uint64_t flags;

    cr_expect_eq(ds_accel_flags(lazy_context, &flags, NULL), DS_ACCEL_OK);
    say(user_data, status);
}

/* A lazy call that uses the library does not run other lazy calls inside itself; the last one may
   add further calls. */
Test(core_facts, make_lazy_calls_one_by_one)
{
    struct ds_accel_options options = test_options();

    options.accelerator = "mock";
    lazy_context = test_create_with(&options);
    EXPECT_STATUS(ds_accel_lazy_call(lazy_context, ask_and_say, (void *)"a"), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_lazy_call(lazy_context, say, (void *)"b"), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_lazy_call(lazy_context, say_and_ask, (void *)"c"), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_detect(lazy_context), DS_ACCEL_OK);
    cr_expect_str_eq(said, "a0 b0 c0 d0 ");
    ds_accel_destroy(lazy_context);
}

Test(core_facts, keep_lazy_calls_when_detection_fails)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *context;

    options.accelerator = "nobody";
    context = test_create_with(&options);
    EXPECT_STATUS(ds_accel_lazy_call(context, say, (void *)"a"), DS_ACCEL_OK);
    EXPECT_STATUS(ds_accel_lazy_call(context, say, (void *)"b"), DS_ACCEL_OK);
    cr_expect_lt(ds_accel_detect(context), 0);
    cr_expect_str_eq(said, "");
    ds_accel_destroy(context);
    cr_expect_str_eq(said, "a-12 b-12 ");
}

/* ---- facts in a forked child ----------------------------------------------------------------- */

/* Returns 0 if every result was right, else the number of the first wrong result. */
static int ask_in_child(ds_accel_t *context, ds_accel_device_t *device, ds_accel_timer_t *timer)
{
    struct ds_accel_telemetry telemetry = {.struct_size = sizeof(telemetry)};
    ds_accel_timer_t *made;
    uint32_t available = 9;
    uint64_t flags;
    void *pinned;

    return ds_accel_flags(context, &flags, NULL) != DS_ACCEL_ERR_STATE                  ? 1
           : ds_accel_is_available(context, NULL, &available) < 0 || available != 0     ? 2
           : ds_accel_lazy_call(context, say, (void *)"x") != DS_ACCEL_ERR_STATE        ? 3
           : ds_accel_timer_create(device, &made) != DS_ACCEL_ERR_STATE                 ? 4
           : ds_accel_timer_start(timer, NULL) >= 0                                     ? 5
           : ds_accel_telemetry(context, 0, &telemetry) != DS_ACCEL_ERR_STATE           ? 6
           : ds_accel_range_push(context, "x", NULL, NULL) != DS_ACCEL_ERR_STATE        ? 7
           : ds_accel_mem_alloc_pinned(device, 64, 1, 0, &pinned) != DS_ACCEL_ERR_STATE ? 8
                                                                                        : 0;
}

Test(core_facts, answer_in_a_forked_child)
{
    ds_accel_t *context = start("mock");
    ds_accel_device_t *device;
    ds_accel_timer_t *timer;
    int result = -1;
    pid_t child;

    cr_assert_eq(ds_accel_device_get(context, 0, &device), DS_ACCEL_OK);
    /* Creating a timer reads facts, so it uses another context: the child is then the first to read
       this context's facts. */
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK);
    lazy_context = start("mock");
    cr_assert_eq(ds_accel_device_get(lazy_context, 0, &device), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_timer_create(device, &timer), DS_ACCEL_OK);
    child = fork();
    if (child == 0) {
        _exit(ask_in_child(context, device, timer));
    }
    cr_assert_gt(child, 0);
    cr_assert_eq(waitpid(child, &result, 0), child);
    cr_expect(WIFEXITED(result) && WEXITSTATUS(result) == 0, "answer %d was wrong",
              WEXITSTATUS(result));
    ds_accel_destroy(lazy_context);
    ds_accel_destroy(context);
}
