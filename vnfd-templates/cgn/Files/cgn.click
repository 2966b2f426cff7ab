// SPDX-License-Identifier: Apache-2.0
// Carrier-grade NAT. vif 0 is left (subscribers), vif 1 is right (public).
// Each subscriber has its own BLOCK of ports of an address of PUBLIC (RFC
// 7422). State survives a hot swap.

left_arp :: ARPQuerier($LEFT_IP, $LEFT_MAC);
right_arp :: ARPQuerier($RIGHT_IP, $RIGHT_MAC);
left_out :: Queue(1024) -> left_tx :: Counter -> ToDevice(0);
right_out :: Queue(1024) -> right_tx :: Counter -> ToDevice(1);
left_arp -> left_out;
right_arp -> right_out;

// Output 0 is to right, output 1 is to left. A port serves one flow at a
// time, so BLOCK limits a subscriber's flows of TCP, of UDP and of ping.
blocks :: PortBlockMapper($SUBSCRIBERS, $PUBLIC, FIRST_PORT $PORTS_FIRST,
                          LAST_PORT $PORTS_LAST, BLOCK $BLOCK);
flows :: IPRewriter(blocks, drop, MAPPING_CAPACITY $FLOWS);
pings :: ICMPPingRewriter(blocks, drop, MAPPING_CAPACITY flows);
errors :: ICMPRewriter(flows pings);

// Active FTP: the mapper rewrites addresses in the control connection and
// opens the data connection's flow.
ftp :: FTPPortMapper(flows, flows, 0);

to_right :: DecIPTTL -> GetIPAddress(16)
    -> hop :: StaticIPLookup($RIGHT_NET 0, 0.0.0.0/0 $RIGHT_GW 0) -> right_arp;
to_left :: DecIPTTL -> GetIPAddress(16)
    -> left_hop :: StaticIPLookup($LEFT_NET 0, 0.0.0.0/0 $LEFT_GW 0)
    -> left_arp;

from_left :: CheckIPHeader
    -> left_own :: IPClassifier(dst host $LEFT_IP and icmp type echo,
                                dst host $LEFT_IP or dst host $RIGHT_IP
                                    or dst net $PUBLIC, -);
left_own[0] -> ICMPPingResponder -> to_left;
left_own[1] -> Discard;
left_own[2] -> left_kind :: IPClassifier(tcp dst port ftp, tcp or udp,
                                         icmp type echo, icmp, -);
left_kind[0] -> ftp -> [0]flows;
left_kind[1] -> [0]flows;
left_kind[2] -> [0]pings;
left_kind[3] -> errors;
left_kind[4] -> unknown :: Counter -> Discard;

from_right :: CheckIPHeader
    -> right_kind :: IPClassifier(dst net $PUBLIC and (tcp or udp),
                                  dst net $PUBLIC and icmp type echo-reply,
                                  dst net $PUBLIC and icmp, -);
right_kind[0] -> [1]flows;
right_kind[1] -> [1]pings;
right_kind[2] -> errors;
right_kind[3] -> unknown;

flows[0] -> to_right;
flows[1] -> to_left;
pings[0] -> to_right;
pings[1] -> to_left;
errors -> side :: IPClassifier(dst net $SUBSCRIBERS, -);
side[0] -> to_left;
side[1] -> to_right;
to_left[1] -> Discard;
to_right[1] -> Discard;

FromDevice(0) -> left_in :: Counter
    -> left_type :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800);
left_type[0] -> ARPResponder($LEFT_IP $LEFT_MAC) -> left_out;
left_type[1] -> [1]left_arp;
left_type[2] -> Strip(14) -> from_left;

FromDevice(1) -> right_in :: Counter
    -> right_type :: Classifier(12/0806 20/0001, 12/0806 20/0002, 12/0800);
right_type[0] -> ARPResponder($RIGHT_IP $PUBLIC $RIGHT_MAC) -> right_out;
right_type[1] -> [1]right_arp;
right_type[2] -> Strip(14) -> from_right;
