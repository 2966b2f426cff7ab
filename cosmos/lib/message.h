/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between a process and its helpers. */
#ifndef COSMOS_MESSAGE_H
#define COSMOS_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

/* Two connected sockets that keep the bounds of messages. */
bool cosmos_sockets(int ends[2]);

/* Most descriptors with a message: a kernel and a RAM disk. */
#define COSMOS_FDS 2

/* Sends a message, and with it the descriptors before the first -1. */
bool cosmos_send(int socket, const void *message, size_t bytes,
                 const int fds[COSMOS_FDS]);

/* Receives a message of this size; false at the end, with errno 0. fds are
 * the descriptors that came along, then -1. */
bool cosmos_receive(int socket, void *message, size_t bytes,
                    int fds[COSMOS_FDS]);

/* Closes the descriptors before the first -1. */
void cosmos_close_fds(const int fds[COSMOS_FDS]);

/* For a message without descriptors. */
extern const int cosmos_no_fds[COSMOS_FDS];

#endif
