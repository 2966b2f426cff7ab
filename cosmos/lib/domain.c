/* SPDX-License-Identifier: Apache-2.0 */
/* Calls about a domain that exists. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

/* Reports what a libxl call about one domain returned. */
static int result(struct cosmos_ctx *ctx, struct cosmos_error *err, int rc,
                  const char *what, uint32_t domid)
{
    return rc ? cosmos_fail_xl(ctx, err, rc, what, domid) : COSMOS_OK;
}

/* The start of every call about one domain; dom0 is not one of ours. */
static int begin(struct cosmos_ctx *ctx, uint32_t domid,
                 struct cosmos_error *err)
{
    cosmos_log_clear(&ctx->log);
    return cosmos_check_domain(ctx, domid, err);
}

int cosmos_domain_unpause(struct cosmos_ctx *ctx, uint32_t domid,
                          struct cosmos_error *err)
{
    int rc = begin(ctx, domid, err);

    return rc ? rc : result(ctx, err, libxl_domain_unpause(ctx->xl, domid,
                            NULL), "unpause", domid);
}

int cosmos_domain_pause(struct cosmos_ctx *ctx, uint32_t domid,
                        struct cosmos_error *err)
{
    int rc = begin(ctx, domid, err);

    return rc ? rc : result(ctx, err, libxl_domain_pause(ctx->xl, domid,
                            NULL), "pause", domid);
}

int cosmos_domain_destroy(struct cosmos_ctx *ctx, uint32_t domid,
                          struct cosmos_error *err)
{
    struct job job = { .kind = JOB_DESTROY, .domid = domid };
    int rc = begin(ctx, domid, err);

    return rc ? rc : cosmos_do(ctx, &job, cosmos_no_fds, NULL, err);
}

int cosmos_domain_save(struct cosmos_ctx *ctx, uint32_t domid, int fd,
                       struct cosmos_error *err)
{
    struct job job = { .kind = JOB_SAVE, .domid = domid };
    int rc = begin(ctx, domid, err);

    return rc ? rc : cosmos_do(ctx, &job, (int[]){ fd, -1 }, NULL, err);
}

int cosmos_domain_resume(struct cosmos_ctx *ctx, uint32_t domid,
                         struct cosmos_error *err)
{
    const int cancel = 1;                /* the guest sees a cancelled suspend */
    int rc = begin(ctx, domid, err);

    return rc ? rc : result(ctx, err, libxl_domain_resume(ctx->xl, domid,
                            cancel, NULL), "resume", domid);
}

/* The two places where a name stands; neither is of use to the other. */
bool cosmos_put_name(struct xs_handle *xs, uint32_t domid, const char *name)
{
    char path[PATH_BYTES];
    unsigned length;
    char *vm;
    bool done;

    snprintf(path, sizeof(path), "/local/domain/%u/vm", domid);
    vm = xs_read(xs, XBT_NULL, path, &length);
    if (!vm)
        return false;
    snprintf(path, sizeof(path), "/local/domain/%u", domid);
    done = cosmos_put(xs, XBT_NULL, vm, "name", "%s", name) &&
           cosmos_put(xs, XBT_NULL, path, "name", "%s", name);
    free(vm);
    return done;
}

int cosmos_check_name(const char *name, struct cosmos_error *err)
{
    size_t length = name ? strlen(name) : 0;

    if (length && length < COSMOS_NAME_BYTES)
        return COSMOS_OK;
    return cosmos_fail(err, COSMOS_INVALID,
                       "name: expected 1 to %d bytes, got %zu",
                       COSMOS_NAME_BYTES - 1, length);
}

/* libxl's own compares the name with those of all domains, one by one. */
int cosmos_domain_rename(struct cosmos_ctx *ctx, uint32_t domid,
                         const char *name, struct cosmos_error *err)
{
    int rc = cosmos_check_name(name, err);

    if (!rc)
        rc = begin(ctx, domid, err);
    if (rc || cosmos_put_name(ctx->xs, domid, name))
        return rc;
    return cosmos_fail(err, COSMOS_STORE, "rename: xen store: %s",
                       strerror(errno));
}

int cosmos_domain_pin(struct cosmos_ctx *ctx, uint32_t domid, int cpu,
                      struct cosmos_error *err)
{
    libxl_bitmap map;
    int rc = begin(ctx, domid, err);

    if (rc)
        return rc;
    libxl_bitmap_init(&map);
    rc = libxl_cpu_bitmap_alloc(ctx->xl, &map, 0);
    if (!rc && cpu < 0)
        libxl_bitmap_set_any(&map);
    else if (!rc && cpu < (int)map.size * 8)
        libxl_bitmap_set(&map, cpu);
    else if (!rc)
        rc = ERROR_INVAL;
    if (!rc)
        rc = libxl_set_vcpuaffinity(ctx->xl, domid, 0, &map, NULL);
    libxl_bitmap_dispose(&map);
    return result(ctx, err, rc, "pin", domid);
}

int cosmos_domain_share(struct cosmos_ctx *ctx, uint32_t domid,
                        unsigned weight, unsigned cap_percent,
                        struct cosmos_error *err)
{
    libxl_domain_sched_params params;
    int rc = 0;

    cosmos_log_clear(&ctx->log);
    /* Domain 0 is no guest, but it has a share too. */
    if (domid)
        rc = begin(ctx, domid, err);
    if (rc)
        return rc;
    libxl_domain_sched_params_init(&params);
    params.weight = weight;
    params.cap = cap_percent;
    rc = libxl_domain_sched_params_set(ctx->xl, domid, &params);
    libxl_domain_sched_params_dispose(&params);
    return result(ctx, err, rc, "share", domid);
}

int cosmos_domain_memory(struct cosmos_ctx *ctx, uint32_t domid,
                         uint32_t memory_kib, struct cosmos_error *err)
{
    int rc = begin(ctx, domid, err);

    return rc ? rc : result(ctx, err, libxl_domain_setmaxmem(ctx->xl, domid,
                            memory_kib), "memory", domid);
}
