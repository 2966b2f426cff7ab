# SPDX-License-Identifier: Apache-2.0
"""Elements that take IPv6 packets."""
from click_compare.pieces import aside
from click_compare.pieces import merged
from click_compare.pieces import numbers
from click_compare.pieces import through

IP6 = (
    lambda r: aside('CheckIP6Header', 'drops'),
    lambda r: through('IP6Print(six, NBYTES {}, CONTENTS {})'.format(
        r.choice((0, 20, 100)), r.choice(('true', 'false')))),
    lambda r: aside('DecIP6HLIM', 'drops'),
    lambda r: through('IP6Mirror'),
    lambda r: numbers(r, 'SetIP6DSCP', 0, 9, 46),
    lambda r: aside('IP6Fragmenter(1280)', 'drops', 'fragments'),
    lambda r: merged('LookupIP6Route(2001:db8::/32 ::0 0, ::0/0 '
                     '3ffe::9 1)', 2),
    lambda r: merged('LookupIP6Route(2001:db8::1/128 ::0 0, '
                     '2001:db8::/64 fe80::1 1, fe80::/10 ::0 2)', 3),
    lambda r: ('input -> t :: Tee -> output; t[1] -> e :: ICMP6Error('
               '2001:db8::9, {}) -> Print(error, 100) -> Discard'.format(
                   r.choice(('3, 0', '1, 3', '1, 4', '3, 1'))),),
    lambda r: through('GetIP6Address(24) -> SetIP6Address(2001:db8::7)'),
    lambda r: through('Truncate(44)'),
    lambda r: through('MarkIP6Header(0) -> Print(marked, 40)'),
    lambda r: merged('Classifier(6/11, 6/06, 6/3a, -)', 4),
)
