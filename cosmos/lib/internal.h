/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of libcosmos share. */
#ifndef COSMOS_INTERNAL_H
#define COSMOS_INTERNAL_H

#define LIBXL_API_VERSION 0x041400

#include <libxl.h>
#include <libxl_utils.h>
#include <pthread.h>
#include <stdbool.h>
#include <xenctrl.h>
#include <xenstore.h>
#include <xentoollog.h>

#include "cosmos.h"

#define VIFS 16
#define PATH_BYTES 256
#define COSMOS_PAGE_KIB 4

/* Keeps the last error of libxl and libxc of each thread that calls. */
struct cosmos_log {
    struct xentoollog_logger vtable;     /* first: libxl is given its address */
    pthread_key_t text;                  /* char[COSMOS_MESSAGE_BYTES] */
};

struct cosmos_helpers;

struct cosmos_ctx {
    struct cosmos_log log;
    bool log_made;
    libxl_ctx *xl;
    xc_interface *xc;
    struct xs_handle *xs;
    struct cosmos_helpers *helpers;      /* NULL in a helper */
};

/* The host without helpers, as a helper has it. */
int cosmos_host_open(struct cosmos_ctx **out, struct cosmos_error *err);
void cosmos_host_close(struct cosmos_ctx *ctx);

/* Forks the process that forks helpers, which keeps held open; stop ends them
 * all, and NULL is allowed. */
int cosmos_helpers_start(struct cosmos_helpers **out, int held,
                         struct cosmos_error *err);
void cosmos_helpers_stop(struct cosmos_helpers *helpers);

/* Writes the message; returns code. */
int cosmos_fail(struct cosmos_error *err, enum cosmos_code code,
                const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Turns a libxl code into ours, with the words of libxl. */
int cosmos_fail_xl(struct cosmos_ctx *ctx, struct cosmos_error *err, int rc,
                   const char *what, uint32_t domid);

/* Makes the logger; returns 0 or an errno value. */
int cosmos_log_make(struct cosmos_log *log);
void cosmos_log_free(struct cosmos_log *log);
/* Forgets, and returns, the calling thread's last error; never NULL. */
void cosmos_log_clear(struct cosmos_log *log);
const char *cosmos_log_text(struct cosmos_log *log);

/* COSMOS_OK, or COSMOS_INVALID for a name that is empty or too long. */
int cosmos_check_name(const char *name, struct cosmos_error *err);

/* COSMOS_OK, or COSMOS_NOT_FOUND when there is no such domain. */
int cosmos_check_domain(struct cosmos_ctx *ctx, uint32_t domid,
                        struct cosmos_error *err);

/* A transaction's body; false with errno set aborts. */
typedef bool cosmos_change(struct xs_handle *xs, xs_transaction_t tx,
                           void *arg);

/* Runs body in a transaction, again while others interfere; errno tells why
 * it failed. */
int cosmos_transact(struct xs_handle *xs, cosmos_change *body, void *arg,
                    const char *what, struct cosmos_error *err);

/* Writes printf(format, ...) to directory/key; false with errno set, E2BIG
 * for what a message does not hold. */
bool cosmos_put(struct xs_handle *xs, xs_transaction_t tx,
                const char *directory, const char *key, const char *format,
                ...) __attribute__((format(printf, 5, 6)));

/* Names a domain; false with errno set. libxl does not look for another of
 * that name then, which it would do one by one. */
bool cosmos_put_name(struct xs_handle *xs, uint32_t domid, const char *name);

/* Owner dom0, readable by domid. */
bool cosmos_let_read(struct xs_handle *xs, xs_transaction_t tx,
                     const char *path, uint32_t domid);

/* Removes all backends of the VALE switch a destroyed domain had. */
void cosmos_vale_forget(struct cosmos_ctx *ctx, uint32_t domid);

/* Milliseconds of the monotonic clock. */
uint64_t cosmos_now_ms(void);

#endif
