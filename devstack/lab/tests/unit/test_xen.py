# SPDX-License-Identifier: Apache-2.0
"""Building the Xen host, as far as it needs no machine."""

import argparse
import lzma
import os
import stat
import struct
import subprocess
import unittest
from unittest import mock

from clickos_lab.config import hosts
from clickos_lab import errors
from clickos_lab import paths
from clickos_lab import shell
from clickos_lab.suites import xen
from clickos_lab.xen import archive as _archive
from clickos_lab.xen import cable
from clickos_lab.xen import command
from clickos_lab.xen import compute
from clickos_lab.xen import files
from clickos_lab.xen import kernel
from clickos_lab.xen import keys
from clickos_lab.xen import modules
from clickos_lab.xen import packages
from clickos_lab.xen import qemu
from clickos_lab.xen import remote
from clickos_lab.xen import xen_paths
from tests.unit import base


class XenTestCase(base.TestCase):

    def setUp(self):
        super().setUp()
        self.places = xen_paths.XenPaths(self.state)
        self.places.create()


class GateTest(base.TestCase):

    def test_each_test_of_the_gate_is_there_and_quick(self):
        found = list(xen._each(
            unittest.TestLoader().loadTestsFromNames(xen.GATE)))
        self.assertEqual(list(xen.GATE), [test.id() for test in found])
        self.assertFalse([test.id() for test in found if xen._is_slow(test)])


class PlacesTest(XenTestCase):

    def test_keys_and_memory_are_private(self):
        mode = self.places.root.stat().st_mode
        self.assertEqual(0o700, stat.S_IMODE(mode))

    def test_names_are_short_and_plain(self):
        for name in ('', 'a/b', '..', 'Lab', 'elevenchars'):
            with self.assertRaises(errors.LabError):
                self.places.host(name)
        self.assertEqual('a-1', self.places.host('a-1').root.name)

    def test_longest_socket_fits_where_the_others_do(self):
        qmp = self.places.host('x' * 10).qmp.relative_to(self.state.root)
        self.assertLessEqual(len(str(qmp)), len('run/xenstore/socket_ro'))


class NamesTest(base.TestCase):

    def test_a_host_has_the_name_that_nova_shows(self):
        arguments = argparse.Namespace(
            host=hosts.XEN.name, verb=lambda _state, _places, given: given)
        found = command.run(self.state, arguments)
        self.assertEqual(compute.name(hosts.XEN), found.host)


class ArchiveTest(XenTestCase):

    def _entries(self, archive):
        """Unpack with Python's reading of the format: name to entry."""
        path = self.folder / 'archive'
        archive.write(path)
        data, entries, at = path.read_bytes(), {}, 0
        while True:
            self.assertEqual(b'070701', data[at:at + 6])
            fields = [int(data[at + 6 + 8 * n:at + 14 + 8 * n], 16)
                      for n in range(13)]
            mode, size, name_size = fields[1], fields[6], fields[11]
            name = data[at + 110:at + 110 + name_size - 1].decode()
            begin = (at + 110 + name_size + 3) & ~3
            if name == 'TRAILER!!!':
                return entries
            entries[name] = (mode, data[begin:begin + size])
            at = (begin + size + 3) & ~3

    def test_folders_come_first_and_content_is_kept(self):
        archive = _archive.Archive()
        archive.add_bytes('a/b/c', b'12345', 0o600)
        archive.add_link('a/l', 'b/c')
        entries = self._entries(archive)
        self.assertEqual(['a', 'a/b', 'a/b/c', 'a/l'], list(entries))
        self.assertEqual((stat.S_IFREG | 0o600, b'12345'), entries['a/b/c'])
        self.assertEqual((stat.S_IFLNK | 0o777, b'b/c'), entries['a/l'])

    def test_a_later_entry_replaces_one(self):
        archive = _archive.Archive()
        archive.add_link('x', 'busybox')
        archive.add_bytes('x', b'own')
        self.assertEqual(b'own', self._entries(archive)['x'][1])

    def test_nothing_goes_through_a_link(self):
        archive = _archive.Archive()
        archive.add_link('bin', 'usr/bin')
        with self.assertRaisesRegex(errors.LabError, 'bin is not a folder'):
            archive.add_bytes('bin/x', b'')

    def test_trees_keep_links_and_the_right_to_execute(self):
        tree = self.folder / 'tree'
        (tree / 'sub').mkdir(parents=True)
        (tree / 'sub/run').write_text('x')
        (tree / 'sub/run').chmod(0o755)
        os.symlink('sub/run', tree / 'link')
        archive = _archive.Archive()
        archive.add_tree('', tree)
        entries = self._entries(archive)
        self.assertEqual(0o755, stat.S_IMODE(entries['sub/run'][0]))
        self.assertEqual(b'sub/run', entries['link'][1])


class KernelTest(base.TestCase):

    def _image(self, payload):
        """A bzImage with one setup sector."""
        head = bytearray(2 * 512)
        head[0x1f1] = 1
        struct.pack_into('<II', head, 0x248, 16, len(payload))
        return bytes(head) + bytes(16) + payload + b'tail'

    def test_the_elf_file_is_found(self):
        elf = b'\x7fELF' + bytes(1000)
        image = self._image(lzma.compress(elf) + struct.pack('<I', len(elf)))
        self.assertEqual(elf, kernel.vmlinux(image))

    def test_other_content_is_refused(self):
        for payload in (b'\x1f\x8b' + bytes(100), lzma.compress(b'no elf')):
            with self.assertRaisesRegex(errors.LabError, 'kernel image'):
                kernel.vmlinux(self._image(payload))


class ModulesTest(XenTestCase):

    def setUp(self):
        super().setUp()
        folder = self.places.packages / 'lib/modules/6.1'
        folder.mkdir(parents=True)
        (folder / 'modules.dep').write_text(
            'k/net/bridge.ko: k/net/stp.ko k/net/llc.ko\n'
            'k/net/stp.ko: k/net/llc.ko\nk/net/llc.ko:\n'
            'k/xen/xen-evtchn.ko:\n')

    def test_dependencies_come_along(self):
        found = modules.closure(self.places, ['bridge', 'xen_evtchn'])
        self.assertEqual(['bridge', 'llc', 'stp', 'xen-evtchn'],
                         [path.stem for path in found])

    def test_unknown_modules_are_named(self):
        with self.assertRaisesRegex(errors.LabError, '^nope: no such'):
            modules.closure(self.places, ['bridge', 'nope'])


class PackagesTest(XenTestCase):

    def test_merged_and_unmerged_folders(self):
        for name in ('bin/ip', 'usr/bin/xl'):
            path = self.places.packages / name
            path.parent.mkdir(parents=True)
            path.touch()
        for name in ('usr/bin/ip', 'usr/bin/xl'):
            self.assertTrue(packages.find(self.places, name).exists())
        with self.assertRaisesRegex(errors.LabError, '^usr/bin/nope: '):
            packages.find(self.places, 'usr/bin/nope')

    def test_downloaded_again_only_if_the_list_changes(self):
        with mock.patch.object(packages, '_fetch', autospec=True) as fetch:
            fetch.side_effect = lambda p: p.packages.mkdir()
            packages.ensure(self.places)
            packages.ensure(self.places)
            self.assertEqual(1, fetch.call_count)


class CommandLineTest(XenTestCase):

    def _words(self, boot, taps=()):
        host = self.places.host('lab')
        return [str(word) for word in qemu.Machine().command(
            self.places, host, 'mem-path=snapshot/memory,share=off', boot,
            taps)]

    def test_nothing_of_the_state_folder_is_in_it(self):
        for boot in (True, False):
            text = ' '.join(self._words(boot))
            self.assertNotIn(str(self.state.root), text)

    def test_the_machine_is_the_same_when_restored(self):
        boot, restored = self._words(True), self._words(False)
        self.assertEqual(['-incoming', 'defer'], restored[-2:])
        self.assertEqual(restored[:-2], boot[:len(restored) - 2])

    def test_taps_change_what_is_behind_the_cards_only(self):
        taps = [f'tap{n}' for n in range(qemu.Machine().uplinks)]
        lonely, connected = self._words(False), self._words(False, taps)
        different = [(a, b) for a, b in zip(lonely, connected, strict=True)
                     if a != b]
        self.assertEqual(len(taps), len(different))
        for (a, b), tap in zip(different, taps):
            self.assertIn('hubport', a)
            self.assertIn(f'tap,ifname={tap},', b)
            self.assertEqual(a.rpartition(',')[2], b.rpartition(',')[2])

    def test_only_the_loopback_reaches_dom0(self):
        network = next(w for w in self._words(True) if 'hostfwd' in w)
        self.assertIn('restrict=on', network)
        self.assertIn('hostfwd=tcp:127.0.0.1:0-', network)


class FilesTest(XenTestCase):

    def test_dom0s_script_unpacks_them(self):
        disk, target = self.folder / 'disk', self.folder / 'target'
        target.mkdir()
        contents = files.Files()
        contents.add_text('text', '/root/a')
        contents.add_text(b'#!', '/usr/bin/b', 0o755)
        script = contents.write(disk)
        self.assertEqual(files.SIZE_MIB << 20, disk.stat().st_size)
        script = script.replace('/dev/vda', str(disk))
        subprocess.run(['sh', '-c', script.replace('-C /', f'-C {target}')],
                       check=True)
        self.assertEqual('text', (target / 'root/a').read_text())
        mode = (target / 'usr/bin/b').stat().st_mode
        self.assertEqual(0o755, stat.S_IMODE(mode))

    def test_more_than_the_disk_is_refused(self):
        contents = files.Files()
        contents.add_text(bytes((files.SIZE_MIB << 20) + 1), '/big')
        with self.assertRaisesRegex(errors.LabError, 'at most 128 MiB'):
            contents.write(self.folder / 'disk')


class CableTest(XenTestCase):

    def setUp(self):
        super().setUp()
        self.cable = cable.Cable(self.state)
        patch = mock.patch.object(shell, 'output', autospec=True)
        self.output = patch.start()
        self.addCleanup(patch.stop)

    def plug(self, host, *others):
        """Plug a host in; return what ran here and in dom0."""
        machine = compute.XenCompute(self.state, host)
        machine.dom0 = mock.create_autospec(remote.Remote, instance=True)
        self.output.reset_mock()
        self.cable.plug(machine, others)
        (inside,), _ = machine.dom0.check.call_args
        return [' '.join(call.args[0])
                for call in self.output.call_args_list], inside

    def test_each_host_has_an_address_in_the_network_of_its_lab(self):
        other = cable.Cable(paths.State(self.folder / 'other'))
        found = {between.address(host) for between in (self.cable, other)
                 for host in (hosts.PROCESS, *hosts.XENS)}
        self.assertEqual(6, len(found))

    def test_this_machine_and_dom0_get_their_addresses(self):
        outside, inside = self.plug(hosts.XEN)
        own, its = map(self.cable.address, (hosts.PROCESS, hosts.XEN))
        tap = compute.XenCompute(self.state).taps()[-1]
        self.assertTrue(any(f'address add {own}/28' in each
                            for each in outside), outside)
        self.assertTrue(any(f'link set {tap} master' in each
                            for each in outside), outside)
        self.assertIn(f'ip address add {its}/28 dev eth5', inside)
        self.assertNotIn('route', inside)
        second = self.plug(hosts.SECOND_XEN)[1]
        self.assertNotIn(its, second)

    def test_dom0_finds_the_address_between_process_hosts(self):
        _, inside = self.plug(hosts.XEN, '198.18.0.1')
        self.assertIn('ip route add 198.18.0.1/32 via '
                      f'{self.cable.address(hosts.PROCESS)} dev eth5', inside)


class ComputeTest(XenTestCase):

    def test_interfaces_of_two_labs_differ_and_fit(self):
        other = paths.State(self.folder / 'other')
        taps = {tap for state in (self.state, other) for host in hosts.XENS
                for tap in compute.XenCompute(state, host).taps()}
        self.assertEqual(4 * qemu.Machine().uplinks, len(taps))
        self.assertTrue(all(len(tap) <= 15 for tap in taps))

    def test_users_of_the_socket_have_keys_and_roles_of_their_own(self):
        keys.ensure(self.places)
        archive = mock.create_autospec(_archive.Archive, instance=True)
        keys.add(self.places, archive)
        given = {call.args[0]: call.args[1]
                 for call in archive.add_bytes.call_args_list}
        lets_in = [given[f'etc/ssh/keys/{user}']
                   for user in ('root', 'nova', 'agent')]
        self.assertEqual(3, len(set(lets_in)))
        of_host = compute.XenCompute(self.state)
        config = of_host._host.places.ssh_config
        config.parent.mkdir(parents=True)
        config.write_text('')
        for user in keys.USERS:
            folder = self.folder / f'xen-{user}'
            folder.mkdir()
            of_host.hand_over(user, folder, os.getuid())
            command = of_host.tunnel(user, folder)
            self.assertEqual(user, command[command.index('-l') + 1])
            key = command[command.index('-i') + 1]
            self.assertEqual((self.places.keys / user).read_bytes(),
                             key.read_bytes())
            public = (self.places.keys / f'{user}.pub').read_bytes()
            self.assertEqual(given[f'etc/ssh/keys/{user}'], public)


class SshTest(XenTestCase):

    def test_ssh_takes_the_configuration(self):
        path = self.folder / 'config'
        path.write_text(keys.ssh_config(self.places, 4711))
        done = subprocess.run(['ssh', '-F', path, '-G', keys.ALIAS],
                              capture_output=True, text=True, check=True)
        lines = done.stdout.splitlines()
        self.assertIn('port 4711', lines)
        self.assertIn('stricthostkeychecking true', lines)
        self.assertIn(f'userknownhostsfile {self.places.keys}/known_hosts',
                      lines)

    def test_errors_name_the_first_line_of_a_script(self):
        dom0 = remote.Remote(self.places.host('lab'))
        answer = remote.Result(3, '', 'why\n')
        with mock.patch.object(dom0, 'run', autospec=True,
                               return_value=answer):
            with self.assertRaisesRegex(
                    errors.LabError, '^dom0: one: exit status 3: why$'):
                dom0.check('one\ntwo')
