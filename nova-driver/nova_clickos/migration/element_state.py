# SPDX-License-Identifier: Apache-2.0
"""The parts of a guest's routers that move to another host.

They are the configuration and the value of each handler that is readable and
writable, as with ``cosmos migrate``. Tables that elements have learned are
such values (``state``, docs/adr/0070).
"""

from cosmos_client import CosmosError
from oslo_log import log as logging

from nova_clickos.migration import channel

LOG = logging.getLogger(__name__)

#: Writes in one request: all of them are done, or none.
_BATCH = 64
#: Milliseconds that a guest has for a step of its move.
GUEST_MS = 10000
#: Most routers of a guest.
_ROUTERS = 256
#: The first configuration of an arriving guest.
PLACEHOLDER = 'Idle -> Discard;'
_HALTED = 'Halted'
#: Codes of a handler that has no value now. After others, such as one for a
#: value that is too long for an answer, the guest would lose the value.
_NO_VALUE = {'handler-error', 'not-permitted', 'no-such-handler',
             'no-such-element'}


def read(client, uuid, routers):
    """Read the halted routers of a guest.

    :returns: list of dicts rid, config, config_name, runs, values
    """
    return [{'rid': router['rid'], 'config_name': router['config_name'],
             'runs': router['state'] != _HALTED,
             'config': _value(client, uuid, router['rid'], 'config'),
             'values': _values(client, uuid, router['rid'])}
            for router in routers]


def _value(client, uuid, rid, name):
    return client.call('handler-read', uuid=uuid, name=name, rid=rid)['value']


def _values(client, uuid, rid):
    names = [handler['name'] for handler
             in client.call('handler-list', uuid=uuid, rid=rid)['handlers']
             if handler['read'] and handler['write']]
    values = []
    # Other handlers may forget what was learned, so that comes last.
    for name in sorted(names, key=lambda name: name.endswith('.state')):
        try:
            values.append([name, _value(client, uuid, rid, name)])
        except CosmosError as e:
            if e.code not in _NO_VALUE:
                raise
            LOG.warning('Guest %(uuid)s: %(name)s does not move: %(why)s',
                        {'uuid': uuid, 'name': name, 'why': e})
    return values


class Copy:
    """A guest that was just made, which becomes like the source's.

    Most is done while the source runs; what is left takes a moment.
    """

    def __init__(self, client, uuid):
        self._client, self._uuid = client, uuid
        self._installed = {}
        self._values = {}

    def install(self, routers):
        """Install the configurations, halted; those that are known stay.

        :param routers: from read() of another host, checked by check()
        """
        wanted = {router['rid']: router for router in routers}
        for rid in {0, *self._installed}.difference(wanted):
            self._client.call('router-install', uuid=self._uuid, config='',
                              config_name='none', rid=rid,
                              timeout_ms=GUEST_MS)
            self._installed.pop(rid, None)
        for rid, router in wanted.items():
            form = router['config'], router['config_name']
            if self._installed.get(rid) != form:
                self._client.call('router-install', uuid=self._uuid,
                                  config=form[0], config_name=form[1],
                                  rid=rid, halted=True, timeout_ms=GUEST_MS)
                self._installed[rid] = form
                self._values[rid] = {}
            self._learn(rid, router['values'])

    def _learn(self, rid, values):
        known = self._values[rid]
        for name, _ in values:
            if name not in known:
                known[name] = _value(self._client, self._uuid, rid, name)

    def finish(self, routers):
        """Write all values that differ."""
        self.install(routers)
        for router in routers:
            known = self._values[router['rid']]
            changed = [pair for pair in router['values']
                       if known[pair[0]] != pair[1]]
            for first in range(0, len(changed), _BATCH):
                self._client.call('handler-write', uuid=self._uuid,
                                  writes=changed[first:first + _BATCH],
                                  rid=router['rid'], has_secrets=True,
                                  timeout_ms=GUEST_MS)


def check(routers):
    """Check the form of what another host sent.

    :returns: routers
    :raises: ChannelError
    """
    if not isinstance(routers, list) or len(routers) > _ROUTERS \
            or not all(map(_is_router, routers)):
        raise channel.ChannelError('routers: expected at most %d of rid, '
                                   'config, config_name, runs, values'
                                   % _ROUTERS)
    return routers


def _is_router(router):
    return isinstance(router, dict) \
        and isinstance(router.get('runs'), bool) \
        and type(router.get('rid')) is int \
        and isinstance(router.get('config'), str) \
        and isinstance(router.get('config_name'), str) \
        and isinstance(router.get('values'), list) \
        and all(isinstance(pair, list) and len(pair) == 2
                and all(isinstance(text, str) for text in pair)
                for pair in router['values'])
