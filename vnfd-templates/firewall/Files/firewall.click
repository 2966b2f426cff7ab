// SPDX-License-Identifier: Apache-2.0
// Routed firewall between two networks. vif 0 is left, vif 1 is right.
// $LEFT_MAC, $LEFT_IP, $LEFT_NET and the same for RIGHT are defined from the
// Neutron ports. The rules are set by the handler fw.config; until that is
// written nothing passes.

require(library vif.click);

left_arp :: ARPQuerier($LEFT_IP, $LEFT_MAC, ANNOUNCE $LEFT_IP);
right_arp :: ARPQuerier($RIGHT_IP, $RIGHT_MAC, ANNOUNCE $RIGHT_IP);
left_out :: Queue(1024) -> left_tx :: Counter -> ToDevice(0);
right_out :: Queue(1024) -> right_tx :: Counter -> ToDevice(1);
left_arp -> left_out;
right_arp -> right_out;

// Arriving: answer and learn ARP, take IPv4, drop the rest.
FromDevice(0) -> left_in :: Counter -> left :: FromVif($LEFT_MAC, $LEFT_IP);
left[0] -> received :: Counter;
left[1] -> left_out;
left[2] -> [1]left_arp;

FromDevice(1) -> right_in :: Counter -> right :: FromVif($RIGHT_MAC, $RIGHT_IP);
right[0] -> received;
right[1] -> right_out;
right[2] -> [1]right_arp;

// Answers of the firewall itself.
back :: IPClassifier(dst net $LEFT_NET, dst net $RIGHT_NET);
back[0] -> left_arp;
back[1] -> right_arp;

// The forwarded path, the same for both directions. IPFilter drops what it
// denies, so that is received.count less passed.count; fw.hits tells by rule.
fw :: IPFilter(deny all);
route :: IPClassifier(dst host $LEFT_IP or dst host $RIGHT_IP,
                      dst net $LEFT_NET, dst net $RIGHT_NET, -);
received -> fw -> passed :: Counter -> route;
route[0] -> for_us :: Counter -> Own($LEFT_MTU) -> back;
route[3] -> no_route :: Counter -> Discard;

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
