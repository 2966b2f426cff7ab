# SPDX-License-Identifier: Apache-2.0
"""Guests that begin again in their servers, and those that cannot."""

import copy
from unittest import mock

from openstack import exceptions as sdk_exceptions
from oslo_config import cfg

from tacker_clickos import exception
from tacker_clickos import in_place
from tacker_clickos import state
from tests.unit.tacker_clickos import base
from tests.unit.tacker_clickos import test_infra_driver

FULL = 'ClickOS host: state_dir: No space left on device'
REFUSED = {'clickos_start': {'result': 'Error', 'details': FULL}}


class ChoiceTest(test_infra_driver.HealCase):
    """Servers whose reboot would make another guest than the wanted one."""

    def setUp(self):
        super().setUp()
        self.patch(in_place.time, 'sleep')

    def assertReplaced(self):
        self.heal_guest()
        self.assertHealed([['fw.config', 'allow icmp']], in_place=False)

    def assertNotAsked(self):
        self.assertReplaced()
        self.assertNotIn('act', [call[0] for call in self.cloud.calls])

    def test_states_that_nova_reboots(self):
        for status in ('ACTIVE', 'SHUTOFF', 'PAUSED', 'SUSPENDED'):
            self.old.status = status
            self.heal_guest()
            self.assertHealed([['fw.config', 'allow icmp']])

    def test_a_server_that_nova_gave_up(self):
        self.old.status = 'ERROR'
        self.assertNotAsked()

    def test_a_server_without_a_host(self):
        self.old.host_id = ''
        self.assertNotAsked()

    def test_a_newer_image_of_the_name(self):
        self.cloud.images = [base.image('newer', 'clickos')]
        self.assertNotAsked()

    def test_a_server_without_an_image(self):
        self.old.image = {}
        self.assertNotAsked()

    def test_another_flavor(self):
        for name, value in (('original_name', 'tiny'), ('ram', 8),
                            ('vcpus', 2)):
            self.old = self.only_server()
            setattr(self.old.flavor, name, value)
            self.assertReplaced()

    def test_a_port_of_another_server(self):
        next(iter(self.cloud.ports.values())).device_id = ''
        self.assertNotAsked()

    def test_what_a_tenant_changed_at_a_server(self):
        for action in ('attach_interface', 'detach_interface', 'rebuild'):
            self.old = self.only_server()
            self.cloud.calls.clear()
            self.cloud.actions = [base.resource(
                request_id='req-own', action=action, events=[])]
            self.assertNotAsked()

    def test_a_state_that_is_gone(self):
        self.cloud.desired.clear()
        self.heal_guest()
        self.assertHealed([['fw.config', 'allow icmp']], in_place=False)

    def test_a_server_that_refers_to_no_recorded_state(self):
        state.set_param(self.info, state.STATES, {})
        self.heal_guest()
        self.assertNotEqual(self.old.id, self.only_server().id)

    def test_a_package_that_asks_for_a_place(self):
        policies = self.package / 'Definitions' / 'firewall.yaml'
        policies.write_text(policies.read_text().replace(
            '  policies:\n', '''  policies:
    - apart:
        type: tosca.policies.nfv.AntiAffinityRule
        targets: [VDU1]
        properties:
          scope: nfvi_node
''', 1))
        self.heal_guest()
        self.assertHealed([['fw.config', 'allow icmp']])
        self.vnf.vnfd_id = 'another'
        self.assertReplaced()


class OutcomeTest(test_infra_driver.HealCase):
    """A heal judges what became of a reboot."""

    def setUp(self):
        super().setUp()
        self.now = 0.0
        clock = self.patch(in_place, 'time')
        clock.monotonic.side_effect = lambda: self.now
        clock.sleep.side_effect = self.sleep

    def sleep(self, seconds):
        self.now += seconds

    def assertReplaced(self):
        self.heal_guest()
        self.assertHealed([['fw.config', 'allow icmp']], in_place=False)

    def refuse(self, **server):
        self.cloud.reboot = {'events': REFUSED, 'server': server}

    def test_a_refusal_that_may_pass_leaves_the_guest_alone(self):
        self.refuse()
        with self.assertRaisesRegex(
                exception.ServerFailed,
                '%s; the guest runs on as it was' % FULL):
            self.heal_guest()
        self.assertEqual([self.old.id], list(self.cloud.servers))

    def test_a_whole_vnf_says_so_too(self):
        self.refuse()
        with self.assertRaisesRegex(exception.ServerFailed, FULL):
            self.heal_whole()
        self.assertEqual([self.old.id], list(self.cloud.servers))
        self.assertEqual(
            self.old.id,
            self.info.vnfc_resource_info[0].compute_resource.resource_id)
        self.assertEqual('clickos-' + base.VNF_ID, self.info.instance_id)

    def test_a_whole_heal_that_is_cut_short_knows_its_servers(self):
        saved = []

        def save(vnf):
            saved.append([state.server_id(vnfc) for vnfc
                          in vnf.instantiated_vnf_info.vnfc_resource_info])
            self.reload(vnf)
        self.save.side_effect = save
        self.heal_whole()
        self.assertEqual([self.old.id], saved[0])

    def test_a_guest_that_can_never_start(self):
        why = 'fw.click:1:1: no class'
        self.cloud.reboot = {'events': {'clickos_start': {
            'result': 'Error', 'details': why}}}
        with self.assertRaisesRegex(exception.GuestFailed, why) as caught:
            self.heal_guest()
        self.assertNotIsInstance(caught.exception, exception.Outage)

    def test_a_reason_that_the_tenant_may_not_read(self):
        self.cloud.reboot = {'events': {'clickos_start': {
            'result': 'Error'}}}
        with self.assertRaisesRegex(exception.ServerFailed,
                                    'its host cannot make it again'):
            self.heal_guest()

    def test_a_dead_guest_of_a_host_that_cannot_gets_another_server(self):
        for server in ({'status': 'ERROR'}, {'power_state': 4}):
            self.old = self.only_server()
            self.refuse(**server)
            self.assertReplaced()

    def test_a_host_that_takes_no_reboot(self):
        self.cloud.reboot = {
            'events': dict.fromkeys(('clickos_start',
                                     'compute_reboot_instance')),
            'server': {'status': 'HARD_REBOOT',
                       'task_state': 'reboot_pending_hard'}}
        self.assertReplaced()
        self.assertLess(in_place._BEGIN_S, self.now)
        self.assertLess(self.now, in_place._BEGIN_S + 1)

    def test_a_host_that_dies_in_the_middle(self):
        cfg.CONF.set_override('boot_timeout', 60, 'clickos')
        self.cloud.reboot = {'events': {
            'clickos_start': None,
            'compute_reboot_instance': {'finish_time': None}}}
        self.assertReplaced()
        self.assertLess(60, self.now)

    def test_a_success_of_nova_that_the_driver_did_not_note(self):
        self.cloud.reboot = {'events': {'clickos_start': None}}
        self.assertReplaced()

    def test_a_server_that_is_deleted_meanwhile(self):
        self.cloud.compute.post.side_effect = (
            sdk_exceptions.NotFoundException())
        self.assertReplaced()

    def test_a_task_is_waited_for(self):
        self.old.status, self.old.task_state = 'ACTIVE', 'powering-off'
        real = self.cloud.compute.get_server.side_effect

        def seen(server_id):
            if self.now > 3:
                self.old.task_state = None
            return real(server_id)
        self.cloud.compute.get_server.side_effect = seen
        self.heal_guest()
        self.assertHealed([['fw.config', 'allow icmp']])

    def test_a_task_that_begins_meanwhile(self):
        self.cloud.compute.post.side_effect = self.conflict_once(
            self.cloud._act)
        self.heal_guest()
        self.assertHealed([['fw.config', 'allow icmp']])

    def conflict_once(self, act):
        answers = [sdk_exceptions.ConflictException()]

        def post(path, json):
            if answers:
                raise answers.pop()
            return act(path, json)
        return post

    def test_a_task_that_does_not_end(self):
        self.old.task_state = 'migrating'
        self.assertReplaced()
        self.assertLess(self.now, in_place._BEGIN_S + 1)

    def test_the_reboot_of_a_lost_answer_is_found(self):
        cfg.CONF.set_override('outage_timeout', 5, 'clickos')
        self.cloud.actions = [base.resource(
            request_id='req-earlier', action='reboot', events=[])]

        def lose(path, json):
            self.cloud._act(path, json)
            raise exception.Unanswered(service='Nova', reason='is silent')
        self.cloud.compute.post.side_effect = lose
        self.heal_guest()
        self.assertHealed([['fw.config', 'allow icmp']])
        self.assertEqual(1, [call[0] for call in self.cloud.calls].count(
            'act'))


class AskedTest(test_infra_driver.HealCase):
    """The watcher has asked for a reboot before Tacker began the heal."""

    def setUp(self):
        super().setUp()
        self.patch(in_place.time, 'sleep')
        self.request = in_place.ask(self.cloud, self.old.id)

    def heal_after(self, reboots):
        """Heal; return how many reboots there were in all."""
        self.heal_guest({'clickos_reboots': reboots})
        return [call[0] for call in self.cloud.calls].count('act')

    def test_that_reboot_is_the_heal(self):
        self.assertEqual(1, self.heal_after({self.old.id: self.request}))
        self.assertEqual([self.old.id], list(self.cloud.servers))
        self.assertEqual(
            self.old.id,
            self.info.vnfc_resource_info[0].compute_resource.resource_id)

    def test_one_that_failed_is_repeated(self):
        self.cloud.actions[-1].events[0]['result'] = 'Error'
        self.assertEqual(2, self.heal_after({self.old.id: self.request}))

    def test_a_guest_that_ended_again(self):
        self.old.status = 'SHUTOFF'
        self.assertEqual(2, self.heal_after({self.old.id: self.request}))

    def test_a_reboot_that_came_before_a_new_configuration(self):
        self.vnf.vnfd_id = 'another'
        click = self.package / 'Files' / 'firewall.click'
        click.write_text(click.read_text() + '\n// newer\n')
        self.assertEqual(2, self.heal_after({self.old.id: self.request}))

    def test_what_a_tenant_may_send(self):
        for number, reboots in enumerate((
                {}, 'x', ['x'], {'other': self.request},
                {self.old.id: 7}, {self.old.id: '../' + self.request},
                {self.old.id: self.request + '/x'}), 2):
            self.assertEqual(number, self.heal_after(reboots))

    def test_a_request_that_nova_does_not_know(self):
        real = self.cloud.compute.get_server_action.side_effect

        def get(action, server):
            if action == 'req-none':
                raise sdk_exceptions.NotFoundException()
            return real(action, server)
        self.cloud.compute.get_server_action.side_effect = get
        self.assertEqual(2, self.heal_after({self.old.id: 'req-none'}))


class OneAfterTheOtherTest(test_infra_driver.HealCase):
    """One guest is away, the others forward."""

    def instantiate(self, request=None):
        self.vnf = base.vnf_instance(guests=3)
        return super().instantiate(request)

    def only_server(self):
        return next(iter(self.cloud.servers.values()))

    def heal(self):
        self.driver.heal_vnf(
            context=None, vnf_instance=self.vnf,
            vim_connection_info=base.vim_connection(),
            heal_vnf_request=mock.Mock(
                additional_params={}, vnfc_instance_id=[
                    vnfc.id for vnfc in self.info.vnfc_resource_info]))

    def recorded(self):
        return [state.server_id(vnfc)
                for vnfc in self.info.vnfc_resource_info]

    def changes(self):
        """Return what was done to servers, in order, by their names."""
        return [call[0] for call in self.cloud.calls
                if call[0] in ('act', 'delete', 'create')]

    def test_a_guest_is_replaced_after_the_one_before_it_runs(self):
        self.cloud.reboot = {'server': {'status': 'ERROR'}}
        self.cloud.calls.clear()
        self.heal()
        self.assertEqual(['act', 'delete', 'create'] * 3, self.changes())
        self.assertEqual(set(self.cloud.servers), set(self.recorded()))

    def test_what_was_healed_before_an_error_is_recorded(self):
        before = self.recorded()
        act = self.cloud._act

        def fail_second(path, json):
            self.cloud.reboot = (
                {'events': REFUSED} if before[1] in path
                else {'server': {'status': 'ERROR'}})
            return act(path, json)
        self.cloud.compute.post.side_effect = fail_second
        with self.assertRaisesRegex(exception.ServerFailed, FULL):
            self.heal()
        self.assertNotEqual(before[0], self.recorded()[0])
        self.assertEqual(before[1:], self.recorded()[1:])
        self.assertEqual(set(self.cloud.servers), set(self.recorded()))

    def test_servers_that_the_vnf_has_no_more_end_with_a_whole_heal(self):
        extra = copy.copy(self.only_server())
        extra.id, extra.name = 'extra', 'VDU1-3-' + base.VNF_ID
        self.cloud.servers['extra'] = extra
        self.heal_whole()
        self.assertNotIn('extra', self.cloud.servers)
        self.assertEqual(set(self.cloud.servers), set(self.recorded()))
