# SPDX-License-Identifier: Apache-2.0
"""Patterns for strings, matched in bounded time.

A package's author writes the pattern and a tenant the string, so both are
hostile. Python's engine backtracks without a bound. A pattern here is a
sequence of character classes with a quantifier each. A set of states matches
it. The set is one number, so a character costs the same with any pattern.
"""

import dataclasses
import functools
import re

MAX_LENGTH = 200
MAX_STATES = 256
_ATOM = re.compile(
    r'(?P<set>\[\^?(?:\\[\\\]\[^dws-]|[^\\\]\[])+\])|(?P<class>\\[dw.\\+*?/-])'
    r'|(?P<plain>[A-Za-z0-9 _:/@=%~!&<>-])|(?P<any>\.)')
_QUANTIFIER = re.compile(r'[?*+]|\{(\d{1,3})(?:(,)(\d{1,3})?)?\}')
_BOUNDS = {'?': (0, 1), '*': (0, None), '+': (1, None)}


class PatternError(ValueError):
    """Why a text is no pattern."""


@dataclasses.dataclass(frozen=True)
class _State:
    """One character; it may be left out, or come again."""

    one: frozenset
    optional: bool
    again: bool


@dataclasses.dataclass(frozen=True)
class Pattern:
    """The states of a pattern, as bits of numbers.

    A bit says that the match is before a state; the last one, behind all.

    :param end: the last bit
    :param optional: states that may be left out
    :param again: states whose character may come again
    :param of: {character: states that take it}
    """

    end: int
    optional: int
    again: int
    of: dict


@functools.lru_cache(maxsize=64)
def compiled(text):
    """Return a Pattern.

    :raises: PatternError
    """
    if not isinstance(text, str) or not 1 <= len(text) <= MAX_LENGTH:
        raise PatternError('a pattern has 1 to %d characters' % MAX_LENGTH)
    states, at = [], 0
    while at < len(text):
        atom = _ATOM.match(text, at)
        if atom is None:
            raise PatternError('%r at character %d: expected a character, a '
                               'class such as [a-z], and ?, *, + or {2,8} '
                               'behind it' % (text[at], at + 1))
        quantifier = _QUANTIFIER.match(text, atom.end())
        states += _repeated(_one(atom.group()), quantifier)
        at = (quantifier or atom).end()
        if len(states) > MAX_STATES:
            raise PatternError('it takes more than %d characters'
                               % MAX_STATES)
    return _pattern(states)


def _pattern(states):
    def bits(chosen):
        return sum(1 << index for index, state in enumerate(states)
                   if chosen(state))
    return Pattern(
        1 << len(states), bits(lambda state: state.optional),
        bits(lambda state: state.again),
        {one: bits(lambda state, one=one: one in state.one)
         for one in frozenset().union(*(state.one for state in states))})


def matches(pattern, text):
    """Return whether the whole text matches.

    A character takes a few operations on numbers, whatever the pattern is.
    """
    here = _skip(pattern, 1)
    for character in text:
        taken = here & pattern.of.get(character, 0)
        here = _skip(pattern, taken << 1 | taken & pattern.again)
    return bool(here & pattern.end)


def _skip(pattern, here):
    """Return states and those behind optional ones.

    The sum carries a bit through a row of optional states to the one behind
    it: the bits on its way become 0.
    """
    optional = pattern.optional
    carried = optional + (here & optional)
    return here | optional & ~carried | carried & ~optional


def _one(atom):
    """Return the characters that an atom matches."""
    try:
        found = re.compile(atom, re.ASCII)
    except re.error as error:
        raise PatternError('%s: %s' % (atom, error))
    return frozenset(filter(found.fullmatch, map(chr, range(32, 127))))


def _repeated(one, quantifier):
    """Return the states of an atom with its quantifier."""
    low, high = _bounds(quantifier)
    if high is not None and high < low:
        raise PatternError('%s: %d is below %d'
                           % (quantifier.group(), high, low))
    states = [_State(one, False, False)] * low
    if high is None:
        return states + [_State(one, True, True)]
    return states + [_State(one, True, False)] * (high - low)


def _bounds(quantifier):
    if quantifier is None:
        return 1, 1
    if quantifier.group() in _BOUNDS:
        return _BOUNDS[quantifier.group()]
    low, comma, high = quantifier.groups()
    return int(low), (int(high) if high else None) if comma else int(low)
