// SPDX-License-Identifier: Apache-2.0
// Intrusion detection and prevention, transparent. vif 0 is left, vif 1 is
// right. A frame of either direction that contains a signature is an alert:
// it is logged, at most ten a second, and dropped or passed. Write the
// signatures to signatures.config.

require(library payload.click);

right_out :: Queue(1024) -> right_tx :: Counter -> ToDevice(1);
left_out :: Queue(1024) -> left_tx :: Counter -> ToDevice(0);
signatures :: StringMatcher("/etc/passwd", "cmd.exe") -> clean :: PaintSwitch;
clean[0] -> right_out;
clean[1] -> left_out;

signatures[1] -> alerts :: Counter -> log :: RatedSplitter(10)
    -> version :: IPClassifier(ip6, -);
version[0] -> IP6Print(ALERT) -> action :: Switch(0);
version[1] -> IPPrint(ALERT) -> action;
log[1] -> action;
action[0] -> Discard;
action[1] -> clean;

FromDevice(0) -> left_in :: Counter -> Paint(0)
    -> left_type :: Payload -> signatures;
left_type[1] -> signatures;
left_type[2] -> signatures;
FromDevice(1) -> right_in :: Counter -> Paint(1)
    -> right_type :: Payload -> signatures;
right_type[1] -> signatures;
right_type[2] -> signatures;
