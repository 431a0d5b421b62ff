/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Collects what a plan needs to know:
 *
 *      options, environment -> context -> choice of the accelerator, usually a stored verdict
 *                                -> a child process starts the plugin and writes JSON:
 *                                   work-arounds, names of variables, devices
 *      machine -> CPUs, NUMA nodes
 *
 * The backend cpu needs no child: its devices are the NUMA nodes, and its variables are in the
 * configuration. A recorded machine needs none, because no plugin runs then. A launcher lives as
 * long as its job, so a vendor's runtime is never loaded into it.
 */
#include "launch/facts.h"
#include "base/json.h"
#include "base/text.h"
#include "config/config.h"
#include "config/env.h"
#include "host/context.h"
#include "host/decision.h"
#include "host/detect.h"
#include "launch/exports.h"
#include "launch/spawn.h"
#include "launch/worker.h"
#include "report/report.h"
#include "runtime/facts.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHILD_LIMIT_NS UINT64_C(60000000000) /* for the start of a vendor's runtime */
#define POD_FILE "/dlts-runtime/env/pod.env"
#define POD_VARIABLES 2u /* the variables of POD_FILE that ranks get */

extern char **environ;

/* ---- the backend ---------------------------------------------------------------------------- */

/* Work-arounds, and the names of variables; a callback of ds_accel__with_facts(). reads: the
 * variable that the vendor's runtime reads first. */
static json_t *backend_tree(const struct ds_accel__facts *facts, uint32_t count)
{
    struct ds_accel_error error = {.struct_size = sizeof(error)};
    bool failed = false;
    char name[64] = "";
    json_t *tree = json_object();

    if (facts->instance != NULL &&
        facts->candidate->table.env_name_get(facts->instance, DS_ACCEL_ENV_LIST_VISIBLE_DEVICES, 0,
                                             name, sizeof(name), &error) < 0) {
        name[0] = '\0';
    }
    ds_accel__sanitize(name, sizeof(name));
    ds_accel__json_set(tree, "reads", ds_accel__json_text(name), &failed);
    ds_accel__json_set(tree, "device_count", json_integer(count), &failed);
    ds_accel__json_set(tree, "env", ds_accel__env_tree(facts), &failed);
    ds_accel__facts_set(tree, facts, &failed);
    if (failed) {
        json_decref(tree);
        return NULL;
    }
    return tree;
}

/* Read the facts of the chosen backend without its plugin. */
static int32_t read_configured(ds_accel_t *context, json_t **tree_out)
{
    struct ds_accel__facts facts;

    pthread_mutex_lock(&context->lock);
    ds_accel__facts_read(&facts, context, context->chosen->name, context->chosen, NULL);
    *tree_out = backend_tree(&facts, context->device_count);
    pthread_mutex_unlock(&context->lock);
    return *tree_out != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
}

/* What selects each device in a variable for visible devices. */
static json_t *tokens_tree(ds_accel_t *context, const char *name, uint32_t count, bool *failed)
{
    json_t *tokens = json_array();
    char token[96] = "";

    for (uint32_t i = 0; i < count; i++) {
        int32_t status =
            ds_accel_visible_devices_value(context, name, &i, 1, token, sizeof(token), NULL);

        ds_accel__sanitize(token, sizeof(token));
        *failed = json_array_append_new(tokens, status >= 0 ? ds_accel__json_text(token)
                                                            : json_null()) != 0 ||
                  *failed;
    }
    return tokens;
}

/* Add the devices' names in the variables for visible devices. */
static int32_t set_visible(ds_accel_t *context, json_t *tree)
{
    const json_t *names = json_object_get(tree, "visible_devices_envs");
    json_t *visible = json_object();
    bool failed = false;

    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));

        if (name != NULL) {
            ds_accel__json_set(visible, name,
                               tokens_tree(context, name, context->device_count, &failed), &failed);
        }
    }
    ds_accel__json_set(tree, "visible", visible, &failed);
    return failed ? ds_accel__no_memory() : DS_ACCEL_OK;
}

/* Read the facts of the chosen backend from its plugin, which is started if it is not running. */
static int32_t read_plugin(ds_accel_t *context, json_t **tree_out)
{
    const char *name = context->chosen->name;
    json_t *devices = NULL;
    int32_t status = context->recording != NULL ? DS_ACCEL_OK : ds_accel_detect(context);

    if (status < 0) {
        return status;
    }
    pthread_mutex_lock(&context->lock);
    status = ds_accel__with_facts(context, name, backend_tree, tree_out);
    if (status >= 0) {
        status = ds_accel__topo_devices(context, name, &devices);
    }
    pthread_mutex_unlock(&context->lock);
    if (status >= 0 && json_object_set_new(*tree_out, "devices", devices) != 0) {
        status = ds_accel__no_memory();
    }
    return status < 0 || context->recording != NULL ? status : set_visible(context, *tree_out);
}

/* ---- the child process ---------------------------------------------------------------------- */

/* Write the facts, or an object with the error; the work of the child. */
static void serve(struct ds_accel__worker *worker, void *user_data)
{
    ds_accel_t *context = user_data;
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    json_t *tree = NULL;

    if (null >= 0) {
        dup2(null, STDOUT_FILENO); /* for runtimes that print */
    }
    context->log.level = 0; /* the parent has logged its choice already */
    context->log.topic_count = 0;
    if (read_plugin(context, &tree) < 0) {
        json_decref(tree);
        tree = json_pack("{s:s}", "error", ds_accel_last_error());
    }
    if (tree != NULL) {
        ds_accel__worker_result(worker, tree);
    }
}

/* Read the facts of the chosen backend in a child process. If that fails, the job starts with what
 * the configuration says. */
static int32_t read_in_child(ds_accel_t *context, struct ds_accel__text *notes, json_t **tree_out)
{
    json_t *results = NULL;
    json_t *first;
    bool is_late = false;
    int32_t status = ds_accel__worker_run(serve, context, CHILD_LIMIT_NS, &results, &is_late);

    if (status < 0) {
        return status;
    }
    first = json_array_get(results, 0);
    if (first != NULL && json_object_get(first, "error") == NULL) {
        *tree_out = json_incref(first);
    } else {
        const char *error = json_string_value(json_object_get(first, "error"));

        ds_accel__launch_note(notes, "the devices of %s are not known: %s", context->chosen->name,
                              error != NULL ? error
                              : is_late     ? "the start of the plugin took too long"
                                            : "the start of the plugin ended the process");
        status = read_configured(context, tree_out);
    }
    json_decref(results);
    return status;
}

static int32_t read_backend(struct ds_accel__known_facts *known, struct ds_accel__text *notes)
{
    ds_accel_t *context = known->context;
    int32_t status;

    pthread_mutex_lock(&context->config_lock);
    status = ds_accel__config_complete(&context->config, context->chosen->name);
    pthread_mutex_unlock(&context->config_lock);
    if (status < 0) {
        return status;
    }
    if (context->recording != NULL) {
        return read_plugin(context, &known->tree);
    }
    return strcmp(context->chosen->name, "cpu") == 0 ? read_configured(context, &known->tree)
                                                     : read_in_child(context, notes, &known->tree);
}

/* ---- variables ------------------------------------------------------------------------------ */

/* Copy an array of texts into an array of borrowed texts. */
static int32_t borrow_texts(const json_t *array, const char ***texts_out, uint32_t *count_out)
{
    size_t count = json_array_size(array);
    const char **texts = calloc(count + 1, sizeof(*texts));

    if (texts == NULL) {
        return ds_accel__no_memory();
    }
    *texts_out = texts;
    *count_out = 0;
    for (size_t i = 0; i < count; i++) {
        const char *text = json_string_value(json_array_get(array, i));

        if (text != NULL && text[0] != '\0') {
            texts[(*count_out)++] = text;
        }
    }
    return DS_ACCEL_OK;
}

/*
 * Choose the variables to set for the ranks: the one that DeepSpeed's launcher sets, which is the
 * first, and the one that the vendor's runtime reads first. Not all: HIP_VISIBLE_DEVICES counts the
 * devices that ROCR_VISIBLE_DEVICES leaves, so the same list in both would select other devices.
 */
static int32_t take_visible_names(struct ds_accel__known_facts *known)
{
    struct ds_accel__launch_facts *facts = &known->facts;
    const char *reads = ds_accel__json_string(known->tree, "reads");
    uint32_t count = 0;
    int32_t status = borrow_texts(json_object_get(known->tree, "visible_devices_envs"),
                                  &known->visible_names, &facts->visible_count);

    for (uint32_t i = 0; status >= 0 && i < facts->visible_count; i++) {
        if (count < DS_ACCEL__VISIBLE_LIMIT &&
            (i == 0 || strcmp(known->visible_names[i], reads) == 0)) {
            known->visible_names[count++] = known->visible_names[i];
        }
    }
    facts->visible_count = count;
    facts->visible_names = known->visible_names;
    return status;
}

/* Cut a list of devices at its first item "-1", which hides all devices behind it. */
static void cut_hidden(char *list)
{
    const char *rest = list;
    const char *item;
    size_t length;

    while ((item = ds_accel__list_next(&rest, ',', &length)) != NULL) {
        const char *text = item;

        ds_accel__trim(&text, &length);
        if (length == 2 && strncmp(text, "-1", 2) == 0) {
            list[item - list] = '\0';
            return;
        }
    }
}

/* Return the value of the variable that chooses devices, and its name; NULL, "": there is none. */
static const char *visible_variable(const struct ds_accel__known_facts *known,
                                    const char **name_out)
{
    for (uint32_t i = 0; i < known->facts.visible_count; i++) {
        const char *value = ds_accel__context_variable(known->context, known->visible_names[i]);

        if (value != NULL && value[0] != '\0') {
            *name_out = known->visible_names[i];
            return value;
        }
    }
    *name_out = "";
    return NULL;
}

/*
 * Copy the value of the variable that chooses devices, without what it hides. Ranks of the backend
 * cpu get the variable as it is if it hides all devices: they must not see them again.
 */
static int32_t take_visible_value(struct ds_accel__known_facts *known)
{
    struct ds_accel__launch_facts *facts = &known->facts;
    const char *value = visible_variable(known, &facts->visible_name);
    bool is_cpu = strcmp(known->context->chosen->name, "cpu") == 0;

    if (value == NULL) {
        bool is_empty = facts->visible_count > 0 &&
                        ds_accel__context_variable(known->context, facts->visible_names[0]) != NULL;

        facts->visible_count = is_cpu && is_empty ? 0 : facts->visible_count;
        return DS_ACCEL_OK;
    }
    facts->is_visible_read =
        strcmp(facts->visible_name, ds_accel__json_string(known->tree, "reads")) == 0;
    known->visible_value = strdup(value);
    if (known->visible_value == NULL) {
        return ds_accel__no_memory();
    }
    cut_hidden(known->visible_value);
    if (known->visible_value[0] != '\0') {
        facts->visible_value = known->visible_value;
    } else if (is_cpu) {
        facts->visible_count = 0;
    }
    return DS_ACCEL_OK;
}

/* Read the variables that the pod's file exports, of which DeepSpeed passes on two. The value is
 * one word, and the last line of a variable counts, as in DeepSpeed. */
static int32_t read_pod(struct ds_accel__known_facts *known,
                        struct ds_accel__job_variable *settings, uint32_t *count)
{
    static const char *const names[POD_VARIABLES] = {"FC_TASKROLE_NAME", "FC_TASK_INDEX"};
    const char *values[POD_VARIABLES] = {NULL};
    int32_t status = ds_accel__machine_read(&known->context->machine, POD_FILE, &known->pod);
    char *state = NULL;

    for (char *line = known->pod != NULL ? strtok_r(known->pod, "\n", &state) : NULL; line != NULL;
         line = strtok_r(NULL, "\n", &state)) {
        char *value = strchr(line, '=');

        if (strncmp(line, "export ", 7) != 0 || value == NULL) {
            continue;
        }
        *value++ = '\0';
        value[strcspn(value, " \t\v\f\r")] = '\0';
        for (size_t i = 0; i < POD_VARIABLES; i++) {
            values[i] = strcmp(line + 7, names[i]) == 0 ? value : values[i];
        }
    }
    for (size_t i = 0; i < POD_VARIABLES; i++) {
        if (values[i] != NULL) {
            settings[(*count)++] = (struct ds_accel__job_variable){names[i], values[i]};
        }
    }
    return status;
}

/* Make a path absolute; a new string; NULL: out of memory. */
static char *absolute(const char *path)
{
    char *whole = realpath(path, NULL);

    return whole != NULL ? whole : strdup(path);
}

/* The directories of --plugin-dir, followed by those of the environment; a new string; NULL: out of
 * memory. */
static char *join_directories(const struct ds_accel_options *options)
{
    const char *others = ds_accel__env_job("DS_ACCEL_PLUGIN_PATH");
    struct ds_accel__text text = {0};

    for (uint32_t i = 0; i < options->plugin_dir_count; i++) {
        char *directory = absolute(options->plugin_dirs[i]);

        text.failed = text.failed || directory == NULL;
        ds_accel__text_add(&text, "%s%s", i > 0 ? ":" : "", directory != NULL ? directory : "");
        free(directory);
    }
    if (others != NULL && others[0] != '\0') {
        ds_accel__text_add(&text, ":%s", others);
    }
    return ds_accel__text_take(&text);
}

/*
 * The options by which this process chose the accelerator, as variables, so that the ranks choose
 * the same one.
 */
static int32_t hand_down_options(struct ds_accel__known_facts *known,
                                 const struct ds_accel_options *options, uint32_t *count)
{
    const struct {
        const char *name;
        bool is_given;
        char *value;
    } rows[ARRAY_SIZE(known->handed_down)] = {
        {"DS_ACCELERATOR", options->accelerator != NULL,
         options->accelerator != NULL ? strdup(options->accelerator) : NULL},
        {"DS_ACCEL_PLUGIN_PATH", options->plugin_dir_count > 0,
         options->plugin_dir_count > 0 ? join_directories(options) : NULL},
        {"DS_ACCEL_CONFIG", options->config_file != NULL,
         options->config_file != NULL ? absolute(options->config_file) : NULL},
        {"DS_ACCEL_ROOT", options->machine_root != NULL,
         options->machine_root != NULL ? absolute(options->machine_root) : NULL},
    };
    bool failed = false;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        known->handed_down[i] = rows[i].value;
        failed = failed || (rows[i].is_given && rows[i].value == NULL);
        if (rows[i].value != NULL) {
            known->settings[(*count)++] =
                (struct ds_accel__job_variable){rows[i].name, rows[i].value};
        }
    }
    return failed ? ds_accel__no_memory() : DS_ACCEL_OK;
}

/* The changes of the environment that the backend and the ranks' own detection need. */
static int32_t take_settings(struct ds_accel__known_facts *known,
                             const struct ds_accel_options *options)
{
    const json_t *rules = json_object_get(json_object_get(known->tree, "env"), "variables");
    size_t rule_count = json_array_size(rules);
    uint32_t count = 0;
    int32_t status;

    known->settings = calloc(rule_count + POD_VARIABLES + ARRAY_SIZE(known->handed_down),
                             sizeof(*known->settings));
    if (known->settings == NULL) {
        return ds_accel__no_memory();
    }
    for (size_t i = 0; i < rule_count; i++) {
        const json_t *rule = json_array_get(rules, i);
        bool is_unset = strcmp(ds_accel__json_string(rule, "rule"), "unset") == 0;

        if (json_is_true(json_object_get(rule, "applied"))) {
            known->settings[count++] = (struct ds_accel__job_variable){
                ds_accel__json_string(rule, "name"),
                is_unset ? NULL : ds_accel__json_string(rule, "value")};
        }
    }
    status = read_pod(known, known->settings, &count);
    if (status >= 0) {
        status = hand_down_options(known, options, &count);
    }
    known->facts.settings = known->settings;
    known->facts.setting_count = count;
    return status;
}

static int32_t take_devices(struct ds_accel__known_facts *known)
{
    const json_t *devices = json_object_get(known->tree, "devices");
    uint32_t count = known->context->device_count;

    known->devices = calloc(count > 0 ? count : 1, sizeof(*known->devices));
    if (known->devices == NULL) {
        return ds_accel__no_memory();
    }
    for (uint32_t i = 0; i < count; i++) {
        struct ds_accel__device_fact *fact = &known->devices[i];
        const json_t *device = json_array_get(devices, i);
        const json_t *node = json_object_get(device, "numa_node");

        ds_accel__copy(fact->uuid, sizeof(fact->uuid), ds_accel__json_string(device, "uuid"));
        ds_accel__copy(fact->pci_address, sizeof(fact->pci_address),
                       ds_accel__json_string(device, "pci_address"));
        fact->node = json_is_integer(node) ? (int32_t)json_integer_value(node) : -1;
        for (uint32_t j = 0; j < known->facts.visible_count; j++) {
            const json_t *tokens = json_object_get(json_object_get(known->tree, "visible"),
                                                   known->facts.visible_names[j]);

            fact->visible[j] = json_string_value(json_array_get(tokens, i));
        }
    }
    known->facts.devices = known->devices;
    known->facts.device_count = count;
    return DS_ACCEL_OK;
}

/* ---- this machine --------------------------------------------------------------------------- */

/* Is the text an address of a network interface of this machine? The interfaces are read once for
 * all hosts. */
static bool is_own_address(struct ds_accel__known_facts *known, const char *text)
{
    struct in6_addr six;
    struct in_addr four;
    bool is_four = inet_pton(AF_INET, text, &four) == 1;
    bool found = false;

    if (!is_four && inet_pton(AF_INET6, text, &six) != 1) {
        return false;
    }
    if (known->interfaces == NULL && getifaddrs(&known->interfaces) != 0) {
        known->interfaces = NULL;
    }
    for (const struct ifaddrs *entry = known->interfaces; entry != NULL && !found;
         entry = entry->ifa_next) {
        const struct sockaddr *address = entry->ifa_addr;

        if (address != NULL && is_four && address->sa_family == AF_INET) {
            found = memcmp(&((const struct sockaddr_in *)(const void *)address)->sin_addr, &four,
                           sizeof(four)) == 0;
        } else if (address != NULL && !is_four && address->sa_family == AF_INET6) {
            found = memcmp(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, &six,
                           sizeof(six)) == 0;
        }
    }
    return found;
}

/*
 * Is this the name or an address of this machine? Names are compared, and not resolved: a name
 * service may need seconds for each of many hosts. A short name is equal to a full name that begins
 * with it.
 */
static bool is_local(void *user_data, const char *host)
{
    struct ds_accel__known_facts *known = user_data;
    const char *own = known->host_name;
    struct in_addr loopback;
    size_t length = strcspn(host, ".");
    size_t own_length = strcspn(own, ".");

    if (strcasecmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 ||
        (strncmp(host, "127.", 4) == 0 && inet_pton(AF_INET, host, &loopback) == 1)) {
        return true;
    }
    if (known->context->recording != NULL) {
        return false; /* a recording has no host's name */
    }
    if (own[0] != '\0' && (host[length] == '\0' || own[own_length] == '\0'
                               ? length == own_length && strncasecmp(host, own, length) == 0
                               : strcasecmp(host, own) == 0)) {
        return true;
    }
    return is_own_address(known, host);
}

static bool is_python_script(const char *path)
{
    char line[128];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    ssize_t size = fd >= 0 ? read(fd, line, sizeof(line) - 1) : -1;

    if (fd >= 0) {
        close(fd);
    }
    line[size > 0 ? size : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    return strncmp(line, "#!", 2) == 0 && strstr(line, "python") != NULL;
}

static bool find_file(void *user_data, const char *path, bool *is_executable_out)
{
    struct stat info;

    (void)user_data;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) {
        return false;
    }
    *is_executable_out = access(path, X_OK) == 0 && !is_python_script(path);
    return true;
}

/* Find the Python that runs programs: the first in PATH, which is that of an activated virtual
 * environment. A start without any fails, and names python3. */
static int32_t find_python(struct ds_accel__known_facts *known)
{
    static const char *const names[] = {"python3", "python"};
    int32_t status = DS_ACCEL_ERR_NOT_FOUND;

    for (size_t i = 0; i < ARRAY_SIZE(names) && status == DS_ACCEL_ERR_NOT_FOUND; i++) {
        status = ds_accel__command_find(names[i], ds_accel__env_job("PATH"), &known->python);
    }
    if (status == DS_ACCEL_ERR_NOT_FOUND) {
        known->python = strdup(names[0]);
        status = known->python != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    }
    known->facts.python = known->python;
    return status;
}

/* The CPUs and NUMA nodes. They are read only for ranks that will be bound, because a large machine
 * has many files. */
static int32_t read_processors(struct ds_accel__known_facts *known)
{
    int32_t status = ds_accel__cpus_read(&known->context->machine, &known->cpus);

    known->facts.cpus = &known->cpus;
    return status < 0 ? status : ds_accel__context_topology(known->context, &known->facts.topology);
}

static int32_t read_machine(struct ds_accel__known_facts *known,
                            const struct ds_accel__launch_options *launch)
{
    int32_t status = launch->bind != DS_ACCEL__BIND_NONE ? read_processors(known) : DS_ACCEL_OK;

    if (gethostname(known->host_name, sizeof(known->host_name) - 1) != 0) {
        known->host_name[0] = '\0';
    }
    known->directory = getcwd(NULL, 0);
    if (status >= 0 && known->directory == NULL) {
        known->directory = strdup("/"); /* the working directory was removed */
        status = known->directory != NULL ? DS_ACCEL_OK : ds_accel__no_memory();
    }
    known->facts.directory = known->directory;
    return status < 0 ? status : find_python(known);
}

/* ---- all ------------------------------------------------------------------------------------ */

static int32_t choose(const struct ds_accel_options *options, struct ds_accel__known_facts *known)
{
    int32_t status = ds_accel_create(options, &known->context);

    if (status >= 0) {
        status = ds_accel__choose(known->context);
    }
    return status;
}

static int32_t read_all_facts(const struct ds_accel_options *options, struct ds_accel__text *notes,
                              struct ds_accel__known_facts *known)
{
    int32_t status = choose(options, known);

    if (status >= 0) {
        status = read_backend(known, notes);
    }
    if (status >= 0) {
        status = take_visible_names(known);
    }
    if (status >= 0) {
        status = take_visible_value(known);
    }
    if (status >= 0) {
        status = borrow_texts(json_object_get(known->tree, "export_envs"), &known->export_prefixes,
                              &known->facts.export_count);
    }
    known->facts.export_prefixes = known->export_prefixes;
    return status;
}

int32_t ds_accel__known_facts_read(const struct ds_accel_options *options,
                                   const struct ds_accel__launch_options *launch, bool has_hostfile,
                                   struct ds_accel__text *notes,
                                   struct ds_accel__known_facts *known)
{
    int32_t status;

    unsetenv("DS_ACCEL_DECISION"); /* of another launcher, whose rank this process is */
    status = read_all_facts(options, notes, known);
    if (status >= 0 && known->facts.visible_value != NULL &&
        !ds_accel__launch_uses_visible(launch, has_hostfile)) {
        ds_accel__launch_note(notes, "%s=%s is ignored: %s the devices", known->facts.visible_name,
                              known->facts.visible_value,
                              has_hostfile ? "the hostfile chooses" : "options choose");
        for (uint32_t i = 0; i < known->facts.visible_count; i++) {
            unsetenv(known->visible_names[i]);
        }
        ds_accel__known_facts_clear(known);
        status = read_all_facts(options, notes, known);
    }
    if (status >= 0) {
        status = take_devices(known);
    }
    if (status >= 0) {
        status = take_settings(known, options);
    }
    if (status >= 0) {
        status = read_machine(known, launch);
    }
    if (status >= 0 && has_hostfile) {
        status = ds_accel__env_files_read((const char *const *)environ, known->directory,
                                          known->env_files, &known->facts.env_file_count);
        known->facts.env_files = known->env_files;
    }
    if (status >= 0) {
        status = ds_accel__decision_write(known->context, &known->decision);
    }
    if (status < 0) {
        ds_accel__known_facts_clear(known);
        return status;
    }
    known->facts.accelerator = known->context->chosen->name;
    known->facts.environment = (const char *const *)environ;
    known->facts.is_local = is_local;
    known->facts.find_file = find_file;
    known->facts.user_data = known;
    return DS_ACCEL_OK;
}

void ds_accel__known_facts_clear(struct ds_accel__known_facts *known)
{
    ds_accel__cpus_clear(&known->cpus);
    json_decref(known->tree);
    free(known->visible_names);
    free(known->export_prefixes);
    free(known->devices);
    free(known->settings);
    free(known->visible_value);
    free(known->directory);
    free(known->python);
    free(known->pod);
    ds_accel__env_files_clear(known->env_files, known->facts.env_file_count);
    for (size_t i = 0; i < ARRAY_SIZE(known->handed_down); i++) {
        free(known->handed_down[i]);
    }
    ds_accel__text_clear(&known->decision);
    if (known->interfaces != NULL) {
        freeifaddrs(known->interfaces);
    }
    ds_accel_destroy(known->context);
    memset(known, 0, sizeof(*known));
}
