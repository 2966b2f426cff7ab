/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Netmap's user API on ports of valed; docs/reference/netmap.md lists what differs from netmap.
 *
 * A program defines NETMAP_WITH_LIBS before it includes this header, as for netmap. It links
 * with -lvale_netmap. Its calls of poll and ioctl then go through wrappers that synchronize the
 * rings of our descriptors. VALE_NETMAP_NO_WRAPPERS leaves the two names alone.
 */
#ifndef VALE_NET_NETMAP_USER_H
#define VALE_NET_NETMAP_USER_H

#include <net/netmap.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NETMAP_IF(base, ofs) ((struct netmap_if *)(void *)((char *)(base) + (ofs)))
#define NETMAP_TXRING(nifp, index) \
    ((struct netmap_ring *)(void *)((char *)(nifp) + (nifp)->ring_ofs[(index) * 0]))
#define NETMAP_RXRING(nifp, index) \
    ((struct netmap_ring *)(void *)((char *)(nifp) + (nifp)->ring_ofs[(index) * 0 + 1]))
#define NETMAP_BUF(ring, index) \
    ((char *)(ring) + (ring)->buf_ofs + (size_t)(index) * (ring)->nr_buf_size)
#define NETMAP_BUF_IDX(ring, buf) \
    ((uint32_t)(((char *)(buf) - ((char *)(ring) + (ring)->buf_ofs)) / (ring)->nr_buf_size))

/* A frame begins at the start of its buffer. */
#define NETMAP_ROFFSET(ring, slot) ((void)(ring), (void)(slot), (uint64_t)0)
#define NETMAP_WOFFSET(ring, slot, offset) ((void)(ring), (void)(slot), (void)(offset))
#define NETMAP_BUF_OFFSET(ring, slot) NETMAP_BUF(ring, (slot)->buf_idx)

/* The slot behind slot i. */
static inline uint32_t nm_ring_next(struct netmap_ring *r, uint32_t i)
{
    return i + 1 == r->num_slots ? 0 : i + 1;
}

/* True if the program owns no slot: nothing was received, or there is no room to send. */
static inline int nm_ring_empty(struct netmap_ring *r)
{
    return r->head == r->tail;
}

/* Slots from head to tail. */
static inline uint32_t nm_ring_space(struct netmap_ring *r)
{
    return r->tail >= r->head ? r->tail - r->head : r->tail + r->num_slots - r->head;
}

/* True while the switch has not fetched all that was sent. */
static inline int nm_tx_pending(struct netmap_ring *r)
{
    return nm_ring_next(r, r->tail) != r->head;
}

/* Copies a packet between two buffers. */
static inline void nm_pkt_copy(const void *from, void *to, int len)
{
    memcpy(to, from, (size_t)len);
}

/* Lines for a person, and at most `lines` of them in a second. */
#ifndef D
#define D(form, ...) fprintf(stderr, "%s [%d] " form "\n", __func__, __LINE__, ##__VA_ARGS__)
#define ND(form, ...) \
    do { \
    } while (0)
#define RD(lines, form, ...) \
    do { \
        static time_t vale_second; \
        static int vale_lines; \
        time_t vale_now = time(NULL); \
        vale_lines = vale_now == vale_second ? vale_lines + 1 : 0; \
        vale_second = vale_now; \
        if (vale_lines < (lines)) \
            D(form, ##__VA_ARGS__); \
    } while (0)
#endif

#endif

#if defined(NETMAP_WITH_LIBS) && !defined(VALE_NETMAP_LIBS)
#define VALE_NETMAP_LIBS

#ifdef __cplusplus
extern "C" {
#endif

struct nm_pkthdr {
    struct timeval ts;
    uint32_t caplen;
    uint32_t len;
    uint64_t flags; /* 0 */
    struct nm_desc *d;
    struct netmap_slot *slot;
    uint8_t *buf;
};

struct nm_stat {
    unsigned int ps_recv;
    unsigned int ps_drop;
    unsigned int ps_ifdrop;
};

#define NM_ERRBUF_SIZE 512

struct nm_desc {
    struct nm_desc *self;
    int fd;
    void *mem;
    uint64_t memsize;
    int done_mmap;
    struct netmap_if *nifp;
    uint16_t first_tx_ring, last_tx_ring, cur_tx_ring;
    uint16_t first_rx_ring, last_rx_ring, cur_rx_ring;
    struct nmreq req;
    struct nm_pkthdr hdr;
    struct netmap_ring *some_ring;
    void *buf_start;
    void *buf_end;
    struct nm_stat st;
    char msg[NM_ERRBUF_SIZE];
};

typedef void (*nm_cb_t)(unsigned char *arg, const struct nm_pkthdr *header,
                        const unsigned char *packet);

#define P2NMD(p) ((struct nm_desc *)(p))
#define IS_NETMAP_DESC(d) ((d) && P2NMD(d)->self == P2NMD(d))
#define NETMAP_FD(d) (P2NMD(d)->fd)

/* Flags of nm_open. The library accepts and ignores them. */
enum {
    NM_OPEN_NO_MMAP = 0x040000,
    NM_OPEN_IFNAME = 0x080000,
    NM_OPEN_ARG1 = 0x100000,
    NM_OPEN_ARG2 = 0x200000,
    NM_OPEN_ARG3 = 0x400000,
    NM_OPEN_RING_CFG = 0x800000
};

/*
 * Attaches the port `name`: vale0:p1, with the options ",segment=N", ",mac=ADDRESS" and ",slots=N".
 * The library takes the numbers of slots from req, and reads no other field.
 * Returns NULL with errno, and prints the cause to standard error.
 */
struct nm_desc *nm_open(const char *name, const struct nmreq *req, uint64_t flags,
                        const struct nm_desc *parent);
/* Sends the rest, waits for the switch for one second at most, detaches the port. */
int nm_close(struct nm_desc *d);
/* Does nothing: nm_open has mapped the memory. */
int nm_mmap(struct nm_desc *d, const struct nm_desc *parent);
/* Queues one packet for the next synchronization; returns its size, or 0 if there is no room. */
int nm_inject(struct nm_desc *d, const void *packet, size_t size);
/* Calls back for cnt packets at most, a ring of them if cnt is below 1; returns their number. */
int nm_dispatch(struct nm_desc *d, int cnt, nm_cb_t callback, uint8_t *arg);
/* Returns the next packet, valid until the next synchronization, or NULL. */
uint8_t *nm_nextpkt(struct nm_desc *d, struct nm_pkthdr *header);

int vale_nm_poll(struct pollfd *fds, nfds_t nfds, int timeout);
int vale_nm_ioctl(int fd, unsigned long request, void *arg);

#ifdef __cplusplus
}
#endif

#ifndef VALE_NETMAP_NO_WRAPPERS
#define poll(fds, nfds, timeout) vale_nm_poll(fds, nfds, timeout)
#define ioctl(...) VALE_NM_IOCTL(__VA_ARGS__, 0, 0)
#define VALE_NM_IOCTL(fd, request, arg, ...) \
    vale_nm_ioctl(fd, (unsigned long)(request), (void *)(uintptr_t)(arg))
#endif

#endif /* NETMAP_WITH_LIBS */
