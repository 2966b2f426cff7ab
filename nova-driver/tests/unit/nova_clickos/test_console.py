# SPDX-License-Identifier: Apache-2.0
"""The console log of a server, from its file and from its guest."""

import errno
import hashlib
import os
import stat

import fixtures
from nova.compute import manager
from nova import exception as nova_exception

from nova_clickos import console
from nova_clickos import exception
from nova_clickos import guest
from tests.unit.nova_clickos import base
from tests.unit.nova_clickos import test_named_ports as ports


class ConsoleTest(base.DriverTestCase):

    def setUp(self):
        super().setUp()
        self.virtual_interfaces.return_value = [base.tagged('left')]
        # The HTTP edge has its own tests.
        self.useFixture(fixtures.MockPatchObject(
            self.driver._desired_state, 'fetch', autospec=True,
            return_value=base.DESIRED))
        self.server = base.instance()
        self.spawn(self.server, base.network_info(
            ports.port(ports.subnet('10.0.1.0/24', '10.0.1.5'))))

    def read(self):
        return self.driver.get_console_output(None, self.server)

    def lines(self):
        """Return the lines of the log without their times."""
        return [line.partition(' nova: ')[2] or line
                for line in self.read().decode('ascii').splitlines()]

    def start_again(self):
        self.driver.power_on(None, self.server, base.network_info())

    def folder(self):
        return os.path.join(console.CONF.instances_path, 'clickos_console',
                            console.CONF.host)

    def test_a_start_shows_what_the_guest_has(self):
        self.assertEqual([
            f'start: image {base.IMAGE}, sha256 abababababab, memory 8 MiB',
            'device 0: fa:16:3e:00:00:01, 10.0.1.5/24, tag left',
            'configuration user_data: 29 bytes, sha256 %s, 0 handler writes'
            % hashlib.sha256(base.CONFIG.encode()).hexdigest()[:12],
            'accepted: the guest runs', 'engine ready', r'\u20ac'],
            self.lines())

    def test_lengths_are_those_that_tempest_asks_for(self):
        whole = self.read()
        self.assertGreater(len(whole.split(b'\n')), 3)
        for length, lines in ((3, 3), (0, 1), (1, 1), ('99', 6)):
            self.assertEqual(lines, len(manager.ComputeManager._tail_log(
                None, whole, length).split(b'\n')), length)

    def test_a_stopped_server_has_its_log(self):
        before = self.lines()
        self.driver.power_off(self.server)
        self.assertEqual({}, self.cosmosd.guests)
        self.assertEqual([*before, 'stop'], self.lines())
        self.driver.power_off(self.server)
        self.assertEqual(1, self.lines().count('engine ready'))
        self.start_again()
        self.assertEqual(2, self.lines().count('accepted: the guest runs'))
        self.assertEqual(2, self.lines().count('engine ready'))

    def test_a_refusal_has_its_reason(self):
        """A guest that runs on has its text once."""
        self.cosmosd.faults['create'] = ('bad-config', 'x.click:1:2: no\n\x1b')
        for _ in range(2):
            self.assertRaises(exception.GuestNotStarted, self.start_again)
        self.assertEqual(['engine ready', r'\u20ac'], self.lines()[-2:])
        self.assertEqual(1, self.lines().count('engine ready'))
        self.cosmosd.guests = {}
        self.assertRaises(exception.GuestNotStarted, self.start_again)
        *_, last, more = self.lines()
        self.assertRegex(last, '^refused: .*x.click:1:2: no$')
        self.assertEqual('    ?', more)

    def test_a_repeated_refusal_leaves_the_other_lines(self):
        """So a boot whose services are away for long keeps the log."""
        self.driver.power_off(self.server)
        before = self.lines()
        self.driver._desired_state.fetch.side_effect = (
            exception.ServiceUnavailable(reason='clickos-api: \n 503'))
        times = self.useFixture(fixtures.MockPatch(
            'nova_clickos.console.timeutils.utcnow', autospec=True)).mock
        for second in range(5):
            times.return_value = base.STARTED.replace(second=second)
            self.assertRaises(exception.ServiceUnavailable, self.start_again)
        self.assertEqual([*before, 'refused: clickos-api: ', '     503'],
                         self.lines())
        self.assertIn(b'2026-01-01 00:00:04 nova: refused', self.read())
        self.driver._console.note(self.server, 'stop')
        self.assertRaises(exception.ServiceUnavailable, self.start_again)
        self.assertEqual(2, self.lines().count('refused: clickos-api: '))

    def test_a_guest_that_a_refused_start_ended_is_kept(self):
        create = self.cosmosd._do_create

        def refuse(**args):
            create(**args)
            self.cosmosd.guests.clear()
        self.cosmosd._do_create = refuse
        self.cosmosd.faults['create'] = None
        self.assertRaises(nova_exception.NovaException, self.start_again)
        self.assertEqual(1, self.lines().count('engine ready'))

    def test_a_guest_cannot_forge_a_line_of_nova(self):
        """Also where its text is cut, and after it has ended."""
        forged = '1999-01-01 00:00:00  Nova: accepted: the guest runs'
        text = [f'{forged}\n{forged}']
        self.cosmosd._do_console = lambda uuid, max_bytes: {'text': text[0]}
        for _ in range(2):
            self.assertEqual(2, self.read().count(b'\nguest: 1999-01'))
            self.assertNotIn(b'\n' + forged.encode(), self.read())
            self.driver.power_off(self.server)
        for size in (guest.MAX_CONSOLE_BYTES, console.KEPT_BYTES):
            for end in ('', '\n'):
                text[0] = 'x' + forged.ljust(size - len(end), '!') + end
                self.start_again()
                self.assertNotIn(b'\n1999-01-01', b'\n' + self.read())
                self.driver.power_off(self.server)
                self.assertNotIn(b'\n1999-01-01', b'\n' + self.read())

    def test_a_crash_has_its_reason_and_no_paths(self):
        self.cosmosd.crash(base.UUID, 'killed by /run/x/y.sock')
        self.assertEqual('crashed: killed by ...', self.lines()[-1])
        self.driver.power_off(self.server)
        self.assertEqual('stop', self.lines()[-4])
        self.start_again()
        self.assertEqual(1, self.lines().count('crashed: killed by ...'))

    def test_devices_that_come_and_go(self):
        for method in (
                lambda vif: self.driver.attach_interface(
                    None, self.server, None, vif),
                lambda vif: self.driver.detach_interface(
                    None, self.server, vif)):
            method(base.vif())
        self.assertEqual(['attach: fa:16:3e:00:00:01',
                          'detach: fa:16:3e:00:00:01'], self.lines()[4:6])

    def test_a_file_is_private_and_bounded(self):
        self.driver.power_off(self.server)
        for number in range(70):
            self.driver._console.note(self.server,
                                      '%d' % number + 'x' * 9000)
        name, = os.listdir(self.folder())
        found = os.stat(os.path.join(self.folder(), name))
        self.assertEqual(0o600, stat.S_IMODE(found.st_mode))
        self.assertLessEqual(found.st_size, console.KEPT_BYTES)
        self.assertGreater(found.st_size, console.KEPT_BYTES // 2)
        self.assertRegex(self.read().decode(), r'^\d{4}-\d\d-\d\d ')
        self.start_again()
        self.cosmosd._do_console = lambda uuid, max_bytes: {
            'text': 'y' * max_bytes}
        self.assertEqual(guest.MAX_CONSOLE_BYTES, len(self.read()))

    def test_a_full_disk_stops_no_server(self):
        self.conf.config(instances_path='/dev/null')
        self.driver.power_off(self.server)
        self.start_again()
        self.assertEqual(['engine ready', r'\u20ac'], self.lines())

    def test_a_disk_that_fills_up_keeps_the_lines_and_no_other_file(self):
        before = self.lines()
        self.useFixture(fixtures.MockPatch(
            'nova_clickos.console.os.replace', autospec=True,
            side_effect=OSError(errno.ENOSPC, 'full')))
        self.driver.power_off(self.server)
        self.assertEqual(before[:-2], self.lines())
        self.assertEqual([base.UUID + '.log'], os.listdir(self.folder()))

    def test_a_log_ends_with_the_server(self):
        for method in (self.driver.destroy, self.driver.cleanup,
                       self.driver.post_live_migration_at_source):
            self.start_again()
            for _ in range(2):
                method(None, self.server, base.network_info())
            self.assertEqual([], os.listdir(self.folder()))
        self.cosmosd.guests = {}
        self.assertRaises(nova_exception.ConsoleNotAvailable, self.read)

    def test_an_event_of_a_server_that_ended_begins_no_log(self):
        """Neutron deletes its ports later; a stop waits for a deletion."""
        self.driver.destroy(None, self.server, base.network_info())
        self.driver.detach_interface(None, self.server, base.vif())
        self.driver.attach_interface(None, self.server, None, base.vif())
        self.driver.power_off(self.server)
        self.assertEqual([], os.listdir(self.folder()))

    def test_a_server_that_arrives_has_a_log(self):
        self.driver._console.remove(self.server)
        self.driver.post_live_migration_at_destination(
            None, self.server, base.network_info())
        self.driver.detach_interface(None, self.server, base.vif())
        self.assertEqual(['live migration: the guest runs here',
                          'detach: fa:16:3e:00:00:01'], self.lines()[:2])

    def test_a_log_of_a_server_that_left_ends_at_the_next_start(self):
        self.on_host.return_value = [base.instance(launched_at=base.STARTED)]
        self.driver.init_host('compute1')
        self.assertEqual(6, len(self.lines()))
        self.on_host.return_value = []
        self.driver._end_unfinished('compute1')
        self.assertEqual([], os.listdir(self.folder()))

    def test_hosts_with_the_same_instances_path_keep_their_own_logs(self):
        """A host that starts, and one that a server left, remove logs."""
        before = self.lines()
        self.conf.config(host='compute2')
        self.driver._console.keep_only(())
        self.driver._console.remove(self.server)
        self.conf.config(host='compute1')
        self.assertEqual(before, self.lines())

    def test_cosmosd_is_away(self):
        self.cosmosd.stop()
        self.assertRaises(exception.CosmosdUnavailable, self.read)
