# SPDX-License-Identifier: Apache-2.0
"""Random expressions of IPFilter and patterns of Classifier."""
from click_compare.packets import ADDRESSES

_NETS = ('10.0.0.0/8', '10.0/16', '18.26.4.9', '192.168.1.0/24',
         '10.0.0.1/31', '224.0.0.0/4', '0.0.0.0/0')
_PORTS = ('53', '80', '1024', 'www', '!= 80', '> 100', '<= 53', '< 1024')
_SIDES = ('src ', 'dst ', '', 'src or dst ', 'src and dst ')
_FIXED = (
    'tcp', 'udp', 'icmp', 'ip proto tcp', 'ip proto 50', 'ip proto gre',
    'tcp opt syn', 'tcp opt ack', 'tcp opt fin', 'tcp opt rst', 'ip frag',
    'icmp type echo', 'icmp type 3', 'icmp type > 5', 'ip unfrag',
    'ip ttl 64', 'ip ttl > 1', 'ip ttl < 2', 'ip tos 16', 'ip tos > 3',
    'ip dscp 46', 'ip hl 5', 'ip hl > 5', 'ip id > 1000', 'ip ect', 'ip ce',
    'true', 'false', 'dst tcp port 80', 'src udp port 53')


def _primitive(rng):
    side = rng.choice(_SIDES)
    return rng.choice(('', '', '', 'not ', '!')) + rng.choice((
        f'{side}host {rng.choice(ADDRESSES)}',
        f'{side}net {rng.choice(_NETS)}',
        f'{side}{rng.choice(("", "tcp ", "udp "))}port {rng.choice(_PORTS)}',
        rng.choice(_FIXED), rng.choice(_FIXED), rng.choice(_FIXED),
        f'ip[{rng.choice((0, 1, 8, 9, 12, 19))}] '
        f'{rng.choice(("=", ">", "<", "!="))} {rng.choice((0, 64, 69, 6))}',
        f'ip[{rng.choice((2, 4, 6))}:2] & {rng.choice((255, 8191, 65535))}'
        f' = {rng.choice((0, 40, 20))}'))


def expression(rng, depth=0):
    """Return an expression of one to three terms, nested at most twice."""
    def term():
        if depth > 1 or rng.random() < .7:
            return _primitive(rng)
        return f'({expression(rng, depth + 1)})'
    terms = [term() for _ in range(rng.choice((1, 1, 2, 3)))]
    text = terms[0]
    for following in terms[1:]:
        text += rng.choice((' and ', ' or ', ' && ', ' || ')) + following
    return text


def pattern(rng):
    """Return a pattern of Classifier."""
    values = ('0800', '45', '06', '11', '0?', 'ff', '08', '0806', '02%0f',
              '4?', '01')
    return ' '.join(
        rng.choice(('', '', '!'))
        + f'{rng.choice((12, 14, 20, 23, 0, 6, 30, 34))}/{rng.choice(values)}'
        for _ in range(rng.randint(1, 3)))
