# SPDX-License-Identifier: Apache-2.0
"""Snapshots have the configuration and the values of their servers."""

from unittest import mock

from clickos_client import document
from clickos_client import limits
import fixtures
from nova.compute import task_states
from nova import exception as nova_exception
from nova import utils

from nova_clickos import desired_state
from nova_clickos import exception
from nova_clickos import userdata
from tests.unit.nova_clickos import base


class SnapshotTest(base.DriverTestCase):

    def setUp(self):
        super().setUp()
        self.calls = []
        self.fetch = self.useFixture(fixtures.MockPatchObject(
            desired_state.DesiredState, 'fetch', autospec=True)).mock
        self.fetch.return_value = document.Desired(
            (('fw.config', 'deny all'),))
        self.glance.get.return_value = {
            **self.glance.get.return_value, 'disk_format': 'raw',
            'container_format': 'bare', 'size': 9, 'name': 'clickos'}
        self.glance.download.side_effect = lambda *_: iter((b'eng', b'ine'))
        self.glance.update.side_effect = self._update

    def _update(self, context, image_id, metadata, content):
        self.properties = metadata.pop('properties')
        self.calls.append((image_id, metadata, content.read()))

    def snapshot(self, server=None):
        self.driver.snapshot(
            mock.sentinel.context, server or base.instance(), 'copy',
            lambda task_state, expected_state=task_states.IMAGE_SNAPSHOT:
            self.calls.append((expected_state, task_state)))

    def boot(self, text, **values):
        """Boot a server of an image with a property; return it."""
        self.glance.get.return_value['properties'] = {
            userdata.IMAGE_PROPERTY: text}
        server = base.instance(**{
            'user_data': None, 'system_metadata': {
                'image_clickos_config': utils.safe_truncate(text, 255)},
            **values})
        self.spawn(server)
        return server

    def test_the_bytes_are_those_of_the_image(self):
        self.snapshot()
        self.assertEqual(
            [('image_snapshot', 'image_pending_upload'),
             ('image_pending_upload', 'image_uploading'),
             ('copy', {'disk_format': 'raw', 'container_format': 'bare'},
              b'engine')], self.calls)
        self.glance.download.assert_called_once_with(mock.sentinel.context,
                                                     base.IMAGE)

    def test_a_server_of_it_begins_with_configuration_and_values(self):
        text = base.CONFIG + '//' + 'x' * 300
        self.snapshot(base.instance(user_data=base.document(
            config=text, writes=[['fw.log', 'on']])))
        server = self.boot(self.properties['clickos_config'])
        args = self.cosmosd.args('create')
        self.assertEqual(text, args['config'])
        self.assertEqual([['fw.log', 'on'], ['fw.config', 'deny all']],
                         args['writes'])
        # Its later starts need no image.
        self.assertEqual(text, document.parse(server.user_data).config)

    def test_a_server_may_have_its_own(self):
        server = self.boot('x' * 300, user_data=base.b64('Idle;'))
        self.assertEqual('Idle;', self.cosmosd.args('create')['config'])
        self.assertEqual(base.b64('Idle;'), server.user_data)

    def test_a_short_property_remains_one(self):
        self.assertIsNone(self.boot('Idle;').user_data)
        self.assertEqual('Idle;', self.cosmosd.args('create')['config'])

    def test_a_character_at_the_end_of_what_nova_keeps(self):
        """Nova drops it, so that fewer bytes than it keeps are left."""
        for character in '\u00e9\u20ac\U0001f600':
            for length in range(250, 256):
                text = 'x' * length + character + '; Idle;'
                self.boot(text)
                self.assertEqual(text, self.cosmosd.args('create')['config'])

    def test_a_property_that_is_longer_than_user_data(self):
        error = self.assertRaises(
            exception.GuestNotStarted, self.boot,
            'x' * (limits.USER_DATA_BYTES + 1))
        self.assertIn('at most %d' % limits.USER_DATA_BYTES,
                      error.format_message())

    def test_a_configuration_that_does_not_fit(self):
        self.fetch.return_value = document.Desired(
            (('fw.config', 'x' * limits.USER_DATA_BYTES),))
        error = self.assertRaises(exception.GuestNotStarted, self.snapshot)
        self.assertIn('snapshot: the configuration', error.format_message())
        self.glance.update.assert_not_called()

    def test_values_of_secrets_are_no_part_of_it(self):
        self.fetch.return_value = document.Desired(
            (('fw.config', 'clickos-secret:1'),), secrets=mock.Mock(
                values={'1': 'hidden'}))
        self.snapshot()
        self.assertNotIn('hidden', str(self.properties))

    def test_a_shelved_server_keeps_both_elsewhere(self):
        self.snapshot(base.instance(task_state=task_states.SHELVING))
        self.assertEqual({}, self.properties)
        self.fetch.assert_not_called()

    def test_an_image_that_is_too_large(self):
        self.conf.config(group='clickos', max_image_mib=1)
        self.glance.download.side_effect = lambda *_: iter(
            (b'x' * (1 << 20), b'x'))
        error = self.assertRaises(exception.GuestNotStarted, self.snapshot)
        self.assertIn('max_image_mib', error.format_message())
        self.glance.update.assert_not_called()

    def test_an_image_that_is_gone(self):
        self.glance.get.side_effect = nova_exception.ImageNotFound(
            image_id=base.IMAGE)
        self.assertRaises(nova_exception.ImageNotFound, self.snapshot)

    def test_what_nova_cut_is_no_configuration(self):
        """The property is gone, and only its beginning is known."""
        self.glance.get.return_value['properties'] = {}
        server = base.instance(user_data=None, system_metadata={
            'image_clickos_config': 'x' * 255})
        error = self.assertRaises(exception.GuestNotStarted, self.spawn,
                                  server)
        self.assertIn('image property', error.format_message())
