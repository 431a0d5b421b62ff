/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* The command line of ds-accel run: options.c. */
#ifndef DS_ACCEL_LAUNCH_OPTIONS_H
#define DS_ACCEL_LAUNCH_OPTIONS_H

#include "ds_accel.h"

#include <stdbool.h>
#include <stddef.h>

#define DS_ACCEL__PLUGIN_DIR_LIMIT 64u

/* Which CPUs a rank may use. */
enum ds_accel__bind {
    DS_ACCEL__BIND_NONE,
    DS_ACCEL__BIND_SHARE,     /* --bind_cores_to_rank: an equal share of the cores */
    DS_ACCEL__BIND_NODE,      /* the CPUs of a NUMA node, which ranks may share */
    DS_ACCEL__BIND_SOCKET,    /* of a socket */
    DS_ACCEL__BIND_L3,        /* of a level-3 cache */
    DS_ACCEL__BIND_CORE,      /* of one core */
    DS_ACCEL__BIND_EXCLUSIVE, /* an equal share of the cores, with all their hardware threads */
};

/* The options. Texts are borrowed from the arguments; NULL: not given. */
struct ds_accel__launch_options {
    /* DeepSpeed's */
    const char *hostfile;
    const char *include, *exclude;
    int64_t num_nodes, num_devices;               /* -1: not given */
    int64_t min_elastic_nodes, max_elastic_nodes; /* -1: not given */
    const char *master_addr;
    const char *master_port; /* "auto", "N" or "LO-HI" */
    int64_t node_rank;       /* -1: not given */
    const char *launcher;    /* "pdsh" */
    const char *launcher_args;
    const char *log_directory; /* --enable_each_rank_log */
    const char *bind_core_list;
    int64_t ssh_port; /* -1: not given */
    const char *venv_script;
    const char *log_level; /* "info" */
    bool module, no_python, no_local_rank, no_ssh, no_ssh_check, force_multi, save_pid;
    bool elastic_training, bind_cores_to_rank, quiet;
    const char *autotuning;
    /* ours */
    enum ds_accel__bind bind;  /* SHARE: --bind_cores_to_rank, or a list without --bind-to */
    bool has_bind;             /* --bind-to was given */
    bool uses_smt;             /* --smt: bind to all hardware threads of a core */
    uint32_t reserve_cores;    /* cores of each rank that are kept free; 0: none */
    uint32_t reserve_percent;  /* the same as a part of the rank's cores; 0: none */
    uint64_t stall_timeout_ns; /* 0: off */
    bool stall_kill;
    const char *result; /* file; NULL: none */
    bool show_ranks, pty, dry_run;
    /* those of every command */
    const char *accelerator, *config, *machine, *root;
    const char *plugin_dirs[DS_ACCEL__PLUGIN_DIR_LIMIT];
    uint32_t plugin_dir_count;
    bool json, wants_help, wants_version;
    int verbosity;
    /* the program and its arguments */
    const char *const *program; /* program[program_count]; count 0: no program was given */
    uint32_t program_count;
    const char
        *misplaced; /* the first argument of the program that is an option of ours; or NULL */
};

/*
 * Parse the arguments after "run". Hyphens and underscores in an option's name are equal;
 * unambiguous prefixes are accepted, and a prefix of one of DeepSpeed's options is never ambiguous
 * with ours. The first argument that is not an option is the program. ERR_INVALID names the
 * option, and what was expected.
 */
int32_t ds_accel__launch_options_parse(uint32_t argument_count, const char *const *arguments,
                                       struct ds_accel__launch_options *options);

#endif
