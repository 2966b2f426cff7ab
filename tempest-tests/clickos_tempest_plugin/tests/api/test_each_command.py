# SPDX-License-Identifier: Apache-2.0
"""Each command of ``openstack clickos`` once, as far as it succeeds.

The suite compares the commands that succeeded with all that there are.
"""

import json
import pathlib
import re
import shlex
import tempfile

from tempest import config
from tempest.lib.common.utils import data_utils
from tempest.lib.common.utils import test_utils
from tempest.lib import decorators

from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests.api import typed

CONF = config.CONF

CONFIG = """FromDevice(0) -> right :: Counter -> Queue -> ToDevice(1);
FromDevice(1) -> left :: Counter -> Queue -> ToDevice(0);
"""
#: A table that can be asked.
ROUTES = """routes :: RadixIPLookup(0.0.0.0/0 0, 192.0.2.0/24 1);
Idle -> routes -> Discard;
routes[1] -> Discard;
"""
#: Not one packet has a source of this network.
NOWHERE = 'protocol=udp,source-ip-prefix=192.0.2.0/24'
#: The same packets and others, so it can only replace the one above.
WIDER = 'protocol=udp,source-ip-prefix=192.0.0.0/22'


class EachCommandTest(typed.CommandLine):
    """A VNF, and two servers that are wires, for all tests."""

    @classmethod
    def resource_setup(cls):
        super().resource_setup()
        cls.vnf_id = cls.tenant.firewall(csar.firewall(), ['deny all'],
                                         cls.addClassResourceCleanup)
        cls.wires = [data_utils.rand_name('wire') for _ in range(2)]
        for name in cls.wires:
            ports = [cls.tenant.make_port(
                'left', cls.addClassResourceCleanup,
                port_security_enabled=False) for _ in range(2)]
            cls.tenant.boot(name, ports, CONFIG, cls.addClassResourceCleanup)

    def run_all(self, *commands):
        """Run commands that all succeed; return what they print."""
        return [self.assertEnds(0, self.openstack(*shlex.split(command)))
                for command in commands]

    @decorators.attr(type='gate')
    @decorators.idempotent_id('d6e0f3f2-4a6e-4bb0-9a49-5a3b0bb6c010')
    def test_of_a_vnf(self):
        vnf = f'--vnf {self.vnf_id}'
        shown, handlers, graph, events, ports, dropped = self.run_all(
            f'vnf show {self.vnf_id} -f json',
            f'handler list {vnf} -f value',
            f'graph {vnf} --interval 0.1 -f value',
            f'event list {vnf} -f value',
            f'port stats {vnf} -f json', f'flow log {vnf} -f json')
        self.assertEqual('active', json.loads(shown)['status'])
        self.assertIn('fw.config True True', handlers)
        self.assertIn('fw [0]', graph)
        self.assertIn('INSTANTIATE COMPLETED', events)
        self.assertEqual(['up', 'up'],
                         [row['Link'] for row in json.loads(ports)])
        self.assertIsInstance(json.loads(dropped), list)

    @decorators.attr(type='gate')
    @decorators.idempotent_id('d6e0f3f2-4a6e-4bb0-9a49-5a3b0bb6c011')
    def test_of_handlers_and_state(self):
        vnf = f'--vnf {self.vnf_id}'
        first = self.tenant.clickos.show_desired_state(
            self.vnf_id, 'vnfs')['revision']
        _, watched, changes, state, saved = self.run_all(
            f'handler write {vnf} fw.config "allow all"',
            f'handler watch {vnf} fw.config --count 1',
            f'state list {vnf} -f value',
            f'state show {vnf} -f value',
            f'state save {vnf}')
        self.assertIn(['fw.config', 'allow all'], json.loads(saved)['writes'])
        self.assertIn('allow', watched)
        self.assertIn('applied', changes)
        self.assertIn('fw.config', state)
        restored, found, cleared = self.run_all(
            f'state restore {vnf} {first}',
            f'handler read {vnf} fw.config', f'state clear {vnf}')
        self.assertIn('is in force again', restored)
        self.assertEqual('deny all', found.strip())
        self.assertIn('1 handler writes forgotten', cleared)

    @decorators.attr(type='gate')
    @decorators.idempotent_id('d6e0f3f2-4a6e-4bb0-9a49-5a3b0bb6c012')
    def test_of_secrets(self):
        name, value = data_utils.rand_name('secret'), 'deny all'
        path = self.file('secret', value)
        texts = self.run_all(
            f'secret create {name} {path} -f json', 'secret list -f value',
            f'secret show {name} -f value', f'secret delete {name}',
            'secret list -f value')
        secret = json.loads(texts[0])['ID']
        self.assertEqual([True, True, True, False, False],
                         [secret in text for text in texts])
        self.assertNotIn(value, ''.join(texts))

    @decorators.attr(type='gate')
    @decorators.idempotent_id('d6e0f3f2-4a6e-4bb0-9a49-5a3b0bb6c013')
    def test_of_a_server(self):
        name = self.wires[0]
        old, new = (self.file(f'{kind}.click', CONFIG + more)
                    for kind, more in (('old', ''), ('new', ROUTES)))
        self.addCleanup(self.run_all, f'config replace {name} {old}')
        shown, _, differs, console = self.run_all(
            f'config show {name}', f'config replace {name} {new}',
            f'config diff {name} {new}', f'console {name}')
        self.assertEqual(CONFIG, shown)
        self.assertEqual('', differs)
        self.assertNotEqual('', console)
        one, several = self.run_all(
            f'handler read {name} routes.lookup 192.0.2.9',
            f'handler read {name} -f json "routes.lookup 198.51.100.9"'
            ' routes.lookup 192.0.2.9 right.count')
        self.assertEqual('1', one.strip())
        found = json.loads(several)
        self.assertEqual(
            ('0', '1'), (found['routes.lookup 198.51.100.9'],
                         found['routes.lookup 192.0.2.9']))
        refused = self.openstack('handler', 'read', name, 'right.count 7')
        self.assertEndsWith(1, 'takes no parameter', refused)

    def assertEndsWith(self, status, words, done):
        """Check the exit status and the error of a command."""
        self.assertEnds(status, done)
        self.assertIn(words, done.stderr)

    @decorators.attr(type='gate')
    @decorators.idempotent_id('d6e0f3f2-4a6e-4bb0-9a49-5a3b0bb6c014')
    def test_of_files(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        check = pathlib.Path(CONF.clickos.combine_program).with_name(
            'click-check')
        self.run_all(
            f'vnf new my-shaper --dir {folder.name}',
            f'package check {folder.name}/my-shaper.csar',
            f'config check {self.file("new.click", CONFIG)} --vifs 2'
            f' --program {check}')
        rule = 'drop tcp any any -> any any (content:"x"; sid:%d;)\n'
        refused = self.run_all(
            f'rules convert {self.file("some.rules", rule % 1 + rule % 1)}'
            f' --click --program {check} -f value')[0]
        self.assertEqual('2 1 sid: 1 is given twice', refused.strip())

    @decorators.attr(type='gate')
    @decorators.idempotent_id('d6e0f3f2-4a6e-4bb0-9a49-5a3b0bb6c015')
    def test_of_chains(self):
        name = data_utils.rand_name('chain')
        first, second = self.wires
        self.run_all(
            f'chain create {name} --hop {first} --classifier {NOWHERE}')
        self.addCleanup(self.openstack, 'chain', 'delete', name)
        _, listed, _, shown, _ = self.run_all(
            f'chain insert {name} {second} --before {first}',
            'chain list -f value',
            f'chain reorder {name} {first} {second}',
            f'chain stats {name} --interval 0.1 -f json',
            f'chain fuse {name} --program {CONF.clickos.combine_program}')
        self.assertIn(f'{second}, {first}', listed)
        self.assertEqual(['entered', first, second],
                         [row['Hop'] for row in json.loads(shown)])
        shown, *_ = self.run_all(
            f'chain show {name} -f value',
            f'chain unfuse {name}', f'chain remove {name} {second}',
            f'chain set {name} --classifier {WIDER}',
            f'chain delete {name}')
        self.assertIn('fused in', shown)

    @decorators.attr(type='gate')
    @decorators.idempotent_id('d6e0f3f2-4a6e-4bb0-9a49-5a3b0bb6c016')
    def test_of_scaling(self):
        grown, = self.run_all(
            f'vnf scale {self.vnf_id} --level 1 --wait -f value')
        self.assertIn('COMPLETED', grown)
        info = self.tenant.tacker.show_vnf(
            self.vnf_id)['instantiatedVnfInfo']
        first, second = (vnfc['computeResource']['resourceId']
                         for vnfc in info['vnfcResourceInfo'])
        former, moved, shrunk = self.run_all(
            f'flow give {second} --to {first}',
            f'flow transfer {second} --to {first}',
            f'vnf scale {self.vnf_id} --level 0 --wait -f value')
        for text in (former, moved):
            self.assertIn('flows transferred to 1 guests', text)
        self.assertIn('COMPLETED', shrunk)

    @decorators.attr(type='gate')
    @decorators.idempotent_id('d6e0f3f2-4a6e-4bb0-9a49-5a3b0bb6c017')
    def test_of_a_whole_life(self):
        """As a tenant does it: by name, from a file to the end."""
        name = data_utils.rand_name('life')
        path = pathlib.Path(self.file('mine.csar', ''))
        path.write_bytes(csar.firewall())
        networks = ' '.join(
            f'--network {point}={self.tenant.networks[point].id}'
            for point in ('left', 'right'))
        done = self.deploy(name, path, networks, '--wait')
        shown = json.loads(self.assertEnds(0, done))
        self.assertEqual('active', shown['status'])
        self.assertEqual({'left', 'right'}, set(shown['addresses']))
        listed, changed, _ = self.run_all(
            'vnf list -f json',
            f'vnf set {name} --property rules="allow all" --wait -f json',
            f'vnf heal {name} --vnfc VDU1-0 --wait -f value')
        row, = (each for each in json.loads(listed) if each['Name'] == name)
        self.assertEqual(2, len(row['Addresses']))
        self.assertEqual({'rules': 'allow all'},
                         json.loads(changed)['properties'])
        self.run_all(f'vnf terminate {name} --wait', f'vnf delete {name}')

    @decorators.attr(type='gate')
    @decorators.idempotent_id('d6e0f3f2-4a6e-4bb0-9a49-5a3b0bb6c018')
    def test_of_a_failed_instantiation(self):
        """No subnet has the address; without --wait the VNF stays."""
        name = data_utils.rand_name('failed')
        path = pathlib.Path(self.file('mine.csar', ''))
        path.write_bytes(csar.firewall())
        left, right = (self.tenant.networks[point].id
                       for point in ('left', 'right'))
        networks = (f'--network left={left},ip=192.0.2.9'
                    f' --network right={right}')
        self.assertEnds(0, self.deploy(name, path, networks))
        waiters.until(lambda: self.status(name), lambda status:
                      status == 'failed', 'failed')
        retried, = self.run_all(f'vnf retry {name} -f value')
        self.assertIn('INSTANTIATE ACCEPTED', retried)
        waiters.until(
            lambda: self.openstack('vnf', 'delete', name, '--force'),
            lambda done: done.returncode == 0, 'deleted, once it failed')
        self.assertEnds(1, self.openstack('vnf', 'show', name))
        failed = self.deploy(name, path, networks, '--wait')
        self.assertEnds(1, failed)
        self.assertIn('INSTANTIATE FAILED', failed.stderr)
        self.assertEnds(1, self.openstack('vnf', 'show', name))

    @decorators.attr(type='gate')
    @decorators.idempotent_id('d6e0f3f2-4a6e-4bb0-9a49-5a3b0bb6c019')
    def test_of_the_catalog(self):
        listed, shown = self.run_all(
            'catalog list -f json', 'catalog show firewall -f json')
        self.assertIn('firewall', [each['Name'] for each
                                   in json.loads(listed)])
        self.assertEqual(['left', 'right'],
                         json.loads(shown)['connection_points'])

    def status(self, name):
        """Return the status of a VNF."""
        return self.run_all(f'vnf show {name} -f value -c status')[0].strip()

    def deploy(self, name, path, networks, *more):
        """Deploy a package, which the end of the test removes."""
        done = self.openstack('vnf', 'deploy', str(path), '--name', name,
                              *networks.split(), *more, '-f', 'json')
        for package in re.findall('package ([0-9a-f-]{36}) on-boarded',
                                  done.stderr):
            self.addCleanup(test_utils.call_and_ignore_notfound_exc,
                            self.tenant._remove_package, package)
        self.addCleanup(self.openstack, 'vnf', 'delete', name, '--force')
        return done
