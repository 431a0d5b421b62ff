/* SPDX-License-Identifier: Apache-2.0
 * Copyright (c) 2026 the ds-accel authors */
/*
 * Hosts of a test: namespaces of this machine (processes, network, host name, mounts), linked by a
 * relay that forwards IP packets between TUN devices after a delay. Where the test is root, or may
 * be it in a user namespace, and /dev/net/tun can be opened, this needs nothing else.
 *
 * Host 0 is the head, where the test runs after hosts_enter(). It sees the processes of all hosts.
 * Hosts 1, 2, ... are called h1, h2, ...; host N has the address 10.77.0.(N + 1). All hosts end
 * with the test, and all processes with their host.
 */
#ifndef TESTS_OPS_HOSTS_H
#define TESTS_OPS_HOSTS_H

#include <stdbool.h>
#include <sys/types.h>

#define HOSTS_MOST 4 /* with the head */
#define HOSTS_SUBNET "10.77.0.0/24"
#define HOSTS_DEVICE "tun0"

/*
 * Continue in a child that is the head of new hosts; the caller waits for it and exits with its
 * status. Returns NULL there, or, in the caller, what is not permitted.
 */
const char *hosts_enter(const char *directory);
/*
 * Start hosts 1 ... count - 1 and the relay. Every packet takes delay_us. Odd hosts have the boot
 * id of this machine, like containers; the others have ones of their own. Returns NULL, or what
 * has failed.
 */
const char *hosts_start(unsigned count, unsigned delay_us);
/* End hosts and relay. */
void hosts_stop(void);
/* Lose every packet from and to a host, as if its cable were cut. */
void hosts_cut(unsigned host);
/* Kill a host with all of its processes. */
void hosts_kill(unsigned host);
/* Number of processes, with this name if it is not NULL, other than those of this file. */
unsigned hosts_count_processes(const char *name);
/* The remote shell: enter HOST COMMAND..., the name of a link to the program that hosts_enter()
 * makes in its directory. */
bool hosts_is_shell(const char *program);
int hosts_shell(int argc, char **argv);

#endif
