/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the copies of the patched netback on a page between two others, which
 * must not be touched. The test cuts the functions out of the patch and writes
 * them into copies.c. The names of the kernel that they use are below.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define XEN_PAGE_SIZE 4096UL
/* The largest headroom that fits into its key, and a packet behind it. */
#define LAST_OFFSET (0x7fff + 4096)
#define MOST 0x20000

typedef uint32_t grant_ref_t;
typedef uint16_t grant_handle_t;
struct list_head { struct list_head *next, *prev; };
struct page { char *bytes; };
struct xarray { void *only; };
struct xenvif { struct { struct xarray pages; } staging; };

static void *xa_load(struct xarray *pages, unsigned long ref)
{
    return ref == 7 ? pages->only : NULL;
}

static void *page_address(const struct page *page)
{
    return page->bytes;
}

#define rcu_read_lock()
#define rcu_read_unlock()

#include "copies.c"

static struct page page;
static struct xenvif_staged staged = { .page = &page };
static struct xenvif vif = { .staging.pages.only = &staged };
static char xs[XEN_PAGE_SIZE], ys[XEN_PAGE_SIZE], packet[MOST];
static unsigned long tried;

/* True if a page has what is new in one place, and what is old elsewhere. */
static bool is_changed(const char *bytes, size_t begin, size_t count,
                       const char *new, const char *old)
{
    size_t end = begin + count;

    return !memcmp(bytes, old, begin) &&
           !memcmp(bytes + begin, new, count) &&
           !memcmp(bytes + end, old, XEN_PAGE_SIZE - end);
}

/* Both directions; the sum is one of integers of any size. */
static bool is_right(size_t offset, size_t len)
{
    bool fits = (unsigned __int128)offset + len <= XEN_PAGE_SIZE;
    size_t begin = fits ? offset : 0, count = fits ? len : 0;
    bool is_good;

    tried++;
    /* The page has only x, the packet only y. */
    is_good = xenvif_staging_write(&vif, 7, offset, packet, len) == fits &&
              is_changed(page.bytes, begin, count, ys, xs);
    memset(page.bytes + begin, 'x', count);
    is_good = is_good &&
              xenvif_staging_read(&vif, 7, offset, packet, len) == fits &&
              is_changed(packet, 0, count, xs, ys);
    memset(packet, 'y', count);
    staged.readonly = true;
    is_good = is_good && !xenvif_staging_write(&vif, 7, offset, packet, len);
    staged.readonly = false;
    return is_good && !xenvif_staging_write(&vif, 8, offset, packet, len) &&
           !xenvif_staging_read(&vif, 8, offset, packet, len) &&
           is_changed(page.bytes, 0, 0, xs, xs);
}

static bool are_right(size_t offset)
{
    const size_t room = XEN_PAGE_SIZE - offset;     /* may wrap */
    const size_t lengths[] = {
        0, 1, room - 1, room, room + 1, XEN_PAGE_SIZE - 1, XEN_PAGE_SIZE,
        XEN_PAGE_SIZE + 1, 0x7fff, 0xffff, INT32_MAX, UINT32_MAX,
        UINT32_MAX - offset, UINT32_MAX - offset + 2, SIZE_MAX,
        SIZE_MAX - offset, SIZE_MAX - offset + 2, SIZE_MAX / 2,
    };
    size_t i;

    for (i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
        if (!is_right(offset, lengths[i])) {
            printf("offset %zu, %zu bytes\n", offset, lengths[i]);
            return false;
        }
    return true;
}

int main(void)
{
    static const size_t offsets[] = {
        0, 1, 256, 2048, 4095, 4096, 4097, 0x7fff, 0xffff, UINT32_MAX,
        SIZE_MAX - 1, SIZE_MAX,
    };
    char *memory = mmap(NULL, 3 * XEN_PAGE_SIZE, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t i, len;

    page.bytes = memory + XEN_PAGE_SIZE;
    if (memory == MAP_FAILED ||
        mprotect(page.bytes, XEN_PAGE_SIZE, PROT_READ | PROT_WRITE)) {
        perror("memory");
        return 1;
    }
    memset(xs, 'x', sizeof(xs));
    memset(ys, 'y', sizeof(ys));
    memset(page.bytes, 'x', XEN_PAGE_SIZE);
    memset(packet, 'y', sizeof(packet));
    for (i = 0; i <= LAST_OFFSET; i++)
        if (!are_right(i))
            return 1;
    for (i = 0; i < sizeof(offsets) / sizeof(*offsets); i++) {
        if (!are_right(offsets[i]))
            return 1;
        for (len = 0; len <= XEN_PAGE_SIZE + 1; len++)
            if (!is_right(offsets[i], len)) {
                printf("offset %zu, %zu bytes\n", offsets[i], len);
                return 1;
            }
    }
    printf("%lu\n", tried);
    return 0;
}
