# SPDX-License-Identifier: Apache-2.0
"""Life cycle of a VNF against a cloud that answers through openstacksdk."""

import copy
import json
from unittest import mock
import uuid

from clickos_client import document
from tacker import objects
from tacker.vnflcm import utils as vnflcm_utils
from tacker.vnfm.infra_drivers import abstract_driver
from tacker.vnfm.infra_drivers.openstack import openstack
from tacker.vnfm.infra_drivers import scale_driver

from tacker_clickos import connectivity
from tacker_clickos import exception
from tacker_clickos import infra_driver
from tacker_clickos import scaling
from tacker_clickos import state
from tests.unit.tacker_clickos import base

RULES = {'rules': ['allow icmp']}


class DriverTestCase(base.CloudTestCase):

    def setUp(self):
        super().setUp()
        self.driver = infra_driver.ClickOSInfraDriver()
        self.vnf = base.vnf_instance()
        self.patch(vnflcm_utils, 'get_vnf_package_path',
                   return_value=str(self.package))
        self.save = self.patch(objects.VnfInstance, 'save',
                               side_effect=self.reload)

    def reload(self, vnf):
        """Tacker's save() replaces the object by one from the database."""
        vnf.instantiated_vnf_info = copy.deepcopy(vnf.instantiated_vnf_info)

    @property
    def info(self):
        return self.vnf.instantiated_vnf_info

    def instantiate(self, request=None):
        request = request or base.instantiate_request(RULES)
        self.info.additional_params = request.additional_params
        self.info.ext_virtual_link_info = []
        instance_id = self.driver.instantiate_vnf(
            context=None, vnf_instance=self.vnf, vnfd_dict={},
            vim_connection_info=base.vim_connection(),
            instantiate_vnf_req=request, grant_response={}, plugin=None,
            vnf_package_path=str(self.package))
        self.driver.post_vnf_instantiation(
            context=None, vnf_instance=self.vnf,
            vim_connection_info=base.vim_connection(),
            instantiate_vnf_req=request)
        self.vnf.instantiation_state = 'INSTANTIATED'
        return instance_id

    def document(self, server):
        return self.cloud.state(server.id)

    def only_server(self):
        (server,) = self.cloud.servers.values()
        return server


class TerminateTest(DriverTestCase):

    def terminate(self):
        arguments = dict(plugin=None, context=None, vnf_id='x',
                         auth_attr=dict(base.ACCESS), vnf_instance=self.vnf)
        self.driver.delete(terminate_vnf_req=mock.sentinel.request,
                           **arguments)
        self.vnf.instantiation_state = 'NOT_INSTANTIATED'
        self.driver.delete_wait(**arguments)

    def test_nothing_is_left(self):
        self.instantiate()
        self.assertEqual(1, len(self.cloud.desired))
        self.terminate()
        self.assertEqual(({}, {}, {}), (self.cloud.servers, self.cloud.ports,
                                        self.cloud.desired))

    def test_a_failed_instantiation_leaves_no_state(self):
        self.cloud.fault = 'no memory'
        with self.assertRaisesRegex(exception.GuestFailed, 'no memory'):
            self.instantiate()
        self.assertEqual({}, self.cloud.desired)

    def test_a_request_names_no_state(self):
        """Projects that share a VIM have their states in one project."""
        theirs = str(uuid.uuid4())
        self.cloud.desired[theirs] = {'revision': 1, 'writes': []}
        request = base.instantiate_request(RULES)
        request.additional_params['clickos_states'] = {'VDU1-0': theirs}
        # The conductor dies, and another one ends the operation.
        self.cloud.compute.create_server.side_effect = SystemExit
        with self.assertRaises(SystemExit):
            self.instantiate(request)
        self.terminate()
        self.assertIn(theirs, self.cloud.desired)

    def test_no_state_of_a_guest_is_shown_afterwards(self):
        self.instantiate()
        self.assertIn('clickos_state', self.vnf.vnf_metadata)
        self.terminate()
        self.assertNotIn('clickos_state', self.vnf.vnf_metadata)

    def test_it_may_be_called_again_and_when_guests_are_gone(self):
        self.instantiate()
        self.cloud.servers.clear()
        self.terminate()
        self.terminate()
        self.assertEqual({}, self.cloud.ports)

    def test_resources_of_others_stay(self):
        self.instantiate()
        other = mock.Mock(id='o', metadata={'clickos_vnf': 'other'})
        other.name = 'mine-' + base.VNF_ID      # a name is no proof
        self.cloud.servers['o'] = other
        self.terminate()
        self.assertEqual({'o': other}, self.cloud.servers)

    def test_a_server_that_nova_cannot_delete_is_told_at_once(self):
        self.instantiate()
        self.cloud.stuck = 'cosmosd does not answer'
        sleep = self.patch(infra_driver.guests.servers.time, 'sleep')
        with self.assertRaisesRegex(
                exception.GuestFailed,
                'not deleted: cosmosd does not answer'):
            self.terminate()
        sleep.assert_not_called()
        self.cloud.stuck = None
        self.terminate()
        self.assertEqual({}, self.cloud.servers)

    def test_a_server_is_gone_when_nova_does_not_know_it(self):
        """Nova calls it DELETED before its last steps, which may fail."""
        self.instantiate()
        (server,) = self.cloud.servers.values()
        get, seen = self.cloud.compute.get_server.side_effect, []

        def get_server(server_id):
            seen.append(server_id)
            vars(server).update(
                [{'status': 'DELETED', 'task_state': None},
                 {'status': 'ERROR', 'fault': {'message': 'placement away'},
                  'task_state': None}][len(seen) > 2])
            return server
        self.cloud.compute.get_server.side_effect = get_server
        self.patch(infra_driver.guests.servers.time, 'sleep')
        with self.assertRaisesRegex(exception.GuestFailed, 'placement away'):
            self.terminate()
        self.assertEqual(3, len(seen))
        self.cloud.compute.get_server.side_effect = get
        self.terminate()
        self.assertEqual({}, self.cloud.servers)

    def test_clickos_api_that_does_not_answer_stops_nothing(self):
        self.instantiate()
        (state_id,) = self.cloud.desired
        self.cloud.refuse[state_id] = (503, 'unavailable', 'no database')
        self.terminate()
        self.assertEqual({}, self.cloud.servers)


class HealCase(DriverTestCase):
    """A VNF to be healed."""

    def setUp(self):
        super().setUp()
        self.instantiate()
        self.old = self.only_server()
        self.old_ports = set(self.cloud.ports)
        request = base.instantiate_request()
        self.patch(objects.InstantiateVnfRequest, 'from_vnf_instance',
                   return_value=request)

    def live(self, *writes):
        """Write handlers of the running guest."""
        self.cloud.clickos_api(
            None, f'/v1/servers/{self.old.id}/handlers', 'POST',
            {'writes': [list(pair) for pair in writes]})

    def heal_guest(self, additional_params=None):
        self.driver.heal_vnf(
            context=None, vnf_instance=self.vnf,
            vim_connection_info=base.vim_connection(),
            heal_vnf_request=mock.Mock(
                vnfc_instance_id=[self.info.vnfc_resource_info[0].id],
                additional_params=additional_params))

    def heal_whole(self):
        arguments = dict(plugin=None, context=None, vnf_id='x',
                         auth_attr=dict(base.ACCESS), vnf_instance=self.vnf)
        self.driver.delete(terminate_vnf_req=None, **arguments)
        self.driver.delete_wait(**arguments)
        params = self.info.additional_params
        self.vnf.instantiated_vnf_info = base.vnf_instance(
            len(self.info.vnfc_resource_info)).instantiated_vnf_info
        request = base.instantiate_request()
        request.additional_params = params
        self.instantiate(request)

    def assertHealed(self, writes, in_place=True):
        server = self.only_server()
        self.assertEqual(in_place, self.old.id == server.id)
        self.assertEqual(in_place, ('act', self.old.id, {
            'reboot': {'type': 'HARD'}}) == self.cloud.calls[-1])
        self.assertEqual(self.old_ports, set(self.cloud.ports))
        self.assertEqual(writes, self.document(server)['writes'])
        self.assertEqual(
            server.id,
            self.info.vnfc_resource_info[0].compute_resource.resource_id)
        self.assertEqual(1, len(self.cloud.desired))


class HealTest(HealCase):
    """Each guest begins again in its server."""

    def test_a_guest_keeps_its_ports_and_live_rules(self):
        self.live(['fw.config', 'deny all'], ['left_in.reset', ''])
        self.heal_guest()
        self.assertHealed([['fw.config', 'deny all'], ['left_in.reset', '']])

    def test_a_whole_vnf_keeps_them_too(self):
        self.live(['fw.config', 'deny all'])
        self.heal_whole()
        self.assertHealed([['fw.config', 'deny all']])

    def test_the_heal_after_that_keeps_them_as_well(self):
        for heal in (self.heal_guest, self.heal_whole):
            self.live(['fw.config', 'deny all'], ['a.x', '1'])
            heal()
            self.old = self.only_server()
            self.live(['a.x', '2'])
            heal()
            self.assertHealed([['fw.config', 'deny all'], ['a.x', '2']])
            self.old = self.only_server()

    def old_id(self):
        """Let the VNF be of a build before 0.2.0: its ids can be computed.
        """
        old_id = str(uuid.uuid5(uuid.UUID(base.VNF_ID), 'VDU1-0'))
        ((_state_id, found),) = self.cloud.desired.items()
        self.cloud.desired = {old_id: found}
        self.old.wanted['user_data'] = document.referring(old_id)
        state.set_param(self.info, state.STATES, None)
        return old_id

    def test_a_vnf_of_an_older_release_keeps_its_state(self):
        for heal in (self.heal_guest, self.heal_whole):
            old_id = self.old_id()
            self.live(['fw.config', 'deny all'])
            heal()
            self.assertHealed([['fw.config', 'deny all']])
            self.assertEqual({'VDU1-0': old_id}, state.state_ids(self.vnf))
            self.old = self.only_server()

    def test_ids_of_states_are_the_services(self):
        self.assertEqual(
            self.cloud.desired.keys(), set(state.state_ids(
                self.vnf).values()))
        state.set_param(self.info, state.STATES, {'VDU1-0': 'x', 'y': 7})
        self.assertEqual({}, state.state_ids(self.vnf))

    def test_a_new_life_begins_without_them(self):
        self.live(['fw.config', 'deny all'])
        self.heal_guest()
        self.vnf.instantiation_state = 'NOT_INSTANTIATED'
        self.instantiate()
        self.assertEqual([['fw.config', 'allow icmp']],
                         self.document(self.only_server())['writes'])

    def change_package(self):
        """Let the VNF have another package, which renames the element."""
        self.vnf.vnfd_id = 'another'
        for path in ('Definitions/firewall.yaml', 'Files/firewall.click'):
            file = self.package / path
            text = file.read_text()
            for old, new in (('fw.config', 'wall.config'),
                             ('rules:', 'filter:'), ('fw ::', 'wall ::')):
                text = text.replace(old, new)
            file.write_text(text)

    def test_another_package_gets_no_writes_it_does_not_know(self):
        self.live(['fw.config', 'deny all'], ['left_in.reset', ''])
        self.change_package()
        self.heal_guest()
        self.assertHealed([['wall.config', 'deny all']])
        self.assertEqual(
            {'filter': ['deny all']},
            json.loads(self.vnf.vnf_metadata['clickos_properties']))

    def test_nor_if_the_whole_vnf_is_healed(self):
        self.live(['left_in.reset', ''])
        self.change_package()
        self.heal_whole()
        self.assertHealed([['wall.config', 'deny all']])

    def test_another_package_keeps_writes_of_its_properties(self):
        self.live(['fw.config', 'allow tcp'], ['left_in.reset', ''])
        self.vnf.vnfd_id = 'another'
        self.heal_guest()
        self.assertHealed([['fw.config', 'allow tcp']])

    def test_the_state_is_active_again(self):
        self.vnf.vnf_metadata = {'clickos_state': '{"x": "DELETED"}'}
        self.heal_guest()
        self.assertEqual(
            {self.info.vnfc_resource_info[0].id: 'ACTIVE'},
            json.loads(self.vnf.vnf_metadata['clickos_state']))


class ReplacementTest(HealTest):
    """Each guest begins again in another server, since its host fails."""

    def setUp(self):
        super().setUp()
        self.cloud.reboot = {'server': {'status': 'ERROR'}}

    def assertHealed(self, writes, in_place=False):
        super().assertHealed(writes, in_place)

    def test_a_guest_whose_server_is_gone(self):
        del self.cloud.servers[self.old.id]
        self.heal_guest()
        self.assertHealed([['fw.config', 'allow icmp']])

    def test_a_port_that_is_gone_is_made_again(self):
        gone = next(iter(self.cloud.ports))
        del self.cloud.ports[gone]
        self.heal_guest()
        self.assertEqual(2, len(self.cloud.ports))

    def test_a_heal_that_fails_loses_no_live_rule(self):
        self.live(['fw.config', 'deny all'])
        self.cloud.fault = 'no memory'
        for _attempt in range(2):
            with self.assertRaisesRegex(exception.GuestFailed, 'no memory'):
                self.heal_guest()
            self.assertEqual({}, self.cloud.servers)
            self.assertEqual(self.old_ports, set(self.cloud.ports))
        self.cloud.fault = None
        self.heal_guest()
        self.assertHealed([['fw.config', 'deny all']])

    def test_a_whole_heal_that_fails_loses_no_live_rule(self):
        self.live(['fw.config', 'deny all'])
        self.cloud.fault = 'no memory'
        with self.assertRaisesRegex(exception.GuestFailed, 'no memory'):
            self.heal_whole()
        self.assertEqual(self.old_ports, set(self.cloud.ports))
        self.cloud.fault = None
        request = base.instantiate_request()
        request.additional_params = self.info.additional_params
        self.instantiate(request)
        self.assertHealed([['fw.config', 'deny all']])


class NotSupportedTest(DriverTestCase):

    def test_clear_errors_instead_of_heat(self):
        for method in (
                'get_grant_resource', 'create', 'update',
                'update_wait', 'get_resource_info'):
            with self.assertRaisesRegex(exception.NotSupported,
                                        'ClickOS VNFs cannot'):
                getattr(self.driver, method)(context=None)

    def test_a_grant_request_lists_no_volumes(self):
        self.assertEqual([], self.driver.get_cinder_list(vnf_info={}))

    def test_every_method_is_ours(self):
        """Another's would call Heat or run what a package brings."""
        self.assertNotIsInstance(self.driver, openstack.OpenStack)
        ours = {*vars(infra_driver.ClickOSInfraDriver),
                *vars(scaling.Scaling), *vars(connectivity.Connectivity)}
        public = {name for name in dir(infra_driver.ClickOSInfraDriver)
                  if not name.startswith('_')}
        self.assertEqual(set(), public - ours)

    def test_tacker_takes_it_for_a_driver(self):
        for kind in (abstract_driver.VnfAbstractDriver,
                     scale_driver.VnfScaleAbstractDriver):
            self.assertIsInstance(self.driver, kind)
            self.assertEqual(frozenset(), type(
                self.driver).__abstractmethods__)
