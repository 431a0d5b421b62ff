/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Messages between the library and ds-accel-probe: a helper process reports each stage while a
 * plugin's code runs in it. That code can write to the descriptor, too, so a message is accepted
 * only if it is complete, in sequence, and sealed with a token known only to sender and receiver. A
 * plugin could find the token in its process's memory, but it would gain no more than by reporting
 * "available" in the ordinary way.
 *
 * Sender and receiver are of the same build on the same machine, so numbers have their in-memory
 * format.
 */
#include "host/message.h"
#include "base/text.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0x46415344u /* "DSAF" */
#define VERSION 1u

struct header {
    uint32_t magic;
    uint16_t version;
    uint16_t kind;
    uint32_t payload_bytes;
    uint32_t sequence;
    uint64_t checksum; /* hash of all other bytes, keyed by the token */
};
DS_ACCEL_STATIC_ASSERT(sizeof(struct header) == DS_ACCEL__MESSAGE_HEAD_BYTES, "no padding");

static uint64_t seal(const struct header *header, const void *payload, uint64_t token)
{
    uint64_t hash = ds_accel__hash(header, offsetof(struct header, checksum), token);

    return ds_accel__hash(payload, header->payload_bytes, hash);
}

void ds_accel__message_seal(void *head, uint16_t kind, uint32_t sequence, const void *payload,
                            uint32_t payload_bytes, uint64_t token)
{
    struct header header = {
        .magic = MAGIC,
        .version = VERSION,
        .kind = kind,
        .payload_bytes = payload_bytes,
        .sequence = sequence,
    };

    assert(payload != NULL || payload_bytes == 0);
    header.checksum = seal(&header, payload, token);
    memcpy(head, &header, sizeof(header));
}

void *ds_accel__message_room(struct ds_accel__message_reader *reader, size_t *room_out)
{
    assert(reader->at <= reader->size_bytes && reader->size_bytes <= reader->capacity_bytes);
    if (reader->at > 0) {
        memmove(reader->data, reader->data + reader->at, reader->size_bytes - reader->at);
        reader->size_bytes -= reader->at;
        reader->at = 0;
    }
    if (reader->capacity_bytes - reader->size_bytes < DS_ACCEL__MESSAGE_HEAD_BYTES) {
        size_t capacity = reader->capacity_bytes != 0 ? 2 * reader->capacity_bytes : 4096;
        unsigned char *larger = realloc(reader->data, capacity);

        if (larger == NULL) {
            return NULL;
        }
        reader->data = larger;
        reader->capacity_bytes = capacity;
    }
    *room_out = reader->capacity_bytes - reader->size_bytes;
    /* There is always room: a read of 0 bytes would look like the end of the channel. */
    assert(*room_out >= DS_ACCEL__MESSAGE_HEAD_BYTES);
    return reader->data + reader->size_bytes;
}

void ds_accel__message_reader_clear(struct ds_accel__message_reader *reader)
{
    free(reader->data);
    memset(reader, 0, sizeof(*reader));
}

enum ds_accel__message_result ds_accel__message_next(struct ds_accel__message_reader *reader,
                                                     struct ds_accel__message *frame_out)
{
    const unsigned char *at = reader->data + reader->at;
    size_t left = reader->size_bytes - reader->at;
    struct header header = {0};

    if (left == 0) {
        return DS_ACCEL__MESSAGE_MORE;
    }
    memcpy(&header, at, left < sizeof(header) ? left : sizeof(header));
    /*
     * Compare as many bytes of the magic number as were received, so that garbage is detected
     * before a whole header has arrived.
     */
    if (memcmp(&header.magic, &(uint32_t){MAGIC}, left < 4 ? left : 4) != 0) {
        return DS_ACCEL__MESSAGE_GARBLED;
    }
    if (left < sizeof(header)) {
        return DS_ACCEL__MESSAGE_MORE;
    }
    if (header.version != VERSION || header.payload_bytes > reader->limit_bytes ||
        header.sequence != reader->sequence) {
        return DS_ACCEL__MESSAGE_FORGED;
    }
    if (left - sizeof(header) < header.payload_bytes) {
        return DS_ACCEL__MESSAGE_MORE;
    }
    if (header.checksum != seal(&header, at + sizeof(header), reader->token)) {
        return DS_ACCEL__MESSAGE_FORGED;
    }
    *frame_out = (struct ds_accel__message){
        .kind = header.kind,
        .payload = at + sizeof(header),
        .payload_bytes = header.payload_bytes,
    };
    reader->at += sizeof(header) + header.payload_bytes;
    assert(reader->at <= reader->size_bytes);
    reader->sequence++;
    return DS_ACCEL__MESSAGE_READY;
}

bool ds_accel__message_struct(const struct ds_accel__message *message, void *data,
                              size_t size_bytes)
{
    if (message->payload_bytes < size_bytes) {
        return false;
    }
    memcpy(data, message->payload, size_bytes);
    return true;
}

const char *ds_accel__message_text(const struct ds_accel__message *message, size_t offset,
                                   unsigned position)
{
    const char *at = (const char *)message->payload + offset;
    size_t left = offset <= message->payload_bytes ? message->payload_bytes - offset : 0;

    for (;; position--) {
        const char *end = left > 0 ? memchr(at, '\0', left) : NULL;

        if (end == NULL) {
            return "";
        }
        if (position == 0) {
            return at;
        }
        left -= (size_t)(end - at) + 1;
        at = end + 1;
    }
}
