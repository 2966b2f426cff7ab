// SPDX-License-Identifier: Apache-2.0
// IPv4 router (RFC 1812) between two networks. vif 0 is left, vif 1 is right.
// Write further routes to routes.add: NETWORK/LENGTH GATEWAY OUTPUT, where
// output 1 is left and output 2 is right.

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

// Arriving: answer and learn ARP, take IPv4, drop the rest.
FromDevice(0) -> left_in :: Counter
    -> left_type :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800);
left_type[0] -> ARPResponder($LEFT_IP $LEFT_MAC) -> left_out;
left_type[1] -> [1]left_arp;
left_type[2] -> Strip(14) -> CheckIPHeader -> Paint(1) -> routes;

FromDevice(1) -> right_in :: Counter
    -> right_type :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800);
right_type[0] -> ARPResponder($RIGHT_IP $RIGHT_MAC) -> right_out;
right_type[1] -> [1]right_arp;
right_type[2] -> Strip(14) -> CheckIPHeader -> Paint(2) -> routes;
