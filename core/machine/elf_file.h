/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* ELF files and libraries, read as the dynamic linker reads them: elf.c, library.c. */
#ifndef DS_ACCEL_MACHINE_ELF_FILE_H
#define DS_ACCEL_MACHINE_ELF_FILE_H

#include "base/text.h"
#include "base/trust.h"

#include <stdbool.h>
#include <stddef.h>

struct ds_accel__machine;

/* A copy of a part of a file. */
struct ds_accel__elf_part {
    struct ds_accel__elf_part *next;
    uint64_t offset;
    uint64_t size_bytes;
    unsigned char bytes[];
};

/*
 * The contents of a plugin's file that elf.c reads; every offset is checked against the file's
 * size.
 */
struct ds_accel__elf {
    int fd;
    struct ds_accel__elf_part *parts;
    bool is_short_of_memory;
    const unsigned char *data; /* the whole file, mapped: only for its dynamic section */
    size_t size_bytes;
    uint16_t other_major; /* the generation of a note of another one; 0: none */
    uint32_t note_count;  /* notes of our generation; desc holds the first */
    uint32_t note_desc_bytes;
    struct ds_accel_note_desc desc;
    uint32_t hardware_count; /* hardware notes; the text of the first: */
    uint32_t hardware_bytes;
    const char *hardware; /* valid until the file is closed; NULL: no such note */
};

/*
 * Read and check an open file, which the caller still owns: finding->reason is set if it is not a
 * shared object for this machine.
 */
int32_t ds_accel__elf_open(int fd, struct ds_accel__elf *elf, struct ds_accel__finding *finding);
void ds_accel__elf_close(struct ds_accel__elf *elf);
/* Check the note against this host's ABI and against the file's name. */
void ds_accel__elf_check_note(struct ds_accel__elf *elf, const char *name,
                              struct ds_accel__finding *finding);
/*
 * The harm that loading the file would do to the process; a finding without a reason means no harm.
 */
struct ds_accel__elf_harm {
    struct ds_accel__finding dynamic; /* the dynamic section cannot be read as ld.so would */
    struct ds_accel__finding stack;   /* all stacks of the process would become executable */
    struct ds_accel__finding text;    /* its code would be writable while it is relocated */
    struct ds_accel__finding paths;   /* libraries would be loaded from the current directory */
};

/*
 * Read the entries that the dynamic linker uses. elf->is_short_of_memory: the findings are invalid.
 */
void ds_accel__elf_read_harm(struct ds_accel__elf *elf, struct ds_accel__elf_harm *harm);
/* The first of these findings: a file with one is not loaded. */
void ds_accel__elf_check_harm(struct ds_accel__elf *elf, struct ds_accel__finding *finding);
/* The features of this host; a plugin that requires others is rejected. */
#define DS_ACCEL__HOST_FEATURES \
    (DS_ACCEL_FEATURE_CONFIG | DS_ACCEL_FEATURE_MACHINE | DS_ACCEL_FEATURE_TOPOLOGY | \
     DS_ACCEL_FEATURE_TRACE | DS_ACCEL_FEATURE_DEMAND_ONLY | DS_ACCEL_FEATURE_SURVIVES_FORK)
/* The lowest required bit this host does not know, or -1. */
int ds_accel__unknown_feature(uint64_t required_features);

/* Facts of the dynamic section, for lint and doctor. */
struct ds_accel__elf_dynamic {
    bool has_bind_now;
    bool has_nodelete;
    bool has_textrel;
    bool has_executable_stack;
    struct ds_accel__text needed; /* names, one per line */
    struct ds_accel__text
        run_path; /* where it searches for them: lists of directories, one per line */
    struct ds_accel__text exports; /* defined global symbols, one per line */
};

void ds_accel__elf_read_dynamic(struct ds_accel__elf *elf, struct ds_accel__elf_dynamic *dynamic);
void ds_accel__elf_dynamic_clear(struct ds_accel__elf_dynamic *dynamic);

/* The inputs of the dynamic linker's search (library.c). */
struct ds_accel__linker {
    const char *root;         /* borrowed */
    const char *library_path; /* LD_LIBRARY_PATH; NULL: unset */
    char *cache;              /* /etc/ld.so.cache; NULL: none */
    size_t cache_bytes;
    bool has_directories; /* false: a recording, without libraries */
};

/* Map the library at a path if it is a library for this kind of machine. */
int32_t ds_accel__library_open(const char *path, struct ds_accel__elf *elf, bool *is_library_out);
int32_t ds_accel__linker_open(const struct ds_accel__machine *machine,
                              struct ds_accel__linker *linker);
void ds_accel__linker_close(struct ds_accel__linker *linker);
/*
 * Find a library by soname or absolute path, as an object that needs it (or NULL) would, without
 * loading it. *path_out: a new string with the root, NULL if there is none.
 */
int32_t ds_accel__linker_find(const struct ds_accel__linker *linker, const char *name,
                              const struct ds_accel__elf_dynamic *dynamic, const char *object,
                              char **path_out);

#endif
