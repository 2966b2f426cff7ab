# SPDX-License-Identifier: Apache-2.0
"""What the clients have in common."""

import json

from tempest.lib.common import rest_client


class Client(rest_client.RestClient):
    """JSON in, JSON out; refusals as tempest.lib.exceptions."""

    def _error_checker(self, resp, resp_body):
        """Read Tacker's problem documents as the JSON they are."""
        if resp.get('content-type', '').startswith(
                'application/problem+json'):
            resp['content-type'] = 'application/json'
        super()._error_checker(resp, resp_body)

    def call(self, method, url, expected, body=None, headers=None):
        """Send a request; return (headers, decoded body or None).

        :param body: what is sent as JSON; bytes are sent as they are
        :param expected: the HTTP status, or several
        :param headers: in place of those for JSON
        """
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body)
        resp, text = self.request(method, url, headers=headers, body=body)
        self.expected_success(expected, resp.status)
        return resp, json.loads(text) if text else None
