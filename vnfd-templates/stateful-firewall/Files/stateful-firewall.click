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

FromDevice(0) -> left_in :: Counter -> left :: FromVif($LEFT_MAC, $LEFT_IP);
left[1] -> left_out;
left[2] -> [1]left_arp;

FromDevice(1) -> right_in :: Counter -> right :: FromVif($RIGHT_MAC, $RIGHT_IP);
right[1] -> right_out;
right[2] -> [1]right_arp;

to_right :: Fit($RIGHT_MTU, $LEFT_IP) -> right_arp;
to_left :: Fit($LEFT_MTU, $RIGHT_IP) -> left_arp;
to_right[1] -> to_left;
to_left[1] -> to_right;

// Flows keep their addresses: output 0 is to right, output 1 is to left.
fw :: IPFilter(allow all);
flows :: IPRewriter(keep 0 1, drop, MAPPING_CAPACITY 4096);
pings :: ICMPPingRewriter(keep 0 1, drop, MAPPING_CAPACITY 1024);
errors :: ICMPRewriter(flows pings);

// Fragments are put together first, since only the first has ports. The rules
// judge what comes for the firewall itself, too.
left[0] -> left_whole :: IPReassembler -> fw -> passed :: Counter
    -> from_left :: IPClassifier(dst host $LEFT_IP or dst host $RIGHT_IP, -);
from_left[0] -> left_own :: Own($LEFT_MTU) -> to_left;
from_left[1] -> left_hop :: Hop($LEFT_IP)
    -> left_kind :: IPClassifier(tcp or udp, icmp type echo, icmp, -);
left_hop[1] -> to_left;
left_kind[0] -> [0]flows;
left_kind[1] -> [0]pings;
left_kind[2] -> errors;
left_kind[3] -> Discard;

from_right :: IPClassifier(dst host $LEFT_IP or dst host $RIGHT_IP, -);
right[0] -> right_whole :: IPReassembler -> from_right;
from_right[0] -> right_own :: Own($RIGHT_MTU) -> to_right;
from_right[1] -> answers :: Counter -> right_hop :: Hop($RIGHT_IP)
    -> right_kind :: IPClassifier(tcp or udp, icmp type echo-reply, icmp, -);
right_hop[1] -> to_right;
right_kind[0] -> [1]flows;
right_kind[1] -> [1]pings;
right_kind[2] -> errors;
right_kind[3] -> Discard;

flows[0] -> to_right;
flows[1] -> to_left;
pings[0] -> to_right;
pings[1] -> to_left;
errors -> side :: IPClassifier(dst net $LEFT_NET, -);
side[0] -> to_left;
side[1] -> to_right;
