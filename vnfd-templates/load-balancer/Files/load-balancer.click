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

from_left :: CheckIPHeader
    -> left_kind :: IPClassifier(
        dst host $LEFT_IP and dst port $SERVICE_PORT and (tcp or udp),
        dst host $LEFT_IP and icmp type echo, dst host $LEFT_IP and icmp, -);
left_kind[0] -> requests :: Counter -> [0]flows;
left_kind[1] -> ICMPPingResponder -> to_left :: GetIPAddress(16)
    -> hop :: StaticIPLookup($LEFT_NET 0, 0.0.0.0/0 $LEFT_GW 0) -> left_arp;
left_kind[2] -> errors;
left_kind[3] -> unknown :: Counter -> Discard;

from_right :: CheckIPHeader
    -> right_kind :: IPClassifier(
        dst host $RIGHT_IP and icmp type echo,
        dst host $RIGHT_IP and (tcp or icmp type echo-reply),
        tcp or udp, icmp, -);
right_kind[0] -> ICMPPingResponder -> right_arp;
right_kind[1] -> pool;
right_kind[2] -> [1]flows;
right_kind[3] -> errors;
right_kind[4] -> unknown;

flows[0] -> right_ttl :: DecIPTTL -> right_arp;
flows[1] -> left_ttl :: DecIPTTL -> to_left;
errors -> side :: IPClassifier(dst net $RIGHT_NET, -);
side[0] -> right_ttl;
side[1] -> left_ttl;
right_ttl[1] -> Discard;
left_ttl[1] -> Discard;

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
