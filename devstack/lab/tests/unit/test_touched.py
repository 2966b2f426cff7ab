# SPDX-License-Identifier: Apache-2.0
"""An API that no test of ``make test`` touches is named."""

import contextlib
import io
import unittest

from clickos_lab.suites import touched

_ID = '3c8b4e8e-52e4-4c1e-9d33-4cf1b7a10a55'
_TEMPEST = ('2026-11-28 10:00:00.000 7 INFO tempest.lib.common.rest_client '
            '[-] Request (HandlersTest:test_list): {} {} '
            'http://127.0.0.1:9000{} 0.052s\n')


class TouchedTest(unittest.TestCase):

    def assertTouched(self, operation, *lines):
        """Check that lines of a log touch just one operation."""
        found = set(touched.untouched(''))
        self.assertIn(operation, found)
        self.assertEqual({operation},
                         found - set(touched.untouched(''.join(lines))))

    def assertUntouched(self, *lines):
        self.assertEqual(touched.untouched(''),
                         touched.untouched(''.join(lines)))

    def test_all_kinds_of_apis_are_known(self):
        found = touched.untouched('')
        self.assertGreater(len(found), 100)
        for each in ('GET /v1/servers/{}/handlers',
                     'POST /vnflcm/v1/vnf_instances/{}/scale',
                     'POST /v2.1/servers/{}/action reboot',
                     'POST /v2.0/sfc/port_chains',
                     'openstack clickos vnf show'):
            self.assertIn(each, found)

    def test_requests_of_tempest(self):
        self.assertTouched(
            'POST /vnflcm/v1/vnf_instances/{}/heal', _TEMPEST.format(
                202, 'POST', f'/vnflcm/v1/vnf_instances/{_ID}/heal'))

    def test_requests_of_others(self):
        self.assertTouched(
            'POST /v1/states/{}/starts',
            f'127.0.0.1 POST /v1/states/{_ID}/starts 200 12 ms\n')

    def test_a_vnf_is_as_good_as_a_server(self):
        self.assertTouched(
            'GET /v1/servers/{}/handlers/{}',
            f'127.0.0.1 GET /v1/vnfs/{_ID}/handlers/fw.config?vnfc=VDU1 200'
            ' 12 ms\n')

    def test_actions_of_nova(self):
        self.assertTouched(
            'POST /v2.1/servers/{}/action reboot',
            _TEMPEST.format(202, 'POST', f'/v2.1/servers/{_ID}/action'),
            "2026-11-28 DEBUG Request - Headers: {'X-Auth-Token': "
            "'<omitted>'}\n        Body: {\"reboot\": {\"type\": "
            '"HARD"}}\n')

    def test_commands(self):
        line = '2026-11-28 INFO cli openstack clickos vnf show edge: exit' \
            ' status {}\n'
        self.assertTouched('openstack clickos vnf show', line.format(0))
        self.assertUntouched(line.format(1))

    def test_a_failure_touches_nothing(self):
        self.assertUntouched(
            _TEMPEST.format(500, 'GET', '/v1/secrets'),
            '127.0.0.1 GET /v1/secrets 404 12 ms\n')

    def test_what_is_missing_is_printed_and_fails(self):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            self.assertEqual(1, touched.check(''))
        self.assertIn('not touched: GET /v1/secrets\n', printed.getvalue())
