# SPDX-License-Identifier: Apache-2.0
"""One rule of a tenant: what passes, and that nothing else does."""

import unittest

from tacker_clickos.vnfd import filter_rules

GOOD = (
    'allow all', 'deny all', 'drop all', 'allow', 'allow icmp',
    'deny tcp dst port 80',
    'allow udp and dst port >= 1024 and dst port <= 2048',
    'allow src net 10.0.0.0/8 && !(tcp || udp)',
    'deny src host 10.0.0.1 or dst host 10.0.0.2',
    'allow icmp type echo-reply', 'allow tcp opt syn and not ack',
    'deny ip ttl < 5', 'deny ip ttl >= 0x40', 'allow dst tcp port www',
    'deny ip frag', '  allow  icmp ', 'deny ip6', 'allow ip6 hlim 255',
    'allow src host 2001:db8::1', 'deny dst net 2001:db8::/32 and udp',
    'allow icmp6 type packet-too-big', 'deny net ::/0', 'deny ip6 hidden',
    'allow host ::ffff:10.0.0.1',
)

BAD = (
    ('permit all', 'must start with allow, deny or drop'),
    ('', 'must start with'),
    ('allow icmp, allow all', "character ',' is not allowed"),
    ('allow icmp); Discard(', 'a parenthesis is closed'),
    ('allow (icmp', 'a parenthesis is not closed'),
    ('allow icmp;', "character ';' is not allowed"),
    ('allow $X', "character '$' is not allowed"),
    ('allow icmp\nallow all', "character '\\n' is not allowed"),
    ('allow "icmp"', "character '\"' is not allowed"),
    ("allow 'icmp'", 'is not allowed'),
    ('allow icmp // x', "character '/' is not allowed"),
    ('allow icmp /* x', "character '/' is not allowed"),
    ('allow icmp \\<41>', 'is not allowed'),
    ('allow icmp -> Discard', "character '-' is not allowed"),
    ('allow ToDump', "character 'T' is not allowed"),
    ('allow todump', "'todump' is not a word"),
    ('allow tcp dst port 80-90', 'is not allowed'),
    ('allow 80x', 'is not a word of a rule'),
    ('allow src host 300.1.1.1', 'is not an IPv4 address'),
    ('allow src net 10.0.0.0/33', 'is not an IPv4 address'),
    ('allow \u0661', 'is not allowed'),
    ('allow net 2001:db8::/129', 'is not an IPv6 address'),
    ('allow host 2001:::1', 'is not an IPv6 address'),
    ('allow tcp ? udp : icmp', "character '?' is not allowed"),
    ('allow :', 'is not an IPv6 address'),
    ('allow icmp\x00', 'is not allowed'),
    ('allow {x}', 'is not allowed'),
    ('allow ' + 'x' * 300, 'the limit is 200'),
    ('allow ' + '(' * 17 + 'icmp' + ')' * 17, 'parentheses deep'),
    (7, 'expected text, got int'),
    (None, 'expected text, got NoneType'),
    (['allow all'], 'expected text, got list'),
)


class FilterRulesTest(unittest.TestCase):

    def test_good_rules_pass(self):
        for rule in GOOD:
            self.assertIsNone(filter_rules.check(rule), rule)

    def test_bad_rules_are_named(self):
        for rule, reason in BAD:
            self.assertIn(reason, filter_rules.check(rule) or 'nothing',
                          rule)

    def test_no_character_of_click_passes_anywhere(self):
        for character in ',;:"\'$\\{}[]#@`~|&\n\r\t\0':
            rule = 'allow tcp%sudp' % character
            self.assertIsNotNone(filter_rules.check(rule), repr(rule))
