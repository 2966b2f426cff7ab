/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of a guest's router. */
#ifndef COSMOS_ROUTER_H
#define COSMOS_ROUTER_H

#include "internal.h"

/* Writes a node that the guest reads and cannot change. */
bool cosmos_give(struct xs_handle *xs, xs_transaction_t tx, const char *path,
                 uint32_t domid, const char *value, size_t bytes);

void cosmos_router_path(char *path, size_t bytes, uint32_t domid,
                        uint32_t rid, const char *key);

/* Checks domain and router number. */
int cosmos_check_router(struct cosmos_ctx *ctx, uint32_t domid, uint32_t rid,
                        struct cosmos_error *err);

#endif
