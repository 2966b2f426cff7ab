// SPDX-License-Identifier: Apache-2.0
// Layer 4 load balancer for IPv4 and IPv6. vif 0 is left (clients), vif 1 is
// right (servers). Clients use the addresses of left and SERVICE_PORT. A
// client's address decides by consistent hashing which server its flows get,
// among those of its version that answer probes. Servers use the addresses of
// right as their gateways.

require(library vif.click);
require(library vif6.click);

left_arp :: ARPQuerier($LEFT_IP, $LEFT_MAC, ANNOUNCE $LEFT_IP);
right_arp :: ARPQuerier($RIGHT_IP, $RIGHT_MAC, ANNOUNCE $RIGHT_IP);
left_nd :: IP6NDSolicitor($LEFT_IP6, $LEFT_MAC, ANNOUNCE true);
right_nd :: IP6NDSolicitor($RIGHT_IP6, $RIGHT_MAC, ANNOUNCE true);
left_out :: Queue(1024) -> left_tx :: Counter -> ToDevice(0);
right_out :: Queue(1024) -> right_tx :: Counter -> ToDevice(1);
left_arp -> left_out;
right_arp -> right_out;
left_nd -> left_out;
right_nd -> right_out;

// Probes go to the servers of the handler pool.servers.
pool :: ServerPool($RIGHT_IP, SRC6 $RIGHT_IP6, PORT $HEALTH_PORT)
    -> probes :: IPClassifier(ip6, -);
probes[0] -> right_nd;
probes[1] -> right_arp;
flows :: IPRewriter(pool, drop, MAPPING_CAPACITY 4096, REAP_INTERVAL 10);
errors :: ICMPRewriter(flows);
flows6 :: IP6Balancer($LEFT_IP6, pool, CAPACITY 4096);

// Packets that leave. An error about one of them quotes its new addresses, so
// it goes through the flows, too.
to_right :: Fit($RIGHT_MTU, $LEFT_IP) -> right_arp;
to_left :: Fit($LEFT_MTU, $RIGHT_IP) -> GetIPAddress(16)
    -> hop :: StaticIPLookup($LEFT_NET 0, 0.0.0.0/0 $LEFT_GW 0) -> left_arp;
to_right[1] -> errors;
to_left[1] -> errors;
to_right6 :: Fit6($RIGHT_MTU, $LEFT_IP6) -> right_nd;
to_left6 :: Fit6($LEFT_MTU, $RIGHT_IP6)
    -> hop6 :: LookupIP6Route($LEFT_NET6 0, ::/0 $LEFT_GW6 0) -> left_nd;
to_right6[1] -> [1]flows6;
to_left6[1] -> [0]flows6;

// Fragments of IPv4 are put together first, since only the first has ports.
// Those of IPv6 pass behind their first one.
from_left :: IPClassifier(
    dst host $LEFT_IP and dst port $SERVICE_PORT and (tcp or udp),
    dst host $LEFT_IP and icmp type echo, dst host $LEFT_IP and icmp, -);
from_left[0] -> requests :: Counter -> request_hop :: Hop($LEFT_IP)
    -> [0]flows;
from_left[1] -> left_own :: Own($LEFT_MTU) -> to_left;
from_left[2] -> left_error_hop :: Hop($LEFT_IP) -> errors;
from_left[3] -> unknown :: Counter -> Discard;
request_hop[1] -> to_left;
left_error_hop[1] -> to_left;

from_left6 :: IPClassifier(
    dst host $LEFT_IP6 and dst port $SERVICE_PORT and (tcp or udp),
    dst host $LEFT_IP6 and icmp6 type 128,
    dst host $LEFT_IP6 and (icmp6 or ip frag), -);
from_left6[0] -> requests6 :: Counter -> request_hop6 :: Hop6($LEFT_IP6)
    -> [0]flows6;
from_left6[1] -> ICMP6PingResponder -> to_left6;
from_left6[2] -> left_error_hop6 :: Hop6($LEFT_IP6) -> [0]flows6;
from_left6[3] -> unknown;
request_hop6[1] -> to_left6;
left_error_hop6[1] -> to_left6;

from_right :: IPClassifier(
    dst host $RIGHT_IP and icmp type echo,
    dst host $RIGHT_IP and (tcp or icmp type echo-reply),
    tcp or udp, icmp, -);
from_right[0] -> right_own :: Own($RIGHT_MTU) -> to_right;
from_right[1] -> pool;
from_right[2] -> answer_hop :: Hop($RIGHT_IP) -> [1]flows;
from_right[3] -> right_error_hop :: Hop($RIGHT_IP) -> errors;
from_right[4] -> unknown;
answer_hop[1] -> to_right;
right_error_hop[1] -> to_right;

from_right6 :: IPClassifier(
    dst host $RIGHT_IP6 and icmp6 type 128,
    dst host $RIGHT_IP6 and (tcp or icmp6 type 129),
    dst host $RIGHT_IP6, -);
from_right6[0] -> ICMP6PingResponder -> to_right6;
from_right6[1] -> pool;
from_right6[2] -> unknown;
from_right6[3] -> answer_hop6 :: Hop6($RIGHT_IP6) -> [1]flows6;
answer_hop6[1] -> to_right6;

flows[0] -> to_right;
flows[1] -> to_left;
errors -> side :: IPClassifier(dst net $RIGHT_NET, -);
side[0] -> to_right;
side[1] -> to_left;
flows6[0] -> to_right6;
flows6[1] -> to_left6;

FromDevice(0) -> left_in :: Counter
    -> left :: FromDualVif($LEFT_MAC, $LEFT_IP, $LEFT_IP $RIGHT_IP);
left[0] -> left_whole :: IPReassembler -> from_left;
left[1] -> left_out;
left[2] -> [1]left_arp;
left[3] -> left6 :: FromVif6($LEFT_MAC, $LEFT_IP6, $LEFT_IP6 $RIGHT_IP6);
left6[0] -> from_left6;
left6[1] -> left_out;
left6[2] -> [1]left_nd;

FromDevice(1) -> right_in :: Counter
    -> right :: FromDualVif($RIGHT_MAC, $RIGHT_IP, $LEFT_IP $RIGHT_IP);
right[0] -> right_whole :: IPReassembler -> from_right;
right[1] -> right_out;
right[2] -> [1]right_arp;
right[3] -> right6 :: FromVif6($RIGHT_MAC, $RIGHT_IP6, $LEFT_IP6 $RIGHT_IP6);
right6[0] -> from_right6;
right6[1] -> right_out;
right6[2] -> [1]right_nd;
