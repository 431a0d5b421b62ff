/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
#include "ops/relay.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_DEVICES 16
#define MOST_PACKETS 8192
#define HEADER 20 /* of IPv4, without options */
#define SECOND_NS ((uint64_t)1000000000)

struct packet {
    struct packet *next;
    uint64_t due_ns;
    unsigned to;
    size_t bytes;
    unsigned char data[];
};

static struct packet *first;
static struct packet **end = &first;
static unsigned queued;

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/* All packets have the same delay, so the queue is in the order of due_ns. */
static void queue(const unsigned char *data, size_t bytes, unsigned to, uint64_t due_ns)
{
    struct packet *packet = NULL;

    if (queued < MOST_PACKETS)
        packet = (struct packet *)malloc(sizeof(*packet) + bytes);
    if (!packet)
        return;
    *packet = (struct packet){.due_ns = due_ns, .to = to, .bytes = bytes};
    memcpy(packet->data, data, bytes);
    *end = packet;
    end = &packet->next;
    queued++;
}

static bool is_cut(const _Atomic uint32_t *cut, unsigned device)
{
    return (atomic_load(cut) >> device & 1) != 0;
}

/* Read all packets of a device. Returns false if the device has gone. */
static bool take(int file, unsigned from, unsigned count, uint64_t delay_ns,
                 const _Atomic uint32_t *cut)
{
    for (;;) {
        unsigned char data[RELAY_MTU];
        ssize_t bytes = read(file, data, sizeof(data));
        unsigned to;

        if (bytes < 0)
            return errno == EAGAIN || errno == EINTR;
        if (bytes < HEADER || data[0] >> 4 != 4)
            continue;
        to = data[19] - 1U; /* the last byte of the destination */
        if (to < count && !is_cut(cut, from) && !is_cut(cut, to))
            queue(data, (size_t)bytes, to, now_ns() + delay_ns);
    }
}

/* Write what is due. A device without room, or that has gone, loses packets. */
static void deliver(const int *files, const _Atomic uint32_t *cut)
{
    uint64_t now = now_ns();

    while (first && first->due_ns <= now) {
        struct packet *packet = first;

        if (!is_cut(cut, packet->to)) {
            ssize_t written = write(files[packet->to], packet->data, packet->bytes);

            (void)written;
        }
        first = packet->next;
        if (!first)
            end = &first;
        queued--;
        free(packet);
    }
}

void relay(const int *files, unsigned count, unsigned delay_us, const _Atomic uint32_t *cut)
{
    struct pollfd polled[MOST_DEVICES];

    if (count > MOST_DEVICES)
        _exit(1);
    for (unsigned i = 0; i < count; i++)
        polled[i] = (struct pollfd){.fd = files[i], .events = POLLIN};
    for (;;) {
        struct timespec wait = {0};
        uint64_t now = now_ns();

        if (first && first->due_ns > now) {
            wait.tv_sec = (time_t)((first->due_ns - now) / SECOND_NS);
            wait.tv_nsec = (long)((first->due_ns - now) % SECOND_NS);
        }
        ppoll(polled, count, first ? &wait : NULL, NULL);
        for (unsigned i = 0; i < count; i++)
            if (polled[i].revents && !take(files[i], i, count, (uint64_t)delay_us * 1000, cut))
                polled[i].fd = -1;
        deliver(files, cut);
    }
}
