# SPDX-License-Identifier: Apache-2.0
"""The grammar of one IPFilter rule a tenant may give.

The grammar is tighter than IPFilter's own: a fixed vocabulary, an action
first and balanced parentheses. It has none of the characters that end a rule,
a configuration string or a variable name in Click. So no value can smuggle in
a second rule or an element. The guest's IPFilter judges the meaning.
"""

import ipaddress
import re

MAX_LENGTH = 200
ACTIONS = frozenset(('allow', 'deny', 'drop'))
#: what the guest's IPFilter knows, but raw fields (ip[6:2]) and masks
WORDS = frozenset("""
    all any and or not true false
    src dst host net port proto ip ip6 type opt win
    vers hl len id tos dscp ect ce ttl hlim frag unfrag hidden
    icmp icmp6 igmp ipip tcp udp dccp tcpudp transp
    syn fin ack rst psh urg
    echo-reply unreachable sourcequench redirect echo routeradvert
    routersolicit timeexceeded parameterproblem timestamp timestamp-reply
    inforeq inforeq-reply maskreq maskreq-reply
    packet-too-big neighborsolicit neighboradvert
    discard daytime chargen ftp-data ftp ssh telnet smtp domain dns bootps
    bootpc tftp finger www pop3 sunrpc auth nntp ntp netbios-ns netbios-dgm
    netbios-ssn snmp snmp-trap irc imap3 https rip route imaps pop3s
""".split())

_TOKEN = re.compile(
    r'(?P<op>&&|\|\||[<>=!]=|[()<>=!])'
    r'|(?P<address>\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?)'
    r'|(?P<address6>[0-9a-fA-F]*:[0-9a-fA-F:.]*(?:/\d{1,3})?)'
    r'|(?P<number>0x[0-9a-fA-F]{1,8}|\d{1,10})'
    r'|(?P<word>[a-z][a-z0-9-]*)', re.ASCII)
_MAX_DEPTH = 16


def check(rule):
    """Return what is wrong with the rule, or None.

    :param rule: the text of one rule, such as "allow tcp dst port 80"
    """
    if not isinstance(rule, str):
        return 'expected text, got %s' % type(rule).__name__
    if len(rule) > MAX_LENGTH:
        return '%d characters, the limit is %d' % (len(rule), MAX_LENGTH)
    action, _, pattern = rule.strip(' ').partition(' ')
    if action not in ACTIONS:
        return 'must start with allow, deny or drop, got %r' % action[:32]
    return _check_pattern(pattern)


def _check_pattern(pattern):
    at, depth = 0, 0
    while True:
        at += len(pattern[at:]) - len(pattern[at:].lstrip(' '))
        if at == len(pattern):
            return None if depth == 0 else 'a parenthesis is not closed'
        token = _TOKEN.match(pattern, at)
        if token is None:
            return 'character %r is not allowed' % pattern[at]
        end = token.end()
        if end < len(pattern) and (pattern[end].isalnum()
                                   and not token.group('op')):
            return '%r is not a word of a rule' % pattern[at:end + 16]
        wrong = _check_token(token)
        if wrong:
            return wrong
        depth += {'(': 1, ')': -1}.get(token.group(), 0)
        if depth < 0:
            return 'a parenthesis is closed that was not opened'
        if depth > _MAX_DEPTH:
            return 'more than %d parentheses deep' % _MAX_DEPTH
        at = end


def _check_token(token):
    if token.group('word') and token.group() not in WORDS:
        return '%r is not a word of a rule' % token.group()[:32]
    if token.group('address'):
        try:
            ipaddress.ip_interface(token.group())
        except ValueError:
            return '%r is not an IPv4 address' % token.group()
    if token.group('address6'):
        try:
            ipaddress.IPv6Interface(token.group())
        except ValueError:
            return '%r is not an IPv6 address' % token.group()
    return None
