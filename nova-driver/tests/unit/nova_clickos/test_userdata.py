# SPDX-License-Identifier: Apache-2.0
"""user_data: both forms, every refusal."""

import base64
import json

from clickos_client import document as client
from clickos_client import limits
import testtools

from nova_clickos import exception
from nova_clickos import userdata
from tests.unit.nova_clickos import base
from tests.unit.nova_clickos.base import b64
from tests.unit.nova_clickos.base import CONFIG
from tests.unit.nova_clickos.base import document


class ParseTest(testtools.TestCase):

    def refused(self, user_data, *parts):
        error = self.assertRaises(exception.GuestNotStarted, userdata.parse,
                                  user_data)
        for part in parts:
            self.assertIn(part, error.format_message())

    def test_text(self):
        self.assertEqual(client.Configuration(CONFIG, 'user_data', ()),
                         userdata.parse(b64(CONFIG)))

    def test_text_in_lines(self):
        encoded = base64.encodebytes(CONFIG.encode() * 9).decode()
        self.assertIn('\n', encoded.strip())
        self.assertEqual(CONFIG * 9, userdata.parse(encoded).config)

    def test_text_beginning_with_a_compound_element(self):
        text = '{ input -> output } -> Discard;'
        self.assertEqual(text, userdata.parse(b64(text)).config)

    def test_document(self):
        found = userdata.parse(document(config_name='fw.click',
                                        writes=[['fw.config', 'deny all']]))
        self.assertEqual(
            client.Configuration(CONFIG, 'fw.click',
                                 (('fw.config', 'deny all'),)), found)

    def test_missing(self):
        for nothing in (None, ''):
            self.refused(nothing, 'needs its Click configuration')
        self.refused(b64(' \n'), 'configuration is missing')

    def test_not_base64(self):
        self.refused('###', 'not base64')

    def test_not_utf8(self):
        self.refused(base64.b64encode(b'ab\xff').decode(), 'byte 2')

    def test_limit_is_inclusive(self):
        self.assertEqual(
            limits.USER_DATA_BYTES,
            len(userdata.parse(b64('x' * limits.USER_DATA_BYTES)).config))
        self.refused(b64('x' * (limits.USER_DATA_BYTES + 1)), '49153 bytes',
                     '49152')

    def test_bad_json_names_the_place(self):
        self.refused(b64('{"clickos": 1,\n "config" 7}'), 'user_data:2:11')

    def test_deep_json(self):
        self.refused(b64('{"a":' * 4000 + '1' + '}' * 4000),
                     'not usable as JSON')

    def test_version(self):
        for version in (2, '1', None, True):
            self.refused(document(clickos=version), '"clickos": expected 1')

    def test_unknown_key(self):
        self.refused(document(confg='x'), 'unknown key "confg"')

    def test_config_name(self):
        for name in ('', 'a b', 'x' * 65, 7, '../x', 'a\n'):
            self.refused(document(config_name=name), '"config_name"')

    def test_config(self):
        for config in (None, 7, ' ', ['x']):
            self.refused(document(config=config), 'user_data: config')
        self.refused(document(config='a\0'), 'NUL')
        self.refused(document(config='a\ud800'), 'surrogate')

    def test_writes(self):
        for writes in ('x', {'a': 'b'}, [['a.b', '']] * (limits.WRITES + 1)):
            self.refused(document(writes=writes), '"writes": expected a list')
        for write in ('ab', ['a.b'], ['a.b', 1], ['', 'x'], ['a' * 256, 'x'],
                      None):
            self.refused(document(writes=[['a.b', ''], write]), '"writes"[1]')
        self.refused(document(writes=[['a.b', 'x\0']]), '"writes"[0]', 'NUL')

    def test_document_is_not_a_number(self):
        # It looks like a document, so its own errors are reported.
        self.refused(b64('{"clickos": ' + '9' * 5000 + '}'), 'user_data')


class UpdatedTest(testtools.TestCase):

    def test_newer_writes_replace_by_handler(self):
        first = userdata.parse(b64(json.dumps({
            'clickos': 1, 'config': CONFIG,
            'writes': [['a.x', '1'], ['b.y', '2'], ['a.x', '3']]})))
        found = first.updated((('c.z', '4'), ('a.x', '5')))
        self.assertEqual((('b.y', '2'), ('c.z', '4'), ('a.x', '5')),
                         found.writes)
        self.assertEqual(CONFIG, found.config)

    def test_nothing_newer(self):
        first = client.Configuration(CONFIG, writes=(('a.x', '1'),))
        self.assertEqual(first, first.updated(()))


class ImagePropertyTest(testtools.TestCase):
    """A server without user_data has the configuration of its image."""

    def read(self, text, user_data=None):
        return userdata.of_instance(base.instance(
            user_data=user_data,
            system_metadata={'image_clickos_config': text}))

    def test_the_image_has_the_configuration(self):
        self.assertEqual(client.Configuration(CONFIG, 'clickos_config', ()),
                         self.read(CONFIG))

    def test_user_data_comes_first(self):
        self.assertEqual(client.Configuration(CONFIG, 'user_data', ()),
                         self.read('Idle -> Discard;', b64(CONFIG)))

    def test_neither(self):
        for nothing in ('', None):
            error = self.assertRaises(exception.GuestNotStarted, self.read,
                                      nothing)
            self.assertIn('needs its Click configuration',
                          error.format_message())

    def test_what_nova_may_have_cut_is_refused(self):
        whole = 'x' * 249 + '\u00e9'
        self.assertEqual(whole, self.read(whole).config)
        error = self.assertRaises(exception.GuestNotStarted, self.read,
                                  whole + 'x')
        self.assertIn('at most 251 bytes', error.format_message())

    def test_a_document_with_writes(self):
        found = self.read('{"clickos": 1, "config": "a :: Counter;", '
                          '"writes": [["a.reset", ""]]}')
        self.assertEqual((('a.reset', ''),), found.writes)
