# SPDX-License-Identifier: Apache-2.0
"""Lost requests and late answers are two things."""

import subprocess
import sys
import textwrap
import time
import unittest

from clickos_client import pings

_LOSSY = '''
PING 10.1.0.9 (10.1.0.9) 56(84) bytes of data.
64 bytes from 10.1.0.9: icmp_seq=1 ttl=64 time=0.2 ms
64 bytes from 10.1.0.9: icmp_seq=3 ttl=64 time=0.4 ms
64 bytes from 10.1.0.9: icmp_seq=4 ttl=64 time=0.3 ms

--- 10.1.0.9 ping statistics ---
4 packets transmitted, 3 received, 25% packet loss, time 612ms
rtt min/avg/max/mdev = 0.201/0.302/0.412/0.101 ms
'''
_SILENT = '''
--- 10.1.0.9 ping statistics ---
2 packets transmitted, 0 received, 100% packet loss, time 1015ms
'''
#: Plays ping: one request each 10 ms; SIGQUIT tells how many, the answers
#: to ``late`` come after that, and those to ``lost`` never.
_PING = '''
import signal, sys, time
late, lost = (set(map(int, word.split(","))) for word in sys.argv[1:3])
told, sent, due = [], 0, []
def status(*_):
    told.append(sent)
    print(f"{sent - 1}/{sent} packets, 1% loss", file=sys.stderr, flush=True)
def end(*_):
    print("9 packets transmitted, 8 received", flush=True)
    sys.exit(0)
signal.signal(signal.SIGQUIT, status)
signal.signal(signal.SIGINT, end)
while True:
    sent += 1
    due.append(sent)
    for number in list(due):
        if number in lost or number in late and not told:
            continue
        due.remove(number)
        print(f"64 bytes from x: icmp_seq={number} ttl=64 time=1 ms",
              flush=True)
    time.sleep(0.01)
'''


class JudgeTest(unittest.TestCase):

    def test_a_lost_request_is_named(self):
        found = pings.judge(_LOSSY, 4)
        self.assertEqual((4, 3, (2,), 0.302),
                         (found.sent, found.received, found.lost,
                          found.rtt_ms))

    def test_only_the_first_requests_count(self):
        self.assertEqual((), pings.judge(_LOSSY, 1).lost)

    def test_numbers_begin_again_and_an_answer_comes_twice(self):
        answers = [f'icmp_seq={n % 65536} ttl=64' for n in range(1, 65540)]
        answers[1] += ' (DUP!)'
        text = '\n'.join([*answers, _LOSSY.splitlines()[-2]])
        self.assertEqual((2,), pings.judge(text, 65539).lost)

    def test_all_are_lost(self):
        self.assertEqual(pings.Result(2, (1, 2)), pings.judge(_SILENT, 2))

    def test_no_summary(self):
        with self.assertRaisesRegex(ValueError, 'expected a summary'):
            pings.judge('ping: connect: Network is unreachable', 2)


class SilenceTest(unittest.TestCase):

    def output(self, *times_s):
        return ''.join(
            f'[{at:.6f}] 64 bytes from 10.1.0.9: icmp_seq={number} ttl=62 '
            'time=0.2 ms\n' for number, at in enumerate(times_s, 1))

    def test_the_longest_time_between_two_answers(self):
        text = self.output(1000.5, 1000.75, 1002, 1002.25)
        self.assertEqual(1.25, pings.silence_s(text))
        self.assertEqual([1000.5, 1000.75, 1002, 1002.25],
                         pings.times_s(text))
        self.assertEqual({1, 2, 3, 4}, pings.answered(text))

    def test_without_answers_nothing_is_known(self):
        for text in (self.output(1000), _LOSSY):
            with self.assertRaisesRegex(ValueError, 'expected 2 answers'):
                pings.silence_s(text)


class RunningTest(unittest.TestCase):

    def start(self, late, lost):
        process = subprocess.Popen(
            [sys.executable, '-c', textwrap.dedent(_PING), late, lost],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        running = pings.Running(process)
        running.wait()
        while 'icmp_seq=5 ' not in running.text():
            time.sleep(0.01)
        return running

    def test_no_answer_at_all(self):
        process = subprocess.Popen(
            ['echo', 'ping: unknown host'], stdout=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        with self.assertRaisesRegex(ValueError, 'expected 1 answered'):
            pings.Running(process).wait()
        process.wait()

    def test_late_answers_count(self):
        found = self.start('2,3', '0').result()
        self.assertEqual(((), True), (found.lost, found.sent >= 5))

    def test_a_lost_request_is_named(self):
        found = self.start('3', '2,4').result(patience_s=0.5)
        self.assertEqual((2, 4), found.lost)
        self.assertEqual(found.sent - 2, found.received)
