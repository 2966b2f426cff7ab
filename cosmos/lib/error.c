/* SPDX-License-Identifier: Apache-2.0 */
/* Codes, messages, and what libxl says when it fails. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static const char *const names[] = {
    [COSMOS_OK] = "ok",
    [COSMOS_INVALID] = "invalid",
    [COSMOS_NO_MEMORY] = "no-memory",
    [COSMOS_NOT_FOUND] = "not-found",
    [COSMOS_EXISTS] = "exists",
    [COSMOS_BAD_IMAGE] = "bad-image",
    [COSMOS_HOST] = "host",
    [COSMOS_STORE] = "store",
    [COSMOS_TIMEOUT] = "timeout",
    [COSMOS_DEAD] = "dead",
};

const char *cosmos_code_name(enum cosmos_code code)
{
    size_t n = sizeof(names) / sizeof(names[0]);

    return (size_t)code < n ? names[code] : "unknown";
}

int cosmos_fail(struct cosmos_error *err, enum cosmos_code code,
                const char *format, ...)
{
    va_list args;

    if (err) {
        err->code = code;
        va_start(args, format);
        vsnprintf(err->message, sizeof(err->message), format, args);
        va_end(args);
    }
    return code;
}

static enum cosmos_code code_of(int rc)
{
    switch (rc) {
    case ERROR_NOMEM:           return COSMOS_NO_MEMORY;
    case ERROR_INVAL:           return COSMOS_INVALID;
    case ERROR_DEVICE_EXISTS:   return COSMOS_EXISTS;
    case ERROR_NOTFOUND:        /* fall through */
    case ERROR_DOMAIN_NOTFOUND: return COSMOS_NOT_FOUND;
    case ERROR_TIMEDOUT:        /* fall through */
    case ERROR_GUEST_TIMEDOUT:  return COSMOS_TIMEOUT;
    case ERROR_DOMAIN_DESTROYED: return COSMOS_DEAD;
    default:                    return COSMOS_HOST;
    }
}

int cosmos_fail_xl(struct cosmos_ctx *ctx, struct cosmos_error *err, int rc,
                   const char *what, uint32_t domid)
{
    enum cosmos_code code = code_of(rc);
    const char *said = cosmos_log_text(&ctx->log);

    if (domid == COSMOS_NO_DOMAIN)
        return cosmos_fail(err, code, "%s: libxl error %d: %s", what, rc, said);
    if (code == COSMOS_NOT_FOUND)
        return cosmos_fail(err, code, "%s: no domain %u", what, domid);
    return cosmos_fail(err, code, "%s: domain %u: libxl error %d: %s", what,
                       domid, rc, said);
}

/* Keeps the first error of a call: those behind it are its consequences. */
static void vmessage(struct xentoollog_logger *logger, xentoollog_level level,
                     int errnoval, const char *context, const char *format,
                     va_list args)
{
    struct cosmos_log *log = (struct cosmos_log *)logger;
    char *text;
    int n;

    (void)context;
    if (level < XTL_ERROR)
        return;
    text = pthread_getspecific(log->text);
    if (!text) {
        text = calloc(1, COSMOS_MESSAGE_BYTES);
        if (!text || pthread_setspecific(log->text, text)) {
            free(text);
            return;
        }
    }
    if (text[0])
        return;
    n = vsnprintf(text, COSMOS_MESSAGE_BYTES, format, args);
    if (errnoval > 0 && n > 0 && n < COSMOS_MESSAGE_BYTES)
        snprintf(text + n, COSMOS_MESSAGE_BYTES - n, ": %s",
                 strerror(errnoval));
}

static void progress(struct xentoollog_logger *logger, const char *context,
                     const char *doing_what, int percent, unsigned long done,
                     unsigned long total)
{
    (void)logger, (void)context, (void)doing_what;
    (void)percent, (void)done, (void)total;
}

static void destroy(struct xentoollog_logger *logger)
{
    (void)logger;                        /* a part of the context */
}

int cosmos_log_make(struct cosmos_log *log)
{
    log->vtable.vmessage = vmessage;
    log->vtable.progress = progress;
    log->vtable.destroy = destroy;
    return pthread_key_create(&log->text, free);
}

void cosmos_log_free(struct cosmos_log *log)
{
    free(pthread_getspecific(log->text));
    pthread_key_delete(log->text);
}

void cosmos_log_clear(struct cosmos_log *log)
{
    char *text = pthread_getspecific(log->text);

    if (text)
        text[0] = '\0';
}

const char *cosmos_log_text(struct cosmos_log *log)
{
    const char *text = pthread_getspecific(log->text);

    return text && text[0] ? text : "no reason given";
}
