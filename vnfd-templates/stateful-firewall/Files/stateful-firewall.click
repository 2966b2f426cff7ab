// SPDX-License-Identifier: Apache-2.0
// Routed firewall with state, for IPv4 and IPv6. vif 0 is left (inside), vif 1
// is right. The rules judge what left begins; from right only answers pass,
// the ICMP errors about known flows, and what INBOUND allows to begin. State
// survives a hot swap.

require(library vif.click);
require(library vif6.click);

left_arp :: ARPQuerier($LEFT_IP, $LEFT_MAC, ANNOUNCE $LEFT_IP);
right_arp :: ARPQuerier($RIGHT_IP, $RIGHT_MAC, ANNOUNCE $RIGHT_IP);
left_nd :: IP6NDSolicitor($LEFT_IP6, $LEFT_MAC, ANNOUNCE true);
right_nd :: IP6NDSolicitor($RIGHT_IP6, $RIGHT_MAC, ANNOUNCE true);
left_out :: Queue(1024) -> left_tx :: Counter -> ToDevice(0);
right_out :: Queue(1024) -> right_tx :: Counter -> ToDevice(1);
left_arp -> left_out;
left_nd -> left_out;
right_arp -> right_out;
right_nd -> right_out;

FromDevice(0) -> left_in :: Counter
    -> left :: FromDualVif($LEFT_MAC, $LEFT_IP, $LEFT_IP $RIGHT_IP);
left[1] -> left_out;
left[2] -> [1]left_arp;
left[3] -> left6 :: FromVif6($LEFT_MAC, $LEFT_IP6, $LEFT_IP6 $RIGHT_IP6);
left6[1] -> left_out;
left6[2] -> [1]left_nd;

FromDevice(1) -> right_in :: Counter
    -> right :: FromDualVif($RIGHT_MAC, $RIGHT_IP, $LEFT_IP $RIGHT_IP);
right[1] -> right_out;
right[2] -> [1]right_arp;
right[3] -> right6 :: FromVif6($RIGHT_MAC, $RIGHT_IP6, $LEFT_IP6 $RIGHT_IP6);
right6[1] -> right_out;
right6[2] -> [1]right_nd;

to_right :: Fit($RIGHT_MTU, $LEFT_IP) -> right_arp;
to_left :: Fit($LEFT_MTU, $RIGHT_IP) -> left_arp;
to_right[1] -> to_left;
to_left[1] -> to_right;
routes6 :: Routes6($LEFT_IP6, $LEFT_NET6, $LEFT_MTU,
                   $RIGHT_IP6, $RIGHT_NET6, $RIGHT_MTU);
routes6[0] -> left_nd;
routes6[1] -> right_nd;

fw :: IPFilter(allow all);
inbound :: IPFilter(deny all);
flows :: FlowGuard(4096);

// Fragments of IPv4 are put together first, since only the first has ports.
// The rules judge what comes for the firewall itself, too. What hides its
// protocol from them does not pass (RFC 7112).
left[0] -> left_whole :: IPReassembler -> fw;
left6[0] -> fw -> passed :: Counter -> from_left :: IPClassifier(
    dst host $LEFT_IP or dst host $RIGHT_IP,
    dst host $LEFT_IP6 or dst host $RIGHT_IP6, ip6 hidden, ip6, -);
from_left[0] -> left_own :: Own($LEFT_MTU) -> to_left;
from_left[1] -> routes6;
from_left[2] -> hidden :: Counter -> Discard;
from_left[3] -> [0]flows;
from_left[4] -> left_hop :: Hop($LEFT_IP) -> [0]flows;
left_hop[1] -> to_left;

right[0] -> right_whole :: IPReassembler
    -> from_right :: IPClassifier(
        dst host $LEFT_IP or dst host $RIGHT_IP,
        dst host $LEFT_IP6 or dst host $RIGHT_IP6, ip6 hidden, ip6, -);
right6[0] -> from_right;
from_right[0] -> right_own :: Own($RIGHT_MTU) -> to_right;
from_right[1] -> routes6;
from_right[2] -> hidden;
from_right[3] -> answers :: Counter -> [1]flows;
from_right[4] -> right_hop :: Hop($RIGHT_IP) -> answers;
right_hop[1] -> to_right;

// What no flow of left has asked for may begin one, if INBOUND allows it.
flows[2] -> asked :: IPClassifier(dst net $LEFT_NET or dst net $LEFT_NET6, -);
asked[0] -> inbound -> [2]flows;
asked[1] -> other :: Counter -> Discard;

flows[0] -> out :: IPClassifier(ip6, -);
out[0] -> routes6;
out[1] -> to_right;
flows[1] -> in :: IPClassifier(ip6, -);
in[0] -> routes6;
in[1] -> to_left;
