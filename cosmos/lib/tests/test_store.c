/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of texts for the store and of waits for events, on a real Xen host:
 * test_store. Prints one line a check; the exit status is the number that
 * failed.
 */
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

/* A wait without an event ends; the alarm ends the test otherwise. */
static void waits(void)
{
    struct cosmos_error err = { 0 };
    struct cosmos_events *events = NULL;

    check("events", !cosmos_events_open(&events, &err), &err);
    check("the watch's first event", !cosmos_events_next(events, 5000, &err),
          &err);
    alarm(HANG_S);
    check("a wait ends", cosmos_events_next(events, 300, &err) ==
          COSMOS_TIMEOUT, &err);
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
