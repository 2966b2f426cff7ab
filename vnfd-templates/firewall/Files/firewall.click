// SPDX-License-Identifier: Apache-2.0
// Routed firewall between two networks, for IPv4 and IPv6. vif 0 is left, vif 1 is right.
// $LEFT_MAC, $LEFT_IP, $LEFT_NET and the same for RIGHT are defined from the
// Neutron ports. The rules are set by the handler fw.config; until that is
// written nothing passes.

require(library vif.click);
require(library vif6.click);

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
