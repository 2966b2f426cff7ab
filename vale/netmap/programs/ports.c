/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes frames between two ports opened by nmport_open, and counts them: ports LEFT RIGHT.
 * It ends at SIGTERM, and writes the number of frames.
 */
#include <libnetmap.h>

static volatile sig_atomic_t ended;

static void end(int number)
{
    (void)number;
    ended = 1;
}

/* Moves what one ring has to the other by exchanging nothing: each port has memory of its own. */
static unsigned int pass(struct nmport_d *from, struct nmport_d *to)
{
    struct netmap_ring *rx = NETMAP_RXRING(from->nifp, from->first_rx_ring);
    struct netmap_ring *tx = NETMAP_TXRING(to->nifp, to->first_tx_ring);
    unsigned int done = 0;

    while (!nm_ring_empty(rx) && !nm_ring_empty(tx)) {
        struct netmap_slot *in = &rx->slot[rx->head], *out = &tx->slot[tx->head];

        nm_pkt_copy(NETMAP_BUF_OFFSET(rx, in), NETMAP_BUF_OFFSET(tx, out), in->len);
        out->len = in->len;
        rx->head = rx->cur = nm_ring_next(rx, rx->head);
        tx->head = tx->cur = nm_ring_next(tx, tx->head);
        done++;
    }
    return done;
}

int main(int count, char **words)
{
    struct nmport_d *left, *right = NULL;
    unsigned int total = 0;

    if (count != 3)
        return 2;
    signal(SIGTERM, end);
    left = nmport_open(words[1]);
    /* The steps of nmport_open, one by one. */
    if (left != NULL)
        right = nmport_prepare(words[2]);
    if (right == NULL || nmport_register(right) != 0 || nmport_mmap(right) != 0)
        return 1;
    while (!ended) {
        struct pollfd fds[2] = {
            {.fd = left->fd, .events = POLLIN},
            {.fd = right->fd, .events = POLLIN},
        };
        unsigned int moved;

        if (poll(fds, 2, 100) < 0 && errno != EINTR)
            return 1;
        moved = pass(left, right) + pass(right, left);
        total += moved;
        if (moved > 0) {
            ioctl(left->fd, NIOCTXSYNC, NULL);
            ioctl(right->fd, NIOCTXSYNC, NULL);
        }
    }
    printf("%u\n", total);
    nmport_undo_open_desc(right);
    nmport_undo_prepare(right);
    nmport_close(left);
    return 0;
}
