// SPDX-License-Identifier: Apache-2.0
// SYN-flood protection, transparent. vif 0 is left (the world), vif 1 is
// right (servers). At most SOURCE_ATTEMPTS connection attempts a second pass
// from each of eight classes of source addresses, and at most limit.rate of
// all, so a flood from few addresses leaves the other classes open. Each limit
// admits the attempts of a second at once: a client that opens connections
// together, or just after a foreign attempt, waits for no retransmission.

require(library payload.click);

// Frames with a source address at byte SOURCE. Outputs 0 to 7: connection
// attempts, by class of the source. Output 8: others.
elementclass Attempts {
    $source |
    input -> kind :: IPClassifier(syn and not ack, -);
    kind[0] -> class :: HashSwitch($source, 4);
    class[0] -> [0]output; class[1] -> [1]output; class[2] -> [2]output;
    class[3] -> [3]output; class[4] -> [4]output; class[5] -> [5]output;
    class[6] -> [6]output; class[7] -> [7]output; kind[1] -> [8]output;
}

// A limit for each class. Output 0: within it; output 1: beyond; output 2: no
// attempts.
elementclass Limits {
    $rate |
    input[0] -> s0 :: RatedSplitter($rate, BURST_DURATION 1s) -> output;
    input[1] -> s1 :: RatedSplitter($rate, BURST_DURATION 1s) -> output;
    input[2] -> s2 :: RatedSplitter($rate, BURST_DURATION 1s) -> output;
    input[3] -> s3 :: RatedSplitter($rate, BURST_DURATION 1s) -> output;
    input[4] -> s4 :: RatedSplitter($rate, BURST_DURATION 1s) -> output;
    input[5] -> s5 :: RatedSplitter($rate, BURST_DURATION 1s) -> output;
    input[6] -> s6 :: RatedSplitter($rate, BURST_DURATION 1s) -> output;
    input[7] -> s7 :: RatedSplitter($rate, BURST_DURATION 1s) -> output;
    input[8] -> [2]output;
    s0[1] -> [1]output; s1[1] -> [1]output; s2[1] -> [1]output;
    s3[1] -> [1]output; s4[1] -> [1]output; s5[1] -> [1]output;
    s6[1] -> [1]output; s7[1] -> [1]output;
}

right_out :: Queue(1024) -> ToDevice(1);
FromDevice(1) -> to_left :: Counter -> Queue(1024) -> ToDevice(0);

FromDevice(0) -> to_right :: Counter -> places :: HeaderPlaces;
sources :: Limits($SOURCE_ATTEMPTS);
places[0] -> MarkIPHeader(14) -> plain :: Attempts(26);
places[1] -> MarkIPHeader(18) -> tagged :: Attempts(30);
places[2] -> MarkIPHeader(22) -> deep :: Attempts(34);
places[3] -> MarkIPHeader(26) -> deepest :: Attempts(38);
places[4] -> right_out;
plain[0,1,2,3,4,5,6,7,8] => [0,1,2,3,4,5,6,7,8]sources;
tagged[0,1,2,3,4,5,6,7,8] => [0,1,2,3,4,5,6,7,8]sources;
deep[0,1,2,3,4,5,6,7,8] => [0,1,2,3,4,5,6,7,8]sources;
deepest[0,1,2,3,4,5,6,7,8] => [0,1,2,3,4,5,6,7,8]sources;

limit :: RatedSplitter(100, BURST_DURATION 1s) -> passed :: Counter
    -> right_out;
dropped :: Counter -> Discard;
limit[1] -> limited :: Counter -> dropped;
sources[0] -> limit;
sources[1] -> dropped;
sources[2] -> right_out;
