// SPDX-License-Identifier: Apache-2.0
// Routed firewall with state. vif 0 is left (inside), vif 1 is right.
// The rules judge what left begins; from right only answers pass, and the
// ICMP errors about known flows. State survives a hot swap.

require(library vif.click);

left_arp :: ARPQuerier($LEFT_IP, $LEFT_MAC, ANNOUNCE $LEFT_IP);
right_arp :: ARPQuerier($RIGHT_IP, $RIGHT_MAC, ANNOUNCE $RIGHT_IP);
left_out :: Queue(1024) -> left_tx :: Counter -> ToDevice(0);
right_out :: Queue(1024) -> right_tx :: Counter -> ToDevice(1);
left_arp -> left_out;
right_arp -> right_out;

// Flows keep their addresses: output 0 is to right, output 1 is to left.
fw :: IPFilter(allow all);
flows :: IPRewriter(keep 0 1, drop, MAPPING_CAPACITY 4096);
pings :: ICMPPingRewriter(keep 0 1, drop, MAPPING_CAPACITY 1024);
errors :: ICMPRewriter(flows pings);

from_left :: CheckIPHeader -> fw -> passed :: Counter
    -> left_kind :: IPClassifier(tcp or udp, icmp type echo, icmp, -);
left_kind[0] -> [0]flows;
left_kind[1] -> [0]pings;
left_kind[2] -> errors;
left_kind[3] -> Discard;

from_right :: CheckIPHeader -> answers :: Counter
    -> right_kind :: IPClassifier(tcp or udp, icmp type echo-reply, icmp, -);
right_kind[0] -> [1]flows;
right_kind[1] -> [1]pings;
right_kind[2] -> errors;
right_kind[3] -> Discard;

to_right :: DecIPTTL -> right_arp;
to_left :: DecIPTTL -> left_arp;
flows[0] -> to_right;
flows[1] -> to_left;
pings[0] -> to_right;
pings[1] -> to_left;
errors -> side :: IPClassifier(dst net $LEFT_NET, -);
side[0] -> to_left;
side[1] -> to_right;
to_right[1] -> ICMPError($LEFT_IP, timeexceeded) -> left_arp;
to_left[1] -> ICMPError($RIGHT_IP, timeexceeded) -> right_arp;

FromDevice(0) -> left_in :: Counter -> left :: FromVif($LEFT_MAC, $LEFT_IP);
left[0] -> from_left;
left[1] -> from_left;
left[2] -> left_out;
left[3] -> [1]left_arp;

FromDevice(1) -> right_in :: Counter -> right :: FromVif($RIGHT_MAC, $RIGHT_IP);
right[0] -> from_right;
right[1] -> from_right;
right[2] -> right_out;
right[3] -> [1]right_arp;
