// SPDX-License-Identifier: Apache-2.0
// DHCP relay agent (RFC 2131, RFC 1542, RFC 3046). vif 0 is left (clients),
// vif 1 is right (servers). A request gets the address of left as giaddr and
// goes to each server; an answer goes to the clients by broadcast.

require(library vif.click);

right_arp :: ARPQuerier($RIGHT_IP, $RIGHT_MAC, ANNOUNCE $RIGHT_IP $LEFT_IP);
left_out :: Queue(256) -> left_tx :: Counter -> ToDevice(0);
right_out :: Queue(256) -> right_tx :: Counter -> ToDevice(1);
right_arp -> right_out;

FromDevice(0) -> left_in :: Counter
    -> left_type :: Classifier(12/0806 20/0001, 12/0800);
left_type[0] -> ARPResponder($LEFT_IP $LEFT_MAC) -> left_out;
left_type[1] -> Strip(14) -> CheckIPHeader
    -> IPClassifier(udp and src port 68 and dst port 67) -> CheckUDPHeader
    -> StripIPHeader -> Strip(8)
    // a request of an Ethernet host
    -> asks :: Classifier(0/01 1/0106) -> CheckLength(1400)
    // 20 requests a second at most: broadcasts cost a server more. 400 at
    // once, so that a hundred clients may boot together.
    -> rate :: RatedSplitter(20, BURST_SIZE 400) -> requests :: Counter
    -> relay :: DHCPRelay($LEFT_IP, $SERVER, MTU $RIGHT_MTU)
    -> UDPIPEncap($RIGHT_IP, 67, DST_ANNO, 67) -> to_server ::
    StaticIPLookup($RIGHT_NET 0, 0.0.0.0/0 $RIGHT_GW 0) -> right_arp;
rate[1] -> too_many :: Counter -> Discard;

FromDevice(1) -> right_in :: Counter
    -> right :: FromVif($RIGHT_MAC, $RIGHT_IP $LEFT_IP, $LEFT_IP $RIGHT_IP);
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
