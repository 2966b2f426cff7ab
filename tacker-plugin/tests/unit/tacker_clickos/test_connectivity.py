# SPDX-License-Identifier: Apache-2.0
"""Other networks and addresses for a running VNF."""


from openstack import exceptions as sdk_exceptions
from tacker import objects

from tacker_clickos import exception
from tacker_clickos import ports
from tests.unit.tacker_clickos import base
from tests.unit.tacker_clickos import test_infra_driver

OTHER_NET = '1c7dd4f0-0001-4000-8000-000000000003'


class ChangeTest(test_infra_driver.DriverTestCase):

    def setUp(self):
        super().setUp()
        self.instantiate()
        self.old = self.only_server()
        self.before = dict(self.cloud.ports)
        self.patch(objects.InstantiateVnfRequest, 'from_vnf_instance',
                   return_value=base.instantiate_request())

    def only_server(self):
        (server,) = self.cloud.servers.values()
        return server

    def change(self, cps=('right',), network=OTHER_NET, **over_ethernet):
        """Do what Tacker does with a change of connectivity."""
        data = {'layer_protocol': 'IP_OVER_ETHERNET'}
        if over_ethernet:
            data['ip_over_ethernet'] = over_ethernet
        request = objects.ChangeExtConnRequest.obj_from_primitive(
            {'ext_virtual_links': [{
                'id': 'new', 'resource_id': network, 'ext_cps': [{
                    'cpd_id': cp, 'cp_config': [
                        {'cp_protocol_data': [data]}]} for cp in cps]}]},
            context=None)
        self.driver.change_ext_conn_vnf(
            context=None, vnf_instance=self.vnf, vnf_dict={},
            vim_connection_info=base.vim_connection(),
            change_ext_conn_req=request)

    def networks(self):
        return {port.name: port.network_id
                for port in self.cloud.ports.values()}

    def test_the_guest_gets_a_port_of_the_other_network(self):
        self.cloud.state(self.old.id)['writes'] = [['fw.config', 'deny all']]
        self.change()
        self.assertEqual({'VDU1-0-left': base.LEFT_NET,
                          'VDU1-0-right': OTHER_NET}, self.networks())
        server = self.only_server()
        self.assertNotEqual(self.old.id, server.id)
        self.assertEqual([['fw.config', 'deny all']],
                         self.document(server)['writes'])
        self.assertIsNone(self.vnf.task_state)
        (vnfc,) = self.info.vnfc_resource_info
        self.assertEqual(server.id, vnfc.compute_resource.resource_id)

    def test_a_port_that_fits_already_stays(self):
        self.change(network=base.RIGHT_NET)
        self.assertEqual(set(self.before), set(self.cloud.ports))

    def test_another_address_makes_another_port(self):
        self.change(network=base.RIGHT_NET, ip_addresses=[{
            'type': 'IPV4', 'subnet_id': '2',
            'fixed_addresses': ['10.0.2.99']}])
        (port,) = [port for key, port in self.cloud.ports.items()
                   if key not in self.before]
        self.assertEqual([{'subnet_id': '2', 'ip_address': '10.0.2.99'}],
                         port.wanted['fixed_ips'])

    def assertUntouched(self, reason, **change):
        with self.assertRaises(exception.ResourceNotUsable) as refused:
            self.change(**change)
        self.assertIn(reason, str(refused.exception))
        self.assertEqual([self.old.id], list(self.cloud.servers))
        self.assertEqual(self.before, self.cloud.ports)

    def test_a_network_that_neutron_refuses_changes_nothing(self):
        self.cloud.port_error = 'no such network'
        self.assertUntouched('no such network')

    def test_an_unknown_connection_point_changes_nothing(self):
        self.assertUntouched('middle: this VNF has only: left, right',
                             cps=('middle',))

    def test_a_port_of_a_chain_changes_nothing(self):
        ids = {port.name: port.id for port in self.before.values()}
        ends = {'ingress': 'x', 'egress': ids['VDU1-0-right']}
        self.cloud.pairs = [base.resource(**ends)]
        self.assertUntouched('VDU1-0-right: is in a chain')
        # A network's owner may have a pair with any of its ports.
        self.cloud.pairs = [base.resource(**ends, project_id='other')]
        self.change()

    def refuse_second_port(self):
        """Let Neutron refuse the second port of a request."""
        create, calls = self.cloud.network.create_port.side_effect, []

        def second(**wanted):
            calls.append(wanted)
            if len(calls) == 2:
                raise sdk_exceptions.BadRequestException(details='no room')
            return create(**wanted)
        self.cloud.network.create_port.side_effect = second

    def test_a_refusal_leaves_no_port_of_the_same_guest(self):
        self.refuse_second_port()
        with self.assertRaisesRegex(exception.ResourceNotUsable, 'no room'):
            self.change(cps=('left', 'right'))
        self.assertEqual(set(self.before), set(self.cloud.ports))

    def test_a_port_of_another_request_is_not_taken(self):
        """The conductor died, and the tenant asks for another network."""
        left = self.cloud.network.create_port(
            name='VDU1-0-right.new', network_id=OTHER_NET,
            description=ports.description(base.VNF_ID))
        self.change(network=base.LEFT_NET)
        self.assertEqual({'VDU1-0-left': base.LEFT_NET,
                          'VDU1-0-right': base.LEFT_NET}, self.networks())
        self.assertNotIn(left.id, self.cloud.ports)

    def test_a_retry_goes_on(self):
        self.cloud.fault = 'no memory'
        with self.assertRaisesRegex(exception.GuestFailed, 'no memory'):
            self.change()
        self.cloud.fault = None
        self.change()
        self.assertEqual({'VDU1-0-left': base.LEFT_NET,
                          'VDU1-0-right': OTHER_NET}, self.networks())
        self.assertEqual([['fw.config', 'allow icmp']],
                         self.document(self.only_server())['writes'])
