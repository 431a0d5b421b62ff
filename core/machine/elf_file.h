/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* ELF files and libraries, interpreted as the dynamic linker does: elf.c, library.c. */
#ifndef DS_ACCEL_MACHINE_ELF_FILE_H
#define DS_ACCEL_MACHINE_ELF_FILE_H

#include "base/text.h"
#include "base/trust.h"
#include "ops/op.h"

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
 * The contents of a plugin's file that elf.c has read. Every offset is checked against the file's
 * size.
 */
struct ds_accel__elf {
    int fd;
    struct ds_accel__elf_part *parts;
    bool is_short_of_memory;
    const unsigned char *data; /* the mapped file; only for the dynamic section */
    size_t size_bytes;
    uint16_t other_major; /* ABI generation of a note for another host; 0: none */
    uint32_t note_count;  /* notes of this ABI generation; desc is the first */
    uint32_t note_desc_bytes;
    struct ds_accel_note_desc desc;
    uint32_t hardware_count; /* number of hardware notes */
    uint32_t hardware_bytes;
    const char *hardware; /* text of the first; borrowed until close; NULL: none */
    uint32_t op_count;    /* notes of ops; op_desc is the first */
    uint32_t op_desc_bytes;
    struct ds_accel_op_note_desc op_desc;
};

/*
 * Read and check an open file. The caller still owns fd. finding->reason is set if the file cannot
 * be read, or is not an undamaged shared object for this machine. elf is then already closed, as
 * after a failure: ERR_NO_MEMORY, or ERR_LIMIT if no descriptor is available.
 */
int32_t ds_accel__elf_open(int fd, struct ds_accel__elf *elf, struct ds_accel__finding *finding);
void ds_accel__elf_close(struct ds_accel__elf *elf);
/*
 * Check the ABI note against this host's ABI, its name against the backend's name from the file
 * name, and the hardware note. If elf->is_short_of_memory is set afterwards, the finding is
 * invalid.
 */
void ds_accel__elf_check_note(struct ds_accel__elf *elf, const char *name,
                              struct ds_accel__finding *finding);
/* Likewise, check the note of an op's file against the op's name. */
void ds_accel__elf_check_op_note(struct ds_accel__elf *elf, const char *name,
                                 struct ds_accel__finding *finding);
/*
 * The harm that loading the file would do to the process. A finding without a reason means no harm.
 */
struct ds_accel__elf_harm {
    struct ds_accel__finding dynamic; /* the dynamic section cannot be read as ld.so would */
    struct ds_accel__finding stack;   /* all stacks of the process would become executable */
    struct ds_accel__finding text;    /* the code would be writable during relocation */
    struct ds_accel__finding paths;   /* libraries would be loaded from the current directory */
};

/*
 * Find the harm, from the program headers and from the dynamic section as the dynamic linker reads
 * it. If elf->is_short_of_memory is set afterwards, the findings are invalid.
 */
void ds_accel__elf_read_harm(struct ds_accel__elf *elf, struct ds_accel__elf_harm *harm);
/* Set *finding to the first finding of harm that has a reason. A file with such a finding is not
 * loaded. */
void ds_accel__elf_check_harm(struct ds_accel__elf *elf, struct ds_accel__finding *finding);
/* The features of this host. A plugin that requires another feature is rejected. */
#define DS_ACCEL__HOST_FEATURES \
    (DS_ACCEL_FEATURE_CONFIG | DS_ACCEL_FEATURE_MACHINE | DS_ACCEL_FEATURE_TOPOLOGY | \
     DS_ACCEL_FEATURE_TRACE | DS_ACCEL_FEATURE_DEMAND_ONLY | DS_ACCEL_FEATURE_SURVIVES_FORK)
/* The lowest required feature bit that this host does not support; -1: none. */
int ds_accel__unknown_feature(uint64_t required_features);

/* Facts of the dynamic section, for lint and doctor. */
struct ds_accel__elf_dynamic {
    bool has_bind_now;
    bool has_nodelete;
    bool has_textrel;
    bool has_executable_stack;
    struct ds_accel__text needed; /* names of linked libraries, one per line */
    struct ds_accel__text
        run_path; /* lists of directories to search for these libraries, one list per line */
    struct ds_accel__text exports; /* defined global symbols, one per line */
};

void ds_accel__elf_read_dynamic(struct ds_accel__elf *elf, struct ds_accel__elf_dynamic *dynamic);
void ds_accel__elf_dynamic_clear(struct ds_accel__elf_dynamic *dynamic);

/* The inputs of the dynamic linker's search (library.c). */
struct ds_accel__linker {
    const char *root;         /* borrowed */
    const char *library_path; /* value of LD_LIBRARY_PATH; NULL: unset */
    char *cache;              /* contents of /etc/ld.so.cache; NULL: none */
    size_t cache_bytes;
    /* the machine has a linker cache or a standard directory of libraries; false: it has no
     * libraries, such as a recorded machine */
    bool has_directories;
};

/*
 * Open a file if it is a library for this kind of machine; otherwise *is_library_out is set to
 * false.
 */
int32_t ds_accel__library_open(const char *path, struct ds_accel__elf *elf, bool *is_library_out);
int32_t ds_accel__linker_open(const struct ds_accel__machine *machine,
                              struct ds_accel__linker *linker);
void ds_accel__linker_close(struct ds_accel__linker *linker);
/*
 * Find the file of a library by soname or absolute path, without loading it. The search is that of
 * the object that needs the library: dynamic contains its run path, object its file. If dynamic is
 * NULL, object is not used. *path_out is a new string that includes the root directory, NULL if
 * there is no such library.
 */
int32_t ds_accel__linker_find(const struct ds_accel__linker *linker, const char *name,
                              const struct ds_accel__elf_dynamic *dynamic, const char *object,
                              char **path_out);

#endif
