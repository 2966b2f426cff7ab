# SPDX-License-Identifier: Apache-2.0
"""Reads YAML that a tenant wrote: the one place that loads YAML.

PyYAML reads YAML 1.1. There a number in base 60 costs quadratic time, a few
lines of aliases expand without end, and deep nesting overflows the parser's
stack. Large numbers as keys can have one hash, so a map of them costs
quadratic time. This module walks the parser's events first and refuses such
text with its line. Building the values is linear then, in every loader of
PyYAML.

A byte still costs microseconds. A service that answers other tenants in the
same process therefore reads through clickos_client.bounded.
"""

import dataclasses

import yaml

MAX_BYTES = 256 * 1024
MAX_DEPTH = 32
#: Scalars, lists and maps of one text.
MAX_NODES = 32768
#: Characters of a number; the longest of use is a 64-bit mask in base 2.
MAX_NUMBER = 80

#: Characters of a number that is a key. It is less than 2^61 - 1, so it is its
#: own hash in Python; the hashes of texts are secret.
MAX_NUMBER_KEY = 16

_LOADER = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)
_STARTS = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_ENDS = (yaml.MappingEndEvent, yaml.SequenceEndEvent)
_NODES = (yaml.ScalarEvent, *_STARTS)
_TAG = 'tag:yaml.org,2002:'
_RESOLVER = yaml.resolver.Resolver()
#: What PyYAML raises for text that is wrong: no such date, a key of a list.
_FAULTS = (yaml.YAMLError, ArithmeticError, RecursionError, TypeError,
           ValueError)
_MAX_SHOWN = 200


class Refused(ValueError):
    """Text that is not read.

    :ivar line: its number from 1, or None
    """

    def __init__(self, reason, line=None):
        super().__init__(reason)
        self.line = line


def load(data, may_repeat=False):
    """Return the one document of a text.

    :param data: str, or bytes of UTF-8
    :param may_repeat: a map may have a key twice, and the last one counts:
        for TOSCA.meta, whose blocks have the same keys
    :raises: Refused
    """
    return _load(data, (_LOADER,), may_repeat)


def load_alike(data, may_repeat=False):
    """Return the one document if both parsers of PyYAML read it alike.

    :param may_repeat: as of load()
    :raises: Refused
    """
    return _load(data, (_LOADER, yaml.SafeLoader), may_repeat)


def nodes(data):
    """Return the root node of the document, with the places of its parts.

    :raises: Refused
    """
    text = _text(data)
    _check(text, True)
    return yaml.compose(text, Loader=_LOADER)


def is_map(node):
    """Return whether a node has pairs of nodes as its value."""
    return isinstance(node, yaml.MappingNode)


def is_list(node):
    """Return whether a node has nodes as its value."""
    return isinstance(node, yaml.SequenceNode)


def _load(data, loaders, may_repeat):
    text = _text(data)
    pairs = _check(text, may_repeat)
    try:
        # Safe loaders, the first one in C.
        found = [yaml.load(text, Loader=each) for each in loaders]  # nosec
    except _FAULTS as error:
        raise Refused('is not YAML: %s' % str(error)[:_MAX_SHOWN])
    if any(each != found[0] for each in found):
        raise Refused('its YAML has two meanings')
    if not may_repeat and _pairs(found[0]) != pairs:
        raise Refused('a map has a key twice')
    return found[0]


def _text(data):
    size = len(data if isinstance(data, bytes) else data.encode(
        errors='surrogatepass'))
    if size > MAX_BYTES:
        raise Refused('%d bytes, the limit is %d' % (size, MAX_BYTES))
    try:
        return data.decode() if isinstance(data, bytes) else data
    except UnicodeDecodeError as error:
        raise Refused('byte %d is not UTF-8' % error.start)


def _check(text, may_repeat):
    """Walk the events; return how many pairs the maps have."""
    walk = _Walk(may_repeat)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            walk.take(event)
    except _FAULTS as error:
        if isinstance(error, Refused):
            raise
        raise Refused('is not YAML: %s' % str(error)[:_MAX_SHOWN])
    return walk.pairs


@dataclasses.dataclass
class _Open:
    """A list or map that has not ended; only a map has keys."""

    keys: set | None
    is_key_next: bool


class _Walk:
    """The state of a walk over the events."""

    def __init__(self, may_repeat):
        self.pairs = 0
        self._may_repeat = may_repeat
        self._nodes = 0
        self._open = []

    def take(self, event):
        """Judge an event.

        :raises: Refused
        """
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            raise Refused('an alias (*%s); write the value out'
                          % event.anchor[:64], line)
        if isinstance(event, _NODES):
            self._take_node(event, line)
        elif isinstance(event, _ENDS):
            self._open.pop()

    def _take_node(self, event, line):
        if event.tag:
            raise Refused('a tag (%s); remove it' % event.tag[:64], line)
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise Refused('more than %d values' % MAX_NODES, line)
        is_key = self._turn()
        if isinstance(event, yaml.ScalarEvent):
            kind = _kind(event)
            _check_scalar(kind, event.value, line)
            if is_key:
                self._take_key((kind, event.value), line)
            return
        self._open.append(_Open(
            set() if isinstance(event, yaml.MappingStartEvent) else None,
            True))
        if len(self._open) > MAX_DEPTH:
            raise Refused('more than %d levels' % MAX_DEPTH, line)

    def _turn(self):
        """Return whether the node is a key; a value follows it then."""
        if not self._open or self._open[-1].keys is None:
            return False
        inner = self._open[-1]
        inner.is_key_next = not inner.is_key_next
        self.pairs += inner.is_key_next
        return not inner.is_key_next

    def _take_key(self, key, line):
        kind, text = key
        if kind == 'merge':
            raise Refused('a merge key (<<); write its entries out', line)
        if kind in ('int', 'float') and len(text) > MAX_NUMBER_KEY:
            raise Refused('the key %s is a number of more than %d characters;'
                          ' put it into quotes' % (text[:64], MAX_NUMBER_KEY),
                          line)
        if key in self._open[-1].keys and not self._may_repeat:
            raise Refused('the key %s is in the map twice' % text[:64], line)
        self._open[-1].keys.add(key)


def _kind(event):
    """Return which type YAML 1.1 gives a scalar, such as 'int'."""
    if not event.implicit[0]:
        return 'str'
    return _RESOLVER.resolve(yaml.ScalarNode, event.value,
                             (True, False)).removeprefix(_TAG)


def _check_scalar(kind, text, line):
    """Refuse a number that costs more than its length, or means two things.

    YAML 1.2 reads 1:30 as text, YAML 1.1 as 90.
    """
    if kind not in ('int', 'float'):
        return
    if ':' in text:
        raise Refused('%s is a number in base 60; put it into quotes'
                      % text[:32], line)
    if len(text) > MAX_NUMBER:
        raise Refused('a number of %d characters, the limit is %d; put it '
                      'into quotes' % (len(text), MAX_NUMBER), line)


def _pairs(value):
    """Count the entries of all maps inside a value."""
    count, waiting = 0, [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            count += len(value)
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return count
