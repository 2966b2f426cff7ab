# SPDX-License-Identifier: Apache-2.0
"""The target's side of a live migration: guests that arrive here.

A guest is made before its source halts. Until it has arrived, cosmosd undoes
it when this process or its session ends.
"""

import threading
import time

from cosmos_client import CosmosError
from oslo_log import log as logging

from nova_clickos.conf import CONF
from nova_clickos import host
from nova_clickos.migration import channel
from nova_clickos.migration import element_state

LOG = logging.getLogger(__name__)

#: Seconds that a source may take to come, and for one message.
_PATIENCE_S = 300


class Arrivals:
    """The guests that are on their way to this host, by instance."""

    def __init__(self, client):
        self._client = client
        self._expected = {}
        self._lock = threading.Lock()

    def expect(self, instance, sha256, vifs, source):
        """Make a guest, and wait for its source.

        :param vifs: list of dicts for cosmosd.
        :param source: certificate of the source
        :returns: the invitation, text for Nova to carry to the source
        :raises: CosmosError, ChannelError; nothing is left then
        """
        self.forget(instance)
        arrival = _Arrival(self._client.session(), instance, sha256, vifs,
                           source)
        with self._lock:
            self._expected[instance.uuid] = arrival
        return arrival.invitation

    def forget(self, instance):
        """Undo a guest that has not arrived; one that has arrived stays."""
        with self._lock:
            arrival = self._expected.pop(instance.uuid, None)
        if arrival is not None:
            arrival.end()


class _Arrival:
    def __init__(self, session, instance, sha256, vifs, source):
        self._session, self._uuid = session, instance.uuid
        self._is_over = threading.Event()
        self._listener = None
        try:
            self._listener = channel.Listener(*_place(), source)
            self.invitation = self._listener.invitation()
            session.call('migrate-receive', uuid=instance.uuid,
                         name=instance.name, image_sha256=sha256,
                         memory_mib=instance.flavor.memory_mb, vifs=vifs,
                         config=element_state.PLACEHOLDER,
                         config_name='placeholder',
                         timeout_ms=CONF.clickos.create_timeout * 1000,
                         **host.vcpus(session, instance.flavor))
        except BaseException:
            self.end()
            raise
        self._thread = threading.Thread(target=self._run, daemon=True,
                                        name='arrival %s' % self._uuid)
        self._thread.start()

    def end(self):
        """End it: cosmosd undoes a guest that has not arrived."""
        self._is_over.set()
        if self._listener is not None:
            self._listener.close()
        self._session.close()

    def _run(self):
        deadline_s = time.monotonic() + _PATIENCE_S
        try:
            source = self._listener.accept(
                lambda: self._is_over.is_set()
                or time.monotonic() > deadline_s)
            if source is not None:
                self._receive(source)
        except (OSError, CosmosError, channel.ChannelError) as e:
            if not self._is_over.is_set():
                LOG.warning('Guest %(uuid)s does not arrive: %(why)s',
                            {'uuid': self._uuid, 'why': e})
        except Exception:
            LOG.exception('Guest %s does not arrive', self._uuid)
        finally:
            self.end()

    def _receive(self, source):
        try:
            copy = element_state.Copy(self._session, self._uuid)
            copy.install(self._routers(source)[0])
            source.send({'installed': True})
            routers, changes = self._routers(source)
            copy.finish(routers)
            source.send({'complete': True})
            if source.receive(_PATIENCE_S).get('arrive') is True:
                self._session.call(
                    'migrate-finish', uuid=self._uuid,
                    routers=[router['rid'] for router in routers
                             if router['runs']],
                    changes=changes, timeout_ms=element_state.GUEST_MS)
                source.send({'arrived': True})
        except CosmosError as e:
            # First it is certain that it does not run here.
            self._session.call('destroy', uuid=self._uuid)
            source.send({'error': e.message})
            raise
        finally:
            source.close()

    @staticmethod
    def _routers(source):
        """:returns: the routers of a halted guest, and its changes"""
        message = source.receive(_PATIENCE_S)
        return (element_state.check(message.get('routers')),
                message.get('changes'))


def _place():
    first, last = CONF.clickos.migration_ports.split('-')
    return (CONF.clickos.migration_address or CONF.my_ip,
            range(int(first), int(last) + 1))
