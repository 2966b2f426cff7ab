/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of texts for the store and of waits for events, on a real Xen host:
 * test_store. Prints one line a check; the exit status is the number that
 * failed.
 */
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <errno.h>

#include "internal.h"

#define LONG 5000
#define HANG_S 60

static int failed;

static void check(const char *what, int good, const struct cosmos_error *err)
{
    printf("%s %s%s%s\n", good ? "ok  " : "FAIL", what, good ? "" : ": ",
           good ? "" : err->message);
    failed += !good;
}

/* More than a buffer of the library, or a message of the store, holds. */
static void long_texts(struct cosmos_ctx *ctx)
{
    struct cosmos_error err = { 0 };
    char *text = calloc(1, LONG + 1);

    memset(text, 'x', LONG);
    check("a long value", !cosmos_put(ctx->xs, XBT_NULL, "/tool/cosmos-test",
          "key", "%s", text) && errno == E2BIG, &err);
    check("a long path", !cosmos_put(ctx->xs, XBT_NULL, "/tool/cosmos-test",
          text, "value") && errno == E2BIG, &err);
    check("a long name", cosmos_domain_rename(ctx, 1, text, &err) ==
          COSMOS_INVALID, &err);
    check("no name", cosmos_domain_rename(ctx, 1, "", &err) ==
          COSMOS_INVALID, &err);
    text[4096] = '\0';
    xs_mkdir(ctx->xs, XBT_NULL, "/vm/cosmos-test");
    xs_write(ctx->xs, XBT_NULL, "/local/domain/0/vm", "/vm/cosmos-test", 15);
    check("a name of 4,096 bytes", !cosmos_put_name(ctx->xs, 0, text) &&
          errno == E2BIG, &err);
    xs_rm(ctx->xs, XBT_NULL, "/local/domain/0/vm");
    xs_rm(ctx->xs, XBT_NULL, "/vm/cosmos-test");
    free(text);
}

static atomic_bool enough;

/* Changes, all the time, what is watched and is no event. */
static void *storm(void *arg)
{
    struct xs_handle *xs = xs_open(0);

    (void)arg;
    while (!enough)
        xs_write(xs, XBT_NULL, "/local/domain/0/data/clickos/0/junk", "x", 1);
    xs_rm(xs, XBT_NULL, "/local/domain/0/data/clickos");
    xs_close(xs);
    return NULL;
}

static void *event_later(void *arg)
{
    struct xs_handle *xs = xs_open(0);

    (void)arg;
    usleep(100000);
    xs_write(xs, XBT_NULL, "/local/domain/0/data/clickos/7/state", "Running 1",
             9);
    xs_close(xs);
    return NULL;
}

/* Waits end, which the alarm tells otherwise. */
static void waits(void)
{
    struct cosmos_error err = { 0 };
    struct cosmos_events *events = NULL;
    struct cosmos_event event;
    pthread_t other;
    int rc;

    check("events", !cosmos_events_open(&events, &err) &&
          !cosmos_events_watch(events, 0, &err), &err);
    while (!cosmos_events_next(events, 0, &event, &err))
        ;                                /* the first of each watch */
    alarm(HANG_S);
    pthread_create(&other, NULL, storm, NULL);
    check("a wait ends in a storm", cosmos_events_next(events, 300, &event,
          &err) == COSMOS_TIMEOUT, &err);
    enough = true;
    pthread_join(other, NULL);
    while (!cosmos_events_next(events, 100, &event, &err))
        ;
    pthread_create(&other, NULL, event_later, NULL);
    rc = cosmos_events_next(events, UINT_MAX, &event, &err);
    check("a wait of weeks has its event", !rc && event.rid == 7 &&
          !strcmp(event.state, "Running 1"), &err);
    pthread_join(other, NULL);
    alarm(0);
    cosmos_events_close(events);
}

int main(void)
{
    struct cosmos_error err = { 0 };
    struct cosmos_ctx *other, *ctx = NULL;

    check("open", !cosmos_open(&ctx, COSMOS_API_VERSION, -1, &err), &err);
    if (!ctx)
        return failed;
    check("a process opens once", cosmos_open(&other, COSMOS_API_VERSION, -1,
          &err) == COSMOS_EXISTS, &err);
    long_texts(ctx);
    waits();
    cosmos_close(ctx);
    check("open again", !cosmos_open(&ctx, COSMOS_API_VERSION, -1, &err),
          &err);
    cosmos_close(ctx);
    return failed;
}
