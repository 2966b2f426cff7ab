# SPDX-License-Identifier: Apache-2.0
"""The service as it runs, its neighbours replaced at the network's edge.

Keystone, Nova and Tacker are a small HTTP server, the agent is a real RPC
server on oslo.messaging's in-memory transport, the database is SQLite.
"""

import functools
import os
import tempfile
import unittest
import uuid

from clickos_client import rpc
from clickos_client import timing
from cryptography import fernet
import fixtures
from keystonemiddleware import fixture as ksm_fixture
from oslo_config import cfg
import oslo_messaging as messaging

from clickos_api import app
from clickos_api import conf as api_conf
from clickos_api.db import manage
from tests.unit.clickos_api import fake_cloud

SETTINGS = """
[DEFAULT]
transport_url = fake:///
[database]
connection = sqlite:///{directory}/clickos.sqlite?timeout=30
# The file does not outlive its test.
sqlite_synchronous = false
[keystone_authtoken]
auth_type = password
auth_url = {url}/keystone
[nova]
auth_type = password
auth_url = {url}/keystone/v3
username = clickos
password = secret
project_name = service
user_domain_id = default
project_domain_id = default
[clickos_api]
guest_timeout = 1
max_value_bytes = 1000
max_writes = 4
max_handlers = 4
max_state_bytes = 1500
server_cache_ttl = 0
catalog_path = {directory}/catalog
pending_change_poll_interval = 0
share_interval = 0
prune_interval = 0
secret_key_files = {directory}/secret.key
"""


class AgentBug(Exception):
    """Something went wrong inside the agent."""


class FakeAgent:
    """The agent of host1: guests are dictionaries of handler values."""

    target = messaging.Target(version=rpc.VERSION)
    incarnation = '77777777-2222-4333-8444-555555555555'

    def __init__(self):
        self.guests = {}
        self.broken = None
        self.chain_hops = 1

    def chain_counters(self, ctxt, chain_id):
        """Return the counters of a chain."""
        counters = {'packets': 3, 'bytes': 300, 'dropped': 0,
                    'looped': 0}
        return self.broken or {
            **counters, 'hops': [{**counters, 'pairs': 2, 'live_pairs': 1}]
            * self.chain_hops}

    def port_list(self, ctxt, server_id):
        """List one port that dropped frames."""
        return self.broken or {'ports': [
            {'devid': 0, 'mac': '02:00:00:00:00:01', 'port_id': None,
             'link_up': True, 'closed': False, 'counters': {
                 'rx_packets': 4, 'dropped_spoof': 3, 'dropped_full': 0,
                 'kicks': 9}}]}

    def handler_list(self, ctxt, server_id, timeout_ms=0):
        """List the guest's handlers."""
        return self.broken or {'handlers': [
            {'name': name, 'read': True, 'write': True}
            for name in self.guests[server_id]]}

    def handler_read(self, ctxt, server_id, name, param='', timeout_ms=0):
        """Read one handler; 'lookup' takes a parameter, as in a guest."""
        if self.broken:
            return self.broken
        if server_id not in self.guests:
            return {'error': {'code': 'no-such-guest',
                              'message': f'no guest {server_id}'}}
        if name not in self.guests[server_id]:
            return {'error': {'code': 'no-such-handler',
                              'message': f'{name}: no such handler'}}
        if param and not name.endswith('.lookup'):
            return {'error': {
                'code': 'handler-error',
                'message': f'{name}: the handler takes no parameter, got'
                           f' "{param}"'}}
        return {'value': self.guests[server_id][name] + param}

    def handlers_read(self, ctxt, server_id, names, params=None,
                      timeout_ms=0):
        """Read handlers, each for itself."""
        self.reads = getattr(self, 'reads', 0) + 1
        return self.broken or {'values': [
            FakeAgent.handler_read(self, ctxt, server_id, name, param)
            for name, param in zip(names, params or [''] * len(names))]}

    def flows_read(self, ctxt, server_id, element, part, timeout_ms=0):
        """Read a part of an element's flows; there is one part."""
        if part:
            return {'value': ''}
        return self.handler_read(ctxt, server_id, f'{element}.state')

    def flows_write(self, ctxt, server_id, writes, timeout_ms=0):
        """Write handlers of flows."""
        return self.handler_write(ctxt, server_id, writes, {'number': 0})

    def changes_fence(self, ctxt, server_id, number):
        """Answer that no change is known."""
        return self.broken or {
            'incarnation': self.incarnation, 'newest': number, 'applied': [],
            'refused': [], 'pending': []}

    def config_replace(self, ctxt, server_id, config, config_name, change_id,
                       timeout_ms=0):
        """Replace the configuration; one with 'Wrong' is refused."""
        if self.broken:
            return self.broken
        if 'Wrong' in config:
            return {'error': {
                'code': 'bad-config',
                'message': f'{config_name}:1:1: w :: Wrong: unknown class'}}
        self.guests[server_id] = {'config': config}
        return {'applied': [change_id['number']],
                'incarnation': self.incarnation}

    def handler_write(self, ctxt, server_id, writes, change_id,
                      has_secrets=False, timeout_ms=0):
        """Write handlers; a value 'bad' is refused."""
        self.has_secrets = has_secrets
        if self.broken == 'raise':
            raise AgentBug
        if self.broken:
            return self.broken
        if server_id not in self.guests:
            return {'error': {'code': 'no-such-guest',
                              'message': f'no guest {server_id}'}}
        for name, value in writes:
            if value == 'bad':
                return {'error': {'code': 'handler-error',
                                  'message': f'{name}: bad value'}}
        self.guests[server_id].update(
            (name, f'{value} {self.guests[server_id][name].split()[1]}'
             if name.endswith('.share') else value)
            for name, value in writes)
        return {'applied': [change_id['number']],
                'incarnation': self.incarnation,
                **passing(change_id['number'], writes)}


def passing(number, writes):
    """Say which writes are commands or edits, as cosmosd does."""
    def places(handlers):
        return [place for place, (name, _value) in enumerate(writes)
                if name.rpartition('.')[2] in handlers]
    found = {'number': number, 'commands': places({'reset', 'share', 'stop'}),
             'edits': places({'add', 'remove'})}
    return {'passing': [found]} if (
        found['commands'] or found['edits']) else {}


def _write_settings(directory, url):
    path = os.path.join(directory, 'clickos-api.conf')
    with open(path, 'w') as settings:
        settings.write(SETTINGS.format(directory=directory, url=url))
    return path


@functools.cache
def _migrated():
    """Return the database that the command for operators makes, as bytes."""
    with tempfile.TemporaryDirectory() as directory:
        path = _write_settings(directory, 'http://127.0.0.1:1')
        if manage.main(['--config-file', path, 'upgrade']):
            raise RuntimeError('clickos-db-manage upgrade failed')
        with open(os.path.join(directory, 'clickos.sqlite'),
                  'rb') as database:
            return database.read()


class TestCase(unittest.TestCase):
    """One server of one project, with a running guest."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.agent = FakeAgent()
        server = messaging.get_rpc_server(
            messaging.get_rpc_transport(cfg.CONF, 'fake:///'),
            messaging.Target(topic='clickos-agent', server='host1'),
            [cls.agent], executor='threading')
        server.start()
        cls.addClassCleanup(server.wait)
        cls.addClassCleanup(server.stop)

    def setUp(self):
        super().setUp()
        self.use(fixtures.FakeLogger())
        self.use(fixtures.MockPatch('oslo_log.log.setup', autospec=True))
        self.agent.broken, self.agent.chain_hops = None, 1
        self.use(fixtures.MockPatchObject(timing, 'MARGIN_S', 0))
        self.cloud = fake_cloud.FakeCloud()
        self.addCleanup(self.cloud.close)
        self.conf = self._configure()
        self.app = app.create(self.conf)
        self.client = self.app.test_client()
        self.auth = self.use(ksm_fixture.AuthTokenFixture())
        self.project_id = uuid.uuid4().hex
        self.token = self.caller(self.project_id, 'member', 'reader')
        self.server_id = str(uuid.uuid4())
        self.cloud.add_server(self.server_id, self.project_id)
        self.agent.guests[self.server_id] = {'fw.config': 'deny all'}

    def _configure(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        with open(os.path.join(directory.name, 'secret.key'), 'wb') as key:
            key.write(fernet.Fernet.generate_key())
        with open(os.path.join(directory.name, 'clickos.sqlite'),
                  'wb') as database:
            database.write(_migrated())
        path = _write_settings(directory.name, self.cloud.url)
        self.addCleanup(cfg.CONF.reset)
        return api_conf.load(['--config-file', path])

    def use(self, fixture):
        """Set a fixture up until the end of the test."""
        fixture.setUp()
        self.addCleanup(fixture.cleanUp)
        return fixture

    def caller(self, project_id, *roles):
        """Return a token of a user in a project."""
        token = uuid.uuid4().hex
        self.auth.add_token_data(
            token_id=token, user_id='user', project_id=project_id,
            role_list=list(roles))
        self.cloud.projects[token] = project_id
        return token

    def call(self, method, path, token=None, **kwargs):
        """Send a request; return (status, decoded body)."""
        answer = self.client.open(
            path, method=method,
            headers={'X-Auth-Token': token or self.token}, **kwargs)
        return answer.status_code, answer.get_json(silent=True)

    def make_state(self, token=None, **body):
        """Make a state of the caller's project; return its id."""
        status, answer = self.call('POST', '/v1/states', token,
                                   json={'config': 'Idle;', **body})
        self.assertEqual(201, status, answer)
        return answer['id']

    def handlers(self, suffix=''):
        """Return the path of the server's handlers."""
        return f'/v1/servers/{self.server_id}/handlers{suffix}'

    def state_path(self):
        """Return the path of the server's desired state."""
        return f'/v1/servers/{self.server_id}/desired-state'

    def put(self, value, handler='fw.config', token=None):
        """Write one handler of the server."""
        return self.call('PUT', self.handlers('/' + handler), token,
                         json={'value': value})

    def replace(self, config='Idle;', token=None, **more):
        """Replace the configuration of the server."""
        return self.call('PUT', f'/v1/servers/{self.server_id}/configuration',
                         token, json={'config': config, **more})

    def state(self):
        """Return the server's desired state as a service sees it."""
        status, body = self.call('GET', self.state_path(),
                                 self.caller('svc', 'service'))
        self.assertEqual(200, status)
        # A command is a change, and makes no revision.
        self.assertGreaterEqual(body.pop('number'), body['revision'])
        return body

    def assertPending(self, answer):
        """Check that an answer is 202; return the change's address."""
        self.assertEqual((202, 'pending'),
                         (answer[0], answer[1]['change']['status']))
        return (f'/v1/servers/{self.server_id}/changes/'
                f'{answer[1]["change"]["number"]}')

    def assertError(self, status, code, words, answer):
        """Check an answer's status, code and that its message has words."""
        self.assertEqual((status, code),
                         (answer[0], answer[1]['error']['code']))
        self.assertIn(words, answer[1]['error']['message'])
