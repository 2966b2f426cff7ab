# SPDX-License-Identifier: Apache-2.0
"""Which rule dropped what: the handlers ``log`` of a guest's firewalls.

docs/interfaces.md has the format. A guest wrote the text, so parse checks
each line.
"""

import dataclasses
import re

#: the last part of the handlers' names
HANDLER = 'log'
#: Lines that one handler can have.
LINES_MAX = 128
#: Handlers of one guest that are read.
HANDLERS_MAX = 12
_PROTOCOLS = {1: 'icmp', 6: 'tcp', 17: 'udp', 33: 'dccp', 47: 'gre',
              50: 'esp', 58: 'icmp6', 132: 'sctp'}
_CONTROL = (1, 58)
_LINE = re.compile(
    r'(\d{1,20}) (\d{1,20}) (\d{1,3})'
    r' ([0-9a-f.:]{2,45}) (\d{1,5}) ([0-9a-f.:]{2,45}) (\d{1,5}) (.{1,400})',
    re.ASCII)


@dataclasses.dataclass(frozen=True)
class Dropped:
    """Packets of one flow that one element dropped for one reason.

    :ivar age_ms: milliseconds since the last one
    :ivar reason: the text of the rule, or why no rule was asked
    """

    element: str
    age_ms: int
    packets: int
    protocol: str
    source: str
    destination: str
    reason: str


def handlers(names):
    """Return the handlers of a guest that are logs, at most HANDLERS_MAX."""
    found = sorted(name for name in names
                   if name.rpartition('.')[2] == HANDLER)
    return found[:HANDLERS_MAX]


def parse(handler, text):
    """Return the Dropped of a log's text, the newest first.

    :raises ValueError: if a line does not belong to a log
    """
    element = handler.rpartition('.')[0]
    lines = text.splitlines()
    if len(lines) > LINES_MAX:
        raise ValueError('%d lines, the limit is %d' % (len(lines), LINES_MAX))
    return [_dropped(element, number, line)
            for number, line in enumerate(lines, 1)]


def read(client, guest):
    """Return the Dropped of a guest, the newest first; None without a log.

    :param client: an api.Client
    :raises ValueError: if a log has a wrong line
    :raises api.ClickOSError: if the guest does not answer
    """
    names = handlers(each['name'] for each in client.list_handlers(guest)
                     if each['read'])
    if not names:
        return None
    values = client.read_many(guest, names)
    for value in values.values():
        if isinstance(value, Exception):
            raise value
    return merged(parse(name, values[name]) for name in names)


def merged(logs):
    """Return the Dropped of several logs, the newest first."""
    return sorted((each for log in logs for each in log),
                  key=lambda each: each.age_ms)


def _dropped(element, number, line):
    found = _LINE.fullmatch(line)
    if not found:
        raise ValueError('line %d: not a line of a flow log' % number)
    age_ms, packets, protocol, source, sport, target, dport, reason = \
        found.groups()
    if int(protocol) in _CONTROL:
        target = '%s type %s code %s' % (target, sport, dport)
    else:
        source, target = _end(source, sport), _end(target, dport)
    return Dropped(element, int(age_ms), int(packets),
                   _PROTOCOLS.get(int(protocol), protocol), source, target,
                   reason)


def _end(address, port):
    if port == '0':
        return address
    return '[%s]:%s' % (address, port) if ':' in address \
        else '%s:%s' % (address, port)
