// SPDX-License-Identifier: Apache-2.0
// Mirror. vif 0 is port. ARP and pings get an answer; other IPv4 packets go
// back to their sender with addresses and ports exchanged.

out :: Queue(1024) -> sent :: Counter -> ToDevice(0);
FromDevice(0) -> received :: Counter
    -> type :: Classifier(12/0806 20/0001, 12/0800);
type[0] -> ARPResponder($PORT_IP $PORT_MAC) -> out;

// It announces its address, and asks no neighbor.
announced :: ARPQuerier($PORT_IP, $PORT_MAC, ANNOUNCE $PORT_IP) -> out;
Idle -> announced;
Idle -> [1]announced;

type[1] -> MarkIPHeader(14) -> CheckIPHeader(OFFSET 14)
    -> kind :: IPClassifier(icmp type echo, tcp or udp);
kind[0] -> ICMPPingResponder -> EtherMirror -> out;
kind[1] -> IPMirror -> EtherMirror -> out;
