// SPDX-License-Identifier: Apache-2.0
// VXLAN tunnel end point (RFC 7348). vif 0 is left, a network whose frames
// travel to PEER. vif 1 is right, the network that carries the tunnel.

require(library vif.click);

right_arp :: ARPQuerier($RIGHT_IP, $RIGHT_MAC, ANNOUNCE $RIGHT_IP);
left_out :: Queue(1024) -> left_tx :: Counter -> ToDevice(0);
right_out :: Queue(1024) -> right_tx :: Counter -> ToDevice(1);
right_arp -> right_out;
to_right :: StaticIPLookup($RIGHT_NET 0, 0.0.0.0/0 $RIGHT_GW 0) -> right_arp;

// A tunnel end point does not fragment: frames end at the MTU of right less
// 50 bytes of headers, 1,450 with their Ethernet header apart.
FromDevice(0) -> left_in :: Counter -> size :: CheckLength(1464)
    -> VXLANEncap($VNI) -> UDPIPEncap($RIGHT_IP, 4789, $PEER, 4789, false)
    -> to_right;
size[1] -> too_long :: Counter -> Discard;

FromDevice(1) -> right_in :: Counter
    -> right :: FromVif($RIGHT_MAC, $RIGHT_IP, $RIGHT_IP);
right[1] -> right_out;
right[2] -> [1]right_arp;
right[0] -> kind :: IPClassifier(src host $PEER and dst host $RIGHT_IP and udp
                            and dst port 4789,
                            dst host $RIGHT_IP and icmp, -);
kind[0] -> CheckUDPHeader -> StripIPHeader -> Strip(8)
    -> tunnel :: VXLANDecap($VNI) -> left_out;
kind[1] -> Own($RIGHT_MTU) -> to_right;
kind[2] -> unknown :: Counter -> Discard;
tunnel[1] -> other :: Counter -> Discard;
