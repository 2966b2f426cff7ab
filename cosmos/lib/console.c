/* SPDX-License-Identifier: Apache-2.0 */
/* A domain's console: the terminal that xenconsoled keeps for it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

int cosmos_console_open(struct cosmos_ctx *ctx, uint32_t domid, int *fd,
                        struct cosmos_error *err)
{
    char *path = NULL;
    int rc = cosmos_check_domain(ctx, domid, err);

    if (rc)
        return rc;
    cosmos_log_clear(&ctx->log);
    rc = libxl_console_get_tty(ctx->xl, domid, 0, LIBXL_CONSOLE_TYPE_PV,
                               &path);
    if (rc)
        return cosmos_fail_xl(ctx, err, rc, "console", domid);
    *fd = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    if (*fd < 0)
        rc = cosmos_fail(err, COSMOS_HOST, "console: domain %u: %s: %s; is "
                         "xenconsoled running?", domid, path, strerror(errno));
    free(path);
    return rc;
}
