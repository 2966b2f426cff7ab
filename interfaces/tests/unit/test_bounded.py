# SPDX-License-Identifier: Apache-2.0
"""What a function does with a tenant's bytes ends with its process."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

from clickos_client import bounded

_PLACE = __name__ + ':'
#: The priority of what a process with ours runs ten steps nicer.
_NICE = min(19, os.getpriority(os.PRIO_PROCESS, 0) + 5)
#: A program whose green thread counts while another one waits for a call.
_GREEN = '''
import eventlet
eventlet.monkey_patch()
from clickos_client import bounded
beats = []
def beat():
    while True:
        beats.append(1)
        eventlet.sleep(0.001)
eventlet.spawn(beat)
bounded.call_on_bytes('tests.unit.test_bounded:work', b'300000')
print(len(beats))
'''


def echo(content):
    return [len(content), os.getpriority(os.PRIO_PROCESS, 0)]


def work(content):
    return sum(range(int(content)))


def spin(_content):
    while True:
        pass


def spin_unmetered(content):
    with bounded.unmetered():
        sum(range(20_000_000))
    return echo(content)


def grow(_content):
    return len(bytearray(1 << 30))


def talk(_content):
    return 'x' * (8 << 20)


def fail(_content):
    raise ValueError


def leave_a_child(_content):
    """Start a process that does not end; return the group of both.

    Only root may start one.
    """
    with contextlib.suppress(BlockingIOError):
        if os.fork() == 0:
            signal.pause()
    return os.getpgid(0)


def fork_as_another_user(_content):
    if os.getuid() == 0:
        os.setresuid(65534, 65534, 65534)
    try:
        os.fork()
    except BlockingIOError:
        return 'refused'


def print_much(_content):
    print('{}' * 1000)
    os.write(1, b'"no answer"')
    return 'answer'


def rewrite(_content):
    os.lseek(0, 0, os.SEEK_SET)
    return os.write(0, b'evil')


def answer_itself(_content):
    """Do what a text could do that has taken the process over."""
    for number in range(3, 20):
        try:
            os.write(number, b'[' * (1 << 20))
        except OSError:
            continue
    os._exit(0)


def _processes():
    """List the groups of all processes that run."""
    groups = []
    for name in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open('/proc/%s/stat' % name) as file:
                state, _parent, group = file.read().rpartition(')')[2].split(
                    )[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state not in 'ZX':
            groups.append(int(group))
    return groups


class ProgramTest(unittest.TestCase):

    def run_(self, script, text='', **limits):
        return bounded.run(['sh', '-c', script], text, ValueError,
                           bounded.Limits(**limits))

    def test_a_program_reads_the_text_and_answers(self):
        done = self.run_('cat; echo wrong >&2; exit 3', 'gr\xfc\xdfe')
        self.assertEqual((3, 'gr\xfc\xdfe', 'wrong\n'),
                         (done.returncode, done.stdout, done.stderr))

    def test_a_program_that_is_missing(self):
        done = bounded.run(['/no/such'], '', ValueError)
        self.assertEqual(127, done.returncode)

    def test_a_program_ends_at_its_limits(self):
        self.assertNotEqual(0, self.run_('while :; do :; done',
                                         cpu_s=1).returncode)
        with self.assertRaisesRegex(ValueError, 'sh: took more than 0.1 s'):
            self.run_('kill -STOP $$', wall_s=0.1)

    def test_a_program_has_no_secret_of_ours(self):
        os.environ['SECRET'] = 'x'
        self.addCleanup(os.environ.pop, 'SECRET')
        self.assertEqual('', self.run_('printf "%s" "$SECRET"').stdout)


class BoundedTest(unittest.TestCase):

    def refused(self, name, **limits):
        with self.assertRaises(bounded.Exceeded) as refused:
            bounded.call_on_bytes(_PLACE + name, b'',
                                  bounded.Limits(**limits))
        return str(refused.exception)

    def test_an_answer(self):
        self.assertEqual([3, _NICE], bounded.call_on_bytes(
            _PLACE + 'echo', b'abc'))

    def test_a_service_of_before_1_0_that_still_runs(self):
        done = subprocess.run(
            [sys.executable, '-m', 'clickos_client.bounded', _PLACE + 'echo',
             '2', str(1 << 30)], input=b'abc', capture_output=True,
            check=True)
        self.assertEqual([3, _NICE], json.loads(done.stdout))

    def test_processor_time(self):
        self.assertEqual('took more than 0.2 s of processor time',
                         self.refused('spin', cpu_s=0.2))

    def test_processor_time_that_is_not_counted(self):
        """The sum alone takes longer than the limit."""
        self.assertEqual('took more than 0.05 s of processor time',
                         self.refused('spin', cpu_s=0.05))
        self.assertEqual([0, _NICE], bounded.call_on_bytes(
            _PLACE + 'spin_unmetered', b'', bounded.Limits(cpu_s=0.05)))

    def test_memory_and_a_long_answer(self):
        for name in ('grow', 'talk', 'fail'):
            self.assertEqual('ended with status 1; it has 2 s of processor'
                             ' time and 512 MiB',
                             self.refused(name, memory_bytes=1 << 29))

    def test_it_ends_with_the_parents_patience(self):
        self.assertEqual('took more than 0.1 s',
                         self.refused('spin', cpu_s=60, wall_s=0.1))

    def test_no_process_is_left(self):
        group = bounded.call_on_bytes(_PLACE + 'leave_a_child', b'')
        # The kernel ends a killed process soon, but not at once.
        while group in _processes():
            pass

    def test_no_process_is_started(self):
        self.assertEqual('refused', bounded.call_on_bytes(
            _PLACE + 'fork_as_another_user', b''))

    def test_what_a_library_prints_is_no_answer(self):
        self.assertEqual('answer',
                         bounded.call_on_bytes(_PLACE + 'print_much', b''))

    def test_an_answer_that_is_none(self):
        self.assertEqual('gave no answer that can be read',
                         self.refused('answer_itself'))

    def test_the_file_cannot_be_changed(self):
        with tempfile.TemporaryFile() as file:
            file.write(b'good')
            file.seek(0)
            with self.assertRaises(bounded.Exceeded):
                bounded.call(_PLACE + 'rewrite', file)
            self.assertEqual(b'good', file.read())

    def test_green_threads_run_meanwhile(self):
        done = subprocess.run([sys.executable, '-c', _GREEN],
                              capture_output=True, text=True, check=True)
        self.assertGreater(int(done.stdout), 1, done.stderr)
