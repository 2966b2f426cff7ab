# SPDX-License-Identifier: Apache-2.0
"""Keystone, Nova and Tacker as far as clickos-api asks them, over HTTP."""

# Not "import http.server": eventlet, which Tacker's tests in the same process
# load, puts its own module under that name.
from http.server import BaseHTTPRequestHandler
from http.server import ThreadingHTTPServer
import json
import re
import threading
import urllib.parse

SERVICE_TOKEN = 'the-service-token'
_FILTER = re.compile(r'\(eq,(\w+),([^,)]+)\)')


class FakeCloud:
    """Answers as the services do, from what a test put into it."""

    def __init__(self):
        self.servers = {}
        self.vnfs = {}
        self.operations = []
        self.scalings = []
        self.networking = {}
        #: {server: {request: [event]}}, the newest first
        self.actions = {}
        #: of Neutron's agents and Glance's images, for an administrator
        self.lists = {'agents': [], 'images': []}
        #: entries of a page of them
        self.page = 1000
        self.projects = {}
        self.failing = False
        #: connections that end before the answer
        self.dropped = 0
        self.asked = []
        cloud = self

        class Handler(_Handler):
            """Bound to this cloud."""

        Handler.cloud = cloud
        self._server = ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.url = f'http://127.0.0.1:{self._server.server_port}'
        self._thread = threading.Thread(target=self._server.serve_forever,
                                        kwargs={'poll_interval': 0.01},
                                        daemon=True)
        self._thread.start()

    def close(self):
        """Stop answering."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def add_server(self, server_id, project_id, host='host1'):
        """Make a server."""
        self.servers[server_id] = {
            'id': server_id, 'tenant_id': project_id, 'status': 'ACTIVE',
            'OS-EXT-SRV-ATTR:host': host}

    def add_vnf(self, vnf_id, project_id, guests, state='INSTANTIATED'):
        """Make a VNF of guests, a list of (server id, VDU, VNFC id)."""
        self.vnfs[vnf_id] = (project_id, {
            'id': vnf_id, 'instantiationState': state,
            'instantiatedVnfInfo': {'vnfcResourceInfo': [
                {'id': vnfc, 'vduId': vdu,
                 'computeResource': {'resourceId': server_id}}
                for server_id, vdu, vnfc in guests]}})

    def add_chain(self, chain_id, project_id, host='host1', groups=()):
        """Make a port chain of an empty group, one with a pair, and more."""
        for kind, key, values in (
                ('port_chains', chain_id,
                 {'port_pair_groups': ['none', 'some', *groups],
                  'flow_classifiers': ['any', 'named']}),
                ('flow_classifiers', 'any', {'logical_source_port': None}),
                ('flow_classifiers', 'named',
                 {'logical_source_port': 'port'}),
                ('port_pair_groups', 'none', {'port_pairs': []}),
                ('port_pair_groups', 'some', {'port_pairs': ['pair']}),
                *(('port_pair_groups', group, {'port_pairs': []})
                  for group in groups),
                ('port_pairs', 'pair', {'ingress': 'port'}),
                ('ports', 'port', {'binding:host_id': host})):
            self.networking[kind, key] = {
                'id': key, 'project_id': project_id, **values}

    def add_port(self, port_id, project_id, network_id, owner=None, **values):
        """Make a port, and its network of an owner, by default the same."""
        self.networking['ports', port_id] = {
            'id': port_id, 'project_id': project_id, 'network_id': network_id,
            'binding:host_id': '', 'binding:profile': {}, **values}
        self.networking['networks', network_id] = {
            'id': network_id, 'project_id': owner or project_id}

    def update_port(self, port_id, token, values):
        """Change a port; the service alone may, with its own token."""
        if token != SERVICE_TOKEN:
            return 403, {}
        port = self.networking['ports', port_id]
        port.update(values)
        return 200, {'port': port}

    def _actions(self, path, admin):
        """Answer as Nova: details are for administrators."""
        server_id, _, request_id = path.partition('/servers/')[2].replace(
            '/os-instance-actions', '').partition('/')
        found = self.actions.get(server_id, {})
        if not request_id:
            return 200, {'instanceActions': [
                {'request_id': each, 'action': 'reboot'} for each in found]}
        events = [event if admin else {**event, 'details': None}
                  for event in found.get(request_id, ())]
        return 200, {'instanceAction': {
            'request_id': request_id, 'action': 'reboot', 'events': events}}

    def _neutron(self, kind, key, query, project_id, admin):
        kind = kind.rpartition('/')[2]
        if query:
            asked = urllib.parse.parse_qs(query)
            return 200, {key: [
                {name: found[name] for name in asked['fields']}
                for (each, thing_id), found in self.networking.items()
                if each == key and thing_id in asked['id']
                and (admin or found['project_id'] == project_id)]}
        found = self.networking.get((kind, key))
        if not found or not admin and found['project_id'] != project_id:
            return 404, {}
        return 200, {kind[:-1]: found}

    def _page(self, name, query):
        """Return a page as Glance does: with the path of the next one."""
        begin = int(urllib.parse.parse_qs(query).get('marker', ['0'])[0])
        end = begin + self.page
        more = {'next': f'/v2/{name}?marker={end}'} if end < len(
            self.lists[name]) else {}
        return {name: self.lists[name][begin:end], **more}

    def scale(self, vnf_id, body):
        """Take a request to scale; more than 3 steps are refused."""
        self.scalings.append((vnf_id, body))
        if body['numberOfSteps'] > 3:
            return 400, {'detail': 'can not scale\x1b_out'}
        return 202, {}

    def answer(self, path, token):
        """Return (status, body) for a GET."""
        self.asked.append((path, token))
        if self.failing:
            return 500, {}
        admin = token == SERVICE_TOKEN
        project_id = self.projects.get(token)
        if not admin and project_id is None:
            return 401, {}
        path, _, query = path.partition('?')
        kind, _, thing_id = path.strip('/').rpartition('/')
        if kind.endswith('/os-instance-actions') or \
                thing_id == 'os-instance-actions':
            return self._actions(path, admin)
        if kind == 'nova/servers' and thing_id in self.servers:
            server = dict(self.servers[thing_id])
            if not admin:
                server.pop('OS-EXT-SRV-ATTR:host')
                server.pop('OS-EXT-SRV-ATTR:user_data', None)
            if admin or server['tenant_id'] == project_id:
                return 200, {'server': server}
        if admin and thing_id in self.lists:
            return 200, self._page(thing_id, query)
        if kind.startswith('neutron/'):
            return self._neutron(kind, thing_id, query, project_id,
                                 admin)
        if thing_id == 'vnf_lcm_op_occs':
            return 200, _listed([
                each for each in self.operations
                if self.vnfs[each['vnfInstanceId']][0] == project_id], query)
        if thing_id == 'vnf_instances':
            return 200, _listed([vnf for owner, vnf in self.vnfs.values()
                                 if owner == project_id], query)
        if kind.endswith('vnf_instances') and thing_id in self.vnfs:
            owner, vnf = self.vnfs[thing_id]
            if owner == project_id:
                return 200, vnf
        return 404, {}


def _listed(bodies, query):
    """List as Tacker does: filtered, and one page unless all are wanted.

    A page holds a single one here.
    """
    wanted = dict(urllib.parse.parse_qsl(query))
    found = _FILTER.fullmatch(wanted.get('filter', ''))
    if found:
        bodies = [each for each in bodies if each[found[1]] == found[2]]
    return bodies if wanted.get('all_records') == 'yes' else bodies[:1]


class _Handler(BaseHTTPRequestHandler):
    cloud = None

    def do_GET(self):
        """Answer Nova's and Tacker's requests, and version discovery."""
        if self.path.startswith('/keystone'):
            self._send(200, {'version': {
                'id': 'v3.14', 'status': 'stable', 'links': [
                    {'rel': 'self',
                     'href': self.cloud.url + '/keystone/v3/'}]}})
            return
        if self.cloud.dropped:
            self.cloud.dropped -= 1
            return
        self._send(*self.cloud.answer(self.path,
                                      self.headers['X-Auth-Token']))

    def do_POST(self):
        """Issue the service's token, or scale a VNF."""
        body = self.rfile.read(int(self.headers['Content-Length']))
        if self.path.endswith('/scale'):
            self._send(*self.cloud.scale(self.path.split('/')[-2],
                                         json.loads(body)))
            return
        self._send(201, {'token': {
            'methods': ['password'], 'expires_at': '2099-01-01T00:00:00Z',
            'issued_at': '2020-01-01T00:00:00Z',
            'user': {'id': 'u', 'name': 'clickos', 'domain': {
                'id': 'default', 'name': 'Default'}},
            'project': {'id': 'p', 'name': 'service', 'domain': {
                'id': 'default', 'name': 'Default'}},
            'roles': [{'id': 'r', 'name': 'admin'}],
            'catalog': [self._service('compute', '/nova'),
                        self._service('network', '/neutron'),
                        self._service('image', '/glance'),
                        self._service('nfv-orchestration', '/tacker')]}})

    def do_PUT(self):
        """Change a port of Neutron."""
        body = self.rfile.read(int(self.headers['Content-Length']))
        self._send(*self.cloud.update_port(
            self.path.rpartition('/')[2], self.headers['X-Auth-Token'],
            json.loads(body)['port']))

    def _service(self, kind, path):
        return {'type': kind, 'name': kind, 'id': kind, 'endpoints': [
            {'id': kind, 'interface': 'public', 'region': 'R',
             'region_id': 'R', 'url': self.cloud.url + path}]}

    def _send(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        if status == 201:
            self.send_header('X-Subject-Token', SERVICE_TOKEN)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args):
        """Keep quiet."""
