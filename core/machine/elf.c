/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * A bounded reader of ELF files, which examines a plugin before any of its code runs. Every offset
 * and size is checked against the file before it is used, so that a truncated, damaged or hostile
 * file only produces a reason. Parts of the file are copied; only the facts for lint and doctor map
 * the whole file. Only files of this machine's class and byte order are read.
 */
#include "base/text.h"
#include "base/trust.h"
#include "machine/elf_file.h"
#include "machine/hardware_note.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#define THIS_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define THIS_MACHINE EM_AARCH64
#elif defined(__riscv)
#define THIS_MACHINE EM_RISCV
#elif defined(__powerpc64__)
#define THIS_MACHINE EM_PPC64
#elif defined(__s390x__)
#define THIS_MACHINE EM_S390
#elif defined(__i386__)
#define THIS_MACHINE EM_386
#elif defined(__arm__)
#define THIS_MACHINE EM_ARM
#else
#error "name this machine's ELF number here"
#endif

#if UINTPTR_MAX == UINT64_MAX
#define THIS_CLASS ELFCLASS64
#else
#define THIS_CLASS ELFCLASS32
#endif

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define THIS_DATA ELFDATA2LSB
#else
#define THIS_DATA ELFDATA2MSB
#endif

#define HEAD_BYTES 4096u            /* first read: headers and usually the notes */
#define HEADER_LIMIT 4096u          /* maximum number of program headers */
#define NAME_LIMIT_BYTES 1024u      /* maximum length of a symbol's or library's name */
#define NAMES_LIMIT_BYTES 4096u     /* limit of a list: exports, libraries or run paths */
#define SYMBOL_LIMIT (1024u * 1024) /* maximum number of symbols */
#define NOTE_HEAD_BYTES 8u          /* part of a note's descriptor common to all ABI generations */
#define NOTE_BUDGET_BYTES (256 * 1024u)      /* total of a file's note segments */
#define NOTE_LIMIT_BYTES (64 * 1024u)        /* limit of one note's descriptor */
#define HARDWARE_LIMIT_BYTES 4096u           /* the text of DS_ACCEL_PLUGIN_HARDWARE() */
#define DYNAMIC_LIMIT_BYTES (64 * 1024u)     /* about 4000 entries; a plugin has about 30 */
#define LIST_LIMIT_BYTES (64 * 1024u)        /* limit of one list of directories */
#define NAME_BUDGET_BYTES (256 * 1024u)      /* total of library names and lists of directories */
#define TLS_LIMIT_BYTES (16 * 1024 * 1024u)  /* limit of thread-local data, per thread */
#define FILE_LIMIT_BYTES (UINT64_C(1) << 31) /* far larger than any plugin */

int ds_accel__unknown_feature(uint64_t required_features)
{
    uint64_t unknown = required_features & ~DS_ACCEL__HOST_FEATURES;

    return unknown != 0 ? __builtin_ctzll(unknown) : -1;
}

static bool is_within(const struct ds_accel__elf *elf, uint64_t offset, uint64_t size)
{
    return offset <= elf->size_bytes && size <= elf->size_bytes - offset;
}

/*
 * Read a part of the file into a new block. NULL if memory is exhausted, which sets
 * is_short_of_memory, if the file has become shorter, or if the read failed.
 */
static const void *read_part(struct ds_accel__elf *elf, uint64_t offset, uint64_t size)
{
    struct ds_accel__elf_part *part = malloc(sizeof(*part) + size);
    uint64_t at = 0;

    while (part != NULL && at < size) {
        ssize_t count = pread(elf->fd, part->bytes + at, size - at, (off_t)(offset + at));

        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            free(part);
            return NULL;
        }
        at += (uint64_t)count;
    }
    if (part == NULL) {
        elf->is_short_of_memory = true;
        return NULL;
    }
    part->offset = offset;
    part->size_bytes = size;
    part->next = elf->parts;
    elf->parts = part;
    return part->bytes;
}

/*
 * Return the bytes at [offset, offset + size). NULL if the file is shorter or read_part() fails.
 * The bytes are copied unless the file is mapped: a process with a mapping is killed by SIGBUS if
 * it reads past the new end of a file that another process truncated.
 */
static const void *bytes_at(struct ds_accel__elf *elf, uint64_t offset, uint64_t size)
{
    if (!is_within(elf, offset, size)) {
        return NULL;
    }
    if (elf->data != NULL) {
        return elf->data + offset;
    }
    for (const struct ds_accel__elf_part *part = elf->parts; part != NULL; part = part->next) {
        if (offset >= part->offset && offset - part->offset <= part->size_bytes &&
            size <= part->size_bytes - (offset - part->offset)) {
            return part->bytes + (offset - part->offset);
        }
    }
    return read_part(elf, offset, size);
}

static bool get_header(struct ds_accel__elf *elf, ElfW(Ehdr) * header)
{
    const void *bytes = bytes_at(elf, 0, sizeof(*header));

    if (bytes != NULL) {
        memcpy(header, bytes, sizeof(*header));
    }
    return bytes != NULL;
}

static bool get_segment(struct ds_accel__elf *elf, const ElfW(Ehdr) * header, uint32_t i,
                        ElfW(Phdr) * segment)
{
    const void *bytes =
        bytes_at(elf, header->e_phoff + (uint64_t)i * sizeof(*segment), sizeof(*segment));

    if (bytes != NULL) {
        memcpy(segment, bytes, sizeof(*segment));
    }
    return bytes != NULL;
}

static void check_header(struct ds_accel__elf *elf, struct ds_accel__finding *finding)
{
    size_t identity_bytes = elf->size_bytes < EI_NIDENT ? elf->size_bytes : EI_NIDENT;
    const unsigned char *identity = bytes_at(elf, 0, identity_bytes);
    ElfW(Ehdr) header;

    if (identity == NULL || identity_bytes < SELFMAG || memcmp(identity, ELFMAG, SELFMAG) != 0) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_NOT_ELF,
                              "the file does not begin with the ELF magic number");
    } else if (identity_bytes < EI_NIDENT) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_ELF_TRUNCATED, "the file has %zu bytes",
                              elf->size_bytes);
    } else if (identity[EI_CLASS] != THIS_CLASS || identity[EI_DATA] != THIS_DATA) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_ELF_WRONG_CLASS,
                              "ELF class %u, byte order %u; expected %u, %u", identity[EI_CLASS],
                              identity[EI_DATA], THIS_CLASS, THIS_DATA);
    } else if (!get_header(elf, &header)) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_ELF_TRUNCATED,
                              "the file ends in its ELF header");
    } else if (header.e_machine != THIS_MACHINE) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_ELF_WRONG_MACHINE,
                              "ELF machine %u; expected %u", header.e_machine, THIS_MACHINE);
    } else if (header.e_type != ET_DYN) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_ELF_NOT_SHARED_OBJECT,
                              "ELF type %u; expected %u", header.e_type, ET_DYN);
    } else if (header.e_phentsize != sizeof(ElfW(Phdr)) || header.e_phnum == 0 ||
               header.e_phnum > HEADER_LIMIT) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_ELF_TRUNCATED,
                              "%u program headers of %u bytes", header.e_phnum, header.e_phentsize);
    }
}

/* Check that every segment is within the file: otherwise SIGBUS would kill the process that loads
 * the file. Also limit the size of thread-local data. */
static void check_segments(struct ds_accel__elf *elf, struct ds_accel__finding *finding)
{
    ElfW(Ehdr) header;

    if (!get_header(elf, &header)) {
        return;
    }
    /* Read the whole table at once if it is not in the first bytes of the file. */
    bytes_at(elf, header.e_phoff, (uint64_t)header.e_phnum * sizeof(ElfW(Phdr)));
    for (uint32_t i = 0; i < header.e_phnum && finding->reason == DS_ACCEL__REASON_NONE; i++) {
        ElfW(Phdr) segment;

        if (!get_segment(elf, &header, i, &segment)) {
            ds_accel__finding_set(finding, DS_ACCEL__REASON_ELF_TRUNCATED,
                                  "the file ends in its program headers");
        } else if (segment.p_type != PT_NULL && segment.p_type != PT_GNU_STACK &&
                   !is_within(elf, segment.p_offset, segment.p_filesz)) {
            ds_accel__finding_set(finding, DS_ACCEL__REASON_ELF_TRUNCATED,
                                  "segment %u ends at byte %" PRIu64 ", the file at byte %zu", i,
                                  segment.p_offset + segment.p_filesz, elf->size_bytes);
        } else if (segment.p_type == PT_TLS && segment.p_memsz > TLS_LIMIT_BYTES) {
            ds_accel__finding_set(finding, DS_ACCEL__REASON_ELF_TLS_LARGE,
                                  "it has %" PRIu64 " bytes for each thread; expected at most %u",
                                  (uint64_t)segment.p_memsz, TLS_LIMIT_BYTES);
        }
    }
}

static uint64_t align_up(uint64_t value, uint64_t align)
{
    return (value + align - 1) & ~(align - 1);
}

static void take_note(struct ds_accel__elf *elf, uint32_t type, const unsigned char *desc,
                      uint32_t size_bytes)
{
    uint16_t major = 0;

    if (type == DS_ACCEL_HARDWARE_NOTE_TYPE && elf->hardware_count++ == 0) {
        elf->hardware = (const char *)desc;
        elf->hardware_bytes = size_bytes;
    }
    if (type == DS_ACCEL_OP_NOTE_TYPE && elf->op_count++ == 0) {
        elf->op_desc_bytes = size_bytes;
        memcpy(&elf->op_desc, desc,
               size_bytes < sizeof(elf->op_desc) ? size_bytes : sizeof(elf->op_desc));
    }
    if (type != DS_ACCEL_NOTE_TYPE) {
        return;
    }
    if (size_bytes >= NOTE_HEAD_BYTES) {
        memcpy(&major, desc + offsetof(struct ds_accel_note_desc, abi_major), sizeof(major));
    }
    if (size_bytes >= NOTE_HEAD_BYTES && major != DS_ACCEL_ABI_MAJOR) {
        elf->other_major = major; /* reported only if the file has no note of this ABI generation */
    } else if (elf->note_count++ == 0) {
        elf->note_desc_bytes = size_bytes;
        memcpy(&elf->desc, desc, size_bytes < sizeof(elf->desc) ? size_bytes : sizeof(elf->desc));
    }
}

/* Find ds-accel's notes in one PT_NOTE segment. The caller checked the segment's bounds. */
static void read_notes(struct ds_accel__elf *elf, const ElfW(Phdr) * segment,
                       struct ds_accel__finding *finding)
{
    const unsigned char *bytes = bytes_at(elf, segment->p_offset, segment->p_filesz);
    uint64_t align = segment->p_align == 8 ? 8 : 4;
    uint64_t at = 0;

    while (bytes != NULL && segment->p_filesz - at >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        const unsigned char *base = bytes + at;
        uint64_t desc;
        uint64_t end;

        memcpy(&note, base, sizeof(note));
        desc = align_up(sizeof(note) + (uint64_t)note.n_namesz, align);
        end = align_up(desc + note.n_descsz, align);
        if (desc + note.n_descsz > segment->p_filesz - at) {
            ds_accel__finding_set(finding, DS_ACCEL__REASON_BAD_NOTE,
                                  "a note at byte %" PRIu64 " is longer than its segment",
                                  segment->p_offset + at);
            return;
        }
        if (note.n_namesz == sizeof(DS_ACCEL_NOTE_NAME) &&
            memcmp(base + sizeof(note), DS_ACCEL_NOTE_NAME, sizeof(DS_ACCEL_NOTE_NAME)) == 0) {
            take_note(elf, note.n_type, base + desc, note.n_descsz);
        }
        if (end > segment->p_filesz - at) {
            return;
        }
        at += end;
    }
}

static void find_notes(struct ds_accel__elf *elf, struct ds_accel__finding *finding)
{
    ElfW(Ehdr) header;
    uint64_t total = 0;

    elf->note_count = 0;
    elf->other_major = 0;
    elf->hardware_count = 0;
    elf->hardware_bytes = 0;
    elf->hardware = NULL;
    elf->op_count = 0;
    if (!get_header(elf, &header)) {
        return;
    }
    for (uint32_t i = 0; i < header.e_phnum && finding->reason == DS_ACCEL__REASON_NONE; i++) {
        ElfW(Phdr) segment;

        if (get_segment(elf, &header, i, &segment) && segment.p_type == PT_NOTE) {
            total += segment.p_filesz;
            if (segment.p_filesz > NOTE_BUDGET_BYTES || total > NOTE_BUDGET_BYTES) {
                ds_accel__finding_set(finding, DS_ACCEL__REASON_NOTE_TOO_LARGE,
                                      "its notes have over %u bytes", NOTE_BUDGET_BYTES);
                return;
            }
            read_notes(elf, &segment, finding);
        }
    }
}

/*
 * Duplicate the descriptor and read the beginning of the file, which contains most of the data that
 * is needed.
 */
static int32_t take_file(int fd, struct ds_accel__elf *elf, struct ds_accel__finding *finding)
{
    struct stat info;

    if (fstat(fd, &info) != 0) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_NOT_READABLE, "%s", strerror(errno));
    } else if (!S_ISREG(info.st_mode)) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_NOT_REGULAR_FILE,
                              "it is a directory, a pipe or a device");
    } else if (info.st_size == 0) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_NOT_ELF, "the file is empty");
    } else if ((uint64_t)info.st_size > FILE_LIMIT_BYTES) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_NOT_ELF,
                              "the file has %lld bytes; expected less than 2 GiB",
                              (long long)info.st_size);
    } else {
        elf->size_bytes = (size_t)info.st_size;
        elf->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        if (elf->fd < 0) {
            return ds_accel__error(DS_ACCEL_ERR_LIMIT, "no file descriptor is available: %s",
                                   strerror(errno));
        }
        bytes_at(elf, 0, elf->size_bytes < HEAD_BYTES ? elf->size_bytes : HEAD_BYTES);
    }
    return DS_ACCEL_OK;
}

void ds_accel__elf_close(struct ds_accel__elf *elf)
{
    if (elf->data != NULL) {
        munmap((void *)(uintptr_t)elf->data, elf->size_bytes);
    }
    while (elf->parts != NULL) {
        struct ds_accel__elf_part *next = elf->parts->next;

        free(elf->parts);
        elf->parts = next;
    }
    if (elf->fd >= 0) {
        close(elf->fd);
    }
    memset(elf, 0, sizeof(*elf));
    elf->fd = -1;
}

int32_t ds_accel__elf_open(int fd, struct ds_accel__elf *elf, struct ds_accel__finding *finding)
{
    int32_t status;

    memset(elf, 0, sizeof(*elf));
    elf->fd = -1;
    status = take_file(fd, elf, finding);
    if (status >= 0 && finding->reason == DS_ACCEL__REASON_NONE) {
        check_header(elf, finding);
        if (finding->reason == DS_ACCEL__REASON_NONE) {
            check_segments(elf, finding);
        }
    }
    if (status >= 0 && elf->is_short_of_memory) {
        status = ds_accel__no_memory();
    }
    if (status < 0 || finding->reason != DS_ACCEL__REASON_NONE) {
        ds_accel__elf_close(elf);
    }
    return status;
}

static bool is_text(const char *field, size_t size)
{
    size_t length = strnlen(field, size);

    return length > 0 && length < size;
}

/* Check the hardware note. Called only if the plugin's ABI note is valid. */
static void check_hardware(struct ds_accel__elf *elf, struct ds_accel__finding *finding)
{
    if (elf->hardware_count > 1) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_DUPLICATE_NOTE,
                              "it has %u hardware notes; expected at most 1", elf->hardware_count);
    } else if (elf->hardware_bytes > HARDWARE_LIMIT_BYTES) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_NOTE_TOO_LARGE,
                              "its hardware note has %u bytes; expected at most %u",
                              elf->hardware_bytes, HARDWARE_LIMIT_BYTES);
    } else if (elf->hardware != NULL &&
               strnlen(elf->hardware, elf->hardware_bytes) == elf->hardware_bytes) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_BAD_NOTE,
                              "its hardware note must be a NUL-terminated text");
    } else if (elf->hardware != NULL && ds_accel__hardware_check_note(elf->hardware, finding) < 0) {
        elf->is_short_of_memory = true;
    }
}

void ds_accel__elf_check_note(struct ds_accel__elf *elf, const char *name,
                              struct ds_accel__finding *finding)
{
    const struct ds_accel_note_desc *desc = &elf->desc;
    uint32_t needed = DS_ACCEL_SIZE_THROUGH(struct ds_accel_note_desc, vendor);
    uint64_t required;

    find_notes(elf, finding);
    if (finding->reason != DS_ACCEL__REASON_NONE) {
        return;
    }
    required = desc->required_features[0] | (uint64_t)desc->required_features[1] << 32;
    if (elf->note_count == 0 && elf->other_major != 0) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_ABI_UNSUPPORTED,
                              "the plugin has generation %u, this host %u", elf->other_major,
                              DS_ACCEL_ABI_MAJOR);
    } else if (elf->note_count == 0) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_NO_NOTE,
                              "it has no note with owner %s and type %u", DS_ACCEL_NOTE_NAME,
                              DS_ACCEL_NOTE_TYPE);
    } else if (elf->note_count > 1) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_DUPLICATE_NOTE, "there are %u",
                              elf->note_count);
    } else if (elf->note_desc_bytes > NOTE_LIMIT_BYTES) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_NOTE_TOO_LARGE,
                              "its descriptor has %u bytes; expected at most %u",
                              elf->note_desc_bytes, NOTE_LIMIT_BYTES);
    } else if (elf->note_desc_bytes < NOTE_HEAD_BYTES) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_BAD_NOTE, "its descriptor has %u bytes",
                              elf->note_desc_bytes);
    } else if (desc->struct_size < needed || desc->struct_size > elf->note_desc_bytes) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_BAD_NOTE,
                              "it declares %u bytes and has %u; expected at least %u",
                              desc->struct_size, elf->note_desc_bytes, needed);
    } else if (!is_text(desc->name, sizeof(desc->name)) ||
               !is_text(desc->version, sizeof(desc->version)) ||
               !is_text(desc->vendor, sizeof(desc->vendor))) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_BAD_NOTE,
                              "name, version and vendor must be non-empty, NUL-terminated texts");
    } else if (strcmp(desc->name, name) != 0) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_NAME_MISMATCH,
                              "the file name has \"%s\", the note \"%s\"", name, desc->name);
    } else if (ds_accel__unknown_feature(required) >= 0) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_FEATURE_UNKNOWN,
                              "this host does not know required feature bit %d",
                              ds_accel__unknown_feature(required));
    } else {
        check_hardware(elf, finding);
    }
}

void ds_accel__elf_check_op_note(struct ds_accel__elf *elf, const char *name,
                                 struct ds_accel__finding *finding)
{
    const struct ds_accel_op_note_desc *desc = &elf->op_desc;
    uint32_t needed = DS_ACCEL_SIZE_THROUGH(struct ds_accel_op_note_desc, name);

    find_notes(elf, finding);
    if (finding->reason != DS_ACCEL__REASON_NONE) {
        return;
    }
    if (elf->op_count == 0) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_NO_NOTE,
                              "it has no note with owner %s and type %u", DS_ACCEL_NOTE_NAME,
                              DS_ACCEL_OP_NOTE_TYPE);
    } else if (elf->op_count > 1 || elf->op_desc_bytes < needed || desc->struct_size < needed ||
               desc->struct_size > elf->op_desc_bytes || !is_text(desc->name, sizeof(desc->name))) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_BAD_NOTE,
                              "%u notes; the first has %u bytes; expected one of at least %u",
                              elf->op_count, elf->op_desc_bytes, needed);
    } else if (desc->abi_major != DS_ACCEL_OP_ABI_MAJOR) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_ABI_UNSUPPORTED,
                              "the op has generation %u, this host %u", desc->abi_major,
                              DS_ACCEL_OP_ABI_MAJOR);
    } else if (strcmp(desc->name, name) != 0) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_NAME_MISMATCH,
                              "the file name has \"%s\", the note \"%s\"", name, desc->name);
    }
}

/* ---- the dynamic section -------------------------------------------------------------------- */

/* Map the whole file: its tables are scattered and read in small pieces. */
static void map_file(struct ds_accel__elf *elf)
{
    void *data = MAP_FAILED;

    if (elf->data == NULL && elf->size_bytes > 0) {
        data = mmap(NULL, elf->size_bytes, PROT_READ, MAP_PRIVATE, elf->fd, 0);
    }
    if (data != MAP_FAILED) {
        elf->data = data;
    }
}

/* Return at least size bytes of the file for an address of the loaded image, or NULL. */
static const void *at_address(struct ds_accel__elf *elf, uint64_t address, uint64_t size)
{
    ElfW(Ehdr) header;

    if (!get_header(elf, &header)) {
        return NULL;
    }
    for (uint32_t i = 0; i < header.e_phnum; i++) {
        ElfW(Phdr) segment;

        if (get_segment(elf, &header, i, &segment) && segment.p_type == PT_LOAD &&
            address >= segment.p_vaddr && address - segment.p_vaddr <= segment.p_filesz &&
            size <= segment.p_filesz - (address - segment.p_vaddr)) {
            return bytes_at(elf, segment.p_offset + (address - segment.p_vaddr), size);
        }
    }
    return NULL;
}

struct dynamic_tables {
    uint64_t strings, strings_size, symbols, hash, gnu_hash;
};

/* Return a text of the string table, or "" if it has no NUL within the table and the length
 * limit. */
static const char *string_at(struct ds_accel__elf *elf, const struct dynamic_tables *tables,
                             uint64_t offset)
{
    const char *strings = at_address(elf, tables->strings, tables->strings_size);
    uint64_t left = offset < tables->strings_size ? tables->strings_size - offset : 0;

    left = left < NAME_LIMIT_BYTES ? left : NAME_LIMIT_BYTES;
    if (strings == NULL || left == 0 || memchr(strings + offset, '\0', left) == NULL) {
        return "";
    }
    return strings + offset;
}

/* ---- harm that loading the file would do ----------------------------------------------------- */

/* glibc's default for a file that does not specify whether it needs an executable stack. */
#if defined(__aarch64__) || defined(__powerpc64__)
#define UNMARKED_STACK_IS_EXECUTABLE false
#else
#define UNMARKED_STACK_IS_EXECUTABLE true
#endif

static void find_stack(struct ds_accel__elf *elf, const ElfW(Ehdr) * header,
                       struct ds_accel__finding *finding)
{
    bool is_marked = false;

    for (uint32_t i = 0; i < header->e_phnum; i++) {
        ElfW(Phdr) segment;

        if (!get_segment(elf, header, i, &segment) || segment.p_type != PT_GNU_STACK) {
            continue;
        }
        is_marked = true;
        if ((segment.p_flags & PF_X) != 0) {
            ds_accel__finding_set(
                finding, DS_ACCEL__REASON_ELF_EXECUTABLE_STACK,
                "its segment GNU_STACK has flags %u; expected none with bit 0 (PF_X)",
                (unsigned)segment.p_flags);
        }
    }
    if (!is_marked && UNMARKED_STACK_IS_EXECUTABLE) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_ELF_EXECUTABLE_STACK,
                              "it has no segment GNU_STACK, which means an executable stack here");
    }
}

/*
 * Find the entries before the last one, DT_NULL, as the dynamic linker does: by address, not by
 * file offset. NULL if finding contains the reason or memory is exhausted.
 */
static const unsigned char *find_entries(struct ds_accel__elf *elf, const ElfW(Ehdr) * header,
                                         size_t *count_out, struct ds_accel__finding *finding)
{
    const unsigned char *entries;
    ElfW(Phdr) found = {0};
    uint32_t count = 0;

    for (uint32_t i = 0; i < header->e_phnum; i++) {
        ElfW(Phdr) segment;

        if (get_segment(elf, header, i, &segment) && segment.p_type == PT_DYNAMIC) {
            found = segment;
            count++;
        }
    }
    if (count != 1 || found.p_filesz > DYNAMIC_LIMIT_BYTES) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_ELF_BAD_DYNAMIC,
                              "it has %u dynamic sections of %" PRIu64
                              " bytes; expected 1 of at most %u",
                              count, (uint64_t)found.p_filesz, DYNAMIC_LIMIT_BYTES);
        return NULL;
    }
    entries = at_address(elf, found.p_vaddr, found.p_filesz);
    for (size_t i = 0; entries != NULL && i < found.p_filesz / sizeof(ElfW(Dyn)); i++) {
        ElfW(Dyn) entry;

        memcpy(&entry, entries + i * sizeof(entry), sizeof(entry));
        if (entry.d_tag == DT_NULL) {
            *count_out = i;
            return entries;
        }
    }
    if (!elf->is_short_of_memory) {
        ds_accel__finding_set(
            finding, DS_ACCEL__REASON_ELF_BAD_DYNAMIC,
            "its dynamic section at address 0x%" PRIx64 " %s", (uint64_t)found.p_vaddr,
            entries != NULL ? "has no last entry" : "is in no segment that is loaded");
    }
    return NULL;
}

/*
 * Return a text of the string table within the length limit. NULL if finding contains the reason or
 * memory is exhausted. *budget is the number of bytes that may still be read, since a hostile file
 * can have many entries.
 */
static const char *read_name(struct ds_accel__elf *elf, const struct dynamic_tables *tables,
                             uint64_t offset, uint64_t *budget, struct ds_accel__finding *finding)
{
    uint64_t left = offset < tables->strings_size ? tables->strings_size - offset : 0;
    uint64_t size = left < NAME_LIMIT_BYTES ? left : NAME_LIMIT_BYTES;
    uint64_t limit = left < LIST_LIMIT_BYTES ? left : LIST_LIMIT_BYTES;
    const char *text = NULL;

    while (size > 0 && size <= *budget) {
        text = tables->strings + offset >= offset ? at_address(elf, tables->strings + offset, size)
                                                  : NULL;
        if (text == NULL || memchr(text, '\0', size) != NULL || size == limit) {
            break;
        }
        size = 4 * size < limit ? 4 * size : limit;
    }
    if (text != NULL && memchr(text, '\0', size) != NULL) {
        *budget -= size;
        return text;
    }
    if (!elf->is_short_of_memory) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_ELF_BAD_DYNAMIC,
                              "the name at byte %" PRIu64 " of its string table has no end",
                              offset);
    }
    return NULL;
}

/* True if a path is relative to the working directory of the process. */
static bool is_relative(const char *path, size_t length)
{
    static const char *const origins[] = {"$ORIGIN", "${ORIGIN}"};

    for (size_t i = 0; i < ARRAY_SIZE(origins); i++) {
        size_t size = strlen(origins[i]);

        if (length >= size && memcmp(path, origins[i], size) == 0) {
            /* Older dynamic linkers do not expand a longer word that begins with "$ORIGIN", such as
             * "$ORIGINAL", and so treat it as a relative path. */
            return length > size && path[size] != '/';
        }
    }
    return length == 0 || path[0] != '/'; /* $LIB and $PLATFORM are relative, too */
}

static void check_run_path(const char *list, struct ds_accel__finding *finding)
{
    const char *at = list;
    size_t length = strcspn(at, ":");

    while (!is_relative(at, length) && at[length] == ':') {
        at += length + 1;
        length = strcspn(at, ":");
    }
    if (is_relative(at, length)) {
        ds_accel__finding_set(
            finding, DS_ACCEL__REASON_ELF_RELATIVE_PATH,
            "\"%.*s\" in its run path \"%.200s\"; expected paths from / or $ORIGIN",
            (int)(length < 200 ? length : 200), at, list);
    }
}

static void check_library(const char *name, struct ds_accel__finding *finding)
{
    if (strchr(name, '/') != NULL && is_relative(name, strlen(name))) {
        ds_accel__finding_set(finding, DS_ACCEL__REASON_ELF_RELATIVE_PATH,
                              "it links \"%.300s\"; expected a name, or a path from / or $ORIGIN",
                              name);
    }
}

static void read_tables(const unsigned char *entries, size_t count, struct dynamic_tables *tables,
                        struct ds_accel__finding *text)
{
    for (size_t i = 0; i < count; i++) {
        ElfW(Dyn) entry;

        memcpy(&entry, entries + i * sizeof(entry), sizeof(entry));
        if (entry.d_tag == DT_STRTAB) {
            tables->strings = entry.d_un.d_ptr;
        } else if (entry.d_tag == DT_STRSZ) {
            tables->strings_size = entry.d_un.d_val;
        } else if (entry.d_tag == DT_TEXTREL ||
                   (entry.d_tag == DT_FLAGS && (entry.d_un.d_val & DF_TEXTREL) != 0)) {
            ds_accel__finding_set(text, DS_ACCEL__REASON_ELF_TEXT_RELOCATIONS,
                                  "its dynamic section has %s",
                                  entry.d_tag == DT_TEXTREL ? "TEXTREL" : "the flag TEXTREL");
        }
    }
}

static void check_names(struct ds_accel__elf *elf, const unsigned char *entries, size_t count,
                        const struct dynamic_tables *tables, struct ds_accel__elf_harm *harm)
{
    uint64_t budget = NAME_BUDGET_BYTES;

    for (size_t i = 0; i < count && harm->dynamic.reason == DS_ACCEL__REASON_NONE &&
                       harm->paths.reason == DS_ACCEL__REASON_NONE;
         i++) {
        const char *name;
        ElfW(Dyn) entry;
        bool is_path;

        memcpy(&entry, entries + i * sizeof(entry), sizeof(entry));
        is_path = entry.d_tag == DT_RPATH || entry.d_tag == DT_RUNPATH;
        if (!is_path && entry.d_tag != DT_NEEDED && entry.d_tag != DT_AUXILIARY &&
            entry.d_tag != DT_FILTER) {
            continue;
        }
        name = read_name(elf, tables, entry.d_un.d_val, &budget, &harm->dynamic);
        if (name != NULL && is_path) {
            check_run_path(name, &harm->paths);
        } else if (name != NULL) {
            check_library(name, &harm->paths);
        }
    }
}

void ds_accel__elf_read_harm(struct ds_accel__elf *elf, struct ds_accel__elf_harm *harm)
{
    struct dynamic_tables tables = {0};
    const unsigned char *entries;
    ElfW(Ehdr) header;
    size_t count;

    memset(harm, 0, sizeof(*harm));
    if (!get_header(elf, &header)) {
        return;
    }
    find_stack(elf, &header, &harm->stack);
    entries = find_entries(elf, &header, &count, &harm->dynamic);
    if (entries != NULL) {
        read_tables(entries, count, &tables, &harm->text);
        check_names(elf, entries, count, &tables, harm);
    }
}

void ds_accel__elf_check_harm(struct ds_accel__elf *elf, struct ds_accel__finding *finding)
{
    struct ds_accel__elf_harm harm;

    ds_accel__elf_read_harm(elf, &harm);
    *finding = harm.dynamic.reason != DS_ACCEL__REASON_NONE ? harm.dynamic
               : harm.stack.reason != DS_ACCEL__REASON_NONE ? harm.stack
               : harm.text.reason != DS_ACCEL__REASON_NONE  ? harm.text
                                                            : harm.paths;
}

/* ---- names, for lint and doctor -------------------------------------------------------------- */

/*
 * Count the symbols by the GNU hash table. The table stores no count, so the count is one more than
 * the index of the last symbol in the last chain.
 */
static uint32_t count_by_gnu_hash(struct ds_accel__elf *elf, uint64_t address)
{
    uint32_t head[4];
    const void *bytes = at_address(elf, address, sizeof(head));
    uint64_t buckets;
    uint32_t last = 0;

    if (bytes == NULL) {
        return 0;
    }
    memcpy(head, bytes, sizeof(head));
    buckets = address + sizeof(head) + (uint64_t)head[2] * sizeof(ElfW(Addr));
    for (uint32_t i = 0; i < head[0] && i < HEADER_LIMIT; i++) {
        uint32_t bucket;

        bytes = at_address(elf, buckets + 4ull * i, sizeof(bucket));
        if (bytes == NULL) {
            return 0;
        }
        memcpy(&bucket, bytes, sizeof(bucket));
        last = bucket > last ? bucket : last;
    }
    while (last >= head[1] && last != 0 && last < SYMBOL_LIMIT) {
        uint32_t chain;

        bytes = at_address(elf, buckets + 4ull * head[0] + 4ull * (last - head[1]), sizeof(chain));
        if (bytes == NULL) {
            return 0;
        }
        memcpy(&chain, bytes, sizeof(chain));
        last++;
        if ((chain & 1) != 0) {
            break;
        }
    }
    return last;
}

static uint32_t count_symbols(struct ds_accel__elf *elf, const struct dynamic_tables *tables)
{
    uint32_t head[2];
    const void *bytes = tables->hash != 0 ? at_address(elf, tables->hash, sizeof(head)) : NULL;

    if (bytes != NULL) {
        memcpy(head, bytes, sizeof(head));
        return head[1];
    }
    return tables->gnu_hash != 0 ? count_by_gnu_hash(elf, tables->gnu_hash) : 0;
}

static void read_exports(struct ds_accel__elf *elf, const struct dynamic_tables *tables,
                         struct ds_accel__elf_dynamic *dynamic)
{
    uint32_t count = count_symbols(elf, tables);

    /* A report has no use for more exports than fit on a screen. */
    for (uint32_t i = 1;
         i < count && i < SYMBOL_LIMIT && dynamic->exports.size_bytes < NAMES_LIMIT_BYTES; i++) {
        ElfW(Sym) symbol;
        const void *bytes =
            at_address(elf, tables->symbols + (uint64_t)i * sizeof(symbol), sizeof(symbol));

        if (bytes == NULL) {
            return;
        }
        memcpy(&symbol, bytes, sizeof(symbol));
        if (symbol.st_shndx != SHN_UNDEF && ELF64_ST_BIND(symbol.st_info) != STB_LOCAL) {
            ds_accel__text_add(&dynamic->exports, "%s\n", string_at(elf, tables, symbol.st_name));
        }
    }
}

static void read_entries(struct ds_accel__elf *elf, const ElfW(Phdr) * segment,
                         struct ds_accel__elf_dynamic *dynamic)
{
    const unsigned char *entries = bytes_at(elf, segment->p_offset, segment->p_filesz);
    struct dynamic_tables tables = {0};

    if (entries == NULL) {
        return;
    }
    /* Two passes: names can be read only after the string table was found. */
    for (int pass = 0; pass < 2; pass++) {
        for (uint64_t at = 0; segment->p_filesz - at >= sizeof(ElfW(Dyn));
             at += sizeof(ElfW(Dyn))) {
            ElfW(Dyn) entry;

            memcpy(&entry, entries + at, sizeof(entry));
            if (entry.d_tag == DT_NULL) {
                break;
            }
            switch (entry.d_tag) {
            case DT_STRTAB:
                tables.strings = entry.d_un.d_ptr;
                break;
            case DT_STRSZ:
                tables.strings_size = entry.d_un.d_val;
                break;
            case DT_SYMTAB:
                tables.symbols = entry.d_un.d_ptr;
                break;
            case DT_HASH:
                tables.hash = entry.d_un.d_ptr;
                break;
            case DT_GNU_HASH:
                tables.gnu_hash = entry.d_un.d_ptr;
                break;
            case DT_TEXTREL:
                dynamic->has_textrel = true;
                break;
            case DT_BIND_NOW:
                dynamic->has_bind_now = true;
                break;
            case DT_FLAGS:
                dynamic->has_bind_now |= (entry.d_un.d_val & DF_BIND_NOW) != 0;
                dynamic->has_textrel |= (entry.d_un.d_val & DF_TEXTREL) != 0;
                break;
            case DT_FLAGS_1:
                dynamic->has_bind_now |= (entry.d_un.d_val & DF_1_NOW) != 0;
                dynamic->has_nodelete |= (entry.d_un.d_val & DF_1_NODELETE) != 0;
                break;
            case DT_RPATH:
            case DT_RUNPATH:
                if (pass == 1 && dynamic->run_path.size_bytes < NAMES_LIMIT_BYTES) {
                    ds_accel__text_add(&dynamic->run_path, "%s\n",
                                       string_at(elf, &tables, entry.d_un.d_val));
                }
                break;
            case DT_NEEDED:
                if (pass == 1 && dynamic->needed.size_bytes < NAMES_LIMIT_BYTES) {
                    ds_accel__text_add(&dynamic->needed, "%s\n",
                                       string_at(elf, &tables, entry.d_un.d_val));
                }
                break;
            default:
                break;
            }
        }
    }
    read_exports(elf, &tables, dynamic);
}

void ds_accel__elf_dynamic_clear(struct ds_accel__elf_dynamic *dynamic)
{
    ds_accel__text_clear(&dynamic->needed);
    ds_accel__text_clear(&dynamic->run_path);
    ds_accel__text_clear(&dynamic->exports);
}

void ds_accel__elf_read_dynamic(struct ds_accel__elf *elf, struct ds_accel__elf_dynamic *dynamic)
{
    ElfW(Ehdr) header;
    bool has_entries = false;

    memset(dynamic, 0, sizeof(*dynamic));
    map_file(elf);
    if (!get_header(elf, &header)) {
        return;
    }
    for (uint32_t i = 0; i < header.e_phnum; i++) {
        ElfW(Phdr) segment;

        if (!get_segment(elf, &header, i, &segment)) {
            return;
        }
        if (segment.p_type == PT_GNU_STACK) {
            dynamic->has_executable_stack = (segment.p_flags & PF_X) != 0;
        }
        /*
         * Read the first dynamic section only, since a valid object has one. A hostile file with
         * thousands of them, each as long as the file, would take hours.
         */
        if (segment.p_type == PT_DYNAMIC && !has_entries) {
            read_entries(elf, &segment, dynamic);
            has_entries = true;
        }
    }
}
