/* SPDX-License-Identifier: Apache-2.0
 *
 * Traffic of a Linux guest in the lab, and its network device's settings.
 *
 * - guest-net send DEVICE MAC_FROM MAC_TO LENGTH COUNT BURST PAUSE_US
 *       sends BURST frames in a system call, then pauses; prints the seconds
 * - guest-net sink PORT
 *       takes TCP streams, one after the other, and drops them
 * - guest-net stream ADDRESS PORT BYTES
 *       sends a TCP stream; prints the seconds until the sink has closed it
 * - guest-net counters DEVICE
 *       the names and values of `ethtool -S`
 * - guest-net plain DEVICE
 *       no offload to the device of what it sends
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LONGEST 1514
#define MOST 256		/* frames in a system call */
#define PIECE (64 << 10)

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec / 1e9;
}

static void mac(const char *text, unsigned char *bytes)
{
    if (sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", bytes, bytes + 1,
               bytes + 2, bytes + 3, bytes + 4, bytes + 5) != 6)
        fail(text);
}

static unsigned short sum(const unsigned char *bytes, int length)
{
    unsigned int all = 0;

    for (int at = 0; at < length; at += 2)
        all += bytes[at] << 8 | bytes[at + 1];
    while (all >> 16)
        all = (all & 0xffff) + (all >> 16);
    return htons(~all);
}

/* A UDP datagram without a checksum, as pktgen makes it. */
static void fill(unsigned char *frame, int length)
{
    int size = length - ETH_HLEN;
    struct iphdr ip = {
        .version = 4, .ihl = 5, .tot_len = htons(size), .ttl = 32,
        .protocol = IPPROTO_UDP, .saddr = inet_addr("198.18.0.1"),
        .daddr = inet_addr("198.18.0.2") };
    struct udphdr udp = {
        .source = htons(9), .dest = htons(9),
        .len = htons(size - sizeof(ip)) };

    ip.check = sum((unsigned char *)&ip, sizeof(ip));
    frame[12] = ETH_P_IP >> 8;
    memcpy(frame + ETH_HLEN, &ip, sizeof(ip));
    memcpy(frame + ETH_HLEN + sizeof(ip), &udp, sizeof(udp));
}

static int packet_socket(const char *device)
{
    struct sockaddr_ll to = {
        .sll_family = AF_PACKET, .sll_ifindex = if_nametoindex(device) };
    int fd = socket(AF_PACKET, SOCK_RAW, 0);	/* 0: it receives nothing */

    if (fd < 0 || bind(fd, (struct sockaddr *)&to, sizeof(to)))
        fail(device);
    return fd;
}

/* Sends this many frames; the kernel blocks while the device is full. */
static void send_all(int fd, struct mmsghdr *frames, int count)
{
    while (count) {
        int sent = sendmmsg(fd, frames, count, 0);

        if (sent < 0 && errno != ENOBUFS && errno != EINTR)
            fail("sendmmsg");
        if (sent < 0)
            usleep(100);
        else
            count -= sent;
    }
}

/* Waits until the driver has given all buffers back, for a second at most. */
static void await_sent(int fd)
{
    for (int round = 0, left = 1; left && round < 1000; round++) {
        if (ioctl(fd, SIOCOUTQ, &left))
            fail("SIOCOUTQ");
        if (left)
            usleep(1000);
    }
}

static int send_frames(char **argv)
{
    unsigned char frame[LONGEST] = { 0 };
    struct iovec piece = { .iov_base = frame, .iov_len = atoi(argv[3]) };
    struct mmsghdr frames[MOST] = { 0 };
    int left = atoi(argv[4]), burst = atoi(argv[5]), pause_us = atoi(argv[6]);
    int fd = packet_socket(argv[0]);
    double since = now_s();

    if (piece.iov_len < 60 || piece.iov_len > LONGEST || burst < 1 ||
        burst > MOST)
        fail("LENGTH or BURST");
    fill(frame, piece.iov_len);
    mac(argv[2], frame);
    mac(argv[1], frame + ETH_ALEN);
    for (int i = 0; i < burst; i++) {
        frames[i].msg_hdr.msg_iov = &piece;
        frames[i].msg_hdr.msg_iovlen = 1;
    }
    for (; left > 0; left -= burst) {
        send_all(fd, frames, left < burst ? left : burst);
        if (pause_us)
            usleep(pause_us);
    }
    printf("%.9f\n", now_s() - since);
    await_sent(fd);
    return 0;
}

static int tcp_socket(const char *address, const char *port,
                      struct sockaddr_in *at)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    *at = (struct sockaddr_in) {
        .sin_family = AF_INET, .sin_port = htons(atoi(port)),
        .sin_addr.s_addr = inet_addr(address) };
    if (fd < 0)
        fail("socket");
    return fd;
}

static void __attribute__((noreturn)) sink(const char *port)
{
    static char piece[PIECE];
    struct sockaddr_in at;
    int fd = tcp_socket("0.0.0.0", port, &at);

    if (bind(fd, (struct sockaddr *)&at, sizeof(at)) || listen(fd, 1))
        fail("bind");
    for (;;) {
        int stream = accept(fd, NULL, NULL);

        if (stream < 0)
            fail("accept");
        while (read(stream, piece, sizeof(piece)) > 0)
            ;
        close(stream);
    }
}

static int stream(const char *address, const char *port, long left)
{
    static char piece[PIECE];
    struct sockaddr_in to;
    int fd = tcp_socket(address, port, &to);
    double since = now_s();

    if (connect(fd, (struct sockaddr *)&to, sizeof(to)))
        fail(address);
    while (left > 0) {
        long done = write(fd, piece, left < PIECE ? left : PIECE);

        if (done < 0)
            fail("write");
        left -= done;
    }
    shutdown(fd, SHUT_WR);
    if (read(fd, piece, 1) < 0)
        fail("read");
    printf("%.9f\n", now_s() - since);
    return 0;
}

static int ethtool(const char *device, void *command)
{
    struct ifreq request = { .ifr_data = command };
    int fd = socket(AF_INET, SOCK_DGRAM, 0), rc;

    strncpy(request.ifr_name, device, IFNAMSIZ - 1);
    rc = ioctl(fd, SIOCETHTOOL, &request);
    close(fd);
    return rc;
}

static int counters(const char *device)
{
    struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
    struct ethtool_gstrings *names;
    struct ethtool_stats *values;

    if (ethtool(device, &info))
        fail("ETHTOOL_GDRVINFO");
    names = calloc(1, sizeof(*names) + info.n_stats * ETH_GSTRING_LEN);
    values = calloc(1, sizeof(*values) + info.n_stats * 8);
    if (!names || !values)
        fail("calloc");
    names->cmd = ETHTOOL_GSTRINGS;
    names->string_set = ETH_SS_STATS;
    values->cmd = ETHTOOL_GSTATS;
    names->len = values->n_stats = info.n_stats;
    if (ethtool(device, names) || ethtool(device, values))
        fail("ETHTOOL_GSTATS");
    for (unsigned int i = 0; i < info.n_stats; i++)
        printf("%.*s %llu\n", ETH_GSTRING_LEN,
               (char *)names->data + i * ETH_GSTRING_LEN, values->data[i]);
    return 0;
}

static int plain(const char *device)
{
    const unsigned int commands[] = {
        ETHTOOL_SGSO, ETHTOOL_STSO, ETHTOOL_SSG, ETHTOOL_STXCSUM };

    for (unsigned int i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
        struct ethtool_value value = { .cmd = commands[i], .data = 0 };

        if (ethtool(device, &value) && errno != EOPNOTSUPP)
            fail(device);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 9 && !strcmp(argv[1], "send"))
        return send_frames(argv + 2);
    if (argc == 3 && !strcmp(argv[1], "sink"))
        sink(argv[2]);
    if (argc == 5 && !strcmp(argv[1], "stream"))
        return stream(argv[2], argv[3], atol(argv[4]));
    if (argc == 3 && !strcmp(argv[1], "counters"))
        return counters(argv[2]);
    if (argc == 3 && !strcmp(argv[1], "plain"))
        return plain(argv[2]);
    fprintf(stderr, "guest-net: send DEVICE MAC_FROM MAC_TO LENGTH COUNT "
            "BURST PAUSE_US | sink PORT | stream ADDRESS PORT BYTES | "
            "counters DEVICE | plain DEVICE\n");
    return 2;
}
