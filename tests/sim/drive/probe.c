/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/* Probing in a process with signals or with an open device; a device in use. */
#include "drive.h"

#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void on_alarm(int signal_number)
{
    (void)signal_number;
}

static void on_crash(int signal_number)
{
    (void)signal_number;
    (void)!write(1, "crashed\n", 8);
    _exit(9);
}

void drive_probe(struct run *run)
{
    const struct itimerval every_ms = {{0, 1000}, {0, 1000}};
    const struct itimerval never = {{0, 0}, {0, 0}};
    struct ds_accel_verdict verdict = {.struct_size = sizeof(verdict)};

    signal(SIGABRT, on_crash);
    signal(SIGALRM, on_alarm);
    setitimer(ITIMER_REAL, &every_ms, NULL);
    CALL(run, probe, drive_host(run->table->name), &verdict);
    setitimer(ITIMER_REAL, &never, NULL);
    printf("state %u reason %u %s\n", verdict.state, verdict.reason, verdict.detail);
    if (waitpid(-1, NULL, WNOHANG) != -1) {
        drive_wrong(run, "a process is left");
    }
}

/* A runtime that was started in this process does not survive a fork. */
void drive_again(struct run *run)
{
    struct ds_accel_verdict verdict = {.struct_size = sizeof(verdict)};

    if (CALL(run, device_open, run->instance, 0, &run->device) == DS_ACCEL_OK &&
        CALL(run, probe, drive_host(run->table->name), &verdict) == DS_ACCEL_OK) {
        printf("state %u reason %u %s\n", verdict.state, verdict.reason, verdict.detail);
    }
}

/* Opens the device twice, and keeps it until a line can be read from stdin, so that another process
 * can try to open it. */
void drive_busy(struct run *run)
{
    ds_accel_plugin_instance_t *instances[2] = {NULL, NULL};
    ds_accel_plugin_device_t *devices[2] = {NULL, NULL};

    for (int i = 0; i < 2; i++) {
        if (CALL(run, init, drive_host(run->table->name), &instances[i]) < 0 ||
            CALL(run, device_open, instances[i], 0, &devices[i]) < 0) {
            break;
        }
    }
    puts(run->failed == 0 ? "open" : "not open");
    fflush(stdout);
    getchar();
    for (int i = 0; i < 2; i++) {
        run->table->device_close(devices[i]);
        run->table->shutdown(instances[i]);
    }
}
