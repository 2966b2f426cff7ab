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

static void root_of(char *path, size_t bytes, uint32_t domid)
{
    snprintf(path, bytes, "/local/domain/%u/data/clickos", domid);
}

int cosmos_events_watch(struct cosmos_events *events, uint32_t domid,
                        struct cosmos_error *err)
{
    char path[PATH_BYTES];

    root_of(path, sizeof(path), domid);
    if (xs_watch(events->xs, path, "r") || errno == EEXIST)
        return COSMOS_OK;
    return cosmos_fail(err, COSMOS_STORE, "watch domain %u: %s", domid,
                       strerror(errno));
}

int cosmos_events_unwatch(struct cosmos_events *events, uint32_t domid,
                          struct cosmos_error *err)
{
    char path[PATH_BYTES];

    root_of(path, sizeof(path), domid);
    if (xs_unwatch(events->xs, path, "r") || errno == ENOENT)
        return COSMOS_OK;
    return cosmos_fail(err, COSMOS_STORE, "unwatch domain %u: %s", domid,
                       strerror(errno));
}

int cosmos_events_fd(const struct cosmos_events *events)
{
    return xs_fileno(events->xs);
}

/* Is the change worth an event? The guest writes much else. */
static bool understand(struct cosmos_events *events, char **changed,
                       struct cosmos_event *event)
{
    const char *path = changed[XS_WATCH_PATH];
    unsigned length;
    char *state;
    int end = 0;

    memset(event, 0, sizeof(*event));
    event->kind = COSMOS_DOMAINS;
    if (changed[XS_WATCH_TOKEN][0] == 'd')
        return true;
    event->kind = COSMOS_ROUTER;
    /* The guest names its nodes: %u of more digits is not defined. */
    if (sscanf(path, "/local/domain/%5u/data/clickos/%2u/state%n",
               &event->domid, &event->rid, &end) != 2 || !end || path[end])
        return false;
    state = xs_read(events->xs, XBT_NULL, path, &length);
    if (!state)
        return false;
    snprintf(event->state, sizeof(event->state), "%s", state);
    free(state);
    return true;
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
                       struct cosmos_event *event, struct cosmos_error *err)
{
    uint64_t end = cosmos_now_ms() + timeout_ms;
    char **changed;
    bool good;

    do {
        changed = xs_check_watch(events->xs);
        if (changed) {
            good = understand(events, changed, event);
            free(changed);
            if (good)
                return COSMOS_OK;
        } else if (errno == EAGAIN || errno == EINTR) {
            wait_until(events, end);
        } else {
            return cosmos_fail(err, COSMOS_STORE, "events: xen store: %s",
                               strerror(errno));
        }
    } while (cosmos_now_ms() < end);
    return cosmos_fail(err, COSMOS_TIMEOUT, "no event in %u ms", timeout_ms);
}
