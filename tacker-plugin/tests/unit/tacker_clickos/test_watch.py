# SPDX-License-Identifier: Apache-2.0
"""What the watcher makes of Nova's servers."""

import json
import types
from unittest import mock

from tacker.db import api as db_api
from tacker.db.db_sqlalchemy import models
from tacker import objects
from tacker.vnflcm import utils as vnflcm_utils

from tacker_clickos import rounds
from tacker_clickos import tacker_db
from tacker_clickos import troubles
from tacker_clickos import vim
from tacker_clickos import watch
from tests.unit.tacker_clickos import base
from tests.unit.tacker_clickos import database


def server(server_id, status, fault=None, power_state=1):
    return types.SimpleNamespace(id=server_id, status=status, fault=fault,
                                 project_id=base.PROJECT,
                                 power_state=power_state)


class DescribeTest(base.TestCase):

    def test_states(self):
        self.assertEqual('DELETED', watch.describe(None))
        self.assertEqual('SHUTOFF', watch.describe(server('s', 'SHUTOFF')))
        self.assertEqual('UNREACHABLE', watch.describe(
            server('s', 'ACTIVE', power_state=0)))
        self.assertEqual('BUILD', watch.describe(
            server('s', 'BUILD', power_state=0)))
        self.assertEqual('ERROR: crashed', watch.describe(
            server('s', 'ERROR', {'message': 'crashed'})))
        self.assertEqual(300, len(watch.describe(
            server('s', 'ERROR', {'message': 'x' * 5000}))))


class StoreTest(base.TestCase):

    def store(self, metadata, task_state=None):
        change_metadata = self.patch(watch.tacker_db, 'change_metadata')
        watch._store('context', base.VNF_ID, 'old', 'new')
        return change_metadata.call_args.args[2](metadata, task_state)

    def test_only_this_entry(self):
        self.assertEqual({'clickos_state': 'new', 'a': 'b'}, self.store(
            {'clickos_state': 'old', 'a': 'b'}))

    def test_not_when_another_was_faster(self):
        self.assertIsNone(self.store({'clickos_state': 'other'}))

    def test_not_during_an_operation(self):
        self.assertIsNone(self.store({'clickos_state': 'old'}, 'HEALING'))

    def test_after_an_operation_that_failed(self):
        self.assertEqual({'clickos_state': 'new'}, self.store(
            {'clickos_state': 'old'}, 'ERROR'))


class WatcherCase(base.TestCase):
    """A watcher, a VIM, and a VNF of two guests."""

    def setUp(self):
        super().setUp()
        self.cloud = mock.Mock(spec_set=('compute', 'current_project_id'),
                               current_project_id=base.PROJECT)
        self.servers = []
        self.cloud.compute.servers.side_effect = (
            lambda: iter(self.servers))
        self.patch(vim, 'connect', return_value=self.cloud)
        self.patch(rounds, '_spawn', side_effect=lambda work: work())
        self.get_vim = self.patch(
            vnflcm_utils, 'get_vim',
            return_value={'access_info': dict(base.ACCESS)})
        self.store = self.patch(watch, '_store')
        self.context = mock.Mock(spec_set=('session',))
        self.close = self.context.session.close = mock.Mock()
        self.patch(tacker_db.tacker_context, 'get_admin_context',
                   return_value=self.context)
        self.vnf = base.vnf_instance(guests=2, task_state=None,
                                     vim_connection_info=[
                                         base.vim_connection()])
        info = self.vnf.instantiated_vnf_info
        info.additional_params = {'clickos_properties': {}}
        for number, vnfc in enumerate(info.vnfc_resource_info):
            vnfc.compute_resource = objects.ResourceHandle(
                resource_id='s%d' % number)
        self.ids = [vnfc.id for vnfc in info.vnfc_resource_info]
        self.found = self.patch(objects.VnfInstanceList, 'get_by_filters',
                                return_value=[self.vnf])
        self.patch(tacker_db, 'instantiated', side_effect=lambda _context: [
            each.id for each in self.found.return_value])
        self.cleaners = [self.patch(cleaner, 'run_once') for cleaner in (
            watch.stale_operations.StaleOperations, watch.leftovers.Leftovers)]
        self.watcher = watch.Watcher()


class LookTest(WatcherCase):

    def states(self):
        return json.loads(self.store.call_args.args[3])

    def test_servers_that_a_failed_heal_left_gone(self):
        self.vnf.task_state = 'ERROR'
        self.servers = [server('s1', 'ACTIVE')]
        self.watcher.run_once()
        self.assertEqual(['DELETED', 'ACTIVE'],
                         [self.states()[each] for each in self.ids])

    def test_a_change_is_stored(self):
        self.servers = [server('s0', 'ACTIVE')]
        self.watcher.run_once()
        self.assertEqual({self.ids[0]: 'ACTIVE', self.ids[1]: 'DELETED'},
                         self.states())

    def test_no_database_connection_is_kept(self):
        self.watcher.run_once()
        self.assertEqual(3, self.close.call_count)

    def test_no_change_is_not_stored(self):
        self.servers = [server('s0', 'ACTIVE'), server('s1', 'ACTIVE')]
        self.vnf.vnf_metadata = {'clickos_state': json.dumps(
            dict.fromkeys(self.ids, 'ACTIVE'), sort_keys=True)}
        self.watcher.run_once()
        self.store.assert_not_called()

    def test_vnfs_in_an_operation_and_of_others_are_left_alone(self):
        self.vnf.task_state = 'HEALING'
        self.watcher.run_once()
        self.vnf.task_state = None
        self.vnf.instantiated_vnf_info.additional_params = {}
        self.watcher.run_once()
        self.cloud.compute.servers.assert_not_called()

    def test_one_request_for_all_vnfs_of_a_vim(self):
        self.found.return_value = [self.vnf] * 5
        self.watcher.run_once()
        self.assertEqual(1, self.cloud.compute.servers.call_count)

    def test_a_trouble_is_logged_once_until_it_is_over(self):
        vim.connect.side_effect = RuntimeError('no keystone')
        with self.assertLogs('tacker_clickos.troubles', 'WARNING') as logs:
            for _time in range(3):
                self.watcher.run_once()
            self.assertEqual(1, len(logs.records))
            vim.connect.side_effect = None
            self.watcher.run_once()
            vim.connect.side_effect = RuntimeError('no keystone')
            self.watcher.run_once()
        self.assertEqual(2, len(logs.records))

    def test_a_reason_is_one_line_whatever_ids_it_has(self):
        with self.assertLogs('tacker_clickos.troubles', 'WARNING') as logs:
            for number in range(5):
                vim.connect.side_effect = RuntimeError(
                    f'a\nWARNING \x1b[2J (req-{number}a4f3c21-77aa-4d00)')
                self.watcher.run_once()
            vim.connect.side_effect = RuntimeError('b' * 10000)
            self.watcher.run_once()
        first, second = (each.getMessage() for each in logs.records)
        self.assertTrue(first.isprintable())
        self.assertIn('a WARNING  [2J (req-0a4f3c21-77aa-4d00)', first)
        self.assertLess(len(second), 600)

    def test_one_vnf_that_cannot_be_stored_hides_no_other(self):
        other = base.vnf_instance(task_state=None, vim_connection_info=[
            base.vim_connection()])
        other.id = base.VIM_ID
        other.instantiated_vnf_info.additional_params = {
            'clickos_properties': {}}
        self.found.return_value = [self.vnf, other]
        self.store.side_effect = [RuntimeError('deadlock'), None]
        self.watcher.run_once()
        self.assertEqual([base.VNF_ID, base.VIM_ID], [
            call.args[1] for call in self.store.call_args_list])

    def test_a_row_that_cannot_be_used_hides_no_other(self):
        self.found.return_value = [types.SimpleNamespace(id=base.VIM_ID),
                                   self.vnf]
        with self.assertLogs('tacker_clickos.troubles') as logs:
            for _round in range(2):
                self.watcher.run_once()
        self.assertIn(f'record of VNF {base.VIM_ID}: failed', logs.output[0])
        self.assertEqual(1, len(logs.output))
        self.assertTrue(self.store.called)

    def test_a_session_that_cannot_be_closed_does_not_end_the_watch(self):
        self.close.side_effect = RuntimeError('gone away')
        self.watcher.run_once()
        self.assertEqual(3, self.close.call_count)
        self.assertTrue(self.store.called)

    def test_each_region_of_a_vim_has_its_own_servers(self):
        there = base.vim_connection()
        there.access_info = {'region': 'two'}
        other = base.vnf_instance(task_state=None,
                                  vim_connection_info=[there])
        other.id = base.VIM_ID
        other.instantiated_vnf_info.additional_params = {
            'clickos_properties': {}}
        self.found.return_value = [other, self.vnf]
        self.watcher.run_once()
        self.assertEqual(['two', None], [
            call.args[1][0].access_info.get('region')
            for call in self.get_vim.call_args_list])

    def test_what_fails_ends_no_other_part_of_a_look(self):
        self.found.side_effect = RuntimeError('gone')
        self.cleaners[0].side_effect = RuntimeError('no lock service')
        self.watcher.run_once()
        for look in self.cleaners:
            look.assert_called_once_with(mock.ANY, self.context, mock.ANY)

    def test_a_database_that_fails_does_not_end_the_watch(self):
        self.found.side_effect = RuntimeError('gone')
        self.watcher.run_once()
        self.found.side_effect = None
        self.watcher.run_once()
        self.assertTrue(self.store.called)


class HostileRowTest(database.DatabaseTestCase):
    """A VNF whose row Tacker's objects cannot read, next to a good one."""

    @staticmethod
    @db_api.context_manager.writer
    def _spoil(context, vnf_id, vims):
        # As Tacker stores the vimConnectionInfo of a change.
        context.session.query(models.VnfInstance).filter_by(
            id=vnf_id).update({'vim_connection_info': vims})

    def watched(self, found):
        by_vim = watch._by_vim(self.context, found)
        return [each.id for group in by_vim.values() for each in group]

    def test_it_hides_no_other(self):
        self.patch(watch, '_is_watched', return_value=True)
        for vnf_id in (base.VIM_ID, base.VNF_ID):
            self.make_vnf(vnf_id)
        for vims in ([{'id': 'x', 'vimType': 'openstack'}], ['x'], [None],
                     [{'id': 'x', 'vim_type': 'x',
                       'access_info': {'a': {'b': 1}}}]):
            self._spoil(self.context, base.VIM_ID, vims)
            found = troubles.Troubles()
            with self.assertLogs('tacker_clickos.troubles') as logs:
                self.assertEqual([base.VNF_ID], self.watched(found))
            self.assertIn(f'record of VNF {base.VIM_ID}', logs.output[0])
        with self.assertNoLogs('tacker_clickos.troubles'):
            self.watched(found)
        self._spoil(self.context, base.VIM_ID, [
            {'id': 'x', 'vim_id': 'x', 'vim_type': 'x', 'access_info': {}}])
        self.assertEqual(2, len(self.watched(found)))
