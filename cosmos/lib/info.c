/* SPDX-License-Identifier: Apache-2.0 */
/* What Xen knows of its domains. libxl's calls for this ask Xen for the
 * security label of each domain, which is not used here and takes as long as
 * a creation when there are hundreds. These ask libxc. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static enum cosmos_state state_of(const xc_domaininfo_t *xen)
{
    if (xen->flags & XEN_DOMINF_dying)
        return COSMOS_DYING;
    if (xen->flags & XEN_DOMINF_shutdown)
        return COSMOS_SHUT_DOWN;
    return xen->flags & XEN_DOMINF_paused ? COSMOS_PAUSED : COSMOS_RUNNING;
}

static enum cosmos_reason reason_of(const xc_domaininfo_t *xen)
{
    int reason = (xen->flags >> XEN_DOMINF_shutdownshift) &
                 XEN_DOMINF_shutdownmask;

    if (!(xen->flags & (XEN_DOMINF_dying | XEN_DOMINF_shutdown)) ||
        reason > COSMOS_SOFT_RESET)
        return COSMOS_UNKNOWN;
    return reason;
}

static void fill_info(struct cosmos_info *info, const xc_domaininfo_t *xen)
{
    memset(info, 0, sizeof(*info));
    info->domid = xen->domain;
    memcpy(info->uuid, xen->handle, sizeof(info->uuid));
    info->state = state_of(xen);
    info->reason = reason_of(xen);
    info->memory_kib = xen->tot_pages * COSMOS_PAGE_KIB;
    info->memory_max_kib = xen->max_pages * COSMOS_PAGE_KIB;
    info->cpu_time_ns = xen->cpu_time;
}

static void fill_name(struct cosmos_ctx *ctx, struct cosmos_info *info)
{
    char *name = libxl_domid_to_name(ctx->xl, info->domid);

    if (name)
        strncpy(info->name, name, sizeof(info->name) - 1);
    free(name);
}

int cosmos_check_domain(struct cosmos_ctx *ctx, uint32_t domid,
                        struct cosmos_error *err)
{
    struct cosmos_info info;

    if (!domid)
        return cosmos_fail(err, COSMOS_NOT_FOUND, "domain 0 is not a guest");
    return cosmos_domain_peek(ctx, domid, &info, err);
}

int cosmos_domain_peek(struct cosmos_ctx *ctx, uint32_t domid,
                       struct cosmos_info *info, struct cosmos_error *err)
{
    xc_domaininfo_t xen;
    int n = xc_domain_getinfolist(ctx->xc, domid, 1, &xen);

    if (n < 0)
        return cosmos_fail(err, COSMOS_HOST, "domain %u: %s", domid,
                           strerror(errno));
    /* Xen answers with the next one where there is no such domain. */
    if (!n || xen.domain != domid)
        return cosmos_fail(err, COSMOS_NOT_FOUND, "no domain %u",
                           domid);
    fill_info(info, &xen);
    return COSMOS_OK;
}

int cosmos_domain_info(struct cosmos_ctx *ctx, uint32_t domid,
                       struct cosmos_info *info, struct cosmos_error *err)
{
    int rc = cosmos_domain_peek(ctx, domid, info, err);

    if (!rc)
        fill_name(ctx, info);
    return rc;
}

int cosmos_domain_peek_from(struct cosmos_ctx *ctx, uint32_t first,
                            struct cosmos_info *infos, size_t *count,
                            struct cosmos_error *err)
{
    xc_domaininfo_t found[COSMOS_PEEK_DOMAINS];
    int i, n = xc_domain_getinfolist(ctx->xc, first, COSMOS_PEEK_DOMAINS, found);

    *count = 0;
    if (n < 0)
        return cosmos_fail(err, COSMOS_HOST, "domains from %u: %s", first,
                           strerror(errno));
    for (i = 0; i < n; i++)
        fill_info(&infos[i], &found[i]);
    *count = n;
    return COSMOS_OK;
}

int cosmos_domain_peek_all(struct cosmos_ctx *ctx, struct cosmos_info **list,
                           size_t *count, struct cosmos_error *err)
{
    struct cosmos_info *more, *infos = NULL;
    uint32_t next = 1;
    size_t n = 0;
    int rc;

    *count = 0;
    do {
        more = realloc(infos, (*count + COSMOS_PEEK_DOMAINS) * sizeof(*more));
        if (!more) {
            rc = cosmos_fail(err, COSMOS_NO_MEMORY, "list: after %zu domains",
                             *count);
            break;
        }
        infos = more;
        rc = cosmos_domain_peek_from(ctx, next, infos + *count, &n, err);
        *count += n;
        if (n)
            next = infos[*count - 1].domid + 1;
    } while (!rc && n == COSMOS_PEEK_DOMAINS);
    if (rc) {
        free(infos);
        infos = NULL;
    }
    *list = infos;
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
