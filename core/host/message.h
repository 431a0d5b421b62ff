/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The messages between a helper and the library: message.c. */
#ifndef DS_ACCEL_HOST_MESSAGE_H
#define DS_ACCEL_HOST_MESSAGE_H

#include "ds_accel.h"

#include <stdbool.h>
#include <stddef.h>

enum ds_accel__message_kind {
    /* Messages from the helper. Each comment lists the payload. */
    DS_ACCEL__MESSAGE_HELLO = 1,   /* struct ds_accel__probe_hello; text: its version */
    DS_ACCEL__MESSAGE_STAGE = 2,   /* uint32_t: the gate whose code is starting */
    DS_ACCEL__MESSAGE_LOG = 3,     /* uint32_t: level; texts: topic, line */
    DS_ACCEL__MESSAGE_RESULT = 5,  /* struct ds_accel__probe_result; texts: reason, detail ... */
    DS_ACCEL__MESSAGE_CONDUCT = 6, /* texts: reason, detail */
    DS_ACCEL__MESSAGE_EXIT = 7,    /* the plugin called exit() */
    DS_ACCEL__MESSAGE_RULE = 8,    /* uint32_t: rule, result; text: detail */
    DS_ACCEL__MESSAGE_END = 9,     /* probing of the candidate is finished */
    DS_ACCEL__MESSAGE_SIGNAL = 10, /* int32_t: fatal signal, si_code; uint64_t: its address */
    /*
     * Payload: struct ds_accel__probe_ended. The supervisor, not its child, sends ENDED and HELLO.
     */
    DS_ACCEL__MESSAGE_ENDED = 11,
    /* Messages to the helper. */
    DS_ACCEL__MESSAGE_SETUP = 16, /* struct ds_accel__probe_setup; texts: version, machine root */
    DS_ACCEL__MESSAGE_ASK = 17,   /* struct ds_accel__probe_ask; texts: name, path, options */
    DS_ACCEL__MESSAGE_STOP = 18 /* uint32_t: number of the ASK, and whether to send SIGTERM first */
};

enum ds_accel__message_result {
    DS_ACCEL__MESSAGE_READY,
    DS_ACCEL__MESSAGE_MORE,    /* not complete yet */
    DS_ACCEL__MESSAGE_GARBLED, /* not a message */
    DS_ACCEL__MESSAGE_FORGED   /* wrong sequence, version, size or checksum */
};

#define DS_ACCEL__MESSAGE_HEAD_BYTES 24u
#define DS_ACCEL__MESSAGE_LIMIT_BYTES 65536u /* limit of a payload from the helper */

struct ds_accel__message {
    uint16_t kind;
    const void *payload; /* borrowed until the next ds_accel__message_room() */
    uint32_t payload_bytes;
};

/*
 * Assembles messages from the bytes received. Before the first use, zero the reader and set token
 * and limit_bytes.
 */
struct ds_accel__message_reader {
    unsigned char *data;
    size_t size_bytes;
    size_t capacity_bytes;
    size_t at; /* number of bytes already consumed */
    uint64_t token;
    uint32_t sequence;
    uint32_t limit_bytes; /* limit of a payload */
};

/*
 * Return the buffer for the next read; the caller adds the number of bytes read to size_bytes. NULL
 * if memory is exhausted.
 */
void *ds_accel__message_room(struct ds_accel__message_reader *reader, size_t *room_out);
enum ds_accel__message_result ds_accel__message_next(struct ds_accel__message_reader *reader,
                                                     struct ds_accel__message *frame_out);
void ds_accel__message_reader_clear(struct ds_accel__message_reader *reader);
/*
 * Write the head of a message, with its checksum, to DS_ACCEL__MESSAGE_HEAD_BYTES bytes at head.
 * Safe in a signal handler.
 */
void ds_accel__message_seal(void *head, uint16_t kind, uint32_t sequence, const void *payload,
                            uint32_t payload_bytes, uint64_t token);
/* Copy the struct at the beginning of a payload; false if the payload is shorter. */
bool ds_accel__message_struct(const struct ds_accel__message *message, void *data,
                              size_t size_bytes);
/*
 * Return the text with this index, counted from 0, of the texts that start at offset; "" if there
 * is no such text.
 */
const char *ds_accel__message_text(const struct ds_accel__message *message, size_t offset,
                                   unsigned position);

#endif
