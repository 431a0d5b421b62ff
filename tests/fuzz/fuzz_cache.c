/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Arbitrary bytes as the file of verdicts, in three ways: unchanged, with a valid head in front,
 * and as changes to single bytes of a file with a good, a bad and a struck record. The second and
 * the third way get a valid checksum, so that the records after it are parsed. The library's own
 * files (cache_seeds.sh) come from another machine, which their head identifies.
 */
#include "fuzz.h"

#include "base/text.h"
#include "host/cache.h"
#include "host/registry.h"
#include "host/strike.h"
#include "host/verdict.h"

#define MACHINE UINT64_C(0x5eed)

/* The layout that record.c writes. */
struct head {
    char magic[8];
    uint32_t format;
    uint32_t record_count;
    uint64_t machine;
    uint64_t checksum;
};

#define MINUTE_MS UINT64_C(60000)

static bool is_reason(const char *code)
{
    return code[0] == '\0' || ds_accel__reason_find(code) != DS_ACCEL__REASON_NONE;
}

/* Check that a verdict is valid no longer than its kind allows, and never if its time is in the
 * future. */
static void check_verdict_times(const struct ds_accel__record *record)
{
    uint64_t made = record->data.verdict_ms;
    uint64_t good_for = record->data.state == DS_ACCEL_STATE_AVAILABLE ? 60 * MINUTE_MS : MINUTE_MS;

    FUZZ_CHECK(made == 0 || ds_accel__record_expires_in_ms(record, made - 1) == 0);
    FUZZ_CHECK(ds_accel__record_expires_in_ms(record, made) == (made != 0 ? good_for : 0));
    if (made != 0 && made < UINT64_MAX - good_for) {
        FUZZ_CHECK(ds_accel__record_expires_in_ms(record, made + good_for - 1) == 1);
        FUZZ_CHECK(ds_accel__record_expires_in_ms(record, made + good_for) == 0);
    }
}

static void check_strike_times(const struct ds_accel__record *record)
{
    uint32_t strikes = record->data.strikes;
    uint64_t since = record->data.strike_ms;
    uint64_t wanted = strikes < 2 ? 0 : strikes == 2 ? 10 : strikes == 3 ? 60 : 24 * 60;

    FUZZ_CHECK(ds_accel__record_quarantined_ms(record, since) == wanted * MINUTE_MS);
    FUZZ_CHECK(since == 0 || ds_accel__record_quarantined_ms(record, since - 1) == 0);
    if (since < UINT64_MAX - wanted * MINUTE_MS) {
        FUZZ_CHECK(ds_accel__record_quarantined_ms(record, since + wanted * MINUTE_MS) == 0);
    }
}

static void check_record(const struct ds_accel__record *record, const char *begin, const char *end)
{
    const struct ds_accel__record_data *data = &record->data;

    FUZZ_CHECK(
        data->state == DS_ACCEL_STATE_NOT_PROBED ||
        (data->state >= DS_ACCEL_STATE_AVAILABLE && data->state <= DS_ACCEL_STATE_TIMED_OUT));
    FUZZ_CHECK(data->stage < DS_ACCEL__GATE_COUNT);
    FUZZ_CHECK(data->device_count <= DS_ACCEL__DEVICE_LIMIT);
    for (size_t i = 0; i < DS_ACCEL__GATE_COUNT; i++) {
        FUZZ_CHECK(data->gates[i] <= DS_ACCEL__GATE_FAILED);
    }
    FUZZ_CHECK(ds_accel__is_backend_name(record->texts[DS_ACCEL__RECORD_NAME]));
    FUZZ_CHECK(is_reason(record->texts[DS_ACCEL__RECORD_REASON]));
    FUZZ_CHECK(is_reason(record->texts[DS_ACCEL__RECORD_STRIKE]));
    for (size_t i = 0; i < DS_ACCEL__RECORD_TEXTS; i++) {
        const char *text = record->texts[i];

        FUZZ_CHECK(text >= begin && text + strlen(text) < end);
    }
    FUZZ_CHECK(memchr(data->variant, '\0', sizeof(data->variant)) != NULL);
    check_verdict_times(record);
    check_strike_times(record);
}

/* Check that records that are parsed, written and parsed again are equal. */
static void check_again(const struct ds_accel__cache_table *table)
{
    struct ds_accel__cache_table again = {0};
    struct ds_accel__text text = {0};

    if (ds_accel__cache_format(table, MACHINE, &text) >= 0) {
        const char *problem = ds_accel__cache_parse(text.data, text.size_bytes, MACHINE, &again);

        FUZZ_CHECK(problem == NULL || problem == ds_accel__cache_no_memory);
        FUZZ_CHECK(problem != NULL || again.count == table->count);
        for (size_t i = 0; problem == NULL && i < table->count; i++) {
            FUZZ_CHECK(memcmp(&again.records[i].data, &table->records[i].data,
                              sizeof(again.records[i].data)) == 0);
            for (size_t t = 0; t < DS_ACCEL__RECORD_TEXTS; t++) {
                FUZZ_CHECK(strcmp(again.records[i].texts[t], table->records[i].texts[t]) == 0);
            }
        }
    }
    ds_accel__cache_table_clear(&again);
    ds_accel__text_clear(&text);
}

static void parse(const void *data, size_t size, uint64_t machine)
{
    struct ds_accel__cache_table table = {0};
    const char *problem = ds_accel__cache_parse(data, size, machine, &table);

    if (problem == NULL) {
        for (size_t i = 0; i < table.count; i++) {
            check_record(&table.records[i], data, (const char *)data + size);
        }
        check_again(&table);
    }
    ds_accel__cache_table_clear(&table);
}

/* Parse with a checksum that matches the data. */
static void parse_sealed(uint8_t *data, size_t size)
{
    struct head head;

    memcpy(&head, data, sizeof(head));
    memcpy(head.magic, "DSACCEL", sizeof(head.magic));
    head.format = 1;
    head.machine = MACHINE;
    head.checksum = ds_accel__hash(data + sizeof(head), size - sizeof(head), 1);
    memcpy(data, &head, sizeof(head));
    parse(data, size, MACHINE);
}

/* Write three records, as detection would write them. */
static int32_t make_file(struct ds_accel__text *text)
{
    struct ds_accel__record records[] = {
        {.data = {.verdict_ms = 5 * MINUTE_MS,
                  .state = DS_ACCEL_STATE_AVAILABLE,
                  .stage = DS_ACCEL__GATE_PROBE,
                  .device_count = 8,
                  .variant = "a variant that fills its member"},
         .texts = {[DS_ACCEL__RECORD_NAME] = "good", [DS_ACCEL__RECORD_PATH] = "/a/path"}},
        {.data = {.verdict_ms = 6 * MINUTE_MS,
                  .state = DS_ACCEL_STATE_UNAVAILABLE,
                  .stage = DS_ACCEL__GATE_HARDWARE},
         .texts = {[DS_ACCEL__RECORD_NAME] = "bad",
                   [DS_ACCEL__RECORD_REASON] = "no_device",
                   [DS_ACCEL__RECORD_DETAIL] = "no /dev/bad"}},
        {.data = {.strike_ms = 7 * MINUTE_MS, .strikes = 3},
         .texts = {[DS_ACCEL__RECORD_NAME] = "struck",
                   [DS_ACCEL__RECORD_STRIKE] = "probe_segv",
                   [DS_ACCEL__RECORD_STRIKE_DETAIL] = "signal 11"}},
    };
    struct ds_accel__cache_table table = {.records = records, .count = ARRAY_SIZE(records)};

    return ds_accel__cache_format(&table, MACHINE, text);
}

/* Change each byte after the head in turn, independently of the input: the library accepts only
 * records with valid contents. */
static void check_each_byte(void)
{
    static const uint8_t changes[] = {0x01, 0x03, 0x08, 0x80, 0xff};
    static bool is_done;
    struct ds_accel__text text = {0};

    if (!is_done && make_file(&text) >= 0) {
        is_done = true;
        for (size_t i = sizeof(struct head); i < text.size_bytes; i++) {
            for (size_t c = 0; c < sizeof(changes); c++) {
                text.data[i] = (char)(text.data[i] ^ changes[c]);
                parse_sealed((uint8_t *)text.data, text.size_bytes);
                text.data[i] = (char)(text.data[i] ^ changes[c]);
            }
        }
    }
    ds_accel__text_clear(&text);
}

/* Apply changes of three bytes each: a position of two bytes and the new value. */
static void parse_changed(const uint8_t *data, size_t size)
{
    struct ds_accel__text text = {0};

    if (make_file(&text) >= 0) {
        size_t room = text.size_bytes - sizeof(struct head);
        uint8_t *bytes = (uint8_t *)text.data;

        for (; size >= 3; data += 3, size -= 3) {
            bytes[sizeof(struct head) + (data[0] | (size_t)data[1] << 8) % room] = data[2];
        }
        parse_sealed(bytes, text.size_bytes);
    }
    ds_accel__text_clear(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct head head = {.machine = MACHINE};
    uint8_t *sealed = malloc(sizeof(head) + size);

    if (size >= sizeof(head)) {
        memcpy(&head, data, sizeof(head));
    }
    check_each_byte();
    parse(data, size, head.machine);
    parse_changed(data, size);
    if (sealed != NULL && size >= sizeof(head)) {
        memcpy(sealed, data, size);
        parse_sealed(sealed, size);
    }
    if (sealed != NULL && size > 0) {
        memset(sealed, 0, sizeof(head));
        sealed[offsetof(struct head, record_count)] = data[0];
        memcpy(sealed + sizeof(head), data + 1, size - 1);
        parse_sealed(sealed, sizeof(head) + size - 1);
    }
    free(sealed);
    return 0;
}
