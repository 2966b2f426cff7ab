# SPDX-License-Identifier: Apache-2.0
"""DevStack's plugin: its phases in a root of its own, against the lab.

The script tests/devstack/stack.sh stands for DevStack.
"""

import configparser
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tomllib
import unittest

from clickos_lab import accounts
from clickos_lab import config
from clickos_lab.config import hosts
from clickos_lab.config import options
from clickos_lab.host import units
from clickos_lab import paths
from clickos_lab import services
from clickos_lab import settings
from tests.unit import base

_PLUGIN = paths.REPO / 'devstack'
_STACK = pathlib.Path(__file__).parents[1] / 'devstack/stack.sh'
_CONTROLLER = ('rabbit', 'n-api', 'g-api', 'q-svc', 'neutron-api', 'tacker',
               'tempest', 'horizon')
_HOST = ('n-cpu',)
#: Service of the lab: that of the plugin.
_SERVICES = {'xenstored': 'clickos-store', 'valed': 'clickos-valed',
             'cosmosd': 'clickos-cosmosd', 'clickos-api': 'clickos-api',
             'clickos-agent': 'clickos-agent'}
_RECORDER = '#!/bin/sh\necho "{name} $*" >>"$ROOT/calls"\n{more}\n'
#: The environment in which DevStack installs Tempest's plugins.
_TEMPESTS_PYTHON = pathlib.Path('opt/stack/tempest/.tox/tempest/bin/python')
#: What cargo leaves of the programs that the plugin needs afterwards.
_BUILD = 'mkdir -p "$CARGO_TARGET_DIR/release"\n' \
    'echo engine >"$CARGO_TARGET_DIR/release/clickos-process"'
_PIP = 'import os, sys\n' \
    'with open(os.environ["ROOT"] + "/calls", "a") as f:\n' \
    '    print("pip", *sys.argv[1:], file=f)\n'


class Root(base.TestCase):
    """A root for DevStack, and what is found in it."""

    def setUp(self):
        super().setUp()
        self.root = self.folder / 'root'
        for name in ('etc/tmpfiles.d', 'running', 'cloud', 'bin',
                     'opt/stack/nova/nova/virt', 'opt/stack/horizon',
                     _TEMPESTS_PYTHON.parent):
            (self.root / name).mkdir(parents=True)
        (self.root / 'etc/passwd').touch()
        (self.root / 'calls').touch()
        subprocess.run([sys.executable, '-m', 'venv', '--without-pip',
                        self.root / 'venv'], check=True)
        packages = self.root / 'venv/lib/python3.11/site-packages'
        (packages / 'pip.py').write_text(_PIP)
        self._record('bin/cargo', _BUILD)
        self._record('bin/uwsgi')
        self._record(_TEMPESTS_PYTHON)
        for name in ('oslopolicy-sample-generator', 'clickos-db-manage',
                     'neutron-db-manage'):
            self._record(f'venv/bin/{name}')
        self.before = self.tree()

    def _record(self, name, more=''):
        path = self.root / name
        path.write_text(_RECORDER.format(name=path.name, more=more))
        path.chmod(0o755)

    def _provide_store(self):
        """Spare noxen/build.sh the download: it takes the files it finds."""
        xen = self.root / 'opt/stack/data/clickos/noxen/xen'
        store = xen / 'usr/lib/xen-4.17/bin/xenstored'
        for path in (store, xen / 'noxen.so'):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(0o755)

    def run_mode(self, mode, names=(*_CONTROLLER, *_HOST), status=0, **env):
        """Run the phases of a mode; return its standard error."""
        done = subprocess.run(
            ['bash', _STACK, mode], capture_output=True, text=True,
            env={'ROOT': str(self.root), 'PLUGIN': str(_PLUGIN),
                 'ENABLED_SERVICES': ','.join(names), 'LC_ALL': 'C',
                 'PYTHONDONTWRITEBYTECODE': '1',
                 'PATH': f'{self.root}/bin:/usr/sbin:/usr/bin:/sbin:/bin',
                 **env})
        self.assertEqual(status, done.returncode, done.stderr)
        return done.stderr

    def stack(self, *arguments, **env):
        self._provide_store()
        self.assertEqual('', self.run_mode('stack', *arguments, **env))

    def tree(self):
        """Return path and content of all below the root but the calls."""
        return {str(path.relative_to(self.root)):
                os.readlink(path) if path.is_symlink() else
                path.read_bytes() if path.is_file() else None
                for path in self.root.rglob('*') if path.name != 'calls'}

    def calls(self, name):
        lines = (self.root / 'calls').read_text().splitlines()
        return [line for line in lines if line.split()[0] == name]

    def ini(self, name):
        parser = configparser.RawConfigParser()
        parser.optionxform = str
        parser.read_string((self.root / name).read_text())
        return parser

    def unit(self, name):
        return dict(self.ini(
            f'etc/systemd/system/devstack@{name}.service')['Service'])

    def running(self):
        return {path.name for path in (self.root / 'running').iterdir()}

    def lab(self):
        """Return the lab's settings, its configurations written."""
        paste = self.state.venv / 'etc/nova/api-paste.ini'
        paste.parent.mkdir(parents=True)
        paste.touch()
        chosen = settings.Settings.load(self.state)
        accounts.make_folders(self.state, chosen)
        config.write(self.state, chosen, (hosts.PROCESS,))
        return chosen


class PhasesTest(Root):

    def test_stack_twice_is_stack_once(self):
        self.stack()
        once = self.tree()
        self.stack()
        twice = self.tree()
        self.assertEqual(once.keys(), twice.keys())
        self.assertEqual(once, twice)
        made = [line.split()[3:5] for line in self.calls('openstack')]
        self.assertEqual(1, made.count(['image', 'create']))
        self.assertEqual(1, made.count(['flavor', 'create']))

    def test_unstack_and_clean_leave_nothing(self):
        self.stack()
        self.run_mode('unstack')
        self.assertEqual(set(), self.running())
        self.assertFalse((self.root / 'run/clickos').exists())
        self.run_mode('clean')
        left = {name for name in self.tree().keys() - self.before.keys()
                if not _DEVSTACKS_OWN.fullmatch(name)}
        self.assertEqual(set(), left)
        self.assertEqual(b'', (self.root / 'etc/passwd').read_bytes())
        self.assertIn('pip uninstall -y clickos-openstack',
                      self.calls('pip'))
        self.assertEqual(['python -m pip uninstall -y clickos-openstack'],
                         self.calls('python'))

    def test_unstack_and_clean_before_stack_do_nothing(self):
        self.run_mode('unstack')
        self.run_mode('clean')
        self.assertEqual(self.before, self.tree())

    def test_a_controller_has_no_daemon_of_a_host(self):
        self.stack(_CONTROLLER)
        self.assertEqual({'clickos-api'}, self.running())
        self.assertFalse((self.root / 'etc/clickos/cosmosd.toml').exists())
        self.assertEqual(['cargo --version', 'cargo build --release --locked'
                          ' --bins -p click-check'],
                         self.calls('cargo'))
        self.assertNotIn('clickos', self.ini('etc/nova/nova.conf'))

    def test_a_host_has_no_service_of_a_controller(self):
        self.stack(_HOST)
        self.assertEqual(set(_SERVICES.values()) - {'clickos-api'},
                         self.running())
        self.assertEqual([], self.calls('recreate_database'))
        self.assertFalse((self.root / 'etc/tacker').exists())

    def test_the_store_of_a_xen_host_is_xens(self):
        image = self.root / 'opt/stack/data/clickos/image/clickos'
        image.parent.mkdir(parents=True)
        for name in (image, image.with_name('clickos-full'),
                     image.with_name('clickos-ids')):
            name.write_text('guest')
            name.with_name(f'{name.name}.groups').write_text(
                f'standard,of {name.name}\n')
        self._record('bin/python3', _IMAGE)
        self.stack(_HOST, CLICKOS_HOST_KIND='xen')
        self.assertNotIn('clickos-store', self.running())
        valed = tomllib.loads(
            (self.root / 'etc/clickos/valed.toml').read_text())
        self.assertEqual(f'{self.root}/run/clickos/store/socket',
                         valed['xenstore'])
        self.assertIn('clickos-vale-store', self.running())
        nova = self.ini('etc/nova/nova.conf')['clickos']
        self.assertNotIn('allow_process_host', nova)
        core, full, ids = [line for line in self.calls('openstack')
                           if 'image create' in line]
        for upload, name, file in (
                (core, 'clickos-xen', 'clickos'),
                (full, 'clickos-xen-full', 'clickos-full'),
                (ids, 'clickos-xen-ids', 'clickos-ids')):
            self.assertIn('trait:CUSTOM_CLICKOS_XEN=required', upload)
            self.assertIn(f'create {name} ', upload)
            self.assertIn(f'clickos_groups=standard,of {file} ', upload)
        self.assertIn('--tag clickos-xen ', full)
        self.assertIn('--tag clickos-xen ', ids)
        self.assertNotIn('--tag', core)

    def test_debian_gets_tackers_mysql_client(self):
        installed = self.root / 'etc/installed'
        self.stack(KNOWN_PACKAGES='mysql-client')
        self.assertFalse(installed.exists())
        self.stack()
        self.assertIn('Depends: default-mysql-client',
                      installed.read_text())
        self.run_mode('clean')
        self.assertFalse(installed.exists())

    def test_a_wrong_host_kind_ends_stack_before_an_installation(self):
        done = self.run_mode('stack', CLICKOS_HOST_KIND='kvm', status=1)
        self.assertIn('CLICKOS_HOST_KIND: expected process or xen, got kvm',
                      done)
        self.assertEqual([], self.calls('setup_install'))

    def test_a_missing_cargo_ends_stack_with_the_cure(self):
        (self.root / 'bin/cargo').unlink()
        done = self.run_mode('stack', status=1)
        self.assertIn('install Rust 1.85 or later', done)

    def test_local_conf_changes_a_default(self):
        self.stack(CLICKOS_PHYSICAL_NETWORK='lan')
        ml2 = self.ini('etc/neutron/plugins/ml2/ml2_conf.ini')
        self.assertEqual('lan:vale0', ml2['ml2_vale']['switch_mappings'])


class StackedTest(unittest.TestCase):
    """After the phases of stack, once, next to the lab's files."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.case = Root()
        cls.addClassCleanup(cls.case.doCleanups)
        cls.case.setUp()
        cls.case.stack()
        cls.settings = cls.case.lab()

    def test_each_option_is_that_of_the_description(self):
        values = self._values()
        for group, (name, _sections) in options.groups().items():
            written = self.case.ini(self._file(name))
            for section, wanted in options.of(group, **values).items():
                self.assertEqual(wanted, {
                    key: written[section].get(key) for key in wanted},
                    f'{group}: {section}')

    def test_each_host_has_a_bus_of_its_own(self):
        name = os.uname().nodename
        api = self.case.ini('etc/clickos/clickos-api.conf')
        agent = self.case.ini('etc/clickos/clickos-agent.conf')
        self.assertEqual(
            'rabbit://stackrabbit:secret@192.0.2.1:5672/clickos-{host}',
            api['clickos_api']['agent_transport_url'])
        self.assertEqual(
            f'rabbit://clickos-agent-{name}:secret@192.0.2.1:5672/'
            f'clickos-{name}', agent['DEFAULT']['transport_url'])
        self.assertEqual(
            f'rabbit://clickos-agent-{name}:secret@192.0.2.1:5672/',
            agent['clickos_agent']['neutron_transport_url'])
        calls = (self.case.root / 'calls').read_text()
        self.assertIn(f'rabbitmqctl -q add_vhost clickos-{name}\n', calls)
        for user in ('stackrabbit', f'clickos-agent-{name}'):
            self.assertIn(
                f'set_permissions -p clickos-{name} {user} ', calls)

    def _values(self):
        root, data = self.case.root, f'{self.case.root}/opt/stack/data/clickos'
        return {
            'CLICKOS_COSMOSD_SOCKET': f'{root}/run/clickos/cosmosd/'
                                      'cosmosd.sock',
            'CLICKOS_TACKER_PASTE': f'{root}/etc/tacker/api-paste.ini',
            'CLICKOS_CHECKER': f'{data}/target/release/click-check',
            'CLICKOS_KEYSTONE_URL': 'http://192.0.2.1/identity',
            'CLICKOS_VIM_KEYS': f'{data}/data/vim-keys',
            'CLICKOS_CSARS': f'{data}/data',
            'CLICKOS_HOST_COMMAND':
                f'sudo env CLICKOS_STATE={data} PYTHONPATH={_PLUGIN}/lab '
                'python3 -m clickos_lab host',
            'REGION_NAME': 'RegionOne'}

    @staticmethod
    def _file(variable):
        return {'$NOVA_CONF': 'etc/nova/nova.conf',
                '$GLANCE_API_CONF': 'etc/glance/glance-api.conf',
                '/$Q_PLUGIN_CONF_FILE': 'etc/neutron/plugins/ml2/'
                                        'ml2_conf.ini',
                '$TACKER_CONF': 'etc/tacker/tacker.conf',
                '$CLICKOS_API_CONF': 'etc/clickos/clickos-api.conf',
                '$CLICKOS_AGENT_CONF': 'etc/clickos/clickos-agent.conf',
                '$TEMPEST_CONFIG': 'opt/stack/tempest/etc/tempest.conf',
                }[variable]

    def test_our_sections_have_the_labs_options(self):
        """An option that only the lab sets would be missing in DevStack."""
        for lab, section, ours, only_lab in (
                ('nova/nova-compute.conf', 'clickos', 'etc/nova/nova.conf',
                 _AUTH),
                ('neutron/neutron.conf', 'ml2_vale',
                 'etc/neutron/plugins/ml2/ml2_conf.ini', set()),
                ('tacker/tacker.conf', 'clickos', 'etc/tacker/tacker.conf',
                 {'watch_interval', 'stale_operation_timeout'}),
                ('tacker/tacker.conf', 'tacker', 'etc/tacker/tacker.conf',
                 set()),
                ('clickos/clickos-api.conf', 'nova',
                 'etc/clickos/clickos-api.conf', _AUTH),
                ('clickos/clickos-agent.conf', 'clickos_agent',
                 'etc/clickos/clickos-agent.conf', set())):
            parser = configparser.RawConfigParser()
            parser.read(self.case.state.etc / lab)
            wanted = set(parser[section]) - set(parser.defaults()) - only_lab
            there = set(self.case.ini(ours)[section])
            self.assertLessEqual(wanted, there, f'{lab}: [{section}]')

    def test_keystoneauth_finds_one_kind_of_interface(self):
        for name, section in (('etc/clickos/clickos-api.conf', 'nova'),
                              ('etc/nova/nova.conf', 'clickos')):
            found = self.case.ini(name)[section]
            self.assertIn('auth_type', found, name)
            self.assertNotIn('interface', found, name)

    def test_the_policy_is_the_labs(self):
        etc = self.case.root / 'etc/nova'
        self.assertEqual(
            (self.case.state.etc / 'nova/api-policy.yaml').read_text(),
            (etc / 'policy.d/clickos.yaml').read_text())

    def test_paste_file_is_the_labs(self):
        self.assertEqual(
            (self.case.state.etc / 'tacker/api-paste.ini').read_text(),
            (self.case.root / 'etc/tacker/api-paste.ini').read_text())

    def test_daemons_have_the_labs_keys(self):
        for name in ('cosmosd.toml', 'valed.toml'):
            ours = tomllib.loads((self.case.root / 'etc/clickos' / name)
                                 .read_text())
            labs = tomllib.loads((self.case.state.etc / name).read_text())
            self.assertEqual(_keys(labs), _keys(ours))
            self.assertNotIn('$', repr(ours))

    def test_services_run_the_labs_commands(self):
        catalog = services.Catalog(self.case.state, self.settings)
        labs = {service.name: service for service in catalog.all()}
        self.assertEqual(set(_SERVICES.values()), self.case.running())
        for lab, ours in _SERVICES.items():
            words = shlex.split(self.case.unit(ours)['ExecStart'])
            self.assertLessEqual(_shape(words), _shape(labs[lab].command))
        self.assertIsNone(labs['cosmosd'].account)
        self.assertEqual('root', self.case.unit('clickos-cosmosd')['User'])
        self.assertEqual('clickos-store',
                         self.case.unit('clickos-store')['User'])

    def test_the_switch_has_two_capabilities_and_its_own_user(self):
        self.assertEqual('clickos-valed',
                         self.case.unit('clickos-valed')['User'])
        wanted = {f'CAP_{name.upper()}'
                  for name in accounts.ALL['valed'].capabilities}
        addition = self.case.ini(
            'etc/systemd/system/devstack@clickos-valed.service.d/clickos.conf')
        self.assertEqual(
            wanted,
            set(addition['Service']['AmbientCapabilities'].split()))

    def test_the_switchs_state_belongs_to_its_user(self):
        valed = tomllib.loads(
            (self.case.root / 'etc/clickos/valed.toml').read_text())
        for folder in (valed['state_dir'], valed['capture_dir']):
            self.assertIn(f'chown clickos-valed:clickos-valed {folder}',
                          self.case.calls('chown'))

    def test_the_host_has_an_address_for_tunnels(self):
        agent = self.case.ini('etc/clickos/clickos-agent.conf')
        self.assertEqual('192.0.2.7', agent['clickos_agent']['tunnel_ip'])

    def test_the_labs_crates_are_built(self):
        (build,) = [line for line in self.case.calls('cargo')
                    if '--bins' in line and 'click-check' not in line]
        for crate in options.DEFAULTS['CLICKOS_CRATES'].split():
            self.assertIn(f'-p {crate} ', build + ' ')

    def test_the_host_command_knows_this_host(self):
        state = paths.State(self.case.root / 'opt/stack/data/clickos')
        self.assertTrue(units.known(state))
        self.assertEqual(self.case.root / 'run/clickos',
                         state.run.readlink())
        known = settings.Settings.load(state)
        toml = tomllib.loads((self.case.root / 'etc/clickos/cosmosd.toml')
                             .read_text())
        self.assertEqual(toml['process']['first_uid'], known.guest_uid)

    def test_neutron_loads_the_labs_service_plugins(self):
        added = [line.split()[1] for line in
                 self.case.calls('neutron_service_plugin_class_add')]
        parser = configparser.RawConfigParser()
        parser.read(self.case.state.etc / 'neutron/neutron.conf')
        self.assertEqual(parser['DEFAULT']['service_plugins'],
                         ','.join(added))

    def test_python_finds_the_driver_in_devstacks_nova(self):
        link = self.case.root / 'opt/stack/nova/nova/virt/clickos'
        self.assertTrue((link / 'driver.py').exists())
        self.assertFalse((self.case.root / 'venv/lib/python3.11/site-packages/'
                          'nova').exists())

    def test_passwords_are_not_for_everyone(self):
        for name in ('clickos-api.conf', 'clickos-agent.conf'):
            mode = (self.case.root / 'etc/clickos' / name).stat().st_mode
            self.assertEqual(0, mode & 0o007, name)


#: Options that keystoneauth takes under more than one name.
_AUTH = {'project_domain_id', 'user_domain_id', 'project_name', 'password',
         'region_name'}
#: Files that DevStack's own clean.sh removes, and folders of others.
_DEVSTACKS_OWN = re.compile(
    r'etc/(nova|glance|neutron)(/.*)?|etc/tacker|opt/stack/tempest/etc|'
    r'etc/systemd(/system(/devstack@[a-z-]+[.]service)?)?|opt/stack/data|'
    r'opt/stack/horizon/openstack_dashboard(/local(/[a-z_.]+)?)?|cloud/.*|'
    r'run')
#: python3 of the system, which would build the guest's image.
_IMAGE = f'case "$1" in *image.py) ;; *) exec {sys.executable} "$@" ;; esac'


def _keys(table):
    return {key: _keys(value) if isinstance(value, dict) else None
            for key, value in table.items()}


def _shape(words):
    """Return the program and options of a command, without paths."""
    words = [str(word) for word in words]
    names = {pathlib.Path(word).name for word in words if '/' in word}
    flags = {word for word in words if word.startswith('--')}
    known = {'valed', 'cosmosd', 'uwsgi', 'clickos-agent', 'xenstored.sh',
             '--config', '--config-file', '--ini'}
    return (names | flags) & known
