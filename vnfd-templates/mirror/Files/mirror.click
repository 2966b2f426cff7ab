// SPDX-License-Identifier: Apache-2.0
// Mirror. vif 0 is port. ARP, neighbor discovery and pings get an answer; other
// IP packets go back to their sender with addresses and ports exchanged.

out :: Queue(1024) -> sent :: Counter -> ToDevice(0);
FromDevice(0) -> received :: Counter
    -> type :: Classifier(12/0806 20/0001, 12/0800, 12/86dd 20/3a 54/87,
                          12/86dd);
type[0] -> ARPResponder($PORT_IP $PORT_MAC) -> out;

// It announces its address, and asks no neighbor.
announced :: ARPQuerier($PORT_IP, $PORT_MAC, ANNOUNCE $PORT_IP) -> out;
Idle -> announced;
Idle -> [1]announced;

announced6 :: IP6NDSolicitor($PORT_IP6, $PORT_MAC, ANNOUNCE true) -> out;
Idle -> announced6;
Idle -> [1]announced6;
type[2] -> IP6NDAdvertiser($PORT_IP6/128 $PORT_MAC) -> out;

type[1] -> MarkIPHeader(14) -> CheckIPHeader(OFFSET 14)
    -> kind :: IPClassifier(icmp type echo, tcp or udp);
kind[0] -> ICMPPingResponder -> EtherMirror -> out;
kind[1] -> IPMirror -> EtherMirror -> out;

// Neighbors' other messages, and what is for groups, get no answer.
type[3] -> CheckIP6Header(OFFSET 14)
    -> kind6 :: IPClassifier(ip6[24:1] 0xff, icmp6 type echo, tcp or udp);
kind6[0] -> Discard;
kind6[1] -> ICMP6PingResponder -> EtherMirror -> out;
kind6[2] -> IP6Mirror -> EtherMirror -> out;
