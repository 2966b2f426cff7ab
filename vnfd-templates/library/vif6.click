// SPDX-License-Identifier: Apache-2.0
// What a routed function does with frames of IPv6 at a vif.

// Frames that arrive, as FromVif of vif.click. Output 3: IPv6, for FromVif6.
// One priority tag (IEEE 802.1Q, VLAN 0) is removed.
elementclass FromDualVif {
    $mac, $own |
    input -> type :: Classifier(12/0800, 12/86dd, 12/0806,
                                12/8100 14/0000%0fff 16/0800,
                                12/8100 14/0000%0fff 16/86dd,
                                12/8100 14/0000%0fff 16/0806);
    type[0] -> packets :: Strip(14) -> CheckIPHeader -> output;
    type[1] -> [3]output;
    type[2] -> arp :: Tee -> ARPResponder($own $mac) -> [1]output;
    arp[1] -> [2]output;
    type[3] -> VLANDecap -> packets;
    type[4] -> VLANDecap -> [3]output;
    type[5] -> VLANDecap -> arp;
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
    // groups, the loopback and no address
    type[2] -> DropBroadcasts
        -> kind :: Classifier(22/ff, 38/ff,
                              22/00000000000000000000000000000000,
                              22/00000000000000000000000000000001,
                              38/00000000000000000000000000000001, -);
    kind[0] -> martians :: Counter -> Discard;
    kind[1] -> martians;
    kind[2] -> martians;
    kind[3] -> martians;
    kind[4] -> martians;
    kind[5] -> Strip(14) -> CheckIP6Header -> GetIP6Address(24) -> output;
}
