// SPDX-License-Identifier: Apache-2.0
// Frames of a transparent function. Output 0: IPv4, its header marked, also
// behind one or two VLAN tags (IEEE 802.1Q, 802.1ad) and in SNAP (RFC 1042).
// Output 1: other frames.
elementclass Payload {
    input -> type :: Classifier(
        12/0800, 12/8100 16/0800, 12/88a8 16/0800,
        12/8100 16/8100 20/0800, 12/88a8 16/8100 20/0800,
        12/0000%f800 14/aaaa03 20/0800,
        12/8100 16/0000%f800 18/aaaa03 24/0800, -);
    type[0] -> MarkIPHeader(14) -> output;
    type[1] -> tag :: MarkIPHeader(18) -> output;
    type[2] -> tag;
    type[3] -> tags :: MarkIPHeader(22) -> output;
    type[4] -> tags;
    type[5] -> tags;
    type[6] -> MarkIPHeader(26) -> output;
    type[7] -> [1]output;
}
