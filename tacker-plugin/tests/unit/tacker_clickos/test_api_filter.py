# SPDX-License-Identifier: Apache-2.0
"""What of a PATCH reaches Tacker."""

import io
import json
import unittest

import webob
import webob.dec

from tacker_clickos import api_filter


@webob.dec.wsgify
def tacker_api(request):
    return webob.Response(body=request.body)


class FilterTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.application = api_filter.factory({})(tacker_api)

    def send(self, body, path='/vnf_instances/some-id', method='PATCH'):
        request = webob.Request.blank(path, method=method)
        request.body = (body if isinstance(body, bytes)
                        else json.dumps(body).encode())
        return request.get_response(self.application)

    def assertRefused(self, body, reason):
        response = self.send(body)
        self.assertEqual(400, response.status_int)
        self.assertIn(reason, response.json['detail'])

    def test_properties_become_text_under_the_request_key(self):
        response = self.send({'vnfInstanceName': 'n', 'metadata': {
            'clickos_properties': {'rules': ['allow icmp']}, 'a': 'b',
            'gone': None}})
        self.assertEqual(200, response.status_int)
        self.assertEqual({'vnfInstanceName': 'n', 'metadata': {
            'clickos_request': '{"rules": ["allow icmp"]}', 'a': 'b',
            'gone': None}}, response.json)

    def test_text_passes_as_it_is(self):
        body = self.send({'metadata': {'clickos_properties': '{"a": 1}'}})
        self.assertEqual('{"a": 1}',
                         body.json['metadata']['clickos_request'])

    def test_what_tacker_cannot_store(self):
        self.assertRefused({'metadata': {'x': {'y': 1}}},
                           'metadata x: Tacker can store text only, got dict')
        self.assertRefused({'metadata': {'x': [1]}}, 'got list')
        self.assertRefused({'metadata': 'x'}, 'expected an object, got str')
        self.assertRefused({'metadata': None}, 'got NoneType')

    def test_numbers_and_tackers_own_list_pass(self):
        body = {'metadata': {'n': 1, 'b': True,
                             'configmap_secret_paths': ['a']}}
        self.assertEqual(body, self.send(body).json)

    def test_keys_only_clickos_writes(self):
        for name in ('clickos_update', 'clickos_state', 'clickos_request'):
            self.assertRefused({'metadata': {name: 'x'}},
                               'metadata %s is written by ClickOS' % name)

    def test_bodies_that_are_no_objects(self):
        self.assertRefused(b'{', 'the body is not JSON')
        self.assertRefused(b'\xff', 'the body is not JSON')
        self.assertRefused(b'[' * 100000, 'the body is not JSON')
        self.assertRefused([], 'the body is not a JSON object')

    def test_limits(self):
        self.assertRefused({'metadata': {'clickos_properties': 'x' * 32769}},
                           '32769 characters, the limit is 32768')
        self.assertRefused(b' ' * (256 * 1024 + 1),
                           'the limit of 262144 bytes')

    def test_a_body_of_unsaid_length_is_not_read_to_its_end(self):
        endless = io.BytesIO(b' ' * (512 * 1024))
        request = webob.Request.blank('/vnf_instances/id', method='PATCH')
        request.environ.update({'wsgi.input': endless,
                                'wsgi.input_terminated': True})
        request.environ.pop('CONTENT_LENGTH', None)
        response = request.get_response(self.application)
        self.assertEqual(400, response.status_int)
        self.assertLess(endless.tell(), 300 * 1024)

    def test_everything_else_passes_untouched(self):
        for path, method in (('/vnf_instances', 'POST'),
                             ('/vnf_instances/id/heal', 'POST'),
                             ('/vnf_instances/id', 'DELETE'),
                             ('/subscriptions/id', 'PATCH')):
            self.assertEqual(b'{', self.send(b'{', path, method).body)
