/* SPDX-License-Identifier: Apache-2.0
 *
 * A frontend that uses the control ring of a vif only, for tests of netback.
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
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

typedef uint16_t domid_t;	/* that Linux's header takes for granted */
#include <xen/evtchn.h>
#include <xen/gntalloc.h>

#define PAGE 4096
#define SLOTS 128
#define MOST 1024		/* pages */
#define WAIT_MS 5000

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

/* Sends a request and returns its response. */
static struct response answer(struct ring *ring, int port,
                              const struct request *request)
{
    struct ioctl_evtchn_notify notify = { .port = port };
    uint32_t place = ring->req_prod;
    int waited_ms;

    ring->slot[place % SLOTS].request = *request;
    __atomic_store_n(&ring->req_prod, place + 1, __ATOMIC_RELEASE);
    if (ioctl(evtchn, IOCTL_EVTCHN_NOTIFY, &notify))
        fail("sending an event");
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

int main(int count, char **words)
{
    static char line[16 * PAGE];
    static uint32_t pages[MOST];
    uint32_t tx, rx, control, list_reference;
    int domain, most, i, data_port, port;
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
    granted(domain, &rx);
    ring = granted(domain, &control);
    ring->req_event = 1;
    ring->rsp_event = 1;
    list = granted(domain, &list_reference);
    for (i = 0; i < most && i < MOST; i++)
        granted(domain, &pages[i]);
    data_port = channel(domain);
    port = channel(domain);
    printf("%u %u %u %d %d\n", tx, rx, control, data_port, port);
    fflush(stdout);

    while (fgets(line, sizeof(line), stdin)) {
        struct request request = { .type = atoi(strtok(line, " \n")) };
        struct response response;
        int entries;

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
