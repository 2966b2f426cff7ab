/* SPDX-License-Identifier: Apache-2.0 */
/* Handler requests: in pieces to the guest, in pieces back. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "router.h"
#include "wait.h"

/* A node's first byte tells whether more follow (docs/control-protocol.md). */
#define MORE '+'
#define LAST '.'
#define PIECE_BYTES 1999
#define REQUEST_BYTES (1u << 20)
#define ANSWER_BYTES (256u << 10)
#define ANSWER_PIECES 320
#define CODE_BYTES 4                     /* "200 " */

struct request {
    uint32_t domid, rid, seq;
    const char *text;
    size_t bytes;
};

static void path_of(char *path, const struct request *request,
                    const char *part, int piece)
{
    char key[64];
    int n = snprintf(key, sizeof(key), "%s/%u", part, request->seq);

    if (piece >= 0)
        snprintf(key + n, sizeof(key) - n, "/%d", piece);
    cosmos_router_path(path, PATH_BYTES, request->domid, request->rid, key);
}

static bool send_pieces(struct xs_handle *xs, xs_transaction_t tx, void *arg)
{
    const struct request *request = arg;
    const char *from = request->text;
    size_t n, left = request->bytes;
    char path[PATH_BYTES], value[1 + PIECE_BYTES];
    int piece = 0;

    do {
        n = left < PIECE_BYTES ? left : PIECE_BYTES;
        value[0] = left > n ? MORE : LAST;
        memcpy(value + 1, from, n);
        path_of(path, request, "request", piece++);
        if (!cosmos_give(xs, tx, path, request->domid, value, n + 1))
            return false;
        from += n;
        left -= n;
    } while (left);
    return true;
}

static bool forget(struct xs_handle *xs, xs_transaction_t tx, void *arg)
{
    const struct request *request = arg;
    char path[PATH_BYTES];

    path_of(path, request, "request", -1);
    if (!xs_rm(xs, tx, path) && errno != ENOENT)
        return false;
    path_of(path, request, "response", -1);
    return xs_rm(xs, tx, path) || errno == ENOENT;
}

/* An answer that comes in pieces. */
struct answer {
    char *text;
    size_t bytes;
    int pieces;
    bool whole;
};

static int add_piece(struct answer *answer, const char *piece, unsigned bytes,
                     struct cosmos_error *err)
{
    char *text;

    if (!bytes || (piece[0] != MORE && piece[0] != LAST))
        return cosmos_fail(err, COSMOS_REFUSED,
                           "answer: piece %d is not of the protocol",
                           answer->pieces);
    if (answer->bytes + bytes > ANSWER_BYTES + CODE_BYTES ||
        answer->pieces >= ANSWER_PIECES)
        return cosmos_fail(err, COSMOS_REFUSED,
                           "answer: above %u bytes or %d pieces",
                           ANSWER_BYTES, ANSWER_PIECES);
    text = realloc(answer->text, answer->bytes + bytes);
    if (!text)
        return cosmos_fail(err, COSMOS_NO_MEMORY, "answer: no memory");
    memcpy(text + answer->bytes, piece + 1, bytes - 1);
    answer->text = text;
    answer->bytes += bytes - 1;
    text[answer->bytes] = '\0';
    answer->pieces++;
    answer->whole = piece[0] == LAST;
    return COSMOS_OK;
}

static int receive(struct cosmos_ctx *ctx, const struct request *request,
                   struct cosmos_wait *wait, struct answer *answer,
                   struct cosmos_error *err)
{
    char path[PATH_BYTES], *piece;
    unsigned bytes;
    int rc = COSMOS_OK;

    while (!rc && !answer->whole) {
        path_of(path, request, "response", answer->pieces);
        piece = xs_read(ctx->xs, XBT_NULL, path, &bytes);
        if (piece)
            rc = add_piece(answer, piece, bytes, err);
        else if (errno == ENOENT)
            rc = cosmos_wait_change(wait, err);
        else
            rc = cosmos_fail(err, COSMOS_STORE, "answer: xen store: %s",
                             strerror(errno));
        free(piece);
    }
    return rc;
}

/* "200 DATA" to DATA, or the error that the code stands for. */
static int judge(struct answer *answer, struct cosmos_error *err)
{
    const char *text = answer->text;
    int code = 0, end = 0;

    if (sscanf(text, "%3d%n", &code, &end) != 1 || end != 3 ||
        answer->bytes < CODE_BYTES || text[3] != ' ')
        return cosmos_fail(err, COSMOS_REFUSED,
                           "answer: is not of the protocol");
    if (code == 200) {
        answer->bytes -= CODE_BYTES;
        memmove(answer->text, text + CODE_BYTES, answer->bytes + 1);
        return COSMOS_OK;
    }
    return cosmos_fail(err, code == 510 || code == 511 || code == 540
                       ? COSMOS_NOT_FOUND : COSMOS_REFUSED, "%s",
                       text + CODE_BYTES);
}

int cosmos_request(struct cosmos_ctx *ctx, uint32_t domid, uint32_t rid,
                   const char *request, size_t request_bytes,
                   unsigned timeout_ms, char **out, size_t *out_bytes,
                   struct cosmos_error *err)
{
    struct request r = {
        .domid = domid, .rid = rid, .text = request, .bytes = request_bytes,
    };
    struct cosmos_wait wait = { .xs = NULL };
    struct answer answer = { .text = NULL };
    char path[PATH_BYTES];
    int rc = cosmos_check_router(ctx, domid, rid, err);

    if (rc)
        return rc;
    if (!request_bytes || request_bytes > REQUEST_BYTES)
        return cosmos_fail(err, COSMOS_INVALID, "request: expected 1 to %u "
                           "bytes, got %zu", REQUEST_BYTES, request_bytes);
    /* A number that no other request uses at the moment. */
    if (getrandom(&r.seq, sizeof(r.seq), 0) != sizeof(r.seq))
        return cosmos_fail(err, COSMOS_HOST, "getrandom: %s", strerror(errno));

    path_of(path, &r, "response", -1);
    rc = cosmos_wait_begin(&wait, ctx, domid, path, timeout_ms, err);
    if (!rc)
        rc = cosmos_transact(ctx->xs, send_pieces, &r, "request", err);
    if (!rc)
        rc = receive(ctx, &r, &wait, &answer, err);
    cosmos_transact(ctx->xs, forget, &r, "request", NULL);
    if (!rc)
        rc = judge(&answer, err);
    cosmos_wait_end(&wait);
    if (rc) {
        free(answer.text);
        return rc;
    }
    *out = answer.text;
    *out_bytes = answer.bytes;
    return COSMOS_OK;
}
