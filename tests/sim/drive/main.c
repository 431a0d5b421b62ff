/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The program that calls one plugin's table directly, as a host would, for tests/sim/test_*.sh:
 *
 *     drive PLUGIN SCENARIO [ARGUMENT...]
 *
 * The table below lists the scenarios. The conformance suite checks the interface's rules. A
 * scenario checks behaviour that depends on the implementation of one vendor's plugin, and is small
 * enough to be run once for every call that can fail.
 *
 * The program writes to stdout:
 *
 *     lines of the scenario
 *     failed SLOT: STATUS VENDOR_CODE VENDOR_TEXT: MESSAGE     for each call that failed
 *     untold ...                     for each failure that was not reported correctly
 *     wrong: ...                     for each unexpected result
 *     SCENARIO: N passed, N failed   at the end: the numbers of checked calls and results
 *
 * Warnings of the plugin are on stderr ("log: ..."). A scenario whose description contains
 * "whatever fails" is for runs with injected failures: it prints failed calls, but does not count
 * them as failures. The exit code is the worst result: 0 success, 1 a call failed, 3 a failure was
 * not reported correctly, 4 a result was wrong; 2 if the plugin can't be loaded or the scenario
 * does not exist.
 *
 * host.c implements the host, call.c checks calls; the other files contain scenarios.
 */
#include "drive.h"

#include <string.h>

struct scenario {
    const char *name;
    const char *arguments;
    void (*play)(struct run *run);
    int is_bare; /* main() does not call init(): the scenario does, if it needs an instance */
    const char *meaning;
};

static const struct scenario scenarios[] = {
    /* facts.c */
    {"facts", "[BYTES]", drive_facts, 0,
     "who each device is, its sensors, links and processes, and the versions; whatever fails.\n"
     "With BYTES device 0 is open, and has so much allocated"},
    {"polled", "", drive_polled, 0, "the same, of sensors that were asked 50 ms before"},
    {"ranges", "", drive_ranges, 0, "profiler ranges, nested"},
    {"domains", "", drive_domains, 0, "ranges of several domains and categories; whatever fails"},
    {"shown", "VARIABLE", drive_shown, 0, "its value for devices 1 and 0, and for one named twice"},
    /* work.c */
    {"work", "[MS]", drive_work, 0,
     "a bit of everything on device 0, its results checked; a copy takes at least MS"},
    {"pageable", "", drive_pageable, 0,
     "copies in flight from and to memory that nobody pinned, at the same addresses"},
    /* memory.c */
    {"memory", "", drive_memory, 0, "exhaust the memory of device 0, and go on"},
    {"used", "", drive_used, 0, "device and managed memory, and how much of it is used"},
    {"copied", "", drive_copied, 0, "two copies that are complete on return"},
    {"share", "", drive_share, 0, "export memory and an event of device 0"},
    {"pages", "", drive_pages, 0, "export memory of an odd size, register memory of the caller"},
    {"captured", "", drive_captured, 0, "an event for other processes, recorded in a capture"},
    {"current", "", drive_current, 0, "a thread's current device, which calls leave as it was"},
    {"opened", "", drive_opened, 0, "export an event of device 0 and open it"},
    {"capturing", "", drive_capturing, 0, "memory of the host beside a strict capture"},
    {"vmem", "", drive_vmem, 0, "map two pieces of memory the other way round, and copy over"},
    {"aligned", "", drive_aligned, 0, "addresses at a multiple of 64 GiB"},
    {"released", "", drive_released, 0, "a range of addresses, and others that are not reserved"},
    /* beside.c */
    {"beside", "", drive_beside, 0, "every call that a capture of another stream allows"},
    {"raced", "", drive_raced, 0, "captures begin beside waits and frees of another thread"},
    /* threads.c */
    {"waited", "", drive_waited, 0,
     "streams come and go while another thread waits for the device"},
    {"gone", "", drive_gone, 0, "the device is waited for, of a stream that is gone"},
    {"unwrapped", "", drive_unwrapped, 0,
     "streams of another instance are wrapped, while another thread waits for the device"},
    {"imports", "", drive_imports, 1, "four threads open and close memory of another process"},
    {"exchanged", "", drive_exchanged, 1,
     "memory of another process is opened where memory of this one is exported, too"},
    {"peer", "", drive_peer, 0, "memory that is freed while it is copied to another device"},
    {"peered", "", drive_peered, 0, "a captured copy to another device"},
    {"lost", "", drive_lost, 0, "a host task behind a copy that loses the device (SIM_LOSE)"},
    {"ended", "", drive_ended, 0, "a capture that another thread tries to end"},
    {"joined", "", drive_joined, 0, "the device is asked while two streams are in a capture"},
    {"reopened", "", drive_reopened, 0, "a host task opens the device that is being closed"},
    /* frame.c */
    {"frame", "[FUNCTION]", drive_frame, 0,
     "what the frame refuses by itself, holds, and waits for; FUNCTION is the vendor's"},
    {"order", "", drive_order, 0, "host tasks behind a copy that loses the device (SIM_LOSE)"},
    /* probe.c */
    {"probe", "", drive_probe, 1, "the verdict, with a timer's signals all the while"},
    {"again", "", drive_again, 0, "the verdict, while device 0 is open here"},
    {"busy", "", drive_busy, 1,
     "opens device 0 by two instances, and holds it for a line of stdin"},
    /* walk.c and streams.c, rounds.c, native.c */
    {"walk", "", drive_walk, 1, "each slot once or twice, whatever fails"},
    {"rounds", "LIBRARY CODE [STEP FIRST]", drive_rounds, 1,
     "the walk again and again; in round N call number N of the LIBRARY fails with CODE"},
    {"native", "", drive_native, 1,
     "a program that has OpenCL itself, and mixes it with the plugin"},
};

static int tell_usage(void)
{
    fprintf(stderr, "usage: drive PLUGIN SCENARIO [ARGUMENT...]\n");
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
        fprintf(stderr, "  %s%s%s: %s\n", scenarios[i].name,
                scenarios[i].arguments[0] != '\0' ? " " : "", scenarios[i].arguments,
                scenarios[i].meaning);
    }
    return DRIVE_USAGE;
}

static const struct scenario *find(const char *name)
{
    for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
        if (strcmp(name, scenarios[i].name) == 0) {
            return &scenarios[i];
        }
    }
    return NULL;
}

static void play(struct run *run, const struct scenario *scenario)
{
    if (scenario->is_bare) {
        scenario->play(run);
        return;
    }
    if (CALL(run, init, drive_host(run->table->name), &run->instance) < 0) {
        return;
    }
    if (CALL(run, device_count, run->instance, &run->device_count) == DS_ACCEL_OK) {
        scenario->play(run);
    }
    run->table->device_close(run->device);
    run->table->shutdown(run->instance);
}

int main(int argc, char **argv)
{
    const struct scenario *scenario = argc > 2 ? find(argv[2]) : NULL;
    struct run run;

    if (scenario == NULL) {
        return tell_usage();
    }
    memset(&run, 0, sizeof(run));
    run.arguments = argv + 3;
    run.table = drive_load(argv[1]);
    if (run.table == NULL) {
        return DRIVE_USAGE;
    }
    play(&run, scenario);
    return drive_report(&run, scenario->name);
}
