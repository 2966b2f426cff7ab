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
from_left :: CheckIPHeader
    -> left_kind :: IPClassifier(
        src net $LEFT_NET and dst net $REMOTE,
        dst host $LEFT_IP and icmp type echo, -);
left_kind[0] -> left_ttl :: DecIPTTL -> size :: IPFragmenter(1476)
    -> Unstrip(4) -> StoreData(0, \<00000800>)
    -> IPEncap(47, $RIGHT_IP, $PEER) -> tunnel_tx :: Counter -> to_right;
left_kind[1] -> ICMPPingResponder -> to_left;
left_kind[2] -> unknown :: Counter -> Discard;
left_ttl[1] -> ICMPError($LEFT_IP, timeexceeded) -> errors :: Counter
    -> to_left;
size[1] -> ICMPError($LEFT_IP, unreachable, needfrag, PMTU 1476) -> errors;

// A GRE header of four zero bits and version 0: no checksum, key or number.
from_right :: CheckIPHeader
    -> right_kind :: IPClassifier(
        src host $PEER and dst host $RIGHT_IP and ip proto 47,
        dst host $RIGHT_IP and icmp type echo, -);
right_kind[0] -> StripIPHeader -> gre :: Classifier(0/00000800, -);
right_kind[1] -> ICMPPingResponder -> to_right;
right_kind[2] -> unknown;
gre[0] -> tunnel_rx :: Counter -> Strip(4) -> inner :: CheckIPHeader
    -> inner_kind :: IPClassifier(src net $REMOTE and dst net $LEFT_NET, -);
gre[1] -> other :: Counter -> Discard;
inner[1] -> other;
inner_kind[0] -> right_ttl :: DecIPTTL -> to_left;
inner_kind[1] -> other;
right_ttl[1] -> Discard;

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
