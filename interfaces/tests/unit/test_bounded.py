# SPDX-License-Identifier: Apache-2.0
"""What a function does with a tenant's bytes ends with its process."""

import os
import subprocess
import sys
import unittest

from clickos_client import bounded

_PLACE = __name__ + ':'
#: The priority of what a process with ours runs ten steps nicer.
_NICE = min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)
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


class BoundedTest(unittest.TestCase):

    def refused(self, name, **limits):
        with self.assertRaises(bounded.Exceeded) as refused:
            bounded.call_on_bytes(_PLACE + name, b'',
                                  bounded.Limits(**limits))
        return str(refused.exception)

    def test_an_answer(self):
        self.assertEqual([3, _NICE], bounded.call_on_bytes(
            _PLACE + 'echo', b'abc'))

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

    def test_green_threads_run_meanwhile(self):
        done = subprocess.run([sys.executable, '-c', _GREEN],
                              capture_output=True, text=True, check=True)
        self.assertGreater(int(done.stdout), 1, done.stderr)
