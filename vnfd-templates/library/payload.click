// SPDX-License-Identifier: Apache-2.0
// Frames of a transparent function, by the place of their IP header: 14 in
// plain frames, 18 behind a VLAN tag (IEEE 802.1Q, 802.1ad), 22 behind two or
// in SNAP (RFC 1042), 26 behind a tag and in SNAP. Frames with more tags are
// dropped: a station removes any number of priority tags, so what is behind
// them would arrive unjudged. The mask f657 takes both types of tags as 8000.

// Output 0 to 3: IPv4 at 14, 18, 22, 26. Output 4 to 7: IPv6 there. Output 8:
// other frames.
elementclass HeaderPlaces {
    input -> type :: Classifier(
        12/0800, 12/86dd, 12/8000%f657 16/0800, 12/8000%f657 16/86dd,
        12/8000%f657 16/8000%f657 20/0800, 12/8000%f657 16/8000%f657 20/86dd,
        12/0000%f800 14/aaaa03 20/0800, 12/0000%f800 14/aaaa03 20/86dd,
        12/8000%f657 16/0000%f800 18/aaaa03 24/0800,
        12/8000%f657 16/0000%f800 18/aaaa03 24/86dd,
        12/8000%f657 16/8000%f657 20/8000%f657,
        12/8000%f657 16/8000%f657 20/0000%f800 22/aaaa03, -);
    type[0] -> output;
    type[1] -> [4]output;
    type[2] -> [1]output;
    type[3] -> [5]output;
    type[4] -> tags :: Null -> [2]output;
    type[5] -> tags6 :: Null -> [6]output;
    type[6] -> tags;
    type[7] -> tags6;
    type[8] -> [3]output;
    type[9] -> [7]output;
    type[10] -> too_deep :: Counter -> Discard;
    type[11] -> too_deep;
    type[12] -> [8]output;
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
