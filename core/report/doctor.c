/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Reports what prevents the use of this machine's accelerators, and how to remove it. A finding is
 * a problem if it prevents the use of an accelerator whose plugin is installed, a warning if it may
 * cause failures later, info if it only explains a difference from other machines, and ok if a
 * check found nothing wrong. The doctor neither opens nor wakes a device, and loads no vendor
 * library: it reads files only.
 */
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "config/config.h"
#include "host/cache.h"
#include "host/contain.h"
#include "host/context.h"
#include "host/registry.h"
#include "machine/elf_file.h"
#include "machine/machine.h"
#include "machine/presence.h"
#include "machine/topology.h"
#include "report/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum severity {
    PROBLEM,
    WARNING,
    INFO,
    OK,
    SEVERITY_COUNT
};

struct doctor {
    ds_accel_t *context;
    const struct ds_accel__machine *machine;
    struct ds_accel__survey survey;
    json_t *findings[SEVERITY_COUNT]; /* arrays, printed in order of severity */
    /* the backend that is being checked, if its hardware is absent; else NULL */
    const char *absent;
    bool failed; /* out of memory */
};

/* Add a finding. The formatted text after remedy describes the finding. */
static void add(struct doctor *doctor, enum severity severity, const char *check,
                const char *subject, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

static void add(struct doctor *doctor, enum severity severity, const char *check,
                const char *subject, const char *remedy, const char *format, ...)
{
    static const char *const names[] = {"problem", "warning", "info", "ok"};
    char detail[1024];
    json_t *finding = json_object();
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(detail, sizeof(detail), format, arguments);
    va_end(arguments);
    ds_accel__json_set(finding, "check", ds_accel__json_text(check), &doctor->failed);
    ds_accel__json_set(finding, "severity", ds_accel__json_text(names[severity]), &doctor->failed);
    ds_accel__json_set(finding, "subject", ds_accel__json_text(subject), &doctor->failed);
    ds_accel__json_set(finding, "detail", ds_accel__json_text(detail), &doctor->failed);
    ds_accel__json_set(finding, "remedy", ds_accel__json_text(remedy), &doctor->failed);
    ds_accel__json_set(finding, "absent",
                       ds_accel__json_text(severity == INFO ? doctor->absent : NULL),
                       &doctor->failed);
    if (json_array_append_new(doctor->findings[severity], finding) != 0) {
        doctor->failed = true;
    }
}

/* Has this finding been added already? Backends share nodes and libraries, each of which is
 * reported once. */
static bool has_finding(const struct doctor *doctor, const char *check, const char *subject)
{
    for (int severity = 0; severity < SEVERITY_COUNT; severity++) {
        for (size_t i = 0; i < json_array_size(doctor->findings[severity]); i++) {
            json_t *finding = json_array_get(doctor->findings[severity], i);
            const char *other_check = json_string_value(json_object_get(finding, "check"));
            const char *other = json_string_value(json_object_get(finding, "subject"));

            if (other_check != NULL && other != NULL && strcmp(other_check, check) == 0 &&
                strcmp(other, subject) == 0) {
                return true;
            }
        }
    }
    return false;
}

/* True if the step succeeded. Steps fail only when out of memory, which is recorded in
 * doctor->failed. */
static bool is_done(struct doctor *doctor, int32_t status)
{
    doctor->failed = doctor->failed || status < 0;
    return status >= 0;
}

static json_t *facts_of(const struct doctor *doctor, const char *backend)
{
    return ds_accel__config_get(&doctor->context->config, "backends", backend, NULL);
}

static const char *remedy_of(const struct doctor *doctor, const char *backend,
                             enum ds_accel__reason_id reason)
{
    return ds_accel__config_remedy(&doctor->context->config, backend, reason);
}

/* Return the remedy that the configuration has for this backend and reason; without one, return
 * general instead of the reason's default remedy. */
static const char *own_remedy(const struct doctor *doctor, const char *backend,
                              enum ds_accel__reason_id reason, const char *general)
{
    const char *remedy = remedy_of(doctor, backend, reason);

    return remedy != ds_accel__reason(reason)->remedy ? remedy : general;
}

/* ---- selection, configuration --------------------------------------------------------------- */

static void check_choice(struct doctor *doctor)
{
    const ds_accel_t *context = doctor->context;

    if (context->chosen != NULL) {
        add(doctor, OK, "choice", context->chosen->name, "", "chosen by %s", context->set_method);
    } else {
        add(doctor, PROBLEM, "choice", "",
            "resolve the other findings, or force another accelerator", "%s", context->failure);
    }
}

static void check_containment(struct doctor *doctor)
{
    uint32_t by = doctor->context->containment;
    const char *name = ds_accel__containment_name(by);

    if (by == DS_ACCEL__CONTAIN_NAMESPACE) {
        add(doctor, OK, "containment", name, "",
            "a pid namespace ends everything that plugins start while they are probed");
    } else if (by == DS_ACCEL__CONTAIN_CGROUP) {
        add(doctor, OK, "containment", name, "",
            "a cgroup ends everything that plugins start while they are probed");
    } else if (by == DS_ACCEL__CONTAIN_TREE) {
        add(doctor, INFO, "containment", name,
            "allow unprivileged user namespaces (sysctl user.max_user_namespaces), or give the "
            "user a "
            "cgroup of its own",
            "a subreaper finds the processes that plugins start while they are probed; no pid "
            "namespace and no cgroup is available");
    }
}

static void keep_warning(void *user_data, uint32_t level, const char *topic, const char *message)
{
    struct doctor *doctor = user_data;
    const char *variable = strstr(message, "DS_ACCEL_");
    char name[64];

    (void)level;
    (void)topic;
    snprintf(name, sizeof(name), "%.*s",
             (int)strspn(variable != NULL ? variable : "", "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"),
             variable != NULL ? variable : "");
    add(doctor, WARNING, "config", name,
        "unset it, or correct its name: ds-accel config show --env lists those that are known",
        "%s", message);
}

static void check_config(struct doctor *doctor)
{
    const ds_accel_t *context = doctor->context;
    struct ds_accel__log log = {
        .sink = keep_warning, .user_data = doctor, .level = DS_ACCEL_LOG_WARN};

    if (context->config.file_count == 0) {
        add(doctor, PROBLEM, "config", "", "reinstall ds-accel: its share/ds-accel is missing",
            "no configuration file was found, not even the shipped defaults");
    } else {
        add(doctor, OK, "config", "", "", "%zu files, no problem", context->config.file_count);
    }
    if (context->config.unread[0] != '\0') {
        add(doctor, WARNING, "config", "", "give the user read and search permission on it",
            "ignored %s", context->config.unread);
    }
    is_done(doctor, ds_accel__context_check_variables(context, &log));
}

/* Report the directory that stores verdicts and the quarantine, or why nothing is stored. */
static void check_cache(struct doctor *doctor)
{
    const struct ds_accel__cache *cache = &doctor->context->cache;

    if (cache->problem[0] == '\0' && cache->directory != NULL) {
        add(doctor, OK, "cache", cache->directory, "",
            "verdicts and the quarantine are stored here");
    } else if (cache->is_refused) {
        add(doctor, WARNING, "cache", cache->directory != NULL ? cache->directory : "",
            "remove it or correct its owner and mode, or name another directory of this user's in "
            "DS_ACCEL_CACHE_DIR",
            "each start probes plugins again, and none that crashes is skipped: %s",
            cache->problem);
    } else {
        add(doctor, OK, "cache", "", "", "nothing is cached: %s", cache->problem);
    }
}

/* ---- plugins -------------------------------------------------------------------------------- */

/* Whether a backend's hardware is on this machine, according to the facts in the configuration. */
enum hardware {
    ABSENT,
    UNKNOWN,
    PRESENT
};

static enum hardware hardware_of(const struct ds_accel__presence *presence)
{
    for (uint32_t i = 0; i < presence->node_count; i++) {
        if (!presence->nodes[i].is_other) {
            return PRESENT;
        }
    }
    if (presence->device_count > 0) {
        return PRESENT;
    }
    /* An existing node does not prove presence: drivers of other vendors may share it. */
    return presence->node_count == 0 && (presence->has_pci_facts || presence->has_node_facts)
               ? ABSENT
               : UNKNOWN;
}

static bool is_one_of(enum ds_accel__reason_id reason, const enum ds_accel__reason_id *reasons)
{
    for (; *reasons != DS_ACCEL__REASON_NONE; reasons++) {
        if (reason == *reasons) {
            return true;
        }
    }
    return false;
}

/* The severity of the reason for which a plugin is unusable. A missing permission, a wrong driver
 * version or a wrong option is always a PROBLEM, a sleeping device always INFO. Every other reason
 * is INFO if the hardware is absent, and less severe if the hardware is not known to be present. */
static enum severity judge_no(enum ds_accel__reason_id reason, enum hardware hardware)
{
    static const enum ds_accel__reason_id always[] = {
        DS_ACCEL__REASON_NO_PERMISSION, DS_ACCEL__REASON_DRIVER_MISMATCH,
        DS_ACCEL__REASON_BAD_OPTION, DS_ACCEL__REASON_NONE};
    static const enum ds_accel__reason_id harmless[] = {
        DS_ACCEL__REASON_ASLEEP, DS_ACCEL__REASON_DEVICE_ASLEEP, DS_ACCEL__REASON_NONE};
    static const enum ds_accel__reason_id passing[] = {
        DS_ACCEL__REASON_HIDDEN, DS_ACCEL__REASON_DEVICE_BUSY, DS_ACCEL__REASON_NO_DEVICE,
        DS_ACCEL__REASON_NONE};

    if (is_one_of(reason, always)) {
        return PROBLEM;
    }
    if (hardware == ABSENT || is_one_of(reason, harmless)) {
        return INFO;
    }
    if (is_one_of(reason, passing)) {
        return hardware == PRESENT ? WARNING : INFO;
    }
    return hardware == PRESENT ? PROBLEM : WARNING;
}

static void check_unavailable(struct doctor *doctor, const struct ds_accel__candidate *candidate)
{
    struct ds_accel__presence presence;

    if (!is_done(doctor, ds_accel__presence_read(&doctor->survey, facts_of(doctor, candidate->name),
                                                 &presence))) {
        return;
    }
    doctor->absent = hardware_of(&presence) == ABSENT ? candidate->name : NULL;
    add(doctor, judge_no(candidate->reason, hardware_of(&presence)), "plugin", candidate->name,
        remedy_of(doctor, candidate->name, candidate->reason), "%s: %s",
        ds_accel__reason_code(candidate->reason),
        candidate->detail != NULL ? candidate->detail : "");
    doctor->absent = NULL;
    ds_accel__presence_clear(&presence);
}

/* Report the plugin's strikes and quarantine; no other check reports them. */
static void add_quarantine(struct doctor *doctor, const struct ds_accel__candidate *candidate)
{
    if (candidate->state == DS_ACCEL_STATE_QUARANTINED) {
        add(doctor, PROBLEM, "quarantine", candidate->name,
            remedy_of(doctor, candidate->name, DS_ACCEL__REASON_QUARANTINED), "%s",
            candidate->detail != NULL ? candidate->detail : "");
    } else if (candidate->strikes > 0) {
        add(doctor, WARNING, "strike", candidate->name,
            "install a version that does not crash or hang; ds-accel quarantine clear resets the "
            "count",
            "%u crash%s or hang%s counted: after the second it is skipped for a while",
            candidate->strikes, candidate->strikes == 1 ? "" : "es",
            candidate->strikes == 1 ? " is" : "s are");
    }
}

/* Report a valid plugin file that was built for another minor ABI version than this host's, or that
 * comes from another release of ds-accel. */
static void check_age(struct doctor *doctor, const struct ds_accel__candidate *candidate)
{
    int major;
    int minor;

    if (sscanf(candidate->abi, "%d.%d", &major, &minor) == 2 && minor != DS_ACCEL_ABI_MINOR) {
        add(doctor, INFO, "plugin", candidate->name,
            minor < DS_ACCEL_ABI_MINOR ? "none is needed: what the plugin does not know is not used"
                                       : "none is needed: what this host does not know is not used",
            "built for ABI %s; this host has %d.%d", candidate->abi, DS_ACCEL_ABI_MAJOR,
            DS_ACCEL_ABI_MINOR);
    }
    if (strcmp(candidate->vendor, "ds-accel") == 0 &&
        strcmp(candidate->version, DS_ACCEL_VERSION) != 0) {
        add(doctor, WARNING, "plugin", candidate->name,
            "install the plugin that came with this ds-accel, or remove the file",
            "%s is of ds-accel %s; this is ds-accel %s", candidate->path, candidate->version,
            DS_ACCEL_VERSION);
    }
}

static void check_plugin(struct doctor *doctor, const struct ds_accel__candidate *candidate)
{
    const char *detail = candidate->detail != NULL ? candidate->detail : "";

    switch (candidate->state) {
    case DS_ACCEL_STATE_SELECTED:
    case DS_ACCEL_STATE_AVAILABLE:
    case DS_ACCEL_STATE_NOT_PROBED:
        add(doctor, OK, "plugin", candidate->name, "", "%s: %s",
            ds_accel__state_name(candidate->state), candidate->path);
        check_age(doctor, candidate);
        break;
    case DS_ACCEL_STATE_SHADOWED:
        add(doctor, WARNING, "plugin", candidate->path,
            remedy_of(doctor, candidate->name, DS_ACCEL__REASON_SHADOWED), "shadowed: %s", detail);
        break;
    case DS_ACCEL_STATE_DISABLED:
        add(doctor, INFO, "plugin", candidate->name,
            remedy_of(doctor, candidate->name, candidate->reason), "%s: %s",
            ds_accel__reason_code(candidate->reason), detail);
        break;
    case DS_ACCEL_STATE_UNAVAILABLE:
        check_unavailable(doctor, candidate);
        check_age(doctor, candidate);
        break;
    case DS_ACCEL_STATE_QUARANTINED:
        break;
    default:
        add(doctor, PROBLEM, "plugin", candidate->path,
            remedy_of(doctor, candidate->name, candidate->reason), "%s: %s",
            ds_accel__reason_code(candidate->reason), detail);
        break;
    }
    add_quarantine(doctor, candidate);
}

/* ---- libraries ------------------------------------------------------------------------------ */

/* maximum number of files read to check one object: the object itself and its libraries */
#define OBJECT_LIMIT 512u

struct visit {
    struct doctor *doctor;
    const struct ds_accel__linker *linker;
    enum severity severity; /* severity of a missing library */
    const char *check;
    struct ds_accel__text seen; /* names, one per line, with a newline before and after */
    char **paths;               /* objects to read */
    size_t count;
    bool is_missing; /* a library is missing */
};

static bool is_new_name(struct visit *visit, const char *name)
{
    char line[512];

    snprintf(line, sizeof(line), "\n%s\n", name);
    if (visit->seen.data != NULL && strstr(visit->seen.data, line) != NULL) {
        return false;
    }
    ds_accel__text_add(&visit->seen, "%s%s\n", visit->seen.size_bytes == 0 ? "\n" : "", name);
    return true;
}

/* Queue an object for reading. Takes ownership of path; path NULL: out of memory. An object beyond
 * OBJECT_LIMIT is ignored. */
static int32_t push_object(struct visit *visit, char *path)
{
    char **paths;

    if (path == NULL || visit->count >= OBJECT_LIMIT) {
        free(path);
        return path == NULL ? ds_accel__no_memory() : DS_ACCEL_OK;
    }
    paths = realloc(visit->paths, (visit->count + 1) * sizeof(*paths));
    if (paths == NULL) {
        free(path);
        return ds_accel__no_memory();
    }
    visit->paths = paths;
    paths[visit->count++] = path;
    return DS_ACCEL_OK;
}

static int32_t find_needed(struct visit *visit, const char *name, const char *object,
                           const struct ds_accel__elf_dynamic *dynamic)
{
    char *path;
    int32_t status = ds_accel__linker_find(visit->linker, name, dynamic, object, &path);

    if (status < 0) {
        return status;
    }
    if (path != NULL) {
        return push_object(visit, path);
    }
    visit->is_missing = true;
    if (!has_finding(visit->doctor, visit->check, name)) {
        add(visit->doctor, visit->severity, visit->check, name,
            "install the package that has it, or name its directory in LD_LIBRARY_PATH",
            "needed by %s, and in none of the directories that the dynamic linker searches",
            object + strlen(visit->linker->root));
    }
    return DS_ACCEL_OK;
}

/* Find the libraries that one object links: queue each library that exists for reading, and report
 * each that is missing. */
static int32_t visit_object(struct visit *visit, const char *object)
{
    struct ds_accel__elf_dynamic dynamic;
    struct ds_accel__elf elf;
    bool is_library;
    int32_t status = ds_accel__library_open(object, &elf, &is_library);
    const char *at;

    if (!is_library) {
        return status;
    }
    ds_accel__elf_read_dynamic(&elf, &dynamic);
    at = dynamic.needed.data != NULL ? dynamic.needed.data : "";
    if (dynamic.needed.failed || dynamic.run_path.failed) {
        status = ds_accel__no_memory();
    }
    while (*at != '\0' && status >= 0) {
        char name[256];
        size_t length = strcspn(at, "\n");

        snprintf(name, sizeof(name), "%.*s", (int)(length < 255 ? length : 255), at);
        if (length > 0 && is_new_name(visit, name)) {
            status = find_needed(visit, name, object, &dynamic);
        }
        at += length + (at[length] == '\n');
    }
    ds_accel__elf_dynamic_clear(&dynamic);
    ds_accel__elf_close(&elf);
    return visit->seen.failed ? ds_accel__no_memory() : status;
}

/* Check all libraries that an object links, directly or indirectly, and report each that is
 * missing. True: no library is missing. False also if out of memory. */
static bool check_needed(struct doctor *doctor, const struct ds_accel__linker *linker,
                         enum severity severity, const char *check, const char *object)
{
    struct visit visit = {.doctor = doctor, .linker = linker, .severity = severity, .check = check};
    int32_t status = push_object(&visit, strdup(object));

    for (size_t i = 0; i < visit.count && status >= 0; i++) {
        status = visit_object(&visit, visit.paths[i]);
    }
    ds_accel__names_free(visit.paths, visit.count);
    ds_accel__text_clear(&visit.seen);
    return is_done(doctor, status) && !visit.is_missing;
}

/* Check the libraries that the plugin files link. These libraries are looked up on the running
 * machine, not below the configured root, because the plugins run there. */
static void check_dependencies(struct doctor *doctor)
{
    struct ds_accel__linker linker;

    if (doctor->context->recording != NULL) {
        return; /* a recording does not contain the plugin files */
    }
    if (!is_done(doctor, ds_accel__linker_open(&ds_accel__machine_here, &linker))) {
        return;
    }
    for (size_t i = 0; i < doctor->context->registry.count; i++) {
        const struct ds_accel__candidate *candidate = doctor->context->registry.candidates[i];

        if (candidate->is_registered || candidate->state == DS_ACCEL_STATE_SHADOWED ||
            candidate->gates[DS_ACCEL__GATE_NOTE].result != DS_ACCEL__GATE_PASSED) {
            continue;
        }
        if (check_needed(doctor, &linker, PROBLEM, "plugin_dependency", candidate->path)) {
            add(doctor, OK, "plugin_dependency", candidate->name, "",
                "every library that it links is installed");
        }
    }
    ds_accel__linker_close(&linker);
}

/* Check a backend's library, of which names lists the possible file names, and the libraries that
 * it links. The library is missing if no file with any of these names is found; the finding shows
 * the first name. */
static void check_libraries(struct doctor *doctor, const struct ds_accel__linker *linker,
                            const char *backend, json_t *names, enum severity severity)
{
    const char *preferred = json_string_value(json_array_get(names, 0));
    char *path = NULL;

    for (size_t i = 0; i < json_array_size(names) && path == NULL; i++) {
        const char *name = json_string_value(json_array_get(names, i));

        if (!is_done(doctor, ds_accel__linker_find(linker, name, NULL, NULL, &path))) {
            return;
        }
    }
    if (path == NULL) {
        if (!has_finding(doctor, "library", preferred)) {
            char remedy[512];

            snprintf(remedy, sizeof(remedy), "%s; or name its directory in LD_LIBRARY_PATH",
                     own_remedy(doctor, backend, DS_ACCEL__REASON_LIBRARY_MISSING,
                                "install the vendor's runtime"));
            add(doctor, severity, "library", preferred, remedy,
                "the runtime of %s is in none of the directories that the dynamic linker searches",
                backend);
        }
        return;
    }
    if (check_needed(doctor, linker, severity, "library", path)) {
        add(doctor, OK, "library", preferred, "", "%s, for %s", path + strlen(linker->root),
            backend);
    }
    free(path);
}

/* ---- device nodes --------------------------------------------------------------------------- */

/* Write the name of a user or group id as /etc/passwd or /etc/group lists it, or else the number.
 * No name service is queried, because it may be remote, and because it describes this machine, not
 * a recorded one. */
static void name_id(struct doctor *doctor, const char *file, unsigned id, char *name,
                    size_t name_size)
{
    char *text;

    snprintf(name, name_size, "%u", id);
    if (!is_done(doctor, ds_accel__machine_read(doctor->machine, file, &text)) || text == NULL) {
        return;
    }
    for (const char *line = text; *line != '\0'; line += strcspn(line, "\n")) {
        unsigned found;

        line += *line == '\n';
        if (sscanf(line, "%*[^:\n]:%*[^:\n]:%u", &found) == 1 && found == id) {
            snprintf(name, name_size, "%.*s", (int)strcspn(line, ":"), line);
            break;
        }
    }
    free(text);
    ds_accel__sanitize(name, name_size);
}

static void check_node(struct doctor *doctor, const char *backend,
                       const struct ds_accel__device_node *node, enum severity severity)
{
    char owner[64];
    char group[64];
    char remedy[256];

    name_id(doctor, "/etc/passwd", (unsigned)node->info.uid, owner, sizeof(owner));
    name_id(doctor, "/etc/group", (unsigned)node->info.gid, group, sizeof(group));
    if (node->info.is_usable) {
        add(doctor, OK, "device_node", node->path, "", "mode %04o, owner %s, group %s, for %s",
            (unsigned)(node->info.mode & 07777), owner, group, backend);
        return;
    }
    if ((node->info.mode & (S_IRGRP | S_IWGRP)) == (S_IRGRP | S_IWGRP) && node->info.gid != 0) {
        snprintf(remedy, sizeof(remedy), "add the user to the group %s, and log in again", group);
    } else {
        snprintf(remedy, sizeof(remedy),
                 "give a group of users read and write permission on it (a udev rule keeps it)");
    }
    add(doctor, severity, "device_node", node->path, remedy,
        "this user may not read and write it: mode %04o, owner %s, group %s, for %s",
        (unsigned)(node->info.mode & 07777), owner, group, backend);
}

/* Report missing nodes whose pattern has no wildcard, such as /dev/kfd: such a node must exist if
 * any other node of the backend exists. Nothing is reported if the backend was found by its
 * other_device_nodes. */
static void check_fixed_nodes(struct doctor *doctor, const char *backend, json_t *patterns,
                              const struct ds_accel__presence *presence)
{
    for (size_t i = 0; i < json_array_size(patterns); i++) {
        const char *pattern = json_string_value(json_array_get(patterns, i));
        bool found = strpbrk(pattern, "*?[\\") != NULL;

        for (uint32_t k = 0; k < presence->node_count && !found; k++) {
            found = presence->nodes[k].is_other || strcmp(presence->nodes[k].path, pattern) == 0;
        }
        if (!found && !has_finding(doctor, "device_node", pattern)) {
            add(doctor, WARNING, "device_node", pattern,
                "load the driver module that creates it; if this is a container, pass it in",
                "%s has %s, but not this one", backend, presence->nodes[0].path);
        }
    }
}

static void check_nodes(struct doctor *doctor, const char *backend, json_t *facts,
                        const struct ds_accel__presence *presence, bool has_plugin)
{
    enum severity severity = has_plugin ? PROBLEM : INFO;

    for (uint32_t i = 0; i < presence->node_count; i++) {
        if (!has_finding(doctor, "device_node", presence->nodes[i].path)) {
            check_node(doctor, backend, &presence->nodes[i], severity);
        }
    }
    if (presence->node_count > 0 && has_plugin) {
        check_fixed_nodes(doctor, backend, json_object_get(facts, "device_nodes"), presence);
    }
    if (presence->has_node_facts && presence->node_count == 0 && presence->device_count > 0 &&
        !has_finding(doctor, "device_node", presence->devices[0].address)) {
        char remedy[512];

        snprintf(remedy, sizeof(remedy), "%s; if this is a container, pass the nodes in",
                 own_remedy(doctor, backend, DS_ACCEL__REASON_NO_DRIVER,
                            "install and load the vendor's kernel driver"));
        add(doctor, severity, "device_node", presence->devices[0].address, remedy,
            "this device is present, but it has no device node for %s: its driver is not loaded",
            backend);
    }
}

/* ---- backends ------------------------------------------------------------------------------- */

/* Is a plugin of the backend installed and not disabled? */
static bool has_plugin_for(const struct doctor *doctor, const char *backend)
{
    const struct ds_accel__candidate *candidate =
        ds_accel__registry_find(&doctor->context->registry, backend);

    return candidate != NULL && candidate->state != DS_ACCEL_STATE_DISABLED;
}

static void check_backend(struct doctor *doctor, const struct ds_accel__linker *linker,
                          const char *backend, json_t *facts)
{
    json_t *libraries = json_object_get(facts, "libraries");
    bool has_plugin = has_plugin_for(doctor, backend);
    struct ds_accel__presence presence;
    bool is_here;

    if (!is_done(doctor, ds_accel__presence_read(&doctor->survey, facts, &presence))) {
        return;
    }
    is_here = hardware_of(&presence) == PRESENT;
    check_nodes(doctor, backend, facts, &presence, has_plugin);
    if (linker->has_directories && json_array_size(libraries) > 0 && (is_here || has_plugin)) {
        doctor->absent = hardware_of(&presence) == ABSENT ? backend : NULL;
        check_libraries(doctor, linker, backend, libraries, is_here && has_plugin ? PROBLEM : INFO);
        doctor->absent = NULL;
    }
    if (is_here && ds_accel__registry_find(&doctor->context->registry, backend) == NULL) {
        add(doctor, INFO, "plugin", backend, remedy_of(doctor, backend, DS_ACCEL__REASON_NO_PLUGIN),
            "%s is present, but ds_accel_%s.so is not installed",
            presence.device_count > 0 ? presence.devices[0].address : presence.nodes[0].path,
            backend);
    }
    ds_accel__presence_clear(&presence);
}

/* Check every backend. Backends with a plugin are checked first, so that a finding shared with
 * other backends is reported under the backend that has a plugin. */
static void check_backends(struct doctor *doctor)
{
    json_t *backends = ds_accel__config_get(&doctor->context->config, "backends", NULL);
    struct ds_accel__linker linker;
    const char *backend;
    json_t *facts;

    if (!is_done(doctor, ds_accel__linker_open(doctor->machine, &linker))) {
        return;
    }
    for (int pass = 0; pass < 2; pass++) {
        json_object_foreach(backends, backend, facts)
        {
            if (has_plugin_for(doctor, backend) == (pass == 0)) {
                check_backend(doctor, &linker, backend, facts);
            }
        }
    }
    ds_accel__linker_close(&linker);
}

/* ---- limits of this process ----------------------------------------------------------------- */

#define CAP_IPC_LOCK_BIT 14

/* The first word after a key of /proc/self/status or limits; "" if the key is missing. */
static void get_value(const char *text, const char *key, char *value, size_t value_size)
{
    const char *at = text != NULL ? strstr(text, key) : NULL;

    value[0] = '\0';
    if (at != NULL && (at == text || at[-1] == '\n')) {
        at += strlen(key);
        at += strspn(at, " \t");
        snprintf(value, value_size, "%.*s", (int)strcspn(at, " \t\n"), at);
    }
}

static void check_memlock(struct doctor *doctor, const char *status_text)
{
    struct ds_accel_host_memory memory = {.struct_size = sizeof(memory)};
    char *limits;
    char value[32];
    char capabilities[32];
    unsigned long long limit;

    if (!is_done(doctor, ds_accel__machine_read(doctor->machine, "/proc/self/limits", &limits))) {
        return;
    }
    get_value(limits, "Max locked memory", value, sizeof(value));
    get_value(status_text, "CapEff:", capabilities, sizeof(capabilities));
    free(limits);
    if (value[0] == '\0' || ds_accel__host_memory(doctor->machine, &memory) < 0) {
        return;
    }
    limit = strtoull(value, NULL, 10);
    if (strcmp(value, "unlimited") == 0) {
        add(doctor, OK, "memlock", "RLIMIT_MEMLOCK", "", "unlimited");
    } else if ((strtoull(capabilities, NULL, 16) >> CAP_IPC_LOCK_BIT & 1) != 0) {
        add(doctor, OK, "memlock", "RLIMIT_MEMLOCK", "",
            "%llu bytes, which do not bind this process: it has CAP_IPC_LOCK", limit);
    } else if (limit < memory.total_bytes / 8) {
        add(doctor, WARNING, "memlock", "RLIMIT_MEMLOCK",
            "raise it: ulimit -l unlimited, memlock in /etc/security/limits.d, or LimitMEMLOCK= of "
            "the service",
            "%llu KiB of %llu MiB of memory may be locked: pinned host memory fails or is slow "
            "beyond that",
            limit / 1024, (unsigned long long)memory.total_bytes / 1024 / 1024);
    } else {
        add(doctor, OK, "memlock", "RLIMIT_MEMLOCK", "", "%llu bytes", limit);
    }
}

/* Report whether this process may use all of the machine's CPUs or NUMA nodes, or only some, and
 * the control group file that restricts it. Report nothing if a count is unknown. */
static void check_set(struct doctor *doctor, const char *check, const char *what, const char *list,
                      uint32_t count, const char *file)
{
    uint32_t allowed = ds_accel__list_count(list);
    char source[512];

    if (allowed == 0 || count == 0) {
        return;
    }
    if (allowed >= count) {
        add(doctor, OK, check, "", "", "all %u %s", count, what);
        return;
    }
    if (!is_done(doctor,
                 ds_accel__cgroup_cpuset(doctor->machine, file, allowed, source, sizeof(source)))) {
        return;
    }
    add(doctor, INFO, check, source,
        source[0] != '\0' ? "if this is not intended, change that file's group"
                          : "if this is not intended, check what starts this program: taskset, "
                            "numactl or a launcher binds it",
        "%u of %u %s may be used: %s", allowed, count, what, list);
}

static void check_sets(struct doctor *doctor, const char *status_text)
{
    const struct ds_accel__topology *topology;
    uint32_t node_count = 0;
    char list[256];
    char *online;

    if (!is_done(doctor, ds_accel__machine_read(doctor->machine, "/sys/devices/system/cpu/online",
                                                &online))) {
        return;
    }
    get_value(status_text, "Cpus_allowed_list:", list, sizeof(list));
    check_set(doctor, "cpuset", "CPUs", list, online != NULL ? ds_accel__list_count(online) : 0,
              "cpuset.cpus");
    free(online);
    if (!is_done(doctor, ds_accel__context_topology(doctor->context, &topology))) {
        return;
    }
    for (uint32_t i = 0; i < topology->node_count; i++) {
        node_count += topology->nodes[i].total_memory_bytes > 0;
    }
    get_value(status_text, "Mems_allowed_list:", list, sizeof(list));
    check_set(doctor, "numa", "NUMA nodes with memory", list, node_count, "cpuset.mems");
}

/* Report the memory limit of this process's control group. Warn if less than a tenth of the limit
 * is left, because jobs are then likely to be killed. */
static void check_memory(struct doctor *doctor)
{
    struct ds_accel__cgroup_limit limit;
    char *meminfo;
    uint64_t total;
    bool is_tight;

    if (!is_done(doctor, ds_accel__machine_read(doctor->machine, "/proc/meminfo", &meminfo)) ||
        meminfo == NULL) {
        return;
    }
    total = ds_accel__meminfo_value(meminfo, "MemTotal");
    free(meminfo);
    if (!is_done(doctor, ds_accel__cgroup_limit(doctor->machine, total, &limit))) {
        return;
    }
    if (limit.limit_bytes == 0) {
        add(doctor, OK, "memory", "", "", "%llu MiB, and no control group has a smaller limit",
            (unsigned long long)total / 1024 / 1024);
        return;
    }
    is_tight = limit.left_bytes < limit.limit_bytes / 10;
    add(doctor, is_tight ? WARNING : INFO, "memory", limit.source,
        is_tight ? "end processes that use the memory, or raise the limit in that file's group"
                 : "if this is not intended, raise the limit in that file's group",
        "%llu of %llu MiB may be used, %llu MiB are left",
        (unsigned long long)limit.limit_bytes / 1024 / 1024,
        (unsigned long long)total / 1024 / 1024,
        (unsigned long long)limit.left_bytes / 1024 / 1024);
}

static void check_limits(struct doctor *doctor)
{
    char *status_text;

    if (!is_done(doctor,
                 ds_accel__machine_read(doctor->machine, "/proc/self/status", &status_text))) {
        return;
    }
    check_memlock(doctor, status_text);
    check_sets(doctor, status_text);
    check_memory(doctor);
    free(status_text);
}

/* ---- the report ----------------------------------------------------------------------------- */

static json_t *doctor_tree(struct doctor *doctor)
{
    json_t *tree = json_object();
    json_t *findings = json_array();

    ds_accel__json_set(tree, "schema_version", json_integer(1), &doctor->failed);
    ds_accel__json_set(tree, "ok", json_boolean(json_array_size(doctor->findings[PROBLEM]) == 0),
                       &doctor->failed);
    for (int severity = 0; severity < SEVERITY_COUNT; severity++) {
        if (json_array_extend(findings, doctor->findings[severity]) != 0) {
            doctor->failed = true;
        }
    }
    ds_accel__json_set(tree, "findings", findings, &doctor->failed);
    if (doctor->failed) {
        json_decref(tree);
        return NULL;
    }
    return tree;
}

int32_t ds_accel__report_doctor(ds_accel_t *context, json_t **tree_out)
{
    struct doctor doctor = {
        .context = context, .machine = &context->machine, .survey = {.machine = &context->machine}};

    for (int severity = 0; severity < SEVERITY_COUNT; severity++) {
        doctor.findings[severity] = json_array();
        doctor.failed = doctor.failed || doctor.findings[severity] == NULL;
    }
    check_choice(&doctor);
    check_containment(&doctor);
    check_config(&doctor);
    check_cache(&doctor);
    for (size_t i = 0; i < context->registry.count; i++) {
        check_plugin(&doctor, context->registry.candidates[i]);
    }
    check_dependencies(&doctor);
    check_backends(&doctor);
    check_limits(&doctor);
    *tree_out = doctor_tree(&doctor);
    for (int severity = 0; severity < SEVERITY_COUNT; severity++) {
        json_decref(doctor.findings[severity]);
    }
    ds_accel__survey_clear(&doctor.survey);
    return *tree_out != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
}
