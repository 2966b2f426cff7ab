# SPDX-License-Identifier: Apache-2.0
"""Pictures and plots: zoom, letters, rates, axes, keyboard, and axe-core."""

import itertools

from django.core.cache import cache
from django.urls import reverse
from openstack_dashboard import api
from selenium.webdriver.common import action_chains
from selenium.webdriver.common.actions import wheel_input
from selenium.webdriver.common import keys

from tests.browser import look
from tests.browser import window
from tests.unit.clickos_dashboard import hostile
from tests.unit.clickos_dashboard import project
from tests.unit.clickos_dashboard import test_chains

_TOPOLOGY = reverse('horizon:clickos:topology:index')
_VNF = reverse('horizon:clickos:vnfs:detail',
               args=(project.key('vnf', 'firewall'),))
_CHAIN = test_chains.DETAIL
_GUEST = f'/v1/servers/{project.key("server", "firewall", 0)}'
#: As zoom.js has it, less what a browser rounds.
_LEAST_PX = 10.9
_SHARES = (0.3, 4)
#: The height of the letters of each text that is shown, on the screen.
_LETTERS = '''
const scale = Number(getComputedStyle(arguments[0]).getPropertyValue(
  '--clickos-scale'));
return [...arguments[0].querySelectorAll('text')].filter(
  text => text.textContent && text.getClientRects().length).map(
  text => parseFloat(getComputedStyle(text).fontSize) * scale);
'''
#: Texts that are a pixel wider than their room, as a browser measures them.
_WIDE = '''
const scale = Number(getComputedStyle(arguments[0]).getPropertyValue(
  '--clickos-scale'));
return [...arguments[0].querySelectorAll('text[data-room]')].filter(
  text => text.getClientRects().length && scale * (text.getBBox().width -
    Number(text.dataset.room)) > 1).map(text => text.textContent);
'''
_BUSY_GRAPH = '''
return [...document.querySelectorAll('#clickos-graph .rate')].some(
  each => each.textContent !== '0');
'''
#: The words at the arrows and in the list of chains, if all have some.
_CHAIN_RATES = '''
const all = [...document.querySelectorAll('#clickos-topology .chain .rate, ' +
  '.clickos-entered')].map(each => each.textContent);
return all.every(Boolean) && all;
'''
_ELEMENTS = {
    'from_the_left': 'FromDevice', 'strip': 'Strip', 'check': 'CheckIPHeader',
    'filter': 'IPFilter', 'count': 'Counter', 'queue': 'Queue',
    'to_the_right': 'ToDevice'}


class PicturesTest(window.BrowserTest):
    """Pages of a project whose counters go up."""

    def setUp(self):
        super().setUp()
        cache.clear()
        self.project = project.Project(self)
        self.project.fill()
        self.cloud.answers[
            f'GET /vnflcm/v1/vnf_instances/{project.key("vnf", "firewall")}'
        ] = project.vnf('firewall')
        self.packets = 0
        self.count()
        # Those of another test's page.
        self.errors()

    def count(self):
        """Let all have counted more packets; return True."""
        self.packets += 1000
        answers, packets = self.cloud.answers, self.packets
        self.project.count(packets)
        counted = {'packets': packets, 'bytes': 100 * packets,
                   'dropped': packets // 10, 'looped': 0}
        answers[f'GET /v1/chains/{test_chains.CHAIN}'] = {'chain': {
            **counted, 'hops': [{**counted, 'pairs': 2, 'live_pairs': 1}
                                for _hop in project.HOPS]}}
        handlers = {'a.count': packets, 'a.byte_count': 60 * packets,
                    'b.drops': packets // 2}
        answers[f'GET {_GUEST}/handlers'] = {'handlers': [
            {'name': name, 'read': True, 'write': False}
            for name in handlers]}
        for name, value in {**handlers, 'graph': self._graph()}.items():
            answers[f'GET {_GUEST}/handlers/{name}'] = {
                'name': name, 'value': str(value)}
        return True

    def _graph(self):
        pairs = itertools.pairwise(_ELEMENTS)
        return '\n'.join((
            f'watched_ns {self.packets * 1000000}',
            *(f'element {name} {kind} {7 * (kind == "IPFilter")}'
              for name, kind in _ELEMENTS.items()),
            *(f'connection {a} 0 {b} 0 push {self.packets} 1'
              for a, b in pairs), ''))

    def shown(self, script, what):
        """Wait until a script returns something, while counters go up."""
        self.until(lambda: self.count() and self.script(script), what)
        return self.script(script)

    def scale(self, box):
        return float(self.script(
            'return getComputedStyle(arguments[0]).getPropertyValue('
            '"--clickos-scale")', box))

    def open(self, path):
        """Open a page, dressed if it is to be pictured."""
        super().open(path)
        look.dress(self.driver)

    def check(self, name=None, top=None):
        """Check what a browser and axe-core say of the page.

        :param name: of its picture
        """
        if name:
            look.picture(self.driver, name, top)
        self.assertEqual([], self.errors())
        self.assertEqual([], look.faults(self.driver))


class ZoomTest(PicturesTest):
    """The same for the picture of the project and of a router."""

    pictures = ((_TOPOLOGY, '#clickos-topology', '.box'),
                (f'{_VNF}?tab=vnf__graph', '#clickos-graph', '.element'))

    def each(self):
        """Open one page after the other; give each picture."""
        for path, place, inside in self.pictures:
            with self.subTest(place):
                self.open(path)
                self.see(f'{place} svg {inside}')
                yield self.see(place)

    def turn_wheel(self, box, step):
        """Turn the wheel; a page that has just moved may not notice."""
        action_chains.ActionChains(self.driver).scroll_from_origin(
            wheel_input.ScrollOrigin.from_element(box), 0, step).perform()
        return True

    def move_to(self, box):
        self.script('arguments[0].scrollIntoView()', box)

    def test_buttons(self):
        for box in self.each():
            self.click('[data-zoom=whole]')
            self.assertEqual(1, self.scale(box))
            self.click('[data-zoom=in]')
            self.assertEqual(1.25, self.scale(box))
            self.assertEqual('125 %', self.see('.clickos-scale').text)
            for name, limit in (('out', _SHARES[0]), ('in', _SHARES[1])):
                for _press in range(14):
                    self.click(f'[data-zoom={name}]')
                self.assertEqual(limit, self.scale(box))
            self.click('[data-zoom=fit]')
            self.assertLessEqual(self.scale(box), 1)

    def test_letters_can_be_read_at_every_zoom(self):
        for box in self.each():
            for _press in range(14):
                self.click('[data-zoom=in]')
            scale = None
            while scale != self.scale(box):
                scale = self.scale(box)
                self.until(lambda: not self.script(_WIDE, box),
                           'a text is wider than its room')
                letters = self.script(_LETTERS, box)
                self.assertTrue(letters)
                self.assertGreaterEqual(min(letters), _LEAST_PX, scale)
                self.click('[data-zoom=out]')
            self.assertEqual(_SHARES[0], scale)

    def test_a_cut_name_has_a_title_with_all_of_it(self):
        self.open(f'{_VNF}?tab=vnf__graph')
        self.see('#clickos-graph svg .element')
        for _press in range(14):
            self.click('[data-zoom=out]')
        self.until(lambda: self.script(
            'const e = document.querySelector(".element");'
            'return e.querySelector(".name").textContent.endsWith("…") &&'
            ' e.querySelector("title").textContent.startsWith('
            '"from_the_left")'), 'the first name is not cut')

    def test_keyboard(self):
        for box in self.each():
            self.script('arguments[0].focus()', box)
            box.send_keys('1')
            self.assertEqual(1, self.scale(box))
            box.send_keys('+')
            self.assertEqual(1.25, self.scale(box))
            box.send_keys('-')
            before = self.place(box)
            box.send_keys(keys.Keys.ARROW_RIGHT, keys.Keys.ARROW_DOWN)
            self.assertEqual([at - 60 for at in before], self.place(box))
            box.send_keys('0')
            self.assertLessEqual(self.scale(box), 1)

    def test_wheel_and_drag(self):
        for box in self.each():
            self.click('[data-zoom=whole]')
            self.move_to(box)
            self.until(lambda: self.turn_wheel(box, -120)
                       and self.scale(box) > 1, 'the wheel does nothing')
            before = self.place(box)
            action_chains.ActionChains(self.driver).move_to_element(
                box).click_and_hold().move_by_offset(
                -50, 30).release().perform()
            self.until(lambda: [round(at - old) for at, old in zip(
                self.place(box), before)] == [-50, 30], 'no drag')

    def test_the_wheel_moves_the_page_at_the_end_of_the_scale(self):
        self.driver.set_window_size(1280, 500)
        self.addCleanup(self.driver.set_window_size, 1280, 900)
        for box in self.each():
            for _press in range(14):
                self.click('[data-zoom=out]')
            self.script('arguments[0].scrollIntoView({block: "end"})', box)
            before = self.script('return window.scrollY')
            self.until(lambda: self.turn_wheel(box, 120) and self.script(
                'return window.scrollY') > before, 'the page does not move')
            self.assertEqual(_SHARES[0], self.scale(box))

    def test_the_zoom_stays_while_the_graph_goes_on(self):
        self.open(f'{_VNF}?tab=vnf__graph')
        self.see('#clickos-graph svg .element')
        self.click('[data-zoom=whole]')
        self.click('[data-zoom=in]')
        self.shown(_BUSY_GRAPH, 'no edge has a rate')
        self.assertEqual(1.25, self.scale(self.see('#clickos-graph')))

    def place(self, box):
        """Return where the picture's origin is."""
        text = self.script('return arguments[0].querySelector("svg > g")'
                           '.getAttribute("transform")', box)
        return [float(each) for each in text.partition(
            '(')[2].partition(')')[0].split()]


class TopologyTest(PicturesTest):

    def test_edges_and_table_have_rates(self):
        self.open(_TOPOLOGY)
        found = self.shown(
            'const all = [...document.querySelectorAll("#clickos-topology'
            ' .edge .rate")].map(each => each.textContent);'
            'return all.every(Boolean) && all', 'an edge has no rate')
        self.assertEqual(22, len(found))
        self.assertEqual(11, sum(each.endswith('pkt/s') for each in found))
        self.assertEqual(11, sum(each.endswith('bit/s') for each in found))
        cells = self.script('return [...document.querySelectorAll('
                            '"#clickos-points tbody td:last-child")].map('
                            'each => each.textContent)')
        self.assertNotIn('–', cells)
        self.check('topology', '.clickos-zoom')

    def test_arrows_and_chains_have_rates(self):
        self.open(_TOPOLOGY)
        found = self.shown(_CHAIN_RATES, 'an arrow has no rate')
        self.assertEqual(2, len(found))
        for text in found:
            self.assertTrue(text.endswith('pkt/s'), text)
        self.see('#clickos-topology .chain.drops')
        self.check('topology-chain', '.clickos-zoom')

    def test_a_chain_that_is_away_has_no_rates(self):
        self.open(_TOPOLOGY)
        self.shown(_CHAIN_RATES, 'an arrow has no rate')
        path = f'GET /v1/chains/{test_chains.CHAIN}'
        self.cloud.answers[path] = (503, {'error': {
            'code': 'unavailable', 'message': 'no host answers'}})
        self.until(lambda: self.text('.clickos-entered') == 'no rates'
                   and not self.text('#clickos-topology .chain .rate'),
                   'an old rate stays')
        self.assertEqual('', self.text('#clickos-topology-error'))

    def test_a_guest_that_is_away_has_no_rate(self):
        self.open(_TOPOLOGY)
        row = ('[...document.querySelectorAll("#clickos-points tr")].find('
               'each => each.textContent.includes("monitor"))'
               '.lastElementChild.textContent')
        self.shown(f'return {row} !== "–"', 'no rate')
        server = project.key('server', 'monitor', 0)
        path = f'GET /v1/servers/{server}/ports'
        self.project.points.pop('monitor')
        self.cloud.answers[path] = (404, {'error': {
            'code': 'no-such-server', 'message': 'gone'}})
        self.shown(f'return {row} === "–"', 'an old rate stays')

    def test_tab_leads_to_each_vnf_and_brings_it_into_sight(self):
        self.project.add(30)
        self.project.fill()
        self.open(_TOPOLOGY)
        box = self.see('#clickos-topology')
        self.click('[data-zoom=whole]')
        self.script('arguments[0].focus()', box)
        names = set()
        while True:
            self.driver.switch_to.active_element.send_keys(keys.Keys.TAB)
            here = self.driver.switch_to.active_element
            if not self.script('return arguments[0].contains(arguments[1])',
                               box, here):
                break
            names.add(self.script('return arguments[0].querySelector('
                                  '"title").textContent', here))
            self.assertTrue(self.script('''
                const all = arguments[0].getBoundingClientRect();
                const at = arguments[1].getBoundingClientRect();
                return at.top >= all.top && at.bottom <= all.bottom &&
                  at.left >= all.left && at.left <= all.right;''', box, here))
        # 24 VNFs, the chain, the networks that these have.
        self.assertLessEqual({'ids', 'dpi', 'web', 'left', 'firewall-020'},
                             names)
        self.check()

    def test_hostile_names(self):
        ports = project.ports(self.tenant.id, 'firewall', ('a', 'left'))
        ports[0]._apidict['name'] = f'VDU1-0-{hostile.EVIL}'
        api.neutron.port_list.return_value = ports
        api.neutron.network_list_for_tenant.return_value[0]._apidict[
            'name'] = hostile.EVIL
        self.cloud.answers['GET /vnflcm/v1/vnf_instances'] = [
            {**project.vnf('firewall'), 'vnfInstanceName': hostile.EVIL}]
        self.open(_TOPOLOGY)
        self.see('#clickos-topology .box .name')
        self.assertIn(hostile.MARK, self.see('#clickos-points').text)
        self.assertNotEqual('ran', self.driver.title)
        self.check()

    def test_a_window_of_a_phone(self):
        self.driver.set_window_size(500, 800)
        self.addCleanup(self.driver.set_window_size, 1280, 900)
        self.open(_TOPOLOGY)
        self.see('#clickos-topology .box')
        self.check('topology-small')


class GraphTest(PicturesTest):

    def test_a_list_says_the_same(self):
        self.open(f'{_VNF}?tab=vnf__graph')
        self.shown(_BUSY_GRAPH, 'no edge has a rate')
        self.check('graph')
        self.click('#clickos-graph-list summary')
        self.see('#clickos-graph-list li')
        text = self.script('return document.querySelector('
                           '"#clickos-graph-list ul").textContent')
        for name in _ELEMENTS:
            self.assertIn(name, text)
        self.check()


class PlotsTest(PicturesTest):

    def test_axes_with_units_before_the_first_rate(self):
        self.cloud.answers[f'GET {_GUEST}/ports'] = (503, {})
        self.open(f'{_VNF}?tab=vnf__counters')
        for plot, unit in (('packets', 'pkt/s'), ('bits', 'bit/s'),
                           ('elements', 'pkt/s'), ('element_bits', 'bit/s'),
                           ('drops', 'pkt/s')):
            text = self.see(f'[data-plot={plot}] svg').text
            for wanted in (unit, 'minutes', 'now', '−5', '0.2', '1'):
                self.assertIn(wanted, text)

    def test_packets_and_bytes_of_named_points_are_apart(self):
        self.open(f'{_VNF}?tab=vnf__counters')
        self.shown('return [...document.querySelectorAll(".clickos-legend'
                   ' li")].length > 8 && [...document.querySelectorAll('
                   '".clickos-legend li")].every(each =>'
                   ' !each.textContent.endsWith("–"))', 'a line has no rate')
        legends = {plot: self.script(
            'return [...document.querySelectorAll(arguments[0])].map('
            'each => each.textContent)', f'[data-plot={plot}] li')
            for plot in ('packets', 'bits', 'elements', 'element_bits',
                         'drops')}
        self.assertEqual(
            {'packets': ['left from the guest', 'left to the guest',
                         'right from the guest', 'right to the guest'],
             'bits': ['left from the guest', 'left to the guest',
                      'right from the guest', 'right to the guest'],
             'elements': ['a.count'], 'element_bits': ['a.byte_count'],
             'drops': ['left', 'right', 'b.drops']},
            {plot: [each.partition(':')[0].strip() for each in found]
             for plot, found in legends.items()})
        self.assertNotIn('fa:16:3e', ' '.join(sum(legends.values(), [])))
        self.shown('return [...document.querySelectorAll("[data-plot]'
                   ' path[stroke]")].every(each => (each.getAttribute("d")'
                   ' || "").split("L").length > 3)', 'no line of a rate')
        self.check('counters', '.clickos-plots')


class ChainTest(PicturesTest):

    def test_rates_and_plots_of_each_hop(self):
        self.open(_CHAIN)
        for number in range(1 + len(project.HOPS)):
            self.assertIn('pkt/s', self.see(f'[data-hop="{number}"] svg').text)
        self.shown('return [...document.querySelectorAll("[data-hop=\'2\']'
                   ' .clickos-legend li")].length === 3 &&'
                   ' [...document.querySelectorAll("[data-hop=\'2\']'
                   ' .clickos-legend li")].every(each =>'
                   ' !each.textContent.endsWith("–"))', 'no rate of a hop')
        self.shown('return [...document.querySelectorAll("[data-hop=\'2\']'
                   ' path[stroke]")].every(each => (each.getAttribute("d")'
                   ' || "").split("L").length > 3)', 'no line of a hop')
        row = self.see('#clickos-chain tbody tr:nth-child(3)').text
        self.assertRegex(row, r'2 dpi 1/2 \S')
        self.check('chain')
        look.picture(self.driver, 'chain-hops', '#clickos-chain')

    def test_a_chain_that_changed_is_told(self):
        self.open(_CHAIN)
        path = f'GET /v1/chains/{test_chains.CHAIN}'
        self.cloud.answers[path]['chain']['hops'].pop()
        self.until(lambda: 'other hops' in self.see(
            '#clickos-chain-error').text, 'the change is not told')
