// SPDX-License-Identifier: Apache-2.0
// Frames of a transparent function, by the place of their IPv4 header: 14 in
// plain frames, 18 behind a VLAN tag (IEEE 802.1Q, 802.1ad), 22 behind two or
// in SNAP (RFC 1042), 26 behind a tag and in SNAP. Frames with more tags are
// dropped: a station removes any number of priority tags, so what is behind
// them would arrive unjudged. The mask f657 takes both types of tags as 8000.

// Output 0 to 3: a header at 14, 18, 22, 26. Output 4: other frames.
elementclass HeaderPlaces {
    input -> type :: Classifier(
        12/0800, 12/8000%f657 16/0800, 12/8000%f657 16/8000%f657 20/0800,
        12/0000%f800 14/aaaa03 20/0800,
        12/8000%f657 16/0000%f800 18/aaaa03 24/0800,
        12/8000%f657 16/8000%f657 20/8000%f657,
        12/8000%f657 16/8000%f657 20/0000%f800 22/aaaa03, -);
    type[0] -> output;
    type[1] -> [1]output;
    type[2] -> tags :: Null -> [2]output;
    type[3] -> tags;
    type[4] -> [3]output;
    type[5] -> too_deep :: Counter -> Discard;
    type[6] -> too_deep;
    type[7] -> [4]output;
}

// Output 0: IPv4, its header marked. Output 1: other frames.
elementclass Payload {
    input -> places :: HeaderPlaces;
    places[0] -> MarkIPHeader(14) -> output;
    places[1] -> MarkIPHeader(18) -> output;
    places[2] -> MarkIPHeader(22) -> output;
    places[3] -> MarkIPHeader(26) -> output;
    places[4] -> [1]output;
}
