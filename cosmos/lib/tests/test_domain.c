/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Domains by libcosmos, on a real Xen host: test_domain IMAGE pv|pvh.
 * Prints one line a check; the exit status is the number that failed.
 */
#define _GNU_SOURCE
#include <cosmos.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>

#define MEMORY_KIB (16 << 10)
#define NUMBER 300      /* and the type: none is given twice in a minute */
#define GONE_LOOKS 500
#define GONE_LOOK_US 10000
#define KEEP_LOCK_US 500
#define CROWD_ROUNDS 3
#define CROWD_LIMIT_S 90

static int failed;

static void check(const char *what, int good, const struct cosmos_error *err)
{
    printf("%s %s%s%s\n", good ? "ok  " : "FAIL", what, good ? "" : ": ",
           good ? "" : err->message);
    failed += !good;
}

static const void *map(const char *path, size_t *bytes)
{
    struct stat st;
    int fd = open(path, O_RDONLY);
    const void *at;

    if (fd < 0 || fstat(fd, &st)) {
        perror(path);
        exit(125);
    }
    *bytes = st.st_size;
    at = mmap(NULL, *bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (at == MAP_FAILED) {
        perror(path);
        exit(125);
    }
    return at;
}

static size_t domains(struct cosmos_ctx *ctx)
{
    struct cosmos_error err;
    struct cosmos_info *list = NULL;
    size_t count = 0;

    check("list", !cosmos_domain_list(ctx, &list, &count, &err), &err);
    free(list);
    return count;
}

/* Refused calls leave nothing. */
static void refusals(struct cosmos_ctx *ctx, const struct cosmos_spec *good)
{
    struct cosmos_error err = { 0 };
    struct cosmos_spec bad = *good;
    struct cosmos_ctx *other;
    uint32_t domid;

    check("another api version is refused",
          cosmos_open(&other, COSMOS_API_VERSION + 1, -1, &err) == COSMOS_INVALID,
          &err);
    bad.image = "no kernel at all";
    bad.image_bytes = strlen(bad.image);
    check("a wrong image is named", cosmos_domain_create(ctx, &bad, &domid,
          &err) == COSMOS_BAD_IMAGE, &err);
    bad = *good;
    bad.memory_kib = 1u << 30;
    check("too much memory is named", cosmos_domain_create(ctx, &bad, &domid,
          &err) == COSMOS_NO_MEMORY, &err);
    bad = *good;
    bad.name = "";
    check("a name is needed", cosmos_domain_create(ctx, &bad, &domid, &err) ==
          COSMOS_INVALID, &err);
    check("an unknown domain is not found", cosmos_domain_unpause(ctx, 32000,
          &err) == COSMOS_NOT_FOUND, &err);
    check("dom0 is none of ours", cosmos_domain_destroy(ctx, 0, &err) ==
          COSMOS_NOT_FOUND, &err);
}

/* Others, as xenconsoled, let go of a destroyed domain a little later. */
static int gone(struct cosmos_ctx *ctx, uint32_t domid)
{
    struct cosmos_info info;
    int i, rc = COSMOS_OK;

    for (i = 0; i < GONE_LOOKS && !rc; i++) {
        rc = cosmos_domain_info(ctx, domid, &info, NULL);
        usleep(GONE_LOOK_US);
    }
    return rc == COSMOS_NOT_FOUND;
}

static void life(struct cosmos_ctx *ctx, const struct cosmos_spec *spec)
{
    struct cosmos_error err = { 0 };
    struct cosmos_events *events = NULL;
    struct cosmos_info info;
    struct cosmos_vale vale = { .devid = 1, .mtu = 1500, .slots = 64 };
    uint32_t domid = COSMOS_NO_DOMAIN, again;

    check("events open", !cosmos_events_open(&events, &err), &err);
    check("the watch's first event", !cosmos_events_next(events, 5000, &err),
          &err);
    check("create", !cosmos_domain_create(ctx, spec, &domid, &err), &err);
    check("it is paused", !cosmos_domain_info(ctx, domid, &info, &err) &&
          info.state == COSMOS_PAUSED && !strcmp(info.name, spec->name) &&
          !memcmp(info.uuid, spec->uuid, sizeof(info.uuid)), &err);
    check("its name is taken", cosmos_domain_create(ctx, spec, &again, &err)
          == COSMOS_EXISTS, &err);
    check("rename", !cosmos_domain_rename(ctx, domid, "renamed", &err), &err);
    check("pin", !cosmos_domain_pin(ctx, domid, 0, &err), &err);
    check("share", !cosmos_domain_share(ctx, domid, 512, 50, &err), &err);
    check("vale vif", !cosmos_vale_add(ctx, domid, &vale, &err), &err);
    check("a vif twice", cosmos_vale_add(ctx, domid, &vale, &err) ==
          COSMOS_EXISTS, &err);
    check("unpause", !cosmos_domain_unpause(ctx, domid, &err), &err);
    check("pause", !cosmos_domain_pause(ctx, domid, &err), &err);
    check("no vif any more", !cosmos_vale_remove(ctx, domid, 1, &err), &err);
    check("destroy", !cosmos_domain_destroy(ctx, domid, &err), &err);
    check("an event of it", !cosmos_events_next(events, 5000, &err), &err);
    check("it goes", gone(ctx, domid), &err);
    cosmos_events_close(events);
}

static _Thread_local bool dawdles;
static atomic_bool enough;

/* In place of the C library's: some threads keep each lock for a while. */
int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    int (*unlock)(pthread_mutex_t *) = dlsym(RTLD_NEXT, __func__);

    if (dawdles)
        usleep(KEEP_LOCK_US);
    return unlock(mutex);
}

static void *ask(void *ctx)
{
    struct cosmos_info *list;
    size_t count;

    dawdles = true;
    while (!enough) {
        list = NULL;
        cosmos_domain_peek_all(ctx, &list, &count, NULL);
        free(list);
    }
    return NULL;
}

/* A child that libxl forks while others ask must not wait for a lock that
 * they hold. The alarm ends a destruction that does. */
static void crowd(struct cosmos_ctx *ctx, const struct cosmos_spec *spec)
{
    struct cosmos_error err = { 0 };
    pthread_t other;
    uint32_t domid;
    int i;

    if (pthread_create(&other, NULL, ask, ctx)) {
        check("a thread", 0, &err);
        return;
    }
    alarm(CROWD_LIMIT_S);
    for (i = 0; i < CROWD_ROUNDS; i++) {
        check("create beside others that ask",
              !cosmos_domain_create(ctx, spec, &domid, &err), &err);
        check("destroy beside them", !cosmos_domain_destroy(ctx, domid, &err),
              &err);
        check("it is gone", gone(ctx, domid), &err);
    }
    alarm(0);
    enough = true;
    pthread_join(other, NULL);
}

/* The caller may number a domain. */
static void numbered(struct cosmos_ctx *ctx, const struct cosmos_spec *spec)
{
    struct cosmos_error err = { 0 };
    struct cosmos_spec given = *spec;
    struct cosmos_info info;
    uint32_t domid;

    given.domid = NUMBER + spec->type;
    given.name = "numbered";
    check("create with a number", !cosmos_domain_create(ctx, &given, &domid,
          &err) && domid == given.domid, &err);
    check("it has number and name", !cosmos_domain_info(ctx, domid, &info,
          &err) && !strcmp(info.name, given.name), &err);
    check("destroy it", !cosmos_domain_destroy(ctx, domid, &err), &err);
    check("it is gone", gone(ctx, domid), &err);
}

/* Kernel and RAM disk as files; any bytes are a RAM disk. */
static void from_files(struct cosmos_ctx *ctx, const struct cosmos_spec *spec,
                       const char *path)
{
    struct cosmos_error err = { 0 };
    struct cosmos_files files = { .kernel = open(path, O_RDONLY),
                                  .ramdisk = open(path, O_RDONLY) };
    struct cosmos_spec given = *spec;
    uint32_t domid;

    given.image = NULL;
    given.image_bytes = 0;
    given.files = &files;
    given.name = "from-files";
    check("create from files", !cosmos_domain_create(ctx, &given, &domid,
          &err), &err);
    check("destroy it", !cosmos_domain_destroy(ctx, domid, &err), &err);
    check("it is gone", gone(ctx, domid), &err);
    close(files.kernel);
    close(files.ramdisk);
    files.kernel = -1;
    check("files without a kernel", cosmos_domain_create(ctx, &given, &domid,
          &err) == COSMOS_INVALID, &err);
}

int main(int argc, char **argv)
{
    struct cosmos_spec spec = { .domid = COSMOS_NO_DOMAIN,
                                .name = "test-domain", .uuid = { 1, 2, 3 },
                                .memory_kib = MEMORY_KIB };
    struct cosmos_error err = { 0 };
    struct cosmos_ctx *ctx = NULL;
    size_t before;

    if (argc != 3) {
        fprintf(stderr, "usage: test_domain IMAGE pv|pvh\n");
        return 125;
    }
    spec.image = map(argv[1], &spec.image_bytes);
    spec.type = strcmp(argv[2], "pvh") ? COSMOS_PV : COSMOS_PVH;
    check("open", !cosmos_open(&ctx, COSMOS_API_VERSION, -1, &err), &err);
    if (!ctx)
        return failed;
    before = domains(ctx);
    refusals(ctx, &spec);
    life(ctx, &spec);
    numbered(ctx, &spec);
    from_files(ctx, &spec, argv[1]);
    crowd(ctx, &spec);
    check("nothing is left", domains(ctx) == before, &err);
    cosmos_close(ctx);
    return failed;
}
