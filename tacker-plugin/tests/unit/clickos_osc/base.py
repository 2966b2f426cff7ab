# SPDX-License-Identifier: Apache-2.0
"""Commands against the real service over HTTP."""

import argparse
import io
import threading
import types
import uuid
from wsgiref import simple_server

from keystoneauth1 import session as ks_session
from keystoneauth1 import token_endpoint

from clickos_osc import plugin
from tests.unit.clickos_api import base
from tests.unit.clickos_osc import networking


class QuietHandler(simple_server.WSGIRequestHandler):
    """Answers without a log."""

    def log_message(self, *args):
        """Keep quiet."""


class Auth(token_endpoint.Token):
    """A token, and an endpoint by service type."""

    def __init__(self, endpoints, token):
        super().__init__(None, token)
        self._endpoints = endpoints

    def get_endpoint_data(self, session, **kwargs):
        """Do without version discovery."""
        return None

    def get_endpoint(self, session, service_type=None, **kwargs):
        """Return the service's URL."""
        return self._endpoints[service_type]


class Servers:
    """Nova's servers as openstacksdk finds them, for client_manager."""

    def __init__(self, names):
        self._names = names
        self.console = ''
        self.actions = []

    def find_server(self, name, ignore_missing):
        """Return a server by name or id."""
        return types.SimpleNamespace(id=self._names.get(name, name))

    def get_server_console_output(self, server, length=None):
        """Return the end of the console, as Nova does."""
        lines = self.console.splitlines(True)
        return {'output': ''.join(
            lines if length is None else lines[len(lines) - length:])}

    def server_actions(self, server):
        """List a server's actions, the newest first."""
        return iter(self.actions)

    def get_server_action(self, request_id, server):
        """Return an action with its steps."""
        return next(each for each in self.actions
                    if each.request_id == request_id)


class CommandTestCase(base.TestCase):
    """A client manager as openstackclient's, and a running service."""

    def setUp(self):
        super().setUp()
        self.server = simple_server.make_server(
            '127.0.0.1', 0, self.app, handler_class=QuietHandler)
        thread = threading.Thread(target=self.server.serve_forever,
                                  kwargs={'poll_interval': 0.01})
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.manager = self._manager(self.token)
        self.vnf_id = str(uuid.uuid4())
        self.cloud.add_vnf(self.vnf_id, self.project_id,
                           [(self.server_id, 'VDU1', 'vnfc-1')])

    def _manager(self, token):
        endpoints = {
            'clickos': f'http://127.0.0.1:{self.server.server_port}',
            'nfv-orchestration': self.cloud.url + '/tacker'}
        manager = types.SimpleNamespace(
            session=ks_session.Session(Auth(endpoints, token)),
            region_name=None, interface='public',
            _api_version={'clickos': '1'},
            sdk_connection=types.SimpleNamespace(
                compute=Servers({'my-fw': self.server_id}),
                network=networking.Network()))
        manager.clickos = plugin.make_client(manager)
        return manager

    def app_of_cli(self):
        """Return what a command has of openstackclient."""
        return types.SimpleNamespace(
            client_manager=self.manager, stdout=io.StringIO(),
            stderr=io.StringIO(),
            options=types.SimpleNamespace(verbose_level=1))

    def run_command(self, command, *arguments):
        """Parse and run; return what take_action gave and what it wrote."""
        app = self.app_of_cli()
        instance = command(app, argparse.Namespace())
        parsed = instance.get_parser('openstack').parse_args(arguments)
        result = instance.take_action(parsed)
        self.assertNotIsInstance(result, int, 'cliff takes it as the status')
        return result, app.stdout.getvalue()

    def run_whole(self, command, *arguments):
        """Run with cliff's output; return exit status, output, progress."""
        app = self.app_of_cli()
        instance = command(app, argparse.Namespace())
        parsed = instance.get_parser('openstack').parse_args(arguments)
        status = instance.run(parsed)
        return status, app.stdout.getvalue(), app.stderr.getvalue()
