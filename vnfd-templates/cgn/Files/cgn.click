// SPDX-License-Identifier: Apache-2.0
// Carrier-grade NAT. vif 0 is left (subscribers), vif 1 is right (public).
// Each subscriber has its own BLOCK of ports of an address of PUBLIC (RFC
// 7422). State survives a hot swap.

require(library vif.click);

left_arp :: ARPQuerier($LEFT_IP, $LEFT_MAC, ANNOUNCE $LEFT_IP);
right_arp :: ARPQuerier($RIGHT_IP, $RIGHT_MAC, ANNOUNCE $RIGHT_IP $PUBLIC);
left_out :: Queue(1024) -> left_tx :: Counter -> ToDevice(0);
right_out :: Queue(1024) -> right_tx :: Counter -> ToDevice(1);
left_arp -> left_out;
right_arp -> right_out;

// Output 0 is to right, output 1 is to left. An inside address and port has
// one public port, whatever it talks to, so BLOCK limits a subscriber's ports
// of TCP and of UDP, and its pings; flows to many targets use one port, so
// SUBSCRIBER_FLOWS limits them (RFC 6888, REQ-5). FILTERING says who reaches a
// port.
blocks :: PortBlockMapper($SUBSCRIBERS, $PUBLIC, FIRST_PORT $PORTS_FIRST,
                          LAST_PORT $PORTS_LAST, BLOCK $BLOCK,
                          FLOWS $SUBSCRIBER_FLOWS, LOG syslog);
flows :: IPRewriter(blocks 0 1, bound 1 0 $FILTERING, blocks 2 1, bound 1 2,
                    MAPPING_CAPACITY $FLOWS, ENDPOINTS true,
                    REAP_INTERVAL 10);
pings :: ICMPPingRewriter(blocks, drop, MAPPING_CAPACITY flows,
                          REAP_INTERVAL 10);
errors :: ICMPRewriter(flows:0 pings:0);

// Active FTP: the mapper rewrites addresses in the control connection and
// opens the data connection's flow.
ftp :: FTPPortMapper(flows, flows, 0);

// Packets that leave. An error about one of them quotes its new addresses, so
// it goes through the flows, too, which know the side of its receiver.
to_right :: Fit($RIGHT_MTU, $LEFT_IP) -> GetIPAddress(16)
    -> hop :: StaticIPLookup($RIGHT_NET 0, 0.0.0.0/0 $RIGHT_GW 0) -> right_arp;
to_left :: Fit($LEFT_MTU, $RIGHT_IP) -> GetIPAddress(16)
    -> left_hop :: StaticIPLookup($LEFT_NET 0, 0.0.0.0/0 $LEFT_GW 0)
    -> left_arp;
to_right[1] -> errors;
to_left[1] -> errors;

// Blocks that come into use and out of it (RFC 6888, REQ-12).
syslog :: Syslog($RIGHT_IP, cgn, RATE 1000) -> to_right;

// Fragments are put together first, since only the first has ports (RFC 4787,
// REQ-14). No other host sends from an address of PUBLIC. An inside host
// reaches another one by its public port (REQ-9): the packet goes through the
// flows twice, as do errors about it (RFC 5508, REQ-7).
from_left :: IPClassifier(
    src net $PUBLIC,
    dst host $LEFT_IP or dst host $RIGHT_IP
        or dst net $PUBLIC and icmp type echo,
    dst net $PUBLIC and (tcp or udp), -);
from_left[0] -> unknown :: Counter -> Discard;
from_left[1] -> left_own :: Own($LEFT_MTU) -> to_left;
from_left[2] -> hairpin_hop :: Hop($LEFT_IP) -> [2]flows;
from_left[3] -> left_hop_count :: Hop($LEFT_IP)
    -> left_kind :: IPClassifier(tcp dst port ftp, tcp or udp,
                                 icmp type echo, icmp, -);
hairpin_hop[1] -> to_left;
left_hop_count[1] -> to_left;
left_kind[0] -> ftp -> [0]flows;
left_kind[1] -> [0]flows;
left_kind[2] -> [0]pings;
left_kind[3] -> errors;
left_kind[4] -> unknown;
flows[2] -> [3]flows;

from_right :: IPClassifier(
    src net $PUBLIC or src net $SUBSCRIBERS,
    dst net $PUBLIC and (tcp or udp), dst net $PUBLIC and icmp type echo-reply,
    dst host $RIGHT_IP or dst net $PUBLIC and icmp type echo,
    dst net $PUBLIC and icmp, -);
from_right[0] -> unknown;
from_right[1] -> right_hop :: Hop($RIGHT_IP) -> [1]flows;
from_right[2] -> ping_hop :: Hop($RIGHT_IP) -> [1]pings;
from_right[3] -> right_own :: Own($RIGHT_MTU) -> to_right;
from_right[4] -> error_hop :: Hop($RIGHT_IP) -> errors;
from_right[5] -> unknown;
right_hop[1] -> to_right;
ping_hop[1] -> to_right;
error_hop[1] -> to_right;

flows[0] -> to_right;
flows[1] -> to_left;
pings[0] -> to_right;
pings[1] -> to_left;
errors[0] -> to_right;
errors[1] -> to_left;
errors[2] -> errors;

FromDevice(0) -> left_in :: Counter
    -> left :: FromVif($LEFT_MAC, $LEFT_IP, $LEFT_IP $RIGHT_IP);
left[0] -> left_whole :: IPReassembler -> from_left;
left[1] -> left_out;
left[2] -> [1]left_arp;

FromDevice(1) -> right_in :: Counter
    -> right :: FromVif($RIGHT_MAC, $RIGHT_IP $PUBLIC, $LEFT_IP $RIGHT_IP);
right[0] -> right_whole :: IPReassembler -> from_right;
right[1] -> right_out;
right[2] -> [1]right_arp;
