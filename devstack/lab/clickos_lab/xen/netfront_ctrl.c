/* SPDX-License-Identifier: Apache-2.0
 *
 * A frontend that uses the control ring and the ring of received packets of a
 * vif, for tests of netback.
 *
 * - netfront-ctrl BACKEND PAGES
 *       grants rings and PAGES pages to a domain. It prints a line with the
 *       references of the rings for tx, rx and control, and with the event
 *       channels for data and control. Then each line of its input is a
 *       request. It prints status, data and the status of each entry.
 *
 * A request is TYPE QUEUE LIST COUNT ENTRY...: LIST is the reference of the
 * list, or "list" for the one that has the entries. An entry is a reference,
 * or "p" and the number of a page; ":" and flags may follow.
 *
 * Other lines are:
 * - slots
 *       fills the ring of received packets with the first pages
 * - headroom BYTES
 *       where the data of a slot begins from now on
 * - frames DEVICE FIRST LAST STEP
 *       sends a frame of each length out of netback's device, and compares
 *       all bytes of the slots' pages. It prints how many frames arrived.
 * - lost DEVICE FIRST LAST STEP
 *       the same for a device that is not connected: no byte may change
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

typedef uint16_t domid_t;	/* that Linux's header takes for granted */
#include <xen/evtchn.h>
#include <xen/gntalloc.h>

#define PAGE 4096
#define SLOTS 128
#define MOST 1024		/* pages */
#define WAIT_MS 5000
#define RX_SLOTS 256
#define LONGEST 65535
#define UNTOUCHED 0xa5
#define OUR_TYPE 0x88b5		/* for local experiments: IEEE 802 */
#define MORE_DATA 4		/* of a response, as extra info */
#define EXTRA_INFO 8
#define MORE_EXTRAS 1

/* Xen's public io/ring.h and io/netif.h. */
struct request {
    uint16_t id, type;
    uint32_t data[3];
};

struct response {
    uint16_t id, type;
    uint32_t status, data;
};

struct ring {
    uint32_t req_prod, req_event, rsp_prod, rsp_event;
    uint8_t pad[48];
    union {
        struct request request;
        struct response response;
    } slot[SLOTS];
};

struct entry {
    uint32_t ref;
    uint16_t flags, status;
};

struct rx_request {
    uint16_t id, pad;
    uint32_t ref;
};

struct rx_response {
    uint16_t id, offset, flags;
    int16_t status;
};

struct rx_extra {
    uint8_t type, flags, pad[6];
};

struct rx_ring {
    uint32_t req_prod, req_event, rsp_prod, rsp_event;
    uint8_t pad[48];
    union {
        struct rx_request request;
        struct rx_response response;
        struct rx_extra extra;
    } slot[RX_SLOTS];
};

/* The ring of received packets, and the pages of its slots. */
static struct {
    struct rx_ring *ring;
    int port;
    uint32_t taken, headroom, refs[RX_SLOTS];
    uint8_t *pages[RX_SLOTS];
} rx;

static int gntalloc, evtchn;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int opened(const char *path)
{
    int file = open(path, O_RDWR | O_CLOEXEC);

    if (file < 0)
        fail(path);
    return file;
}

/* Returns a zeroed page that a domain may map, and its reference. */
static void *granted(int domain, uint32_t *reference)
{
    struct ioctl_gntalloc_alloc_gref grant = {
        .domid = domain, .flags = GNTALLOC_FLAG_WRITABLE, .count = 1,
    };
    void *page;

    if (ioctl(gntalloc, IOCTL_GNTALLOC_ALLOC_GREF, &grant))
        fail("granting a page");
    page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, gntalloc,
                grant.index);
    if (page == MAP_FAILED)
        fail("mapping a page");
    *reference = grant.gref_ids[0];
    return page;
}

static int channel(int domain)
{
    struct ioctl_evtchn_bind_unbound_port bind = { .remote_domain = domain };
    int port = ioctl(evtchn, IOCTL_EVTCHN_BIND_UNBOUND_PORT, &bind);

    if (port < 0)
        fail("making an event channel");
    return port;
}

static void notify(int port)
{
    struct ioctl_evtchn_notify notify = { .port = port };

    if (ioctl(evtchn, IOCTL_EVTCHN_NOTIFY, &notify))
        fail("sending an event");
}

/* Offers the page of the next slot. */
static void offer_slot(void)
{
    uint32_t place = rx.ring->req_prod, i = place % RX_SLOTS;

    memset(rx.pages[i], UNTOUCHED, PAGE);
    rx.ring->slot[i].request.id = i;
    rx.ring->slot[i].request.ref = rx.refs[i];
    __atomic_store_n(&rx.ring->req_prod, place + 1, __ATOMIC_RELEASE);
}

static void fill_slots(void)
{
    int i;

    for (i = 0; i < RX_SLOTS; i++) {
        if (!rx.pages[i]) {
            errno = EINVAL;
            fail("slots need a page each");
        }
        offer_slot();
    }
    notify(rx.port);
}

/* Waits for the next response; false if none comes. */
static bool next_slot(uint32_t *slot)
{
    int waited_ms;

    for (waited_ms = 0; waited_ms < WAIT_MS; waited_ms++) {
        if (__atomic_load_n(&rx.ring->rsp_prod, __ATOMIC_ACQUIRE) !=
            rx.taken) {
            *slot = rx.taken++ % RX_SLOTS;
            return true;
        }
        usleep(1000);
    }
    return false;
}

static bool is_untouched(uint32_t slot, int from, int to)
{
    static uint8_t untouched[PAGE];

    if (*untouched != UNTOUCHED)
        memset(untouched, UNTOUCHED, PAGE);
    return !memcmp(rx.pages[slot] + from, untouched, to - from);
}

/* Copies the data of a slot; false if it has none or other bytes changed. */
static bool take_slot(uint32_t slot, uint8_t *to, int *length)
{
    struct rx_response response = rx.ring->slot[slot].response;
    int begin = rx.headroom, end = response.status;

    if (end <= begin || end > PAGE || *length + end - begin > LONGEST)
        return false;
    memcpy(to + *length, rx.pages[slot] + begin, end - begin);
    *length += end - begin;
    return is_untouched(slot, 0, begin) && is_untouched(slot, end, PAGE);
}

/* Takes slots of extra info, which have no data. */
static bool skip_extras(void)
{
    uint32_t slot;
    uint8_t flags;

    do {
        if (!next_slot(&slot) || !is_untouched(slot, 0, PAGE))
            return false;
        flags = rx.ring->slot[slot].extra.flags;
        offer_slot();
    } while (flags & MORE_EXTRAS);
    return true;
}

/* Takes a packet; returns its bytes, or -1 for one that is wrong. */
static int take_packet(uint8_t *to)
{
    int length = 0;
    uint16_t flags;
    uint32_t slot;

    do {
        if (!next_slot(&slot))
            return -1;
        flags = rx.ring->slot[slot].response.flags;
        if (!take_slot(slot, to, &length))
            return -1;
        offer_slot();
        if (flags & EXTRA_INFO && !skip_extras())
            return -1;
    } while (flags & MORE_DATA);
    notify(rx.port);
    return length;
}

static void make_frame(uint8_t *frame, int length)
{
    struct ethhdr *header = (struct ethhdr *)frame;
    int i;

    for (i = 0; i < length; i++)
        frame[i] = (i * 7 + length) & 0xff;
    memset(header->h_dest, 0xff, ETH_ALEN);
    memset(header->h_source, 2, ETH_ALEN);
    header->h_proto = htons(OUR_TYPE);
}

/* True if a frame arrives as it was sent. Others may come before it. */
static bool arrives(int packets, uint8_t *sent, int length)
{
    static uint8_t got[LONGEST];
    const struct ethhdr *header = (const struct ethhdr *)got;
    int bytes;

    if (send(packets, sent, length, 0) != length)
        fail("sending a frame");
    do {
        bytes = take_packet(got);
    } while (bytes >= ETH_HLEN && header->h_proto != htons(OUR_TYPE));
    return bytes == length && !memcmp(sent, got, length);
}

/* True if no slot has an answer and no page has changed. */
static bool is_lost(int packets, uint8_t *sent, int length)
{
    int slot;

    if (send(packets, sent, length, 0) < 0 && errno != ENOBUFS)
        fail("sending a frame");
    for (slot = 0; slot < RX_SLOTS; slot++)
        if (!is_untouched(slot, 0, PAGE))
            return false;
    return __atomic_load_n(&rx.ring->rsp_prod, __ATOMIC_ACQUIRE) == rx.taken;
}

static int opened_device(const char *device)
{
    struct sockaddr_ll place = { .sll_family = AF_PACKET };
    int packets = socket(AF_PACKET, SOCK_RAW, 0);

    place.sll_ifindex = if_nametoindex(device);
    if (packets < 0 || !place.sll_ifindex ||
        bind(packets, (struct sockaddr *)&place, sizeof(place)))
        fail(device);
    return packets;
}

/* Sends frames until one is not as it should be; prints how many were. */
static void send_frames(const char *device, int first, int last, int step,
                        bool (*is_right)(int, uint8_t *, int))
{
    static uint8_t frame[LONGEST];
    int packets = opened_device(device), length, good = 0;

    for (length = first; length <= last && length <= LONGEST; length += step) {
        make_frame(frame, length);
        if (!is_right(packets, frame, length))
            break;
        good++;
    }
    close(packets);
    printf("%d\n", good);
    fflush(stdout);
}

/* Sends a request and returns its response. */
static struct response answer(struct ring *ring, int port,
                              const struct request *request)
{
    uint32_t place = ring->req_prod;
    int waited_ms;

    ring->slot[place % SLOTS].request = *request;
    __atomic_store_n(&ring->req_prod, place + 1, __ATOMIC_RELEASE);
    notify(port);
    for (waited_ms = 0; waited_ms < WAIT_MS; waited_ms++) {
        if (__atomic_load_n(&ring->rsp_prod, __ATOMIC_ACQUIRE) == place + 1)
            return ring->slot[place % SLOTS].response;
        usleep(1000);
    }
    errno = ETIMEDOUT;
    fail("waiting for a response");
    exit(1);
}

/* Reads the entries of a request; returns their number. */
static int read_entries(struct entry *list, const uint32_t *pages)
{
    char *word;
    int count = 0;

    while ((word = strtok(NULL, " \n")) && count < PAGE / (int)sizeof(*list)) {
        char *flags = strchr(word, ':');

        list[count].ref = *word == 'p' ? pages[atoi(word + 1) % MOST]
                                       : strtoul(word, NULL, 0);
        list[count].flags = flags ? strtoul(flags + 1, NULL, 0) : 0;
        list[count].status = 0xffff;
        count++;
    }
    return count;
}

static uint32_t number(uint32_t list)
{
    const char *word = strtok(NULL, " \n");

    if (!word) {
        errno = EINVAL;
        fail("reading a request");
    }
    return strcmp(word, "list") ? strtoul(word, NULL, 0) : list;
}

/* Does what a line for the ring of received packets says; false for others. */
static bool is_of_rx(const char *line)
{
    char word[16], device[IFNAMSIZ];
    int first, last, step;

    if (sscanf(line, "headroom %u", &rx.headroom) == 1)
        return true;
    if (!strcmp(line, "slots\n")) {
        fill_slots();
        return true;
    }
    if (sscanf(line, "%15[a-z] %15s %d %d %d", word, device, &first, &last,
               &step) != 5)
        return false;
    if (first < ETH_HLEN || step < 1) {
        errno = EINVAL;
        fail(line);
    }
    send_frames(device, first, last, step,
                strcmp(word, "lost") ? arrives : is_lost);
    return true;
}

int main(int count, char **words)
{
    static char line[16 * PAGE];
    static uint32_t pages[MOST];
    uint32_t tx, received, control, list_reference;
    int domain, most, i, port;
    struct entry *list;
    struct ring *ring;

    if (count != 3) {
        fprintf(stderr, "usage: %s BACKEND PAGES\n", words[0]);
        return 2;
    }
    domain = atoi(words[1]);
    most = atoi(words[2]);
    gntalloc = opened("/dev/xen/gntalloc");
    evtchn = opened("/dev/xen/evtchn");
    granted(domain, &tx);
    rx.ring = granted(domain, &received);
    rx.ring->req_event = 1;
    rx.ring->rsp_event = 1;
    ring = granted(domain, &control);
    ring->req_event = 1;
    ring->rsp_event = 1;
    list = granted(domain, &list_reference);
    for (i = 0; i < most && i < MOST; i++) {
        uint8_t *page = granted(domain, &pages[i]);

        if (i < RX_SLOTS) {
            rx.pages[i] = page;
            rx.refs[i] = pages[i];
        }
    }
    rx.port = channel(domain);
    port = channel(domain);
    printf("%u %u %u %d %d\n", tx, received, control, rx.port, port);
    fflush(stdout);

    while (fgets(line, sizeof(line), stdin)) {
        struct request request = { 0 };
        struct response response;
        int entries;

        if (is_of_rx(line))
            continue;
        request.type = atoi(strtok(line, " \n"));
        for (i = 0; i < 3; i++)
            request.data[i] = number(list_reference);
        entries = read_entries(list, pages);
        response = answer(ring, port, &request);
        printf("%u %u", response.status, response.data);
        for (i = 0; i < entries; i++)
            printf(" %u", list[i].status);
        puts("");
        fflush(stdout);
    }
    return 0;
}
