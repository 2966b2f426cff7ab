# SPDX-License-Identifier: Apache-2.0
"""A cloud for the pages: Tacker and clickos-api behind their HTTP."""

import io
import json
import pathlib
import sys
from unittest import mock
from urllib import parse

import requests
from requests import adapters

_TEMPLATES = pathlib.Path(__file__).parents[4] / 'vnfd-templates'
sys.path.append(str(_TEMPLATES))

TACKER, CLICKOS = 'http://tacker.test', 'http://clickos.test'
PACKAGE = '11111111-1111-4111-8111-111111111111'
VNFD = '22222222-2222-4222-8222-222222222222'
VNF = '33333333-3333-4333-8333-333333333333'
SERVER = '44444444-4444-4444-8444-444444444444'
VNFC = '55555555-5555-4555-8555-555555555555'
OPERATION = '66666666-6666-4666-8666-666666666666'


def csar(template='firewall'):
    """Return the bytes of a template's package."""
    import build_csar
    packed = io.BytesIO()
    build_csar.write(packed, build_csar.collect(_TEMPLATES / template))
    return packed.getvalue()


def templates():
    """Return the names of all templates."""
    return sorted(path.parent.name
                  for path in _TEMPLATES.glob('*/Definitions'))


def package(**changes):
    """Return a package as Tacker shows it."""
    return {'id': PACKAGE, 'vnfdId': VNFD, 'onboardingState': 'ONBOARDED',
            'operationalState': 'ENABLED', 'usageState': 'NOT_IN_USE',
            'vnfProductName': 'Firewall', 'vnfSoftwareVersion': '1.0',
            'vnfProvider': 'ClickOS', **changes}


def vnf(**changes):
    """Return a launched VNF of one guest as Tacker shows it."""
    return {'id': VNF, 'vnfInstanceName': 'edge', 'vnfdId': VNFD,
            'vnfInstanceDescription': '', 'vnfProductName': 'Firewall',
            'vnfSoftwareVersion': '1.0',
            'instantiationState': 'INSTANTIATED',
            'metadata': {
                'clickosProperties': '{"rules": ["allow icmp"]}',
                'clickosState': json.dumps({VNFC: 'ACTIVE'})},
            'instantiatedVnfInfo': {
                'flavourId': 'simple', 'vnfcResourceInfo': [{
                    'id': VNFC, 'vduId': 'VDU1',
                    'computeResource': {'resourceId': SERVER}}]}, **changes}


def operation(**changes):
    """Return an operation as Tacker shows it."""
    return {'id': OPERATION, 'vnfInstanceId': VNF,
            'operation': 'INSTANTIATE', 'operationState': 'COMPLETED',
            'operationParams': '{"flavourId": "simple"}',
            'startTime': '2026-01-01 00:00:00', **changes}


#: Lists of which Tacker returns a page unless all are wanted, here of one.
_PAGED = ('/vnfpkgm/', '/vnflcm/')


class Cloud(adapters.BaseAdapter):
    """Answers requests from a table; remembers those that change.

    :ivar answers: {'GET /path': body, or (status, body), or bytes}
    :ivar changes: [(method, path, body)]
    :ivar after: {method: answers after a request with this method}
    """

    def __init__(self):
        super().__init__()
        self.changes, self.after = [], {}
        self.answers = {
            'GET /v1.0/vims': {'vims': [{'id': 'vim-id', 'name': 'here'}]},
            'GET /vnfpkgm/v1/vnf_packages': [package()],
            f'GET /vnfpkgm/v1/vnf_packages/{PACKAGE}': package(),
            f'GET /vnfpkgm/v1/vnf_packages/{PACKAGE}/package_content': csar(),
            'GET /vnflcm/v1/vnf_instances': [vnf()],
            f'GET /vnflcm/v1/vnf_instances/{VNF}': vnf(),
            'GET /vnflcm/v1/vnf_lcm_op_occs': [operation()],
            **{f'GET /v1/servers/{SERVER}/{rest}': body
               for rest, body in _GUEST.items()}}

    def send(self, request, **kwargs):
        """Answer one request."""
        path = parse.urlsplit(request.url).path
        is_read = request.method == 'GET' or path.endswith('/reads')
        if not is_read:
            self.changes.append((request.method, path, _body(request)))
            self.answers.update(self.after.get(request.method, {}))
        wanted = self._reads(path, _body(request)) if path.endswith(
            '/reads') else self.answers.get(f'{request.method} {path}')
        status, body = wanted if isinstance(wanted, tuple) else (
            404 if wanted is None and is_read else 200,
            wanted)
        if isinstance(body, list) and path.startswith(_PAGED) and (
                'all_records=yes' not in request.url):
            body = body[:1]
        answer = requests.Response()
        answer.status_code, answer.request = status, request
        answer.url = request.url
        if not isinstance(body, bytes):
            answer.headers['Content-Type'] = 'application/json'
        answer.raw = io.BytesIO(body if isinstance(body, bytes)
                                else json.dumps(body).encode())
        return answer

    def _reads(self, path, body):
        """Return what several reads bring: the answers to single ones."""
        found = [(name, self.answers.get(
            f'GET {path.removesuffix("/reads")}/handlers/{name}'))
            for name in body['names']]
        return {'values': [each or {'name': name, 'error': {
            'code': 'no-such-handler', 'message': name, 'status': 404}}
            for name, each in found]}

    def close(self):
        """Hold nothing."""

    def in_place(self):
        """Return a patch that sends every request here."""
        return mock.patch.object(requests.Session, 'get_adapter',
                                 autospec=True, return_value=self)


_GUEST = {
    'events': {'events': [{
        'request_id': 'req-1', 'action': 'create', 'result': 'Error',
        'finished_at': None, 'details': 'fw.click:1:1: unknown class'}]},
    'ports': {'ports': [{
        'id': 'port', 'mac_address': 'fa:16:3e:00:00:01', 'link_up': True,
        'counters': {'rx_packets': 10, 'rx_bytes': 600, 'tx_packets': 20,
                     'tx_bytes': 1200, 'dropped_guard': 3,
                     'dropped_full': 0}}]},
    'handlers': {'handlers': [
        {'name': 'fw.config', 'read': True, 'write': True},
        {'name': 'fw.hits', 'read': True, 'write': False},
        {'name': 'fw.log', 'read': True, 'write': False}]},
    'handlers/fw.log': {'name': 'fw.log', 'value': (
        '1500 2 6 10.0.0.1 5 10.0.0.2 81 deny tcp dst port 81\n'
        '2500 1 17 ::1 5 ::2 53 no rule matches\n')},
    'handlers/fw.config': {'name': 'fw.config', 'value': 'allow icmp'},
    'handlers/fw.hits': {'name': 'fw.hits', 'value': '3\tallow icmp'},
    'handlers/config': {'name': 'config', 'value': 'fw :: IPFilter;'},
    'handlers/graph': {'name': 'graph', 'value': (
        'watched_ns 1000000000\nelement a Idle 0\nelement b Discard 4\n'
        'connection a 0 b 0 push 10 600\n')}}


def _body(request):
    body = request.body
    try:
        return json.loads(body) if body else None
    except ValueError:
        return body
