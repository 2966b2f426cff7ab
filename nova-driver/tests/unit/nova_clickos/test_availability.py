# SPDX-License-Identifier: Apache-2.0
"""The compute service of a host that cannot start guests now."""

from unittest import mock

import fixtures
from nova import exception as nova_exception
from nova import objects
from nova.virt import virtapi

from nova_clickos import availability
from tests.unit.nova_clickos import base


class AvailabilityTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.service = objects.Service(
            disabled=False, disabled_reason=None,
            compute_node=objects.ComputeNode(uuid=base.UUID))
        # The edge is Nova's database.
        self.lookup = self.useFixture(fixtures.MockPatchObject(
            objects.Service, 'get_by_compute_host', autospec=True,
            return_value=self.service)).mock
        self.save = self.useFixture(fixtures.MockPatchObject(
            objects.Service, 'save', autospec=True)).mock
        self.virtapi = mock.create_autospec(virtapi.VirtAPI, instance=True)
        self.availability = availability.Availability(self.virtapi)

    def test_lost_and_found(self):
        self.availability.lost('gone')
        self.assertTrue(self.service.disabled)
        self.assertEqual('AUTO: cosmosd: gone', self.service.disabled_reason)
        self.availability.found()
        self.assertFalse(self.service.disabled)
        self.assertIsNone(self.service.disabled_reason)
        self.assertEqual(2, self.save.call_count)
        self.assertEqual(
            [mock.call(mock.ANY, base.UUID, False),
             mock.call(mock.ANY, base.UUID, True)],
            self.virtapi.update_compute_provider_status.mock_calls)
        self.lookup.assert_called_with(mock.ANY, 'compute1')

    def test_the_reason_is_that_of_now(self):
        for reason in ('valed is away', 'no space', 'no space'):
            self.availability.lost(reason)
            self.assertEqual('AUTO: cosmosd: ' + reason,
                             self.service.disabled_reason)
        self.assertEqual(2, self.save.call_count)
        # Placement knows since the first.
        self.virtapi.update_compute_provider_status.assert_called_once()

    def test_operators_decision_stays(self):
        self.service.disabled = True
        self.service.disabled_reason = 'new disk'
        self.availability.lost('gone')
        self.availability.found()
        self.save.assert_not_called()
        self.assertEqual('new disk', self.service.disabled_reason)

    def test_disabled_without_a_reason_stays(self):
        self.service.disabled = True
        self.availability.found()
        self.assertTrue(self.service.disabled)

    def test_nothing_to_change(self):
        self.availability.found()
        self.save.assert_not_called()

    def test_reason_fits_the_column(self):
        self.availability.lost('x' * 999)
        self.assertEqual(255, len(self.service.disabled_reason))

    def test_not_registered_yet(self):
        self.lookup.side_effect = nova_exception.ComputeHostNotFound(host='x')
        self.availability.found()
        self.save.assert_not_called()

    def test_placement_away(self):
        self.virtapi.update_compute_provider_status.side_effect = \
            nova_exception.ResourceProviderUpdateFailed(url='x', error='y')
        self.availability.lost('gone')
        self.assertTrue(self.service.disabled)
