# SPDX-License-Identifier: Apache-2.0
"""JSON of others, bounded in depth by every Python.

Before Python 3.12 the parser gave up at a depth of about 1,000. Later ones go
as deep as their stack does, and what reads the value then may not.
"""

import json

#: Levels of lists and objects; no text of ours has more than ten.
MAX_DEPTH = 64


def loads(text):
    """Parse a text of JSON.

    :param text: str or bytes
    :raises: ValueError, also for a value that is too deep. It is a
        json.JSONDecodeError where the text is no JSON
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise _too_deep()
    signs = ('[', '{') if isinstance(text, str) else (b'[', b'{')
    if sum(map(text.count, signs)) > MAX_DEPTH:
        _check(value)
    return value


def _check(value):
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [child for each in level if isinstance(each, (dict, list))
                 for child in (each.values() if isinstance(each, dict)
                               else each)]
        if not level:
            return
    raise _too_deep()


def _too_deep():
    return ValueError(f'nested deeper than {MAX_DEPTH} levels')
