/* SPDX-License-Identifier: Apache-2.0 */
/* Builds domains with libxl, in a helper. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

#define FD_PATH_BYTES 64

static char *copy(const char *text)
{
    return text ? strdup(text) : NULL;
}

/* A caller that numbers domains keeps their names apart, too: libxl would
 * compare a name with those of all domains, one by one. */
static bool is_numbered(const struct cosmos_spec *spec)
{
    return spec->domid != COSMOS_NO_DOMAIN;
}

/* The path of a descriptor; NULL without one, or without memory. */
static char *path_of(int fd)
{
    char path[FD_PATH_BYTES];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return fd < 0 ? NULL : strdup(path);
}

/* One virtual CPU, no devices; fds are kernel and RAM disk, -1 for none. */
static int fill_config(struct cosmos_ctx *ctx, libxl_domain_config *config,
                       const struct cosmos_spec *spec,
                       const int fds[COSMOS_FDS])
{
    libxl_domain_create_info *create = &config->c_info;
    libxl_domain_build_info *build = &config->b_info;

    create->type = spec->type == COSMOS_PVH ? LIBXL_DOMAIN_TYPE_PVH
                                            : LIBXL_DOMAIN_TYPE_PV;
    create->name = copy(is_numbered(spec) ? "" : spec->name);
    create->domid = is_numbered(spec) ? spec->domid : INVALID_DOMID;
    create->passthrough = LIBXL_PASSTHROUGH_DISABLED;
    memcpy(libxl_uuid_bytearray(&create->uuid), spec->uuid, sizeof(spec->uuid));

    libxl_domain_build_info_init_type(build, create->type);
    build->max_vcpus = 1;
    build->max_memkb = build->target_memkb = spec->memory_kib;
    build->shadow_memkb = libxl_get_required_shadow_memory(spec->memory_kib, 1);
    build->kernel = path_of(fds[0]);
    build->ramdisk = path_of(fds[1]);
    build->cmdline = copy(spec->cmdline);
    if (libxl_cpu_bitmap_alloc(ctx->xl, &build->avail_vcpus, 1))
        return ERROR_NOMEM;
    libxl_bitmap_set(&build->avail_vcpus, 0);

    config->on_poweroff = LIBXL_ACTION_ON_SHUTDOWN_PRESERVE;
    config->on_reboot = LIBXL_ACTION_ON_SHUTDOWN_PRESERVE;
    config->on_crash = LIBXL_ACTION_ON_SHUTDOWN_PRESERVE;
    return create->name && (fds[0] < 0 || build->kernel) &&
           (fds[1] < 0 || build->ramdisk) ? 0 : ERROR_NOMEM;
}

/* libxl numbers this like any failure of the build; its words tell. */
static int fail_create(struct cosmos_ctx *ctx, struct cosmos_error *err,
                       int rc, const struct cosmos_spec *spec)
{
    const char *said = cosmos_log_text(&ctx->log);
    uint32_t other;
    int named = 0;

    if (!is_numbered(spec))
        named = !libxl_name_to_domid(ctx->xl, spec->name, &other);
    if (named)
        return cosmos_fail(err, COSMOS_EXISTS,
                           "create %s: domain %u has this name", spec->name,
                           other);
    if (strstr(said, "xc_dom_find_loader") || strstr(said, "xc_dom_parse_") ||
        strstr(said, "xc_dom_probe_"))
        return cosmos_fail(err, COSMOS_BAD_IMAGE,
                           "create %s: image: not a kernel Xen can start: %s",
                           spec->name, said);
    if (strstr(said, "free memory") || strstr(said, strerror(ENOMEM)) ||
        strstr(said, "Out of memory") || rc == ERROR_NOMEM)
        return cosmos_fail(err, COSMOS_NO_MEMORY,
                           "create %s: %u KiB: the host has not that much "
                           "free: %s", spec->name, spec->memory_kib, said);
    return cosmos_fail_xl(ctx, err, rc, "create", COSMOS_NO_DOMAIN);
}

/* Gives a domain that libxl has made to the caller. */
static int hand_over(struct cosmos_ctx *ctx, const struct cosmos_spec *spec,
                     uint32_t made, uint32_t *domid, struct cosmos_error *err)
{
    if (is_numbered(spec) && !cosmos_put_name(ctx->xs, made, spec->name)) {
        cosmos_fail(err, COSMOS_STORE, "name of domain %u: xen store: %s",
                    made, strerror(errno));
        libxl_domain_destroy(ctx->xl, made, NULL);
        return COSMOS_STORE;
    }
    *domid = made;
    return COSMOS_OK;
}

static int create(struct cosmos_ctx *ctx, const struct cosmos_spec *spec,
                  const int fds[COSMOS_FDS], uint32_t *domid,
                  struct cosmos_error *err)
{
    libxl_domain_config config;
    uint32_t made = COSMOS_NO_DOMAIN;
    int rc;

    libxl_domain_config_init(&config);
    rc = fill_config(ctx, &config, spec, fds);
    if (!rc)
        rc = libxl_domain_create_new(ctx->xl, &config, &made, NULL, NULL);
    if (rc)
        rc = fail_create(ctx, err, rc, spec);
    else
        rc = hand_over(ctx, spec, made, domid, err);
    libxl_domain_config_dispose(&config);
    return rc;
}

static int restore(struct cosmos_ctx *ctx, const struct cosmos_spec *spec,
                   int fd, uint32_t *domid, struct cosmos_error *err)
{
    libxl_domain_config config;
    libxl_domain_restore_params params;
    uint32_t made = COSMOS_NO_DOMAIN;
    int rc;

    libxl_domain_config_init(&config);
    libxl_domain_restore_params_init(&params);
    params.stream_version = 2;
    rc = fill_config(ctx, &config, spec, cosmos_no_fds);
    if (!rc)
        rc = libxl_domain_create_restore(ctx->xl, &config, &made, fd, -1,
                                         &params, NULL, NULL);
    if (rc)
        rc = cosmos_fail_xl(ctx, err, rc, "restore", COSMOS_NO_DOMAIN);
    else
        rc = hand_over(ctx, spec, made, domid, err);
    libxl_domain_restore_params_dispose(&params);
    libxl_domain_config_dispose(&config);
    return rc;
}

int cosmos_build(struct cosmos_ctx *ctx, const struct job *job,
                 const int fds[COSMOS_FDS], uint32_t *domid,
                 struct cosmos_error *err)
{
    struct cosmos_spec spec = job->spec;

    spec.name = job->first;
    spec.cmdline = job->second[0] ? job->second : NULL;
    return job->kind == JOB_CREATE ? create(ctx, &spec, fds, domid, err)
                                   : restore(ctx, &spec, fds[0], domid, err);
}
