# SPDX-License-Identifier: Apache-2.0
"""Long reasons end with a count."""

from nova import utils

from nova_clickos import exception
from nova_clickos import fault
from tests.unit.nova_clickos import base

LINE = 'fw.click:%d:5: c :: CheckLength: LENGTH: expected a count'


class FaultTest(base.TestCase):

    def fitted(self, text):
        """Return the fitted text, which Nova leaves as it is."""
        text = fault.fitted(text)
        self.assertEqual(text, utils.safe_truncate(text, fault.MAX_BYTES))
        return text.splitlines()

    def test_a_short_text_stays(self):
        for text in ('', 'x', 'x\ny', 'x' * 255, 'a\n(3 more)'):
            self.assertEqual(text, fault.fitted(text))

    def test_lines_are_counted(self):
        lines = [LINE % number for number in range(9)]
        self.assertEqual([*lines[:4], 'and 5 more'],
                         self.fitted('\n'.join(lines)))
        self.assertEqual([*lines[:4], 'and 16 more'],
                         self.fitted('\n'.join([*lines, '(11 more)'])))

    def test_a_giant_is_cut_between_characters(self):
        (shown,) = self.fitted('\u00fc' * 300)
        self.assertEqual('\u00fc' * 126 + '...', shown)
        shown = self.fitted('\u00fc' * 300 + '\nx\ny')
        self.assertEqual(['\u00fc' * 120 + '...', 'and 2 more'], shown)

    def test_the_guests_refusal(self):
        error = exception.GuestNotStarted(
            reason='\n'.join(LINE % number for number in range(9)))
        self.assertEqual('and 5 more',
                         error.format_message().splitlines()[-1])
