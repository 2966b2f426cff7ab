/* SPDX-License-Identifier: Apache-2.0 */
/* What a helper process does for the process with threads (helper.c). */
#ifndef COSMOS_JOB_H
#define COSMOS_JOB_H

#include "internal.h"
#include "message.h"

/* A name and a command line, or a bridge and a script. */
#define TEXT_BYTES 1024

enum job_kind {
    JOB_CREATE, JOB_RESTORE, JOB_SAVE, JOB_DESTROY, JOB_NIC_ADD,
    JOB_NIC_REMOVE,
};

/* Sent as it is: the helper is a fork of its parent. */
struct job {
    enum job_kind kind;
    uint32_t domid;
    struct cosmos_spec spec;             /* without its texts and files */
    struct cosmos_nic nic;               /* likewise */
    char first[TEXT_BYTES], second[TEXT_BYTES];
};

/* Copies a text into a job; NULL becomes empty. */
int cosmos_job_text(char to[TEXT_BYTES], const char *text, const char *what,
                    struct cosmos_error *err);

/* Has a helper do the job, with these descriptors; a creation without any
 * gets the image's. domid may be NULL. */
int cosmos_do(struct cosmos_ctx *ctx, const struct job *job,
              const int fds[COSMOS_FDS], uint32_t *domid,
              struct cosmos_error *err);

/* Does the job, in a helper. */
int cosmos_work(struct cosmos_ctx *ctx, const struct job *job,
                const int fds[COSMOS_FDS], uint32_t *domid,
                struct cosmos_error *err);

/* The kernel in memory; -1 with *err written. */
int cosmos_image_fd(const struct cosmos_spec *spec, struct cosmos_error *err);

/* The part of cosmos_work that makes domains. */
int cosmos_build(struct cosmos_ctx *ctx, const struct job *job,
                 const int fds[COSMOS_FDS], uint32_t *domid,
                 struct cosmos_error *err);

#endif
