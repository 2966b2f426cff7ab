/* SPDX-License-Identifier: Apache-2.0 */
/* Has helper processes do what makes libxl fork.
 *
 * libxl destroys a domain in a child that it forks without running another
 * program, and the child makes hypercalls. The libraries below libxl keep
 * locks of the whole process, which no caller can reach. A child that is
 * forked while another thread holds one waits for ever. So libxl forks only
 * in processes that have one thread.
 *
 * One process, forked before this one uses libxl, forks the others; each of
 * those does one job at a time.
 */
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "helper.h"
#include "message.h"

/* Jobs at a time besides builds: they mostly wait. */
#define OTHERS 8
/* Helpers that are kept for the next job. */
#define IDLE 4

struct cosmos_helpers {
    int control;
    pid_t pid;
    sem_t builders, others;
    pthread_mutex_t lock;                /* of what follows */
    int idle[IDLE];
    int idles;
};

static int no_helper(struct cosmos_error *err, int why)
{
    return cosmos_fail(err, COSMOS_HOST, "no helper process: %s; restart "
                       "this program", strerror(why));
}

int cosmos_helpers_start(struct cosmos_helpers **out, int held,
                         struct cosmos_error *err)
{
    struct cosmos_helpers *helpers = calloc(1, sizeof(*helpers));
    int ends[2];

    if (!helpers || !cosmos_sockets(ends)) {
        free(helpers);
        return no_helper(err, errno);
    }
    helpers->control = ends[0];
    helpers->pid = fork();
    if (!helpers->pid)
        cosmos_breed(ends[1], held);
    close(ends[1]);
    if (helpers->pid < 0) {
        no_helper(err, errno);
        close(ends[0]);
        free(helpers);
        return COSMOS_HOST;
    }
    sem_init(&helpers->builders, 0, COSMOS_BUILDERS);
    sem_init(&helpers->others, 0, OTHERS);
    pthread_mutex_init(&helpers->lock, NULL);
    *out = helpers;
    return COSMOS_OK;
}

void cosmos_helpers_stop(struct cosmos_helpers *helpers)
{
    if (!helpers)
        return;
    close(helpers->control);             /* ends them all */
    while (waitpid(helpers->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    while (helpers->idles)
        close(helpers->idle[--helpers->idles]);
    pthread_mutex_destroy(&helpers->lock);
    sem_destroy(&helpers->builders);
    sem_destroy(&helpers->others);
    free(helpers);
}

/* The socket of an idle helper, or -1. */
static int take(struct cosmos_helpers *helpers)
{
    int helper = -1;

    pthread_mutex_lock(&helpers->lock);
    if (helpers->idles)
        helper = helpers->idle[--helpers->idles];
    pthread_mutex_unlock(&helpers->lock);
    return helper;
}

/* A helper whose socket is closed ends. */
static void give_back(struct cosmos_helpers *helpers, int helper)
{
    pthread_mutex_lock(&helpers->lock);
    if (helpers->idles < IDLE) {
        helpers->idle[helpers->idles++] = helper;
        helper = -1;
    }
    pthread_mutex_unlock(&helpers->lock);
    if (helper >= 0)
        close(helper);
}

/* The socket of a new helper, or -1 with errno. */
static int make(struct cosmos_helpers *helpers)
{
    int ends[2];
    bool made;

    if (!cosmos_sockets(ends))
        return -1;
    made = cosmos_send(helpers->control, "", 1, (int[]){ ends[1], -1 });
    close(ends[1]);
    if (made)
        return ends[0];
    close(ends[0]);
    errno = EPIPE;
    return -1;
}

/* Gives the job to a helper; returns its socket, or -1 with errno. One that
 * has ended meanwhile takes no job. */
static int assign(struct cosmos_helpers *helpers, const struct job *job,
                  const int fds[COSMOS_FDS])
{
    int helper;

    while ((helper = take(helpers)) >= 0) {
        if (cosmos_send(helper, job, sizeof(*job), fds))
            return helper;
        close(helper);
    }
    helper = make(helpers);
    if (helper < 0 || cosmos_send(helper, job, sizeof(*job), fds))
        return helper;
    close(helper);
    errno = EPIPE;
    return -1;
}

static int hand_out(struct cosmos_helpers *helpers, const struct job *job,
                    const int fds[COSMOS_FDS], uint32_t *domid,
                    struct cosmos_error *err)
{
    struct report report;
    int none[COSMOS_FDS], helper = assign(helpers, job, fds);

    if (helper < 0)
        return no_helper(err, errno);
    if (!cosmos_receive(helper, &report, sizeof(report), none)) {
        close(helper);
        return cosmos_fail(err, COSMOS_HOST, "domain %u: the helper process "
                           "ended before its work was done", job->domid);
    }
    if (report.rc) {                     /* the next one opens the host again */
        close(helper);
        if (err)
            *err = report.err;
        return report.rc;
    }
    give_back(helpers, helper);
    if (domid)
        *domid = report.domid;
    return COSMOS_OK;
}

int cosmos_do(struct cosmos_ctx *ctx, const struct job *job,
              const int fds[COSMOS_FDS], uint32_t *domid,
              struct cosmos_error *err)
{
    struct cosmos_helpers *helpers = ctx->helpers;
    bool builds = job->kind == JOB_CREATE || job->kind == JOB_RESTORE;
    bool copies = job->kind == JOB_CREATE && fds[0] < 0;
    sem_t *turn = builds ? &helpers->builders : &helpers->others;
    int image = -1, rc;

    while (sem_wait(turn) && errno == EINTR)
        ;
    if (copies)                          /* not before its turn: it is large */
        image = cosmos_image_fd(&job->spec, err);
    if (copies && image < 0)
        rc = COSMOS_NO_MEMORY;
    else
        rc = hand_out(helpers, job, copies ? (int[]){ image, -1 } : fds,
                      domid, err);
    if (image >= 0)
        close(image);
    sem_post(turn);
    return rc;
}
