// SPDX-License-Identifier: Apache-2.0
// What a routed function does with frames of IPv6 at a vif.

// Frames that arrive, as FromVif of vif.click. Output 3: IPv6, for FromVif6.
// A priority tag (IEEE 802.1Q, VLAN 0) is removed.
elementclass FromDualVif {
    $mac, $own |
    input -> type :: Classifier(12/0800, 12/86dd, 12/0806,
                                12/8100 14/0000%0fff);
    type[0] -> Strip(14) -> check :: CheckIPHeader(ROUTED true) -> output;
    type[1] -> [3]output;
    type[2] -> arp :: Tee -> ARPResponder($own $mac) -> [1]output;
    arp[1] -> [2]output;
    type[3] -> VLANDecap -> type;
}

// Output 0: IPv6 packets with good headers, for this station alone, from
// possible addresses (RFC 4291, section 2.7). Output 1: advertisements to
// send. Output 2: messages of neighbor discovery to learn from (RFC 4861).
elementclass FromVif6 {
    $mac, $own |
    input -> type :: Classifier(20/3a 54/87, 20/3a 54/88, -);
    type[0] -> asked :: Tee -> IP6NDAdvertiser($own/128 $mac) -> [1]output;
    asked[1] -> [2]output;
    type[1] -> [2]output;
    type[2] -> Strip(14) -> check :: CheckIP6Header(ROUTED true)
        -> GetIP6Address(24) -> output;
}
