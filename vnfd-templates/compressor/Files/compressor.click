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

// On a guest with several VCPUs each works on the packets of its flows.
FlowThreadSched(compress, decompress);

// A packet is compressed before it is fragmented (RFC 3173, section 2.1).
from_left :: IPClassifier(
    dst host $LEFT_IP and icmp, dst host $LEFT_IP, dst net $REMOTE, -);
from_left[0] -> left_own :: Own($LEFT_MTU) -> to_left;
from_left[1] -> unknown :: Counter -> Discard;
from_left[2] -> left_ttl :: Hop($LEFT_IP) -> compress :: IPCompress
    -> size :: Fit($RIGHT_MTU, $LEFT_IP) -> to_right;
from_left[3] -> left_ttl_plain :: Hop($LEFT_IP) -> size;
left_ttl[1] -> to_left;
left_ttl_plain[1] -> to_left;
size[1] -> to_left;

// Whole packets have at most 1,480 bytes of payload again, as left sent them.
from_right :: IPClassifier(
    dst host $RIGHT_IP and icmp, dst host $RIGHT_IP,
    src net $REMOTE and dst net $LEFT_NET, dst net $LEFT_NET, -);
from_right[0] -> right_own :: Own($RIGHT_MTU) -> to_right;
from_right[1] -> unknown;
from_right[2] -> IPReassembler -> decompress :: IPDecompress
    -> right_ttl :: Hop($RIGHT_IP) -> whole :: Fit($LEFT_MTU, $RIGHT_IP)
    -> to_left;
from_right[3] -> right_ttl_plain :: Hop($RIGHT_IP) -> whole;
from_right[4] -> unknown;
decompress[1] -> broken :: Counter -> Discard;
right_ttl[1] -> to_right;
right_ttl_plain[1] -> to_right;
whole[1] -> to_right;

FromDevice(0) -> left_in :: Counter
    -> left :: FromVif($LEFT_MAC, $LEFT_IP, $LEFT_IP $RIGHT_IP);
left[0] -> from_left;
left[1] -> left_out;
left[2] -> [1]left_arp;

FromDevice(1) -> right_in :: Counter
    -> right :: FromVif($RIGHT_MAC, $RIGHT_IP, $LEFT_IP $RIGHT_IP);
right[0] -> from_right;
right[1] -> right_out;
right[2] -> [1]right_arp;
