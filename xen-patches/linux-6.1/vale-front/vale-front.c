// SPDX-License-Identifier: GPL-2.0-only
/*
 * Network device of a Xen guest whose rings a VALE switch serves
 * (docs/rings.md). The guest grants a region of each queue for as long as the
 * device is connected. Each side copies every frame: no grant changes per
 * packet.
 *
 * The device is a "vale", or a "vif" whose netback leaves its rings to the
 * switch. The handshake is the same.
 *
 * The switch is not trusted: the driver checks indices and descriptors, and
 * keeps its own indices in private memory.
 */
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/interrupt.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <linux/vmalloc.h>
#include <net/ip.h>
#include <xen/events.h>
#include <xen/grant_table.h>
#include <xen/page.h>
#include <xen/xen.h>
#include <xen/xenbus.h>

#define VALE_BUFFER	2048
#define VALE_MIN_SLOTS	64
#define VALE_MAX_SLOTS	2048
#define VALE_MAX_MTU	9000
#define VALE_SHORT_MTU	1900		/* its frames take one slot each */
#define VALE_QUEUES	4
#define VALE_WAIT	(10 * HZ)	/* for the features of a vif */
#define VALE_MAGIC	"VALERING"
#define VALE_CHECKSUMS	1		/* features */
#define VALE_SEGMENTS	2
#define VALE_LONG	4
#define VALE_NEEDS_CSUM	1		/* the flag of a frame */
#define VALE_SEGMENT_SHIFT 1		/* above it: the size of a segment */
#define VALE_LEAST_SEGMENT 256
#define VALE_MOST_SEGMENT 2047
#define VALE_MOST_LONG_SEGMENT 9000
#define VALE_LONG_SLOTS	5		/* of a long frame */
#define VALE_LONGEST	U16_MAX		/* bytes of a frame */
#define VALE_HEADERS	256		/* linear bytes of a long frame */
#define VALE_PER_PAGE	(XEN_PAGE_SIZE / sizeof(u32))
#define VALE_SUM_FEATURES (NETIF_F_SG | NETIF_F_IP_CSUM | NETIF_F_IPV6_CSUM | \
			   NETIF_F_RXCSUM)
#define VALE_GSO_FEATURES (NETIF_F_TSO | NETIF_F_TSO6 | NETIF_F_TSO_ECN | \
			   NETIF_F_GSO_UDP_L4)

static unsigned int vale_queues;
module_param_named(queues, vale_queues, uint, 0644);
MODULE_PARM_DESC(queues, "most queues of a device; 0: one for each processor");

/* One side's words for the other; next is its head or tail. */
struct vale_line {
	__le32 next;
	__le32 cur;
	__le32 need_kick;
};

struct vale_header {
	char magic[8];
	__le32 version;
	__le32 slots;
	__le32 buffer;
	__le32 region;
	__le32 offered;		/* features of the guest */
	__le32 accepted;	/* those of them that the switch has */
	u8 pad[0x100 - 32];
	struct vale_line tx_guest;
	u8 pad1[0x80 - 12];
	struct vale_line tx_switch;
	u8 pad2[0x80 - 12];
	struct vale_line rx_guest;
	u8 pad3[0x80 - 12];
	struct vale_line rx_switch;
};

/* Each queue counts these; one context at a time writes each. */
enum vale_count {
	VALE_TX_PACKETS,
	VALE_TX_BYTES,
	VALE_TX_DROPPED,
	VALE_TX_STOPPED,	/* no slot was free */
	VALE_TX_NOTIFIED,	/* events to the switch */
	VALE_TX_REFUSED,	/* indices of the switch */
	VALE_TX_CSUM_PARTIAL,	/* checksums left to the switch */
	VALE_TX_SEGMENTED,	/* frames for the switch to cut */
	VALE_RX_PACKETS,
	VALE_RX_BYTES,
	VALE_RX_DROPPED,
	VALE_RX_NOTIFIED,
	VALE_RX_REFUSED,	/* indices, descriptors, flags of the switch */
	VALE_RX_CSUM_PARTIAL,	/* checksums left to us */
	VALE_RX_SEGMENTED,	/* frames for us to cut */
	VALE_INTERRUPTS,	/* events from the switch, of both rings */
	VALE_COUNTS
};

/* With the number of the queue. The interrupts of all queues follow. */
static const char vale_count_names[VALE_INTERRUPTS][ETH_GSTRING_LEN] = {
	[VALE_TX_PACKETS]	= "tx_queue_%u_packets",
	[VALE_TX_BYTES]		= "tx_queue_%u_bytes",
	[VALE_TX_DROPPED]	= "tx_queue_%u_dropped",
	[VALE_TX_STOPPED]	= "tx_queue_%u_stopped",
	[VALE_TX_NOTIFIED]	= "tx_queue_%u_notified",
	[VALE_TX_REFUSED]	= "tx_queue_%u_refused",
	[VALE_TX_CSUM_PARTIAL]	= "tx_queue_%u_csum_partial",
	[VALE_TX_SEGMENTED]	= "tx_queue_%u_segmented",
	[VALE_RX_PACKETS]	= "rx_queue_%u_packets",
	[VALE_RX_BYTES]		= "rx_queue_%u_bytes",
	[VALE_RX_DROPPED]	= "rx_queue_%u_dropped",
	[VALE_RX_NOTIFIED]	= "rx_queue_%u_notified",
	[VALE_RX_REFUSED]	= "rx_queue_%u_refused",
	[VALE_RX_CSUM_PARTIAL]	= "rx_queue_%u_csum_partial",
	[VALE_RX_SEGMENTED]	= "rx_queue_%u_segmented",
};

struct vale_dev;

/* A pair of rings. */
struct vale_queue {
	struct vale_dev *vale;
	u32 number;
	char name[IFNAMSIZ + 8];	/* of the interrupt */
	struct napi_struct napi;
	struct vale_header *region;	/* NULL: not connected */
	__le64 *tx_desc;
	__le64 *rx_desc;
	u32 tx_head, tx_tail;
	u32 rx_head, rx_tail;
	u32 *dir;
	grant_ref_t *refs;		/* dir_pages, then pages */
	evtchn_port_t evtchn;
	int irq;
	unsigned long counts[VALE_COUNTS];
};

/* The device has real_num_tx_queues of the queues. */
struct vale_dev {
	struct xenbus_device *xdev;
	struct net_device *net;
	u32 slots;
	u32 features;			/* accepted by the switch */
	u32 tx_offset, rx_offset;	/* of the first buffers in a region */
	u32 pages, dir_pages;
	struct vale_queue queues[VALE_QUEUES];
};

static u32 vale_between(const struct vale_dev *vale, u32 from, u32 to)
{
	return (to - from) & (vale->slots - 1);
}

static u64 vale_own(u32 first, u32 slot)
{
	return first + slot * VALE_BUFFER;
}

/* Slots of a frame. */
static u32 vale_slots(u32 length)
{
	return DIV_ROUND_UP(length, VALE_BUFFER);
}

/* True if a frame may take several slots. */
static bool vale_has_spans(const struct vale_dev *vale)
{
	return vale->features & (VALE_SEGMENTS | VALE_LONG);
}

/* Bytes of the longest frame that is not to be segmented. */
static u32 vale_longest_whole(const struct vale_dev *vale)
{
	return vale->features & VALE_LONG ? VALE_LONG_SLOTS * VALE_BUFFER :
					    VALE_BUFFER;
}

static u16 vale_most_segment(const struct vale_dev *vale)
{
	return vale->features & VALE_LONG ? VALE_MOST_LONG_SEGMENT :
					    VALE_MOST_SEGMENT;
}

/* Slots of the longest frame: a frame and what it passes over are less than half a ring. */
static u32 vale_most_slots(const struct vale_dev *vale)
{
	return min_t(u32, vale_slots(VALE_LONGEST), vale->slots / 4);
}

static u32 vale_longest(const struct vale_dev *vale)
{
	return min_t(u32, VALE_LONGEST, vale_most_slots(vale) * VALE_BUFFER);
}

/* Takes the peer's index if it moved forward within what we gave it. */
static u32 vale_peer(struct vale_queue *queue, struct vale_line *line, u32 seen,
		     u32 limit, enum vale_count refused)
{
	struct vale_dev *vale = queue->vale;
	u32 next;

	/* Before the descriptors and frames that the index covers. */
	next = smp_load_acquire((u32 __force *)&line->next);
	next = le32_to_cpu((__force __le32)next);
	if (next < vale->slots &&
	    vale_between(vale, seen, next) <= vale_between(vale, seen, limit))
		return next;
	queue->counts[refused]++;
	return seen;
}

static void vale_publish(struct vale_queue *queue, struct vale_line *own,
			 struct vale_line *peer, u32 next,
			 enum vale_count notified)
{
	/* After the descriptors and frames that the index covers. */
	smp_store_release((u32 __force *)&own->next,
			  (__force u32)cpu_to_le32(next));
	smp_mb();	/* the index before the peer's wish */
	if (READ_ONCE(peer->need_kick) == cpu_to_le32(1)) {
		WRITE_ONCE(peer->need_kick, 0);
		queue->counts[notified]++;
		notify_remote_via_evtchn(queue->evtchn);
	}
}

static void vale_sleep(struct vale_line *own, u32 cur)
{
	WRITE_ONCE(own->cur, cpu_to_le32(cur));
	WRITE_ONCE(own->need_kick, cpu_to_le32(1));
	smp_mb();	/* the request before the last look */
}

static u32 vale_tx_free(struct vale_queue *queue)
{
	struct vale_dev *vale = queue->vale;
	/* The switch gives slots up to the one before our head. */
	u32 limit = (queue->tx_head - 1) & (vale->slots - 1);

	queue->tx_tail = vale_peer(queue, &queue->region->tx_switch,
				   queue->tx_tail, limit, VALE_TX_REFUSED);
	return vale_between(vale, queue->tx_head, queue->tx_tail);
}

/* True if the ring takes any frame. */
static bool vale_tx_has_room(struct vale_queue *queue)
{
	struct vale_dev *vale = queue->vale;
	u32 need = vale_has_spans(vale) ? 2 * vale_most_slots(vale) - 1 : 1;

	return vale_tx_free(queue) >= need;
}

/*
 * Asks for an event when half of the ring is free: a guest that wakes up pays
 * for more than a hundred frames. Returns true if it is free already.
 */
static bool vale_tx_wait(struct vale_queue *queue)
{
	struct vale_dev *vale = queue->vale;
	u32 half = vale->slots / 2;

	vale_sleep(&queue->region->tx_guest,
		   (queue->tx_head + half - 1) & (vale->slots - 1));
	return vale_tx_free(queue) >= half;
}

/* True for a checksum that the switch finds by itself: of TCP or UDP. */
static bool vale_is_found(const struct sk_buff *skb)
{
	unsigned int at = skb_network_offset(skb);
	u8 protocol;

	if (skb->protocol == htons(ETH_P_IP) &&
	    at + sizeof(struct iphdr) <= skb_headlen(skb)) {
		at += ip_hdrlen(skb);
		protocol = ip_hdr(skb)->protocol;
		if (ip_is_fragment(ip_hdr(skb)))
			return false;
	} else if (skb->protocol == htons(ETH_P_IPV6) &&
		   at + sizeof(struct ipv6hdr) <= skb_headlen(skb)) {
		at += sizeof(struct ipv6hdr);
		protocol = ipv6_hdr(skb)->nexthdr;
	} else {
		return false;
	}
	return skb_checksum_start_offset(skb) == at &&
	       ((protocol == IPPROTO_TCP &&
		 skb->csum_offset == offsetof(struct tcphdr, check)) ||
		(protocol == IPPROTO_UDP &&
		 skb->csum_offset == offsetof(struct udphdr, check)));
}

/* Keeps the segments that the switch would not cut from it. */
static netdev_features_t vale_features_check(struct sk_buff *skb,
					     struct net_device *net,
					     netdev_features_t features)
{
	const struct vale_dev *vale = netdev_priv(net);
	u16 size = skb_shinfo(skb)->gso_size;

	if (skb_is_gso(skb) &&
	    (skb->len > vale_longest(vale) ||
	     size < VALE_LEAST_SEGMENT || size > vale_most_segment(vale) ||
	     skb->ip_summed != CHECKSUM_PARTIAL || !vale_is_found(skb)))
		return features & ~NETIF_F_GSO_MASK;
	return features;
}

/* Gives the flags of a frame, or an error. */
static int vale_flags(struct vale_queue *queue, struct sk_buff *skb)
{
	u32 features = queue->vale->features;

	if (skb_is_gso(skb)) {
		/* vale_features_check() has let it pass, unless the switch changed. */
		if (!(features & VALE_SEGMENTS))
			return -EINVAL;
		queue->counts[VALE_TX_SEGMENTED]++;
		return VALE_NEEDS_CSUM |
		       skb_shinfo(skb)->gso_size << VALE_SEGMENT_SHIFT;
	}
	if (skb->ip_summed != CHECKSUM_PARTIAL)
		return 0;
	if (!(features & VALE_CHECKSUMS) || !vale_is_found(skb))
		return skb_checksum_help(skb);
	queue->counts[VALE_TX_CSUM_PARTIAL]++;
	return VALE_NEEDS_CSUM;
}

/*
 * Gives the first slot for a frame. A descriptor of length 0 passes over slots
 * at the end of the ring that are too few.
 */
static u32 vale_tx_slot(struct vale_queue *queue, u32 length)
{
	u32 slot = queue->tx_head;

	if (slot + vale_slots(length) <= queue->vale->slots)
		return slot;
	WRITE_ONCE(queue->tx_desc[slot], 0);
	return 0;
}

/* The stack's side of a queue. */
static struct netdev_queue *vale_txq(const struct vale_queue *queue)
{
	return netdev_get_tx_queue(queue->vale->net, queue->number);
}

/* Copies a frame into the ring, or drops it. */
static void vale_send(struct vale_queue *queue, struct sk_buff *skb)
{
	struct vale_dev *vale = queue->vale;
	u32 slot = vale_tx_slot(queue, skb->len);
	u64 at = vale_own(vale->tx_offset, slot);
	int flags = vale_flags(queue, skb);
	u32 most = flags > VALE_NEEDS_CSUM ? vale_longest(vale) :
					   vale_longest_whole(vale);

	if (flags < 0 || skb->len > most ||
	    skb_copy_bits(skb, 0, (u8 *)queue->region + at, skb->len)) {
		queue->counts[VALE_TX_DROPPED]++;
		dev_kfree_skb_any(skb);
		return;
	}
	WRITE_ONCE(queue->tx_desc[slot],
		   cpu_to_le64(at | (u64)skb->len << 32 | (u64)flags << 48));
	queue->tx_head = (slot + vale_slots(skb->len)) & (vale->slots - 1);
	queue->counts[VALE_TX_PACKETS]++;
	queue->counts[VALE_TX_BYTES] += skb->len;
	dev_consume_skb_any(skb);
}

static netdev_tx_t vale_start_xmit(struct sk_buff *skb, struct net_device *net)
{
	struct vale_dev *vale = netdev_priv(net);
	struct vale_queue *queue = &vale->queues[skb_get_queue_mapping(skb)];

	vale_send(queue, skb);
	if (!netdev_xmit_more() || !vale_tx_has_room(queue))
		vale_publish(queue, &queue->region->tx_guest,
			     &queue->region->tx_switch, queue->tx_head,
			     VALE_TX_NOTIFIED);
	if (!vale_tx_has_room(queue)) {
		queue->counts[VALE_TX_STOPPED]++;
		netif_tx_stop_queue(vale_txq(queue));
		if (vale_tx_wait(queue))
			netif_tx_start_queue(vale_txq(queue));
	}
	return NETDEV_TX_OK;
}

/* The kind of segments of a frame whose checksum is set up. */
static u32 vale_gso_type(const struct sk_buff *skb)
{
	bool is_v4 = skb->protocol == htons(ETH_P_IP);

	if (skb->csum_offset != offsetof(struct tcphdr, check))
		return SKB_GSO_UDP_L4;
	return (is_v4 ? SKB_GSO_TCPV4 : SKB_GSO_TCPV6) |
	       (tcp_hdr(skb)->cwr ? SKB_GSO_TCP_ECN : 0);
}

/* Finds headers and checksum of a frame for the stack; an error if it cannot. */
static int vale_prepare(struct vale_queue *queue, struct sk_buff *skb, u16 flags)
{
	struct skb_shared_info *info = skb_shinfo(skb);
	int rc;

	skb->protocol = eth_type_trans(skb, queue->vale->net);
	if (!flags)
		return 0;
	queue->counts[VALE_RX_CSUM_PARTIAL]++;
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb_reset_network_header(skb);
	rc = skb_checksum_setup(skb, true);
	if (rc || flags == VALE_NEEDS_CSUM)
		return rc;
	queue->counts[VALE_RX_SEGMENTED]++;
	info->gso_size = flags >> VALE_SEGMENT_SHIFT;
	/* The stack checks the headers before it cuts the frame. */
	info->gso_type = vale_gso_type(skb) | SKB_GSO_DODGY;
	return 0;
}

/* True for a frame in the region with flags that we know, of slots that wait. */
static bool vale_is_good(struct vale_queue *queue, u32 slot, u32 at,
			 u32 length, u16 flags)
{
	struct vale_dev *vale = queue->vale;
	u16 size = flags >> VALE_SEGMENT_SHIFT;

	if (length < ETH_HLEN || at < vale->tx_offset ||
	    (u64)at + length > (u64)vale->pages * XEN_PAGE_SIZE ||
	    vale_slots(length) > vale_between(vale, slot, queue->rx_tail))
		return false;
	if (!size)
		return length <= vale_longest_whole(vale);
	return vale->features & VALE_SEGMENTS && flags & VALE_NEEDS_CSUM &&
	       size >= VALE_LEAST_SEGMENT && size <= vale_most_segment(vale);
}

/* Gives memory for a frame; a long one lies in pages, but for its headers. */
static struct sk_buff *vale_alloc(struct vale_queue *queue, u32 length)
{
	u32 linear = length <= VALE_BUFFER ? length : VALE_HEADERS;
	struct sk_buff *skb;
	int rc;

	if (linear == length) {
		skb = napi_alloc_skb(&queue->napi, length);
	} else {
		skb = alloc_skb_with_frags(NET_SKB_PAD + NET_IP_ALIGN + linear,
					   length - linear,
					   PAGE_ALLOC_COSTLY_ORDER, &rc,
					   GFP_ATOMIC | __GFP_NOWARN);
		if (skb)
			skb_reserve(skb, NET_SKB_PAD + NET_IP_ALIGN);
	}
	if (!skb)
		return NULL;
	skb_put(skb, linear);
	skb->data_len = length - linear;
	skb->len = length;
	return skb;
}

/*
 * Moves the head past a descriptor: past all slots of a frame, or to the start
 * of the ring if there is none.
 */
static void vale_pass(struct vale_queue *queue, u32 length)
{
	struct vale_dev *vale = queue->vale;
	u32 slot = queue->rx_head, slots = 1;

	if (vale_has_spans(vale))
		slots = length ? vale_slots(length) : vale->slots - slot;
	if (slots > vale_between(vale, slot, queue->rx_tail))
		slots = 1;
	queue->rx_head = (slot + slots) & (vale->slots - 1);
}

/* Copies a frame of the switch; the descriptor is read once. */
static struct sk_buff *vale_take(struct vale_queue *queue)
{
	struct vale_dev *vale = queue->vale;
	u32 slot = queue->rx_head;
	u64 word = le64_to_cpu(READ_ONCE(queue->rx_desc[slot]));
	u32 at = (u32)word, length = (word >> 32) & 0xffff;
	u16 flags = word >> 48;
	struct sk_buff *skb = NULL;
	bool is_good = vale_is_good(queue, slot, at, length, flags);

	WRITE_ONCE(queue->rx_desc[slot],
		   cpu_to_le64(vale_own(vale->rx_offset, slot)));
	vale_pass(queue, length);
	if (!length && queue->rx_head == 0 && vale_has_spans(vale))
		return NULL;
	if (is_good)
		skb = vale_alloc(queue, length);
	if (skb) {
		skb_store_bits(skb, 0, (u8 *)queue->region + at, length);
		is_good = !vale_prepare(queue, skb, flags);
		if (is_good)
			return skb;
		kfree_skb(skb);
	}
	queue->counts[VALE_RX_REFUSED] += !is_good;
	queue->counts[VALE_RX_DROPPED]++;
	return NULL;
}

static bool vale_rx_waits(struct vale_queue *queue)
{
	u32 limit = (queue->rx_head - 1) & (queue->vale->slots - 1);

	queue->rx_tail = vale_peer(queue, &queue->region->rx_switch,
				   queue->rx_tail, limit, VALE_RX_REFUSED);
	return queue->rx_tail != queue->rx_head;
}

/* Gives the stack up to this many frames; returns the number of descriptors. */
static int vale_receive(struct vale_queue *queue, int budget)
{
	int done = 0;

	while (done < budget && vale_rx_waits(queue)) {
		struct sk_buff *skb = vale_take(queue);

		done++;
		if (!skb)
			continue;
		queue->counts[VALE_RX_PACKETS]++;
		queue->counts[VALE_RX_BYTES] += skb->len + ETH_HLEN;
		skb_record_rx_queue(skb, queue->number);
		napi_gro_receive(&queue->napi, skb);
	}
	if (done)
		vale_publish(queue, &queue->region->rx_guest,
			     &queue->region->rx_switch, queue->rx_head,
			     VALE_RX_NOTIFIED);
	return done;
}

/* Wakes a stopped queue of which the switch has freed half. */
static void vale_tx_wake(struct vale_queue *queue)
{
	struct netdev_queue *txq = vale_txq(queue);

	if (!netif_tx_queue_stopped(txq))
		return;
	__netif_tx_lock(txq, smp_processor_id());
	if (vale_tx_wait(queue) && netif_running(queue->vale->net))
		netif_tx_wake_queue(txq);
	__netif_tx_unlock(txq);
}

static int vale_poll(struct napi_struct *napi, int budget)
{
	struct vale_queue *queue = container_of(napi, struct vale_queue, napi);
	int done = vale_receive(queue, budget);

	vale_tx_wake(queue);
	if (done < budget && napi_complete_done(napi, done)) {
		vale_sleep(&queue->region->rx_guest, queue->rx_tail);
		if (vale_rx_waits(queue))
			napi_schedule(napi);
	}
	return done;
}

static irqreturn_t vale_interrupt(int irq, void *data)
{
	struct vale_queue *queue = data;

	queue->counts[VALE_INTERRUPTS]++;
	napi_schedule(&queue->napi);
	return IRQ_HANDLED;
}

/* A queue without a free slot starts when the switch has freed one. */
static int vale_open(struct net_device *net)
{
	struct vale_dev *vale = netdev_priv(net);
	unsigned int i;

	for (i = 0; i < net->real_num_tx_queues; i++) {
		struct netdev_queue *txq = netdev_get_tx_queue(net, i);

		__netif_tx_lock_bh(txq);
		if (netif_carrier_ok(net) &&
		    vale_tx_has_room(&vale->queues[i]))
			netif_tx_start_queue(txq);
		__netif_tx_unlock_bh(txq);
	}
	return 0;
}

static int vale_stop(struct net_device *net)
{
	netif_tx_disable(net);
	return 0;
}

static void vale_get_stats64(struct net_device *net,
			     struct rtnl_link_stats64 *stats)
{
	const struct vale_dev *vale = netdev_priv(net);
	unsigned int i;

	for (i = 0; i < VALE_QUEUES; i++) {
		const unsigned long *counts = vale->queues[i].counts;

		stats->tx_packets += counts[VALE_TX_PACKETS];
		stats->tx_bytes += counts[VALE_TX_BYTES];
		stats->tx_dropped += counts[VALE_TX_DROPPED];
		stats->rx_packets += counts[VALE_RX_PACKETS];
		stats->rx_bytes += counts[VALE_RX_BYTES];
		stats->rx_dropped += counts[VALE_RX_DROPPED];
	}
}

/* Takes out what the switch does not accept. */
static netdev_features_t vale_fix_features(struct net_device *net,
					   netdev_features_t features)
{
	const struct vale_dev *vale = netdev_priv(net);

	if (!(vale->features & VALE_CHECKSUMS))
		features &= ~VALE_SUM_FEATURES;
	if (!(vale->features & VALE_SEGMENTS))
		features &= ~VALE_GSO_FEATURES;
	return features;
}

static int vale_get_sset_count(struct net_device *net, int set)
{
	if (set != ETH_SS_STATS)
		return -EOPNOTSUPP;
	return net->real_num_tx_queues * VALE_INTERRUPTS + 1;
}

static void vale_get_strings(struct net_device *net, u32 set, u8 *names)
{
	unsigned int i, n;

	if (set != ETH_SS_STATS)
		return;
	for (i = 0; i < net->real_num_tx_queues; i++)
		for (n = 0; n < VALE_INTERRUPTS; n++)
			ethtool_sprintf(&names, vale_count_names[n], i);
	ethtool_sprintf(&names, "interrupts");
}

static void vale_get_ethtool_stats(struct net_device *net,
				   struct ethtool_stats *stats, u64 *values)
{
	const struct vale_dev *vale = netdev_priv(net);
	u64 interrupts = 0;
	unsigned int i, n;

	for (i = 0; i < net->real_num_tx_queues; i++) {
		const unsigned long *counts = vale->queues[i].counts;

		for (n = 0; n < VALE_INTERRUPTS; n++)
			*values++ = counts[n];
		interrupts += counts[VALE_INTERRUPTS];
	}
	*values = interrupts;
}

static const struct ethtool_ops vale_ethtool_ops = {
	.get_link = ethtool_op_get_link,
	.get_sset_count = vale_get_sset_count,
	.get_strings = vale_get_strings,
	.get_ethtool_stats = vale_get_ethtool_stats,
};

static const struct net_device_ops vale_ops = {
	.ndo_open = vale_open,
	.ndo_stop = vale_stop,
	.ndo_get_stats64 = vale_get_stats64,
	.ndo_start_xmit = vale_start_xmit,
	.ndo_features_check = vale_features_check,
	.ndo_fix_features = vale_fix_features,
	.ndo_set_mac_address = eth_mac_addr,
	.ndo_validate_addr = eth_validate_addr,
};

static u32 vale_offered(const struct vale_dev *vale)
{
	return VALE_CHECKSUMS | VALE_SEGMENTS |
	       (vale->net->max_mtu > VALE_SHORT_MTU ? VALE_LONG : 0);
}

static void vale_format(struct vale_queue *queue)
{
	struct vale_dev *vale = queue->vale;
	struct vale_header *header = queue->region;
	u32 desc = ALIGN(vale->slots * 8, XEN_PAGE_SIZE), slot;

	memcpy(header->magic, VALE_MAGIC, sizeof(header->magic));
	header->version = cpu_to_le32(1);
	header->slots = cpu_to_le32(vale->slots);
	header->buffer = cpu_to_le32(VALE_BUFFER);
	header->offered = cpu_to_le32(vale_offered(vale));
	queue->tx_desc = (void *)header + XEN_PAGE_SIZE;
	queue->rx_desc = (void *)queue->tx_desc + desc;
	queue->tx_head = 0;
	queue->rx_head = 0;
	queue->rx_tail = 0;
	queue->tx_tail = vale->slots - 1;
	header->tx_switch.next = cpu_to_le32(queue->tx_tail);
	for (slot = 0; slot < vale->slots; slot++) {
		queue->tx_desc[slot] =
			cpu_to_le64(vale_own(vale->tx_offset, slot));
		queue->rx_desc[slot] =
			cpu_to_le64(vale_own(vale->rx_offset, slot));
	}
	vale_sleep(&header->rx_guest, 0);
}

static int vale_grant(struct vale_queue *queue, void *memory, u32 index,
		      bool readonly)
{
	struct page *page = vmalloc_to_page(memory);
	int ref = gnttab_grant_foreign_access(queue->vale->xdev->otherend_id,
					      xen_page_to_gfn(page), readonly);

	if (ref < 0)
		return ref;
	get_page(page);		/* the end of the grant gives it back */
	queue->refs[index] = ref;
	return 0;
}

static void vale_end_grant(struct vale_queue *queue, void *memory, u32 index)
{
	if (queue->refs[index])
		gnttab_end_foreign_access(queue->refs[index],
					  vmalloc_to_page(memory));
}

/* Grants the pages and lists them; a page's last word names the next page. */
static int vale_grant_all(struct vale_queue *queue)
{
	struct vale_dev *vale = queue->vale;
	u32 i, n;
	int rc;

	for (i = 0; i < vale->pages; i++) {
		n = vale->dir_pages + i;
		rc = vale_grant(queue, (void *)queue->region + i * XEN_PAGE_SIZE,
				n, false);
		if (rc)
			return rc;
		queue->dir[i + i / (VALE_PER_PAGE - 1)] = queue->refs[n];
	}
	for (i = 0; i < vale->dir_pages; i++) {
		rc = vale_grant(queue, queue->dir + i * VALE_PER_PAGE, i, true);
		if (rc)
			return rc;
		if (i)
			queue->dir[i * VALE_PER_PAGE - 1] = queue->refs[i];
	}
	return 0;
}

/* Writes a key of a queue; the only queue has no directory of its own. */
static int vale_write_node(struct vale_queue *queue, const char *key, u32 value)
{
	struct vale_dev *vale = queue->vale;
	char path[32];

	if (vale->net->real_num_tx_queues == 1)
		strscpy(path, key, sizeof(path));
	else
		snprintf(path, sizeof(path), "queue-%u/%s", queue->number, key);
	return xenbus_printf(XBT_NIL, vale->xdev->nodename, path, "%u", value);
}

/* Writes the number of queues; one queue has no such key. */
static int vale_write_count(struct vale_dev *vale)
{
	const char *path = vale->xdev->nodename;
	unsigned int count = vale->net->real_num_tx_queues;

	if (count > 1)
		return xenbus_printf(XBT_NIL, path, "multi-queue-num-queues",
				     "%u", count);
	if (xenbus_exists(XBT_NIL, path, "multi-queue-num-queues"))
		return xenbus_rm(XBT_NIL, path, "multi-queue-num-queues");
	return 0;
}

static int vale_write_nodes(struct vale_dev *vale)
{
	unsigned int i;
	int rc = vale_write_count(vale);

	for (i = 0; !rc && i < vale->net->real_num_tx_queues; i++) {
		struct vale_queue *queue = &vale->queues[i];

		rc = vale_write_node(queue, "ring-ref", queue->refs[0]);
		if (!rc)
			rc = vale_write_node(queue, "event-channel",
					     queue->evtchn);
	}
	return rc;
}

static void vale_free_memory(struct vale_queue *queue)
{
	vfree(queue->region);
	vfree(queue->dir);
	kvfree(queue->refs);
	queue->region = NULL;
}

/* Ends the grants of a queue that is connected, or half so. */
static void vale_disconnect_queue(struct vale_queue *queue)
{
	struct vale_dev *vale = queue->vale;
	u32 i;

	if (queue->irq)
		unbind_from_irqhandler(queue->irq, queue);
	queue->irq = 0;
	for (i = 0; i < vale->dir_pages; i++)
		vale_end_grant(queue, queue->dir + i * VALE_PER_PAGE, i);
	for (i = 0; i < vale->pages; i++)
		vale_end_grant(queue, (void *)queue->region + i * XEN_PAGE_SIZE,
			       vale->dir_pages + i);
	vale_free_memory(queue);
}

static void vale_disconnect(struct vale_dev *vale)
{
	struct vale_queue *queue, *end = vale->queues + VALE_QUEUES;

	netif_carrier_off(vale->net);
	for (queue = vale->queues; queue < end; queue++)
		if (queue->region)
			napi_disable(&queue->napi);
	netif_tx_disable(vale->net);	/* napi could wake a queue before */
	for (queue = vale->queues; queue < end; queue++)
		if (queue->region)
			vale_disconnect_queue(queue);
}

static int vale_alloc_memory(struct vale_queue *queue)
{
	struct vale_dev *vale = queue->vale;

	queue->region = vzalloc(vale->pages * XEN_PAGE_SIZE);
	queue->dir = vzalloc(vale->dir_pages * XEN_PAGE_SIZE);
	queue->refs = kvcalloc(vale->dir_pages + vale->pages,
			       sizeof(*queue->refs), GFP_KERNEL);
	if (queue->region && queue->dir && queue->refs)
		return 0;
	vale_free_memory(queue);
	return -ENOMEM;
}

static int vale_bind(struct vale_queue *queue)
{
	struct vale_dev *vale = queue->vale;
	int rc = xenbus_alloc_evtchn(vale->xdev, &queue->evtchn);

	if (rc)
		return rc;
	snprintf(queue->name, sizeof(queue->name), "%s-q%u", vale->net->name,
		 queue->number);
	rc = bind_evtchn_to_irqhandler(queue->evtchn, vale_interrupt, 0,
				       queue->name, queue);
	if (rc < 0) {
		xenbus_free_evtchn(vale->xdev, queue->evtchn);
		return rc;
	}
	queue->irq = rc;
	return 0;
}

/* After an error, vale_disconnect() frees the queue. */
static int vale_connect_queue(struct vale_queue *queue)
{
	int rc = vale_alloc_memory(queue);

	if (rc)
		return rc;
	vale_format(queue);
	napi_enable(&queue->napi);
	rc = vale_grant_all(queue);
	if (rc)
		return rc;
	return vale_bind(queue);
}

/* The switch allows one queue, or says how many. A vif has one. */
static unsigned int vale_count_queues(const struct vale_dev *vale)
{
	unsigned int wanted = READ_ONCE(vale_queues) ?: num_online_cpus();
	unsigned int most = 1;

	if (!strcmp(vale->xdev->devicetype, "vale"))
		most = xenbus_read_unsigned(vale->xdev->otherend,
					    "multi-queue-max-queues", 1);
	return clamp(min(wanted, most), 1U, (unsigned int)VALE_QUEUES);
}

static int vale_set_queues(struct vale_dev *vale)
{
	unsigned int count = vale_count_queues(vale);
	int rc;

	rtnl_lock();
	rc = netif_set_real_num_queues(vale->net, count, count);
	rtnl_unlock();
	return rc;
}

static int vale_connect(struct vale_dev *vale)
{
	int rc = vale_set_queues(vale);
	unsigned int i;

	for (i = 0; !rc && i < vale->net->real_num_tx_queues; i++)
		rc = vale_connect_queue(&vale->queues[i]);
	if (!rc)
		rc = vale_write_nodes(vale);
	if (!rc)
		rc = xenbus_switch_state(vale->xdev, XenbusStateConnected);
	if (rc)
		vale_disconnect(vale);
	return rc;
}

/* Gives the features that the switch has accepted for all queues. */
static u32 vale_accepted(const struct vale_dev *vale)
{
	u32 features = vale_offered(vale);
	unsigned int i;

	for (i = 0; i < vale->net->real_num_tx_queues; i++)
		features &= le32_to_cpu(READ_ONCE(vale->queues[i].region->accepted));
	return features;
}

/* The switch has accepted features before it says that it is connected. */
static void vale_connected(struct vale_dev *vale)
{
	unsigned int i;

	vale->features = vale_accepted(vale);
	rtnl_lock();
	netdev_update_features(vale->net);
	rtnl_unlock();
	netif_carrier_on(vale->net);
	for (i = 0; i < vale->net->real_num_tx_queues; i++)
		netif_tx_wake_queue(vale_txq(&vale->queues[i]));
}

static void vale_backend_changed(struct xenbus_device *xdev,
				 enum xenbus_state state)
{
	struct vale_dev *vale = dev_get_drvdata(&xdev->dev);
	int rc;

	switch (state) {
	case XenbusStateInitWait:
		if (xdev->state != XenbusStateInitialising)
			break;
		rc = vale_connect(vale);
		if (rc)
			xenbus_dev_fatal(xdev, rc, "connection of the rings");
		break;
	case XenbusStateConnected:
		if (vale->queues[0].region)
			vale_connected(vale);
		break;
	case XenbusStateClosing:
		vale_disconnect(vale);
		xenbus_switch_state(xdev, XenbusStateClosed);
		break;
	case XenbusStateClosed:
	case XenbusStateUnknown:	/* the backend's domain is gone */
		vale_disconnect(vale);
		xenbus_switch_state(xdev, XenbusStateInitialising);
		break;
	default:
		break;
	}
}

static void vale_set_layout(struct vale_dev *vale)
{
	vale->tx_offset = XEN_PAGE_SIZE +
			  2 * ALIGN(vale->slots * 8, XEN_PAGE_SIZE);
	vale->rx_offset = vale->tx_offset + vale->slots * VALE_BUFFER;
	vale->pages = (vale->rx_offset + vale->slots * VALE_BUFFER) /
		      XEN_PAGE_SIZE;
	vale->dir_pages = DIV_ROUND_UP(vale->pages, VALE_PER_PAGE - 1);
}

static int vale_read_nodes(struct vale_dev *vale)
{
	struct xenbus_device *xdev = vale->xdev;
	u32 mtu = xenbus_read_unsigned(xdev->nodename, "mtu", ETH_DATA_LEN);
	u8 mac[ETH_ALEN];
	char *text = xenbus_read(XBT_NIL, xdev->nodename, "mac", NULL);
	bool valid;

	if (IS_ERR(text))
		return PTR_ERR(text);
	valid = mac_pton(text, mac);
	kfree(text);
	vale->slots = xenbus_read_unsigned(xdev->nodename, "slots", 256);
	if (!valid || !is_power_of_2(vale->slots) ||
	    vale->slots < VALE_MIN_SLOTS || vale->slots > VALE_MAX_SLOTS ||
	    mtu < ETH_MIN_MTU || mtu > VALE_MAX_MTU)
		return -EINVAL;
	vale_set_layout(vale);
	eth_hw_addr_set(vale->net, mac);
	vale->net->min_mtu = ETH_MIN_MTU;
	vale->net->max_mtu = mtu;
	vale->net->mtu = mtu;
	netif_set_tso_max_size(vale->net, vale_longest(vale));
	return 0;
}

/* netback writes the features of a vif before it leaves Initialising. */
static bool vale_is_ours(struct xenbus_device *xdev,
			 const struct xenbus_device_id *id)
{
	unsigned long end = jiffies + VALE_WAIT;

	if (!strcmp(id->devicetype, "vale"))
		return true;
	while (xenbus_read_driver_state(xdev->otherend) ==
	       XenbusStateInitialising && time_before(jiffies, end))
		msleep(20);
	return xenbus_read_unsigned(xdev->otherend, "feature-vale-ring", 0);
}

static void vale_init_queues(struct vale_dev *vale)
{
	u32 i;

	for (i = 0; i < VALE_QUEUES; i++) {
		vale->queues[i].vale = vale;
		vale->queues[i].number = i;
		netif_napi_add(vale->net, &vale->queues[i].napi, vale_poll);
	}
	netif_tx_stop_all_queues(vale->net);	/* until they are connected */
}

static int vale_probe(struct xenbus_device *xdev,
		      const struct xenbus_device_id *id)
{
	struct net_device *net;
	struct vale_dev *vale;
	int rc;

	if (!vale_is_ours(xdev, id))
		return -ENODEV;		/* netfront may take it */
	net = alloc_etherdev_mq(sizeof(struct vale_dev), VALE_QUEUES);
	if (!net)
		return -ENOMEM;
	vale = netdev_priv(net);
	vale->xdev = xdev;
	vale->net = net;
	net->netdev_ops = &vale_ops;
	net->ethtool_ops = &vale_ethtool_ops;
	net->hw_features = VALE_SUM_FEATURES | VALE_GSO_FEATURES;
	net->features = net->hw_features;
	SET_NETDEV_DEV(net, &xdev->dev);
	dev_set_drvdata(&xdev->dev, vale);
	vale_init_queues(vale);
	netif_carrier_off(net);
	rc = vale_read_nodes(vale);
	if (!rc)
		rc = netif_set_real_num_queues(net, 1, 1);
	if (!rc)
		rc = register_netdev(net);
	if (!rc)
		return 0;
	xenbus_dev_fatal(xdev, rc, "mac, mtu or slots");
	free_netdev(net);
	return rc;
}

static void vale_remove(struct xenbus_device *xdev)
{
	struct vale_dev *vale = dev_get_drvdata(&xdev->dev);

	vale_disconnect(vale);	/* first: the stack learns that the link is down */
	unregister_netdev(vale->net);
	free_netdev(vale->net);
}

/* After a restore nothing is granted: the rings are made again. */
static int vale_resume(struct xenbus_device *xdev)
{
	vale_disconnect(dev_get_drvdata(&xdev->dev));
	return 0;
}

static const struct xenbus_device_id vale_ids[] = {
	{ "vale" }, { "vif" }, { "" }
};

static struct xenbus_driver vale_driver = {
	.ids = vale_ids,
	.probe = vale_probe,
	.remove = vale_remove,
	.resume = vale_resume,
	.otherend_changed = vale_backend_changed,
};

static int __init vale_init(void)
{
	return xen_domain() ? xenbus_register_frontend(&vale_driver) : -ENODEV;
}

static void __exit vale_exit(void)
{
	xenbus_unregister_driver(&vale_driver);
}

module_init(vale_init);
module_exit(vale_exit);
MODULE_DESCRIPTION("Network device on the rings of a VALE switch");
MODULE_LICENSE("GPL");
MODULE_ALIAS("xen:vale");
