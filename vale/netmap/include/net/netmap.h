/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structures of netmap's user API, for programs on ports of valed.
 *
 * The names are those of the manual page netmap(4). The layout is our own: programs are compiled
 * against this header and linked with libvale_netmap.
 */
#ifndef VALE_NET_NETMAP_H
#define VALE_NET_NETMAP_H

#include <net/if.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/time.h>
#include <sys/types.h>

#define NETMAP_API 11

/* Flags of a slot. The library ignores NS_BUF_CHANGED and NS_REPORT and refuses the others. */
#define NS_BUF_CHANGED 0x0001
#define NS_REPORT 0x0002
#define NS_FORWARD 0x0004
#define NS_NO_LEARN 0x0008
#define NS_INDIRECT 0x0010
#define NS_MOREFRAG 0x0020

/* One packet. The program may exchange the buffers of two slots of one descriptor. */
struct netmap_slot {
    uint32_t buf_idx;
    uint16_t len;
    uint16_t flags;
    uint64_t ptr; /* unused */
};

#define NR_TIMESTAMP 0x0002
#define NR_FORWARD 0x0004

/* The program owns the slots from head to tail, without tail, and writes head and cur only. */
struct netmap_ring {
    int64_t buf_ofs;      /* from this structure to buffer 0 */
    uint32_t num_slots;
    uint32_t nr_buf_size; /* bytes of a buffer */
    uint16_t ringid;
    uint16_t dir; /* 0: transmit, 1: receive */
    uint32_t head;
    uint32_t cur;
    uint32_t tail;
    uint32_t flags;
    struct timeval ts; /* of the last synchronization of a receive ring */
    struct netmap_slot slot[];
};

/* A port: one transmit ring, one receive ring, no ring of the host. */
struct netmap_if {
    char ni_name[IFNAMSIZ];
    uint32_t ni_version;
    uint32_t ni_flags;
    uint32_t ni_tx_rings;
    uint32_t ni_rx_rings;
    uint32_t ni_bufs_head; /* 0: there are no extra buffers */
    uint32_t ni_spare;
    int64_t ring_ofs[2];   /* from this structure to the rings: transmit, receive */
};

/* The wishes of a program, and the answer in nm_desc.req. */
struct nmreq {
    char nr_name[IFNAMSIZ];
    uint32_t nr_version;
    uint32_t nr_offset;
    uint32_t nr_memsize;
    uint32_t nr_tx_slots; /* the larger of both counts; 0: 1024 */
    uint32_t nr_rx_slots;
    uint16_t nr_tx_rings;
    uint16_t nr_rx_rings;
    uint16_t nr_ringid;
    uint16_t nr_cmd;
    uint16_t nr_arg1;
    uint16_t nr_arg2;
    uint32_t nr_arg3; /* extra buffers: always 0 in the answer */
    uint32_t nr_flags;
    uint32_t spare2[1];
};

#define NETMAP_RING_MASK 0x0fff
#define NETMAP_NO_TX_POLL 0x1000
#define NETMAP_DO_RX_POLL 0x8000

#define NR_REG_MASK 0xf
#define NR_REG_DEFAULT 0
#define NR_REG_ALL_NIC 1
#define NR_REG_SW 2
#define NR_REG_NIC_SW 3
#define NR_REG_ONE_NIC 4

/* The requests of programs since 2018. valed takes them through the functions of libnetmap.h only. */
#define NETMAP_REQ_IFNAMSIZ 64

struct nmreq_header {
    uint16_t nr_version;
    uint16_t nr_reqtype;
    uint32_t nr_reserved;
    char nr_name[NETMAP_REQ_IFNAMSIZ];
    uint64_t nr_options;
    uint64_t nr_body;
};

enum {
    NETMAP_REQ_REGISTER = 1,
    NETMAP_REQ_PORT_INFO_GET,
    NETMAP_REQ_VALE_ATTACH,
    NETMAP_REQ_VALE_DETACH,
    NETMAP_REQ_VALE_LIST,
    NETMAP_REQ_PORT_HDR_SET,
    NETMAP_REQ_PORT_HDR_GET,
    NETMAP_REQ_VALE_NEWIF,
    NETMAP_REQ_VALE_DELIF,
    NETMAP_REQ_VALE_POLLING_ENABLE,
    NETMAP_REQ_VALE_POLLING_DISABLE,
    NETMAP_REQ_POOLS_INFO_GET
};

struct nmreq_register {
    uint64_t nr_offset;
    uint64_t nr_memsize;
    uint32_t nr_tx_slots; /* the larger of both counts; 0: 1024 */
    uint32_t nr_rx_slots;
    uint16_t nr_tx_rings;
    uint16_t nr_rx_rings;
    uint16_t nr_host_tx_rings;
    uint16_t nr_host_rx_rings;
    uint16_t nr_mem_id;
    uint16_t nr_ringid;
    uint32_t nr_mode;
    uint32_t nr_extra_bufs; /* more than 0 are refused */
    uint64_t nr_flags;
};

struct nmreq_port_hdr {
    uint32_t nr_hdr_len;
    uint32_t pad1;
};

#define NR_MONITOR_TX 0x100
#define NR_MONITOR_RX 0x200
#define NR_ZCOPY_MON 0x400
#define NR_EXCLUSIVE 0x800
#define NR_RX_RINGS_ONLY 0x2000
#define NR_TX_RINGS_ONLY 0x4000
#define NR_ACCEPT_VNET_HDR 0x8000
#define NR_DO_RX_POLL 0x10000
#define NR_NO_TX_POLL 0x20000
#define NR_REG_NULL 9

#define NIOCCTRL _IOWR('i', 151, struct nmreq_header)
#define NIOCTXSYNC _IO('i', 148)
#define NIOCRXSYNC _IO('i', 149)

#endif
