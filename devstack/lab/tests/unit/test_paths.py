# SPDX-License-Identifier: Apache-2.0
"""The state folder."""

from clickos_lab import errors
from clickos_lab import paths
from tests.unit import base


class StateTest(base.TestCase):

    def test_too_long_a_path_is_refused_with_the_cure(self):
        with self.assertRaisesRegex(errors.LabError, 'CLICKOS_STATE'):
            paths.State('/tmp/' + 'x' * 100)

    def test_a_folder_of_somebody_else_is_never_taken_or_removed(self):
        foreign = self.folder / 'home'
        foreign.mkdir()
        (foreign / 'thesis.txt').write_text('years of work')
        state = paths.State(foreign)
        for action in (state.create, state.remove):
            with self.assertRaisesRegex(errors.LabError, 'not a state'):
                action()
        self.assertTrue((foreign / 'thesis.txt').exists())

    def test_an_own_folder_is_removed(self):
        self.state.remove()
        self.assertFalse(self.state.root.exists())
        self.state.remove()
