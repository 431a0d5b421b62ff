/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* How a communicator of ccl_comm begins: which ranks share a node, and their shared memory. */
#include "ccl.h"
#include "common/error.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define CCL_VERSION 3u
#define USUAL_BUFFER ((uint64_t)4 << 20)
#define ALIGNMENT 64
#define NO_LISTS "out of memory for the communicator"

static void read_boot_id(char *boot, size_t bytes)
{
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

    if (file < 0)
        return;
    if (read(file, boot, bytes) < 36)
        memset(boot, 0, bytes);
    close(file);
}

static struct ops__ccl_card own_card(const struct ds_accel_ccl_comm_options *options)
{
    struct ops__ccl_card card = {
        .version = CCL_VERSION,
        .ranks_per_node = options->ranks_per_node,
        .buffer_bytes = options->buffer_bytes,
        .process = getpid(),
        .user = geteuid(),
    };

    if (getrandom(&card.nonce, sizeof(card.nonce), 0) != (ssize_t)sizeof(card.nonce))
        card.nonce = ops__ccl_now();
    read_boot_id(card.boot, sizeof(card.boot));
    return card;
}

/* Return NULL if options and versions are equal, else what is not. */
static const char *compare(const struct ops__ccl_card *a, const struct ops__ccl_card *b)
{
    if (a->ranks_per_node != b->ranks_per_node)
        return "ranks_per_node";
    return a->buffer_bytes != b->buffer_bytes ? "buffer_bytes" : NULL;
}

static int32_t check_cards(const char *call, const struct ops__ccl_card *cards, uint32_t size,
                           struct ds_accel_error *error)
{
    for (uint32_t rank = 1; rank < size; rank++)
        if (cards[rank].version != cards[0].version)
            return ops__error(error, DS_ACCEL_ERR_ABI, call,
                              "rank %u has version %u of ccl_comm's protocol, and rank 0 %u", rank,
                              cards[rank].version, cards[0].version);
    for (uint32_t rank = 0; rank < size; rank++)
        if (cards[rank].status)
            return ops__error(error, cards[rank].status, call, "rank %u: " NO_LISTS, rank);
    for (uint32_t rank = 1; rank < size; rank++) {
        const char *difference = compare(&cards[0], &cards[rank]);

        if (difference)
            return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                              "%s of rank %u differs from that of rank 0", difference, rank);
    }
    return DS_ACCEL_OK;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

/* Set the number of each rank's node, and the leaders. A rank whose first one has another first one
 * is a node of its own: whether it could share the other's memory is not known. */
static void number_nodes(struct ops__ccl *ccl)
{
    for (uint32_t rank = 0; rank < ccl->size; rank++) {
        uint32_t first = ccl->outcomes[rank].first;

        if (first < rank && ccl->outcomes[first].first == first) {
            ccl->node_of[rank] = ccl->node_of[first];
        } else {
            ccl->node_of[rank] = ccl->nodes;
            ccl->leaders[ccl->nodes++] = rank;
        }
        ccl->processes[rank] = ccl->cards[rank].process;
    }
}

static void order_ranks(struct ops__ccl *ccl)
{
    uint32_t place = 0;

    for (uint32_t node = 0; node < ccl->nodes; node++) {
        ccl->first[node] = place;
        for (uint32_t rank = 0; rank < ccl->size; rank++) {
            if (ccl->node_of[rank] != node)
                continue;
            if (rank == ccl->rank) {
                ccl->node = node;
                ccl->local_rank = place - ccl->first[node];
            }
            ccl->order[place++] = rank;
        }
        if (place - ccl->first[node] > ccl->most_local)
            ccl->most_local = place - ccl->first[node];
    }
    ccl->first[ccl->nodes] = place;
    ccl->local_size = ccl->first[ccl->node + 1] - ccl->first[ccl->node];
}

/* ---- memory ---------------------------------------------------------------------------------- */

void ops__ccl_free_meeting(struct ops__ccl *ccl)
{
    free(ccl->ranks);
    free(ccl->cards);
    free(ccl->outcomes);
    ccl->ranks = NULL;
    ccl->cards = NULL;
    ccl->outcomes = NULL;
}

bool ops__ccl_make_lists(struct ops__ccl *ccl)
{
    size_t size = ccl->size;

    ccl->order = (uint32_t *)calloc(size, sizeof(*ccl->order));
    ccl->first = (uint32_t *)calloc(size + 1, sizeof(*ccl->first));
    ccl->leaders = (uint32_t *)calloc(size, sizeof(*ccl->leaders));
    ccl->node_of = (uint32_t *)calloc(size, sizeof(*ccl->node_of));
    ccl->processes = (int64_t *)calloc(size, sizeof(*ccl->processes));
    ccl->left_ns = (uint64_t *)calloc(size, sizeof(*ccl->left_ns));
    ccl->requests = (struct ops__mpi_request *)calloc(2 * size, sizeof(*ccl->requests));
    ccl->tell_requests = (struct ops__mpi_request *)calloc(size, sizeof(*ccl->tell_requests));
    ccl->sends = (struct ops__ccl_part *)calloc(size, sizeof(*ccl->sends));
    ccl->receives = (struct ops__ccl_part *)calloc(size, sizeof(*ccl->receives));
    ccl->arrays = (const char **)calloc(size, sizeof(*ccl->arrays));
    ccl->hellos = (struct ops__ccl_hello *)calloc(size, sizeof(*ccl->hellos));
    ccl->ranks = (uint32_t *)calloc(size, sizeof(*ccl->ranks));
    ccl->cards = (struct ops__ccl_card *)calloc(size, sizeof(*ccl->cards));
    ccl->outcomes = (struct ops__ccl_note *)calloc(size, sizeof(*ccl->outcomes));
    return ccl->ranks && ccl->cards && ccl->outcomes && ccl->order && ccl->first && ccl->leaders &&
           ccl->node_of && ccl->processes && ccl->left_ns && ccl->requests && ccl->tell_requests &&
           ccl->sends && ccl->receives && ccl->arrays && ccl->hellos;
}

/* Four buffers of a piece each, and the greetings. In the largest case, a leader has a segment of
 * each node. */
static bool make_buffers(struct ops__ccl *ccl, uint64_t wanted)
{
    uint64_t least = (uint64_t)ccl->nodes * ccl->most_local * sizeof(int64_t);
    size_t rest = OPS__CCL_HEAD + sizeof(struct ops__ccl_note) + 2 * ALIGNMENT +
                  sizeof(int64_t) * ccl->nodes;
    size_t each;
    void *memory;

    if (wanted == 0)
        wanted = USUAL_BUFFER;
    ccl->buffer_bytes = (size_t)(wanted < least ? least : wanted);
    ccl->buffer_bytes = (ccl->buffer_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    each = (ccl->buffer_bytes + rest + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    ccl->memory_bytes = 4 * each + ccl->nodes * sizeof(*ccl->greetings);
    if (posix_memalign(&memory, ALIGNMENT, ccl->memory_bytes))
        return false;
    ccl->input = (char *)memory;
    ccl->middle = ccl->input + each;
    ccl->gather = ccl->middle + each;
    ccl->block = ccl->gather + each;
    ccl->greetings = (struct ops__ccl_greeting *)(void *)(ccl->block + each);
    memset(ccl->block, 0, OPS__CCL_HEAD);
    memset(ccl->greetings, 0, ccl->nodes * sizeof(*ccl->greetings));
    return true;
}

/* ---- meeting --------------------------------------------------------------------------------- */

/* Give all ranks the bytes of each: all[rank], of which this rank has its own. */
static int32_t share(struct ops__ccl *ccl, const uint32_t *ranks, void *all, size_t bytes)
{
    char *own = (char *)all + bytes * ccl->rank;

    for (uint32_t rank = 0; rank < ccl->size; rank++) {
        ccl->sends[rank] = (struct ops__ccl_part){own, bytes};
        ccl->receives[rank] = (struct ops__ccl_part){(char *)all + bytes * rank, bytes};
    }
    return ops__ccl_exchange(ccl, ranks, ccl->size, ccl->rank);
}

static int32_t create_local(struct ops__ccl *ccl, uint64_t nonce, struct ds_accel_error *error)
{
    char name[64];
    struct ds_accel_shm_comm_options options = {
        .struct_size = sizeof(options),
        .rank = ccl->local_rank,
        .size = ccl->local_size,
        .name = name,
        .timeout_ns = ops__ccl_left_ns(ccl, 0),
    };

    if (ccl->local_size == 1)
        return DS_ACCEL_OK;
    if (ccl->local_size > DS_ACCEL_SHM_COMM_MAX_RANKS)
        return ops__error(error, DS_ACCEL_ERR_UNSUPPORTED, "shm_comm: create",
                          "the node has %u ranks; wanted at most %u", ccl->local_size,
                          DS_ACCEL_SHM_COMM_MAX_RANKS);
    snprintf(name, sizeof(name), "ccl_comm-%016" PRIx64 "-%u", nonce, ccl->node);
    return ops__shm_table.create(&options, &ccl->local, error);
}

/* Show all ranks how a step of create() went on this one, and the first rank of its node; fail with
 * the first error. */
static int32_t agree(const char *call, struct ops__ccl *ccl, uint32_t first, int32_t status,
                     const struct ds_accel_error *reason, struct ds_accel_error *error)
{
    struct ops__ccl_note *own = &ccl->outcomes[ccl->rank];

    *own = (struct ops__ccl_note){.rank = ccl->rank, .status = status, .first = first};
    if (status)
        snprintf(own->text, sizeof(own->text), "%.300s", reason->message);
    if (share(ccl, ccl->ranks, ccl->outcomes, sizeof(*ccl->outcomes)))
        return ops__error(error, ccl->note.status, call, "%s", ccl->note.text);
    for (uint32_t rank = 0; rank < ccl->size; rank++)
        if (ccl->outcomes[rank].status)
            return ops__error(error, ccl->outcomes[rank].status, call, "rank %u: %s", rank,
                              ccl->outcomes[rank].text);
    return DS_ACCEL_OK;
}

/* Nobody waits in shared memory for a rank without buffers. */
static int32_t make_parts(const char *call, const struct ds_accel_ccl_comm_options *options,
                          struct ops__ccl *ccl, struct ds_accel_error *error)
{
    struct ds_accel_error reason = {
        .struct_size = sizeof(reason),
        .message = "out of memory for the buffers",
    };
    int32_t status = make_buffers(ccl, options->buffer_bytes) ? 0 : DS_ACCEL_ERR_NO_MEMORY;

    status = agree(call, ccl, 0, status, &reason, error);
    if (status)
        return status;
    status = create_local(ccl, ccl->cards[0].nonce, &reason);
    return agree(call, ccl, 0, status, &reason, error);
}

static int32_t find_nodes(const char *call, struct ops__ccl *ccl, struct ops__ccl_door *door,
                          struct ds_accel_error *error)
{
    struct ds_accel_error reason = {.struct_size = sizeof(reason)};
    int32_t status = ops__ccl_node_open(call, ccl, door, &reason);

    status = agree(call, ccl, door->first, status, &reason, error);
    if (status)
        return status;
    status = ops__ccl_node_find(call, ccl, door, &reason);
    status = agree(call, ccl, door->first, status, &reason, error);
    if (status)
        return status;
    status = ops__ccl_node_serve(call, ccl, door, &reason);
    if (status == DS_ACCEL_OK)
        status = ops__ccl_node_map(call, ccl, door, &reason);
    return agree(call, ccl, door->first, status, &reason, error);
}

static int32_t meet(const char *call, const struct ds_accel_ccl_comm_options *options,
                    struct ops__ccl *ccl, struct ds_accel_error *error)
{
    struct ops__ccl_door door;
    int32_t status;

    for (uint32_t rank = 0; rank < ccl->size; rank++)
        ccl->ranks[rank] = rank;
    ccl->cards[ccl->rank] = own_card(options);
    if (share(ccl, ccl->ranks, ccl->cards, sizeof(*ccl->cards)))
        return ops__error(error, ccl->note.status, call, "%s", ccl->note.text);
    status = check_cards(call, ccl->cards, ccl->size, error);
    if (status)
        return status;
    status = find_nodes(call, ccl, &door, error);
    ops__ccl_node_close(&door);
    if (status)
        return status;
    number_nodes(ccl);
    order_ranks(ccl);
    status = make_parts(call, options, ccl, error);
    if (status)
        return status;
    if (ops__ccl_leads(ccl) && ccl->nodes > 1 && ops__ccl_listen(ccl))
        return ops__error(error, ccl->note.status, call, "%s", ccl->note.text);
    return DS_ACCEL_OK;
}

int32_t ops__ccl_decline(const char *call, const struct ds_accel_ccl_comm_options *options,
                         struct ops__ccl *ccl, struct ds_accel_error *error)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static bool is_kept; /* MPI still uses what is below, after a failure */
    static struct ops__ccl_card own;
    static struct ops__ccl_card theirs;
    struct ops__mpi_request requests[2] = {{.active = false}};
    struct ops__ccl_part sent = {.data = (char *)&own, .bytes = sizeof(own)};
    struct ops__ccl_part received = {.data = (char *)&theirs, .bytes = sizeof(theirs)};

    pthread_mutex_lock(&lock);
    if (!is_kept) {
        own = own_card(options);
        own.status = DS_ACCEL_ERR_NO_MEMORY;
    }
    ccl->sends = &sent;
    ccl->receives = &received;
    ccl->requests = requests;
    for (uint32_t rank = 0; rank < ccl->size && !is_kept; rank++)
        if (rank != ccl->rank)
            is_kept = ops__ccl_exchange(ccl, &rank, 1, 1) != 0;
    pthread_mutex_unlock(&lock);
    return ops__error(error, DS_ACCEL_ERR_NO_MEMORY, call, "rank %u: " NO_LISTS, ccl->rank);
}

int32_t ops__ccl_meet(const char *call, const struct ds_accel_ccl_comm_options *options,
                      struct ops__ccl *ccl, struct ds_accel_error *error)
{
    int32_t status = meet(call, options, ccl, error);

    if (status)
        return status; /* MPI may still write to the lists */
    ops__ccl_free_meeting(ccl);
    return DS_ACCEL_OK;
}
