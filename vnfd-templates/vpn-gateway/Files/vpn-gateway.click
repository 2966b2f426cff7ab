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
from_left :: IPClassifier(
    dst host $LEFT_IP and icmp, dst host $LEFT_IP, src net $LEFT_NET, -);
from_left[0] -> left_own :: Own($LEFT_MTU) -> to_left;
from_left[1] -> unknown :: Counter -> Discard;
from_left[2] -> left_ttl :: Hop($LEFT_IP) -> size :: Fit(1420, $LEFT_IP)
    -> tunnel_tx :: Counter -> [0]wg;
from_left[3] -> unknown;
left_ttl[1] -> errors :: Counter -> to_left;
size[1] -> errors;

from_right :: IPClassifier(
    dst host $RIGHT_IP and udp and dst port 51820,
    dst host $RIGHT_IP and icmp, -);
from_right[0] -> [1]wg;
from_right[1] -> right_own :: Own($RIGHT_MTU) -> to_right;
from_right[2] -> unknown;

wg[0] -> to_right;
wg[1] -> tunnel_rx :: Counter -> inner :: CheckIPHeader
    -> inner_kind :: IPClassifier(dst net $LEFT_NET, -);
inner[1] -> other :: Counter -> Discard;
inner_kind[0] -> right_ttl :: Hop($LEFT_IP)
    -> left_fit :: Fit($LEFT_MTU, $LEFT_IP) -> to_left;
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
