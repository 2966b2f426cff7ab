# SPDX-License-Identifier: Apache-2.0
"""The difference of two configurations: what is shown, and its work."""

import contextlib
import os
import pathlib
import random
import resource
import sys
import tempfile
import types
import unittest
from unittest import mock

from django.urls import reverse

from clickos_dashboard.guests import difference
from clickos_dashboard.guests import turns
from tests.unit.clickos_dashboard import cloud
from tests.unit.clickos_dashboard import hostile

_LINES = difference.MAX_BYTES // 2
#: Seconds of processor time beyond the limit: it counts whole seconds.
_SLACK_S = 1


def _texts():
    """Yield pairs of texts of the longest size that cost most."""
    chance = random.Random(7)
    for letters in ('ab', 'abcdefghijklmnop'):
        yield [''.join(f'{chance.choice(letters)}\n' for _ in range(_LINES))
               for _side in range(2)]
    numbers = [f'{number:x}\n' for number in range(40_000)]
    shuffled = chance.sample(numbers, len(numbers))
    yield ''.join(numbers), ''.join(shuffled)
    yield ''.join(numbers), ''.join(numbers[::-1])
    yield 'a\nb\n' * (_LINES // 2), 'b\na\na\n' * (_LINES // 3)
    yield 'x' * (difference.MAX_BYTES - 1), ''


def _children_s():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _steps(function, *arguments):
    """Count the lines of Python that a call runs in difference.py."""
    count = 0

    def trace(frame, event, _argument):
        nonlocal count
        if frame.f_code.co_filename != difference.__file__:
            return None
        count += event == 'line'
        return trace
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function(*arguments)
    finally:
        sys.settrace(before)
    return count


@contextlib.contextmanager
def _program(text):
    """Let another program stand for diff."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / 'diff'
        path.write_text(f'#!/bin/sh\n{text}\n')
        path.chmod(0o755)
        with mock.patch.object(difference, 'PROGRAM', str(path)):
            yield


class DifferenceTest(unittest.TestCase):

    def lines(self, running, edited):
        found = difference.between(running, edited)
        self.assertEqual(0, found.omitted)
        return [line for _kind, line in found.lines], found.is_coarse

    def test_line_by_line(self):
        found = difference.between('a\nb\nc\nd\ne\nf', 'a\nb\nX\nd\ne\nf\n')
        self.assertEqual(
            [('removed', '--- running'), ('added', '+++ edited'),
             ('place', '@@ -1,6 +1,6 @@'), ('same', ' a'), ('same', ' b'),
             ('removed', '-c'), ('added', '+X'), ('same', ' d'),
             ('same', ' e'), ('same', ' f')], found.lines)
        self.assertFalse(found.is_coarse)

    def test_equal_texts_have_no_lines(self):
        for running, edited in (('', ''), ('a', 'a\n'), ('a\r\nb', 'a\nb'),
                                ('-x\n@\0\ud800', '-x\n@\0\ud800')):
            with self.subTest(running):
                self.assertEqual(([], False), self.lines(running, edited))

    def test_a_program_that_does_not_end_shows_the_whole(self):
        with _program('while :; do :; done'):
            before_s = _children_s()
            found = self.lines('a\nb\nc\nd', 'a\nX\nc\nY\nd')
        self.assertLess(_children_s() - before_s,
                        difference.CPU_S + _SLACK_S)
        self.assertEqual(([
            '--- running', '+++ edited', '@@ -2,2 +2,3 @@', '-b', '-c',
            '+X', '+c', '+Y'], True), found)

    def test_a_host_without_the_program_shows_the_whole(self):
        with mock.patch.object(difference, 'PROGRAM', '/none'):
            self.assertEqual(([], True), self.lines('a\r\nb', 'a\nb'))
            for running, edited, wanted in (
                    ('', 'x', ['@@ -1,0 +1,1 @@', '+x']),
                    ('a\na', 'a', ['@@ -2,1 +2,0 @@', '-a']),
                    ('x\ny', '', ['@@ -1,2 +1,0 @@', '-x', '-y'])):
                self.assertEqual(wanted, self.lines(running, edited)[0][2:])

    def test_worst_texts_cost_bounded_time_in_another_process(self):
        for number, (running, edited) in enumerate(_texts()):
            with self.subTest(number):
                before_s = _children_s()
                found = difference.between(running, edited)
                self.assertLess(_children_s() - before_s,
                                difference.CPU_S + _SLACK_S)
                self.assertLessEqual(len(found.lines), difference.MOST_LINES)
                self.assertTrue(found.lines)

    def test_the_work_here_grows_with_the_length(self):
        counts = []
        for length in (2_000, 4_000):
            texts = 'a\n' * length + 'b\n', 'a\n' * length + 'c\n' * length
            with mock.patch.object(difference, 'PROGRAM', '/none'):
                whole = _steps(difference.between, *texts)
            counts.append((whole, _steps(difference.between, *texts)))
        for short, long in zip(*counts):
            self.assertLess(long, 2.2 * short)

    def test_no_part_of_a_line_poses_as_another_line(self):
        hostile_text = 'a\n// x\r+ b\r\n// y\x00\x0b+ c\x85- d\u2028- e\n'
        for program in ('diff', '/none'):
            with mock.patch.object(difference, 'PROGRAM', program):
                found = difference.between('a\n', hostile_text)
                same = difference.between('a\r\nb\n', 'a\nb\n')
            self.assertEqual([
                '+// x\N{SYMBOL FOR CARRIAGE RETURN}+ b',
                '+// y\x00\x0b+ c\x85- d\u2028- e'],
                [line for kind, line in found.lines if kind == 'added'][-2:])
            self.assertEqual([], [line for _kind, line in found.lines
                                  if line.startswith(('+ ', '- '))])
            self.assertEqual([], same.lines)

    def test_a_longer_text_is_refused(self):
        for texts in (('x' * difference.MAX_BYTES + 'y', ''),
                      ('', 'é' * (difference.MAX_BYTES // 2 + 1))):
            with self.assertRaises(difference.TooLong):
                difference.between(*texts)


class TurnTest(unittest.TestCase):

    def request(self, user_id):
        user = types.SimpleNamespace(id=user_id)
        return types.SimpleNamespace(user=user)

    def test_one_for_each_user(self):
        with turns.turn(self.request('u1')):
            with self.assertRaises(turns.Busy):
                with turns.turn(self.request('u1')):
                    self.fail('two turns')
            with turns.turn(self.request('u2')):
                pass
        with turns.turn(self.request('u1')):
            pass

    def test_no_other_local_user_sees_a_name_to_take(self):
        with turns.turn(self.request('u4')):
            with open('/proc/net/unix') as names:
                self.assertNotIn(turns._digest('u4'), names.read())
            with os.fdopen(turns._file()) as file:
                self.assertEqual(0o600, os.fstat(file.fileno()).st_mode
                                 & 0o777)

    def test_a_file_of_others_holds_no_turn(self):
        with tempfile.TemporaryDirectory() as place, mock.patch.object(
                tempfile, 'tempdir', place):
            names = [os.path.join(
                place, f'clickos-turns-{turns._digest(n)}') for n in range(4)]
            with open(names[0], 'w'):
                os.chmod(names[0], 0o666)
            os.mkfifo(names[1], 0o600)
            os.symlink(os.path.join(place, 'target'), names[2])
            with turns.turn(self.request('u5')):
                self.assertTrue(os.path.exists(names[3]))
                with self.assertRaises(turns.Busy):
                    with turns.turn(self.request('u5')):
                        self.fail('two turns')
            self.assertFalse(os.path.exists(os.path.join(place, 'target')))
            with mock.patch.object(os, 'geteuid', return_value=-1), \
                    self.assertRaises(turns.Busy):
                with turns.turn(self.request('u5')):
                    self.fail('a turn in a file of others')

    def test_a_turn_ends_with_its_process(self):
        child = os.fork()
        if child == 0:
            turns.turn(self.request('u3')).__enter__()
            os._exit(0)
        self.assertEqual(0, os.waitpid(child, 0)[1])
        with turns.turn(self.request('u3')):
            pass


class BusyEditorTest(hostile.HostileTest):

    def test_a_second_request_does_nothing(self):
        path = reverse('horizon:clickos:guests:configuration',
                       args=(cloud.SERVER,))
        with turns.turn(types.SimpleNamespace(user=self.user)):
            for action in ('check', 'compare', 'replace', 'undo'):
                with self.subTest(action):
                    text = self.client.post(path, {
                        'action': action, 'text': 'a'}).content.decode()
                    self.shows(text, 'of yours has not ended')
                    self.hides(text, 'id="clickos-difference"')
        self.assertEqual([], self.cloud.changes)
        text = self.client.post(path, {'action': 'compare', 'text': 'a'})
        self.shows(text.content.decode(), 'id="clickos-difference"')

    def test_more_lines_than_a_page_shows(self):
        path = reverse('horizon:clickos:guests:configuration',
                       args=(cloud.SERVER,))
        more = difference.MOST_LINES
        text = self.client.post(path, {
            'action': 'compare', 'text': 'a\n' * more}).content.decode()
        # Three lines above them, two removed ones, and what is shown.
        self.shows(text, '5 more lines are not shown')
        self.assertEqual(more, text.count('<span class="clickos-'))
