/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Any bytes as the file of verdicts: as they are, and with the head that makes them believable, so
 * that the records are met behind the checksum.
 */
#include "fuzz.h"

#include "internal.h"

#define MACHINE UINT64_C(0x5eed)

/* As cache.c writes it. */
struct head {
    char magic[8];
    uint32_t format;
    uint32_t record_count;
    uint64_t machine;
    uint64_t checksum;
};

static void check_record(const struct ds_accel__record *record, const char *begin, const char *end)
{
    uint64_t now = record->data.verdict_ms + 1;

    FUZZ_CHECK(record->data.state <= DS_ACCEL_STATE_QUARANTINED);
    FUZZ_CHECK(record->data.stage < DS_ACCEL__GATE_COUNT);
    FUZZ_CHECK(ds_accel__is_backend_name(record->texts[DS_ACCEL__RECORD_NAME]));
    for (size_t i = 0; i < DS_ACCEL__RECORD_TEXTS; i++) {
        const char *text = record->texts[i];

        FUZZ_CHECK(text >= begin && text + strlen(text) < end);
    }
    FUZZ_CHECK(strlen(record->data.variant) < sizeof(record->data.variant));
    FUZZ_CHECK(ds_accel__record_expires_in_ms(record, now) <= 3600000);
    FUZZ_CHECK(ds_accel__record_quarantined_ms(record, now) <= 24 * 3600000);
    FUZZ_CHECK(ds_accel__record_expires_in_ms(record, 0) == 0 || record->data.verdict_ms == 0);
}

/* What was read, written and read again is the same. */
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

static void parse(const void *data, size_t size)
{
    struct ds_accel__cache_table table = {0};
    const char *problem = ds_accel__cache_parse(data, size, MACHINE, &table);

    if (problem == NULL) {
        for (size_t i = 0; i < table.count; i++) {
            check_record(&table.records[i], data, (const char *)data + size);
        }
        check_again(&table);
    }
    ds_accel__cache_table_clear(&table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct head head = {.magic = "DSACCEL", .format = 1, .machine = MACHINE};
    uint8_t *sealed = malloc(sizeof(head) + size);

    parse(data, size);
    if (sealed != NULL && size > 0) {
        head.record_count = data[0];
        memcpy(sealed + sizeof(head), data + 1, size - 1);
        head.checksum = ds_accel__hash(sealed + sizeof(head), size - 1, 1);
        memcpy(sealed, &head, sizeof(head));
        parse(sealed, sizeof(head) + size - 1);
    }
    free(sealed);
    return 0;
}
