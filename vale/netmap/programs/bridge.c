/* SPDX-License-Identifier: Apache-2.0 */
/* Passes all packets between two netmap ports, slot by slot, as netmap(4) describes the rings. */
#define NETMAP_WITH_LIBS
#include <net/netmap_user.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

/* Copies as many packets as both rings allow. */
static uint32_t move(struct netmap_ring *rx, struct netmap_ring *tx)
{
    uint32_t room = nm_ring_space(tx), there = nm_ring_space(rx);
    uint32_t count = room < there ? room : there;
    for (uint32_t n = 0; n < count; n++) {
        struct netmap_slot *from = &rx->slot[rx->head], *to = &tx->slot[tx->head];
        nm_pkt_copy(NETMAP_BUF(rx, from->buf_idx), NETMAP_BUF(tx, to->buf_idx), from->len);
        to->len = from->len;
        rx->head = rx->cur = nm_ring_next(rx, rx->head);
        tx->head = tx->cur = nm_ring_next(tx, tx->head);
    }
    return count;
}

/* True if packets wait on one side without room on the other. */
static int is_stuck(const struct nm_desc *from, const struct nm_desc *to)
{
    return !nm_ring_empty(NETMAP_RXRING(from->nifp, 0)) &&
           nm_ring_empty(NETMAP_TXRING(to->nifp, 0));
}

static short events(const struct nm_desc *own, const struct nm_desc *other)
{
    return (is_stuck(own, other) ? 0 : POLLIN) | (is_stuck(other, own) ? POLLOUT : 0);
}

int main(int argc, char **argv)
{
    struct nm_desc *a = argc == 3 ? nm_open(argv[1], NULL, 0, NULL) : NULL;
    struct nm_desc *b = a ? nm_open(argv[2], NULL, NM_OPEN_NO_MMAP, a) : NULL;
    unsigned long packets = 0;

    if (!b) {
        fprintf(stderr, "usage: bridge PORT PORT\n");
        return 1;
    }
    signal(SIGTERM, on_signal);
    while (!stop) {
        struct pollfd fds[] = {
            {.fd = NETMAP_FD(a), .events = events(a, b)},
            {.fd = NETMAP_FD(b), .events = events(b, a)},
        };
        if (poll(fds, 2, 100) < 0)
            continue;
        if ((fds[0].revents | fds[1].revents) & POLLERR)
            break;
        packets += move(NETMAP_RXRING(a->nifp, 0), NETMAP_TXRING(b->nifp, 0));
        packets += move(NETMAP_RXRING(b->nifp, 0), NETMAP_TXRING(a->nifp, 0));
    }
    nm_close(b);
    nm_close(a);
    printf("%lu\n", packets);
    return 0;
}
