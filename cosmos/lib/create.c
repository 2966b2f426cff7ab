/* SPDX-License-Identifier: Apache-2.0 */
/* Domains from an image in memory, or from what a save wrote. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "job.h"

static int check_spec(const struct cosmos_spec *spec, struct cosmos_error *err)
{
    int rc = cosmos_check_name(spec->name, err);

    if (rc)
        return rc;
    if (spec->type != COSMOS_PV && spec->type != COSMOS_PVH)
        return cosmos_fail(err, COSMOS_INVALID,
                           "type: expected pv or pvh, got %d", spec->type);
    if (!spec->memory_kib)
        return cosmos_fail(err, COSMOS_INVALID, "memory: 0 KiB");
    return COSMOS_OK;
}

/* libxl takes a kernel by its path: this one's leads to memory. */
int cosmos_image_fd(const struct cosmos_spec *spec, struct cosmos_error *err)
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

static int do_spec(struct cosmos_ctx *ctx, enum job_kind kind,
                   const struct cosmos_spec *spec,
                   const int fds[COSMOS_FDS], uint32_t *domid,
                   struct cosmos_error *err)
{
    struct job job = { .kind = kind, .domid = COSMOS_NO_DOMAIN };
    int rc = check_spec(spec, err);

    if (rc)
        return rc;
    job.spec = *spec;
    job.spec.files = NULL;
    rc = cosmos_job_text(job.first, spec->name, "name", err);
    if (!rc)
        rc = cosmos_job_text(job.second, spec->cmdline, "cmdline", err);
    return rc ? rc : cosmos_do(ctx, &job, fds, domid, err);
}

int cosmos_domain_create(struct cosmos_ctx *ctx,
                         const struct cosmos_spec *spec, uint32_t *domid,
                         struct cosmos_error *err)
{
    const struct cosmos_files *files = spec->files;
    const int fds[COSMOS_FDS] = {
        files ? files->kernel : -1, files ? files->ramdisk : -1,
    };

    if (files && files->kernel < 0)
        return cosmos_fail(err, COSMOS_INVALID, "files: no kernel");
    return do_spec(ctx, JOB_CREATE, spec, fds, domid, err);
}

int cosmos_domain_restore(struct cosmos_ctx *ctx,
                          const struct cosmos_spec *spec, int fd,
                          uint32_t *domid, struct cosmos_error *err)
{
    return do_spec(ctx, JOB_RESTORE, spec, (int[]){ fd, -1 }, domid, err);
}
