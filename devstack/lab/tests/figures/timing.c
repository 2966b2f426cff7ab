/* SPDX-License-Identifier: Apache-2.0
 *
 * Times, in microseconds, as one process of dom0 sees them that keeps its
 * connections: no fork, no new connection per measurement.
 *
 * - timing boot DOMID PATH START
 *       from unpause until PATH's value begins with START
 * - timing cpu DOMID
 *       the nanoseconds that a domain has run so far
 * - timing store PATH ROUNDS
 *       a plain write; a plain read
 * - timing handler ROUTER ROUNDS REQUEST
 *       a request to a guest's router and its answer
 * - timing shown ROUTER ROUNDS ELEMENT/HANDLER
 *       a handler read by its element node
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xenctrl.h>
#include <xenstore.h>

#define TIMEOUT_MS 60000

static void fail(const char *what)
{
    fprintf(stderr, "timing: %s\n", what);
    exit(1);
}

static double now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e6 + now.tv_nsec / 1e3;
}

static struct xs_handle *open_store(void)
{
    struct xs_handle *store = xs_open(0);

    if (!store)
        fail("no connection to the store");
    return store;
}

/* Waits for the next event; returns whether it is of this path. */
static int await_event(struct xs_handle *store, const char *path)
{
    struct pollfd ready = { .fd = xs_fileno(store), .events = POLLIN };
    unsigned int count;
    char **event;
    int is;

    if (poll(&ready, 1, TIMEOUT_MS) != 1)
        fail("no event within a minute");
    event = xs_read_watch(store, &count);
    is = event && !strcmp(event[XS_WATCH_PATH], path);
    free(event);
    return is;
}

static int starts(struct xs_handle *store, const char *path, const char *start)
{
    char *value = xs_read(store, XBT_NULL, path, NULL);
    int does = value && !strncmp(value, start, strlen(start));

    free(value);
    return does;
}

static void await_value(struct xs_handle *store, const char *path,
                        const char *start)
{
    do {
        while (!await_event(store, path))
            ;
    } while (!starts(store, path, start));
}

static int boot(unsigned int domid, const char *path, const char *start)
{
    xc_interface *xen = xc_interface_open(NULL, NULL, 0);
    struct xs_handle *store = open_store();
    double since;

    if (!xen || !xs_watch(store, path, "boot"))
        fail("no connection to Xen, or no watch");
    await_event(store, path);
    since = now_us();
    if (xc_domain_unpause(xen, domid))
        fail("the domain cannot be unpaused");
    await_value(store, path, start);
    printf("%.0f\n", now_us() - since);
    return 0;
}

static int cpu(unsigned int domid)
{
    xc_interface *xen = xc_interface_open(NULL, NULL, 0);
    xc_dominfo_t info;

    if (!xen || xc_domain_getinfo(xen, domid, 1, &info) != 1 ||
        info.domid != domid)
        fail("no such domain");
    printf("%llu\n", (unsigned long long)info.cpu_time);
    return 0;
}

static double write_us(struct xs_handle *store, const char *path, int rounds)
{
    double since = now_us();

    for (int round = 0; round < rounds; round++)
        if (!xs_write(store, XBT_NULL, path, "0", 1))
            fail("a write failed");
    return (now_us() - since) / rounds;
}

static double read_us(struct xs_handle *store, const char *path, int rounds)
{
    double since = now_us();

    for (int round = 0; round < rounds; round++)
        free(xs_read(store, XBT_NULL, path, NULL));
    return (now_us() - since) / rounds;
}

static int plain(const char *path, int rounds)
{
    struct xs_handle *store = open_store();
    double written = write_us(store, path, rounds);

    printf("%.0f %.0f\n", written, read_us(store, path, rounds));
    return 0;
}

static void ask(struct xs_handle *store, const char *router, int seq,
                const char *request)
{
    char asked[256], answered[256], piece[256];

    snprintf(asked, sizeof(asked), "%s/request/%d/0", router, seq);
    snprintf(answered, sizeof(answered), "%s/response/%d/0", router, seq);
    snprintf(piece, sizeof(piece), ".%s", request);
    if (!xs_write(store, XBT_NULL, asked, piece, strlen(piece)))
        fail("a request was not taken");
    await_value(store, answered, ".200");
    *strrchr(asked, '/') = *strrchr(answered, '/') = '\0';
    xs_rm(store, XBT_NULL, answered);
    xs_rm(store, XBT_NULL, asked);
}

static int handler(const char *router, int rounds, const char *request)
{
    struct xs_handle *store = open_store();
    char responses[256];
    double since;

    snprintf(responses, sizeof(responses), "%s/response", router);
    if (!xs_watch(store, responses, "answers"))
        fail("no watch");
    since = now_us();
    for (int seq = 1; seq <= rounds; seq++)
        ask(store, router, seq, request);
    printf("%.0f\n", (now_us() - since) / rounds);
    return 0;
}

static int shown(const char *router, int rounds, const char *handler)
{
    struct xs_handle *store = open_store();
    char asked[256], node[256];
    double since;

    snprintf(asked, sizeof(asked), "%s/control/read/%s", router, handler);
    snprintf(node, sizeof(node), "%s/elements/%s", router, handler);
    if (!xs_watch(store, node, "shown"))
        fail("no watch");
    await_event(store, node);
    since = now_us();
    for (int round = 0; round < rounds; round++) {
        if (!xs_write(store, XBT_NULL, asked, "1", 1))
            fail("a write failed");
        while (!await_event(store, node))
            ;
        free(xs_read(store, XBT_NULL, node, NULL));
    }
    printf("%.0f\n", (now_us() - since) / rounds);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && !strcmp(argv[1], "boot"))
        return boot(strtoul(argv[2], NULL, 10), argv[3], argv[4]);
    if (argc == 3 && !strcmp(argv[1], "cpu"))
        return cpu(strtoul(argv[2], NULL, 10));
    if (argc == 4 && !strcmp(argv[1], "store"))
        return plain(argv[2], atoi(argv[3]));
    if (argc == 5 && !strcmp(argv[1], "handler"))
        return handler(argv[2], atoi(argv[3]), argv[4]);
    if (argc == 5 && !strcmp(argv[1], "shown"))
        return shown(argv[2], atoi(argv[3]), argv[4]);
    fail("boot DOMID PATH START | cpu DOMID | store PATH ROUNDS | "
         "handler ROUTER ROUNDS REQUEST | "
         "shown ROUTER ROUNDS ELEMENT/HANDLER");
}
