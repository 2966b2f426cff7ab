# SPDX-License-Identifier: Apache-2.0
"""Nova's driver moves a running guest between two Xen hosts, without Nova.

``make soak PARTS=nova-move``. Tempest does the same in a cloud of two Xen
hosts (``PARTS=xen-hosts``).
"""

import json
import time
import types

import cosmos_client
from nova_clickos.conf import CONF
from nova_clickos.migration import identity
from nova_clickos.migration import incoming
from nova_clickos.migration import outgoing

from clickos_lab.suites import progress
from clickos_lab.xen import variants
from tests.xen import test_move

_CONFIG = 's :: InfiniteSource(LIMIT 7) -> c :: Counter -> d :: Discard;'
_PATIENCE_S = 60
_OF_VIF = ('devid', 'mac', 'switch', 'port', 'segment', 'mtu', 'slots')


class NovaMoveTest(test_move.Hosts):
    """The source is aborted once, and then moves."""

    variant = variants.PATCHED

    def setUp(self):
        super().setUp()
        for name, value in (('migration_address', '127.0.0.1'),
                            ('create_timeout', _PATIENCE_S)):
            CONF.set_override(name, value, 'clickos')
            self.addCleanup(CONF.clear_override, name, 'clickos')
        self.source, self.target = (
            cosmos_client.CosmosClient(socket, 2 * _PATIENCE_S)
            for socket in (self.here, self.there))
        self.arrivals = incoming.Arrivals(self.target)
        config = self.folder / 'moved.click'
        config.write_text(_CONFIG)
        made = json.loads(self._done(
            self.here, '-o', 'json', 'create', '--config', config, '--vif',
            'port=m,segment=1', '--timeout', _PATIENCE_S))
        self.uuid = made['uuid']
        self.wait_for(lambda: self.count(self.source) == 7)
        self.source.call('handler-write', uuid=self.uuid,
                         writes=[['s.active', 'false']])

    def count(self, client):
        """Return the guest's counter."""
        return int(client.call('handler-read', uuid=self.uuid,
                               name='c.count')['value'])

    def expected(self, own):
        """Return the target's invitation, once a guest before has gone."""
        found = self.source.call('info', uuid=self.uuid)
        instance = types.SimpleNamespace(
            uuid=self.uuid, name='moved',
            flavor=types.SimpleNamespace(memory_mb=found['memory_mib']))
        vifs = [{**{key: vif[key] for key in _OF_VIF}, 'port_security': False}
                for vif in found['vifs']]

        def expect():
            try:
                return self.arrivals.expect(
                    instance, self.source.call('host')['engine_sha256'],
                    vifs, own.certificate)
            except cosmos_client.CosmosError as e:
                self.assertEqual('exists', e.code)
        return self.wait_for(expect, _PATIENCE_S)

    def move(self, is_aborted):
        """Move the guest as nova-compute of both hosts does."""
        own = identity.Identity()
        outgoing.move(self.source, self.uuid, self.expected(own), own,
                      is_aborted)

    def test_an_aborted_guest_stays_and_the_next_time_it_moves(self):
        with self.assertRaises(outgoing.Stayed):
            self.move(lambda: True)
        self.assertEqual(7, self.count(self.source))
        began_s = time.monotonic()
        self.move(lambda: False)
        progress.note(f'moved in {time.monotonic() - began_s:.1f} s')
        self.assertEqual([], self.source.call('list')['guests'])
        self.assertEqual(7, self.count(self.target))
        self.assertEqual('false', self.target.call(
            'handler-read', uuid=self.uuid, name='s.active')['value'].strip())
        self.target.call('destroy', uuid=self.uuid)
