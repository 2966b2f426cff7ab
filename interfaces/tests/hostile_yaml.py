# SPDX-License-Identifier: Apache-2.0
"""YAML texts that cost much in a plain loader, and how each is refused.

The tests of all parts that read a tenant's YAML read this corpus.
"""

_MAX = 256 * 1024


def _full(piece, before='', after=''):
    """Repeat a piece up to the limit of a text."""
    room = _MAX - len(before) - len(after)
    return before + piece * (room // len(piece)) + after


def _keys_of_one_hash():
    """Python has an integer's rest of the division by 2^61 - 1 as its hash."""
    return ''.join('%d: 1\n' % (number * (2 ** 61 - 1))
                   for number in range(1, 9500))


def _billion_laughs():
    lines = ['a0: &a0 [x, x]'] + [
        'a%d: &a%d [%s]' % (i, i, ', '.join(['*a%d' % (i - 1)] * 9))
        for i in range(1, 10)]
    return '\n'.join(lines)


#: {name: (text, part of the refusal, or None for a text that is taken)}
TEXTS = {
    'base 60, 619 bytes': ('a: 1' + ':1' * 300 + '\n' + 'b: 1\n' * 3,
                           'is a number in base 60'),
    'base 60, an integer': (_full(':1', 'a: 1'), 'is a number in base 60'),
    'base 60, a float': (_full(':1', 'a: 1', '.5'), 'is a number in base 60'),
    'base 60, a key': (_full(':1', '{? 1', ' : 1}'),
                       'is a number in base 60'),
    'base 60, a time of day': ('a: 12:30:45', 'is a number in base 60'),
    'base 60, with a sign': ('a: -1:30', 'is a number in base 60'),
    'digits of base 10': ('a: ' + '9' * 5000, 'a number of 5000 characters'),
    'digits of base 2': ('a: 0b' + '1' * 5000, 'a number of 5002 characters'),
    'digits of base 8': ('a: 0' + '7' * 5000, 'a number of 5001 characters'),
    'digits of base 16': (_full('f', 'a: 0x'), 'a number of '),
    'digits of a key': ('0x' + 'f' * 6000 + ': 1',
                        'a number of 6002 characters'),
    'keys of one hash': (_keys_of_one_hash(),
                         'is a number of more than 16 characters'),
    'digits of a fraction': (_full('1', 'a: 1.'), 'a number of '),
    'underscores': (_full('_', 'a: 1'), 'a number of '),
    'aliases that expand': (_billion_laughs(), 'an alias (*a0)'),
    'an alias to itself': ('&a [*a]', 'an alias (*a)'),
    'many aliases': (_full('*a,', '[&a x,', ']'), 'an alias (*a)'),
    'deep lists': (_full('['), 'more than 32 levels'),
    'deep maps': (_full('{a: '), 'more than 32 levels'),
    'deep lists in block style': (_full('- '), 'more than 32 levels'),
    'deep keys': (_full('? '), 'more than 32 levels'),
    'many values': (_full('a,', '[', ']'), 'more than 32768 values'),
    'many documents': (_full('---\n'), 'values'),
    'two documents': ('--- 1\n--- 2\n', 'not YAML'),
    'a key twice': ('a: 1\nb: 2\na: 3', 'the key a is in the map twice'),
    'a key twice, quoted': ('a: 1\n"a": 3', 'the key a is in the map twice'),
    'a key twice, in two bases': ('1: 1\n0x1: 2', 'a map has a key twice'),
    'a key twice, as a number and a truth': ('1: 1\ntrue: 2',
                                             'a map has a key twice'),
    'a merge key': ('<<: {a: 1}', 'a merge key (<<)'),
    'merge keys of lists': ('a: {<<: [{a: 1}, {b: 2}]}', 'a merge key (<<)'),
    'deep merge keys': ('{<<: ' * 30 + '{a: 1}' + '}' * 30,
                        'a merge key (<<)'),
    'a list as a key': ('? [a]\n: 1', 'not YAML'),
    'a map as a key': ('? {a: 1}\n: 1', 'not YAML'),
    'a tag of Python': ('!!python/object/apply:os.system [id]', 'a tag ('),
    'a tag of YAML': ('!!int "1:1"', 'a tag ('),
    'no such date': ('a: 0000-01-01', 'not YAML'),
    'a date of the future': ('a: 2026-99-99', 'not YAML'),
    'not UTF-8': (b'\xff\xfea\0:\0', 'byte 0 is not UTF-8'),
    'a control character': ('a: \x01', 'not YAML'),
    'half a surrogate pair': ('a: "\\ud800"', 'not YAML'),
    'too long': ('a' * (_MAX + 1), '262145 bytes, the limit is 262144'),
    'a long quoted scalar': (_full('x', 'a: "', '"'), None),
    'a long plain scalar': (_full('x ', 'a: '), None),
    'a long block scalar': (_full(' x\n', 'a: |\n'), None),
    'a long folded scalar': (_full(' x\n', 'a: >\n'), None),
    'many escapes': (_full('\\x41', '"', '"'), None),
    'many comments': (_full('#\n', 'a: 1\n'), None),
    'many empty lines': (_full('\n', 'a: b\n', ' c'), None),
    'many directives': ('\n'.join(
        '%%TAG !%d! x' % number for number in range(12000)) + '\n--- a',
        None),
    'many anchors': ('\n'.join(
        'k%d: &a%d 1' % (number, number) for number in range(9000)), None),
    'many maps': ('\n'.join('k%d: {}' % number for number in range(10000)),
                  None),
    'a long fraction of a second': (_full('1', 'a: 2020-01-01 00:00:00.'),
                                    None),
    'many open keys': (_full('? ', '{'), 'not YAML'),
    'many colons': (_full('a:', '{'), 'not YAML'),
}


def content(name):
    """Return the bytes of a text."""
    text = TEXTS[name][0]
    return text if isinstance(text, bytes) else text.encode()
