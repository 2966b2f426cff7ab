# SPDX-License-Identifier: Apache-2.0
"""The configurations of the services."""

import configparser
import stat
import tomllib

from clickos_lab import config
from clickos_lab.config import hosts
from clickos_lab import settings
from tests.unit import base

_PASTE = """\
[composite:vnflcm_v1]
use = call:tacker.auth:pipeline_factory
keystone = request_id authtoken keystonecontext vnflcmaapp_v1
"""


class ConfigTest(base.TestCase):

    def setUp(self):
        super().setUp()
        for name in ('nova', 'tacker'):
            paste = self.state.venv / f'etc/{name}/api-paste.ini'
            paste.parent.mkdir(parents=True)
            paste.write_text(_PASTE)
        self.settings = settings.Settings.load(self.state)
        config.write(self.state, self.settings)

    def ini(self, name):
        parser = configparser.RawConfigParser()
        parser.read_string((self.state.etc / name).read_text())
        return parser

    def test_only_the_owner_can_read(self):
        for path in self.state.etc.rglob('*'):
            if path.is_file() and path.name != 'api-paste.ini':
                mode = stat.S_IMODE(path.stat().st_mode)
                self.assertEqual(0o600, mode, path)

    def test_the_compute_host_has_no_database_password(self):
        text = ''.join(
            (self.state.etc / f'{name}{host.suffix}.conf').read_text()
            for name in ('nova/nova-compute', 'clickos/clickos-agent')
            for host in hosts.ALL)
        for name, password in self.settings.passwords.items():
            if name.startswith('db_') or name == 'admin':
                self.assertNotIn(password, text, name)

    def test_paths_lie_in_the_state_folder(self):
        for path in self.state.etc.rglob('*.conf'):
            self.assertNotIn('/var/', path.read_text(), path)
            self.assertNotIn('= /etc', path.read_text(), path)

    def test_the_roles_are_those_of_the_services(self):
        roles = tomllib.loads(
            (self.state.etc / 'cosmosd.toml').read_text())['roles']
        self.assertEqual([self.settings.nova_uid], roles['nova'])
        self.assertEqual([self.settings.agent_uid], roles['agent'])

    def test_hosts_share_neither_name_nor_socket_nor_folder(self):
        for option in ('host', 'state_path', 'cosmosd_socket'):
            values = set()
            for host in hosts.ALL:
                ini = self.ini(f'nova/nova-compute{host.suffix}.conf')
                section = ini['clickos' if 'socket' in option else 'DEFAULT']
                values.add(section[option])
            self.assertEqual(len(hosts.ALL), len(values), option)

    def test_agent_and_compute_service_of_a_host_have_its_name(self):
        for host in hosts.ALL:
            agent = self.ini(f'clickos/clickos-agent{host.suffix}.conf')
            self.assertEqual(host.name, agent['DEFAULT']['host'])

    def test_only_this_machine_may_run_guests_as_processes(self):
        xen = self.ini('nova/nova-compute-xen.conf')['clickos']
        self.assertNotIn('allow_process_host', xen)

    def test_our_filter_stands_before_the_application(self):
        pipeline = self.ini('tacker/api-paste.ini')['composite:vnflcm_v1']
        self.assertEqual(['clickos_metadata', 'vnflcmaapp_v1'],
                         pipeline['keystone'].split()[-2:])

    def test_writing_again_changes_nothing(self):
        def texts():
            return {path: path.read_bytes()
                    for path in self.state.etc.rglob('*') if path.is_file()}

        first = texts()
        config.write(self.state, self.settings)
        self.assertEqual(first, texts())
