/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Records which functions of the plugin are being called, in memory that the suite's process
 * shares, so that the suite can report the slot after a crash, an exit or a hang on any thread.
 *
 *     check -> function of this file -> page: slot, process -> the plugin's function
 *                                       page: free again   <-
 *     conformance.c reads the page when the process has terminated or must be killed
 *
 * The checks use a table of these functions, one for each slot that the plugin has. A slot that
 * repeatedly terminated its process is not called again (ds_accel__witness_refuse()): checks that
 * need it are skipped. A check that calls a slot that the plugin lacks is skipped, too
 * (ds_accel__need()).
 */
#include "layers/layer.h" /* included before conformance.h, which defines another CALL */

#include "base/slots.h"
#include "conformance/conformance.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* recorded like slots: loading and entry, whose values are less than the offset of any slot */
#define LOAD 1u
#define ENTRY 2u

/* used until the suite's page is mapped, or if there is none */
static struct ds_accel__page own_page;
static struct ds_accel__page *page = &own_page;
static struct ds_accel_plugin plugin; /* the plugin's own functions */
/* why the slot is not called; NULL: it is called */
static const char *refused[DS_ACCEL__WITNESS_SLOTS];
static bool refused_steps[DS_ACCEL__WITNESS_STEPS];
static const struct ds_accel__run *running;
static int page_fd = -1;

bool ds_accel__witness_open(int fd)
{
    void *memory = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (memory == MAP_FAILED) {
        return false;
    }
    page = memory;
    page_fd = fd;
    return true;
}

int ds_accel__witness_descriptor(void)
{
    return page_fd;
}

/* ---- calls in flight ------------------------------------------------------------------------ */

static unsigned enter(size_t slot)
{
    const char *why = refused[slot / sizeof(void *)];

    if (why != NULL) {
        ds_accel__say_skipped(running, "%s %s", ds_accel__witness_name(slot), why);
    }
    for (unsigned i = 0; i < DS_ACCEL__WITNESS_CALLS; i++) {
        unsigned none = 0;

        if (atomic_compare_exchange_strong(&page->calls[i].slot, &none, (unsigned)slot)) {
            atomic_store(&page->calls[i].process, (int)getpid());
            return i;
        }
    }
    return DS_ACCEL__WITNESS_CALLS; /* too many calls at once: this call is not recorded */
}

static void leave(unsigned call, size_t slot)
{
    if (call < DS_ACCEL__WITNESS_CALLS) {
        atomic_store(&page->calls[call].slot, 0);
    }
    atomic_store(&page->last, (unsigned)slot);
    atomic_store(&page->returned[slot / sizeof(void *)], 1);
}

/* Skip the check if it passes a missing handle: a stream, because stream_create is refused or
 * missing, or an event, because event_create is missing. */
static void want_handle(enum ds_accel__meaning meaning, bool is_lacking)
{
    const char *why = refused[SLOT(stream_create) / sizeof(void *)];

    if (is_lacking && meaning == DS_ACCEL__STREAM) {
        if (why != NULL) {
            ds_accel__say_skipped(running, "stream_create %s", why);
        }
        ds_accel__need(running, plugin.stream_create != NULL, "stream_create");
    }
    if (is_lacking && meaning == DS_ACCEL__EVENT) {
        ds_accel__need(running, plugin.event_create != NULL, "event_create");
    }
}

unsigned ds_accel__witness_enter(enum ds_accel__witnessed what)
{
    return enter(what == DS_ACCEL__WITNESS_LOAD ? LOAD : ENTRY);
}

void ds_accel__witness_leave(unsigned call, enum ds_accel__witnessed what)
{
    leave(call, what == DS_ACCEL__WITNESS_LOAD ? LOAD : ENTRY);
}

const char *ds_accel__witness_name(size_t slot)
{
    return slot == LOAD ? "loading" : slot == ENTRY ? "the entry" : ds_accel__slot_name(slot);
}

/* ---- reading the page ----------------------------------------------------------------------- */

/* True for the values that enter() records. A plugin can write others to the page. */
static bool is_recorded(size_t slot)
{
    return slot == LOAD || slot == ENTRY ||
           (slot >= SLOT(probe) && slot < sizeof(struct ds_accel_plugin) &&
            slot % sizeof(void *) == 0);
}

/* The next slot with a call in progress in the process (0: in any process), unless an earlier
 * element of calls[] has the same slot; 0: none. *position is the index at which the search
 * continues. */
static size_t next_call(const struct ds_accel__page *of, int process, unsigned *position)
{
    while (*position < DS_ACCEL__WITNESS_CALLS) {
        unsigned at = (*position)++;
        size_t slot = atomic_load(&of->calls[at].slot);
        bool is_new = true;

        for (unsigned i = 0; i < at && is_new; i++) {
            is_new = atomic_load(&of->calls[i].slot) != slot;
        }
        if (is_recorded(slot) && is_new &&
            (process == 0 || atomic_load(&of->calls[at].process) == process)) {
            return slot;
        }
    }
    return 0;
}

size_t ds_accel__witness_read(const struct ds_accel__page *of, int process, char *text,
                              size_t text_size)
{
    size_t last = atomic_load(&of->last);
    unsigned position = 0;
    size_t first = next_call(of, process, &position);
    size_t slot = first;
    size_t length = 0;

    text[0] = '\0';
    while (slot != 0 && length < text_size) {
        length += (size_t)snprintf(text + length, text_size - length, "%s%s",
                                   length == 0 ? ", in " : " and ", ds_accel__witness_name(slot));
        slot = next_call(of, process, &position);
    }
    if (first == 0 && process == 0 && is_recorded(last)) {
        snprintf(text, text_size, ", in no call, after %s", ds_accel__witness_name(last));
    }
    return first >= SLOT(probe) ? first : 0;
}

bool ds_accel__witness_has_returned(const struct ds_accel__page *of, size_t slot)
{
    return atomic_load(&of->returned[slot / sizeof(void *)]) != 0;
}

const char *ds_accel__witness_peer(int process)
{
    static char text[128];

    ds_accel__witness_read(page, process, text, sizeof(text));
    return text;
}

/* ---- slots that terminate the process ------------------------------------------------------- */

void ds_accel__witness_refuse(size_t slot, const char *why)
{
    if (slot < sizeof(struct ds_accel_plugin)) {
        refused[slot / sizeof(void *)] = why;
    }
}

bool ds_accel__witness_is_refused(size_t slot)
{
    return refused[slot / sizeof(void *)] != NULL;
}

bool ds_accel__witness_has(size_t slot)
{
    void *function;

    memcpy(&function, (const char *)&plugin + slot, sizeof(function));
    return function != NULL;
}

void ds_accel__witness_step(unsigned step)
{
    atomic_store(&page->step, step);
}

void ds_accel__witness_refuse_step(unsigned step)
{
    if (step < DS_ACCEL__WITNESS_STEPS) {
        refused_steps[step] = true;
    }
}

bool ds_accel__witness_is_refused_step(unsigned step)
{
    return step < DS_ACCEL__WITNESS_STEPS && refused_steps[step];
}

void ds_accel__witness_explain(size_t slot, char *why, size_t why_size)
{
    snprintf(why, why_size, "%s %s", ds_accel__witness_name(slot), refused[slot / sizeof(void *)]);
}

/* ---- one function per slot ------------------------------------------------------------------ */

#undef CALL /* defined in conformance.h; from here on CALL is a row of slots.def */

#define WANT_HANDLE_(storage, meaning, type, name) \
    want_handle(DS_ACCEL__##meaning, (uintptr_t)(name) == 0)
#define WANT_HANDLE(argument) WANT_HANDLE_ argument

#define CALL(name, n, ...) \
    static int32_t call_##name(DS_ACCEL__PARAMETERS(n, __VA_ARGS__), struct ds_accel_error *error) \
    { \
        unsigned call = (DS_ACCEL__EACH_##n(WANT_HANDLE, __VA_ARGS__), enter(SLOT(name))); \
        int32_t status = plugin.name(DS_ACCEL__NAMES(n, __VA_ARGS__), error); \
\
        leave(call, SLOT(name)); \
        return status; \
    }
#define DROP(name, n, ...) \
    static void call_##name(DS_ACCEL__PARAMETERS(n, __VA_ARGS__)) \
    { \
        unsigned call; \
\
        ds_accel__need(running, plugin.name != NULL, #name); \
        call = enter(SLOT(name)); \
        plugin.name(DS_ACCEL__NAMES(n, __VA_ARGS__)); \
        leave(call, SLOT(name)); \
    }
#include "slots.def"

void ds_accel__witness_table(const struct ds_accel__run *run, struct ds_accel_plugin *table)
{
    running = run;
    plugin = *table;
#define CALL(name, ...) table->name = plugin.name != NULL ? call_##name : NULL;
#define DROP(name, ...) table->name = call_##name;
#include "slots.def"
}
