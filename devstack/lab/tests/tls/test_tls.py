# SPDX-License-Identifier: Apache-2.0
"""A running lab with TLS: what is refused on its way in."""

import http.client
import ssl
import unittest

import amqp
import kombu

from clickos_lab.config import front
from clickos_lab import paths
from clickos_lab import settings


class TlsTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.settings = settings.Settings.load(paths.State())
        self.assertIsNotNone(self.settings.authority)

    def status(self, name, context=None):
        port = self.settings.ports[name]
        connection = http.client.HTTPSConnection(
            '127.0.0.1', port, timeout=60, context=context) if context else \
            http.client.HTTPConnection('127.0.0.1', port, timeout=60)
        self.addCleanup(connection.close)
        connection.request('GET', '/')
        return connection.getresponse().status

    def trusting(self, **more):
        return ssl.create_default_context(
            cafile=self.settings.authority, **more)

    def test_each_interface_speaks_https_only(self):
        for api in front.APIS:
            self.assertEqual(400, self.status(api.name), api.name)
            self.assertLess(self.status(api.name, self.trusting()), 500,
                            api.name)

    def test_another_authority_is_not_trusted(self):
        for api in front.APIS:
            with self.assertRaises(ssl.SSLCertVerificationError,
                                   msg=api.name):
                self.status(api.name, ssl.create_default_context())

    def test_an_old_protocol_is_refused(self):
        context = self.trusting()
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
        context.set_ciphers('ALL:@SECLEVEL=0')
        with self.assertRaisesRegex(ssl.SSLError, 'PROTOCOL_VERSION'):
            self.status('keystone', context)

    def test_the_queue_speaks_tls_only(self):
        password = self.settings.passwords['rabbit_tacker']
        url = (f'amqp://tacker:{password}@127.0.0.1:'
               f'{self.settings.ports["rabbit"]}/tacker')
        with kombu.Connection(url, connect_timeout=10) as connection:
            with self.assertRaises((OSError, amqp.AMQPError)):
                connection.connect()
        trust = {'ca_certs': self.settings.authority,
                 'cert_reqs': ssl.CERT_REQUIRED}
        with kombu.Connection(url, ssl=trust) as connection:
            self.assertTrue(connection.connect().connected)
