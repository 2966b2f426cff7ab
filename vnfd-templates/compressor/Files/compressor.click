// SPDX-License-Identifier: Apache-2.0
// Payload compressor: a router between left (vif 0) and right (vif 1). It
// compresses what left sends to the network REMOTE, and decompresses what
// comes from there (IPComp with DEFLATE, RFC 3173 and RFC 2394). A second
// compressor, or a machine with IPComp, is the other end.

require(library vif.click);

left_arp :: ARPQuerier($LEFT_IP, $LEFT_MAC, ANNOUNCE $LEFT_IP);
right_arp :: ARPQuerier($RIGHT_IP, $RIGHT_MAC, ANNOUNCE $RIGHT_IP);
left_out :: Queue(1024) -> left_tx :: Counter -> ToDevice(0);
right_out :: Queue(1024) -> right_tx :: Counter -> ToDevice(1);
left_arp -> left_out;
right_arp -> right_out;
to_left :: GetIPAddress(16) -> left_arp;
to_right :: StaticIPLookup($RIGHT_NET 0, 0.0.0.0/0 $RIGHT_GW 0) -> right_arp;

// A packet is compressed before it is fragmented (RFC 3173, section 2.1).
from_left :: CheckIPHeader
    -> left_kind :: IPClassifier(
        dst host $LEFT_IP and icmp type echo, dst host $LEFT_IP,
        dst net $REMOTE, -);
left_kind[0] -> ICMPPingResponder -> to_left;
left_kind[1] -> unknown :: Counter -> Discard;
left_kind[2] -> left_ttl :: DecIPTTL -> compress :: IPCompress
    -> size :: IPFragmenter(1500) -> to_right;
left_kind[3] -> left_ttl_plain :: DecIPTTL -> to_right;
left_late :: ICMPError($LEFT_IP, timeexceeded) -> to_left;
left_ttl[1] -> left_late;
left_ttl_plain[1] -> left_late;
size[1] -> ICMPError($LEFT_IP, unreachable, needfrag, PMTU 1500) -> to_left;

// Whole packets have at most 1,480 bytes of payload again, as left sent them.
from_right :: CheckIPHeader
    -> right_kind :: IPClassifier(
        dst host $RIGHT_IP and icmp type echo, dst host $RIGHT_IP,
        src net $REMOTE and dst net $LEFT_NET, dst net $LEFT_NET, -);
right_kind[0] -> ICMPPingResponder -> to_right;
right_kind[1] -> unknown;
right_kind[2] -> IPReassembler -> decompress :: IPDecompress
    -> right_ttl :: DecIPTTL -> whole :: IPFragmenter(1500) -> to_left;
right_kind[3] -> right_ttl_plain :: DecIPTTL -> to_left;
right_kind[4] -> unknown;
decompress[1] -> broken :: Counter -> Discard;
right_late :: ICMPError($RIGHT_IP, timeexceeded) -> to_right;
right_ttl[1] -> right_late;
right_ttl_plain[1] -> right_late;
whole[1] -> Discard;

FromDevice(0) -> left_in :: Counter -> left :: FromVif($LEFT_MAC, $LEFT_IP);
left[0] -> from_left;
left[1] -> from_left;
left[2] -> left_out;
left[3] -> [1]left_arp;

FromDevice(1) -> right_in :: Counter -> right :: FromVif($RIGHT_MAC, $RIGHT_IP);
right[0] -> from_right;
right[1] -> from_right;
right[2] -> right_out;
right[3] -> [1]right_arp;
