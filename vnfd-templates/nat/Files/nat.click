// SPDX-License-Identifier: Apache-2.0
// Network address and port translation. vif 0 is left (subscribers), vif 1
// is right. Flows of left get the address PUBLIC, which all guests share, and
// a port of this guest's PORTS. State survives a hot swap.

require(library vif.click);

left_arp :: ARPQuerier($LEFT_IP, $LEFT_MAC, ANNOUNCE $LEFT_IP);
right_arp :: ARPQuerier($RIGHT_IP, $RIGHT_MAC, ANNOUNCE $RIGHT_IP $PUBLIC);
left_out :: Queue(1024) -> left_tx :: Counter -> ToDevice(0);
right_out :: Queue(1024) -> right_tx :: Counter -> ToDevice(1);
left_arp -> left_out;
right_arp -> right_out;

// Output 0 is to right, output 1 is to left. By MAPPING an inside address and
// port has one public port, whatever it talks to. FILTERING says who reaches
// it.
public :: IPRewriterPatterns(public $PUBLIC $PORTS - -);
flows :: IPRewriter(pattern public 0 1, bound 1 0 $FILTERING,
                    pattern public 2 1, bound 1 2,
                    MAPPING_CAPACITY $FLOWS, ENDPOINTS $MAPPING,
                    REAP_INTERVAL 10);
pings :: ICMPPingRewriter(pattern public 0 1, drop, MAPPING_CAPACITY 1024,
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

// Fragments are put together first, since only the first has ports (RFC 4787,
// REQ-14). An inside host reaches another one by its public port (REQ-9): the
// packet goes through the flows twice, as do errors about it (RFC 5508,
// REQ-7).
from_left :: IPClassifier(
    dst host $LEFT_IP or dst host $RIGHT_IP
        or dst host $PUBLIC and icmp type echo,
    dst host $PUBLIC and (tcp or udp), -);
from_left[0] -> left_own :: Own($LEFT_MTU) -> to_left;
from_left[1] -> hairpin_hop :: Hop($LEFT_IP) -> [2]flows;
from_left[2] -> left_hop_count :: Hop($LEFT_IP)
    -> left_kind :: IPClassifier(tcp dst port ftp, tcp or udp,
                                 icmp type echo, icmp, -);
hairpin_hop[1] -> to_left;
left_hop_count[1] -> to_left;
left_kind[0] -> ftp -> [0]flows;
left_kind[1] -> [0]flows;
left_kind[2] -> [0]pings;
left_kind[3] -> errors;
left_kind[4] -> unknown :: Counter -> Discard;
flows[2] -> [3]flows;

from_right :: IPClassifier(
    dst host $PUBLIC and (tcp or udp), dst host $PUBLIC and icmp type echo-reply,
    dst host $RIGHT_IP or dst host $PUBLIC and icmp type echo,
    dst host $PUBLIC and icmp, -);
from_right[0] -> right_hop :: Hop($RIGHT_IP) -> [1]flows;
from_right[1] -> ping_hop :: Hop($RIGHT_IP) -> [1]pings;
from_right[2] -> right_own :: Own($RIGHT_MTU) -> to_right;
from_right[3] -> error_hop :: Hop($RIGHT_IP) -> errors;
from_right[4] -> unknown;
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
    -> left :: FromVif($LEFT_MAC, $LEFT_IP, $LEFT_IP $RIGHT_IP $PUBLIC);
left[0] -> left_whole :: IPReassembler -> from_left;
left[1] -> left_out;
left[2] -> [1]left_arp;

FromDevice(1) -> right_in :: Counter
    -> right :: FromVif($RIGHT_MAC, $RIGHT_IP $PUBLIC,
                        $LEFT_IP $RIGHT_IP $PUBLIC);
right[0] -> right_whole :: IPReassembler -> from_right;
right[1] -> right_out;
right[2] -> [1]right_arp;
