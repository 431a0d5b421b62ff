/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Why a rank ended. SIGKILL has many senders; only the kernel's counters tell whether memory was
 * exhausted. A rank can also fail because the kernel killed one of its children, such as a process
 * that loads data; then the rank exits by itself, and the sentence contains both facts without
 * claiming that one caused the other.
 */
#include "launch/death.h"
#include "base/text.h"
#include "launch/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EXIT_STALLED 124
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND 127

void ds_accel__death_ended(const struct ds_accel__machine *machine, const siginfo_t *info,
                           const struct ds_accel__ended *ended, const struct ds_accel__oom *oom,
                           struct ds_accel__death *death)
{
    *death = (struct ds_accel__death){.kind = DS_ACCEL__DEATH_EXITED, .oom = *oom};
    if (info->si_code == CLD_EXITED) {
        death->code = info->si_status;
        return;
    }
    death->signal = info->si_status;
    if (death->signal == SIGKILL && oom->verdict == DS_ACCEL__OOM_PROVED) {
        death->kind = DS_ACCEL__DEATH_OOM_KILLED;
        return;
    }
    death->kind = DS_ACCEL__DEATH_SIGNALED;
    death->dumped_core = info->si_code == CLD_DUMPED;
    ds_accel__core_dump_find(machine, ended, death->signal, death->dumped_core, &death->core);
}

/* Copy the interpreter of a script: the first word of its first line, behind "#!". "": none. */
static void find_interpreter(const char *path, char *interpreter, size_t size)
{
    char line[256] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t count = fd >= 0 ? read(fd, line, sizeof(line) - 1) : -1;
    const char *first = line;

    if (fd >= 0) {
        close(fd);
    }
    line[count > 0 ? count : 0] = '\0';
    if (strncmp(line, "#!", 2) == 0) {
        first = line + 2 + strspn(line + 2, " \t");
        line[(size_t)(first - line) + strcspn(first, " \t\n")] = '\0';
    }
    if (strncmp(line, "#!", 2) == 0 && access(first, F_OK) != 0) {
        ds_accel__copy(interpreter, size - 2, first);
        count = (ssize_t)strcspn(interpreter, "\r");
        if (interpreter[count] == '\r') {
            memcpy(interpreter + count, "\\r", 3); /* of an editor for Windows */
        }
        ds_accel__sanitize(interpreter, size);
    }
}

void ds_accel__death_not_started(const struct ds_accel__spawned *spawned, const char *program,
                                 const char *path, struct ds_accel__death *death)
{
    *death = (struct ds_accel__death){
        .kind = DS_ACCEL__DEATH_NOT_STARTED, .step = spawned->step, .error = spawned->error};
    if (spawned->step == DS_ACCEL__SPAWN_EXECUTE && spawned->error == ENOENT) {
        find_interpreter(path, death->interpreter, sizeof(death->interpreter));
    }
    ds_accel__copy(death->program, sizeof(death->program), program);
    ds_accel__truncate(death->program, sizeof(death->program), strlen(program));
    ds_accel__sanitize(death->program, sizeof(death->program));
}

void ds_accel__death_stalled(uint64_t stalled_ns, struct ds_accel__death *death)
{
    *death = (struct ds_accel__death){.kind = DS_ACCEL__DEATH_STALLED, .stalled_ns = stalled_ns};
}

bool ds_accel__death_is_failure(const struct ds_accel__death *death)
{
    return death->kind != DS_ACCEL__DEATH_EXITED || death->code != 0;
}

/* ---- text ----------------------------------------------------------------------------------- */

static void add_core(const struct ds_accel__core_dump *core, struct ds_accel__text *text)
{
    switch (core->kind) {
    case DS_ACCEL__CORE_NONE:
        break;
    case DS_ACCEL__CORE_ABSENT:
        ds_accel__text_add(text, ", no core dump: %s", core->text);
        break;
    case DS_ACCEL__CORE_FILE:
        ds_accel__text_add(text, ", core dump: %s", core->text);
        break;
    case DS_ACCEL__CORE_COMMAND:
        ds_accel__text_add(text, ", core dump: run %s", core->text);
        break;
    case DS_ACCEL__CORE_HANDLER:
        ds_accel__text_add(text, ", core dump: passed to %s", core->text);
        break;
    case DS_ACCEL__CORE_LOST:
        ds_accel__text_add(text, ", core dump: written, but not found as %s", core->text);
        break;
    }
}

/* What the kernel killed, as a clause. */
static void add_kills(const struct ds_accel__oom *oom, struct ds_accel__text *text)
{
    if (oom->limit_was_reached) {
        ds_accel__text_add(text, "the memory limit of %llu bytes (%s) was reached and ",
                           (unsigned long long)oom->limit_bytes, oom->limit_file);
    }
    ds_accel__text_add(text, "the kernel killed %llu process%s of %s since the start (%s)",
                       (unsigned long long)oom->kills, oom->kills == 1 ? "" : "es",
                       oom->verdict == DS_ACCEL__OOM_PROVED ? "the rank's control group"
                       : oom->is_machine_wide               ? "this machine"
                                                            : "the launcher's control group",
                       oom->counter_file);
}

static void add_signaled(const struct ds_accel__death *death, struct ds_accel__text *text)
{
    char name[DS_ACCEL__SIGNAL_NAME_SIZE];

    ds_accel__text_add(text, "was killed by %s (signal %d)",
                       ds_accel__signal_name(death->signal, name), death->signal);
    add_core(&death->core, text);
    if (death->oom.verdict != DS_ACCEL__OOM_NONE) {
        ds_accel__text_add(text, death->signal == SIGKILL ? "; likely out of memory: "
                                                          : "; memory was exhausted: ");
        add_kills(&death->oom, text);
    }
}

static void add_exited(const struct ds_accel__death *death, struct ds_accel__text *text)
{
    ds_accel__text_add(text, "exited with code %d", death->code);
    if (death->code != 0 && death->oom.verdict != DS_ACCEL__OOM_NONE) {
        ds_accel__text_add(text, "; memory was exhausted: ");
        add_kills(&death->oom, text);
    }
}

static void add_not_started(const struct ds_accel__death *death, struct ds_accel__text *text)
{
    const char *step = death->step == DS_ACCEL__SPAWN_FORK      ? ": no new process"
                       : death->step == DS_ACCEL__SPAWN_STREAMS ? ": its streams"
                                                                : "";

    if (death->interpreter[0] != '\0') {
        ds_accel__text_add(text,
                           "could not be started: %s: its first line names the interpreter "
                           "\"%s\", which does not exist",
                           death->program, death->interpreter);
        return;
    }
    ds_accel__text_add(text, "could not be started: %s%s: %s", death->program, step,
                       strerror(death->error));
}

void ds_accel__death_text(const struct ds_accel__death *death, struct ds_accel__text *text)
{
    switch (death->kind) {
    case DS_ACCEL__DEATH_EXITED:
        add_exited(death, text);
        break;
    case DS_ACCEL__DEATH_SIGNALED:
        add_signaled(death, text);
        break;
    case DS_ACCEL__DEATH_OOM_KILLED:
        ds_accel__text_add(text, "was killed by the kernel out of memory (SIGKILL): ");
        add_kills(&death->oom, text);
        break;
    case DS_ACCEL__DEATH_NOT_STARTED:
        add_not_started(death, text);
        break;
    case DS_ACCEL__DEATH_STALLED:
        ds_accel__text_add(text, "made no progress for %.1f s and was ended",
                           (double)death->stalled_ns / 1e9);
        break;
    }
}

int ds_accel__death_exit_code(const struct ds_accel__death *death)
{
    switch (death->kind) {
    case DS_ACCEL__DEATH_EXITED:
        return death->code;
    case DS_ACCEL__DEATH_SIGNALED:
    case DS_ACCEL__DEATH_OOM_KILLED:
        return 128 + death->signal;
    case DS_ACCEL__DEATH_NOT_STARTED:
        return death->error == ENOENT && death->interpreter[0] == '\0' ? EXIT_NOT_FOUND
                                                                       : EXIT_NOT_EXECUTABLE;
    case DS_ACCEL__DEATH_STALLED:
        break;
    }
    return EXIT_STALLED;
}
