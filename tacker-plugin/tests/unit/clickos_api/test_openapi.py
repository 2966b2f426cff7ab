# SPDX-License-Identifier: Apache-2.0
"""The service keeps to its OpenAPI description; schemathesis tries it."""

import uuid

import hypothesis
import schemathesis
from schemathesis.specs.openapi import checks

from tests.unit.clickos_api import base

#: Requests to an operation; all of them take about 20 s.
_EXAMPLES = 10


class OpenApiTest(base.TestCase):
    """As a member, with a server that exists, and one that does not."""

    def setUp(self):
        super().setUp()
        for name, value in (('max_value_bytes', 100000),
                            ('max_state_bytes', 100000),
                            ('max_writes', 1024), ('max_handlers', 1024)):
            self.conf.set_override(name, value, 'clickos_api')
            self.addCleanup(self.conf.clear_override, name, 'clickos_api')
        self.app = base.app.create(self.conf)
        self.schema = schemathesis.openapi.from_wsgi('/openapi.json',
                                                     self.app)
        self.vnf_id = str(uuid.uuid4())
        self.cloud.add_vnf(self.vnf_id, self.project_id,
                           [(self.server_id, 'VDU1', 'vnfc-1')])

    def test_answers_are_as_described(self):
        for result in self.schema.get_all_operations():
            operation = result.ok()
            with self.subTest(operation=operation.label):
                self._try(operation)

    def _try(self, operation):
        known = {'servers': self.server_id, 'vnfs': self.vnf_id}
        kind = operation.path.split('/')[2]

        @hypothesis.settings(
            max_examples=_EXAMPLES, deadline=None, database=None,
            derandomize=True,
            suppress_health_check=list(hypothesis.HealthCheck))
        @hypothesis.given(case=operation.as_strategy(),
                          is_known=hypothesis.strategies.booleans())
        def send(case, is_known):
            if is_known and kind in known:
                case.path_parameters['id'] = known[kind]
            answer = case.call(headers={'X-Auth-Token': self.token})
            self.assertNotEqual(500, answer.status_code, answer.text)
            # The token of the test is good, whatever the case has. A schema
            # cannot say all that the service refuses, such as NUL.
            case.validate_response(answer, excluded_checks=[
                checks.ignored_auth, checks.positive_data_acceptance])
        send()  # pylint: disable=no-value-for-parameter  # hypothesis does


class VersionsTest(base.TestCase):
    """Documents that need no token."""

    def test_version_document(self):
        answer = self.client.get('/')
        self.assertEqual(300, answer.status_code)
        (version,) = answer.get_json()['versions']
        self.assertEqual(('v1', 'CURRENT'),
                         (version['id'], version['status']))
        self.assertEqual('http://localhost/openapi.json',
                         version['links'][1]['href'])

    def test_description(self):
        answer = self.client.get('/openapi.json')
        self.assertEqual((200, '3.1.0'), (answer.status_code,
                                          answer.get_json()['openapi']))
        self.assertEqual(401, self.client.post('/').status_code)
