/* SPDX-License-Identifier: Apache-2.0 */
/* The helper processes themselves. None has a second thread. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "helper.h"
#include "message.h"

/* ps and pidof show this instead of the parent's name. */
#define NAME "cosmos-xl"
/* Fields of /proc/PID/stat (proc(5)). */
#define STATE_FIELD 3
#define ARG_START_FIELD 48

/* Arguments of this process, in its memory; false if they are not found. */
static bool find_arguments(unsigned long *start, unsigned long *end)
{
    char text[2048] = "", *field;
    int i, fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

    if (fd >= 0)
        close(fd);
    field = n < 0 ? NULL : strrchr(text, ')');
    for (i = STATE_FIELD - 1; field && i < ARG_START_FIELD; i++)
        field = strchr(field + 1, ' ');
    return field && sscanf(field, "%lu %lu", start, end) == 2;
}

static void rename_process(void)
{
    unsigned long start, end;

    prctl(PR_SET_NAME, NAME);
    if (find_arguments(&start, &end) && end - start > sizeof(NAME)) {
        memset((char *)start, 0, end - start);
        memcpy((char *)start, NAME, sizeof(NAME));
    }
}

/* The parent's descriptors would keep its peers waiting. */
static void close_others(int control, int held)
{
    int low = control < held ? control : held;
    int high = control < held ? held : control;

    if (low > STDERR_FILENO + 1)
        close_range(STDERR_FILENO + 1, low - 1, 0);
    if (low <= STDERR_FILENO)
        low = STDERR_FILENO;
    if (high > low + 1)
        close_range(low + 1, high - 1, 0);
    close_range(high + 1, ~0u, 0);
}

/* Handlers and masks are the parent's; libxl wants SIGCHLD as it was. */
static void reset_signals(void)
{
    sigset_t none;
    int number;

    for (number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void serve(int socket)
{
    struct cosmos_ctx *ctx = NULL;
    struct job job;
    struct report report;
    int fds[COSMOS_FDS];

    while (cosmos_receive(socket, &job, sizeof(job), fds)) {
        memset(&report, 0, sizeof(report));
        if (!ctx)
            report.rc = cosmos_host_open(&ctx, &report.err);
        if (!report.rc)
            report.rc = cosmos_work(ctx, &job, fds, &report.domid,
                                    &report.err);
        cosmos_close_fds(fds);
        if (!cosmos_send(socket, &report, sizeof(report), cosmos_no_fds))
            break;
    }
}

void cosmos_breed(int control, int held)
{
    char nothing;
    int sockets[COSMOS_FDS];

    setsid();                            /* signals of a terminal, and kill */
    reset_signals();
    rename_process();
    close_others(control, held);
    signal(SIGCHLD, SIG_IGN);            /* reaps the helpers */
    while (cosmos_receive(control, &nothing, 1, sockets)) {
        if (!fork()) {
            signal(SIGCHLD, SIG_DFL);
            close(control);
            serve(sockets[0]);
            _exit(0);
        }
        cosmos_close_fds(sockets);
    }
    /* Its parent has ended: what is half done is the next one's to undo. */
    kill(0, SIGKILL);
    _exit(1);
}
