# SPDX-License-Identifier: Apache-2.0
"""Tacker's APIs over HTTP, with operations that take several questions."""

# Not "import http.server": eventlet puts its own module in its place.
from http.server import BaseHTTPRequestHandler
from http.server import ThreadingHTTPServer
import json
import threading
import uuid

_VERBS = {'instantiate': 'INSTANTIATE', 'heal': 'HEAL', 'scale': 'SCALE',
          'terminate': 'TERMINATE', 'change_ext_conn': 'CHANGE_EXT_CONN'}
_END = {'INSTANTIATE': 'INSTANTIATED', 'TERMINATE': 'NOT_INSTANTIATED'}


class FakeTacker:
    """Keeps packages, VNFs and operations, as far as the commands see them.

    :ivar calls: (method, path below the version, body) of each change
    :ivar refused: {(method, end of the path): (status, body)}
    :ivar states: what an operation goes through, the last one lasts
    :ivar onboarding: states of a package after its upload
    """

    def __init__(self):
        self.packages, self.contents, self.vnfs = {}, {}, {}
        self.operations, self._left = [], {}
        self.calls = []
        self.refused = {}
        self.states = ['STARTING', 'PROCESSING', 'COMPLETED']
        self.onboarding = ['PROCESSING', 'ONBOARDED']
        self.vims = [{'id': 'vim-1', 'name': 'here', 'is_default': True}]
        fake = self

        class Handler(_Handler):
            """Bound to this Tacker."""

        Handler.fake = fake
        self._server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.url = f'http://127.0.0.1:{self._server.server_port}'
        threading.Thread(target=self._server.serve_forever,
                         kwargs={'poll_interval': 0.01},
                         daemon=True).start()

    def close(self):
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()

    def add_vnf(self, name, vnfd_id='vnfd', launched=True, guests=1):
        """Have a VNF; return its body."""
        vnf_id = str(uuid.uuid4())
        self.vnfs[vnf_id] = {
            'id': vnf_id, 'vnfInstanceName': name, 'vnfdId': vnfd_id,
            'instantiationState': 'INSTANTIATED' if launched
            else 'NOT_INSTANTIATED', 'metadata': {}, 'instantiatedVnfInfo': {
                'flavourId': 'simple', 'scaleStatus': [
                    {'aspectId': 'capacity', 'scaleLevel': 1}],
                'vnfcResourceInfo': [
                    {'id': f'vnfc-{number}', 'vduId': 'VDU1',
                     'computeResource': {}} for number in range(guests)]}}
        return self.vnfs[vnf_id]

    def add_package(self, content, **values):
        """Have a package that is on-boarded; return its body."""
        key = str(uuid.uuid4())
        self.contents[key] = content
        self.packages[key] = {
            'id': key, 'vnfdId': 'vnfd', 'vnfProductName': 'Firewall',
            'onboardingState': 'ONBOARDED', 'operationalState': 'ENABLED',
            **values}
        return self.packages[key]

    def verbs(self):
        """Return method and last part of the path of each change."""
        return [(method, path.rpartition('/')[2] if path.rpartition('/')[2]
                 not in {*self.vnfs, *self.packages, *self._gone} else '')
                for method, path, _ in self.calls]

    _gone = frozenset()

    def answer(self, method, path, body):
        """Return (status, body, Location)."""
        for (wanted, end), refusal in self.refused.items():
            if method == wanted and path.endswith(end):
                return (*refusal, None)
        if method != 'GET':
            self.calls.append((method, path, body))
        if path == '/v1.0/vims':
            return 200, {'vims': self.vims}, None
        kind, *rest = path.strip('/').split('/')[2:]
        return getattr(self, f'_{kind}')(method, rest, body)

    def _vnf_packages(self, method, rest, body):
        if method == 'POST':
            made = self.add_package(b'', onboardingState='CREATED', **body)
            made['operationalState'] = 'DISABLED'
            return 201, made, None
        if not rest:
            return 200, list(self.packages.values()), None
        found = self.packages[rest[0]]
        if rest[1:] and method == 'PUT':
            self.contents[rest[0]] = body
            self._left[rest[0]] = list(self.onboarding)
        elif rest[1:]:
            return 200, self.contents[rest[0]], None
        elif method == 'PATCH':
            found.update(body)
        elif method == 'DELETE':
            self._gone = {*self._gone, rest[0]}
            del self.packages[rest[0]]
        elif self._left.get(rest[0]):
            found['onboardingState'] = self._left[rest[0]].pop(0)
        return 200, found, None

    def _vnf_instances(self, method, rest, body):
        if not rest and method == 'POST':
            made = self.add_vnf(body['vnfInstanceName'], body['vnfdId'],
                                launched=False)
            return 201, made, None
        if not rest:
            return 200, list(self.vnfs.values()), None
        if rest[0] not in self.vnfs:
            return 404, {'detail': 'no such VNF'}, None
        if method == 'DELETE':
            self._gone = {*self._gone, rest[0]}
            del self.vnfs[rest[0]]
            return 204, None, None
        if method == 'GET':
            return 200, self.vnfs[rest[0]], None
        verb = _VERBS[rest[1]] if rest[1:] else 'MODIFY_INFO'
        return 202, None, self.operate(rest[0], verb)

    def operate(self, vnf_id, verb, states=None):
        """Begin an operation; return where it is."""
        key = str(uuid.uuid4())
        self.operations.append({
            'id': key, 'vnfInstanceId': vnf_id, 'operation': verb,
            'operationState': (states or self.states)[0],
            'startTime': f'2026-11-24T01:00:{len(self.operations):02}Z',
            'left': list((states or self.states)[1:])})
        return f'{self.url}/vnflcm/v1/vnf_lcm_op_occs/{key}'

    def _vnf_lcm_op_occs(self, method, rest, body):
        if method == 'POST':
            found = next(each for each in self.operations
                         if each['id'] == rest[0])
            found['left'] = (['FAILED'] if rest[1] == 'fail'
                             else ['PROCESSING', 'COMPLETED'])
            self._advance(found)
            return 202, None, None
        answer = [{key: value for key, value in each.items()
                   if key != 'left'} for each in self.operations]
        for each in self.operations:
            self._advance(each)
        return 200, answer, None

    def _advance(self, operation):
        if not operation['left']:
            return
        operation['operationState'] = operation['left'].pop(0)
        vnf = self.vnfs.get(operation['vnfInstanceId'])
        state = _END.get(operation['operation'])
        if vnf and state and operation['operationState'] == 'COMPLETED':
            vnf['instantiationState'] = state


class _Handler(BaseHTTPRequestHandler):
    fake = None

    def _do(self):
        size = int(self.headers.get('Content-Length') or 0)
        body = self.rfile.read(size)
        if self.headers.get('Content-Type') == 'application/json' and body:
            body = json.loads(body)
        self._send(*self.fake.answer(
            self.command, self.path.partition('?')[0], body))

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _do

    def _send(self, status, body, place):
        data = body if isinstance(body, bytes) else (
            b'' if body is None else json.dumps(body).encode())
        self.send_response(status)
        if place:
            self.send_header('Location', place)
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        """Keep quiet."""
