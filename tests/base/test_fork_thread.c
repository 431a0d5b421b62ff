/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The library in a child after fork() while another thread of the parent was inside it. */
#include "fork.h"

#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

/* ---- a lock held by a thread that the child does not have ------------------------------------ */

static sem_t is_held;
static sem_t may_go_on;

static void block(void *user_data, uint32_t level, const char *topic, const char *message)
{
    (void)user_data;
    (void)level;
    (void)topic;
    (void)message;
    sem_post(&is_held);
    sem_wait(&may_go_on);
}

static void *hold_lock(void *argument)
{
    (void)argument;
    ds_accel_check(context, NULL);
    return NULL;
}

static void use_locked(void)
{
    struct ds_accel_candidate candidate = {.struct_size = sizeof(candidate)};
    char name[32];

    CHECK(ds_accel_device_name(context, 0, name, sizeof(name)) == DS_ACCEL_OK);
    CHECK(ds_accel_candidate_count(context) > 0);
    CHECK(ds_accel_candidate_get(context, 0, &candidate) == DS_ACCEL_ERR_STATE);
    use_device();
}

static void *record(void *argument)
{
    char *text = NULL;

    (void)argument;
    ds_accel_report(context, DS_ACCEL_REPORT_RECORDING, NULL, DS_ACCEL_FORMAT_JSON, &text);
    ds_accel_free_text(text);
    return NULL;
}

static void record_anew(void)
{
    struct ds_accel_options options = test_options();
    ds_accel_t *made = NULL;
    char *text = NULL;

    options.accelerator = "mock";
    CHECK(ds_accel_create(&options, &made) == DS_ACCEL_OK);
    CHECK(ds_accel_report(made, DS_ACCEL_REPORT_RECORDING, NULL, DS_ACCEL_FORMAT_JSON, &text) ==
          DS_ACCEL_OK);
    ds_accel_free_text(text);
    ds_accel_destroy(made);
}

/* Fork while a thread holds locks, blocked in the log callback; the child runs work(). */
static void fork_meanwhile(void *(*hold)(void *), void (*work)(void))
{
    struct ds_accel_options options = test_options();
    struct timespec soon;
    pthread_t thread;

    sem_init(&is_held, 0, 0);
    sem_init(&may_go_on, 0, 0);
    test_add_mock("npu");
    options.accelerator = "mock";
    options.log_sink = block;
    options.log_levels = "off,trust=warn";
    test_write("etc/ds-accel.json", "{\"trust\": {\"mode\": \"warn\"}}");
    context = test_create_with(&options);
    for (int i = 0; i < 16; i++) {
        sem_post(&may_go_on); /* consumed by the lines that detection logs */
    }
    cr_assert_eq(ds_accel_detect(context), DS_ACCEL_OK, "%s", ds_accel_last_error());
    cr_assert_eq(ds_accel_device_open(context, 0, &device), DS_ACCEL_OK);
    cr_assert_eq(ds_accel_instance(context, &table, &instance), DS_ACCEL_OK);
    while (sem_trywait(&may_go_on) == 0 || sem_trywait(&is_held) == 0) {
    }
    pthread_create(&thread, NULL, hold, NULL);
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_sec += 60;
    cr_assert_eq(sem_timedwait(&is_held, &soon), 0, "nothing was logged under the lock");
    in_child(work);
    for (int i = 0; i < 16; i++) {
        sem_post(&may_go_on);
    }
    pthread_join(thread, NULL);
    stop();
}

Test(core_fork, lock_held_by_another_thread_does_not_hang_the_child)
{
    fork_meanwhile(hold_lock, use_locked);
}

Test(core_fork, recording_of_another_thread_does_not_hang_the_childs)
{
    fork_meanwhile(record, record_anew);
}

/* ---- a context on which another thread is detecting ------------------------------------------ */

static void destroy_context(void)
{
    ds_accel_destroy(context);
}

static int lazy_count;
static int32_t lazy_status = 1;

static void count_lazy(void *user_data, int32_t status)
{
    (void)user_data;
    lazy_count++;
    lazy_status = status;
}

/* Use a context whose state was half written at the fork: each call fails and does not wait. */
static void use_torn(void)
{
    struct ds_accel_options options = test_options();
    struct ds_accel_candidate candidate = {.struct_size = sizeof(candidate)};
    ds_accel_t *made = NULL;
    char *text = NULL;

#define REFUSED_AS_TORN(call) \
    CHECK((call) == DS_ACCEL_ERR_STATE && strstr(ds_accel_last_error(), "during fork()") != NULL)
    REFUSED_AS_TORN(ds_accel_detect(context));
    REFUSED_AS_TORN(ds_accel_check(context, NULL));
    REFUSED_AS_TORN(ds_accel_set_default(context));
    REFUSED_AS_TORN(
        ds_accel_report(context, DS_ACCEL_REPORT_LIST, NULL, DS_ACCEL_FORMAT_JSON, &text));
    REFUSED_AS_TORN(
        ds_accel_report(context, DS_ACCEL_REPORT_RECORDING, NULL, DS_ACCEL_FORMAT_JSON, &text));
    REFUSED_AS_TORN(ds_accel_candidate_get(context, 0, &candidate));
    REFUSED_AS_TORN(ds_accel_cache_clear(context));
    REFUSED_AS_TORN(ds_accel_quarantine_clear(context, NULL));
    REFUSED_AS_TORN(ds_accel_apply_env(context, NULL, &(uint32_t){0}));
    REFUSED_AS_TORN(ds_accel_lazy_call(context, count_lazy, NULL));
    CHECK(ds_accel_name(context) == NULL);
    CHECK(lazy_count == 0);
    ds_accel_destroy(context);
    CHECK(lazy_count == 1 && lazy_status == DS_ACCEL_ERR_STATE); /* the value from before fork() */
    options.accelerator = "mock";
    CHECK(ds_accel_create(&options, &made) == DS_ACCEL_OK);
    CHECK(ds_accel_detect(made) == DS_ACCEL_OK);
    ds_accel_destroy(made);
}

static void use_torn_in_grandchild(void)
{
    in_child(use_torn);
}

static void *detect(void *status_out)
{
    *(int32_t *)status_out = ds_accel_detect(context);
    return NULL;
}

Test(core_fork, context_that_a_thread_detects_with_is_refused_in_the_child)
{
    struct ds_accel_options options = test_options();
    struct timespec soon;
    pthread_t thread;
    int32_t status = 1;

    sem_init(&is_held, 0, 0);
    sem_init(&may_go_on, 0, 0);
    options.accelerator = "mock";
    options.log_sink = block;
    options.log_levels = "off,trust=warn";
    test_write("etc/ds-accel.json", "{\"trust\": {\"mode\": \"warn\"}}");
    context = test_create_with(&options);
    cr_assert_eq(ds_accel_lazy_call(context, count_lazy, NULL), DS_ACCEL_OK);
    pthread_create(&thread, NULL, detect, &status);
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_sec += 60;
    cr_assert_eq(sem_timedwait(&is_held, &soon), 0, "nothing was logged under the lock");
    in_child(use_torn);
    in_child(use_torn_in_grandchild);
    for (int i = 0; i < 16; i++) {
        sem_post(&may_go_on);
    }
    pthread_join(thread, NULL);
    cr_expect_eq(status, DS_ACCEL_OK, "the parent is as it was");
    cr_expect(lazy_count == 1 && lazy_status == DS_ACCEL_OK);
    ds_accel_destroy(context);
}

static void *check_all(void *status_out)
{
    *(int32_t *)status_out = ds_accel_check(context, NULL);
    return NULL;
}

static void detect_here(void)
{
    CHECK(ds_accel_detect(context) == DS_ACCEL_OK);
    CHECK(ds_accel_device_open(context, 0, &device) == DS_ACCEL_OK);
    CHECK(ds_accel_device_synchronize(device) == DS_ACCEL_OK);
    ds_accel_destroy(context);
}

Test(core_fork, context_that_nobody_was_using_is_the_childs_too)
{
    struct ds_accel_options options = test_options();

    options.accelerator = "mock";
    context = test_create_with(&options);
    cr_assert_eq(ds_accel_check(context, NULL), DS_ACCEL_OK);
    in_child(detect_here);
    in_child(destroy_context);
    detect_here();
}

/* ---- a context that another thread only reads ------------------------------------------------ */

static bool reads_no_more; /* atomic */

static void *read_on(void *argument)
{
    struct ds_accel_candidate candidate = {.struct_size = sizeof(candidate)};

    (void)argument;
    while (!__atomic_load_n(&reads_no_more, __ATOMIC_ACQUIRE)) {
        (void)ds_accel_candidate_count(context);
        (void)ds_accel_candidate_get(context, 0, &candidate);
    }
    return NULL;
}

static void use_read(void)
{
    struct ds_accel_candidate candidate = {.struct_size = sizeof(candidate)};

    CHECK(ds_accel_candidate_get(context, 0, &candidate) == DS_ACCEL_OK);
    CHECK(ds_accel_check(context, NULL) == DS_ACCEL_OK);
    ds_accel_destroy(context);
}

/* 100 forks are enough for some of them to happen while the thread holds the lock. */
Test(core_fork, context_that_a_thread_only_reads_is_the_childs_too)
{
    struct ds_accel_options options = test_options();
    pthread_t thread;

    options.accelerator = "mock";
    context = test_create_with(&options);
    cr_assert_eq(ds_accel_check(context, NULL), DS_ACCEL_OK);
    pthread_create(&thread, NULL, read_on, NULL);
    for (int i = 0; i < 100; i++) {
        in_child(use_read);
    }
    __atomic_store_n(&reads_no_more, true, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    detect_here();
}

/* Only the parent kills the helper process that probes for the parent's context. */
Test(core_fork, destroying_in_the_child_leaves_detection_of_the_parent_alone, .timeout = 120)
{
    static const char *const names[] = {"slow1", "slow2", "slow3"};
    pthread_t thread;
    int32_t status = 1;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char from[512];
        char to[128];

        snprintf(from, sizeof(from), TEST_FIXTURES "/crowd/ds_accel_%s.so", names[i]);
        snprintf(to, sizeof(to), "plugins/ds_accel_%s.so", names[i]);
        test_copy(from, to);
    }
    /* Each probe takes 300 ms. */
    test_write("etc/ds-accel.json", "{\"detection_order\": [\"slow1\", \"slow2\", \"slow3\"], "
                                    "\"probe\": {\"parallel\": 1}}");
    setenv("DS_ACCEL_CACHE", "off", 1);
    context = test_create();
    pthread_create(&thread, NULL, check_all, &status);
    for (int i = 0; i < 20; i++) {
        usleep(20000);
        in_child(destroy_context);
    }
    pthread_join(thread, NULL);
    cr_expect_eq(status, DS_ACCEL_OK, "%s", ds_accel_last_error());
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        cr_expect_eq(test_candidate(context, names[i]).state, DS_ACCEL_STATE_AVAILABLE, "%s: %s",
                     names[i], test_candidate(context, names[i]).reason);
    }
    ds_accel_destroy(context);
}
