# SPDX-License-Identifier: Apache-2.0
"""Packages of the operator's catalog, which the service gives out."""

import base64
import pathlib
import tracemalloc

from clickos_client import catalog

from tests.unit.clickos_api import base

#: Memory for a request with its log; the package has 4 MiB.
_MEMORY_BYTES = 1024 * 1024


class CatalogTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.conf.clickos_api.catalog_path)
        self.folder.mkdir()

    def put_file(self, name, content):
        """Make a package."""
        (self.folder / name).write_bytes(content)

    def test_a_package_of_any_size(self):
        for size in (0, 1, 2, 3, 48 * 1024, 48 * 1024 + 1, 200000):
            content = bytes(number % 251 for number in range(size))
            self.put_file('fw "1".csar', content)
            status, body = self.call('GET', '/v1/catalog/fw%20%221%22')
            self.assertEqual((200, 'fw "1"'), (status,
                                               body['package']['name']))
            self.assertEqual(content, base64.b64decode(
                body['package']['content'], validate=True))

    def test_a_package_is_sent_in_pieces(self):
        """Neither the package nor its text is in memory as a whole."""
        self.put_file('fw.csar', b'x' * catalog.MAX_BYTES)
        self.call('GET', '/v1/catalog/none')
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        answer = self.client.get(
            '/v1/catalog/fw', headers={'X-Auth-Token': self.token},
            buffered=False)
        self.addCleanup(answer.close)
        length = sum(len(piece) for piece in answer.response)
        self.assertEqual(answer.content_length, length)
        self.assertGreater(length, catalog.MAX_BYTES * 4 / 3)
        self.assertLess(tracemalloc.get_traced_memory()[1], _MEMORY_BYTES)

    def test_refusals(self):
        self.assertError(404, 'no-such-package', 'none: no such package',
                         self.call('GET', '/v1/catalog/none'))
        self.put_file('big.csar', b'x' * (catalog.MAX_BYTES + 1))
        self.assertError(404, 'no-such-package', 'more than 4194304 bytes',
                         self.call('GET', '/v1/catalog/big'))

    def test_a_package_that_becomes_shorter(self):
        """The text ends early, so that no client takes it for whole."""
        self.put_file('fw.csar', b'x' * 100000)
        answer = self.client.get(
            '/v1/catalog/fw', headers={'X-Auth-Token': self.token},
            buffered=False)
        self.addCleanup(answer.close)
        self.put_file('fw.csar', b'x' * 60000)
        length = sum(len(piece) for piece in answer.response)
        self.assertLess(length, answer.content_length)
