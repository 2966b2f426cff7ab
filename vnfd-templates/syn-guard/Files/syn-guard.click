// SPDX-License-Identifier: Apache-2.0
// SYN-flood protection, transparent. vif 0 is left (the world), vif 1 is
// right (servers). At most SOURCE_ATTEMPTS connection attempts a second pass
// from each of eight classes of source addresses, and at most limit.rate of
// all, so a flood from few addresses leaves the other classes open. Each limit
// admits the attempts of a second at once: a client that opens connections
// together, or just after a foreign attempt, waits for no retransmission.

require(library payload.click);

// A limit for each class. Output 0: within it; output 1: beyond.
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
    s0[1] -> [1]output; s1[1] -> [1]output; s2[1] -> [1]output;
    s3[1] -> [1]output; s4[1] -> [1]output; s5[1] -> [1]output;
    s6[1] -> [1]output; s7[1] -> [1]output;
}

right_out :: Queue(1024) -> ToDevice(1);
FromDevice(1) -> to_left :: Counter -> Queue(1024) -> ToDevice(0);

// The color tells the place of the IP header, and so of the source address. Of
// IPv6 the first half counts: a host has many addresses of one /64. The flags of
// TCP could be in a second fragment (RFC 1858).
kind :: IPClassifier(syn and not ack, tcp and ip frag, ip6 hidden, -);
FromDevice(0) -> to_right :: Counter -> places :: HeaderPlaces;
places[0] -> MarkIPHeader(14) -> kind;
places[1] -> MarkIPHeader(18) -> Paint(1) -> kind;
places[2] -> MarkIPHeader(22) -> Paint(2) -> kind;
places[3] -> MarkIPHeader(26) -> Paint(3) -> kind;
places[4] -> MarkIP6Header(14) -> Paint(4) -> kind;
places[5] -> MarkIP6Header(18) -> Paint(5) -> kind;
places[6] -> MarkIP6Header(22) -> Paint(6) -> kind;
places[7] -> MarkIP6Header(26) -> Paint(7) -> kind;
places[8] -> right_out;
kind[3] -> right_out;
kind[0] -> attempts :: Counter -> color :: PaintSwitch;

color[0] -> plain :: HashSwitch(26, 4);
color[1] -> tagged :: HashSwitch(30, 4);
color[2] -> deep :: HashSwitch(34, 4);
color[3] -> deepest :: HashSwitch(38, 4);
color[4] -> plain6 :: HashSwitch(22, 8);
color[5] -> tagged6 :: HashSwitch(26, 8);
color[6] -> deep6 :: HashSwitch(30, 8);
color[7] -> deepest6 :: HashSwitch(34, 8);
sources :: Limits($SOURCE_ATTEMPTS);
plain[0,1,2,3,4,5,6,7] => [0,1,2,3,4,5,6,7]sources;
tagged[0,1,2,3,4,5,6,7] => [0,1,2,3,4,5,6,7]sources;
deep[0,1,2,3,4,5,6,7] => [0,1,2,3,4,5,6,7]sources;
deepest[0,1,2,3,4,5,6,7] => [0,1,2,3,4,5,6,7]sources;
plain6[0,1,2,3,4,5,6,7] => [0,1,2,3,4,5,6,7]sources;
tagged6[0,1,2,3,4,5,6,7] => [0,1,2,3,4,5,6,7]sources;
deep6[0,1,2,3,4,5,6,7] => [0,1,2,3,4,5,6,7]sources;
deepest6[0,1,2,3,4,5,6,7] => [0,1,2,3,4,5,6,7]sources;

limit :: RatedSplitter(100, BURST_DURATION 1s) -> passed :: Counter
    -> right_out;
dropped :: Counter -> Discard;
kind[1] -> in_fragments :: Counter -> dropped;
kind[2] -> dropped;
limit[1] -> limited :: Counter -> dropped;
sources[0] -> limit;
sources[1] -> dropped;
