// SPDX-License-Identifier: Apache-2.0
// Transparent flow monitor. vif 0 is left, vif 1 is right. Frames stay
// unchanged. rates.look shows packets a second of networks and hosts;
// flows.size the flows that are known. Records of all IPv4 flows go to
// COLLECTOR by right, unless it is 0.0.0.0.

elementclass Watch {
    input -> type :: Classifier(12/0800, -);
    type[0] -> MarkIPHeader(14) -> output;
    type[1] -> [1]output;
}

rates :: IPRateMonitor(PACKETS, 1, $THRESHOLD, MEMORY 1024);
flows :: AggregateIPFlows(FRAGMENTS false, CAPACITY 4096);
right_out :: Queue(1024) -> ToDevice(1);
left_out :: Queue(1024) -> ToDevice(0);
right_arp :: ARPQuerier($RIGHT_IP, $RIGHT_MAC) -> right_out;

FromDevice(0) -> to_right :: Counter -> left_watch :: Watch
    -> [0]rates[0] -> right_copy :: Tee -> right_out;
left_watch[1] -> right_out;
// ARP answers of right pass, and right_arp learns them.
FromDevice(1) -> to_left :: Counter
    -> answers :: Classifier(12/0806 20/0002, -);
answers[0] -> answer_copy :: Tee -> left_out;
answer_copy[1] -> [1]right_arp;
answers[1] -> right_watch :: Watch
    -> [1]rates[1] -> left_copy :: Tee -> left_out;
right_watch[1] -> left_out;

// IPFIX (RFC 7011) over UDP.
ipfix :: IPFIXExporter(ACTIVE $ACTIVE, IDLE $IDLE, CAPACITY 4096);
ipfix[1] -> messages :: Counter
    -> UDPIPEncap($RIGHT_IP, 4739, $COLLECTOR, 4739)
    -> wanted :: IPClassifier(dst host 0.0.0.0, -);
wanted[0] -> Discard;
wanted[1] -> StaticIPLookup($RIGHT_NET 0, 0.0.0.0/0 $RIGHT_GW 0) -> right_arp;

right_copy[1] -> ipfix;
left_copy[1] -> ipfix;
ipfix[0] -> flows;
flows[0] -> packets :: AggregateCounter(CAPACITY 4096) -> Discard;
flows[1] -> other :: Counter -> Discard;
