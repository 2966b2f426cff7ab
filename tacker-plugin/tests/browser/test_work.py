# SPDX-License-Identifier: Apache-2.0
"""The work of our scripts on a tenant's text, in processor time."""

from tests.browser import window
from tests.unit.clickos_dashboard import cloud
from tests.unit.clickos_dashboard import hostile

#: Characters; longer texts have no colors.
_LENGTH = 64 * 1024
#: A text of one repeated part: what each pattern of click.js might go
#: through again from every place.
_PARTS = ('a', 'a,', 'a , ', '${', '@/', 'A/', '1.', '/*/', "'", '"\\',
          'a' + ' ' * 15, 'b' * 100 + ' ' * 16 + ',' + ' ' * 16)
#: Seconds; a page takes 0.1 s, and 3 to 7 s with a pattern that goes through
#: such a text again from every place.
_MOST_S = 2


class ColorsTest(window.BrowserTest):

    def spent_s(self):
        """Return the processor time of the page's scripts."""
        found = self.driver.execute_cdp_cmd('Performance.getMetrics', {})
        return next(each['value'] for each in found['metrics']
                    if each['name'] == 'ScriptDuration')

    def test_a_long_text(self):
        self.driver.execute_cdp_cmd('Performance.enable', {
            'timeDomain': 'threadTicks'})
        self.addCleanup(self.driver.execute_cdp_cmd, 'Performance.disable',
                        {})
        answer = self.cloud.answers[
            f'GET /v1/servers/{cloud.SERVER}/handlers/config']
        for part in _PARTS:
            answer['value'] = (part * _LENGTH)[:_LENGTH - 1]
            self.open(hostile.addresses()['guests:configuration'])
            self.see('.clickos-dressed')
            with self.subTest(part):
                self.assertLess(self.spent_s(), _MOST_S)

    def test_a_longer_text_has_no_colors(self):
        answer = self.cloud.answers[
            f'GET /v1/servers/{cloud.SERVER}/handlers/config']
        for length, selector in ((_LENGTH, 'span'), (_LENGTH + 1, None)):
            answer['value'] = ('A ' * _LENGTH)[:length]
            self.open(hostile.addresses()['guests:configuration'])
            layer = self.see('#clickos-lit')
            self.assertEqual(length + 1, self.script(
                'return arguments[0].textContent.length', layer))
            self.assertEqual(bool(selector), self.script(
                'return arguments[0].children.length > 0', layer))
