// SPDX-License-Identifier: Apache-2.0
// GRE tunnel end point (RFC 2784) for IPv4. vif 0 is left, whose hosts use
// its address as gateway to the network REMOTE behind PEER. vif 1 is right,
// the network that carries the tunnel.

require(library vif.click);

left_arp :: ARPQuerier($LEFT_IP, $LEFT_MAC, ANNOUNCE $LEFT_IP);
right_arp :: ARPQuerier($RIGHT_IP, $RIGHT_MAC, ANNOUNCE $RIGHT_IP);
left_out :: Queue(1024) -> left_tx :: Counter -> ToDevice(0);
right_out :: Queue(1024) -> right_tx :: Counter -> ToDevice(1);
left_arp -> left_out;
right_arp -> right_out;
to_left :: GetIPAddress(16) -> left_arp;
to_right :: StaticIPLookup($RIGHT_NET 0, 0.0.0.0/0 $RIGHT_GW 0) -> right_arp;

// The tunnel carries 1,476 bytes: 1,500 less an IP and a GRE header. Long
// packets are fragmented before the tunnel, so the peer need not reassemble.
from_left :: IPClassifier(
    src net $LEFT_NET and dst net $REMOTE, dst host $LEFT_IP and icmp, -);
from_left[0] -> left_ttl :: Hop($LEFT_IP) -> size :: Fit(1476, $LEFT_IP)
    -> Unstrip(4) -> StoreData(0, \<00000800>)
    -> IPEncap(47, $RIGHT_IP, $PEER) -> tunnel_tx :: Counter -> to_right;
from_left[1] -> left_own :: Own($LEFT_MTU) -> to_left;
from_left[2] -> unknown :: Counter -> Discard;
left_ttl[1] -> errors :: Counter -> to_left;
size[1] -> errors;

// A GRE header of four zero bits and version 0: no checksum, key or number.
from_right :: IPClassifier(
    src host $PEER and dst host $RIGHT_IP and ip proto 47,
    dst host $RIGHT_IP and icmp, -);
from_right[0] -> StripIPHeader -> gre :: Classifier(0/00000800, -);
from_right[1] -> right_own :: Own($RIGHT_MTU) -> to_right;
from_right[2] -> unknown;
gre[0] -> tunnel_rx :: Counter -> Strip(4) -> inner :: CheckIPHeader
    -> inner_kind :: IPClassifier(src net $REMOTE and dst net $LEFT_NET, -);
gre[1] -> other :: Counter -> Discard;
inner[1] -> other;
inner_kind[0] -> right_ttl :: Hop($LEFT_IP) -> left_fit :: Fit($LEFT_MTU, $LEFT_IP)
    -> to_left;
inner_kind[1] -> other;
// Errors go back through the tunnel.
right_ttl[1] -> size;
left_fit[1] -> size;

FromDevice(0) -> left_in :: Counter
    -> left :: FromVif($LEFT_MAC, $LEFT_IP, $LEFT_IP $RIGHT_IP);
left[0] -> from_left;
left[1] -> left_out;
left[2] -> [1]left_arp;

FromDevice(1) -> right_in :: Counter
    -> right :: FromVif($RIGHT_MAC, $RIGHT_IP, $LEFT_IP $RIGHT_IP);
right[0] -> from_right;
right[1] -> right_out;
right[2] -> [1]right_arp;
