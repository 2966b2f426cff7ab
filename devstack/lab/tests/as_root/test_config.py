# SPDX-License-Identifier: Apache-2.0
"""The configurations of the services."""

import configparser
import os
import stat
import subprocess
import tomllib

from clickos_lab import accounts
from clickos_lab import config
from clickos_lab.config import hosts
from clickos_lab import settings
from clickos_lab import shell
from clickos_lab.xen import cable
from tests.unit import base

_PASTE = '[composite:nova]\n'


class ConfigTest(base.TestCase):

    def setUp(self):
        super().setUp()
        paste = self.state.venv / 'etc/nova/api-paste.ini'
        paste.parent.mkdir(parents=True)
        paste.write_text(_PASTE)
        self.settings = settings.Settings.load(self.state)
        accounts.make_folders(self.state, self.settings)
        config.write(self.state, self.settings, has_heat=True)

    def ini(self, name):
        parser = configparser.RawConfigParser()
        parser.read_string((self.state.etc / name).read_text())
        return parser

    def texts(self):
        return {path: path.read_bytes()
                for path in self.state.etc.rglob('*') if path.is_file()}

    def test_root_owns_each_file_and_one_account_reads_it(self):
        self.assertGreater(len(self.texts()), 20)
        for path in self.state.etc.rglob('*'):
            found = path.stat()
            mode = stat.S_IMODE(found.st_mode)
            self.assertEqual(0, found.st_uid, path)
            if path.is_dir():
                self.assertEqual(0o711, mode, path)
            else:
                self.assertEqual(0o640 if found.st_gid else 0o600, mode, path)

    def test_a_password_stands_only_where_its_user_reads(self):
        for name, password in self.settings.passwords.items():
            if name.startswith('rabbit_') or name.startswith('db_'):
                account = name.partition('_')[2]
                number = self.settings.ids[account]
                found = {path for path in self.state.etc.rglob('*')
                         if path.is_file()
                         and password in path.read_text()}
                if 'rabbit_' in name or name[3:] == account:
                    self.assertTrue(found, name)
                self.assertEqual({number}, {p.stat().st_gid for p in found})

    def test_files_of_an_older_lab_change_hands(self):
        old = self.state.data / 'keystone/fernet/0'
        old.write_text('key')
        os.chown(old, 0, 0)
        os.chown(self.state.data / 'keystone', 0, 0)
        os.chmod(self.state.etc / 'nova/nova.conf', 0o644)
        config.write(self.state, self.settings, has_heat=True)
        self.assertEqual(self.settings.ids['keystone'], old.stat().st_uid)
        self.test_root_owns_each_file_and_one_account_reads_it()

    def test_nginx_takes_the_fronts_file(self):
        done = subprocess.run(
            ['nginx', '-t', '-e', 'stderr', '-p', self.folder, '-c',
             self.state.etc / 'front/nginx.conf'],
            capture_output=True, text=True)
        self.assertEqual(0, done.returncode, done.stderr)

    def test_the_compute_host_has_no_database_password(self):
        text = ''.join(
            (self.state.etc / f'{name}{host.suffix}.conf').read_text()
            for name in ('nova/nova-compute', 'clickos/clickos-agent')
            for host in hosts.ALL)
        secret = {name: password for name, password
                  in self.settings.passwords.items()
                  if name.startswith('db_') or name == 'admin'}
        self.assertGreater(len(secret), 5)
        for name, password in secret.items():
            self.assertNotIn(password, text, name)

    def test_paths_lie_in_the_state_folder(self):
        found = list(self.state.etc.rglob('*.conf'))
        self.assertGreater(len(found), 10)
        for path in found:
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

    def test_each_host_has_an_address_for_tunnels_of_its_own(self):
        found = [self.ini(f'clickos/clickos-agent{host.suffix}.conf')[
            'clickos_agent'] for host in hosts.ALL]
        self.assertEqual(len(hosts.ALL),
                         len({each['tunnel_ip'] for each in found}))
        for each in found:
            self.assertTrue(each['interface_mappings'])

    def test_hosts_of_two_kinds_reach_each_other_on_the_cable(self):
        """Their networks have uplinks of their own, so they map none."""
        config.write(self.state, self.settings, (hosts.PROCESS, hosts.XEN))
        between = cable.Cable(self.state)
        for host in (hosts.PROCESS, hosts.XEN):
            found = self.ini(f'clickos/clickos-agent{host.suffix}.conf')[
                'clickos_agent']
            self.assertEqual(between.address(host), found['tunnel_ip'])
            self.assertNotIn('interface_mappings', found)

    def test_switches_may_write_captures(self):
        for host in hosts.PROCESSES:
            valed = tomllib.loads((
                self.state.etc / f'{host.daemon("valed")}.toml').read_text())
            found = os.stat(valed['capture_dir'])
            self.assertEqual(
                (0o700, self.settings.ids[host.daemon('valed')]),
                (stat.S_IMODE(found.st_mode), found.st_uid))
            self.assertLessEqual(valed['capture_mib'], 256)

    def test_a_single_host_has_no_tunnels(self):
        config.write(self.state, self.settings, (hosts.PROCESS,))
        self.assertNotIn('tunnel_ip', self.ini(
            'clickos/clickos-agent.conf')['clickos_agent'])

    def test_agent_and_compute_service_of_a_host_have_its_name(self):
        for host in hosts.ALL:
            agent = self.ini(f'clickos/clickos-agent{host.suffix}.conf')
            self.assertEqual(host.name, agent['DEFAULT']['host'])

    def test_only_this_machine_may_run_guests_as_processes(self):
        xen = self.ini('nova/nova-compute-xen.conf')['clickos']
        self.assertNotIn('allow_process_host', xen)

    def test_tacker_serves_three_apis_behind_our_filter(self):
        paste = self.ini('tacker/api-paste.ini')
        served = dict(paste['composite:tacker'])
        self.assertEqual({'use', '/', '/v1.0', '/vnfpkgm/v1', '/vnflcm/v1'},
                         set(served))
        for path in ('/v1.0', '/vnfpkgm/v1', '/vnflcm/v1'):
            pipeline = paste[f'composite:{served[path]}']
            self.assertEqual({'use', 'keystone'}, set(pipeline))
            filters = pipeline['keystone'].split()[:-1]
            ours = filters[filters.index('keystonecontext') + 1]
            self.assertEqual('tacker_clickos.api_filter:factory', paste[
                f'filter:{ours}']['paste.filter_factory'])

    def test_nothing_of_tackers_second_version_is_named(self):
        text = (self.state.etc / 'tacker/api-paste.ini').read_text()
        for word in ('v2', 'sol_refactored', 'noauth', 'alert', 'pm_'):
            self.assertNotIn(word, text)

    def test_tacker_asks_keystone_only(self):
        self.assertEqual(
            self.settings.url('keystone', '/v3'),
            self.ini('tacker/tacker.conf')['clickos']['allowed_urls'])

    def test_writing_again_changes_nothing(self):
        first = self.texts()
        config.write(self.state, self.settings, has_heat=True)
        self.assertEqual(first, self.texts())

    def test_tls_encrypts_http_and_the_queue(self):
        plain = self.texts()
        wanted = settings.Settings.load(self.state, tls=True)
        config.write(self.state, wanted, has_heat=True)
        encrypted = self.texts()
        config.write(self.state, wanted, has_heat=True)
        self.assertEqual(encrypted, self.texts())
        certificate = self.state.etc / 'tls/server.pem'
        ca = str(self.state.authority)
        for path, text in encrypted.items():
            self.assertNotIn(b'http://127', text, path)
            if b'[oslo_messaging_rabbit]' in text:
                found = self.ini(path)['oslo_messaging_rabbit']
                self.assertEqual(('true', ca),
                                 (found['ssl'], found['ssl_ca_file']), path)
            public = path in (certificate, self.state.authority)
            mode = stat.S_IMODE(path.stat().st_mode)
            self.assertEqual(public, bool(mode & 0o004), path)
        shell.output(['openssl', 'verify', '-verify_ip', '127.0.0.1',
                      '-CAfile', ca, certificate])
        config.write(self.state, settings.Settings.load(
            self.state, tls=False), has_heat=True)
        self.assertEqual(plain, self.texts())
