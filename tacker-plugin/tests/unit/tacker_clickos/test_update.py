# SPDX-License-Identifier: Apache-2.0
"""The live update: good, bad, good; one guest or several; its verdicts."""

import itertools
import json
from unittest import mock

from clickos_client import outcomes
from oslo_db import exception as db_exc
from tacker.common import coordination
from tacker import objects
from tacker.vnflcm import utils as vnflcm_utils

from tacker_clickos import infra_driver
from tacker_clickos import management
from tacker_clickos import mgmt_driver
from tacker_clickos import tacker_db
from tacker_clickos import watch
from tests.unit.tacker_clickos import base


class UpdateTest(base.CloudTestCase):

    GUESTS = 1

    def setUp(self):
        super().setUp()
        self.patch(coordination.COORDINATOR, 'get_lock',
                   side_effect=lambda name: _Lock(name))
        self.patch(watch, 'start')
        self.patch(objects.VnfInstance, 'save')
        self.patch(vnflcm_utils, 'get_vnf_package_path',
                   return_value=str(self.package))
        self.patch(vnflcm_utils, 'get_vim',
                   return_value={'access_info': dict(base.ACCESS)})
        self.vnf = base.vnf_instance(guests=self.GUESTS)
        self.patch(objects.VnfInstance, 'get_by_id', return_value=self.vnf)
        self.patch(tacker_db, 'change_metadata',
                   side_effect=self.change_metadata)
        self.instantiate()
        self.driver = mgmt_driver.ClickOSMgmtDriver()

    def instantiate(self):
        request = base.instantiate_request({'rules': ['allow icmp']})
        infra = infra_driver.ClickOSInfraDriver()
        arguments = dict(context=None, vnf_instance=self.vnf,
                         vim_connection_info=base.vim_connection(),
                         instantiate_vnf_req=request)
        infra.instantiate_vnf(vnfd_dict={}, grant_response={},
                              vnf_package_path=str(self.package), **arguments)
        infra.post_vnf_instantiation(**arguments)
        self.servers = list(self.cloud.servers)

    def change_metadata(self, context, vnf_id, change):
        self.vnf.vnf_metadata = change(dict(self.vnf.vnf_metadata), None)

    def writes(self):
        """Return the writes of each guest, oldest guest first."""
        return [self.cloud.state(server)['writes']
                for server in self.servers]

    def update(self, properties, key='clickos_request'):
        """Do what filter and Tacker do, then call the hook."""
        text = (properties if isinstance(properties, str)
                else json.dumps(properties))
        self.vnf.vnf_metadata = dict(self.vnf.vnf_metadata, **{key: text})
        self.driver.modify_information_start(
            context=None, vnf_instance=self.vnf, modify_vnf_request=None)
        self.driver.modify_information_end(
            context=None, vnf_instance=self.vnf, modify_vnf_request=None)
        return json.loads(self.vnf.vnf_metadata['clickos_update'])

    def in_force(self):
        return json.loads(self.vnf.vnf_metadata['clickos_properties'])

    def running(self, server_id):
        return dict(self.cloud.state(server_id)['writes'])


class _Lock:
    """Stands for the lock of tooz: name and context manager."""

    def __init__(self, name):
        self.name = name

    def __call__(self, blocking):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


class OneGuestTest(UpdateTest):

    def test_good_bad_good(self):
        first = self.update({'rules': ['allow icmp', 'deny all']})
        self.assertEqual({'request': {'rules': ['allow icmp', 'deny all']},
                          'verdict': 'accepted', 'message': '',
                          'revision': 2, 'number': 1}, first)
        self.assertEqual({'fw.config': 'allow icmp, deny all'},
                         self.running(self.servers[0]))

        bad = self.update({'rules': ['allow icmp', 'permit all']})
        self.assertEqual('refused', bad['verdict'])
        self.assertIn("property rules: rule 1: must start with allow, deny "
                      "or drop, got 'permit'", bad['message'])
        self.assertEqual({'rules': ['allow icmp', 'permit all']},
                         bad['request'])
        self.assertEqual((2, 2), (bad['revision'], bad['number']))
        self.assertEqual({'rules': ['allow icmp', 'deny all']},
                         self.in_force())
        self.assertEqual({'fw.config': 'allow icmp, deny all'},
                         self.running(self.servers[0]))

        good = self.update({'rules': ['deny tcp dst port 80', 'allow all']})
        self.assertEqual(('accepted', 3), (good['verdict'],
                                           good['revision']))
        self.assertEqual({'rules': ['deny tcp dst port 80', 'allow all']},
                         self.in_force())
        self.assertNotIn('clickos_request', self.vnf.vnf_metadata)

    def test_the_guest_refuses(self):
        self.cloud.refuse[self.servers[0]] = (
            400, 'handler-error', 'fw: pattern 1: bad')
        verdict = self.update({'rules': ['allow icmp type 300']})
        self.assertEqual('refused', verdict['verdict'])
        self.assertEqual('VDU1-0: handler-error: fw: pattern 1: bad',
                         verdict['message'])
        self.assertEqual({'rules': ['allow icmp']}, self.in_force())
        del self.cloud.refuse[self.servers[0]]
        self.assertEqual('accepted', self.update(
            {'rules': ['allow icmp type 0']})['verdict'])

    def test_a_dead_guest(self):
        self.cloud.refuse[self.servers[0]] = (409, 'dead-guest', 'crashed')
        self.assertIn('VDU1-0: dead-guest: crashed', self.update(
            {'rules': ['allow all']})['message'])

    def test_a_server_that_is_gone(self):
        self.cloud.refuse[self.servers[0]] = (404, 'no-such-server', 'gone')
        self.assertEqual('VDU1-0: no-such-server: gone', self.update(
            {'rules': ['allow all']})['message'])

    def test_null_takes_the_default(self):
        self.update({'rules': None})
        self.assertEqual({'rules': ['deny all']}, self.in_force())
        self.assertEqual({'fw.config': 'deny all'},
                         self.running(self.servers[0]))

    def test_the_rules_in_force_can_be_written_again(self):
        self.update({'rules': ['nonsense']})
        self.assertEqual('accepted', self.update(
            {'rules': ['allow icmp']})['verdict'])

    def test_a_request_that_came_meanwhile_is_kept(self):
        newer = json.dumps({'rules': ['deny all']})
        answer = self.cloud._api_answer

        def answer_late(*arguments):
            self.vnf.vnf_metadata = dict(self.vnf.vnf_metadata,
                                         clickos_request=newer)
            return answer(*arguments)
        self.cloud._api_answer = answer_late
        self.update({'rules': ['allow all']})
        self.assertEqual(newer, self.vnf.vnf_metadata['clickos_request'])
        self.assertEqual({'rules': ['allow all']}, self.in_force())

    def test_requests_that_are_no_properties(self):
        for text in ('{', '[]', '7', 'null', '"x"', '[' * 20000):
            verdict = self.update(text)
            self.assertEqual('refused', verdict['verdict'], text[:9])
            self.assertIn('clickos_properties: is not', verdict['message'])
        self.assertEqual({'rules': ['allow icmp']}, self.in_force())

    def test_without_the_filter_a_changed_text_is_the_request(self):
        verdict = self.update({'rules': ['allow udp']}, 'clickos_properties')
        self.assertEqual('accepted', verdict['verdict'])
        self.assertEqual({'rules': ['allow udp']}, self.in_force())
        verdict = self.update({'rules': ['x']}, 'clickos_properties')
        self.assertEqual('refused', verdict['verdict'])
        self.assertEqual({'rules': ['allow udp']}, self.in_force())

    def test_an_update_of_something_else_changes_nothing(self):
        before = dict(self.vnf.vnf_metadata)
        self.driver.modify_information_end(context=None,
                                           vnf_instance=self.vnf)
        self.assertEqual(before, self.vnf.vnf_metadata)

    def test_a_long_request_is_shown_shortened(self):
        verdict = self.update({'rules': ['x' * 30000]})
        self.assertLess(len(json.dumps(verdict)), 10000)

    def test_a_property_of_the_configuration_is_fixed(self):
        path = self.package / 'Definitions' / 'firewall.yaml'
        path.write_text(path.read_text().replace(
            '            rules:\n',
            '            limit: {type: integer, define: LIMIT, default: 1}\n'
            '            rules:\n'))
        verdict = self.update({'limit': 2})
        self.assertIn('property limit: is part of the configuration',
                      verdict['message'])

    def test_nothing_ever_raises(self):
        for target, name in ((vnflcm_utils, 'get_vnf_package_path'),
                             (vnflcm_utils, 'get_vim')):
            getattr(target, name).side_effect = RuntimeError('database')
            verdict = self.update({'rules': ['allow all']})
            self.assertEqual(
                ('unknown', outcomes.message('interrupted')),
                (verdict['verdict'], verdict['message']))
            self.assertNotIn('database', verdict['message'])
            getattr(target, name).side_effect = None
        objects.VnfInstance.get_by_id.side_effect = RuntimeError('database')
        self.driver.modify_information_end(context=None,
                                           vnf_instance=self.vnf)

    def test_an_update_waits_for_the_database(self):
        self.patch(management.time, 'sleep')
        for number, (target, name) in enumerate((
                (objects.VnfInstance, 'get_by_id'),
                (vnflcm_utils, 'get_vim'), (objects.VnfInstance, 'save'))):
            away = iter([db_exc.DBConnectionError()] * 2)
            # An exception is raised; DEFAULT stands for the usual answer.
            getattr(target, name).side_effect = itertools.chain(
                away, itertools.repeat(mock.DEFAULT))
            verdict = self.update({'rules': [f'allow tcp dst port {number}']})
            self.assertEqual('accepted', verdict['verdict'], name)
            self.assertIsNone(next(away, None))

    def test_metadata_a_tenant_has_spoiled(self):
        for spoiled in ('', 'x', '[]', '7'):
            self.vnf.vnf_metadata = dict(self.vnf.vnf_metadata,
                                         clickos_update=spoiled)
            self.assertEqual('accepted', self.update(
                {'rules': ['allow all']})['verdict'])


class TwoGuestsTest(UpdateTest):

    GUESTS = 2

    def test_both_get_the_rules(self):
        self.update({'rules': ['allow udp']})
        for server_id in self.servers:
            self.assertEqual({'fw.config': 'allow udp'},
                             self.running(server_id))

    def test_if_one_refuses_the_other_gets_its_old_ones(self):
        self.update({'rules': ['allow udp']})
        self.cloud.refuse[self.servers[1]] = (400, 'handler-error', 'no')
        verdict = self.update({'rules': ['allow tcp']})
        self.assertEqual(('refused', 'VDU1-1: handler-error: no'),
                         (verdict['verdict'], verdict['message']))
        for server_id in self.servers:
            self.assertEqual({'fw.config': 'allow udp'},
                             self.running(server_id))
        self.assertEqual({'rules': ['allow udp']}, self.in_force())

    def test_the_word_says_what_became_of_the_guest(self):
        for code in ('overtaken', 'no-guest'):
            message = outcomes.message(code)
            self.cloud.refuse[self.servers[1]] = (409, code, message)
            verdict = self.update({'rules': ['allow tcp']})
            self.assertEqual(
                (outcomes.of(code), f'VDU1-1: {code}: {message}'),
                (verdict['verdict'], verdict['message']))

    def test_a_guest_that_keeps_the_new_values_is_no_refusal(self):
        """The first one refuses its old values."""
        answer, writes = self.cloud._api_answer, []

        def answer_once(server_id, what, method, json):
            found = answer(server_id, what, method, json)
            if (server_id, method) == (self.servers[0], 'POST'):
                writes.append(what)
                self.cloud.refuse[self.servers[0]] = (
                    400, 'handler-error', 'not again')
            return found
        self.cloud._api_answer = answer_once
        self.cloud.refuse[self.servers[1]] = (400, 'handler-error', 'no')
        verdict = self.update({'rules': ['allow tcp']})
        self.assertTrue(writes)
        self.assertEqual('unknown', verdict['verdict'])
        self.assertIn('keeps the new values', verdict['message'])

    def test_a_rule_written_around_tacker_comes_back_too(self):
        self.cloud.state(self.servers[0])['writes'] = [
            ['fw.config', 'deny udp']]
        self.cloud.refuse[self.servers[1]] = (400, 'handler-error', 'no')
        self.update({'rules': ['allow tcp']})
        self.assertEqual({'fw.config': 'deny udp'},
                         self.running(self.servers[0]))

    def test_before_the_first_update_the_instantiated_ones_come_back(self):
        self.cloud.refuse[self.servers[1]] = (400, 'handler-error', 'no')
        self.update({'rules': ['allow tcp']})
        self.assertEqual({'fw.config': 'allow icmp'},
                         self.running(self.servers[0]))

    def test_a_guest_that_cannot_be_put_back_is_named(self):
        first, second = self.servers
        self.cloud.refuse[second] = (400, 'handler-error', 'no')
        answer = self.cloud._api_answer

        def die_after_one(server_id, what, method, json):
            result = answer(server_id, what, method, json)
            if (server_id, method) == (first, 'POST'):
                self.cloud.refuse[first] = (409, 'dead-guest', 'crashed')
            return result
        self.cloud._api_answer = die_after_one
        self.assertEqual(
            'VDU1-1: handler-error: no; VDU1-0 keeps the new values: '
            'dead-guest: crashed',
            self.update({'rules': ['allow tcp']})['message'])


class GuestsUpdateTest(UpdateTest):

    GUESTS = 2

    def test_one_guest_gets_its_own_value_and_gives_it_back(self):
        self.update({'guests': {'VDU1-1': {'rules': ['deny all']}}})
        self.assertEqual([[['fw.config', 'allow icmp']],
                          [['fw.config', 'deny all']]], self.writes())
        self.update({'guests': {'VDU1-1': None}})
        self.assertEqual([[['fw.config', 'allow icmp']],
                          [['fw.config', 'allow icmp']]], self.writes())

    def test_a_value_for_all_leaves_a_guests_own(self):
        self.update({'guests': {'VDU1-1': {'rules': ['deny all']}}})
        self.update({'rules': ['allow tcp']})
        self.assertEqual([[['fw.config', 'allow tcp']],
                          [['fw.config', 'deny all']]], self.writes())


class ShimTest(base.TestCase):

    def test_nothing_but_the_base_class(self):
        self.assertEqual(
            {'__module__', '__doc__', '_abc_impl', '__abstractmethods__'},
            set(vars(mgmt_driver.ClickOSMgmtDriver)))
