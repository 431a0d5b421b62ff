/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * The progress bar on stderr, and the handling of Ctrl-C. The bar is one line that is overwritten,
 * at most once for each row, and removed before other output. A signal is only recorded: the
 * measuring code polls for it, releases its resources, removes the bar and raises the signal again.
 * The same signal, received again, takes effect at once.
 */
#include "bench.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define BAR_CELLS 20u
#define DEFAULT_COLUMNS 80u

static const int caught[] = {SIGINT, SIGTERM, SIGHUP};
#define CAUGHT_COUNT (sizeof(caught) / sizeof(caught[0]))

static volatile sig_atomic_t pending;
static struct sigaction before[CAUGHT_COUNT];
static bool catching;
static bool showing; /* the bar is enabled */
static bool drawn;   /* the bar is on the screen */

/* ---- signals -------------------------------------------------------------------------------- */

static void remember(int signal)
{
    pending = signal;
}

void bench_signals_catch(void)
{
    catching = true;
    for (size_t i = 0; i < CAUGHT_COUNT; i++) {
        struct sigaction action = {.sa_handler = remember};

        sigemptyset(&action.sa_mask);
        action.sa_flags = SA_RESTART | (int)SA_RESETHAND;
        sigaction(caught[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN) { /* ignored signals, such as by nohup, stay ignored */
            sigaction(caught[i], &action, NULL);
        }
    }
}

int bench_signal(void)
{
    return pending;
}

void bench_signals_release(void)
{
    int signal = pending;

    for (size_t i = 0; i < CAUGHT_COUNT && catching; i++) {
        sigaction(caught[i], &before[i], NULL);
    }
    if (signal != 0) {
        raise(signal);
    }
}

/* ---- the bar -------------------------------------------------------------------------------- */

static size_t columns(void)
{
    struct winsize size;

    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col;
    }
    return DEFAULT_COLUMNS;
}

static void take_away(void)
{
    if (drawn) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
        drawn = false;
    }
}

void bench_progress_begin(bool wanted)
{
    const char *term = getenv("TERM");

    showing = wanted && isatty(STDERR_FILENO) && term != NULL && strcmp(term, "dumb") != 0;
}

void bench_progress_show(size_t done, size_t total, const char *label)
{
    char line[160];
    char bar[BAR_CELLS + 1];
    size_t width = columns();

    if (!showing) {
        return;
    }
    memset(bar, '.', BAR_CELLS);
    memset(bar, '#', BAR_CELLS * done / total);
    bar[BAR_CELLS] = '\0';
    snprintf(line, sizeof(line), "[%s] %zu/%zu %s", bar, done, total, label);
    /* Keep the last column free, because some terminals begin a new line after a full line. */
    if (width <= sizeof(line)) {
        line[width - 1] = '\0';
    }
    fprintf(stderr, "\r%s\033[K", line);
    fflush(stderr);
    drawn = true;
}

void bench_progress_end(void)
{
    take_away();
    showing = false;
}

void bench_progress_log(void *user_data, uint32_t level, const char *topic, const char *message)
{
    ds_accel_log_sink_t sink = *(ds_accel_log_sink_t *)user_data;

    take_away();
    sink(NULL, level, topic, message);
}
