/* SPDX-License-Identifier: Apache-2.0 */
/* The host: libxl, libxc and the Xen store, opened once. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* libxl is opened here and in helpers only: a fork that it makes in a process
 * with threads may never end (helper.c). */
static pid_t refuse(void *arg)
{
    (void)arg;
    errno = ENOTSUP;
    return -1;
}

static const libxl_childproc_hooks no_forks = {
    .chldowner = libxl_sigchld_owner_libxl,
    .fork_replacement = refuse,
};

/* Helpers are forked while the process does not use libxl: it opens once. */
static atomic_flag is_open = ATOMIC_FLAG_INIT;

int cosmos_open(struct cosmos_ctx **out, unsigned api_version, int held,
                struct cosmos_error *err)
{
    struct cosmos_helpers *helpers = NULL;
    int rc;

    if (api_version != COSMOS_API_VERSION)
        return cosmos_fail(err, COSMOS_INVALID,
                           "api version: caller has %u, library has %u",
                           api_version, COSMOS_API_VERSION);
    if (atomic_flag_test_and_set(&is_open))
        return cosmos_fail(err, COSMOS_EXISTS, "this process has the host "
                           "open; use that, or close it first");
    rc = cosmos_helpers_start(&helpers, held, err);
    if (!rc)
        rc = cosmos_host_open(out, err);
    if (!rc) {
        (*out)->helpers = helpers;
        libxl_childproc_setmode((*out)->xl, &no_forks, NULL);
        return COSMOS_OK;
    }
    cosmos_helpers_stop(helpers);
    atomic_flag_clear(&is_open);
    return rc;
}

void cosmos_close(struct cosmos_ctx *ctx)
{
    struct cosmos_helpers *helpers;

    if (!ctx)
        return;
    helpers = ctx->helpers;
    cosmos_host_close(ctx);
    cosmos_helpers_stop(helpers);
    atomic_flag_clear(&is_open);
}

int cosmos_host_open(struct cosmos_ctx **out, struct cosmos_error *err)
{
    struct cosmos_ctx *ctx = calloc(1, sizeof(*ctx));
    int rc;

    if (!ctx)
        return cosmos_fail(err, COSMOS_NO_MEMORY, "no memory for a context");
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
    ctx->xc = xc_interface_open(&ctx->log.vtable, &ctx->log.vtable, 0);
    if (!ctx->xc) {
        rc = cosmos_fail(err, COSMOS_HOST, "libxc: %s; is this a Xen host's "
                         "dom0?", cosmos_log_text(&ctx->log));
        goto out;
    }
    *out = ctx;
    return COSMOS_OK;

out:
    cosmos_host_close(ctx);
    return rc;
}

void cosmos_host_close(struct cosmos_ctx *ctx)
{
    if (ctx->xc)
        xc_interface_close(ctx->xc);
    if (ctx->xl)
        libxl_ctx_free(ctx->xl);
    if (ctx->xs)
        xs_close(ctx->xs);
    if (ctx->log_made)
        cosmos_log_free(&ctx->log);
    free(ctx);
}

int cosmos_host_info(struct cosmos_ctx *ctx, struct cosmos_host_info *info,
                     struct cosmos_error *err)
{
    libxl_physinfo phys;
    int rc;

    libxl_physinfo_init(&phys);
    rc = libxl_get_physinfo(ctx->xl, &phys);
    if (rc) {
        rc = cosmos_fail_xl(ctx, err, rc, "host info", COSMOS_NO_DOMAIN);
        goto out;
    }
    info->cpus = phys.nr_cpus;
    info->memory_kib = phys.total_pages * COSMOS_PAGE_KIB;
    info->free_kib = (phys.free_pages + phys.scrub_pages) * COSMOS_PAGE_KIB;

out:
    libxl_physinfo_dispose(&phys);
    return rc;
}
