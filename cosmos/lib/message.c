/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between a process and its helpers. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "message.h"

/* Room for descriptors, as sendmsg wants it. */
union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(COSMOS_FDS * sizeof(int))];
};

const int cosmos_no_fds[COSMOS_FDS] = { -1, -1 };

static size_t count(const int fds[COSMOS_FDS])
{
    size_t n = 0;

    while (n < COSMOS_FDS && fds[n] >= 0)
        n++;
    return n;
}

void cosmos_close_fds(const int fds[COSMOS_FDS])
{
    size_t n = count(fds);

    while (n)
        close(fds[--n]);
}

bool cosmos_sockets(int ends[2])
{
    return !socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
}

bool cosmos_send(int socket, const void *message, size_t bytes,
                 const int fds[COSMOS_FDS])
{
    size_t length = count(fds) * sizeof(*fds);
    struct iovec part = { .iov_base = (void *)message, .iov_len = bytes };
    struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
    union control control = { 0 };
    ssize_t n;

    if (length) {
        header.msg_control = &control;
        header.msg_controllen = CMSG_SPACE(length);
        CMSG_FIRSTHDR(&header)->cmsg_level = SOL_SOCKET;
        CMSG_FIRSTHDR(&header)->cmsg_type = SCM_RIGHTS;
        CMSG_FIRSTHDR(&header)->cmsg_len = CMSG_LEN(length);
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&header)), fds, length);
    }
    do
        n = sendmsg(socket, &header, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)bytes;
}

bool cosmos_receive(int socket, void *message, size_t bytes,
                    int fds[COSMOS_FDS])
{
    struct iovec part = { .iov_base = message, .iov_len = bytes };
    union control control = { 0 };
    struct msghdr header = {
        .msg_iov = &part, .msg_iovlen = 1,
        .msg_control = &control, .msg_controllen = sizeof(control),
    };
    struct cmsghdr *with;
    ssize_t n;

    memcpy(fds, cosmos_no_fds, sizeof(cosmos_no_fds));
    do
        n = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return false;
    with = CMSG_FIRSTHDR(&header);
    if (with && with->cmsg_level == SOL_SOCKET &&
        with->cmsg_type == SCM_RIGHTS)
        memcpy(fds, CMSG_DATA(with), with->cmsg_len - CMSG_LEN(0));
    if (n == (ssize_t)bytes)
        return true;
    cosmos_close_fds(fds);
    memcpy(fds, cosmos_no_fds, sizeof(cosmos_no_fds));
    errno = n ? EPROTO : 0;
    return false;
}
