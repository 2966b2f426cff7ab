# SPDX-License-Identifier: Apache-2.0
"""Work on a lab: in which order, and what the caller gets."""

import contextlib
import io
from unittest import mock

from clickos_lab import errors
from clickos_lab.suites import on_lab
from tests.unit import base


class _Lab:
    def __init__(self, steps):
        self.state = steps
        self.down = lambda: steps.append('down')
        self.up = lambda: steps.append('up')


class OnLabTest(base.TestCase):

    def run_(self, work, prepare=lambda: None):
        steps = []
        with contextlib.redirect_stdout(io.StringIO()) as out, \
                mock.patch.object(on_lab.prepare_lab, 'everything',
                                  lambda state: state.append('build')):
            status = on_lab.run(
                _Lab(steps), lambda: steps.append('work') or work(),
                lambda: steps.append('prepare') or prepare())
        return status, steps, out.getvalue()

    def test_the_lab_ends_whatever_happens(self):
        def refuse():
            raise errors.LabError('no disk')

        def interrupt():
            raise KeyboardInterrupt

        all_steps = ['down', 'build', 'prepare', 'up', 'work', 'down']
        for work, status, text in (
                (lambda: None, 0, ''), (lambda: 3, 3, ''),
                (refuse, 1, 'error: no disk\n'),
                (interrupt, 130, 'interrupted\n')):
            self.assertEqual((status, all_steps, text), self.run_(work))
        self.assertEqual(
            (1, ['down', 'build', 'prepare', 'down'], 'error: no disk\n'),
            self.run_(lambda: None, refuse))
