/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between a process and its helpers. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "message.h"

/* Room for one descriptor, as sendmsg wants it. */
union control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int))];
};

bool cosmos_sockets(int ends[2])
{
    return !socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends);
}

bool cosmos_send(int socket, const void *message, size_t bytes, int fd)
{
    struct iovec part = { .iov_base = (void *)message, .iov_len = bytes };
    struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
    union control control = { 0 };
    ssize_t n;

    if (fd >= 0) {
        header.msg_control = &control;
        header.msg_controllen = sizeof(control);
        CMSG_FIRSTHDR(&header)->cmsg_level = SOL_SOCKET;
        CMSG_FIRSTHDR(&header)->cmsg_type = SCM_RIGHTS;
        CMSG_FIRSTHDR(&header)->cmsg_len = CMSG_LEN(sizeof(fd));
        memcpy(CMSG_DATA(CMSG_FIRSTHDR(&header)), &fd, sizeof(fd));
    }
    do
        n = sendmsg(socket, &header, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)bytes;
}

bool cosmos_receive(int socket, void *message, size_t bytes, int *fd)
{
    struct iovec part = { .iov_base = message, .iov_len = bytes };
    union control control = { 0 };
    struct msghdr header = {
        .msg_iov = &part, .msg_iovlen = 1,
        .msg_control = &control, .msg_controllen = sizeof(control),
    };
    struct cmsghdr *with;
    ssize_t n;

    *fd = -1;
    do
        n = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return false;
    with = CMSG_FIRSTHDR(&header);
    if (with && with->cmsg_level == SOL_SOCKET &&
        with->cmsg_type == SCM_RIGHTS)
        memcpy(fd, CMSG_DATA(with), sizeof(*fd));
    if (n == (ssize_t)bytes)
        return true;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
    errno = n ? EPROTO : 0;
    return false;
}
