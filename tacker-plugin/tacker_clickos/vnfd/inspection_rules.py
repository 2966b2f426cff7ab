# SPDX-License-Identifier: Apache-2.0
"""What a line of a guest's rules for intrusion detection may be.

The guest judges the meaning (docs/reference/inspection.md). The rules arrive
as the text of a handler write, and never become text of a configuration.
"""

import re

MAX_LENGTH = 8192
#: First words of rules, of variables and of comments.
_FIRST = re.compile(r'(alert|drop|pass|var|ipvar|portvar) |#')
_TEXT = re.compile(r'[\t -~]*\Z')


def check(rule):
    """Return what is wrong with a line, or None.

    :param rule: such as 'drop tcp any any -> any 80 (content:"x"; sid:1;)'
    """
    if not isinstance(rule, str):
        return 'expected text, got %s' % type(rule).__name__
    if len(rule) > MAX_LENGTH:
        return '%d characters, the limit is %d' % (len(rule), MAX_LENGTH)
    if not _TEXT.match(rule):
        return 'expected printable ASCII on one line'
    if not _FIRST.match(rule):
        return 'must start with alert, drop, pass, var or #, got %r' \
            % rule[:32]
    return None
