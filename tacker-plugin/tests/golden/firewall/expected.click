define($LEFT_VIF 0,
       $LEFT_MAC fa:16:3e:00:00:01,
       $LEFT_IP 10.0.1.5,
       $LEFT_NET 10.0.1.0/24,
       $LEFT_GW 10.0.1.1,
       $LEFT_MTU 1500,
       $LEFT_IP6 ::,
       $LEFT_NET6 ::/128,
       $RIGHT_VIF 1,
       $RIGHT_MAC fa:16:3e:00:00:02,
       $RIGHT_IP 10.0.2.5,
       $RIGHT_NET 10.0.2.0/24,
       $RIGHT_GW 0.0.0.0,
       $RIGHT_MTU 1450,
       $RIGHT_IP6 ::,
       $RIGHT_NET6 ::/128);
# 1 "firewall.click"
// SPDX-License-Identifier: Apache-2.0
// Routed firewall between two networks, for IPv4 and IPv6. vif 0 is left, vif 1 is right.
// $LEFT_MAC, $LEFT_IP, $LEFT_NET and the same for RIGHT are defined from the
// Neutron ports. The rules are set by the handler fw.config; until that is
// written nothing passes.

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
// What a routed function does with frames of IPv6 at a vif.

// Frames that arrive, as FromVif of vif.click. Output 3: IPv6, for FromVif6.
// One priority tag (IEEE 802.1Q, VLAN 0) is removed.
elementclass FromDualVif {
    $mac, $own, $all |
    input -> type :: Classifier(12/0800, 12/86dd, 12/0806,
                                12/8100 14/0000%0fff 16/0800,
                                12/8100 14/0000%0fff 16/86dd,
                                12/8100 14/0000%0fff 16/0806);
    type[0] -> packets :: Strip(14)
        -> check :: CheckIPHeader(BADSRC $all, ROUTED true) -> output;
    type[1] -> [3]output;
    type[2] -> arp :: Tee -> ARPResponder($own $mac) -> [1]output;
    arp[1] -> [2]output;
    type[3] -> VLANDecap -> packets;
    type[4] -> VLANDecap -> [3]output;
    type[5] -> VLANDecap -> arp;
}

// Output 0: IPv6 packets with good headers, for this station alone, from
// possible addresses (RFC 4291, section 2.7) that are none of ALL. Output 1:
// advertisements to send. Output 2: messages of neighbor discovery to learn
// from (RFC 4861).
elementclass FromVif6 {
    $mac, $own, $all |
    input -> type :: Classifier(20/3a 54/87, 20/3a 54/88, -);
    type[0] -> asked :: Tee -> IP6NDAdvertiser($own/128 $mac) -> [1]output;
    asked[1] -> [2]output;
    type[1] -> [2]output;
    type[2] -> Strip(14) -> check :: CheckIP6Header($all, ROUTED true)
        -> GetIP6Address(24) -> output;
}

// Packets of IPv6 between two networks: to a neighbor of left by output 0, of
// right by output 1. It answers pings and sends ICMP errors (RFC 4443): at most
// 100 a second, 50 at once. Without addresses of its own (::) nothing has a
// route.
elementclass Routes6 {
    $left, $left_net, $left_mtu, $right, $right_net, $right_mtu |
    input -> routes :: LookupIP6Route($left/128 0, $right/128 0,
                                      $left_net 1, $right_net 2,
                                      ::/0 3, ::/128 3);
    limit :: RatedSplitter(100, BURST_SIZE 50) -> errors :: Counter -> routes;
    routes[0] -> own :: ICMP6PingResponder -> routes;
    own[1] -> ICMP6Error($left, 1, 4) -> limit;
    routes[3] -> no_route :: Counter -> ICMP6Error($left, 1, 0) -> limit;
    routes[1] -> left_hops :: DecIP6HLIM
        -> left_size :: IP6Fragmenter($left_mtu) -> output;
    left_hops[1] -> ICMP6Error($right, 3, 0) -> limit;
    left_size[1] -> ICMP6Error($right, 2, 0, MTU $left_mtu) -> limit;
    routes[2] -> right_hops :: DecIP6HLIM
        -> right_size :: IP6Fragmenter($right_mtu) -> [1]output;
    right_hops[1] -> ICMP6Error($left, 3, 0) -> limit;
    right_size[1] -> ICMP6Error($left, 2, 0, MTU $right_mtu) -> limit;
}

// Packets of IPv6 to forward, as Hop of vif.click: their hop limit less one.
// Output 1: answers from FROM to those whose time is over (RFC 4443, section
// 3.3).
elementclass Hop6 {
    $from |
    input -> hops :: DecIP6HLIM -> output;
    hops[1] -> RatedSplitter(100, BURST_SIZE 50)
        -> ICMP6Error($from, 3, 0) -> [1]output;
}

// Packets of IPv6 that leave, of at most MTU bytes. Output 1: answers from FROM
// to longer ones (RFC 4443, section 3.2).
elementclass Fit6 {
    $mtu, $from |
    input -> size :: IP6Fragmenter($mtu) -> output;
    size[1] -> RatedSplitter(100, BURST_SIZE 50)
        -> ICMP6Error($from, 2, 0, MTU $mtu) -> [1]output;
}

left_arp :: ARPQuerier($LEFT_IP, $LEFT_MAC, ANNOUNCE $LEFT_IP);
right_arp :: ARPQuerier($RIGHT_IP, $RIGHT_MAC, ANNOUNCE $RIGHT_IP);
left_out :: Queue(1024) -> left_tx :: Counter -> ToDevice(0);
right_out :: Queue(1024) -> right_tx :: Counter -> ToDevice(1);
left_arp -> left_out;
right_arp -> right_out;

left_nd :: IP6NDSolicitor($LEFT_IP6, $LEFT_MAC, ANNOUNCE true) -> left_out;
right_nd :: IP6NDSolicitor($RIGHT_IP6, $RIGHT_MAC, ANNOUNCE true) -> right_out;

// Arriving: answer and learn neighbors, take IP, drop the rest.
FromDevice(0) -> left_in :: Counter
    -> left :: FromDualVif($LEFT_MAC, $LEFT_IP, $LEFT_IP $RIGHT_IP);
left[0] -> received :: Counter;
left[1] -> left_out;
left[2] -> [1]left_arp;
left[3] -> left6 :: FromVif6($LEFT_MAC, $LEFT_IP6, $LEFT_IP6 $RIGHT_IP6)
    -> received;
left6[1] -> left_out;
left6[2] -> [1]left_nd;

FromDevice(1) -> right_in :: Counter
    -> right :: FromDualVif($RIGHT_MAC, $RIGHT_IP, $LEFT_IP $RIGHT_IP);
right[0] -> received;
right[1] -> right_out;
right[2] -> [1]right_arp;
right[3] -> right6 :: FromVif6($RIGHT_MAC, $RIGHT_IP6, $LEFT_IP6 $RIGHT_IP6)
    -> received;
right6[1] -> right_out;
right6[2] -> [1]right_nd;

// Answers of the firewall itself.
back :: IPClassifier(dst net $LEFT_NET, dst net $RIGHT_NET);
back[0] -> left_arp;
back[1] -> right_arp;

// The forwarded path, the same for both directions. IPFilter drops what it
// denies, so that is received.count less passed.count; fw.hits tells by rule.
fw :: IPFilter(deny all);
route :: IPClassifier(dst host $LEFT_IP or dst host $RIGHT_IP,
                      dst net $LEFT_NET, dst net $RIGHT_NET,
                      ip6 hidden, ip6, -);
received -> fw -> passed :: Counter -> route;
route[0] -> for_us :: Counter -> Own($LEFT_MTU) -> back;
route[5] -> no_route :: Counter -> Discard;

// IPv6: what hides its protocol from the rules does not pass (RFC 7112).
route[3] -> hidden :: Counter -> Discard;
route[4] -> routes6 :: Routes6($LEFT_IP6, $LEFT_NET6, $LEFT_MTU,
                               $RIGHT_IP6, $RIGHT_NET6, $RIGHT_MTU) -> left_nd;
routes6[1] -> right_nd;

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
