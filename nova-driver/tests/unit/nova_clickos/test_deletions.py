# SPDX-License-Identifier: Apache-2.0
"""Deletions that Nova lost."""

import datetime
from unittest import mock

import fixtures
from nova import objects

from nova_clickos import deletions
from tests.unit.nova_clickos import base

_LATER = base.STARTED + datetime.timedelta(seconds=1)


class DeletionsTest(base.TestCase):

    def setUp(self):
        super().setUp()
        # The edges are Nova's database and its queue.
        self.servers = self.useFixture(fixtures.MockPatchObject(
            objects.InstanceList, 'get_by_filters', autospec=True)).mock
        self.useFixture(fixtures.MockPatchObject(
            objects.BlockDeviceMappingList, 'get_by_instance_uuid',
            autospec=True, return_value=mock.sentinel.volumes))
        self.delete = self.useFixture(fixtures.MockPatch(
            'nova.compute.rpcapi.ComputeAPI', autospec=True)
        ).mock.return_value.terminate_instance
        self.deletions = deletions.Deletions()

    def look(self, *servers):
        self.servers.return_value = list(servers)
        self.deletions.run_once()

    def test_a_deletion_that_moves_is_left_alone(self):
        self.look(base.instance(updated_at=base.STARTED))
        self.look(base.instance(updated_at=_LATER))
        self.look()
        self.look(base.instance(updated_at=_LATER))
        self.delete.assert_not_called()

    def test_a_deletion_that_stands_is_asked_for_again(self):
        server = base.instance(updated_at=base.STARTED)
        self.look(server)
        self.delete.assert_not_called()
        self.look(server)
        self.delete.assert_called_once_with(
            mock.ANY, server, mock.sentinel.volumes)

    def test_only_deletions_of_this_host(self):
        self.look()
        self.servers.assert_called_once_with(mock.ANY, {
            'host': 'compute1', 'task_state': 'deleting', 'deleted': False})

    def test_a_look_that_fails_does_not_end_the_thread(self):
        self.deletions._stop = mock.create_autospec(
            self.deletions._stop, instance=True)
        self.deletions._stop.wait.side_effect = [False, False, True]
        self.servers.side_effect = [OSError('no queue'), []]
        self.deletions._run()
        self.assertEqual(2, self.servers.call_count)
