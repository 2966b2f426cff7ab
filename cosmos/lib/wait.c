/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a guest, on a store connection of the call's own. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "wait.h"

/* How often a guest that does not write is looked at. */
#define LOOK_MS 200

int cosmos_wait_begin(struct cosmos_wait *wait, struct cosmos_ctx *ctx,
                      uint32_t domid, const char *path, unsigned timeout_ms,
                      struct cosmos_error *err)
{
    wait->ctx = ctx;
    wait->domid = domid;
    wait->end_ms = cosmos_now_ms() + timeout_ms;
    wait->timeout_ms = timeout_ms;
    wait->xs = xs_open(0);
    if (wait->xs && xs_watch(wait->xs, path, "w"))
        return COSMOS_OK;
    return cosmos_fail(err, COSMOS_STORE, "watch %s: xen store: %s", path,
                       strerror(errno));
}

void cosmos_wait_end(struct cosmos_wait *wait)
{
    if (wait->xs)
        xs_close(wait->xs);
    wait->xs = NULL;
}

static int check_alive(struct cosmos_wait *wait, struct cosmos_error *err)
{
    struct cosmos_info info;

    if (cosmos_domain_info(wait->ctx, wait->domid, &info, NULL) ||
        info.state == COSMOS_DYING)
        return cosmos_fail(err, COSMOS_DEAD, "domain %u is gone",
                           wait->domid);
    if (info.state == COSMOS_SHUT_DOWN)
        return cosmos_fail(err, COSMOS_DEAD, "domain %u has shut down, %s",
                           wait->domid, info.reason == COSMOS_CRASH
                           ? "crashed: see its console" : "by itself");
    return COSMOS_OK;
}

static void drain(struct cosmos_wait *wait)
{
    char **changed;

    while ((changed = xs_check_watch(wait->xs)))
        free(changed);
}

int cosmos_wait_change(struct cosmos_wait *wait, struct cosmos_error *err)
{
    struct pollfd ready = { .fd = xs_fileno(wait->xs), .events = POLLIN };
    uint64_t now = cosmos_now_ms();
    uint64_t left = wait->end_ms > now ? wait->end_ms - now : 0;
    int n;

    if (!left)
        return cosmos_fail(err, COSMOS_TIMEOUT,
                           "domain %u: no answer in %u ms", wait->domid,
                           wait->timeout_ms);
    n = poll(&ready, 1, left < LOOK_MS ? left : LOOK_MS);
    drain(wait);
    return n > 0 ? COSMOS_OK : check_alive(wait, err);
}
