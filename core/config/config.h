/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Configuration: config.c, config_rules.c, config_locate.c, config_whole.c. */
#ifndef DS_ACCEL_CONFIG_CONFIG_H
#define DS_ACCEL_CONFIG_CONFIG_H

#include "base/private.h"
#include "base/reason.h"
#include "ds_accel.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

struct ds_accel__env;
struct ds_accel__text;

/*
 * Check the form of a hardware fact of the configuration: a PCI vendor and class such as "10de:03",
 * or a pattern of device nodes such as "/dev/nvidia[0-9]*". Return NULL if the form is valid, else
 * static text that describes the expected form.
 */
DS_ACCEL__PRIVATE const char *ds_accel__check_pci_fact(const char *text);
DS_ACCEL__PRIVATE const char *ds_accel__check_node_fact(const char *text);
/* Whether an op can have this name: it is that of its file, too. */
DS_ACCEL__PRIVATE bool ds_accel__is_op_name(const char *text);

enum ds_accel__config_layer {
    DS_ACCEL__CONFIG_LAYER_PACKAGE, /* files of packages: PREFIX/share/ds-accel */
    DS_ACCEL__CONFIG_LAYER_SYSTEM,  /* /etc/ds-accel */
    DS_ACCEL__CONFIG_LAYER_USER,    /* $XDG_CONFIG_HOME/ds-accel */
    DS_ACCEL__CONFIG_LAYER_EXPLICIT /* DS_ACCEL_CONFIG or an option; replaces the user's files */
};

struct ds_accel__config_file {
    char *path;
    enum ds_accel__config_layer layer;
    bool is_ops;   /* contains only op builders, read on demand */
    bool is_given; /* text was set before reading, by the caller or from a recording */
    char *text;    /* NULL until read */
    size_t size_bytes;
    json_t *root; /* NULL until read */
};

struct ds_accel__config_problem {
    char *file;
    int line;
    int column;
    char *message;
};

/* The late facts of one backend (snapshot.c). */
struct ds_accel__config_late {
    struct ds_accel__config_late *next;
    json_t *tree; /* {"backends": {backend: facts}} */
    char backend[];
};

/*
 * Data of a configuration that was read from a snapshot. Its merged tree contains only the values
 * that detection reads; the other values are parsed from this data when they are needed.
 */
struct ds_accel__config_later {
    char *data; /* the stored snapshot, whose format snapshot.c describes */
    size_t size_bytes;
    json_t *whole;                      /* the whole configuration; NULL: not parsed yet */
    struct ds_accel__config_late *late; /* of each backend that was needed, the last one first */
};

struct ds_accel__config {
    struct ds_accel__config_file *files; /* lowest layer first */
    size_t file_count;
    json_t *merged;
    bool has_ops;
    time_t ops_read_s; /* before the files of op builders were read; 0: they were not */
    struct ds_accel__config_problem *problems;
    size_t problem_count;
    uint64_t identity; /* identity of the current files; 0: unknown (snapshot.c) */
    bool is_settled;   /* no file changed in the last two seconds */
    /* merged is read from a snapshot of an earlier process; every file's root is NULL */
    bool is_snapshot;
    struct ds_accel__config_later *later; /* NULL unless is_snapshot */
    bool is_kept;                         /* the configuration was stored for later processes */
    char unread[256]; /* the user's directory and why it was skipped; "" if it was read */
};

/* Sizes, including NUL, of two texts in public structs: the value of a setting, and the name of a
 * directory of op builders. */
#define DS_ACCEL__SETTING_SIZE 32
#define DS_ACCEL__OP_BUILDER_DIR_SIZE 64

/*
 * List the files of every layer. Returns DS_ACCEL_OK or ERR_NO_MEMORY. The caller must call
 * ds_accel__config_clear(), also after an error.
 */
int32_t ds_accel__config_find(struct ds_accel__config *config,
                              const struct ds_accel_options *options,
                              const struct ds_accel__env *env);
/*
 * List the packages' files, the files in paths, and the files of the directories in paths.
 * texts[i], if not NULL, replaces the contents of the i-th path; texts may be NULL.
 */
int32_t ds_accel__config_find_named(struct ds_accel__config *config,
                                    const struct ds_accel_options *options,
                                    const char *const *paths, const char *const *texts,
                                    uint32_t count);
/*
 * Append a file. text: its contents; NULL: the file is read when it is needed. Returns DS_ACCEL_OK
 * or ERR_NO_MEMORY.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__config_add_file(struct ds_accel__config *config,
                                                    const char *path,
                                                    enum ds_accel__config_layer layer,
                                                    const char *text);
/*
 * Read, check and merge the files; with_ops: including the files of op builders. Returns
 * DS_ACCEL_OK; ERR_CONFIG: config->problems lists the defects and nothing is merged; ERR_NO_MEMORY.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__config_read(struct ds_accel__config *config, bool with_ops);
/*
 * The two steps of ds_accel__config_read(), for files whose text is set: parse one file and add its
 * defects to the problems; merge the checked files. DS_ACCEL_OK; ERR_CONFIG (merge only);
 * ERR_NO_MEMORY.
 */
int32_t ds_accel__config_parse(struct ds_accel__config *config, struct ds_accel__config_file *file);
int32_t ds_accel__config_merge(struct ds_accel__config *config);
/* Add a problem whose source is no file, such as the value of a variable. */
int32_t ds_accel__config_add_problem(struct ds_accel__config *config, const char *source,
                                     const char *message);
/* Add a problem of the row at a JSON pointer, at its key in the file of the highest layer that sets
 * it. */
int32_t ds_accel__config_add_problem_at(struct ds_accel__config *config, const char *pointer,
                                        const char *message);
/*
 * Add the rows of op builders and kernels that cannot work to the problems. The files are read and
 * merged, with those of op builders. DS_ACCEL_OK; ERR_CONFIG: there are problems; ERR_NO_MEMORY.
 */
int32_t ds_accel__config_check_whole(struct ds_accel__config *config);
/* Read the files of op builders, too, unless they were already read. */
int32_t ds_accel__config_load_ops(struct ds_accel__config *config);
void ds_accel__config_clear(struct ds_accel__config *config);
/* Add one line per problem: "FILE:LINE:COLUMN: MESSAGE". */
void ds_accel__config_problems_text(const struct ds_accel__config *config,
                                    struct ds_accel__text *text);
/*
 * Borrow the merged value at a path of keys ending in NULL; NULL if it is absent or masked by null.
 */
DS_ACCEL__PRIVATE json_t *ds_accel__config_get(const struct ds_accel__config *config, ...)
    __attribute__((sentinel));
/*
 * Borrow an object with the facts of a backend that detection reads
 * (ds_accel__snapshot_is_early()); it may contain other facts, too. backend NULL: the object with
 * the facts of all backends.
 */
json_t *ds_accel__config_facts(const struct ds_accel__config *config, const char *backend);
/*
 * Parse the facts of a backend, or the whole configuration if backend is NULL, if only the values
 * that detection reads were parsed so far. ERR_NO_MEMORY: the other values then seem absent.
 */
DS_ACCEL__PRIVATE int32_t ds_accel__config_complete(const struct ds_accel__config *config,
                                                    const char *backend);
DS_ACCEL__PRIVATE json_t *ds_accel__config_backend(const struct ds_accel__config *config,
                                                   const char *backend, const char *key);
const char *ds_accel__config_string(const struct ds_accel__config *config, const char *key);
/*
 * The file of the highest layer that sets the value at a JSON pointer, as a new string "FILE:LINE";
 * or NULL.
 */
char *ds_accel__config_origin(const struct ds_accel__config *config, const char *pointer);
/* False if a file of a higher layer than the packages' sets the value. */
bool ds_accel__config_is_package(const struct ds_accel__config *config, const char *pointer);
/*
 * Borrow the remedy for a reason: from the configuration's facts of the backend, else from the
 * table of reasons; "" for DS_ACCEL__REASON_NONE.
 */
DS_ACCEL__PRIVATE const char *ds_accel__config_remedy(const struct ds_accel__config *config,
                                                      const char *backend,
                                                      enum ds_accel__reason_id reason);
DS_ACCEL__PRIVATE const char *ds_accel__config_layer_name(enum ds_accel__config_layer layer);

/* Called for each problem with the JSON pointer of the value, or of its key if is_key. */
typedef int32_t (*ds_accel__problem_t)(void *user_data, const char *pointer, bool is_key,
                                       const char *message);
/*
 * Check a file's tree against the table of keys. DS_ACCEL_OK, or the first negative status that the
 * callback returned.
 */
int32_t ds_accel__config_check_tree(json_t *root, bool is_ops, ds_accel__problem_t report,
                                    void *user_data);
/* Append "/" and the escaped key to a JSON pointer in a buffer. False if it does not fit. */
bool ds_accel__pointer_append(char *pointer, size_t pointer_size, const char *key);
/* Find the position of the value (or of its key) at a JSON pointer in a valid JSON text. False,
 * with line and column 1, if there is no such value. */
bool ds_accel__config_locate(const char *text, size_t size_bytes, const char *pointer, bool is_key,
                             int *line_out, int *column_out);
/* Find the first byte of the value at a JSON pointer in a valid JSON text, and the byte behind it.
 * False if there is no such value. */
bool ds_accel__config_span(const char *text, size_t size_bytes, const char *pointer,
                           size_t *from_out, size_t *to_out);

/*
 * The length of the prefix of a backend's name that its device names begin with: the devices of
 * xpu.external are named xpu.
 */
static inline int ds_accel__device_name_length(const char *backend)
{
    return (int)strcspn(backend, ".");
}

#endif
