# SPDX-License-Identifier: Apache-2.0
"""Tags of Neutron ports that say how a chain treats the hop behind them.

Tacker's driver sets them from the VNFD, and a user may set them on the ports
of a server. The SFC driver reads those of a port pair's ingress.
"""

TRANSPARENT = 'clickos:transparent'
ROUTED = 'clickos:routed'
COPIES = 'clickos:copies='
#: Most frames that a hop may make of one, valed's limit.
MAX_COPIES = 16


def make(transparent, copies=1):
    """Return the tags of a hop's ports.

    :param transparent: the hop passes frames with the addresses of others
    :param copies: frames that it may make of one
    """
    tags = [TRANSPARENT if transparent else ROUTED]
    return tags + ([f'{COPIES}{copies}'] if copies != 1 else [])


def transparent(tags):
    """Return whether tags declare a transparent hop, None without a word.

    With both, the hop is transparent: a user corrects a descriptor so.
    """
    if TRANSPARENT in tags:
        return True
    return False if ROUTED in tags else None


def copies(tags):
    """Return the copies that tags declare, 1 without a valid number."""
    texts = [tag.removeprefix(COPIES) for tag in tags
             if tag.startswith(COPIES)]
    numbers = [int(text) for text in texts
               if text.isascii() and text.isdigit() and len(text) < 3]
    return max((number for number in numbers
                if 1 <= number <= MAX_COPIES), default=1)


def is_ours(tag):
    """Return whether a tag is one of these."""
    return tag in (TRANSPARENT, ROUTED) or tag.startswith(COPIES)
