# SPDX-License-Identifier: Apache-2.0
"""Heals and scaling without a request."""

import json
from unittest import mock

from keystoneauth1 import adapter
from keystoneauth1 import exceptions as ka_exceptions
from openstack import exceptions as sdk_exceptions
from tacker import objects
import yaml

from tacker_clickos import automatic
from tacker_clickos import clickos_api
from tacker_clickos import exception
from tacker_clickos import rounds
from tacker_clickos.vnfd import automatic as policies
from tacker_clickos.vnfd import loader
from tests.unit.tacker_clickos import base
from tests.unit.tacker_clickos import test_watch

RULE = {'vdu': 'VDU1', 'aspect': 'capacity', 'handler': 'received.count',
        'measure': 'rate', 'above': 100, 'below': 20, 'cooldown_s': 60,
        'max_level': 3}


class TackerCase(test_watch.WatcherCase):
    """A VNF of two guests that heals itself, and Tacker's API."""

    AUTOMATIC = {'healed': ['VDU1'], 'scales': []}

    def setUp(self):
        super().setUp()
        self.info = self.vnf.instantiated_vnf_info
        self.info.additional_params['clickos_automatic'] = self.AUTOMATIC
        self.info.scale_status = [
            objects.ScaleInfo(aspect_id='capacity', scale_level=1)]
        self.cloud.mock_add_spec(('compute', 'current_project_id',
                                  'session', 'config'))
        self.cloud.current_project_id = base.PROJECT
        self.cloud.config.get_region_name.return_value = None
        self.cloud.compute.servers.side_effect = (
            lambda changes_since=None: iter(self.servers))
        self.answer = mock.Mock(spec_set=('status_code', 'text'),
                                status_code=202, text='')
        self.post = self.patch(adapter.Adapter, 'post',
                               return_value=self.answer)
        self.cloud.compute.post.side_effect = lambda path, json: mock.Mock(
            spec_set=('status_code', 'headers'), status_code=202,
            headers={
                'x-openstack-request-id': 'req-' + path.split('/')[2]})
        self.now = 1000.0
        self.patch(automatic.time, 'monotonic', side_effect=lambda: self.now)

    def posted(self):
        """Return [(last part of the path, body)] of the requests."""
        return [(call.args[1].rpartition('/')[2], call.kwargs['json'])
                for call in self.post.call_args_list]


class HealTest(TackerCase):

    def alive(self):
        self.servers = [test_watch.server('s0', 'ACTIVE'),
                        test_watch.server('s1', 'ACTIVE')]

    def test_a_dead_guest_is_healed(self):
        self.alive()
        self.servers[1].status = 'SHUTOFF'
        self.watcher.run_once()
        ((what, body),) = self.posted()
        self.assertEqual(('heal', [self.ids[1]]),
                         (what, body['vnfcInstanceId']))
        self.assertIn('is SHUTOFF', body['cause'])

    def test_heals_of_the_past_are_forgotten(self):
        healer = self.watcher._healer
        for number in range(100):
            self.assertTrue(healer.heal(self.cloud, f'vnf{number}',
                                        {'c': 'ERROR: x'}, {}))
        self.assertEqual(100, len(healer._times))
        self.now += automatic._WINDOW_S + 1
        self.assertTrue(healer.heal(self.cloud, 'another',
                                    {'c': 'ERROR: x'}, {}))
        self.assertEqual(['another'], list(healer._times))

    def test_nova_begins_with_a_guest_that_ended_before_tacker_does(self):
        self.alive()
        self.watcher.run_once()
        self.servers[1].status = 'SHUTOFF'
        self.post.side_effect = lambda *_, **__: (
            self.cloud.compute.post.assert_called_once_with(
                '/servers/s1/action', json={'reboot': {'type': 'HARD'}})
            or self.answer)
        self.watcher.glance()
        ((_what, body),) = self.posted()
        self.assertEqual({'clickos_reboots': {
            's1': 'req-s1'}}, body['additionalParams'])
        self.assertEqual(body['additionalParams']['clickos_reboots'],
                         automatic.asked(objects.HealVnfRequest(
                             additional_params=body['additionalParams'])))

    def test_only_a_guest_that_ended_begins_so_early(self):
        self.servers = [test_watch.server('s1', 'ERROR')]
        self.watcher.run_once()
        ((_what, body),) = self.posted()
        self.assertNotIn('additionalParams', body)
        self.cloud.compute.post.assert_not_called()

    def test_a_heal_without_an_answer_of_nova(self):
        self.alive()
        self.servers[1].status = 'SHUTOFF'
        for error in (sdk_exceptions.ConflictException(),
                      exception.Unanswered(service='Nova', reason='x')):
            self.post.reset_mock()
            self.cloud.compute.post.side_effect = error
            self.watcher.run_once()
            ((_what, body),) = self.posted()
            self.assertNotIn('additionalParams', body)

    def test_early_reboots_that_tacker_refuses_end(self):
        self.answer.status_code = 409
        self.alive()
        self.servers[1].status = 'SHUTOFF'
        for _time in range(20):
            self.watcher.run_once()
        self.assertEqual(5, self.cloud.compute.post.call_count)

    def test_a_guest_that_stays_unreachable_is_healed(self):
        self.alive()
        self.servers[1].power_state = 0
        for self.now in (1000.0, 1059.0):
            self.watcher.run_once()
            self.watcher.glance()
        self.post.assert_not_called()
        self.now = 1060.0
        self.watcher.run_once()
        ((_what, body),) = self.posted()
        self.assertEqual([self.ids[1]], body['vnfcInstanceId'])
        self.assertIn('is UNREACHABLE', body['cause'])

    def test_a_guest_that_comes_back_is_not_healed(self):
        self.alive()
        for self.now, power in ((1000.0, 0), (1030.0, 1), (1060.0, 0),
                                (1110.0, 0)):
            self.servers[1].power_state = power
            self.watcher.run_once()
        self.post.assert_not_called()

    def test_unreachable_guests_may_be_left_alone(self):
        automatic.cfg.CONF.set_override('heal_unreachable_after', 0,
                                        'clickos')
        self.addCleanup(automatic.cfg.CONF.clear_override,
                        'heal_unreachable_after', 'clickos')
        self.alive()
        self.servers[1].power_state = 0
        for self.now in (1000.0, 9000.0):
            self.watcher.run_once()
        self.post.assert_not_called()

    def test_between_two_looks_changed_servers_are_asked_for(self):
        self.alive()
        self.watcher.run_once()
        self.watcher.glance()
        self.post.assert_not_called()
        self.servers[0].status = 'ERROR'
        self.watcher.glance()
        self.watcher.glance()
        ((_what, body),) = self.posted()
        self.assertEqual([self.ids[0]], body['vnfcInstanceId'])
        self.assertRegex(
            self.cloud.compute.servers.call_args.kwargs['changes_since'],
            r'^20\d\d-\d\d-\d\dT')

    def test_only_a_look_judges_a_server_that_is_gone(self):
        self.alive()
        self.watcher.run_once()
        self.servers[0].status = 'DELETED'
        self.watcher.glance()
        self.post.assert_not_called()

    def test_servers_of_others_are_left_alone(self):
        self.alive()
        self.watcher.run_once()
        self.servers = [test_watch.server('other', 'ERROR')]
        self.watcher.glance()
        self.post.assert_not_called()

    def test_a_vnf_without_the_policy_asks_nothing(self):
        self.info.additional_params.pop('clickos_automatic')
        self.servers = []
        self.watcher.run_once()
        self.cloud.compute.servers.reset_mock()
        self.watcher.glance()
        self.cloud.compute.servers.assert_not_called()
        self.post.assert_not_called()

    def test_heals_without_end_end(self):
        self.servers = []
        for _time in range(20):
            self.watcher.run_once()
        self.assertEqual(5, self.post.call_count)
        self.now += 601
        self.watcher.run_once()
        self.assertEqual(6, self.post.call_count)

    def test_a_refusal_is_tried_again(self):
        self.servers = []
        self.answer.status_code = 409
        for _time in range(20):
            self.watcher.run_once()
        self.assertEqual(20, self.post.call_count)

    def test_tacker_that_does_not_answer(self):
        self.post.side_effect = ka_exceptions.ConnectFailure('no')
        self.servers = []
        with self.assertLogs('tacker_clickos.automatic', 'WARNING'):
            self.watcher.run_once()


class ScaleTest(TackerCase):

    AUTOMATIC = {'healed': [], 'scales': [RULE]}

    def setUp(self):
        super().setUp()
        self.servers = [test_watch.server('s0', 'ACTIVE'),
                        test_watch.server('s1', 'ACTIVE')]
        self.counts = {'s0': 0, 's1': 0}
        self.read = self.patch(clickos_api.Client, 'read',
                               side_effect=self.handler)

    def handler(self, _client, server_id, name):
        self.assertEqual('received.count', name)
        return '%d\n' % self.counts[server_id]

    def grow(self, first, second, seconds=10):
        self.now += seconds
        self.counts['s0'] += first
        self.counts['s1'] += second
        self.watcher.run_once()

    def directions(self):
        return [body['type'] for _what, body in self.posted()]

    def test_much_scales_out(self):
        self.grow(0, 0)
        self.grow(1500, 600)
        self.assertEqual([('scale', {
            'type': 'SCALE_OUT', 'aspectId': 'capacity', 'numberOfSteps': 1,
            'additionalParams': {'is_auto': 'True'}})], self.posted())

    def test_little_scales_in(self):
        self.grow(0, 0)
        self.grow(100, 100)
        self.assertEqual(['SCALE_IN'], self.directions())

    def test_between_the_limits_nothing_happens(self):
        self.grow(0, 0)
        self.grow(500, 500)
        self.assertEqual([], self.directions())

    def test_levels_bound_it(self):
        self.info.scale_status[0].scale_level = 3
        self.grow(0, 0)
        self.grow(9000, 9000)
        self.info.scale_status[0].scale_level = 0
        self.grow(0, 0)
        self.assertEqual([], self.directions())

    def test_it_waits_after_a_step(self):
        self.grow(0, 0)
        for _time in range(6):
            self.grow(9000, 9000)
        self.assertEqual(1, len(self.posted()))
        for _time in range(3):
            self.grow(9000, 9000)
        self.assertEqual(2, len(self.posted()))

    def test_vnfs_of_the_past_are_forgotten(self):
        """An operation hides a VNF from a look; its cooldown continues."""
        scaler = self.watcher._scaler
        self.grow(0, 0)
        self.grow(1500, 600)
        self.assertEqual(['SCALE_OUT'], self.directions())
        self.grow(0, 0)
        scaler.keep(())
        self.assertEqual(({}, 1), (scaler._samples, len(scaler._last)))
        self.now += automatic._LONGEST_COOLDOWN_S + 1
        scaler.keep(())
        self.assertEqual({}, scaler._last)

    def test_a_guest_that_began_again_or_fails_decides_nothing(self):
        self.grow(0, 0)
        self.counts['s0'] = -9000
        self.grow(0, 9000)
        self.read.side_effect = exception.ApiUnavailable(reason='down')
        self.grow(90000, 90000)
        self.read.side_effect = lambda *_arguments: 'text'
        self.grow(90000, 90000)
        self.assertEqual([], self.directions())

    def test_the_log_has_no_value_of_a_guest(self):
        self.read.side_effect = lambda *_arguments: 'hidden\nline'
        with self.assertLogs('tacker_clickos.automatic', 'DEBUG') as logged:
            self.grow(0, 0)
        self.assertIn('received.count of server', logged.output[0])
        self.assertNotIn('hidden', '\n'.join(logged.output))

    def test_rules_and_time_of_a_vnf_are_bounded(self):
        self.AUTOMATIC['scales'] = [RULE] * 20000
        self.addCleanup(self.AUTOMATIC.update, scales=[RULE])
        self.grow(0, 0)
        self.assertEqual(2 * policies.MAX_SCALES, self.read.call_count)
        self.read.reset_mock()

        def hang(*_arguments):
            self.now += 12
            raise exception.ApiUnavailable(reason='no answer')
        self.read.side_effect = hang
        self.grow(0, 0)
        self.assertEqual(2, self.read.call_count)

    def test_the_watcher_does_not_wait_for_guests(self):
        rounds._spawn.side_effect = lambda work: None
        self.grow(0, 0)
        self.read.assert_not_called()

    def test_a_value_needs_one_look(self):
        self.AUTOMATIC['scales'] = [dict(RULE, measure='value')]
        self.addCleanup(self.AUTOMATIC.update, scales=[RULE])
        self.grow(400, 0)
        self.assertEqual(['SCALE_OUT'], self.directions())


class PolicyTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.path = self.package / 'Definitions' / 'firewall.yaml'
        self.vnfd = yaml.safe_load(self.path.read_text())
        self.policies = self.vnfd['topology_template']['policies']

    def load(self, **policies):
        self.policies += [{name: policy} for name, policy in policies.items()]
        self.path.write_text(json.dumps(self.vnfd))
        return loader.load(str(self.package), 'simple').automatic

    def scale(self, **change):
        return {'type': 'clickos.policies.AutoScale', 'targets': ['VDU1'],
                'properties': {'aspect': 'capacity', 'scale_out_above': 9,
                               'handler': 'received.count', **change}}

    def test_both(self):
        found = self.load(load=self.scale(), healing={
            'type': 'clickos.policies.AutoHeal', 'targets': ['VDU1']})
        self.assertEqual(('VDU1',), found.healed)
        (rule,) = found.scales
        self.assertEqual(('capacity', 'rate', 9, 0, 60, 3), (
            rule.aspect, rule.measure, rule.above, rule.below,
            rule.cooldown_s, rule.max_level))

    def test_faults(self):
        for policy, reason in (
                (self.scale(aspect='x'), "aspect 'x' does not scale VDU1"),
                (self.scale(handler='a b'), "handler 'a b' is not a name"),
                (self.scale(measure='x'), 'measure must be one of'),
                (self.scale(scale_in_below=9), 'scale_in_below 9 is not'),
                (self.scale(scale_out_above='x'), 'scale_out_above: expected'),
                (self.scale(cooldown=-1), 'cooldown: expected a whole'),
                (self.scale(speed=1), 'unknown key speed'),
                (dict(self.scale(), targets=['X']), 'target X is no VDU'),
                (dict(self.scale(), targets=[{}]), 'target {} is no VDU'),
                (dict(self.scale(), targets=['VDU1'] * 2),
                 'target VDU1 is repeated, expected each VDU once'),
                (dict(self.scale(), targets=[]), 'targets: expected a list')):
            kept = list(self.policies)
            with self.assertRaisesRegex(exception.VnfdInvalid,
                                        'firewall.yaml: load: ' + reason):
                self.load(load=policy)
            self.policies[:] = kept
