/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a guest to write. */
#ifndef COSMOS_WAIT_H
#define COSMOS_WAIT_H

#include "internal.h"

struct cosmos_wait {
    struct cosmos_ctx *ctx;
    uint32_t domid;
    unsigned timeout_ms;
    uint64_t end_ms;
    struct xs_handle *xs;
};

/* Begins to watch; cosmos_wait_end has to follow, whatever this returns. */
int cosmos_wait_begin(struct cosmos_wait *wait, struct cosmos_ctx *ctx,
                      uint32_t domid, const char *path, unsigned timeout_ms,
                      struct cosmos_error *err);
void cosmos_wait_end(struct cosmos_wait *wait);

/* Returns when it is time to look again; COSMOS_TIMEOUT or COSMOS_DEAD when
 * there is nothing to wait for any more. */
int cosmos_wait_change(struct cosmos_wait *wait, struct cosmos_error *err);

#endif
