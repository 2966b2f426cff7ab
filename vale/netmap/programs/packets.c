/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends, receives or returns packets at a netmap port: packets tx|rx|next|echo PORT COUNT.
 * tx uses nm_inject, rx nm_dispatch, next nm_nextpkt below epoll, echo exchanges buffers.
 */
#define NETMAP_WITH_LIBS
#include <net/netmap_user.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

static unsigned long bytes;

static void count(u_char *sum, const struct nm_pkthdr *header, const u_char *packet)
{
    *(unsigned long *)(void *)sum += packet[header->len - 1];
    bytes += header->len;
}

static int wait_for(struct nm_desc *d, short events)
{
    struct pollfd fd = {.fd = NETMAP_FD(d), .events = events};
    return poll(&fd, 1, 10000) == 1 && !(fd.revents & POLLERR);
}

static int tx(struct nm_desc *d, int wanted)
{
    unsigned char packet[60] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5};
    for (int n = 0; n < wanted;) {
        packet[59] = (unsigned char)n;
        if (nm_inject(d, packet, sizeof(packet)))
            n++;
        else if (!wait_for(d, POLLOUT))
            return 1;
    }
    while (nm_tx_pending(NETMAP_TXRING(d->nifp, 0)))
        ioctl(NETMAP_FD(d), NIOCTXSYNC, NULL);
    return 0;
}

static int rx(struct nm_desc *d, int wanted)
{
    unsigned long sum = 0;
    for (int n = 0; n < wanted;) {
        if (!wait_for(d, POLLIN))
            return 1;
        n += nm_dispatch(d, wanted - n, count, (u_char *)&sum);
    }
    printf("%lu %lu\n", bytes, sum);
    return 0;
}

static int next(struct nm_desc *d, int wanted)
{
    struct epoll_event event = {.events = EPOLLIN};
    struct nm_pkthdr header;
    unsigned long sum = 0;
    const u_char *packet;
    int epoll = epoll_create1(0);

    if (epoll_ctl(epoll, EPOLL_CTL_ADD, NETMAP_FD(d), &event))
        return 1;
    for (int n = 0; n < wanted;) {
        if (epoll_wait(epoll, &event, 1, 10000) != 1)
            return 1;
        for (; n < wanted && (packet = nm_nextpkt(d, &header)); n++)
            count((u_char *)&sum, &header, packet);
    }
    printf("%lu %lu\n", bytes, sum);
    return 0;
}

/* Puts the buffer of a received packet into the slot to send, and back. */
static void exchange(struct netmap_slot *a, struct netmap_slot *b)
{
    uint32_t index = a->buf_idx;
    a->buf_idx = b->buf_idx;
    b->buf_idx = index;
    b->len = a->len;
    a->flags |= NS_BUF_CHANGED;
    b->flags |= NS_BUF_CHANGED;
}

static int echo(struct nm_desc *d, int wanted)
{
    struct netmap_ring *rx = NETMAP_RXRING(d->nifp, 0), *tx = NETMAP_TXRING(d->nifp, 0);
    for (int n = 0; n < wanted;) {
        if (!wait_for(d, POLLIN))
            return 1;
        for (; !nm_ring_empty(rx) && !nm_ring_empty(tx); n++) {
            unsigned char address[6];
            char *packet = NETMAP_BUF(rx, rx->slot[rx->head].buf_idx);
            memcpy(address, packet, 6);
            memcpy(packet, packet + 6, 6);
            memcpy(packet + 6, address, 6);
            exchange(&rx->slot[rx->head], &tx->slot[tx->head]);
            rx->head = rx->cur = nm_ring_next(rx, rx->head);
            tx->head = tx->cur = nm_ring_next(tx, tx->head);
        }
        ioctl(NETMAP_FD(d), NIOCTXSYNC, NULL);
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct nm_desc *d = argc == 4 ? nm_open(argv[2], NULL, 0, NULL) : NULL;
    int wanted, result = 1;

    if (!d)
        return 1;
    wanted = atoi(argv[3]);
    if (!strcmp(argv[1], "tx"))
        result = tx(d, wanted);
    else if (!strcmp(argv[1], "rx"))
        result = rx(d, wanted);
    else if (!strcmp(argv[1], "next"))
        result = next(d, wanted);
    else if (!strcmp(argv[1], "echo"))
        result = echo(d, wanted);
    nm_close(d);
    return result;
}
