/* SPDX-License-Identifier: Apache-2.0 */
/* The Xen store: transactions and writes with permissions. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "internal.h"

/* A transaction that others disturb this often is given up. */
#define ATTEMPTS 100
#define VALUE_BYTES 4096

uint64_t cosmos_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * UINT64_C(1000) + now.tv_nsec / 1000000;
}

int cosmos_transact(struct xs_handle *xs, cosmos_change *body, void *arg,
                    const char *what, struct cosmos_error *err)
{
    xs_transaction_t tx;
    int attempt, failed = EAGAIN;

    for (attempt = 0; attempt < ATTEMPTS; attempt++) {
        tx = xs_transaction_start(xs);
        if (tx == XBT_NULL) {
            failed = errno;
            break;
        }
        if (!body(xs, tx, arg)) {
            failed = errno;
            xs_transaction_end(xs, tx, true);
            break;
        }
        if (xs_transaction_end(xs, tx, false))
            return COSMOS_OK;
        failed = errno;
        if (failed != EAGAIN)
            break;
    }
    cosmos_fail(err, COSMOS_STORE, "%s: xen store: %s", what,
                strerror(failed));
    errno = failed;
    return COSMOS_STORE;
}

bool cosmos_put(struct xs_handle *xs, xs_transaction_t tx,
                const char *directory, const char *key, const char *format,
                ...)
{
    char path[PATH_BYTES], value[VALUE_BYTES];
    va_list args;
    int at, n;

    at = snprintf(path, sizeof(path), "%s/%s", directory, key);
    va_start(args, format);
    n = vsnprintf(value, sizeof(value), format, args);
    va_end(args);
    if (at < 0 || at >= PATH_BYTES || n < 0 || n >= VALUE_BYTES) {
        errno = E2BIG;                   /* as the store's own refusal */
        return false;
    }
    return xs_write(xs, tx, path, value, n);
}

bool cosmos_let_read(struct xs_handle *xs, xs_transaction_t tx,
                     const char *path, uint32_t domid)
{
    struct xs_permissions perms[] = {
        { .id = 0, .perms = XS_PERM_NONE },
        { .id = domid, .perms = XS_PERM_READ },
    };

    return xs_set_permissions(xs, tx, path, perms, 2);
}
