/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcosmos: domains of a Xen host and their devices. cosmosd serves routers
 * and handlers (docs/control-protocol.md).
 *
 * One cosmos_ctx serves any number of threads, and a process has one. Every
 * call that can fail returns 0 or one of enum cosmos_code. A failed call
 * writes a message for a person to *err, which may be NULL.
 *
 * Sizes are in the unit of their name; times are in milliseconds.
 */
#ifndef COSMOS_H
#define COSMOS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised by every change that breaks a caller; cosmos_open checks it. */
#define COSMOS_API_VERSION 4

/* A domain that does not exist. */
#define COSMOS_NO_DOMAIN UINT32_MAX

#define COSMOS_MESSAGE_BYTES 512
#define COSMOS_NAME_BYTES 256

enum cosmos_code {
    COSMOS_OK = 0,
    COSMOS_INVALID,      /* an argument is wrong: the message names it */
    COSMOS_NO_MEMORY,    /* of this process or of the host */
    COSMOS_NOT_FOUND,    /* no such domain or vif */
    COSMOS_EXISTS,       /* the name, UUID or vif is taken */
    COSMOS_BAD_IMAGE,    /* the image is no kernel Xen can start */
    COSMOS_HOST,         /* libxl or the hypervisor failed */
    COSMOS_STORE,        /* the Xen store refused or is gone */
    COSMOS_TIMEOUT,      /* the guest did not answer in time */
    COSMOS_DEAD,         /* the guest is gone, crashed or shut down */
};

struct cosmos_error {
    enum cosmos_code code;
    char message[COSMOS_MESSAGE_BYTES];
};

struct cosmos_ctx;

/* Opens the host, once in a process, which has not used libxl before.
 * api_version is COSMOS_API_VERSION of the caller. Domains are made and
 * destroyed in helper processes (cosmos-xl), which end with this one. They
 * keep the descriptor held open unless it is -1: a lock on it (flock) ends
 * with the last of them. */
int cosmos_open(struct cosmos_ctx **out, unsigned api_version, int held,
                struct cosmos_error *err);

/* Closes the host; guests go on. NULL is allowed. */
void cosmos_close(struct cosmos_ctx *ctx);

/* The code's name in lower case with hyphens, for logs. */
const char *cosmos_code_name(enum cosmos_code code);

/*---------- domains ----------*/

enum cosmos_type { COSMOS_PV, COSMOS_PVH };

/* Files that are read as they are, so that a large kernel is not copied. They
 * are open for reading, and do not change meanwhile. */
struct cosmos_files {
    int kernel;                /* instead of image */
    int ramdisk;               /* -1: none */
};

struct cosmos_spec {
    uint32_t domid;            /* COSMOS_NO_DOMAIN: any that is free */
    enum cosmos_type type;
    const char *name;          /* unique on the host; with a domid of its own
                                * that is the caller's business */
    uint8_t uuid[16];
    const void *image;         /* an ELF kernel; copied before the call returns */
    size_t image_bytes;
    const char *cmdline;       /* NULL: none; at most 1,023 bytes */
    uint32_t memory_kib;
    const struct cosmos_files *files;    /* NULL: the kernel is image */
};

/* Domains that are created or restored at a time; further calls wait. */
#define COSMOS_BUILDERS 2

/* Creates a domain, paused; *domid is set only when 0 is returned, and a
 * failure leaves nothing behind. */
int cosmos_domain_create(struct cosmos_ctx *ctx,
                         const struct cosmos_spec *spec, uint32_t *domid,
                         struct cosmos_error *err);

/* Creates a domain, paused, from what cosmos_domain_save wrote to fd.
 * spec->image is not used. */
int cosmos_domain_restore(struct cosmos_ctx *ctx,
                          const struct cosmos_spec *spec, int fd,
                          uint32_t *domid, struct cosmos_error *err);

/* Asks the guest to suspend and writes its memory to fd; the domain stays,
 * shut down, until it is destroyed or resumed. PVH only. */
int cosmos_domain_save(struct cosmos_ctx *ctx, uint32_t domid, int fd,
                       struct cosmos_error *err);

/* Lets a suspended domain go on, as after a save that is not wanted. */
int cosmos_domain_resume(struct cosmos_ctx *ctx, uint32_t domid,
                         struct cosmos_error *err);

int cosmos_domain_unpause(struct cosmos_ctx *ctx, uint32_t domid,
                          struct cosmos_error *err);
int cosmos_domain_pause(struct cosmos_ctx *ctx, uint32_t domid,
                        struct cosmos_error *err);

/* Ends the domain and removes its store entries and devices; a domain that
 * does not exist is COSMOS_NOT_FOUND. */
int cosmos_domain_destroy(struct cosmos_ctx *ctx, uint32_t domid,
                          struct cosmos_error *err);

enum cosmos_state {
    COSMOS_RUNNING,      /* runs, or waits for an event */
    COSMOS_PAUSED,
    COSMOS_SHUT_DOWN,    /* by itself: reason tells how */
    COSMOS_DYING,        /* destroyed, and something still holds its pages */
};

enum cosmos_reason {     /* of a shutdown, as SCHEDOP_shutdown numbers them */
    COSMOS_POWEROFF = 0, COSMOS_REBOOT = 1, COSMOS_SUSPEND = 2,
    COSMOS_CRASH = 3, COSMOS_WATCHDOG = 4, COSMOS_SOFT_RESET = 5,
    COSMOS_UNKNOWN = 255,
};

struct cosmos_info {
    uint32_t domid;
    uint8_t uuid[16];
    enum cosmos_state state;
    enum cosmos_reason reason;       /* when state is COSMOS_SHUT_DOWN */
    uint64_t memory_kib;             /* now */
    uint64_t memory_max_kib;
    uint64_t cpu_time_ns;
    char name[COSMOS_NAME_BYTES];
};

int cosmos_domain_info(struct cosmos_ctx *ctx, uint32_t domid,
                       struct cosmos_info *info, struct cosmos_error *err);

/* The same without the name, which takes a request to the Xen store: one
 * hypercall. */
int cosmos_domain_peek(struct cosmos_ctx *ctx, uint32_t domid,
                       struct cosmos_info *info, struct cosmos_error *err);

/* The domains with the lowest numbers from first on, without their names, by
 * one hypercall: at most COSMOS_PEEK_DOMAINS, whose descriptions fill a page
 * of the hypercall. */
#define COSMOS_PEEK_DOMAINS 32
int cosmos_domain_peek_from(struct cosmos_ctx *ctx, uint32_t first,
                            struct cosmos_info *infos, size_t *count,
                            struct cosmos_error *err);

/* All domains but dom0, without their names; *list is freed with free(). */
int cosmos_domain_peek_all(struct cosmos_ctx *ctx, struct cosmos_info **list,
                           size_t *count, struct cosmos_error *err);

/* The same with their names, one request to the Xen store each. */
int cosmos_domain_list(struct cosmos_ctx *ctx, struct cosmos_info **list,
                       size_t *count, struct cosmos_error *err);

/* Gives the domain a new name, as when it is taken from a pool; that no other
 * has it is the caller's business. */
int cosmos_domain_rename(struct cosmos_ctx *ctx, uint32_t domid,
                         const char *name, struct cosmos_error *err);

/* Runs the domain on this physical CPU only; -1 for any. */
int cosmos_domain_pin(struct cosmos_ctx *ctx, uint32_t domid, int cpu,
                      struct cosmos_error *err);

/* Share of CPU time under contention (256 is usual) and limit in percent of
 * one CPU (0: none). Domain 0 has one too. */
int cosmos_domain_share(struct cosmos_ctx *ctx, uint32_t domid,
                        unsigned weight, unsigned cap_percent,
                        struct cosmos_error *err);

/* Limits the memory of the domain from now on. */
int cosmos_domain_memory(struct cosmos_ctx *ctx, uint32_t domid,
                         uint32_t memory_kib, struct cosmos_error *err);

struct cosmos_host_info {
    uint32_t cpus;
    uint64_t memory_kib;
    uint64_t free_kib;
};

int cosmos_host_info(struct cosmos_ctx *ctx, struct cosmos_host_info *info,
                     struct cosmos_error *err);

/*---------- vifs ----------*/

/* A vif of stock xen-netback; *script* puts vifD.N where it belongs. */
struct cosmos_nic {
    uint32_t devid;
    uint8_t mac[6];
    uint16_t mtu;
    const char *bridge;
    const char *script;        /* NULL: the host's default; both at most
                                * 1,023 bytes */
};

int cosmos_nic_add(struct cosmos_ctx *ctx, uint32_t domid,
                   const struct cosmos_nic *nic, struct cosmos_error *err);
int cosmos_nic_remove(struct cosmos_ctx *ctx, uint32_t domid, uint32_t devid,
                      struct cosmos_error *err);

/* A vif on granted rings of the VALE switch (docs/rings.md): its nodes in
 * the Xen store. The caller adds the switch's port separately. A vif whose
 * address is zeros is preconnected: it has no node `mac` yet. */
struct cosmos_vale {
    uint32_t devid;
    uint8_t mac[6];
    uint16_t mtu;
    uint32_t slots;
};

int cosmos_vale_add(struct cosmos_ctx *ctx, uint32_t domid,
                    const struct cosmos_vale *vale, struct cosmos_error *err);
int cosmos_vale_remove(struct cosmos_ctx *ctx, uint32_t domid,
                       uint32_t devid, struct cosmos_error *err);

/*---------- console ----------*/

/* Opens the console for reading and writing; the caller closes *fd. */
int cosmos_console_open(struct cosmos_ctx *ctx, uint32_t domid, int *fd,
                        struct cosmos_error *err);

/*---------- events ----------*/

struct cosmos_events;

/* Events of the host from now on: a domain shut down or is gone. One thread
 * uses it. */
int cosmos_events_open(struct cosmos_events **out, struct cosmos_error *err);
void cosmos_events_close(struct cosmos_events *events);

/* Readable when there may be an event. */
int cosmos_events_fd(const struct cosmos_events *events);

/* Waits at most timeout_ms for an event; COSMOS_TIMEOUT when there was none. */
int cosmos_events_next(struct cosmos_events *events, unsigned timeout_ms,
                       struct cosmos_error *err);

#ifdef __cplusplus
}
#endif

#endif
