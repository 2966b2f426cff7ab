// SPDX-License-Identifier: Apache-2.0
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
