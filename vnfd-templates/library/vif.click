// SPDX-License-Identifier: Apache-2.0
// What every routed IPv4 function does at a vif, so that its own file has
// only its task. ICMP errors are at most 100 a second, 50 at once (RFC 1812,
// section 4.3.2.8).

// Frames that arrive. Output 0: IPv4 packets that a router may forward: their
// headers are good, they came for this station alone, and their addresses are
// possible (RFC 1812, sections 5.2.2, 5.3.4 and 5.3.7). ALL are the function's
// addresses at all vifs: no other host sends from them. One priority tag
// (IEEE 802.1Q, VLAN 0) is removed: no frame loops. Output 1: ARP answers for
// OWN to send. Output 2: ARP frames to learn from (RFC 826).
elementclass FromVif {
    $mac, $own, $all |
    input -> type :: Classifier(12/0800, 12/0806,
                                12/8100 14/0000%0fff 16/0800,
                                12/8100 14/0000%0fff 16/0806);
    type[0] -> packets :: Strip(14)
        -> check :: CheckIPHeader(BADSRC $all, ROUTED true) -> output;
    type[1] -> arp :: Tee -> ARPResponder($own $mac) -> [1]output;
    arp[1] -> [2]output;
    type[2] -> VLANDecap -> packets;
    type[3] -> VLANDecap -> arp;
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
