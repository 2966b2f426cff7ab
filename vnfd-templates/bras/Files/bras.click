// SPDX-License-Identifier: Apache-2.0
// BRAS for IPv4. vif 0 is left, whose hosts open PPPoE sessions. vif 1 is
// right, the network. Users and passwords come by handlers. Sessions survive
// a hot swap.

require(library vif.click);

right_arp :: ARPQuerier($RIGHT_IP, $RIGHT_MAC, ANNOUNCE $RIGHT_IP $SUBSCRIBERS);
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
between :: Fit(1492, $RIGHT_IP) -> to_left;

server[1] -> CheckIPHeader(ROUTED true) -> from_left :: IPClassifier(
        dst host $LEFT_IP and icmp, dst host $LEFT_IP,
        dst net $SUBSCRIBERS, -);
from_left[0] -> left_own :: Own(1492) -> between;
from_left[1] -> unknown :: Counter -> Discard;
from_left[2] -> left_ttl :: Hop($LEFT_IP) -> between;
from_left[3] -> right_ttl :: Hop($LEFT_IP) -> size :: Fit($RIGHT_MTU, $LEFT_IP)
    -> to_right;
left_ttl[1] -> to_left;
right_ttl[1] -> to_left;
size[1] -> to_left;

from_right :: IPClassifier(
    src net $SUBSCRIBERS, dst host $RIGHT_IP and icmp,
    dst net $SUBSCRIBERS, -);
from_right[0] -> foreign :: Counter -> Discard;
from_right[1] -> right_own :: Own($RIGHT_MTU) -> size;
from_right[2] -> ttl :: Hop($RIGHT_IP) -> between;
from_right[3] -> unknown;
ttl[1] -> to_right;
between[1] -> back :: IPClassifier(dst net $SUBSCRIBERS, -);
back[0] -> to_left;
back[1] -> to_right;

FromDevice(0) -> left_in :: Counter
    -> left_type :: Classifier(12/8863, 12/8864);
left_type[0] -> [0]server;
left_type[1] -> [0]server;

FromDevice(1) -> right_in :: Counter
    -> right :: FromVif($RIGHT_MAC, $RIGHT_IP $SUBSCRIBERS, $LEFT_IP $RIGHT_IP);
right[0] -> from_right;
right[1] -> right_out;
right[2] -> [1]right_arp;
