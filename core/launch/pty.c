/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Gives rank 0 a terminal:
 *
 *      user's terminal -> stdin, in raw mode -> pty master -> rank 0
 *      rank 0 -> pty master -> stream -> stdout
 *
 * In raw mode the user's terminal interprets no key. Control-C reaches the pseudo-terminal, which
 * sends SIGINT to rank 0, as if the rank ran there alone. When rank 0 has ended, the terminal is
 * restored, so that Control-C and Control-Z act on the job.
 *
 * The terminal may belong to another process group, while the job runs in the background of a
 * shell. Its settings then are the shell's, and are neither used nor changed. Most shells send no
 * signal to a running job that they move to the foreground, so a timer tests for that.
 */
#include "launch/pty.h"
#include "base/clock.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHECK_NS UINT64_C(200000000) /* between tests in the background */

/* Does the user's terminal belong to another process group now? One that was hung up does not. */
static bool is_background(void)
{
    pid_t group = tcgetpgrp(STDIN_FILENO);

    return group >= 0 && group != getpgrp();
}

/* Prepare the user's terminal. In the background the pseudo-terminal keeps its default settings,
 * because a shell that reads a command line has settings of its own. */
static int32_t open_terminal(struct ds_accel__pty *pty)
{
    struct ds_accel__pty_terminal *terminal =
        mmap(NULL, sizeof(*terminal), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (terminal == MAP_FAILED) {
        return ds_accel__error(DS_ACCEL_ERR_LIMIT, "--pty: mmap: %s", strerror(errno));
    }
    pty->terminal = terminal;
    if (!is_background() && tcgetattr(STDIN_FILENO, &terminal->before) == 0) {
        terminal->has_before = true;
        tcsetattr(pty->slave, TCSANOW, &terminal->before);
    }
    ds_accel__pty_resize(pty);
    return DS_ACCEL_OK;
}

int32_t ds_accel__pty_open(struct ds_accel__pty *pty)
{
    char path[64];

    *pty = (struct ds_accel__pty){.master = -1, .slave = -1, .last = '\n'};
    pty->master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (pty->master < 0 || grantpt(pty->master) != 0 || unlockpt(pty->master) != 0 ||
        ptsname_r(pty->master, path, sizeof(path)) != 0) {
        return ds_accel__error(DS_ACCEL_ERR_LIMIT, "--pty: no pseudo-terminal: %s",
                               strerror(errno));
    }
    pty->slave = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (pty->slave < 0) {
        return ds_accel__error(DS_ACCEL_ERR_LIMIT, "--pty: %s: %s", path, strerror(errno));
    }
    fcntl(pty->master, F_SETFL, O_NONBLOCK);
    return isatty(STDIN_FILENO) ? open_terminal(pty) : DS_ACCEL_OK;
}

void ds_accel__pty_pass_on(struct ds_accel__pty *pty)
{
    if (pty->slave >= 0) {
        close(pty->slave);
    }
    if (pty->master >= 0) {
        close(pty->master);
    }
    pty->master = pty->slave = -1;
}

void ds_accel__pty_close(struct ds_accel__pty *pty)
{
    ds_accel__pty_leave_raw(pty);
    ds_accel__pty_pass_on(pty);
    if (pty->terminal != NULL) {
        munmap(pty->terminal, sizeof(*pty->terminal));
        pty->terminal = NULL;
    }
}

void ds_accel__pty_enter_raw(struct ds_accel__pty *pty)
{
    struct ds_accel__pty_terminal *terminal = pty->terminal;
    struct termios raw;

    pty->check_ns = 0;
    if (terminal == NULL || terminal->is_released || pty->is_input_over) {
        return;
    }
    if (is_background()) {
        pty->check_ns = ds_accel__now_ns() + CHECK_NS;
        return;
    }
    if (!terminal->has_before && tcgetattr(STDIN_FILENO, &terminal->before) != 0) {
        return; /* it was hung up */
    }
    terminal->has_before = true;
    raw = terminal->before;
    cfmakeraw(&raw);
    terminal->is_raw = true; /* first, so that it is restored if this process is killed now */
    if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) != 0) {
        terminal->is_raw = false;
    }
    if (pty->master >= 0) { /* the foreground alone is informed of a new size */
        ds_accel__pty_resize(pty);
    }
    if (terminal->is_released) { /* meanwhile, by the other process */
        ds_accel__pty_leave_raw(pty);
    }
}

/* A shell that has the terminal has set what it needs, and is not disturbed. */
bool ds_accel__pty_leave_raw(struct ds_accel__pty *pty)
{
    struct ds_accel__pty_terminal *terminal = pty->terminal;

    if (terminal == NULL || !terminal->is_raw) {
        return false;
    }
    if (!is_background()) {
        tcsetattr(STDIN_FILENO, TCSANOW, &terminal->before);
    }
    terminal->is_raw = false;
    return true;
}

void ds_accel__pty_check(struct ds_accel__pty *pty, uint64_t now_ns)
{
    if (pty->check_ns != 0 && now_ns >= pty->check_ns) {
        ds_accel__pty_enter_raw(pty);
    }
}

void ds_accel__pty_release(struct ds_accel__pty *pty)
{
    pty->is_input_over = true;
    pty->input_size = 0;
    pty->check_ns = 0;
    if (pty->terminal != NULL) {
        pty->terminal->is_released = true;
    }
    ds_accel__pty_leave_raw(pty);
}

void ds_accel__pty_resize(const struct ds_accel__pty *pty)
{
    struct winsize size;

    if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) == 0) {
        ioctl(pty->master, TIOCSWINSZ, &size);
    }
}

bool ds_accel__pty_needs_input(const struct ds_accel__pty *pty)
{
    return pty->master >= 0 && !pty->is_input_over && pty->check_ns == 0 && pty->input_size == 0;
}

bool ds_accel__pty_has_input(const struct ds_accel__pty *pty)
{
    return pty->master >= 0 && pty->input_size > 0;
}

/* Does a byte of input end a line for a terminal with these settings? */
static bool is_line_end(char byte, const struct termios *settings)
{
    cc_t c = (cc_t)byte;

    if (c == '\n' || c == '\r') {
        return (settings->c_iflag & (c == '\n' ? INLCR : ICRNL)) == (c == '\n' ? 0 : ICRNL);
    }
    return c == settings->c_cc[VEOF] || c == settings->c_cc[VEOL] || c == settings->c_cc[VEOL2];
}

/*
 * End the rank's input, as Control-D does. Where the terminal collects lines, Control-D behind an
 * incomplete line only passes that line on, and a second one ends the input.
 */
static void end_input(struct ds_accel__pty *pty)
{
    struct termios settings;

    pty->is_input_over = true;
    pty->input[0] = pty->input[1] = 4;
    pty->input_start = 0;
    pty->input_size = 1;
    if (tcgetattr(pty->master, &settings) == 0) {
        pty->input[0] = pty->input[1] = (char)settings.c_cc[VEOF];
        if ((settings.c_lflag & ICANON) != 0 && !is_line_end(pty->last, &settings)) {
            pty->input_size = 2;
        }
    }
}

void ds_accel__pty_read(struct ds_accel__pty *pty)
{
    ssize_t size;

    if (pty->terminal != NULL && is_background()) {
        pty->check_ns = ds_accel__now_ns() + CHECK_NS;
        return;
    }
    size = read(STDIN_FILENO, pty->input, sizeof(pty->input));
    if (size > 0) {
        pty->input_start = 0;
        pty->input_size = (size_t)size;
    } else if (size == 0 || (errno != EINTR && errno != EAGAIN)) {
        end_input(pty);
    }
}

void ds_accel__pty_write(struct ds_accel__pty *pty)
{
    ssize_t size = write(pty->master, pty->input + pty->input_start, pty->input_size);

    if (size > 0) {
        pty->input_start += (size_t)size;
        pty->input_size -= (size_t)size;
        pty->last = pty->input[pty->input_start - 1];
    } else if (size < 0 && errno != EAGAIN && errno != EINTR) {
        pty->input_size = 0; /* the rank has ended */
        pty->is_input_over = true;
    }
}
