// SPDX-License-Identifier: Apache-2.0
// DHCP relay agent for IPv4 (RFC 2131, RFC 1542, RFC 3046) and IPv6 (RFC 8415,
// RFC 4649). vif 0 is left (clients), vif 1 is right (servers). A request gets
// the address of left as giaddr or link address and is sent to each server. An
// answer of DHCP is broadcast to the clients, one of DHCPv6 is for its client.

require(library vif.click);
require(library vif6.click);

right_arp :: ARPQuerier($RIGHT_IP, $RIGHT_MAC, ANNOUNCE $RIGHT_IP $LEFT_IP);
left_nd :: IP6NDSolicitor($LEFT_IP6, $LEFT_MAC, ANNOUNCE true);
right_nd :: IP6NDSolicitor($RIGHT_IP6, $RIGHT_MAC, ANNOUNCE true);
left_out :: Queue(256) -> left_tx :: Counter -> ToDevice(0);
right_out :: Queue(256) -> right_tx :: Counter -> ToDevice(1);
left_nd -> left_out;
right_arp -> right_out;
right_nd -> right_out;

FromDevice(0) -> left_in :: Counter
    -> left_type :: Classifier(12/0806 20/0001, 12/0800,
                               12/86dd 20/11 56/0223, 12/86dd);
left_type[0] -> ARPResponder($LEFT_IP $LEFT_MAC) -> left_out;

// At most 20 requests a second of each version: broadcasts cost a server more.
// 400 at once, so that a hundred clients may boot together. A single client
// may send 1 a second, and 16 at once, so that it leaves room for the others.
too_many :: Counter -> Discard;
left_type[1] -> Strip(14) -> CheckIPHeader
    // what a client sends to another station is not this relay's
    -> IPClassifier(udp and src port 68 and dst port 67
                    and (dst host 255.255.255.255 or dst host $LEFT_IP))
    -> CheckUDPHeader
    -> StripIPHeader -> Strip(8)
    // a request of an Ethernet host
    -> asks :: Classifier(0/01 1/0106) -> CheckLength(1400)
    -> share :: EtherRatedSplitter(1, 16)
    -> rate :: RatedSplitter(20, BURST_SIZE 400) -> requests :: Counter
    -> relay :: DHCPRelay($LEFT_IP, $SERVER, MTU $RIGHT_MTU, VERIFY true)
    -> UDPIPEncap($RIGHT_IP, 67, DST_ANNO, 67) -> to_server ::
    StaticIPLookup($RIGHT_NET 0, 0.0.0.0/0 $RIGHT_GW 0) -> right_arp;
share[1] -> too_many;
rate[1] -> too_many;

left_type[2] -> Strip(14) -> CheckIP6Header($LEFT_IP6 $RIGHT_IP6)
    -> IPClassifier(dst host ff02::1:2 or dst host $LEFT_IP6)
    -> share6 :: EtherRatedSplitter(1, 16)
    -> rate6 :: RatedSplitter(20, BURST_SIZE 400) -> requests6 :: Counter
    -> relay6 :: DHCP6Relay($LEFT_IP6, $LEFT_NET6, $RIGHT_IP6, $SERVER6,
                            REMOTE relay.remote, ENTERPRISE $ENTERPRISE,
                            INTERFACE left, RELAYS $RELAYS6, MTU $RIGHT_MTU)
    -> to_server6 :: LookupIP6Route($RIGHT_NET6 0, ff05::1:3/128 1,
                                    ff00::/8 2, ::/0 $RIGHT_GW6 0, ::/128 2);
share6[1] -> too_many;
rate6[1] -> too_many;
to_server6[0] -> right_nd;
to_server6[1] -> EtherEncap(0x86dd, $RIGHT_MAC, 33:33:00:01:00:03)
    -> right_out;
to_server6[2] -> no_route6 :: Counter -> Discard;
left_type[3] -> left6 :: FromVif6($LEFT_MAC, $LEFT_IP6, $LEFT_IP6 $RIGHT_IP6);
left6[0] -> Discard;
left6[1] -> left_out;
left6[2] -> [1]left_nd;

FromDevice(1) -> right_in :: Counter
    -> right :: FromDualVif($RIGHT_MAC, $RIGHT_IP $LEFT_IP, $LEFT_IP $RIGHT_IP);
right[1] -> right_out;
right[2] -> [1]right_arp;
right[0] -> kind :: IPClassifier(dst host $LEFT_IP and udp
                            and src port 67 and dst port 67,
                            icmp and (dst host $LEFT_IP or dst host $RIGHT_IP));
kind[0] -> CheckUDPHeader -> [1]relay[1] -> answers :: Counter
    -> UDPIPEncap($LEFT_IP, 67, 255.255.255.255, 68)
    -> EtherEncap(0x0800, $LEFT_MAC, ff:ff:ff:ff:ff:ff) -> left_out;
// a server looks for the address before it leases from this network
kind[1] -> Own($RIGHT_MTU) -> to_server;

right[3] -> right6 :: FromVif6($RIGHT_MAC, $RIGHT_IP6, $LEFT_IP6 $RIGHT_IP6);
right6[0] -> kind6 :: IPClassifier(dst host $RIGHT_IP6 and udp
                                   and dst port 547,
                                   dst host $RIGHT_IP6 and icmp6 type echo);
right6[1] -> right_out;
right6[2] -> [1]right_nd;
kind6[0] -> [1]relay6[1] -> answers6 :: Counter -> IP6Fragmenter($LEFT_MTU)
    -> left_nd;
kind6[1] -> ICMP6PingResponder -> to_server6;
