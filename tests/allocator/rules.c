/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "rules.h"

#include <stdio.h>
#include <stdlib.h>

#define MIB (UINT64_C(1) << 20)
#define ROUND UINT64_C(512)
#define SMALL_REQUEST MIB
#define SMALL_BUFFER (2 * MIB)
#define LARGE_BUFFER (20 * MIB)
#define MIN_LARGE (10 * MIB)
#define ROUND_LARGE (2 * MIB)
#define FIRST_ADDRESS (UINT64_C(1) << 40)

enum {
    SMALL_POOL,
    LARGE_POOL,
    POOLS
};

enum state {
    FREE,
    USED,
    UNMAPPED
};

struct piece {
    uint64_t address;
    uint64_t size;
    uint64_t range; /* start of its expandable segment; 0: none */
    enum state state;
    unsigned stream;
    unsigned pool;
    struct piece *left; /* neighbours in the segment */
    struct piece *right;
    struct piece *next; /* next in the list of the pool's unused pieces */
    struct piece *previous;
};

struct rules {
    uint64_t memory;
    uint64_t next_address;
    bool is_expandable;
    struct rules_figures figures;
    struct piece *pieces[RULES_STREAMS][POOLS]; /* free and unmapped pieces */
    struct piece *used;
};

static uint64_t up(uint64_t value, uint64_t step)
{
    return (value + step - 1) / step * step;
}

/* ---- pieces --------------------------------------------------------------------------------- */

static struct piece **list_of(struct rules *rules, const struct piece *piece)
{
    return piece->state == USED ? &rules->used : &rules->pieces[piece->stream][piece->pool];
}

static void count_split(struct rules *rules, const struct piece *piece, int by)
{
    if (piece->state == FREE && piece->range == 0 &&
        (piece->left != NULL || piece->right != NULL)) {
        rules->figures.split_count += (uint64_t)(int64_t)by;
        rules->figures.split_bytes += (uint64_t)((int64_t)piece->size * by);
    }
}

static void enter(struct rules *rules, struct piece *piece)
{
    struct piece **list = list_of(rules, piece);

    piece->previous = NULL;
    piece->next = *list;
    if (*list != NULL) {
        (*list)->previous = piece;
    }
    *list = piece;
    count_split(rules, piece, 1);
}

static void leave(struct rules *rules, struct piece *piece)
{
    count_split(rules, piece, -1);
    if (piece->previous != NULL) {
        piece->previous->next = piece->next;
    } else {
        *list_of(rules, piece) = piece->next;
    }
    if (piece->next != NULL) {
        piece->next->previous = piece->previous;
    }
}

static struct piece *make(uint64_t address, uint64_t size, unsigned stream, unsigned pool)
{
    struct piece *piece = calloc(1, sizeof(*piece));

    if (piece == NULL) {
        perror("rules");
        exit(2);
    }
    piece->address = address;
    piece->size = size;
    piece->stream = stream;
    piece->pool = pool;
    return piece;
}

/* Cut a piece after size bytes and return the rest. Neither piece is in a list. */
static struct piece *split(struct piece *piece, uint64_t size)
{
    struct piece *rest =
        make(piece->address + size, piece->size - size, piece->stream, piece->pool);

    rest->range = piece->range;
    rest->state = piece->state;
    rest->left = piece;
    rest->right = piece->right;
    if (rest->right != NULL) {
        rest->right->left = rest;
    }
    piece->right = rest;
    piece->size = size;
    return rest;
}

/* Merge a piece with neighbours of the same state, and put the result into its list. */
static struct piece *settle(struct rules *rules, struct piece *piece)
{
    if (piece->left != NULL && piece->left->state == piece->state) {
        struct piece *left = piece->left;

        leave(rules, left);
        left->size += piece->size;
        left->right = piece->right;
        if (left->right != NULL) {
            left->right->left = left;
        }
        free(piece);
        piece = left;
    }
    if (piece->right != NULL && piece->right->state == piece->state) {
        struct piece *right = piece->right;

        leave(rules, right);
        piece->size += right->size;
        piece->right = right->right;
        if (piece->right != NULL) {
            piece->right->left = piece;
        }
        free(right);
    }
    enter(rules, piece);
    return piece;
}

/* Move a piece from the list of its old state to the list of its new state, and merge it with its
 * neighbours. */
static void set_state(struct rules *rules, struct piece *piece, enum state state)
{
    leave(rules, piece);
    piece->state = state;
    settle(rules, piece);
}

/* ---- the device ----------------------------------------------------------------------------- */

static bool reserve(struct rules *rules, uint64_t size)
{
    struct rules_figures *figures = &rules->figures;

    if (size > rules->memory - figures->reserved_bytes) {
        return false;
    }
    figures->reserved_bytes += size;
    if (figures->reserved_bytes > figures->reserved_peak_bytes) {
        figures->reserved_peak_bytes = figures->reserved_bytes;
    }
    return true;
}

static uint64_t page_of(unsigned pool)
{
    return pool == SMALL_POOL ? SMALL_BUFFER : LARGE_BUFFER;
}

static struct piece *take_segment(struct rules *rules, unsigned stream, unsigned pool,
                                  uint64_t size)
{
    struct piece *piece;

    if (pool == SMALL_POOL) {
        size = SMALL_BUFFER;
    } else {
        size = size < MIN_LARGE ? LARGE_BUFFER : up(size, ROUND_LARGE);
    }
    if (!reserve(rules, size)) {
        return NULL;
    }
    piece = make(rules->next_address, size, stream, pool);
    rules->next_address += size + SMALL_BUFFER;
    enter(rules, piece);
    return piece;
}

/* ---- expandable segments -------------------------------------------------------------------- */

/* Find unmapped addresses that have room for the size, together with the free pieces before and
 * after them. */
static struct piece *find_addresses(struct rules *rules, unsigned stream, unsigned pool,
                                    uint64_t size)
{
    struct piece *best = NULL;

    for (struct piece *piece = rules->pieces[stream][pool]; piece != NULL; piece = piece->next) {
        struct piece *first = piece;
        uint64_t sum = 0;

        if (piece->state != UNMAPPED) {
            continue;
        }
        if (piece->left != NULL && piece->left->state == FREE) {
            first = piece->left;
        }
        for (const struct piece *each = first; each != NULL && each->state != USED && sum < size;
             each = each->right) {
            sum += each->size;
        }
        if (sum >= size && (best == NULL || piece->address < best->address)) {
            best = piece;
        }
    }
    if (best == NULL) {
        best = make(rules->next_address, up(rules->memory + rules->memory / 8, page_of(pool)),
                    stream, pool);
        rules->next_address += best->size + LARGE_BUFFER;
        best->range = best->address;
        best->state = UNMAPPED;
        enter(rules, best);
    }
    return best->left != NULL && best->left->state == FREE ? best->left : best;
}

/* Map memory under the first bytes of a piece, and return the free piece that contains them. */
static struct piece *map(struct rules *rules, struct piece *piece, uint64_t size)
{
    size = up(size, page_of(piece->pool));
    if (!reserve(rules, size)) {
        return NULL;
    }
    leave(rules, piece);
    if (size < piece->size) {
        enter(rules, split(piece, size));
    }
    piece->state = FREE;
    return settle(rules, piece);
}

static struct piece *expand(struct rules *rules, unsigned stream, unsigned pool, uint64_t size)
{
    struct piece *piece = find_addresses(rules, stream, pool, size);

    if (piece->state == UNMAPPED) {
        piece = map(rules, piece, size < piece->size ? size : piece->size);
    }
    while (piece != NULL && piece->size < size) {
        uint64_t missing = size - piece->size;
        struct piece *next = piece->right;

        piece = map(rules, next, missing < next->size ? missing : next->size);
    }
    return piece;
}

static void unmap(struct rules *rules, struct piece *piece)
{
    uint64_t page = page_of(piece->pool);
    uint64_t start = piece->range + up(piece->address - piece->range, page);
    uint64_t end = piece->range + (piece->address + piece->size - piece->range) / page * page;

    if (end <= start) {
        return;
    }
    rules->figures.reserved_bytes -= end - start;
    leave(rules, piece);
    if (start > piece->address) {
        struct piece *inner = split(piece, start - piece->address);

        enter(rules, piece);
        piece = inner;
    }
    if (end < piece->address + piece->size) {
        enter(rules, split(piece, end - piece->address));
    }
    piece->state = UNMAPPED;
    settle(rules, piece);
}

/* ---- the cache ------------------------------------------------------------------------------ */

static void release_all(struct rules *rules)
{
    for (unsigned i = 0; i < RULES_STREAMS * POOLS; i++) {
        struct piece *piece = rules->pieces[i / POOLS][i % POOLS];

        while (piece != NULL) {
            struct piece *next = piece->next;

            if (piece->state == FREE && piece->range != 0) {
                uint64_t before = rules->figures.reserved_bytes;

                unmap(rules, piece);
                if (rules->figures.reserved_bytes != before) {
                    next = rules->pieces[i / POOLS][i % POOLS]; /* unmapping changed the list */
                }
            } else if (piece->state == FREE && piece->left == NULL && piece->right == NULL) {
                rules->figures.reserved_bytes -= piece->size;
                leave(rules, piece);
                free(piece);
            }
            piece = next;
        }
    }
}

static bool is_before(const struct piece *a, const struct piece *b)
{
    return a->size != b->size ? a->size < b->size : a->address < b->address;
}

/* Return the smallest free piece that is large enough, of equal sizes the lowest address. If behind
 * is not NULL, only pieces after it in that order count. */
static struct piece *best_fit(struct rules *rules, unsigned stream, unsigned pool, uint64_t size,
                              const struct piece *behind)
{
    struct piece *best = NULL;

    for (struct piece *piece = rules->pieces[stream][pool]; piece != NULL; piece = piece->next) {
        if (piece->state == FREE && piece->size >= size &&
            (behind == NULL || is_before(behind, piece)) &&
            (best == NULL || is_before(piece, best))) {
            best = piece;
        }
    }
    return best;
}

static uint64_t reach(const struct piece *piece)
{
    return piece->size +
           (piece->right != NULL && piece->right->state == UNMAPPED ? piece->right->size : 0);
}

static struct piece *find_free(struct rules *rules, unsigned stream, unsigned pool, uint64_t size)
{
    struct piece *piece = best_fit(rules, stream, pool, size, NULL);

    while (piece != NULL && piece->range != 0) {
        struct piece *next = best_fit(rules, stream, pool, size, piece);

        if (next == NULL || reach(next) >= reach(piece)) {
            break;
        }
        piece = next;
    }
    return piece;
}

static struct piece *from_device(struct rules *rules, unsigned stream, unsigned pool, uint64_t size)
{
    return rules->is_expandable ? expand(rules, stream, pool, size)
                                : take_segment(rules, stream, pool, size);
}

void *rules_alloc(struct rules *rules, unsigned stream, uint64_t size_bytes)
{
    uint64_t size = up(size_bytes, ROUND);
    unsigned pool = size <= SMALL_REQUEST ? SMALL_POOL : LARGE_POOL;
    struct piece *piece = find_free(rules, stream, pool, size);
    uint64_t rest;

    if (piece == NULL) {
        piece = from_device(rules, stream, pool, size);
    }
    if (piece == NULL) {
        release_all(rules);
        rules->figures.retry_count++;
        piece = from_device(rules, stream, pool, size);
    }
    if (piece == NULL) {
        return NULL;
    }
    leave(rules, piece);
    rest = piece->size - size;
    if (pool == SMALL_POOL || rules->is_expandable ? rest >= ROUND : rest > SMALL_REQUEST) {
        enter(rules, split(piece, size));
    }
    piece->state = USED;
    enter(rules, piece);
    return piece;
}

void rules_free(struct rules *rules, void *given)
{
    set_state(rules, given, FREE);
}

/* ---- create and destroy --------------------------------------------------------------------- */

struct rules *rules_create(uint64_t memory_bytes, bool is_expandable)
{
    struct rules *rules = calloc(1, sizeof(*rules));

    if (rules != NULL) {
        rules->memory = memory_bytes;
        rules->is_expandable = is_expandable;
        rules->next_address = FIRST_ADDRESS;
    }
    return rules;
}

static void free_list(struct piece *piece)
{
    while (piece != NULL) {
        struct piece *next = piece->next;

        free(piece);
        piece = next;
    }
}

void rules_destroy(struct rules *rules)
{
    for (unsigned i = 0; i < RULES_STREAMS * POOLS; i++) {
        free_list(rules->pieces[i / POOLS][i % POOLS]);
    }
    free_list(rules->used);
    free(rules);
}

const struct rules_figures *rules_figures(const struct rules *rules)
{
    return &rules->figures;
}
