define($LEFT_VIF 0,
       $LEFT_MAC fa:16:3e:00:00:01,
       $LEFT_IP 10.0.1.5,
       $LEFT_NET 10.0.1.0/24,
       $LEFT_GW 10.0.1.1,
       $LEFT_MTU 1500,
       $RIGHT_VIF 1,
       $RIGHT_MAC fa:16:3e:00:00:02,
       $RIGHT_IP 10.0.2.5,
       $RIGHT_NET 10.0.2.0/24,
       $RIGHT_GW 0.0.0.0,
       $RIGHT_MTU 1450);
# 1 "firewall.click"
// SPDX-License-Identifier: Apache-2.0
// Routed firewall between two networks. vif 0 is left, vif 1 is right.
// $LEFT_MAC, $LEFT_IP, $LEFT_NET and the same for RIGHT are defined from the
// Neutron ports. The rules are set by the handler fw.config; until that is
// written nothing passes.

// What every routed IPv4 function does at a vif, so that its own file has
// only its task. ICMP errors are at most 100 a second, 50 at once (RFC 1812,
// section 4.3.2.8).

// Frames that arrive. Output 0: IPv4 packets with good headers. One priority
// tag (IEEE 802.1Q, VLAN 0) is removed: no frame goes round. Output 1: ARP answers for OWN to send.
// Output 2: ARP frames to learn from (RFC 826).
elementclass FromVif {
    $mac, $own |
    input -> type :: Classifier(12/0800, 12/0806,
                                12/8100 14/0000%0fff 16/0800,
                                12/8100 14/0000%0fff 16/0806);
    type[0] -> packets :: Strip(14) -> CheckIPHeader -> output;
    type[1] -> arp :: Tee -> ARPResponder($own $mac) -> [1]output;
    arp[1] -> [2]output;
    type[2] -> VLANDecap -> packets;
    type[3] -> VLANDecap -> arp;
}

// Packets that a router may forward: they came for this station alone, and
// their addresses are possible (RFC 1812, sections 5.3.4 and 5.3.7). A redirect
// concerns the hosts of one link only (RFC 1122, section 3.2.2.2). Output 0:
// whole packets; output 1: fragments.
elementclass Sound {
    input -> DropBroadcasts -> kind :: IPClassifier(
        src net 0.0.0.0/8 or src net 127.0.0.0/8 or src net 224.0.0.0/3
            or dst net 0.0.0.0/8 or dst net 127.0.0.0/8
            or dst net 224.0.0.0/3 or icmp type redirect,
        ip frag, -);
    kind[0] -> martians :: Counter -> Discard;
    kind[1] -> [1]output;
    kind[2] -> output;
}

// Packets whose time is over. Output: answers from FROM, on the vif that they
// came from (RFC 1812, section 5.3.1).
elementclass Expired {
    $from |
    input -> RatedSplitter(100, BURST_SIZE 50)
        -> ICMPError($from, timeexceeded) -> output;
}

// Packets to forward: their TTL less one. Output 1: answers from FROM to those
// whose time is over.
elementclass Hop {
    $from |
    input -> ttl :: DecIPTTL -> output;
    ttl[1] -> Expired($from) -> [1]output;
}

// Packets that leave, as fragments of at most MTU bytes. Output 1: answers from
// FROM to those that must not be fragmented (RFC 1191).
elementclass Fit {
    $mtu, $from |
    input -> size :: IPFragmenter($mtu) -> output;
    size[1] -> RatedSplitter(100, BURST_SIZE 50)
        -> ICMPError($from, unreachable, needfrag, PMTU $mtu) -> [1]output;
}

// Packets for the function itself: it answers pings of any length, in
// fragments of at most MTU bytes.
elementclass Own {
    $mtu |
    input -> IPReassembler(HIMEM 65536)
        -> kind :: IPClassifier(icmp type echo, -);
    kind[0] -> ICMPPingResponder -> IPFragmenter($mtu) -> output;
    kind[1] -> Discard;
}

left_arp :: ARPQuerier($LEFT_IP, $LEFT_MAC, ANNOUNCE $LEFT_IP);
right_arp :: ARPQuerier($RIGHT_IP, $RIGHT_MAC, ANNOUNCE $RIGHT_IP);
left_out :: Queue(1024) -> left_tx :: Counter -> ToDevice(0);
right_out :: Queue(1024) -> right_tx :: Counter -> ToDevice(1);
left_arp -> left_out;
right_arp -> right_out;

// Arriving: answer and learn ARP, take IPv4, drop the rest.
FromDevice(0) -> left_in :: Counter -> left :: FromVif($LEFT_MAC, $LEFT_IP);
left[0] -> received :: Counter;
left[1] -> left_out;
left[2] -> [1]left_arp;

FromDevice(1) -> right_in :: Counter -> right :: FromVif($RIGHT_MAC, $RIGHT_IP);
right[0] -> received;
right[1] -> right_out;
right[2] -> [1]right_arp;

// Answers of the firewall itself.
back :: IPClassifier(dst net $LEFT_NET, dst net $RIGHT_NET);
back[0] -> left_arp;
back[1] -> right_arp;

// The forwarded path, the same for both directions. IPFilter drops what it
// denies, so that is received.count less passed.count; fw.hits tells by rule.
fw :: IPFilter(deny all);
route :: IPClassifier(dst host $LEFT_IP or dst host $RIGHT_IP,
                      dst net $LEFT_NET, dst net $RIGHT_NET, -);
received -> fw -> passed :: Counter -> sound :: Sound -> route;
sound[1] -> route;
route[0] -> for_us :: Counter -> Own($LEFT_MTU) -> back;
route[3] -> no_route :: Counter -> Discard;

// Leaving. The TTL is over, or a packet is too long: an ICMP error goes back.
route[1] -> left_ttl :: DecIPTTL -> left_size :: Fit($LEFT_MTU, $RIGHT_IP)
    -> left_arp;
route[2] -> right_ttl :: DecIPTTL -> right_size :: Fit($RIGHT_MTU, $LEFT_IP)
    -> right_arp;
left_size[1] -> back;
right_size[1] -> back;
left_ttl[1] -> expired :: Counter -> from :: IPClassifier(src net $LEFT_NET, -);
right_ttl[1] -> expired;
from[0] -> left_expired :: Expired($LEFT_IP) -> back;
from[1] -> right_expired :: Expired($RIGHT_IP) -> back;
