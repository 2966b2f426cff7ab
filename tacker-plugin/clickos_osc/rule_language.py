# SPDX-License-Identifier: Apache-2.0
"""What of Suricata's rules a guest takes (docs/reference/inspection.md).

A guest has the last word. The rules that both judge alike are in
tests/rules, which this module's tests and the guest's read.
"""

import ipaddress
import re

ACTIONS = ('alert', 'drop', 'pass')
PROTOCOLS = ('tcp', 'udp', 'icmp', 'ip')
#: Characters of a rule: a property has no longer lines.
MAX_RULE = 8192
MAX_OPTIONS, MAX_PARTS, MAX_LIST = 64, 16, 256
MAX_CONTENT, MAX_PCRE, MAX_TEXT = 255, 512, 200
MAX_PLACE, MAX_NUMBER, MAX_SECONDS = 65535, 2 ** 32 - 1, 86400
_DEEPEST = 8
_HEX = re.compile(r'\|([0-9a-fA-F\s]*)\|')
_ESCAPE = re.compile(r'\\(["\\;:|])')
_TEXT = re.compile(r'[\t -~]*\Z')
_NAME = re.compile(r'[A-Za-z0-9._-]+\Z')
_PORT = re.compile(r'(\d{0,5})(:?)(\d{0,5})\Z', re.ASCII)
#: What no automaton with bounded work finds: back-references, look-around,
#: atomic and possessive parts.
_UNBOUNDED = re.compile(r'\\[1-9]|\(\?<?[=!]|\(\?>|[*+?}]\+')
_WORDS = {
    'flow': {'established', 'not_established', 'to_server', 'to_client',
             'from_client', 'from_server', 'stateless'},
    'flowbits': {'set', 'unset', 'isset', 'isnotset'}}
_PLACED, _RELATIVE = {'offset', 'depth', 'startswith'}, {'distance', 'within'}
_PLAIN = {'nocase', 'rawbytes', 'fast_pattern'}


class Refused(Exception):
    """Why a rule is not taken."""


def check(rule, names=()):
    """Return the sid of a rule, the names of the bits that it uses, and how
    many contents and expressions it has.

    :param names: variables that the rule may refer to
    :raises Refused: if a guest would not take it
    """
    if len(rule) > MAX_RULE:
        raise Refused(f'{len(rule)} characters, the limit is {MAX_RULE}')
    if not _TEXT.match(rule):
        raise Refused('expected printable ASCII')
    head, bracket, rest = rule.partition('(')
    if not bracket or not rest.endswith(')'):
        raise Refused('expected (options) at the end')
    _check_head(_words(head), names)
    options = _options(rest[:-1])
    if len(options) > MAX_OPTIONS:
        raise Refused(f'{len(options)} options, the limit is {MAX_OPTIONS}')
    found = _Rule()
    for keyword, value in options:
        found.add(keyword, value)
    return found.finish()


def _check_head(words, names):
    if len(words) != 7:
        raise Refused(f'{len(words)} words in front of the options,'
                      ' expected 7')
    action, protocol, source, sport, arrow, destination, dport = words
    for keyword, word, known in (('action', action, ACTIONS),
                                 ('protocol', protocol, PROTOCOLS),
                                 ('direction', arrow, ('->', '<>'))):
        if word not in known:
            raise Refused(f'{keyword}: {word}: expected one of'
                          f' {", ".join(known)}')
    for word in (source, destination):
        _check_list('network', word, names, _is_net)
    for word in (sport, dport):
        _check_list('port', word, names, _is_port)


def _check_list(keyword, word, names, is_one, negated=False, depth=0):
    if depth > _DEEPEST:
        raise Refused(f'{keyword}: more than {_DEEPEST} lists in lists')
    if word.startswith('!'):
        if negated:
            raise Refused(f'{keyword}: ! within a list with !')
        return _check_list(keyword, word[1:].strip(), names, is_one, True,
                           depth + 1)
    if word.startswith('[') and word.endswith(']'):
        items = _split(word[1:-1])
        if len(items) > MAX_LIST:
            raise Refused(f'{keyword}: {len(items)} in a list, the limit is'
                          f' {MAX_LIST}')
        for item in items:
            _check_list(keyword, item.strip(), names, is_one, negated,
                        depth + 1)
    elif word.startswith('$'):
        if word[1:] not in names:
            raise Refused(f'{keyword}: {word}: no such variable; give it by'
                          f' --var {word[1:]}=VALUE')
    elif word == 'any' and negated or word != 'any' and not is_one(word):
        raise Refused(f'{keyword}: {word[:64]} is not one')


def _is_net(word):
    try:
        return bool(ipaddress.ip_network(word, strict=False)) \
            and '%' not in word and '.' not in word.partition('/')[2]
    except ValueError:
        return False


def _is_port(word):
    found = _PORT.match(word)
    if not found or word in ('', ':'):
        return False
    first, colon, last = found.groups()
    low, high = int(first or 0), int(last or 65535) if colon else int(first)
    return low <= high <= 65535


def _split(text):
    """Return the parts of a list, at commas outside inner lists."""
    parts, depth = [''], 0
    for char in text:
        depth += (char == '[') - (char == ']')
        if char == ',' and not depth:
            parts.append('')
        else:
            parts[-1] += char
    return parts


def _words(text):
    """Return the words of a head; a list in brackets is one."""
    words, depth = [''], 0
    for char in text:
        depth += (char == '[') - (char == ']')
        if char.isspace() and not depth:
            words.append('')
        else:
            words[-1] += char
    return [word for word in words if word]


def _options(text):
    """Return (keyword, value) of each option: it ends with a semicolon
    outside quotes.
    """
    found, start, quoted, escaped = [], 0, False, False
    for at, char in enumerate(text):
        if escaped or char == '\\':
            escaped = not escaped
        elif char == '"':
            quoted = not quoted
        elif char == ';' and not quoted:
            found.append(text[start:at].strip().partition(':'))
            start = at + 1
    rest = text[start:].strip()
    if rest:
        raise Refused(f'{rest[:64]}: expected ; behind an option')
    return [(name.strip(), value.strip())
            for name, _colon, value in found if name.strip()]


def _quoted(keyword, value):
    text = value.removeprefix('!').strip()
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        raise Refused(f'{keyword}: {value[:64]}: expected text in quotes')
    return text[1:-1]


def _number(keyword, value, most):
    if not value.isascii() or not value.isdigit():
        raise Refused(f'{keyword}: {value[:64]}: expected a number')
    digits = value.lstrip('0') or '0'
    if len(digits) > len(str(most)) or int(digits) > most:
        raise Refused(f'{keyword}: {digits[:32]}, the limit is {most}')
    return int(digits)


def content_length(text):
    """Return the bytes of a content.

    :raises Refused: if it is not one
    """
    length = 0

    def count(found):
        nonlocal length
        digits = re.sub(r'\s', '', found[1])
        if len(digits) % 2:
            raise Refused('content: half a byte between bars')
        length += len(digits) // 2
        return ''
    rest = _ESCAPE.sub('x', _HEX.sub(count, text))
    if '|' in rest or '\\' in rest:
        raise Refused(f'content: {text[:64]}: a bar or a backslash that is'
                      ' not escaped')
    return length + len(rest.encode())


def _check_pcre(text):
    pattern, slash, flags = text.removeprefix('/').rpartition('/')
    if not slash or text[0] != '/':
        raise Refused(f'pcre: {text[:64]}: expected /expression/flags')
    wrong = set(flags) - set('ismxR')
    if wrong:
        raise Refused(f'pcre: flag {min(wrong)} is not taken')
    if len(text.encode()) > MAX_PCRE:
        raise Refused(f'pcre: {len(text)} bytes, the limit is {MAX_PCRE}')
    unbounded = _UNBOUNDED.search(pattern.replace('\\\\', ''))
    if unbounded:
        raise Refused(f'pcre: {unbounded[0]}: no automaton finds this')


class _Rule:
    """What was read of a rule's options."""

    def __init__(self):
        self.sid, self.bits = 0, set()
        #: (kind, length, negated, {keyword: number}) of each part
        self.parts = []

    def add(self, keyword, value):
        """Take an option."""
        if keyword in ('content', 'pcre'):
            self._part(keyword, value)
        elif keyword in _PLACED | _RELATIVE | _PLAIN:
            self._modify(keyword, value)
        elif keyword in ('sid', 'rev', 'priority'):
            number = _number(keyword, value,
                             255 if keyword == 'priority' else MAX_NUMBER)
            self.sid = number if keyword == 'sid' else self.sid
        elif keyword in ('msg', 'classtype'):
            text = _quoted(keyword, value) if keyword == 'msg' else value
            if len(text.encode()) > MAX_TEXT:
                raise Refused(f'{keyword}: {len(text)} bytes, the limit is'
                              f' {MAX_TEXT}')
        elif keyword == 'flow':
            for word in value.split(','):
                if word.strip() not in _WORDS['flow']:
                    raise Refused(f'flow: {word.strip()[:64]} is not taken')
        elif keyword == 'flowbits':
            self._flowbits(value)
        elif keyword in ('threshold', 'detection_filter'):
            _check_threshold(keyword, value)
        elif keyword not in ('reference', 'metadata', 'noalert'):
            raise Refused(f'{keyword[:64]}: this keyword is not taken')

    def finish(self):
        """Check the whole rule; return what check returns."""
        if not self.sid:
            raise Refused('sid: a number from 1 is needed')
        if self.parts and all(negated or kind == 'pcre' for
                              kind, _length, negated, _keys in self.parts):
            raise Refused('content: at least one without ! is needed')
        before = None
        for part in self.parts:
            _check_part(part, before)
            before = part[0]
        kinds = [part[0] for part in self.parts]
        return self.sid, self.bits, (kinds.count('content'),
                                     kinds.count('pcre'))

    def _part(self, keyword, value):
        if len(self.parts) == MAX_PARTS:
            raise Refused(f'{keyword}: {MAX_PARTS + 1} in a rule, the limit'
                          f' is {MAX_PARTS}')
        text, length, keys = _quoted(keyword, value), 0, {}
        if keyword == 'pcre':
            _check_pcre(text)
            keys = {'R': 0} if 'R' in text.rpartition('/')[2] else {}
        else:
            length = content_length(text)
            if not 1 <= length <= MAX_CONTENT:
                raise Refused(f'content: {length} bytes, the limit is'
                              f' {MAX_CONTENT}, and one at least')
        self.parts.append((keyword, length, value.startswith('!'), keys))

    def _modify(self, keyword, value):
        if not self.parts or self.parts[-1][0] != 'content':
            raise Refused(f'{keyword}: expected a content in front of it')
        keys = self.parts[-1][3]
        if keyword in _PLAIN or keyword == 'startswith':
            keys[keyword] = 0
        else:
            digits = value.removeprefix('-') if keyword == 'distance' \
                else value
            keys[keyword] = _number(keyword, digits, MAX_PLACE)

    def _flowbits(self, value):
        verb, _comma, name = (part.strip() for part in value.partition(','))
        if (verb, name) == ('noalert', ''):
            return
        if verb not in _WORDS['flowbits'] or not _NAME.match(name):
            raise Refused(f'flowbits: {value[:64]} is not taken')
        self.bits.add(name)


def _check_part(part, before):
    kind, length, negated, keys = part
    if before == 'pcre' and keys.keys() & (_RELATIVE | {'R'}):
        raise Refused('distance: counts from a content, and a pcre is in'
                      ' front of it')
    if keys.keys() & _PLACED and keys.keys() & _RELATIVE:
        raise Refused('content: distance and within do not go with offset'
                      ' and depth')
    for keyword in ('depth', 'within'):
        if keyword in keys and keys[keyword] < length:
            raise Refused(f'{keyword}: {keys[keyword]}, and the content has'
                          f' {length} bytes')
    if kind == 'content' and negated and 'fast_pattern' in keys:
        raise Refused('fast_pattern: not with a content with !')


def _check_threshold(keyword, value):
    words = dict(item.strip().partition(' ')[::2]
                 for item in value.split(','))
    needed = {'track', 'count', 'seconds'}
    needed |= {'type'} if keyword == 'threshold' else set()
    if words.keys() != needed:
        raise Refused(f'{keyword}: {value[:64]}: needs'
                      f' {", ".join(sorted(needed))}')
    for name, known in (('type', ('limit', 'threshold', 'both')),
                        ('track', ('by_src', 'by_dst'))):
        if name in words and words[name].strip() not in known:
            raise Refused(f'{keyword}: {name} {words[name][:64]} is not'
                          ' taken')
    for name, most in (('count', MAX_NUMBER), ('seconds', MAX_SECONDS)):
        if not _number(name, words[name].strip(), most):
            raise Refused(f'{name}: 0: expected a number from 1')
