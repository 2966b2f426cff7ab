// SPDX-License-Identifier: GPL-2.0-only
/*
 * Network device of a Xen guest whose rings a VALE switch serves
 * (docs/rings.md). The guest grants one region for as long as the device is
 * connected. Each side copies every frame: no grant changes per packet.
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
#define VALE_MAX_MTU	1900
#define VALE_WAIT	(10 * HZ)	/* for the features of a vif */
#define VALE_MAGIC	"VALERING"
#define VALE_CHECKSUMS	1		/* features */
#define VALE_SEGMENTS	2
#define VALE_UNSUMMED	1		/* the flag of a frame */
#define VALE_SEGMENT_SHIFT 1		/* above it: the size of a segment */
#define VALE_LEAST_SEGMENT 256
#define VALE_MOST_SEGMENT 2047
#define VALE_LONGEST	U16_MAX		/* bytes of a frame */
#define VALE_HEADERS	256		/* linear bytes of a long frame */
#define VALE_PER_PAGE	(XEN_PAGE_SIZE / sizeof(u32))
#define VALE_SUM_FEATURES (NETIF_F_SG | NETIF_F_IP_CSUM | NETIF_F_IPV6_CSUM | \
			   NETIF_F_RXCSUM)
#define VALE_GSO_FEATURES (NETIF_F_TSO | NETIF_F_TSO6 | NETIF_F_TSO_ECN | \
			   NETIF_F_GSO_UDP_L4)

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

/* The queue counts these; one context at a time writes each. */
enum vale_count {
	VALE_TX_PACKETS,
	VALE_TX_BYTES,
	VALE_TX_DROPPED,
	VALE_TX_STOPPED,	/* no slot was free */
	VALE_TX_NOTIFIED,	/* events to the switch */
	VALE_TX_REFUSED,	/* indices of the switch */
	VALE_TX_UNSUMMED,	/* checksums left to the switch */
	VALE_TX_SEGMENTED,	/* frames for the switch to cut */
	VALE_RX_PACKETS,
	VALE_RX_BYTES,
	VALE_RX_DROPPED,
	VALE_RX_NOTIFIED,
	VALE_RX_REFUSED,	/* indices, descriptors, flags of the switch */
	VALE_RX_UNSUMMED,	/* checksums left to us */
	VALE_RX_SEGMENTED,	/* frames for us to cut */
	VALE_INTERRUPTS,	/* events from the switch, of both rings */
	VALE_COUNTS
};

static const char vale_count_names[VALE_COUNTS][ETH_GSTRING_LEN] = {
	[VALE_TX_PACKETS]	= "tx_queue_0_packets",
	[VALE_TX_BYTES]		= "tx_queue_0_bytes",
	[VALE_TX_DROPPED]	= "tx_queue_0_dropped",
	[VALE_TX_STOPPED]	= "tx_queue_0_stopped",
	[VALE_TX_NOTIFIED]	= "tx_queue_0_notified",
	[VALE_TX_REFUSED]	= "tx_queue_0_refused",
	[VALE_TX_UNSUMMED]	= "tx_queue_0_unsummed",
	[VALE_TX_SEGMENTED]	= "tx_queue_0_segmented",
	[VALE_RX_PACKETS]	= "rx_queue_0_packets",
	[VALE_RX_BYTES]		= "rx_queue_0_bytes",
	[VALE_RX_DROPPED]	= "rx_queue_0_dropped",
	[VALE_RX_NOTIFIED]	= "rx_queue_0_notified",
	[VALE_RX_REFUSED]	= "rx_queue_0_refused",
	[VALE_RX_UNSUMMED]	= "rx_queue_0_unsummed",
	[VALE_RX_SEGMENTED]	= "rx_queue_0_segmented",
	[VALE_INTERRUPTS]	= "interrupts",
};

struct vale_dev {
	struct xenbus_device *xdev;
	struct net_device *net;
	struct napi_struct napi;
	u32 slots;
	u32 features;			/* accepted by the switch */
	struct vale_header *region;	/* NULL: not connected */
	__le64 *tx_desc;
	__le64 *rx_desc;
	u32 tx_offset, rx_offset;	/* of the first buffers */
	u32 tx_head, tx_tail;
	u32 rx_head, rx_tail;
	u32 pages, dir_pages;
	u32 *dir;
	grant_ref_t *refs;		/* dir_pages, then pages */
	evtchn_port_t evtchn;
	int irq;
	unsigned long counts[VALE_COUNTS];
};

static u32 vale_region_bytes(u32 slots)
{
	return XEN_PAGE_SIZE + 2 * ALIGN(slots * 8, XEN_PAGE_SIZE) +
	       2 * slots * VALE_BUFFER;
}

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
static u32 vale_peer(struct vale_dev *vale, struct vale_line *line, u32 seen,
		     u32 limit, enum vale_count refused)
{
	u32 next;

	/* Before the descriptors and frames that the index covers. */
	next = smp_load_acquire((u32 __force *)&line->next);
	next = le32_to_cpu((__force __le32)next);
	if (next < vale->slots &&
	    vale_between(vale, seen, next) <= vale_between(vale, seen, limit))
		return next;
	vale->counts[refused]++;
	return seen;
}

static void vale_publish(struct vale_dev *vale, struct vale_line *own,
			 struct vale_line *peer, u32 next,
			 enum vale_count notified)
{
	/* After the descriptors and frames that the index covers. */
	smp_store_release((u32 __force *)&own->next,
			  (__force u32)cpu_to_le32(next));
	smp_mb();	/* the index before the peer's wish */
	if (READ_ONCE(peer->need_kick) == cpu_to_le32(1)) {
		WRITE_ONCE(peer->need_kick, 0);
		vale->counts[notified]++;
		notify_remote_via_evtchn(vale->evtchn);
	}
}

static void vale_sleep(struct vale_line *own, u32 cur)
{
	WRITE_ONCE(own->cur, cpu_to_le32(cur));
	WRITE_ONCE(own->need_kick, cpu_to_le32(1));
	smp_mb();	/* the wish before the last look */
}

static u32 vale_tx_free(struct vale_dev *vale)
{
	/* The switch gives slots up to the one before our head. */
	u32 limit = (vale->tx_head - 1) & (vale->slots - 1);

	vale->tx_tail = vale_peer(vale, &vale->region->tx_switch,
				  vale->tx_tail, limit, VALE_TX_REFUSED);
	return vale_between(vale, vale->tx_head, vale->tx_tail);
}

/* True if the ring takes any frame. */
static bool vale_tx_has_room(struct vale_dev *vale)
{
	u32 need = vale->features & VALE_SEGMENTS ?
		   2 * vale_most_slots(vale) - 1 : 1;

	return vale_tx_free(vale) >= need;
}

/*
 * Asks for an event when half of the ring is free: a guest that wakes up pays
 * for more than a hundred frames. Returns true if it is free already.
 */
static bool vale_tx_wait(struct vale_dev *vale)
{
	u32 half = vale->slots / 2;

	vale_sleep(&vale->region->tx_guest,
		   (vale->tx_head + half - 1) & (vale->slots - 1));
	return vale_tx_free(vale) >= half;
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
	u16 size = skb_shinfo(skb)->gso_size;

	if (skb_is_gso(skb) &&
	    (skb->len > vale_longest(netdev_priv(net)) ||
	     size < VALE_LEAST_SEGMENT || size > VALE_MOST_SEGMENT ||
	     skb->ip_summed != CHECKSUM_PARTIAL || !vale_is_found(skb)))
		return features & ~NETIF_F_GSO_MASK;
	return features;
}

/* Gives the flags of a frame, or an error. */
static int vale_flags(struct vale_dev *vale, struct sk_buff *skb)
{
	if (skb_is_gso(skb)) {
		/* vale_features_check() has let it pass, unless the switch changed. */
		if (!(vale->features & VALE_SEGMENTS))
			return -EINVAL;
		vale->counts[VALE_TX_SEGMENTED]++;
		return VALE_UNSUMMED |
		       skb_shinfo(skb)->gso_size << VALE_SEGMENT_SHIFT;
	}
	if (skb->ip_summed != CHECKSUM_PARTIAL)
		return 0;
	if (!(vale->features & VALE_CHECKSUMS) || !vale_is_found(skb))
		return skb_checksum_help(skb);
	vale->counts[VALE_TX_UNSUMMED]++;
	return VALE_UNSUMMED;
}

/*
 * Gives the first slot for a frame. A descriptor of length 0 passes over slots
 * at the end of the ring that are too few.
 */
static u32 vale_tx_slot(struct vale_dev *vale, u32 length)
{
	u32 slot = vale->tx_head;

	if (slot + vale_slots(length) <= vale->slots)
		return slot;
	WRITE_ONCE(vale->tx_desc[slot], 0);
	return 0;
}

static netdev_tx_t vale_start_xmit(struct sk_buff *skb, struct net_device *net)
{
	struct vale_dev *vale = netdev_priv(net);
	u32 slot = vale_tx_slot(vale, skb->len);
	u64 at = vale_own(vale->tx_offset, slot);
	int flags = vale_flags(vale, skb);
	u32 most = flags > VALE_UNSUMMED ? vale_longest(vale) : VALE_BUFFER;

	if (flags < 0 || skb->len > most ||
	    skb_copy_bits(skb, 0, (u8 *)vale->region + at, skb->len)) {
		vale->counts[VALE_TX_DROPPED]++;
		dev_kfree_skb_any(skb);
		return NETDEV_TX_OK;
	}
	WRITE_ONCE(vale->tx_desc[slot],
		   cpu_to_le64(at | (u64)skb->len << 32 | (u64)flags << 48));
	vale->tx_head = (slot + vale_slots(skb->len)) & (vale->slots - 1);
	vale->counts[VALE_TX_PACKETS]++;
	vale->counts[VALE_TX_BYTES] += skb->len;
	dev_consume_skb_any(skb);
	if (!netdev_xmit_more() || !vale_tx_has_room(vale))
		vale_publish(vale, &vale->region->tx_guest,
			     &vale->region->tx_switch, vale->tx_head,
			     VALE_TX_NOTIFIED);
	if (!vale_tx_has_room(vale)) {
		vale->counts[VALE_TX_STOPPED]++;
		netif_stop_queue(net);
		if (vale_tx_wait(vale))
			netif_start_queue(net);
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
static int vale_prepare(struct vale_dev *vale, struct sk_buff *skb, u16 flags)
{
	struct skb_shared_info *info = skb_shinfo(skb);
	int rc;

	skb->protocol = eth_type_trans(skb, vale->net);
	if (!flags)
		return 0;
	vale->counts[VALE_RX_UNSUMMED]++;
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb_reset_network_header(skb);
	rc = skb_checksum_setup(skb, true);
	if (rc || flags == VALE_UNSUMMED)
		return rc;
	vale->counts[VALE_RX_SEGMENTED]++;
	info->gso_size = flags >> VALE_SEGMENT_SHIFT;
	/* The stack checks the headers before it cuts the frame. */
	info->gso_type = vale_gso_type(skb) | SKB_GSO_DODGY;
	return 0;
}

/* True for a frame in the region with flags that we know, of slots that wait. */
static bool vale_is_good(struct vale_dev *vale, u32 slot, u32 at, u32 length,
			 u16 flags)
{
	u16 size = flags >> VALE_SEGMENT_SHIFT;

	if (length < ETH_HLEN || at < vale->tx_offset ||
	    (u64)at + length > (u64)vale->pages * XEN_PAGE_SIZE)
		return false;
	if (!size)
		return length <= VALE_BUFFER;
	return vale->features & VALE_SEGMENTS && flags & VALE_UNSUMMED &&
	       size >= VALE_LEAST_SEGMENT && size <= VALE_MOST_SEGMENT &&
	       vale_slots(length) <= vale_between(vale, slot, vale->rx_tail);
}

/* Gives memory for a frame; a long one lies in pages, but for its headers. */
static struct sk_buff *vale_alloc(struct vale_dev *vale, u32 length)
{
	u32 linear = length <= VALE_BUFFER ? length : VALE_HEADERS;
	struct sk_buff *skb;
	int rc;

	if (linear == length) {
		skb = napi_alloc_skb(&vale->napi, length);
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
static void vale_pass(struct vale_dev *vale, u32 length)
{
	u32 slot = vale->rx_head, slots = 1;

	if (vale->features & VALE_SEGMENTS)
		slots = length ? vale_slots(length) : vale->slots - slot;
	if (slots > vale_between(vale, slot, vale->rx_tail))
		slots = 1;
	vale->rx_head = (slot + slots) & (vale->slots - 1);
}

/* Copies a frame of the switch; the descriptor is read once. */
static struct sk_buff *vale_take(struct vale_dev *vale)
{
	u32 slot = vale->rx_head;
	u64 word = le64_to_cpu(READ_ONCE(vale->rx_desc[slot]));
	u32 at = (u32)word, length = (word >> 32) & 0xffff;
	u16 flags = word >> 48;
	struct sk_buff *skb = NULL;
	bool is_good = vale_is_good(vale, slot, at, length, flags);

	WRITE_ONCE(vale->rx_desc[slot],
		   cpu_to_le64(vale_own(vale->rx_offset, slot)));
	vale_pass(vale, length);
	if (!length && vale->rx_head == 0 && vale->features & VALE_SEGMENTS)
		return NULL;
	if (is_good)
		skb = vale_alloc(vale, length);
	if (skb) {
		skb_store_bits(skb, 0, (u8 *)vale->region + at, length);
		is_good = !vale_prepare(vale, skb, flags);
		if (is_good)
			return skb;
		kfree_skb(skb);
	}
	vale->counts[VALE_RX_REFUSED] += !is_good;
	vale->counts[VALE_RX_DROPPED]++;
	return NULL;
}

static bool vale_rx_waits(struct vale_dev *vale)
{
	u32 limit = (vale->rx_head - 1) & (vale->slots - 1);

	vale->rx_tail = vale_peer(vale, &vale->region->rx_switch,
				  vale->rx_tail, limit, VALE_RX_REFUSED);
	return vale->rx_tail != vale->rx_head;
}

static int vale_poll(struct napi_struct *napi, int budget)
{
	struct vale_dev *vale = container_of(napi, struct vale_dev, napi);
	struct net_device *net = vale->net;
	int done = 0;

	while (done < budget && vale_rx_waits(vale)) {
		struct sk_buff *skb = vale_take(vale);

		done++;
		if (!skb)
			continue;
		vale->counts[VALE_RX_PACKETS]++;
		vale->counts[VALE_RX_BYTES] += skb->len + ETH_HLEN;
		napi_gro_receive(napi, skb);
	}
	if (done)
		vale_publish(vale, &vale->region->rx_guest,
			     &vale->region->rx_switch, vale->rx_head,
			     VALE_RX_NOTIFIED);
	if (netif_queue_stopped(net)) {
		netif_tx_lock(net);
		if (vale_tx_wait(vale) && netif_running(net))
			netif_wake_queue(net);
		netif_tx_unlock(net);
	}
	if (done < budget && napi_complete_done(napi, done)) {
		vale_sleep(&vale->region->rx_guest, vale->rx_tail);
		if (vale_rx_waits(vale))
			napi_schedule(napi);
	}
	return done;
}

static irqreturn_t vale_interrupt(int irq, void *data)
{
	struct vale_dev *vale = data;

	vale->counts[VALE_INTERRUPTS]++;
	napi_schedule(&vale->napi);
	return IRQ_HANDLED;
}

/* A queue without a free slot starts when the switch has freed one. */
static int vale_open(struct net_device *net)
{
	netif_tx_lock_bh(net);
	if (netif_carrier_ok(net) && vale_tx_has_room(netdev_priv(net)))
		netif_start_queue(net);
	netif_tx_unlock_bh(net);
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

	stats->tx_packets = vale->counts[VALE_TX_PACKETS];
	stats->tx_bytes = vale->counts[VALE_TX_BYTES];
	stats->tx_dropped = vale->counts[VALE_TX_DROPPED];
	stats->rx_packets = vale->counts[VALE_RX_PACKETS];
	stats->rx_bytes = vale->counts[VALE_RX_BYTES];
	stats->rx_dropped = vale->counts[VALE_RX_DROPPED];
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
	return set == ETH_SS_STATS ? VALE_COUNTS : -EOPNOTSUPP;
}

static void vale_get_strings(struct net_device *net, u32 set, u8 *names)
{
	if (set == ETH_SS_STATS)
		memcpy(names, vale_count_names, sizeof(vale_count_names));
}

static void vale_get_ethtool_stats(struct net_device *net,
				   struct ethtool_stats *stats, u64 *values)
{
	const struct vale_dev *vale = netdev_priv(net);
	int i;

	for (i = 0; i < VALE_COUNTS; i++)
		values[i] = vale->counts[i];
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

static void vale_format(struct vale_dev *vale)
{
	struct vale_header *header = vale->region;
	u32 desc = ALIGN(vale->slots * 8, XEN_PAGE_SIZE), slot;

	memcpy(header->magic, VALE_MAGIC, sizeof(header->magic));
	header->version = cpu_to_le32(1);
	header->slots = cpu_to_le32(vale->slots);
	header->buffer = cpu_to_le32(VALE_BUFFER);
	header->offered = cpu_to_le32(VALE_CHECKSUMS | VALE_SEGMENTS);
	vale->tx_desc = (void *)header + XEN_PAGE_SIZE;
	vale->rx_desc = (void *)vale->tx_desc + desc;
	vale->tx_offset = XEN_PAGE_SIZE + 2 * desc;
	vale->rx_offset = vale->tx_offset + vale->slots * VALE_BUFFER;
	vale->tx_head = vale->rx_head = vale->rx_tail = 0;
	vale->tx_tail = vale->slots - 1;
	header->tx_switch.next = cpu_to_le32(vale->tx_tail);
	for (slot = 0; slot < vale->slots; slot++) {
		vale->tx_desc[slot] =
			cpu_to_le64(vale_own(vale->tx_offset, slot));
		vale->rx_desc[slot] =
			cpu_to_le64(vale_own(vale->rx_offset, slot));
	}
	vale_sleep(&header->rx_guest, 0);
}

static int vale_grant(struct vale_dev *vale, void *memory, u32 index,
		      bool readonly)
{
	struct page *page = vmalloc_to_page(memory);
	int ref = gnttab_grant_foreign_access(vale->xdev->otherend_id,
					      xen_page_to_gfn(page), readonly);

	if (ref < 0)
		return ref;
	get_page(page);		/* the end of the grant gives it back */
	vale->refs[index] = ref;
	return 0;
}

static void vale_end_grant(struct vale_dev *vale, void *memory, u32 index)
{
	if (vale->refs[index])
		gnttab_end_foreign_access(vale->refs[index],
					  vmalloc_to_page(memory));
}

/* Grants the pages and lists them; a page's last word names the next page. */
static int vale_grant_all(struct vale_dev *vale)
{
	u32 i, n;
	int rc;

	for (i = 0; i < vale->pages; i++) {
		n = vale->dir_pages + i;
		rc = vale_grant(vale, (void *)vale->region + i * XEN_PAGE_SIZE,
				n, false);
		if (rc)
			return rc;
		vale->dir[i + i / (VALE_PER_PAGE - 1)] = vale->refs[n];
	}
	for (i = 0; i < vale->dir_pages; i++) {
		rc = vale_grant(vale, vale->dir + i * VALE_PER_PAGE, i, true);
		if (rc)
			return rc;
		if (i)
			vale->dir[i * VALE_PER_PAGE - 1] = vale->refs[i];
	}
	return 0;
}

static int vale_write_nodes(struct vale_dev *vale)
{
	struct xenbus_device *xdev = vale->xdev;
	int rc;

	rc = xenbus_printf(XBT_NIL, xdev->nodename, "ring-ref", "%u",
			   vale->refs[0]);
	if (rc)
		return rc;
	return xenbus_printf(XBT_NIL, xdev->nodename, "event-channel", "%u",
			     vale->evtchn);
}

static void vale_disconnect(struct vale_dev *vale)
{
	u32 i;

	if (!vale->region)
		return;
	netif_carrier_off(vale->net);
	napi_disable(&vale->napi);	/* first: it wakes the queue */
	netif_tx_disable(vale->net);
	if (vale->irq)
		unbind_from_irqhandler(vale->irq, vale);
	vale->irq = 0;
	for (i = 0; i < vale->dir_pages; i++)
		vale_end_grant(vale, vale->dir + i * VALE_PER_PAGE, i);
	for (i = 0; i < vale->pages; i++)
		vale_end_grant(vale, (void *)vale->region + i * XEN_PAGE_SIZE,
			       vale->dir_pages + i);
	vfree(vale->region);
	vfree(vale->dir);
	kvfree(vale->refs);
	vale->region = NULL;
}

static int vale_connect(struct vale_dev *vale)
{
	u32 bytes = vale_region_bytes(vale->slots);
	int rc = -ENOMEM;

	vale->pages = bytes / XEN_PAGE_SIZE;
	vale->dir_pages = DIV_ROUND_UP(vale->pages, VALE_PER_PAGE - 1);
	vale->region = vzalloc(bytes);
	vale->dir = vzalloc(vale->dir_pages * XEN_PAGE_SIZE);
	vale->refs = kvcalloc(vale->dir_pages + vale->pages,
			      sizeof(*vale->refs), GFP_KERNEL);
	if (!vale->region || !vale->dir || !vale->refs)
		goto free;
	vale_format(vale);
	napi_enable(&vale->napi);
	rc = vale_grant_all(vale);
	if (!rc)
		rc = xenbus_alloc_evtchn(vale->xdev, &vale->evtchn);
	if (rc)
		goto undo;
	rc = bind_evtchn_to_irqhandler(vale->evtchn, vale_interrupt, 0,
				       vale->net->name, vale);
	if (rc < 0) {
		xenbus_free_evtchn(vale->xdev, vale->evtchn);
		goto undo;
	}
	vale->irq = rc;
	rc = vale_write_nodes(vale);
	if (!rc)
		rc = xenbus_switch_state(vale->xdev, XenbusStateConnected);
	if (!rc)
		return 0;
undo:
	vale_disconnect(vale);
	return rc;
free:
	vfree(vale->region);
	vfree(vale->dir);
	kvfree(vale->refs);
	vale->region = NULL;
	return rc;
}

/* The switch has accepted features before it says that it is connected. */
static void vale_connected(struct vale_dev *vale)
{
	vale->features = le32_to_cpu(READ_ONCE(vale->region->accepted)) &
			 (VALE_CHECKSUMS | VALE_SEGMENTS);
	rtnl_lock();
	netdev_update_features(vale->net);
	rtnl_unlock();
	netif_carrier_on(vale->net);
	netif_wake_queue(vale->net);
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
		if (vale->region)
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

static int vale_probe(struct xenbus_device *xdev,
		      const struct xenbus_device_id *id)
{
	struct net_device *net;
	struct vale_dev *vale;
	int rc;

	if (!vale_is_ours(xdev, id))
		return -ENODEV;		/* netfront may take it */
	net = alloc_etherdev(sizeof(struct vale_dev));
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
	netif_napi_add(net, &vale->napi, vale_poll);
	netif_carrier_off(net);
	rc = vale_read_nodes(vale);
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

	unregister_netdev(vale->net);
	vale_disconnect(vale);
	free_netdev(vale->net);
}

/* After a restore nothing is granted: the rings are made anew. */
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
