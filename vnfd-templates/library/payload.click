// SPDX-License-Identifier: Apache-2.0
// Frames of a transparent function, by the place of their IP header: 14 in
// plain frames, 18 behind a VLAN tag (IEEE 802.1Q, 802.1ad), 22 behind two or
// in SNAP (RFC 1042), 26 behind a tag and in SNAP.

// Output 0 to 3: IPv4 at 14, 18, 22, 26. Output 4 to 7: IPv6 there. Output 8:
// other frames.
elementclass HeaderPlaces {
    input -> type :: Classifier(
        12/0800, 12/86dd,
        12/8100 16/0800, 12/88a8 16/0800, 12/8100 16/86dd, 12/88a8 16/86dd,
        12/8100 16/8100 20/0800, 12/88a8 16/8100 20/0800,
        12/8100 16/8100 20/86dd, 12/88a8 16/8100 20/86dd,
        12/0000%f800 14/aaaa03 20/0800, 12/0000%f800 14/aaaa03 20/86dd,
        12/8100 16/0000%f800 18/aaaa03 24/0800,
        12/8100 16/0000%f800 18/aaaa03 24/86dd, -);
    type[0] -> output;
    type[1] -> [4]output;
    type[2] -> tag :: Null -> [1]output;
    type[3] -> tag;
    type[4] -> tag6 :: Null -> [5]output;
    type[5] -> tag6;
    type[6] -> tags :: Null -> [2]output;
    type[7] -> tags;
    type[8] -> tags6 :: Null -> [6]output;
    type[9] -> tags6;
    type[10] -> tags;
    type[11] -> tags6;
    type[12] -> [3]output;
    type[13] -> [7]output;
    type[14] -> [8]output;
}

// Output 0: IPv4, output 1: IPv6, their headers marked. Output 2: other frames.
elementclass Payload {
    input -> places :: HeaderPlaces;
    places[0] -> MarkIPHeader(14) -> output;
    places[1] -> MarkIPHeader(18) -> output;
    places[2] -> MarkIPHeader(22) -> output;
    places[3] -> MarkIPHeader(26) -> output;
    places[4] -> MarkIP6Header(14) -> [1]output;
    places[5] -> MarkIP6Header(18) -> [1]output;
    places[6] -> MarkIP6Header(22) -> [1]output;
    places[7] -> MarkIP6Header(26) -> [1]output;
    places[8] -> [2]output;
}
