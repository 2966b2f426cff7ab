/* SPDX-License-Identifier: Apache-2.0 */
/* Domains from an image in memory, or from what a save wrote. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "internal.h"

#define FD_PATH_BYTES 64

static int check_spec(const struct cosmos_spec *spec, struct cosmos_error *err)
{
    size_t length = spec->name ? strlen(spec->name) : 0;

    if (!length || length >= COSMOS_NAME_BYTES)
        return cosmos_fail(err, COSMOS_INVALID,
                           "name: expected 1 to %d bytes, got %zu",
                           COSMOS_NAME_BYTES - 1, length);
    if (spec->type != COSMOS_PV && spec->type != COSMOS_PVH)
        return cosmos_fail(err, COSMOS_INVALID,
                           "type: expected pv or pvh, got %d", spec->type);
    if (!spec->memory_kib)
        return cosmos_fail(err, COSMOS_INVALID, "memory: 0 KiB");
    return COSMOS_OK;
}

/* libxl takes a kernel by its path: this one's leads to memory. */
static int image_fd(const struct cosmos_spec *spec, struct cosmos_error *err)
{
    const char *from = spec->image;
    size_t left = spec->image_bytes;
    int fd = memfd_create("guest-image", MFD_CLOEXEC);
    ssize_t n;

    while (fd >= 0 && left) {
        n = write(fd, from, left);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            close(fd);
            fd = -1;
            break;
        }
        from += n;
        left -= n;
    }
    if (fd < 0)
        cosmos_fail(err, COSMOS_NO_MEMORY, "image: %zu bytes: %s",
                    spec->image_bytes, strerror(errno));
    return fd;
}

static char *copy(const char *text)
{
    return text ? strdup(text) : NULL;
}

/* Whoever numbers domains keeps their names apart, too: libxl, given a name,
 * would compare it with those of all domains, one by one. */
static bool is_numbered(const struct cosmos_spec *spec)
{
    return spec->domid != COSMOS_NO_DOMAIN;
}

/* One virtual CPU, no devices; kernel may be NULL (restore). */
static int fill_config(struct cosmos_ctx *ctx, libxl_domain_config *config,
                       const struct cosmos_spec *spec, const char *kernel)
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
    build->kernel = copy(kernel);
    build->cmdline = copy(spec->cmdline);
    if (libxl_cpu_bitmap_alloc(ctx->xl, &build->avail_vcpus, 1))
        return ERROR_NOMEM;
    libxl_bitmap_set(&build->avail_vcpus, 0);

    config->on_poweroff = LIBXL_ACTION_ON_SHUTDOWN_PRESERVE;
    config->on_reboot = LIBXL_ACTION_ON_SHUTDOWN_PRESERVE;
    config->on_crash = LIBXL_ACTION_ON_SHUTDOWN_PRESERVE;
    return create->name && (!kernel || build->kernel) ? 0 : ERROR_NOMEM;
}

/* libxl numbers this like any failure of the build; its words tell. */
static int fail_create(struct cosmos_ctx *ctx, struct cosmos_error *err,
                       int rc, const struct cosmos_spec *spec)
{
    const char *said = cosmos_log_text(&ctx->log);
    uint32_t other;
    int named = 0;

    if (!is_numbered(spec)) {
        cosmos_ask_begin(ctx);
        named = !libxl_name_to_domid(ctx->xl, spec->name, &other);
        cosmos_ask_end(ctx);
    }
    if (named)
        return cosmos_fail(err, COSMOS_EXISTS,
                           "create %s: domain %u has this name", spec->name,
                           other);
    if (strstr(said, "xc_dom_find_loader") || strstr(said, "xc_dom_parse_"))
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

int cosmos_domain_create(struct cosmos_ctx *ctx,
                         const struct cosmos_spec *spec, uint32_t *domid,
                         struct cosmos_error *err)
{
    libxl_domain_config config;
    char kernel[FD_PATH_BYTES];
    uint32_t made = COSMOS_NO_DOMAIN;
    int fd = -1, rc;

    libxl_domain_config_init(&config);
    cosmos_log_clear(&ctx->log);
    rc = check_spec(spec, err);
    if (rc)
        goto out;
    fd = image_fd(spec, err);
    if (fd < 0) {
        rc = COSMOS_NO_MEMORY;
        goto out;
    }
    snprintf(kernel, sizeof(kernel), "/proc/self/fd/%d", fd);
    rc = fill_config(ctx, &config, spec, kernel);
    if (!rc)
        rc = libxl_domain_create_new(ctx->xl, &config, &made, NULL, NULL);
    if (rc)
        rc = fail_create(ctx, err, rc, spec);
    else
        rc = hand_over(ctx, spec, made, domid, err);

out:
    if (fd >= 0)
        close(fd);
    libxl_domain_config_dispose(&config);
    return rc;
}

int cosmos_domain_restore(struct cosmos_ctx *ctx,
                          const struct cosmos_spec *spec, int fd,
                          uint32_t *domid, struct cosmos_error *err)
{
    libxl_domain_config config;
    libxl_domain_restore_params params;
    uint32_t made = COSMOS_NO_DOMAIN;
    int rc;

    libxl_domain_config_init(&config);
    libxl_domain_restore_params_init(&params);
    cosmos_log_clear(&ctx->log);
    rc = check_spec(spec, err);
    if (rc)
        goto out;
    params.stream_version = 2;
    rc = fill_config(ctx, &config, spec, NULL);
    if (!rc)
        rc = libxl_domain_create_restore(ctx->xl, &config, &made, fd, -1,
                                         &params, NULL, NULL);
    if (rc)
        rc = cosmos_fail_xl(ctx, err, rc, "restore", COSMOS_NO_DOMAIN);
    else
        rc = hand_over(ctx, spec, made, domid, err);

out:
    libxl_domain_restore_params_dispose(&params);
    libxl_domain_config_dispose(&config);
    return rc;
}
