/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the mistakes that a program can make, and checks that each is refused. */
#define NETMAP_WITH_LIBS
#include <errno.h>
#include <net/netmap_user.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHECK(condition)                                             \
    do {                                                             \
        if (!(condition)) {                                          \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);  \
            exit(1);                                                 \
        }                                                            \
    } while (0)

static int refuses(struct nm_desc *d, unsigned long request)
{
    errno = 0;
    return ioctl(NETMAP_FD(d), request, NULL) == -1 && errno == EINVAL;
}

static void wrong_indices(struct nm_desc *d, struct netmap_ring *ring, unsigned long request)
{
    uint32_t head = ring->head, cur = ring->cur;
    const uint32_t wrong[] = {ring->num_slots, UINT32_MAX, nm_ring_next(ring, ring->tail)};
    for (int n = 0; n < 3; n++) {
        if (wrong[n] == head)
            continue;
        ring->head = ring->cur = wrong[n];
        CHECK(refuses(d, request));
        ring->head = head;
        CHECK(refuses(d, request));
        ring->cur = cur;
        CHECK(ioctl(NETMAP_FD(d), request, NULL) == 0);
    }
}

static void wrong_slots(struct nm_desc *d, struct netmap_ring *tx)
{
    struct netmap_slot *slot = &tx->slot[tx->head], good = *slot;
    const struct netmap_slot wrong[] = {
        {good.buf_idx, 0, 0, 0},     {good.buf_idx, 2049, 0, 0},         {0, 60, 0, 0},
        {UINT32_MAX, 60, 0, 0},      {2 + 2 * tx->num_slots, 60, 0, 0},
        {good.buf_idx, 60, NS_MOREFRAG, 0}, {good.buf_idx, 60, NS_INDIRECT, 0},
    };
    tx->head = tx->cur = nm_ring_next(tx, tx->head);
    for (size_t n = 0; n < sizeof(wrong) / sizeof(*wrong); n++) {
        struct pollfd fd = {.fd = NETMAP_FD(d), .events = POLLIN};
        *slot = wrong[n];
        CHECK(refuses(d, NIOCTXSYNC));
        CHECK(poll(&fd, 1, 0) == 1 && fd.revents & POLLERR);
    }
    slot->buf_idx = good.buf_idx;
    slot->len = 60;
    slot->flags = 0;
    CHECK(ioctl(NETMAP_FD(d), NIOCTXSYNC, NULL) == 0);
}

static void wrong_calls(struct nm_desc *d)
{
    char large[2049] = {0};
    CHECK(nm_inject(d, large, sizeof(large)) == 0 && nm_inject(d, large, 0) == 0);
    CHECK(nm_inject(d, NULL, 60) == 0 && nm_inject(NULL, large, 60) == 0);
    CHECK(nm_nextpkt(NULL, NULL) == NULL && nm_dispatch(d, 1, NULL, NULL) == 0);
    CHECK(nm_close(NULL) != 0 && nm_mmap(NULL, NULL) != 0 && nm_mmap(d, NULL) == 0);
    CHECK(ioctl(NETMAP_FD(d), FIONREAD, NULL) == -1 && errno == EOPNOTSUPP);
}

/* The wrappers leave the descriptors of others alone. */
static void others(struct nm_desc *d)
{
    int ends[2], there = 0;
    CHECK(pipe(ends) == 0 && write(ends[1], "x", 1) == 1);
    CHECK(ioctl(ends[0], FIONREAD, &there) == 0 && there == 1);
    struct pollfd both[] = {
        {.fd = NETMAP_FD(d), .events = POLLIN},
        {.fd = -1, .events = POLLIN},
        {.fd = ends[0], .events = POLLIN},
    };
    CHECK(poll(both, 3, 1000) == 1 && both[2].revents == POLLIN && both[0].revents == 0);
    CHECK(poll(both, 1, 20) == 0);
}

int main(int argc, char **argv)
{
    struct nmreq req = {.nr_tx_slots = 100};
    struct nm_desc *d = argc == 2 ? nm_open(argv[1], &req, 0, NULL) : NULL;
    CHECK(IS_NETMAP_DESC(d) && d->req.nr_rx_slots == 128);
    CHECK(!nm_open("eth0", NULL, 0, NULL) && errno == ENXIO && !nm_open(NULL, NULL, 0, NULL));
    CHECK(!nm_open(argv[1], NULL, 0, NULL));
    struct netmap_ring *tx = NETMAP_TXRING(d->nifp, 0), *rx = NETMAP_RXRING(d->nifp, 0);
    CHECK(nm_ring_space(tx) == 127 && nm_ring_empty(rx) && !nm_tx_pending(tx));
    CHECK(NETMAP_BUF_IDX(tx, NETMAP_BUF(tx, 7)) == 7);
    wrong_indices(d, tx, NIOCTXSYNC);
    wrong_indices(d, rx, NIOCRXSYNC);
    wrong_slots(d, tx);
    wrong_calls(d);
    others(d);
    puts("open");
    fflush(stdout);
    /* The test detaches the port now. */
    struct pollfd fd = {.fd = NETMAP_FD(d), .events = POLLIN};
    CHECK(poll(&fd, 1, 10000) == 1 && fd.revents & POLLERR);
    CHECK(ioctl(NETMAP_FD(d), NIOCRXSYNC, NULL) == -1 && errno == ENXIO);
    /* The exit detaches what is left open: this is not closed. */
    CHECK(nm_open(argv[1], NULL, 0, NULL));
    return 0;
}
