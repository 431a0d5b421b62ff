/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A collector of ITT: SIM_RANGES gets "push DOMAIN: NAME" and "pop". The two identifiers of 24
 * bytes are passed by value; an identifier that is not null reveals a caller with a wrong argument
 * layout.
 */
#include "engine.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    unsigned long long d1, d2, d3;
} __itt_id;
SIM_ASSERT(sizeof(__itt_id) == 24, "by ittnotify.h");

#define NAMES 256
static char names[NAMES][128];

/* Returns the object of a name, always the same one, as a collector does; NULL: too many names. */
static void *name_of(const char *name)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    void *found = NULL;

    pthread_mutex_lock(&lock);
    for (int i = 0; i < NAMES && found == NULL; i++) {
        if (names[i][0] == '\0') {
            snprintf(names[i], sizeof(names[i]), "%s", name);
        }
        if (strncmp(names[i], name, sizeof(names[i]) - 1) == 0) {
            found = names[i];
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

SIM_EXPORT void *__itt_domain_create(const char *name);
SIM_EXPORT void *__itt_domain_create(const char *name)
{
    return name_of(name);
}

SIM_EXPORT void *__itt_string_handle_create(const char *name);
SIM_EXPORT void *__itt_string_handle_create(const char *name)
{
    return name_of(name);
}

SIM_EXPORT void __itt_task_begin(const void *domain, __itt_id task, __itt_id parent,
                                 const void *name);
SIM_EXPORT void __itt_task_begin(const void *domain, __itt_id task, __itt_id parent,
                                 const void *name)
{
    char text[300];

    if ((task.d1 | task.d2 | task.d3 | parent.d1 | parent.d2 | parent.d3) != 0) {
        sim_misuse("__itt_task_begin: identifiers that are not null");
    }
    snprintf(text, sizeof(text), "%s: %s", (const char *)domain, (const char *)name);
    sim_range_push(text);
}

SIM_EXPORT void __itt_task_end(const void *domain);
SIM_EXPORT void __itt_task_end(const void *domain)
{
    if (domain == NULL || sim_range_pop() < 0) {
        sim_misuse("__itt_task_end: no task was begun");
    }
}

SIM_EXPORT void __itt_pause(void);
SIM_EXPORT void __itt_pause(void)
{
}

SIM_EXPORT void __itt_resume(void);
SIM_EXPORT void __itt_resume(void)
{
}
