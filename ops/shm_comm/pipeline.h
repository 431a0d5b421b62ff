/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* A call with large messages: what pipeline.c and levels.c share. */
#ifndef OPS_SHM_COMM_PIPELINE_H
#define OPS_SHM_COMM_PIPELINE_H

#include "shm.h"

struct ops__pipeline {
    struct ds_accel_comm *comm;
    const struct ops__shm_call *call;
    bool is_staged;  /* the input of this rank is copied to its slots */
    bool is_direct;  /* no input is */
    bool out_direct; /* all outputs are registered */
    bool is_whole;   /* one piece, of which nothing is staged */
    bool has_levels; /* a reduction among groups of ranks: levels.c */
    size_t piece;    /* elements */
    size_t pieces;
    /* Arrays of all ranks in this process; in: NULL where it is staged, out: only if out_direct. */
    const char *in[DS_ACCEL_SHM_COMM_MAX_RANKS];
    char *out[DS_ACCEL_SHM_COMM_MAX_RANKS];
};

/* A range of elements. */
struct ops__range {
    size_t first;
    size_t count;
};

/* Return the elements of a piece. */
struct ops__range ops__piece_range(const struct ops__pipeline *p, size_t number);
/* Return a rank's share in a piece of an all-reduce, relative to the piece: whole cache lines. */
struct ops__range ops__share_of(const struct ops__pipeline *p, uint32_t rank, size_t count);
/* Return which of the slots a piece uses. */
size_t ops__slot_number(const struct ops__pipeline *p, size_t number);
char *ops__staged_slot(const struct ops__pipeline *p, uint32_t rank, size_t number);
/* Wait until a rank has staged a piece. */
int32_t ops__await_staged(const struct ops__pipeline *p, uint32_t rank, size_t number);

/* The three steps of a reduction among groups. */
void ops__levels_stage(const struct ops__pipeline *p, size_t number);
int32_t ops__levels_work(const struct ops__pipeline *p, size_t number);
int32_t ops__levels_finish(const struct ops__pipeline *p, size_t number);

#endif
