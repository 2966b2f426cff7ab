# SPDX-License-Identifier: Apache-2.0
"""A NAT between two networks, for guests that move while it translates."""

_CONFIG = """
elementclass Kinds {{ input -> c :: Classifier(
  12/0806 20/0001, 12/0806 20/0002, 12/0800, -);
  c[0] -> [0] output; c[1] -> [1] output; c[2] -> [2] output;
  c[3] -> Discard; }}
FromDevice(0) -> c0 :: Kinds; FromDevice(1) -> c1 :: Kinds;
to0 :: Queue -> ToDevice(0); to1 :: Queue -> ToDevice(1);
c0[0] -> ARPResponder(10.1.1.1 {inner}) -> to0;
c1[0] -> ARPResponder(10.1.2.1 {outer}) -> to1;
arp0 :: ARPQuerier(10.1.1.1, {inner}) -> to0;
arp1 :: ARPQuerier(10.1.2.1, {outer}) -> to1;
c0[1] -> [1] arp0; c1[1] -> [1] arp1;
nat :: IPRewriter(pattern 10.1.2.1 1024-65535 - - 0 1, drop);
c0[2] -> Strip(14) -> CheckIPHeader -> kinds :: IPClassifier(icmp, -);
kinds[0] -> ICMPPingResponder -> GetIPAddress(16) -> arp0;
kinds[1] -> passed :: Counter -> [0] nat;
c1[2] -> Strip(14) -> CheckIPHeader -> [1] nat;
nat[0] -> GetIPAddress(16) -> arp1; nat[1] -> GetIPAddress(16) -> arp0;
"""


def config(inner, outer):
    """Return the configuration; it answers pings of the inner network.

    :param inner: MAC address of device 0, in 10.1.1.0/24
    :param outer: of device 1, in 10.1.2.0/24
    """
    return _CONFIG.format(inner=inner, outer=outer)
