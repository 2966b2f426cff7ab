// SPDX-License-Identifier: Apache-2.0
// SYN-flood protection, transparent. vif 0 is left (the world), vif 1 is
// right (servers). At most SOURCE_ATTEMPTS connection attempts a second pass
// from each of eight classes of source addresses, and at most limit.rate of
// all, so a flood from few addresses leaves the other classes open. Each limit
// admits the attempts of a second at once: a client that opens connections
// together, or just after a foreign attempt, waits for no retransmission.

right_out :: Queue(1024) -> ToDevice(1);
FromDevice(1) -> to_left :: Counter -> Queue(1024) -> ToDevice(0);

FromDevice(0) -> to_right :: Counter -> type :: Classifier(12/0800, -);
type[1] -> right_out;
type[0] -> MarkIPHeader(14) -> kind :: IPClassifier(syn and not ack, -);
kind[1] -> right_out;
kind[0] -> attempts :: Counter -> source :: HashSwitch(26, 4);

limit :: RatedSplitter(100, BURST_DURATION 1s) -> passed :: Counter
    -> right_out;
dropped :: Counter -> Discard;
limit[1] -> limited :: Counter -> dropped;

source[0] -> s0 :: RatedSplitter($SOURCE_ATTEMPTS, BURST_DURATION 1s)
    -> limit;
s0[1] -> dropped;
source[1] -> s1 :: RatedSplitter($SOURCE_ATTEMPTS, BURST_DURATION 1s)
    -> limit;
s1[1] -> dropped;
source[2] -> s2 :: RatedSplitter($SOURCE_ATTEMPTS, BURST_DURATION 1s)
    -> limit;
s2[1] -> dropped;
source[3] -> s3 :: RatedSplitter($SOURCE_ATTEMPTS, BURST_DURATION 1s)
    -> limit;
s3[1] -> dropped;
source[4] -> s4 :: RatedSplitter($SOURCE_ATTEMPTS, BURST_DURATION 1s)
    -> limit;
s4[1] -> dropped;
source[5] -> s5 :: RatedSplitter($SOURCE_ATTEMPTS, BURST_DURATION 1s)
    -> limit;
s5[1] -> dropped;
source[6] -> s6 :: RatedSplitter($SOURCE_ATTEMPTS, BURST_DURATION 1s)
    -> limit;
s6[1] -> dropped;
source[7] -> s7 :: RatedSplitter($SOURCE_ATTEMPTS, BURST_DURATION 1s)
    -> limit;
s7[1] -> dropped;
