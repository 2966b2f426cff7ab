# SPDX-License-Identifier: Apache-2.0
"""Which services a lab has, and as whom they run."""

from clickos_lab import accounts
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
        self.assertEqual(
            _OF_XEN, set(self.services(hosts.PROCESS, hosts.XEN))
            - set(without))

    def test_a_second_xen_host_shares_no_service(self):
        without = self.services(hosts.PROCESS, hosts.XEN)
        both = self.services(hosts.PROCESS, *hosts.XENS)
        self.assertEqual({'nova-compute-xen2', 'clickos-agent-xen2',
                          'xen2-nova', 'xen2-agent'},
                         set(both) - set(without))

    def test_a_second_process_host_shares_no_daemon(self):
        without = self.services(hosts.PROCESS)
        both = self.services(*hosts.PROCESSES)
        self.assertEqual(
            {f'{name}-2' for name in ('xenstored', 'valed', 'cosmosd',
                                      'nova-compute', 'clickos-agent')}
            | {'neutron-dhcp-agent', 'neutron-l3-agent'},
            set(both) - set(without))
        self.assertNotEqual(both['valed'].group, both['valed-2'].group)
        self.assertEqual('nsenter', both['valed-2'].command[0])

    def test_heat_is_there_on_demand(self):
        without = {s.name for s in self.services(hosts.PROCESS).values()}
        catalog = services.Catalog(self.state, self.settings,
                                   (hosts.PROCESS,), has_heat=True)
        found = {s.name: s for s in catalog.all()}
        self.assertEqual({'heat', 'heat-engine', 'nova-compute-fake'},
                         set(found) - without)
        for name in 'heat', 'heat-engine':
            self.assertEqual('heat', found[name].account)
            self.assertEqual(str(self.state.root / 'heat'),
                             found[name].env['PYTHONPATH'])

    def test_each_compute_service_has_its_hosts_file_and_user(self):
        found = self.services(*hosts.ALL)
        self.assertEqual(64001, self.settings.ids['nova-compute'])
        self.assertEqual(64002, self.settings.ids['clickos-agent'])
        for program in ('nova-compute', 'clickos-agent'):
            for host in hosts.ALL:
                name = program + host.suffix
                command = found[name].command
                self.assertIn(f'--reuid={self.settings.ids[name]}', command)
                self.assertEqual(f'{name}.conf', command[-1].name)

    def test_every_service_but_one_has_a_user_and_no_capability(self):
        for name, service in self.services(*hosts.ALL).items():
            if name in accounts.ROOT:
                self.assertIsNone(service.account)
                continue
            self.assertIn('--no-new-privs', service.command)
            is_switch = name.startswith('valed')
            kept = ',+net_admin,+net_raw' if is_switch else ''
            for kind in ('inh-caps', 'ambient-caps', 'bounding-set'):
                self.assertIn(f'--{kind}=-all{kept}', service.command)

    def test_a_tunnel_ends_at_the_socket_its_service_uses(self):
        found = self.services(*hosts.ALL)
        for user, socket in (('nova', hosts.XEN.nova_socket),
                             ('agent', hosts.XEN.agent_socket)):
            way = found[f'xen-{user}'].command
            ends = way[way.index('-L') + 1].split(':')
            self.assertEqual(str(self.state.run / socket), ends[0])

    def test_mariadb_writes_its_log_at_each_commit(self):
        command = self.services()['mariadb'].command
        self.assertIn('--innodb-flush-log-at-trx-commit=2', command)

    def test_the_switch_and_the_toolstack_are_preferred(self):
        found = self.services(hosts.PROCESS).values()
        self.assertEqual({'valed', 'cosmosd'},
                         {s.name for s in found if s.group})
