// SPDX-License-Identifier: Apache-2.0
// Layer 4 load balancer. vif 0 is left (clients), vif 1 is right (servers).
// Clients use the address of left and SERVICE_PORT. A client's address
// decides by consistent hashing which server its flows get, among those that
// answer probes. Servers use the address of right as their gateway.

require(library vif.click);

left_arp :: ARPQuerier($LEFT_IP, $LEFT_MAC, ANNOUNCE $LEFT_IP);
right_arp :: ARPQuerier($RIGHT_IP, $RIGHT_MAC, ANNOUNCE $RIGHT_IP);
left_out :: Queue(1024) -> left_tx :: Counter -> ToDevice(0);
right_out :: Queue(1024) -> right_tx :: Counter -> ToDevice(1);
left_arp -> left_out;
right_arp -> right_out;

// Probes go to the servers of the handler pool.servers.
pool :: ServerPool($RIGHT_IP, PORT $HEALTH_PORT) -> right_arp;
flows :: IPRewriter(pool, drop, MAPPING_CAPACITY 4096);
errors :: ICMPRewriter(flows);

// Packets that leave. An error about one of them quotes its new addresses, so
// it goes through the flows, too.
to_right :: Fit($RIGHT_MTU, $LEFT_IP) -> right_arp;
to_left :: Fit($LEFT_MTU, $RIGHT_IP) -> GetIPAddress(16)
    -> hop :: StaticIPLookup($LEFT_NET 0, 0.0.0.0/0 $LEFT_GW 0) -> left_arp;
to_right[1] -> errors;
to_left[1] -> errors;

// Fragments are put together first, since only the first has ports.
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

flows[0] -> to_right;
flows[1] -> to_left;
errors -> side :: IPClassifier(dst net $RIGHT_NET, -);
side[0] -> to_right;
side[1] -> to_left;

FromDevice(0) -> left_in :: Counter -> left :: FromVif($LEFT_MAC, $LEFT_IP);
left[0] -> left_whole :: IPReassembler -> from_left;
left[1] -> left_out;
left[2] -> [1]left_arp;

FromDevice(1) -> right_in :: Counter -> right :: FromVif($RIGHT_MAC, $RIGHT_IP);
right[0] -> right_whole :: IPReassembler -> from_right;
right[1] -> right_out;
right[2] -> [1]right_arp;
