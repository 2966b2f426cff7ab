/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers by name. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

static int check_name(const char *handler, struct cosmos_error *err)
{
    if (*handler && !handler[strcspn(handler, " \t\r\n")])
        return COSMOS_OK;
    return cosmos_fail(err, COSMOS_INVALID,
                       "handler: expected ELEMENT.HANDLER, got \"%s\"",
                       handler);
}

/* Sends text, which it frees, and NULL of which is no memory. */
static int ask(struct cosmos_ctx *ctx, uint32_t domid, uint32_t rid,
               char *text, unsigned timeout_ms, char **answer,
               struct cosmos_error *err)
{
    size_t bytes;
    int rc;

    if (!text)
        return cosmos_fail(err, COSMOS_NO_MEMORY, "request: no memory");
    rc = cosmos_request(ctx, domid, rid, text, strlen(text), timeout_ms,
                        answer, &bytes, err);
    free(text);
    return rc;
}

int cosmos_handler_read(struct cosmos_ctx *ctx, uint32_t domid, uint32_t rid,
                        const char *handler, unsigned timeout_ms,
                        char **value, struct cosmos_error *err)
{
    char *text = NULL;
    int rc = check_name(handler, err);

    if (rc)
        return rc;
    if (asprintf(&text, "read %s", handler) < 0)
        text = NULL;
    return ask(ctx, domid, rid, text, timeout_ms, value, err);
}

int cosmos_handler_write(struct cosmos_ctx *ctx, uint32_t domid, uint32_t rid,
                         const char *handler, const char *value,
                         unsigned timeout_ms, struct cosmos_error *err)
{
    char *text = NULL, *answer = NULL;
    int rc = check_name(handler, err);

    if (rc)
        return rc;
    if (asprintf(&text, "write %s %s", handler, value) < 0)
        text = NULL;
    rc = ask(ctx, domid, rid, text, timeout_ms, &answer, err);
    free(answer);
    return rc;
}

int cosmos_handler_list(struct cosmos_ctx *ctx, uint32_t domid, uint32_t rid,
                        unsigned timeout_ms, char **list,
                        struct cosmos_error *err)
{
    return ask(ctx, domid, rid, strdup("handlers"), timeout_ms, list, err);
}
