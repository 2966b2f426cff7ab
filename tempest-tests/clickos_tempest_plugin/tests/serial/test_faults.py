# SPDX-License-Identifier: Apache-2.0
"""Outages in the middle of operations.

Each operation succeeds or fails by name, it leaves nothing behind, and all
continues without a person. Only `make soak PARTS=faults` has time for them.
"""

import json
import time
import uuid

from tempest import config
from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.common import tenant
from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests import base

CONF = config.CONF

RULES = ['allow icmp', 'deny all']
OTHER = ['allow tcp', 'allow icmp', 'deny all']
#: Answers of a service that is away.
_AWAY = (exceptions.RestClientException, exceptions.TempestException, OSError)
_OVER = ('COMPLETED', 'FAILED_TEMP', 'FAILED', 'ROLLED_BACK')
#: An operation without a conductor counts as dead after 60 s.
_RECOVERY_S = 240
#: nova-compute looks each minute for guests of deleted servers.
_REAPED_S = 150


@decorators.serial
class FaultsBase(base.OnHostTest):
    """One VNF runs; each operation works on it or on another one."""

    away_s = 5
    #: networks of other VNFs; the first that needs them makes them
    _others = None

    @classmethod
    def resource_setup(cls):
        super().resource_setup()
        cls.vnfd_id = cls.tenant.onboard(csar.firewall(),
                                         cls.addClassResourceCleanup)

    def setUp(self):
        super().setUp()
        self.addCleanup(self.assertTenantHasNothing)    # it runs at last
        self.vnf_id = self.tenant.create_vnf(self.vnfd_id, self.addCleanup)
        tenant.completed(self.tenant.instantiate(self.vnf_id, RULES))

    @staticmethod
    def again(call, *arguments, **named):
        """Repeat a request until a service answers it; return the answer."""
        deadline_s = time.monotonic() + _RECOVERY_S
        while True:
            try:
                return call(*arguments, **named)
            except _AWAY:
                if time.monotonic() > deadline_s:
                    raise
            time.sleep(1)

    def ended(self, vnf_id):
        """Wait until no operation of a VNF is under way; return the last."""
        operation_id = self.tenant.last_operation(vnf_id)
        return waiters.until(
            lambda: self.again(self.tenant.tacker.show_operation,
                               operation_id),
            lambda seen: seen['operationState'] in _OVER,
            f'operation {operation_id} is over', _RECOVERY_S)

    def finish(self, vnf_id):
        """Bring an operation to its end, as its user would.

        :returns: the error that its user had to retry it for, or None
        """
        done, error = self.ended(vnf_id), None
        if done['operationState'] == 'FAILED_TEMP':
            error = done['error']['detail']
            self.assertTrue(error)
            done = self.again(self.tenant.retry, vnf_id)
        self.assertEqual('COMPLETED', done['operationState'], done)
        return error

    def instantiate_meanwhile(self, service, kind):
        vnf_id = self.tenant.create_vnf(self.vnfd_id, self.addCleanup)
        self.tenant.networks = self.other_networks()
        self.during(service, kind, vnf_id, lambda: self.tenant.start_vnf(
            vnf_id, RULES) and 'instantiate')
        self.remove(vnf_id)

    def other_networks(self):
        """Networks for one more VNF: the firewall's addresses are fixed."""
        if self._others is None:
            type(self)._others = {
                name: self.tenant.make_network(
                    name, cidr, self.addClassResourceCleanup)
                for name, cidr in tenant.NETWORKS.items()}
        before = self.tenant.networks
        self.addCleanup(setattr, self.tenant, 'networks', before)
        return self._others

    def during(self, service, kind, vnf_id, start):
        """Ask for an operation, and take a service away meanwhile."""
        began_s = time.monotonic()
        row = {'fault': f'{service} {kind}', 'operation': start(),
               'outcome': 'lost', 'reason': '', 'away_s': self.away_s}
        try:
            with self.host.outage(service, kind, self.away_s):
                pass
            row['reason'] = self.finish(vnf_id) or ''
            row['outcome'] = 'retried' if row['reason'] else 'completed'
        finally:
            self.note(row, time.monotonic() - began_s)

    @staticmethod
    def note(row, seconds):
        """Add a row to the table that the part prints at its end."""
        if CONF.clickos.faults_path:
            with open(CONF.clickos.faults_path, 'a') as table:
                table.write(json.dumps({**row, 'seconds': round(seconds)})
                            + '\n')

    def heal_meanwhile(self, service, kind):
        before = self.tenant.server_id(self.vnf_id)
        vnfcs = self.tenant.tacker.show_vnf(
            self.vnf_id)['instantiatedVnfInfo']['vnfcResourceInfo']
        self.during(service, kind, self.vnf_id, lambda: self.tenant.start(
            self.vnf_id, 'heal', cause='test',
            vnfcInstanceId=[each['id'] for each in vnfcs]) and 'heal')
        self.assertNoneLeftOf(before)
        self.assertRules(RULES)

    def assertNoneLeftOf(self, server_id):
        """A heal keeps a server, or leaves none of its parts."""
        if server_id != self.tenant.server_id(self.vnf_id):
            self.assertNoneOnHost(server_id)

    def assertNoneOnHost(self, server_id):
        """Check that soon nothing of a deleted server is on its host.

        If the host was down then, the guest is there until nova-compute
        looks for such guests.
        """
        waiters.until(lambda: self.host.leftovers(server_id),
                      lambda seen: seen == [], f'{server_id} left the host',
                      _REAPED_S)

    def terminate_meanwhile(self, service, kind):
        server_id = self.tenant.server_id(self.vnf_id)
        self.during(service, kind, self.vnf_id, lambda: self.tenant.start(
            self.vnf_id, 'terminate',
            terminationType='FORCEFUL') and 'terminate')
        self.assertGone(self.vnf_id, server_id)

    def scale_meanwhile(self, service, kind):
        self.during(service, kind, self.vnf_id, lambda: self.tenant.start(
            self.vnf_id, 'scale', type='SCALE_OUT', aspectId='capacity',
            numberOfSteps=1) and 'scale')
        vnfcs = self.tenant.tacker.show_vnf(
            self.vnf_id)['instantiatedVnfInfo']['vnfcResourceInfo']
        found = self.tenant.servers.list_servers(name=self.vnf_id)['servers']
        self.assertEqual((2, 2), (len(vnfcs), len(found)))

    def chain_meanwhile(self, service, kind):
        """A new guest joins the hop that its VNF is, or nothing is left."""
        sfc = self.os_primary.sfc.SfcClient()
        ports = {port['name']: port['id'] for port in
                 self.os_primary.network.PortsClient().list_ports(
                     description=f'clickos-vnf:{self.vnf_id}')['ports']}
        pair = sfc.create('port_pair', ingress=ports['VDU1-0-left'],
                          egress=ports['VDU1-0-right'])['id']
        self.addCleanup(sfc.delete, 'port_pair', pair)
        group = sfc.create('port_pair_group', port_pairs=[pair])['id']
        self.addCleanup(sfc.delete, 'port_pair_group', group)
        self.scale_meanwhile(service, kind)
        self.assertEqual(2, len(sfc.show('port_pair_group',
                                         group)['port_pairs']))
        self.addCleanup(self.tenant.operate, self.vnf_id, 'scale',
                        type='SCALE_IN', aspectId='capacity',
                        numberOfSteps=1)

    def update_meanwhile(self, service, kind):
        """An update has a verdict, and the guest does what it says.

        If it is unknown, the guest has all of the update or nothing of it.
        """
        wanted = {'rules': OTHER}
        self.again(self.tenant.tacker.update_vnf, self.vnf_id,
                   metadata={'clickos_properties': wanted})
        with self.host.outage(service, kind, self.away_s):
            pass
        seen = waiters.until(
            lambda: self.again(self.tenant.tacker.show_vnf, self.vnf_id).get(
                'metadata', {}).get('clickosUpdate'),
            bool, 'a verdict', _RECOVERY_S)
        has = self.rules()
        possible = {'accepted': [OTHER], 'unknown': [OTHER, RULES]}.get(
            json.loads(seen)['verdict'], [RULES])
        self.assertIn(has, possible, seen)

    def write_meanwhile(self, service, kind):
        """A write that is acknowledged holds; others fail by name."""
        server_id = self.tenant.server_id(self.vnf_id)
        with self.host.outage(service, kind, self.away_s):
            try:
                self.tenant.clickos.write_handler(server_id, 'fw.config',
                                                  ', '.join(OTHER))
                written = OTHER
            except _AWAY as error:
                self.assertTrue(str(error))
                written = None
        if written is None:
            self.again(self.tenant.clickos.write_handler, server_id,
                       'fw.config', ', '.join(OTHER))
        self.assertRules(OTHER)

    def assertRules(self, rules):
        """Check that the guest has these rules."""
        self.assertEqual(rules, self.rules())

    def rules(self):
        """Return the rules that the guest has."""
        return self.again(
            self.tenant.clickos.read_handler,
            self.tenant.server_id(self.vnf_id), 'fw.config').split(', ')

    def remove(self, vnf_id):
        """Terminate a VNF and look for remains."""
        server_id = self.tenant.server_id(vnf_id)
        self.tenant.terminate(vnf_id)
        self.assertGone(vnf_id, server_id)

    def assertTenantHasNothing(self):
        """Check that no VNF, server, port, domain or open operation is left.
        """
        ports = [port for port in
                 self.tenant.clients.ports_client.list_ports()['ports']
                 if port['description'].startswith('clickos-vnf:')]
        operations = [each for each in self.again(
            self.tenant.tacker.list_all_operations)
            if each['operationState'] in waiters.RUNNING]
        self.assertEqual(
            ([], [], [], []),
            (self.tenant.servers.list_servers()['servers'], ports, operations,
             self.host.leftovers(str(uuid.uuid4()))))

    def assertGone(self, vnf_id, server_id):
        """Check that nothing is left in Nova, Neutron and on the host."""
        waiters.until(lambda: self.tenant.leftovers(vnf_id),
                      lambda seen: seen == [], f'VNF {vnf_id} gone')
        self.assertNoneOnHost(server_id)


class FaultsTest(FaultsBase):
    """Short outages."""

    @decorators.attr(type='slow')
    @decorators.idempotent_id('0b7e5a0e-8f0d-4d0f-9f2b-2f1d9a7e7c01')
    def test_an_instantiation_outlives_rabbitmq(self):
        self.instantiate_meanwhile('rabbitmq', 'stop')

    @decorators.attr(type='slow')
    @decorators.idempotent_id('0b7e5a0e-8f0d-4d0f-9f2b-2f1d9a7e7c02')
    def test_a_heal_outlives_mariadb(self):
        self.heal_meanwhile('mariadb', 'kill')


class OutagesTest(FaultsBase):
    """Every service, stopped and killed, in each operation."""

    away_s = 60
    limit_s = 1800


def _add(service, kind, operation):
    base.add_slow(
        OutagesTest, '5d1f6c1e-52a8-4a5e-8d35',
        f'test_{operation}_{service.replace("-", "_")}_{kind}',
        lambda test: getattr(test, f'{operation}_meanwhile')(service, kind))


for _service in ('rabbitmq', 'mariadb', 'clickos-api', 'keystone',
                 'xenstored', 'valed'):
    for _kind in ('stop', 'kill'):
        if (_service, _kind) == ('xenstored', 'kill'):
            continue    # it comes back empty: docs/operator/monitor.md
        for _operation in ('instantiate', 'update', 'heal', 'terminate',
                           'write'):
            _add(_service, _kind, _operation)


class FaultsTableTest(FaultsBase):
    """Each daemon away for 10 s in each operation; who must complete it?"""

    away_s = 10
    limit_s = 600


class FaultsOfGuestsTest(FaultsBase):
    """Guests that die or do not answer, and two operations at once."""

    limit_s = 600

    def heal_while(self, act):
        """Heal a guest that something happens to."""
        server_id = self.tenant.server_id(self.vnf_id)
        act(server_id)
        self.tenant.heal(self.vnf_id)
        self.assertNoneLeftOf(server_id)
        self.assertRules(RULES)

    @decorators.attr(type='slow')
    @decorators.idempotent_id('0b7e5a0e-8f0d-4d0f-9f2b-2f1d9a7e7c11')
    def test_a_guest_dies_before_its_heal(self):
        self.heal_while(self.host.kill_guest)

    @decorators.attr(type='slow')
    @decorators.idempotent_id('0b7e5a0e-8f0d-4d0f-9f2b-2f1d9a7e7c14')
    def test_a_guest_that_spins_is_healed(self):
        self.heal_while(self.host.hang_guest)

    @decorators.attr(type='slow')
    @decorators.idempotent_id('0b7e5a0e-8f0d-4d0f-9f2b-2f1d9a7e7c12')
    def test_a_guest_dies_in_its_termination(self):
        server_id = self.tenant.server_id(self.vnf_id)
        self.tenant.start(self.vnf_id, 'terminate',
                          terminationType='FORCEFUL')
        self.host.run('kill-guest', server_id, check=False)
        tenant.completed(self.ended(self.vnf_id))
        self.assertGone(self.vnf_id, server_id)

    @decorators.attr(type='slow')
    @decorators.idempotent_id('0b7e5a0e-8f0d-4d0f-9f2b-2f1d9a7e7c13')
    def test_instantiate_and_terminate_at_once(self):
        """The second one is refused, and changes nothing."""
        vnf_id = self.tenant.create_vnf(self.vnfd_id, self.addCleanup)
        self.tenant.networks = self.other_networks()
        self.tenant.start_vnf(vnf_id, RULES)
        self.assertRaises(exceptions.Conflict, self.tenant.tacker.start,
                          vnf_id, 'terminate', terminationType='FORCEFUL')
        tenant.completed(self.ended(vnf_id))
        self.remove(vnf_id)


#: What is away, and how: killed, or alive without a sign (SIGSTOP).
_DAEMONS = ('nova', 'neutron', 'keystone', 'glance', 'placement', 'mariadb',
            'rabbitmq', 'clickos-api', 'front', 'nova-conductor',
            'nova-scheduler', 'nova-compute', 'neutron-rpc-server', 'cosmosd')
for _service in _DAEMONS:
    for _kind in ('kill', 'stop'):
        for _operation in ('instantiate', 'heal', 'scale', 'terminate'):
            base.add_slow(
                FaultsTableTest, '5d1f6c1e-52a8-4a5e-8d36',
                f'test_{_operation}_{_service.replace("-", "_")}_{_kind}',
                lambda test, service=_service, kind=_kind, operation=(
                    _operation): getattr(test, f'{operation}_meanwhile')(
                        service, kind))

for _service in ('nova-compute', 'cosmosd', 'clickos-api', 'neutron'):
    for _kind in ('descriptors', 'memory'):
        base.add_slow(
            FaultsTableTest, '5d1f6c1e-52a8-4a5e-8d36',
            f'test_heal_{_service.replace("-", "_")}_{_kind}',
            lambda test, service=_service, kind=_kind:
            test.heal_meanwhile(service, kind))
for _service in ('neutron', 'cosmosd', 'tacker-conductor'):
    base.add_slow(
        FaultsTableTest, '5d1f6c1e-52a8-4a5e-8d36',
        f'test_chain_{_service.replace("-", "_")}_kill',
        lambda test, service=_service: test.chain_meanwhile(service, 'kill'))
