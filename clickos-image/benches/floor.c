/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this machine allows on one core: the least that forwarding, rewriting
 * and looking up a packet can cost. Prints "name<TAB>nanoseconds" lines.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define SLOT_BYTES 2048
#define BATCH 32
#define REPEATS 5
#define KEEP(x) __asm__ volatile("" :: "r"(x) : "memory")

struct slot {
    uint32_t buffer;
    uint16_t length, flags;
};

struct key {
    uint32_t source, destination;
    uint16_t source_port, port;
    uint32_t protocol;
};

struct entry {                      /* one cache line */
    struct key key;
    uint32_t value, hits, rest[10];
};

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double median(double *values, int n)
{
    qsort(values, n, sizeof(*values), by_size);
    return values[n / 2];
}

static void *pages(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED) {
        perror("floor: mmap");
        exit(1);
    }
    madvise(p, bytes, MADV_HUGEPAGE);
    memset(p, 1, bytes);
    return p;
}

static struct slot *new_ring(int slots, int length)
{
    struct slot *ring = pages(slots * sizeof(*ring));
    int i;

    for (i = 0; i < slots; i++)
        ring[i] = (struct slot){ .buffer = i, .length = length };
    return ring;
}

static void copy_round(uint8_t *to, const uint8_t *from, struct slot *out,
                       const struct slot *in, int slots)
{
    int i;

    for (i = 0; i < slots; i++) {
        uint8_t *t = to + (size_t)out[i].buffer * SLOT_BYTES;
        const uint8_t *f = from + (size_t)in[i].buffer * SLOT_BYTES;

        if (in[i].length == 64)
            memcpy(t, f, 64);
        else
            memcpy(t, f, in[i].length);
        out[i].length = in[i].length;
        KEEP(t);
    }
}

static void ring_copy(int length, int slots)
{
    uint8_t *from = pages((size_t)slots * SLOT_BYTES);
    uint8_t *to = pages((size_t)slots * SLOT_BYTES);
    struct slot *in = new_ring(slots, length), *out = new_ring(slots, length);
    long packets = 1280000000L / (length < 64 ? 64 : length), n;
    double ns[REPEATS], start;
    int r;

    for (r = 0; r < REPEATS; r++) {
        start = now_s();
        for (n = 0; n < packets; n += slots)
            copy_round(to, from, out, in, slots);
        ns[r] = (now_s() - start) / n * 1e9;
    }
    printf("ring copy %d B, %d slots\t%.2f\n", length, slots,
           median(ns, REPEATS));
    munmap(from, (size_t)slots * SLOT_BYTES);
    munmap(to, (size_t)slots * SLOT_BYTES);
    munmap(in, slots * sizeof(*in));
    munmap(out, slots * sizeof(*out));
}

/* TTL minus one, with the checksum updated (RFC 1624). */
static void forward(uint8_t *ip)
{
    uint16_t checksum;
    uint32_t sum;

    ip[8]--;
    memcpy(&checksum, ip + 10, sizeof(checksum));
    sum = (uint32_t)checksum + 1;
    checksum = sum + (sum >> 16);
    memcpy(ip + 10, &checksum, sizeof(checksum));
}

static uint16_t full_checksum(const uint8_t *ip)
{
    uint32_t words[5];
    uint64_t sum = 0;
    int i;

    memcpy(words, ip, sizeof(words));
    for (i = 0; i < 5; i++)
        sum += words[i];
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return ~sum;
}

static void rewrite(int slots, int check)
{
    uint8_t *packets = pages((size_t)slots * SLOT_BYTES), *ip;
    double ns[REPEATS], start;
    int r, i;
    long n;

    for (r = 0; r < REPEATS; r++) {
        start = now_s();
        for (n = 0; n < 20000000; n += slots)
            for (i = 0; i < slots; i++) {
                ip = packets + (size_t)i * SLOT_BYTES + 14;
                if (check)
                    KEEP((uint32_t)full_checksum(ip));
                else
                    forward(ip);
                KEEP(ip);
            }
        ns[r] = (now_s() - start) / n * 1e9;
    }
    printf("%s, %d slots\t%.2f\n", check ? "IP checksum" : "TTL and checksum",
           slots, median(ns, REPEATS));
    munmap(packets, (size_t)slots * SLOT_BYTES);
}

static uint64_t hash(const struct key *k)
{
    uint64_t a = (uint64_t)k->source << 32 | k->destination;
    uint64_t b = (uint64_t)k->source_port << 48 | (uint64_t)k->port << 32
                 | k->protocol;

    a *= 0x9e3779b97f4a7c15ull;
    a = (a ^ a >> 32) + b;
    a *= 0xd6e8feb86659fd93ull;
    return a ^ a >> 32;
}

static uint32_t find(struct entry *table, long h, long mask,
                     const struct key *k)
{
    while (memcmp(&table[h].key, k, sizeof(*k)))
        h = (h + 1) & mask;
    table[h].hits++;
    return table[h].value;
}

static void insert(struct entry *table, long mask, const struct key *k)
{
    long h = hash(k) & mask;

    while (table[h].key.protocol)
        h = (h + 1) & mask;
    table[h].key = *k;
}

static void shuffle(struct key *keys, long n)
{
    uint64_t x = 88172645463325252ull;
    struct key k;
    long i, j;

    for (i = n - 1; i > 0; i--) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        j = x % (i + 1);
        k = keys[i];
        keys[i] = keys[j];
        keys[j] = k;
    }
}

static void find_all(struct entry *table, long mask, const struct key *keys,
                     long n, int batch)
{
    long at[BATCH], i;
    int j;

    for (i = 0; i + batch <= n; i += batch) {
        for (j = 0; j < batch; j++) {
            at[j] = hash(&keys[i + j]) & mask;
            __builtin_prefetch(&table[at[j]]);
        }
        for (j = 0; j < batch; j++)
            KEEP(find(table, at[j], mask, &keys[i + j]));
    }
}

static void lookups(long n)
{
    struct key *keys = pages(n * sizeof(*keys));
    double ns[REPEATS], start;
    struct entry *table;
    long size = BATCH, i, rounds = n < 100000 ? 4000000 / n : 2;
    int r, batch;

    while (size < 2 * n)
        size <<= 1;
    table = pages(size * sizeof(*table));
    memset(table, 0, size * sizeof(*table));
    for (i = 0; i < n; i++) {
        keys[i] = (struct key){ 0x0a000000 + i % 65536,
                                0x02000000 + (i * 2654435761u & 0xffff),
                                1024 + (i >> 16), 53, 17 };
        insert(table, size - 1, &keys[i]);
    }
    shuffle(keys, n);
    for (batch = 1; batch <= BATCH && batch <= n; batch += BATCH - 1) {
        for (r = 0; r < REPEATS; r++) {
            start = now_s();
            for (i = 0; i < rounds; i++)
                find_all(table, size - 1, keys, n, batch);
            ns[r] = (now_s() - start) / rounds / n * 1e9;
        }
        printf("flow found among %ld, batch %d\t%.2f\n", n, batch,
               median(ns, REPEATS));
    }
    munmap(keys, n * sizeof(*keys));
    munmap(table, size * sizeof(*table));
}

int main(void)
{
    ring_copy(64, 32);
    ring_copy(64, 256);
    ring_copy(64, 32768);
    ring_copy(1500, 256);
    rewrite(256, 0);
    rewrite(256, 1);
    lookups(1);
    lookups(10000);
    lookups(1048576);
    return 0;
}
