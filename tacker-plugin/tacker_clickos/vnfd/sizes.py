# SPDX-License-Identifier: Apache-2.0
"""Sizes as TOSCA writes them (Simple Profile YAML 1.3, 3.3.6.4)."""

import decimal
import re

_SIZE = re.compile(r'([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([kmgt]i?b|b)\Z',
                   re.IGNORECASE | re.ASCII)
_POWERS = {'b': 0, 'k': 1, 'm': 2, 'g': 3, 't': 4}
_MIB = 2 ** 20
MAX_MIB = 2 ** 30


def mib(text):
    """Return a scalar-unit.size in whole MiB, rounded up.

    The unit is in any case: B, kB, MB, GB and TB count in thousands, KiB,
    MiB, GiB and TiB in 1,024.

    :raises ValueError: with the text and what was expected
    """
    found = _SIZE.match(text)
    if not found:
        raise ValueError('%r is not a size such as 8 MiB' % text[:32])
    unit = found[2].lower()
    base = 1024 if 'i' in unit else 1000
    size = decimal.Decimal(found[1]) * base ** _POWERS[unit[0]]
    result = int((size / _MIB).to_integral_value(decimal.ROUND_CEILING))
    if not 1 <= result <= MAX_MIB:
        raise ValueError('%r is not within 1 MiB to %d TiB'
                         % (text[:32], MAX_MIB // _MIB))
    return result
