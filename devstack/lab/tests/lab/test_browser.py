# SPDX-License-Identifier: Apache-2.0
"""The main job in a browser: from a package to packets and back."""

import os
import shutil
import unittest

from clickos_lab.cloud import sessions
from clickos_lab.demo import machines
from clickos_lab.demo import tacker
from clickos_lab import paths
from clickos_lab import settings
from clickos_lab.vnf import csar
from tests.lab import browser

_NAME = f'{tacker.MARK}-edge'
_GATEWAYS = {'left': '10.10.1.1', 'right': '10.10.2.1'}
_PRODUCT = f'{tacker.MARK}-browser'
_CHAIN = f'{tacker.MARK}-chain'
_CHAIN_ROW = f'#chains tr[data-display="{_CHAIN}"]'
_ROW = f'#vnfs tr[data-display="{_NAME}"]'
_PACKAGE = f'#packages tr[data-display="{_PRODUCT}"]'
#: In pixels; the tab's border takes one beyond a window of 800.
_NARROW, _BORDER = 800, 1
_WIDTH = 'return document.documentElement.scrollWidth'
#: A label of an edge that is not zero.
_BUSY = ('return [...document.querySelectorAll("#clickos-graph .rate")]'
         '.some(e => e.textContent !== "0")')
#: Both edges of a VNF of a name have packets.
_BOTH_EDGES = '''
const rows = [...document.querySelectorAll('#clickos-points tbody tr')].filter(
  row => row.cells[0].textContent === arguments[0]);
return rows.length === 2 && rows.every(
  row => !['–', '0'].includes(row.cells[5].textContent));
'''


class MainJobTest(unittest.TestCase):

    maxDiff = None
    #: at which axe-core judges the pages; a width takes a second a page
    widths = (browser.WIDE,)

    def setUp(self):
        super().setUp()
        self.state = paths.State()
        lab = settings.Settings.load(self.state)
        self.demo = sessions.demo(lab)
        self.machines = machines.Machines(self.state, sessions.admin(lab),
                                          self.demo)
        self.addCleanup(self.machines.remove)
        self.addCleanup(tacker.Tacker(self.demo).sweep)
        self.browser = browser.Browser(lab, os.environ.get('PICTURES'),
                                       self.widths)
        self.addCleanup(self.browser.close)

    def test_main_job(self):
        self.browser.log_in('demo')
        self.refuse_a_package()
        self.upload()
        self.launch()
        self.narrow_the_window()
        self.watch_packets()
        self.steer_packets()
        self.change_a_rule()
        self.break_a_configuration()
        self.terminate()
        self.assertEqual([], self.browser.errors())
        self.assertEqual([], self.browser.faults)

    def csar(self, more=''):
        """Build a firewall of a name of its own."""
        template = self.state.data / 'browser/firewall'
        shutil.rmtree(template.parent, ignore_errors=True)
        shutil.copytree(csar.TEMPLATES / 'firewall', template)
        definitions = template / 'Definitions/firewall.yaml'
        definitions.write_text(definitions.read_text().replace(
            'product_name: Firewall', f'product_name: {_PRODUCT}') + more)
        path = template.with_suffix('.csar')
        csar.build(template, path, '--fresh-id')
        return path

    def refuse_a_package(self):
        path = csar.TEMPLATES / 'firewall/Definitions/firewall.yaml'
        line = len(path.read_text().splitlines()) + 2
        self.send(self.csar('first: &a b\nsecond: *a\n'))
        place = f'Definitions/firewall.yaml:{line}: an alias'
        self.browser.see('.modal.in .alert-danger', place)
        self.browser.judge()
        self.browser.picture('package-refused')
        self.browser.click('.modal.in .cancel')
        self.browser.gone()

    def upload(self):
        self.send(self.csar())
        self.browser.see(_PACKAGE, 'ONBOARDED')
        self.browser.gone()
        self.browser.judge()
        self.browser.picture('packages')
        self.browser.link(_PRODUCT)
        self.browser.see('#content_body', 'Connection points')
        self.browser.judge()
        self.browser.open('/clickos/packages/')

    def send(self, path):
        self.browser.open('/clickos/packages/')
        self.browser.click('#packages__action_upload')
        self.browser.attach('#id_csar', path)
        self.browser.submit()

    def launch(self):
        window = self.browser
        window.click(f'{_PACKAGE} [id$=action_launch]')
        window.type('#id_name', _NAME)
        window.judge()
        window.picture('launch')
        window.click('.modal.in a[href*=networks]')
        for name, address in _GATEWAYS.items():
            window.choose(f'#id_network_{name}', name)
            window.type(f'#id_address_{name}', address)
        window.judge()
        window.picture('launch-networks')
        window.click('.modal.in a[href*=properties]')
        window.type('#id_property_rules', 'allow icmp\ndeny all')
        window.submit()
        window.see(_ROW, _NAME)
        window.see(_ROW, 'Active')
        window.judge()
        window.picture('vnfs')
        window.link(_NAME)
        window.see('#clickos-ports', '10.10.2.1')
        window.judge()
        window.picture('vnf')
        for tab in ('Counters', 'Handlers', 'Configuration', 'Events',
                    'Console log', 'Operations', 'State'):
            window.link(tab)
            window.see('.tab-pane.active')
            window.judge()

    def narrow_the_window(self):
        """Nothing is cut off at 800 pixels, and the keyboard is enough."""
        window = self.browser
        window.driver.set_window_size(_NARROW, 900)
        for path in ('/clickos/', '/clickos/packages/', '/clickos/chains/',
                     '/clickos/topology/', '/clickos/guests/',
                     '/clickos/vnfs/'):
            window.open(path)
            window.see('#content_body h1')
            window.judge()
            window.driver.set_window_size(_NARROW, 900)
            self.assertLessEqual(window.driver.execute_script(_WIDTH),
                                 _NARROW)
        window.press_on(f'{_ROW} a')
        window.see('#clickos-ports', '10.10.2.1')
        self.assertLessEqual(window.driver.execute_script(_WIDTH),
                             _NARROW + _BORDER)
        window.driver.set_window_size(1280, 900)

    def watch_packets(self):
        _, client = self.machines.make_endpoint('left', 'client',
                                                _GATEWAYS['left'])
        port, _server = self.machines.make_endpoint('right', 'server',
                                                    _GATEWAYS['right'])
        ping = self.machines.ping(client, port.ip, '0.01')
        self.browser.link('Graph')
        self.browser.see('#clickos-graph svg', 'received')
        self.browser.until(
            lambda: self.browser.driver.execute_script(_BUSY),
            'no edge has a rate')
        self.browser.judge()
        self.browser.picture('graph')
        self.watch_the_topology()
        self.browser.open('/clickos/')
        self.browser.until(self.busy, 'the overview has no rate')
        self.browser.judge()
        self.browser.picture('overview')
        sent, received, _ = ping.result()
        self.assertEqual(sent, received)

    def watch_the_topology(self):
        """The packets stand at both edges of the firewall, and are named."""
        window = self.browser
        window.open('/clickos/topology/')
        window.until(lambda: window.driver.execute_script(_BOTH_EDGES, _NAME),
                     'an edge of the firewall has no rate')
        window.judge()
        window.picture('topology')
        window.open('/clickos/vnfs/')
        window.link(_NAME)
        window.link('Counters')
        for point in _GATEWAYS:
            window.see('#clickos-plots [data-plot=packets]',
                       f'{point} from the guest')
        window.judge()
        window.picture('counters')

    def busy(self):
        """Return whether the overview counts packets."""
        rate = self.browser.text('#clickos-rates [data-rate=received]')
        return rate.isdigit() and int(rate) > 0

    def steer_packets(self):
        """Make a chain for packets that no program sends."""
        window = self.browser
        window.open('/clickos/chains/')
        window.click('#chains__action_create')
        window.type('#id_name', _CHAIN)
        window.choose('#id_network', 'left')
        window.choose('#id_protocol', 'UDP')
        window.type('#id_destination_port', '9')
        window.choose('#id_hop_1', _NAME)
        window.judge()
        window.picture('chain-create')
        window.submit()
        window.see(_CHAIN_ROW, _NAME)
        window.link(_CHAIN)
        window.see('#clickos-chain tbody', '1/1')
        window.see('#clickos-steered', 'protocol=udp,destination-port=9')
        window.see('#clickos-steered a', 'left')
        window.see('[data-hop="1"] svg', 'pkt/s')
        window.judge()
        window.picture('chain')
        window.open('/clickos/chains/')
        window.choose_action(_CHAIN_ROW, 'delete')
        window.gone(_CHAIN_ROW)

    def change_a_rule(self):
        window = self.browser
        window.open('/clickos/vnfs/')
        window.link(_NAME)
        window.link('Update properties')
        window.type('#id_property_rules', 'deny icmp\nallow all')
        window.submit()
        window.gone()
        window.link('State')
        window.until(self.shows_rule, 'the rule is not in force')

    def shows_rule(self):
        self.browser.driver.refresh()
        return 'deny icmp' in self.browser.text('#vnf__state')

    def break_a_configuration(self):
        window = self.browser
        window.link('Handlers')
        window.link('fw.config')
        window.see('.modal.in textarea')
        window.type('.modal.in textarea', 'frobnicate all packets')
        window.submit()
        window.see('.modal.in .has-error', 'frobnicate')
        window.judge()
        window.picture('handler-refused')
        window.click('.modal.in .cancel')
        window.gone()

    def terminate(self):
        window = self.browser
        window.open('/clickos/vnfs/')
        window.choose_action(_ROW, 'terminate')
        window.see(_ROW, 'Not launched')
        window.choose_action(_ROW, 'delete')
        window.gone(_ROW)
        window.open('/clickos/packages/')
        window.choose_action(_PACKAGE, 'delete')
        window.gone(_PACKAGE)
