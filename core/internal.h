/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Private declarations, in layers: a file uses only what stands above its own section.
 * Ownership words: create/destroy objects, open/close files and modules, borrow, take.
 */
#ifndef DS_ACCEL_INTERNAL_H
#define DS_ACCEL_INTERNAL_H

#include "ds_accel.h"

#include <jansson.h>
#include <numa.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>

#define DS_ACCEL__NAME_SIZE 32        /* of a backend's name, NUL included: plugin-api.h's note */
#define DS_ACCEL__DEVICE_LIMIT 65536u /* no machine has more */
#define DS_ACCEL__ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* ---- layer 0: errors (error.c), texts (text.c, list.c), reasons (reason.c), log (log.c) ----- */

/* Keep the message as this thread's last error and return status. */
int32_t ds_accel__error(int32_t status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The same for exhausted memory; allocates nothing. */
int32_t ds_accel__no_memory(void);

/* A text that grows. After an allocation failed it stays failed, and take() gives NULL. */
struct ds_accel__text {
    char *data;
    size_t size_bytes;
    size_t capacity_bytes;
    bool failed;
};

void ds_accel__text_add(struct ds_accel__text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void ds_accel__text_add_bytes(struct ds_accel__text *text, const void *data, size_t size_bytes);
char *ds_accel__text_take(struct ds_accel__text *text);
void ds_accel__text_clear(struct ds_accel__text *text);

/* The nearest of count names within a typing error or two; NULL if none is near. */
const char *ds_accel__nearest(const char *name, const char *const *names, size_t count);
/* Two texts and what is between them, in a new string; NULL when memory is exhausted. */
char *ds_accel__join(const char *left, char between, const char *right);
/* Copy a text into an array, cut to what fits; NULL is "". */
void ds_accel__copy(char *to, size_t to_size, const char *text);
/* snprintf into a new string; NULL when memory is exhausted. */
char *ds_accel__format(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* What a plugin said of a failure, on one line: message, vendor's text and code, or the status. */
void ds_accel__describe(int32_t status, const struct ds_accel_error *error, char *text,
                        size_t text_size);
/* End a text that came from outside: one line of UTF-8, without control characters. */
void ds_accel__sanitize(char *text, size_t text_size);
/* True if name is a backend's: [a-z][a-z0-9_.]{0,30}. */
bool ds_accel__is_backend_name(const char *name);

/* A quick hash, for checksums and keys that nobody has a reason to forge (hash.c). */
uint64_t ds_accel__hash(const void *data, size_t size_bytes, uint64_t seed);
uint64_t ds_accel__hash_text(const char *text, uint64_t seed);

#define DS_ACCEL__LIST_LIMIT 65536u /* no machine numbers its CPUs or nodes higher */

typedef bool (*ds_accel__list_visit_t)(void *user_data, uint32_t first, uint32_t last);
/* Visit the ranges of "0-3,8,10-11"; false if the text is no such list, or visit said no. */
bool ds_accel__list_parse(const char *text, ds_accel__list_visit_t visit, void *user_data);
/* The next item that is not empty, and *list behind it; NULL if there is none. Borrowed. */
const char *ds_accel__list_next(const char **list, char separator, size_t *length_out);

/* Why a candidate was not chosen: one table for code, meaning and remedy. */
struct ds_accel__reason {
    const char *code;
    const char *meaning;
    const char *remedy;
};

const struct ds_accel__reason *ds_accel__reason(const char *code); /* NULL if there is none */
/* The code for a plugin's DS_ACCEL_REASON_*; NULL if the number is not one. */
const char *ds_accel__reason_of_verdict(uint32_t reason);

#define DS_ACCEL__LOG_TOPIC_MAX 16

struct ds_accel__log {
    ds_accel_log_sink_t sink;
    void *user_data;
    uint32_t level;
    uint32_t topic_count;
    struct {
        char name[DS_ACCEL__NAME_SIZE];
        uint32_t level;
    } topics[DS_ACCEL__LOG_TOPIC_MAX];
};

/* Read "warn,cuda=debug". Items that cannot be read are left out, and warned of. */
void ds_accel__log_set_levels(struct ds_accel__log *log, const char *levels);
bool ds_accel__log_enabled(const struct ds_accel__log *log, const char *topic, uint32_t level);
void ds_accel__log(const struct ds_accel__log *log, const char *topic, uint32_t level,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));

/* ---- layer 0: slots without a function (stub.c), fork (fork.c) ------------------------------ */

enum ds_accel__stub {
    DS_ACCEL__STUB_UNSUPPORTED, /* ERR_UNSUPPORTED: the plugin has no such function */
    DS_ACCEL__STUB_FORKED,      /* ERR_STATE: started before fork(), in another process */
    DS_ACCEL__STUB_DESTROYED    /* ERR_INVALID: the handle was destroyed */
};

/* Put a stub into every slot; UNSUPPORTED: into those that are NULL. Safe in a forked child. */
void ds_accel__table_fill(struct ds_accel_plugin *table, enum ds_accel__stub kind);
/* True if the slot at this offset holds the UNSUPPORTED stub. */
bool ds_accel__slot_is_absent(const struct ds_accel_plugin *table, size_t offset);
/* A table for handles that were destroyed: static storage, every slot DESTROYED. */
const struct ds_accel_plugin *ds_accel__table_destroyed(void);
/* What this thread's last stub meant, if it returned this status and nobody has asked yet. */
bool ds_accel__stub_describe(int32_t status, char *text, size_t text_size);

/* An accelerator that is started here: what fork() makes of it in a child. */
struct ds_accel__fork_watch {
    struct ds_accel__fork_watch *next;
    struct ds_accel_plugin *table; /* filled with FORKED */
    pthread_mutex_t *locks[5];     /* made anew; NULL: none */
    pid_t pid;                     /* who started it */
    bool is_forked;                /* this process is a child of that one */
};

void ds_accel__fork_watch(struct ds_accel__fork_watch *watch);
void ds_accel__fork_unwatch(struct ds_accel__fork_watch *watch);
/* Make a static lock anew in every child. */
void ds_accel__fork_renew(pthread_mutex_t *lock);
/* Who started what this process inherited; 0: it inherited nothing. */
pid_t ds_accel__fork_parent(void);

/* ---- layer 1: environment (env.c), files (file.c) ------------------------------------------- */

enum ds_accel__variable {
    DS_ACCEL__VARIABLE_ACCELERATOR,
    DS_ACCEL__VARIABLE_PLUGIN_PATH,
    DS_ACCEL__VARIABLE_CONFIG,
    DS_ACCEL__VARIABLE_LOG,
    DS_ACCEL__VARIABLE_PROBE,
    DS_ACCEL__VARIABLE_CACHE,
    DS_ACCEL__VARIABLE_CACHE_DIR,
    DS_ACCEL__VARIABLE_ALLOCATOR,
    DS_ACCEL__VARIABLE_DECISION,
    DS_ACCEL__VARIABLE_LAYERS,
    DS_ACCEL__VARIABLE_TRACE_FILE,
    DS_ACCEL__VARIABLE_RACE_FILE,
    DS_ACCEL__VARIABLE_ROOT,
    DS_ACCEL__VARIABLE_COUNT
};

struct ds_accel__variable_info {
    const char *name;
    const char *default_value; /* NULL: unset */
    const char *help;
};

/* A copy of the DS_* variables, taken when the context was made. */
struct ds_accel__env {
    char *values[DS_ACCEL__VARIABLE_COUNT]; /* NULL: unset or ignored */
    bool ignored;                           /* by option, or because the program runs set-uid */
};

extern const struct ds_accel__variable_info ds_accel__variables[DS_ACCEL__VARIABLE_COUNT];

int32_t ds_accel__env_read(struct ds_accel__env *env, bool ignore);
void ds_accel__env_clear(struct ds_accel__env *env);
/* DS_ACCEL_<NAME>_<KEY>, a plugin's option; NULL if unset or ignored. */
const char *ds_accel__env_option(const struct ds_accel__env *env, const char *backend,
                                 const char *key);
/* Its name: "DS_ACCEL_XPU_EXTERNAL_KEY"; false if it does not fit. */
bool ds_accel__env_option_name(const char *backend, const char *key, char *name, size_t name_size);
/* What is wrong with a variable's value, and which one's; NULL if none is. */
const char *ds_accel__env_problem(const struct ds_accel__env *env,
                                  enum ds_accel__variable *variable_out);
/* Any variable of the job's environment, for env rules; NULL if unset. */
const char *ds_accel__env_job(const char *name);
/* [A-Z_][A-Z0-9_]*, the names variables have here. */
bool ds_accel__is_variable_name(const char *name);
/* One that configuration and plugins may set: neither LD_* nor ours. */
bool ds_accel__is_settable_variable(const char *name);
/*
 * Warn about each DS_ACCEL_* that is neither in the table nor one of the names, and does not begin
 * with one of the names that end in '_' (backends whose options nobody declared).
 */
void ds_accel__env_warn_unknown(const struct ds_accel__env *env, const struct ds_accel__log *log,
                                char *const *names, size_t name_count);
/* True if there is a DS_ACCEL_* that is not of the table: an option of a backend, or a mistake. */
bool ds_accel__env_has_others(const struct ds_accel__env *env);
/* The user's configuration folder, without ds-accel; new string, NULL if there is none or set-uid.
 */
char *ds_accel__env_user_config_dir(void);
/* $XDG_RUNTIME_DIR; new string, NULL if there is none or set-uid. */
char *ds_accel__env_runtime_dir(void);
/* True if the name of this length is one of the table's. */
bool ds_accel__env_is_ours(const char *name, size_t length);

/*
 * Read a regular file of at most limit_bytes into a new, NUL-terminated buffer.
 * DS_ACCEL_OK; ERR_NOT_FOUND; ERR_IO with the cause, such as "Is a directory", in *cause_out
 * (static or strerror's); ERR_NO_MEMORY. Files of /proc and /sys, which have no size, work too.
 */
int32_t ds_accel__file_read(const char *path, size_t limit_bytes, char **data_out, size_t *size_out,
                            const char **cause_out);
/* Names in a folder that pass the filter, byte-wise sorted. A missing folder has none. */
int32_t ds_accel__dir_list(const char *path, bool (*filter)(const char *name), char ***names_out,
                           size_t *count_out, const char **cause_out);
void ds_accel__names_free(char **names, size_t count);
/* False: a file of that size would be past RLIMIT_FSIZE, and writing it a deadly SIGXFSZ. */
bool ds_accel__file_may_have(size_t size_bytes);

/* ---- layer 1: where the machine is looked at (machine.c) ------------------------------------ */

/* Takes what is read of a machine. */
struct ds_accel__recorder {
    pthread_mutex_t lock;
    json_t *
        files; /* below /sys, /proc and /dev, by path: objects of "text", "names", "link", "node" */
    bool failed; /* memory is exhausted */
};

struct ds_accel__machine {
    const char *root; /* borrowed; "" is the machine itself */
    json_t *files;    /* borrowed, as above: of a recorded machine, and root is ""; else NULL */
    struct ds_accel__recorder *recorder; /* borrowed; NULL: nothing is noted */
};

extern const struct ds_accel__machine ds_accel__machine_here;

/* A file of the machine, such as /proc/meminfo; *text_out NULL if it can't be read. ERR_NO_MEMORY.
 */
int32_t ds_accel__machine_read(const struct ds_accel__machine *machine, const char *path,
                               char **text_out);
/* Its first line, cut to what fits; "" if there is none. */
int32_t ds_accel__machine_line(const struct ds_accel__machine *machine, const char *path,
                               char *line, size_t line_size);
/* Names in a folder, sorted; none if there is no such folder. */
int32_t ds_accel__machine_list(const struct ds_accel__machine *machine, const char *path,
                               char ***names_out, size_t *count_out);
/* Where a symbolic link leads; false if there is none. */
bool ds_accel__machine_link(const struct ds_accel__machine *machine, const char *path, char *target,
                            size_t target_size);
/* Is it denied to this process (mode as for access()): it, or the way to it? Not if it is absent.
 */
bool ds_accel__machine_is_closed(const struct ds_accel__machine *machine, const char *path,
                                 int mode);

struct ds_accel__machine_node {
    mode_t mode;
    uid_t uid;
    gid_t gid;
    dev_t rdev;
    uint64_t changed_ns;
    bool is_usable; /* this process may read and write it */
};

/* A device node, or what stands for one; false if it is not there, or a folder. */
bool ds_accel__machine_node(const struct ds_accel__machine *machine, const char *path,
                            struct ds_accel__machine_node *node);

/* ---- layer 1: configuration (config.c, config_rules.c, config_locate.c) --------------------- */

/* NULL, or what was expected of a fact: "10de:03", "/dev/nvidia[0-9]*". */
const char *ds_accel__check_pci_fact(const char *text);
const char *ds_accel__check_node_fact(const char *text);

enum ds_accel__layer {
    DS_ACCEL__LAYER_PACKAGE, /* what packages ship: PREFIX/share/ds-accel */
    DS_ACCEL__LAYER_SYSTEM,  /* /etc/ds-accel */
    DS_ACCEL__LAYER_USER,    /* $XDG_CONFIG_HOME/ds-accel */
    DS_ACCEL__LAYER_EXPLICIT /* DS_ACCEL_CONFIG or an option; replaces the user's */
};

struct ds_accel__config_file {
    char *path;
    enum ds_accel__layer layer;
    bool is_ops;   /* op builders only, read when somebody asks for them */
    bool is_given; /* text is there before it is read: of a recorded machine */
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

/* A remembered configuration, of which merged is what detection asks. */
struct ds_accel__config_later {
    char *data; /* snapshot.c */
    size_t size_bytes;
    json_t *whole; /* NULL: nobody has asked for the rest yet */
};

struct ds_accel__config {
    struct ds_accel__config_file *files; /* lowest layer first */
    size_t file_count;
    json_t *merged;
    bool has_ops;
    struct ds_accel__config_problem *problems;
    size_t problem_count;
    uint64_t identity; /* of the files as they are now; 0: not known (snapshot.c) */
    bool is_settled;   /* and none has changed just before */
    bool is_snapshot;  /* merged is what was read by an earlier process: no file has a root */
    struct ds_accel__config_later *later; /* with is_snapshot, and until it is cleared; or NULL */
    bool is_kept;                         /* it was kept for later processes */
    char unread[256]; /* the user's folder and why it was left out; "" if it was not */
};

/* List the files of every layer. ERR_NO_MEMORY. Clear it in every case. */
int32_t ds_accel__config_find(struct ds_accel__config *config,
                              const struct ds_accel_options *options,
                              const struct ds_accel__env *env);
/* Add one behind the others; text: what is in it, NULL: it is read when it is needed.
 * ERR_NO_MEMORY. */
int32_t ds_accel__config_add_file(struct ds_accel__config *config, const char *path,
                                  enum ds_accel__layer layer, const char *text);
/*
 * Read, check and merge them. DS_ACCEL_OK; ERR_CONFIG, then config->problems says why and nothing
 * is merged; ERR_NO_MEMORY.
 */
int32_t ds_accel__config_read(struct ds_accel__config *config, bool with_ops);
/*
 * The two halves of loading, for files whose text is there: check one file, adding what is wrong
 * with it to the problems, and merge those that were checked. OK; ERR_CONFIG (merge), as above;
 * ERR_NO_MEMORY.
 */
int32_t ds_accel__config_parse(struct ds_accel__config *config, struct ds_accel__config_file *file);
int32_t ds_accel__config_merge(struct ds_accel__config *config);
/* A problem outside of the files, such as a variable's value. */
int32_t ds_accel__config_add_problem(struct ds_accel__config *config, const char *source,
                                     const char *message);
/* Read the op builders too, if not yet done. */
int32_t ds_accel__config_load_ops(struct ds_accel__config *config);
void ds_accel__config_clear(struct ds_accel__config *config);
/* One line per problem: file:line:column: message. */
void ds_accel__config_problems_text(const struct ds_accel__config *config,
                                    struct ds_accel__text *text);
/* The merged value at a path of keys ending in NULL; NULL if absent or masked by null. Borrowed. */
json_t *ds_accel__config_get(const struct ds_accel__config *config, ...) __attribute__((sentinel));
/* What detection asks of a backend (ds_accel__snapshot_is_early()), and perhaps more; NULL: of all
 * of them. As above. */
json_t *ds_accel__config_facts(const struct ds_accel__config *config, const char *backend);
/* That all of it can be asked for: ERR_NO_MEMORY. Without, some of it may seem absent. */
int32_t ds_accel__config_complete(const struct ds_accel__config *config);
json_t *ds_accel__config_backend(const struct ds_accel__config *config, const char *backend,
                                 const char *key);
const char *ds_accel__config_string(const struct ds_accel__config *config, const char *key);
/* The topmost file that sets the value at a JSON pointer, as "file:line" in a new string, or NULL.
 */
char *ds_accel__config_origin(const struct ds_accel__config *config, const char *pointer);
/* False if a file above the package layer sets it. */
bool ds_accel__config_is_package(const struct ds_accel__config *config, const char *pointer);
/*
 * What turns a backend's "no" into a "yes": as the configuration's facts have it for this backend,
 * else as the table of reasons has it for all; "" if the code is none. Borrowed.
 */
const char *ds_accel__config_remedy(const struct ds_accel__config *config, const char *backend,
                                    const char *reason);
const char *ds_accel__layer_name(enum ds_accel__layer layer);

/* Called for each problem: the JSON pointer of the value, or of the key if is_key. */
typedef int32_t (*ds_accel__problem_t)(void *user_data, const char *pointer, bool is_key,
                                       const char *message);
/* Check a file's tree against the table of keys. DS_ACCEL_OK, or what report returned first < 0. */
int32_t ds_accel__config_check_tree(json_t *root, bool is_ops, ds_accel__problem_t report,
                                    void *user_data);
/* Append "/key", escaped, to a JSON pointer in a buffer; false if it does not fit. */
bool ds_accel__pointer_append(char *pointer, size_t pointer_size, const char *key);
/* Find the value (or its key) at a JSON pointer in a text that is known to be valid JSON. */
bool ds_accel__config_locate(const char *text, size_t size_bytes, const char *pointer, bool is_key,
                             int *line_out, int *column_out);

/* ---- layer 1: the machine (topology.c, cgroup.c) -------------------------------------------- */

struct ds_accel__numa_node {
    uint32_t id;
    uint32_t cpu_count;
    char *cpus;              /* the kernel's list */
    struct bitmask cpu_mask; /* libnuma's type; storage is ours */
    uint64_t total_memory_bytes;
    uint64_t available_memory_bytes;
};

struct ds_accel__topology {
    struct ds_accel__numa_node *nodes; /* by id */
    uint32_t node_count;
};

/* What control groups leave this process; limit_bytes is the smallest limit, 0 if there is none. */
struct ds_accel__cgroup_limit {
    uint64_t limit_bytes;
    uint64_t left_bytes; /* smallest over all groups, also those with larger limits */
    char source[512];    /* the file that sets it */
};

int32_t ds_accel__topology_read(const struct ds_accel__machine *machine,
                                struct ds_accel__topology *topology);
void ds_accel__topology_clear(struct ds_accel__topology *topology);
/* "/proc/meminfo" and a node's meminfo alike: a value in bytes; 0 if the key is not there. */
uint64_t ds_accel__meminfo_value(const char *meminfo, const char *key);
/* How many numbers a list such as "0-3,8" has; 0 if it is not one. */
uint32_t ds_accel__list_count(const char *list);
/*
 * The group's file, "cpuset.cpus" or "cpuset.mems", that leaves this process count numbers; "" if
 * none does.
 */
int32_t ds_accel__cgroup_cpuset(const struct ds_accel__machine *machine, const char *file,
                                uint32_t count, char *source, size_t source_size);
/* Limits of machine_bytes and more are none. */
int32_t ds_accel__cgroup_limit(const struct ds_accel__machine *machine, uint64_t machine_bytes,
                               struct ds_accel__cgroup_limit *limit_out);
int32_t ds_accel__host_memory(const struct ds_accel__machine *machine,
                              struct ds_accel_host_memory *memory_out);

/* ---- layer 2: files (trust.c, prefix.c, elf.c, library.c, presence.c, loader.c), candidates
 * (registry.c, scan.c) */

/* A failure of a gate: reason code (static) and evidence. */
struct ds_accel__finding {
    const char *reason; /* NULL: no failure */
    char detail[512];
};

void ds_accel__find(struct ds_accel__finding *finding, const char *reason, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Folders that were walked, kept open while a context asks its plugins (trust.c). */
struct ds_accel__trust;

struct ds_accel__trust *ds_accel__trust_create(void); /* NULL: no memory */
void ds_accel__trust_destroy(struct ds_accel__trust *trust);
/* Forget every folder, and close it: the next call walks anew. */
void ds_accel__trust_reset(struct ds_accel__trust *trust);
/*
 * Open the file at an absolute path, every folder and link on the way checked. DS_ACCEL_OK with
 * finding->reason set: refused, and *fd_out is -1. ERR_NO_MEMORY; ERR_LIMIT, no descriptor is left.
 */
int32_t ds_accel__trust_open(struct ds_accel__trust *trust, const char *path, int *fd_out,
                             struct stat *info_out, struct ds_accel__finding *finding);
/* The same checks without opening the file: one fstatat() for one more file of a folder. */
int32_t ds_accel__trust_stat(struct ds_accel__trust *trust, const char *path, struct stat *info_out,
                             struct ds_accel__finding *finding);
/* file_changed if the path no longer leads to the file as it was checked. */
void ds_accel__trust_compare(const char *path, const struct stat *checked,
                             struct ds_accel__finding *finding);
/* SHA-256 of an open file, in lower-case digits; ERR_IO with the cause. */
int32_t ds_accel__trust_hash(int fd, char hex_out[65], const char **cause_out);

/* The folder of the library, also where its objects are in a program (prefix.c); new string. */
char *ds_accel__library_dir(void);

/* A part of a file, copied. */
struct ds_accel__elf_part {
    struct ds_accel__elf_part *next;
    uint64_t offset;
    uint64_t size_bytes;
    unsigned char bytes[];
};

/* What elf.c reads of a plugin's file; every offset is checked against the file's size. */
struct ds_accel__elf {
    int fd;
    struct ds_accel__elf_part *parts;
    bool is_short_of_memory;
    const unsigned char *data; /* the whole file, mapped: only for its dynamic section */
    size_t size_bytes;
    uint16_t other_major; /* a generation that another note has; 0: none */
    uint32_t note_count;  /* notes of our generation; desc holds the first */
    uint32_t note_desc_bytes;
    struct ds_accel_note_desc desc;
    uint32_t hardware_count; /* notes of hardware; the first's text: */
    uint32_t hardware_bytes;
    const char *hardware; /* of the file, until it is closed; NULL: there is no such note */
};

/* Read and check an open file, which stays the caller's: finding->reason is set if it is not a
 * shared object of this machine. */
int32_t ds_accel__elf_open(int fd, struct ds_accel__elf *elf, struct ds_accel__finding *finding);
void ds_accel__elf_close(struct ds_accel__elf *elf);
/* Check the note against what this host knows and the name the file has. */
void ds_accel__elf_check_note(struct ds_accel__elf *elf, const char *name,
                              struct ds_accel__finding *finding);
/* What this host offers; a plugin that requires more is rejected. */
#define DS_ACCEL__HOST_FEATURES \
    (DS_ACCEL_FEATURE_CONFIG | DS_ACCEL_FEATURE_MACHINE | DS_ACCEL_FEATURE_TOPOLOGY | \
     DS_ACCEL_FEATURE_TRACE | DS_ACCEL_FEATURE_DEMAND_ONLY)
/* The lowest required bit this host does not know, or -1. */
int ds_accel__unknown_feature(uint64_t required_features);

/* Facts of the dynamic section, for lint and doctor. */
struct ds_accel__elf_dynamic {
    bool has_bind_now;
    bool has_nodelete;
    bool has_textrel;
    bool has_executable_stack;
    struct ds_accel__text needed;   /* names, one per line */
    struct ds_accel__text run_path; /* where it looks for them: lists of folders, one per line */
    struct ds_accel__text exports;  /* defined global symbols, one per line */
};

void ds_accel__elf_read_dynamic(struct ds_accel__elf *elf, struct ds_accel__elf_dynamic *dynamic);
void ds_accel__elf_dynamic_clear(struct ds_accel__elf_dynamic *dynamic);

/* What the dynamic linker goes by (library.c). */
struct ds_accel__linker {
    const char *root;         /* borrowed */
    const char *library_path; /* LD_LIBRARY_PATH; NULL: unset */
    char *cache;              /* /etc/ld.so.cache; NULL: none */
    size_t cache_bytes;
    bool has_folders; /* false: another machine, without its libraries */
};

/* Map a library, by the name of its file, if it is one of this machine's kind. */
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

/* What the machine shows of a backend's hardware, without waking it (presence.c). */
#define DS_ACCEL__PCI_ADDRESS_SIZE 32

struct ds_accel__pci_device {
    char address[DS_ACCEL__PCI_ADDRESS_SIZE]; /* "0000:01:00.0" */
    char runtime_status[16];                  /* "active", "suspended" ...; "unknown" */
};

struct ds_accel__device_node {
    char path[128]; /* as the machine has it, without the root */
    bool is_other;  /* of other_device_nodes: it stands for those that are not there */
    struct ds_accel__machine_node info;
};

struct ds_accel__presence {
    bool has_pci_facts; /* the configuration says what to look for */
    bool has_node_facts;
    struct ds_accel__pci_device *devices; /* that match, by address */
    uint32_t device_count;
    struct ds_accel__device_node *nodes; /* by path */
    uint32_t node_count;
};

/*
 * What was read of a machine for one backend serves the others: the bus and each folder of nodes is
 * listed once. Zero it and set machine; clear it when the machine may have changed.
 */
struct ds_accel__survey {
    const struct ds_accel__machine *machine; /* borrowed; survives clear() */
    bool has_slots;
    bool is_listed; /* the kernel has one list of the bus; else slots is empty */
    struct ds_accel__survey_slot *slots;
    size_t slot_count;
    bool has_bus;
    struct ds_accel__survey_device *bus; /* by address */
    size_t bus_count;
    struct ds_accel__survey_folder *folders;
    size_t folder_count;
};

#define DS_ACCEL__PCI_BUS "/sys/bus/pci/devices"

/* "drm", for what lies in /dev/dri, or "accel"; NULL: it is in no folder that vendors share. */
const char *ds_accel__node_class(const char *path);
void ds_accel__survey_clear(struct ds_accel__survey *survey);
/*
 * Look for what backend (its object of the configuration, or NULL) names as "pci", "device_nodes"
 * and "other_device_nodes". Without these facts no system call is made. Clear it after success.
 */
int32_t ds_accel__presence_read(struct ds_accel__survey *survey, json_t *backend,
                                struct ds_accel__presence *presence);
void ds_accel__presence_clear(struct ds_accel__presence *presence);
/* True if there are devices and all are suspended. */
bool ds_accel__presence_is_asleep(const struct ds_accel__presence *presence);
/* Another number whenever a node, its owner, mode or use, a device or sleep has changed. */
uint64_t ds_accel__presence_fingerprint(const struct ds_accel__presence *presence);
/* The gate power: "asleep" and the devices, or no reason and those that are awake. */
void ds_accel__presence_check_power(const struct ds_accel__presence *presence,
                                    struct ds_accel__finding *finding);

/* What a plugin's note says of its hardware (hardware.c): lines; finding->reason if one is bad. */
int32_t ds_accel__hardware_check_note(const char *note, struct ds_accel__finding *finding);
struct ds_accel__candidate;
/*
 * The gate hardware, on a candidate that nobody has asked yet: it fails, as a verdict that there is
 * no device, if the machine shows nothing of what the note names. ERR_NO_MEMORY.
 */
int32_t ds_accel__hardware_check(struct ds_accel__candidate *candidate);
/* Does the configuration name all that its note does? The key of its record then tells changes. */
bool ds_accel__hardware_is_configured(const struct ds_accel__candidate *candidate);

typedef struct ds_accel__module ds_accel__module_t; /* an opened .so */

/* ERR_NO_MEMORY, or DS_ACCEL_OK: then *module_out, or NULL and finding says why. */
int32_t ds_accel__module_open(const char *path, ds_accel__module_t **module_out,
                              struct ds_accel__finding *finding);
/*
 * One thread at a time calls any plugin's entry (and copies the table it gave), probe, init and
 * shutdown: DSA-H8. Taken after a context's lock, before libltdl's.
 */
void ds_accel__plugin_lock(void);
void ds_accel__plugin_unlock(void);
/* Call the newest entry both sides have; NULL table if finding says why. Plugin lock held. */
void ds_accel__module_entry(ds_accel__module_t *module, const struct ds_accel_host *host,
                            const struct ds_accel_plugin **table_out,
                            struct ds_accel__finding *finding);
void ds_accel__module_close(ds_accel__module_t *module);
/* Leave it open, in a child that inherited it. */
void ds_accel__module_abandon(ds_accel__module_t *module);

enum ds_accel__gate {
    DS_ACCEL__GATE_NAME,
    DS_ACCEL__GATE_TRUST,
    DS_ACCEL__GATE_ELF,
    DS_ACCEL__GATE_NOTE,
    DS_ACCEL__GATE_HASH,
    DS_ACCEL__GATE_ALLOW,
    DS_ACCEL__GATE_POWER,
    DS_ACCEL__GATE_QUARANTINE,
    DS_ACCEL__GATE_HARDWARE,
    DS_ACCEL__GATE_LOAD,
    DS_ACCEL__GATE_ENTRY,
    DS_ACCEL__GATE_PROBE,
    DS_ACCEL__GATE_CONDUCT,
    DS_ACCEL__GATE_COUNT
};

enum ds_accel__gate_result {
    DS_ACCEL__GATE_SKIPPED, /* not reached, or does not apply */
    DS_ACCEL__GATE_PASSED,
    DS_ACCEL__GATE_FAILED
};

struct ds_accel__candidate;
struct ds_accel__lint_sink;

/* The host table that one candidate's plugin sees. */
struct ds_accel__host {
    struct ds_accel_host abi;
    ds_accel_t *context;
    struct ds_accel__candidate *candidate;
};

/* A text that callers may have borrowed. */
struct ds_accel__detail {
    struct ds_accel__detail *next;
    char text[];
};

struct ds_accel__candidate {
    char name[DS_ACCEL__NAME_SIZE];
    uint64_t name_hash; /* so that hundreds are told apart quickly */
    char *path;         /* "" for a registered one */
    bool is_registered;
    bool is_demand_only;
    bool has_verdict; /* gates up to the probe are done, or one failed */
    bool is_cached;   /* it is of an earlier process */
    bool is_named;    /* somebody asks for it by name: it may be woken, and tried again */
    bool is_forced;   /* and will have no other: quarantine does not hold */
    bool is_ahead;    /* asked before its turn; forgotten if its turn never comes */
    bool has_look;    /* at its hardware, since the asking began */
    bool has_file;
    bool has_table;
    bool has_conduct;       /* it does to its process what the configuration tolerates */
    const json_t *recorded; /* of a recorded machine: what became of it; NULL: it is a file here */
    uint32_t state;         /* DS_ACCEL_STATE_* */
    const char *reason;
    const char *detail; /* one of details */
    struct ds_accel__detail *details;
    const char *stage;
    uint64_t elapsed_us;
    uint64_t hardware;               /* fingerprint of it */
    bool has_hardware;               /* a device or a node that the configuration names */
    uint32_t hardware_count;         /* devices on the bus */
    uint32_t strikes;                /* times that it crashed or hung of late */
    struct ds_accel__finding *power; /* what the gate is to say; NULL without devices */
    struct stat file;                /* as it was checked; with has_file */
    uint64_t key[2];                 /* of its record; with has_file */
    char vendor[64];
    char version[32];
    char abi[16];
    const char *hardware_note; /* lines, one of details; NULL: none */
    uint64_t note_features;    /* required ones */
    uint64_t note_optional;
    uint64_t optional_features; /* of the table */
    struct {
        enum ds_accel__gate_result result;
        const char *evidence; /* NULL: none; one of details */
    } gates[DS_ACCEL__GATE_COUNT];
    struct ds_accel__host host;
    ds_accel__module_t *module;
    struct ds_accel_plugin table; /* complete: absent slots are stubs */
    struct ds_accel_verdict verdict;
    const char *output; /* what it printed while it was probed; one of details, or NULL */
    const struct ds_accel__lint_sink *lint; /* it is checked against the ABI's rules; or NULL */
    ds_accel_plugin_instance_t *instance;   /* of the selected one */
    struct ds_accel__fork_watch watch;      /* while it is started */
    struct ds_accel__stack *layers;         /* while it is started; NULL: none are on */
};

struct ds_accel__registry {
    struct ds_accel__candidate **candidates; /* in detection order */
    size_t count;
};

/*
 * Copy a plugin's table into ours: as much as both know, absent slots as stubs. Reads no byte past
 * the plugin's struct_size. finding says what is wrong with it. DSA-H3, DSA-H4.
 */
void ds_accel__table_import(const struct ds_accel_plugin *theirs, const char *name,
                            struct ds_accel_plugin *ours, struct ds_accel__finding *finding);

struct ds_accel__candidate *ds_accel__registry_find(const struct ds_accel__registry *registry,
                                                    const char *name);
/* Take the candidate; on failure it is destroyed. */
int32_t ds_accel__registry_add(struct ds_accel__registry *registry,
                               struct ds_accel__candidate *candidate);
void ds_accel__registry_clear(struct ds_accel__registry *registry);
struct ds_accel__candidate *ds_accel__candidate_create(ds_accel_t *context, const char *name,
                                                       const char *path);
void ds_accel__candidate_destroy(struct ds_accel__candidate *candidate);
/* Before init: fork() is watched from now on, until it is stopped. */
void ds_accel__candidate_watch(struct ds_accel__candidate *candidate);
/* shutdown (NULL: init gave no instance); nothing in a child of the process that started it. */
void ds_accel__candidate_stop(struct ds_accel__candidate *candidate,
                              ds_accel_plugin_instance_t *instance);
const char *ds_accel__state_name(uint32_t state);
const char *ds_accel__gate_name(enum ds_accel__gate gate);
/* Record that a gate failed: result, evidence, state, reason, detail and stage at once. */
void ds_accel__candidate_fail(struct ds_accel__candidate *candidate, enum ds_accel__gate gate,
                              uint32_t state, const struct ds_accel__finding *finding);
void ds_accel__candidate_pass(struct ds_accel__candidate *candidate, enum ds_accel__gate gate,
                              const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same with a text that lives for ever. */
void ds_accel__candidate_pass_plain(struct ds_accel__candidate *candidate, enum ds_accel__gate gate,
                                    const char *evidence);
/* State, reason and detail outside the gates: selected, deferred, not needed ... */
void ds_accel__candidate_set(struct ds_accel__candidate *candidate, uint32_t state,
                             const char *reason, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* A copy of the text that lives as long as the candidate; NULL: no memory, and the text is lost. */
const char *ds_accel__candidate_keep(struct ds_accel__candidate *candidate, const char *text);
/* Look at its hardware, waking nothing, once while plugins are asked. ERR_NO_MEMORY. */
int32_t ds_accel__candidate_look(struct ds_accel__candidate *candidate);
/* What it printed while it was probed, for explain. */
void ds_accel__candidate_keep_output(struct ds_accel__candidate *candidate, const char *text);
/* By the configuration if it says, else by the features that the plugin asks for. */
void ds_accel__candidate_set_demand(struct ds_accel__candidate *candidate,
                                    uint64_t optional_features);
/* Take a candidate through the gates before load. *passed_out false: one failed. */
int32_t ds_accel__candidate_check_file(struct ds_accel__candidate *candidate, bool *passed_out);
/* Fill the registry from the search path; registered candidates are there already. */
int32_t ds_accel__scan(ds_accel_t *context);
/* Put the candidates in detection order. */
int32_t ds_accel__registry_sort(ds_accel_t *context);

/* ---- layer 3: what is remembered (cache.c, verdict.c) --------------------------------------- */

enum {
    DS_ACCEL__RECORD_NAME,
    DS_ACCEL__RECORD_PATH,
    DS_ACCEL__RECORD_VENDOR,
    DS_ACCEL__RECORD_VERSION,
    DS_ACCEL__RECORD_ABI,
    DS_ACCEL__RECORD_HARDWARE, /* what its note says of it */
    DS_ACCEL__RECORD_REASON,
    DS_ACCEL__RECORD_DETAIL,
    DS_ACCEL__RECORD_OUTPUT,
    DS_ACCEL__RECORD_STRIKE, /* reason of the last one */
    DS_ACCEL__RECORD_STRIKE_DETAIL,
    DS_ACCEL__RECORD_EVIDENCE, /* of each gate */
    DS_ACCEL__RECORD_TEXTS = DS_ACCEL__RECORD_EVIDENCE + DS_ACCEL__GATE_COUNT
};

struct ds_accel__record_data {
    uint64_t key[2];
    uint64_t verdict_ms; /* when it was made, by ds_accel__boot_ms(); 0: there is none */
    uint64_t strike_ms;
    int64_t wall_s; /* for people */
    int64_t strike_wall_s;
    uint64_t elapsed_us;
    uint64_t note_features;
    uint64_t note_optional;
    uint64_t table_optional;
    int64_t vendor_code;
    uint64_t load_ms; /* when the load began that a strike tells of; with strike_is_load */
    uint32_t state;
    uint32_t stage; /* a gate */
    uint32_t strikes;
    uint32_t strike_is_load; /* it ended its caller, not a helper */
    uint32_t device_count;
    uint32_t verdict_state;
    uint32_t verdict_reason;
    uint32_t has_conduct;
    uint32_t gates[DS_ACCEL__GATE_COUNT];
    char variant[32];
};

struct ds_accel__record {
    struct ds_accel__record_data data;
    const char *texts[DS_ACCEL__RECORD_TEXTS]; /* NULL is "" */
};

struct ds_accel__cache_table {
    struct ds_accel__record *records;
    size_t count;
    size_t capacity;
};

struct ds_accel__cache_file {
    struct ds_accel__cache_file *next;
    char *data;
};

struct ds_accel__cache {
    bool is_open; /* only while plugins are asked */
    bool is_writable;
    bool is_dirty;
    bool has_no_folder; /* nobody names one, or it does not exist yet */
    bool is_refused;    /* the folder is there, and not one to use */
    bool is_locked;     /* by us; not if another held the lock for too long */
    bool has_warned;    /* of its file */
    bool is_looked_at;  /* and nothing is remembered: no folder is made */
    bool is_forgetting; /* what is stored next is no more than there was */
    int folder_fd;
    int lock_fd; /* -1: nobody tried to lock */
    char *folder;
    char problem[512]; /* why there is none to use, or none to write to; "" if there is */
    uint64_t machine;
    uint64_t begin_ms; /* when it was opened */
    uint64_t base;     /* verdict.c's */
    struct ds_accel__cache_table table;
    size_t next; /* record to look at first: they are asked for in the order they were made */
    struct ds_accel__cache_file *files; /* whose texts are borrowed */
};

/* Milliseconds since the machine started, sleep included. */
uint64_t ds_accel__boot_ms(void);
/*
 * Records out of a file's bytes, whose texts they borrow. NULL, or what is wrong: "" if it is only
 * of another machine, boot, user or version, ds_accel__cache_no_memory if that is it. Clear the
 * table.
 */
const char *ds_accel__cache_parse(const void *data, size_t size_bytes, uint64_t machine,
                                  struct ds_accel__cache_table *table);
extern const char ds_accel__cache_no_memory[];
#define DS_ACCEL__CACHE_FILE "verdicts"
int32_t ds_accel__cache_format(const struct ds_accel__cache_table *table, uint64_t machine,
                               struct ds_accel__text *text);
void ds_accel__cache_table_clear(struct ds_accel__cache_table *table);
/* Open the folder, not yet its file; is_open tells whether there is one to use. */
int32_t ds_accel__cache_open(const ds_accel_t *context, struct ds_accel__cache *cache);
int32_t ds_accel__cache_read(const ds_accel_t *context, struct ds_accel__cache *cache);
/* Wait until nobody else asks plugins, limit_ms at most, and read again what they found out. */
int32_t ds_accel__cache_lock(const ds_accel_t *context, struct ds_accel__cache *cache,
                             uint64_t limit_ms);
void ds_accel__cache_unlock(struct ds_accel__cache *cache);
int32_t ds_accel__cache_store(const ds_accel_t *context, struct ds_accel__cache *cache);
void ds_accel__cache_close(struct ds_accel__cache *cache);
void ds_accel__cache_clear(struct ds_accel__cache *cache);
/* Take a block that records borrow texts from, until it is closed. */
int32_t ds_accel__cache_keep(struct ds_accel__cache *cache, char *data);
/* The record of a key, borrowed until the next add, lock or close; NULL: none, or for add no
 * memory. */
struct ds_accel__record *ds_accel__cache_find(struct ds_accel__cache *cache, const uint64_t *key);
struct ds_accel__record *ds_accel__cache_add(struct ds_accel__cache *cache, const uint64_t *key);

/*
 * A small file of the folder, outside of the asking; *data_out is NULL if there is none to believe.
 * And one written: beside itself, then renamed. It need not succeed.
 */
int32_t ds_accel__cache_read_file(const ds_accel_t *context, const char *name, size_t limit_bytes,
                                  char **data_out, size_t *size_out);
void ds_accel__cache_write_file(const ds_accel_t *context, struct ds_accel__cache *cache,
                                const char *name, const struct ds_accel__text *text);

/* The merged configuration of the files found, if it is remembered (snapshot.c). ERR_NO_MEMORY. */
int32_t ds_accel__snapshot_take(ds_accel_t *context);
int32_t ds_accel__snapshot_keep(ds_accel_t *context);
void ds_accel__snapshot_forget(const ds_accel_t *context);
/* is_early: without what detection does not ask of a backend. NULL: no memory, or not believable.
 */
json_t *ds_accel__snapshot_parse(const void *data, size_t size_bytes, uint64_t identity,
                                 bool is_early);
bool ds_accel__snapshot_is_early(const char *key);
int32_t ds_accel__snapshot_format(json_t *tree, uint64_t identity, struct ds_accel__text *text);

/* How long a record's verdict still holds; 0: it does not. */
uint64_t ds_accel__record_expires_in_ms(const struct ds_accel__record *record, uint64_t now_ms);
/* How long the plugin is still left alone. */
uint64_t ds_accel__record_quarantined_ms(const struct ds_accel__record *record, uint64_t now_ms);
bool ds_accel__record_is_useful(const struct ds_accel__record *record, uint64_t now_ms);

/* Open and close what is remembered; ERR_NO_MEMORY. Lock held, as for all of these. */
int32_t ds_accel__verdicts_begin(ds_accel_t *context, bool is_isolated);
int32_t ds_accel__verdicts_lock(ds_accel_t *context);
int32_t ds_accel__verdicts_store(ds_accel_t *context);
void ds_accel__verdicts_end(ds_accel_t *context);
/* What the gates trust to hash found, for the file as ds_accel__trust_stat() saw it. */
bool ds_accel__verdict_recall_file(struct ds_accel__candidate *candidate);
/* The verdict, if one still holds; only_good: and is AVAILABLE. */
bool ds_accel__verdict_recall(struct ds_accel__candidate *candidate, bool only_good);
/* Remember a verdict that was just made, or a strike. */
int32_t ds_accel__verdict_keep(struct ds_accel__candidate *candidate);
int32_t ds_accel__verdict_forget(struct ds_accel__candidate *candidate);
/* It was loaded and started in this process: strikes of that kind are forgiven, if they can be. */
void ds_accel__verdict_loaded(struct ds_accel__candidate *candidate);
/* The gate: it is left alone after two strikes, unless it is forced by name. */
int32_t ds_accel__quarantine_check(struct ds_accel__candidate *candidate, bool is_forced,
                                   bool *passed_out);
/* A record's text; "" if it has none. */
const char *ds_accel__record_text(const struct ds_accel__record *record, int text);
/* Back to no strikes. */
void ds_accel__record_forgive(struct ds_accel__record *record);

/* A trail for the next process, in case this one ends while it loads a plugin. */
struct ds_accel__crumb {
    int fd; /* -1: none */
    char name[64];
};

void ds_accel__crumb_drop(struct ds_accel__candidate *candidate, struct ds_accel__crumb *crumb);
void ds_accel__crumb_pick(struct ds_accel__candidate *candidate, struct ds_accel__crumb *crumb);

/* ---- layer 3: frames (frame.c) and process state (guard.c), for probing --------------------- */

enum ds_accel__frame_kind {
    /* From the helper. */
    DS_ACCEL__FRAME_HELLO = 1,   /* text: its version */
    DS_ACCEL__FRAME_STAGE = 2,   /* uint32_t: the gate whose code runs from now on */
    DS_ACCEL__FRAME_LOG = 3,     /* uint32_t: level; text: line */
    DS_ACCEL__FRAME_RESULT = 5,  /* struct ds_accel__probe_result; texts: reason, evidence ... */
    DS_ACCEL__FRAME_CONDUCT = 6, /* texts: reason, detail */
    DS_ACCEL__FRAME_EXIT = 7,    /* the plugin called exit() */
    DS_ACCEL__FRAME_RULE = 8,    /* uint32_t: rule, result; text: detail */
    DS_ACCEL__FRAME_END = 9,     /* the candidate is done */
    DS_ACCEL__FRAME_SIGNAL = 10, /* int32_t: a signal that will end it */
    /* To the helper. */
    DS_ACCEL__FRAME_SETUP = 16, /* struct ds_accel__probe_setup; texts: version, machine root */
    DS_ACCEL__FRAME_ASK = 17    /* struct ds_accel__probe_ask; texts: name, path, options */
};

enum ds_accel__frame_result {
    DS_ACCEL__FRAME_READY,
    DS_ACCEL__FRAME_MORE,    /* not whole yet */
    DS_ACCEL__FRAME_GARBLED, /* not a frame */
    DS_ACCEL__FRAME_FORGED   /* a frame that the other end did not make */
};

#define DS_ACCEL__FRAME_HEAD_BYTES 24u
#define DS_ACCEL__FRAME_LIMIT_BYTES 65536u /* of a payload from the helper */

struct ds_accel__frame {
    uint16_t kind;
    const void *payload; /* borrowed until the next frame_room() */
    uint32_t payload_bytes;
};

/* Takes bytes as they come and gives frames. Zero it, set token and limit_bytes. */
struct ds_accel__frame_reader {
    unsigned char *data;
    size_t size_bytes;
    size_t capacity_bytes;
    size_t at; /* what was taken already */
    uint64_t token;
    uint32_t sequence;
    uint32_t limit_bytes; /* of a payload */
};

/* Where to read to: add what was read to size_bytes. NULL: no memory. */
void *ds_accel__frame_room(struct ds_accel__frame_reader *reader, size_t *room_out);
enum ds_accel__frame_result ds_accel__frame_next(struct ds_accel__frame_reader *reader,
                                                 struct ds_accel__frame *frame_out);
void ds_accel__frame_reader_clear(struct ds_accel__frame_reader *reader);
/* Write a frame's head, DS_ACCEL__FRAME_HEAD_BYTES. Safe in a signal handler. */
void ds_accel__frame_seal(void *head, uint16_t kind, uint32_t sequence, const void *payload,
                          uint32_t payload_bytes, uint64_t token);
/* The struct at a payload's beginning; false if it is shorter. */
bool ds_accel__frame_struct(const struct ds_accel__frame *frame, void *data, size_t size_bytes);
/* The text at a position behind offset, counted from 0; "" if there is none. */
const char *ds_accel__frame_text(const struct ds_accel__frame *frame, size_t offset,
                                 unsigned position);

struct ds_accel__guard {
    bool is_whole; /* more than mask and affinity */
    bool is_alone; /* also what only a process of one thread can look at */
    bool has_affinity;
    bool has_umask;
    int directory_fd; /* -1: none. The working directory, however long its name is. */
    sigset_t mask;
    cpu_set_t affinity[8]; /* 8192 CPUs */
    struct sigaction actions[NSIG];
    struct rlimit limits[RLIM_NLIMITS];
    char directory[1024];
    char locale[256];
    mode_t umask;
    uint64_t environment;
};

typedef void (*ds_accel__conduct_t)(void *user_data, const char *reason, const char *detail);

/* Signal mask and CPU affinity of the thread; is_whole: handlers, directory, locale, umask and
 * limits too. Restore it, or a descriptor stays open. */
void ds_accel__guard_take(struct ds_accel__guard *guard, bool is_whole);
/* All of it, the environment too: for a process where nobody else changes it. */
void ds_accel__guard_take_alone(struct ds_accel__guard *guard);
/* Report each thing that is not as it was. */
void ds_accel__guard_compare(const struct ds_accel__guard *guard, ds_accel__conduct_t report,
                             void *user_data);
/* Put back what was taken, once. */
void ds_accel__guard_restore(struct ds_accel__guard *guard);

/* ---- layer 3: layers between caller and plugin (layer*.c and layer.h, race*.c) -------------- */

struct ds_accel__stack;

/*
 * Put the layers that environment and configuration name over a table that is about to be started.
 * None: nothing is done. ERR_NO_MEMORY. A layer that cannot work is left out with a warning.
 */
int32_t ds_accel__layers_install(struct ds_accel__candidate *candidate);
/* Take them away, after shutdown: leaks are told, the trace is completed. */
void ds_accel__layers_remove(struct ds_accel__candidate *candidate);
/* What is wrong with a list of layers, as DS_ACCEL_LAYERS has it; false: nothing. */
bool ds_accel__layers_problem(const char *list, char *problem, size_t problem_size);
/* Spans of a plugin's own, in the trace if there is one. */
void ds_accel__layers_span_begin(struct ds_accel__candidate *candidate, const char *category,
                                 const char *name);
void ds_accel__layers_span_end(struct ds_accel__candidate *candidate);
/*
 * An allocator gives out a part of an allocation for use on a stream (NULL: by the host), and takes
 * it back. Nothing without layers. From then on the block's bounds are checked; once it is freed,
 * its memory is refused until it is given out again, so whoever poisons it does so before.
 */
void ds_accel__layer_block_alloc(ds_accel_plugin_device_t *device, void *pointer,
                                 uint64_t size_bytes, ds_accel_plugin_stream_t *stream);
void ds_accel__layer_block_free(ds_accel_plugin_device_t *device, void *pointer,
                                ds_accel_plugin_stream_t *stream);

/* ---- layer 3: host table (host.c), probing (probe*.c), choice (detect.c) -------------------- */

void ds_accel__host_fill(struct ds_accel__host *host, ds_accel_t *context,
                         struct ds_accel__candidate *candidate);

/* probe_here.c: in this process. Load the module and take its table; then ask. */
int32_t ds_accel__load_here(struct ds_accel__candidate *candidate);
int32_t ds_accel__probe_here(struct ds_accel__candidate *candidate);

enum ds_accel__rule_result {
    DS_ACCEL__RULE_SKIPPED,
    DS_ACCEL__RULE_PASSED,
    DS_ACCEL__RULE_FAILED
};

typedef void (*ds_accel__rule_t)(void *user_data, uint32_t number, uint32_t result,
                                 const char *detail);

/* Who wants to know what a helper finds out about a plugin, besides its verdict. */
struct ds_accel__lint_sink {
    ds_accel__rule_t judge;
    ds_accel__conduct_t conduct; /* tolerated or not */
    void *user_data;
};

/* probe_lint.c: in this process. The rules that need the plugin's code; ERR_NO_MEMORY. */
int32_t ds_accel__probe_lint(struct ds_accel__candidate *candidate, ds_accel__rule_t judge_rule,
                             void *user_data);

/* probe.c: where the configuration says, by default in a process of its own (probe_serve.c). */

struct ds_accel__probe_setup {
    uint64_t token;
    uint32_t ignores_env;
    uint32_t reserved;
};

struct ds_accel__probe_ask {
    uint64_t note_features;
    uint32_t log_level;
    uint32_t is_lint;
    struct stat file;
};

struct ds_accel__probe_result {
    uint32_t state;
    uint32_t stage;
    uint32_t gates[DS_ACCEL__GATE_COUNT];
    uint32_t reserved;
    uint64_t optional_features;
    struct ds_accel_verdict verdict;
};

/* All of the program ds-accel-probe; its part that runs the conformance suite's checks. */
int ds_accel__probe_main(int argc, char **argv);
int ds_accel__conformance_main(void);
/* In that process: end all that a plugin started. */
void ds_accel__probe_end_tree(void);
/* Where that program is; new string, NULL: no memory. */
char *ds_accel__probe_program(void);

#define DS_ACCEL__PROBE_CHANNEL 3      /* the helper's descriptor for frames */
#define DS_ACCEL__PROBE_EXIT_CLOSED 97 /* its exit code when that one is gone */
#define DS_ACCEL__PROBE_EXIT_FAILED 98 /* and when it cannot go on, through no plugin's fault */

/*
 * Take candidates that passed the gates before load through load, entry and probe, as many at a
 * time as probe.parallel says: fills gates, verdict and state of each, and reorders the array.
 * Those behind one that is available may be left without a verdict if all of them are asked ahead.
 */
int32_t ds_accel__probe_all(ds_accel_t *context, struct ds_accel__candidate **candidates,
                            size_t count);
bool ds_accel__probe_is_isolated(const ds_accel_t *context);
/* How many are asked at a time. */
size_t ds_accel__probe_width(const ds_accel_t *context);
/* End the helper processes; reap them. Split, so that there is time to do something useful. */
void ds_accel__probe_release(ds_accel_t *context);
void ds_accel__probe_finish(ds_accel_t *context);
/* Record in a candidate what it did to its process. True: it is tolerated. */
bool ds_accel__conduct_is_tolerated(const struct ds_accel__candidate *candidate, const char *code);
/* Around whatever evaluates candidates: nothing is kept open or running after it. Lock held. */
int32_t ds_accel__asking_begin(ds_accel_t *context); /* ERR_NO_MEMORY; end it all the same */
void ds_accel__asking_end(ds_accel_t *context);
/* All gates and the probe, once each. ERR_NO_MEMORY, else DS_ACCEL_OK whatever the verdicts. */
int32_t ds_accel__candidates_evaluate(ds_accel_t *context, struct ds_accel__candidate **candidates,
                                      size_t count);
int32_t ds_accel__candidate_evaluate(struct ds_accel__candidate *candidate);
/* The same for one that was asked for by name, which may wake its devices. */
int32_t ds_accel__candidate_evaluate_named(struct ds_accel__candidate *candidate);
/* ds_accel_check() that, even for one name, wakes no device unless may_wake. */
int32_t ds_accel__check(ds_accel_t *context, const char *name, bool may_wake);
/* init and device_count; on failure the candidate's state says why, and the status is negative. */
int32_t ds_accel__candidate_start(struct ds_accel__candidate *candidate,
                                  ds_accel_plugin_instance_t **instance_out, uint32_t *count_out);
/* "cuda" defers "xpu": the candidate that goes first, or NULL. Evaluates what it asks about. */
int32_t ds_accel__deferred_to(ds_accel_t *context, struct ds_accel__candidate *candidate,
                              struct ds_accel__candidate **to_out);
int32_t ds_accel__detect_locked(ds_accel_t *context);

/* ---- layer 4: the context (context.c) ------------------------------------------------------- */

struct ds_accel {
    /* Guards everything below that is not said to be otherwise. log and env never change. */
    pthread_mutex_t lock;
    /* Plugins ask for these two from any thread, also from calls that hold the lock above: config
     * changes only under both locks, topology under its own. */
    pthread_mutex_t config_lock;
    pthread_mutex_t topology_lock;
    struct ds_accel__log log;
    struct ds_accel__env env;
    char *forced;       /* options.accelerator */
    char *machine_root; /* never NULL */
    char *cache_dir;    /* from the options; NULL: by environment and user */
    pid_t asker;        /* in a helper: the program that it works for; 0: this one */
    bool asks_anew;     /* verdicts of earlier processes do not count: explain, list, doctor */
    bool has_no_cache;  /* by option */
    struct ds_accel__cache cache;
    char **plugin_dirs; /* from the options */
    size_t plugin_dir_count;
    struct ds_accel__config config;
    struct ds_accel__registry registry;
    struct ds_accel__text searched;   /* folders scanned, one per line */
    json_t *recording;                /* a recorded machine; NULL: there is one below the root */
    struct ds_accel__machine machine; /* of machine_root */
    struct ds_accel__survey survey;   /* of it; empty between calls */
    struct ds_accel__trust *trust;    /* empty between calls: no folder stays open */
    bool has_topology;
    struct ds_accel__topology topology;
    /* Written once, with release order; read without the lock. */
    struct ds_accel__candidate *selected;
    const char *set_method;
    size_t probe_width;                     /* how many are asked at a time */
    size_t turn;                            /* of the candidate that is being asked */
    void (*meanwhile)(ds_accel_t *context); /* done while a helper works; NULL: nothing */
    struct ds_accel__prober *prober; /* helper processes while candidates are asked; probe.c */
    void (*on_stage)(ds_accel_t *context,
                     enum ds_accel__gate gate); /* in a helper: code runs now */
    uint32_t device_count;                      /* of the selected one */
    uint64_t id;                                /* unique in the process */
    /* Guards opening and closing: devices[device_count], NULL while closed; NULL before the first
     * opening. */
    pthread_mutex_t device_lock;
    struct ds_accel__device **devices;
    char failure[1024];            /* why the last detection failed, or "" */
    bool has_failed;               /* the last detection did */
    struct ds_accel__known *known; /* facts; written once, read without the lock */
    /* Guarded by its own lock: calls that wait for the accelerator. */
    struct {
        pthread_mutex_t lock;
        struct ds_accel__lazy *first;
        struct ds_accel__lazy **last; /* NULL: there is none */
        bool is_running;              /* a thread makes them */
        bool is_over;                 /* there will be no more */
    } lazy;
    char settings[2][32];  /* by enum ds_accel__setting, under lock; "": as the facts are */
    int64_t storage_count; /* holds the context too; -1 once it is destroyed as well; atomic */
    bool has_default_seed; /* of default generators that are made later; under device_lock */
    uint64_t default_seed;
};

/* A context without configuration and plugins, for the helper process; NULL: no memory. */
ds_accel_t *ds_accel__context_bare(const char *machine_root, bool ignores_env);
/* Options as this library knows them, from a caller of any age; ERR_INVALID. */
int32_t ds_accel__options_read(const struct ds_accel_options *given,
                               struct ds_accel_options *options);
/* Its machine, for who does not hold the lock: the recorder, which comes and goes, is not there. */
struct ds_accel__machine ds_accel__context_machine(const ds_accel_t *context);
/* The nodes of the context's machine, read once. Borrowed. */
int32_t ds_accel__context_topology(ds_accel_t *context,
                                   const struct ds_accel__topology **topology_out);
/* Have the files read whose values were remembered, for who asks where one comes from. Lock held.
 */
int32_t ds_accel__context_load_origins(ds_accel_t *context);
/* Warn through log of each DS_ACCEL_* that nobody knows. */
int32_t ds_accel__context_check_variables(const ds_accel_t *context,
                                          const struct ds_accel__log *log);
/* Read the op builders' files. Lock held. */
int32_t ds_accel__context_load_ops(ds_accel_t *context);
/* A variable of the job's environment, as the machine has it; NULL if unset. */
const char *ds_accel__context_variable(const ds_accel_t *context, const char *name);
/* A backend's fact as the operator set it (above the package layer), else NULL. Lock held. */
json_t *ds_accel__operator_fact(ds_accel_t *context, const char *backend, const char *key);

enum ds_accel__setting {
    DS_ACCEL__SETTING_COMMUNICATION,
    DS_ACCEL__SETTING_COMPILE,
    DS_ACCEL__SETTING_COUNT
};

/* What the program set in place of a fact of a backend; NULL: nothing. Lock held. */
const char *ds_accel__setting(const ds_accel_t *context, const char *backend, const char *key);

/* ---- layer 5: handles (handle.c), devices, streams, events, graphs, memory ------------------ */

enum ds_accel__handle_kind {
    DS_ACCEL__HANDLE_DEVICE,
    DS_ACCEL__HANDLE_STREAM,
    DS_ACCEL__HANDLE_EVENT,
    DS_ACCEL__HANDLE_GRAPH,
    DS_ACCEL__HANDLE_POOL,
    DS_ACCEL__HANDLE_TIMER,
    DS_ACCEL__HANDLE_RNG,
    DS_ACCEL__HANDLE_TENSOR,
    DS_ACCEL__HANDLE_COUNT
};

struct ds_accel__device;

/* What we know of any handle; stands behind the part that ds_accel.h shows. */
struct ds_accel__child {
    uint64_t id;                     /* unique in the process, never reused; 0: destroyed */
    struct ds_accel__device *device; /* whose it is; NULL for a device */
    struct ds_accel__child *next;    /* of the device's, under its lock */
    struct ds_accel__child *previous;
    enum ds_accel__handle_kind kind;
    bool is_listed; /* it is among the device's children */
};

struct ds_accel__stream {
    struct ds_accel_stream abi;
    struct ds_accel__child child;
    bool is_borrowed; /* the device's default one, or the vendor's current: not ours to destroy */
    struct ds_accel__arena *arena; /* its memory; NULL until its first allocation; atomic */
};

struct ds_accel__event {
    struct ds_accel_event abi;
    struct ds_accel__child child;
};

/* A pool's table is only there to tell whether it was destroyed. */
struct ds_accel__pool {
    const struct ds_accel_plugin *table;
    struct ds_accel__child child;
    struct ds_accel__private *memory; /* the allocator's part */
};

struct ds_accel__graph {
    const struct ds_accel_plugin *table;
    ds_accel_plugin_graph_t
        *captured; /* NULL: nothing yet, or the runtime has one object for both */
    ds_accel_plugin_graph_exec_t *exec; /* NULL: not instantiated */
    struct ds_accel__child child;
    struct ds_accel__stream *capturing; /* the stream while it is being captured */
    uint64_t capturing_id;              /* which it still is if it was not destroyed */
    struct ds_accel__private *memory;   /* what the capture allocated from; NULL: nothing was */
    ds_accel_plugin_event_t *replayed; /* the end of the latest replay on another stream, or NULL */
    bool is_replaying;                 /* that is recorded, and nobody has waited for it */
    pthread_mutex_t lock;              /* guards all above but table and child */
};

/* A timer's table is only there to tell whether it was destroyed. */
struct ds_accel__timer {
    const struct ds_accel_plugin *table;
    struct ds_accel__child child;
    ds_accel_event_t *start; /* NULL: by the host's clock */
    ds_accel_event_t *end;
    uint64_t start_ns;
    uint64_t end_ns;
    uint32_t state;
};

/* A block of memory that a generator copies numbers to the device from. */
struct ds_accel__staging {
    void *memory;            /* NULL: not yet allocated */
    bool is_pinned;          /* else the device has no pinned memory, and it is the heap's */
    ds_accel_event_t *event; /* reached when the last copy from it is done; NULL: none is waiting */
};

struct ds_accel__rng {
    const struct ds_accel_plugin *table;
    struct ds_accel__child child;
    uint32_t flags;       /* DS_ACCEL_RNG_* */
    pthread_mutex_t lock; /* guards what follows */
    uint64_t seed;
    uint64_t subsequence;
    uint64_t block;
    uint32_t word;
    struct ds_accel__staging staging[2];
    uint32_t turn; /* whose it is */
};

/* What tensors share. */
struct ds_accel__storage {
    uint64_t reference_count;
    void *base; /* NULL: no element */
    uint64_t size_bytes;
    struct ds_accel__device *device; /* held open; NULL: host memory */
    uint32_t place;                  /* DS_ACCEL_PLACE_* */
    uint32_t flags;                  /* DS_ACCEL_TENSOR_READ_ONLY, COPIED */
    bool is_host_accessible;
    bool is_foreign; /* the deleter releases it; else we do, by place */
    void (*deleter)(void *user_data);
    void *user_data;
};

struct ds_accel__tensor {
    const struct ds_accel_plugin *table;
    struct ds_accel__child child;
    uint32_t reference_count;
    uint32_t dtype;
    uint32_t ndim;
    struct ds_accel__storage *storage;
    uint64_t offset_bytes; /* of the first element in the storage */
    uint64_t element_count;
    int64_t shape[DS_ACCEL_TENSOR_DIMS_MAX];
    int64_t strides[DS_ACCEL_TENSOR_DIMS_MAX];
};

struct ds_accel__device {
    struct ds_accel_device abi;
    struct ds_accel__child child;
    ds_accel_t *context;
    struct ds_accel__candidate *candidate;
    uint32_t index;
    uint32_t open_count;    /* under the context's device_lock */
    bool has_reference;     /* one of them is the context's own: ds_accel_device_get() */
    uint8_t host_access;    /* the host can write its memory: 1 yes, 2 no, 0 not asked; atomic */
    uint64_t storage_count; /* tensors' memory that holds it open too; under device_lock */
    struct ds_accel__stream
        *default_stream;               /* NULL until somebody wants it; read and set as an atomic */
    struct ds_accel__rng *default_rng; /* set under device_lock; NULL: nobody has asked; atomic */
    struct ds_accel__allocator *allocator; /* NULL until the first allocation; atomic */
    /* Guards the children: made at the first opening, kept while the memory is. */
    pthread_mutex_t lock;
    struct ds_accel__child *children;
    struct ds_accel__pinned *pinned; /* made by its first use, under lock; NULL: none */
};

/* Zeroed, with kind, device and id; the table is the caller's to set. NULL: no memory. The memory
 * of a destroyed handle stays a handle, whose table answers for it. */
void *ds_accel__handle_take(enum ds_accel__handle_kind kind, struct ds_accel__device *device);
void ds_accel__handle_put(enum ds_accel__handle_kind kind, void *handle);
/* Neither NULL nor destroyed. */
bool ds_accel__handle_is_live(const void *handle);
void *ds_accel__child_handle(const struct ds_accel__child *child);
/* Into the list of what the device's closing destroys, and out of it. False: it was out already,
 * so that somebody else destroys it. */
void ds_accel__child_add(struct ds_accel__child *child);
bool ds_accel__child_remove(struct ds_accel__child *child);
/* The device's newest of a kind, or NULL. */
struct ds_accel__child *ds_accel__child_first(struct ds_accel__device *device,
                                              enum ds_accel__handle_kind kind);

/* The private part of a handle, or NULL with the error said. call: "mem_alloc". */
struct ds_accel__device *ds_accel__device_check(ds_accel_device_t *device, const char *call);
struct ds_accel__stream *ds_accel__stream_check(ds_accel_stream_t *stream, const char *call);
/* The same, of this device; NULL is the calling thread's current stream. */
struct ds_accel__stream *ds_accel__stream_of(struct ds_accel__device *device,
                                             ds_accel_stream_t *stream, const char *call);
/* Until its work is done; the device's, where there are no streams. */
int32_t ds_accel__stream_wait(struct ds_accel__stream *stream);
/* Captures, or its capture is broken. */
int32_t ds_accel__stream_is_capturing(struct ds_accel__stream *stream, bool *is_capturing_out);
/* The accelerator was started by a process that this one is a child of: say so. */
int32_t ds_accel__device_fork_check(const struct ds_accel__device *device);
/* Host code may touch the device's memory. */
bool ds_accel__device_is_host_accessible(struct ds_accel__device *device);
/* What the runtime says of an address; false: nothing. */
bool ds_accel__device_pointer_info(struct ds_accel__device *device, const void *pointer,
                                   struct ds_accel_pointer_info *info_out);
/* Keep the device open, and its context there. */
void ds_accel__device_hold(struct ds_accel__device *device);
void ds_accel__device_release(struct ds_accel__device *device);
/* Close what the context itself holds open. */
void ds_accel__devices_close(ds_accel_t *context);
void ds_accel__stream_destroy(struct ds_accel__stream *stream);
void ds_accel__event_destroy(struct ds_accel__event *event);
void ds_accel__graph_destroy(struct ds_accel__graph *graph);
/* End the stream's capture; nobody gets the graph. */
void ds_accel__graph_cancel(struct ds_accel__stream *stream);
void ds_accel__timer_destroy(struct ds_accel__timer *timer);

/* ---- layer 5: pinned memory (pinned.c) ------------------------------------------------------ */

enum ds_accel__pinned_place {
    DS_ACCEL__PINNED_FOREIGN, /* of no pool */
    DS_ACCEL__PINNED_LIVE,
    DS_ACCEL__PINNED_FREE /* kept for later */
};

/* Another stream uses memory of the pool. ERR_NOT_FOUND, with no error said: it is not the pool's.
 */
int32_t ds_accel__pinned_record(struct ds_accel__device *device, const void *pointer,
                                struct ds_accel__stream *stream);
/* Whether an address is a pool's, by the base of its allocation, or by itself if that is NULL. */
enum ds_accel__pinned_place ds_accel__pinned_find(ds_accel_t *context, const void *base,
                                                  const void *address);
/* Give all of it back to the runtime, what is still in use too. */
void ds_accel__pinned_close(struct ds_accel__device *device);

/* ---- layer 5: random numbers (philox.c, rng.c, rng_fill.c) ---------------------------------- */

enum ds_accel__numbers_kind {
    DS_ACCEL__NUMBERS_BITS,
    DS_ACCEL__NUMBERS_UNIFORM,
    DS_ACCEL__NUMBERS_NORMAL
};

/* What numbers are made of; philox.c says how. Seed, place, kind and dtype are the caller's. */
struct ds_accel__numbers {
    uint64_t seed;
    uint64_t subsequence;
    uint64_t block;
    uint32_t word; /* of the block; 4: the subsequence is used up */
    uint32_t dtype;
    enum ds_accel__numbers_kind kind;
    size_t element_bytes;
    double base; /* + scale * a number of the standard distribution, then kept within bounds */
    double scale;
    double least;
    double most;
};

/* Fill in the rest. first, second: low and high, or mean and standard deviation. ERR_INVALID. */
int32_t ds_accel__numbers_prepare(struct ds_accel__numbers *numbers, double first, double second,
                                  const char *call);
/* Move to the first place that count elements can begin at; *end_out: the place behind them.
 * ERR_LIMIT: the subsequence has no such place. */
int32_t ds_accel__numbers_place(struct ds_accel__numbers *numbers, uint64_t count,
                                struct ds_accel__numbers *end_out);
/* Elements [first, first + count) of those that begin at the place. */
void ds_accel__numbers_make(const struct ds_accel__numbers *numbers, uint64_t first, uint64_t count,
                            void *out);
void ds_accel__rng_destroy(struct ds_accel__rng *rng);
/* NULL with the error said: it is NULL, destroyed, or of a process that this is a child of. */
struct ds_accel__rng *ds_accel__rng_check(ds_accel_rng_t *rng, const char *call);
/* The status that goes with that NULL. */
int32_t ds_accel__rng_refused(const ds_accel_rng_t *rng);

/* ---- layer 5: tensors (tensor.c, tensor_copy.c, dlpack.c) ----------------------------------- */

/* Bytes of an element; 0: no such dtype. */
uint64_t ds_accel__dtype_bytes(uint32_t dtype);
/* Neither NULL nor gone, or NULL with the error said. */
struct ds_accel__tensor *ds_accel__tensor_check(const ds_accel_tensor_t *tensor, const char *call);
bool ds_accel__tensor_is_contiguous(const struct ds_accel__tensor *tensor);
void *ds_accel__tensor_data(const struct ds_accel__tensor *tensor);
/* First byte of the elements and first byte behind them, relative to the first element. False: the
 * numbers are too large. */
bool ds_accel__tensor_extent(const struct ds_accel__tensor *tensor, int64_t *low_out,
                             int64_t *high_out);
/* A contiguous tensor in the place, on the device (HOST: NULL), for use in the stream's order
 * (NULL: the current one), aligned as pinned memory is. */
int32_t ds_accel__tensor_create(uint32_t place, struct ds_accel__device *device,
                                ds_accel_stream_t *stream, uint32_t dtype, uint32_t ndim,
                                const int64_t *shape, uint64_t align_bytes,
                                struct ds_accel__tensor **tensor_out);
/* The same with the elements of another. */
int32_t ds_accel__tensor_copy_to(struct ds_accel__tensor *tensor, uint32_t place,
                                 struct ds_accel__device *device, uint64_t align_bytes,
                                 ds_accel_stream_t *stream, ds_accel_tensor_t **tensor_out);
/* Of foreign memory, whose place is known. The device is held open by the tensor. */
int32_t ds_accel__tensor_wrap(const struct ds_accel_tensor_memory *memory, uint32_t place,
                              struct ds_accel__device *device,
                              struct ds_accel__tensor **tensor_out);
/* End a context that nothing holds (context.c). */
void ds_accel__context_end(ds_accel_t *context);
void ds_accel__pool_destroy(struct ds_accel__pool *pool);

/* ---- layer 5: the caching allocator (allocator*.c, memory_stats.c) -------------------------- */

enum ds_accel__allocator_mode {
    DS_ACCEL__ALLOCATOR_CACHING,
    DS_ACCEL__ALLOCATOR_OFF,
    DS_ACCEL__ALLOCATOR_DEBUG
};

#define DS_ACCEL__HISTORY_ON 1u
#define DS_ACCEL__HISTORY_STACKS 2u

/* Settings; bytes. ds_accel__allocator_defaults() fills them. */
struct ds_accel__allocator_options {
    enum ds_accel__allocator_mode mode;
    uint32_t roundup_power2_divisions; /* 0: sizes are rounded to 512 bytes only */
    uint64_t small_limit_bytes;        /* requests up to it come from small segments */
    uint64_t small_segment_bytes;
    uint64_t medium_limit_bytes; /* requests below it come from segments of one size */
    uint64_t medium_segment_bytes;
    uint64_t large_step_bytes; /* others from one of their own, rounded to this */
    uint64_t max_split_bytes;  /* blocks from it on are never split; 0: all are */
    double gc_threshold;       /* of the limit, from where on idle segments go; 0: never */
    bool growable_segments;
    uint64_t limit_bytes;      /* of reserved memory; 0: none */
    double fraction;           /* the same as a part of the device's memory; 0: none */
    uint32_t history_flags;    /* DS_ACCEL__HISTORY_* */
    uint64_t history_entries;  /* at most */
    uint64_t quarantine_bytes; /* debug: kept from being used again */
};

void ds_accel__allocator_defaults(struct ds_accel__allocator_options *options);
/* Over what is there: "debug", "growable_segments=true,limit_bytes=8GiB". ERR_CONFIG. */
int32_t ds_accel__allocator_parse_options(const char *text,
                                          struct ds_accel__allocator_options *options);
const char *ds_accel__allocator_mode_name(enum ds_accel__allocator_mode mode);
/* As the configuration and the environment say. ERR_CONFIG: the variable can't be read. */
int32_t ds_accel__allocator_read_options(ds_accel_t *context,
                                         struct ds_accel__allocator_options *options);

/*
 * An allocator over a backend's raw calls; nothing else of the library is needed, so that one can
 * run over a table that only pretends. Streams are known by their arenas.
 */
struct ds_accel__allocator;
struct ds_accel__arena;
struct ds_accel__private;
int32_t ds_accel__allocator_create(const struct ds_accel_plugin *table,
                                   ds_accel_plugin_device_t *device,
                                   const struct ds_accel__allocator_options *options,
                                   struct ds_accel__allocator **allocator_out);
/* The public handle that callbacks get, and the number that texts have. */
void ds_accel__allocator_attach(struct ds_accel__allocator *allocator, ds_accel_device_t *handle,
                                uint32_t device_index);
/* Memory that is still allocated goes too: how many blocks. NULL is ignored. */
uint64_t ds_accel__allocator_destroy(struct ds_accel__allocator *allocator);
/* A stream's arena, for ds_accel__allocator_stream_gone() to end. NULL: no memory. */
struct ds_accel__arena *ds_accel__allocator_arena(struct ds_accel__allocator *allocator,
                                                  ds_accel_plugin_stream_t *stream);
int32_t ds_accel__allocator_alloc(struct ds_accel__arena *arena, uint64_t size_bytes,
                                  uint64_t align_bytes, void **pointer_out);
/* ERR_NOT_FOUND: nothing of this allocator's is there; ERR_INVALID: not a live block's start.
 * freeing: NULL: the stream that it was allocated on. */
int32_t ds_accel__allocator_free(struct ds_accel__allocator *allocator,
                                 struct ds_accel__arena *freeing, void *pointer);
/* A live block of its begins there. */
bool ds_accel__allocator_owns(struct ds_accel__allocator *allocator, const void *pointer);
int32_t ds_accel__allocator_record(struct ds_accel__allocator *allocator, void *pointer,
                                   struct ds_accel__arena *arena);
/* The stream is about to be destroyed. */
void ds_accel__allocator_stream_gone(struct ds_accel__arena *arena);
/* Private pools: a reference for who makes it. NULL: no memory. */
struct ds_accel__private *ds_accel__private_create(struct ds_accel__allocator *allocator);
void ds_accel__private_get(struct ds_accel__allocator *allocator, struct ds_accel__private *pool);
/* The last one opens its memory for everybody. NULL is ignored. */
void ds_accel__private_put(struct ds_accel__allocator *allocator, struct ds_accel__private *pool);
/* This thread's allocations come from it, until it is ended. ERR_STATE: from another already, or
 * not from it. */
int32_t ds_accel__private_use(struct ds_accel__allocator *allocator, struct ds_accel__private *pool,
                              bool is_begun);
/* The stream captures from now on, with memory of the pool; and has ended it. False: it captures
 * already. */
bool ds_accel__allocator_capture_begin(struct ds_accel__arena *arena,
                                       struct ds_accel__private *pool);
bool ds_accel__allocator_is_capturing(struct ds_accel__arena *arena);
void ds_accel__allocator_capture_end(struct ds_accel__arena *arena);
/* flags: DS_ACCEL__HISTORY_*; 0 forgets what was kept. */
int32_t ds_accel__allocator_record_history(struct ds_accel__allocator *allocator, uint32_t flags,
                                           uint64_t max_entries);
/* Snapshot: add segments, trace and statistics to a tree's arrays. ERR_NO_MEMORY. */
int32_t ds_accel__allocator_snapshot(struct ds_accel__allocator *allocator, json_t *segments,
                                     json_t *traces, json_t *stats);
/* Its statistics as one flat object, and its settings; NULL: no memory. */
json_t *ds_accel__allocator_stats_tree(struct ds_accel__allocator *allocator);
json_t *ds_accel__allocator_settings(const struct ds_accel__allocator *allocator);
/* Every statistic in turn, until visit says no. */
typedef bool (*ds_accel__stat_visit_t)(void *user_data, const char *key, int64_t value);
void ds_accel__allocator_visit_stats(struct ds_accel__allocator *allocator,
                                     ds_accel__stat_visit_t visit, void *user_data);
/* which: DS_ACCEL_PEAK_* */
void ds_accel__allocator_reset_peaks(struct ds_accel__allocator *allocator, uint32_t which);
/* Give cached memory back until at most keep_bytes are reserved. ERR_INVALID: debug found memory
 * that was written after it was freed. */
int32_t ds_accel__allocator_trim(struct ds_accel__allocator *allocator, uint64_t keep_bytes);
/* Cached memory, and the largest piece of it. */
void ds_accel__allocator_free_space(struct ds_accel__allocator *allocator, uint64_t *free_bytes_out,
                                    uint64_t *largest_bytes_out);
/* The live block that an address lies in: its start and the size that was asked for. */
bool ds_accel__allocator_find(struct ds_accel__allocator *allocator, const void *pointer,
                              uint64_t *address_out, uint64_t *size_bytes_out);
/* Of what the device has, and what the cache could give back, within the limit. */
uint64_t ds_accel__allocator_available(struct ds_accel__allocator *allocator,
                                       uint64_t device_bytes);
void ds_accel__allocator_set_limit(struct ds_accel__allocator *allocator, uint64_t limit_bytes);
void ds_accel__allocator_set_callback(struct ds_accel__allocator *allocator,
                                      ds_accel_memory_failure_t callback, void *user_data);
/* Walk and verify all blocks of all arenas: "" or what is wrong. For tests. */
void ds_accel__allocator_verify(struct ds_accel__allocator *allocator, char *problem,
                                size_t problem_size);

/* memory.c: a device's allocator, a stream's arena; made when they are first needed. */
int32_t ds_accel__device_allocator(struct ds_accel__device *device,
                                   struct ds_accel__allocator **allocator_out);
int32_t ds_accel__stream_arena(struct ds_accel__stream *stream, struct ds_accel__arena **arena_out);

/* memory_stats.c: a snapshot of one device's memory, or of all that are open (NULL), as a tree. */
int32_t ds_accel__memory_snapshot_tree(ds_accel_t *context, struct ds_accel__device *device,
                                       json_t **tree_out);

/* ---- layer 6: reports (report*.c, lint.c, doctor.c) ----------------------------------------- */

/* A JSON text from anywhere: NULL is "", bytes that are not UTF-8 become '?'. */
json_t *ds_accel__json_text(const char *text);
/* Set a member, taking value; a NULL value makes *failed true. */
void ds_accel__json_set(json_t *object, const char *key, json_t *value, bool *failed);
/* What is known of a backend from its plugin's instance and the configuration. */
struct ds_accel__facts {
    ds_accel_t *context;
    const char *name;
    const struct ds_accel__candidate *candidate; /* NULL: no plugin */
    ds_accel_plugin_instance_t *instance;        /* NULL: not available */
    struct ds_accel_backend_info info;
};

/* A fact by the program's setting, else by the operator's configuration, else by the plugin, else
 * by the package; never NULL but for exhausted memory. plugin_value is taken. Lock held. */
json_t *ds_accel__fact(const struct ds_accel__facts *facts, const char *key, json_t *plugin_value);
void ds_accel__facts_read(struct ds_accel__facts *facts, ds_accel_t *context, const char *name,
                          const struct ds_accel__candidate *candidate,
                          ds_accel_plugin_instance_t *instance);
/* The members of the info report that no device's state changes. Lock held. */
void ds_accel__facts_set(json_t *tree, const struct ds_accel__facts *facts, bool *failed);
/*
 * Evaluate a backend by name (NULL: the chosen one), start it if it is not, lend make_tree what it
 * asks, and stop it again. ERR_NOT_FOUND: nobody knows the name. Lock held.
 */
int32_t ds_accel__with_facts(ds_accel_t *context, const char *name,
                             json_t *(*make_tree)(const struct ds_accel__facts *facts,
                                                  uint32_t count),
                             json_t **tree_out);
int32_t ds_accel__report_info(ds_accel_t *context, const char *name, json_t **tree_out);
/* names: separated by commas; NULL: of all that can be used. Every plugin was asked before then. */
int32_t ds_accel__report_topo(ds_accel_t *context, const char *names, json_t **tree_out);
int32_t ds_accel__report_recording(ds_accel_t *context, json_t **tree_out); /* no lock held */
/* Take out what tells who and where this is; *tree is NULL without memory (report_bundle.c). */
int32_t ds_accel__redact(const ds_accel_t *context, json_t **tree);
json_t *ds_accel__who_tree(void); /* names of this host and user, for recordings; NULL: no memory */
json_t *ds_accel__machine_tree(const ds_accel_t *context); /* NULL: no memory */
void ds_accel__topo_write(struct ds_accel__text *out, json_t *tree, bool has_colour);
int32_t ds_accel__topo_svg(json_t *tree, struct ds_accel__text *out);

int32_t ds_accel__report_memory(ds_accel_t *context, const char *name, json_t **tree_out);
int32_t ds_accel__report_env(ds_accel_t *context, const char *name, json_t **tree_out);
int32_t ds_accel__report_cache(ds_accel_t *context, json_t **tree_out);
int32_t ds_accel__report_quarantine(ds_accel_t *context, json_t **tree_out);
/* What stands in the way of the accelerators here. Every plugin was asked before. Lock held. */
int32_t ds_accel__report_doctor(ds_accel_t *context, json_t **tree_out);
/* Text from the tree that the JSON is dumped from: one source for both. NULL: no memory. */
char *ds_accel__report_text(uint32_t report, json_t *tree, uint32_t format);
#define DS_ACCEL__REPORT_CONFIG_CHECK 100u
#define DS_ACCEL__REPORT_LINT 101u
#define DS_ACCEL__REPORT_CONFORMANCE 102u
/* Dump a tree, which is taken, as JSON or text. */
int32_t ds_accel__report_write(uint32_t report, json_t *tree, uint32_t format, char **text_out);

/* ---- layer 7: facts for programs (facts.c), settings (settings.c), the rest (lazy.c, timer.c,
 * job.c, share.c) */

/* What was found out of the chosen accelerator, once and for all. */
struct ds_accel__known {
    struct ds_accel_backend_info info; /* the operator's word merged in */
    uint64_t capabilities;
    json_t *tree; /* of ds_accel__facts_set(); only read */
    char op_builder_dir[64];
};

/* The chosen accelerator's facts, or NULL with the error said. out is what the caller will write.
 */
const struct ds_accel__known *ds_accel__known_get(ds_accel_t *context, const void *out,
                                                  int32_t *status_out);
void ds_accel__known_clear(ds_accel_t *context);
/* The name as it fits; ERR_INVALID if it does not. call: "compile_backend". */
int32_t ds_accel__name_write(const char *text, char *name, size_t name_size, const char *call);
/* Make the calls that wait, if the accelerator is started; no lock held. */
void ds_accel__lazy_run(ds_accel_t *context);
/* The context goes: tell those that wait. */
void ds_accel__lazy_drop(ds_accel_t *context);

#endif
