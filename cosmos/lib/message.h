/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between a process and its helpers. */
#ifndef COSMOS_MESSAGE_H
#define COSMOS_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

/* Two connected sockets that keep the bounds of messages. */
bool cosmos_sockets(int ends[2]);

/* Sends a message, and fd with it unless it is -1. */
bool cosmos_send(int socket, const void *message, size_t bytes, int fd);

/* Receives a message of this size; false at the end, with errno 0. *fd is
 * the descriptor that came along, or -1. */
bool cosmos_receive(int socket, void *message, size_t bytes, int *fd);

#endif
