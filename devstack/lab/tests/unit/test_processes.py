# SPDX-License-Identifier: Apache-2.0
"""Starting and stopping, with real processes."""

import os
import pathlib
import shutil
import subprocess
import sys
import time

from clickos_lab import errors
from clickos_lab import processes
from tests.unit import base

#: survives SIGTERM, as does its child in a session of its own
_STUBBORN = '''
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen(["sleep", "1000"], start_new_session=True)
print("ready", flush=True)
time.sleep(1000)
'''


class ProcessesTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.processes = processes.Processes(self.state)
        self.program = self.folder / 'guest'
        self.addCleanup(self.processes.kill_strays, self.program)

    def start(self, name, *command):
        self.processes.start(name, command, dict(os.environ))
        return self.processes.find(name)

    def test_start_find_stop(self):
        running = self.start('one', 'sleep', '1000')
        self.assertEqual(['one'], self.processes.names())
        self.processes.require('one')
        self.processes.stop(['one'])
        self.assertFalse(running.alive())
        self.assertEqual([], self.processes.names())
        self.processes.stop(['one'])

    def test_no_process_of_a_service_runs_while_it_is_stopped(self):
        running = self.start('one', 'sh', '-c', 'sleep 1000 & wait')

        def states():
            return {pathlib.Path(f'/proc/{pid}/stat').read_text().split()[2]
                    for pid in self.processes.members('one')}

        def wait(wanted):
            deadline_s = time.monotonic() + 60
            while not wanted(states()):
                self.assertLess(time.monotonic(), deadline_s)
                time.sleep(0.02)
        with self.processes.stopped('one'):
            wait(lambda seen: seen == {'T'})
        wait(lambda seen: 'T' not in seen)
        self.assertTrue(running.alive())

    def test_the_pid_of_another_process_is_not_ours(self):
        running = self.start('one', 'sleep', '1000')
        note = self.state.pid / 'one'
        note.write_text(f'{running.pid} {running.start_ticks + 1}\n')
        self.assertIsNone(self.processes.find('one'))
        self.processes.stop(['one'])
        self.assertTrue(running.alive())

    def test_what_ignores_sigterm_or_escapes_is_killed(self):
        running = self.start('one', sys.executable, '-c', _STUBBORN)
        log = self.processes.log('one')
        self.processes.wait('one', lambda: 'ready' in log.read_text(), 60)
        self.processes.stop(['one'], timeout_s=0.3)
        self.assertFalse(running.alive())
        (escaped,) = self.processes.strays(self.program)
        self.processes.kill_strays(self.program)
        self.assertFalse(escaped.alive())
        self.assertEqual([], self.processes.strays(self.program))

    def test_workers_outlive_a_kill_or_not(self):
        for workers in (False, True):
            running = self.start('one', 'sh', '-c', 'sleep 1000 & wait')
            while len(members := self.processes.members('one')) < 2:
                self.assertTrue(running.alive())
            worker, = set(members) - {running.pid}
            self.processes.kill('one', workers)
            self.assertFalse(running.alive())
            if workers:
                while processes.start_ticks(worker) is not None:
                    time.sleep(0.01)
            self.assertEqual(not workers, bool(self.processes.strays(
                self.program)))
            self.processes.kill_strays(self.program)

    def test_a_program_without_environment_is_found(self):
        shutil.copy('/bin/sleep', self.program)
        guest = subprocess.Popen([self.program, '1000'], env={})
        self.addCleanup(guest.wait)
        self.addCleanup(guest.kill)
        self.program.unlink()
        (found,) = self.processes.strays(self.program)
        self.assertEqual(guest.pid, found.pid)

    def test_a_service_that_dies_is_reported_with_its_last_words(self):
        self.start('one', 'sh', '-c', 'echo no such database; exit 1')
        with self.assertRaisesRegex(errors.LabError,
                                    r'(?s)one died.*no such database'):
            self.processes.wait('one', lambda: False, 10)

    def test_a_silent_service_is_reported(self):
        self.start('one', 'sleep', '1000')
        with self.assertRaisesRegex(errors.LabError, 'did not answer'):
            self.processes.wait('one', lambda: False, 0.2)
        self.processes.stop(['one'])
