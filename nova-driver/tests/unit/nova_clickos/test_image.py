# SPDX-License-Identifier: Apache-2.0
"""Images: a process host takes the engine's, a Xen host is given any."""

import hashlib
from unittest import mock

from cosmos_client import CosmosClient
import fixtures

from nova_clickos import exception
from nova_clickos import image
from tests.unit import cosmosd
from tests.unit.nova_clickos import base

ENGINE = b'engine' * 1000
SHA256 = hashlib.sha256(ENGINE).hexdigest()


class ImagesTestCase(base.TestCase):

    def setUp(self):
        super().setUp()
        self.cosmosd = self.useFixture(cosmosd.FakeCosmosd())
        self.glance = self.useFixture(fixtures.MockPatch(
            'nova.image.glance.API', autospec=True)).mock.return_value
        self.glance.get.return_value = {
            'os_hash_algo': 'sha512', 'os_hash_value': 'x',
            'size': len(ENGINE)}
        self.glance.download.side_effect = lambda *_: iter(
            (ENGINE[:7], ENGINE[7:]))
        self.images = image.Images(CosmosClient(self.cosmosd.path))


class RequireTest(ImagesTestCase):

    def require(self, image_id=base.IMAGE, engine=SHA256, kind='process'):
        return self.images.require(
            mock.sentinel.context, image_id,
            {'host_kind': kind, 'engine_sha256': engine})

    def refused(self, *parts, **values):
        error = self.assertRaises(exception.GuestNotStarted, self.require,
                                  **values)
        for part in parts:
            self.assertIn(part, error.format_message())

    def test_bytes_are_hashed(self):
        self.assertEqual(SHA256, self.require(engine=SHA256.upper()))
        self.glance.download.assert_called_once_with(mock.sentinel.context,
                                                     base.IMAGE)

    def test_hashed_once(self):
        self.require()
        self.require()
        self.glance.download.assert_called_once()

    def test_cached_verdict_follows_the_engine(self):
        self.require()
        self.refused('is not the ClickOS engine', engine='00' * 32)

    def test_cache_is_bounded(self):
        for i in range(image.Images._CACHED + 1):
            self.require('image-%d' % i)
        self.require('image-%d' % i)
        self.assertEqual(i + 1, self.glance.download.call_count)
        self.require('image-0')
        self.assertEqual(i + 2, self.glance.download.call_count)

    def test_sha256_of_glance_saves_the_download(self):
        self.glance.get.return_value = {'os_hash_algo': 'sha256',
                                        'os_hash_value': SHA256.upper()}
        self.assertEqual(SHA256, self.require())
        self.glance.download.assert_not_called()

    def test_tenants_own_image(self):
        self.glance.download.side_effect = lambda *_: iter((b'\x7fELF',))
        self.refused(base.IMAGE, 'not the ClickOS engine', SHA256[:12])

    def test_a_xen_host_runs_what_it_is_given(self):
        for engine in (None, '00' * 32):
            self.assertEqual(SHA256, self.require(engine=engine, kind='xen'))

    def test_volume(self):
        for nothing in (None, ''):
            self.refused('boot from volume', image_id=nothing)

    def test_announced_size_too_large(self):
        self.glance.get.return_value['size'] = (64 << 20) + 1
        self.refused('67108865 bytes', 'max_image_mib')
        self.glance.download.assert_not_called()

    def test_size_lied_about(self):
        chunks = iter([b'\0' * (1 << 20)] * 1000)
        self.glance.download.side_effect = lambda *_: chunks
        self.conf.config(group='clickos', max_image_mib=2)
        self.refused('max_image_mib')
        self.assertEqual(997, len(list(chunks)))


class ProvideTest(ImagesTestCase):

    def provide(self, kind='xen', engine=None):
        self.cosmosd.host_kind = kind
        return self.images.provide(
            mock.sentinel.context, base.IMAGE, SHA256,
            {'host_kind': kind, 'engine_sha256': engine})

    def test_a_xen_host_is_given_it_once(self):
        self.assertTrue(self.provide())
        self.assertEqual({SHA256: ENGINE}, self.cosmosd.images)
        self.assertFalse(self.provide())
        self.glance.download.assert_called_once()

    def test_what_is_installed_is_not_sent(self):
        self.provide(engine=SHA256)
        self.provide(kind='process', engine=SHA256)
        self.assertEqual([], self.cosmosd.requests)

    def test_bytes_that_changed_on_the_way(self):
        self.glance.download.side_effect = lambda *_: iter(
            (b'x' * len(ENGINE),))
        error = self.assertRaises(exception.GuestNotStarted, self.provide)
        self.assertIn('wrong sum', error.format_message())
        self.assertEqual({}, self.cosmosd.images)

    def test_a_full_disk_lets_nova_try_the_next_host(self):
        self.cosmosd.faults['image-add'] = ('internal', 'no space')
        self.assertRaises(exception.HostCannotStart, self.provide)
