/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Arbitrary bytes on the channel of the helper process. The first byte selects the size of the
 * steps in which the bytes arrive, and whether the rest is raw or is cut into messages with a valid
 * checksum, so that the code after the checksum is reached, too.
 */
#include "fuzz.h"

#include "base/text.h"
#include "host/context.h"
#include "host/message.h"
#include "host/prober.h"
#include "host/registry.h"

#include <string.h>

#define TOKEN UINT64_C(0x1234567890abcdef)
#define LIMIT_BYTES 512u
#define FRAMES 64

/* The messages that were read: kinds, sizes and a hash of the payloads, and how reading
 * finished. */
struct tally {
    uint64_t hash;
    size_t count;
    enum ds_accel__message_result end;
};

static void check_texts(const struct ds_accel__message *message)
{
    const char *begin = message->payload;
    const char *end = begin + message->payload_bytes;
    uint64_t data[2];

    for (unsigned position = 0; position < 4; position++) {
        const char *text = ds_accel__message_text(message, 8, position);

        /* The text and its NUL are inside the payload, or it is the empty text that stands for an
         * absent one. */
        FUZZ_CHECK(text[0] == '\0' || (text >= begin + 8 && text + strlen(text) < end));
    }
    FUZZ_CHECK(ds_accel__message_struct(message, data, sizeof(data)) ==
               (message->payload_bytes >= sizeof(data)));
}

static void read_all(struct ds_accel__message_reader *reader, struct tally *heard)
{
    for (;;) {
        struct ds_accel__message message = {0};

        heard->end = ds_accel__message_next(reader, &message);
        if (heard->end != DS_ACCEL__MESSAGE_READY) {
            return;
        }
        FUZZ_CHECK(message.payload_bytes <= LIMIT_BYTES);
        check_texts(&message);
        heard->hash =
            ds_accel__hash(message.payload, message.payload_bytes, heard->hash + message.kind);
        heard->count++;
    }
}

/* Feed the data in steps; the messages must not depend on the step size. */
static struct tally feed(const uint8_t *data, size_t size, size_t step)
{
    struct ds_accel__message_reader reader = {.token = TOKEN, .limit_bytes = LIMIT_BYTES};
    struct tally heard = {.end = DS_ACCEL__MESSAGE_MORE};

    while (size > 0 && heard.end == DS_ACCEL__MESSAGE_MORE) {
        size_t room;
        void *to = ds_accel__message_room(&reader, &room);
        size_t count = step < size ? step : size;

        if (to == NULL) {
            break;
        }
        FUZZ_CHECK(room > 0);
        count = count < room ? count : room;
        memcpy(to, data, count);
        reader.size_bytes += count;
        data += count;
        size -= count;
        read_all(&reader, &heard);
    }
    ds_accel__message_reader_clear(&reader);
    return heard;
}

static void feed_both(const uint8_t *data, size_t size, size_t step)
{
    struct tally in_steps = feed(data, size, step);
    struct tally at_once = feed(data, size, size > 0 ? size : 1);

    FUZZ_CHECK(in_steps.count == at_once.count);
    FUZZ_CHECK(in_steps.hash == at_once.hash);
    FUZZ_CHECK(in_steps.end == at_once.end);
}

/* Feed complete messages that the helper did not send: with another token, out of order, too
 * large. */
static void feed_foreign(uint16_t kind, const uint8_t *data, uint32_t bytes, size_t step)
{
    static const char large[LIMIT_BYTES + 1];
    const struct {
        uint64_t token;
        uint32_t sequence;
        const void *payload;
        uint32_t bytes;
    } messages[] = {
        {TOKEN ^ 1, 0, data, bytes},
        {TOKEN, 1, data, bytes},
        {TOKEN, UINT32_MAX, data, bytes},
        {TOKEN, 0, large, sizeof(large)},
    };

    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
        struct ds_accel__text stream = {0};
        char head[DS_ACCEL__MESSAGE_HEAD_BYTES];

        ds_accel__message_seal(head, kind, messages[i].sequence, messages[i].payload,
                               messages[i].bytes, messages[i].token);
        ds_accel__text_add_bytes(&stream, head, sizeof(head));
        ds_accel__text_add_bytes(&stream, messages[i].payload, messages[i].bytes);
        if (!stream.failed) {
            struct tally heard = feed((const uint8_t *)stream.data, stream.size_bytes, step);

            FUZZ_CHECK(heard.count == 0 && heard.end == DS_ACCEL__MESSAGE_FORGED);
        }
        ds_accel__text_clear(&stream);
    }
}

/* Cut the data into pieces [kind, size, bytes...] and seal each; every piece must be read
 * unchanged. */
static void feed_sealed(const uint8_t *data, size_t size, size_t step)
{
    struct ds_accel__text stream = {0};
    uint32_t sequence = 0;

    while (size >= 2 && sequence < FRAMES) {
        uint16_t kind = data[0];
        uint32_t bytes = data[1] < size - 2 ? data[1] : (uint32_t)(size - 2);
        char head[DS_ACCEL__MESSAGE_HEAD_BYTES];

        if (sequence == 0) {
            feed_foreign(kind, data + 2, bytes, step);
        }
        ds_accel__message_seal(head, kind, sequence++, data + 2, bytes, TOKEN);
        ds_accel__text_add_bytes(&stream, head, sizeof(head));
        ds_accel__text_add_bytes(&stream, data + 2, bytes);
        data += 2 + bytes;
        size -= 2 + bytes;
    }
    if (!stream.failed && stream.size_bytes > 0) {
        struct tally heard = feed((const uint8_t *)stream.data, stream.size_bytes, step);

        FUZZ_CHECK(heard.count == sequence);
        FUZZ_CHECK(heard.end == DS_ACCEL__MESSAGE_MORE);
        /* Flip one bit of the last message's checksum: the message is then rejected. */
        stream.data[stream.size_bytes - 1] ^= 1;
        heard = feed((const uint8_t *)stream.data, stream.size_bytes, step);
        FUZZ_CHECK(heard.count == sequence - 1);
        FUZZ_CHECK(heard.end == DS_ACCEL__MESSAGE_FORGED ||
                   heard.end == DS_ACCEL__MESSAGE_GARBLED || heard.end == DS_ACCEL__MESSAGE_MORE);
    }
    ds_accel__text_clear(&stream);
}

static enum ds_accel__heard take_message(ds_accel_t *context, struct ds_accel__helper *helper,
                                         const struct ds_accel__message *message)
{
    if (message->kind != DS_ACCEL__MESSAGE_HELLO && message->kind != DS_ACCEL__MESSAGE_ENDED) {
        return ds_accel__helper_take_message(context, helper, message);
    }
    return ds_accel__helper_take_supervisor_message(context, helper, message)
               ? DS_ACCEL__HEARD_SOMETHING
               : DS_ACCEL__HEARD_FORGERY;
}

/* Process sealed messages with arbitrary contents: the result is a verdict or no verdict. */
static void judge(const uint8_t *data, size_t size)
{
    ds_accel_t *context = ds_accel__context_bare("", true);
    struct ds_accel__candidate *candidate =
        context != NULL ? ds_accel__candidate_create(context, "fuzzed", "/fuzzed") : NULL;
    struct ds_accel__helper helper = {.candidate = candidate, .stage = DS_ACCEL__GATE_LOAD};
    enum ds_accel__heard heard = DS_ACCEL__HEARD_SOMETHING;
    uint64_t deadline_ns = 0;

    if (candidate != NULL) {
        ds_accel__candidate_enter(candidate, DS_ACCEL__PHASE_CHECKED);
    }
    while (candidate != NULL && size >= 2 && heard == DS_ACCEL__HEARD_SOMETHING) {
        /* The length of a result may exceed one byte. */
        size_t bytes = data[0] == DS_ACCEL__MESSAGE_RESULT ? size - 2 : data[1];
        struct ds_accel__message message = {.kind = data[0], .payload = data + 2};

        bytes = bytes < size - 2 ? bytes : size - 2;
        message.payload_bytes = (uint32_t)bytes;
        heard = take_message(context, &helper, &message);
        /* Only the first HELLO sets the deadline. */
        FUZZ_CHECK(helper.deadline_ns == deadline_ns ||
                   (deadline_ns == 0 && message.kind == DS_ACCEL__MESSAGE_HELLO));
        deadline_ns = helper.deadline_ns;
        FUZZ_CHECK(!helper.has_end || helper.has_result);
        FUZZ_CHECK(helper.stage >= DS_ACCEL__GATE_LOAD && helper.stage <= DS_ACCEL__GATE_START);
        data += 2 + bytes;
        size -= 2 + bytes;
    }
    if (candidate != NULL && helper.has_result) {
        FUZZ_CHECK(candidate->state >= DS_ACCEL_STATE_AVAILABLE &&
                   candidate->state <= DS_ACCEL_STATE_REJECTED);
        FUZZ_CHECK(candidate->reason < DS_ACCEL__REASON_COUNT);
        FUZZ_CHECK(candidate->state != DS_ACCEL_STATE_AVAILABLE ||
                   (candidate->verdict.device_count > 0 &&
                    candidate->verdict.device_count <= DS_ACCEL__DEVICE_LIMIT));
        FUZZ_CHECK(strlen(candidate->verdict.detail) < sizeof(candidate->verdict.detail));
        FUZZ_CHECK(strlen(candidate->verdict.variant) < sizeof(candidate->verdict.variant));
        ds_accel__helper_judge_conduct(&helper);
    }
    ds_accel__candidate_destroy(candidate);
    ds_accel_destroy(context);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && (data[0] & 0xc0) == 0x40) {
        judge(data + 1, size - 1);
    } else if (size > 0 && (data[0] & 0x80) == 0) {
        feed_both(data + 1, size - 1, (size_t)(data[0] & 0x3f) + 1);
    } else if (size > 0) {
        feed_sealed(data + 1, size - 1, (size_t)(data[0] & 0x3f) + 1);
    }
    return 0;
}
