// SPDX-License-Identifier: Apache-2.0
// Intrusion detection and prevention, transparent. vif 0 is left, vif 1 is
// right. Packets of both directions are judged by rules, in the data that
// their receivers read: whole packets, and TCP streams. What does not pass is
// logged, at most ten a second. Write the rules to ips.rules, a line each.

require(library payload.click);

right_out :: Queue(1024) -> right_tx :: Counter -> ToDevice(1);
left_out :: Queue(1024) -> left_tx :: Counter -> ToDevice(0);
ips :: StreamInspector(LOG syslog);
ips[0] -> right_out;
ips[1] -> left_out;
ips[2] -> refused :: Counter -> log :: RatedSplitter(10)
    -> version :: IPClassifier(ip6, -);
version[0] -> IP6Print(DROP) -> Discard;
version[1] -> IPPrint(DROP) -> Discard;
log[1] -> Discard;

// Alerts as messages of syslog, from the address of right. ARP answers of right
// pass, and right_arp learns them.
right_arp :: ARPQuerier($RIGHT_IP, $RIGHT_MAC) -> right_out;
syslog :: Syslog($RIGHT_IP, ips)
    -> StaticIPLookup($RIGHT_NET 0, 0.0.0.0/0 $RIGHT_GW 0)
    -> IPFragmenter($RIGHT_MTU) -> right_arp;

FromDevice(0) -> left_in :: Counter -> left_type :: Payload -> ips;
left_type[1] -> ips;
left_type[2] -> right_out;
FromDevice(1) -> right_in :: Counter -> right_type :: Payload -> [1]ips;
right_type[1] -> [1]ips;
right_type[2] -> answers :: Classifier(12/0806 20/0002, -);
answers[0] -> answer_copy :: Tee -> left_out;
answer_copy[1] -> [1]right_arp;
answers[1] -> left_out;
