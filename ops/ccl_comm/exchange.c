/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* How leaders of ccl_comm exchange messages, and learn of failures elsewhere. */
#include "ccl.h"

#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define SPINS 200
#define YIELDS 2000
#define SHORT_PAUSES 20000
#define SHORT_PAUSE_NS 50000
#define LONG_PAUSE_NS 500000
#define TELL_NS (OPS__SECOND_NS / 10)
#define QUIET_NS OPS__SECOND_NS

uint64_t ops__ccl_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * OPS__SECOND_NS + (uint64_t)now.tv_nsec;
}

static uint64_t add(uint64_t a, uint64_t b)
{
    return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

void ops__ccl_start(struct ops__ccl *ccl)
{
    ccl->deadline_ns = add(ops__ccl_now(), ccl->timeout_ns);
}

uint64_t ops__ccl_left_ns(const struct ops__ccl *ccl, uint64_t slack_ns)
{
    uint64_t end = add(ccl->deadline_ns, slack_ns);
    uint64_t now = ops__ccl_now();

    if (end == UINT64_MAX)
        return UINT64_MAX;
    return now < end ? end - now : 1;
}

void ops__ccl_pause(unsigned attempts)
{
    struct timespec time = {.tv_nsec = attempts < SHORT_PAUSES ? SHORT_PAUSE_NS : LONG_PAUSE_NS};

    if (attempts < SPINS)
        ops__shm_relax();
    else if (attempts < YIELDS)
        sched_yield();
    else
        nanosleep(&time, NULL);
}

int32_t ops__ccl_fail(struct ops__ccl *ccl, int32_t status, const char *format, ...)
{
    va_list values;

    if (ccl->failed)
        return -1;
    ccl->failed = true;
    ccl->note.status = status;
    ccl->note.rank = ccl->rank;
    va_start(values, format);
    vsnprintf(ccl->note.text, sizeof(ccl->note.text), format, values);
    va_end(values);
    if (status == DS_ACCEL_ERR_TIMEOUT)
        ccl->note.lost = 1;
    if (ccl->note.lost)
        ops__ccl_lost();
    return -1;
}

int32_t ops__ccl_take_note(struct ops__ccl *ccl, const struct ops__ccl_note *note)
{
    if (!ccl->failed)
        ccl->note.lost = note->lost;
    return ops__ccl_fail(ccl, note->status, "%.*s", OPS__CCL_TEXT - 1, note->text);
}

static int32_t fail_driver(struct ops__ccl *ccl, const char *function, uint32_t peer, int code)
{
    char text[256];

    ccl->engine->describe(code, text, sizeof(text));
    return ops__ccl_fail(ccl, DS_ACCEL_ERR_DRIVER, "%s: %s, rank %u with rank %u: %s",
                         ccl->engine->name, function, ccl->rank, peer, text);
}

/* ---- notes ----------------------------------------------------------------------------------- */

int32_t ops__ccl_listen(struct ops__ccl *ccl)
{
    int code = ccl->engine->receive(ccl->world, &ccl->mail, sizeof(ccl->mail), OPS__MPI_ANY,
                                    ccl->tag + 1, &ccl->mail_request);

    return code ? fail_driver(ccl, "MPI_Irecv", ccl->rank, code) : 0;
}

void ops__ccl_look(struct ops__ccl *ccl)
{
    uint32_t source;
    int code;

    if (!ccl->mail_request.active)
        return;
    code = ccl->engine->test(&ccl->mail_request, &source);
    if (code) {
        fail_driver(ccl, "MPI_Test", ccl->rank, code);
        return;
    }
    if (ccl->mail_request.active)
        return;
    if (ccl->mail.status) {
        ops__ccl_take_note(ccl, &ccl->mail);
        ccl->told = true;
    } else if (ccl->mail.rank < ccl->size) {
        ccl->left_ns[ccl->mail.rank] = ops__ccl_now();
    }
    ops__ccl_listen(ccl);
}

/* Test requests; return whether one is active. */
static bool test_all(struct ops__ccl *ccl, struct ops__mpi_request *requests, size_t count)
{
    bool active = false;
    uint32_t source;

    for (size_t i = 0; i < count; i++) {
        if (!requests[i].active)
            continue;
        ccl->engine->test(&requests[i], &source);
        active = active || requests[i].active;
    }
    return active;
}

void ops__ccl_tell(struct ops__ccl *ccl, const struct ops__ccl_note *note)
{
    uint64_t begin = ops__ccl_now();

    if (ccl->told || !ops__ccl_leads(ccl) || ccl->nodes < 2)
        return;
    ccl->told = true;
    ccl->sent = *note;
    for (uint32_t i = 0; i < ccl->nodes; i++)
        if (i != ccl->node)
            ccl->engine->send(ccl->world, &ccl->sent, sizeof(ccl->sent), ccl->leaders[i],
                              ccl->tag + 1, &ccl->tell_requests[i]);
    for (unsigned i = 0; test_all(ccl, ccl->tell_requests, ccl->nodes); i++) {
        if (ops__ccl_now() - begin >= TELL_NS)
            break;
        ops__ccl_pause(i);
    }
}

static bool all_have_left(const struct ops__ccl *ccl)
{
    for (uint32_t node = 0; node < ccl->nodes; node++)
        if (node != ccl->node && ccl->left_ns[ccl->leaders[node]] == 0)
            return false;
    return true;
}

void ops__ccl_part_from_others(struct ops__ccl *ccl)
{
    struct ops__ccl_note note = {.rank = ccl->rank};
    uint64_t begin = ops__ccl_now();

    if (ccl->failed || !ops__ccl_leads(ccl) || ccl->nodes < 2)
        return;
    ops__ccl_tell(ccl, &note);
    for (unsigned i = 0; !ccl->failed && !all_have_left(ccl); i++) {
        if (ops__ccl_now() - begin >= QUIET_NS)
            return;
        ops__ccl_pause(i);
        ops__ccl_look(ccl);
    }
}

bool ops__ccl_quiet(struct ops__ccl *ccl)
{
    uint64_t begin = ops__ccl_now();
    uint32_t source;

    if (ccl->mail_request.active)
        ccl->engine->cancel(&ccl->mail_request);
    /* Receipts alone: to cancel what is being sent is deprecated. */
    for (uint32_t i = 0; i < ccl->size; i++)
        if (ccl->requests[2 * i].active)
            ccl->engine->cancel(&ccl->requests[2 * i]);
    for (unsigned i = 0;; i++) {
        bool active = test_all(ccl, ccl->requests, 2 * (size_t)ccl->size);

        active = test_all(ccl, ccl->tell_requests, ccl->size) || active;
        if (ccl->mail_request.active)
            ccl->engine->test(&ccl->mail_request, &source);
        if (!active && !ccl->mail_request.active)
            return true;
        if (ops__ccl_now() - begin >= QUIET_NS)
            return false;
        ops__ccl_pause(i);
    }
}

/* ---- exchange -------------------------------------------------------------------------------- */

/* Post the receipts, then the messages: requests[2 * i] and [2 * i + 1]. */
static int32_t post(struct ops__ccl *ccl, const uint32_t *peers, uint32_t count, uint32_t own)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct ops__ccl_part *part = &ccl->receives[i];
        int code;

        if (i == own || part->bytes == 0)
            continue;
        code = ccl->engine->receive(ccl->world, part->data, part->bytes, peers[i], ccl->tag,
                                    &ccl->requests[2 * (size_t)i]);
        if (code)
            return fail_driver(ccl, "MPI_Irecv", peers[i], code);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct ops__ccl_part *part = &ccl->sends[i];
        int code;

        if (i == own || part->bytes == 0)
            continue;
        code = ccl->engine->send(ccl->world, part->data, part->bytes, peers[i], ccl->tag,
                                 &ccl->requests[2 * (size_t)i + 1]);
        if (code)
            return fail_driver(ccl, "MPI_Isend", peers[i], code);
    }
    return 0;
}

/* Test what is active; return the place of the first peer that is awaited, or count. */
static uint32_t test_peers(struct ops__ccl *ccl, const uint32_t *peers, uint32_t count)
{
    uint32_t awaited = count;
    uint32_t source;

    for (size_t i = 0; i < 2 * (size_t)count; i++) {
        int code;

        if (!ccl->requests[i].active)
            continue;
        code = ccl->engine->test(&ccl->requests[i], &source);
        if (code)
            fail_driver(ccl, "MPI_Test", peers[i / 2], code);
        else if (ccl->requests[i].active && awaited == count)
            awaited = (uint32_t)(i / 2);
    }
    return awaited;
}

/* A rank is awaited: fail if it has left, or is late. */
static void check_peer(struct ops__ccl *ccl, uint32_t rank)
{
    uint64_t now = ops__ccl_now();

    if (ccl->left_ns && ccl->left_ns[rank] && now - ccl->left_ns[rank] >= OPS__SECOND_NS)
        ops__ccl_fail(ccl, DS_ACCEL_ERR_DEVICE_LOST,
                      "rank %u (process %" PRId64 ", node %u) has left the communicator; rank %u "
                      "waited for it in %s number %" PRIu64,
                      rank, ccl->processes[rank], ccl->node_of[rank], ccl->rank, ccl->name,
                      ccl->calls);
    else if (ops__ccl_left_ns(ccl, OPS__CCL_LEADER_SLACK) > 1)
        return;
    else if (ccl->calls == 0)
        ops__ccl_fail(ccl, DS_ACCEL_ERR_TIMEOUT, "rank %u has not arrived at create within %.1f s",
                      rank, (double)ccl->timeout_ns / 1e9);
    else
        ops__ccl_fail(ccl, DS_ACCEL_ERR_TIMEOUT,
                      "rank %u (process %" PRId64 ", node %u) has not arrived at %s number %" PRIu64
                      ", or not finished it, within %.1f s",
                      rank, ccl->processes[rank], ccl->node_of[rank], ccl->name, ccl->calls,
                      (double)ccl->timeout_ns / 1e9);
}

int32_t ops__ccl_exchange(struct ops__ccl *ccl, const uint32_t *peers, uint32_t count, uint32_t own)
{
    if (ccl->failed || post(ccl, peers, count, own))
        return -1;
    for (unsigned i = 0;; i++) {
        uint32_t awaited = test_peers(ccl, peers, count);

        if (awaited == count && !ccl->failed)
            return 0;
        ops__ccl_look(ccl);
        if (!ccl->failed && i >= SPINS)
            check_peer(ccl, peers[awaited]);
        if (ccl->failed)
            return -1;
        ops__ccl_pause(i);
    }
}
