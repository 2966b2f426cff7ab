// SPDX-License-Identifier: Apache-2.0
// Transparent DNS filter. vif 0 is left (clients), vif 1 is right. Questions
// that contain a blocked name are dropped. A name is given as DNS writes it:
// a byte with the length in front of each label, in upper or lower case (RFC
// 4343). Write the list to blocked.config.

require(library payload.click);

right_out :: Queue(1024) -> ToDevice(1);
FromDevice(1) -> to_left :: Counter -> Queue(1024) -> ToDevice(0);

FromDevice(0) -> to_right :: Counter -> type :: Payload;
type[2] -> right_out;
// A name could be in a later fragment, which has no ports. Without its header
// chain nobody knows whether a packet asks.
type[0] -> kind :: IPClassifier(dst port 53 and (tcp or udp) and ip frag,
                                dst port 53 and (tcp or udp), ip6 hidden, -);
type[1] -> kind;
kind[3] -> right_out;
kind[0] -> in_fragments :: Counter -> Discard;
kind[1] -> questions :: Counter
    -> blocked :: StringMatcher("\<07>blocked\<07>invalid", NOCASE true)
    -> right_out;
blocked[1] -> dropped :: Counter -> Discard;
kind[2] -> dropped;
