/* SPDX-License-Identifier: Apache-2.0 */
/* Events of the host, by watches on a store connection of their own. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

struct cosmos_events {
    struct xs_handle *xs;
};

int cosmos_events_open(struct cosmos_events **out, struct cosmos_error *err)
{
    struct cosmos_events *events = calloc(1, sizeof(*events));

    if (!events)
        return cosmos_fail(err, COSMOS_NO_MEMORY, "no memory for events");
    events->xs = xs_open(0);
    if (events->xs && xs_watch(events->xs, "@releaseDomain", "d")) {
        *out = events;
        return COSMOS_OK;
    }
    cosmos_fail(err, COSMOS_STORE, "events: xen store: %s", strerror(errno));
    cosmos_events_close(events);
    return COSMOS_STORE;
}

void cosmos_events_close(struct cosmos_events *events)
{
    if (events && events->xs)
        xs_close(events->xs);
    free(events);
}

int cosmos_events_fd(const struct cosmos_events *events)
{
    return xs_fileno(events->xs);
}

/* Returns at the latest then; earlier for an event, a signal, or when poll's
 * own limit comes first. */
static void wait_until(const struct cosmos_events *events, uint64_t end_ms)
{
    struct pollfd ready = { .fd = xs_fileno(events->xs), .events = POLLIN };
    uint64_t now = cosmos_now_ms();
    uint64_t left = end_ms > now ? end_ms - now : 0;

    poll(&ready, 1, left < INT_MAX ? (int)left : INT_MAX);
}

int cosmos_events_next(struct cosmos_events *events, unsigned timeout_ms,
                       struct cosmos_error *err)
{
    uint64_t end = cosmos_now_ms() + timeout_ms;
    char **changed;

    do {
        changed = xs_check_watch(events->xs);
        if (changed) {
            free(changed);
            return COSMOS_OK;
        }
        if (errno != EAGAIN && errno != EINTR)
            return cosmos_fail(err, COSMOS_STORE, "events: xen store: %s",
                               strerror(errno));
        wait_until(events, end);
    } while (cosmos_now_ms() < end);
    return cosmos_fail(err, COSMOS_TIMEOUT, "no event in %u ms", timeout_ms);
}
