/* SPDX-License-Identifier: Apache-2.0 */
/*
 * noxen.so stands in for the hypervisor under Debian's xenstored 4.17 or 4.20 (LD_PRELOAD), and for
 * nothing else: the store, its permissions, quotas and watches are xenstored's own.
 *
 * The environment variable NOXEN_DIR names a directory with these files:
 *
 *   to-store     FIFO; a byte is an event of some domain for the store
 *   domN.ring    store ring page of domain N (struct xenstore_domain_interface, xen/io/xs_wire.h);
 *                the domain exists as long as the file does
 *   domN.event   FIFO; a byte is an event of the store for domain N
 *
 * The prototypes are those of xenctrl.h, xenevtchn.h and xengnttab.h; they are declared here so that
 * no Xen header is needed to build. Handles are opaque to xenstored, so each is one of ours.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define RING_BYTES 4096
/* GNTTAB_RESERVED_XENSTORE of xen/grant_table.h: the grant of every domain's store ring. */
#define GRANT_STORE 1
/* Events carry no number here: xenstored looks at every ring after any event but the VIRQ. */
#define PORT_ANY 1
#define PORT_VIRQ 2
#define PORT_FIRST 3

typedef struct xc_interface_core xc_interface;
typedef struct xenevtchn_handle xenevtchn_handle;
typedef struct xengntdev_handle xengnttab_handle;
struct xentoollog_logger;

struct xc_interface_core {
    int dir;
};

struct xengntdev_handle {
    int dir;
};

struct xenevtchn_handle {
    int dir;
    int fifo;       /* to-store */
    int *events;    /* events[port - PORT_FIRST] is domN.event, or -1 when the port is free */
    size_t count;
};

/* The beginning of xc_dominfo_t in xenctrl.h of 4.17; xenstored looks at the flags only. */
struct dominfo_head {
    uint32_t domid;
    uint32_t ssidref;
    unsigned int flags;
};

/* The beginning of xc_domaininfo_t in xenctrl.h of 4.20; xenstored looks at the flags only. */
struct domaininfo_head {
    uint16_t domid;
    uint16_t pad;
    uint32_t flags;
};

int open(const char *path, int flags, ...);
xc_interface *xc_interface_open(struct xentoollog_logger *logger,
                                struct xentoollog_logger *dombuild_logger, unsigned int flags);
int xc_interface_close(xc_interface *xch);
int xc_domain_getinfo(xc_interface *xch, uint32_t first_domid, unsigned int max_doms, void *info);
int xc_domain_getinfo_single(xc_interface *xch, uint32_t domid, void *info);
xenevtchn_handle *xenevtchn_open(struct xentoollog_logger *logger, unsigned int flags);
xenevtchn_handle *xenevtchn_fdopen(struct xentoollog_logger *logger, int fd, unsigned int flags);
int xenevtchn_fd(xenevtchn_handle *xce);
int xenevtchn_notify(xenevtchn_handle *xce, uint32_t port);
int xenevtchn_bind_interdomain(xenevtchn_handle *xce, uint32_t domid, uint32_t remote_port);
int xenevtchn_bind_virq(xenevtchn_handle *xce, unsigned int virq);
int xenevtchn_unbind(xenevtchn_handle *xce, uint32_t port);
int xenevtchn_unmask(xenevtchn_handle *xce, uint32_t port);
int xenevtchn_pending(xenevtchn_handle *xce);
xengnttab_handle *xengnttab_open(struct xentoollog_logger *logger, unsigned int flags);
int xengnttab_close(xengnttab_handle *xgt);
int xengnttab_set_max_grants(xengnttab_handle *xgt, uint32_t nr_grants);
void *xengnttab_map_grant_ref(xengnttab_handle *xgt, uint32_t domid, uint32_t ref, int prot);
int xengnttab_unmap(xengnttab_handle *xgt, void *start_address, uint32_t count);

/* Opens NOXEN_DIR; -1 with errno set on failure. */
static int open_dir(void)
{
    const char *dir = getenv("NOXEN_DIR");

    if (!dir) {
        errno = ENOENT;
        return -1;
    }
    return openat(AT_FDCWD, dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* Opens a file of domain domid; -1 with errno set on failure. */
static int open_domain_file(int dir, uint32_t domid, const char *what, int flags)
{
    char name[32];
    int r = snprintf(name, sizeof(name), "dom%u.%s", (unsigned int)domid, what);

    if (r < 0 || (size_t)r >= sizeof(name)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return openat(dir, name, flags | O_NOFOLLOW | O_CLOEXEC);
}

static int ring_of_dom0(void)
{
    int fd = memfd_create("dom0.ring", MFD_CLOEXEC);

    if (fd < 0) return -1;
    if (ftruncate(fd, RING_BYTES)) {
        close(fd);
        return -1;
    }
    return fd;
}

/* dom0's own event channel to the store is never used: every client of dom0 comes by the socket. */
static int port_of_dom0(void)
{
    const char text[] = "1";
    int fd = memfd_create("dom0.port", MFD_CLOEXEC);

    if (fd < 0) return -1;
    if (pwrite(fd, text, sizeof(text) - 1, 0) != (ssize_t)sizeof(text) - 1) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Linux's xenfs is missing without Xen; all other files are opened as they are. */
int open(const char *path, int flags, ...)
{
    mode_t mode = 0;

    if (!strcmp(path, "/proc/xen/xsd_port")) return port_of_dom0();
    if (!strcmp(path, "/proc/xen/xsd_kva")) return ring_of_dom0();
    if ((flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE) {
        va_list args;

        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
    }
    return openat(AT_FDCWD, path, flags, mode);
}

/* ---- xenctrl.h: which domains exist ---- */

xc_interface *xc_interface_open(struct xentoollog_logger *logger,
                                struct xentoollog_logger *dombuild_logger, unsigned int flags)
{
    xc_interface *xch = malloc(sizeof(*xch));

    (void)logger;
    (void)dombuild_logger;
    (void)flags;
    if (!xch) return NULL;
    xch->dir = open_dir();
    if (xch->dir < 0) {
        free(xch);
        return NULL;
    }
    return xch;
}

int xc_interface_close(xc_interface *xch)
{
    int r = close(xch->dir);

    free(xch);
    return r;
}

/* Returns 0 if the domain exists; -1 with errno set otherwise. */
static int find_domain(const xc_interface *xch, uint32_t domid)
{
    int fd;

    if (!domid) return 0;
    fd = open_domain_file(xch->dir, domid, "ring", O_PATH);
    return fd < 0 ? -1 : close(fd);
}

/*
 * What xenstored 4.17 calls: returns 1 if the domain exists, 0 if not, -1 for a question that it
 * never asks.
 */
int xc_domain_getinfo(xc_interface *xch, uint32_t first_domid, unsigned int max_doms, void *info)
{
    const struct dominfo_head head = { .domid = first_domid };

    if (max_doms != 1) {
        errno = ENOSYS;
        return -1;
    }
    if (find_domain(xch, first_domid)) return errno == ENOENT ? 0 : -1;
    memcpy(info, &head, sizeof(head));
    return 1;
}

/* What xenstored 4.20 calls: returns 0 if the domain exists, -1 with errno set otherwise. */
int xc_domain_getinfo_single(xc_interface *xch, uint32_t domid, void *info)
{
    const struct domaininfo_head head = { .domid = (uint16_t)domid };

    if (find_domain(xch, domid)) {
        if (errno == ENOENT) errno = ESRCH;
        return -1;
    }
    if (info) memcpy(info, &head, sizeof(head));
    return 0;
}

/* ---- xenevtchn.h: events ---- */

xenevtchn_handle *xenevtchn_open(struct xentoollog_logger *logger, unsigned int flags)
{
    xenevtchn_handle *xce = calloc(1, sizeof(*xce));

    (void)logger;
    (void)flags;
    if (!xce) return NULL;
    xce->fifo = -1;
    xce->dir = open_dir();
    if (xce->dir < 0) goto fail;
    /* Open for writing too, so that it never reports a hang-up when the last domain is gone. */
    xce->fifo = openat(xce->dir, "to-store", O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (xce->fifo < 0) goto fail;
    return xce;

fail:
    if (xce->dir >= 0) close(xce->dir);
    free(xce);
    return NULL;
}

/* Only a live update of xenstored hands over a descriptor, which makes no sense here. */
xenevtchn_handle *xenevtchn_fdopen(struct xentoollog_logger *logger, int fd, unsigned int flags)
{
    (void)logger;
    (void)fd;
    (void)flags;
    errno = ENOSYS;
    return NULL;
}

int xenevtchn_fd(xenevtchn_handle *xce)
{
    return xce->fifo;
}

static int *event_of_port(xenevtchn_handle *xce, uint32_t port)
{
    if (port < PORT_FIRST || port - PORT_FIRST >= xce->count) return NULL;
    return &xce->events[port - PORT_FIRST];
}

int xenevtchn_notify(xenevtchn_handle *xce, uint32_t port)
{
    const char event = 1;
    const int *fd = event_of_port(xce, port);
    ssize_t r;

    if (!fd || *fd < 0) return 0;   /* dom0's port */
    do {
        r = write(*fd, &event, sizeof(event));
    } while (r < 0 && errno == EINTR);
    /* A full FIFO holds events that the domain has not seen: one more says nothing new. */
    return r < 0 && errno != EAGAIN ? -1 : 0;
}

/* The index of a free place in xce->events, or -1 with errno set. */
static ssize_t free_place(xenevtchn_handle *xce)
{
    size_t i;
    int *grown;

    for (i = 0; i < xce->count; i++)
        if (xce->events[i] < 0) return (ssize_t)i;
    grown = reallocarray(xce->events, xce->count + 1, sizeof(*grown));
    if (!grown) return -1;
    grown[xce->count] = -1;
    xce->events = grown;
    return (ssize_t)xce->count++;
}

int xenevtchn_bind_interdomain(xenevtchn_handle *xce, uint32_t domid, uint32_t remote_port)
{
    ssize_t place;
    int fd;

    (void)remote_port;
    if (!domid) return PORT_ANY;
    place = free_place(xce);
    if (place < 0) return -1;
    fd = open_domain_file(xce->dir, domid, "event", O_RDWR | O_NONBLOCK);
    if (fd < 0) return -1;
    xce->events[place] = fd;
    return PORT_FIRST + (int)place;
}

/* No virtual interrupt tells of a dead domain here: the toolstack says so by XS_RELEASE. */
int xenevtchn_bind_virq(xenevtchn_handle *xce, unsigned int virq)
{
    (void)xce;
    (void)virq;
    return PORT_VIRQ;
}

int xenevtchn_unbind(xenevtchn_handle *xce, uint32_t port)
{
    int *fd = event_of_port(xce, port);

    if (fd && *fd >= 0) {
        close(*fd);
        *fd = -1;
    }
    return 0;
}

int xenevtchn_unmask(xenevtchn_handle *xce, uint32_t port)
{
    (void)xce;
    (void)port;
    return 0;
}

/* Takes all events at once; -1 would end xenstored, so a spurious wake-up is an event as well. */
int xenevtchn_pending(xenevtchn_handle *xce)
{
    char events[4096];
    ssize_t r;

    do {
        r = read(xce->fifo, events, sizeof(events));
    } while (r < 0 && errno == EINTR);
    return PORT_ANY;
}

/* ---- xengnttab.h: the domains' store rings ---- */

xengnttab_handle *xengnttab_open(struct xentoollog_logger *logger, unsigned int flags)
{
    xengnttab_handle *xgt = malloc(sizeof(*xgt));

    (void)logger;
    (void)flags;
    if (!xgt) return NULL;
    xgt->dir = open_dir();
    if (xgt->dir < 0) {
        free(xgt);
        return NULL;
    }
    return xgt;
}

int xengnttab_close(xengnttab_handle *xgt)
{
    int r = close(xgt->dir);

    free(xgt);
    return r;
}

int xengnttab_set_max_grants(xengnttab_handle *xgt, uint32_t nr_grants)
{
    (void)xgt;
    (void)nr_grants;
    return 0;
}

void *xengnttab_map_grant_ref(xengnttab_handle *xgt, uint32_t domid, uint32_t ref, int prot)
{
    struct stat status;
    void *page = MAP_FAILED;
    int fd;

    if (ref != GRANT_STORE) {
        errno = EINVAL;
        return NULL;
    }
    fd = open_domain_file(xgt->dir, domid, "ring", O_RDWR);
    if (fd < 0) return NULL;
    if (fstat(fd, &status)) goto out;
    if (!S_ISREG(status.st_mode) || status.st_size != RING_BYTES) {
        errno = EINVAL;
        goto out;
    }
    page = mmap(NULL, RING_BYTES, prot, MAP_SHARED, fd, 0);
out:
    close(fd);
    return page == MAP_FAILED ? NULL : page;
}

int xengnttab_unmap(xengnttab_handle *xgt, void *start_address, uint32_t count)
{
    (void)xgt;
    return munmap(start_address, (size_t)count * RING_BYTES);
}
