/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The hardware that a plugin supports: lines such as "pci 10de:03" and "node /dev/nvidiactl" in its
 * second note.
 */
#include "machine/hardware_note.h"
#include "base/text.h"
#include "base/trust.h"
#include "config/config.h"

#include <string.h>

#define LINE_LIMIT 256u

static const struct {
    const char *word;
    const char *key; /* key in the object of facts */
    const char *(*check)(const char *text);
} kinds[] = {
    {"pci ", "pci", ds_accel__check_pci_fact},
    {"node ", "device_nodes", ds_accel__check_node_fact},
};

/*
 * Accept only printable ASCII: JSON accepts only UTF-8, and terminals interpret some characters as
 * commands.
 */
static const char *check_text(const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text < ' ' || *text > '~') {
            return "expected printable ASCII";
        }
    }
    return NULL;
}

/*
 * Check one line and add it to facts, unless facts is NULL. *is_known_out is set to false if this
 * host does not support the kind of line.
 */
static int32_t take_line(const char *line, json_t *facts, bool *is_known_out,
                         struct ds_accel__finding *finding)
{
    *is_known_out = false;
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        size_t length = strlen(kinds[i].word);
        const char *problem;

        if (strncmp(line, kinds[i].word, length) != 0) {
            continue;
        }
        problem = check_text(line + length);
        problem = problem != NULL ? problem : kinds[i].check(line + length);
        if (problem != NULL) {
            ds_accel__finding_set(finding, DS_ACCEL__REASON_BAD_NOTE, "hardware: \"%.64s\": %s",
                                  line, problem);
            ds_accel__sanitize(finding->detail, sizeof(finding->detail));
            return DS_ACCEL_OK;
        }
        *is_known_out = true;
        return facts == NULL || json_array_append_new(json_object_get(facts, kinds[i].key),
                                                      json_string(line + length)) == 0
                   ? DS_ACCEL_OK
                   : ds_accel__no_memory();
    }
    return DS_ACCEL_OK;
}

/*
 * Check all lines and add them to facts, unless facts is NULL. *is_known_out is set to true if the
 * note is not empty and this host supports the kinds of all lines. A line of LINE_LIMIT bytes or
 * more counts as a line of an unknown kind.
 */
static int32_t take_lines(const char *note, json_t *facts, bool *is_known_out,
                          struct ds_accel__finding *finding)
{
    int32_t status = DS_ACCEL_OK;

    *is_known_out = note[0] != '\0';
    while (*note != '\0' && status >= 0 && finding->reason == DS_ACCEL__REASON_NONE) {
        size_t length = strcspn(note, "\n");
        char line[LINE_LIMIT];
        bool is_known = false;

        if (note[length] == '\0') {
            ds_accel__finding_set(finding, DS_ACCEL__REASON_BAD_NOTE,
                                  "hardware: its last line has no end");
            return DS_ACCEL_OK;
        }
        if (length < sizeof(line)) {
            memcpy(line, note, length);
            line[length] = '\0';
            status = take_line(line, facts, &is_known, finding);
        }
        *is_known_out = *is_known_out && is_known;
        note += length + 1;
    }
    return status;
}

int32_t ds_accel__hardware_check_note(const char *note, struct ds_accel__finding *finding)
{
    bool is_known;

    return take_lines(note, NULL, &is_known, finding);
}

int32_t ds_accel__hardware_read_note(const char *note, json_t **facts_out)
{
    struct ds_accel__finding finding = {0};
    json_t *facts = json_pack("{s:[], s:[]}", kinds[0].key, kinds[1].key);
    bool is_known = false;
    int32_t status = facts != NULL ? take_lines(note, facts, &is_known, &finding)
                                   : ds_accel__no_memory();

    if (status < 0 || !is_known || finding.reason != DS_ACCEL__REASON_NONE) {
        json_decref(facts);
        facts = NULL;
    }
    *facts_out = facts;
    return status;
}

static bool is_among(json_t *facts, const char *line, size_t length)
{
    for (size_t i = 0; i < json_array_size(facts); i++) {
        const char *fact = json_string_value(json_array_get(facts, i));

        if (strncmp(fact, line, length) == 0 && fact[length] == '\0') {
            return true;
        }
    }
    return false;
}

bool ds_accel__hardware_note_is_in(const char *note, json_t *backend)
{
    while (note != NULL && *note != '\0') {
        size_t length = strcspn(note, "\n");
        bool is_known = false;

        for (size_t i = 0; i < ARRAY_SIZE(kinds) && !is_known; i++) {
            size_t word = strlen(kinds[i].word);

            is_known =
                strncmp(note, kinds[i].word, word) == 0 &&
                (is_among(json_object_get(backend, kinds[i].key), note + word, length - word) ||
                 (strcmp(kinds[i].key, "device_nodes") == 0 &&
                  is_among(json_object_get(backend, "other_device_nodes"), note + word,
                           length - word)));
        }
        if (!is_known) {
            return false;
        }
        note += length + (note[length] != '\0');
    }
    return true;
}
