/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* How a communicator of ccl_comm begins: which ranks share a node, and their shared memory. */
#include "ccl.h"
#include "common/error.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define CCL_VERSION 1u
#define USUAL_BUFFER ((uint64_t)4 << 20)
#define ALIGNMENT 64

/* What ranks tell each other first. */
struct ops__ccl_card {
    uint32_t version;
    uint32_t ranks_per_node;
    uint64_t buffer_bytes;
    int64_t process;
    uint64_t nonce;      /* that of rank 0 names the communicator */
    uint64_t name_space; /* inode of the network namespace */
    uint32_t user;
    char boot[36];
};

static void read_boot_id(char boot[36])
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");

    if (!file)
        return;
    if (fread(boot, 1, 36, file) != 36)
        memset(boot, 0, 36);
    fclose(file);
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
    struct stat facts;

    if (getrandom(&card.nonce, sizeof(card.nonce), 0) != (ssize_t)sizeof(card.nonce))
        card.nonce = ops__ccl_now();
    if (stat("/proc/self/ns/net", &facts) == 0)
        card.name_space = facts.st_ino;
    read_boot_id(card.boot);
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
    for (uint32_t rank = 1; rank < size; rank++) {
        const char *difference;

        if (cards[rank].version != cards[0].version)
            return ops__error(error, DS_ACCEL_ERR_ABI, call,
                              "rank %u has version %u of ccl_comm's protocol, and rank 0 %u", rank,
                              cards[rank].version, cards[0].version);
        difference = compare(&cards[0], &cards[rank]);
        if (difference)
            return ops__error(error, DS_ACCEL_ERR_INVALID, call,
                              "%s of rank %u differs from that of rank 0", difference, rank);
    }
    return DS_ACCEL_OK;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static bool share_node(const struct ops__ccl_card *cards, uint32_t a, uint32_t b)
{
    uint32_t group = cards[a].ranks_per_node;

    if (group && a / group != b / group)
        return false;
    return cards[a].boot[0] && memcmp(cards[a].boot, cards[b].boot, sizeof(cards[a].boot)) == 0 &&
           cards[a].name_space == cards[b].name_space && cards[a].user == cards[b].user;
}

/* Set the number of each rank's node, and the leaders. */
static void number_nodes(struct ops__ccl *ccl, const struct ops__ccl_card *cards)
{
    for (uint32_t rank = 0; rank < ccl->size; rank++) {
        uint32_t node = 0;

        while (node < ccl->nodes && !share_node(cards, ccl->leaders[node], rank))
            node++;
        if (node == ccl->nodes)
            ccl->leaders[ccl->nodes++] = rank;
        ccl->node_of[rank] = node;
        ccl->processes[rank] = cards[rank].process;
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

static bool make_lists(struct ops__ccl *ccl)
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

/* Four buffers of a piece each. In the largest case, a leader has a segment of each node. */
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
    if (posix_memalign(&memory, ALIGNMENT, 4 * each))
        return false;
    ccl->memory_bytes = 4 * each;
    ccl->input = (char *)memory;
    ccl->middle = ccl->input + each;
    ccl->gather = ccl->middle + each;
    ccl->block = ccl->gather + each;
    memset(ccl->block, 0, OPS__CCL_HEAD);
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

/* Make this rank's part; *outcome says how that went. */
static void make_part(struct ops__ccl *ccl, const struct ds_accel_ccl_comm_options *options,
                      uint64_t nonce, struct ops__ccl_note *outcome)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};

    *outcome = (struct ops__ccl_note){.rank = ccl->rank};
    if (make_buffers(ccl, options->buffer_bytes)) {
        outcome->status = create_local(ccl, nonce, &error);
        snprintf(outcome->text, sizeof(outcome->text), "%.300s", error.message);
    } else {
        outcome->status = DS_ACCEL_ERR_NO_MEMORY;
        snprintf(outcome->text, sizeof(outcome->text), "out of memory for the buffers");
    }
}

static int32_t meet(const char *call, const struct ds_accel_ccl_comm_options *options,
                    struct ops__ccl *ccl, struct ds_accel_error *error)
{
    int32_t status;

    for (uint32_t rank = 0; rank < ccl->size; rank++)
        ccl->ranks[rank] = rank;
    ccl->cards[ccl->rank] = own_card(options);
    if (share(ccl, ccl->ranks, ccl->cards, sizeof(*ccl->cards)))
        return ops__error(error, ccl->note.status, call, "%s", ccl->note.text);
    status = check_cards(call, ccl->cards, ccl->size, error);
    if (status)
        return status;
    number_nodes(ccl, ccl->cards);
    order_ranks(ccl);
    make_part(ccl, options, ccl->cards[0].nonce, &ccl->outcomes[ccl->rank]);
    if (share(ccl, ccl->ranks, ccl->outcomes, sizeof(*ccl->outcomes)))
        return ops__error(error, ccl->note.status, call, "%s", ccl->note.text);
    for (uint32_t rank = 0; rank < ccl->size; rank++)
        if (ccl->outcomes[rank].status)
            return ops__error(error, ccl->outcomes[rank].status, call, "rank %u: %s", rank,
                              ccl->outcomes[rank].text);
    if (ops__ccl_leads(ccl) && ccl->nodes > 1 && ops__ccl_listen(ccl))
        return ops__error(error, ccl->note.status, call, "%s", ccl->note.text);
    return DS_ACCEL_OK;
}

int32_t ops__ccl_meet(const char *call, const struct ds_accel_ccl_comm_options *options,
                      struct ops__ccl *ccl, struct ds_accel_error *error)
{
    int32_t status;

    if (!make_lists(ccl))
        return ops__error(error, DS_ACCEL_ERR_NO_MEMORY, call, "out of memory for the lists");
    status = meet(call, options, ccl, error);
    if (status)
        return status; /* MPI may still write to the lists */
    ops__ccl_free_meeting(ccl);
    return DS_ACCEL_OK;
}
