/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The messages between a helper and the library: message.c. */
#ifndef DS_ACCEL_HOST_MESSAGE_H
#define DS_ACCEL_HOST_MESSAGE_H

#include "ds_accel.h"

#include <stdbool.h>
#include <stddef.h>

enum ds_accel__message_kind {
    /* From the helper. */
    DS_ACCEL__MESSAGE_HELLO = 1,   /* struct ds_accel__probe_hello; text: its version */
    DS_ACCEL__MESSAGE_STAGE = 2,   /* uint32_t: the gate whose code starts to run */
    DS_ACCEL__MESSAGE_LOG = 3,     /* uint32_t: level; text: line */
    DS_ACCEL__MESSAGE_RESULT = 5,  /* struct ds_accel__probe_result; texts: reason, evidence ... */
    DS_ACCEL__MESSAGE_CONDUCT = 6, /* texts: reason, detail */
    DS_ACCEL__MESSAGE_EXIT = 7,    /* the plugin called exit() */
    DS_ACCEL__MESSAGE_RULE = 8,    /* uint32_t: rule, result; text: detail */
    DS_ACCEL__MESSAGE_END = 9,     /* the candidate is done */
    DS_ACCEL__MESSAGE_SIGNAL = 10, /* int32_t: a signal that will end the child */
    DS_ACCEL__MESSAGE_ENDED = 11,  /* struct ds_accel__probe_ended; by the supervisor, as HELLO */
    /* To the helper. */
    DS_ACCEL__MESSAGE_SETUP = 16, /* struct ds_accel__probe_setup; texts: version, machine root */
    DS_ACCEL__MESSAGE_ASK = 17,   /* struct ds_accel__probe_ask; texts: name, path, options */
    DS_ACCEL__MESSAGE_STOP = 18   /* uint32_t: number of the ASK, whether to send SIGTERM first */
};

enum ds_accel__message_result {
    DS_ACCEL__MESSAGE_READY,
    DS_ACCEL__MESSAGE_MORE,    /* not complete yet */
    DS_ACCEL__MESSAGE_GARBLED, /* not a message */
    DS_ACCEL__MESSAGE_FORGED   /* a message that the other end did not create */
};

#define DS_ACCEL__MESSAGE_HEAD_BYTES 24u
#define DS_ACCEL__MESSAGE_LIMIT_BYTES 65536u /* of a payload from the helper */

struct ds_accel__message {
    uint16_t kind;
    const void *payload; /* borrowed until the next frame_room() */
    uint32_t payload_bytes;
};

/* Assembles messages from the bytes received. Zero it, set token and limit_bytes. */
struct ds_accel__message_reader {
    unsigned char *data;
    size_t size_bytes;
    size_t capacity_bytes;
    size_t at; /* bytes that were consumed already */
    uint64_t token;
    uint32_t sequence;
    uint32_t limit_bytes; /* of a payload */
};

/* The buffer for the next read; add the number of bytes read to size_bytes. NULL: out of memory. */
void *ds_accel__message_room(struct ds_accel__message_reader *reader, size_t *room_out);
enum ds_accel__message_result ds_accel__message_next(struct ds_accel__message_reader *reader,
                                                     struct ds_accel__message *frame_out);
void ds_accel__message_reader_clear(struct ds_accel__message_reader *reader);
/* Write a message's head, DS_ACCEL__MESSAGE_HEAD_BYTES. Safe in a signal handler. */
void ds_accel__message_seal(void *head, uint16_t kind, uint32_t sequence, const void *payload,
                            uint32_t payload_bytes, uint64_t token);
/* The struct at a payload's beginning; false if it is shorter. */
bool ds_accel__message_struct(const struct ds_accel__message *message, void *data,
                              size_t size_bytes);
/*
 * The text with this index, counted from 0, of the texts that start at offset; "" if there is none.
 */
const char *ds_accel__message_text(const struct ds_accel__message *message, size_t offset,
                                   unsigned position);

#endif
