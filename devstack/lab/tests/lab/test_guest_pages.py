# SPDX-License-Identifier: Apache-2.0
"""A guest without a VNF in a browser: counters, and the editor."""

import base64
import os
import unittest

from clickos_lab.cloud import compute
from clickos_lab.cloud import sessions
from clickos_lab.config import hosts
from clickos_lab.demo import tacker
from clickos_lab import paths
from clickos_lab import settings
from tests.lab import browser

_NAME = f'{tacker.MARK}-plain'
_CONFIG = 'FromDevice(0) -> seen :: Counter -> Discard;\n'
_FAULTY = 'FromDevice(0) -> seen :: Counter\n  -> Frobnicate -> Discard;'
#: Angular would run it and set the title.
_EXPRESSION = ("{$ $on.constructor('document.title=/ran/.source')() $}"
               '<img src=x onerror="document.title=/ran/.source">')
_NEW = (f'// two counters {_EXPRESSION}\nFromDevice(0) -> seen :: Counter\n'
        '  -> again :: Counter -> Discard;')


class GuestPagesTest(unittest.TestCase):

    maxDiff = None

    def setUp(self):
        super().setUp()
        lab = settings.Settings.load(paths.State())
        self.demo = sessions.demo(lab)
        self.make_server()
        self.browser = browser.Browser(lab, os.environ.get('PICTURES'))
        self.addCleanup(self.browser.close)

    def make_server(self):
        nova = self.demo.compute
        network = self.demo.network.find_network('left')
        server = nova.create_server(
            name=_NAME, flavor_id=nova.find_flavor(compute.FLAVOR['name']).id,
            image_id=next(self.demo.image.images(
                name=hosts.PROCESS.image)).id,
            networks=[{'uuid': network.id}],
            user_data=base64.b64encode(_CONFIG.encode()).decode())
        self.addCleanup(nova.wait_for_delete, server)
        self.addCleanup(nova.delete_server, server)
        self.server = nova.wait_for_server(server)

    def test_counters_and_editor(self):
        window = self.browser
        window.log_in('demo')
        window.open('/clickos/guests/')
        window.judge()
        window.link(_NAME)
        self.see_counters()
        for tab in ('Graph', 'Handlers', 'Events', 'Console log'):
            window.link(tab)
            window.see('.tab-pane.active')
            window.judge()
        window.link('Configuration')
        window.click('#clickos-edit')
        self.check()
        self.replace()
        self.read_a_hostile_comment()
        self.undo()
        self.assertEqual([], window.errors())
        self.assertEqual([], self.browser.faults)

    def see_counters(self):
        window = self.browser
        window.link('Counters')
        window.see('#clickos-plots [data-plot=packets] svg')
        window.see('#clickos-plots [data-plot=elements]', 'seen.count')
        window.judge()

    def check(self):
        """The place of a fault leads into the text."""
        window = self.browser
        window.type('#clickos-text', _FAULTY)
        window.click('[value=check]')
        window.see('#clickos-faults', 'Frobnicate')
        window.see('#clickos-lit .clickos-kind', 'FromDevice')
        window.judge()
        window.picture('editor-fault')
        window.click('#clickos-faults a')
        self.assertEqual('clickos-text', window.driver.execute_script(
            'return document.activeElement.id'))
        window.click('[value=replace]')
        window.see('#clickos-faults', 'Frobnicate')

    def replace(self):
        window = self.browser
        window.type('#clickos-text', _NEW)
        window.click('[value=compare]')
        window.see('#clickos-difference', '+  -> again')
        window.judge()
        window.picture('editor-difference')
        window.click('[value=replace]')
        window.see('#clickos-earlier', 'Undo revision')
        window.see('#clickos-text')
        self.assertIn('again', self.running())
        window.judge()

    def read_a_hostile_comment(self):
        """The comment of the running configuration stays a text."""
        window = self.browser
        window.open('/clickos/guests/')
        for page in (lambda: window.link(_NAME),
                     lambda: window.link('Configuration'),
                     lambda: window.click('#clickos-edit')):
            page()
            window.until(lambda: window.driver.execute_script(
                'return document.readyState === "complete" && '
                'angular.element(document.body).injector() !== undefined'),
                'Angular has not read the page')
        window.see('#clickos-lit .clickos-comment', _EXPRESSION)
        self.assertNotEqual('ran', window.driver.title)
        self.assertIn("script-src 'self' 'sha256-", self.policy())

    def policy(self):
        """Return the page's policy, as the front passes it on."""
        return self.browser.driver.execute_async_script(
            'const done = arguments[arguments.length - 1];'
            'fetch(location.href).then(answer => done('
            'answer.headers.get("Content-Security-Policy")));')

    def undo(self):
        window = self.browser
        window.click('#clickos-earlier [value=undo]')
        window.until(lambda: 'again' not in self.running(),
                     'the earlier configuration does not run')
        self.assertIn('seen', self.running())

    def running(self):
        return self.browser.driver.execute_script(
            'const e = document.getElementById("clickos-text");'
            ' return e ? e.value : "";')
