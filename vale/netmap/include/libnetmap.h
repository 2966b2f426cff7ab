/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The family of nmport_open on ports of valed; docs/reference/netmap.md lists what differs.
 *
 * A port is named as for nm_open, with netmap's options behind it: "vale0:p1,segment=2@conf:slots=512/T".
 * The functions print the cause of a failure to standard error and set errno.
 */
#ifndef VALE_LIBNETMAP_H
#define VALE_LIBNETMAP_H

#ifndef NETMAP_WITH_LIBS
#define NETMAP_WITH_LIBS
#endif
#include <net/netmap_user.h>

struct nmctx;
struct nmem_d;
struct nmreq_opt_extmem;

/* A port; the program reads the fields from fd on. */
struct nmport_d {
    struct nmreq_header hdr;
    struct nmreq_register reg;
    struct nmem_d *mem; /* different for each port: there is no zero copy between ports */
    struct nmctx *ctx;
    int register_done;
    int mmap_done;
    struct nmreq_opt_extmem *extmem; /* NULL */
    int fd;
    struct netmap_if *nifp;
    uint16_t first_tx_ring, last_tx_ring;
    uint16_t first_rx_ring, last_rx_ring;
    uint16_t cur_tx_ring, cur_rx_ring;
    struct nm_desc *vale_desc;
    char vale_name[160];
};

static inline int vale_nmport_fail(int number, const char *place, const char *text)
{
    fprintf(stderr, "nmport: %s: %s\n", place, text);
    errno = number;
    return -1;
}

/* Reads one key of "@conf:". */
static inline int vale_nmport_conf(struct nmport_d *d, const char *key, size_t length,
                                   const char *value)
{
    char *end = NULL;
    unsigned long n = strtoul(value, &end, 10);
    int is_all = length == 5 && memcmp(key, "slots", 5) == 0;

    if (end == value || (*end != '\0' && strchr(",@/", *end) == NULL) || n > 2048)
        return vale_nmport_fail(EINVAL, value, "expected a number of at most 2048");
    if (is_all || (length == 8 && memcmp(key, "tx-slots", 8) == 0))
        d->reg.nr_tx_slots = (uint32_t)n;
    if (is_all || (length == 8 && memcmp(key, "rx-slots", 8) == 0))
        d->reg.nr_rx_slots = (uint32_t)n;
    else if (!is_all && !(length == 8 && memcmp(key, "tx-slots", 8) == 0)) {
        /* All numbers of rings: a port of valed has one in each direction. */
        int is_rings = length >= 5 && memcmp(key + length - 5, "rings", 5) == 0;

        if (!is_rings)
            return vale_nmport_fail(EINVAL, key, "expected slots or rings");
        if (n > 1)
            return vale_nmport_fail(EINVAL, key, "a port has one ring in each direction");
    }
    return 0;
}

/* Reads the options behind the first '@', or the flags behind a '/'. */
static inline int vale_nmport_options(struct nmport_d *d, const char *at)
{
    while (*at == '/') {
        for (at++; *at != '\0' && *at != '@'; at++) {
            if (*at == 'R')
                d->reg.nr_flags |= NR_RX_RINGS_ONLY;
            else if (*at == 'T')
                d->reg.nr_flags |= NR_TX_RINGS_ONLY;
            else if (*at != 'x')
                return vale_nmport_fail(EINVAL, at, "expected the flags R, T or x");
        }
    }
    while (*at == '@') {
        if (strncmp(at, "@conf:", 6) != 0)
            return vale_nmport_fail(EINVAL, at, "valed has the option conf only");
        at += 5;
        do {
            const char *key = at + 1, *value = strchr(key, '=');

            if (value == NULL)
                return vale_nmport_fail(EINVAL, key, "expected KEY=NUMBER");
            if (vale_nmport_conf(d, key, (size_t)(value - key), value + 1) != 0)
                return -1;
            at = value + strcspn(value, ",@");
        } while (*at == ',');
    }
    return 0;
}

static inline struct nmport_d *nmport_new(void)
{
    struct nmport_d *d = (struct nmport_d *)calloc(1, sizeof(*d));

    if (d != NULL) {
        d->fd = -1;
        d->hdr.nr_version = NETMAP_API;
        d->hdr.nr_reqtype = NETMAP_REQ_REGISTER;
        d->hdr.nr_body = (uint64_t)(uintptr_t)&d->reg;
        d->reg.nr_mode = NR_REG_ALL_NIC;
    }
    return d;
}

static inline void nmport_delete(struct nmport_d *d)
{
    free(d);
}

/* Fills hdr and reg from the name of a port and its options. */
static inline int nmport_parse(struct nmport_d *d, const char *portspec)
{
    size_t length = strcspn(portspec, "@/");
    size_t name = strcspn(portspec, ",@/");

    if (length >= sizeof(d->vale_name) || name >= sizeof(d->hdr.nr_name))
        return vale_nmport_fail(ENAMETOOLONG, portspec, "the name is too long");
    if (strpbrk(portspec, "^*{}") != NULL)
        return vale_nmport_fail(EINVAL, portspec, "valed has no rings of the host and no netmap pipes");
    d->reg.nr_flags = 0;
    if (vale_nmport_options(d, portspec + length) != 0)
        return -1;
    memcpy(d->vale_name, portspec, length);
    d->vale_name[length] = '\0';
    memset(d->hdr.nr_name, 0, sizeof(d->hdr.nr_name));
    memcpy(d->hdr.nr_name, portspec, name);
    return 0;
}

static inline void nmport_undo_parse(struct nmport_d *d)
{
    memset(&d->reg, 0, sizeof(d->reg));
    d->vale_name[0] = '\0';
}

/* Attaches the port. A program that sets hdr.nr_name by itself needs no nmport_parse. */
static inline int nmport_register(struct nmport_d *d)
{
    struct nmreq wish;
    const char *name = d->vale_name[0] != '\0' ? d->vale_name : d->hdr.nr_name;

    if (d->register_done)
        return vale_nmport_fail(EINVAL, name, "the port is registered already");
    if (d->reg.nr_extra_bufs > 0)
        return vale_nmport_fail(EOPNOTSUPP, name, "valed has no extra buffers");
    memset(&wish, 0, sizeof(wish));
    wish.nr_tx_slots = d->reg.nr_tx_slots;
    wish.nr_rx_slots = d->reg.nr_rx_slots;
    d->vale_desc = nm_open(name, &wish, 0, NULL);
    if (d->vale_desc == NULL)
        return -1;
    d->fd = d->vale_desc->fd;
    d->mem = (struct nmem_d *)d->vale_desc->mem;
    d->reg.nr_memsize = d->vale_desc->memsize;
    d->reg.nr_tx_slots = d->vale_desc->req.nr_tx_slots;
    d->reg.nr_rx_slots = d->vale_desc->req.nr_rx_slots;
    d->reg.nr_tx_rings = d->reg.nr_rx_rings = 1;
    /* An empty interval has its end before its start. */
    d->first_tx_ring = d->reg.nr_flags & NR_RX_RINGS_ONLY ? 1 : 0;
    d->first_rx_ring = d->reg.nr_flags & NR_TX_RINGS_ONLY ? 1 : 0;
    d->register_done = 1;
    return 0;
}

static inline void nmport_undo_register(struct nmport_d *d)
{
    if (d->vale_desc != NULL)
        nm_close(d->vale_desc);
    d->vale_desc = NULL;
    d->nifp = NULL;
    d->mem = NULL;
    d->fd = -1;
    d->register_done = d->mmap_done = 0;
}

/* nmport_register has mapped the memory. */
static inline int nmport_mmap(struct nmport_d *d)
{
    if (!d->register_done)
        return vale_nmport_fail(EINVAL, d->hdr.nr_name, "the port is not registered");
    d->nifp = d->vale_desc->nifp;
    d->mmap_done = 1;
    return 0;
}

static inline void nmport_undo_mmap(struct nmport_d *d)
{
    d->nifp = NULL;
    d->mmap_done = 0;
}

static inline struct nmport_d *nmport_prepare(const char *portspec)
{
    struct nmport_d *d = nmport_new();

    if (d != NULL && nmport_parse(d, portspec) != 0) {
        nmport_delete(d);
        d = NULL;
    }
    return d;
}

static inline void nmport_undo_prepare(struct nmport_d *d)
{
    nmport_undo_parse(d);
    nmport_delete(d);
}

static inline int nmport_open_desc(struct nmport_d *d)
{
    return nmport_register(d) != 0 ? -1 : nmport_mmap(d);
}

static inline void nmport_undo_open_desc(struct nmport_d *d)
{
    nmport_undo_mmap(d);
    nmport_undo_register(d);
}

static inline struct nmport_d *nmport_open(const char *portspec)
{
    struct nmport_d *d = nmport_prepare(portspec);

    if (d != NULL && nmport_open_desc(d) != 0) {
        nmport_undo_prepare(d);
        d = NULL;
    }
    return d;
}

static inline void nmport_close(struct nmport_d *d)
{
    nmport_undo_open_desc(d);
    nmport_undo_prepare(d);
}

/* A prepared copy, without options; it needs a name of its own before it is opened. */
static inline struct nmport_d *nmport_clone(struct nmport_d *d)
{
    struct nmport_d *copy = nmport_new();

    if (copy != NULL) {
        memcpy(copy->hdr.nr_name, d->hdr.nr_name, sizeof(copy->hdr.nr_name));
        memcpy(copy->vale_name, d->vale_name, sizeof(copy->vale_name));
        copy->reg.nr_tx_slots = d->reg.nr_tx_slots;
        copy->reg.nr_rx_slots = d->reg.nr_rx_slots;
        copy->reg.nr_mode = d->reg.nr_mode;
        copy->reg.nr_flags = d->reg.nr_flags;
        copy->ctx = d->ctx;
    }
    return copy;
}

/* Queues a packet. Returns its size, or 0 if there is no room, as nm_inject does. */
static inline int nmport_inject(struct nmport_d *d, const void *packet, size_t size)
{
    return d->vale_desc == NULL ? 0 : nm_inject(d->vale_desc, packet, size);
}

/* Memory of the program, and offsets in slots: valed has neither. */
static inline int nmport_extmem(struct nmport_d *d, void *base, size_t size)
{
    (void)base, (void)size;
    return vale_nmport_fail(EOPNOTSUPP, d->hdr.nr_name, "valed has its own memory");
}

static inline int nmport_extmem_from_file(struct nmport_d *d, const char *path)
{
    (void)d;
    return vale_nmport_fail(EOPNOTSUPP, path, "valed has its own memory");
}

static inline int nmport_offset(struct nmport_d *d, uint64_t initial, uint64_t most, uint64_t bits,
                                uint64_t gap)
{
    (void)most, (void)bits, (void)gap;
    if (initial == 0)
        return 0;
    return vale_nmport_fail(EOPNOTSUPP, d->hdr.nr_name, "a frame begins at the start of its buffer");
}

/* All options that valed has are on. */
static inline int nmport_enable_option(const char *option)
{
    (void)option;
    return 0;
}

static inline int nmport_disable_option(const char *option)
{
    (void)option;
    return 0;
}

#endif
