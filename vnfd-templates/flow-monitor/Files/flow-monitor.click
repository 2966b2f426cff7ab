// SPDX-License-Identifier: Apache-2.0
// Transparent flow monitor. vif 0 is left, vif 1 is right. Frames stay
// unchanged. rates.look shows packets a second of networks and hosts;
// flows.size the flows that are known.

elementclass Watch {
    input -> type :: Classifier(12/0800, -);
    type[0] -> MarkIPHeader(14) -> output;
    type[1] -> [1]output;
}

rates :: IPRateMonitor(PACKETS, 1, $THRESHOLD, MEMORY 1024);
flows :: AggregateIPFlows(FRAGMENTS false, CAPACITY 4096);
right_out :: Queue(1024) -> ToDevice(1);
left_out :: Queue(1024) -> ToDevice(0);

FromDevice(0) -> to_right :: Counter -> left_watch :: Watch
    -> [0]rates[0] -> right_copy :: Tee -> right_out;
left_watch[1] -> right_out;
FromDevice(1) -> to_left :: Counter -> right_watch :: Watch
    -> [1]rates[1] -> left_copy :: Tee -> left_out;
right_watch[1] -> left_out;

right_copy[1] -> flows;
left_copy[1] -> flows;
flows[0] -> packets :: AggregateCounter(CAPACITY 4096) -> Discard;
flows[1] -> other :: Counter -> Discard;
