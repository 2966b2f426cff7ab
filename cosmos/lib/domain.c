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

int cosmos_check_domain(struct cosmos_ctx *ctx, uint32_t domid,
                        struct cosmos_error *err)
{
    int rc;

    rc = domid ? libxl_domain_info(ctx->xl, NULL, domid) : ERROR_INVAL;
    if (rc)
        return cosmos_fail(err, COSMOS_NOT_FOUND, "there is no domain %u",
                           domid);
    return COSMOS_OK;
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

static enum cosmos_state state_of(const libxl_dominfo *xl)
{
    if (xl->dying)
        return COSMOS_DYING;
    if (xl->shutdown)
        return COSMOS_SHUT_DOWN;
    return xl->paused ? COSMOS_PAUSED : COSMOS_RUNNING;
}

static enum cosmos_reason reason_of(const libxl_dominfo *xl)
{
    int reason = xl->shutdown_reason;

    return reason < COSMOS_POWEROFF || reason > COSMOS_SOFT_RESET
           ? COSMOS_UNKNOWN : (enum cosmos_reason)reason;
}

static void fill_info(struct cosmos_info *info, libxl_dominfo *xl)
{
    memset(info, 0, sizeof(*info));
    info->domid = xl->domid;
    memcpy(info->uuid, libxl_uuid_bytearray(&xl->uuid), sizeof(info->uuid));
    info->state = state_of(xl);
    info->reason = reason_of(xl);
    info->memory_kib = xl->current_memkb;
    info->memory_max_kib = xl->max_memkb;
    info->cpu_time_ns = xl->cpu_time;
}

static void fill_name(struct cosmos_ctx *ctx, struct cosmos_info *info)
{
    char *name = libxl_domid_to_name(ctx->xl, info->domid);

    if (name)
        strncpy(info->name, name, sizeof(info->name) - 1);
    free(name);
}

int cosmos_domain_peek(struct cosmos_ctx *ctx, uint32_t domid,
                       struct cosmos_info *info, struct cosmos_error *err)
{
    libxl_dominfo xl;
    int rc;

    libxl_dominfo_init(&xl);
    cosmos_log_clear(&ctx->log);
    rc = libxl_domain_info(ctx->xl, &xl, domid);
    if (rc)
        rc = cosmos_fail_xl(ctx, err, rc, "info", domid);
    else
        fill_info(info, &xl);
    libxl_dominfo_dispose(&xl);
    return rc;
}

int cosmos_domain_info(struct cosmos_ctx *ctx, uint32_t domid,
                       struct cosmos_info *info, struct cosmos_error *err)
{
    int rc = cosmos_domain_peek(ctx, domid, info, err);

    if (!rc)
        fill_name(ctx, info);
    return rc;
}

int cosmos_domain_peek_all(struct cosmos_ctx *ctx, struct cosmos_info **list,
                           size_t *count, struct cosmos_error *err)
{
    struct cosmos_info *infos = NULL;
    libxl_dominfo *domains;
    int i, n = 0, rc = COSMOS_OK;

    cosmos_log_clear(&ctx->log);
    domains = libxl_list_domain(ctx->xl, &n);
    if (!domains)
        return cosmos_fail(err, COSMOS_HOST, "list: %s",
                           cosmos_log_text(&ctx->log));
    infos = calloc(n, sizeof(*infos));
    if (!infos) {
        rc = cosmos_fail(err, COSMOS_NO_MEMORY, "list: %d domains", n);
        goto out;
    }
    *count = 0;
    for (i = 0; i < n; i++)
        if (domains[i].domid)
            fill_info(&infos[(*count)++], &domains[i]);
    *list = infos;

out:
    libxl_dominfo_list_free(domains, n);
    return rc;
}

int cosmos_domain_list(struct cosmos_ctx *ctx, struct cosmos_info **list,
                       size_t *count, struct cosmos_error *err)
{
    int rc = cosmos_domain_peek_all(ctx, list, count, err);
    size_t i;

    for (i = 0; !rc && i < *count; i++)
        fill_name(ctx, &(*list)[i]);
    return rc;
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
