/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs of a helper, which has one thread: libxl may fork here. */
#include <stdlib.h>
#include <string.h>

#include "job.h"

int cosmos_job_text(char to[TEXT_BYTES], const char *text, const char *what,
                    struct cosmos_error *err)
{
    size_t length = text ? strlen(text) : 0;

    if (length >= TEXT_BYTES)
        return cosmos_fail(err, COSMOS_INVALID,
                           "%s: %zu bytes, the limit is %d", what, length,
                           TEXT_BYTES - 1);
    memcpy(to, text ? text : "", length + 1);
    return COSMOS_OK;
}

static char *copy(const char *text)
{
    return text[0] ? strdup(text) : NULL;
}

static int nic_add(struct cosmos_ctx *ctx, const struct job *job)
{
    const struct cosmos_nic *nic = &job->nic;
    libxl_device_nic xl;
    int rc;

    libxl_device_nic_init(&xl);
    xl.devid = nic->devid;
    xl.mtu = nic->mtu;
    xl.nictype = LIBXL_NIC_TYPE_VIF;
    memcpy(xl.mac, nic->mac, sizeof(nic->mac));
    xl.bridge = copy(job->first);
    xl.script = copy(job->second);
    rc = libxl_device_nic_add(ctx->xl, job->domid, &xl, NULL);
    libxl_device_nic_dispose(&xl);
    return rc;
}

static int nic_remove(struct cosmos_ctx *ctx, const struct job *job)
{
    libxl_device_nic xl;
    int rc;

    libxl_device_nic_init(&xl);
    rc = libxl_devid_to_device_nic(ctx->xl, job->domid, job->nic.devid, &xl);
    if (!rc)
        rc = libxl_device_nic_destroy(ctx->xl, job->domid, &xl, NULL);
    libxl_device_nic_dispose(&xl);
    return rc;
}

static int destroy(struct cosmos_ctx *ctx, uint32_t domid)
{
    int rc = libxl_domain_destroy(ctx->xl, domid, NULL);

    if (!rc)
        cosmos_vale_forget(ctx, domid);
    return rc;
}

/* Turns what libxl returned into the job's result. */
static int result(struct cosmos_ctx *ctx, const struct job *job, int rc,
                  const char *what, struct cosmos_error *err)
{
    return rc ? cosmos_fail_xl(ctx, err, rc, what, job->domid) : COSMOS_OK;
}

int cosmos_work(struct cosmos_ctx *ctx, const struct job *job,
                const int fds[COSMOS_FDS], uint32_t *domid,
                struct cosmos_error *err)
{
    cosmos_log_clear(&ctx->log);
    switch (job->kind) {
    case JOB_CREATE:
    case JOB_RESTORE:
        return cosmos_build(ctx, job, fds, domid, err);
    case JOB_SAVE:
        return result(ctx, job, libxl_domain_suspend(ctx->xl, job->domid,
                      fds[0], 0, NULL), "save", err);
    case JOB_DESTROY:
        return result(ctx, job, destroy(ctx, job->domid), "destroy", err);
    case JOB_NIC_ADD:
        return result(ctx, job, nic_add(ctx, job), "nic add", err);
    case JOB_NIC_REMOVE:
        return result(ctx, job, nic_remove(ctx, job), "nic remove", err);
    }
    return cosmos_fail(err, COSMOS_INVALID, "job %d: unknown", job->kind);
}
