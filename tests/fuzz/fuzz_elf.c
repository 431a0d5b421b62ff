/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Arbitrary bytes as a plugin's file: headers, note, effects of loading it, and lint's reading of
 * the dynamic section. */
#include "fuzz.h"

#include "base/text.h"
#include "base/trust.h"
#include "machine/elf_file.h"
#include "machine/hardware_note.h"

#include <sys/mman.h>
#include <unistd.h>

#define TEXT_LIMIT_BYTES (8 * 1024u) /* limit of the names in a dynamic section */

/* Return a descriptor of a file with these bytes; -1 if the machine has no memory for it. */
static int make_file(const uint8_t *data, size_t size)
{
    int fd = memfd_create("fuzz_elf", MFD_CLOEXEC);

    if (fd >= 0 && write(fd, data, size) != (ssize_t)size) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Check that a finding has a known reason, and evidence on one line. */
static void check_finding(const struct ds_accel__finding *finding)
{
    if (finding->reason != DS_ACCEL__REASON_NONE) {
        size_t length = strnlen(finding->detail, sizeof(finding->detail));

        FUZZ_CHECK(ds_accel__reason(finding->reason)->meaning[0] != '\0');
        FUZZ_CHECK(length > 0 && length < sizeof(finding->detail));
    }
}

static bool is_text(const char *field, size_t size)
{
    return field[0] != '\0' && memchr(field, '\0', size) != NULL;
}

/* Check that the hardware section is a terminated text, and is the same when it is read again. */
static void check_hardware(const struct ds_accel__elf *elf)
{
    struct ds_accel__finding finding = {0};

    FUZZ_CHECK(elf->hardware_count <= 1 && (elf->hardware == NULL) == (elf->hardware_count == 0));
    if (elf->hardware != NULL) {
        FUZZ_CHECK(memchr(elf->hardware, '\0', elf->hardware_bytes) != NULL);
        FUZZ_CHECK(ds_accel__hardware_check_note(elf->hardware, &finding) == DS_ACCEL_OK);
        FUZZ_CHECK(finding.reason == DS_ACCEL__REASON_NONE);
        /* Every line is complete. */
        FUZZ_CHECK(elf->hardware[0] == '\0' || elf->hardware[strlen(elf->hardware) - 1] == '\n');
    }
}

/* Check that an accepted note is terminated and has valid texts. */
static void check_note(struct ds_accel__elf *elf)
{
    struct ds_accel__finding finding = {0};
    struct ds_accel__finding again = {0};
    char name[sizeof(elf->desc.name) + 1] = "";

    ds_accel__elf_check_note(elf, "mock", &finding);
    check_finding(&finding);
    memcpy(name, elf->desc.name, sizeof(elf->desc.name));
    ds_accel__elf_check_note(elf, name, &again);
    check_finding(&again);
    if (again.reason == DS_ACCEL__REASON_NONE) {
        FUZZ_CHECK(elf->note_count == 1);
        FUZZ_CHECK(elf->desc.abi_major == DS_ACCEL_ABI_MAJOR);
        FUZZ_CHECK(elf->desc.struct_size <= elf->note_desc_bytes);
        FUZZ_CHECK(elf->note_desc_bytes < elf->size_bytes);
        FUZZ_CHECK(is_text(elf->desc.name, sizeof(elf->desc.name)));
        FUZZ_CHECK(is_text(elf->desc.version, sizeof(elf->desc.version)));
        FUZZ_CHECK(is_text(elf->desc.vendor, sizeof(elf->desc.vendor)));
        FUZZ_CHECK((finding.reason == DS_ACCEL__REASON_NONE) == (strcmp(name, "mock") == 0));
        FUZZ_CHECK(finding.reason == DS_ACCEL__REASON_NONE ||
                   finding.reason == DS_ACCEL__REASON_NAME_MISMATCH);
        check_hardware(elf);
    } else {
        FUZZ_CHECK(again.reason != DS_ACCEL__REASON_NAME_MISMATCH);
        FUZZ_CHECK(finding.reason == DS_ACCEL__REASON_NAME_MISMATCH ||
                   finding.reason == again.reason);
    }
}

static void check_same(const struct ds_accel__finding *one, const struct ds_accel__finding *other)
{
    check_finding(one);
    FUZZ_CHECK((one->reason == DS_ACCEL__REASON_NONE) == (other->reason == DS_ACCEL__REASON_NONE));
    FUZZ_CHECK(one->reason == DS_ACCEL__REASON_NONE || one->reason == other->reason);
    FUZZ_CHECK(strcmp(one->detail, other->detail) == 0);
}

/* Check that a file read in parts and a mapped file get the same verdict and the same lint
 * result. */
static void check_harm(struct ds_accel__elf *elf, struct ds_accel__elf *mapped)
{
    struct ds_accel__elf_harm harm;
    struct ds_accel__elf_harm again;
    struct ds_accel__finding finding = {0};

    ds_accel__elf_read_harm(elf, &harm);
    ds_accel__elf_read_harm(mapped, &again);
    if (elf->is_short_of_memory) {
        return;
    }
    check_same(&harm.dynamic, &again.dynamic);
    check_same(&harm.stack, &again.stack);
    check_same(&harm.text, &again.text);
    check_same(&harm.paths, &again.paths);
    ds_accel__elf_check_harm(mapped, &finding);
    FUZZ_CHECK((finding.reason == DS_ACCEL__REASON_NONE) ==
               (harm.dynamic.reason == DS_ACCEL__REASON_NONE &&
                harm.stack.reason == DS_ACCEL__REASON_NONE &&
                harm.text.reason == DS_ACCEL__REASON_NONE &&
                harm.paths.reason == DS_ACCEL__REASON_NONE));
}

/* Check that lines have a bounded length, whatever sizes the tables claim. */
static void check_lines(const struct ds_accel__text *text)
{
    FUZZ_CHECK(!text->failed);
    FUZZ_CHECK(text->size_bytes <= TEXT_LIMIT_BYTES);
    if (text->size_bytes > 0) {
        FUZZ_CHECK(strlen(text->data) == text->size_bytes);
        FUZZ_CHECK(text->data[text->size_bytes - 1] == '\n');
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ds_accel__elf elf;
    struct ds_accel__elf copy;
    struct ds_accel__elf_dynamic dynamic;
    struct ds_accel__finding finding = {0};
    int fd = make_file(data, size);

    if (fd < 0) {
        return 0;
    }
    if (ds_accel__elf_open(fd, &elf, &finding) >= 0) {
        check_finding(&finding);
        FUZZ_CHECK(finding.reason != DS_ACCEL__REASON_NONE || elf.size_bytes == size);
        if (finding.reason == DS_ACCEL__REASON_NONE) {
            /* The end of a mapping is padded to a page; the copy lets a sanitizer detect reads past
             * the file. */
            copy = elf;
            copy.data = data;
            check_note(&elf); /* still the file that is read in parts */
            check_note(&copy);
            check_harm(&elf, &copy);
            ds_accel__elf_read_dynamic(&copy, &dynamic);
            check_lines(&dynamic.needed);
            check_lines(&dynamic.run_path);
            check_lines(&dynamic.exports);
            ds_accel__elf_dynamic_clear(&dynamic);
        }
        ds_accel__elf_close(&elf);
    }
    close(fd);
    return 0;
}
