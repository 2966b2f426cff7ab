// SPDX-License-Identifier: Apache-2.0
// BRAS for IPv4. vif 0 is left, whose hosts open PPPoE sessions. vif 1 is
// right, the network. Users and passwords come by handlers. Sessions survive
// a hot swap.

require(library vif.click);

right_arp :: ARPQuerier($RIGHT_IP, $RIGHT_MAC, ANNOUNCE $RIGHT_IP);
left_out :: Queue(1024) -> left_tx :: Counter -> ToDevice(0);
right_out :: Queue(1024) -> right_tx :: Counter -> ToDevice(1);
right_arp -> right_out;
to_right :: GetIPAddress(16)
    -> hop :: StaticIPLookup($RIGHT_NET 0, 0.0.0.0/0 $RIGHT_GW 0) -> right_arp;

// It checks that packets of a session have the subscriber's address, and
// keeps each session to its rates.
server :: PPPoEServer($LEFT_MAC, $LEFT_IP, DNS "$DNS $SECOND_DNS",
                      AUTH $LOGIN, SESSIONS $SESSIONS);
server[0] -> left_out;
to_left :: Null -> [1]server;

// A session carries 1,492 bytes; longer packets are fragmented or refused.
between :: IPFragmenter(1492) -> to_left;

server[1] -> from_left :: CheckIPHeader
    -> left_kind :: IPClassifier(
        dst host $LEFT_IP and icmp type echo, dst host $LEFT_IP,
        dst net $SUBSCRIBERS, -);
left_kind[0] -> ICMPPingResponder -> to_left;
left_kind[1] -> unknown :: Counter -> Discard;
left_kind[2] -> left_ttl :: DecIPTTL -> between;
left_kind[3] -> right_ttl :: DecIPTTL -> to_right;
left_ttl[1] -> left_error :: ICMPError($LEFT_IP, timeexceeded) -> to_left;
right_ttl[1] -> left_error;

from_right :: CheckIPHeader
    -> right_kind :: IPClassifier(
        src net $SUBSCRIBERS, dst host $RIGHT_IP and icmp type echo,
        dst net $SUBSCRIBERS, -);
right_kind[0] -> foreign :: Counter -> Discard;
right_kind[1] -> ICMPPingResponder -> to_right;
right_kind[2] -> ttl :: DecIPTTL -> between;
right_kind[3] -> unknown;
ttl[1] -> ICMPError($RIGHT_IP, timeexceeded) -> to_right;
between[1] -> ICMPError($RIGHT_IP, unreachable, needfrag, PMTU 1492)
    -> back :: IPClassifier(dst net $SUBSCRIBERS, -);
back[0] -> to_left;
back[1] -> to_right;

FromDevice(0) -> left_in :: Counter
    -> left_type :: Classifier(12/8863, 12/8864);
left_type[0] -> [0]server;
left_type[1] -> [0]server;

FromDevice(1) -> right_in :: Counter -> right :: FromVif($RIGHT_MAC, $RIGHT_IP $SUBSCRIBERS);
right[0] -> from_right;
right[1] -> from_right;
right[2] -> right_out;
right[3] -> [1]right_arp;
