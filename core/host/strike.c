/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Strikes of a record: how often the plugin crashed or hung recently, and for how long it is
 * quarantined because of this. The functions of this file use only the record: no candidate and no
 * file.
 */
#include "host/strike.h"
#include "base/clock.h"
#include "base/text.h"
#include "host/cache.h"
#include "host/verdict.h"

#include <assert.h>
#include <stdio.h>
#include <time.h>

#define STRIKES_LAST_MS (48 * 3600000u)  /* validity of a strike if no other follows */
#define STRIKE_LIMIT 2u                  /* a plugin with this many strikes is quarantined */
#define LOADS_APART_MS (10 * 60 * 1000u) /* see is_replaced() */
#define REPORTS_APART_MS \
    (60 * 1000u) /* see ds_accel__strike_counts(); equal to the validity of a bad verdict */

uint64_t ds_accel__record_quarantined_ms(const struct ds_accel__record *record, uint64_t now_ms)
{
    static const uint64_t minutes[] = {10, 60, 24 * 60};
    uint32_t strikes = record->data.strikes;
    uint64_t since = record->data.strike_ms;
    uint64_t length;

    if (strikes < STRIKE_LIMIT || since > now_ms) {
        return 0;
    }
    strikes -= STRIKE_LIMIT;
    length = minutes[strikes < ARRAY_SIZE(minutes) ? strikes : ARRAY_SIZE(minutes) - 1] * 60000u;
    return now_ms - since < length ? length - (now_ms - since) : 0;
}

void ds_accel__record_forgive(struct ds_accel__record *record)
{
    record->data.strikes = 0;
    record->data.strike_ms = 0;
    record->texts[DS_ACCEL__RECORD_STRIKE] = "";
    record->texts[DS_ACCEL__RECORD_STRIKE_DETAIL] = "";
}

/*
 * True if a new strike replaces the recorded strike instead of adding to it. This applies only to a
 * recorded strike that follows from a breadcrumb, the file that a process leaves if it dies while
 * loading the plugin: the breadcrumb does not show whether the plugin or a signal from outside
 * killed the process. Users and schedulers rarely kill a process twice within a short time, so the
 * recorded strike is replaced if the two strikes are more than LOADS_APART_MS apart. Strikes that
 * have reached the limit stay, so that each quarantine is longer than the previous one.
 */
static bool is_replaced(const struct ds_accel__record *record, uint64_t at_ms)
{
    uint64_t last = record->data.load_ms;

    return record->data.strike_is_load && record->data.strikes < STRIKE_LIMIT &&
           (at_ms > last ? at_ms - last : last - at_ms) > LOADS_APART_MS;
}

void ds_accel__strike_add(struct ds_accel__record *record, enum ds_accel__reason_id reason,
                          const char *detail, uint64_t load_ms)
{
    uint64_t now = ds_accel__boot_ms();

    assert(reason != DS_ACCEL__REASON_NONE);
    if (is_replaced(record, load_ms != 0 ? load_ms : now)) {
        record->data.strikes = 0;
    }
    record->data.strikes++;
    record->data.strike_ms = now;
    record->data.strike_wall_s = time(NULL);
    record->data.strike_is_load = load_ms != 0;
    record->data.load_ms = load_ms;
    record->texts[DS_ACCEL__RECORD_STRIKE] = ds_accel__reason_code(reason);
    record->texts[DS_ACCEL__RECORD_STRIKE_DETAIL] = detail;
}

/*
 * True if a strike that this process detects now counts. A process that asks anew (for a report, or
 * to record the machine) probes plugins regardless of stored verdicts, so it sees the same crash
 * each time: its strike does not count if the recorded strike is less than REPORTS_APART_MS old.
 */
bool ds_accel__strike_counts(const struct ds_accel__record *record, bool asks_anew)
{
    uint64_t now = ds_accel__boot_ms();
    uint64_t last = record->data.strike_ms;

    return !asks_anew || record->data.strikes == 0 || last > now || now - last >= REPORTS_APART_MS;
}

bool ds_accel__strikes_last(const struct ds_accel__record *record, uint64_t now_ms)
{
    return record->data.strikes > 0 && record->data.strike_ms <= now_ms &&
           now_ms - record->data.strike_ms < STRIKES_LAST_MS;
}

void ds_accel__strikes_text(const struct ds_accel__record *record, uint64_t left_ms, char *text,
                            size_t size)
{
    const char *detail = ds_accel__record_text(record, DS_ACCEL__RECORD_STRIKE_DETAIL);
    time_t until = time(NULL) + (time_t)(left_ms / 1000);
    struct tm parts;
    char clock[32] = "?";

    if (localtime_r(&until, &parts) != NULL) {
        strftime(clock, sizeof(clock), "%Y-%m-%d %H:%M:%S", &parts);
    }
    snprintf(text, size, "%u strikes, the last: %s%s%s; skipped until %s", record->data.strikes,
             ds_accel__record_text(record, DS_ACCEL__RECORD_STRIKE), detail[0] != '\0' ? ": " : "",
             detail, clock);
}
