// SPDX-License-Identifier: Apache-2.0
// Transparent traffic shaper. vif 0 is left, vif 1 is right. Each direction
// has a rate in bytes a second. Addresses choose one of eight queues, and
// queues that wait share the rate in equal parts of bytes. ARP goes first.

elementclass Fair {
    input -> type :: Classifier(12/0800, -);
    type[1] -> urgent :: Queue(64);
    type[0] -> flow :: HashSwitch(26, 8);
    share :: DRRSched(1500);
    flow[0] -> q0 :: Queue(256) -> [0]share;
    flow[1] -> q1 :: Queue(256) -> [1]share;
    flow[2] -> q2 :: Queue(256) -> [2]share;
    flow[3] -> q3 :: Queue(256) -> [3]share;
    flow[4] -> q4 :: Queue(256) -> [4]share;
    flow[5] -> q5 :: Queue(256) -> [5]share;
    flow[6] -> q6 :: Queue(256) -> [6]share;
    flow[7] -> q7 :: Queue(256) -> [7]share;
    first :: PrioSched -> output;
    urgent -> [0]first;
    share -> [1]first;
}

FromDevice(0) -> right_in :: Counter -> Fair
    -> to_right :: BandwidthShaper(1250000)
    -> right_tx :: Counter -> ToDevice(1);
FromDevice(1) -> left_in :: Counter -> Fair
    -> to_left :: BandwidthShaper(1250000)
    -> left_tx :: Counter -> ToDevice(0);
