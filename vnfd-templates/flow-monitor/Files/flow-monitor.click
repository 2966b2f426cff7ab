// SPDX-License-Identifier: Apache-2.0
// Transparent flow monitor. vif 0 is left, vif 1 is right. Frames stay
// unchanged. rates.look shows packets a second of networks and hosts;
// flows.size the IPv4 flows that are known. Records of all flows of IPv4 and
// IPv6 go to COLLECTOR by right, unless it is 0.0.0.0.

// Output 0: IPv4, output 1: IPv6, their headers marked. Output 2: other frames.
elementclass Watch {
    input -> type :: Classifier(12/0800, 12/86dd, -);
    type[0] -> MarkIPHeader(14) -> output;
    type[1] -> MarkIP6Header(14) -> [1]output;
    type[2] -> [2]output;
}

rates :: IPRateMonitor(PACKETS, 1, $THRESHOLD, MEMORY 1024);
flows :: AggregateIPFlows(FRAGMENTS false, CAPACITY 4096);
right_out :: Queue(1024) -> ToDevice(1);
left_out :: Queue(1024) -> ToDevice(0);
right_arp :: ARPQuerier($RIGHT_IP, $RIGHT_MAC) -> right_out;

FromDevice(0) -> to_right :: Counter -> left_watch :: Watch
    -> [0]rates[0] -> right_copy :: Tee -> right_out;
left_watch[1] -> right_copy6 :: Tee -> right_out;
left_watch[2] -> right_out;
// ARP answers of right pass, and right_arp learns them.
FromDevice(1) -> to_left :: Counter
    -> answers :: Classifier(12/0806 20/0002, -);
answers[0] -> answer_copy :: Tee -> left_out;
answer_copy[1] -> [1]right_arp;
answers[1] -> right_watch :: Watch
    -> [1]rates[1] -> left_copy :: Tee -> left_out;
right_watch[1] -> left_copy6 :: Tee -> left_out;
right_watch[2] -> left_out;

// IPFIX (RFC 7011) over UDP.
ipfix :: IPFIXExporter(ACTIVE $ACTIVE, IDLE $IDLE, CAPACITY 4096,
                       SAMPLE $SAMPLE);
ipfix[1] -> messages :: Counter
    -> UDPIPEncap($RIGHT_IP, 4739, $COLLECTOR, 4739)
    -> wanted :: IPClassifier(dst host 0.0.0.0, -);
wanted[0] -> Discard;
wanted[1] -> StaticIPLookup($RIGHT_NET 0, 0.0.0.0/0 $RIGHT_GW 0)
    -> IPFragmenter($RIGHT_MTU) -> right_arp;

right_copy[1] -> ipfix;
left_copy[1] -> ipfix;
right_copy6[1] -> ipfix;
left_copy6[1] -> ipfix;
ipfix[0] -> version :: IPClassifier(ip6, -);
version[0] -> packets6 :: Counter -> Discard;
version[1] -> flows;
flows[0] -> packets :: AggregateCounter(CAPACITY 4096) -> Discard;
flows[1] -> other :: Counter -> Discard;
