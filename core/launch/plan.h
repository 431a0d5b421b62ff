/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The plan of a job: hosts, ranks, and each rank's environment, program and place (plan.c). It is
 * made from options, texts and facts alone; plan_json.c writes it, start.c starts it.
 */
#ifndef DS_ACCEL_LAUNCH_PLAN_H
#define DS_ACCEL_LAUNCH_PLAN_H

#include "launch/bind.h"
#include "launch/hosts.h"
#include "launch/options.h"

#include <jansson.h>

struct ds_accel__cpus;
struct ds_accel__text;
struct ds_accel__topology;

/* A variable of the environment. */
struct ds_accel__job_variable {
    const char *name;
    const char *value; /* NULL: the variable is removed */
};

#define DS_ACCEL__ENV_FILE_LIMIT 2u

/* A file with variables for other hosts (exports.c). */
struct ds_accel__env_file {
    char *path;
    char *text;
    size_t size_bytes;
    const char *cause; /* why it could not be read; NULL: it was read */
};

#define DS_ACCEL__VISIBLE_LIMIT 2u /* variables for visible devices that are set */

/* What is known of a device of this machine. */
struct ds_accel__device_fact {
    char uuid[64];        /* "": unknown */
    char pci_address[32]; /* "": unknown */
    int32_t node;         /* NUMA node; -1: unknown */
    /* What selects the device in the variable visible_names[i]; NULL: the plugin does not say */
    const char *visible[DS_ACCEL__VISIBLE_LIMIT];
};

/* What the plan needs to know of this machine and of the accelerator. Borrowed during the call. */
struct ds_accel__launch_facts {
    const char *accelerator;
    const char *const *visible_names; /* variables that choose devices; the first is DeepSpeed's */
    uint32_t visible_count;
    const char *visible_value;          /* of the first of them in the environment; NULL: unset */
    const char *visible_name;           /* the name of that one; "": none */
    bool is_visible_read;               /* the vendor's runtime reads it */
    const char *const *export_prefixes; /* variables that other hosts get */
    uint32_t export_count;
    const struct ds_accel__env_file *env_files; /* [env_file_count]: the later wins */
    uint32_t env_file_count;
    /* [device_count]: the devices in visible_value's order if ds_accel__launch_uses_visible() is
     * true, otherwise all devices of this machine */
    const struct ds_accel__device_fact *devices;
    uint32_t device_count;
    const struct ds_accel__job_variable
        *settings; /* work-arounds and the decision, for every rank */
    uint32_t setting_count;
    const char *const *environment; /* "NAME=VALUE", ends with NULL: the job's */
    const char *directory;          /* the working directory */
    const char *python;             /* the interpreter of Python programs */
    bool (*is_local)(void *user_data, const char *host); /* is this the name of this machine? */
    /* Returns true if the file exists. *is_executable_out: it can be executed, and is no Python
     * script. */
    bool (*find_file)(void *user_data, const char *path, bool *is_executable_out);
    void *user_data;
    const struct ds_accel__cpus *cpus; /* NULL, as the next one: ranks are not bound */
    const struct ds_accel__topology *topology;
};

struct ds_accel__rank {
    uint32_t rank, local_rank;
    uint32_t host;                               /* position in hosts */
    const struct ds_accel__placement *placement; /* NULL: the rank is on another host */
};

struct ds_accel__plan {
    const struct ds_accel__launch_options *options; /* borrowed */
    struct ds_accel__hosts hosts;
    struct ds_accel__rank *ranks; /* [world_size], by host, then by slot */
    uint32_t world_size;
    uint32_t local_host;  /* position of this machine in hosts; UINT32_MAX: not among them */
    uint32_t local_first; /* this machine's first rank; the others follow it */
    uint32_t local_count;
    struct ds_accel__placement *placements; /* [local_count] */
    char *accelerator;
    char *master_addr;
    uint16_t port_low, port_high; /* the master's port, or the range to choose it from */
    char **arguments;             /* the program's, ends with NULL; --local_rank=N is not in it */
    uint32_t argument_count;
    uint32_t local_rank_at; /* position where --local_rank=N is inserted; UINT32_MAX: nowhere */
    json_t *settings;       /* variables that all ranks get: names and values, null: removed */
    json_t *visible_names;  /* array of names */
    json_t *visible_values; /* array of their values on this machine; NULL: it is not in the job */
    json_t *exports;        /* variables for other hosts; {}: none */
    char *refusal;          /* why the plan cannot be started here; NULL: it can */
};

/* planner.c: add a line to the notes for the user, with unprintable characters replaced. */
void ds_accel__launch_note(struct ds_accel__text *notes, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/*
 * True if the variable that chooses devices, where it is not empty, also chooses the slots of this
 * machine: there is no hostfile, and no option chooses hosts or slots.
 */
bool ds_accel__launch_uses_visible(const struct ds_accel__launch_options *options,
                                   bool has_hostfile);
/* Make a plan. Adds to notes a line for what the user should know. hosts are those of the hostfile;
 * NULL: there is none, and this machine is the only host. ERR_INVALID; ERR_NO_DEVICE;
 * ERR_NO_MEMORY. */
int32_t ds_accel__plan_make(const struct ds_accel__launch_options *options,
                            const struct ds_accel__launch_facts *facts,
                            struct ds_accel__hosts *hosts, struct ds_accel__text *notes,
                            struct ds_accel__plan *plan);
void ds_accel__plan_clear(struct ds_accel__plan *plan);

/* The master's port; 0: it is chosen when the job starts. */
uint16_t ds_accel__plan_port(const struct ds_accel__plan *plan);

/* Called for each variable that a rank gets in addition to the job's environment. False stops. */
typedef bool (*ds_accel__variable_visit_t)(void *user_data, const char *name, const char *value);
/* ERR_NO_MEMORY if memory is exhausted or visit returned false. port: the master's; 0: it is not
 * chosen yet, and MASTER_PORT is left out. */
int32_t ds_accel__plan_variables(const struct ds_accel__plan *plan,
                                 const struct ds_accel__rank *rank, uint16_t port,
                                 ds_accel__variable_visit_t visit, void *user_data);

#endif
