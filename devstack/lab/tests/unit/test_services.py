# SPDX-License-Identifier: Apache-2.0
"""Which services a lab has, and as whom they run."""

from clickos_lab.config import hosts
from clickos_lab import services
from clickos_lab import settings
from tests.unit import base

_OF_XEN = {'nova-compute-xen', 'clickos-agent-xen', 'xen-nova', 'xen-agent'}


class CatalogTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.settings = settings.Settings.load(self.state)

    def services(self, *compute_hosts):
        catalog = services.Catalog(self.state, self.settings, compute_hosts)
        found = {service.name: service for service in catalog.all()}
        self.assertEqual(len(catalog.all()), len(found))
        return found

    def test_a_xen_host_adds_its_own_only(self):
        without = self.services(hosts.PROCESS)
        self.assertEqual(_OF_XEN, set(self.services(*hosts.ALL))
                         - set(without))

    def test_each_compute_service_has_its_hosts_file_and_no_root(self):
        found = self.services(*hosts.ALL)
        for name, uid in (('nova-compute', self.settings.nova_uid),
                          ('clickos-agent', self.settings.agent_uid)):
            for host in hosts.ALL:
                command = found[name + host.suffix].command
                self.assertIn(f'--reuid={uid}', command)
                self.assertEqual(f'{name}{host.suffix}.conf',
                                 command[-1].name)

    def test_a_tunnel_ends_at_the_socket_its_service_uses(self):
        found = self.services(*hosts.ALL)
        for user, socket in (('nova', hosts.XEN.nova_socket),
                             ('agent', hosts.XEN.agent_socket)):
            way = found[f'xen-{user}'].command
            ends = way[way.index('-L') + 1].split(':')
            self.assertEqual(str(self.state.run / socket), ends[0])
            self.assertIn('-oStreamLocalBindMask=0177', way)

    def test_mariadb_writes_its_log_at_each_commit(self):
        command = self.services()['mariadb'].command
        self.assertIn('--innodb-flush-log-at-trx-commit=2', command)
