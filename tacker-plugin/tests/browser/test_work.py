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
#: Those of a large router, and how often its page is laid out; a page that
#: measures each word alone is laid out 12,000 times.
_ELEMENTS, _MOST_LAYOUTS = 2000, 100


class WorkTest(window.BrowserTest):
    """Measures what the scripts of a page cost."""

    def setUp(self):
        super().setUp()
        self.driver.execute_cdp_cmd('Performance.enable', {
            'timeDomain': 'threadTicks'})
        self.addCleanup(self.driver.execute_cdp_cmd, 'Performance.disable',
                        {})

    def measured(self, name):
        """Return what the browser has measured of the page."""
        found = self.driver.execute_cdp_cmd('Performance.getMetrics', {})
        return next(each['value'] for each in found['metrics']
                    if each['name'] == name)

    def spent_s(self):
        """Return the processor time of the page's scripts."""
        return self.measured('ScriptDuration')


class GraphTest(WorkTest):

    def test_a_large_graph(self):
        names = [f'{number}-{"x" * 40}' for number in range(_ELEMENTS)]
        self.cloud.answers[f'GET /v1/servers/{cloud.SERVER}/handlers/graph'][
            'value'] = '\n'.join((
                'watched_ns 1000000000',
                *(f'element {name} Idle 0' for name in names),
                *(f'connection {a} 0 {b} 0 push 1 1'
                  for a, b in zip(names, names[1:])), ''))
        self.open(hostile.addresses()['guests:detail'])
        self.see('#clickos-graph svg .element')
        self.until(lambda: self.script(
            'return document.querySelector(".name").textContent'
            '.endsWith("…")'), 'the names are not cut')
        # Another picture of the same names comes.
        self.script('document.querySelector(".element").id = "first"')
        self.until(lambda: not self.script(
            'return document.getElementById("first")'), 'no other picture')
        self.assertLess(self.measured('LayoutCount'), _MOST_LAYOUTS)


class ColorsTest(WorkTest):

    def test_a_long_text(self):
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
