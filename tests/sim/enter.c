/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The first step of every call of a simulated library: counting, scripted failures, latencies and
 * losses, the report at exit; and functions that all files of the engine use.
 */
#include "inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A rule: "NAME:N=CODE" of SIM_FAIL, "NAME=US" of SIM_LATENCY_US, "DEVICE@NAME:N" of SIM_LOSE. */
struct rule {
    char name[64];
    uint32_t physical;
    uint64_t number; /* fails the Nth call; 0: every call */
    uint64_t seen;   /* calls so far */
    int64_t value;
    bool has_value;
};

struct rules {
    struct rule *list;
    size_t count;
};

int64_t sim_failure = 1;
pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t sim_changed;

static struct {
    pthread_once_t once;
    pthread_mutex_t lock; /* guards the counts and the report */
    struct rules fail, latency, lose;
    uint64_t calls;
    char failed[4096];
    size_t failed_length;
    atomic_bool is_child;
    atomic_bool is_used;
} calls = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

void sim_misuse(const char *format, ...)
{
    char text[512];
    va_list list;

    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    fprintf(stderr, "simulated runtime misused: %s\n", text);
    abort();
}

void *sim_zalloc(size_t size_bytes)
{
    void *memory = calloc(1, size_bytes);

    if (memory == NULL) {
        sim_misuse("the simulator itself has no memory for %zu bytes", size_bytes);
    }
    return memory;
}

void *sim_grow(void *memory, size_t count, size_t element_bytes)
{
    /* Capacities are powers of two, so that the table grows only at these counts. */
    if (count != 0 && (count & (count - 1)) != 0) {
        return memory;
    }
    memory = realloc(memory, (count == 0 ? 1 : count * 2) * element_bytes);
    if (memory == NULL) {
        sim_misuse("the simulator itself has no memory for %zu elements", count);
    }
    return memory;
}

void sim_locked(void)
{
    pthread_mutex_lock(&sim_lock);
}

void sim_unlocked(void)
{
    pthread_mutex_unlock(&sim_lock);
}

/* ---- scripts -------------------------------------------------------------------------------- */

static void bad_script(const char *variable, const char *item)
{
    sim_misuse("%s: \"%s\" cannot be understood", variable, item);
}

/* Parses one item into a rule; parts that a script's variable does not have are not parsed. */
static void parse_item(const char *variable, char *item, struct rule *rule)
{
    char *name = item;
    char *value = strchr(item, '=');
    char *number;
    char *end;

    if (value != NULL) {
        *value++ = '\0';
        rule->value = strtoll(value, &end, 0);
        rule->has_value = true;
        if (end == value || *end != '\0') {
            bad_script(variable, value);
        }
    }
    number = strrchr(item, ':');
    if (number != NULL) {
        *number++ = '\0';
        rule->number = strtoull(number, &end, 0);
        if (strcmp(number, "*") != 0 && (*end != '\0' || rule->number == 0)) {
            bad_script(variable, number);
        }
    }
    if (strchr(item, '@') != NULL) {
        rule->physical = (uint32_t)strtoul(item, &name, 10);
        if (*name++ != '@' || rule->physical >= SIM_MAX_DEVICES) {
            bad_script(variable, item);
        }
    }
    snprintf(rule->name, sizeof(rule->name), "%s", name);
}

static void parse(const char *variable, struct rules *rules)
{
    const char *text = getenv(variable);
    char *copy, *save, *item;

    if (text == NULL || text[0] == '\0') {
        return;
    }
    copy = strdup(text);
    if (copy == NULL) {
        sim_misuse("the simulator itself has no memory for %s", variable);
    }
    for (item = strtok_r(copy, ",", &save); item != NULL; item = strtok_r(NULL, ",", &save)) {
        rules->list = sim_grow(rules->list, rules->count, sizeof(*rules->list));
        memset(&rules->list[rules->count], 0, sizeof(*rules->list));
        parse_item(variable, item, &rules->list[rules->count++]);
    }
    free(copy);
}

static void forked(void)
{
    atomic_store(&calls.is_child, atomic_load(&calls.is_used));
}

static void start(void)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&sim_changed, &attributes);
    pthread_condattr_destroy(&attributes);
    parse("SIM_FAIL", &calls.fail);
    parse("SIM_LATENCY_US", &calls.latency);
    parse("SIM_LOSE", &calls.lose);
    pthread_atfork(NULL, NULL, forked);
}

/* Runs when the library is loaded, so that no file of the engine has to check for
 * initialization. */
__attribute__((constructor)) static void load(void)
{
    pthread_once(&calls.once, start);
}

/* ---- calls ---------------------------------------------------------------------------------- */

void sim_shut_down(void)
{
    atomic_store(&calls.is_used, false);
}

bool sim_is_child(void)
{
    return atomic_load(&calls.is_child);
}

uint64_t sim_latency_us(const char *name)
{
    for (size_t i = 0; i < calls.latency.count; i++) {
        if (strcmp(calls.latency.list[i].name, name) == 0) {
            return (uint64_t)calls.latency.list[i].value;
        }
    }
    return 0;
}

bool sim_loses(uint32_t physical, const char *what)
{
    bool loses = false;

    pthread_mutex_lock(&calls.lock);
    for (size_t i = 0; i < calls.lose.count; i++) {
        struct rule *rule = &calls.lose.list[i];

        if (rule->physical == physical && strcmp(rule->name, what) == 0) {
            rule->seen++;
            loses = loses || rule->seen == rule->number;
        }
    }
    pthread_mutex_unlock(&calls.lock);
    return loses;
}

static void note_failure(const char *call)
{
    int length = snprintf(calls.failed + calls.failed_length,
                          sizeof(calls.failed) - calls.failed_length, "failed %s\n", call);

    if (length > 0 && calls.failed_length + (size_t)length < sizeof(calls.failed)) {
        calls.failed_length += (size_t)length;
    } else {
        calls.failed[calls.failed_length] = '\0';
    }
}

static int64_t scripted_failure(const char *call)
{
    int64_t code = 0;

    for (size_t i = 0; i < calls.fail.count; i++) {
        struct rule *rule = &calls.fail.list[i];

        if (strcmp(rule->name, "*") != 0 && strcmp(rule->name, call) != 0) {
            continue;
        }
        rule->seen++;
        if (code == 0 && (rule->number == 0 || rule->seen == rule->number)) {
            code = rule->has_value ? rule->value : sim_failure;
            note_failure(call);
        }
    }
    return code;
}

/* Counts the call once for each device, even if several rules match, and loses the device if a rule
 * applies. */
static void lose_by_call(const char *call)
{
    uint64_t asked = 0;

    for (size_t i = 0; i < calls.lose.count; i++) {
        const struct rule *rule = &calls.lose.list[i];

        if (strcmp(rule->name, call) != 0 || (asked >> rule->physical & 1) != 0) {
            continue;
        }
        asked |= UINT64_C(1) << rule->physical;
        if (sim_loses(rule->physical, call)) {
            sim_device_lose(rule->physical);
        }
    }
}

int64_t sim_enter(const char *call)
{
    uint64_t latency_us;
    int64_t code;

    if (sim_is_child()) {
        sim_misuse("%s: in a child of the process that used the library, which is not supported",
                   call);
    }
    atomic_store(&calls.is_used, true);
    pthread_mutex_lock(&calls.lock);
    calls.calls++;
    code = scripted_failure(call);
    pthread_mutex_unlock(&calls.lock);
    sim_report_update();
    latency_us = sim_latency_us(call);
    if (latency_us > 0) {
        usleep((useconds_t)latency_us);
    }
    lose_by_call(call);
    return code;
}

/* ---- the report ----------------------------------------------------------------------------- */

/* Writes the current text of the report; returns the length. */
static int write_report(char *text, size_t text_size)
{
    int length;

    pthread_mutex_lock(&calls.lock);
    length =
        snprintf(text, text_size, "calls %llu\n%s", (unsigned long long)calls.calls, calls.failed);
    pthread_mutex_unlock(&calls.lock);
    length += sim_handle_report(text + length, text_size - (size_t)length);
    return length + sim_memory_report(text + length, text_size - (size_t)length);
}

static void put_report(const char *path, int flags)
{
    char text[8192];
    int length = write_report(text, sizeof(text));
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);

    if (fd < 0) {
        fprintf(stderr, "sim: SIM_REPORT=%s: %s\n", path, strerror(errno));
        return;
    }
    if (write(fd, text, (size_t)length) != length) {
        perror("sim: SIM_REPORT");
    }
    close(fd);
}

/*
 * Rewrites "report.%p.txt", a file of this process alone, which is kept up to date because a
 * process that calls _exit() runs no exit handlers.
 */
void sim_report_update(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the file */
    const char *path = getenv("SIM_REPORT");
    const char *mark = path != NULL ? strstr(path, "%p") : NULL;
    char own[512];

    if (mark == NULL || sim_is_child()) {
        return;
    }
    snprintf(own, sizeof(own), "%.*s%d%s", (int)(mark - path), path, (int)getpid(), mark + 2);
    pthread_mutex_lock(&lock);
    put_report(own, O_TRUNC);
    pthread_mutex_unlock(&lock);
}

__attribute__((destructor)) static void report(void)
{
    const char *path = getenv("SIM_REPORT");

    if (path != NULL && strstr(path, "%p") == NULL && !sim_is_child() && calls.calls > 0) {
        put_report(path, O_APPEND);
    }
}
