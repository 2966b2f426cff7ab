/* SPDX-License-Identifier: Apache-2.0 */
/* The host: libxl and the Xen store, opened once. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* libxl shares the process with others that have children of their own. */
static const libxl_childproc_hooks hooks = {
    .chldowner = libxl_sigchld_owner_libxl_always_selective_reap,
    .fork_replacement = cosmos_fork,
};

int cosmos_open(struct cosmos_ctx **out, unsigned api_version,
                struct cosmos_error *err)
{
    struct cosmos_ctx *ctx;
    int rc;

    if (api_version != COSMOS_API_VERSION)
        return cosmos_fail(err, COSMOS_INVALID,
                           "api version: caller has %u, library has %u",
                           api_version, COSMOS_API_VERSION);
    ctx = calloc(1, sizeof(*ctx));
    if (!ctx)
        return cosmos_fail(err, COSMOS_NO_MEMORY, "no memory for a context");
    pthread_mutex_init(&ctx->asking, NULL);

    rc = cosmos_log_make(&ctx->log);
    if (rc) {
        rc = cosmos_fail(err, COSMOS_NO_MEMORY, "log: %s", strerror(rc));
        goto out;
    }
    ctx->log_made = true;
    ctx->xs = xs_open(0);
    if (!ctx->xs) {
        rc = cosmos_fail(err, COSMOS_STORE, "xen store: %s; is xenstored "
                         "running, and is this dom0's root?", strerror(errno));
        goto out;
    }
    rc = libxl_ctx_alloc(&ctx->xl, LIBXL_VERSION, 0, &ctx->log.vtable);
    if (rc) {
        ctx->xl = NULL;
        rc = cosmos_fail(err, COSMOS_HOST, "libxl: %s; is this a Xen host's "
                         "dom0?", cosmos_log_text(&ctx->log));
        goto out;
    }
    libxl_childproc_setmode(ctx->xl, &hooks, ctx);
    *out = ctx;
    return COSMOS_OK;

out:
    cosmos_close(ctx);
    return rc;
}

void cosmos_close(struct cosmos_ctx *ctx)
{
    if (!ctx)
        return;
    if (ctx->xl)
        libxl_ctx_free(ctx->xl);
    if (ctx->xs)
        xs_close(ctx->xs);
    if (ctx->log_made)
        cosmos_log_free(&ctx->log);
    pthread_mutex_destroy(&ctx->asking);
    free(ctx);
}

int cosmos_host_info(struct cosmos_ctx *ctx, struct cosmos_host_info *info,
                     struct cosmos_error *err)
{
    const uint64_t kib_of_page = 4;
    libxl_physinfo phys;
    int rc;

    libxl_physinfo_init(&phys);
    cosmos_ask_begin(ctx);
    rc = libxl_get_physinfo(ctx->xl, &phys);
    cosmos_ask_end(ctx);
    if (rc) {
        rc = cosmos_fail_xl(ctx, err, rc, "host info", COSMOS_NO_DOMAIN);
        goto out;
    }
    info->cpus = phys.nr_cpus;
    info->memory_kib = phys.total_pages * kib_of_page;
    info->free_kib = (phys.free_pages + phys.scrub_pages) * kib_of_page;

out:
    libxl_physinfo_dispose(&phys);
    return rc;
}
