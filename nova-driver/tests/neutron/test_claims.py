# SPDX-License-Identifier: Apache-2.0
"""A second project claims addresses that are not its own.

The driver's refusals are seen on Neutron's tables in memory. The ports of
the base case have the pairs (ingress one, egress two) and (three, three).
"""

from unittest import mock

import fixtures
from oslo_serialization import jsonutils

from neutron_clickos.sfc import drivers
from neutron_clickos.sfc import sfc_db
from tests.neutron import base

_PAIRS = {key: {'id': key, 'project_id': 'us', 'ingress': ingress,
                'egress': egress, 'service_function_parameters': {}}
          for key, ingress, egress in (('p1', 'one', 'two'),
                                       ('p2', 'three', 'three'))}
_FLOW = {'id': 'flow', 'project_id': 'us', 'protocol': 'udp',
         'logical_source_port': 'three'}
_CHAIN = {'id': 'chain', 'chain_id': 5, 'project_id': 'us',
          'port_pair_groups': ['group'], 'flow_classifiers': ['flow']}


def group(network, *pairs):
    """:returns: a group of port pairs that translates to a network"""
    return {'id': 'group', 'project_id': 'us', 'port_pairs': list(pairs),
            'port_pair_group_parameters': {'ppg_n_tuple_mapping': {
                'ingress_n_tuple': {},
                'egress_n_tuple': {'source_ip_prefix': network}}}}


class ClaimsTest(base.TablesCase):

    def setUp(self):
        super().setUp()
        self.insert_resource('subnets', id='subnet', network_id='net',
                             ip_version=4, cidr='10.0.0.0/24')
        for port, last in (('one', 5), ('two', 6), ('three', 7)):
            self.allocate(port, f'10.0.0.{last}')
        self.sfc, flows = mock.Mock(), mock.Mock()
        self.sfc.get_port_pair.side_effect = lambda _, key: _PAIRS[key]
        self.sfc.get_port_pairs.return_value = list(_PAIRS.values())
        self.sfc.get_port_chains.return_value = [_CHAIN]
        flows.get_flow_classifier.return_value = _FLOW
        flows.get_flow_classifiers.return_value = [_FLOW]
        self.useFixture(fixtures.MockPatch(
            'neutron_lib.plugins.directory.get_plugin',
            side_effect={'sfc': self.sfc, 'flow_classifier': flows}.get))
        self.driver = drivers.ValeSfcDriver()

    def allocate(self, port, address):
        """Give a port a fixed address."""
        self.insert('ipallocations', port_id=port, ip_address=address,
                    subnet_id='subnet', network_id='net')

    def allow(self, port, network):
        """Give a port an allowed address pair."""
        self.insert('allowedaddresspairs', port_id=port,
                    mac_address='fa:16:3e:00:00:01', ip_address=network)

    def make_public(self):
        """Make the network a public one."""
        self.insert('externalnetworks', network_id='net', is_default=False)

    def context(self, current):
        """:returns: what networking-sfc gives a driver"""
        return mock.Mock(current=current, _plugin=self.sfc)

    def claim(self, network, *pairs):
        """Make a group that claims a network, and a chain with it."""
        wanted = group(network, *pairs)
        self.sfc.get_port_pair_group.return_value = wanted
        self.sfc.get_port_chains.return_value = []
        for check in (self.driver.create_port_pair_group_precommit,
                      self.driver.update_port_pair_group_precommit):
            check(self.context(wanted))
        for check in (self.driver.create_port_chain_precommit,
                      self.driver.update_port_chain_precommit):
            check(self.context(_CHAIN))

    def assertCounts(self, *networks, pairs=('p1',)):
        """Check that the driver takes these claims."""
        for network in networks:
            self.claim(network, *pairs)

    def assertRefused(self, *networks, pairs=('p1',)):
        """Check that each of the driver's checks refuses these claims."""
        for network in networks:
            wanted = group(network, *pairs)
            self.sfc.get_port_pair_group.return_value = wanted
            self.sfc.get_port_chains.return_value = []
            for check, current in (
                    (self.driver.create_port_pair_group_precommit, wanted),
                    (self.driver.update_port_pair_group_precommit, wanted),
                    (self.driver.create_port_chain_precommit, _CHAIN),
                    (self.driver.update_port_chain_precommit, _CHAIN)):
                caught = self.assertRaises(drivers.NotOwned, check,
                                           self.context(current))
                self.assertIn(f'group group: source_ip_prefix {network}: more'
                              ' than port ', str(caught))

    def test_a_shared_network_gives_no_more_than_fixed_addresses(self):
        self.assertCounts('10.0.0.6/32')
        self.assertRefused('0.0.0.0/0', '::/0', '10.0.0.0/24', '10.0.0.6/31',
                           '10.0.0.66/32', '10.0.0.5/32', '192.0.2.7/32',
                           '128.0.0.0/1')

    def test_tackers_wide_pair_does_not_count_on_a_shared_network(self):
        self.allow('two', '0.0.0.0/0')
        self.allow('two', '10.0.0.0/23')
        self.assertCounts('10.0.0.6/32')
        self.assertRefused('0.0.0.0/0', '10.0.0.66/32', '192.0.2.7/32',
                           '10.0.0.0/24')

    def test_a_pair_within_the_subnet_counts_on_a_shared_network(self):
        self.allow('two', '10.0.0.64/30')
        self.assertCounts('10.0.0.64/30', '10.0.0.66/32')
        self.assertRefused('10.0.0.64/29', '10.0.0.68/32')

    def test_no_port_security_does_not_count_on_a_shared_network(self):
        self.insert('portsecuritybindings', port_id='two',
                    port_security_enabled=False)
        self.assertCounts('10.0.0.6/32')
        self.assertRefused('0.0.0.0/0', '10.0.0.66/32')

    def test_each_pair_of_a_group_must_be_allowed(self):
        self.assertRefused('10.0.0.6/32', pairs=('p1', 'p2'))
        self.allow('three', '10.0.0.6')
        self.assertCounts('10.0.0.6/32', pairs=('p1', 'p2'))
        self.assertCounts('0.0.0.0/0', pairs=())

    def test_a_network_of_the_project_gives_all_that_the_port_may_use(self):
        self.update('networks', project_id='us')
        self.assertCounts('10.0.0.6/32')
        self.assertRefused('0.0.0.0/0', '10.0.0.0/24', '192.0.2.7/32')
        self.allow('two', '192.0.2.0/28')
        self.assertCounts('192.0.2.7/32', '192.0.2.0/28')
        self.assertRefused('192.0.2.0/27')
        self.allow('two', '0.0.0.0/0')
        self.assertCounts('192.0.2.0/27', '0.0.0.0/0')
        self.assertRefused('::/0')

    def test_an_open_port_on_a_network_of_the_project_may_use_all(self):
        self.update('networks', project_id='us')
        self.insert('portsecuritybindings', port_id='two',
                    port_security_enabled=False)
        self.assertCounts('0.0.0.0/0', '::/0')

    def test_nobodys_network_is_not_the_projects(self):
        self.allow('two', '0.0.0.0/0')
        for project in ('', None):
            self.update('networks', project_id=project)
            self.update('ports', project_id=project)
            found = sfc_db.ports({'two'})['two'].claimable
            self.assertEqual(['10.0.0.6/32'], found)

    def test_a_public_network_gives_addresses_that_the_project_owns(self):
        self.make_public()
        for owner in ('owner', 'us'):
            self.update('networks', project_id=owner)
            self.assertCounts('10.0.0.6/32')
            self.assertRefused('0.0.0.0/0', '10.0.0.66/32', '10.0.0.80/32')
        self.allow('two', '0.0.0.0/0')
        self.assertRefused('0.0.0.0/0', '10.0.0.66/32', '10.0.0.80/32')
        for project, last, network in (('us', 80, 'net'), ('them', 66, 'net'),
                                       ('us', 67, 'other')):
            self.insert_port(f'floating{last}', '', last)
            self.insert_resource(
                'floatingips', id=str(last), project_id=project,
                floating_ip_address=f'10.0.0.{last}',
                floating_network_id=network,
                floating_port_id=f'floating{last}')
        self.assertCounts('10.0.0.80/32')
        self.assertRefused('0.0.0.0/0', '10.0.0.66/32', '10.0.0.67/32',
                           '10.0.0.80/31')

    def test_a_public_network_gives_the_address_of_the_projects_router(self):
        self.make_public()
        self.allow('two', '10.0.0.0/24')
        for project, last in (('us', 81), ('them', 82)):
            gateway = f'gateway{last}'
            self.insert_port(gateway, '', last)
            self.allocate(gateway, f'10.0.0.{last}')
            self.insert_resource('routers', id=gateway, project_id=project,
                                 gw_port_id=gateway, enable_snat=True)
        self.assertCounts('10.0.0.81/32')
        self.assertRefused('10.0.0.82/32', '10.0.0.80/30')

    def test_a_reserved_public_address_needs_a_pair_too(self):
        self.make_public()
        self.assertRefused('10.0.0.7/32')
        self.allow('two', '10.0.0.7')
        self.assertCounts('10.0.0.7/32')

    def test_a_group_in_a_chain_is_checked_when_it_gets_other_pairs(self):
        wanted = group('10.0.0.6/32', 'p2')
        self.sfc.get_port_pair_group.return_value = group('10.0.0.6/32',
                                                          'p1')
        self.assertRaises(drivers.NotOwned,
                          self.driver.update_port_pair_group_precommit,
                          self.context(wanted))

    def test_a_stored_claim_that_does_not_count_reaches_no_switch(self):
        # As an older version stored it, or since the port lost its pair.
        for n, port in enumerate(('one', 'two', 'three')):
            details = {'vale_switch': 'vale0', 'vale_segment': 101,
                       'vale_port': f'p{n}', 'vale_port_security': True,
                       'vale_allowed': []}
            self.insert('ml2_port_bindings', port_id=port, host='host1',
                        vif_type='vale', status='ACTIVE',
                        vif_details=jsonutils.dumps(details))
        for network, expected in (('0.0.0.0/0', []),
                                  ('10.0.0.6/32', ['10.0.0.6/32']),
                                  ('10.0.0.66/32', [])):
            self.sfc.get_port_pair_groups.return_value = [
                group(network, 'p1')]
            found, = sfc_db.chains_of('host1')['chains']
            self.assertEqual((expected, 1),
                             (found['nat'], len(found['hops'])))
        # An older version stored what is no network; it stops no other.
        self.sfc.get_port_chains.return_value = [
            _CHAIN, dict(_CHAIN, id='bad', port_pair_groups=['masked'])]
        self.sfc.get_port_pair_groups.return_value.append(
            dict(group('2001:db8::/ffff:ffff::', 'p1'), id='masked'))
        answer = sfc_db.chains_of('host1')
        self.assertEqual((['chain'], []), (
            [each['chain'] for each in answer['chains']], answer['kept']))
