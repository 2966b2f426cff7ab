// SPDX-License-Identifier: Apache-2.0
// IPv4 (RFC 1812) and IPv6 router between two networks. vif 0 is left, vif 1
// is right.
// Write further routes to routes.extra: NETWORK/LENGTH GATEWAY OUTPUT, where
// output 1 is left and output 2 is right; routes6.add takes those of IPv6.

require(library vif.click);
require(library vif6.click);

left_arp :: ARPQuerier($LEFT_IP, $LEFT_MAC, ANNOUNCE $LEFT_IP);
right_arp :: ARPQuerier($RIGHT_IP, $RIGHT_MAC, ANNOUNCE $RIGHT_IP);
left_out :: Queue(1024) -> left_tx :: Counter -> ToDevice(0);
right_out :: Queue(1024) -> right_tx :: Counter -> ToDevice(1);
left_arp -> left_out;
right_arp -> right_out;

routes :: RadixIPLookup($LEFT_IP/32 0, $RIGHT_IP/32 0,
                        $LEFT_NET 1, $RIGHT_NET 2, 0.0.0.0/0 3);

// For the router itself: it answers pings, and nothing else is open.
// Errors of all kinds: at most 100 a second, 50 at once.
error_limit :: RatedSplitter(100, BURST_SIZE 50) -> errors :: Counter -> routes;
routes[0] -> own :: IPClassifier(icmp, -);
own[0] -> Own($LEFT_MTU) -> routes;
own[1] -> ICMPError($LEFT_IP, unreachable, port) -> error_limit;
routes[3] -> no_route :: Counter
    -> ICMPError($LEFT_IP, unreachable, net) -> error_limit;

// Leaving. A color tells the vif that a packet came by: one that leaves by
// the same vif gets its sender a redirect.
routes[1] -> DropBroadcasts -> left_same :: PaintTee(1)
    -> left_options :: IPGWOptions($LEFT_IP) -> FixIPSrc($LEFT_IP)
    -> left_ttl :: DecIPTTL -> left_size :: IPFragmenter($LEFT_MTU)
    -> left_arp;
left_same[1] -> ICMPError($LEFT_IP, redirect, host) -> error_limit;
left_options[1] -> ICMPError($LEFT_IP, parameterproblem) -> error_limit;
left_ttl[1] -> left_expired :: ICMPError($LEFT_IP, timeexceeded) -> error_limit;
left_size[1] -> ICMPError($LEFT_IP, unreachable, needfrag,
                          PMTU $LEFT_MTU) -> error_limit;

routes[2] -> DropBroadcasts -> right_same :: PaintTee(2)
    -> right_options :: IPGWOptions($RIGHT_IP) -> FixIPSrc($RIGHT_IP)
    -> right_ttl :: DecIPTTL -> right_size :: IPFragmenter($RIGHT_MTU)
    -> right_arp;
right_same[1] -> ICMPError($RIGHT_IP, redirect, host) -> error_limit;
right_options[1] -> ICMPError($RIGHT_IP, parameterproblem) -> error_limit;
right_ttl[1] -> ICMPError($LEFT_IP, timeexceeded) -> error_limit;
right_size[1] -> ICMPError($LEFT_IP, unreachable, needfrag,
                           PMTU $RIGHT_MTU) -> error_limit;

// IPv6: neighbors instead of ARP, and no fragments. Without addresses of its
// own (::) nothing has a route.
left_nd :: IP6NDSolicitor($LEFT_IP6, $LEFT_MAC, ANNOUNCE true) -> left_out;
right_nd :: IP6NDSolicitor($RIGHT_IP6, $RIGHT_MAC, ANNOUNCE true) -> right_out;
routes6 :: LookupIP6Route($LEFT_IP6/128 0, $RIGHT_IP6/128 0,
                          $LEFT_NET6 1, $RIGHT_NET6 2, ::/0 3, ::/128 3);
routes6[0] -> own6 :: ICMP6PingResponder -> routes6;
error_limit6 :: RatedSplitter(100, BURST_SIZE 50) -> errors6 :: Counter
    -> routes6;
own6[1] -> ICMP6Error($LEFT_IP6, 1, 4) -> error_limit6;
routes6[3] -> no_route6 :: Counter -> ICMP6Error($LEFT_IP6, 1, 0) -> error_limit6;

routes6[1] -> left_hops :: DecIP6HLIM -> left_size6 :: IP6Fragmenter($LEFT_MTU)
    -> left_nd;
left_hops[1] -> ICMP6Error($RIGHT_IP6, 3, 0) -> error_limit6;
left_size6[1] -> ICMP6Error($RIGHT_IP6, 2, 0, MTU $LEFT_MTU) -> error_limit6;

routes6[2] -> right_hops :: DecIP6HLIM
    -> right_size6 :: IP6Fragmenter($RIGHT_MTU) -> right_nd;
right_hops[1] -> ICMP6Error($LEFT_IP6, 3, 0) -> error_limit6;
right_size6[1] -> ICMP6Error($LEFT_IP6, 2, 0, MTU $RIGHT_MTU) -> error_limit6;

// Arriving: answer and learn neighbors, take IPv4 and IPv6, drop the rest.
FromDevice(0) -> left_in :: Counter
    -> left :: FromDualVif($LEFT_MAC, $LEFT_IP, $LEFT_IP $RIGHT_IP);
left[0] -> Paint(1) -> routes;
left[1] -> left_out;
left[2] -> [1]left_arp;
left[3] -> left6 :: FromVif6($LEFT_MAC, $LEFT_IP6, $LEFT_IP6 $RIGHT_IP6);
left6[0] -> routes6;
left6[1] -> left_out;
left6[2] -> [1]left_nd;

FromDevice(1) -> right_in :: Counter
    -> right :: FromDualVif($RIGHT_MAC, $RIGHT_IP, $LEFT_IP $RIGHT_IP);
right[0] -> Paint(2) -> routes;
right[1] -> right_out;
right[2] -> [1]right_arp;
right[3] -> right6 :: FromVif6($RIGHT_MAC, $RIGHT_IP6, $LEFT_IP6 $RIGHT_IP6);
right6[0] -> routes6;
right6[1] -> right_out;
right6[2] -> [1]right_nd;
