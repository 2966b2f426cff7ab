// SPDX-License-Identifier: Apache-2.0
// IPv4 (RFC 1812) and IPv6 router between two networks. vif 0 is left, vif 1
// is right.
// Write further routes to routes.extra: NETWORK/LENGTH GATEWAY OUTPUT, where
// output 1 is left and output 2 is right; routes6.add takes those of IPv6.

left_arp :: ARPQuerier($LEFT_IP, $LEFT_MAC);
right_arp :: ARPQuerier($RIGHT_IP, $RIGHT_MAC);
left_out :: Queue(1024) -> left_tx :: Counter -> ToDevice(0);
right_out :: Queue(1024) -> right_tx :: Counter -> ToDevice(1);
left_arp -> left_out;
right_arp -> right_out;

routes :: RadixIPLookup($LEFT_IP/32 0, $RIGHT_IP/32 0,
                        $LEFT_NET 1, $RIGHT_NET 2, 0.0.0.0/0 3);

// For the router itself: it answers pings, and nothing else is open.
routes[0] -> own :: IPClassifier(icmp type echo, icmp, -);
own[0] -> ICMPPingResponder -> routes;
own[1] -> Discard;
own[2] -> ICMPError($LEFT_IP, unreachable, port) -> errors :: Counter
    -> routes;
routes[3] -> no_route :: Counter
    -> ICMPError($LEFT_IP, unreachable, net) -> errors;

// Leaving. A color tells the vif that a packet came by: one that leaves by
// the same vif gets its sender a redirect.
routes[1] -> DropBroadcasts -> left_same :: PaintTee(1)
    -> left_options :: IPGWOptions($LEFT_IP) -> FixIPSrc($LEFT_IP)
    -> left_ttl :: DecIPTTL -> left_size :: IPFragmenter($LEFT_MTU)
    -> left_arp;
left_same[1] -> ICMPError($LEFT_IP, redirect, host) -> errors;
left_options[1] -> ICMPError($LEFT_IP, parameterproblem) -> errors;
left_ttl[1] -> left_expired :: ICMPError($LEFT_IP, timeexceeded) -> errors;
left_size[1] -> ICMPError($LEFT_IP, unreachable, needfrag,
                          PMTU $LEFT_MTU) -> errors;

routes[2] -> DropBroadcasts -> right_same :: PaintTee(2)
    -> right_options :: IPGWOptions($RIGHT_IP) -> FixIPSrc($RIGHT_IP)
    -> right_ttl :: DecIPTTL -> right_size :: IPFragmenter($RIGHT_MTU)
    -> right_arp;
right_same[1] -> ICMPError($RIGHT_IP, redirect, host) -> errors;
right_options[1] -> ICMPError($RIGHT_IP, parameterproblem) -> errors;
right_ttl[1] -> ICMPError($LEFT_IP, timeexceeded) -> errors;
right_size[1] -> ICMPError($LEFT_IP, unreachable, needfrag,
                           PMTU $RIGHT_MTU) -> errors;

// IPv6: neighbors instead of ARP, and no fragments. Without addresses of its
// own (::) nothing has a route.
left_nd :: IP6NDSolicitor($LEFT_IP6, $LEFT_MAC) -> left_out;
right_nd :: IP6NDSolicitor($RIGHT_IP6, $RIGHT_MAC) -> right_out;
routes6 :: LookupIP6Route($LEFT_IP6/128 0, $RIGHT_IP6/128 0,
                          $LEFT_NET6 1, $RIGHT_NET6 2, ::/0 3, ::/128 3);
routes6[0] -> own6 :: ICMP6PingResponder -> routes6;
own6[1] -> ICMP6Error($LEFT_IP6, 1, 4) -> errors6 :: Counter -> routes6;
routes6[3] -> no_route6 :: Counter -> ICMP6Error($LEFT_IP6, 1, 0) -> errors6;

routes6[1] -> left_hops :: DecIP6HLIM -> left_size6 :: IP6Fragmenter($LEFT_MTU)
    -> left_nd;
left_hops[1] -> ICMP6Error($LEFT_IP6, 3, 0) -> errors6;
left_size6[1] -> ICMP6Error($LEFT_IP6, 2, 0) -> errors6;

routes6[2] -> right_hops :: DecIP6HLIM
    -> right_size6 :: IP6Fragmenter($RIGHT_MTU) -> right_nd;
right_hops[1] -> ICMP6Error($LEFT_IP6, 3, 0) -> errors6;
right_size6[1] -> ICMP6Error($LEFT_IP6, 2, 0) -> errors6;

// Arriving: answer and learn ARP, take IPv4, drop the rest.
FromDevice(0) -> left_in :: Counter
    -> left_type :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800,
                               12/86dd 20/3a 54/87, 12/86dd 20/3a 54/88,
                               12/86dd);
left_type[0] -> ARPResponder($LEFT_IP $LEFT_MAC) -> left_out;
left_type[1] -> [1]left_arp;
left_type[2] -> Strip(14) -> CheckIPHeader -> Paint(1) -> routes;
left_type[3] -> IP6NDAdvertiser($LEFT_IP6/128 $LEFT_MAC) -> left_out;
left_type[4] -> [1]left_nd;
left_type[5] -> Strip(14) -> CheckIP6Header -> GetIP6Address(24) -> routes6;

FromDevice(1) -> right_in :: Counter
    -> right_type :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800,
                               12/86dd 20/3a 54/87, 12/86dd 20/3a 54/88,
                               12/86dd);
right_type[0] -> ARPResponder($RIGHT_IP $RIGHT_MAC) -> right_out;
right_type[1] -> [1]right_arp;
right_type[2] -> Strip(14) -> CheckIPHeader -> Paint(2) -> routes;
right_type[3] -> IP6NDAdvertiser($RIGHT_IP6/128 $RIGHT_MAC) -> right_out;
right_type[4] -> [1]right_nd;
right_type[5] -> Strip(14) -> CheckIP6Header -> GetIP6Address(24) -> routes6;
