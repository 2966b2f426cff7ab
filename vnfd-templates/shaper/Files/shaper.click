// SPDX-License-Identifier: Apache-2.0
// Transparent hierarchical traffic shaper. vif 0 is left, vif 1 is right.
// Each direction has a rate in bytes a second. It is a tree of three levels:
// the rate, classes by DSCP, and fair queues of address pairs in each class.
// The rates and the quota are shares of limits of all guests: without a
// share nothing passes.

// Addresses choose one of eight queues. Queues that wait send equal bytes.
// Input 1: IPv6.
elementclass Fair {
    input -> flow :: HashSwitch(26, 8);
    share :: DRRSched(1500) -> output;
    flow[0] -> q0 :: Queue(256) -> [0]share;
    flow[1] -> q1 :: Queue(256) -> [1]share;
    flow[2] -> q2 :: Queue(256) -> [2]share;
    flow[3] -> q3 :: Queue(256) -> [3]share;
    flow[4] -> q4 :: Queue(256) -> [4]share;
    flow[5] -> q5 :: Queue(256) -> [5]share;
    flow[6] -> q6 :: Queue(256) -> [6]share;
    flow[7] -> q7 :: Queue(256) -> [7]share;
    input[1] -> flow6 :: HashSwitch(22, 32);
    flow6[0,1,2,3,4,5,6,7] => q0, q1, q2, q3, q4, q5, q6, q7;
}

// ARP and the like go first, then EF (RFC 3246) up to its own rate, then
// the rest: eight frames of it for each one of the lower effort (CS1, LE).
elementclass Classes {
    input -> type :: Classifier(
        12/0800 15/b8%fc, 12/0800 15/20%fc, 12/0800 15/04%fc, 12/0800,
        12/86dd 14/0b80%0fc0, 12/86dd 14/0200%0fc0, 12/86dd 14/0040%0fc0,
        12/86dd, -);
    first :: PrioSched -> output;
    type[8] -> urgent :: Queue(64) -> [0]first;
    type[0] -> expedited :: Fair -> expedited_rate :: BandwidthShaper(0)
        -> [1]first;
    weights :: StrideSched(8, 1) -> [2]first;
    type[3] -> standard :: Fair -> [0]weights;
    type[1] -> lower :: Fair -> [1]weights;
    type[2] -> lower;
    type[4] -> [1]expedited;
    type[5] -> [1]lower;
    type[6] -> [1]lower;
    type[7] -> [1]standard;
}

// The quota counts the bytes of both directions behind their rates.
quota :: Quota(0);
FromDevice(0) -> right_in :: Counter -> right_classes :: Classes
    -> to_right :: BandwidthShaper(0) -> [0] quota [0]
    -> right_tx :: Counter -> ToDevice(1);
FromDevice(1) -> left_in :: Counter -> left_classes :: Classes
    -> to_left :: BandwidthShaper(0) -> [1] quota [1]
    -> left_tx :: Counter -> ToDevice(0);
