// SPDX-License-Identifier: Apache-2.0
// BRAS for IPv4 and IPv6. vif 0 is left, whose hosts open PPPoE sessions. vif 1
// is right, the network. Users and passwords come by handlers, or RADIUS
// servers of right decide. Sessions survive a hot swap.

require(library vif.click);
require(library vif6.click);

right_arp :: ARPQuerier($RIGHT_IP, $RIGHT_MAC, ANNOUNCE $RIGHT_IP $SUBSCRIBERS);
left_out :: Queue(1024) -> left_tx :: Counter -> ToDevice(0);
right_out :: Queue(1024) -> right_tx :: Counter -> ToDevice(1);
right_arp -> right_out;
to_right :: GetIPAddress(16)
    -> hop :: StaticIPLookup($RIGHT_NET 0, 0.0.0.0/0 $RIGHT_GW 0) -> right_arp;

// It checks that packets of a session have the subscriber's address, and
// keeps each session to its rates.
server :: PPPoEServer($LEFT_MAC, $LEFT_IP, DNS "$DNS $SECOND_DNS",
                      AUTH $LOGIN, SESSIONS $SESSIONS,
                      NETWORK $SUBSCRIBERS, NETWORKS6 $SUBSCRIBERS6,
                      SRC $RIGHT_IP, SIGNED $RADIUS_SIGNED);
server[0] -> left_out;
server[2] -> to_right;
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
    dst host $RIGHT_IP and udp, dst net $SUBSCRIBERS, -);
from_right[0] -> foreign :: Counter -> Discard;
from_right[1] -> right_own :: Own($RIGHT_MTU) -> size;
from_right[2] -> IPReassembler(HIMEM 65536) -> [2]server;
from_right[3] -> ttl :: Hop($RIGHT_IP) -> between;
from_right[4] -> unknown;
ttl[1] -> to_right;
between[1] -> back :: IPClassifier(dst net $SUBSCRIBERS, -);
back[0] -> to_left;
back[1] -> to_right;

// IPv6: the networks of subscribers are routed to $RIGHT_IP6.
right_nd :: IP6NDSolicitor($RIGHT_IP6, $RIGHT_MAC, ANNOUNCE true) -> right_out;
to_right6 :: LookupIP6Route($RIGHT_NET6 0, ::/0 $RIGHT_GW6 0) -> right_nd;
between6 :: Fit6(1492, $RIGHT_IP6) -> to_left;
between6[1] -> back6 :: IPClassifier(dst net $SUBSCRIBERS6, -);
back6[0] -> to_left;
back6[1] -> to_right6;

server[3] -> CheckIP6Header($RIGHT_IP6, ROUTED true) -> GetIP6Address(24)
    -> from_left6 :: IPClassifier(dst host $RIGHT_IP6,
                                  dst net $SUBSCRIBERS6, -);
from_left6[0] -> left_own6 :: ICMP6PingResponder -> to_left;
from_left6[1] -> left_hops6 :: Hop6($RIGHT_IP6) -> between6;
from_left6[2] -> right_hops6 :: Hop6($RIGHT_IP6)
    -> size6 :: Fit6($RIGHT_MTU, $RIGHT_IP6) -> to_right6;
left_hops6[1] -> to_left;
right_hops6[1] -> to_left;
size6[1] -> to_left;

from_right6 :: IPClassifier(src net $SUBSCRIBERS6, dst host $RIGHT_IP6,
                            dst net $SUBSCRIBERS6, -);
from_right6[0] -> foreign;
from_right6[1] -> right_own6 :: ICMP6PingResponder -> to_right6;
from_right6[2] -> hops6 :: Hop6($RIGHT_IP6) -> between6;
from_right6[3] -> unknown;
hops6[1] -> to_right6;

FromDevice(0) -> left_in :: Counter
    -> left_type :: Classifier(12/8863, 12/8864);
// A host that dials again and again leaves room for the others.
left_type[0] -> dials :: EtherRatedSplitter(2, 32) -> [0]server;
dials[1] -> too_many :: Counter -> Discard;
left_type[1] -> [0]server;

FromDevice(1) -> right_in :: Counter
    -> right :: FromDualVif($RIGHT_MAC, $RIGHT_IP $SUBSCRIBERS,
                            $LEFT_IP $RIGHT_IP);
right[0] -> from_right;
right[1] -> right_out;
right[2] -> [1]right_arp;
right[3] -> right6 :: FromVif6($RIGHT_MAC, $RIGHT_IP6, $RIGHT_IP6);
right6[0] -> from_right6;
right6[1] -> right_out;
right6[2] -> [1]right_nd;
