/* SPDX-License-Identifier: Apache-2.0 */
/* Vifs: of stock netback by a helper, of the VALE switch by their store nodes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

int cosmos_nic_add(struct cosmos_ctx *ctx, uint32_t domid,
                   const struct cosmos_nic *nic, struct cosmos_error *err)
{
    struct job job = { .kind = JOB_NIC_ADD, .domid = domid, .nic = *nic };
    int rc = cosmos_check_domain(ctx, domid, err);

    if (!rc)
        rc = cosmos_job_text(job.first, nic->bridge, "bridge", err);
    if (!rc)
        rc = cosmos_job_text(job.second, nic->script, "script", err);
    return rc ? rc : cosmos_do(ctx, &job, cosmos_no_fds, NULL, err);
}

int cosmos_nic_remove(struct cosmos_ctx *ctx, uint32_t domid, uint32_t devid,
                      struct cosmos_error *err)
{
    struct job job = {
        .kind = JOB_NIC_REMOVE, .domid = domid, .nic.devid = devid,
    };
    int rc = cosmos_check_domain(ctx, domid, err);

    return rc ? rc : cosmos_do(ctx, &job, cosmos_no_fds, NULL, err);
}

/* The two ends of a vale vif in the store. */
struct nodes {
    uint32_t domid;
    char front[PATH_BYTES], back[PATH_BYTES];
    const struct cosmos_vale *vale;
};

static void backends_of(char path[PATH_BYTES], uint32_t domid)
{
    snprintf(path, PATH_BYTES, "/local/domain/0/backend/vale/%u", domid);
}

static void name_nodes(struct nodes *nodes, uint32_t domid, uint32_t devid)
{
    nodes->domid = domid;
    snprintf(nodes->front, sizeof(nodes->front),
             "/local/domain/%u/device/vale/%u", domid, devid);
    snprintf(nodes->back, sizeof(nodes->back),
             "/local/domain/0/backend/vale/%u/%u", domid, devid);
}

/* The guest finds its vifs by listing the directory they are in. */
static bool make_class(struct xs_handle *xs, xs_transaction_t tx,
                       uint32_t domid)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof(path), "/local/domain/%u/device/vale", domid);
    return xs_mkdir(xs, tx, path) && cosmos_let_read(xs, tx, path, domid);
}

/* A preconnected vif gets its address later: zeros have no node. */
static bool put_mac(struct xs_handle *xs, xs_transaction_t tx,
                    const char *front, const uint8_t m[6])
{
    static const uint8_t none[6];

    return !memcmp(m, none, sizeof(none)) ||
           cosmos_put(xs, tx, front, "mac", "%02x:%02x:%02x:%02x:%02x:%02x",
                      m[0], m[1], m[2], m[3], m[4], m[5]);
}

/* The frontend's node is its own, and dom0 reads it. */
static bool make_front(struct xs_handle *xs, xs_transaction_t tx,
                       const struct nodes *nodes)
{
    const struct cosmos_vale *vale = nodes->vale;
    struct xs_permissions own[] = {
        { .id = nodes->domid, .perms = XS_PERM_NONE },
        { .id = 0, .perms = XS_PERM_READ },
    };

    return xs_mkdir(xs, tx, nodes->front) &&
           xs_set_permissions(xs, tx, nodes->front, own, 2) &&
           cosmos_put(xs, tx, nodes->front, "backend", "%s", nodes->back) &&
           cosmos_put(xs, tx, nodes->front, "backend-id", "0") &&
           put_mac(xs, tx, nodes->front, vale->mac) &&
           cosmos_put(xs, tx, nodes->front, "mtu", "%u", vale->mtu) &&
           cosmos_put(xs, tx, nodes->front, "slots", "%u", vale->slots) &&
           cosmos_put(xs, tx, nodes->front, "state", "1");
}

static bool make_back(struct xs_handle *xs, xs_transaction_t tx,
                      const struct nodes *nodes)
{
    return xs_mkdir(xs, tx, nodes->back) &&
           cosmos_let_read(xs, tx, nodes->back, nodes->domid) &&
           cosmos_put(xs, tx, nodes->back, "frontend", "%s", nodes->front) &&
           cosmos_put(xs, tx, nodes->back, "frontend-id", "%u",
                      nodes->domid) &&
           cosmos_put(xs, tx, nodes->back, "online", "1") &&
           cosmos_put(xs, tx, nodes->back, "state", "1");
}

static bool make_nodes(struct xs_handle *xs, xs_transaction_t tx, void *arg)
{
    const struct nodes *nodes = arg;
    unsigned length;
    char *there = xs_read(xs, tx, nodes->back, &length);

    free(there);
    if (there) {
        errno = EEXIST;
        return false;
    }
    return make_back(xs, tx, nodes) && make_class(xs, tx, nodes->domid) &&
           make_front(xs, tx, nodes);
}

int cosmos_vale_add(struct cosmos_ctx *ctx, uint32_t domid,
                    const struct cosmos_vale *vale, struct cosmos_error *err)
{
    struct nodes nodes = { .vale = vale };
    int rc = cosmos_check_domain(ctx, domid, err);

    if (rc)
        return rc;
    if (vale->devid >= VIFS)
        return cosmos_fail(err, COSMOS_INVALID,
                           "vif %u: expected a number below %d", vale->devid,
                           VIFS);
    name_nodes(&nodes, domid, vale->devid);
    rc = cosmos_transact(ctx->xs, make_nodes, &nodes, "vale add", err);
    if (rc && errno == EEXIST)
        rc = cosmos_fail(err, COSMOS_EXISTS, "domain %u has a vale vif %u",
                         domid, vale->devid);
    return rc;
}

static bool remove_path(struct xs_handle *xs, xs_transaction_t tx,
                        const char *path)
{
    return xs_rm(xs, tx, path) || errno == ENOENT;
}

/* The domain's backends, none of which is there any more. */
static bool remove_empty(struct xs_handle *xs, xs_transaction_t tx,
                         uint32_t domid)
{
    char path[PATH_BYTES], **left;
    unsigned count = 0;

    backends_of(path, domid);
    left = xs_directory(xs, tx, path, &count);
    free(left);
    return count ? true : remove_path(xs, tx, path);
}

static bool remove_nodes(struct xs_handle *xs, xs_transaction_t tx, void *arg)
{
    const struct nodes *nodes = arg;

    return remove_path(xs, tx, nodes->front) &&
           remove_path(xs, tx, nodes->back) &&
           remove_empty(xs, tx, nodes->domid);
}

int cosmos_vale_remove(struct cosmos_ctx *ctx, uint32_t domid,
                       uint32_t devid, struct cosmos_error *err)
{
    struct nodes nodes = { .vale = NULL };

    name_nodes(&nodes, domid, devid);
    return cosmos_transact(ctx->xs, remove_nodes, &nodes, "vale remove", err);
}

/* libxl removes what it knows of; this class it does not know. */
void cosmos_vale_forget(struct cosmos_ctx *ctx, uint32_t domid)
{
    char path[PATH_BYTES];

    backends_of(path, domid);
    xs_rm(ctx->xs, XBT_NULL, path);
}
