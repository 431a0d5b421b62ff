/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/**
 * @file ds_accel_tools.h
 * Functions for tools that work on plugins, machines and snapshots. They are in
 * libds_accel_tools.so, which is linked in addition to libds_accel.so of the same release.
 *
 * In a program linked with this library, ds_accel_report() also makes the reports doctor, cache,
 * quarantine, topo, bundle, recording and memory, the text of every report, and the pictures of
 * topo and memory; and ds_accel_create() also makes contexts over a recorded machine
 * (ds_accel_options.machine_file).
 * The flags of `pkg-config --libs ds-accel-tools` keep the linker from dropping the library if the
 * program calls none of its functions. The program may also load the library with dlopen() before
 * the calls that need it; the library stays loaded.
 *
 * The conventions of ds_accel.h for functions, outputs, structs and threads apply here.
 */
#ifndef DS_ACCEL_TOOLS_H
#define DS_ACCEL_TOOLS_H

#include "ds_accel.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- texts in pieces ------------------------------------------------------------------------ */

/**
 * A function that receives a long text in pieces, in order.
 * @return false if the piece cannot be written; the call that writes the text then fails
 */
typedef bool (*ds_accel_write_t)(void *user_data, const char *data, size_t size_bytes);

/* ---- stored verdicts ------------------------------------------------------------------------ */

/**
 * Delete this user's stored verdicts and stored configuration. Strikes (recorded crashes and hangs
 * of plugins) are not deleted, and a context continues to use the verdicts that it has read
 * already.
 *
 * @return DS_ACCEL_OK, also if there is no cache directory and so nothing to delete; ERR_IO the
 *         directory must not be used, or it or its file can't be written; ERR_BUSY another process
 *         has been probing plugins for too long, or is stopped while it probes; ERR_STATE the
 *         context uses no cache, or only reads it, or the process was forked (see
 *         ds_accel_detect()); ERR_INVALID context is NULL; ERR_NO_MEMORY
 * @threads any; waits for other processes that probe plugins
 */
DS_ACCEL_EXPORT int32_t ds_accel_cache_clear(ds_accel_t *context);

/**
 * Delete strikes, and the verdicts of plugins with strikes, so that these plugins are probed again.
 *
 * @param[in] name  the backend whose strikes are deleted; NULL for all backends
 * @return as ds_accel_cache_clear(); ERR_NOT_FOUND no plugin of that name has strikes
 * @threads any; waits for other processes that probe plugins
 */
DS_ACCEL_EXPORT int32_t ds_accel_quarantine_clear(ds_accel_t *context, const char *name);

/* ---- ops ------------------------------------------------------------------------------------ */

/**
 * Report the op builders of a backend: for each the op, whether a kernel is installed and usable,
 * and if not, why. Runs no code of an op.
 *
 * @param[in]  backend   NULL: the accelerator, which is detected if that was not done yet
 * @param[in]  name      a builder or an op: only this one, in detail; NULL: all
 * @param[in]  format    DS_ACCEL_FORMAT_* bits. VERBOSE: also the builders that only other backends
 *                       have; JSON always has them
 * @param[out] text_out  ends in a newline
 * @return DS_ACCEL_OK; ERR_NOT_FOUND no configuration knows the backend or the name; ERR_NOT_USABLE
 *         the machine is a recorded one; the status of ds_accel_detect() if backend is NULL;
 *         ERR_CONFIG; ERR_INVALID NULL; ERR_LIMIT; ERR_NO_MEMORY
 * @threads any
 * @owner  caller; release with ds_accel_free_text()
 */
DS_ACCEL_EXPORT int32_t ds_accel_ops_report(ds_accel_t *context, const char *backend,
                                            const char *name, uint32_t format, char **text_out);

/**
 * Make the text of the user's configuration file with settings of an op, which then are those that
 * ds_accel_op_load() passes to the op. The file is the one of DS_ACCEL_CONFIG or
 * ds_accel_options.config_file; else the last of the user's that has settings of the op; else
 * op_settings.json in the user's directory. Everything else in the file keeps its form. Nothing is
 * written, nor is the context changed.
 *
 * @param[in]  op        its name, "async_io"
 * @param[in]  settings  a JSON object with a member for each setting
 * @param[out] path_out  the file, which, like its directory, may not exist yet
 * @param[out] text_out  its new text
 * @return DS_ACCEL_OK; ERR_NOT_FOUND the user has no such directory; ERR_PERMISSION, ERR_IO the
 *         file or the directory cannot be read; ERR_CONFIG the file became invalid since the
 *         context was made; ERR_LIMIT the file would exceed 1 MiB; ERR_INVALID; ERR_NO_MEMORY
 * @threads any
 * @owner  caller; release both with ds_accel_free_text()
 */
DS_ACCEL_EXPORT int32_t ds_accel_op_settings_edit(ds_accel_t *context, const char *op,
                                                  const char *settings, char **path_out,
                                                  char **text_out);

/** Build although the op is installed or was built before. */
#define DS_ACCEL_OPS_BUILD_FORCE 1u

struct ds_accel_ops_build_options {
    uint32_t struct_size;
    uint32_t flags; /**< DS_ACCEL_OPS_BUILD_* */
    uint32_t jobs;  /**< compilers that run at once; 0: as CPUs and memory allow */
    /**
     * Called on the calling thread when a command has ended: done of the op's total commands are
     * done; what is the source that was compiled, or the op's name. NULL: not called.
     */
    void (*on_progress)(void *user_data, const char *op, uint32_t done, uint32_t total,
                        const char *what);
    void *user_data;
};

/**
 * Build the ops of a backend that have a recipe and are neither installed nor cached. The report
 * says per op what was done, and of a failure the command and its output.
 *
 * @param[in]  backend       NULL: the accelerator, which is detected if that was not done yet
 * @param[in]  name          a builder or an op: only this one; NULL: all that have a recipe
 * @param[in]  options       NULL: none
 * @param[in]  format        DS_ACCEL_FORMAT_* bits. VERBOSE: the whole output of a failed command
 * @param[out] failures_out  how many ops could not be built, or have no recipe but were named
 * @param[out] text_out      ends in a newline
 * @return as ds_accel_ops_report()
 * @threads any; waits for other processes that build the same op
 * @owner  caller; release with ds_accel_free_text()
 */
DS_ACCEL_EXPORT int32_t ds_accel_ops_build(ds_accel_t *context, const char *backend,
                                           const char *name,
                                           const struct ds_accel_ops_build_options *options,
                                           uint32_t format, uint32_t *failures_out,
                                           char **text_out);

/**
 * Remove what this user built, and what interrupted builds left.
 *
 * @param[in]  op            only files of this op, or of the op of this builder; NULL: all
 * @param[out] files_out     how many files were removed
 * @return DS_ACCEL_OK; ERR_NOT_FOUND no such op or builder; ERR_IO, ERR_PERMISSION with the file;
 *         ERR_UNTRUSTED others may write to the directory; ERR_INVALID NULL; ERR_NO_MEMORY
 * @threads any; ops that are loaded stay so
 */
DS_ACCEL_EXPORT int32_t ds_accel_ops_clean(ds_accel_t *context, const char *op,
                                           uint64_t *files_out);

/**
 * Copy what was built to a directory, which is created, for ds_accel_ops_import() on machines
 * without compilers or network. Those machines need the same version of ds-accel. What is in the
 * directory stays, so it can take the files of several machines. A file that could not be loaded
 * here is skipped with a warning.
 *
 * @param[out] files_out    how many files were copied
 * @param[out] skipped_out  how many files were skipped
 * @return DS_ACCEL_OK; ERR_NOT_FOUND nothing was built; ERR_IO, ERR_PERMISSION with the file;
 *         ERR_UNTRUSTED others may write to the directory; ERR_INVALID NULL or a relative path;
 *         ERR_LIMIT; ERR_NO_MEMORY
 * @threads any
 */
DS_ACCEL_EXPORT int32_t ds_accel_ops_export(ds_accel_t *context, const char *directory,
                                            uint64_t *files_out, uint64_t *skipped_out);

/**
 * Copy ops from a directory of ds_accel_ops_export() to this user's cache, root's to the system's.
 * Each file is checked as before it is loaded, and by its digest. Nothing is copied if one is
 * wrong. Files for machines with another kind of processor are skipped with a warning.
 *
 * @param[out] files_out    how many files were copied
 * @param[out] skipped_out  how many files for other machines were skipped
 * @return DS_ACCEL_OK; ERR_NOT_FOUND no such directory or file, or no op for this machine;
 *         ERR_UNTRUSTED another user could have changed a file, or could change the cache;
 *         ERR_INVALID a file or manifest is damaged, NULL or a relative path; ERR_ABI a file is
 *         built for another generation of ops; ERR_IO, ERR_PERMISSION with the file; ERR_LIMIT;
 *         ERR_NO_MEMORY
 * @threads any
 */
DS_ACCEL_EXPORT int32_t ds_accel_ops_import(ds_accel_t *context, const char *directory,
                                            uint64_t *files_out, uint64_t *skipped_out);

/**
 * Check a plugin file against the numbered rules of plugin-abi.md. Runs the plugin's code, in
 * a helper process unless "probe.mode" of the configuration is "in-process". A file that no host
 * would load is not run, and the rules that need its code are skipped.
 *
 * @param[in]  options   options of the context that the plugin is probed in; NULL for the defaults
 * @param[in]  path      the plugin file (.so)
 * @param[out] text_out  the result of each rule; written for ERR_ABI too
 * @return DS_ACCEL_OK; ERR_ABI a rule is broken; ERR_IO the file can't be read, or no helper can be
 *         started; ERR_NOT_USABLE the program has raised privileges and the file is not owned by
 *         root, or the machine is a recorded one; ERR_INVALID path or text_out is NULL; an error of
 *         ds_accel_create(), such as ERR_CONFIG; ERR_LIMIT; ERR_NO_MEMORY
 * @owner  caller; release with ds_accel_free_text()
 */
DS_ACCEL_EXPORT int32_t ds_accel_lint(const struct ds_accel_options *options, const char *path,
                                      uint32_t format, char **text_out);

/** value of device_index that makes ds_accel_conformance() check every device, one by one */
#define DS_ACCEL_CONFORMANCE_ALL_DEVICES 0xffffffffu

/**
 * Check a running plugin on its devices against the rules of plugin-abi.md. The suite is the same
 * for all backends. The checks run in a helper process (ds-accel-probe). If a check crashes, fails
 * or exceeds probe.timeout_ms of the configuration, the next check runs in a new process.
 *
 * @param[in]  options       options of the context that the plugin is started in; NULL for the
 *                           defaults
 * @param[in]  name_or_path  a backend, or its .so; NULL: only list the checks
 * @param[in]  device_index  the device to check, or DS_ACCEL_CONFORMANCE_ALL_DEVICES: if there are
 *                           several devices, the suite then also checks device 0 while the
 *                           backend's variable for visible devices lists them in reverse order
 * @param[in]  only          a rule such as "DSA-P19", or a group such as "stream": run only the
 *                           checks of this rule or group; NULL: all
 * @param[in]  format        DS_ACCEL_FORMAT_*
 * @param[out] text_out      the result of each check; written for ERR_ABI too
 * @return DS_ACCEL_OK no check failed; ERR_ABI a check failed; ERR_NOT_USABLE the accelerator
 *         cannot be used, with the reason, or the machine is a recorded one; ERR_NOT_FOUND no
 *         plugin of that name; ERR_INVALID @p only is neither a rule with checks nor a group, the
 *         file's name is not ds_accel_<name>.so, or text_out is NULL; ERR_IO the file can't be
 *         read, or no helper can be started; ERR_CONFIG; ERR_LIMIT; ERR_NO_MEMORY
 * @threads any
 * @owner  caller; release with ds_accel_free_text()
 */
DS_ACCEL_EXPORT int32_t ds_accel_conformance(const struct ds_accel_options *options,
                                             const char *name_or_path, uint32_t device_index,
                                             const char *only, uint32_t format, char **text_out);

/* ---- files of memory snapshots -------------------------------------------------------------- */

/**
 * Convert a snapshot file of a caching allocator to another format. Reads JSON: snapshots of this
 * library, and torch's own snapshots dumped as JSON.
 *
 * @param[in]  path            the file, at most 256 MiB
 * @param[in]  format          DS_ACCEL_SNAPSHOT_*
 * @param[out] data_out        the data, followed by a NUL that is not counted
 * @param[out] size_bytes_out  size of the data without the NUL
 * @return DS_ACCEL_OK; ERR_INVALID the file is not a snapshot (the error text contains
 *         file:line:column and the expected value), or there is no such format; ERR_NOT_FOUND;
 *         ERR_IO; ERR_LIMIT the snapshot's settings are nested too deep for a pickle; ERR_NO_MEMORY
 * @threads any
 * @owner  caller; release with ds_accel_free_data()
 */
DS_ACCEL_EXPORT int32_t ds_accel_memory_snapshot_convert(const char *path, uint32_t format,
                                                         void **data_out, size_t *size_bytes_out);

/**
 * Replay the allocations recorded in a snapshot, through the caching allocator over a simulated
 * device, once with the recorded settings and once with each try, and compare the memory that the
 * replays need.
 *
 * @param[in]  path       as for ds_accel_memory_snapshot_convert()
 * @param[in]  tries      tries[try_count], each "key=value,...": values that replace the recorded
 *                        settings with these keys. Keys: those of the allocator's settings, and
 *                        capacity_bytes, the size of the device's memory
 * @param[in]  try_count  at most 64; 0: a few sensible alternatives
 * @param[in]  format     0: a table; DS_ACCEL_FORMAT_JSON: conf/schema/memory-replay.json
 * @param[out] text_out   written only on DS_ACCEL_OK
 * @return DS_ACCEL_OK; ERR_INVALID a try is not valid, the snapshot has no events, or as for
 *         ds_accel_memory_snapshot_convert(); ERR_NOT_FOUND; ERR_IO; ERR_NO_MEMORY
 * @threads any
 * @owner  caller; release with ds_accel_free_text()
 */
DS_ACCEL_EXPORT int32_t ds_accel_memory_replay(const char *path, const char *const *tries,
                                               uint32_t try_count, uint32_t format,
                                               char **text_out);

/* ---- jobs ----------------------------------------------------------------------------------- */

/** A job of ds-accel run: planned, and not started yet. */
typedef struct ds_accel_launch ds_accel_launch_t;

/**
 * Plan a job. The accelerator is chosen, and the machine is examined; nothing is started except
 * helper processes. With --help or --version, no plan is made.
 *
 * @param[in]  options         options of the context in which the accelerator is chosen; options
 *                             among the arguments replace them; NULL for the defaults. What
 *                             it points to is borrowed until the job is destroyed
 * @param[in]  arguments       arguments[argument_count], those of ds-accel run after "run": its own
 *                             options, the program, the program's arguments. Borrowed until the job
 *                             is destroyed
 * @param[out] launch_out      the job
 * @return DS_ACCEL_OK; ERR_INVALID an option or a filter is wrong; ERR_CONFIG the hostfile or the
 *         configuration is wrong, with each line; ERR_NO_DEVICE; an error of ds_accel_create() or
 *         ds_accel_detect(); ERR_IO; ERR_LIMIT; ERR_NO_MEMORY
 * @threads any. DS_ACCEL_DECISION is removed from the environment, and, if the options choose
 *          devices and there is no hostfile, the variable that chooses devices, such as
 *          CUDA_VISIBLE_DEVICES: no other thread may use the environment meanwhile
 * @owner  caller; release with ds_accel_launch_destroy()
 * @source DeepSpeed launcher/runner.py
 */
DS_ACCEL_EXPORT int32_t ds_accel_launch_create(const struct ds_accel_options *options,
                                               uint32_t argument_count,
                                               const char *const *arguments,
                                               ds_accel_launch_t **launch_out);

/** Destroy a job that is not running. NULL is ignored. */
DS_ACCEL_EXPORT void ds_accel_launch_destroy(ds_accel_launch_t *launch);

#define DS_ACCEL_LAUNCH_RUN 0u     /**< start the job */
#define DS_ACCEL_LAUNCH_PLAN 1u    /**< --dry-run: show the plan */
#define DS_ACCEL_LAUNCH_HELP 2u    /**< --help: no plan was made */
#define DS_ACCEL_LAUNCH_VERSION 3u /**< --version: no plan was made */

/** Return what the arguments ask for: DS_ACCEL_LAUNCH_*. */
DS_ACCEL_EXPORT uint32_t ds_accel_launch_wish(const ds_accel_launch_t *launch);

/**
 * Write the plan, as JSON (conf/schema/run.json) if --json is among the arguments, else as text.
 *
 * @return DS_ACCEL_OK; ERR_IO @p write returned false; ERR_INVALID there is no plan, or write is
 *         NULL; ERR_NO_MEMORY
 */
DS_ACCEL_EXPORT int32_t ds_accel_launch_write(const ds_accel_launch_t *launch,
                                              ds_accel_write_t write, void *user_data);

/** Return the file of --result; NULL if there is none. Borrowed from the arguments. */
DS_ACCEL_EXPORT const char *ds_accel_launch_result_file(const ds_accel_launch_t *launch);

/**
 * Start the job's ranks on this machine, and wait for their end. A job runs once; if nothing was
 * started, because of an error before the start, it may be run again.
 *
 * While the job runs, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT and
 * SIGWINCH are passed on to the ranks, except those that this process ignores; SIGCHLD, SIGPIPE,
 * SIGXFSZ, SIGTTIN and SIGTTOU are blocked. A signal of the first list that was pending before the
 * call is passed on, too. Handlers of other signals run as usual. stdio's output is flushed before
 * the start.
 *
 * Children of the caller: one that ends before the job does is reaped unless it was waited for
 * already, and its exit status is lost. If the supervisor, the child process that runs the job, is
 * killed, all children of this process are killed with the job. This process becomes the parent of
 * processes that the caller's children leave behind during the job, and of a process of the job
 * that SIGKILL does not end. If this process is process 1 of a pid namespace, and /proc is missing
 * or belongs to another one, all other processes of the namespace end with a job that fails.
 *
 * In the supervisor, which may call the log's sink, the strings of main()'s argv are replaced by
 * the command line of the ranks' program.
 *
 * On return, also with an error, the signal mask, the actions of signals, the soft limit of
 * descriptors, PR_SET_CHILD_SUBREAPER, the descriptors, the control group and the terminal's
 * settings are those from before the call; a terminal that belongs to another process group by then
 * is left as it is. Descriptors 0 to 2 are open during the call.
 *
 * @param[out] exit_code_out  the job's: that of the first rank that failed, 128 + n for signal n,
 *                            127 or 126 if the program was not found or cannot be executed
 * @param[out] result_out     how the job ended, as JSON (conf/schema/run-result.json); release with
 *                            ds_accel_free_text(). NULL: it is not made
 * @return DS_ACCEL_OK the job ran, or a rank could not be started; ERR_STATE the job has run
 *         already; ERR_UNSUPPORTED the job has ranks on other hosts; ERR_NOT_USABLE the machine is
 *         a recorded one; ERR_BUSY the master's port is taken; ERR_IO a log cannot be made;
 *         ERR_LIMIT; ERR_INVALID; ERR_NO_MEMORY, also if the job ran and its result cannot be made
 * @threads a process with one thread: the signals are blocked in the calling thread only, and the
 *          supervisor is a fork() that does not execute another program
 */
DS_ACCEL_EXPORT int32_t ds_accel_launch_run(ds_accel_launch_t *launch, int32_t *exit_code_out,
                                            char **result_out);

/**
 * Draw the ranks of a plan on the context's machine: the report TOPO of the plan's accelerator,
 * with the ranks of this machine. Their CPUs, memory and devices are read from the plan; nothing is
 * started except the accelerator's plugin. This machine is the host whose ranks are bound to CPUs,
 * or the plan's only host.
 *
 * @param[in]  source      the name of the plan in errors, such as its file
 * @param[in]  plan        plan[size_bytes], as ds_accel_launch_write() writes it as JSON
 *                         (conf/schema/run.json); need not end in NUL
 * @param[in]  format      0: text; DS_ACCEL_FORMAT_SVG: a picture; DS_ACCEL_FORMAT_JSON:
 *                         conf/schema/topo.json, with the member "plan"
 * @param[out] text_out    written only on DS_ACCEL_OK
 * @return DS_ACCEL_OK, also if the accelerator cannot be used here, which the text reports;
 *         ERR_INVALID NULL, or the plan is wrong: it is no JSON, a member has another type, there
 *         are several hosts and none is bound, or the machine has no such CPU, NUMA node or
 *         accelerator; ERR_STATE as ds_accel_detect() returns it after fork(); ERR_CONFIG;
 *         ERR_NO_MEMORY
 * @threads any
 * @owner  caller; release with ds_accel_free_text()
 */
DS_ACCEL_EXPORT int32_t ds_accel_topo_plan(ds_accel_t *context, const char *source,
                                           const char *plan, size_t size_bytes, uint32_t format,
                                           char **text_out);

#ifdef __cplusplus
}
#endif

#endif
