// SPDX-License-Identifier: Apache-2.0
// WireGuard gateway for IPv4. vif 0 is left, whose hosts use its address as
// gateway to the networks of the peers. vif 1 is right, the network that
// carries the tunnel. Peers and the private key come by handlers.

require(library vif.click);

left_arp :: ARPQuerier($LEFT_IP, $LEFT_MAC, ANNOUNCE $LEFT_IP);
right_arp :: ARPQuerier($RIGHT_IP, $RIGHT_MAC, ANNOUNCE $RIGHT_IP);
left_out :: Queue(1024) -> left_tx :: Counter -> ToDevice(0);
right_out :: Queue(1024) -> right_tx :: Counter -> ToDevice(1);
left_arp -> left_out;
right_arp -> right_out;
to_left :: GetIPAddress(16) -> left_arp;
to_right :: StaticIPLookup($RIGHT_NET 0, 0.0.0.0/0 $RIGHT_GW 0) -> right_arp;

wg :: WireGuard($RIGHT_IP, 51820);

// The tunnel carries 1,420 bytes, as other ends of WireGuard expect: 1,500
// less an IP, a UDP and WireGuard's header, its tag, and room for IPv6.
from_left :: CheckIPHeader
    -> left_kind :: IPClassifier(
        dst host $LEFT_IP and icmp type echo, dst host $LEFT_IP,
        src net $LEFT_NET, -);
left_kind[0] -> ICMPPingResponder -> to_left;
left_kind[1] -> unknown :: Counter -> Discard;
left_kind[2] -> left_ttl :: DecIPTTL -> size :: IPFragmenter(1420)
    -> tunnel_tx :: Counter -> [0]wg;
left_kind[3] -> unknown;
left_ttl[1] -> ICMPError($LEFT_IP, timeexceeded) -> errors :: Counter
    -> to_left;
size[1] -> ICMPError($LEFT_IP, unreachable, needfrag, PMTU 1420) -> errors;

from_right :: CheckIPHeader
    -> right_kind :: IPClassifier(
        dst host $RIGHT_IP and udp and dst port 51820,
        dst host $RIGHT_IP and icmp type echo, -);
right_kind[0] -> [1]wg;
right_kind[1] -> ICMPPingResponder -> to_right;
right_kind[2] -> unknown;

wg[0] -> to_right;
wg[1] -> tunnel_rx :: Counter -> inner :: CheckIPHeader
    -> inner_kind :: IPClassifier(dst net $LEFT_NET, -);
inner[1] -> other :: Counter -> Discard;
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
