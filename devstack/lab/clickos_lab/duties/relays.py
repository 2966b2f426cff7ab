# SPDX-License-Identifier: Apache-2.0
"""Duties of the relay of DHCP and DHCPv6 towards hostile neighbors."""

from scapy import all as scapy

from clickos_lab.duties import duty
from clickos_lab.duties import forwarding

_RELAY = ('dhcp-relay',)
_SERVER = '2001:db8:2::9'
_AGENTS, _SERVERS = 'ff02::1:2', 'ff05::1:3'
_DEEPEST = 8
#: What a client may send at a time, as in the relay's configuration.
_BURST = 16


def _own(place):
    """Return the IPv6 addresses of the relay at left and right."""
    return place.vnf.interfaces[0].ip6, place.vnf.interfaces[-1].ip6


def _client(place, number):
    """Return a client of left: each has its own share of requests."""
    return place.station(place.vnf.interfaces[0].cp,
                         f'02:00:00:00:0c:{number:02x}',
                         f'fe80::a77:{number}')


def _server(place):
    return place.station(place.vnf.interfaces[-1].cp, '02:00:00:00:0b:09',
                         _SERVER)


def _asks(client, message, source=None, port=546):
    client.send(scapy.Ether(src=client.mac, dst='33:33:00:01:00:02')
                / scapy.IPv6(src=source or client.ip, dst=_AGENTS, hlim=1)
                / scapy.UDP(sport=port, dport=547) / message)


def _relayed(xid):
    """Return a condition: a relay's message about a transaction."""
    def wanted(frame):
        found = frame.getlayer(scapy.DHCP6_RelayForward)
        inner = found and frame.getlayer(scapy.DHCP6_Solicit)
        return inner and inner.trid == xid and frame
    return wanted


def _answer(place, asked, **fields):
    """Return a server's answer to what a relay sent."""
    message = scapy.DHCP6_RelayReply(
        hopcount=asked.hopcount, linkaddr=asked.linkaddr,
        peeraddr=asked.peeraddr)
    for name, value in fields.items():
        setattr(message, name, value)
    inner = scapy.DHCP6_Reply(
        trid=asked.getlayer(scapy.DHCP6_Solicit).trid)
    message /= scapy.DHCP6OptIfaceId(
        ifaceid=asked.getlayer(scapy.DHCP6OptIfaceId).ifaceid)
    return scapy.IPv6(src=_SERVER, dst=_own(place)[1]) \
        / scapy.UDP(sport=547, dport=547) / message \
        / scapy.DHCP6OptRelayMsg(message=inner)


def _replied(xid):
    return lambda f: scapy.DHCP6_Reply in f \
        and f[scapy.DHCP6_Reply].trid == xid and f


@duty.duty('DHCPv6: link, peer, interface and remote ID',
           'RFC 8415, 19.1.1; RFC 4649', _RELAY)
def forwards(case, place):
    client, control = _client(place, 1), place.vnf.control
    before = control.read('relay.remote')
    control.write('relay.remote', 'host-a')
    since = place.right.mark()
    _asks(client, scapy.DHCP6_Solicit(trid=0x901))
    frame = place.right.expect(_relayed(0x901), 'relay-forward', since)
    control.write('relay.remote', before)
    found = frame[scapy.DHCP6_RelayForward]
    left, right = _own(place)
    case.assertEqual((0, left, client.ip),
                     (found.hopcount, found.linkaddr, found.peeraddr))
    case.assertEqual(b'left', found[scapy.DHCP6OptIfaceId].ifaceid)
    case.assertEqual(b'host-a', found[scapy.DHCP6OptRemoteID].remoteid)
    packet = frame[scapy.IPv6]
    case.assertEqual((right, _SERVERS, 8, 547),
                     (packet.src, packet.dst, packet.hlim,
                      frame[scapy.UDP].sport))


@duty.duty('DHCPv6: several servers get each request, answers go back',
           'RFC 8415, 19.2', _RELAY)
def answers(case, place):
    client, server, control = _client(place, 2), _server(place), \
        place.vnf.control
    control.write('relay6.more', _SERVER)
    since = server.mark()
    _asks(client, scapy.DHCP6_Solicit(trid=0x902))
    for to in (_SERVER, _SERVERS):
        frame = server.expect(
            lambda f, to=to: _relayed(0x902)(f) and f[scapy.IPv6].dst == to
            and f, f'request to {to}', since)
    control.write('relay6.more', '')
    since = client.mark()
    server.send_ip(_answer(place, frame[scapy.DHCP6_RelayForward]),
                   place.right_mac)
    got = client.expect(_replied(0x902), 'answer', since)
    case.assertEqual((client.mac, client.ip, 546), (
        got.dst, got[scapy.IPv6].dst, got[scapy.UDP].dport))


def _nested(client, depth, xid):
    message = scapy.DHCP6_Solicit(trid=xid)
    for _ in range(depth):
        message = scapy.DHCP6_RelayForward(
            linkaddr='::', peeraddr=client.ip, hopcount=0) \
            / scapy.DHCP6OptRelayMsg(message=message)
    return message


@duty.duty('DHCPv6: relays kinds of messages that it does not know',
           'RFC 7283, 4', _RELAY)
def unknown_kinds(_case, place):
    client, since = _client(place, 8), place.right.mark()
    message = b'\xc8\x00\x09\x0b'
    _asks(client, scapy.Raw(message))
    place.right.expect(
        lambda f: scapy.DHCP6_RelayForward in f
        and bytes(f).endswith(b'\0\x09\0\x04' + message), 'message', since)


@duty.duty('DHCPv6: drops other relays, strangers and servers of left',
           'RFC 8415, 18, 19.1', _RELAY)
def refuses(case, place):
    client, since = _client(place, 3), place.right.mark()
    _asks(client, _nested(client, 1, 0x903))
    _asks(client, scapy.DHCP6_Solicit(trid=0x904), source='2001:db8:9::9')
    _asks(client, scapy.DHCP6_RelayReply(
        linkaddr=_own(place)[0], peeraddr=client.ip)
        / scapy.DHCP6OptRelayMsg(message=scapy.DHCP6_Solicit(trid=0x905)))
    _asks(client, scapy.DHCP6_Solicit(trid=0x906) / scapy.Raw(b'\0\1\0\7'))
    _asks(client, _nested(client, _DEEPEST + 1, 0x907))
    _asks(client, scapy.DHCP6_Solicit(trid=0x908))
    place.right.expect(_relayed(0x908), 'request', since)
    case.assertEqual(1, len(place.right.found(
        lambda f: scapy.DHCP6_RelayForward in f, since)))


@duty.duty('DHCPv6: no answer that was not asked for or is for others',
           'RFC 8415, 19.2, 22', _RELAY)
def strangers(case, place):
    client, server = _client(place, 4), _server(place)
    since = server.mark()
    _asks(client, scapy.DHCP6_Solicit(trid=0x909))
    frame = server.expect(_relayed(0x909), 'request', since)
    asked, back = frame[scapy.DHCP6_RelayForward], client.mark()
    wrong = _answer(place, asked)
    wrong.getlayer(scapy.DHCP6_Reply).trid = 0x90a
    server.send_ip(wrong, place.right_mac)
    for fields in ({'peeraddr': '2001:db8:9::9'}, {'peeraddr': 'ff02::1'}):
        server.send_ip(_answer(place, asked, **fields), place.right_mac)
    server.send_ip(_answer(place, asked), place.right_mac)
    client.expect(_replied(0x909), 'answer', back)
    case.assertEqual(1, len(client.found(
        lambda f: scapy.DHCP6_Reply in f, back)))


def _request(client, xid, chaddr=None, fields=b'', options=()):
    """Let a client send a request of DHCP for IPv4."""
    own = chaddr or bytes.fromhex(client.mac.replace(':', ''))
    client.send(
        scapy.Ether(src=client.mac, dst='ff:ff:ff:ff:ff:ff')
        / scapy.IP(src=duty.NO_ADDRESS, dst='255.255.255.255')
        / scapy.UDP(sport=68, dport=67)
        / scapy.BOOTP(chaddr=own, xid=xid, file=fields)
        / scapy.DHCP(options=[('message-type', 'discover'), *options, 'end']))


def _asked(xid):
    return lambda f: scapy.DHCP in f and f[scapy.BOOTP].xid == xid and f


@duty.duty('no agent option hides in the fields for names',
           'RFC 2132, 9.3; RFC 3046, 2.1', _RELAY)
def overload(case, place):
    client, since = _client(place, 5), place.right.mark()
    _request(client, 921, fields=b'\x52\x03\x02\x01x\xff',
             options=[('dhcp-option-overload', 1)])
    _request(client, 922, chaddr=b'\x02\0\0\0\x0c\xff')
    _request(client, 923)
    place.right.expect(_asked(923), 'request', since)
    for xid in (921, 922):
        case.assertEqual([], place.right.found(_asked(xid), since), xid)


@duty.duty('a client that floods leaves room for others, both versions',
           'RFC 2131, 4.1; RFC 8415, 22', _RELAY)
def shares(case, place):
    flood, other = _client(place, 6), _client(place, 7)
    since = place.right.mark()
    for number in range(1000):
        _request(flood, 10000 + number)
        _asks(flood, scapy.DHCP6_Solicit(trid=0xa000 + number))
    _request(other, 931)
    _asks(other, scapy.DHCP6_Solicit(trid=0x931))
    place.right.expect(_asked(931), 'request', since)
    place.right.expect(_relayed(0x931), 'request of DHCPv6', since)
    for kind in (scapy.DHCP, scapy.DHCP6_RelayForward):
        passed = place.right.found(lambda f, kind=kind: kind in f, since)
        case.assertLess(len(passed), 4 * _BURST, kind)


@duty.duty('no answer that no client asked for', 'RFC 2131, 4.1', _RELAY)
def unasked(case, place):
    back = place.left.mark()
    place.right.send_ip(
        scapy.IP(src=place.vnf.values['server'], dst=place.left_ip)
        / scapy.UDP(sport=67, dport=67)
        / scapy.BOOTP(op=2, xid=941, giaddr=place.left_ip)
        / scapy.DHCP(options=[('message-type', 'ack'), 'end']),
        place.right_mac)
    forwarding.ping(place, place.right, place.right_mac, place.right_ip)
    case.assertEqual([], place.left.found(_asked(941), back))
