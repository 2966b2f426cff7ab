/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps hypercalls and forks apart.
 *
 * libxl destroys a domain in a child that it forks, and the child makes
 * hypercalls. libxencall keeps the buffers of these, and libxentoolcore the
 * handles, under a lock of the process each: a child that was forked while
 * another thread held one waits for it for ever, and its domain stays. libxl
 * forks with its context locked, as it does most of its work; what it does
 * without that lock is a short question or setting. Those, and a wait's
 * connection to the store, are made under ours, and so is the fork.
 *
 * Nothing that locks libxl's context may be called between begin and end.
 * The lock is the context's: a process with threads has one context, and
 * opens it and its events before it destroys anything.
 */
#include <unistd.h>

#include "internal.h"

void cosmos_ask_begin(struct cosmos_ctx *ctx)
{
    pthread_mutex_lock(&ctx->asking);
}

void cosmos_ask_end(struct cosmos_ctx *ctx)
{
    pthread_mutex_unlock(&ctx->asking);
}

pid_t cosmos_fork(void *arg)
{
    struct cosmos_ctx *ctx = arg;
    pid_t pid;

    cosmos_ask_begin(ctx);
    pid = fork();
    cosmos_ask_end(ctx);                 /* in parent and child */
    return pid;
}
