# SPDX-License-Identifier: Apache-2.0
"""One method for each verb of cosmosd."""

import base64

from cosmos_client.connection import Connection
from cosmos_client.error import CosmosError
from cosmos_client.events import EventStream

#: The first router of a guest.
FIRST_ROUTER = 0
#: Bytes of an image in one request; a line has at most 4 MiB.
_PIECE = 1 << 20
#: What saving or restoring a guest may take.
_LONG_MS = 120000


class CosmosClient:
    """Client of one cosmosd; any number of threads may share it.

    Every call has a connection of its own, so no call waits for another.
    Every method returns the answer's plain dict and raises CosmosError.
    """

    def __init__(self, socket_path, timeout_s=10):
        """Remember where cosmosd is; nothing is connected yet.

        :param socket_path: path of the daemon's UNIX socket.
        :param timeout_s: seconds a call may take; verbs with a deadline of
            their own in the daemon get that much on top.
        """
        self.socket_path = str(socket_path)
        self.timeout_s = timeout_s

    def hello(self):
        """:returns: ``version``, ``host_kind``, ``roles`` of this caller."""
        return self._call('hello')

    def host(self):
        """:returns: the host's kind, memory, processors, guests, uptime."""
        return self._call('host')

    def create(self, uuid, name, image_sha256, memory_mib, vifs, config,
               config_name, writes=(), timeout_ms=10000, nics=(), number=0,
               hold=False, has_secrets=False, replace=False):
        """Create a guest and wait until it forwards.

        :param vifs: list of dicts devid, mac, switch, port, segment,
            allowed, port_security, mtu, slots: ports of the switch.
        :param config: the Click configuration.
        :param config_name: its name in error messages.
        :param writes: pairs (handler, value) to apply before the ports are
            up.
        :param timeout_ms: milliseconds the guest has to answer.
        :param nics: list of dicts devid, mac, bridge, mtu: vifs of stock
            netback, on a Xen host.
        :param number: the newest change that configuration and writes have.
        :param hold: keep the ports down until release().
        :param has_secrets: as of handler_write()
        :param replace: end a guest of this UUID first, but only when all
            that the new one needs is there.
        :returns: ``domid``, ``incarnation``
        """
        more = {'nics': list(nics)} if nics else {}
        if number:
            more['number'] = number
        if hold:
            more['hold'] = True
        if has_secrets:
            more['has_secrets'] = True
        if replace:
            more['replace'] = True
        return self._call(
            'create', timeout_ms, uuid=uuid, name=name,
            image_sha256=image_sha256, memory_mib=memory_mib,
            vifs=list(vifs), config=config, config_name=config_name,
            writes=_pairs(writes), timeout_ms=timeout_ms, **more)

    def release(self, uuid):
        """Let the ports of a held guest come up."""
        return self._call('release', uuid=uuid)

    def destroy(self, uuid):
        """Destroy a guest; one that does not exist is no error."""
        return self._call('destroy', uuid=uuid)

    def list(self):
        """:returns: ``guests``, a list of what :meth:`info` returns."""
        return self._call('list')

    def strangers(self):
        """:returns: ``strangers``, domains of others that look like guests."""
        return self._call('strangers')

    def find(self, name):
        """:returns: ``uuids`` of the guests that have this name."""
        return self._call('find', name=name)

    def info(self, uuid):
        """:returns: uuid, name, domid, state, reason, memory_mib, ..."""
        return self._call('info', uuid=uuid)

    def pause(self, uuid):
        """Stop a guest's processor time; its memory stays."""
        return self._call('pause', uuid=uuid)

    def unpause(self, uuid):
        """Let a paused guest go on."""
        return self._call('unpause', uuid=uuid)

    def console(self, uuid, max_bytes=65536):
        """:returns: ``text``, at most max_bytes of the log's end."""
        return self._call('console', uuid=uuid, max_bytes=max_bytes)

    def image_add(self, sha256, size, chunks):
        """Give the host an image; one that it has is not sent again.

        :param sha256: of the image, hex digits in lower case.
        :param size: its bytes.
        :param chunks: iterable of bytes, the image in order.
        """
        offset = 0
        for piece in _pieces(chunks):
            data = base64.b64encode(piece).decode('ascii')
            if self._call('image-add', sha256=sha256, size=size,
                          offset=offset, data=data)['complete']:
                return
            offset += len(piece)
        raise CosmosError('bad-image', 'image %.12s ended after %d of %d '
                          'bytes' % (sha256, offset, size))

    def image_list(self):
        """:returns: ``images``, a list of sha256, size, used_s."""
        return self._call('image-list')

    def image_remove(self, sha256):
        """Remove an image from the host; one it has not is no error."""
        return self._call('image-remove', sha256=sha256)

    def cpu(self, uuid, pin=None, weight=256, cap_percent=0):
        """Set a guest's share of processor time.

        :param pin: the only processor it runs on; None for any.
        :param weight: its share when processors are short; 256 is usual.
        :param cap_percent: its limit in percent of one; 0 for none.
        """
        return self._call('cpu', uuid=uuid, cpu={
            'pin': pin, 'weight': weight, 'cap_percent': cap_percent})

    def vif_plug(self, uuid, vif):
        """Give a running guest one more interface.

        :param vif: dict as of :meth:`create`, of a devid that is free.
        """
        return self._call('vif-plug', uuid=uuid, vif=vif)

    def vif_unplug(self, uuid, devid):
        """Take an interface from a running guest."""
        return self._call('vif-unplug', uuid=uuid, devid=devid)

    def vif_remove(self, uuid, devid, domid=None):
        """Take an interface's port from the switch; the guest runs on.

        :param domid: refuse if the guest is another domain by now.
        """
        return self._call('vif-remove', uuid=uuid, devid=devid,
                          **_domain(domid))

    def vif_set(self, uuid, devid, link_up, domid=None):
        """Set the link of an interface.

        :param domid: refuse if the guest is another domain by now.
        """
        return self._call('vif-set', uuid=uuid, devid=devid, link_up=link_up,
                          **_domain(domid))

    def vif_list(self, uuid):
        """Return what the switch counted at a guest's ports: ``ports``."""
        return self._call('vif-list', uuid=uuid)

    def port_filter(self, switch, port, rules):
        """Replace all rules of a port; those it has already change nothing.

        :param rules: list of dicts direction, family, protocol, ports,
            remote (docs/interfaces.md); None for no filter.
        """
        return self._call('port-filter', switch=switch, port=port,
                          rules=rules)

    def port_guard(self, switch, port, allowed, port_security,
                   dhcp_server=False):
        """Replace what a port may send.

        :param allowed: list of dicts mac, ip; ip is a CIDR.
        :param port_security: False to allow any.
        :param dhcp_server: True to allow the answers of a DHCP server.
        """
        return self._call('port-guard', switch=switch, port=port,
                          allowed=allowed, port_security=port_security,
                          **({'dhcp_server': True} if dhcp_server else {}))

    def port_limit(self, switch, port, limits):
        """Replace all limits of a port.

        :param limits: dict rx, tx, group_per_s, unknown_per_s
            (docs/interfaces.md); an empty one for no limit.
        """
        return self._call('port-limit', switch=switch, port=port,
                          limits=limits)

    def uplink_set(self, switch, segment, uplink):
        """Lead a segment to other hosts, or change how it does.

        :param uplink: dict ifname, vlan, vxlan (docs/interfaces.md).
        """
        return self._call('uplink-set', switch=switch, segment=segment,
                          uplink=uplink)

    def uplink_remove(self, switch, segment):
        """Take a segment's uplink; one that does not exist is no error."""
        return self._call('uplink-remove', switch=switch, segment=segment)

    def uplink_list(self):
        """:returns: ``uplinks``, a list of switch, segment, uplink."""
        return self._call('uplink-list')

    def device_set(self, switch, port, segment, mac, ifname):
        """Attach an interface of the host, or attach it anew.

        :param port: d and the first 11 characters of the id of its port.
        """
        return self._call('device-set', switch=switch, port=port,
                          segment=segment, mac=mac, ifname=ifname)

    def device_remove(self, switch, port):
        """Detach an interface; one that is not attached is no error."""
        return self._call('device-remove', switch=switch, port=port)

    def device_list(self):
        """:returns: ``devices``, a list of switch, port, segment, mac."""
        return self._call('device-list')

    def chain_set(self, chain):
        """Make a chain of the switch, or replace it as a whole.

        :param chain: the arguments of chain-set (docs/interfaces.md).
        """
        return self._call('chain-set', **chain)

    def chain_remove(self, switch, chain):
        """Remove a chain; one that does not exist is no error."""
        return self._call('chain-remove', switch=switch, chain=chain)

    def chain_list(self):
        """Return all chains of the switch with their counters."""
        return self._call('chain-list')

    def session(self):
        """:returns: a Session on this daemon, connected"""
        return Session(self.socket_path, self.timeout_s)

    def save(self, uuid):
        """Write a guest's memory to a file of the host; end its domain."""
        return self._call('save', _LONG_MS, uuid=uuid)

    def restore(self, uuid):
        """Let a saved guest go on.

        :returns: ``steps_ms``
        """
        return self._call('restore', _LONG_MS, uuid=uuid)

    def router_install(self, uuid, config, config_name, rid=FIRST_ROUTER,
                       timeout_ms=10000, halted=False, stamp=None):
        """Replace a guest's router; the old one runs on if this fails.

        :param halted: install it without running it.
        :param stamp: dict number, incarnation; see change_settle().
        :returns: ``generation``; with a stamp as handler_write()
        """
        more = {'halted': True} if halted else {}
        if stamp:
            more['stamp'] = stamp
        return self._call('router-install', timeout_ms, uuid=uuid, rid=rid,
                          config=config, config_name=config_name,
                          timeout_ms=timeout_ms, **more)

    def router_run(self, uuid, run, rid=FIRST_ROUTER, timeout_ms=10000):
        """Let a router run, or halt it."""
        return self._call('router-run', timeout_ms, uuid=uuid, rid=rid,
                          run=run, timeout_ms=timeout_ms)

    def router_list(self, uuid):
        """:returns: ``routers``, a list of rid, state, config_name."""
        return self._call('router-list', uuid=uuid)

    def handler_list(self, uuid, rid=FIRST_ROUTER):
        """:returns: ``handlers``, a list of name, read, write."""
        return self._call('handler-list', uuid=uuid, rid=rid)

    def handler_read(self, uuid, name, rid=FIRST_ROUTER, param=None):
        """:returns: ``value`` of handler name, as "element.handler".

        :param param: what the handler shall read, if it takes a parameter
        """
        more = {} if param is None else {'param': param}
        return self._call('handler-read', uuid=uuid, rid=rid, name=name,
                          **more)

    def handlers_read(self, uuid, names, rid=FIRST_ROUTER, params=()):
        """Read handlers in one request, each for itself.

        :param names: at most 64
        :param params: a parameter for each name, or none at all; '' for a
            handler that takes none
        :returns: ``values`` in this order, each {'value': text} or
            {'error': {'code', 'message'}}
        """
        more = {'params': list(params)} if params else {}
        return self._call('handlers-read', uuid=uuid, rid=rid,
                          names=list(names), **more)

    def handler_write(self, uuid, writes, rid=FIRST_ROUTER, timeout_ms=10000,
                      stamp=None, has_secrets=False):
        """Apply pairs (handler, value): all of them or none.

        :param stamp: dict number, incarnation; see change_settle().
        :param has_secrets: the daemon neither answers nor keeps what the
            guest says about the values.
        :returns: with a stamp ``applied``, the numbers of accepted changes,
            and ``incarnation``
        """
        more = {'stamp': stamp} if stamp else {}
        if has_secrets:
            more['has_secrets'] = True
        return self._call('handler-write', timeout_ms, uuid=uuid, rid=rid,
                          writes=_pairs(writes), timeout_ms=timeout_ms,
                          **more)

    def change_settle(self, uuid, number):
        """End what is under way up to a number.

        The guest takes no change of such a number any more.

        :returns: ``incarnation``, ``newest``, ``applied``, ``refused``,
            ``pending``
        """
        return self._call('change-settle', uuid=uuid, number=number)

    def events(self):
        """Subscribe to the daemon's events.

        :returns: an EventStream, subscribed already: a ``list`` after this
            call misses nothing.
        """
        connection = Connection(self.socket_path, self.timeout_s)
        return EventStream(connection, self.timeout_s)

    def _call(self, verb, timeout_ms=0, /, **args):
        connection = Connection(self.socket_path, self.timeout_s)
        try:
            return connection.call(verb, args,
                                   self.timeout_s + timeout_ms / 1000)
        finally:
            connection.close()


class Session(CosmosClient):
    """A client of one connection, for one thread: what moves guests.

    cosmosd undoes a move that is not over when the connection ends.
    """

    def __init__(self, socket_path, timeout_s=10):
        """Connect.

        :raises: CosmosError ``unavailable``
        """
        super().__init__(socket_path, timeout_s)
        self._connection = Connection(self.socket_path, timeout_s)

    def close(self):
        """End the session."""
        self._connection.close()

    def move_begin(self, uuid, timeout_ms=10000):
        """Halt the routers of a guest, which moves away.

        :returns: ``routers``, as they were, and ``changes``
        """
        return self._call('move-begin', timeout_ms, uuid=uuid,
                          timeout_ms=timeout_ms)

    def move_settle(self, uuid):
        """Keep the routers halted, whatever becomes of this session."""
        return self._call('move-settle', uuid=uuid)

    def move_cancel(self, uuid, timeout_ms=10000):
        """Let the routers run again."""
        return self._call('move-cancel', timeout_ms, uuid=uuid,
                          timeout_ms=timeout_ms)

    def move_receive(self, uuid, name, image_sha256, memory_mib, vifs, config,
                     config_name, timeout_ms=10000):
        """Create a guest that comes from another host, as :meth:`create`."""
        return self._call(
            'move-receive', timeout_ms, uuid=uuid, name=name,
            image_sha256=image_sha256, memory_mib=memory_mib,
            vifs=list(vifs), config=config, config_name=config_name,
            writes=[], timeout_ms=timeout_ms)

    def move_arrive(self, uuid, routers, changes, timeout_ms=10000):
        """Keep the guest, and let these routers run.

        :param changes: of :meth:`move_begin` on the other host
        """
        return self._call('move-arrive', timeout_ms, uuid=uuid,
                          routers=list(routers), changes=changes,
                          timeout_ms=timeout_ms)

    def _call(self, verb, timeout_ms=0, /, **args):
        return self._connection.call(verb, args,
                                     self.timeout_s + timeout_ms / 1000)


def _pieces(chunks):
    """Cut or join chunks, so that each but the last has _PIECE bytes."""
    rest = b''
    for chunk in chunks:
        rest += chunk
        while len(rest) >= _PIECE:
            yield rest[:_PIECE]
            rest = rest[_PIECE:]
    if rest:
        yield rest


def _domain(domid):
    return {} if domid is None else {'domid': domid}


def _pairs(writes):
    return [[name, value] for name, value in writes]
