/* SPDX-License-Identifier: Apache-2.0 */
/* Routers of a guest: the wish in the store, and the guest's answer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "router.h"
#include "wait.h"

/* Bytes of a configuration in one node (docs/control-protocol.md). */
#define PIECE_BYTES 2000

bool cosmos_give(struct xs_handle *xs, xs_transaction_t tx, const char *path,
                 uint32_t domid, const char *value, size_t bytes)
{
    return xs_write(xs, tx, path, value, bytes) &&
           cosmos_let_read(xs, tx, path, domid);
}

void cosmos_router_path(char *path, size_t bytes, uint32_t domid,
                        uint32_t rid, const char *key)
{
    snprintf(path, bytes, "/local/domain/%u/data/clickos/%u/%s", domid, rid,
             key);
}

int cosmos_check_router(struct cosmos_ctx *ctx, uint32_t domid, uint32_t rid,
                        struct cosmos_error *err)
{
    if (rid >= ROUTERS)
        return cosmos_fail(err, COSMOS_INVALID,
                           "router %u: expected a number below %d", rid,
                           ROUTERS);
    return cosmos_check_domain(ctx, domid, err);
}

/* The desired configuration of one router. */
struct wish {
    uint32_t domid, rid;
    const struct cosmos_router *router;      /* NULL: only the status */
    const char *status;
    unsigned long long generation;
};

static bool give(struct xs_handle *xs, xs_transaction_t tx,
                 const struct wish *wish, const char *key, const char *value,
                 size_t bytes)
{
    char path[PATH_BYTES];

    cosmos_router_path(path, sizeof(path), wish->domid, wish->rid, key);
    return cosmos_give(xs, tx, path, wish->domid, value, bytes);
}

static bool give_config(struct xs_handle *xs, xs_transaction_t tx,
                        const struct wish *wish)
{
    const char *from = wish->router->config;
    size_t n, left = wish->router->config_bytes;
    unsigned piece;
    char key[32], path[PATH_BYTES];

    cosmos_router_path(path, sizeof(path), wish->domid, wish->rid, "config");
    if (!xs_rm(xs, tx, path) && errno != ENOENT)
        return false;
    for (piece = 0; left; piece++, from += n, left -= n) {
        n = left < PIECE_BYTES ? left : PIECE_BYTES;
        snprintf(key, sizeof(key), "config/%u", piece);
        if (!give(xs, tx, wish, key, from, n))
            return false;
    }
    return give(xs, tx, wish, "config_name", wish->router->config_name,
                strlen(wish->router->config_name));
}

static unsigned long long last_generation(struct xs_handle *xs,
                                          xs_transaction_t tx,
                                          const struct wish *wish)
{
    unsigned long long last = 0;
    char path[PATH_BYTES], *text;
    unsigned bytes;

    cosmos_router_path(path, sizeof(path), wish->domid, wish->rid,
                       "generation");
    text = xs_read(xs, tx, path, &bytes);
    if (text)
        last = strtoull(text, NULL, 10);
    free(text);
    return last;
}

static bool make_wish(struct xs_handle *xs, xs_transaction_t tx, void *arg)
{
    struct wish *wish = arg;
    char text[32];
    int n;

    wish->generation = last_generation(xs, tx, wish);
    if (wish->router) {
        wish->generation++;
        if (!give_config(xs, tx, wish))
            return false;
    }
    n = snprintf(text, sizeof(text), "%llu", wish->generation);
    return give(xs, tx, wish, "status", wish->status, strlen(wish->status)) &&
           give(xs, tx, wish, "generation", text, n);
}

static char *read_key(struct cosmos_ctx *ctx, const struct wish *wish,
                      const char *key)
{
    char path[PATH_BYTES];
    unsigned bytes;

    cosmos_router_path(path, sizeof(path), wish->domid, wish->rid, key);
    return xs_read(ctx->xs, XBT_NULL, path, &bytes);
}

/* Has the guest answered? *word is then "Running", "Halted" or
 * "Error". */
static bool answered(struct cosmos_ctx *ctx, const struct wish *wish,
                     char *word)
{
    unsigned long long generation = 0;
    char *state = read_key(ctx, wish, "state");
    bool is = state && sscanf(state, "%15s %llu", word, &generation) == 2 &&
              generation == wish->generation &&
              (wish->router || !strcmp(word, wish->status));

    free(state);
    return is;
}

static int wait_answer(struct cosmos_ctx *ctx, const struct wish *wish,
                       struct cosmos_wait *wait, struct cosmos_error *err)
{
    char word[16], *why;
    int rc = COSMOS_OK;

    while (!answered(ctx, wish, word)) {
        rc = cosmos_wait_change(wait, err);
        if (rc)
            return rc;
    }
    if (strcmp(word, "Error"))
        return COSMOS_OK;
    why = read_key(ctx, wish, "error");
    rc = cosmos_fail(err, COSMOS_REFUSED, "%s", why ? why : "no reason given");
    free(why);
    return rc;
}

static int fulfil(struct cosmos_ctx *ctx, struct wish *wish,
                  unsigned timeout_ms, struct cosmos_error *err)
{
    struct cosmos_wait wait = { .xs = NULL };
    char path[PATH_BYTES];
    int rc;

    cosmos_router_path(path, sizeof(path), wish->domid, wish->rid, "state");
    rc = cosmos_wait_begin(&wait, ctx, wish->domid, path, timeout_ms, err);
    if (!rc)
        rc = cosmos_transact(ctx->xs, make_wish, wish, "configuration", err);
    if (!rc)
        rc = wait_answer(ctx, wish, &wait, err);
    if (wish->router) {                      /* read, or not wanted any more */
        cosmos_router_path(path, sizeof(path), wish->domid, wish->rid,
                           "config");
        xs_rm(ctx->xs, XBT_NULL, path);
    }
    cosmos_wait_end(&wait);
    return rc;
}

int cosmos_router_install(struct cosmos_ctx *ctx, uint32_t domid,
                          const struct cosmos_router *router,
                          unsigned timeout_ms, struct cosmos_error *err)
{
    struct wish wish = {
        .domid = domid, .rid = router->rid, .router = router,
        .status = router->halted ? "Halted" : "Running",
    };
    int rc = cosmos_check_router(ctx, domid, router->rid, err);

    if (rc)
        return rc;
    if (strlen(router->config_name) > PIECE_BYTES)
        return cosmos_fail(err, COSMOS_INVALID,
                           "config name: %zu bytes, the limit is %d",
                           strlen(router->config_name), PIECE_BYTES);
    if (router->config_bytes && memchr(router->config, 0,
                                       router->config_bytes))
        return cosmos_fail(err, COSMOS_INVALID, "config: has a NUL byte");
    return fulfil(ctx, &wish, timeout_ms, err);
}

int cosmos_router_run(struct cosmos_ctx *ctx, uint32_t domid, uint32_t rid,
                      int run, unsigned timeout_ms, struct cosmos_error *err)
{
    struct wish wish = {
        .domid = domid, .rid = rid, .status = run ? "Running" : "Halted",
    };
    int rc = cosmos_check_router(ctx, domid, rid, err);

    return rc ? rc : fulfil(ctx, &wish, timeout_ms, err);
}
